//! Providers that local names in a test file refer to: the same as in the modules of its runs. If these differ, the module of the earliest
//! run takes precedence.

use std::collections::BTreeMap;
use std::sync::Arc;

use addrs::{LocalProviderConfig, Provider};
use config::{Config, Module, TestFile, TestProvider, TestRun};
use syntax::{Diagnostic, Diagnostics, Range};

/// Returns the local names of a module with the providers that they refer to.
fn names(module: &Module) -> BTreeMap<Arc<str>, Provider> {
    let configured = module.provider_configs.keys().map(|c| c.name.clone());
    let all = module.required_providers.keys().cloned().chain(configured);
    all.map(|name| (name.clone(), module.provider_for_local_name(&name)))
        .collect()
}

fn header(provider: &TestProvider) -> &Range {
    match provider {
        TestProvider::Real(block) => &block.range,
        TestProvider::Mock(mock) => &mock.range,
    }
}

fn mismatch(file: &str, name: impl std::fmt::Display, of_file: &Provider, of_module: &Provider) -> Diagnostic {
    Diagnostic::error(
        "Provider type mismatch",
        format!(
            "In {file}, \"{name}\" is a configuration of the provider {of_file}, as an earlier run has it, and this run needs one of \
             {of_module} there. Give the provider configurations different names, and say in the \"providers\" argument of the runs \
             which of them they mean."
        ),
    )
}

/// Checks that each local provider name in a test file means the same provider in all runs. Reports runs whose module uses the name
/// for another provider.
#[must_use]
pub fn check_provider_types(file: &TestFile, modules: &[Arc<Config>]) -> Diagnostics {
    let mut meant: BTreeMap<Arc<str>, Provider> = BTreeMap::new();
    let mut out = Diagnostics::new();
    let has = |name: &str| file.providers.keys().any(|config| &*config.name == name);
    for (run, config) in file.runs.iter().zip(modules) {
        let module = &config.root.module;
        let own = names(module);
        if run.providers.is_empty() {
            for (name, provider) in own.iter().filter(|(name, _)| has(name)) {
                meant.entry(name.clone()).or_insert_with(|| provider.clone());
            }
            if run.module.is_none() {
                // All runs of the root module have the same problems, so they are reported once.
                for problem in by_name(file, module, &own, &meant) {
                    if !out.iter().any(|known| *known == problem) {
                        out.push(problem);
                    }
                }
            }
        } else {
            out.extend(passed(file, run, module, &mut meant));
        }
    }
    out
}

/// Checks the configurations that a run of the root module uses by name.
fn by_name(
    file: &TestFile,
    module: &Module,
    own: &BTreeMap<Arc<str>, Provider>,
    meant: &BTreeMap<Arc<str>, Provider>,
) -> Diagnostics {
    let aliases = module
        .required_providers
        .values()
        .flat_map(|r| &r.configuration_aliases);
    let required = module.required_providers.keys().map(|name| LocalProviderConfig {
        name: name.clone(),
        alias: None,
    });
    let needed = required
        .chain(aliases.map(|alias| alias.config.clone()))
        .chain(module.provider_configs.keys().cloned());
    let wrong = needed.filter_map(|config| {
        let block = file.providers.get(&config)?;
        let (of_file, of_module) = (meant.get(&config.name)?, own.get(&config.name)?);
        (of_file != of_module).then(|| mismatch(&file.name, &config, of_file, of_module).at(header(block)))
    });
    wrong.collect()
}

/// Checks the configurations that a run names in its "providers" argument.
fn passed(file: &TestFile, run: &TestRun, module: &Module, meant: &mut BTreeMap<Arc<str>, Provider>) -> Diagnostics {
    let mut out = Diagnostics::new();
    for passed in &run.providers {
        let of_module = module.provider_for_local_name(&passed.child.config.name);
        let name = &passed.parent.config.name;
        if !file.providers.keys().any(|config| config.name == *name) {
            continue;
        }
        let of_file = meant.entry(name.clone()).or_insert_with(|| of_module.clone());
        if *of_file != of_module {
            out.push(mismatch(&file.name, name, of_file, &of_module).at(&passed.parent.range));
        }
    }
    out
}
