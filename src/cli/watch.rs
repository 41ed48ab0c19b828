//! Waiting for file changes with `-watch`.
//!
//! Files are polled a few times a second. Notifications of the operating system would cost less, but they miss changes on network
//! file systems and in directories shared with containers, and their limits are often exhausted.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use config::Config;
use config::files::clean;
use engine::stop::Stop;

use crate::interrupt;
use crate::outcome::Failure;
use crate::session::Surroundings;

/// Polling interval.
const INTERVAL: Duration = Duration::from_millis(300);
/// Limit of the watched files.
const MOST: usize = 20_000;

/// Modification time and size of each file.
type Snapshot = BTreeMap<PathBuf, (Option<SystemTime>, u64)>;

/// Suffixes of the files that are watched even if a run changes them: configuration and test files.
const CONFIGURATION: &[&str] = &[
    ".tf",
    ".tf.json",
    ".tofu",
    ".tofu.json",
    ".tfvars",
    ".tfvars.json",
    ".tftest.hcl",
    ".tftest.json",
    ".tofutest.hcl",
    ".tofutest.json",
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

/// Takes a snapshot of the files below the working directory and in the directories `beside` it, without states and files whose names
/// begin with a dot. After [`MOST`] files, the others are left out.
fn look(beside: &BTreeSet<PathBuf>) -> Snapshot {
    let mut out = Snapshot::new();
    let mut open: Vec<(PathBuf, bool)> = beside.iter().map(|dir| (dir.clone(), false)).collect();
    open.push((PathBuf::from("."), true));
    while let Some((dir, deep)) = open.pop() {
        for entry in std::fs::read_dir(&dir).into_iter().flatten().flatten() {
            if out.len() >= MOST {
                return out;
            }
            // The data directory and those of version control change during every run.
            if entry.file_name().to_string_lossy().starts_with('.') {
                continue;
            }
            let Ok(about) = entry.metadata() else { continue };
            if about.is_dir() && deep {
                open.push((entry.path(), true));
            // Runs write states themselves, so a changed state does not start another run.
            } else if about.is_file() && !is_state(&entry.path()) {
                out.insert(entry.path(), (about.modified().ok(), about.len()));
            }
        }
    }
    out
}

/// Returns the files that differ between two snapshots.
fn changes(before: &Snapshot, now: &Snapshot) -> BTreeSet<PathBuf> {
    let changed = now.iter().filter(|(path, about)| before.get(*path) != Some(about));
    let gone = before.keys().filter(|path| !now.contains_key(*path));
    changed.map(|(path, _)| path).chain(gone).cloned().collect()
}

/// Returns the module directories that are not below the working directory.
pub fn beside<'c>(configs: impl IntoIterator<Item = &'c Config>) -> BTreeSet<PathBuf> {
    let nodes = configs.into_iter().flat_map(|config| config.nodes());
    let dirs = nodes.map(|node| node.module.source_dir.to_string());
    dirs.filter(|dir| dir.starts_with("..")).map(PathBuf::from).collect()
}

/// Waits until watched files change; returns `None` after an interrupt.
async fn changed(beside: &BTreeSet<PathBuf>, before: &Snapshot, stop: &Stop) -> Option<BTreeSet<PathBuf>> {
    // Files that the run itself has written must not start another one. A configuration may have been edited during the run,
    // so its version from before the run counts.
    let after = look(beside);
    let known: Snapshot = after
        .into_iter()
        .filter(|(path, _)| !is_configuration(path))
        .chain(before.clone().into_iter().filter(|(path, _)| is_configuration(path)))
        .collect();
    let mut found = BTreeSet::new();
    loop {
        let all = changes(&known, &look(beside));
        // Editors write several files, in several steps, so the watch waits until nothing changes any more.
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

/// Last snapshot of the watched files, and the directories outside of the working directory that are watched with it.
pub struct Watch {
    beside: BTreeSet<PathBuf>,
    before: Snapshot,
}

impl Watch {
    /// Watches the working directory only.
    pub fn new() -> Watch {
        let beside = BTreeSet::new();
        let before = look(&beside);
        Watch { beside, before }
    }

    /// Takes the first snapshot, before the files are read.
    pub fn begin(&mut self) {
        self.before = look(&self.beside);
    }

    /// Sets the watched directories outside of the working directory. Changes in a directory that was not watched before count from now on.
    pub fn also(&mut self, beside: BTreeSet<PathBuf>) {
        if beside != self.beside {
            let outside = look(&beside).into_iter().filter(|(path, _)| path.starts_with(".."));
            self.before.extend(outside);
            self.beside = beside;
        }
    }

    /// Waits until files change, and prints their names; returns `None` after an interrupt.
    ///
    /// # Errors
    /// No runtime can be started.
    pub fn wait(&self, surroundings: &Surroundings) -> Result<Option<BTreeSet<PathBuf>>, Failure> {
        let stop = Stop::new();
        let runtime = surroundings.runtime()?;
        let changed = runtime.block_on(async {
            interrupt::listen(surroundings.ui.clone(), stop.clone());
            // The handlers are installed by now, so an interrupt after this line is not missed.
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
