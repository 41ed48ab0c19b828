//! A provider as gRPC services: those of protocol 5 and of protocol 6, and the one that has calls in batches ([`batches`]).
//!
//! Both protocols have the same messages but for two, the descriptions of what there is, and for the names of some methods. So the
//! methods are written once, in the messages of protocol 6, and [`method`] is the table of what they are called. A test of the
//! crate `proto` holds the two protocols to that.
//!
//! The methods take and return encoded messages here, so that the machinery around them is compiled once rather than for each.

mod actions;
mod batches;
mod data;
mod descriptions;
mod managed;
mod stores;

pub(crate) use self::batches::Batches;
use std::convert::Infallible;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{FutureExt as _, Stream, StreamExt as _};
use prost::Message;
use prost::bytes::{Buf as _, BufMut as _, Bytes};
use proto::tfplugin6 as pb;
use tonic::body::Body;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::codegen::http;
use tonic::server::{ClientStreamingService, Grpc, NamedService, ServerStreamingService, UnaryService};
use tonic::{Request, Response, Status, Streaming};

use super::messages::v6::dynamic;
use super::{MESSAGE_LIMIT, threads};
use crate::Stop;
use crate::context::Call;
use crate::server::core::Core;
use crate::wire::Wire;

/// A stream of messages. A type of its own, since the compiler cannot see that a future is `Send` that has the boxed stream itself.
struct Messages(BoxStream<'static, Result<Bytes, Status>>);

impl Stream for Messages {
    type Item = Result<Bytes, Status>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().0.poll_next_unpin(cx)
    }
}

/// What answers the calls of a provider.
#[derive(Clone)]
pub(crate) struct Service {
    core: Arc<Core>,
    /// The call that is being answered, where it counts as begun already.
    begun: Option<Arc<Call>>,
}

impl Service {
    pub fn new(core: Arc<Core>) -> Service {
        Service { core, begun: None }
    }

    /// Runs a call to its end, also if who waits for it goes away.
    async fn run<T, F>(&self, call: impl FnOnce(Arc<Core>, Stop) -> F) -> Result<T, Status>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        match &self.begun {
            None => threads::run(&self.core.calls, self.core.blocks, |stop| call(self.core.clone(), stop)).await,
            Some(begun) if self.core.blocks => {
                let work = call(self.core.clone(), begun.stop());
                threads::run_begun(true, begun.clone(), work).await
            }
            // The one who waits is the task of all calls, which does not go away before they end.
            Some(begun) => AssertUnwindSafe(call(self.core.clone(), begun.stop()))
                .catch_unwind()
                .await
                .map_err(|_| Status::internal("this call did not end: it panicked")),
        }
    }

    /// Runs a call that does not wait: at once where it cannot block.
    async fn run_now<T: Send + 'static>(&self, call: impl FnOnce(&Core) -> T + Send + 'static) -> Result<T, Status> {
        match self.core.blocks {
            true => self.run(|core, _| async move { call(&core) }).await,
            false => Ok(call(&self.core)),
        }
    }
}

fn identity(wire: Option<Wire>) -> Option<pb::ResourceIdentityData> {
    wire.map(|wire| pb::ResourceIdentityData {
        identity_data: Some(dynamic(wire)),
    })
}

/// What answers a method, by what travels in one and what in many messages.
enum Method {
    Unary(Answer<Bytes, Bytes>),
    ServerStreaming(Answer<Bytes, Messages>),
    ClientStreaming(Answer<Streaming<Bytes>, Bytes>),
}

type Answer<Q, A> = fn(Service, Request<Q>) -> BoxFuture<'static, Result<Response<A>, Status>>;

/// The message of a request.
fn decoded<M: Message + Default>(bytes: Bytes) -> Result<M, Status> {
    M::decode(bytes).map_err(|error| Status::internal(format!("the request cannot be read: {error}")))
}

fn encoded(message: &impl Message) -> Bytes {
    message.encode_to_vec().into()
}

/// A method that takes a message and returns one.
macro_rules! unary {
    ($method:ident) => {
        Method::Unary(|service, request| {
            Box::pin(async move {
                let answer = service.$method(decoded(request.into_inner())?).await?;
                Ok(Response::new(encoded(&answer)))
            })
        })
    };
}

/// The same, with what travels beside the messages.
macro_rules! with_metadata {
    ($method:ident) => {
        Method::Unary(|service, request| {
            Box::pin(async move {
                let (metadata, extensions, message) = request.into_parts();
                let request = Request::from_parts(metadata, extensions, decoded(message)?);
                Ok(service.$method(request).await?.map(|answer| encoded(&answer)))
            })
        })
    };
}

/// A method whose answer is many messages.
macro_rules! server_streaming {
    ($method:ident) => {
        Method::ServerStreaming(|service, request| {
            Box::pin(async move {
                let answers = service.$method(decoded(request.into_inner())?).await?;
                let answers = answers.map(|answer| Ok(encoded(&answer?)));
                Ok(Response::new(Messages(answers.boxed())))
            })
        })
    };
}

/// A method whose request is many messages.
macro_rules! client_streaming {
    ($method:ident) => {
        Method::ClientStreaming(|service, request| {
            Box::pin(async move {
                let requests = request.into_inner().map(|request| decoded(request?));
                Ok(Response::new(encoded(&service.$method(requests).await?)))
            })
        })
    };
}

