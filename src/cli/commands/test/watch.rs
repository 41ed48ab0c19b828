//! `test -watch`: runs test files again when their dependencies change.

use std::collections::BTreeSet;
use std::path::PathBuf;

use config::file_names;
use config::files::clean;
use testing::SuiteFile;

use super::{Arguments, once};
use crate::outcome::{Failure, Outcome};
use crate::session::Session;
use crate::watch::{Watch, beside};

/// Returns the directories of a test file's modules.
fn module_dirs(file: &SuiteFile) -> BTreeSet<String> {
    let nodes = file.modules.iter().flat_map(|config| config.nodes());
    nodes.map(|node| node.module.source_dir.to_string()).collect()
}

/// Returns the test files that depend on changed files; `None` if all test files may depend on them.
fn affected(files: &[SuiteFile], changed: &BTreeSet<PathBuf>) -> Option<BTreeSet<String>> {
    let mut out = BTreeSet::new();
    for path in changed {
        let path = clean(&path.to_string_lossy());
        let (dir, name) = path.rsplit_once('/').unwrap_or((".", &path));
        if file_names::is_test(name) {
            out.insert(path);
        } else if file_names::is_configuration(name) {
            let depend = files.iter().filter(|file| module_dirs(file).contains(dir));
            out.extend(depend.map(|file| file.file.name.to_string()));
        } else {
            // It is not known which test files depend on a variable file, mock data or a template, so all are run.
            return None;
        }
    }
    Some(out)
}

/// Runs test files, and again after changes, until an interrupt. Returns the outcome of the last run, which was already shown.
pub(super) fn watch(
    session: &Session,
    arguments: &Arguments,
    only: Option<BTreeSet<String>>,
) -> Result<Outcome, Failure> {
    let mut only = only;
    let mut watch = Watch::new();
    loop {
        // Variable files may have changed.
        session.forget_variables();
        watch.begin();
        let ran = once(session, arguments, only.as_ref());
        if ran.interrupted {
            return Ok(ran.outcome);
        }
        let status = session.render(ran.outcome);
        let files = ran.loaded.iter().flat_map(|loaded| &loaded.files);
        watch.also(beside(files.flat_map(|file| &file.modules).map(|module| &**module)));
        let Some(changed) = watch.wait(session)? else {
            return Ok(status.into());
        };
        only = match &ran.loaded {
            Some(loaded) => affected(&loaded.all, &changed),
            None => None,
        };
    }
}
