//! The command `state identities`, which prints the identities of objects in the state as JSON.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::list::{has_id, select};
use crate::args::flags::{self, Flags, FromFlags};
use crate::args::groups::state_to_read;
use crate::commands::Command;
use crate::outcome::{Failure, Outcome};
use crate::session::Session;

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

fn run(session: &Session, arguments: &Arguments) -> Result<Outcome, Failure> {
    if !arguments.json {
        return Err(Failure::usage(
            "The -json option is required",
            "The identities are shown only in machine-readable form: use -json.",
        ));
    }
    let (state, selected) = select(session, &arguments.positional, arguments.state.as_deref())?;
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
            Err(error) => {
                return Err(Failure::new(
                    "Invalid identity in state",
                    format!("{address}: {error}."),
                ));
            }
        };
    }
    let document = Json::Object(identities.into_iter().collect());
    Ok(Outcome::document(&document))
}
