//! The command `state list`, which lists the resource instances in the state.

use addrs::{AbsResourceInstance, Target};
use serde_json::{Value as Json, json};
use state::{ObjectStatus, State};
use views::json::{Object, instance_key};

use super::{edit, no_state};
use crate::args::flags::{self, Flags, FromFlags};
use crate::args::groups::{VariableFlags, state_to_read};
use crate::commands::Command;
use crate::outcome::{Failure, Outcome};
use crate::session::Session;
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
    json: bool,
}

impl FromFlags for Arguments {
    fn read(flags: &mut Flags<'_>) -> Arguments {
        flags.json_into();
        VariableFlags::read(flags);
        Arguments {
            positional: flags.positional(),
            state: state_to_read(flags),
            id: flags.value("id", "ID", "List only instances whose object has this id."),
            json: flags.switch(
                "json",
                false,
                "Output the instances as JSON, without the values of their objects.",
            ),
        }
    }
}

fn run(session: &Session, arguments: &Arguments) -> Result<Outcome, Failure> {
    let (state, selected) = select(session, &arguments.positional, arguments.state.as_deref())?;
    let listed: Vec<AbsResourceInstance> = selected
        .into_iter()
        .filter(|address| arguments.id.as_deref().is_none_or(|id| has_id(&state, address, id)))
        .collect();
    let document = || {
        let instances: Vec<Json> = listed.iter().map(|address| instance(&state, address)).collect();
        Outcome::document(&json!({ "format_version": "1.0", "resource_instances": instances }))
    };
    if arguments.json {
        return Ok(document());
    }
    let lines: String = listed.iter().map(|address| format!("{address}\n")).collect();
    Ok(session.with_document(Outcome::text(lines), document))
}

/// Returns the JSON document of an instance: the parts of its address by their names in `show -json`, its provider, whether its
/// object is tainted, and the keys of deposed objects.
fn instance(state: &State, address: &AbsResourceInstance) -> Json {
    let resource = state
        .resources
        .get(&address.resource.resource.absolute(&address.module));
    let found = resource.and_then(|resource| resource.instances.get(&address.resource.key));
    let tainted = found
        .and_then(|found| found.current.as_ref())
        .is_some_and(|object| object.status == ObjectStatus::Tainted);
    let deposed: Vec<String> = found
        .into_iter()
        .flat_map(|found| found.deposed.keys())
        .map(|key| key.0.to_string())
        .collect();
    let addrs::Resource { mode, ty, name } = &address.resource.resource;
    let module = address.module.to_string();
    Object::default()
        .with("address", address.to_string())
        .with_content("module_address", module)
        .with("mode", mode.as_str())
        .with("type", &**ty)
        .with("name", &**name)
        .with_some("index", instance_key(&address.resource.key))
        .with_some(
            "provider_name",
            resource.map(|resource| resource.provider.provider.to_string()),
        )
        .with_content("tainted", tainted)
        .with_content("deposed_keys", deposed)
        .into()
}

/// Returns the state, and its instances: all, or those that the addresses select.
pub(super) fn select(
    session: &Session,
    addresses: &[String],
    state_path: Option<&str>,
) -> Result<(State, Vec<AbsResourceInstance>), Failure> {
    let mut targets = Vec::new();
    for text in addresses {
        match addrs::parse::target(text) {
            Ok(target) => targets.push(target),
            Err(e) => return Err(Failure::new(e.summary, e.detail)),
        }
    }
    let state = state_session::read(session, state_path)?.ok_or_else(|| no_state(session))?;
    let mut all: Vec<AbsResourceInstance> = state
        .instances()
        .map(|(resource, _, key, _)| resource.instance(key.clone()))
        .collect();
    // This is Terraform's order: outer modules before inner ones, and in each module data sources before managed
    // resources.
    let order = |a: &AbsResourceInstance| (a.module.0.len(), a.module.clone());
    let read_first = |a: &AbsResourceInstance| a.resource.resource.mode != addrs::Mode::Data;
    all.sort_by_cached_key(|a| (order(a), read_first(a), a.resource.clone()));
    for target in &targets {
        if !all.iter().any(|a| target.selects(a)) {
            return Err(unknown(&state, target));
        }
    }
    all.retain(|address| targets.is_empty() || targets.iter().any(|t| t.selects(address)));
    Ok((state, all))
}

fn unknown(state: &State, target: &Target) -> Failure {
    let kind = match target {
        Target::Module(_) | Target::ModuleInstance(_) => "module",
        Target::ConfigResource(_) | Target::Resource(_) => "resource",
        Target::ResourceInstance(_) => "resource instance",
    };
    Failure::new(
        format!("Unknown {kind}"),
        format!(
            "There is no {kind} {target} in the current state. What is new in the configuration, or has another count or \
             for_each there, is in the state only after the next apply.{}",
            edit::nearest(state, &target.to_string())
        ),
    )
}

pub(super) fn has_id(state: &State, address: &AbsResourceInstance, id: &str) -> bool {
    let Some(object) = state.current(address) else {
        return false;
    };
    match &object.attributes {
        state::Attributes::Json(json) => json
            .to_value()
            .is_ok_and(|v| v.get("id").and_then(|v| v.as_str()) == Some(id)),
        // A state from before version 0.12, which no provider has upgraded yet.
        state::Attributes::Flat(flat) => flat.get("id").is_some_and(|v| v == id),
    }
}
