//! Connections: accepting them, limits of their number and time, and graceful shutdown.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt as _, Full, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode, header};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsAcceptor;

use super::answer::{Answer, answer};
use super::contents::Shelf;
use super::guests::{Counted, Guests};

/// Time limit of the TLS handshake, and of the header of a request.
const HEADER: Duration = Duration::from_secs(10);
/// Lowest rate at which a client must take an archive, in bytes a second, measured after [`FIRST`].
pub(super) const LOWEST_RATE: u64 = 16 << 10;
pub(super) const FIRST: Duration = Duration::from_secs(20);
/// Time limit for a client to accept one chunk of an archive.
const STALL: Duration = Duration::from_secs(60);
/// Time limit of a whole connection.
const LONGEST: Duration = Duration::from_secs(3600);
/// Time limit of running answers when the server shuts down.
const ENDING: Duration = Duration::from_secs(10);
/// Pause after a connection could not be accepted. The usual cause is a lack of file descriptors, and a loop without a pause
/// would use a whole core.
const PAUSE: Duration = Duration::from_millis(100);
/// Size of the chunks of an archive, in bytes.
const CHUNK: usize = 1 << 16;

type Body = UnsyncBoxBody<Bytes, io::Error>;

/// Entry of the access log.
#[derive(Debug)]
pub struct Access {
    /// Address of the client.
    pub peer: SocketAddr,
    pub method: String,
    /// Path without its query, which may contain secrets.
    pub path: String,
    pub status: u16,
    /// Size of the body in bytes.
    pub bytes: u64,
    /// Error on the server's side.
    pub error: Option<String>,
}

/// Size of a connection's send buffer in bytes. Bytes in the buffer count as taken by the client, so a large buffer would hide
/// for long that a client does not read.
const SEND_BUFFER: u32 = 512 << 10;

/// Listens at an address, with [`SEND_BUFFER`] for its connections.
///
/// # Errors
/// Another program uses the address, or it is not one of this machine.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // The port of an ended server can be used again at once, as with other servers.
    socket.set_reuseaddr(true)?;
    socket.set_send_buffer_size(SEND_BUFFER)?;
    socket.bind(address)?;
    socket.listen(1024)
}

pub struct Server {
    pub shelf: Arc<Shelf>,
    /// TLS settings; none for plain HTTP.
    pub tls: Option<Arc<rustls::ServerConfig>>,
    /// Callback for each answer.
    pub log: Arc<dyn Fn(&Access) + Send + Sync>,
}

impl Server {
    /// Accepts connections until `stop` completes, and then waits for running answers.
    pub async fn run(self, listener: TcpListener, stop: impl Future<Output = ()>) {
        let guests = Guests::new();
        let (ending, ended) = watch::channel(false);
        let acceptor = self.tls.clone().map(TlsAcceptor::from);
        let this = Arc::new(self);
        let accepting = async {
            loop {
                let (stream, peer) = match listener.accept().await {
                    Ok(accepted) => accepted,
                    Err(error) => {
                        tracing::warn!(%error, "a connection could not be accepted");
                        tokio::time::sleep(PAUSE).await;
                        continue;
                    }
                };
                let (this, acceptor, ended) = (this.clone(), acceptor.clone(), ended.clone());
                let guests = guests.clone();
                tokio::spawn(async move {
                    let Some(seat) = guests.seat(peer.ip()).await else {
                        tracing::warn!(%peer, "too many connections");
                        return;
                    };
                    let stream = Counted {
                        inner: stream,
                        activity: seat.activity.clone(),
                    };
                    tokio::select! {
                        served = timeout(LONGEST, this.connection(stream, peer, acceptor, ended)) => {
                            if served.is_err() {
                                tracing::warn!(%peer, "the connection has lasted too long");
                            }
                        }
                        () = seat.end.notified() => {
                            tracing::warn!(%peer, "the connection was idle or slow, and has made room for another one");
                        }
                    }
                });
            }
        };
        tokio::select! {
            () = accepting => {}
            () = stop => {}
        }
        // No more connections are accepted, and those that are open get time to finish.
        drop(listener);
        let _ = ending.send(true);
        let all_gone = async {
            while !guests.is_empty() {
                tokio::time::sleep(PAUSE).await;
            }
        };
        if timeout(ENDING, all_gone).await.is_err() {
            tracing::warn!("not all answers were completed");
        }
    }

    async fn connection(
        self: Arc<Server>,
        stream: Counted<TcpStream>,
        peer: SocketAddr,
        acceptor: Option<TlsAcceptor>,
        ended: watch::Receiver<bool>,
    ) {
        // Answers are small documents, which must not be delayed until more data is sent.
        let _ = stream.inner.set_nodelay(true);
        match acceptor {
            None => self.http(stream, peer, ended).await,
            Some(acceptor) => match timeout(HEADER, acceptor.accept(stream)).await {
                Ok(Ok(stream)) => self.http(stream, peer, ended).await,
                Ok(Err(error)) => tracing::info!(%peer, %error, "TLS handshake failed"),
                Err(_) => tracing::info!(%peer, "TLS handshake took too long"),
            },
        }
    }

