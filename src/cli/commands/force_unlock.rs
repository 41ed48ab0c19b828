//! `force-unlock`.

use views::program;

use crate::args::UsageError;
use crate::args::flags::{self, Flags, FromFlags};
use crate::backend::Source;
use crate::commands::{Command, confirmed};
use crate::session::{Session, Status};
use crate::workdir;

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
        Arguments {
            positional: flags.positional(),
            force: flags.switch("force", false, "Do not ask for confirmation."),
        }
    }
}

fn run(session: &Session, arguments: &Arguments) -> Result<Status, UsageError> {
    let args = &arguments.positional;
    let [id] = args.as_slice() else {
        return Err(UsageError::new(
            "Expected a single argument",
            "Give the ID of the lock.",
        ));
    };
    let (project, _) = workdir::read(session);
    let place = match workdir::state_place(session, Some(&project.config)) {
        Ok(place) => place,
        Err(problems) => {
            session.show(&problems, &project.sources);
            return Ok(1);
        }
    };
    if !arguments.force {
        let explanation = format!(
            "  {} will remove the lock on the remote state.\n  This will allow local commands to modify this state, even \
             though it\n  may still be in use. Only 'yes' will be accepted to confirm.",
            program::tool()
        );
        match confirmed(session, "Do you really want to force-unlock?", &explanation, "-force") {
            Ok(true) => {}
            Ok(false) => {
                session.ui.line("force-unlock cancelled.");
                return Ok(1);
            }
            Err(status) => return Ok(status),
        }
    }
    let unlocked = match place.source() {
        Source::File(path) => state::lock::force_unlock(&path, id)
            .map(drop)
            .map_err(|e| e.to_string()),
        Source::Workspace(store, workspace) => store.force_unlock(&workspace, id).map_err(|problems| {
            let details: Vec<String> = problems.into_iter().map(|d| d.into_parts().detail).collect();
            details.join("\n\n")
        }),
    };
    match unlocked {
        Ok(()) => {
            session.ui.line(format!(
                "{}\n\nCommands that need the lock of this state can get it again.",
                session
                    .ui
                    .style()
                    .good(format!("{} state has been successfully unlocked!", program::tool())),
            ));
            Ok(0)
        }
        Err(e) => Ok(session.fail("Failed to unlock state", e)),
    }
}
