//! `graph`: renders the dependencies of resources, or of everything that an operation evaluates.

use std::path::Path;

use config::Config;
use config::values::{self, VariableValues};
use engine::graph::{self, Operation};
use engine::plan::{Mode, Plan};
use provider::Schemas;
use state::State;
use syntax::content::{did_you_mean, suggest};
use syntax::{Diagnostic, Diagnostics};
use views::graph::{self as view, Format};
use views::graph_page;
use views::json;

use crate::VERSION;
use crate::args::flags::{self, Flags, FromFlags};
use crate::args::groups::VariableFlags;
use crate::commands::show::all_schemas;
use crate::commands::{Command, no_positional};
use crate::outcome::{Failure, Outcome, Within as _};
use crate::session::Session;
use crate::workdir::{self, Project};

pub const COMMAND: Command = Command {
    path: "graph",
    about: "Generate a graph of what depends on what",
    positional: "",
    details: "Writes the dependency graph in the language of a program that draws it. By default, it has the resources of the \
      configuration and the order among them. With -type, it has everything that an operation evaluates. With -json, it is a \
      document of nodes and edges, for a program.",
    declare: flags::declare::<Arguments>,
    refused: &[],
    run: |session, matches| run(session, &flags::read(matches)),
};

struct Arguments {
    positional: Vec<String>,
    plan: Option<String>,
    kind: Option<String>,
    format: String,
    json: bool,
    draw_cycles: bool,
    verbose: bool,
}

impl FromFlags for Arguments {
    fn read(flags: &mut Flags<'_>) -> Arguments {
        flags.value(
            "module-depth",
            "N",
            "Has no effect: older versions left out what was deeper.",
        );
        VariableFlags::read(flags);
        Arguments {
            positional: flags.positional(),
            plan: flags.value(
                "plan",
                "FILE",
                "Show the graph of applying this saved plan: -type=apply.",
            ),
            kind: flags.value(
                "type",
                "TYPE",
                "Show everything that an operation evaluates: plan, plan-refresh-only, plan-destroy or apply.",
            ),
            format: flags.value_or("format", "FORMAT", "dot", "The language of the graph: dot, mermaid, or html for a page on which a saved plan can be reviewed."),
            json: flags.switch(
                "json",
                false,
                "Output the nodes and edges as JSON; with -plan and without -type, the resources with what the plan does to them.",
            ),
            draw_cycles: flags.switch(
                "draw-cycles",
                false,
                "With -type, draw cycles in red, where they would be errors otherwise.",
            ),
            verbose: flags.switch(
                "verbose",
                false,
                "With -type, also draw the nodes that only end the use of a provider.",
            ),
        }
    }
}

/// Content of the graph: the resources, unless an operation is named.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Resources,
    Plan(Mode),
    Apply,
}

impl Kind {
    fn from_arguments(arguments: &Arguments) -> Result<Kind, Diagnostic> {
        Ok(match arguments.kind.as_deref() {
            // With a plan, the default is -type=apply, as in Terraform. With -json, the default is the resources, to each of which the plan
            // adds its action.
            None | Some("") if arguments.plan.is_none() || arguments.json => Kind::Resources,
            None | Some("" | "apply") => Kind::Apply,
            Some("plan") => Kind::Plan(Mode::Normal),
            Some("plan-refresh-only") => Kind::Plan(Mode::RefreshOnly),
            Some("plan-destroy") => Kind::Plan(Mode::Destroy),
            Some(old @ ("eval" | "validate")) => {
                return Err(Diagnostic::error(
                    "Graph type no longer available",
                    format!(
                        "Terraform had the type \"{old}\" before version 1.1. The type \"plan\" shows nearly the same."
                    ),
                ));
            }
            Some(other) => {
                return Err(Diagnostic::error(
                    "Unsupported graph type",
                    format!(
                        "The types are plan, plan-refresh-only, plan-destroy and apply, and not \"{other}\".{}",
                        did_you_mean(suggest(other, ["plan", "plan-refresh-only", "plan-destroy", "apply"]))
                    ),
                ));
            }
        })
    }
}

/// Input of a graph: configuration, state, plan, schemas and variables.
pub(super) struct Subject {
    pub project: Project,
    pub state: State,
    pub plan: Option<Plan>,
    pub schemas: Schemas,
    /// Values of root variables with their sources; empty for a saved plan, which does not say where they were set.
    pub values: VariableValues,
}

