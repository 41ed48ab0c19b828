//! The journal of one state, as the store of that state uses it: the one that an earlier run has left, and the one of this run.
//!
//! A store reads its snapshot, asks [`Keeper::find`] for the journal of an earlier run, and has [`Keeper::replay`] take its outcomes
//! into the state. It announces every snapshot before it writes it ([`Keeper::announce`]).

use std::path::PathBuf;

use super::location::JournalLocation;
use super::recovery::{self, Found};
use super::replay::Verdict;
use super::{Base, JournalReport, Writer};
use crate::{State, StateError};

/// A store whose state can have a journal, as [`Keeper::replay`] uses it.
pub trait JournaledStore {
    fn keeper(&mut self) -> &mut Keeper;

    /// The state that was read or written last; `None` if there is none.
    fn known(&self) -> Option<&State>;

    /// The state in the words of a message: `the state PATH`.
    fn shown(&self) -> String;

    /// Writes a state as the next snapshot; `version` is that of the program that made it.
    ///
    /// # Errors
    /// The state cannot be written.
    fn save(&mut self, state: &State, version: &str) -> Result<(), StateError>;

    /// Takes a state as the known one that the store does not have. The next write compares with what is stored, not with this.
    fn hold(&mut self, state: State);
}

/// The journals of one state.
#[derive(Debug, Default)]
pub struct Keeper {
    /// That of the run that has the store open.
    writer: Option<Writer>,
    /// That of an earlier run, until it is told.
    left: Option<Left>,
    /// A snapshot that is about to take the place of what the store has.
    expected: Option<Base>,
}

/// What an earlier run has left.
#[derive(Debug)]
struct Left {
    report: JournalReport,
    path: PathBuf,
    /// It is needed until the expected snapshot is written, which has all of it.
    awaits: bool,
    /// Whether it has something that no state has.
    precious: bool,
}

/// What a journal means for the state that was read.
#[derive(Debug)]
struct Recovered {
    /// The state with the outcomes of the journal, if that is another one, and the version to name in it.
    state: Option<(State, String)>,
    report: JournalReport,
    path: PathBuf,
    alive: bool,
    awaits: bool,
    precious: bool,
    locked: bool,
}

impl Keeper {
    /// The journal that an earlier run has left for the state that was read, if there is one.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn find(&self, place: &JournalLocation, known: Option<&State>) -> Result<Option<Found>, StateError> {
        match self.writer {
            // What is there now is the journal of this run.
            Some(_) => Ok(None),
            None => place.find(known),
        }
    }

    /// Takes the outcomes of an earlier run's journal into the state: with the lock into the stored one, else only into the one that
    /// is known.
    ///
    /// # Errors
    /// The state has a value that cannot be stored, or cannot be written; the journal cannot be set aside.
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
            Some((state, _)) => store.hold(state),
            None => {}
        }
        store.keeper().settle(recovered)
    }

    /// Decides what a journal means. `None`: it is in use by a program that runs without the lock, and stays as it is.
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
            // What is about to be written has all of it already.
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

    /// The store has what a journal means: what does not belong to its state is set aside now, the rest waits to be told.
    ///
    /// # Errors
    /// The journal cannot be set aside.
    fn settle(&mut self, mut recovered: Recovered) -> Result<(), StateError> {
        if recovered.precious && recovered.locked {
            recovered.report.kept = Some(recovery::set_aside(&recovered.path)?);
        }
        tracing::info!("{}", recovered.report);
        // A running program is about to tell its results itself.
        self.left = (!recovered.alive).then_some(Left {
            report: recovered.report,
            path: recovered.path,
            awaits: recovered.awaits,
            precious: recovered.precious,
        });
        Ok(())
    }

    /// What the journal of an earlier run meant, if there was one and it was not told yet.
    #[must_use]
    pub fn report(&self) -> Option<&JournalReport> {
        self.left.as_ref().map(|left| &left.report)
    }

    /// Removes the journal of an earlier run, once its contents are in the state and have been told. Without the lock it stays.
    ///
    /// # Errors
    /// It cannot be removed.
    pub fn forget(&mut self, locked: bool) -> Result<(), StateError> {
        match self.left.take_if(|left| locked && !left.awaits) {
            Some(left) if !left.precious => recovery::forget(&left.path),
            _ => Ok(()),
        }
    }

    /// A snapshot that comes from elsewhere is about to take the place of what the store has. If a journal knows it, its outcomes
    /// are in that snapshot, and the journal stays until it is written.
    pub fn expect(&mut self, snapshot: Base) {
        self.expected = Some(snapshot);
    }

    /// Begins the journal of a run that continues this state.
    ///
    /// # Errors
    /// It cannot be created, or another program that runs has one.
    pub fn begin(
        &mut self,
        place: &JournalLocation,
        base: Base,
        operation: &str,
        terraform_version: &str,
    ) -> Result<Writer, StateError> {
        place.prepare()?;
        let journal = Writer::create(&place.path(), base, operation, terraform_version)?;
        self.writer = Some(journal.clone());
        Ok(journal)
    }

    /// The store is about to have this snapshot, or a file beside it that may become the state.
    pub fn announce(&self, base: Base) {
        if let Some(journal) = &self.writer
            && let Err(e) = journal.announce(base)
        {
            // The state is to have what the journal cannot take; compaction begins a new one.
            tracing::warn!("the write of the state is not announced: {e}");
        }
    }

    /// Whether snapshots must be announced.
    #[must_use]
    pub fn is_writing(&self) -> bool {
        self.writer.is_some()
    }

    /// The store has a snapshot that came from elsewhere, with everything that the journal of an earlier run has.
    pub fn replaced(&mut self) {
        let Some(left) = self.left.take_if(|left| left.awaits) else {
            return;
        };
        if let Err(e) = recovery::forget(&left.path) {
            tracing::warn!("{e}");
        }
    }

    /// The state has all outcomes up to a number: a journal that has become large is made smaller.
    pub fn compact(&self, included: u64, known: Option<&State>) {
        if let Some(journal) = self.writer.as_ref().filter(|journal| journal.wants_compaction()) {
            match Base::from_state(known) {
                Ok(base) => journal.compact(included, base),
                Err(e) => tracing::warn!("the journal cannot be made smaller: {e}"),
            }
        }
    }

    /// Ends the journal of this run: the state has all of it. What was created without an answer stays in it, for the next run to tell.
    ///
    /// # Errors
    /// It cannot be removed.
    pub fn end(&mut self, known: Option<&State>) -> Result<(), StateError> {
        let Some(writer) = self.writer.take() else {
            return Ok(());
        };
        writer.end_run(Base::from_state(known)?)
    }
}
