//! `state rm`: forgets objects without destroying them.

use std::collections::BTreeSet;

use addrs::AbsResourceInstance;

use super::edit;
use crate::args::matches::Given;
use crate::args::{UsageError, flags};
use crate::commands::Command;
use crate::program;
use crate::session::{Session, Status};

pub const COMMAND: Command = Command {
    path: "state rm",
    about: "Remove instances from the state",
    positional: "ADDRESS...",
    declare: || {
        let command = flags::command(
            "rm",
            "Forgets the resource instances at the given addresses: they leave the state, and the objects they stand for stay as \
             they are. The address of a module means all that is in and below it, that of a resource all its instances.",
        );
        flags::positional(edit::declare(command), "args").arg(flags::switch(
            "dry-run",
            false,
            "Only say what would be removed.",
        ))
    },
    refused: &[],
    run,
};

fn run(session: &Session, given: &Given) -> Result<Status, UsageError> {
    let args = given.values("args");
    if args.is_empty() {
        return Err(UsageError::new(
            "At least one address is required.",
            "Give the addresses of what is to be removed.",
        ));
    }
    Ok(remove(session, given, &args).unwrap_or_else(|status| status))
}

fn remove(session: &Session, given: &Given, args: &[String]) -> Result<Status, Status> {
    let dry = given.on("dry-run");
    let targets = args
        .iter()
        .map(|text| edit::address(session, text))
        .collect::<Result<Vec<_>, _>>()?;
    let (mut opened, mut state) = edit::open(session, given, "state-rm")?;
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
            session.ui.line("Would have removed nothing.");
            return Ok(opened.close(session, 0));
        }
        let status = session.fail(
            "Invalid target address",
            format!(
                "Nothing in the state has such an address. \"{} state list\" lists what there is.{}",
                program::command(),
                args.iter()
                    .map(|text| edit::nearest(&state, text))
                    .find(|hint| !hint.is_empty())
                    .unwrap_or_default()
            ),
        );
        return Ok(opened.close(session, status));
    }
    for address in &selected {
        if !dry {
            state.remove_instance(address);
        }
        session.ui.line(format!("{verb} {address}"));
    }
    if dry {
        return Ok(opened.close(session, 0));
    }
    if let Err(status) = opened.write(session, &state) {
        return Ok(opened.close(session, status));
    }
    session
        .ui
        .line(format!("Successfully removed {} resource instance(s).", selected.len()));
    Ok(opened.close(session, 0))
}
