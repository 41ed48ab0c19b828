//! The command `state pull`, which prints the state.

use crate::args::flags::{self, Flags, FromFlags};
use crate::args::groups::VariableFlags;
use crate::commands::Command;
use crate::outcome::{Failure, Outcome};
use crate::session::Session;
use crate::state_session;

pub const COMMAND: Command = Command {
    path: "state pull",
    about: "Pull current state and output to stdout",
    positional: "",
    details: "Prints the state of the selected workspace, wherever it is kept, as the text of a state file.",
    declare: flags::declare::<Arguments>,
    refused: &[],
    run: |session, _| run(session),
};

struct Arguments;

impl FromFlags for Arguments {
    fn read(flags: &mut Flags<'_>) -> Arguments {
        VariableFlags::read(flags);
        // Positional arguments are ignored, as in Terraform.
        flags.positional();
        Arguments
    }
}

fn run(session: &Session) -> Result<Outcome, Failure> {
    let Some(mut state) = state_session::read(session, None)? else {
        return Ok(Outcome::success());
    };
    crate::core_version().clone_into(&mut state.terraform_version);
    match state::document::encode(&state) {
        // As in Terraform, the output has one line break more than the file.
        Ok(text) => Ok(Outcome::exact(String::from_utf8_lossy(&text) + "\n")),
        Err(e) => Err(Failure::new(e.summary(), e.to_string())),
    }
}
