//! Serving a plugin: from the start of the process to its end.

pub(crate) mod auxiliary;
pub(crate) mod core;
mod debug;
mod handshake;
mod listen;
mod log;
mod messages;
mod provider_service;
mod provisioner_service;
#[cfg(test)]
mod tests;
mod tls;

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use proto::go_plugin::grpc_broker_server::GrpcBrokerServer;
use proto::go_plugin::grpc_controller_server::GrpcControllerServer;
use proto::go_plugin::grpc_stdio_server::GrpcStdioServer;
use proto::health::health_server::HealthServer;
use proto::{tfplugin5, tfplugin6};
use tokio::net::UnixListener;
use tokio::signal::unix::{SignalKind, signal};
use tonic::service::Routes;
use tonic::transport::Server;

use self::auxiliary::{Auxiliary, Shutdown};
use self::core::Core;
use self::handshake::Asked;
pub use self::handshake::HANDSHAKE_VARIABLES;
use self::listen::Socket;
use self::tls::{Tls, TlsError};
use crate::{Provider, Provisioner};

/// The largest message either way.
const MESSAGE_LIMIT: usize = 256 * 1024 * 1024;

/// How long calls in progress may take to end once the plugin was asked to.
const GRACE: Duration = Duration::from_millis(1500);

/// Serves a provider to the program that started this process, until that program is done with it.
///
/// Everything it asks for is in the environment. Started by hand, the process says what it is and fails.
///
/// It speaks protocol 5 and 6; a provider with nested attributes, which only protocol 6 has, speaks that one only.
pub fn serve_provider<P: Provider>(provider: P) -> ExitCode {
    match ready(provider) {
        Ok(core) => serve(core.protocols(), |version| provider_routes(core, version)),
        Err(code) => code,
    }
}

/// Serves a provider that you started yourself, in a debugger perhaps, until it is interrupted.
///
/// What is printed first is a setting of `TF_REATTACH_PROVIDERS`: where that is set, Terraform, OpenTofu and Monoform use
/// this process in place of the provider at `address` (as in `registry.terraform.io/example/notes`), as often as they run.
/// Providers usually do this when they are given the argument `-debug`.
pub fn debug_provider<P: Provider>(address: &str, provider: P) -> ExitCode {
    match ready(provider) {
        Ok(core) => {
            log::start(|name| std::env::var(name).ok());
            let asked = Asked::by_nobody(core.protocols());
            end(start(&asked, Some(address), |version| provider_routes(core, version)))
        }
        Err(code) => code,
    }
}

/// Compiles a provider's schemas.
fn ready<P: Provider>(provider: P) -> Result<Core, ExitCode> {
    let core = Core::new(provider);
    if core.twice.is_empty() {
        return Ok(core);
    }
    let names = core.twice.join(", ");
    Err(end(Err(ServeError::Twice(names))))
}

/// Serves a provisioner to the program that started this process, until that program is done with it.
pub fn serve_provisioner<P: Provisioner>(provisioner: P) -> ExitCode {
    serve(&[5], |_| provisioner_routes(provisioner))
}

fn provider_routes(core: Core, version: u32) -> Routes {
    let service = provider_service::Service(Arc::new(core));
    if version == 6 {
        let server = tfplugin6::provider_server::ProviderServer::new(service);
        Routes::new(
            server
                .max_decoding_message_size(MESSAGE_LIMIT)
                .max_encoding_message_size(MESSAGE_LIMIT),
        )
    } else {
        let server = tfplugin5::provider_server::ProviderServer::new(service);
        Routes::new(
            server
                .max_decoding_message_size(MESSAGE_LIMIT)
                .max_encoding_message_size(MESSAGE_LIMIT),
        )
    }
}

fn provisioner_routes<P: Provisioner>(provisioner: P) -> Routes {
    let service = provisioner_service::Service::new(provisioner);
    let server = tfplugin5::provisioner_server::ProvisionerServer::new(service);
    Routes::new(
        server
            .max_decoding_message_size(MESSAGE_LIMIT)
            .max_encoding_message_size(MESSAGE_LIMIT),
    )
}

/// Why a plugin cannot start, or ends badly.
#[derive(Debug, thiserror::Error)]
enum ServeError {
    #[error("this provider cannot be served: it has more than one of its members by the name of {0}")]
    Twice(String),
    #[error("cannot open a socket: {0}")]
    Socket(io::Error),
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error("cannot answer on standard output: {0}")]
    Answer(io::Error),
    #[error("cannot watch for signals: {0}")]
    Signals(io::Error),
    #[error("cannot start: {0}")]
    Runtime(io::Error),
    #[error("the server failed: {0}")]
    Server(#[from] tonic::transport::Error),
}

