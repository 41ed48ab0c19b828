//! `state history`: the runs that have written the state.

use addrs::{Target, parse};
use serde_json::{Value as Json, json};
use stores::backend::history::{Change, Run, Subject};

use super::edit;
use crate::args::flags::{self, Flags, FromFlags};
use crate::args::groups::VariableFlags;
use crate::commands::Command;
use crate::outcome::{Failure, Outcome};
use crate::session::Session;
use crate::state_session;

pub const COMMAND: Command = Command {
    path: "state history",
    about: "List the runs that have written the state",
    positional: "[ADDRESS]",
    details: "Lists the runs that have written the state, the newest first, with the objects and outputs that each has created (+), \
              changed (~) and removed (-): all runs, or those that changed the resource or the instance of the address. For the \
              backend pg with layout = \"objects\", which keeps the history.",
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
            json: flags.switch("json", false, "Output the runs as JSON."),
        }
    }
}

fn run(session: &Session, arguments: &Arguments) -> Result<Outcome, Failure> {
    let subject = match arguments.positional.as_slice() {
        [] => None,
        [address] => Some(subject(address)?),
        _ => {
            return Err(Failure::usage(
                "Too many command line arguments",
                "Expected at most one address.",
            ));
        }
    };
    let (store, workspace) = state_session::with_history(session)?;
    let runs = store.runs(&workspace, subject.as_ref())?;
    if arguments.json {
        let document = json!({
            "format_version": "1.0",
            "runs": runs.iter().map(document).collect::<Vec<_>>(),
        });
        return Ok(Outcome::document(&document));
    }
    if runs.is_empty() {
        return Ok(Outcome::line("No run has written this."));
    }
    let mut outcome = Outcome::success();
    for run in &runs {
        outcome = outcome.and_line(format!(
            "Run {}: {} by {}, {}, {}",
            run.run,
            operation(&run.operation),
            run.who,
            run.started_at,
            run.result
        ));
        for change in &run.changes {
            outcome = outcome.and_line(format!("  {} {}", sign(change), shown(change)));
        }
    }
    Ok(outcome)
}

/// Parses the address of a resource or of one of its instances.
fn subject(text: &str) -> Result<Subject, Failure> {
    match edit::address(text)? {
        Target::ResourceInstance(instance) => Ok(Subject::Instance(instance)),
        Target::Resource(resource) => Ok(Subject::Resource(resource)),
        // Without keys, the address of a resource in a module may mean all instances of the module.
        Target::ConfigResource(_) | Target::Module(_) | Target::ModuleInstance(_) => {
            match parse::resource_instance(text) {
                Ok(instance) => Ok(Subject::Resource(instance.containing_resource())),
                Err(e) => Err(Failure::new(e.summary, e.detail)),
            }
        }
    }
}

/// Returns the operation of a lock for display: `apply` for `OperationTypeApply`.
fn operation(name: &str) -> String {
    match name.strip_prefix("OperationType") {
        Some(operation) => operation.to_lowercase(),
        None if name.is_empty() => "write without a lock".to_owned(),
        None => name.to_owned(),
    }
}

fn sign(change: &Change) -> char {
    match &*change.action {
        "create" => '+',
        "delete" => '-',
        _ => '~',
    }
}

fn shown(change: &Change) -> String {
    match &*change.deposed {
        "" => change.address(),
        deposed => format!("{} (deposed object {deposed})", change.address()),
    }
}

fn document(run: &Run) -> Json {
    let changes = run.changes.iter().map(|change| {
        let mut out = json!({"kind": change.kind, "address": change.address(), "action": change.action});
        if !change.deposed.is_empty() {
            out["deposed"] = change.deposed.clone().into();
        }
        out
    });
    json!({
        "run": run.run,
        "operation": operation(&run.operation),
        "who": run.who,
        "program_version": run.program_version,
        "started_at": run.started_at,
        "result": run.result,
        "serial": run.serial,
        "changes": changes.collect::<Vec<_>>(),
    })
}
