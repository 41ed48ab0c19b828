//! A plugin under examination: its output, requests as bytes, and its end.
//!
//! [`crate::Host`] serves commands, so it hides as many faults of a plugin as possible. A [`Probe`] shows all of them.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use files::temporary::PrivateDirectory;
use tokio::io::{AsyncRead, AsyncReadExt, BufReader};
use tokio::process::{Child, Command};
use tonic::client::Grpc;
use tonic::codec::{BufferSettings, Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::Channel;
use tonic::{Code, Status};

use crate::handshake::{COOKIE_NAME, COOKIE_VALUE, Handshake};
use crate::tls::Identity;
use crate::{channel, launch, logs, spawner};

/// Maximum number of bytes of an output that are kept.
const KEPT: usize = 64 << 10;

/// Settings for the start of a plugin.
#[derive(Clone, Copy, Debug)]
pub struct Start<'a> {
    pub program: &'a Path,
    /// Protocols that are offered: `PLUGIN_PROTOCOL_VERSIONS`.
    pub protocols: &'a [u32],
    /// True if TLS is offered for the connection.
    pub tls: bool,
    /// False if the plugin is started as a person would start it, without the variable by which a plugin recognizes its host.
    pub cookie: bool,
    /// Time limit for the handshake line.
    pub timeout: Duration,
}

/// Reason why a plugin cannot be examined.
#[derive(Debug, thiserror::Error)]
pub enum StartFailure {
    #[error("it cannot be started: {}", files::io_reason(.0))]
    Spawn(#[from] io::Error),
    #[error("no certificate for the connection: {0}")]
    Certificate(String),
    /// The process ended before the handshake line.
    #[error("it ended before it printed its address ({status})")]
    Ended {
        status: ExitStatus,
        /// Text that the process printed to standard output and standard error.
        printed: String,
    },
    #[error("it printed no address within {} seconds", .0.as_secs_f64())]
    Late(Duration),
    #[error("{0}")]
    Handshake(String),
    /// The handshake has no certificate although TLS was offered, or has one although it was not.
    #[error("{0}")]
    Tls(&'static str),
}

/// Answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    Message(Vec<u8>),
    /// The plugin answered with a status: its code and message.
    Refused(String, String),
    /// The connection failed, so no answer will come; contains the reason.
    Lost(String),
    /// There was no answer within the time limit.
    Late,
}

/// Output of a plugin, as far as it is kept.
type Output = Arc<Mutex<Vec<u8>>>;

/// A running plugin under examination.
pub struct Probe {
    /// Protocol that the plugin chose.
    pub protocol: u32,
    channel: Channel,
    child: Child,
    stdout: Output,
    stderr: Output,
    sockets: Option<PrivateDirectory>,
}

impl Probe {
    /// Starts a plugin.
    ///
    /// # Errors
    /// It does not start, or prints no handshake line with its address.
    pub async fn start(start: &Start<'_>) -> Result<Probe, StartFailure> {
        let identity = match start.tls {
            true => Some(Identity::generate().map_err(|error| StartFailure::Certificate(error.to_string()))?),
            false => None,
        };
        let sockets = launch::socket_dir();
        let mut command = command(start, identity.as_ref(), sockets.as_ref());
        spawner::end_with_us(&mut command);
        let mut child = spawner::spawn(command).await?;
        let stderr = Output::default();
        if let Some(pipe) = child.stderr.take() {
            tokio::spawn(keep(pipe, stderr.clone()));
        }
        let mut pipe = child.stdout.take().map(BufReader::new);
        let first = async {
            match &mut pipe {
                Some(pipe) => logs::read_line(pipe).await,
                None => Ok(None),
            }
        };
        let line = match tokio::time::timeout(start.timeout, first).await {
            Ok(line) => line?,
            Err(_) => {
                let _ = child.kill().await;
                return Err(StartFailure::Late(start.timeout));
            }
        };
        let Some(line) = line else {
            let status = match tokio::time::timeout(start.timeout, child.wait()).await {
                Ok(status) => status?,
                Err(_) => return Err(StartFailure::Late(start.timeout)),
            };
            return Err(StartFailure::Ended {
                status,
                printed: text(&stderr),
            });
        };
        let stdout = Output::default();
        if let Some(pipe) = pipe {
            tokio::spawn(keep(pipe, stdout.clone()));
        }
        let handshake = match Handshake::parse(&line, start.protocols) {
            Ok(handshake) => handshake,
            Err(error) => {
                let _ = child.kill().await;
                // The error contains the line. It may be a text for people: a program that prints one and ends is not a plugin.
                return Err(StartFailure::Handshake(error.to_string()));
            }
        };
        let tls = match (identity, handshake.certificate) {
            (None, None) => None,
            (Some(identity), Some(certificate)) => Some(
                identity
                    .client_config(certificate)
                    .map_err(|error| StartFailure::Certificate(error.to_string()))?,
            ),
            (Some(_), None) => {
                return Err(StartFailure::Tls(
                    "it does not encrypt the connection, although TLS was offered",
                ));
            }
            (None, Some(_)) => {
                return Err(StartFailure::Tls(
                    "it demands an encrypted connection, although TLS was not offered",
                ));
            }
        };
        Ok(Probe {
            protocol: handshake.protocol,
            channel: channel::open(handshake.address, tls),
            child,
            stdout,
            stderr,
            sockets,
        })
    }

