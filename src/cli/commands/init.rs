//! `init`: installs modules and plugins, and sets up the backend. If nothing is needed, no file is written.

mod report;
mod state_store;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use config::TestFile;
use packages::Catalog;
use packages::install::{InstallOptions, Installation};
use stores::backend::configure::{BackendOptions, configure};
use stores::backend::{self, Source, StateBackend};
use stores::session::read_source;
use stores::workspace;
use syntax::{Diagnostic, Diagnostics, SourceMap};
use versions::Constraints;

use crate::args::flags::{self, Flags, FromFlags};
use crate::args::groups::{LockFlags, VariableFlags, ignore_remote_version};
use crate::commands::{Command, get, no_positional};
use crate::core_version;
use crate::outcome::{Failure, Outcome, Within as _};
use crate::plugin_source::{origins, requirements};
use crate::session::Session;
use crate::spans::Spans;
use crate::tested;
use crate::workdir::{self, Project};
use report::{print_installation, print_step, suggest};
use views::wrap::wrapped;

pub const COMMAND: Command = Command {
    path: "init",
    about: "Prepare your working directory for other commands",
    positional: "",
    details: "Prepares a working directory: installs what is neither local nor built in. A configuration whose modules are local \
      and whose plugins are built in needs no init.",
    declare: flags::declare::<Arguments>,
    refused: &[("target", "it has no meaning for init.")],
    run: |session, matches| run(session, &flags::read(matches)),
};

struct Arguments {
    lock: LockFlags,
    positional: Vec<String>,
    /// `None` if the flag is not set explicitly.
    backend: Option<bool>,
    /// `None` if the flag is not set explicitly.
    cloud: Option<bool>,
    backend_config: Vec<String>,
    migrate_state: bool,
    force_copy: bool,
    from_module: Option<String>,
    get: bool,
    input: bool,
    upgrade: bool,
    reconfigure: bool,
    plugin_dir: Vec<String>,
    mirror: Option<String>,
    test_directory: Option<String>,
    lockfile: Option<String>,
}

impl FromFlags for Arguments {
    fn read(flags: &mut Flags<'_>) -> Arguments {
        VariableFlags::read(flags);
        ignore_remote_version(flags);
        let lock = LockFlags::read(flags);
        let positional = flags.positional();
        flags.json_into();
        flags.json_stream();
        let backend = flags.explicit_switch(
            "backend",
            true,
            "Leave the backend as it was initialized before, or uninitialized.",
        );
        let cloud = flags.explicit_switch("cloud", true, "The same as -backend=false.");
        let backend_config = flags.values(
            "backend-config",
            "PATH",
            "Add settings to the \"backend\" block: from this file, or one as NAME=VALUE. May be given many times.",
        );
        let migrate_state = flags.switch(
            "migrate-state",
            false,
            "Agree to a changed backend, and bring the states along, after a question.",
        );
        let force_copy = flags.switch(
            "force-copy",
            false,
            "Bring the states along without a question. Includes -migrate-state.",
        );
        let from_module = flags.value(
            "from-module",
            "SOURCE",
            "Copy this module into the working directory, which must be empty, before anything else.",
        );
        let get = flags.switch("get", true, "Do not install modules.");
        let input = flags.switch("input", true, "Do not ask questions.");
        let upgrade = flags.switch(
            "upgrade",
            false,
            "Install modules again, and choose the newest versions that are allowed, whatever the lock file says.",
        );
        let reconfigure = flags.switch("reconfigure", false, "Take the backend as it is configured now, whatever was initialized before, and leave the states where they are.");
        flags.compact_warnings("Show warnings by their summaries only.");
        let plugin_dir = flags.values(
            "plugin-dir",
            "DIR",
            "Look for plugins only in this directory. May be given many times.",
        );
        let mirror = get::mirror_flag(flags);
        let test_directory = tested::directory_flag(flags);
        let lockfile = flags.value(
            "lockfile",
            "MODE",
            "\"readonly\": fail rather than change the dependency lock file.",
        );
        Arguments {
            lock,
            positional,
            backend,
            cloud,
            backend_config,
            migrate_state,
            force_copy,
            from_module,
            get,
            input,
            upgrade,
            reconfigure,
            plugin_dir,
            mirror,
            test_directory,
            lockfile,
        }
    }
}

