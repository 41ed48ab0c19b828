//! Serves a plugin, from the start of the process to its end.

use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use monoform_sdk::calls::Calls;
use monoform_sdk::served::{ServedProvider, ServedProvisioner};
use monoform_sdk::{NeverBlocks, Provider, Provisioner, StateStore};
use proto::calls::provider_calls_server::ProviderCallsServer;
use proto::go_plugin::grpc_broker_server::GrpcBrokerServer;
use proto::go_plugin::grpc_controller_server::GrpcControllerServer;
use proto::go_plugin::grpc_stdio_server::GrpcStdioServer;
use proto::health::health_server::HealthServer;
use proto::tfplugin5;
use system::Interrupt;
use system::listening::{Listener, Socket};
use system::processes::Parent;
use system::signals::Interrupts;

use crate::auxiliary::{Auxiliary, Shutdown};
use crate::handshake::{self, Asked};
use crate::limits::MESSAGE_LIMIT;
use crate::listen;
use crate::routes::Routes;
use crate::state_store::OneStore;
use crate::tls::{Tls, TlsError};
use crate::{debug, log, provider, provisioner_service};

/// Time limit for calls in progress after the plugin was requested to end. These calls are requested to stop at once.
const GRACE: Duration = Duration::from_millis(1500);

/// Serves a provider to the program that started this process, until that program ends it.
///
/// The settings come from the environment. If a user starts the process by hand, it prints a notice and fails.
///
/// Serves protocols 5 and 6. A provider with nested attributes, computed blocks or state stores is served in protocol 6 only, because
/// protocol 5 does not have these.
///
/// If a schema is invalid, the request of the host for the schemas fails; the error names the part of the schema and the reason.
pub fn serve_provider<P: Provider>(provider: P) -> ExitCode {
    let provider = ServedProvider::new(provider);
    // Schemas are compiled on request. A host that knows them from an earlier process does not request them.
    let asked = Asked::read(variable, 6, || provider.protocols());
    serve(asked, |version, shutdown| provider_routes(provider, version, shutdown))
}

/// Serves a single state store to the program that started this process, as a provider without configuration or other members.
pub fn serve_state_store(name: &'static str, store: impl StateStore) -> ExitCode {
    serve_provider(NeverBlocks(OneStore::new(name, store)))
}

/// Serves a provider process that you start yourself, for example in a debugger, until it is interrupted.
///
/// The process first prints an assignment of `TF_REATTACH_PROVIDERS`. With that variable, Terraform, OpenTofu and Monoform use this process
/// as the provider at `address` (such as `registry.terraform.io/example/notes`), in any number of runs. By convention, providers do this if
/// they have the argument `-debug`.
///
/// A client in Python or C++ must set the channel argument `grpc.default_authority`. By default, these derive the authority from the path
/// of the socket, in a form that RFC 3986 does not allow and the HTTP/2 library refuses.
pub fn debug_provider<P: Provider>(address: &str, provider: P) -> ExitCode {
    let provider = ServedProvider::new(provider);
    log::start(variable);
    // All hosts that can use a running provider speak the highest version, which supports every schema.
    let asked = Asked::without_host(6);
    end(start(&asked, Some(address), |version, shutdown| {
        provider_routes(provider, version, shutdown)
    }))
}

fn list(problems: &[String]) -> String {
    problems.iter().map(|problem| format!("\n- {problem}")).collect()
}

/// Serves a provisioner to the program that started this process, until that program ends it.
pub fn serve_provisioner<P: Provisioner>(provisioner: P) -> ExitCode {
    let provisioner = ServedProvisioner::new(provisioner);
    match provisioner.problems().as_slice() {
        // Protocol 6 has no service for provisioners: hosts start all of them with protocol 5.
        [] => serve(Asked::read(variable, 5, || &[5]), |_, _| {
            provisioner_routes(provisioner)
        }),
        problems => end(Err(ServeError::Schema(list(problems)))),
    }
}

/// The services of a plugin, and its calls in progress.
struct Services {
    routes: Routes,
    calls: Calls,
}

fn provider_routes(served: ServedProvider, version: u32, shutdown: Shutdown) -> Services {
    let calls = served.calls().clone();
    let service = provider::Service::new(Arc::new(served));
    let routes = if version == 6 {
        Routes::default().add(provider::ProviderService::<6>(service.clone()))
    } else {
        Routes::default().add(provider::ProviderService::<5>(service.clone()))
    };
    // An additional service under a name of its own, which hosts that do not know it never call.
    let batches = ProviderCallsServer::new(provider::Batches { service, shutdown })
        // tonic limits received messages to 4 MiB, and a single large object can exceed that.
        .max_decoding_message_size(MESSAGE_LIMIT)
        .max_encoding_message_size(MESSAGE_LIMIT);
    Services {
        routes: routes.add(batches),
        calls,
    }
}

fn provisioner_routes<P: Provisioner>(provisioner: ServedProvisioner<P>) -> Services {
    let calls = Calls::new();
    let service = provisioner_service::Service::new(provisioner, calls.clone());
    let server = tfplugin5::provisioner_server::ProvisionerServer::new(service);
    let routes = Routes::default().add(
        server
            .max_decoding_message_size(MESSAGE_LIMIT)
            .max_encoding_message_size(MESSAGE_LIMIT),
    );
    Services { routes, calls }
}