    /// Sends a request with arbitrary bytes as its message.
    ///
    /// `service` is the full name of the gRPC service, such as `tfplugin6.Provider`.
    pub async fn call(&self, service: &str, method: &str, message: Vec<u8>, limit: Duration) -> Answer {
        let asked = async {
            let mut grpc = Grpc::new(self.channel.clone()).max_decoding_message_size(channel::MESSAGE_LIMIT);
            grpc.ready()
                .await
                .map_err(|error| Status::unavailable(error.to_string()))?;
            let path = PathAndQuery::from_maybe_shared(format!("/{service}/{method}"))
                .map_err(|error| Status::internal(error.to_string()))?;
            grpc.unary(tonic::Request::new(message), path, Bytes).await
        };
        let status = match tokio::time::timeout(limit, asked).await {
            Err(_) => return Answer::Late,
            Ok(Ok(answer)) => return Answer::Message(answer.into_inner()),
            Ok(Err(status)) => status,
        };
        // tonic gives a source only to a status that it made itself: the plugin's answer never came.
        let is_lost = status.code() == Code::Unavailable || std::error::Error::source(&status).is_some();
        match is_lost {
            true => Answer::Lost(status.message().to_owned()),
            false => Answer::Refused(format!("{:?}", status.code()), status.message().to_owned()),
        }
    }

    /// Asks the plugin's library to end the process, as hosts do.
    pub async fn shut_down(&self, limit: Duration) -> Answer {
        self.call("plugin.GRPCController", "Shutdown", Vec::new(), limit).await
    }

    /// Sends a signal. Returns false if the process has ended, or if this system has no such signal.
    pub fn signal(&self, signal: system::processes::Ask) -> bool {
        self.child.id().is_some_and(|id| system::processes::ask(id, signal))
    }

    /// Waits for the end of the process; `None` if it still runs after the time limit.
    pub async fn wait(&mut self, limit: Duration) -> Option<ExitStatus> {
        match tokio::time::timeout(limit, self.child.wait()).await {
            Ok(Ok(status)) => Some(status),
            _ => None,
        }
    }

    /// Returns true while the process runs.
    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Returns the text that the plugin has printed to standard output after its handshake line, up to [`KEPT`] bytes.
    #[must_use]
    pub fn printed(&self) -> String {
        text(&self.stdout)
    }

    /// Returns the text that the plugin has written to standard error, up to [`KEPT`] bytes.
    #[must_use]
    pub fn log(&self) -> String {
        text(&self.stderr)
    }

    /// Returns the files in the directory that the plugin got for its socket.
    #[must_use]
    pub fn sockets(&self) -> Vec<PathBuf> {
        let entries = self.sockets.iter().flat_map(|dir| std::fs::read_dir(dir.path()));
        entries.flatten().flatten().map(|entry| entry.path()).collect()
    }
}

/// Returns the command that starts a plugin, with the environment variables by which a host offers protocols, a certificate and
/// a directory for the socket.
fn command(start: &Start<'_>, identity: Option<&Identity>, sockets: Option<&PrivateDirectory>) -> Command {
    let mut command = Command::new(start.program);
    let protocols: Vec<String> = start.protocols.iter().map(u32::to_string).collect();
    command
        .env_remove(COOKIE_NAME)
        .env_remove("PLUGIN_CLIENT_CERT")
        .env("PLUGIN_PROTOCOL_VERSIONS", protocols.join(","))
        .env("PLUGIN_MIN_PORT", "10000")
        .env("PLUGIN_MAX_PORT", "25000")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    if start.cookie {
        command.env(COOKIE_NAME, COOKIE_VALUE);
    }
    if let Some(identity) = identity {
        command.env("PLUGIN_CLIENT_CERT", identity.pem());
    }
    if let Some(dir) = sockets {
        command.env("PLUGIN_UNIX_SOCKET_DIR", dir.path());
    }
    command
}

fn text(output: &Output) -> String {
    let bytes = output.lock().unwrap_or_else(PoisonError::into_inner);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Reads an output to its end, so that the plugin never blocks on a full pipe. Stores the first [`KEPT`] bytes.
async fn keep(mut from: impl AsyncRead + Unpin, to: Output) {
    let mut buffer = vec![0; 8 << 10];
    while let Ok(read @ 1..) = from.read(&mut buffer).await {
        let mut kept = to.lock().unwrap_or_else(PoisonError::into_inner);
        let rest = KEPT.saturating_sub(kept.len()).min(read);
        kept.extend_from_slice(buffer.get(..rest).unwrap_or_default());
    }
}

/// Messages as bytes, without a type.
struct Bytes;

impl Codec for Bytes {
    type Encode = Vec<u8>;
    type Decode = Vec<u8>;
    type Encoder = Bytes;
    type Decoder = Bytes;

    fn encoder(&mut self) -> Bytes {
        Bytes
    }

    fn decoder(&mut self) -> Bytes {
        Bytes
    }
}

impl Encoder for Bytes {
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, item: Vec<u8>, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        use prost::bytes::BufMut;
        to.put_slice(&item);
        Ok(())
    }

    fn buffer_settings(&self) -> BufferSettings {
        BufferSettings::default()
    }
}

impl Decoder for Bytes {
    type Item = Vec<u8>;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Vec<u8>>, Status> {
        use prost::bytes::Buf;
        let mut bytes = vec![0; from.remaining()];
        from.copy_to_slice(&mut bytes);
        Ok(Some(bytes))
    }

    fn buffer_settings(&self) -> BufferSettings {
        BufferSettings::default()
    }
}
