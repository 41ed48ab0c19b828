//! Process of a provider: started when it is first needed, and prepared for requests as the protocol requires.

use std::sync::Arc;
use std::time::Instant;

use prost::Message;
use syntax::Diagnostics;
use tokio::runtime::Handle;
use tokio::sync::{OnceCell, Semaphore};
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::Channel;
use tonic::{Request, Response};

use super::GrpcProvider;
use crate::batches::{self, Batches};
use crate::channel::MESSAGE_LIMIT;
use crate::grpc::{Methods, name, relay_stdio};
use crate::launch::Launch;

/// Access to the process of a provider.
pub enum Access {
    /// Process that is started when it is first needed. The semaphore limits how many start at the same time.
    Start(Launch, Arc<Semaphore>),
    /// Process that the user has started.
    Running(Channel, &'static Methods),
}

/// Connection to a running provider process, and the state of its preparation.
pub struct Started {
    pub methods: &'static Methods,
    pub grpc: Grpc<Channel>,
    pub channel: Channel,
    /// Stream of batched calls, opened with the first one; `None` if that failed.
    batches: OnceCell<Option<Batches>>,
    /// Set once this process has answered GetProviderSchema, or does not need that request.
    pub introduced: OnceCell<()>,
    /// Runtime that the connection lives on.
    runtime: Handle,
}

impl Started {
    fn new(channel: Channel, methods: &'static Methods) -> Started {
        Started {
            methods,
            grpc: Grpc::new(channel.clone())
                .max_decoding_message_size(MESSAGE_LIMIT)
                .max_encoding_message_size(MESSAGE_LIMIT),
            channel,
            batches: OnceCell::new(),
            introduced: OnceCell::new(),
            runtime: Handle::current(),
        }
    }
}

impl GrpcProvider {
    /// Returns the connection to the process, which is started at the first call. From then on, its standard streams go to the log.
    pub(super) async fn started(&self) -> Result<&Started, Diagnostics> {
        let start = || async {
            let (channel, methods) = match &self.access {
                Access::Running(channel, methods) => (channel.clone(), *methods),
                Access::Start(launch, starts) => {
                    // Limits the number of plugins that start at the same time.
                    let _permit = starts.acquire().await;
                    let launched = launch.start().await?;
                    self.connection.set_process(launched.process);
                    (launched.channel, Methods::for_protocol(launched.protocol))
                }
            };
            relay_stdio(channel.clone(), &self.connection);
            Ok(Started::new(channel, methods))
        };
        self.started.get_or_init(start).await.as_ref().map_err(Clone::clone)
    }

    /// Returns the connection to the process, which is ready for any request.
    ///
    /// Providers on older SDKs rely on GetProviderSchema being the first request to each of their processes: other requests use the data
    /// that it prepares. Other providers announce the capability `get_provider_schema_optional`. Like Terraform, this program sends the
    /// request to each process, unless it has the schemas of the provider and the provider has that capability. If the request was sent for
    /// this reason only, its answer is dropped.
    pub(super) async fn ready(&self) -> Result<&Started, Diagnostics> {
        let started = self.started().await?;
        let introduce = || async {
            let known = self.shared.get();
            if !known.is_some_and(|known| known.schema.capabilities.schema_optional) {
                self.ask(started).await?;
            }
            Ok::<_, Diagnostics>(())
        };
        started.introduced.get_or_try_init(introduce).await?;
        Ok(started)
    }

    /// Sends a request. Returns the answer with its metadata, or the status of a failed request.
    pub(super) async fn call_for_status<Q, A>(
        &self,
        started: &Started,
        path: &'static str,
        request: Q,
    ) -> Result<Response<A>, tonic::Status>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        // The permit is held until the answer is read.
        let _permit = if path == started.methods.stop {
            // A request to stop must not wait for the requests that hold the permits, because it is meant to
            // end them.
            None
        } else if path == started.methods.renew_ephemeral {
            self.connection.renewal_permit().await
        } else {
            self.connection.permit().await
        };
        let began = Instant::now();
        let batches = self.batches_for(started, path, &request).await;
        let batched = batches.is_some();
        let answer = match batches {
            Some((batches, method)) => batches.call(method, request.encode_to_vec()).await.map(Response::new),
            None => call_alone(started, path, request).await,
        };
        tracing::trace!(
            plugin = self.connection.title(),
            request = name(path),
            elapsed = ?began.elapsed(),
            failed = answer.is_err(),
            batched,
            "provider request"
        );
        answer
    }

    /// Returns the stream and the method for a call that can be batched; `None` if the call must be sent separately.
    async fn batches_for<'s>(
        &self,
        started: &'s Started,
        path: &str,
        request: &impl Message,
    ) -> Option<(&'s Batches, batches::Method)> {
        // Until the schema is read, it is unknown whether the provider supports batches, so the call is sent
        // separately.
        if !self.description.get()?.batches {
            return None;
        }
        let method = batches::Method::named(name(path))?;
        let open = || async {
            let opened = Batches::open(started.channel.clone(), &started.runtime).await;
            // If no stream could be opened, the call is sent separately, and reports the problem of the
            // connection.
            opened
                .inspect_err(|error| tracing::debug!(%error, "no stream of calls"))
                .ok()
        };
        let batches = started.batches.get_or_init(open).await.as_ref()?;
        (request.encoded_len() < batches::LARGE).then_some((batches, method))
    }
}

async fn call_alone<Q, A>(started: &Started, path: &'static str, request: Q) -> Result<Response<A>, tonic::Status>
where
    Q: Message + 'static,
    A: Message + Default + 'static,
{
    let mut grpc = started.grpc.clone();
    // tower requires that a service is ready before each call.
    grpc.ready()
        .await
        .map_err(|error| tonic::Status::from_error(error.into()))?;
    let codec = tonic_prost::ProstCodec::<Q, A>::default();
    grpc.unary(Request::new(request), PathAndQuery::from_static(path), codec)
        .await
}
