//! `destroy`: `apply -destroy`.

use engine::plan::Mode;
use views::verb::Verb;

use crate::args::flags::{self, Flags, FromFlags};
use crate::args::groups::{
    GuardFlags, OperationFlags, Refresh, StateFlags, TargetFlags, VariableFlags, refresh, suppress_forget_errors,
};
use crate::args::operation::{OperationArguments, targeted};
use crate::commands::Command;
use crate::commands::apply::{Work, approval_possible, direct};
use crate::guards::Guards;
use crate::outcome::{Failure, Outcome};
use crate::session::Session;

pub const COMMAND: Command = Command {
    path: "destroy",
    about: "Destroy previously-created infrastructure",
    positional: "",
    details: "Destroys all objects that the configuration manages. This is apply with the -destroy option.",
    declare: flags::declare::<Arguments>,
    refused: &[
        ("destroy", "it is what this command does."),
        ("refresh-only", "this command destroys. Use \"apply -refresh-only\"."),
        ("replace", "nothing is replaced when everything is destroyed."),
    ],
    run: |session, matches| run(session, &flags::read(matches)),
};

struct Arguments {
    targets: TargetFlags,
    operation: OperationFlags,
    state: StateFlags,
    positional: Vec<String>,
    refresh: Refresh,
    guards: GuardFlags,
    suppress_forget_errors: bool,
}

impl FromFlags for Arguments {
    fn read(flags: &mut Flags<'_>) -> Arguments {
        flags.summary();
        flags.show_sensitive();
        VariableFlags::read(flags);
        Arguments {
            targets: TargetFlags::read(flags),
            operation: OperationFlags::read(flags),
            state: StateFlags::read(flags),
            positional: flags.positional(),
            refresh: refresh(flags),
            guards: GuardFlags::read(flags),
            suppress_forget_errors: suppress_forget_errors(flags),
        }
    }
}

fn run(session: &Session, arguments: &Arguments) -> Result<Outcome, Failure> {
    if !arguments.positional.is_empty() {
        return Err(Failure::usage(
            "Too many command line arguments",
            "The destroy command takes no plan. To destroy by a saved plan, make it with \"plan -destroy -out=FILE\" and apply it.",
        ));
    }
    let options = targeted(Mode::Destroy, &arguments.refresh, &arguments.targets)?;
    let guards = Guards::new(&arguments.guards)?;
    // The possibility of approval is checked before the state is locked and read: a run without input cannot be
    // approved, and would fail only at the prompt.
    approval_possible(session, &guards.approval)?;
    let work = Work {
        arguments: OperationArguments::new(arguments.state.clone(), &arguments.operation),
        guards,
        verb: Verb::Destroy,
        saved: None,
        suppress_forget_errors: arguments.suppress_forget_errors,
    };
    direct(session, &work, &options)
}
