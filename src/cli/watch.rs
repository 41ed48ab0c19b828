//! `-watch`: waiting until files change, for the commands that begin again then.
//!
//! Files are looked at a few times a second. A service of the system that tells of changes would cost less, but it knows nothing of
//! changes on network file systems, of directories that are shared with a container, and its limits are often used up.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use config::Config;
use config::files::clean;
use engine::stop::Stop;

use crate::interrupt;
use crate::outcome::Failure;
use crate::session::Surroundings;

/// How often files are looked at.
const INTERVAL: Duration = Duration::from_millis(300);
/// No more files are watched.
const MOST: usize = 20_000;

/// When files were changed the last time, and how long they are.
type Snapshot = BTreeMap<PathBuf, (Option<SystemTime>, u64)>;

/// The kinds of files that make up configurations and their tests, which no run should write.
const CONFIGURATION: &[&str] = &[
    ".tf",
    ".tf.json",
    ".tfvars",
    ".tfvars.json",
    ".tftest.hcl",
    ".tftest.json",
    ".tfmock.hcl",
    ".tfmock.json",
];

fn is_configuration(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    CONFIGURATION.iter().any(|end| name.ends_with(end))
}

fn is_state(path: &Path) -> bool {
    let name = path.to_string_lossy();
    name.ends_with(".tfstate") || name.ends_with(".backup")
}

/// Looks at the files below the working directory and in these directories beside it.
fn look(beside: &BTreeSet<PathBuf>) -> Snapshot {
    let mut out = Snapshot::new();
    let mut open: Vec<(PathBuf, bool)> = beside.iter().map(|dir| (dir.clone(), false)).collect();
    open.push((PathBuf::from("."), true));
    while let Some((dir, deep)) = open.pop() {
        for entry in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
            if out.len() >= MOST {
                return out;
            }
            if entry.file_name().to_string_lossy().starts_with('.') {
                continue;
            }
            let Ok(about) = entry.metadata() else { continue };
            if about.is_dir() && deep {
                open.push((entry.path(), true));
            } else if about.is_file() && !is_state(&entry.path()) {
                out.insert(entry.path(), (about.modified().ok(), about.len()));
            }
        }
    }
    out
}

/// The files that are not as they were.
fn changes(before: &Snapshot, now: &Snapshot) -> BTreeSet<PathBuf> {
    let changed = now.iter().filter(|(path, about)| before.get(*path) != Some(about));
    let gone = before.keys().filter(|path| !now.contains_key(*path));
    changed.map(|(path, _)| path).chain(gone).cloned().collect()
}

/// The directories of modules that are beside the working directory, not below it.
pub fn beside<'c>(configs: impl IntoIterator<Item = &'c Config>) -> BTreeSet<PathBuf> {
    let nodes = configs.into_iter().flat_map(|config| config.nodes());
    let dirs = nodes.map(|node| node.module.source_dir.to_string());
    dirs.filter(|dir| dir.starts_with("..")).map(PathBuf::from).collect()
}

/// Waits until files change that are watched; `None` after an interrupt.
async fn changed(beside: &BTreeSet<PathBuf>, before: &Snapshot, stop: &Stop) -> Option<BTreeSet<PathBuf>> {
    // What runs themselves have written is no reason to run them again.
    let after = look(beside);
    let known: Snapshot = after
        .into_iter()
        .filter(|(path, _)| !is_configuration(path))
        .chain(before.clone().into_iter().filter(|(path, _)| is_configuration(path)))
        .collect();
    let mut found = BTreeSet::new();
    loop {
        let all = changes(&known, &look(beside));
        // Editors write several files, and in steps: until nothing more happens.
        if !all.is_empty() && all == found {
            return Some(all);
        }
        found = all;
        tokio::select! {
            () = tokio::time::sleep(INTERVAL) => {}
            () = stop.requested() => return None,
        }
    }
}

/// The files that are watched: those below the working directory, and those of directories beside it.
pub struct Watch {
    beside: BTreeSet<PathBuf>,
    before: Snapshot,
}

impl Watch {
    /// Watches the working directory alone.
    pub fn new() -> Watch {
        let beside = BTreeSet::new();
        let before = look(&beside);
        Watch { beside, before }
    }

    /// Remembers the files as they are before they are used.
    pub fn begin(&mut self) {
        self.before = look(&self.beside);
    }

    /// Watches these directories beside the working directory from now on. One that is seen for the first time is as it is now.
    pub fn also(&mut self, beside: BTreeSet<PathBuf>) {
        if beside != self.beside {
            let outside = look(&beside).into_iter().filter(|(path, _)| path.starts_with(".."));
            self.before.extend(outside);
            self.beside = beside;
        }
    }

    /// Waits until files change, and prints which; `None` after an interrupt.
    ///
    /// # Errors
    /// No runtime can be started.
    pub fn wait(&self, surroundings: &Surroundings) -> Result<Option<BTreeSet<PathBuf>>, Failure> {
        let stop = Stop::new();
        let runtime = surroundings.runtime()?;
        let changed = runtime.block_on(async {
            interrupt::listen(surroundings.ui.clone(), stop.clone());
            // The handlers are there by now: an interrupt that follows this line is not missed.
            surroundings.ui.line("\nWaiting for changes. An interrupt ends it.");
            surroundings.ui.flush();
            changed(&self.beside, &self.before, &stop).await
        });
        if let Some(changed) = &changed {
            let names: Vec<String> = changed.iter().map(|path| clean(&path.to_string_lossy())).collect();
            surroundings.ui.line(format!("\nChanged: {}\n", names.join(", ")));
        }
        Ok(changed)
    }
}
