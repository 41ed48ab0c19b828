//! `state identities`.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::list::{has_id, select};
use crate::args::UsageError;
use crate::args::flags::{self, Flags, FromFlags};
use crate::args::groups::state_to_read;
use crate::commands::Command;
use crate::session::{Session, Status};

pub const COMMAND: Command = Command {
    path: "state identities",
    about: "List the identities of resources in the state",
    positional: "[ADDRESS...]",
    details: "Lists the identities of the resource instances in the state, as one JSON object by address: of all instances, or of \
              those of the given addresses. Instances whose provider gives them no identity are left out.",
    declare: flags::declare::<Arguments>,
    refused: &[],
    run: |session, matches| run(session, &flags::read(matches)),
};

struct Arguments {
    positional: Vec<String>,
    json: bool,
    state: Option<String>,
    id: Option<String>,
}

impl FromFlags for Arguments {
    fn read(flags: &mut Flags<'_>) -> Arguments {
        Arguments {
            positional: flags.positional(),
            json: flags.switch("json", false, "Required: output the identities as JSON."),
            state: state_to_read(flags),
            id: flags.value("id", "ID", "List only instances whose object has this id."),
        }
    }
}

fn run(session: &Session, arguments: &Arguments) -> Result<Status, UsageError> {
    if !arguments.json {
        return Err(UsageError::new(
            "The -json option is required",
            "The identities are shown only in machine-readable form: use -json.",
        ));
    }
    let (state, selected) = match select(session, &arguments.positional, arguments.state.as_deref()) {
        Ok(found) => found,
        Err(status) => return Ok(status),
    };
    let mut identities: BTreeMap<String, Json> = BTreeMap::new();
    for address in selected {
        let object = state.current(&address).and_then(|object| object.identity.as_ref());
        let Some(identity) = object.and_then(|identity| identity.value.as_ref()) else {
            continue;
        };
        if arguments.id.as_deref().is_some_and(|id| !has_id(&state, &address, id)) {
            continue;
        }
        match identity.to_value() {
            Ok(value) => identities.insert(address.to_string(), value),
            Err(error) => return Ok(session.fail("Invalid identity in state", format!("{address}: {error}."))),
        };
    }
    let document = Json::Object(identities.into_iter().collect());
    session.ui.exact_line(cty::json::to_text(&document, Some(2)));
    Ok(0)
}
