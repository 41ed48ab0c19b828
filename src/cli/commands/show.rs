//! `show`: renders a saved plan or a state.

use std::path::Path;

use config::Config;
use hosted::bookmark::Bookmark;
use provider::Schemas;
use state::State;
use stores::planfile;
use syntax::Diagnostics;
use views::json;
use views::plan::{Form, Format, Verbosity};

use crate::args::flags::{self, Flags, FromFlags};
use crate::args::groups::VariableFlags;
use crate::commands::Command;
use crate::outcome::{Failure, Outcome, Within as _};
use crate::session::Session;
use crate::state_session;
use crate::{VERSION, core_version, workdir};

pub const COMMAND: Command = Command {
    path: "show",
    about: "Show the current state or a saved plan",
    positional: "[PATH]",
    details: "Shows a state file or a saved plan in a form for people. Without a path, the current state.",
    declare: flags::declare::<Arguments>,
    refused: &[],
    run: |session, matches| run(session, &flags::read(matches)),
};

struct Arguments {
    positional: Vec<String>,
    json: bool,
    /// True if the current state is named explicitly.
    state: bool,
    /// Path of a saved plan (`-plan`). Unlike the positional argument, it must not be a state file.
    plan: Option<String>,
}

impl FromFlags for Arguments {
    fn read(flags: &mut Flags<'_>) -> Arguments {
        VariableFlags::read(flags);
        flags.summary();
        flags.plan_format();
        flags.show_sensitive();
        Arguments {
            positional: flags.positional(),
            json: flags.switch(
                "json",
                false,
                "If specified, output the plan or the state in a machine-readable form.",
            ),
            state: flags.switch("state", false, "Show the current state, as without a path."),
            plan: flags.value(
                "plan",
                "PATH",
                "Show this saved plan. A file that is no plan is an error.",
            ),
        }
    }
}

fn run(session: &Session, arguments: &Arguments) -> Result<Outcome, Failure> {
    if arguments.positional.len() > 1 {
        return Err(Failure::usage(
            "Too many command line arguments",
            "Expected at most one positional argument.",
        ));
    }
    let named = usize::from(arguments.state) + usize::from(arguments.plan.is_some()) + arguments.positional.len();
    if named > 1 {
        return Err(Failure::usage(
            "Incompatible options",
            "The option -state, the option -plan and a path each say what is shown. Use one of them.",
        ));
    }
    let paths: Vec<&String> = arguments.plan.iter().chain(&arguments.positional).collect();
    let as_json = arguments.json;
    let shown = session.invocation.shown;
    // The content decides, not the name: plans and bookmarks can have any name.
    let of_plan = |path: &Path| Bookmark::is(path) || planfile::looks_like_plan(path);
    if shown.format == Format::Markdown
        && !paths
            .first()
            .is_some_and(|path| planfile::looks_like_plan(Path::new(path)))
    {
        return Err(Failure::usage(
            "Incompatible options",
            "The option -format=markdown is about plans in files of this machine. Name one that \"plan -out=FILE\" has written.",
        ));
    }
    let is_about_plans = shown.form == Form::Summary || shown.verbosity != Verbosity::Normal;
    if is_about_plans && !paths.first().is_some_and(|path| of_plan(Path::new(path))) {
        return Err(Failure::usage(
            "Incompatible options",
            "The options -summary and -verbosity are about plans. Name a saved plan that is to be shown.",
        ));
    }
    let Some(path) = paths.first().map(Path::new) else {
        let state = state_session::read(session, None)?;
        return show_state(session, state, as_json);
    };
    if Bookmark::is(path) {
        let (project, problems) = workdir::read(session);
        if problems.has_errors() {
            return Err(Failure::within(problems, &project.sources));
        }
        hosted::show::show(&session.hosted(), &project.config, path, as_json).within(&project.sources)?;
        return Ok(Outcome::success());
    }
    if planfile::looks_like_plan(path) {
        return show_plan(session, path, as_json);
    }
    if arguments.plan.is_some() {
        return Err(Failure::new(
            "Failed to read the given file as a plan file",
            format!("The file {} does not exist, or is no plan.", path.display()),
        ));
    }
    if !path.exists() {
        return Err(Failure::new(
            "Failed to read the given file as a state or plan file",
            format!("There is no file {}.", path.display()),
        ));
    }
    match state::store::read_copy(path, &session.state_codec()?) {
        Ok(None) => Err(Failure::new(
            "Failed to read the given file as a state or plan file",
            format!("The file {} is empty.", path.display()),
        )),
        Ok(state) => show_state(session, state, as_json),
        Err(e) => Err(Failure::new(
            "Failed to read the given file as a state or plan file",
            e.to_string(),
        )),
    }
}

