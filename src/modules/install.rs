//! Installation of the modules that a configuration calls.

mod remote;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use config::files::{Disk, FileSource, Mounted, join};
use config::loader::{Loaded, MissingModule};
use config::manifest::{Manifest, ManifestEntry};
use config::model::ModuleNode;
use config::source_address::ModuleSource;
use config::version::Version;
use config::{LoadOptions, RootVariables, TestFile, load, load_for_installation};
use files::mounts::Mounts;
use futures::future::{BoxFuture, FutureExt, join_all};
use net::Client;
use syntax::{Diagnostic, Diagnostics, SourceMap};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::sync::{Semaphore, watch};

use crate::carried::lacks;
use crate::fetch::{FetchError, Fetcher};
use crate::mirror::Mirror;
use crate::registry::Registries;
use crate::tree;
use crate::written::{Written, write};

/// Limit of the packages that are fetched at the same time.
const AT_ONCE: usize = 8;
/// Limit of the depth of remote modules. Otherwise, the installation of a module that calls itself with another version each
/// time would never end.
const MAX_DEPTH: usize = 64;
/// Prefix of the directories that packages are fetched into. Leftovers of an interrupted run are found by this
/// prefix.
const PARTIAL: &str = ".partial-";

/// Settings of one installation.
#[derive(Clone, Debug)]
pub struct Install<'i> {
    pub client: Client,
    /// Data directory, as the manifest names it: `.terraform`.
    pub data_dir: &'i str,
    /// Mounts for directories in memory, which replace a data directory that cannot be written. The manifest has the paths that the modules
    /// would have there. Set only if `mirror` is a pack.
    pub in_memory: Option<Arc<Mounts>>,
    /// True to fetch everything again, and to choose the newest versions.
    pub upgrade: bool,
    /// Options of loading the configuration; the manifest in them is ignored.
    pub load: LoadOptions<'i>,
    /// Only source of modules, if set: no registry or server is contacted.
    pub mirror: Option<Mirror>,
    /// Modules that the executable carries. They have precedence over registries and servers.
    pub carried: Option<Mirror>,
    /// Test files, whose runs may name modules of their own.
    pub tests: &'i [Arc<TestFile>],
    /// True if modules are removed from the manifest that neither the configuration nor these test files call.
    pub forget: bool,
    /// Name of the program in messages.
    pub program: addrs::Program,
}

/// Progress of an installation, in the order of the calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    Downloading {
        /// Key of the module in the manifest.
        key: String,
        package: String,
        /// Chosen version of a registry module.
        version: Option<String>,
        /// True if the executable carries the package.
        carried: bool,
    },
    /// A module was installed, or its entry in the manifest has changed.
    Installed {
        /// Key of the module in the manifest.
        key: String,
        dir: String,
    },
}

/// Result of an installation.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Configuration with all its modules and all problems in it.
    pub loaded: Loaded,
    /// Problems of the installation. If one is an error, the configuration is incomplete.
    pub problems: Diagnostics,
    /// Text of the files that the problems point to.
    pub sources: SourceMap,
    pub manifest: Manifest,
}

