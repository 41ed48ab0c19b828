//! The command `output`, which shows the output values of the root module.

use state::{OutputValue, State};
use syntax::content::{did_you_mean, suggest};
use syntax::{Diagnostic, SourceMap};
use views::diagnostics::{self, Layout};
use views::json;
use views::plan::Shown;

use crate::args::flags::{self, Flags, FromFlags};
use crate::args::groups::{VariableFlags, state_to_read};
use crate::commands::Command;
use crate::outcome::{Failure, Outcome, Within as _};
use crate::session::Session;
use crate::{state_session, workdir};

pub const COMMAND: Command = Command {
    path: "output",
    about: "Show output values from your root module",
    positional: "[NAME]",
    details: "Shows the output values of the root module as the state has them.",
    declare: flags::declare::<Arguments>,
    refused: &[],
    run: |session, matches| run(session, &flags::read(matches)),
};

struct Arguments {
    positional: Vec<String>,
    state: Option<String>,
    json: bool,
    raw: bool,
}

impl FromFlags for Arguments {
    fn read(flags: &mut Flags<'_>) -> Arguments {
        flags.show_sensitive();
        flags.json_into();
        VariableFlags::read(flags);
        Arguments {
            positional: flags.positional(),
            state: state_to_read(flags),
            json: flags.switch("json", false, "Print the values as JSON."),
            raw: flags.switch(
                "raw",
                false,
                "Print the value of one output of a primitive type as it is, without quotes.",
            ),
        }
    }
}

fn run(session: &Session, arguments: &Arguments) -> Result<Outcome, Failure> {
    let names = &arguments.positional;
    let (as_json, raw) = (arguments.json, arguments.raw);
    if names.len() > 1 {
        return Err(Failure::usage(
            "Unexpected argument",
            "Name one output value, or none to see all of them.",
        ));
    }
    if as_json && raw {
        return Err(Failure::usage("Invalid output format", "Use either -raw or -json."));
    }
    if raw && names.is_empty() {
        return Err(Failure::usage(
            "Output name required",
            "With -raw the value of one output is printed, so its name must follow.",
        ));
    }
    let state = current_state(session, arguments.state.as_deref())?;
    let Some(name) = names.first() else {
        return Ok(all(session, &state, as_json));
    };
    let Some(output) = state.outputs.get(&**name) else {
        if state.outputs.is_empty() && as_json {
            return Err(Failure::new("No outputs found", no_outputs(session.ui.program.command)));
        }
        return Err(Failure::new(
            format!("Output \"{name}\" not found"),
            format!(
                "The state has no output value of this name. An output block that is new in the configuration gets \
                 its value with the next \"{} apply\".{}",
                session.ui.program.command,
                did_you_mean(suggest(name, state.outputs.keys().map(|name| &**name)))
            ),
        ));
    };
    if as_json {
        return document_of(output);
    }
    let text = one(name, output, raw)?;
    // An output that JSON cannot express is an error only where its document is the result.
    Ok(session.with_document(text, || document_of(output).unwrap_or_default()))
}

fn no_outputs(command: &str) -> String {
    format!(
        "The state has no output values: the configuration has no output blocks, or they were never applied. \
         \"{command} apply\" stores the values of output blocks in the state."
    )
}

fn all(session: &Session, state: &State, as_json: bool) -> Outcome {
    let document = || {
        let outputs: serde_json::Map<String, serde_json::Value> = state
            .outputs
            .iter()
            .map(|(name, o)| (name.to_string(), json::values::output(&o.value, o.sensitive, false)))
            .collect();
        Outcome::document(&outputs.into())
    };
    if as_json {
        return document();
    }
    if state.outputs.is_empty() {
        // The warning is written to standard output in place of the list, because scripts expect it there.
        let problem = Diagnostic::warning("No outputs found", no_outputs(session.ui.program.command));
        let layout = Layout {
            style: session.ui.style(),
            width: session.ui.width(),
            plain: session.ui.plain,
        };
        let text = Outcome::text(diagnostics::format(&problem, &SourceMap::default(), layout));
        return session.with_document(text, document);
    }
    session.with_document(Outcome::text(listing(state, session.invocation.shown)), document)
}

fn document_of(output: &OutputValue) -> Result<Outcome, Failure> {
    match cty::json::to_simple_json(&output.value) {
        Ok(json) => Ok(Outcome::exact(cty::json::to_text(&json, None) + "\n")),
        Err(e) => Err(Failure::new("Cannot show output value", e.to_string())),
    }
}

fn one(name: &str, output: &OutputValue, raw: bool) -> Result<Outcome, Failure> {
    let value = &output.value;
    if raw {
        let fails = |what: &str| {
            Failure::new(
                "Unsupported value for raw output",
                format!(
                    "The output value \"{name}\" is {what}, and -raw prints only what has one plain text form: a \
                     string, a number or a bool. Use -json for all others."
                ),
            )
        };
        if value.is_null() {
            return Err(fails("null"));
        }
        if !value.is_known() {
            return Err(fails("not known"));
        }
        // Without a line break: shells and files need the exact text.
        return match cty::convert(value, &cty::Type::String) {
            Ok(text) => Ok(Outcome::exact(text.as_str().unwrap_or_default())),
            Err(_) => Err(fails(&value.ty().friendly_name())),
        };
    }
    Ok(Outcome::line(lang::render::format_value(value, 0)))
}

/// Lists all outputs. Sensitive values are hidden, unless they are to be shown.
pub fn listing(state: &State, shown: Shown) -> String {
    let mut out = String::new();
    for (name, output) in &state.outputs {
        let value = if output.sensitive && !shown.sensitive {
            "<sensitive>".to_owned()
        } else {
            lang::render::format_value(&output.value, 0)
        };
        out.push_str(&format!("{name} = {value}\n"));
    }
    out
}

/// Returns a state with the outputs only, if the state is on a server that returns outputs separately; `None` otherwise, and if the
/// configuration has errors.
fn outputs_alone(session: &Session) -> Result<Option<State>, Failure> {
    if !hosted::workspace::may_be(session.env.data_dir()) {
        return Ok(None);
    }
    let (project, problems) = workdir::read(session);
    if problems.has_errors() {
        // Reading the state reports these errors.
        return Ok(None);
    }
    let outputs = hosted::outputs::current(&session.hosted(), &project.config).within(&project.sources)?;
    Ok(outputs.map(|outputs| {
        let mut state = State::new();
        state.outputs = outputs;
        state
    }))
}

/// Returns the state of the selected workspace, or of the file in the flag; empty if there is none.
pub fn current_state(session: &Session, path: Option<&str>) -> Result<State, Failure> {
    if path.is_none()
        && let Some(state) = outputs_alone(session)?
    {
        return Ok(state);
    }
    state_session::read(session, path).map(Option::unwrap_or_default)
}
