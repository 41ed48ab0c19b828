//! `init`: what must be installed is installed. Where nothing must, nothing is written.

use std::collections::BTreeMap;
use std::path::Path;

use addrs::Provider;
use packages::install::{How, InstallOptions, Installation, Outcome, Step};
use packages::places::Authentication;
use packages::selection::Selection;
use packages::signature::Standing;
use state::store::LocalStore;
use syntax::{Diagnostic, Diagnostics, SourceMap};
use versions::Constraints;

use crate::TERRAFORM_VERSION;
use crate::args::matches::Given;
use crate::args::{UsageError, flags};
use crate::backend;
use crate::backend::configure::configure;
use crate::commands::{Command, get, no_positional};
use crate::plugin_source::{origins, requirements};
use crate::program;
use crate::session::{Session, Status};
use crate::views::downloads;
use crate::workdir::{self, Project};

pub const COMMAND: Command = Command {
    path: "init",
    about: "Prepare your working directory for other commands",
    positional: "",
    declare: || {
        let command = flags::command(
            "init",
            "Prepares a working directory: installs what is neither local nor built in. A configuration whose modules are local \
             and whose plugins are built in needs no init.",
        );
        let command = flags::positional(flags::locking(flags::variables(command)), "args");
        command
            .arg(flags::switch(
                "json",
                false,
                "Tell what goes on as JSON, one object a line, and ask nothing.",
            ))
            .arg(flags::switch(
                "backend",
                true,
                "Leave the backend as it was initialized before, or uninitialized.",
            ))
            .arg(flags::switch("cloud", true, "The same as -backend=false."))
            .arg(flags::values(
                "backend-config",
                "PATH",
                "Add settings to the \"backend\" block: from this file, or one as NAME=VALUE. May be given many times.",
            ))
            .arg(flags::switch(
                "migrate-state",
                false,
                "Agree to a changed backend, and bring the states along, after a question.",
            ))
            .arg(flags::switch(
                "force-copy",
                false,
                "Bring the states along without a question. Includes -migrate-state.",
            ))
            .arg(flags::value(
                "from-module",
                "SOURCE",
                "Copy this module into the working directory, which must be empty, before anything else.",
            ))
            .arg(flags::switch("get", true, "Do not install modules."))
            .arg(flags::switch(
                "input",
                true,
                "Do not ask questions.",
            ))
            .arg(flags::switch(
                "upgrade",
                false,
                "Install modules again, and choose the newest versions that are allowed, whatever the lock file says.",
            ))
            .arg(flags::switch(
                "reconfigure",
                false,
                "Take the backend as it is configured now, whatever was initialized before, and leave the states where they are.",
            ))
            .arg(flags::switch(
                "compact-warnings",
                false,
                "Show warnings by their summaries only.",
            ))
            .arg(flags::values(
                "plugin-dir",
                "DIR",
                "Look for plugins only in this directory. May be given many times.",
            ))
            .arg(get::mirror_flag())
            .arg(flags::value(
                "lockfile",
                "MODE",
                "\"readonly\": fail rather than change the dependency lock file.",
            ))
    },
    refused: &[
        ("ignore-remote-version", "there are no remote states."),
        ("test-directory", "test files are not read yet."),
        ("target", "it has no meaning for init."),
    ],
    run,
};

