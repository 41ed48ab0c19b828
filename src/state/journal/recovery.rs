//! Recovery from the journal of an earlier run: finding it, renaming or removing it, and the report.

#![expect(clippy::disallowed_methods, reason = "what is set aside has the time in its name")]

use std::collections::BTreeSet;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use addrs::AbsResourceInstance;

use super::IntentAction;
use super::format::{Damage, InFlight};
use super::replay::{Contents, Foreign, Verdict};
use crate::{Codec, ObjectStatus, State, StateError};

/// Maximum number of addresses in a message.
const NAMED: usize = 20;

#[derive(Debug)]
pub struct Found {
    pub path: PathBuf,
    pub contents: Contents,
    /// Set if the program that writes the journal is still running.
    pub alive: bool,
}

/// Reads the journal at a path; `None` if there is no regular file.
pub(crate) fn find(path: &Path, codec: &Codec) -> Result<Option<Found>, StateError> {
    let cannot = |e| StateError::io("cannot read the journal", path, e);
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_file() => {}
        // A directory or link with that name is not from this program.
        Ok(_) => return Ok(None),
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(e) => return Err(cannot(e)),
    }
    // Locking needs a file that is open for writing. A user without that permission cannot find out whether the writer is still running,
    // and will change nothing anyway.
    let opened = File::options().read(true).write(true).open(path);
    let (mut file, writable) = match opened {
        Ok(file) => (file, true),
        Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(_) => (File::open(path).map_err(cannot)?, false),
    };
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(cannot)?;
    // The writer holds a lock on the file as long as it lives.
    let alive = writable && !system::locks::is_free(&file).map_err(cannot)?;
    let contents = Contents::read_as(&bytes, codec).map_err(|source| StateError::Sealed {
        path: path.to_owned(),
        source: Box::new(source),
    })?;
    Ok(Some(Found {
        path: path.to_owned(),
        contents,
        alive,
    }))
}

/// Removes a journal whose contents are in the state and have been reported.
pub(crate) fn forget(path: &Path) -> Result<(), StateError> {
    match fs::remove_file(path) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(StateError::io("cannot remove the journal", path, e)),
        _ => Ok(()),
    }
}

/// Renames a journal to `NAME.SECONDS.journal`, without a leading dot, so that a new one can have its name.
pub(crate) fn set_aside(path: &Path) -> Result<PathBuf, StateError> {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let stem = stem.strip_prefix('.').unwrap_or(&stem);
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs();
    let named = |seconds: u64| path.with_file_name(format!("{stem}.{seconds}.journal"));
    let free = (now..now.saturating_add(10_000)).map(named).find(|path| !path.exists());
    let aside = free.unwrap_or_else(|| named(now));
    system::rename(path, &aside).map_err(|e| StateError::io("cannot move the journal", path, e))?;
    // The new name must be durable before another journal gets the old name.
    files::sync_directory_of(&aside);
    Ok(aside)
}

/// Report on a journal, as a message for the user.
#[derive(Clone, Debug)]
pub struct JournalReport {
    /// Description of the state, such as `the state terraform.tfstate`.
    pub state: String,
    /// Operation that wrote the journal, and its start time.
    pub run: Option<(String, String)>,
    pub outcomes: Outcomes,
    /// Set if the run had ended and saved everything, and only the results of some operations are unknown.
    pub run_ended: bool,
    /// Operations that had not ended.
    pub in_flight: Vec<InFlight>,
    /// Addresses of operations in flight whose objects are tainted in the state.
    pub tainted: BTreeSet<String>,
    pub damage: Vec<Damage>,
    /// New path of the journal, if it was renamed and kept.
    pub kept: Option<PathBuf>,
}

/// Effect of a journal's outcomes on the state that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcomes {
    /// None: the state had all outcomes.
    Known,
    /// The outcomes of these instances were applied to the state.
    Replayed {
        instances: Vec<AbsResourceInstance>,
        /// Set if the changed state was saved in the store, which requires the lock.
        saved: bool,
    },
    /// The journal does not know the state, and the state lacks the outcomes of these instances.
    NotUsed {
        why: Foreign,
        instances: Vec<AbsResourceInstance>,
    },
}

