//! Migration of states from one backend to another.

use std::time::Duration;

use state::{Codec, State};
use syntax::{Diagnostic, Diagnostics};

use super::local::same_file;
use super::location::{Source, StateBackend};
use super::record::CLOUD;
use crate::session::{Opening, StateSession, problem, read_source};
use crate::workspace::DEFAULT;
use crate::{Context, NoAnswer, Question, workspace};

/// Migration into the workspaces of a `cloud` block, which has its own questions and naming rules.
pub trait CloudMigration {
    /// Migrates the states of all workspaces. Returns true if they are in the new backend now.
    ///
    /// # Errors
    /// A state cannot be read or written, or the user did not agree. The old states are unchanged.
    fn migrate(&self, migration: &Migration<'_>, from: &StateBackend, to: &StateBackend) -> Result<bool, Diagnostics>;
}

pub struct Migration<'s> {
    pub context: &'s Context<'s>,
    pub cloud: &'s dyn CloudMigration,
    /// True if all states are copied without questions.
    pub force: bool,
    pub input: bool,
    /// Timeout for the locks of both states; `None` for no locks.
    pub lock: Option<Duration>,
}

/// Migrates the states of all workspaces. Returns true if they are in the new backend now.
///
/// # Errors
/// A state cannot be read or written, or the user did not agree. The old states are unchanged.
pub fn migrate(how: &Migration<'_>, from: &StateBackend, to: &StateBackend) -> Result<bool, Diagnostics> {
    if to.ty() == CLOUD {
        return how.cloud.migrate(how, from, to);
    }
    if from.ty() == CLOUD {
        return Err(Diagnostic::error(
            "Migrating state from HCP Terraform or Terraform Enterprise to another backend is not yet implemented",
            format!(
                "Copy the states by hand. Save each with \"{command} state pull\", remove the file terraform.tfstate \
                 from the data directory, run init, and store each with \"{command} state push\".",
                command = how.context.program.command
            ),
        )
        .into());
    }
    let pair = Pair { how, from, to };
    let workspaces = match from.workspaces()? {
        Some(names) if names != [DEFAULT] && !names.is_empty() => names,
        // The old backend has only one state, or only the default workspace.
        _ => return pair.one(DEFAULT, DEFAULT, how.force),
    };
    let (old, new) = (from.ty(), to.ty());
    if to.workspaces()?.is_none() {
        let selected = workspace::selected(how.context)?;
        if !how.force {
            let explanation = format!(
                "The backend \"{new}\" keeps one state only, and \"{old}\" has those of several workspaces. The state of the \
                 selected one, \"{selected}\", can be copied. The others stay in \"{old}\" as they are.\n\nEnter \"yes\" to copy it, \
                 or \"no\" to stop here, for example to select another workspace."
            );
            let question = format!(
                "Destination state \"{new}\" doesn't support workspaces.\nDo you want to copy only your current workspace?"
            );
            if !agreed(how, &question, &explanation)? {
                return Err(aborted());
            }
        }
        // The one state of the new backend belongs to the workspace "default".
        workspace::select(how.context.data_dir, DEFAULT)?;
        return pair.one(&selected, DEFAULT, how.force);
    }
    if !how.force {
        let question = format!("Do you want to migrate all workspaces to \"{new}\"?");
        let explanation = format!(
            "The state of each workspace of \"{old}\" is copied to the workspace of the same name in \"{new}\". A STATE THAT IS THERE \
             ALREADY IS REPLACED.\n\nTo copy only some of them, enter \"no\", and use \"{command} state pull\" and \"{command} state \
             push\".\n\nEnter \"yes\" to copy all, or \"no\" to stop here.",
            command = how.context.program.command
        );
        if !agreed(how, &question, &explanation)? {
            return Err(aborted());
        }
    }
    let mut names = workspaces;
    names.sort();
    // The user has agreed to the migration of all workspaces, so no more questions are asked.
    for workspace in names {
        pair.one(&workspace, &workspace, true).map_err(|mut problems| {
            if let Some(first) = problems.0.iter_mut().find(|d| d.is_error()) {
                first.detail = format!(
                    "{}\n\nThe workspace \"{workspace}\" was being copied from \"{old}\" to \"{new}\". Workspaces before it \
                     in the alphabet have been copied, the others have not, and the source is as it was. Run init again when \
                     the problem is solved.",
                    first.detail
                );
            }
            problems
        })?;
    }
    Ok(true)
}

