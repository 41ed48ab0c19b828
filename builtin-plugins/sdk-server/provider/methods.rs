//! The table of the methods of both versions of the protocol.

use std::pin::Pin;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt as _};
use prost::Message;
use prost::bytes::Bytes;
use tonic::{Request, Response, Status, Streaming};

use super::service::Service;

/// A stream of messages. It is a separate type because the compiler cannot prove that a future with the boxed stream is `Send`.
pub(super) struct Messages(BoxStream<'static, Result<Bytes, Status>>);

impl Stream for Messages {
    type Item = Result<Bytes, Status>;

    fn poll_next(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.get_mut().0.poll_next_unpin(cx)
    }
}

/// Function that answers a method. The variants differ in the side that sends a stream of messages: none, the server or the client.
pub(super) enum Method {
    Unary(Answer<Bytes, Bytes>),
    ServerStreaming(Answer<Bytes, Messages>),
    ClientStreaming(Answer<Streaming<Bytes>, Bytes>),
}

pub(super) type Answer<Q, A> = fn(Service, Request<Q>) -> BoxFuture<'static, Result<Response<A>, Status>>;

/// Decodes the message of a request.
fn decoded<M: Message + Default>(bytes: Bytes) -> Result<M, Status> {
    M::decode(bytes).map_err(|error| Status::internal(format!("the request cannot be read: {error}")))
}

fn encoded(message: &impl Message) -> Bytes {
    message.encode_to_vec().into()
}

/// Defines a method that receives one message and returns one.
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

/// Defines a method that takes a message, and returns an encoded one with its metadata.
macro_rules! encoded_with_metadata {
    ($method:ident) => {
        Method::Unary(|service, request| Box::pin(async move { service.$method(decoded(request.into_inner())?).await }))
    };
}

/// Defines a method that takes a message and returns one, each with its metadata.
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

/// Defines a method that receives one message with metadata, and returns a stream of messages.
macro_rules! server_streaming_with_metadata {
    ($method:ident) => {
        Method::ServerStreaming(|service, request| {
            Box::pin(async move {
                let (metadata, extensions, message) = request.into_parts();
                let request = Request::from_parts(metadata, extensions, decoded(message)?);
                let answers = service.$method(request).await?;
                let answers = answers.map(|answer| Ok(encoded(&answer?)));
                Ok(Response::new(Messages(answers.boxed())))
            })
        })
    };
}

/// Defines a method that receives one message, and returns a stream of messages.
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

/// Defines a method that receives a stream of messages with metadata.
macro_rules! client_streaming_with_metadata {
    ($method:ident) => {
        Method::ClientStreaming(|service, request| {
            Box::pin(async move {
                let (metadata, extensions, messages) = request.into_parts();
                let messages = messages.map(|message| decoded(message?));
                let request = Request::from_parts(metadata, extensions, messages);
                Ok(Response::new(encoded(&service.$method(request).await?)))
            })
        })
    };
}

/// Returns the method with this name in a protocol version.
pub(super) fn method(version: u32, name: &str) -> Option<Method> {
    Some(match (version, name) {
        (5, "GetMetadata") => unary!(get_metadata_5),
        (6, "GetMetadata") => unary!(get_metadata_6),
        (5, "GetSchema") => encoded_with_metadata!(get_schema_5),
        (6, "GetProviderSchema") => encoded_with_metadata!(get_schema_6),
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
        (6, "ReadStateBytes") => server_streaming_with_metadata!(read_state_bytes),
        (6, "WriteStateBytes") => client_streaming_with_metadata!(write_state_bytes),
        (6, "LockState") => with_metadata!(lock_state),
        (6, "UnlockState") => unary!(unlock_state),
        _ => return None,
    })
}