impl JournalReport {
    /// Creates the report on a journal and its meaning for the state that was read.
    pub(crate) fn new(
        state: &str,
        contents: &Contents,
        verdict: &Verdict,
        known: Option<&State>,
        saved: bool,
    ) -> JournalReport {
        let now = match verdict {
            Verdict::Continues { state, .. } => Some(state),
            Verdict::Contained | Verdict::Foreign { .. } => known,
        };
        JournalReport {
            run_ended: contents.opened.as_ref().is_some_and(|o| o.ended),
            tainted: now.map_or_else(BTreeSet::new, |now| tainted(contents.in_flight(), now)),
            state: state.to_owned(),
            run: contents.opened.as_ref().map(|o| (o.operation.clone(), o.since.clone())),
            outcomes: match verdict {
                Verdict::Continues { replayed, .. } if replayed.is_empty() => Outcomes::Known,
                Verdict::Contained => Outcomes::Known,
                Verdict::Continues { replayed, .. } => Outcomes::Replayed {
                    instances: replayed.clone(),
                    saved,
                },
                Verdict::Foreign { why, outcomes } => Outcomes::NotUsed {
                    why: why.clone(),
                    instances: outcomes.clone(),
                },
            },
            in_flight: contents.in_flight().cloned().collect(),
            damage: contents.damage.clone(),
            kept: None,
        }
    }

    /// Creates the report on operations without a result that the store of a state has recorded.
    #[must_use]
    pub fn of_unfinished(
        shown: String,
        run: Option<(String, String)>,
        in_flight: Vec<InFlight>,
        state: Option<&State>,
    ) -> JournalReport {
        JournalReport {
            state: shown,
            run,
            outcomes: Outcomes::Known,
            run_ended: true,
            tainted: state.map_or_else(BTreeSet::new, |state| tainted(&in_flight, state)),
            in_flight,
            damage: Vec::new(),
            kept: None,
        }
    }

    /// Returns true if the report must be shown: the state lacked outcomes, an operation has not ended, or a part of the journal is
    /// damaged.
    #[must_use]
    pub fn matters(&self) -> bool {
        self.outcomes != Outcomes::Known || !self.in_flight.is_empty() || !self.damage.is_empty()
    }

    /// Returns one line for the summary of a diagnostic.
    #[must_use]
    pub fn summary(&self) -> &'static str {
        match &self.outcomes {
            Outcomes::NotUsed { .. } => "Journal of an earlier run not used",
            _ if self.run_ended => "Operations of an earlier run whose result is unknown",
            _ if self.in_flight.is_empty() => "State recovered",
            _ => "State recovered, with operations whose result is unknown",
        }
    }
}

