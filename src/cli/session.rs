//! Surroundings of a command (terminal, environment, CLI configuration, plugins), and its invocation.

use std::collections::BTreeSet;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use addrs::program::Mode;
use config::files::Disk;
use config::values::{SetVariables, ValueInputs, VariableFlag};
use engine::inputs::ModuleDeprecations;
use files::mounts::Mounts;
use packages::cli_config::CliConfig;
use packages::{Catalog, Settings, builtin::Builtins};
use plugins::{Host, HostSettings, ReportWaiting, SchemaStore};
use syntax::{Diagnostic, Diagnostics, SourceMap};
use views::console::Console;
use views::plan::Shown;
use views::ui::Ui;

use crate::core_version;
use crate::env::Env;
use crate::outcome::{Failure, Outcome, Part, Status};
use crate::plugin_source::Plugins;
use crate::process;

/// Number of threads beside the runtime's workers: blocking calls, starting of plugins, saving of results, and forced
/// termination.
const SPARE_THREADS: usize = 4;

/// Starts this number of threads at the same time, to check that the system allows them.
fn try_threads(count: usize) -> std::io::Result<()> {
    let mut started = Vec::with_capacity(count);
    for _ in 0..count {
        let (release, released) = std::sync::mpsc::channel::<()>();
        // The stacks are hardly used, so they can be small.
        let thread = std::thread::Builder::new().stack_size(1 << 16).spawn(move || {
            let _ = released.recv();
        })?;
        started.push((release, thread));
    }
    for (release, thread) in started {
        drop(release);
        // An idle thread does not panic.
        let _ = thread.join();
    }
    Ok(())
}

/// State of the process that does not depend on the command: terminal, environment, CLI configuration, plugins.
pub struct Surroundings {
    pub console: Console,
    pub env: Env,
    pub builtins: Builtins,
    pub cli_config: CliConfig,
    /// Diagnostics about the CLI configuration, which the dispatcher has shown.
    pub cli_problems: Diagnostics,
    /// Modules whose deprecations are warned about.
    pub deprecations: ModuleDeprecations,
    /// Working directory before `-chdir`, as `path.cwd` returns it: with `/` between its steps on every system.
    pub original_dir: PathBuf,
    pub working_dir: PathBuf,
    /// Modules that are read from memory, because they cannot be installed anywhere.
    pub mounts: OnceLock<Arc<Mounts>>,
    /// Recorder of spans, if the environment requests a trace.
    pub tracer: Option<Arc<traces::Tracer>>,
    /// File of `-json-into` of a command that prints a document.
    pub document: Option<Arc<Ui>>,
    /// True if texts are also messages in the stream of `-json-into`, because the command has no stream of its own.
    pub texts_beside: bool,
}

/// Parsed arguments that other modules than the command's own need.
#[derive(Clone, Default)]
pub struct Invocation {
    /// Arguments as typed, without those from the environment.
    pub typed: Vec<String>,
    /// Flags that set variables. Loading the configuration needs them.
    pub variables: Vec<VariableFlag>,
    /// Policy for remote workspaces of another Terraform version.
    pub remote_version: hosted::RemoteVersion,
    /// Display options of plans, states and outputs.
    pub shown: Shown,
    /// True with `-concise`: progress lines are left out.
    pub concise: bool,
    /// True if the command asks for missing variables.
    pub input: bool,
}

/// Encryption of a command after it was first needed; `None` if nothing is encrypted.
pub(crate) type Configured = Result<Option<Arc<::encryption::Encryption>>, Diagnostics>;

/// One run of a command: an invocation and its surroundings. Functions that need no arguments take the [`Surroundings`].
pub struct Session {
    surroundings: Surroundings,
    pub invocation: Invocation,
    /// Variables set by environment, files and flags; `None` until they are first needed.
    set: Mutex<Option<Arc<SetVariables>>>,
    /// Encryption of states and plans; `None` until it is first needed.
    pub(crate) encryption: Mutex<Option<Configured>>,
    /// The workspace that was selected when the command began.
    workspace: OnceLock<String>,
}

impl Session {
    #[must_use]
    pub fn new(surroundings: Surroundings, invocation: Invocation) -> Session {
        Session {
            surroundings,
            invocation,
            set: Mutex::default(),
            encryption: Mutex::default(),
            workspace: OnceLock::new(),
        }
    }

    /// Returns a session of the same command with the lock file and plugins of another directory, into which the process has changed. Paths
    /// of the command line stay relative to the earlier working directory.
    #[must_use]
    pub fn in_directory(&self, dir: PathBuf) -> Session {
        let mut invocation = self.invocation.clone();
        for flag in &mut invocation.variables {
            if let VariableFlag::File(path) = flag {
                *path = self.working_dir.join(&*path).to_string_lossy().into_owned();
            }
        }
        let surroundings = Surroundings {
            console: self.console.clone(),
            env: self.env.clone(),
            builtins: self.builtins.clone(),
            cli_config: self.cli_config.clone(),
            cli_problems: self.cli_problems.clone(),
            deprecations: self.deprecations,
            original_dir: self.original_dir.clone(),
            working_dir: dir,
            mounts: self.mounts.clone(),
            tracer: self.tracer.clone(),
            document: self.document.clone(),
            texts_beside: self.texts_beside,
        };
        Session::new(surroundings, invocation)
    }

