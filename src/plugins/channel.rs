//! gRPC channel to a plugin: over a Unix socket or TCP, with or without TLS.

use std::io;
use std::sync::Arc;

use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tonic::transport::{Channel, Endpoint, Uri};

use crate::handshake::Address;

/// Maximum size of a message in either direction, in bytes. Schemas of large providers exceed tonic's default of 4 MiB
/// by far.
pub const MESSAGE_LIMIT: usize = 256 << 20;
/// Flow-control window of one answer in bytes: a schema arrives at once, not in steps of HTTP/2's default of 64 KiB.
const STREAM_WINDOW: u32 = 8 << 20;
/// Flow-control window of a connection in bytes, for all of its answers.
// The HTTP/2 library charges about 256 bytes for each small unread DATA frame against half of this window, and closes
// the connection when that is used up. Half of 256 MiB is enough for half a million answers, far more than `MAX_CALLS`
// of `connection`.
const CONNECTION_WINDOW: u32 = 256 << 20;

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Returns a channel to the address, which connects on first use.
#[must_use]
pub fn open(address: Address, tls: Option<Arc<ClientConfig>>) -> Channel {
    // The name is never resolved, because the connector below knows the address. There are no time limits, because a
    // provider may take an hour for one request.
    Endpoint::from_static("http://localhost")
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .connect_with_connector_lazy(tower::service_fn(move |_: Uri| {
            let (address, tls) = (address.clone(), tls.clone());
            async move { connect(&address, tls).await.map(TokioIo::new) }
        }))
}

/// Adds the address to the system's error, which does not name it.
fn unreachable(address: &Address, error: &io::Error) -> io::Error {
    let place = match address {
        Address::Unix(path) => format!("socket {}", path.display()),
        Address::Tcp(address) => format!("address {address}"),
    };
    let reason = files::io_reason(error);
    io::Error::new(error.kind(), format!("its {place} cannot be reached: {reason}"))
}

async fn connect(address: &Address, tls: Option<Arc<ClientConfig>>) -> io::Result<Box<dyn Stream>> {
    let stream = reach(address).await.map_err(|error| unreachable(address, &error))?;
    match tls {
        None => Ok(stream),
        Some(config) => {
            // Any valid name would do, because the verifier compares whole certificates and ignores names.
            let name = ServerName::try_from("localhost").map_err(io::Error::other)?;
            Ok(Box::new(TlsConnector::from(config).connect(name, stream).await?))
        }
    }
}

async fn reach(address: &Address) -> io::Result<Box<dyn Stream>> {
    Ok(match address {
        Address::Unix(path) => Box::new(system::streams::connect_to_plugin(path).await?),
        Address::Tcp(address) => {
            let stream = TcpStream::connect(address).await?;
            // Requests are small, and the core waits for each of them; Nagle's algorithm would delay them.
            stream.set_nodelay(true)?;
            Box::new(stream)
        }
    })
}