impl fmt::Display for JournalReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.run {
            Some((operation, since)) if self.run_ended => write!(
                f,
                "An earlier run ({operation}, begun at {since}) has saved its results, but got no answer to some requests."
            )?,
            Some((operation, since)) => write!(
                f,
                "An earlier run ({operation}, begun at {since}) ended before it had saved its results."
            )?,
            None => write!(f, "An earlier run ended before it had saved its results.")?,
        }
        let state = &self.state;
        match &self.outcomes {
            Outcomes::Known if self.run_ended => {}
            Outcomes::Known => write!(f, " All results in its journal are in {state} already.")?,
            Outcomes::Replayed { instances, saved } => {
                let objects = if instances.len() == 1 { "instance" } else { "instances" };
                write!(
                    f,
                    " The results of {} {objects} were taken from its journal",
                    instances.len()
                )?;
                match saved {
                    true => write!(f, " into {state}:")?,
                    false => write!(f, "; {state} is as it was, since it is not locked:")?,
                }
                names(f, instances)?;
            }
            Outcomes::NotUsed { why, instances } => {
                write!(f, " Its journal does not belong to {state} as it is now: ")?;
                match why {
                    Foreign::NoState => write!(f, "there is no state any more.")?,
                    Foreign::OtherLineage => write!(f, "that has another lineage.")?,
                    Foreign::OtherSerial { journal, state } => write!(
                        f,
                        "the run knew that with serial {journal}, and another program has written it since, with serial {state}."
                    )?,
                    Foreign::OtherContents(serial) => {
                        write!(f, "that has the serial {serial} that the run knew, and other contents.")?;
                    }
                    Foreign::Unknown => write!(f, "its first record is damaged.")?,
                }
                write!(f, " The state was not changed.")?;
                if !instances.is_empty() {
                    write!(
                        f,
                        " The journal has results of these instances that the state does not have:"
                    )?;
                    names(f, instances)?;
                    write!(
                        f,
                        "\nUse import for objects that exist and are missing, and plan to see the rest."
                    )?;
                }
            }
        }
        self.write_in_flight(f)?;
        for damage in &self.damage {
            write!(
                f,
                "\nThe journal is damaged {damage}. What was recorded there is not known; plan compares with what exists."
            )?;
        }
        if let Some(kept) = &self.kept {
            write!(
                f,
                "\nThe journal is kept in {}. It has what the state has, secrets included.",
                kept.display()
            )?;
        }
        Ok(())
    }
}

impl JournalReport {
    pub(super) fn write_in_flight(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.in_flight.is_empty() {
            return Ok(());
        }
        write!(f, "\nThese operations had begun, and their result is not known:")?;
        for operation in &self.in_flight {
            let InFlight {
                address,
                action,
                by,
                since,
                ..
            } = operation;
            write!(f, "\n  - {} {address}", action.as_str())?;
            if let Some(key) = &operation.deposed {
                write!(f, " (deposed object {key})")?;
            }
            write!(f, " with {by}, since {since}: ")?;
            match action {
                IntentAction::Create => write!(
                    f,
                    "the object may exist without being in the state. Look for it; if it does, use import, or remove it."
                )?,
                IntentAction::Update => write!(
                    f,
                    "the object may have changed. The next plan reads it again (refresh)."
                )?,
                IntentAction::Delete => write!(f, "the object may be gone. The next plan reads it again (refresh).")?,
                IntentAction::Import => write!(
                    f,
                    "nothing was done to the object. Unless it is in the state, run import again."
                )?,
                IntentAction::Invoke | IntentAction::Provision if self.tainted.contains(address) => write!(
                    f,
                    "it may have run in part. The object is tainted, so the next apply replaces it. To keep the object as it is, run untaint."
                )?,
                IntentAction::Invoke => write!(
                    f,
                    "it may have run in part. If it must run to its end, invoke the action again with -invoke."
                )?,
                IntentAction::Provision => write!(
                    f,
                    "it may have run in part. If the object is of no use like that, mark it with taint to have it replaced."
                )?,
            }
        }
        Ok(())
    }
}

/// Returns the addresses of the operations whose current objects are tainted in the state.
pub(super) fn tainted<'o>(operations: impl IntoIterator<Item = &'o InFlight>, state: &State) -> BTreeSet<String> {
    operations
        .into_iter()
        .filter(|operation| operation.deposed.is_none() && is_tainted(state, &operation.address))
        .map(|operation| operation.address.clone())
        .collect()
}

/// Returns true if the state has a tainted current object at an address.
fn is_tainted(state: &State, address: &str) -> bool {
    addrs::parse::resource_instance(address)
        .ok()
        .and_then(|address| {
            state
                .current(&address)
                .map(|object| object.status == ObjectStatus::Tainted)
        })
        .unwrap_or_default()
}

fn names(f: &mut fmt::Formatter<'_>, instances: &[AbsResourceInstance]) -> fmt::Result {
    for address in instances.iter().take(NAMED) {
        write!(f, "\n  - {address}")?;
    }
    match instances.len().saturating_sub(NAMED) {
        0 => Ok(()),
        more => write!(f, "\n  - and {more} more"),
    }
}
