//! The command `state show`, which shows an object in the state.

use serde_json::{Value as Json, json};
use state::State;
use syntax::{Diagnostic, Diagnostics, SourceMap};
use views::json;

use super::{nearest, no_state};
use crate::args::flags::{self, Flags, FromFlags};
use crate::args::groups::{VariableFlags, state_to_read};
use crate::commands::Command;
use crate::commands::show::state_schemas;
use crate::outcome::{Failure, Outcome};
use crate::session::Session;
use crate::{state_addresses, state_session, workdir};

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
    at: Option<String>,
    json: bool,
}

impl FromFlags for Arguments {
    fn read(flags: &mut Flags<'_>) -> Arguments {
        flags.show_sensitive();
        flags.json_into();
        VariableFlags::read(flags);
        Arguments {
            positional: flags.positional(),
            state: state_to_read(flags),
            at: flags.value(
                "at",
                "RUN",
                "Show the object as it was after this run, whose number \"state history\" lists.",
            ),
            json: flags.switch("json", false, "Output the object as JSON."),
        }
    }
}

fn run(session: &Session, arguments: &Arguments) -> Result<Outcome, Failure> {
    let names = &arguments.positional;
    let [name] = names.as_slice() else {
        return Err(Failure::usage(
            "Required argument missing",
            "Give exactly one argument: the address of one resource instance.",
        ));
    };
    let earlier = earlier(session, arguments)?;
    if arguments.json {
        return Ok(show_json(session, arguments, earlier, name));
    }
    let text = show_text(session, arguments, earlier.clone(), name).unwrap_or_else(Outcome::from);
    Ok(session.with_document(text, || show_json(session, arguments, earlier, name)))
}

fn show_text(session: &Session, arguments: &Arguments, earlier: Option<State>, name: &str) -> Result<Outcome, Failure> {
    let state = match earlier {
        Some(state) => state,
        None => state_session::read(session, arguments.state.as_deref())?.ok_or_else(|| no_state(session))?,
    };
    let shown = only(session, &state, name).and_then(|only| Ok((state_schemas(session, &only)?, only)));
    let (schemas, only) = shown?;
    let style = session.invocation.shown.style(&session.ui);
    let text = views::diff::state_text(&only, &schemas, style);
    Ok(Outcome::text(text))
}

/// Returns the state after the run that `-at` names; `None` without the flag.
fn earlier(session: &Session, arguments: &Arguments) -> Result<Option<State>, Failure> {
    let Some(run) = &arguments.at else { return Ok(None) };
    if arguments.state.is_some() {
        return Err(Failure::usage(
            "Incompatible options",
            "The option -at is about the history of the backend, and -state names a file, which has none.",
        ));
    }
    let run = state_session::run_number(run)?;
    let (store, workspace) = state_session::with_history(session)?;
    let codec = session.stores().encryption.states()?;
    Ok(Some(store.state_at(&workspace, run, &codec)?))
}

/// Returns a state with a single instance, so that only its provider is needed for showing it.
fn only(session: &Session, state: &State, name: &str) -> Result<State, Diagnostics> {
    let address = addrs::parse::resource_instance(name)
        .map_err(|e| Diagnostic::error(format!("Error parsing instance address: {name}"), e.detail))?;
    let kept = state.resources.get(&address.containing_resource());
    let (Some(object), Some(kept)) = (state.current(&address), kept) else {
        return Err(Diagnostic::error(
            "No instance found for the given address!",
            format!(
                "The address must be that of one instance that is in the state. \"state list\" prints all of them.{}",
                nearest(state, name)
            ),
        )
        .into());
    };
    let mut only = State::new();
    only.set_current(&address, &kept.provider, Some(object.clone()));
    state_addresses::translate(session, &workdir::read(session).0.config, &mut only);
    Ok(only)
}

/// Returns the document of one instance, including diagnostics.
fn show_json(session: &Session, arguments: &Arguments, earlier: Option<State>, name: &str) -> Outcome {
    let found = || -> Result<Json, Diagnostics> {
        let state = match earlier {
            Some(state) => state,
            None => state_session::read_leniently(session, arguments.state.as_deref())?
                .ok_or_else(|| Diagnostic::error("No state file was found!", "The working directory has no state."))?,
        };
        let only = only(session, &state, name)?;
        let schemas = state_schemas(session, &only)?;
        Ok(json::state::single_object(&only, &schemas))
    };
    let (resource, problems) = match found() {
        Ok(resource) => (resource, Diagnostics::new()),
        Err(problems) => (json!({ "provider_name": "", "schema_version": 0 }), problems),
    };
    let document = json!({
        "format_version": "1.0",
        "resource": resource,
        "diagnostics": json::diagnostics::list(&problems, &SourceMap::default()),
    });
    Outcome::document(&document).with_status(u8::from(problems.has_errors()))
}
