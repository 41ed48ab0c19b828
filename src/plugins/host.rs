//! Plugin host: starts the plugins of one operation, each in a process of its own.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use addrs::Provider as Address;
use provider::{Provider, Provisioner, StateStore};
use syntax::{Diagnostic, Diagnostics};
use tokio::sync::Semaphore;

use crate::connection::PluginConnection;
use crate::grpc::Methods;
use crate::grpc_provider::{Access, GrpcProvider, Kept, SharedSchema};
use crate::grpc_provisioner::GrpcProvisioner;
use crate::grpc_state_store::GrpcStateStore;
use crate::launch::{self, Launch};
use crate::process::ReportWaiting;
use crate::reattach::{self, Reattach};
use crate::schemas::SchemaStore;

/// Environment variable with the seconds that a plugin may take until its handshake: `5`, `0.5`. A value that is not a
/// positive number is ignored; the default is [`Launch::TIMEOUT`].
pub const START_TIMEOUT: &str = "MONOFORM_PLUGIN_START_TIMEOUT";

#[derive(Clone, Debug)]
pub struct HostSettings {
    /// Path of this executable, which serves the built-in plugins.
    pub executable: PathBuf,
    /// Version of Terraform that is sent to providers.
    pub terraform_version: String,
    /// Time limit for a plugin's handshake.
    pub start_timeout: Duration,
    /// True if connections to plugins are encrypted.
    pub tls: bool,
    /// Providers that the user started, by address.
    pub reattached: BTreeMap<Address, Reattach>,
    /// Environment variables that built-in plugins get instead of the process's own.
    pub environment: BTreeMap<String, OsString>,
    /// Trace context of plugins; `None` if no trace is recorded.
    pub traceparent: Option<String>,
    /// Callback for a built-in plugin that waits for a server.
    pub waiting: Option<ReportWaiting>,
    /// Store of the schemas of provider packages; `None` if they are requested each time.
    pub schemas: Option<Arc<SchemaStore>>,
}

impl HostSettings {
    /// Reads the settings from environment variables; `get` returns the value of one that is set.
    ///
    /// # Errors
    /// `TF_REATTACH_PROVIDERS` cannot be parsed.
    pub fn from_environment<'e>(
        executable: PathBuf,
        terraform_version: &str,
        get: impl Fn(&str) -> Option<&'e str>,
    ) -> Result<HostSettings, Diagnostics> {
        let start_timeout = get(START_TIMEOUT)
            .and_then(|seconds| seconds.trim().parse::<f64>().ok())
            .filter(|seconds| *seconds > 0.0)
            // Unlike the conversion that panics, this one fails for numbers that no duration can represent.
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
            .unwrap_or(Launch::TIMEOUT);
        let reattached = match get("TF_REATTACH_PROVIDERS") {
            Some(text) => reattach::parse(text)?,
            None => BTreeMap::new(),
        };
        Ok(HostSettings {
            executable,
            terraform_version: terraform_version.to_owned(),
            start_timeout,
            tls: get("TF_DISABLE_PLUGIN_TLS").is_none(),
            reattached,
            environment: BTreeMap::new(),
            traceparent: None,
            waiting: None,
            schemas: None,
        })
    }
}

/// Program that a plugin is started from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Program {
    /// Plugin built into this executable.
    Builtin {
        /// Name that the plugin is served under.
        name: String,
        protocols: Vec<u32>,
    },
    /// Executable file of an external plugin.
    Executable {
        path: PathBuf,
        /// The checksum of the package that it belongs to; `None` if the executable may change at any time, as under development.
        /// Schemas are stored only with a checksum.
        package: Option<String>,
    },
    /// Provider packed into this executable, which runs from memory.
    Packed {
        /// Address of the provider.
        provider: String,
        version: String,
        /// Checksum of the package, under which its schemas are stored.
        package: Option<String>,
    },
    /// No program: the provider runs already, at the address in the host's settings.
    Reattached,
}

/// Limit of the providers that start at the same time. A start keeps a whole processor busy, so more than a few at a time save
/// nothing, but a plugin that hangs must not block the others.
const STARTS: usize = 8;