fn run(session: &Session, arguments: &Arguments) -> Result<Outcome, Failure> {
    check(session, arguments)?;
    if let Some(source) = arguments.from_module.as_deref() {
        copy_module(session, source)?;
    }
    if !tested::is_anything_there(arguments.test_directory.as_deref()) {
        say_empty(session);
        return Ok(Outcome::success());
    }
    let init = Init {
        session,
        arguments,
        read_only_lock: arguments.lockfile.as_deref() == Some("readonly"),
        mirror: get::mirror(session, arguments.mirror.as_deref()),
    };
    let (mut project, mut problems) = init.load()?;
    let tests = tested::read(arguments.test_directory.as_deref()).within(&project.sources)?;
    if tests.diagnostics.has_errors() {
        return Err(Failure::within(tests.diagnostics, &tests.sources));
    }
    let in_cloud = project.config.root.module.cloud.is_some();
    let keep = state_store::provider(&project.config).cloned();
    let Stored { source, installed } = init.backend(&mut project)?;
    let calls = !project.config.root.module.module_calls.is_empty() || modules::name_modules(&tests.files);
    if arguments.get && calls {
        (project, problems) = init.modules(&tests.files)?;
    }
    session.show_now(&problems, &project.sources);
    let (mut installation, needed) = init.providers(&project, &source, tests.files, keep.as_ref())?;
    installation.lock_created |= installed.lock_created;
    installation.lock_changed |= installed.lock_changed;
    data_dir(session, &needed)?;
    print_installation(session, &installation);
    suggest(session, &needed, &installation);
    // The directories are recorded for later commands only after the installation succeeded, so that a mistyped directory is not recorded.
    if !arguments.plugin_dir.is_empty() {
        remember(session, &arguments.plugin_dir)?;
    }
    let mut warnings = installed.warnings;
    warnings.extend(installation.warnings);
    session.show_now(&warnings, &SourceMap::default());
    say_success(session, in_cloud);
    Ok(Outcome::success())
}

/// Refuses contradictory options.
fn check(session: &Session, arguments: &Arguments) -> Result<(), Failure> {
    no_positional(&arguments.positional, "init")?;
    if arguments.backend.is_some() && arguments.cloud.is_some() {
        return Err(Failure::usage(
            "Incompatible options",
            "The options -backend and -cloud mean the same. Set one of them only.",
        ));
    }
    let read_only_lock = match arguments.lockfile.as_deref() {
        None | Some("") => false,
        Some("readonly") => true,
        Some(other) => {
            return Err(Failure::flag(format!(
                "invalid value \"{other}\" for flag -lockfile: it must be \"readonly\""
            )));
        }
    };
    if read_only_lock && arguments.upgrade {
        return Err(Failure::usage(
            "Incompatible options",
            "The -upgrade flag conflicts with -lockfile=readonly.",
        ));
    }
    if arguments.reconfigure && arguments.migrate_state {
        return Err(Failure::usage(
            "Invalid init options",
            "Use either -migrate-state or -reconfigure: the one copies states, the other leaves them where they are.",
        ));
    }
    if session.stream.is_some() && arguments.migrate_state {
        return Err(Failure::usage(
            "The -migrate-state and -json options are mutually-exclusive",
            "With -json nobody can be asked whether to bring the states along. Use -force-copy, or leave -json out.",
        ));
    }
    if !arguments.plugin_dir.is_empty() && arguments.mirror.is_some() {
        return Err(Failure::usage(
            "Incompatible options",
            "The -plugin-dir and -mirror options both say where plugins are, and are mutually-exclusive.",
        ));
    }
    Ok(())
}

struct Init<'i> {
    session: &'i Session,
    arguments: &'i Arguments,
    read_only_lock: bool,
    mirror: Option<String>,
}

/// State to use, and the provider that was installed for its store.
struct Stored {
    source: Source,
    installed: Installation,
}

