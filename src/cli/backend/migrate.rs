//! Bringing states along from where they were kept to where they are kept from now on.

use std::path::Path;
use std::time::Duration;

use state::State;
use syntax::{Diagnostic, Diagnostics};

use super::Local;
use crate::program;
use crate::prompt::{Answer, Echo};
use crate::session::Session;
use crate::state_session::{Opening, StateSession, problem};

/// How it is done.
pub struct Migration<'s> {
    /// For questions.
    pub session: &'s Session,
    /// Whether everything is copied without asking.
    pub force: bool,
    /// Whether questions may be asked.
    pub input: bool,
    /// How long to try for the locks of both states; `None` for no locks.
    pub lock: Option<Duration>,
}

/// Brings the states of all workspaces along; says whether they are at the new place now.
///
/// # Errors
/// A state cannot be read or written, or nobody agreed. What was there stays.
pub fn migrate(how: &Migration<'_>, from: &Local, to: &Local) -> Result<bool, Diagnostics> {
    let workspaces = from.workspaces()?;
    if workspaces.len() == 1 {
        return one(how, &from.state("default"), &to.state("default"), how.force);
    }
    if !how.force {
        let question = "Do you want to migrate all workspaces to \"local\"?";
        let explanation = format!(
            "  Both the existing \"local\" backend and the newly configured \"local\" backend\n  support workspaces. When migrating \
             between backends, {tool} will copy\n  all workspaces (with the same names). THIS WILL OVERWRITE any conflicting\n  \
             states in the destination.\n\n  To bring along only some of them, use \"{command} state pull\" and \"{command} state \
             push\".\n\n  If you answer \"yes\", {tool} will migrate all states. If you answer\n  \"no\", {tool} will abort.",
            tool = program::tool(),
            command = program::command()
        );
        if !agreed(how, question, &explanation)? {
            return Err(Diagnostic::error(
                "Migration aborted by user.",
                "The states and the record of the backend are as they were.",
            )
            .into());
        }
    }
    for workspace in workspaces {
        one(how, &from.state(&workspace), &to.state(&workspace), true)?;
    }
    Ok(true)
}

/// Brings one state along; says whether it is at the new place now.
fn one(how: &Migration<'_>, from: &Path, to: &Path, force: bool) -> Result<bool, Diagnostics> {
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    if absolute(from) == absolute(to) || !from.exists() {
        return Ok(false);
    }
    let open = |path: &Path| {
        let lock = how.lock.filter(|_| path.exists());
        StateSession::open(how.session, &Opening::new(path.to_owned(), "migrate-state", lock))
    };
    let mut source = open(from)?;
    let mut target = open(to)?;
    let existing = source.state.take().unwrap_or_default();
    let there = target.state.take().unwrap_or_default();
    if existing.is_empty() {
        return Ok(false);
    }
    if existing.same_content(&there) {
        return Ok(true);
    }
    if !force {
        let copies;
        let explanation = if there.is_empty() {
            "  Pre-existing state was found while migrating the previous \"local\" backend to the\n  newly configured \"local\" \
             backend. No existing state was found in the newly\n  configured \"local\" backend. Do you want to copy this state to \
             the new \"local\"\n  backend? Enter \"yes\" to copy and \"no\" to start with an empty state."
                .to_owned()
        } else {
            copies = to_compare(&existing, &there)?;
            format!(
                "  Pre-existing state was found while migrating the previous \"local\" backend to the\n  newly configured \
                 \"local\" backend. An existing non-empty state already exists in\n  the new backend. The two states have been \
                 saved to temporary files that will be\n  removed after responding to this query.\n\n  Previous (type \
                 \"local\"): {}\n  New      (type \"local\"): {}\n\n  Do you want to overwrite the state in the new backend with \
                 the previous state?\n  Enter \"yes\" to copy and \"no\" to start with the existing state in the newly\n  \
                 configured \"local\" backend.",
                copies.path().join("1-local.tfstate").display(),
                copies.path().join("2-local.tfstate").display()
            )
        };
        if !agreed(
            how,
            "Do you want to copy existing state to the new backend?",
            &explanation,
        )? {
            return Ok(false);
        }
    }
    target.write_snapshot(existing).map_err(|e| problem(&e))?;
    target.unlock()?;
    Ok(true)
}

/// Both states in a directory of their own, for whoever has to decide between them.
fn to_compare(existing: &State, there: &State) -> Result<tempfile::TempDir, Diagnostics> {
    let failed = |e: String| {
        Diagnostics::from(Diagnostic::error(
            "Failed to create temporary files",
            format!("The two states cannot be written to temporary files for a comparison: {e}."),
        ))
    };
    let dir = tempfile::Builder::new()
        .prefix("monoform-states-")
        .tempdir()
        .map_err(|e| failed(files::io_reason(&e)))?;
    for (name, state) in [("1-local.tfstate", existing), ("2-local.tfstate", there)] {
        state::store::write_copy(&dir.path().join(name), state).map_err(|e| failed(e.to_string()))?;
    }
    Ok(dir)
}

fn agreed(how: &Migration<'_>, question: &str, explanation: &str) -> Result<bool, Diagnostics> {
    if !how.input {
        return Err(Diagnostic::error(
            "Can't ask approval for state migration when interactive input is disabled.",
            "Run it again without \"-input=false\", or with -force-copy to copy the states without being asked.",
        )
        .into());
    }
    let ui = &how.session.ui;
    let style = ui.style();
    let prompt = format!(
        "{}\n{explanation}\n\n  {} ",
        style.bold(question),
        style.bold("Enter a value:")
    );
    let answer = ui.ask(&prompt, Echo::On);
    ui.line("");
    let stopped = |why: &str| {
        Diagnostic::error(
            format!("Error asking for confirmation: {why}"),
            "The states and the record of the backend are as they were.",
        )
    };
    match answer {
        Answer::Line(answer) => Ok(answer.trim_end() == "yes"),
        Answer::End => Err(stopped("EOF").into()),
        Answer::Interrupted => Err(stopped("interrupted").into()),
    }
}
