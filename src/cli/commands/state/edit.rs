//! What the commands that change a state have in common.

use std::collections::BTreeSet;

use addrs::Target;
use addrs::parse::ParseError;
use clap::Command;
use state::State;
use syntax::content::suggest;

use super::no_state;
use crate::args::flags;
use crate::args::matches::Given;
use crate::session::{Session, Status};
use crate::state_access::{Backup, Opened};

/// The flags of a command that changes the state in place.
pub fn declare(command: Command) -> Command {
    flags::locking(command)
        .arg(flags::value(
            "state",
            "PATH",
            "The state file to change, in place of the working directory's.",
        ))
        .arg(flags::value(
            "backup",
            "PATH",
            "Where to keep the state as it was. Without it the time is in the name of the backup; there always is one.",
        ))
        .arg(flags::switch(
            "ignore-remote-version",
            false,
            "Go on even if a remote workspace is set to another version.",
        ))
}

/// Opens the state for a change; without a state there is nothing to change.
pub fn open(session: &Session, given: &Given, operation: &str) -> Result<(Opened, State), Status> {
    let mut opened = Opened::new(session, given, operation, Backup::Stamped)?;
    match opened.state.take() {
        Some(state) => Ok((opened, state)),
        None => {
            let status = no_state(session);
            Err(opened.close(session, status))
        }
    }
}

/// ` Did you mean …?` with the address in a state that is nearest to one that is not there; empty if none is near.
pub fn nearest(state: &State, given: &str) -> String {
    let instances: BTreeSet<String> = state
        .instances()
        .map(|(resource, _, key, _)| resource.instance(key.clone()).to_string())
        .collect();
    // The address of a resource where one of its instances is meant.
    let begun = format!("{given}[");
    if let Some(instance) = instances.iter().find(|address| address.starts_with(&begun)) {
        return did_you_mean_address(instance);
    }
    let resources = state.resources.keys();
    let modules: BTreeSet<String> = resources.clone().map(|r| r.module.to_string()).collect();
    let resources: BTreeSet<String> = resources.map(ToString::to_string).collect();
    let all = instances.iter().chain(&resources).chain(&modules);
    suggest(given, all.map(String::as_str).filter(|a| !a.is_empty()))
        .map(did_you_mean_address)
        .unwrap_or_default()
}

/// Addresses have quotes of their own.
fn did_you_mean_address(address: &str) -> String {
    format!(" Did you mean {address}?")
}

/// An address that a person has typed.
pub fn address(session: &Session, text: &str) -> Result<Target, Status> {
    addrs::parse::target(text).map_err(|ParseError { summary, detail }| session.fail(summary, detail))
}
