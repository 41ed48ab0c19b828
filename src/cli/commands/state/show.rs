//! `state show`.

use state::State;

use super::{nearest, no_state};
use crate::args::UsageError;
use crate::args::flags::{self, Flags, FromFlags};
use crate::args::groups::state_to_read;
use crate::commands::Command;
use crate::commands::show::state_schemas;
use crate::session::{Session, Status};
use crate::state_session;
use crate::views;

pub const COMMAND: Command = Command {
    path: "state show",
    about: "Show a resource in the state",
    positional: "ADDRESS",
    details: "Shows the attributes of one resource instance in the state.",
    declare: flags::declare::<Arguments>,
    refused: &[],
    run: |session, matches| run(session, &flags::read(matches)),
};

struct Arguments {
    positional: Vec<String>,
    state: Option<String>,
}

impl FromFlags for Arguments {
    fn read(flags: &mut Flags<'_>) -> Arguments {
        Arguments {
            positional: flags.positional(),
            state: state_to_read(flags),
        }
    }
}

fn run(session: &Session, arguments: &Arguments) -> Result<Status, UsageError> {
    let names = &arguments.positional;
    let [name] = names.as_slice() else {
        return Err(UsageError::new(
            "Exactly one argument expected.",
            "Give the address of one resource instance.",
        ));
    };
    let address = match addrs::parse::resource_instance(name) {
        Ok(address) => address,
        Err(e) => return Ok(session.fail(format!("Error parsing instance address: {name}"), e.detail)),
    };
    let state = match state_session::read(session, arguments.state.as_deref()) {
        Ok(Some(state)) => state,
        Ok(None) => return Ok(no_state(session)),
        Err(status) => return Ok(status),
    };
    let containing = address.containing_resource();
    let (Some(object), Some(kept)) = (state.current(&address), state.resources.get(&containing)) else {
        return Ok(session.fail(
            "No instance found for the given address!",
            format!(
                "The address must be that of one instance that is in the state. \"state list\" prints all of them.{}",
                nearest(&state, name)
            ),
        ));
    };
    // Only this provider is needed.
    let mut only = State::new();
    only.set_current(&address, &kept.provider, Some(object.clone()));
    let schemas = match state_schemas(session, &only) {
        Ok(schemas) => schemas,
        Err(status) => return Ok(status),
    };
    let style = views::diff::Style {
        colour: session.ui.style().on,
        width: session.ui.width(),
    };
    let text = views::diff::state_text(&only, &schemas, style);
    session.ui.out(text);
    Ok(0)
}