    /// Returns the variables set by the environment, variable files and flags. They are read once for a command, so that loading
    /// and planning depend on the same values.
    pub fn set_variables(&self) -> Arc<SetVariables> {
        let mut set = self.set.lock().unwrap_or_else(PoisonError::into_inner);
        let read = || {
            let set = SetVariables::read(&ValueInputs {
                files: &Disk,
                environment: &self.env.variables(),
                flags: &self.invocation.variables,
            });
            let asks = self.invocation.input && self.env.input() && self.stream.is_none() && self.ui.is_interactive();
            let console = self.console.clone();
            match asks {
                true => set.asking(move |variable| crate::asking::answer(&console, variable)),
                false => set,
            }
        };
        set.get_or_insert_with(|| Arc::new(read())).clone()
    }

    /// Returns the workspace that was selected when the command began, for expressions that are evaluated while the configuration is
    /// loaded.
    pub fn selected_workspace(&self) -> &str {
        // An invalid name is reported where the workspace is opened.
        let selected =
            || stores::workspace::selected(&self.stores()).unwrap_or_else(|_| stores::workspace::DEFAULT.to_owned());
        self.workspace.get_or_init(selected)
    }

    /// Discards the variables, so that a command that runs again after file changes reads them again.
    pub fn forget_variables(&self) {
        *self.set.lock().unwrap_or_else(PoisonError::into_inner) = None;
        self.forget_encryption();
    }
}

impl Deref for Session {
    type Target = Surroundings;

    fn deref(&self) -> &Surroundings {
        &self.surroundings
    }
}

impl Deref for Surroundings {
    type Target = Console;

    fn deref(&self) -> &Console {
        &self.console
    }
}

impl Surroundings {
    /// Returns the surroundings of a directory, for a command that writes text.
    #[must_use]
    pub fn new(ui: Arc<Ui>, env: Env, builtins: Builtins, cli_config: CliConfig, working_dir: PathBuf) -> Surroundings {
        Surroundings {
            console: Console::new(ui),
            env,
            builtins,
            cli_config,
            cli_problems: Diagnostics::new(),
            deprecations: ModuleDeprecations::default(),
            original_dir: working_dir.clone(),
            working_dir,
            mounts: OnceLock::new(),
            tracer: None,
            document: None,
            texts_beside: false,
        }
    }

    /// Shows the outcome of a command, and returns its exit status.
    pub fn render(&self, outcome: Outcome) -> Status {
        for part in outcome.parts {
            if self.texts_beside
                && let Part::Text(text) | Part::Exact(text) = &part
            {
                self.message_beside(text);
            }
            match part {
                Part::Problems(problems, sources) => {
                    self.show_now(&problems, &sources);
                }
                Part::Text(text) => self.ui.out(text),
                Part::Exact(text) => self.ui.out_bytes(text.as_bytes()),
                Part::Error(text) => self.ui.err(text),
                Part::Document(text) => {
                    if let Some(file) = &self.document {
                        file.out_bytes(text.as_bytes());
                    }
                }
            }
        }
        outcome.status
    }

    /// Adds the JSON document of a command to its text, if `-json-into` names a file for it.
    pub fn with_document(&self, text: Outcome, document: impl FnOnce() -> Outcome) -> Outcome {
        if self.document.is_none() {
            return text;
        }
        let parts = document().parts.into_iter().filter_map(|part| match part {
            Part::Exact(document) => Some(Part::Document(document)),
            _ => None,
        });
        parts.fold(text, Outcome::and)
    }

    /// Shows warnings and continues, if there is no error. Otherwise all diagnostics become a failure.
    pub fn pass(&self, problems: &Diagnostics, sources: &SourceMap) -> Result<(), Failure> {
        if problems.has_errors() {
            return Err(Failure::within(problems.clone(), sources));
        }
        self.show_now(problems, sources);
        Ok(())
    }

    /// Returns the plugins of the working directory, for the engine.
    pub fn plugins(&self) -> Result<Plugins, Diagnostics> {
        Ok(Plugins::new(self.catalog()?, self.plugin_host()?))
    }

    pub fn plugin_host(&self) -> Result<Host, Diagnostics> {
        let executable = self.builtins.executable.clone();
        let mut settings = HostSettings::from_environment(executable, core_version(), |name| self.env.get(name))?;
        // Relative paths refer to the directory in which the command was called, but plugins run in that of -chdir.
        for name in ["TF_CLI_CONFIG_FILE", "TERRAFORM_CONFIG", pack::TRUST] {
            if let Some(path) = self.env.get(name).filter(|path| Path::new(path).is_relative()) {
                let absolute = self.original_dir.join(path).into_os_string();
                settings.environment.insert(name.to_owned(), absolute);
            }
        }
        // Programs that plugins start, those of local-exec among them, continue the trace.
        if let Some(parent) = self.tracer.as_ref().and_then(|tracer| tracer.current_traceparent()) {
            settings.traceparent = Some(parent);
        }
        settings.schemas = SchemaStore::from_environment(&self.env).map(Arc::new);
        let (ui, stream) = (self.ui.clone(), self.stream.clone());
        settings.waiting = Some(ReportWaiting(Arc::new(move |host| {
            let text = format!("Waiting for {host} to answer...");
            match &stream {
                Some(stream) => stream.log(&text),
                // Standard output may be read by a script, such as that of "output -raw".
                None => ui.err(format!("- {text}\n")),
            }
        })));
        Ok(Host::new(settings))
    }

