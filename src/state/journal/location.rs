//! Locations of journals: beside the state file or, for a state in a store, in a directory for the states of all stores.
//!
//! In the directory, the name of a journal is made from the settings of the store and from the workspace. Settings can change
//! while the state stays the same (another password, another name of the same server), and can stay the same while the state is
//! another one (where the environment names the server). So if the journal of that name does not know the state that was read,
//! the others are searched, including those that were set aside: each journal records which state it continues.

use std::fs::{self, DirBuilder};
use std::io;
use std::path::{Path, PathBuf};

use system::files::DirBuilderExt as _;

use super::recovery::{self, Found};
use super::{Base, checksum};
use crate::{Codec, State, StateError};

/// Length of the part of a workspace's name that is in the name of its journal.
const SHOWN: usize = 40;

/// Location of the journals of one state.
#[derive(Clone, Debug)]
pub enum JournalLocation {
    Beside(PathBuf),
    /// In a directory with the journals of other states.
    Among {
        directory: PathBuf,
        name: String,
    },
}

impl JournalLocation {
    /// Returns the location for a workspace's state in a store. `identity` distinguishes the store from others; only its checksum
    /// is in the name.
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

    /// Finds the journal for this state.
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
        // If settings have changed since the run (see the head of this file), the name of the journal is that of the
        // old ones.
        for other in others.iter().filter(|other| *other != name) {
            let found = match recovery::find(&directory.join(other), codec) {
                // This journal belongs to another state, with other keys.
                Err(StateError::Sealed { .. }) => continue,
                found => found?,
            };
            // A damaged journal may or may not belong to this state, so only the one with the expected name is
            // reported.
            let usable =
                |found: &Found| !found.alive && found.contents.damage.is_empty() && found.contents.knows(&base);
            if let Some(found) = found.filter(usable) {
                return Ok(Some(found));
            }
        }
        Ok(own)
    }

    /// Prepares a new journal: creates its directory, and renames a leftover journal of that name. Such a leftover was
    /// reported without the lock, or belongs to another state.
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
            // If a crash of the machine lost the directory, the journal in it would be useless.
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
