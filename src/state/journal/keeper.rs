//! The journals of one state, for its store: the journal that an earlier run has left, and the journal of this run.
//!
//! A store reads its snapshot, asks [`Keeper::find`] for the journal of an earlier run, and calls [`Keeper::replay`] to apply its
//! outcomes to the state. It announces every snapshot before it writes it ([`Keeper::announce`]).

use std::path::PathBuf;

use super::location::JournalLocation;
use super::recovery::{self, Found};
use super::replay::Verdict;
use super::{Base, JournalReport, Writer};
use crate::{Codec, State, StateError};

/// A store whose state can have a journal. [`Keeper::replay`] uses this interface.
pub trait JournaledStore {
    fn keeper(&mut self) -> &mut Keeper;

    /// State that was read or written last; `None` if there is none.
    fn known(&self) -> Option<&State>;

    /// Description of the state in messages: `the state PATH`.
    fn shown(&self) -> String;

    /// Writes a state as the next snapshot. `version` is the version to record in it.
    ///
    /// # Errors
    /// The state cannot be written.
    fn save(&mut self, state: &State, version: &str) -> Result<(), StateError>;

    /// Sets the known state without writing it to the store. The next write then writes a new snapshot even if its state is equal to this
    /// one.
    fn hold(&mut self, state: State);
}

/// Journals of one state.
#[derive(Debug, Default)]
pub struct Keeper {
    /// Journal of the run that has the store open.
    writer: Option<Writer>,
    /// Journal of an earlier run, until it has been reported and [`Keeper::forget`] was called.
    left: Option<Left>,
    /// Snapshot from another source that is about to replace the stored one.
    expected: Option<Base>,
    codec: Codec,
}

/// A journal of an earlier run.
#[derive(Debug)]
struct Left {
    report: JournalReport,
    path: PathBuf,
    /// Set while the journal waits for the expected snapshot. That snapshot contains all outcomes of the journal, but until it is written,
    /// only the journal has them.
    awaits: bool,
    /// Set if the journal has outcomes that are in no state, or damaged parts, so that it must not be removed.
    precious: bool,
}

/// Outcome of [`Keeper::judge`]: the meaning of a journal for the state that was read.
#[derive(Debug)]
struct Recovered {
    /// State with the outcomes of the journal, and the version to record in it; `None` if the outcomes change nothing.
    state: Option<(State, String)>,
    report: JournalReport,
    path: PathBuf,
    alive: bool,
    awaits: bool,
    precious: bool,
    locked: bool,
}

impl Keeper {
    /// Creates a keeper that has no journal yet. The codec encodes and decodes the records of its journals.
    #[must_use]
    pub fn new(codec: Codec) -> Keeper {
        Keeper {
            codec,
            ..Keeper::default()
        }
    }

    /// Finds the journal that an earlier run has left for this state; `None` if there is none, or if this run has begun its own journal.
    ///
    /// # Errors
    /// The journal cannot be read.
    pub fn find(&self, place: &JournalLocation, known: Option<&State>) -> Result<Option<Found>, StateError> {
        match self.writer {
            // This run has begun its own journal at that path.
            Some(_) => Ok(None),
            None => place.find(known, &self.codec),
        }
    }

    /// Applies the outcomes of an earlier run's journal. With the lock they are saved in the store, otherwise only the known state is
    /// changed.
    ///
    /// # Errors
    /// The state has a value that cannot be stored, or cannot be written; the journal cannot be renamed.
    pub fn replay(store: &mut impl JournaledStore, found: Found, locked: bool) -> Result<(), StateError> {
        let shown = store.shown();
        let known = store.known().cloned();
        let Some(mut recovered) = store.keeper().judge(found, known.as_ref(), &shown, locked)? else {
            return Ok(());
        };
        match recovered.state.take() {
            Some((state, version)) if locked => {
                store.save(&state, &version)?;
            }
            // Without the lock, another program could be writing the state, so it is not saved.
            Some((state, _)) => store.hold(state),
            None => {}
        }
        store.keeper().settle(recovered)
    }