pub fn aborted() -> Diagnostics {
    Diagnostic::error(
        "Migration aborted by user.",
        "The states and the record of the backend are as they were.",
    )
    .into()
}

/// A migration between two backends.
pub struct Pair<'m> {
    pub how: &'m Migration<'m>,
    pub from: &'m StateBackend,
    pub to: &'m StateBackend,
}

impl Pair<'_> {
    /// Migrates one state. Returns true if it is in the new backend now.
    pub fn one(&self, from: &str, to: &str, force: bool) -> Result<bool, Diagnostics> {
        let new_name;
        let to = match to {
            // If the new backend does not allow the name `default`, a new name is asked for, but only if that workspace has a state.
            DEFAULT if !self.to.has_default() => {
                if self.is_empty(from)? {
                    return Ok(false);
                }
                new_name = self.name_for_default()?;
                workspace::select(self.how.context.data_dir, &new_name)?;
                &new_name
            }
            to => to,
        };
        self.one_to(from, to, force)
    }

    /// Migrates one state after the user has agreed. Another question is asked only if the new backend already has another state.
    pub fn one_agreed(&self, from: &str, to: &str) -> Result<bool, Diagnostics> {
        let there = read_source(self.how.context, &self.to.state(to))?.is_some_and(|state| !state.is_empty());
        self.one_to(from, to, !there)
    }

    /// Returns true if a workspace has no state in the old backend.
    pub fn is_empty(&self, workspace: &str) -> Result<bool, Diagnostics> {
        let source = self.from.state(workspace);
        // Opening would create a missing file, or a missing workspace of a store.
        if matches!(&source, Source::File(path) if !path.exists()) {
            return Ok(true);
        }
        Ok(read_source(self.how.context, &source)?.is_none_or(|state| state.is_empty()))
    }

    /// Asks for a new name for the workspace `default`, because the new backend does not allow that name.
    fn name_for_default(&self) -> Result<String, Diagnostics> {
        let question = format!(
            "The \"{}\" backend configuration only allows named workspaces!",
            self.to.ty()
        );
        let explanation = "Enter the name of the workspace that the state of the workspace \"default\" is to be copied to. It is \
                           created if there is none.";
        let name = answered(self.how, &question, explanation)?;
        match name.trim() {
            "" => Err(aborted()),
            name => Ok(name.to_owned()),
        }
    }

    fn one_to(&self, from: &str, to: &str, force: bool) -> Result<bool, Diagnostics> {
        let (from, to) = (self.from.state(from), self.to.state(to));
        if matches!((&from, &to), (Source::File(from), Source::File(to)) if same_file(from, to)) {
            return Ok(false);
        }
        // There is no state in the file, so there is nothing to copy, and perhaps no file to lock.
        if matches!(&from, Source::File(path) if !path.exists()) {
            return Ok(false);
        }
        let Some(existing) = read_source(self.how.context, &from)?.filter(|state| !state.is_empty()) else {
            return Ok(false);
        };
        // If both are the same state, there is nothing to copy, and locking it twice would fail.
        if read_source(self.how.context, &to)?
            .is_some_and(|there| existing.same_content(&there) && existing.lineage == there.lineage)
        {
            return Ok(true);
        }
        let mut source = self.open(&from, "migration source state")?;
        let mut target = self.open(&to, "migration destination state")?;
        let result = self.copy(&mut source, &mut target, force);
        // Both locks are released, also if the copy or the first release has failed.
        let unlocked = target.unlock().and(source.unlock());
        let copied = result?;
        unlocked?;
        Ok(copied)
    }

    fn open(&self, source: &Source, operation: &str) -> Result<StateSession<'_>, Diagnostics> {
        let lockable = !matches!(source, Source::File(path) if !path.exists());
        let lock = self.how.lock.filter(|_| lockable);
        StateSession::open(*self.how.context, &Opening::new(source.clone(), operation, lock))
    }

    fn copy(
        &self,
        source: &mut StateSession<'_>,
        target: &mut StateSession<'_>,
        force: bool,
    ) -> Result<bool, Diagnostics> {
        // Both states are read again under the locks, since another program may have written one of them meanwhile.
        let existing = source.state.take().unwrap_or_default();
        let there = target.state.take();
        if existing.is_empty() {
            return Ok(false);
        }
        if there
            .as_ref()
            .is_some_and(|there| existing.same_content(there) && existing.lineage == there.lineage)
        {
            return Ok(true);
        }
        if !force && !self.asked(&existing, there.as_ref())? {
            return Ok(false);
        }
        // A store replaces the state by a new snapshot with the next serial.
        let in_place = there.is_some() && matches!(self.to, StateBackend::Store(_));
        let snapshot = State {
            serial: existing.serial.saturating_add(u64::from(in_place)),
            ..existing
        };
        target.write_snapshot(snapshot).map_err(|e| problem(&e))?;
        Ok(true)
    }

    /// Asks the user whether a state may be copied.
    fn asked(&self, existing: &State, there: Option<&State>) -> Result<bool, Diagnostics> {
        let (old, new) = (self.from.ty(), self.to.ty());
        // The directory with the copies is removed on drop, which must not happen before the question is answered.
        let copies;
        let explanation = match there.filter(|state| !state.is_empty()) {
            None => format!(
                "The previous backend, \"{old}\", has a state. The new one, \"{new}\", has none yet.\n\nEnter \"yes\" to copy the \
                 state, or \"no\" to begin with an empty one."
            ),
            Some(there) => {
                copies = to_compare([(old, existing), (new, there)], &self.how.context.encryption.states()?)?;
                format!(
                    "Both backends have a state. To compare them, there are copies until you answer:\n\n  Previous (\"{old}\"): \
                     {}\n  New (\"{new}\"): {}\n\nEnter \"yes\" to replace the state in the new backend with the previous one, or \
                     \"no\" to keep the state that the new backend has.",
                    copies.path().join(format!("1-{old}.tfstate")).display(),
                    copies.path().join(format!("2-{new}.tfstate")).display()
                )
            }
        };
        agreed(
            self.how,
            "Do you want to copy existing state to the new backend?",
            &explanation,
        )
    }
}