fn show_state(session: &Session, state: Option<State>, as_json: bool) -> Result<Outcome, Failure> {
    let Some(state) = state else {
        let text = if as_json {
            format!("{{\"format_version\":\"{}\"}}", "1.0")
        } else {
            "No state.".into()
        };
        return Ok(Outcome::line(text));
    };
    let schemas = state_schemas(session, &state)?;
    if as_json {
        let document = json::state::state_document(&state, Some(&schemas), core_version());
        return Ok(Outcome::exact(cty::json::to_text(&document, None) + "\n"));
    }
    let style = session.invocation.shown.style(&session.ui);
    Ok(Outcome::text(views::diff::state_text(&state, &schemas, style)))
}

/// Fetches the schemas of the providers of a configuration and of a state.
pub fn all_schemas(session: &Session, config: &Config, state: &State) -> Result<Schemas, Diagnostics> {
    let plugins = session.plugins()?;
    plugins.resolve(config, state)?;
    let failed = session.runtime()?.block_on(plugins.ask_all(Some(config), state));
    failed.into_result(plugins.schemas())
}

/// Fetches the schemas of the providers of a state's objects.
pub fn state_schemas(session: &Session, state: &State) -> Result<Schemas, Diagnostics> {
    // A state can be shown even if the configuration has errors.
    let (project, _) = workdir::read(session);
    let plugins = session.plugins()?;
    let needed: std::collections::BTreeSet<_> = state.resources.values().map(|r| r.provider.provider.clone()).collect();
    // The version constraints apply if the configuration can be loaded.
    if let Ok(all) = crate::plugin_source::requirements(&project.config, state) {
        let ours = all.into_iter().filter(|(p, _)| needed.contains(p)).collect();
        plugins.resolve_only(&ours)?;
    }
    let failed = session.runtime()?.block_on(plugins.ask_all(None, state));
    failed.into_result(plugins.schemas())
}

fn show_plan(session: &Session, path: &Path, as_json: bool) -> Result<Outcome, Failure> {
    let saved = planfile::read(path, VERSION, session.ui.program, &session.plan_codec()?)?;
    let loaded = workdir::load_planned(session, &saved);
    if loaded.diagnostics.has_errors() {
        return Err(Failure::within(loaded.diagnostics, &loaded.sources));
    }
    let schemas = match saved.schemas {
        Some(schemas) => schemas,
        // The plan was saved by a version of this program that did not store schemas in plans.
        None => all_schemas(session, &loaded.config, &saved.plan.prior_state).within(&loaded.sources)?,
    };
    if as_json && session.invocation.shown.form == Form::Summary {
        return Ok(Outcome::document(&json::summary::document(saved.plan.view())));
    }
    if as_json {
        let document = json::plan::document(&saved.plan, &loaded.config, &schemas, core_version());
        return Ok(Outcome::exact(cty::json::to_text(&document, None) + "\n"));
    }
    views::plan::show(&session.ui, saved.plan.view(), &schemas, session.invocation.shown);
    Ok(Outcome::success())
}