fn run(session: &Session, given: &Given) -> Result<Status, UsageError> {
    no_positional(given, "init")?;
    if given.written("backend") && given.written("cloud") {
        return Err(UsageError::new(
            "Incompatible options",
            "The -backend and -cloud options are aliases of one another and mutually-exclusive in their use.",
        ));
    }
    let read_only_lock = match given.value("lockfile") {
        None | Some("") => false,
        Some("readonly") => true,
        Some(other) => {
            return Err(UsageError::flag(format!(
                "invalid value \"{other}\" for flag -lockfile: it must be \"readonly\""
            )));
        }
    };
    if read_only_lock && given.on("upgrade") {
        return Err(UsageError::new(
            "Incompatible options",
            "The -upgrade flag conflicts with -lockfile=readonly.",
        ));
    }
    if given.on("reconfigure") && given.on("migrate-state") {
        return Err(UsageError::new(
            "Invalid init options",
            "The -migrate-state and -reconfigure options are mutually-exclusive.",
        ));
    }
    if session.stream.is_some() && given.on("migrate-state") {
        return Err(UsageError::new(
            "The -migrate-state and -json options are mutually-exclusive",
            "With -json nobody can be asked whether to bring the states along. Use -force-copy, or leave -json out.",
        ));
    }
    let plugin_dirs = given.values("plugin-dir");
    let mirror = get::mirror(session, given);
    if !plugin_dirs.is_empty() && given.written("mirror") {
        return Err(UsageError::new(
            "Incompatible options",
            "The -plugin-dir and -mirror options both say where plugins are, and are mutually-exclusive.",
        ));
    }
    let ui = &session.ui;
    let style = ui.style();
    if let Some(source) = given.value("from-module")
        && let Err(problems) = copy_module(session, source)
    {
        session.show(&problems, &SourceMap::default());
        return Ok(1);
    }
    if !workdir::has_configuration() {
        let title = style.bold(format!("{} initialized in an empty directory!", program::tool()));
        let text = format!(
            "{title}\n\nThe directory has no Terraform configuration files. You may begin working\nwith {} immediately by creating \
             Terraform configuration files.",
            program::tool()
        );
        say(session, "output_init_empty_message", text);
        return Ok(0);
    }
    let (loaded, mut problems) = workdir::load_all(session, ".");
    // What must be installed is no problem yet.
    problems.extend(if given.on("get") {
        loaded.apart_from_missing()
    } else {
        loaded.diagnostics
    });
    if problems.has_errors() {
        session.show(&problems, &loaded.sources);
        return Ok(1);
    }
    let mut project = Project {
        config: loaded.config,
        sources: loaded.sources,
    };
    let mut backend_warnings = Diagnostics::new();
    // The providers of what is in the state are needed, too.
    let local = if given.on("backend") && given.on("cloud") {
        say(
            session,
            "initializing_backend_message",
            style.bold("Initializing the backend..."),
        );
        configure(session, given, &project.config, &mut project.sources)
            .map(|configured| Some(configured.on_to(&mut backend_warnings)))
    } else {
        backend::as_recorded(session)
    };
    let state_file = local.and_then(|local| {
        let workspace = workdir::workspace(session)?;
        Ok(local.map(|local| local.state(&workspace)))
    });
    let state_file = match state_file {
        Ok(state_file) => state_file,
        Err(problems) => {
            session.show(&problems, &project.sources);
            return Ok(1);
        }
    };
    if given.on("get") && !project.config.root.module.module_calls.is_empty() {
        let (code, text) = if given.on("upgrade") {
            ("upgrading_modules_message", "Upgrading modules...")
        } else {
            ("initializing_modules_message", "Initializing modules...")
        };
        say(session, code, style.bold(text));
        match get::install(session, given.on("upgrade"), mirror.as_deref()) {
            Ok((installed, found)) => {
                project = installed;
                problems = found;
            }
            Err(status) => return Ok(status),
        }
    }
    let fail = |problems: Diagnostics| {
        session.show(&problems, &project.sources);
        Ok(1)
    };
    session.show(&problems, &project.sources);
    say(
        session,
        "initializing_provider_plugin_message",
        style.bold("Initializing provider plugins..."),
    );
    let state = match state_file.map(|path| LocalStore::new(path).read()).transpose() {
        Ok(state) => state.flatten().unwrap_or_default(),
        Err(e) => return fail(workdir::state_problem(&e)),
    };
    let needed = match requirements(&project.config, &state) {
        Ok(needed) => needed,
        Err(problems) => return fail(problems),
    };
    let install = || -> Result<Installation, Diagnostics> {
        let catalog = session.catalog_with(|settings| {
            settings.client = Some(session.net());
            if !plugin_dirs.is_empty() {
                settings.plugin_dirs = plugin_dirs.iter().map(Into::into).collect();
            } else if let Some(mirror) = &mirror {
                settings.plugin_dirs = vec![mirror.into()];
            }
        })?;
        let provisioners = engine::requirements::provisioners_needed(&project.config, &state);
        let mut missing = catalog.check_provisioners(provisioners.iter().map(|p| &**p));
        if missing.has_errors() {
            return Err(missing);
        }
        let origins = origins(&project.config, &state);
        let options = InstallOptions {
            upgrade: given.on("upgrade"),
            read_only_lock,
            origins: Some(&origins),
        };
        let mut installation = catalog.install(&needed, options, &mut |step| tell(session, &step))?;
        missing.extend(std::mem::take(&mut installation.warnings));
        installation.warnings = missing;
        Ok(installation)
    };
    let installation = match install() {
        Ok(installation) => installation,
        Err(problems) => return fail(problems),
    };
    told(session, &installation);
    suggest(session, &needed, &installation);
    if !plugin_dirs.is_empty()
        && let Err(problems) = remember(session, &plugin_dirs)
    {
        return fail(problems);
    }
    backend_warnings.extend(installation.warnings);
    session.show(&backend_warnings, &SourceMap::default());
    space(session);
    say(
        session,
        "output_init_success_message",
        style.good(format!("{} has been successfully initialized!", program::tool())),
    );
    if !session.env.in_automation() {
        space(session);
        let text = style.green(format!(
            "You may now begin working with {tool}. Try running \"{command} plan\" to see\nany changes that are required for \
             your infrastructure. All {tool} commands\nshould now work.\n\nIf you ever set or change modules or backend \
             configuration for {tool},\nrerun this command to reinitialize your working directory. If you forget, other\n\
             commands will detect it and remind you to do so if necessary.",
            tool = program::tool(),
            command = program::command()
        ));
        say(session, "output_init_success_cli_message", text);
    }
    Ok(0)
}

