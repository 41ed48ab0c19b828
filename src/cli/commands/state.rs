//! `state list` and `state show`.

use addrs::AbsResourceInstance;
use state::State;

use crate::args::matches::Given;
use crate::args::{UsageError, flags};
use crate::commands::Command;
use crate::commands::output::found_state;
use crate::commands::show::state_schemas;
use crate::session::{Session, Status};
use crate::views;

pub const LIST: Command = Command {
    path: "state list",
    about: "List resources in the state",
    positional: "[ADDRESS...]",
    declare: || {
        let command = flags::command(
            "list",
            "Lists the resource instances in the state: all, or those of the given addresses.",
        );
        flags::positional(command, "args")
            .arg(flags::value(
                "state",
                "PATH",
                "The state file to read, in place of the working directory's.",
            ))
            .arg(flags::value(
                "id",
                "ID",
                "List only instances whose object has this id.",
            ))
    },
    refused: &[],
    run: list,
};

pub const SHOW: Command = Command {
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
    run: show,
};

fn no_state(session: &Session) -> Status {
    let text = "No state file was found!\n\nState management commands require a state file. Run this command\nin a directory where \
                Monoform has been run or use the -state flag\nto point the command to a specific state location.";
    session.ui.err(format!("{}\n", session.ui.err_style().red(text)));
    1
}

fn list(session: &Session, given: &Given) -> Result<Status, UsageError> {
    let mut targets = Vec::new();
    for text in given.values("args") {
        match addrs::parse::target(&text) {
            Ok(target) => targets.push(target),
            Err(e) => return Ok(session.fail(e.summary, e.detail)),
        }
    }
    let state = match found_state(session, given) {
        Ok(Some(state)) => state,
        Ok(None) => return Ok(no_state(session)),
        Err(status) => return Ok(status),
    };
    let all: Vec<AbsResourceInstance> = state
        .instances()
        .map(|(resource, _, key, _)| resource.instance(key.clone()))
        .collect();
    for target in &targets {
        if !all.iter().any(|a| target.selects(a)) {
            return Ok(session.fail(
                "No instance found for the given address!",
                format!("The current state contains nothing that the address {target} selects."),
            ));
        }
    }
    for address in all {
        let selected = targets.is_empty() || targets.iter().any(|t| t.selects(&address));
        if selected && given.value("id").is_none_or(|id| has_id(&state, &address, id)) {
            session.ui.line(address.to_string());
        }
    }
    Ok(0)
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

fn show(session: &Session, given: &Given) -> Result<Status, UsageError> {
    let names = given.values("args");
    let [name] = names.as_slice() else {
        return Err(UsageError::new(
            "Exactly one argument expected",
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
            "This command requires that the address references one specific instance. To view the available instances, use \
             \"state list\".",
        ));
    };
    // Only this provider is needed.
    let mut only = State::new();
    only.set_current(&address, &kept.provider, Some(object.clone()));
    let schemas = match state_schemas(session, &only) {
        Ok(schemas) => schemas,
        Err(status) => return Ok(status),
    };
    let style = views::diff::Style { colour: session.ui.style().on, width: session.ui.width() };
    let text = views::diff::state_text(&only, &schemas, style);
    session.ui.out(text.strip_suffix('\n').unwrap_or(&text));
    Ok(0)
}
