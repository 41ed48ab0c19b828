//! Functions for commands that change a state.

use std::collections::BTreeSet;

use addrs::Target;
use addrs::parse::ParseError;
use state::State;
use stores::session::{Backup, StateSession};
use syntax::content::suggest;

use super::no_state;
use crate::args::flags::{Flags, FromFlags};
use crate::args::groups::{LockFlags, StateFlags, VariableFlags, ignore_remote_version};
use crate::outcome::Failure;
use crate::session::Session;
use crate::state_session::{self, Closing as _};

/// Flags of commands that change the state in place.
pub struct EditFlags {
    pub lock: LockFlags,
    pub state: Option<String>,
    pub backup: Option<String>,
}

impl FromFlags for EditFlags {
    fn read(flags: &mut Flags<'_>) -> EditFlags {
        flags.json_into();
        VariableFlags::read(flags);
        let out = EditFlags {
            lock: LockFlags::read(flags),
            state: flags.value(
                "state",
                "PATH",
                "The state file to change, in place of the working directory's.",
            ),
            backup: flags.value(
                "backup",
                "PATH",
                "Where to keep the state as it was. Without it the time is in the name of the backup; there always is one.",
            ),
        };
        ignore_remote_version(flags);
        out
    }
}

/// Opens the state for a change; fails without a state.
pub fn open<'s>(
    session: &'s Session,
    flags: &EditFlags,
    operation: &str,
) -> Result<(StateSession<'s>, State), Failure> {
    let files = StateFlags {
        state: flags.state.clone(),
        ..StateFlags::default()
    };
    // State commands always make a backup.
    let backup = Backup::required(flags.backup.as_deref());
    let mut opened = state_session::open_for_edit(session, &files, flags.lock, operation, backup)?;
    match opened.state.take() {
        Some(state) => Ok((opened, state)),
        None => Err(opened.fail(no_state(session))),
    }
}

/// Suggests the most similar address in a state, like ` Did you mean …?`; empty if there is none.
pub fn nearest(state: &State, wanted: &str) -> String {
    let instances: BTreeSet<String> = state
        .instances()
        .map(|(resource, _, key, _)| resource.instance(key.clone()).to_string())
        .collect();
    // The user wrote the address of a resource, but the command needs one of its instances.
    let begun = format!("{wanted}[");
    if let Some(instance) = instances.iter().find(|address| address.starts_with(&begun)) {
        return did_you_mean_address(instance);
    }
    let resources = state.resources.keys();
    let modules: BTreeSet<String> = resources.clone().map(|r| r.module.to_string()).collect();
    let resources: BTreeSet<String> = resources.map(ToString::to_string).collect();
    let all = instances.iter().chain(&resources).chain(&modules);
    suggest(wanted, all.map(String::as_str).filter(|a| !a.is_empty()))
        .map(did_you_mean_address)
        .unwrap_or_default()
}

/// Formats a suggestion without quotes, since addresses contain quotes themselves.
fn did_you_mean_address(address: &str) -> String {
    format!(" Did you mean {address}?")
}

/// Parses an address that the user has typed.
pub fn address(text: &str) -> Result<Target, Failure> {
    addrs::parse::target(text).map_err(|ParseError { summary, detail }| Failure::new(summary, detail))
}
