//! The gRPC services of a plugin by their names, and the connections on which they are called.

use std::convert::Infallible;
use std::pin::pin;
use std::sync::Arc;

use futures::future::BoxFuture;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::task::JoinSet;
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::{Service, http};
use tonic::server::NamedService;

use crate::auxiliary::Shutdown;
use crate::limits::{CONNECTION_WINDOW, STREAM_WINDOW};
use crate::listen::{Connection, Connections};

type Request = http::Request<Body>;
type Response = http::Response<Body>;
type Handler = Arc<dyn Fn(Request) -> BoxFuture<'static, Response> + Send + Sync>;

/// The services of a plugin, each under the first part of the paths of its methods.
#[derive(Clone, Default)]
pub(crate) struct Routes(Vec<(&'static str, Handler)>);

impl Routes {
    /// Adds a service.
    #[must_use]
    pub fn add<S>(mut self, service: S) -> Routes
    where
        S: Service<Request, Response = Response, Error = Infallible> + NamedService + Clone + Send + Sync + 'static,
        S::Future: Send + 'static,
    {
        // A service of gRPC is always ready, so only the clone is called.
        let call = move |request| -> BoxFuture<'static, Response> {
            let answer = service.clone().call(request);
            Box::pin(async move { answer.await.unwrap_or_else(|never| match never {}) })
        };
        self.0.push((S::NAME, Arc::new(call)));
        self
    }

    /// Returns the response of the service that a request names in its path.
    fn answer(&self, request: Request) -> BoxFuture<'static, Response> {
        let path = request.uri().path().trim_start_matches('/');
        let name = path.split_once('/').map_or(path, |(name, _)| name);
        match self.0.iter().find(|(known, _)| *known == name) {
            Some((_, handler)) => handler(request),
            None => {
                let status = Status::unimplemented(format!("this plugin has no service \"{name}\""));
                Box::pin(std::future::ready(status.into_http()))
            }
        }
    }

    /// Serves connections until the shutdown signal is set, and the calls in progress have ended.
    pub async fn serve(self, mut connections: Connections, shutdown: Shutdown) {
        let routes = Arc::new(self);
        let mut open = JoinSet::new();
        let mut begun = pin!(shutdown.begun());
        loop {
            tokio::select! {
                () = &mut begun => break,
                Some(connection) = connections.recv() => {
                    open.spawn(serve_one(routes.clone(), connection, shutdown.clone()));
                }
                // Tasks that have ended are taken, so that the set does not grow with the number of connections.
                Some(_) = open.join_next() => {}
            }
        }
        while open.join_next().await.is_some() {}
    }
}

/// Serves one connection. After the shutdown signal, it accepts no new call.
async fn serve_one(routes: Arc<Routes>, connection: Connection, shutdown: Shutdown) {
    let service = service_fn(move |request: http::Request<hyper::body::Incoming>| {
        let answer = routes.answer(request.map(Body::new));
        async move { Ok::<_, Infallible>(answer.await) }
    });
    let mut builder = http2::Builder::new(TokioExecutor::new());
    builder
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        // The host limits the calls in progress, by its own setting for parallelism.
        .max_concurrent_streams(None);
    let mut serving = pin!(builder.serve_connection(TokioIo::new(connection), service));
    let result = tokio::select! {
        result = serving.as_mut() => result,
        () = shutdown.begun() => {
            serving.as_mut().graceful_shutdown();
            serving.await
        }
    };
    // Most likely, the client has ended without a word.
    if let Err(error) = result {
        tracing::debug!(%error, "a connection has ended");
    }
}