/// Plugin host. Schemas are requested once for each provider address, and shared by its processes.
pub struct Host {
    settings: HostSettings,
    terraform_version: Arc<str>,
    schemas: Mutex<BTreeMap<Address, SharedSchema>>,
    starts: Arc<Semaphore>,
}

impl Host {
    #[must_use]
    pub fn new(settings: HostSettings) -> Host {
        Host {
            terraform_version: settings.terraform_version.as_str().into(),
            settings,
            schemas: Mutex::default(),
            starts: Arc::new(Semaphore::new(STARTS)),
        }
    }

    /// Returns true if there is a store for the schemas of provider packages.
    #[must_use]
    pub fn keeps_schemas(&self) -> bool {
        self.settings.schemas.is_some()
    }

    /// Creates a provider, whose process is started or connected to when it is first needed.
    ///
    /// # Errors
    /// The program is [`Program::Reattached`], but the user has started no such provider.
    pub fn provider(&self, provider: &Address, program: Program) -> Result<Arc<dyn Provider>, Diagnostics> {
        let shared = self
            .schemas
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .entry(provider.clone())
            .or_default()
            .clone();
        let title = format!("provider \"{}\"", provider.for_display());
        let (launch, package) = match program {
            Program::Reattached => {
                let reattach = self.reattached(provider, &title)?;
                let channel = launch::attach(reattach.address.clone());
                let access = Access::Running(channel, Methods::for_protocol(reattach.protocol));
                return Ok(self.grpc_provider(title, access, shared, None));
            }
            Program::Builtin { name, protocols } => (self.builtin(title, "provider", &name, protocols), None),
            Program::Executable { path, package } => (self.executable(title, path, vec![5, 6]), package),
            Program::Packed {
                provider,
                version,
                package,
            } => (self.packed(title, &provider, &version, vec![5, 6]), package),
        };
        let kept = package.zip(self.settings.schemas.clone()).map(|(package, store)| {
            Arc::new(Kept {
                store,
                package,
                launch: launch.clone(),
            })
        });
        if !shared.initialized()
            && let Some(description) = kept.as_ref().and_then(Kept::description)
        {
            // Another process may have set the same description meanwhile, which is equally good.
            let _ = shared.set(description);
        }
        let title = launch.title.clone();
        Ok(self.grpc_provider(title, Access::Start(launch, self.starts.clone()), shared, kept))
    }

    fn grpc_provider(
        &self,
        title: String,
        access: Access,
        shared: SharedSchema,
        kept: Option<Arc<Kept>>,
    ) -> Arc<dyn Provider> {
        let version = self.terraform_version.clone();
        Arc::new(GrpcProvider::new(title, access, shared, kept, version))
    }

    /// Starts a provisioner.
    ///
    /// # Errors
    /// The plugin does not start.
    pub async fn provisioner(&self, name: &str, program: Program) -> Result<Arc<dyn Provisioner>, Diagnostics> {
        let title = format!("provisioner \"{name}\"");
        let launch = match program {
            Program::Builtin { name, protocols } => self.builtin(title, "provisioner", &name, protocols),
            Program::Executable { path, .. } => self.executable(title, path, vec![5]),
            Program::Packed { .. } | Program::Reattached => {
                let detail = format!("A provider's program was named for {title}, which must be started.");
                return Err(Diagnostic::error("Provisioner not available", detail).into());
            }
        };
        let launched = launch.start().await?;
        let connection = Arc::new(PluginConnection::new(launch.title, Some(launched.process)));
        Ok(Arc::new(GrpcProvisioner::new(connection, launched.channel)))
    }

    /// Starts a built-in state store.
    ///
    /// # Errors
    /// The plugin does not start.
    pub async fn state_store(&self, name: &str) -> Result<Arc<dyn StateStore>, Diagnostics> {
        let launch = self.builtin(format!("state store \"{name}\""), "state", name, vec![6]);
        let launched = launch.start().await?;
        let connection = Arc::new(PluginConnection::new(launch.title, Some(launched.process)));
        Ok(Arc::new(GrpcStateStore::new(
            connection,
            launched.channel,
            name.to_owned(),
            self.terraform_version.clone(),
        )))
    }