/// Fills the working directory with a copy of a module.
fn copy_module(session: &Session, source: &str) -> Result<(), Diagnostics> {
    let data_dir = session.env.data_dir();
    match modules::from_module::is_empty(Path::new("."), data_dir) {
        Ok(true) => {}
        Ok(false) => {
            return Err(Diagnostic::error(
                "The working directory already contains files",
                "The -from-module option puts a copy of a module into an empty directory. To initialize the configuration that is \
                 already in this directory, omit the option.",
            )
            .into());
        }
        Err(e) => {
            return Err(Diagnostic::error(
                "Failed to read target directory",
                format!("The working directory cannot be read: {}.", files::io_reason(&e)),
            )
            .into());
        }
    }
    let text = session
        .ui
        .style()
        .bold(format!("Copying configuration from \"{source}\"..."));
    say(session, "copying_configuration_message", text);
    let client = session.net();
    let copied = modules::from_module::copy(&client, source, Path::new("."), data_dir, TERRAFORM_VERSION);
    session.runtime()?.block_on(copied)?;
    space(session);
    Ok(())
}

/// Says what is done now; to a program, by the name of the step.
fn say(session: &Session, code: &str, text: String) {
    match &session.stream {
        Some(stream) => stream.init(code, &text),
        None => session.ui.line(text),
    }
}

/// Says something that has no name.
fn note(session: &Session, text: String) {
    match &session.stream {
        Some(stream) => stream.log(text.trim_start_matches(['-', ' '])),
        None => session.ui.line(text),
    }
}

/// An empty line, for people.
fn space(session: &Session) {
    if session.stream.is_none() {
        session.ui.line("");
    }
}

/// What `-plugin-dir` said holds for later commands.
fn remember(session: &Session, dirs: &[String]) -> Result<(), Diagnostics> {
    let absolute = |dir: &String| {
        std::path::absolute(dir).map_or_else(|_| dir.clone(), |path| path.to_string_lossy().into_owned())
    };
    let list: Vec<String> = dirs.iter().map(absolute).collect();
    let text = cty::json::to_text(&list.into(), None);
    write(&Path::new(session.env.data_dir()).join("plugin_path"), text.as_bytes())
}

fn write(path: &Path, text: &[u8]) -> Result<(), Diagnostics> {
    let failed = |e: std::io::Error| {
        Diagnostics::from(Diagnostic::error(
            "Failed to write to the data directory",
            format!("{} cannot be written: {}.", path.display(), files::io_reason(&e)),
        ))
    };
    if let Some(dir) = path.parent() {
        std::fs::create_dir_all(dir).map_err(failed)?;
    }
    files::replace(path, text, files::Policy::SHARED).map_err(failed)
}

/// Says what goes on with a provider.
fn tell(session: &Session, step: &Step<'_>) {
    match step {
        Step::Finding(provider, constraints) => {
            let name = provider.for_display();
            note(
                session,
                match constraints.is_any() {
                    true => format!("- Finding latest version of {name}..."),
                    false => format!("- Finding {name} versions matching \"{constraints}\"..."),
                },
            );
            // Somebody may wait for it.
            session.ui.flush();
        }
        Step::Reusing(provider) => note(
            session,
            format!(
                "- Reusing previous version of {} from the dependency lock file",
                provider.for_display()
            ),
        ),
        Step::Installing(provider, version) => {
            // On a terminal somebody waits for it.
            session.ui.flush();
            tracing::debug!(%provider, %version, "installing");
        }
        Step::Downloading(overall) => downloads::show(session, *overall),
        Step::Done(provider, outcome) => done(session, provider, outcome),
    }
}

