//! gRPC server that answers each request by a function of the test.

use std::collections::HashMap;
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use futures::future::BoxFuture;
use prost::Message;
use prost::bytes::{Buf, BufMut, Bytes};
use tempfile::TempDir;
use tonic::body::Body;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::codegen::http;
use tonic::server::{Grpc, NamedService, ServerStreamingService};
use tonic::{Request, Response, Status};

/// Answer to a request: the messages of a stream, of which there is one for most requests.
type Answer = Arc<dyn Fn(Bytes) -> Result<Vec<Vec<u8>>, Status> + Send + Sync>;

#[derive(Default)]
pub struct Fake {
    answers: HashMap<String, Answer>,
    calls: Arc<AtomicUsize>,
    socket: PathBuf,
    dir: Option<TempDir>,
    server: Option<tokio::task::JoinHandle<()>>,
}

impl Fake {
    pub fn new() -> Fake {
        Fake::default()
    }

    /// Adds the answer to the requests with this path.
    pub fn on<Q, A>(self, path: &str, answer: impl Fn(Q) -> Result<A, Status> + Send + Sync + 'static) -> Fake
    where
        Q: Message + Default,
        A: Message,
    {
        self.on_stream(path, move |request| Ok(vec![answer(request)?]))
    }

    /// Adds the stream of answers to the requests with this path.
    pub fn on_stream<Q, A>(
        mut self,
        path: &str,
        answers: impl Fn(Q) -> Result<Vec<A>, Status> + Send + Sync + 'static,
    ) -> Fake
    where
        Q: Message + Default,
        A: Message,
    {
        let answer = move |bytes| {
            let request = Q::decode(bytes).map_err(|error| Status::invalid_argument(error.to_string()))?;
            Ok(answers(request)?.iter().map(Message::encode_to_vec).collect())
        };
        self.answers.insert(path.to_owned(), Arc::new(answer));
        self
    }

    /// Starts the server on a socket in a temporary directory.
    pub fn serve(mut self) -> Fake {
        let dir = tempfile::tempdir().unwrap();
        self.socket = dir.path().join("socket");
        let listener = tokio::net::UnixListener::bind(&self.socket).unwrap();
        let incoming = tokio_stream::wrappers::UnixListenerStream::new(listener);
        let service = Service {
            answers: Arc::new(std::mem::take(&mut self.answers)),
            calls: self.calls.clone(),
        };
        let server = tonic::transport::Server::builder()
            .add_service(V5(service.clone()))
            .add_service(V6(service))
            .serve_with_incoming(incoming);
        self.server = Some(tokio::spawn(async move { server.await.unwrap() }));
        self.dir = Some(dir);
        self
    }

    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// Returns the number of received requests.
    pub fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }
}

impl Drop for Fake {
    fn drop(&mut self) {
        if let Some(server) = &self.server {
            server.abort();
        }
    }
}

#[derive(Clone)]
struct Service {
    answers: Arc<HashMap<String, Answer>>,
    calls: Arc<AtomicUsize>,
}

impl Service {
    fn call(&self, request: http::Request<Body>) -> BoxFuture<'static, Result<http::Response<Body>, Infallible>> {
        let answer = self.answers.get(request.uri().path()).cloned();
        self.calls.fetch_add(1, Ordering::SeqCst);
        Box::pin(async move {
            Ok(Grpc::new(Raw)
                .max_encoding_message_size(1 << 30)
                .server_streaming(One(answer), request)
                .await)
        })
    }
}

macro_rules! named {
    ($name:ident, $service:literal) => {
        #[derive(Clone)]
        struct $name(Service);

        impl NamedService for $name {
            const NAME: &'static str = $service;
        }

        impl tower::Service<http::Request<Body>> for $name {
            type Response = http::Response<Body>;
            type Error = Infallible;
            type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

            fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
                Poll::Ready(Ok(()))
            }

            fn call(&mut self, request: http::Request<Body>) -> Self::Future {
                self.0.call(request)
            }
        }
    };
}

named!(V5, "tfplugin5.Provider");
named!(V6, "tfplugin6.Provider");

type Messages = futures::stream::Iter<std::vec::IntoIter<Result<Vec<u8>, Status>>>;

struct One(Option<Answer>);

impl ServerStreamingService<Bytes> for One {
    type Response = Vec<u8>;
    type ResponseStream = Messages;
    type Future = BoxFuture<'static, Result<Response<Messages>, Status>>;

    fn call(&mut self, request: Request<Bytes>) -> Self::Future {
        let answer = self.0.clone();
        Box::pin(async move {
            match answer {
                Some(answer) => {
                    let messages: Vec<_> = answer(request.into_inner())?.into_iter().map(Ok).collect();
                    Ok(Response::new(futures::stream::iter(messages)))
                }
                None => Err(Status::unimplemented("unknown method")),
            }
        })
    }
}

/// Codec that leaves messages as bytes.
#[derive(Clone, Copy)]
struct Raw;

impl Codec for Raw {
    type Encode = Vec<u8>;
    type Decode = Bytes;
    type Encoder = Raw;
    type Decoder = Raw;

    fn encoder(&mut self) -> Raw {
        Raw
    }

    fn decoder(&mut self) -> Raw {
        Raw
    }
}

impl Encoder for Raw {
    type Item = Vec<u8>;
    type Error = Status;

    fn encode(&mut self, item: Vec<u8>, to: &mut EncodeBuf<'_>) -> Result<(), Status> {
        to.put_slice(&item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, from: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(from.copy_to_bytes(from.remaining())))
    }
}