impl Init<'_> {
    fn title(&self, code: &str, text: impl std::fmt::Display) {
        say(self.session, code, self.session.ui.style().bold(text));
    }

    fn catalog(&self) -> Result<Catalog, Diagnostics> {
        catalog(self.session, &self.arguments.plugin_dir, self.mirror.as_deref())
    }

    /// Loads the configuration. A module that must be installed is not an error yet.
    fn load(&self) -> Result<(Project, Diagnostics), Failure> {
        let (loaded, mut problems) = workdir::load_for_installation(self.session);
        problems.extend(if self.arguments.get {
            loaded.apart_from_missing()
        } else {
            loaded.diagnostics
        });
        if problems.has_errors() {
            return Err(Failure::within(problems, &loaded.sources));
        }
        let project = Project {
            config: loaded.config,
            sources: loaded.sources,
        };
        Ok((project, problems))
    }

    fn backend(&self, project: &mut Project) -> Result<Stored, Failure> {
        let (session, arguments) = (self.session, self.arguments);
        let mut installed = Installation::default();
        let backend = if arguments.backend.unwrap_or(true) && arguments.cloud.unwrap_or(true) {
            self.configured(project, &mut installed)
        } else {
            backend::as_recorded(&session.stores())
        };
        let source = backend.and_then(|backend| Ok(backend.state(&workspace::selected(&session.stores())?)));
        let source = source.within(&project.sources)?;
        Ok(Stored { source, installed })
    }

    /// Installs the provider of a state store, and sets up the configured backend.
    fn configured(&self, project: &mut Project, installed: &mut Installation) -> Result<StateBackend, Diagnostics> {
        let (session, arguments) = (self.session, self.arguments);
        let in_cloud = project.config.root.module.cloud.is_some();
        let catalog = || self.catalog();
        *installed = state_store::install(session, arguments, &project.config, catalog, self.read_only_lock)?;
        let (code, text) = match (in_cloud, &project.config.root.module.backend) {
            (true, _) => (
                "initializing_terraform_cloud_message",
                "Initializing HCP Terraform...".to_owned(),
            ),
            (_, Some(store)) if store.provider.is_some() => (
                "initializing_state_store_message",
                format!("Initializing the state store \"{}\"...", store.ty),
            ),
            _ => ("initializing_backend_message", "Initializing the backend...".to_owned()),
        };
        self.title(code, text);
        // The provider of the store is installed while the backend is configured, and is searched for in the recorded directories. So they
        // are recorded here already.
        if !arguments.plugin_dir.is_empty() && state_store::provider(&project.config).is_some() {
            remember(session, &arguments.plugin_dir)?;
        }
        let options = BackendOptions {
            settings: &arguments.backend_config,
            reconfigure: arguments.reconfigure,
            migrate: arguments.migrate_state,
            force_copy: arguments.force_copy,
            input: arguments.input && session.env.input() && session.stream.is_none(),
            lock: arguments.lock.timeout,
            cloud: session,
        };
        let configured = configure(&session.stores(), &options, &project.config, &mut project.sources)?;
        Ok(configured.on_to(&mut installed.warnings))
    }

    /// Installs the modules, and loads the configuration again.
    fn modules(&self, tests: &[Arc<TestFile>]) -> Result<(Project, Diagnostics), Failure> {
        let (code, text) = if self.arguments.upgrade {
            ("upgrading_modules_message", "Upgrading modules...")
        } else {
            ("initializing_modules_message", "Initializing modules...")
        };
        self.title(code, text);
        let tracer = self.session.tracer.as_ref();
        let _spans = tracer.map(|tracer| Spans::begin(tracer, "Get Modules"));
        get::install(self.session, self.arguments.upgrade, self.mirror.as_deref(), tests)
    }

    /// Installs the providers that the configuration, the state and tests need.
    fn providers(
        &self,
        project: &Project,
        state: &Source,
        tests: Vec<Arc<TestFile>>,
        keep: Option<&addrs::Provider>,
    ) -> Result<(Installation, BTreeMap<addrs::Provider, Constraints>), Failure> {
        let (session, sources) = (self.session, &project.sources);
        self.title(
            "initializing_provider_plugin_message",
            "Initializing provider plugins...",
        );
        // Objects in the state need their providers even without a block, for example to be destroyed.
        let mut state = read_source(&session.stores(), state)
            .within(sources)?
            .unwrap_or_default();
        crate::state_addresses::translate(session, &project.config, &mut state);
        let needed = requirements(&project.config, &state).within(sources)?;
        let root = Arc::new(project.config.clone());
        let tested = tested::modules_of(session, &root, tests, tested::Purpose::Installation);
        let needed = tested::add_requirements(&tested, &root, needed).within(&tested.sources)?;
        let install = || -> Result<Installation, Diagnostics> {
            let catalog = self.catalog()?;
            let provisioners = engine::requirements::provisioners_needed(&project.config, &state);
            // The provisioners are recorded before the check, because the record is what allows provisioners of
            // the configuration to run.
            catalog.record_provisioners(provisioners.iter().map(|p| &**p))?;
            let mut warnings = catalog.check_provisioners(provisioners.iter().map(|p| &**p));
            if warnings.has_errors() {
                return Err(warnings);
            }
            let origins = origins(&project.config, &state);
            let options = InstallOptions {
                upgrade: self.arguments.upgrade,
                read_only_lock: self.read_only_lock,
                origins: Some(&origins),
                partial: false,
                keep,
            };
            let spans = session
                .tracer
                .as_ref()
                .map(|tracer| Spans::begin(tracer, "Get Providers"));
            let mut installation = catalog.install(&needed, options, &mut |step| {
                if let Some(spans) = &spans {
                    spans.step(&step);
                }
                print_step(session, &step);
            })?;
            warnings.extend(std::mem::take(&mut installation.warnings));
            installation.warnings = warnings;
            Ok(installation)
        };
        let installation = install().within(sources)?;
        Ok((installation, needed))
    }
}

