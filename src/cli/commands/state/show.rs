//! `state show`.

use state::State;

use super::{nearest, no_state};
use crate::args::matches::Given;
use crate::args::{UsageError, flags};
use crate::commands::Command;
use crate::commands::output::found_state;
use crate::commands::show::state_schemas;
use crate::session::{Session, Status};
use crate::views;

pub const COMMAND: Command = Command {
    path: "state show",
    about: "Show a resource in the state",
    positional: "ADDRESS",
    declare: || {
        let command = flags::command("show", "Shows the attributes of one resource instance in the state.");
        flags::positional(command, "args").arg(flags::value(
            "state",
            "PATH",
            "The state file to read, in place of the working directory's.",
        ))
    },
    refused: &[],
    run,
};

fn run(session: &Session, given: &Given) -> Result<Status, UsageError> {
    let names = given.values("args");
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
    let state = match found_state(session, given) {
        Ok(Some(state)) => state,
        Ok(None) => return Ok(no_state(session)),
        Err(status) => return Ok(status),
    };
    let containing = address.containing_resource();
    let (Some(object), Some(kept)) = (state.current(&address), state.resources.get(&containing)) else {
        return Ok(session.fail(
            "No instance found for the given address!",
            format!(
                "This command requires that the address references one specific instance. To view the available instances, use \
                 \"state list\".{}",
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
