//! `state list`.

use addrs::{AbsResourceInstance, Target};
use state::State;

use super::{edit, no_state};
use crate::args::UsageError;
use crate::args::flags::{self, Flags, FromFlags};
use crate::args::groups::state_to_read;
use crate::commands::Command;
use crate::session::{Session, Status};
use crate::state_session;

pub const COMMAND: Command = Command {
    path: "state list",
    about: "List resources in the state",
    positional: "[ADDRESS...]",
    details: "Lists the resource instances in the state: all, or those of the given addresses.",
    declare: flags::declare::<Arguments>,
    refused: &[],
    run: |session, matches| run(session, &flags::read(matches)),
};

struct Arguments {
    positional: Vec<String>,
    state: Option<String>,
    id: Option<String>,
}

impl FromFlags for Arguments {
    fn read(flags: &mut Flags<'_>) -> Arguments {
        Arguments {
            positional: flags.positional(),
            state: state_to_read(flags),
            id: flags.value("id", "ID", "List only instances whose object has this id."),
        }
    }
}

fn run(session: &Session, arguments: &Arguments) -> Result<Status, UsageError> {
    let mut targets = Vec::new();
    for text in &arguments.positional {
        match addrs::parse::target(text) {
            Ok(target) => targets.push(target),
            Err(e) => return Ok(session.fail(e.summary, e.detail)),
        }
    }
    let state = match state_session::read(session, arguments.state.as_deref()) {
        Ok(Some(state)) => state,
        Ok(None) => return Ok(no_state(session)),
        Err(status) => return Ok(status),
    };
    let mut all: Vec<AbsResourceInstance> = state
        .instances()
        .map(|(resource, _, key, _)| resource.instance(key.clone()))
        .collect();
    // As Terraform lists them: outer modules before inner ones, and in each what is only read before what is managed.
    let order = |a: &AbsResourceInstance| (a.module.0.len(), a.module.clone());
    let read_first = |a: &AbsResourceInstance| a.resource.resource.mode != addrs::Mode::Data;
    all.sort_by_cached_key(|a| (order(a), read_first(a), a.resource.clone()));
    for target in &targets {
        if !all.iter().any(|a| target.selects(a)) {
            return Ok(unknown(session, &state, target));
        }
    }
    for address in all {
        let selected = targets.is_empty() || targets.iter().any(|t| t.selects(&address));
        if selected && arguments.id.as_deref().is_none_or(|id| has_id(&state, &address, id)) {
            session.ui.line(address.to_string());
        }
    }
    Ok(0)
}

fn unknown(session: &Session, state: &State, target: &Target) -> Status {
    let kind = match target {
        Target::Module(_) | Target::ModuleInstance(_) => "module",
        Target::ConfigResource(_) | Target::Resource(_) => "resource",
        Target::ResourceInstance(_) => "resource instance",
    };
    session.fail(
        format!("Unknown {kind}"),
        format!(
            "There is no {kind} {target} in the current state. What is new in the configuration, or has another count or \
             for_each there, is in the state only after the next apply.{}",
            edit::nearest(state, &target.to_string())
        ),
    )
}

fn has_id(state: &State, address: &AbsResourceInstance, id: &str) -> bool {
    let Some(object) = state.current(address) else {
        return false;
    };
    match &object.attributes {
        state::Attributes::Json(json) => json
            .to_value()
            .is_ok_and(|v| v.get("id").and_then(|v| v.as_str()) == Some(id)),
        state::Attributes::Flat(flat) => flat.get("id").is_some_and(|v| v == id),
    }
}
