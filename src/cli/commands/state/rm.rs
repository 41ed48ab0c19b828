//! `state rm`: removes objects from the state without destroying them.

use std::collections::BTreeSet;

use addrs::AbsResourceInstance;

use super::edit::{self, EditFlags};
use crate::args::flags::{self, Flags, FromFlags};
use crate::commands::Command;
use crate::outcome::{Failure, Outcome};
use crate::session::Session;
use crate::state_session::Closing as _;

pub const COMMAND: Command = Command {
    path: "state rm",
    about: "Remove instances from the state",
    positional: "ADDRESS...",
    details: "Forgets the resource instances at the given addresses: they leave the state, and the objects themselves stay as \
      they are. The address of a module means all that is in and below it, that of a resource all its instances.",
    declare: flags::declare::<Arguments>,
    refused: &[],
    run: |session, matches| run(session, &flags::read(matches)),
};

struct Arguments {
    edit: EditFlags,
    positional: Vec<String>,
    dry_run: bool,
}

impl FromFlags for Arguments {
    fn read(flags: &mut Flags<'_>) -> Arguments {
        Arguments {
            edit: EditFlags::read(flags),
            positional: flags.positional(),
            dry_run: flags.switch("dry-run", false, "Only say what would be removed."),
        }
    }
}

fn run(session: &Session, arguments: &Arguments) -> Result<Outcome, Failure> {
    let args = &arguments.positional;
    if args.is_empty() {
        return Err(Failure::usage(
            "Required argument missing",
            "Give at least one argument: the addresses of what is to be removed.",
        ));
    }
    remove(session, arguments, args)
}

fn remove(session: &Session, arguments: &Arguments, args: &[String]) -> Result<Outcome, Failure> {
    let dry = arguments.dry_run;
    let targets = args
        .iter()
        .map(|text| edit::address(text))
        .collect::<Result<Vec<_>, _>>()?;
    let (mut opened, mut state) = edit::open(session, &arguments.edit, "state-rm")?;
    let mut seen = BTreeSet::new();
    let mut selected: Vec<AbsResourceInstance> = Vec::new();
    for target in &targets {
        for (resource, _, key, _) in state.instances() {
            let address = resource.instance(key.clone());
            if target.selects(&address) && seen.insert(address.clone()) {
                selected.push(address);
            }
        }
    }
    let verb = if dry { "Would remove" } else { "Removed" };
    if selected.is_empty() {
        if dry {
            return opened.close(Ok(Outcome::line("Would have removed nothing.")));
        }
        let failure = Failure::new(
            "Invalid target address",
            format!(
                "No object in the state matches the addresses. \"{} state list\" lists the objects.{}",
                session.ui.program.command,
                args.iter()
                    .map(|text| edit::nearest(&state, text))
                    .find(|hint| !hint.is_empty())
                    .unwrap_or_default()
            ),
        );
        return opened.close(Err(failure));
    }
    let mut outcome = Outcome::success();
    for address in &selected {
        if !dry {
            state.remove_instance(address);
        }
        outcome = outcome.and_line(format!("{verb} {address}"));
    }
    if dry {
        return opened.close(Ok(outcome));
    }
    // The removed instances stay listed if writing fails, so that the user knows which ones are concerned.
    let result = match opened.write(&state) {
        Ok(()) => outcome.and_line(format!("Successfully removed {} resource instance(s).", selected.len())),
        Err(failure) => outcome.and_failure(failure),
    };
    opened.close(Ok(result))
}
