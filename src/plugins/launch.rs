//! Start of a plugin: spawn, handshake, channel.

#![expect(
    clippy::disallowed_methods,
    reason = "sockets of plugins go to a directory that the environment names"
)]

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use files::temporary::PrivateDirectory;
use syntax::diag::Extra;
use syntax::{Diagnostic, Diagnostics};
use tokio::io::BufReader;
use tokio::process::{Child, Command};
use tonic::transport::Channel;

use crate::channel;
use crate::handshake::{Address, COOKIE_NAME, COOKIE_VALUE, Handshake};
use crate::logs;
use crate::process::{AT_LIMIT, Process, ReportWaiting};
use crate::spawner;
use crate::tls::Identity;

/// Command line, environment and settings for the start of a plugin.
#[derive(Clone, Debug)]
pub struct Launch {
    /// Name of the plugin in messages: `provider "hashicorp/null"`.
    pub title: String,
    pub program: PathBuf,
    /// Arguments of the program; external plugins get none.
    pub args: Vec<OsString>,
    /// Protocols that are offered to the plugin.
    pub protocols: Vec<u32>,
    /// True if the connection is encrypted, provided that the plugin supports it.
    pub tls: bool,
    /// Time limit for the handshake line.
    pub timeout: Duration,
    /// True for a built-in plugin, which reads nothing from its standard input and notices the end of this process by
    /// itself. Other plugins inherit the standard input, as with Terraform, and on Linux the kernel ends them with
    /// this process, however that ends (see [`crate::spawner`]).
    pub own: bool,
    /// Environment variables that differ from this process's.
    pub environment: BTreeMap<String, OsString>,
    /// Callback for a plugin that waits for a server; used by built-in plugins only.
    pub waiting: Option<ReportWaiting>,
}

/// Plugin that has sent its handshake, with its connection.
pub struct Launched {
    pub channel: Channel,
    pub protocol: u32,
    pub process: Process,
}

impl Launch {
    /// Default of the time limit for the handshake line.
    pub const TIMEOUT: Duration = Duration::from_secs(60);

    pub async fn start(&self) -> Result<Launched, Diagnostics> {
        let identity = if self.tls {
            Some(Identity::generate().map_err(|error| self.failure(&error.to_string()))?)
        } else {
            None
        };
        let socket_dir = socket_dir();
        let homeless = socket_dir.is_none();
        let mut child = self.spawn(identity.as_ref(), socket_dir.as_ref()).await?;
        let mut stdout = child.stdout.take().map(BufReader::new);
        let line = match &mut stdout {
            Some(stdout) => tokio::time::timeout(self.timeout, logs::read_line(stdout)).await,
            None => Ok(Ok(None)),
        };
        // From here on the process is watched, and each error below ends it.
        let waiting = self.waiting.clone().filter(|_| self.own);
        let process = Process::watch(child, &self.title, self.program.clone(), stdout, socket_dir, waiting);
        let line = match line {
            Ok(Ok(Some(line))) => line,
            Ok(Ok(None)) => {
                let report = process.exit_report().await;
                // Without a directory, built-in plugins listen on an abstract socket.
                let hint = if homeless && !self.own { NO_PLACE } else { "" };
                return Err(self.failure(&format!(
                    "It ended, or closed its standard output, before it printed its address. {report}{hint}"
                )));
            }
            Ok(Err(error)) => return Err(self.failure(&format!("Its standard output cannot be read: {error}."))),
            Err(_) => {
                // The process is killed first, because its output is complete only after its end.
                process.kill().await;
                let lines = process.final_log_lines().await;
                return Err(self.failure(&format!(
                    "It did not say within {} seconds where it can be reached, and was killed. It may not be a plugin, \
                     or the machine may be overloaded.{lines}",
                    self.timeout.as_secs_f64()
                )));
            }
        };
        let handshake = match Handshake::parse(&line, &self.protocols) {
            Ok(handshake) => handshake,
            Err(error) => {
                process.kill().await;
                return Err(self.failure(&error.to_string()));
            }
        };
        let tls = match (identity, handshake.certificate) {
            (Some(identity), Some(certificate)) => Some(
                identity
                    .client_config(certificate)
                    .map_err(|error| self.failure(&error.to_string()))?,
            ),
            // The plugin does not use TLS; its messages go over a local socket.
            (Some(_), None) | (None, None) => None,
            (None, Some(_)) => {
                return Err(self.failure(
                    "It wants an encrypted connection, but encryption is turned off by TF_DISABLE_PLUGIN_TLS.",
                ));
            }
        };
        tracing::debug!(plugin = self.title, protocol = handshake.protocol, "plugin started");
        Ok(Launched {
            channel: channel::open(handshake.address, tls),
            protocol: handshake.protocol,
            process,
        })
    }