fn run(session: &Session, arguments: &Arguments) -> Result<Outcome, Failure> {
    no_positional(&arguments.positional, "graph")?;
    let format = match arguments.format.as_str() {
        "dot" => Some(Format::Dot),
        "mermaid" => Some(Format::Mermaid),
        // `page` renders the HTML page, which shows resources only.
        "html" => None,
        other => {
            return Err(Failure::new(
                "Unsupported graph format",
                format!(
                    "The formats are dot, mermaid and html, and not \"{other}\".{}",
                    did_you_mean(suggest(other, ["dot", "mermaid", "html"]))
                ),
            ));
        }
    };
    if format.is_none() && arguments.kind.as_deref().is_some_and(|kind| !kind.is_empty()) {
        return Err(Failure::usage(
            "Incompatible options",
            "The page of -format=html has the resources only. Use -type with one of the other formats.",
        ));
    }
    if arguments.json && arguments.format != "dot" {
        return Err(Failure::usage(
            "Incompatible options",
            "The option -json is a format of its own: leave out -format.",
        ));
    }
    let kind = Kind::from_arguments(arguments)?;
    let subject = match &arguments.plan {
        Some(path) => of_saved_plan(session, Path::new(path)),
        None => of_directory(session),
    };
    let subject = subject?;
    let text = match format {
        Some(_) if arguments.json => document(&subject, arguments, kind)
            .map(|(json, problems)| (cty::json::to_text(&json, Some(2)) + "\n", problems)),
        Some(format) => draw(&subject, arguments, &kind, format, session.ui.program.command),
        None => page(session, arguments, &subject),
    };
    let (text, problems) = text.within(&subject.project.sources)?;
    Ok(Outcome::success()
        .and_problems(problems, &subject.project.sources)
        .and_text(text))
}

/// Returns the graph as a page, with warnings.
fn page(session: &Session, arguments: &Arguments, subject: &Subject) -> Result<(String, Diagnostics), Diagnostics> {
    let (resources, problems) = graph::resources(&subject.project.config, &subject.schemas, &subject.state)?;
    let file = arguments.plan.clone().unwrap_or_default();
    let file = views::command_line::joined(&[file]);
    let explain = format!("{} explain -plan={file} ", session.ui.program.command);
    let changes = subject.plan.as_ref().map(|plan| graph_page::Changes {
        plan,
        schemas: &subject.schemas,
        style: session.invocation.shown.style(&session.ui),
        explain: &explain,
    });
    Ok((graph_page::page(&resources, changes), problems))
}

/// Returns the graph as a JSON document, with warnings.
fn document(
    subject: &Subject,
    arguments: &Arguments,
    kind: Kind,
) -> Result<(serde_json::Value, Diagnostics), Diagnostics> {
    let (config, schemas, state) = (&subject.project.config, &subject.schemas, &subject.state);
    let operation = match kind {
        Kind::Resources => {
            let (resources, problems) = graph::resources(config, schemas, state)?;
            return Ok((json::graph::resources(&resources, subject.plan.as_ref()), problems));
        }
        Kind::Plan(mode) => Operation::Plan(mode),
        Kind::Apply => Operation::Apply(subject.plan.as_ref()),
    };
    let (drawn, problems) = graph::operation(config, schemas, state, operation, arguments.draw_cycles)?;
    Ok((json::graph::operation(&drawn), problems))
}

/// Returns the graph in DOT or Mermaid, with warnings.
fn draw(
    subject: &Subject,
    arguments: &Arguments,
    kind: &Kind,
    format: Format,
    command: &str,
) -> Result<(String, Diagnostics), Diagnostics> {
    let Subject {
        project,
        state,
        plan,
        schemas,
        ..
    } = subject;
    let config: &Config = &project.config;
    let operation = match kind {
        Kind::Resources => {
            let (resources, problems) = graph::resources(config, schemas, state)?;
            return Ok((view::resources(&resources, format, command), problems));
        }
        Kind::Plan(mode) => Operation::Plan(*mode),
        Kind::Apply => Operation::Apply(plan.as_ref()),
    };
    let (drawn, problems) = graph::operation(config, schemas, state, operation, arguments.draw_cycles)?;
    Ok((view::operation(&drawn, format, arguments.verbose), problems))
}

/// Loads the configuration of the working directory, with the state of the workspace.
pub(super) fn of_directory(session: &Session) -> Result<Subject, Failure> {
    let mut project = workdir::load(session)?;
    // Variables that are not set need no value here.
    let collected = values::collect(&project.config.root.module.clone(), &session.set_variables());
    project.sources.extend(collected.sources);
    let state = stores::backend::selected(&session.stores(), Some(&project.config))
        .and_then(|location| stores::session::read_source(&session.stores(), &location.source()))
        .map(Option::unwrap_or_default);
    let known = match (collected.diagnostics.has_errors(), state) {
        (true, _) => Err(collected.diagnostics),
        (false, state) => state.and_then(|state| Ok((all_schemas(session, &project.config, &state)?, state))),
    };
    let (schemas, state) = known.within(&project.sources)?;
    Ok(Subject {
        project,
        state,
        plan: None,
        schemas,
        values: collected.values,
    })
}

/// Loads the configuration and the prior state of a saved plan.
pub(super) fn of_saved_plan(session: &Session, path: &Path) -> Result<Subject, Failure> {
    let saved = stores::planfile::read(path, VERSION, session.ui.program, &session.plan_codec()?)?;
    let loaded = workdir::load_planned(session, &saved);
    let state = saved.plan.prior_state.clone();
    let schemas = match (loaded.diagnostics.has_errors(), saved.schemas) {
        (true, _) => Err(loaded.diagnostics),
        (false, Some(schemas)) => Ok(schemas),
        (false, None) => all_schemas(session, &loaded.config, &state),
    };
    let schemas = schemas.within(&loaded.sources)?;
    Ok(Subject {
        project: Project {
            config: loaded.config,
            sources: loaded.sources,
        },
        state,
        plan: Some(saved.plan),
        schemas,
        values: VariableValues::new(),
    })
}
