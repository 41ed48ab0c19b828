//! Connections: accepting them, limiting their number and duration, and graceful shutdown.

use std::convert::Infallible;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, header};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;

use crate::guests::{Counted, Guests};
use crate::reply::{Body, Reply};

/// Time limit for the TLS handshake, and for the header of a request.
const HEADER: Duration = Duration::from_secs(10);
/// Time limit for a whole connection.
const LONGEST: Duration = Duration::from_secs(3600);
/// Time limit for running answers after a shutdown is requested.
const ENDING: Duration = Duration::from_secs(10);
/// Pause after a failure to accept a connection. The usual cause is a lack of file descriptors, and without a pause the loop would use a
/// whole core.
const PAUSE: Duration = Duration::from_millis(100);

/// Request handler of a [`Server`].
pub trait Handler: Send + Sync + 'static {
    /// Answers a request. If the server itself has failed, the reply contains the error for the access log.
    fn answer(&self, request: Request<Incoming>) -> impl Future<Output = Reply> + Send;
}

/// Entry of the access log.
#[derive(Debug)]
pub struct Access {
    /// Address of the client.
    pub peer: SocketAddr,
    pub method: String,
    /// Path without its query, which may contain secrets.
    pub path: String,
    pub status: u16,
    /// Size of the answer's body in bytes.
    pub bytes: u64,
    /// Error on the server's side.
    pub error: Option<String>,
}

/// Formats the line of the log, without a time.
impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Access {
            peer,
            method,
            path,
            status,
            bytes,
            error,
        } = self;
        write!(f, "{peer} {method} {path} {status} {bytes}")?;
        match error {
            Some(error) => write!(f, " ({error})"),
            None => Ok(()),
        }
    }
}

/// Size of a connection's send buffer in bytes. It is small, because buffered bytes count as received by the client, so that a large buffer
/// would hide for a long time that the client does not read.
const SEND_BUFFER: u32 = 512 << 10;

/// Listens at an address, with [`SEND_BUFFER`] for its connections.
///
/// # Errors
/// Another program uses the address, or it does not belong to this machine.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // Allows a server to listen on the port right after an earlier one has ended.
    socket.set_reuseaddr(true)?;
    socket.set_send_buffer_size(SEND_BUFFER)?;
    socket.bind(address)?;
    socket.listen(1024)
}

pub struct Server<H> {
    pub handler: H,
    /// TLS settings; `None` for plain HTTP.
    pub tls: Option<Arc<rustls::ServerConfig>>,
    /// Callback for the access log, called for each answer.
    pub log: Arc<dyn Fn(&Access) + Send + Sync>,
}

impl<H: Handler> Server<H> {
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
        // No more connections are accepted, and open ones get time to finish.
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
        self: Arc<Self>,
        stream: Counted<TcpStream>,
        peer: SocketAddr,
        acceptor: Option<TlsAcceptor>,
        ended: watch::Receiver<bool>,
    ) {
        // Answers are small, and must not be delayed by waiting for more data.
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
        self: Arc<Self>,
        stream: impl AsyncRead + AsyncWrite + Unpin,
        peer: SocketAddr,
        mut ended: watch::Receiver<bool>,
    ) {
        let service = service_fn(|request: Request<Incoming>| {
            let this = self.clone();
            async move { Ok::<_, Infallible>(this.respond(peer, request).await) }
        });
        let mut http = http1::Builder::new();
        // A connection that never sends its request must be closed, because the number of connections is limited.
        http.timer(TokioTimer::new()).header_read_timeout(HEADER);
        let connection = http.serve_connection(TokioIo::new(stream), service);
        let mut connection = std::pin::pin!(connection);
        let result = tokio::select! {
            result = &mut connection => result,
            () = async { drop(ended.wait_for(|ended| *ended).await) } => {
                // A graceful shutdown completes the answer that is being sent.
                connection.as_mut().graceful_shutdown();
                connection.await
            }
        };
        if let Err(error) = result {
            tracing::info!(%peer, %error, "the connection has ended");
        }
    }

    async fn respond(&self, peer: SocketAddr, request: Request<Incoming>) -> Response<Body> {
        let (method, path) = (request.method().clone(), request.uri().path().to_owned());
        let reply = self.handler.answer(request).await;
        let (bytes, status) = (reply.bytes, reply.status);
        (self.log)(&Access {
            peer,
            method: method.to_string(),
            path,
            status: status.as_u16(),
            bytes,
            error: reply.error,
        });
        let body = match method == Method::HEAD {
            true => Reply::status(status).body,
            false => reply.body,
        };
        let mut response = Response::new(body);
        *response.status_mut() = status;
        let headers = response.headers_mut();
        if let Some(media) = reply.media {
            headers.insert(header::CONTENT_TYPE, header::HeaderValue::from_static(media));
        }
        headers.insert(header::CONTENT_LENGTH, bytes.into());
        headers.extend(reply.headers);
        response
    }
}