fn say_empty(session: &Session) {
    let tool = session.ui.program.tool;
    let title = session
        .ui
        .style()
        .bold(format!("{tool} initialized in an empty directory!"));
    let text = format!(
        "{title}\n\nThere are no configuration files here yet, so there was nothing to install. As soon as the\ndirectory has some \
         (.tf), {tool} can plan them."
    );
    say(session, "output_init_empty_message", text);
}

fn say_success(session: &Session, in_cloud: bool) {
    let style = session.ui.style();
    space(session);
    let (code, what) = match in_cloud {
        true => ("output_init_success_cloud_message", "HCP Terraform"),
        false => ("output_init_success_message", session.ui.program.tool),
    };
    say(
        session,
        code,
        style.good(format!("{what} has been successfully initialized!")),
    );
    // Advice is for people; TF_IN_AUTOMATION means that none read the output.
    if session.env.in_automation() {
        return;
    }
    space(session);
    let text = format!(
        "Next, \"{command} plan\" shows what {tool} would create, change and destroy.\n\nRun init again when the configuration calls \
         other modules, requires other providers, or has another backend. A command that cannot go on without it says so.",
        tool = session.ui.program.tool,
        command = session.ui.program.command
    );
    let text = style.green(wrapped(&text, session.ui.width()));
    let code = match in_cloud {
        true => "output_init_success_cli_cloud_message",
        false => "output_init_success_cli_message",
    };
    say(session, code, text);
}

/// Returns the catalog, limited to these directories or this mirror if they are set.
fn catalog(session: &Session, plugin_dirs: &[String], mirror: Option<&str>) -> Result<Catalog, Diagnostics> {
    session.catalog_with(|settings| {
        // Catalogs of other commands have no client, and download nothing.
        settings.client = Some(session.net());
        if !plugin_dirs.is_empty() {
            settings.plugin_dirs = plugin_dirs.iter().map(Into::into).collect();
            settings.plugin_dirs_remembered = false;
        } else if let Some(mirror) = mirror {
            settings.plugin_dirs = vec![mirror.into()];
        }
    })
}

/// Creates the data directory if the configuration requires providers. Language servers treat it as the sign of an initialized
/// directory, and request schemas only then.
fn data_dir(session: &Session, needed: &BTreeMap<addrs::Provider, Constraints>) -> Result<(), Diagnostic> {
    if needed.keys().all(addrs::Provider::is_builtin) {
        return Ok(());
    }
    let dir = session.env.data_dir();
    std::fs::create_dir_all(dir).map_err(|e| {
        Diagnostic::error(
            "Failed to create data directory",
            format!("The directory {dir} cannot be created: {}.", files::io_reason(&e)),
        )
    })
}

/// Fills the empty working directory with a copy of a module.
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
    let copied = modules::from_module::copy(&client, source, Path::new("."), data_dir, core_version());
    session.runtime()?.block_on(copied)?;
    space(session);
    Ok(())
}

/// Prints a step of the command; with `-json`, as an event with this message code.
fn say(session: &Session, code: &str, text: String) {
    session.streams().for_each(|stream| stream.init(code, &text));
    if session.stream.is_none() {
        session.ui.line(text);
    }
}

/// Prints a step; with `-json`, as an event without a message code.
fn note(session: &Session, text: String) {
    session.message(text);
}

/// Writes an empty line, in text output only.
fn space(session: &Session) {
    if session.stream.is_none() {
        session.ui.line("");
    }
}

/// Records the directories of `-plugin-dir`, which later commands use, too.
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
