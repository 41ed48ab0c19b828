//! Modules that runs of test files use. Each is installed once for each run, as if the test file called it.

use std::collections::HashMap;
use std::sync::Arc;

use config::RunModule;
use config::TestFile;
use config::files::{Disk, FileSource, clean};
use config::loader::MissingModule;
use config::manifest::{Manifest, ManifestEntry};
use config::source_address::ModuleSource;
use config::{ConstValues, LoadOptions, RootVariables, load};
use syntax::Diagnostic;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

use crate::install::{Directory, Event, Walk};

/// Returns the modules of runs with their paths in the manifest, in the order of files and runs.
fn calls(tests: &[Arc<TestFile>]) -> Vec<(addrs::Module, &RunModule)> {
    let of_file = |file| {
        let file: &TestFile = file;
        let runs = file.runs.iter();
        runs.filter_map(|run| Some((file.module_path(run), run.module.as_ref()?)))
    };
    tests.iter().flat_map(|file| of_file(file)).collect()
}

impl Walk<'_> {
    /// Installs the modules of runs, and those that they call.
    pub(crate) async fn runs(&self, tests: &[Arc<TestFile>], events: UnboundedSender<Event>) {
        let mut lonely = Lonely::default();
        let mut remote: Vec<(addrs::Module, MissingModule)> = Vec::new();
        for (path, module) in calls(tests) {
            match &module.address.source {
                ModuleSource::Local(relative) => {
                    let dir = clean(relative.as_str());
                    self.local(path, module, dir, &mut lonely, &events).await;
                }
                source => {
                    let call = MissingModule {
                        path: addrs::Module::root(),
                        source: source.clone(),
                        version: module.address.version.clone(),
                        inputs: ConstValues::default(),
                        range: module.range.clone(),
                        problem: Diagnostic::error("Module not installed", ""),
                    };
                    remote.push((path, call));
                }
            }
        }
        let (mut work, mut told) = (Vec::new(), Vec::new());
        for (path, call) in &remote {
            let (sender, receiver) = unbounded_channel();
            told.push(receiver);
            work.push(self.remote(call, path, &[], None, sender));
        }
        let telling = async {
            for mut receiver in told {
                while let Some(event) = receiver.recv().await {
                    drop(events.send(event));
                }
            }
        };
        futures::future::join(futures::future::join_all(work), telling).await;
    }

    /// Records the module of a run in a directory beside the configuration, and installs the modules that it calls.
    async fn local(
        &self,
        path: addrs::Module,
        module: &RunModule,
        dir: String,
        lonely: &mut Lonely,
        events: &UnboundedSender<Event>,
    ) {
        if let Err(error) = Disk.list(&dir) {
            let problem = Diagnostic::error(
                "Unreadable module directory",
                format!(
                    "The directory {dir}, whose module a run tests, cannot be read: {}.",
                    files::io_reason(&error)
                ),
            );
            self.found().0.push(problem.at(&module.range));
            return;
        }
        let key = Manifest::key(&path);
        let entry = ManifestEntry {
            source: module.address.source.to_string(),
            version: None,
            dir: dir.clone(),
        };
        self.local_entry(key, entry, |event| drop(events.send(event)));
        // A directory without module calls is not walked, because the walk would load it again for each of its runs.
        if !lonely.is(&dir, &self.install.load) {
            let inner = Directory {
                dir,
                path,
                variables: RootVariables::Known(&ConstValues::default()),
            };
            self.package(inner, Vec::new(), events.clone()).await;
        }
    }
}

/// Directories by path, each with true if its module calls no others. Most directories in tests have such modules, and many runs often
/// use the same one.
#[derive(Default)]
struct Lonely(HashMap<String, bool>);

impl Lonely {
    fn is(&mut self, dir: &str, options: &LoadOptions<'_>) -> bool {
        if let Some(known) = self.0.get(dir) {
            return *known;
        }
        let (nothing, values) = (Manifest::default(), ConstValues::default());
        let options = LoadOptions {
            manifest: &nothing,
            variables: RootVariables::Known(&values),
            ..*options
        };
        let loaded = load(&Disk, dir, &options);
        let lonely = loaded.config.root.module.module_calls.is_empty();
        self.0.insert(dir.to_owned(), lonely);
        lonely
    }
}
