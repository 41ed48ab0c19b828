//! The command `force-unlock`, which removes the lock of a state.

use stores::backend::{self, Source};

use crate::args::flags::{self, Flags, FromFlags};
use crate::args::groups::VariableFlags;
use crate::commands::{Command, confirmed};
use crate::outcome::{Failure, Outcome, Within as _};
use crate::session::Session;
use crate::{state_session, workdir};

pub const COMMAND: Command = Command {
    path: "force-unlock",
    about: "Release a stuck lock on the current workspace",
    positional: "LOCK_ID",
    details: "Clears what a program that is gone has left of its lock on the state. The lock of a running program is not broken.",
    declare: flags::declare::<Arguments>,
    refused: &[],
    run: |session, matches| run(session, &flags::read(matches)),
};

struct Arguments {
    positional: Vec<String>,
    force: bool,
}

impl FromFlags for Arguments {
    fn read(flags: &mut Flags<'_>) -> Arguments {
        // The settings of a backend can depend on variables, whose values are in the session.
        flags.json_into();
        VariableFlags::read(flags);
        Arguments {
            positional: flags.positional(),
            force: flags.switch("force", false, "Do not ask for confirmation."),
        }
    }
}

fn run(session: &Session, arguments: &Arguments) -> Result<Outcome, Failure> {
    let args = &arguments.positional;
    let [id] = args.as_slice() else {
        return Err(Failure::usage("Expected a single argument", "Give the ID of the lock."));
    };
    // Only the backend matters, so other errors of the configuration are ignored.
    let (project, problems) = workdir::read(session);
    state_session::accept(session, &project, problems)?;
    let location = backend::selected(&session.stores(), Some(&project.config)).within(&project.sources)?;
    if !arguments.force {
        let explanation = format!(
            "{} will release the lock of another command. If that command still runs, two of them change the state at the same \
             time.\nOnly 'yes' will be accepted to confirm.",
            session.ui.program.tool
        );
        match confirmed(session, "Do you really want to force-unlock?", &explanation, "-force") {
            Ok(true) => {}
            Ok(false) => {
                return Ok(Outcome::from(1).and_line("force-unlock cancelled."));
            }
            Err(failure) => return Err(failure),
        }
    }
    let unlocked = match location.source() {
        Source::File(path) => state::lock::force_unlock(&path, id)
            .map(drop)
            .map_err(|e| e.to_string()),
        Source::Workspace(store, workspace) => store.force_unlock(&workspace, id).map_err(|problems| {
            let details: Vec<String> = problems.into_iter().map(|d| d.into_parts().detail).collect();
            details.join("\n\n")
        }),
    };
    match unlocked {
        Ok(()) => Ok(Outcome::line(format!(
            "{}\n\nCommands that need the lock of this state can get it again.",
            session.ui.style().good(format!(
                "{} state has been successfully unlocked!",
                session.ui.program.tool
            )),
        ))),
        Err(e) => Err(Failure::new("Failed to unlock state", e)),
    }
}
