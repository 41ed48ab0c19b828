//! Installation: every call of a configuration gets its module.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use config::files::{Disk, FileSource, Mounted, clean, join};
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
use crate::fetch::{FetchError, Fetcher, file_error};
use crate::mirror::Mirror;
use crate::moved::moved;
use crate::registry::{Problem, Registries};
use crate::shown::public;
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
        /// The package.
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
        // What is no longer called is forgotten; what could not be installed leaves the rest as it is.
        let whole = loaded.missing.is_empty() && !problems.has_errors() && !loaded.diagnostics.has_errors();
        let last = if whole {
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
        };
        let calls =
            !loaded.config.root.module.module_calls.is_empty() || crate::test_run_modules::name_modules(self.tests);
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

    /// One module from elsewhere, and all below.
    pub(crate) fn remote<'a>(
        &'a self,
        call: &'a MissingModule,
        prefix: &'a addrs::Module,
        around: &'a [Ancestor],
        turn: Option<Turn>,
        events: UnboundedSender<Event>,
    ) -> BoxFuture<'a, ()> {
        async move {
            let path = below(prefix, &call.path);
            let key = Manifest::key(&path);
            self.see(&key);
            let (dir, version) = match self.kept(call, prefix) {
                Some(entry) => (entry.dir.clone(), entry.version.clone()),
                None => match self.fetched(call, &key, turn, &events).await {
                    Some(entry) => (entry.dir, entry.version),
                    None => return,
                },
            };
            let this = Ancestor {
                source: call.source.to_string(),
                version,
            };
            if around.contains(&this) || around.len() >= MAX_DEPTH {
                self.report(
                    call,
                    "Module calls itself",
                    format!(
                        "The module \"{}\" calls itself, by way of {path}. Remove one of these calls.",
                        call.source
                    ),
                );
                return;
            }
            let mut around = around.to_vec();
            around.push(this);
            let inner = Directory {
                dir,
                path,
                variables: RootVariables::Known(&call.inputs),
            };
            self.package(inner, around, events).await;
        }
        .boxed()
    }

    /// Installs a module. Returns no entry where a problem was reported.
    async fn fetched(
        &self,
        call: &MissingModule,
        key: &str,
        turn: Option<Turn>,
        events: &UnboundedSender<Event>,
    ) -> Option<ManifestEntry> {
        let (package, subdir, version, turn) = self.located(call, key, turn, events).await?;
        let failed = |problem: &dyn std::fmt::Display| {
            let name = call.path.0.last().map_or("", |n| &**n);
            let detail = format!(
                "The module \"{name}\" could not be fetched from \"{}\": {problem}.",
                public(&package)
            );
            self.report(call, "Failed to download module", detail);
        };
        let entry = ManifestEntry {
            source: call.source.to_string(),
            version,
            dir: String::new(),
        };
        let place = match &self.install.in_memory {
            Some(mounts) => self.mount(mounts, key, &package, turn).await,
            None => self.place(call, key, &package, turn, &entry).await,
        };
        let place = match place {
            Ok(place) => place,
            Err(problem) => {
                failed(&problem);
                return None;
            }
        };
        let dir = match &subdir {
            None => place,
            Some(subdir) => match tree::subdirectory(&place, subdir, self.files.mounts.as_deref()) {
                Ok(dir) => dir,
                Err(problem) => {
                    self.report(
                        call,
                        "Unreadable module subdirectory",
                        format!("The package \"{}\" was fetched, but {problem}.", public(&package)),
                    );
                    return None;
                }
            },
        };
        let entry = ManifestEntry {
            dir: clean(&dir.to_string_lossy()),
            ..entry
        };
        self.written.note(key.to_owned(), entry.clone());
        if let Err(problem) = self.written.save() {
            self.found().0.push(problem);
            return None;
        }
        drop(events.send(Event::Installed {
            key: key.to_owned(),
            dir: entry.dir.clone(),
        }));
        Some(entry)
    }

    /// The package of a module, its subdirectory and its version, and the turn to fetch it. Problems are reported.
    async fn located(
        &self,
        call: &MissingModule,
        key: &str,
        turn: Option<Turn>,
        events: &UnboundedSender<Event>,
    ) -> Option<(String, Option<String>, Option<String>, Turn)> {
        let tell = |package: String, version: Option<String>, carried: bool| {
            let key = key.to_owned();
            drop(events.send(Event::Downloading {
                key,
                package,
                version,
                carried,
            }));
        };
        let carried = self.install.carried.as_ref();
        match &call.source {
            // Never missing: it is part of the package around it.
            ModuleSource::Local(_) => None,
            ModuleSource::Remote(remote) => {
                let from_pack = carried.is_some_and(|carried| carried.has(&remote.package));
                tell(public(&remote.package), None, from_pack);
                let turn = turn.unwrap_or_else(|| self.turn(&remote.package));
                Some((remote.package.clone(), remote.subdir.clone(), None, turn))
            }
            ModuleSource::Registry(module) => {
                let located = async {
                    let version = self.registries.choose(module, call.version.as_ref()).await?;
                    let from_pack = carried.is_some_and(|carried| carried.location(module, &version.text).is_some());
                    tell(module.package(), Some(version.text.clone()), from_pack);
                    let location = self.registries.location(module, &version.text).await?;
                    Ok::<_, Problem>((version.text, location))
                };
                let (version, location) = match located.await {
                    Ok(located) => located,
                    Err(problem) => {
                        self.report(call, problem.summary, problem.detail);
                        return None;
                    }
                };
                let subdir = match (location.subdir, &module.subdir) {
                    (Some(outer), Some(inner)) => Some(format!("{outer}/{inner}")),
                    (outer, inner) => outer.or_else(|| inner.clone()),
                };
                let turn = self.turn(&location.package);
                Some((location.package, subdir, Some(version), turn))
            }
        }
    }

    /// Fetches or copies a package to the place of a module.
    async fn place(
        &self,
        call: &MissingModule,
        key: &str,
        package: &str,
        turn: Turn,
        entry: &ManifestEntry,
    ) -> Result<PathBuf, Arc<FetchError>> {
        let modules_dir = Path::new(&self.modules_dir);
        let failed = file_error("writing the directory", modules_dir);
        std::fs::create_dir_all(modules_dir).map_err(failed)?;
        let made = tempfile::Builder::new().prefix(PARTIAL).tempdir_in(modules_dir);
        let partial = made.map_err(failed)?;
        let new = partial.path().join("package");
        let place = modules_dir.join(key);
        let ours = match turn {
            Turn::Ours(sender) => {
                let fetched = match self.permits.acquire().await {
                    Ok(_permit) => {
                        let carried = self.install.carried.as_ref().filter(|carried| carried.has(package));
                        match self.install.mirror.as_ref().or(carried) {
                            Some(mirror) => mirror.copy(package, &new),
                            None => self.fetcher.fetch(package, &new).await,
                        }
                    }
                    Err(_) => Err(FetchError::Canceled),
                };
                if let Err(problem) = fetched.map_err(Arc::new) {
                    drop(sender.send(Some(Err(problem.clone()))));
                    return Err(problem);
                }
                Some(sender)
            }
            Turn::Theirs(mut other) => {
                let result = other.wait_for(Option::is_some).await.map(|r| (*r).clone());
                match result.ok().flatten() {
                    Some(Ok(from)) => {
                        let to = new.clone();
                        let copied = tokio::task::spawn_blocking(move || tree::copy(&from, &to)).await;
                        let copied = copied.unwrap_or_else(|e| Err(std::io::Error::other(e)));
                        copied.map_err(file_error("copying the package of another call to", &new))?;
                    }
                    Some(Err(problem)) => return Err(problem),
                    None => return Err(Arc::new(FetchError::Canceled)),
                }
                None
            }
        };
        let before = self.before.modules.get(key);
        let moved = moved(before, key, [&place, &new], package, entry).await;
        // From here to the end, the manifest knows nothing of this module.
        self.written.forget(key);
        let put = match self.written.save() {
            Err(problem) => Err(FetchError::Manifest(problem.into_parts().detail)),
            Ok(()) => tree::remove(&place)
                .and_then(|()| std::fs::rename(&new, &place))
                .map_err(file_error("replacing the directory", &place)),
        };
        let put = put.map_err(Arc::new);
        if let Some(sender) = ours {
            drop(sender.send(Some(put.clone().map(|()| place.clone()))));
        }
        put?;
        if let Some(what) = moved {
            let warning = Diagnostic::warning("Module source was changed under the same name", what);
            self.found().0.push(warning.at(&call.range));
        }
        Ok(place)
    }
}

fn below(prefix: &addrs::Module, inner: &addrs::Module) -> addrs::Module {
    let mut path = prefix.clone();
    for name in inner.0.iter() {
        path = path.child(name.clone());
    }
    path
}
