//! Installation: every call of a configuration gets its module.

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

/// How many packages are fetched at the same time.
const AT_ONCE: usize = 8;
/// How many remote modules may lie inside one another.
const MAX_DEPTH: usize = 64;
/// Directories in which packages are fetched begin with this.
const PARTIAL: &str = ".partial-";

/// What is to be installed, and how.
#[derive(Clone, Debug)]
pub struct Install<'i> {
    /// What makes the requests.
    pub client: Client,
    /// The data directory, as the manifest names it: `.terraform`.
    pub data_dir: &'i str,
    /// Where directories in memory are mounted instead of writing to the data directory, which the manifest names all the same. Only
    /// with a pack as the mirror.
    pub in_memory: Option<Arc<Mounts>>,
    /// Fetch everything again, and choose the newest versions.
    pub upgrade: bool,
    /// How the configuration is loaded; the manifest in it does not count.
    pub load: LoadOptions<'i>,
    /// Where modules come from, instead of everywhere else.
    pub mirror: Option<Mirror>,
    /// Where modules come from before anywhere else: what our own executable carries.
    pub carried: Option<Mirror>,
    /// The test files, whose runs may name modules of their own.
    pub tests: &'i [Arc<TestFile>],
    /// Whether the manifest forgets modules that neither the configuration nor these test files call.
    pub forget: bool,
    /// The name of this program in messages.
    pub program: addrs::Program,
}

/// What happens, in the order of the calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// A package will be fetched.
    Downloading {
        /// The module's key in the manifest.
        key: String,
        package: String,
        /// The version that was chosen, of a registry module.
        version: Option<String>,
        /// Whether our own executable carries it.
        carried: bool,
    },
    /// A module is there that was not, or not so.
    Installed {
        /// Its key in the manifest.
        key: String,
        /// Its directory.
        dir: String,
    },
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The configuration with all its modules, with every problem in it, and with its manifest written if it is on the disk.
    pub loaded: Loaded,
    /// The problems of installing. If there are errors among them, the configuration is not whole.
    pub problems: Diagnostics,
    /// The text of the files that the problems point to.
    pub sources: SourceMap,
    /// What is installed where.
    pub manifest: Manifest,
}

impl Install<'_> {
    /// The files that modules are read from.
    fn files(&self) -> Mounted<'static> {
        Mounted {
            mounts: self.in_memory.clone(),
            files: &Disk,
        }
    }

    /// Returns the manifest after an installation that has met the modules `seen`.
    fn final_manifest(&self, manifest: Manifest, loaded: &Loaded, seen: &HashSet<String>, failed: bool) -> Manifest {
        // What is no longer called is forgotten; what could not be installed leaves the rest as it is.
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
        let last = self.final_manifest(manifest, &loaded, &seen, problems.has_errors());
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

/// A package that is fetched once in a run, and copied for other calls.
type Package = watch::Receiver<Option<Result<PathBuf, Arc<FetchError>>>>;

pub(crate) struct Walk<'w> {
    pub(crate) install: &'w Install<'w>,
    /// The manifest as it was.
    before: Manifest,
    written: Written,
    files: Mounted<'static>,
    pub(crate) modules_dir: String,
    registries: Registries,
    fetcher: Fetcher,
    permits: Semaphore,
    packages: Mutex<HashMap<String, Package>>,
    found: Mutex<(Diagnostics, SourceMap)>,
    /// The keys of the modules that were come upon.
    seen: Mutex<HashSet<String>>,
}

/// Who fetches a package.
pub(crate) enum Turn {
    /// We do, and tell the others.
    Ours(watch::Sender<Option<Result<PathBuf, Arc<FetchError>>>>),
    /// Another task does.
    Theirs(Package),
}

/// A directory whose modules are installed.
pub(crate) struct Directory<'d> {
    pub(crate) dir: String,
    /// The module in it.
    pub(crate) path: addrs::Module,
    /// The values of its variables.
    pub(crate) variables: RootVariables<'d>,
}

/// What a directory's calls need, in their order.
enum Step<'s> {
    Told(Event),
    Remote(&'s MissingModule),
}

/// A module that lies around the one in question.
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

    /// What runs that were interrupted have left.
    fn clear_partial(&self) {
        for entry in std::fs::read_dir(&self.modules_dir).into_iter().flatten().flatten() {
            if entry.file_name().to_string_lossy().starts_with(PARTIAL)
                && let Err(error) = tree::remove(&entry.path())
            {
                tracing::warn!(path = %entry.path().display(), %error, "cannot be removed");
            }
        }
    }

    /// The modules that a directory calls, those inside its package and those elsewhere.
    pub(crate) fn package<'a>(
        &'a self,
        directory: Directory<'a>,
        around: Vec<Ancestor>,
        events: UnboundedSender<Event>,
    ) -> BoxFuture<'a, ()> {
        async move {
            let Directory { dir, path, variables } = directory;
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
                        let (sender, receiver) = unbounded_channel();
                        told.push(Err(receiver));
                        // Whose turn it is follows the order of the calls, not chance.
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

    /// The calls of a module and of the local modules below, depth first.
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

    /// Notes a module that is where it is, and tells of it if it was not known, or not so.
    pub(crate) fn local_entry(&self, key: String, entry: ManifestEntry, tell: impl FnOnce(Event)) {
        if self.install.upgrade || self.before.modules.get(&key) != Some(&entry) {
            let dir = entry.dir.clone();
            tell(Event::Installed { key: key.clone(), dir });
        }
        self.see(&key);
        self.written.note(key, entry);
    }

    fn see(&self, key: &str) {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        seen.insert(key.to_owned());
    }

    /// Whether a module must be fetched: it is not there, or not so.
    fn needed(&self, call: &MissingModule, prefix: &addrs::Module) -> bool {
        self.kept(call, prefix).is_none()
    }

    /// The entry of a module that can stay as it is.
    fn kept(&self, call: &MissingModule, prefix: &addrs::Module) -> Option<&ManifestEntry> {
        let key = Manifest::key(&below(prefix, &call.path));
        let entry = self.before.modules.get(&key).filter(|_| !self.install.upgrade)?;
        let version_fits = match (&call.version, &entry.version) {
            (Some(constraint), Some(text)) => {
                Version::parse_lenient(text).is_ok_and(|version| constraint.allows(&version))
            }
            _ => true,
        };
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

/// Returns true if a run of these files names a module.
#[must_use]
pub fn name_modules(tests: &[Arc<TestFile>]) -> bool {
    tests.iter().flat_map(|file| &file.runs).any(|run| run.module.is_some())
}
