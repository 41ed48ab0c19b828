//! The surroundings of a command (terminal, environment, CLI configuration, plugins), and its invocation.

use std::collections::BTreeSet;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use config::files::Disk;
use config::values::{SetVariables, ValueInputs, VariableFlag};
use files::mounts::Mounts;
use packages::cli_config::CliConfig;
use packages::{Catalog, Settings, builtin::Builtins};
use plugins::{Host, HostSettings, ReportWaiting, SchemaStore};
use syntax::{Diagnostic, Diagnostics, SourceMap};
use views::console::Console;
use views::plan::Shown;
use views::ui::Ui;

use crate::TERRAFORM_VERSION;
use crate::env::Env;
use crate::outcome::{Failure, Outcome, Part, Status};
use crate::plugin_source::Plugins;
use crate::process;

/// The threads that are needed beside the workers of the runtime: for blocking calls, for starting plugins, for saving
/// results, and for ending by force.
const SPARE_THREADS: usize = 4;

/// Whether so many threads can be started at the same time.
fn try_threads(count: usize) -> std::io::Result<()> {
    let mut started = Vec::with_capacity(count);
    for _ in 0..count {
        let (release, released) = std::sync::mpsc::channel::<()>();
        let thread = std::thread::Builder::new().stack_size(1 << 16).spawn(move || {
            let _ = released.recv();
        })?;
        started.push((release, thread));
    }
    for (release, thread) in started {
        drop(release);
        // A thread that does nothing does not panic.
        let _ = thread.join();
    }
    Ok(())
}

/// What the process has, whatever command it runs: terminal, environment, CLI configuration, plugins.
pub struct Surroundings {
    pub console: Console,
    pub env: Env,
    pub builtins: Builtins,
    pub cli_config: CliConfig,
    /// The problems of the CLI configuration, which the dispatcher has shown.
    pub cli_problems: Diagnostics,
    /// The working directory before `-chdir`.
    pub original_dir: PathBuf,
    pub working_dir: PathBuf,
    /// The modules that are read from memory, because they cannot be installed anywhere.
    pub mounts: OnceLock<Arc<Mounts>>,
}

/// The arguments of this command that reach further than its own file, as they were parsed once.
#[derive(Clone, Default)]
pub struct Invocation {
    /// The command line without the name of the program and without what the environment adds.
    pub typed: Vec<String>,
    /// The flags that set variables: the configuration is loaded with them.
    pub variables: Vec<VariableFlag>,
    /// Whether the version that a remote workspace is for must fit.
    pub remote_version: hosted::RemoteVersion,
    /// Options of the views of plans, states and outputs.
    pub shown: Shown,
    /// Whether progress is told by lines: not with `-concise`.
    pub concise: bool,
}

/// One run of a command: an invocation in its surroundings. What needs no arguments takes the [`Surroundings`] alone.
pub struct Session {
    surroundings: Surroundings,
    pub invocation: Invocation,
    /// Variables as environment, files and flags set them, once they were read.
    set: Mutex<Option<Arc<SetVariables>>>,
}

impl Session {
    #[must_use]
    pub fn new(surroundings: Surroundings, invocation: Invocation) -> Session {
        Session {
            surroundings,
            invocation,
            set: Mutex::default(),
        }
    }

    /// Variables as the environment, variable files and flags set them. These are read once for a command, so that loading and
    /// planning depend on the same values.
    pub fn set_variables(&self) -> Arc<SetVariables> {
        let mut set = self.set.lock().unwrap_or_else(PoisonError::into_inner);
        let read = || {
            SetVariables::read(&ValueInputs {
                files: &Disk,
                environment: &self.env.variables(),
                flags: &self.invocation.variables,
            })
        };
        set.get_or_insert_with(|| Arc::new(read())).clone()
    }