/// Writes both states to a temporary directory, so that the user can compare them before deciding.
fn to_compare(states: [(&str, &State); 2], codec: &Codec) -> Result<tempfile::TempDir, Diagnostics> {
    let failed = |e: String| {
        Diagnostics::from(Diagnostic::error(
            "Failed to create temporary files",
            format!("The two states cannot be written to temporary files for a comparison: {e}."),
        ))
    };
    // The directory is accessible only to its owner, because states contain secrets in clear text.
    let dir = tempfile::Builder::new()
        .prefix("monoform-states-")
        .tempdir()
        .map_err(|e| failed(files::io_reason(&e)))?;
    for (i, (ty, state)) in states.into_iter().enumerate() {
        let path = dir.path().join(format!("{}-{ty}.tfstate", i + 1));
        state::store::write_copy(&path, state, codec).map_err(|e| failed(e.to_string()))?;
    }
    Ok(dir)
}

/// Asks a question; returns true for the answer "yes".
pub fn agreed(how: &Migration<'_>, question: &str, explanation: &str) -> Result<bool, Diagnostics> {
    Ok(answered(how, question, explanation)?.trim_end() == "yes")
}

/// Asks a question, and returns the answer. It is an error if questions are not allowed, or if there is no answer.
pub fn answered(how: &Migration<'_>, question: &str, explanation: &str) -> Result<String, Diagnostics> {
    if !how.input {
        return Err(Diagnostic::error(
            "Can't ask approval for state migration when interactive input is disabled.",
            "Run it again without \"-input=false\", or with -force-copy to copy the states without being asked.",
        )
        .into());
    }
    let answer = how.context.console.ask(&Question::new(question, explanation));
    let stopped = |why: &str| {
        Diagnostic::error(
            format!("Error asking for confirmation: {why}"),
            "The states and the record of the backend are as they were.",
        )
    };
    match answer {
        Ok(answer) => Ok(answer),
        Err(NoAnswer::End) => Err(stopped("EOF").into()),
        Err(NoAnswer::Interrupted) => Err(stopped("interrupted").into()),
    }
}
