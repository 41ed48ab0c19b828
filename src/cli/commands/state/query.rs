//! `state query`: SQL on the views of the state.

use serde_json::{Value as Json, json};

use crate::args::flags::{self, Flags, FromFlags};
use crate::args::groups::VariableFlags;
use crate::commands::Command;
use crate::outcome::{Failure, Outcome};
use crate::session::Session;
use crate::state_session;

pub const COMMAND: Command = Command {
    path: "state query",
    about: "Query the state with SQL",
    positional: "SQL",
    details: "Runs one SELECT in a read-only transaction, with the rights of the backend's user, and prints the rows. The views \
              current_objects, public_objects, current_outputs, public_outputs and changes are described in \"help postgres\". For \
              the backend pg with layout = \"objects\". Values are shown as they are, sensitive ones, too, but for the views \
              public_objects and public_outputs.",
    declare: flags::declare::<Arguments>,
    refused: &[],
    run: |session, matches| run(session, &flags::read(matches)),
};

struct Arguments {
    positional: Vec<String>,
    json: bool,
}

impl FromFlags for Arguments {
    fn read(flags: &mut Flags<'_>) -> Arguments {
        VariableFlags::read(flags);
        Arguments {
            positional: flags.positional(),
            json: flags.switch("json", false, "Output the rows as JSON."),
        }
    }
}

fn run(session: &Session, arguments: &Arguments) -> Result<Outcome, Failure> {
    let [sql] = arguments.positional.as_slice() else {
        return Err(Failure::usage(
            "Required argument missing",
            "Give exactly one argument: the query, in quotes.",
        ));
    };
    let (store, workspace) = state_session::with_history(session)?;
    let found = store.query(&workspace, sql)?;
    if arguments.json {
        let document = json!({"format_version": "1.0", "columns": found.columns, "rows": found.rows});
        return Ok(Outcome::document(&document));
    }
    let mut outcome = Outcome::line(found.columns.join("\t"));
    for row in &found.rows {
        let cells: Vec<String> = row.iter().map(cell).collect();
        outcome = outcome.and_line(cells.join("\t"));
    }
    Ok(outcome)
}

/// Returns a value on one line: strings without quotes, but with escaped tabs and line breaks, which separate cells and rows.
fn cell(value: &Json) -> String {
    match value {
        Json::Null => String::new(),
        Json::String(text) => text.replace('\\', "\\\\").replace('\t', "\\t").replace('\n', "\\n"),
        other => cty::json::to_text(other, None),
    }
}