    /// Has variables read again, for a command that runs again when files change.
    pub fn forget_variables(&self) {
        *self.set.lock().unwrap_or_else(PoisonError::into_inner) = None;
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
    /// Those of a directory, for a command that writes text.
    #[must_use]
    pub fn new(ui: Arc<Ui>, env: Env, builtins: Builtins, cli_config: CliConfig, working_dir: PathBuf) -> Surroundings {
        Surroundings {
            console: Console::new(ui),
            env,
            builtins,
            cli_config,
            cli_problems: Diagnostics::new(),
            original_dir: working_dir.clone(),
            working_dir,
            mounts: OnceLock::new(),
        }
    }

    /// Shows what came of a command, and gives its exit status.
    pub fn render(&self, outcome: Outcome) -> Status {
        for part in outcome.parts {
            match part {
                Part::Problems(problems, sources) => {
                    self.show_now(&problems, &sources);
                }
                Part::Text(text) => self.ui.out(text),
                Part::Exact(text) => self.ui.out_bytes(text.as_bytes()),
                Part::Error(text) => self.ui.err(text),
            }
        }
        outcome.status
    }

    /// Goes on where there is no error: warnings are shown now. With errors among them, all problems are those of the failure.
    pub fn pass(&self, problems: &Diagnostics, sources: &SourceMap) -> Result<(), Failure> {
        if problems.has_errors() {
            return Err(Failure::within(problems.clone(), sources));
        }
        self.show_now(problems, sources);
        Ok(())
    }

    /// The plugins of the working directory, for the engine.
    pub fn plugins(&self) -> Result<Plugins, Diagnostics> {
        Ok(Plugins::new(self.catalog()?, self.plugin_host()?))
    }

    /// What starts plugins.
    pub fn plugin_host(&self) -> Result<Host, Diagnostics> {
        let executable = self.builtins.executable.clone();
        let mut settings = HostSettings::from_environment(executable, TERRAFORM_VERSION, |name| self.env.get(name))?;
        // A relative path is meant from where the command was called; plugins run where -chdir leads.
        for name in ["TF_CLI_CONFIG_FILE", "TERRAFORM_CONFIG", pack::TRUST] {
            if let Some(path) = self.env.get(name).filter(|path| Path::new(path).is_relative()) {
                let absolute = self.original_dir.join(path).into_os_string();
                settings.environment.insert(name.to_owned(), absolute);
            }
        }
        settings.schemas = SchemaStore::from_environment(&self.env).map(Arc::new);
        let (ui, stream) = (self.ui.clone(), self.stream.clone());
        settings.waiting = Some(ReportWaiting(Arc::new(move |host| {
            let text = format!("Waiting for {host} to answer...");
            match &stream {
                Some(stream) => stream.log(&text),
                // Standard output may be read by a script, as that of "output -raw" is.
                None => ui.err(format!("- {text}\n")),
            }
        })));
        Ok(Host::new(settings))
    }

    /// The conditions under which packs are opened.
    pub fn pack_conditions(&self) -> pack::Conditions {
        let mut conditions = pack::Conditions::from_environment(&self.env);
        if let pack::Trust::Environment(file) = &mut conditions.trust {
            *file = self.original_dir.join(&*file);
        }
        conditions
    }

    /// The plugins that are available to the working directory.
    pub fn catalog(&self) -> Result<Catalog, Diagnostics> {
        self.catalog_with(|_| {})
    }

    /// The same with some settings changed.
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

    /// What makes requests to registries and other places. It costs nothing before the first one.
    #[must_use]
    pub fn net(&self) -> net::Client {
        let plugins = self.env.home().map(|home| home.join(".terraform.d/plugins"));
        let platform = addrs::platform::Platform::current().to_string();
        let (ui, stream, beside) = (self.ui.clone(), self.stream.clone(), self.form.beside_results);
        let client = net::Client::new(net::NetSettings {
            environment: files::Environment::clone(&self.env),
            hosts: self.cli_config.hosts.clone(),
            helper_dirs: plugins.into_iter().flat_map(|dir| [dir.join(&platform), dir]).collect(),
            terraform_version: TERRAFORM_VERSION.to_owned(),
            product: format!("Monoform/{}", crate::VERSION),
        });
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

    /// The runtime for what happens at the same time.
    pub fn runtime(&self) -> Result<tokio::runtime::Runtime, Diagnostics> {
        // Certificates, which connections to plugins and registries need, cannot be made or checked at such a time.
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
        // The runtime itself would panic without a thread.
        let workers = match try_threads(wanted + SPARE_THREADS) {
            Ok(()) => wanted,
            Err(_) => try_threads(1 + SPARE_THREADS).map(|()| 1).map_err(refused)?,
        };
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(workers)
            .enable_all()
            .build()
            .map_err(refused)
    }
}
