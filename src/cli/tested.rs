//! Test files of the working directory, with the modules that their runs test.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use addrs::Provider;
use config::files::{Disk, FileSource, Mounted, clean};
use config::manifest::Manifest;
use config::source_address::ModuleSource;
use config::test_files::{self, TestFiles};
use config::{Config, LoadOptions, TestFile, TestRun};
use files::io_reason;
use state::State;
use syntax::{Diagnostic, Diagnostics, SourceMap};
use testing::SuiteFile;
use testing::provider_types::check_provider_types;
use versions::Constraints;

use crate::args::flags::Flags;
use crate::carried_modules;
use crate::core_version;
use crate::plugin_source::requirements;
use crate::session::Session;

/// Reads the flag with the directory of test files.
pub fn directory_flag(flags: &mut Flags<'_>) -> Option<String> {
    flags.value(
        "test-directory",
        "PATH",
        "The directory of test files, \"tests\" if it is not given.",
    )
}

/// Reads the test files, from the directory `dir` if the user sets one.
///
/// # Errors
/// The directory is not allowed.
pub fn read(dir: Option<&str>) -> Result<TestFiles, Diagnostic> {
    let path = test_files::directory(dir)?;
    Ok(test_files::read(&Disk, ".", path, dir.is_some()))
}

/// Returns true if there are configuration or test files to install modules or providers for.
#[must_use]
pub fn is_anything_there(dir: Option<&str>) -> bool {
    crate::workdir::has_configuration()
        || read(dir).is_ok_and(|tests| !tests.files.is_empty() || tests.diagnostics.has_errors())
}

/// Adds the version constraints of the modules that tests run to those that are already needed.
///
/// # Errors
/// A version constraint is invalid.
pub fn add_requirements(
    tested: &Tested,
    root: &Arc<Config>,
    mut needed: BTreeMap<Provider, Constraints>,
) -> Result<BTreeMap<Provider, Constraints>, Diagnostics> {
    // Many runs share a module, and most use the root module.
    let mut seen = BTreeSet::from([Arc::as_ptr(root) as usize]);
    let modules = tested.files.iter().flat_map(|f| &f.modules);
    for module in modules.filter(|module| seen.insert(Arc::as_ptr(module) as usize)) {
        for (provider, constraints) in requirements(module, &State::new())? {
            let all = needed.remove(&provider).unwrap_or_else(Constraints::any);
            needed.insert(provider, all.and(constraints));
        }
    }
    Ok(needed)
}

/// Test files with their modules.
pub struct Tested {
    /// Files whose modules could all be loaded.
    pub files: Vec<SuiteFile>,
    /// Texts of the modules.
    pub sources: SourceMap,
    pub problems: Diagnostics,
}

/// Purpose for which the modules of test files are loaded.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// Checks of the files; missing modules are ignored.
    Checks,
    /// Search for requirements; missing modules are ignored.
    Installation,
    /// Listing of requirements; all modules must be installed.
    Reading,
    /// Test runs; all modules must be installed.
    Runs,
}

impl Purpose {
    /// Returns true if all modules must be installed.
    fn is_complete(self) -> bool {
        matches!(self, Purpose::Reading | Purpose::Runs)
    }

    /// Returns true if nothing is evaluated. Then errors about how modules fit together are only warnings.
    fn is_reading(self) -> bool {
        matches!(self, Purpose::Reading | Purpose::Installation)
    }
}