impl Install<'_> {
    /// Returns the files that modules are read from: the disk, with the mounts over it.
    fn files(&self) -> Mounted<'static> {
        Mounted {
            mounts: self.in_memory.clone(),
            files: &Disk,
        }
    }

    /// Returns the manifest to be written at the end. `seen` has the keys of the modules that this run has met.
    fn final_manifest(&self, manifest: Manifest, loaded: &Loaded, seen: &HashSet<String>, failed: bool) -> Manifest {
        // Entries are dropped only after a complete run. After a failed one, modules that were not reached are still installed,
        // and would otherwise be fetched again.
        let whole = loaded.missing.is_empty() && !failed && !loaded.diagnostics.has_errors();
        if whole {
            let mut last = loaded.config.manifest();
            for (key, entry) in manifest.modules {
                if seen.contains(&key) {
                    last.modules.insert(key, entry);
                } else if !self.forget {
                    last.modules.entry(key).or_insert(entry);
                }
            }
            last
        } else {
            manifest
        }
    }

    /// Installs the modules of the configuration in a directory.
    pub async fn run(&self, dir: &str, on_event: &mut (dyn FnMut(Event) + Send)) -> Outcome {
        let mut problems = Diagnostics::new();
        let manifest = match Manifest::read(&Disk, self.data_dir) {
            Ok(manifest) => manifest,
            Err(problem) => {
                problems.push(problem);
                Manifest::default()
            }
        };
        let modules_dir = join(self.data_dir, "modules");
        let on_disk = self.in_memory.is_none();
        let walk = Walk {
            install: self,
            before: manifest.clone(),
            written: Written {
                path: on_disk.then(|| PathBuf::from(join(self.data_dir, Manifest::PATH))),
                manifest: Mutex::new(manifest),
            },
            files: self.files(),
            modules_dir,
            registries: Registries::new(self.client.clone(), self.mirror.clone(), self.carried.clone()),
            fetcher: Fetcher::new(self.client.clone()),
            permits: Semaphore::new(AT_ONCE),
            packages: Mutex::default(),
            found: Mutex::new((problems, SourceMap::default())),
            seen: Mutex::default(),
        };
        if !walk.found().0.has_errors() {
            if on_disk {
                walk.clear_partial();
            }
            let (sender, mut events) = unbounded_channel();
            let root = Directory {
                dir: dir.to_owned(),
                path: addrs::Module::root(),
                variables: self.load.variables,
            };
            let work = async {
                walk.package(root, Vec::new(), sender.clone()).await;
                walk.runs(self.tests, sender).await;
            };
            let told = async {
                while let Some(event) = events.recv().await {
                    on_event(event);
                }
            };
            futures::future::join(work, told).await;
        }
        let (mut problems, sources) = std::mem::take(&mut *walk.found());
        let manifest = walk.written.manifest.into_inner();
        let manifest = manifest.unwrap_or_else(PoisonError::into_inner);
        let seen = walk.seen.into_inner().unwrap_or_else(PoisonError::into_inner);
        let options = LoadOptions {
            manifest: &manifest,
            ..self.load
        };
        let loaded = load_for_installation(&walk.files, dir, &options).for_reading();
        // Errors that concern only an operation become warnings here: a module can be installed before the
        // configuration is complete.
        let last = self.final_manifest(manifest, &loaded, &seen, problems.has_errors());
        // A configuration without modules gets no manifest, except to remove the entries of an old one.
        let calls = !loaded.config.root.module.module_calls.is_empty() || name_modules(self.tests);
        if let Some(path) = &walk.written.path
            && (calls || path.exists())
            && let Err(problem) = write(path, &last)
        {
            problems.push(problem);
        }
        Outcome {
            loaded,
            problems,
            sources,
            manifest: last,
        }
    }
}

/// Receiver of the directory of a package. The package is fetched for the first call, and copied from there for the others.
type Package = watch::Receiver<Option<Result<PathBuf, Arc<FetchError>>>>;

pub(crate) struct Walk<'w> {
    pub(crate) install: &'w Install<'w>,
    /// Manifest as it was before this run.
    before: Manifest,
    written: Written,
    files: Mounted<'static>,
    pub(crate) modules_dir: String,
    registries: Registries,
    fetcher: Fetcher,
    permits: Semaphore,
    packages: Mutex<HashMap<String, Package>>,
    found: Mutex<(Diagnostics, SourceMap)>,
    /// Keys of the modules that this run has met.
    seen: Mutex<HashSet<String>>,
}

/// Role of a call in fetching a package that several calls need.
pub(crate) enum Turn {
    /// The first call fetches the package, and passes its directory on.
    Ours(watch::Sender<Option<Result<PathBuf, Arc<FetchError>>>>),
    /// A later call waits for the first one.
    Theirs(Package),
}

/// Directory whose modules are installed.
pub(crate) struct Directory<'d> {
    pub(crate) dir: String,
    pub(crate) path: addrs::Module,
    /// Values for the variables of the module in the directory, which is loaded as a root module.
    pub(crate) variables: RootVariables<'d>,
}

/// Step of the installation of a directory, in the order of the calls: an event to report, or a package to fetch.
enum Step<'s> {
    Told(Event),
    Remote(&'s MissingModule),
}

/// Enclosing module of the one that is being installed, for the detection of cycles.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Ancestor {
    source: String,
    version: Option<String>,
}

