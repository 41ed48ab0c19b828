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
    details: "Shows a state file or a saved plan in a form for people. Without a path, the current state. With -json, \
              also shows the configuration or one module.",
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
    /// True if the configuration is shown.
    config: bool,
    /// Directory of a module that is shown without the modules that it calls.
    module: Option<String>,
}

impl FromFlags for Arguments {
    fn read(flags: &mut Flags<'_>) -> Arguments {
        flags.json_into();
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
            config: flags.switch(
                "config",
                false,
                "Show the configuration of the working directory. Requires -json.",
            ),
            module: flags.value(
                "module",
                "DIR",
                "Show the module in this directory alone: nothing has to be installed. Requires -json.",
            ),
        }
    }
}

fn run(session: &Session, arguments: &Arguments) -> Result<Outcome, Failure> {
    one_subject(arguments)?;
    if arguments.config || arguments.module.is_some() {
        return show_configuration(session, arguments);
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

/// Checks that the arguments name at most one thing to show.
fn one_subject(arguments: &Arguments) -> Result<(), Failure> {
    if arguments.positional.len() > 1 {
        return Err(Failure::usage(
            "Too many command line arguments",
            "Expected at most one positional argument.",
        ));
    }
    let chosen = [
        arguments.state,
        arguments.plan.is_some(),
        arguments.config,
        arguments.module.is_some(),
        !arguments.positional.is_empty(),
    ];
    if chosen.into_iter().filter(|chosen| *chosen).count() > 1 {
        return Err(Failure::usage(
            "Incompatible options",
            "The options -state, -plan, -config and -module and a path each say what is shown. Use one of them.",
        ));
    }
    Ok(())
}

/// Shows the configuration, or one module of it.
fn show_configuration(session: &Session, arguments: &Arguments) -> Result<Outcome, Failure> {
    if !arguments.json {
        return Err(Failure::usage(
            "JSON output required",
            "The options -config and -module show a document for programs. Add -json.",
        ));
    }
    if session.invocation.shown.form == Form::Summary {
        return Err(Failure::usage(
            "Incompatible options",
            "The option -summary is about plans. It cannot be used with -config or -module.",
        ));
    }
    let document = match &arguments.module {
        Some(dir) => json::configuration::module_alone(&workdir::load_alone(session, dir)?.config),
        None => {
            let (project, problems) = workdir::read(session);
            if problems.has_errors() {
                return Err(Failure::within(problems, &project.sources));
            }
            if !workdir::has_configuration() {
                return Err(Failure::new(
                    "No configuration files",
                    "The working directory has no configuration files, so there is no configuration to show.",
                ));
            }
            let schemas = all_schemas(session, &project.config, &State::new()).within(&project.sources)?;
            json::configuration::whole(&project.config, &schemas)
        }
    };
    Ok(Outcome::exact(cty::json::to_text(&document, None) + "\n"))
}

fn show_state(session: &Session, state: Option<State>, as_json: bool) -> Result<Outcome, Failure> {
    let Some(state) = state else {
        let document = || Outcome::exact(format!("{{\"format_version\":\"{}\"}}\n", json::STATE_FORMAT));
        return Ok(match as_json {
            true => document(),
            false => session.with_document(Outcome::line("No state."), document),
        });
    };
    let schemas = state_schemas(session, &state)?;
    let document = || {
        let document = json::state::state_document(&state, Some(&schemas), core_version());
        Outcome::exact(cty::json::to_text(&document, None) + "\n")
    };
    if as_json {
        return Ok(document());
    }
    let style = session.invocation.shown.style(&session.ui);
    let text = Outcome::text(views::diff::state_text(&state, &schemas, style));
    Ok(session.with_document(text, document))
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
    let document = || {
        let document = json::plan::document(&saved.plan, &loaded.config, &schemas, core_version());
        Outcome::exact(cty::json::to_text(&document, None) + "\n")
    };
    if as_json {
        return Ok(document());
    }
    views::plan::show(&session.ui, saved.plan.view(), &schemas, session.invocation.shown);
    Ok(session.with_document(Outcome::success(), document))
}