    /// Starts a provider for one of its state stores, or connects to one that runs already.
    ///
    /// # Errors
    /// The plugin does not start, speaks a protocol without state stores, or should run already but was not started by the user.
    pub async fn state_store_of(
        &self,
        provider: &Address,
        program: Program,
        name: &str,
    ) -> Result<Arc<dyn StateStore>, Diagnostics> {
        let title = format!("provider \"{}\"", provider.for_display());
        let launch = match program {
            Program::Reattached => {
                let reattach = self.reattached(provider, &title)?;
                if reattach.protocol != 6 {
                    let detail = format!("State stores need protocol 6, and {title} was started with another one.");
                    return Err(Diagnostic::error("Incompatible provider", detail).into());
                }
                let channel = launch::attach(reattach.address.clone());
                // The connection has no process: the user who started the plugin also ends it.
                let connection = Arc::new(PluginConnection::new(title, None));
                let version = self.terraform_version.clone();
                return Ok(Arc::new(GrpcStateStore::new(
                    connection,
                    channel,
                    name.to_owned(),
                    version,
                )));
            }
            Program::Builtin { name, protocols } if !protocols.contains(&6) => {
                let detail = format!("State stores need protocol 6, and \"{name}\" has none.");
                return Err(Diagnostic::error("Incompatible provider", detail).into());
            }
            Program::Builtin { name, .. } => self.builtin(title, "provider", &name, vec![6]),
            Program::Executable { path, .. } => self.executable(title, path, vec![6]),
            Program::Packed { provider, version, .. } => self.packed(title, &provider, &version, vec![6]),
        };
        let launched = launch.start().await?;
        let connection = Arc::new(PluginConnection::new(launch.title, Some(launched.process)));
        let version = self.terraform_version.clone();
        Ok(Arc::new(GrpcStateStore::new(
            connection,
            launched.channel,
            name.to_owned(),
            version,
        )))
    }

    /// Returns the address and protocol of a provider that the user started.
    fn reattached(&self, provider: &Address, title: &str) -> Result<&Reattach, Diagnostics> {
        self.settings.reattached.get(provider).ok_or_else(|| {
            let detail = format!("TF_REATTACH_PROVIDERS does not say where {title} can be reached.");
            Diagnostic::error("Provider not available", detail).into()
        })
    }

    fn builtin(&self, title: String, kind: &str, name: &str, protocols: Vec<u32>) -> Launch {
        let args = ["internal-plugin", kind, name].map(OsString::from).to_vec();
        Launch {
            args,
            own: true,
            environment: [&self.settings.environment, &self.traced()]
                .into_iter()
                .flatten()
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
            waiting: self.settings.waiting.clone(),
            ..self.executable(title, self.settings.executable.clone(), protocols)
        }
    }

    /// Returns the launch of a packed provider: this program starts itself with `internal-plugin packed`, loads the provider's
    /// executable into memory and runs it.
    fn packed(&self, title: String, provider: &str, version: &str, protocols: Vec<u32>) -> Launch {
        let args = ["internal-plugin", "packed", provider, version].map(OsString::from);
        Launch {
            args: args.to_vec(),
            ..self.executable(title, self.settings.executable.clone(), protocols)
        }
    }

    /// Returns the environment variables that all plugins get: the trace context, if a trace is recorded.
    fn traced(&self) -> BTreeMap<String, OsString> {
        let parent = self.settings.traceparent.iter();
        parent.map(|parent| ("TRACEPARENT".to_owned(), parent.into())).collect()
    }

    fn executable(&self, title: String, program: PathBuf, protocols: Vec<u32>) -> Launch {
        Launch {
            title,
            program,
            args: Vec::new(),
            protocols,
            tls: self.settings.tls,
            timeout: self.settings.start_timeout,
            own: false,
            environment: self.traced(),
            waiting: None,
        }
    }
}