impl Walk<'_> {
    pub(crate) fn found(&self) -> std::sync::MutexGuard<'_, (Diagnostics, SourceMap)> {
        self.found.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn report(&self, call: &MissingModule, summary: &str, detail: impl Into<String>) {
        let ours = self.install.mirror.iter().filter(|mirror| mirror.is_pack());
        let carried = self.install.carried.iter().chain(ours).next();
        let hint = carried
            .map(|carried| lacks(carried, call, self.install.program))
            .unwrap_or_default();
        let detail = format!("{}{hint}", detail.into());
        self.found().0.push(Diagnostic::error(summary, detail).at(&call.range));
    }

    /// Removes the directories that interrupted runs have left.
    fn clear_partial(&self) {
        for entry in std::fs::read_dir(&self.modules_dir).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(PARTIAL)
                && let Err(error) = tree::remove(&entry.path())
            {
                tracing::warn!(path = %entry.path().display(), %error, "cannot be removed");
            }
        }
    }

    /// Installs the modules that a directory calls, both those inside its package and remote ones.
    pub(crate) fn package<'a>(
        &'a self,
        directory: Directory<'a>,
        around: Vec<Ancestor>,
        events: UnboundedSender<Event>,
    ) -> BoxFuture<'a, ()> {
        async move {
            let Directory { dir, path, variables } = directory;
            // Without a manifest, every remote call counts as missing; `kept` decides which of them can stay.
            let nothing = Manifest::default();
            let options = LoadOptions {
                manifest: &nothing,
                variables,
                ..self.install.load
            };
            let loaded = load(&self.files, &dir, &options);
            let mut steps = Vec::new();
            let missing = loaded.missing.iter().map(|m| (Manifest::key(&m.path), m)).collect();
            self.steps(&loaded.config.root, &missing, &path, &mut steps);
            self.found().1.extend(loaded.sources.clone());
            let mut work = Vec::new();
            let mut told = Vec::new();
            for step in steps {
                match step {
                    Step::Told(event) => told.push(Ok(event)),
                    Step::Remote(call) => {
                        // Downloads run side by side, so each call has its own channel, and the channels are read in order.
                        let (sender, receiver) = unbounded_channel();
                        told.push(Err(receiver));
                        // The order is that of the calls, not that in which downloads happen to begin, so that the output
                        // is the same in each run.
                        let turn = match &call.source {
                            ModuleSource::Remote(remote) if self.needed(call, &path) => {
                                Some(self.turn(&remote.package))
                            }
                            _ => None,
                        };
                        work.push(self.remote(call, &path, &around, turn, sender));
                    }
                }
            }
            let telling = async {
                for item in told {
                    match item {
                        Ok(event) => drop(events.send(event)),
                        Err(mut receiver) => {
                            while let Some(event) = receiver.recv().await {
                                drop(events.send(event));
                            }
                        }
                    }
                }
            };
            futures::future::join(join_all(work), telling).await;
        }
        .boxed()
    }

    /// Collects the calls of a module and of the local modules below it, depth first.
    fn steps<'s>(
        &self,
        node: &ModuleNode,
        missing: &HashMap<String, &'s MissingModule>,
        prefix: &addrs::Module,
        steps: &mut Vec<Step<'s>>,
    ) {
        for name in node.module.module_calls.keys() {
            let inner = node.path.child(name.clone());
            if let Some(child) = node.children.get(name) {
                let key = Manifest::key(&below(prefix, &inner));
                let entry = ManifestEntry {
                    source: child.source.clone(),
                    version: None,
                    dir: child.source_dir().to_owned(),
                };
                self.local_entry(key, entry, |event| steps.push(Step::Told(event)));
                self.steps(child, missing, prefix, steps);
            } else if let Some(call) = missing.get(&Manifest::key(&inner)) {
                steps.push(Step::Remote(call));
            }
        }
    }

    /// Records a local module, which is not copied, and reports it if its entry is new or has changed.
    pub(crate) fn local_entry(&self, key: String, entry: ManifestEntry, emit: impl FnOnce(Event)) {
        if self.install.upgrade || self.before.modules.get(&key) != Some(&entry) {
            let dir = entry.dir.clone();
            emit(Event::Installed { key: key.clone(), dir });
        }
        self.see(&key);
        self.written.note(key, entry);
    }

    fn see(&self, key: &str) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.insert(key.to_owned());
    }

    /// Returns true if a module must be fetched: it is not installed, its manifest entry does not fit the call, or `-upgrade` is set.
    fn needed(&self, call: &MissingModule, prefix: &addrs::Module) -> bool {
        self.kept(call, prefix).is_none()
    }

    /// Returns the manifest entry of a module, if the module is installed, fits the call, and is not to be upgraded.
    fn kept(&self, call: &MissingModule, prefix: &addrs::Module) -> Option<&ManifestEntry> {
        let key = Manifest::key(&below(prefix, &call.path));
        let entry = self.before.modules.get(&key).filter(|_| !self.install.upgrade)?;
        let version_fits = match (&call.version, &entry.version) {
            (Some(constraint), Some(text)) => {
                Version::parse_lenient(text).is_ok_and(|version| constraint.allows(&version))
            }
            _ => true,
        };
        // The directory may have been removed since the manifest was written.
        let there = entry.source == call.source.to_string() && version_fits && self.is_dir(&entry.dir);
        there.then_some(entry)
    }

    fn is_dir(&self, dir: &str) -> bool {
        match &self.files.mounts {
            Some(_) => self.files.list(dir).is_ok(),
            None => Path::new(dir).is_dir(),
        }
    }

    fn turn(&self, package: &str) -> Turn {
        let mut all = self.packages.lock().unwrap_or_else(PoisonError::into_inner);
        match all.get(package) {
            Some(other) => Turn::Theirs(other.clone()),
            None => {
                let (sender, receiver) = watch::channel(None);
                all.insert(package.to_owned(), receiver);
                Turn::Ours(sender)
            }
        }
    }
}

fn below(prefix: &addrs::Module, inner: &addrs::Module) -> addrs::Module {
    let mut path = prefix.clone();
    for name in inner.0.iter() {
        path = path.child(name.clone());
    }
    path
}

/// Returns true if a run in these files names a module.
#[must_use]
pub fn name_modules(tests: &[Arc<TestFile>]) -> bool {
    tests.iter().flat_map(|file| &file.runs).any(|run| run.module.is_some())
}