/// The methods of a version of the protocol, by their names.
fn method(version: u32, name: &str) -> Option<Method> {
    Some(match (version, name) {
        (5, "GetMetadata") => unary!(get_metadata_5),
        (6, "GetMetadata") => unary!(get_metadata_6),
        (5, "GetSchema") => with_metadata!(get_schema_5),
        (6, "GetProviderSchema") => with_metadata!(get_schema_6),
        (_, "GetResourceIdentitySchemas") => unary!(get_resource_identity_schemas),
        (_, "GetFunctions") => unary!(get_functions),
        (5, "PrepareProviderConfig") | (6, "ValidateProviderConfig") => unary!(validate_provider_config),
        (5, "Configure") | (6, "ConfigureProvider") => unary!(configure_provider),
        (5, "Stop") | (6, "StopProvider") => unary!(stop_provider),
        (5, "ValidateResourceTypeConfig") | (6, "ValidateResourceConfig") => unary!(validate_resource_config),
        (_, "UpgradeResourceState") => unary!(upgrade_resource_state),
        (_, "UpgradeResourceIdentity") => unary!(upgrade_resource_identity),
        (_, "ReadResource") => unary!(read_resource),
        (_, "PlanResourceChange") => unary!(plan_resource_change),
        (_, "ApplyResourceChange") => unary!(apply_resource_change),
        (_, "ImportResourceState") => unary!(import_resource_state),
        (_, "MoveResourceState") => unary!(move_resource_state),
        (_, "GenerateResourceConfig") => unary!(generate_resource_config),
        (5, "ValidateDataSourceConfig") | (6, "ValidateDataResourceConfig") => unary!(validate_data_resource_config),
        (_, "ReadDataSource") => unary!(read_data_source),
        (_, "ValidateEphemeralResourceConfig") => unary!(validate_ephemeral_resource_config),
        (_, "OpenEphemeralResource") => unary!(open_ephemeral_resource),
        (_, "RenewEphemeralResource") => unary!(renew_ephemeral_resource),
        (_, "CloseEphemeralResource") => unary!(close_ephemeral_resource),
        (_, "ValidateListResourceConfig") => unary!(validate_list_resource_config),
        (_, "ListResource") => server_streaming!(list_resource),
        (_, "CallFunction") => unary!(call_function),
        (_, "ValidateActionConfig") => unary!(validate_action_config),
        (_, "PlanAction") => unary!(plan_action),
        (_, "InvokeAction") => server_streaming!(invoke_action),
        (6, "ValidateStateStoreConfig") => unary!(validate_state_store_config),
        (6, "ConfigureStateStore") => with_metadata!(configure_state_store),
        (6, "GetStates") => unary!(get_states),
        (6, "DeleteState") => unary!(delete_state),
        (6, "ReadStateBytes") => server_streaming!(read_state_bytes),
        (6, "WriteStateBytes") => client_streaming!(write_state_bytes),
        (6, "LockState") => with_metadata!(lock_state),
        (6, "UnlockState") => unary!(unlock_state),
        _ => return None,
    })
}

/// The service of a version of the protocol.
#[derive(Clone)]
pub(crate) struct ProviderService<const VERSION: u32>(pub Service);

impl NamedService for ProviderService<5> {
    const NAME: &'static str = "tfplugin5.Provider";
}

impl NamedService for ProviderService<6> {
    const NAME: &'static str = "tfplugin6.Provider";
}

impl<const VERSION: u32> tonic::codegen::Service<http::Request<Body>> for ProviderService<VERSION> {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let name = request.uri().path().rsplit('/').next().unwrap_or_default();
        let method = method(VERSION, name);
        let service = self.0.clone();
        Box::pin(async move {
            let mut grpc = Grpc::new(Encoded).apply_max_message_size_config(Some(MESSAGE_LIMIT), Some(MESSAGE_LIMIT));
            Ok(match method {
                Some(Method::Unary(answer)) => grpc.unary(With { service, answer }, request).await,
                Some(Method::ServerStreaming(answer)) => grpc.server_streaming(With { service, answer }, request).await,
                Some(Method::ClientStreaming(answer)) => grpc.client_streaming(With { service, answer }, request).await,
                None => Status::unimplemented("this version of the protocol has no such method").into_http(),
            })
        })
    }
}

/// A method of a service.
struct With<Q, A> {
    service: Service,
    answer: Answer<Q, A>,
}

impl UnaryService<Bytes> for With<Bytes, Bytes> {
    type Response = Bytes;
    type Future = BoxFuture<'static, Result<Response<Bytes>, Status>>;

    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        (self.answer)(self.service.clone(), request)
    }
}

impl ServerStreamingService<Bytes> for With<Bytes, Messages> {
    type Response = Bytes;
    type ResponseStream = Messages;
    type Future = BoxFuture<'static, Result<Response<Messages>, Status>>;

    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        (self.answer)(self.service.clone(), request)
    }
}

impl ClientStreamingService<Bytes> for With<Streaming<Bytes>, Bytes> {
    type Response = Bytes;
    type Future = BoxFuture<'static, Result<Response<Bytes>, Status>>;

    fn call(&mut self, request: Request<Streaming<Bytes>>) -> Self::Future {
        (self.answer)(self.service.clone(), request)
    }
}

/// Messages as they travel.
#[derive(Clone, Copy)]
struct Encoded;

impl Codec for Encoded {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Encoded;
    type Decoder = Encoded;

    fn encoder(&mut self) -> Encoded {
        Encoded
    }

    fn decoder(&mut self) -> Encoded {
        Encoded
    }
}

impl Encoder for Encoded {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put(item);
        Ok(())
    }
}

impl Decoder for Encoded {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(buffer.copy_to_bytes(buffer.remaining())))
    }
}
