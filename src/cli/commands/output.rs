//! `output`.

use state::{OutputValue, State};
use syntax::content::{did_you_mean, suggest};
use syntax::{Diagnostic, SourceMap};
use views::diagnostics::{self, Form};
use views::json;
use views::plan::Shown;
use views::program;

use crate::args::UsageError;
use crate::args::flags::{self, Flags, FromFlags};
use crate::args::groups::state_to_read;
use crate::commands::Command;
use crate::runs;
use crate::session::{Session, Status};
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

fn run(session: &Session, arguments: &Arguments) -> Result<Status, UsageError> {
    let names = &arguments.positional;
    let (as_json, raw) = (arguments.json, arguments.raw);
    if names.len() > 1 {
        return Err(UsageError::new(
            "Unexpected argument",
            "Name one output value, or none to see all of them.",
        ));
    }
    if as_json && raw {
        return Err(UsageError::new(
            "Invalid output format",
            "The -raw and -json options are mutually-exclusive.",
        ));
    }
    if raw && names.is_empty() {
        return Err(UsageError::new(
            "Output name required",
            "With -raw the value of one output is printed, so its name must follow.",
        ));
    }
    let state = match current_state(session, arguments.state.as_deref()) {
        Ok(state) => state,
        Err(status) => return Ok(status),
    };
    let Some(name) = names.first() else {
        return Ok(all(session, &state, as_json));
    };
    let Some(output) = state.outputs.get(&**name) else {
        if state.outputs.is_empty() && as_json {
            return Ok(session.fail("No outputs found", no_outputs()));
        }
        return Ok(session.fail(
            format!("Output \"{name}\" not found"),
            format!(
                "The state has no output value of this name. An output block that is new in the configuration gets \
                 its value with the next \"{} apply\".{}",
                program::command(),
                did_you_mean(suggest(name, state.outputs.keys().map(|name| &**name)))
            ),
        ));
    };
    Ok(one(session, name, output, as_json, raw))
}

fn no_outputs() -> String {
    let command = program::command();
    format!(
        "The state has no output values: the configuration has no output blocks, or they were never applied. \
         \"{command} apply\" stores the values of output blocks in the state."
    )
}

fn all(session: &Session, state: &State, as_json: bool) -> Status {
    if as_json {
        let outputs: serde_json::Map<String, serde_json::Value> = state
            .outputs
            .iter()
            .map(|(name, o)| (name.to_string(), json::values::output(&o.value, o.sensitive, false)))
            .collect();
        session.ui.exact_line(cty::json::to_text(&outputs.into(), Some(2)));
        return 0;
    }
    if state.outputs.is_empty() {
        // It stands in the place of the list, where scripts look for it.
        let problem = Diagnostic::warning("No outputs found", no_outputs());
        diagnostics::show(&session.ui, &problem.into(), &SourceMap::default(), Form::default());
        return 0;
    }
    session.ui.out(listing(state, session.shown));
    0
}

fn one(session: &Session, name: &str, output: &OutputValue, as_json: bool, raw: bool) -> Status {
    let value = &output.value;
    if as_json {
        return match cty::json::to_simple_json(value) {
            Ok(json) => {
                session.ui.exact_line(cty::json::to_text(&json, None));
                0
            }
            Err(e) => session.fail("Cannot show output value", e.to_string()),
        };
    }
    if raw {
        let fails = |what: &str| {
            session.fail(
                "Unsupported value for raw output",
                format!(
                    "The output value \"{name}\" is {what}, and -raw prints only what has one plain text form: a \
                     string, a number or a bool. Use -json for all others."
                ),
            )
        };
        if value.is_null() {
            return fails("null");
        }
        if !value.is_known() {
            return fails("not known");
        }
        return match cty::convert(value, &cty::Type::String) {
            Ok(text) => {
                session.ui.out_bytes(text.as_str().unwrap_or_default().as_bytes());
                0
            }
            Err(_) => fails(&value.ty().friendly_name()),
        };
    }
    session.ui.line(lang::render::format_value(value, 0));
    0
}

/// All outputs, a line or more each; sensitive ones hidden, unless they are to be shown.
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

/// A state with nothing but outputs, from a server that tells them by themselves.
fn outputs_alone(session: &Session) -> Result<Option<State>, Status> {
    if !runs::hosted::may_be(session) {
        return Ok(None);
    }
    let (project, problems) = workdir::read(session);
    if problems.has_errors() {
        // Whoever reads the state reports them.
        return Ok(None);
    }
    match runs::outputs::current(session, &project.config) {
        Ok(outputs) => Ok(outputs.map(|outputs| {
            let mut state = State::new();
            state.outputs = outputs;
            state
        })),
        Err(problems) => {
            session.show(&problems, &project.sources);
            Err(1)
        }
    }
}

/// The state of the selected workspace, or that of the file a flag names; empty if there is none.
pub fn current_state(session: &Session, path: Option<&str>) -> Result<State, Status> {
    if path.is_none()
        && let Some(state) = outputs_alone(session)?
    {
        return Ok(state);
    }
    state_session::read(session, path).map(Option::unwrap_or_default)
}
