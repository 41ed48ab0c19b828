//! Auxiliary services that every client of the plugin protocol expects: the broker, the controller, the standard streams and the health
//! check.

use std::pin::Pin;
use std::sync::Arc;

use futures::Stream;
use monoform_sdk::async_trait;
use proto::go_plugin as pb;
use proto::health;
use tokio::sync::watch;
use tonic::{Request, Response, Status, Streaming};

type Answer<T> = Result<Response<T>, Status>;
type BoxStream<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// Signal that the plugin should end: the client requests it through the controller, the host has ended, or a signal arrives.
#[derive(Clone, Debug)]
pub(crate) struct Shutdown(Arc<watch::Sender<bool>>);

impl Shutdown {
    pub fn new() -> Shutdown {
        Shutdown(Arc::new(watch::Sender::new(false)))
    }

    pub fn begin(&self) {
        self.0.send_replace(true);
    }

    pub async fn begun(&self) {
        // `wait_for` fails only when the sender is dropped, and `self` holds the sender.
        drop(self.0.subscribe().wait_for(|begun| *begun).await);
    }
}

/// Returns a stream without elements that closes when the plugin should end. A stream that stayed open would keep the server from ending.
fn silent<T: Send + 'static>(shutdown: &Shutdown) -> BoxStream<T> {
    let shutdown = shutdown.clone();
    Box::pin(futures::stream::unfold(shutdown, |shutdown| async move {
        shutdown.begun().await;
        None
    }))
}

/// The auxiliary services, which end with the plugin.
#[derive(Clone, Debug)]
pub(crate) struct Auxiliary(pub Shutdown);

#[async_trait]
impl pb::grpc_broker_server::GrpcBroker for Auxiliary {
    type StartStreamStream = BoxStream<pb::ConnInfo>;

    /// Plugins of this SDK open no further connections, so there is nothing to broker. The stream is only held open.
    async fn start_stream(&self, _: Request<Streaming<pb::ConnInfo>>) -> Answer<Self::StartStreamStream> {
        Ok(Response::new(silent(&self.0)))
    }
}

#[async_trait]
impl pb::grpc_controller_server::GrpcController for Auxiliary {
    async fn shutdown(&self, _: Request<pb::Empty>) -> Answer<pb::Empty> {
        self.0.begin();
        Ok(Response::new(pb::Empty {}))
    }
}

#[async_trait]
impl pb::grpc_stdio_server::GrpcStdio for Auxiliary {
    type StreamStdioStream = BoxStream<pb::StdioData>;

    /// Holds the stream open, and sends nothing: the output of a plugin goes directly to its standard streams.
    async fn stream_stdio(&self, _: Request<()>) -> Answer<Self::StreamStdioStream> {
        Ok(Response::new(silent(&self.0)))
    }
}

/// Service name for which go-plugin checks the health of a plugin.
const HEALTH_SERVICE: &str = "plugin";

#[async_trait]
impl health::health_server::Health for Auxiliary {
    async fn check(&self, request: Request<health::HealthCheckRequest>) -> Answer<health::HealthCheckResponse> {
        match request.into_inner().service.as_str() {
            // go-plugin checks the service `plugin`. General health checkers use an empty name for the server as a whole.
            "" | HEALTH_SERVICE => Ok(Response::new(serving())),
            other => Err(Status::not_found(format!("unknown service {other:?}"))),
        }
    }

    type WatchStream = BoxStream<health::HealthCheckResponse>;

    async fn watch(&self, _: Request<health::HealthCheckRequest>) -> Answer<Self::WatchStream> {
        use futures::StreamExt;
        let first = futures::stream::once(async { Ok(serving()) });
        Ok(Response::new(Box::pin(first.chain(silent(&self.0)))))
    }
}

fn serving() -> health::HealthCheckResponse {
    let status = health::health_check_response::ServingStatus::Serving.into();
    health::HealthCheckResponse { status }
}