fn done(session: &Session, provider: &Provider, outcome: &Outcome) {
    let name = provider.for_display();
    let version = outcome.selection.version().map(ToString::to_string).unwrap_or_default();
    match &outcome.how {
        Some(How::Before) => return note(session, format!("- Using previously-installed {name} v{version}")),
        Some(How::Cached) => {
            return note(
                session,
                format!("- Using {name} v{version} from the shared cache directory"),
            );
        }
        Some(How::Installed(authentication)) => {
            note(session, format!("- Installing {name} v{version}..."));
            return note(session, format!("- Installed {name} v{version} ({authentication})"));
        }
        None => {}
    }
    match &outcome.selection {
        Selection::Builtin { version: None, .. } => {
            note(session, format!("- {name} is built in to {}", program::tool()))
        }
        Selection::Builtin {
            version: Some(version),
            in_place_of,
            ..
        } => {
            let instead = match in_place_of {
                Some(other) => format!(", in place of v{other}"),
                None => String::new(),
            };
            note(session, format!("- {name} v{version} is built in to Monoform{instead}"));
        }
        Selection::External(found) | Selection::Installed(found) => match (&outcome.locked, outcome.new) {
            (Some(_), false) => {
                note(
                    session,
                    format!("- Reusing previous version of {name} from the dependency lock file"),
                );
                note(session, format!("- Using previously-installed {name} v{version}"));
            }
            (_, false) => note(session, format!("- Using previously-installed {name} v{version}")),
            (_, true) => note(
                session,
                format!("- Installed {name} v{version} (from {})", found.executable.display()),
            ),
        },
        Selection::DevOverride(path) => {
            note(
                session,
                format!("- {name} is under development, and taken from {}", path.display()),
            );
        }
        Selection::Reattached => note(session, format!("- {name} is running already")),
    }
}

/// Suggests constraints for what was chosen just now without any.
fn suggest(session: &Session, needed: &BTreeMap<Provider, Constraints>, installation: &Installation) {
    let chosen = |provider: &Provider| {
        let outcome = installation.providers.get(provider)?;
        let here = matches!(outcome.selection, Selection::External(_) | Selection::Installed(_));
        outcome.selection.version().filter(|_| here && outcome.locked.is_none())
    };
    let unconstrained = needed.iter().filter(|(_, constraints)| constraints.is_any());
    let lines: Vec<String> = unconstrained
        .filter_map(|(provider, _)| Some((provider, chosen(provider)?)))
        .map(|(provider, version)| {
            let text = version.to_string();
            let constraint = match text.rsplit_once('.') {
                Some((minor, _)) if !version.is_prerelease() => format!("~> {minor}"),
                _ => text,
            };
            format!("\n  {}: version = \"{constraint}\"", provider.for_display())
        })
        .collect();
    if !lines.is_empty() {
        space(session);
        let text = format!(
            "No module says which versions of these providers it needs, so the newest were chosen. Suggested\nconstraints for \
             required_providers, which keep out new major versions with breaking changes:\n{}",
            lines.concat()
        );
        note(session, text);
    }
}

/// Says what came of all of it.
fn told(session: &Session, installation: &Installation) {
    let by_its_authors = |o: &Outcome| match &o.how {
        Some(How::Installed(Authentication::Signed(signer))) => signer.standing != Standing::Vendor,
        _ => false,
    };
    if installation.providers.values().any(by_its_authors) {
        let text = "Partner and community providers are signed by their developers.\nIf you'd like to know more about provider \
                    signing, you can read about it here:\nhttps://www.terraform.io/docs/cli/plugins/signing.html";
        note(session, text.to_owned());
    }
    if installation.lock_created {
        space(session);
        let text = format!(
            "{tool} has created a lock file .terraform.lock.hcl to record the provider\nselections it made above. Include this \
             file in your version control repository\nso that {tool} can guarantee to make the same selections by default \
             when\nyou run \"{command} init\" in the future.",
            tool = program::tool(),
            command = program::command()
        );
        say(session, "lock_info", text);
    } else if installation.lock_changed {
        space(session);
        let text = format!(
            "{} has made some changes to the provider dependency selections recorded\nin the .terraform.lock.hcl file. Review \
             those changes and commit them to your\nversion control system if they represent changes you intended to make.",
            program::tool()
        );
        say(session, "dependencies_lock_changes_info", text);
    }
}