pub fn modules_of(session: &Session, root: &Arc<Config>, tests: Vec<Arc<TestFile>>, purpose: Purpose) -> Tested {
    let mut manifest = Manifest::read(&Disk, session.env.data_dir()).unwrap_or_default();
    let (mut sources, mut problems) = (SourceMap::default(), Diagnostics::new());
    // Modules that this executable carries need no `init`.
    if purpose.is_complete()
        && lacks_any(&manifest, &tests)
        && let Some(installed) = carried_modules::install(session, &tests)
    {
        manifest = installed.manifest;
        sources.extend(installed.sources);
        problems.extend(installed.problems);
    }
    let mut modules = Modules {
        session,
        manifest: &manifest,
        known: HashMap::new(),
        sources,
        problems,
        purpose,
    };
    let mut files = Vec::new();
    for file in tests {
        let all = file.runs.iter().map(|run| match &run.module {
            None => Some(root.clone()),
            Some(_) => modules.configuration(&file, run),
        });
        let all: Option<Vec<_>> = all.collect();
        if let Some(all) = all {
            modules.problems.extend(check_provider_types(&file, &all));
            let modules = all;
            files.push(SuiteFile { file, modules });
        }
    }
    Tested {
        files,
        sources: modules.sources,
        problems: modules.problems,
    }
}

/// Returns true if a run needs a module that is not installed.
fn lacks_any(manifest: &Manifest, tests: &[Arc<TestFile>]) -> bool {
    let lacks = |file: &TestFile, run: &TestRun| {
        let module = run.module.as_ref().filter(|module| !module.address.source.is_local());
        module.is_some_and(|module| {
            let entry = manifest.modules.get(&Manifest::key(&file.module_path(run)));
            entry.is_none_or(|entry| entry.source != module.address.source.to_string())
        })
    };
    tests.iter().any(|file| file.runs.iter().any(|run| lacks(file, run)))
}

/// Modules of runs, each loaded once.
struct Modules<'m> {
    session: &'m Session,
    manifest: &'m Manifest,
    known: HashMap<(String, Option<addrs::Module>), Option<Arc<Config>>>,
    sources: SourceMap,
    problems: Diagnostics,
    purpose: Purpose,
}

impl Modules<'_> {
    fn configuration(&mut self, file: &TestFile, run: &TestRun) -> Option<Arc<Config>> {
        let module = run.module.as_ref()?;
        let path = file.module_path(run);
        let dir = match &module.address.source {
            ModuleSource::Local(relative) => clean(relative.as_str()),
            _ => match self.installed(&path, module) {
                Ok(dir) => dir,
                Err(problem) => {
                    self.problems
                        .extend(Some(problem).filter(|_| self.purpose.is_complete()));
                    return None;
                }
            },
        };
        // The modules that this module calls may have been installed separately for each run.
        let below = self.manifest.below(&path);
        let key = (dir.clone(), (!below.modules.is_empty()).then_some(path));
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let files = Mounted {
            mounts: self.session.mounts.get().cloned(),
            files: &Disk,
        };
        if let Err(error) = files.list(&dir) {
            self.problems.push(
                Diagnostic::error(
                    "Module not installed",
                    format!(
                        "The directory {dir} of the module that the run \"{}\" tests cannot be read: {}.",
                        run.name,
                        io_reason(&error)
                    ),
                )
                .at(&module.range),
            );
            // A failure is reported once, and not for each run of the module.
            self.known.insert(key, None);
            return None;
        }
        let options = LoadOptions {
            cwd: self.session.original_dir.to_str().unwrap_or("."),
            ..LoadOptions::new(core_version(), &below)
        };
        let mut loaded = config::load_for_tests(&files, &dir, &options);
        if self.purpose.is_reading() {
            loaded = loaded.for_reading();
        }
        self.sources.extend(loaded.sources);
        let failed = loaded.diagnostics.has_errors();
        self.problems.extend(loaded.diagnostics);
        let config = (!failed).then(|| Arc::new(loaded.config));
        self.known.insert(key, config.clone());
        config
    }

    /// Returns the directory in which a remote module is installed.
    fn installed(&self, path: &addrs::Module, module: &config::RunModule) -> Result<String, Diagnostic> {
        let source = module.address.source.to_string();
        match self.manifest.modules.get(&Manifest::key(path)) {
            Some(entry) if entry.source == source => Ok(clean(&entry.dir)),
            _ => Err(Diagnostic::error(
                "Module not installed",
                "This module is not yet installed. Run \"init\" to install the modules that the tests need.",
            )
            .at(&module.range)),
        }
    }
}
