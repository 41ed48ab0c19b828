//! Serving a plugin: from the start of the process to its end.

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

/// Time limit for calls in progress after the plugin was requested to end. The calls are requested to stop at once.
const GRACE: Duration = Duration::from_millis(1500);

/// Serves a provider to the program that started this process, until that program ends it.
///
/// The settings come from the environment. If it is started by hand, the process prints a notice and fails.
///
/// Serves protocols 5 and 6; a provider with nested attributes, which only protocol 6 has, is served in that one only.
///
/// A provider with an invalid schema is refused when the host requests the schemas; the error in the answer names the part of the
/// schema and the reason.
pub fn serve_provider<P: Provider>(provider: P) -> ExitCode {
    let provider = ServedProvider::new(provider);
    // Schemas are compiled on request: a host that knows them from an earlier process does not request them.
    let asked = Asked::read(variable, 6, || provider.protocols());
    serve(asked, |version, shutdown| provider_routes(provider, version, shutdown))
}

/// Serves one state store, and nothing else, to the program that started this process: as a provider without configuration.
pub fn serve_state_store(name: &'static str, store: impl StateStore) -> ExitCode {
    serve_provider(NeverBlocks(OneStore::new(name, store)))
}

/// Serves a provider that you started yourself, in a debugger perhaps, until it is interrupted.
///
/// It first prints a setting of `TF_REATTACH_PROVIDERS`: if that is set, Terraform, OpenTofu and Monoform use this process in
/// place of the provider at `address` (as in `registry.terraform.io/example/notes`), as often as they run. Providers usually do
/// this when they are given the argument `-debug`.
///
/// A client in Python or C++ must set the channel argument `grpc.default_authority`: what it makes of the path of a socket is no
/// authority by RFC 3986, and is refused below this crate.
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
        // Protocol 6 has no service for provisioners: hosts start all of them with 5.
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
    // A service beside the protocol's, under a name of its own: hosts that do not know it never call it.
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

/// Reason why a plugin cannot start, or ends badly.
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

/// Returns an environment variable that is valid Unicode.
#[expect(
    clippy::disallowed_methods,
    reason = "a plugin gets the handshake and the log settings in its environment"
)]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn serve(asked: Option<Asked>, services: impl FnOnce(u32, Shutdown) -> Services) -> ExitCode {
    // The cookie is how go-plugin tells a host from a person. Without it no
    // socket is opened, and the status is 1, as that of plugins in Go.
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
            // Before the handshake this is all that the other side can show; after it, it is logged there.
            drop(writeln!(io::stderr(), "{error}"));
            ExitCode::FAILURE
        }
    }
}

/// Serves on this thread; calls run on those of [`threads`]. A plugin that was started by hand has the address of its provider;
/// its user ends it.
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
        // Signals are watched before the handshake line is written: after it, the client may send one.
        watch_for_the_end(shutdown.clone(), by_hand_for.is_some())?;

        let certificate = tls.as_ref().map(|tls| tls.certificate.as_slice());
        let mut line = match by_hand_for {
            Some(address) => debug::invitation(address, asked.version, &socket),
            None => handshake::line(asked.version, &socket, certificate),
        };
        // Written at once: the reader may close the pipe after this line.
        line.push('\n');
        let mut stdout = io::stdout().lock();
        stdout
            .write_all(line.as_bytes())
            .and_then(|()| stdout.flush())
            .map_err(ServeError::Answer)?;
        drop(stdout);

        // One client must not end the plugin for the others.
        let asked_to_end = by_hand_for.map_or_else(|| shutdown.clone(), |_| Shutdown::new());
        run(socket.listener, tls, services, Auxiliary(asked_to_end), shutdown).await;
        Ok(())
    });
    // Blocking work that is still going on ends with the process.
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
    // go-plugin kills a plugin two seconds after it has asked it to end: calls have to be over before that.
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

/// Sets the shutdown signal when the program that started this process has ended, or on a signal to terminate. Interrupts and
/// hangups (Ctrl-C and the end of a terminal reach every process of it) are not for plugins: the program says what to do about
/// them. Only plugins that were started by hand end by these signals; others end when their host does.
fn watch_for_the_end(shutdown: Shutdown, by_hand: bool) -> Result<(), ServeError> {
    // Handlers replace the default action of these signals, which would end the plugin in
    // the middle of a call when the user presses Ctrl-C at the host's terminal.
    let mut interrupts = Interrupts::listen().map_err(ServeError::Signals)?;
    // Read before the handshake: if the host ends later, another process becomes the parent, and the ID differs.
    let parent = Parent::of_this_process();
    tokio::spawn(async move {
        // Polled: Linux sends its signal for the death of a parent when the
        // thread ends that started the child, and macOS has none.
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
