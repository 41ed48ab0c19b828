//! Locations of journals: beside the state file or, for a state in a store, in one directory for all stores.
//!
//! In the directory, the name of a journal is made from the settings of the store and from the workspace. But settings can change for the
//! same state (another password, another name of the same server), and the same settings can mean another state (if the environment names
//! the server). So if the journal with that name does not know the state that was read, all other journals in the directory are searched,
//! because each journal records which state it continues.

use std::fs::{self, DirBuilder};
use std::io;
use std::path::{Path, PathBuf};

use system::files::DirBuilderExt as _;

use super::recovery::{self, Found};
use super::{Base, checksum};
use crate::{Codec, State, StateError};

/// Maximum number of characters of the workspace name in the name of its journal.
const SHOWN: usize = 40;

/// Location of the journals of one state.
#[derive(Clone, Debug)]
pub enum JournalLocation {
    Beside(PathBuf),
    /// In a directory with journals of other states.
    Among {
        directory: PathBuf,
        name: String,
    },
}

impl JournalLocation {
    /// Returns the location for a workspace's state in a store. `identity` distinguishes the store from others. It may contain secrets, so
    /// the name has only its checksum.
    #[must_use]
    pub fn among(directory: PathBuf, workspace: &str, identity: &str) -> JournalLocation {
        let plain = |c: char| {
            if c.is_ascii_alphanumeric() || "-_".contains(c) {
                c
            } else {
                '_'
            }
        };
        let shown: String = workspace.chars().take(SHOWN).map(plain).collect();
        let sum = checksum(format!("{workspace}\0{identity}").as_bytes());
        let name = format!("{shown}-{}.journal", sum.get(..16).unwrap_or(&sum));
        JournalLocation::Among { directory, name }
    }

    #[must_use]
    pub fn path(&self) -> PathBuf {
        match self {
            JournalLocation::Beside(state) => super::path_of(state),
            JournalLocation::Among { directory, name } => directory.join(name),
        }
    }

    /// Finds the journal for this state; `None` if there is none.
    pub(super) fn find(&self, known: Option<&State>, codec: &Codec) -> Result<Option<Found>, StateError> {
        let own = recovery::find(&self.path(), codec)?;
        let JournalLocation::Among { directory, name } = self else {
            return Ok(own);
        };
        let Some(state) = known.filter(|state| !state.lineage.is_empty()) else {
            return Ok(own);
        };
        let others = names(directory)?;
        if own.as_ref().is_some_and(|own| own.alive) || others.iter().all(|other| other == name) {
            return Ok(own);
        }
        let base = Base::from_state(Some(state))?;
        if own.as_ref().is_some_and(|own| own.contents.knows(&base)) {
            return Ok(own);
        }
        // If the settings were changed since the run, its journal still has the name for the old settings (see the head of this file).
        for other in others.iter().filter(|other| *other != name) {
            let found = match recovery::find(&directory.join(other), codec) {
                // A journal with other keys belongs to another state.
                Err(StateError::Sealed { .. }) => continue,
                found => found?,
            };
            // A damaged journal may not show which state it continues, so it is reported only if it has the expected name.
            let usable =
                |found: &Found| !found.alive && found.contents.damage.is_empty() && found.contents.knows(&base);
            if let Some(found) = found.filter(usable) {
                return Ok(Some(found));
            }
        }
        Ok(own)
    }

    /// Prepares a new journal: creates its directory, and renames a leftover journal with the same name. The leftover belongs to another
    /// state, or it was reported without the lock and so not removed.
    pub(super) fn prepare(&self, codec: &Codec) -> Result<(), StateError> {
        if let JournalLocation::Among { directory, .. } = self {
            private_directory(directory)?;
        }
        let path = self.path();
        if recovery::find(&path, codec)?.is_some_and(|found| !found.alive) {
            let aside = recovery::set_aside(&path)?;
            tracing::warn!("an earlier journal is kept in {}", aside.display());
        }
        Ok(())
    }
}

/// Creates a directory that only its owner may read. The directories above it get the usual mode.
pub(super) fn private_directory(directory: &Path) -> Result<(), StateError> {
    let cannot = |e| StateError::io("cannot create the directory", directory, e);
    if directory.is_dir() {
        return Ok(());
    }
    if let Some(above) = directory.parent() {
        fs::create_dir_all(above).map_err(cannot)?;
    }
    match DirBuilder::new().mode(0o700).create(directory) {
        // Another process may have created the directory at the same time.
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => Err(cannot(e)),
        _ => {
            // Without this sync, a crash of the machine could lose the directory, and with it a journal that is already durable.
            files::sync_directory_of(directory);
            Ok(())
        }
    }
}

/// Lists the names of the journals in a directory, sorted.
pub(super) fn names(directory: &Path) -> Result<Vec<String>, StateError> {
    let cannot = |e| StateError::io("cannot read the directory", directory, e);
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(e) => return Err(cannot(e)),
    };
    let mut names = Vec::new();
    for entry in entries {
        let name = entry.map_err(cannot)?.file_name();
        if let Some(name) = name.to_str().filter(|name| name.ends_with(".journal")) {
            names.push(name.to_owned());
        }
    }
    names.sort();
    Ok(names)
}
