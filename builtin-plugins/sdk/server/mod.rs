//! Serving a plugin: from the start of the process to its end.

pub(crate) mod auxiliary;
pub(crate) mod core;
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
pub fn serve_provider<P: Provider>(provider: P) -> ExitCode {
    serve(&[5, 6], |version| provider_routes(provider, version))
}

/// Serves a provisioner to the program that started this process, until that program is done with it.
pub fn serve_provisioner<P: Provisioner>(provisioner: P) -> ExitCode {
    serve(&[5], |_| provisioner_routes(provisioner))
}

fn provider_routes<P: Provider>(provider: P, version: u32) -> Routes {
    let service = provider_service::Service(Arc::new(Core::new(provider)));
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
    match start(&asked, routes) {
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
fn start(asked: &Asked, routes: impl FnOnce(u32) -> Routes) -> Result<(), ServeError> {
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
        watch_for_the_end(shutdown.clone())?;

        let certificate = tls.as_ref().map(|tls| tls.certificate.as_slice());
        let line = handshake::line(asked.version, &socket.path, certificate);
        let mut stdout = io::stdout().lock();
        writeln!(stdout, "{line}")
            .and_then(|()| stdout.flush())
            .map_err(ServeError::Answer)?;
        drop(stdout);

        run(socket.listener, tls, routes, shutdown).await
    });
    // Blocking work that is still going on ends with the process.
    runtime.shutdown_background();
    result
}

/// Serves until the end is asked for.
async fn run(listener: UnixListener, tls: Option<Tls>, routes: Routes, shutdown: Shutdown) -> Result<(), ServeError> {
    let auxiliary = Auxiliary(shutdown.clone());
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

/// Begins the end when the program that started this process is gone, or on a signal to terminate. Interrupts (Ctrl-C
/// reaches every process of a terminal) are not for plugins: the program says what to do about them.
fn watch_for_the_end(shutdown: Shutdown) -> Result<(), ServeError> {
    let mut interrupt = signal(SignalKind::interrupt()).map_err(ServeError::Signals)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(ServeError::Signals)?;
    let parent = std::os::unix::process::parent_id();
    tokio::spawn(async move {
        let mut check = tokio::time::interval(Duration::from_secs(1));
        loop {
            tokio::select! {
                _ = interrupt.recv() => {}
                _ = terminate.recv() => break,
                _ = check.tick() => {
                    if std::os::unix::process::parent_id() != parent {
                        break;
                    }
                }
            }
        }
        shutdown.begin();
    });
    Ok(())
}