/// Reason why a plugin cannot start, or ends with a failure.
#[derive(Debug, thiserror::Error)]
enum ServeError {
    #[error("this plugin cannot be served, since its schemas cannot work:{0}")]
    Schema(String),
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
}

/// Returns the value of an environment variable; `None` if it is unset or not valid Unicode.
#[expect(
    clippy::disallowed_methods,
    reason = "a plugin gets the handshake and the log settings in its environment"
)]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn serve(asked: Option<Asked>, services: impl FnOnce(u32, Shutdown) -> Services) -> ExitCode {
    // Without go-plugin's cookie, a person has started the process. Then no socket is opened, and the exit status is 1, as for plugins in
    // Go.
    let Some(asked) = asked else {
        drop(io::stderr().write_all(handshake::NOTICE.as_bytes()));
        return ExitCode::FAILURE;
    };
    log::start(variable);
    end(start(&asked, None, services))
}

/// Reports the result of the plugin, and converts it to the exit status.
fn end(result: Result<(), ServeError>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // Before the handshake, the host can show only this text. After it, the host logs the text.
            drop(writeln!(io::stderr(), "{error}"));
            ExitCode::FAILURE
        }
    }
}

/// Serves connections on this thread; calls of a plugin that may block run on the threads of [`threads`]. `by_hand_for` is the address of
/// the provider if a user has started the plugin by hand; the user then ends it, too.
fn start(
    asked: &Asked,
    by_hand_for: Option<&str>,
    services: impl FnOnce(u32, Shutdown) -> Services,
) -> Result<(), ServeError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(ServeError::Runtime)?;
    let result = runtime.block_on(async {
        let socket = Socket::open(&asked.socket()).map_err(ServeError::Socket)?;
        let tls = asked.client_certificate.as_deref().map(Tls::new).transpose()?;
        let shutdown = Shutdown::new();
        let services = services(asked.version, shutdown.clone());
        // Signals are watched before the handshake line is written, because the client may send a signal as soon as it has read the line.
        watch_for_the_end(shutdown.clone(), by_hand_for.is_some())?;

        let certificate = tls.as_ref().map(|tls| tls.certificate.as_slice());
        let mut line = match by_hand_for {
            Some(address) => debug::invitation(address, asked.version, &socket),
            None => handshake::line(asked.version, &socket, certificate),
        };
        // Written in one piece with its newline: the reader may close the pipe after the line.
        line.push('\n');
        let mut stdout = io::stdout().lock();
        stdout
            .write_all(line.as_bytes())
            .and_then(|()| stdout.flush())
            .map_err(ServeError::Answer)?;
        drop(stdout);

        // A plugin started by hand serves several clients, so the request of one client to end it has no effect.
        let asked_to_end = by_hand_for.map_or_else(|| shutdown.clone(), |_| Shutdown::new());
        run(socket.listener, tls, services, Auxiliary(asked_to_end), shutdown).await;
        Ok(())
    });
    // Does not wait for blocking work, which ends with the process.
    runtime.shutdown_background();
    result
}

/// Serves until the shutdown signal is set.
async fn run(listener: Listener, tls: Option<Tls>, services: Services, auxiliary: Auxiliary, shutdown: Shutdown) {
    let Services { routes, calls } = services;
    let routes = routes
        .add(GrpcBrokerServer::new(auxiliary.clone()))
        .add(GrpcControllerServer::new(auxiliary.clone()))
        .add(GrpcStdioServer::new(auxiliary.clone()))
        .add(HealthServer::new(auxiliary));
    let connections = listen::connections(listener, tls.map(|tls| tls.config));
    let ended = async {
        routes.serve(connections, shutdown.clone()).await;
        // Calls whose callers have disconnected may still be running.
        calls.idle().await;
    };
    // go-plugin kills a plugin two seconds after requesting its end, so all calls must have ended before that.
    let too_late = async {
        shutdown.begun().await;
        calls.stop();
        tokio::time::sleep(GRACE).await;
    };
    tokio::select! {
        () = ended => {}
        () = too_late => {}
    }
}

/// Sets the shutdown signal when the host has ended, or on a signal to terminate. Interrupts and hangups are ignored: a terminal sends them
/// to all of its processes, and the host decides what they mean for its plugins. A plugin that was started by hand ends on any of these
/// signals, and does not watch its parent.
fn watch_for_the_end(shutdown: Shutdown, by_hand: bool) -> Result<(), ServeError> {
    // The handlers replace the default action, which would end the plugin in the middle of a call when the user presses Ctrl-C in the
    // host's terminal.
    let mut interrupts = Interrupts::listen().map_err(ServeError::Signals)?;
    // Read before the handshake: if the host ends later, the process gets another parent, and the ID differs.
    let parent = Parent::of_this_process();
    tokio::spawn(async move {
        // Polled, because the system's own notices do not fit: Linux sends its signal when the thread that started the child ends, and
        // macOS has none.
        let mut check = tokio::time::interval(Duration::from_secs(1));
        loop {
            tokio::select! {
                received = interrupts.next() => if by_hand || received == Interrupt::Terminate { break },
                _ = check.tick() => if !by_hand && parent.is_gone() { break },
            }
        }
        shutdown.begin();
    });
    Ok(())
}

#[cfg(test)]
mod tests;
