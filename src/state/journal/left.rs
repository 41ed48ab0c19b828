//! Journals without a state file: those of killed programs that had their state in memory only.

use std::fmt;
use std::path::{Path, PathBuf};

use super::format::InFlight;
use super::recovery::{JournalReport, Outcomes};
use super::replay::Verdict;
use super::{location, recovery};
use crate::{Codec, State, StateError};

/// A journal that a killed program has left in a directory.
#[derive(Debug)]
pub struct Left {
    pub path: PathBuf,
    /// Objects that are recorded in the journal.
    pub state: State,
    /// Operation that wrote the journal, and its start time.
    pub run: Option<(String, String)>,
    /// Operations that had not ended.
    pub in_flight: Vec<InFlight>,
    /// Set if a part of the journal cannot be read.
    pub damaged: bool,
}

impl Left {
    /// Describes the operations that had not ended; empty if there are none.
    #[must_use]
    pub fn in_flight_text(&self) -> String {
        struct Text(JournalReport);
        impl fmt::Display for Text {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.write_in_flight(f)
            }
        }
        let report = JournalReport {
            state: String::new(),
            run: None,
            outcomes: Outcomes::Known,
            run_ended: false,
            tainted: recovery::tainted(&self.in_flight, &self.state),
            in_flight: self.in_flight.clone(),
            damage: Vec::new(),
            kept: None,
        };
        Text(report).to_string()
    }

    /// Removes the journal, after its contents were saved elsewhere, and returns `None`. A damaged journal is renamed instead, and its new
    /// path is returned.
    ///
    /// # Errors
    /// The file cannot be removed or renamed.
    pub fn forget(&self) -> Result<Option<PathBuf>, StateError> {
        match self.damaged {
            true => recovery::set_aside(&self.path).map(Some),
            false => recovery::forget(&self.path).map(|()| None),
        }
    }
}

/// Lists the journals in a directory whose runs had no state file, except those that a running program writes. Journals that cannot be
/// decrypted are left out with a warning.
pub fn left_in(directory: &Path, codec: &Codec) -> Result<Vec<Left>, StateError> {
    let mut out = Vec::new();
    for name in location::names(directory)? {
        let found = match recovery::find(&directory.join(&name), codec) {
            // A run with the right keys may read this journal later, so it is skipped.
            Err(e @ StateError::Sealed { .. }) => {
                tracing::warn!("{e}");
                continue;
            }
            found => found?,
        };
        let Some(found) = found.filter(|found| !found.alive) else {
            continue;
        };
        let Verdict::Continues { state, .. } = found.contents.judge(None)? else {
            continue;
        };
        out.push(Left {
            path: found.path,
            state,
            run: (found.contents.opened.as_ref()).map(|opened| (opened.operation.clone(), opened.since.clone())),
            in_flight: found.contents.in_flight().cloned().collect(),
            damaged: !found.contents.damage.is_empty(),
        });
    }
    Ok(out)
}

/// Creates the directory of journals, which only its owner may read.
///
/// # Errors
/// The directory cannot be created.
pub fn prepare(directory: &Path) -> Result<(), StateError> {
    location::private_directory(directory)
}