    /// Returns the settings for opening packs: the trusted key and the limits.
    pub fn pack_conditions(&self) -> pack::Conditions {
        let mut conditions = pack::Conditions::from_environment(&self.env);
        if let pack::Trust::Environment(file) = &mut conditions.trust {
            *file = self.original_dir.join(&*file);
        }
        conditions
    }

    /// Returns the plugins that are available to the working directory.
    pub fn catalog(&self) -> Result<Catalog, Diagnostics> {
        self.catalog_with(|_| {})
    }

    /// Returns the available plugins, with some settings changed.
    pub fn catalog_with(&self, change: impl FnOnce(&mut Settings)) -> Result<Catalog, Diagnostics> {
        let environment = files::Environment::clone(&self.env);
        let mut settings = Settings::new(
            self.builtins.clone(),
            environment,
            self.cli_config.clone(),
            self.working_dir.clone(),
        );
        settings.program = self.ui.program;
        change(&mut settings);
        let reattached = match self.env.get("TF_REATTACH_PROVIDERS") {
            Some(text) => plugins::reattach::parse(text)?.into_keys().collect(),
            None => BTreeSet::new(),
        };
        Ok(Catalog::new(settings, reattached))
    }

    /// Returns the client for requests to registries and other hosts. It costs nothing before the first request.
    #[must_use]
    pub fn net(&self) -> net::Client {
        let paths = self.env.cli_configuration(Mode::current().paths());
        let plugins = paths.into_iter().flat_map(|paths| paths.plugins);
        let platform = addrs::platform::Platform::current().to_string();
        let (ui, stream, beside) = (self.ui.clone(), self.stream.clone(), self.form.beside_results);
        let client = net::Client::new(net::NetSettings {
            environment: files::Environment::clone(&self.env),
            hosts: self.cli_config.hosts.clone(),
            helper_dirs: plugins.flat_map(|dir| [dir.join(&platform), dir]).collect(),
            terraform_version: core_version().to_owned(),
            product: format!("Monoform/{}", crate::VERSION),
        });
        let client = match &self.tracer {
            Some(tracer) => client.watched(crate::spans::requests(tracer.clone())),
            None => client,
        };
        client.reporting(move |notice| {
            let text = match notice {
                net::Notice::Retry(retry) => format!(
                    "{}; trying again in {:.1} s ({} of {})",
                    retry.why,
                    retry.pause.as_secs_f64(),
                    retry.attempt,
                    retry.of
                ),
                net::Notice::NoCredentials(error) => {
                    format!("Warning: {error}. The host is asked without credentials.")
                }
                net::Notice::Waiting(host) => format!("Waiting for {host} to answer..."),
            };
            // Output for programs must stay readable for them, so notices go into the stream or to standard error.
            match &stream {
                Some(stream) => stream.log(&text),
                None if beside => ui.err(format!("- {text}\n")),
                None => {
                    ui.line(format!("- {text}"));
                    ui.flush();
                }
            }
        })
    }

    /// Starts the runtime for concurrent work. If the system does not allow a thread for each processor, the runtime has only one worker.
    pub fn runtime(&self) -> Result<tokio::runtime::Runtime, Diagnostics> {
        // While the clock is not set, certificates for connections to plugins and registries can be neither
        // made nor verified.
        if process::clock_is_unset() {
            return Err(Diagnostic::error(
                "Invalid system clock",
                "The clock of this machine is set to a time before 1970. Connections to plugins are secured by certificates, \
                 which need the right time: set the clock, and run the command again.",
            )
            .into());
        }
        let wanted = std::thread::available_parallelism().map_or(1, usize::from);
        let refused = |e: std::io::Error| {
            let text = e.to_string();
            let why = text.split(" (os error").next().unwrap_or(&text);
            Diagnostics::from(Diagnostic::error(
                "Cannot start threads",
                format!(
                    "The system does not let this program start the threads that it needs: {why}. The limit of processes and \
                     threads for this user is too low (see \"ulimit -u\"), or the machine is overloaded."
                ),
            ))
        };
        // The runtime itself would panic if a thread cannot be started.
        let workers = match try_threads(wanted + SPARE_THREADS) {
            Ok(()) => wanted,
            // One worker can do all of the work, without concurrency.
            Err(_) => try_threads(1 + SPARE_THREADS).map(|()| 1).map_err(refused)?,
        };
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(workers)
            .enable_all()
            .build()
            .map_err(refused)
    }
}
