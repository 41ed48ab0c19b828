//! Journals of states that are nowhere else: what a killed program had in memory only.

use std::fmt;
use std::path::{Path, PathBuf};

use super::format::InFlight;
use super::recovery::{JournalReport, Outcomes};
use super::replay::Verdict;
use super::{location, recovery};
use crate::{State, StateError};

/// A journal that a program which is gone has left in a directory.
#[derive(Debug)]
pub struct Left {
    /// The file.
    pub path: PathBuf,
    /// The objects that the journal has.
    pub state: State,
    /// The operation that wrote it, and when it began.
    pub run: Option<(String, String)>,
    /// The operations that had not ended.
    pub in_flight: Vec<InFlight>,
    /// Whether a part of it cannot be read.
    pub damaged: bool,
}

impl Left {
    /// The operations that had not ended, in words; empty if there are none.
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

    /// Removes the journal, once its contents are elsewhere. A damaged one is set aside; returns where.
    ///
    /// # Errors
    /// That failed.
    pub fn forget(&self) -> Result<Option<PathBuf>, StateError> {
        match self.damaged {
            true => recovery::set_aside(&self.path).map(Some),
            false => recovery::forget(&self.path).map(|()| None),
        }
    }
}

/// The journals in a directory that continue no state and that nobody writes any more.
///
/// # Errors
/// The directory or a journal cannot be read.
pub fn left_in(directory: &Path) -> Result<Vec<Left>, StateError> {
    let mut out = Vec::new();
    for name in location::names(directory)? {
        let found = recovery::find(&directory.join(name))?;
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

/// Makes room for the journals of a directory, which only their owner may read.
///
/// # Errors
/// The directory cannot be created.
pub fn prepare(directory: &Path) -> Result<(), StateError> {
    location::private_directory(directory)
}
