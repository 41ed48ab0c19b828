//! The gRPC services of a provider. They pass on messages as encoded bytes.

use std::convert::Infallible;
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use prost::bytes::{Buf as _, BufMut as _, Bytes};
use tonic::body::Body;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::codegen::http;
use tonic::server::{ClientStreamingService, Grpc, NamedService, ServerStreamingService, UnaryService};
use tonic::{Request, Response, Status, Streaming};

use super::called::logged;
use super::methods::{Answer, Messages, Method, method};
use super::service::Service;
use crate::limits::MESSAGE_LIMIT;

/// The gRPC service of a protocol version.
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
        let name = request.uri().path().rsplit('/').next().unwrap_or_default().to_owned();
        let method = method(VERSION, &name);
        let service = self.0.clone();
        Box::pin(async move {
            let mut grpc = Grpc::new(Encoded).apply_max_message_size_config(Some(MESSAGE_LIMIT), Some(MESSAGE_LIMIT));
            Ok(match method {
                Some(Method::Unary(answer)) => grpc.unary(With::new(service, answer, VERSION, name), request).await,
                Some(Method::ServerStreaming(answer)) => {
                    grpc.server_streaming(With::new(service, answer, VERSION, name), request)
                        .await
                }
                Some(Method::ClientStreaming(answer)) => {
                    grpc.client_streaming(With::new(service, answer, VERSION, name), request)
                        .await
                }
                // Terraform calls methods of later minor versions without knowing whether they exist. This status tells it that they do
                // not.
                None => Status::unimplemented("this version of the protocol has no such method").into_http(),
            })
        })
    }
}

/// A method together with the service that answers it.
struct With<Q, A> {
    service: Service,
    answer: Answer<Q, A>,
    version: u32,
    name: String,
}

impl<Q, A> With<Q, A> {
    fn new(service: Service, answer: Answer<Q, A>, version: u32, name: String) -> With<Q, A> {
        With {
            service,
            answer,
            version,
            name,
        }
    }
}

impl UnaryService<Bytes> for With<Bytes, Bytes> {
    type Response = Bytes;
    type Future = BoxFuture<'static, Result<Response<Bytes>, Status>>;

    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        let message = request.get_ref().clone();
        let answer = (self.answer)(self.service.clone(), request);
        logged(self.version, &self.name, &message, answer)
    }
}

impl ServerStreamingService<Bytes> for With<Bytes, Messages> {
    type Response = Bytes;
    type ResponseStream = Messages;
    type Future = BoxFuture<'static, Result<Response<Messages>, Status>>;

    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        let message = request.get_ref().clone();
        let answer = (self.answer)(self.service.clone(), request);
        logged(self.version, &self.name, &message, answer)
    }
}

impl ClientStreamingService<Bytes> for With<Streaming<Bytes>, Bytes> {
    type Response = Bytes;
    type Future = BoxFuture<'static, Result<Response<Bytes>, Status>>;

    fn call(&mut self, request: Request<Streaming<Bytes>>) -> Self::Future {
        let answer = (self.answer)(self.service.clone(), request);
        // Without a request message: the name of the type comes with the first message of the stream.
        logged(self.version, &self.name, &[], answer)
    }
}

/// A codec that neither encodes nor decodes messages.
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