    async fn spawn(
        &self,
        identity: Option<&Identity>,
        socket_dir: Option<&PrivateDirectory>,
    ) -> Result<Child, Diagnostics> {
        let mut command = Command::new(&self.program);
        let protocols: Vec<String> = self.protocols.iter().map(u32::to_string).collect();
        command
            .args(&self.args)
            .envs(&self.environment)
            .env(COOKIE_NAME, COOKIE_VALUE)
            .env("PLUGIN_PROTOCOL_VERSIONS", protocols.join(","))
            // The usual range of hosts that use go-plugin, for systems without Unix sockets.
            .env("PLUGIN_MIN_PORT", "10000")
            .env("PLUGIN_MAX_PORT", "25000")
            // This variable is set if this process is a plugin itself. A certificate means TLS, which may be
            // off for the new plugin.
            .env_remove("PLUGIN_CLIENT_CERT")
            // An empty standard input that needs no /dev/null: the pipe is closed at once.
            .stdin(if self.own { Stdio::piped() } else { Stdio::inherit() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        // Ctrl-C reaches the whole foreground group. Plugins ignore SIGINT (their libraries do so) and wait for the
        // request to stop. They stay in the group, because credential helpers that they run may need the terminal.
        if let Some(identity) = identity {
            command.env("PLUGIN_CLIENT_CERT", identity.pem());
        }
        if let Some(dir) = socket_dir {
            command.env("PLUGIN_UNIX_SOCKET_DIR", dir.path());
        }
        if !self.own {
            spawner::end_with_us(&mut command);
        }
        match spawner::spawn(command).await {
            Ok(mut child) => {
                drop(child.stdin.take());
                Ok(child)
            }
            Err(error) => Err(self.failure(&explain_spawn(&self.program, &error))),
        }
    }

    fn failure(&self, why: &str) -> Diagnostics {
        let program = self.program.display();
        let mut failure = Diagnostic::error(
            "Failed to start plugin",
            format!("The {} ({program}) could not be started. {why}", self.title),
        );
        failure.extra = Extra::NotStarted;
        failure.into()
    }
}

/// Advice about a plugin that ended on a system without a writable directory.
const NO_PLACE: &str = "\n\nMost plugins need a directory that they can write, for their socket, and there is none here: make /tmp one \
                        (in a container, mount a tmpfs there), or let the environment variable TMPDIR name one.";

/// Maximum length of the path of a directory for sockets, in bytes. Systems allow at least 103 bytes for the path of a socket, and a plugin
/// adds names of its own.
const LONGEST_SOCKET_DIR: usize = 79;

/// Returns the candidate directories for the sockets of plugins, existing or not, best first.
pub(crate) fn places_for_sockets() -> impl Iterator<Item = PathBuf> {
    let runtime_dir = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let places = [
        Some(std::env::temp_dir()),
        runtime_dir,
        Some("/tmp".into()),
        Some("/var/tmp".into()),
        // This directory exists in containers with a read-only root.
        Some("/dev/shm".into()),
        // In a chroot into a bare directory, only the working directory exists.
        std::env::current_dir().ok(),
    ];
    places.into_iter().flatten().filter(|place| place.is_absolute())
}

/// Creates a directory for the plugin's socket in the first candidate directory where that succeeds and the path is short enough; `None` if
/// there is none.
pub(crate) fn socket_dir() -> Option<PrivateDirectory> {
    // The plugin gets a directory of its own, which is removed with the process, so that no socket is left over
    // when it is killed.
    places_for_sockets()
        .filter_map(|parent| PrivateDirectory::create_in(&parent).ok())
        .find(|dir| dir.path().as_os_str().len() <= LONGEST_SOCKET_DIR)
}

fn explain_spawn(program: &Path, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound if program.exists() => {
            "The file exists, but the interpreter or dynamic loader it names \
             does not: it may be built for another system or C library."
                .to_owned()
        }
        io::ErrorKind::NotFound => "The file does not exist. Run init to install it again.".to_owned(),
        io::ErrorKind::PermissionDenied if program.is_dir() => "This is a directory, not a file.".to_owned(),
        io::ErrorKind::PermissionDenied => {
            "The file is not executable, or the file system it is on does not allow programs to run.".to_owned()
        }
        _ if error.raw_os_error() == Some(system::processes::NOT_EXECUTABLE) => format!(
            "The file is not a program for this machine ({}): it may be built for another operating system or \
             processor, or be damaged.",
            addrs::platform::Platform::current()
        ),
        io::ErrorKind::ExecutableFileBusy => "Another process has the file open for writing. If it is still being \
                                              written, run the command again when that is done."
            .to_owned(),
        // EAGAIN: the limit of processes is reached.
        io::ErrorKind::WouldBlock => AT_LIMIT.to_owned(),
        _ => format!("The operating system says: {error}."),
    }
}

/// Returns a channel to a plugin that the user started, without TLS.
#[must_use]
pub fn attach(address: Address) -> Channel {
    channel::open(address, None)
}