    /// Decides what a journal means for a state. Returns `None` if this program holds the lock and another running program is writing the
    /// journal, which must then not be touched.
    ///
    /// # Errors
    /// The state has a value that cannot be stored.
    fn judge(
        &self,
        found: Found,
        known: Option<&State>,
        shown: &str,
        locked: bool,
    ) -> Result<Option<Recovered>, StateError> {
        if found.alive && locked {
            tracing::warn!(
                "the journal {} belongs to a program that is running without the lock",
                found.path.display()
            );
            return Ok(None);
        }
        let mut verdict = found.contents.judge(known)?;
        let mut awaits = false;
        if let (Some(expected), Verdict::Continues { replayed, .. }) = (&self.expected, &mut verdict)
            && found.contents.knows(expected)
        {
            // All outcomes are in the snapshot that is about to replace the state, so they are not applied.
            replayed.clear();
            awaits = true;
        }
        let report = JournalReport::new(shown, &found.contents, &verdict, known, locked);
        let (state, foreign) = match verdict {
            Verdict::Continues { state, replayed } if !replayed.is_empty() => {
                let version = found.contents.opened.as_ref().map(|o| o.terraform_version.clone());
                (Some((state, version.unwrap_or_default())), false)
            }
            Verdict::Foreign { .. } => (None, true),
            _ => (None, false),
        };
        Ok(Some(Recovered {
            state,
            precious: foreign || !report.damage.is_empty(),
            locked,
            report,
            path: found.path,
            alive: found.alive,
            awaits,
        }))
    }

    /// Completes a recovery after the store has saved the state. A journal that must not be removed gets another name; any other journal is
    /// kept until it is reported.
    ///
    /// # Errors
    /// The journal cannot be renamed.
    fn settle(&mut self, mut recovered: Recovered) -> Result<(), StateError> {
        if recovered.precious && recovered.locked {
            recovered.report.kept = Some(recovery::set_aside(&recovered.path)?);
        }
        tracing::info!("{}", recovered.report);
        // The journal of a running program is not this run's to report or remove.
        self.left = (!recovered.alive).then_some(Left {
            report: recovered.report,
            path: recovered.path,
            awaits: recovered.awaits,
            precious: recovered.precious,
        });
        Ok(())
    }

    /// Returns the report on the journal of an earlier run, until [`Keeper::forget`] is called; `None` if no journal was found.
    #[must_use]
    pub fn report(&self) -> Option<&JournalReport> {
        self.left.as_ref().map(|left| &left.report)
    }

    /// Removes the journal of an earlier run, once its contents are in the state and have been reported. Without the lock, nothing is
    /// removed.
    ///
    /// # Errors
    /// The journal cannot be removed.
    pub fn forget(&mut self, locked: bool) -> Result<(), StateError> {
        match self.left.take_if(|left| locked && !left.awaits) {
            // A journal that must not be removed has another name by now, or was read without the lock.
            Some(left) if !left.precious => recovery::forget(&left.path),
            _ => Ok(()),
        }
    }

    /// Announces that a snapshot from another source will replace the stored one. If the snapshot contains the outcomes of a journal, they
    /// are not applied, and the journal stays until the snapshot is written.
    pub fn expect(&mut self, snapshot: Base) {
        self.expected = Some(snapshot);
    }

    /// Begins the journal of a run that continues this state.
    ///
    /// # Errors
    /// The journal cannot be created, or another running program has one.
    pub fn begin(
        &mut self,
        place: &JournalLocation,
        base: Base,
        operation: &str,
        terraform_version: &str,
    ) -> Result<Writer, StateError> {
        place.prepare(&self.codec)?;
        let journal = Writer::create(&place.path(), base, operation, terraform_version, &self.codec)?;
        self.writer = Some(journal.clone());
        Ok(journal)
    }

    /// Records in the journal that this snapshot is about to be written, to the store, or to a file that the user may put in its place.
    pub fn announce(&self, base: Base) {
        if let Some(journal) = &self.writer
            && let Err(e) = journal.announce(base)
        {
            // The state is written even if the journal fails, because that saves the results. Compaction then begins a new journal.
            tracing::warn!("the write of the state is not announced: {e}");
        }
    }

    /// Returns true if snapshots must be announced before they are written.
    #[must_use]
    pub fn is_writing(&self) -> bool {
        self.writer.is_some()
    }

    /// Removes the journal of an earlier run that waited for the expected snapshot, which is now written.
    pub fn replaced(&mut self) {
        let Some(left) = self.left.take_if(|left| left.awaits) else {
            return;
        };
        if let Err(e) = recovery::forget(&left.path) {
            tracing::warn!("{e}");
        }
    }

    /// Makes the journal smaller if it has become large or if writing to it has failed. The state must have all outcomes up to the number
    /// `included`.
    pub fn compact(&self, included: u64, known: Option<&State>) {
        if let Some(journal) = self.writer.as_ref().filter(|journal| journal.wants_compaction()) {
            match Base::from_state(known) {
                Ok(base) => journal.compact(included, base),
                Err(e) => tracing::warn!("the journal cannot be made smaller: {e}"),
            }
        }
    }

    /// Ends the journal of this run, whose results are all in the state. The journal stays if the provider did not answer creations, so
    /// that the next run reports them.
    ///
    /// # Errors
    /// The journal cannot be removed.
    pub fn end(&mut self, known: Option<&State>) -> Result<(), StateError> {
        let Some(writer) = self.writer.take() else {
            return Ok(());
        };
        writer.end_run(|| Base::from_state(known))
    }
}