    async fn http(
        self: Arc<Server>,
        stream: impl AsyncRead + AsyncWrite + Unpin,
        peer: SocketAddr,
        mut ended: watch::Receiver<bool>,
    ) {
        let service = service_fn(|request: Request<Incoming>| {
            let this = self.clone();
            async move { Ok::<_, Infallible>(this.respond(peer, &request).await) }
        });
        let mut http = http1::Builder::new();
        // The number of connections is limited, so one that never sends its request must be closed.
        http.timer(TokioTimer::new()).header_read_timeout(HEADER);
        let connection = http.serve_connection(TokioIo::new(stream), service);
        let mut connection = std::pin::pin!(connection);
        let result = tokio::select! {
            result = &mut connection => result,
            () = async { drop(ended.wait_for(|ended| *ended).await) } => {
                // An archive that is being sent is completed.
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = result {
            tracing::info!(%peer, %error, "the connection has ended");
        }
    }

    async fn respond(&self, peer: SocketAddr, request: &Request<Incoming>) -> Response<Body> {
        let path = request.uri().path();
        let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
        let head = request.method() == Method::HEAD;
        let (mut error, mut allow) = (None, false);
        let answered = match head || request.method() == Method::GET {
            true => answer(&self.shelf, host.unwrap_or_default(), path).await,
            false => {
                allow = true;
                Ok(Answer::NotFound)
            }
        };
        let opened = match answered {
            // The archive is deleted when its last user drops it, so it is opened while `found` is alive.
            Ok(Answer::File(found)) => tokio::fs::File::open(&found.path).await.map(|file| {
                let body = if head { empty() } else { archive(file, found.size) };
                (StatusCode::OK, "application/zip", found.size, body)
            }),
            Ok(Answer::Json(document)) => Ok(whole(
                StatusCode::OK,
                "application/json",
                document.to_string().into_bytes(),
                head,
            )),
            Ok(Answer::Bytes(media, bytes)) => Ok(whole(StatusCode::OK, media, bytes, head)),
            Ok(Answer::NotFound) if allow => Ok(problem(
                StatusCode::METHOD_NOT_ALLOWED,
                "only GET and HEAD are answered",
                head,
            )),
            Ok(Answer::NotFound) => Ok(problem(StatusCode::NOT_FOUND, "there is no such package here", head)),
            Err(why) => Err(why),
        };
        let (status, media, bytes, body) = opened.unwrap_or_else(|why| {
            error = Some(why.to_string());
            problem(StatusCode::INTERNAL_SERVER_ERROR, "the package cannot be read", head)
        });
        (self.log)(&Access {
            peer,
            method: request.method().to_string(),
            path: path.to_owned(),
            status: status.as_u16(),
            bytes,
            error,
        });
        let mut response = Response::new(body);
        *response.status_mut() = status;
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static(media));
        headers.insert(header::CONTENT_LENGTH, bytes.into());
        if allow {
            headers.insert(header::ALLOW, header::HeaderValue::from_static("GET, HEAD"));
        }
        response
    }
}

type Parts = (StatusCode, &'static str, u64, Body);

fn empty() -> Body {
    Full::new(Bytes::new()).map_err(|never| match never {}).boxed_unsync()
}

fn whole(status: StatusCode, media: &'static str, bytes: Vec<u8>, head: bool) -> Parts {
    let length = bytes.len() as u64;
    let body = match head {
        true => empty(),
        false => Full::new(Bytes::from(bytes))
            .map_err(|never| match never {})
            .boxed_unsync(),
    };
    (status, media, length, body)
}

fn problem(status: StatusCode, text: &str, head: bool) -> Parts {
    let document = json!({"errors": [text]});
    whole(status, "application/json", document.to_string().into_bytes(), head)
}

/// Returns a body with the content of a file, read as fast as the client takes it.
fn archive(file: tokio::fs::File, size: u64) -> Body {
    // Two chunks, so that the disk is read while the network sends, without more memory for each client.
    let (sender, receiver) = mpsc::channel::<io::Result<Frame<Bytes>>>(2);
    tokio::spawn(async move {
        let mut file = file.take(size);
        let (began, mut sent) = (Instant::now(), 0);
        loop {
            let mut chunk = vec![0; CHUNK];
            let read = file.read(&mut chunk).await.map(|count| {
                chunk.truncate(count);
                Frame::data(Bytes::from(chunk))
            });
            let last = match &read {
                Ok(frame) => frame.data_ref().is_none_or(Bytes::is_empty),
                Err(_) => false,
            };
            let failed = read.is_err();
            sent += read.as_ref().ok().and_then(Frame::data_ref).map_or(0, Bytes::len) as u64;
            // A client that stalls or is slow occupies a connection. Dropping the sender ends the body early, which closes the
            // connection.
            if last || sender.send_timeout(read, STALL).await.is_err() || failed {
                return;
            }
            let time = began.elapsed();
            if time > FIRST && sent / time.as_secs().max(1) < LOWEST_RATE {
                return;
            }
        }
    });
    let parts = futures::stream::unfold(receiver, async |mut receiver| {
        let part = receiver.recv().await?;
        Some((part, receiver))
    });
    StreamBody::new(parts).boxed_unsync()
}