fn serve(served: &[u32], routes: impl FnOnce(u32) -> Routes) -> ExitCode {
    let environment = |name: &str| std::env::var(name).ok();
    let Some(asked) = Asked::read(environment, served) else {
        drop(io::stderr().write_all(handshake::NOTICE.as_bytes()));
        return ExitCode::FAILURE;
    };
    log::start(environment);
    end(start(&asked, None, routes))
}

/// Says how it went.
fn end(result: Result<(), ServeError>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Before the handshake this is all that the other side can show; after it, it is logged there.
            drop(writeln!(io::stderr(), "{error}"));
            ExitCode::FAILURE
        }
    }
}

/// One thread is enough for many thousand small calls a second. Work that keeps a processor busy belongs in
/// [`blocking`](crate::blocking), which has threads of its own.
///
/// A plugin that was started by hand is told the address it stands for; then it is whoever started it who ends it.
fn start(asked: &Asked, by_hand_for: Option<&str>, routes: impl FnOnce(u32) -> Routes) -> Result<(), ServeError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(ServeError::Runtime)?;
    let result = runtime.block_on(async {
        let socket = Socket::open(asked).map_err(ServeError::Socket)?;
        let tls = asked.client_certificate.as_deref().map(Tls::new).transpose()?;
        let routes = routes(asked.version);
        // Signals are watched from before the other side can know of us.
        let shutdown = Shutdown::new();
        watch_for_the_end(shutdown.clone(), by_hand_for.is_some())?;

        let certificate = tls.as_ref().map(|tls| tls.certificate.as_slice());
        let mut line = match by_hand_for {
            Some(address) => debug::invitation(address, asked.version, &socket.path),
            None => handshake::line(asked.version, &socket.path, certificate),
        };
        // At once: who has read what it waits for may hang up.
        line.push('\n');
        let mut stdout = io::stdout().lock();
        stdout
            .write_all(line.as_bytes())
            .and_then(|()| stdout.flush())
            .map_err(ServeError::Answer)?;
        drop(stdout);

        // One of several clients cannot end it for the others.
        let asked_to_end = by_hand_for.map_or_else(|| shutdown.clone(), |_| Shutdown::new());
        run(socket.listener, tls, routes, Auxiliary(asked_to_end), shutdown).await
    });
    // Blocking work that is still going on ends with the process.
    runtime.shutdown_background();
    result
}

/// Serves until the end is asked for.
async fn run(
    listener: UnixListener,
    tls: Option<Tls>,
    routes: Routes,
    auxiliary: Auxiliary,
    shutdown: Shutdown,
) -> Result<(), ServeError> {
    let routes = routes
        .add_service(GrpcBrokerServer::new(auxiliary.clone()))
        .add_service(GrpcControllerServer::new(auxiliary.clone()))
        .add_service(GrpcStdioServer::new(auxiliary.clone()))
        .add_service(HealthServer::new(auxiliary));
    let connections = listen::connections(listener, tls.map(|tls| tls.config));
    let server = Server::builder()
        .add_routes(routes)
        .serve_with_incoming_shutdown(connections, {
            let shutdown = shutdown.clone();
            async move { shutdown.begun().await }
        });
    tokio::select! {
        result = server => Ok(result?),
        () = async { shutdown.begun().await; tokio::time::sleep(GRACE).await } => Ok(()),
    }
}

/// Begins the end when the program that started this process is gone, or on a signal to terminate. Interrupts and hangups
/// (Ctrl-C and the end of a terminal reach every process of it) are not for plugins: the program says what to do about them.
/// Only those that were started by hand end by them, and not with whoever started them.
fn watch_for_the_end(shutdown: Shutdown, by_hand: bool) -> Result<(), ServeError> {
    let mut interrupt = signal(SignalKind::interrupt()).map_err(ServeError::Signals)?;
    let mut hangup = signal(SignalKind::hangup()).map_err(ServeError::Signals)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(ServeError::Signals)?;
    let parent = std::os::unix::process::parent_id();
    tokio::spawn(async move {
        let mut check = tokio::time::interval(Duration::from_secs(1));
        loop {
            tokio::select! {
                _ = interrupt.recv() => if by_hand { break },
                _ = hangup.recv() => if by_hand { break },
                _ = terminate.recv() => break,
                _ = check.tick() => {
                    if !by_hand && std::os::unix::process::parent_id() != parent {
                        break;
                    }
                }
            }
        }
        shutdown.begin();
    });
    Ok(())
}
