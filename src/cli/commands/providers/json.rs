//! Document of `providers -json`.

use std::collections::BTreeSet;

use addrs::Provider;
use config::{Config, ModuleNode};
use serde_json::{Value as Json, json};
use syntax::Diagnostics;
use testing::SuiteFile;
use views::json::Object;

use super::{Needs, needs_of};

/// Returns the requirements of each module and of the modules of test files, and the providers with objects in the state.
pub(super) fn document(
    config: &Config,
    needs: &Needs,
    tests: &[SuiteFile],
    stored: &BTreeSet<&Provider>,
    problems: &mut Diagnostics,
) -> Json {
    let tests: Vec<Json> = tests.iter().map(|file| of_file(file, problems)).collect();
    let stored: Vec<Json> = stored.iter().map(|provider| provider.to_string().into()).collect();
    json!({
        "format_version": "1.0",
        "root_module": module(&config.root, needs),
        "tests": tests,
        "state": stored,
    })
}

/// Returns a module with the modules that it calls.
fn module(node: &ModuleNode, needs: &Needs) -> Json {
    let own = needs.get(&node.path).into_iter().flatten();
    let providers: Vec<Json> = own
        .map(|(provider, constraints)| {
            Object::default()
                .with("source", provider.to_string())
                .with_content("version_constraints", constraints.to_string())
                .into()
        })
        .collect();
    let called = node.children.iter().map(|(name, child)| {
        let mut out = module(child, needs);
        if let Some(out) = out.as_object_mut() {
            out.insert("name".to_owned(), name.to_string().into());
        }
        out
    });
    Object::default()
        .with("providers", providers)
        .with_content("modules", called.collect::<Vec<_>>())
        .into()
}

/// Returns a test file with the modules of its runs, if they have their own.
fn of_file(file: &SuiteFile, problems: &mut Diagnostics) -> Json {
    let runs = file.file.runs.iter().zip(&file.modules);
    let runs: Vec<Json> = runs
        .filter(|(run, _)| run.module.is_some())
        .map(|(run, config)| {
            json!({
                "name": run.name.to_string(),
                "module": module(&config.root, &needs_of(config, problems)),
            })
        })
        .collect();
    json!({ "path": file.file.name.to_string(), "runs": runs })
}
