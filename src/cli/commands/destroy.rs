//! `destroy`: `apply -destroy`.

use engine::plan::Mode;

use crate::args::matches::Given;
use crate::args::{UsageError, flags};
use crate::commands::Command;
use crate::commands::apply::{Work, approval_possible, direct};
use crate::operation::plan_options;
use crate::session::{Session, Status};

pub const COMMAND: Command = Command {
    path: "destroy",
    about: "Destroy previously-created infrastructure",
    positional: "",
    declare: || {
        let command = flags::command(
            "destroy",
            "Destroys all objects that the configuration manages. This is apply with the -destroy option.",
        );
        let command = flags::local_state(flags::operation(flags::targeting(flags::variables(command))));
        flags::positional(command, "args")
            .arg(flags::switch(
                "refresh",
                true,
                "Plan with the state as it is, without reading the objects first.",
            ))
            .arg(flags::switch(
                "auto-approve",
                false,
                "Skip interactive approval before destroying.",
            ))
    },
    refused: &[
        ("destroy", "it is what this command does."),
        ("refresh-only", "this command destroys. Use \"apply -refresh-only\"."),
        ("replace", "nothing is replaced when everything is destroyed."),
    ],
    run,
};

fn run(session: &Session, given: &Given) -> Result<Status, UsageError> {
    if !given.values("args").is_empty() {
        return Err(UsageError::new(
            "Too many command line arguments",
            "The destroy command takes no plan. To destroy by a saved plan, make it with \"plan -destroy -out=FILE\" and apply it.",
        ));
    }
    let mut options = plan_options(given)?;
    approval_possible(session, given)?;
    options.mode = Mode::Destroy;
    let work = Work {
        options,
        auto_approve: given.on("auto-approve"),
        verb: ("Destroy", "Destroying"),
    };
    Ok(direct(session, given, &work))
}
