//! `state pull`.

use crate::args::matches::Given;
use crate::args::{UsageError, flags};
use crate::commands::Command;
use crate::commands::output::found_state;
use crate::session::{Session, Status};

pub const COMMAND: Command = Command {
    path: "state pull",
    about: "Pull current state and output to stdout",
    positional: "",
    declare: || {
        let command = flags::command(
            "pull",
            "Prints the state of the selected workspace, wherever it is kept, as the text of a state file.",
        );
        flags::positional(command, "args")
    },
    refused: &[],
    run,
};

fn run(session: &Session, given: &Given) -> Result<Status, UsageError> {
    let mut state = match found_state(session, given) {
        Ok(Some(state)) => state,
        Ok(None) => return Ok(0),
        Err(status) => return Ok(status),
    };
    crate::TERRAFORM_VERSION.clone_into(&mut state.terraform_version);
    match state::document::encode(&state) {
        Ok(text) => {
            // One line break more than the file has, as drivers of Terraform get it.
            session.ui.exact_line(String::from_utf8_lossy(&text));
            Ok(0)
        }
        Err(e) => Ok(session.fail(e.summary(), e.to_string())),
    }
}
