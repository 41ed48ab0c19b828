//! `state pull`.

use crate::args::flags::{self, Flags, FromFlags};
use crate::args::groups::VariableFlags;
use crate::commands::Command;
use crate::session::{Session, Status};
use crate::state_session;

pub const COMMAND: Command = Command {
    path: "state pull",
    about: "Pull current state and output to stdout",
    positional: "",
    details: "Prints the state of the selected workspace, wherever it is kept, as the text of a state file.",
    declare: flags::declare::<Arguments>,
    refused: &[],
    run: |session, _| Ok(run(session)),
};

struct Arguments;

impl FromFlags for Arguments {
    fn read(flags: &mut Flags<'_>) -> Arguments {
        VariableFlags::read(flags);
        // More arguments have no effect.
        flags.positional();
        Arguments
    }
}

fn run(session: &Session) -> Status {
    let mut state = match state_session::read(session, None) {
        Ok(Some(state)) => state,
        Ok(None) => return 0,
        Err(status) => return status,
    };
    crate::TERRAFORM_VERSION.clone_into(&mut state.terraform_version);
    match state::document::encode(&state) {
        Ok(text) => {
            // One line break more than the file has, as drivers of Terraform get it.
            session.ui.exact_line(String::from_utf8_lossy(&text));
            0
        }
        Err(e) => session.fail(e.summary(), e.to_string()),
    }
}
