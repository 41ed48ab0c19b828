//! The connection to a plugin: gRPC over a Unix socket or TCP, with or without TLS.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tonic::transport::{Channel, Endpoint, Uri};

use crate::handshake::Address;

/// The largest message either side may send. Large providers describe themselves in well over tonic's usual 4 MiB.
pub const MESSAGE_LIMIT: usize = 256 << 20;
/// How much of one answer may be in flight before it is acknowledged: schemas come at once, not in pieces of 64 KiB.
const STREAM_WINDOW: u32 = 8 << 20;
/// How much of all answers may be in flight. The HTTP/2 library counts each small DATA frame that has not been read yet with
/// about 256 bytes against half of this window, and closes the connection when that is spent: half of 256 MiB is enough for
/// half a million answers, far more than [`crate::connection::MAX_CALLS`].
const CONNECTION_WINDOW: u32 = 256 << 20;

trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// A channel to this address. It connects when first used, and has no time limits: a provider may take an hour.
#[must_use]
pub fn open(address: Address, tls: Option<Arc<ClientConfig>>) -> Channel {
    // The name is never looked up: the connector below knows where to go.
    Endpoint::from_static("http://localhost")
        .initial_stream_window_size(STREAM_WINDOW)
        .initial_connection_window_size(CONNECTION_WINDOW)
        .connect_with_connector_lazy(tower::service_fn(move |_: Uri| {
            let (address, tls) = (address.clone(), tls.clone());
            async move { connect(&address, tls).await.map(TokioIo::new) }
        }))
}

/// The address of a socket as the system has it: one that begins with `@` is a name (`unix(7)`: abstract), not a file.
#[cfg(unix)]
fn abstract_or_file(path: &Path) -> PathBuf {
    match path.to_str().and_then(|text| text.strip_prefix('@')) {
        Some(name) if cfg!(target_os = "linux") => PathBuf::from(format!("\0{name}")),
        _ => path.to_owned(),
    }
}

/// Names the address that cannot be reached: the system's error does not.
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
            let name = ServerName::try_from("localhost").map_err(io::Error::other)?;
            Ok(Box::new(TlsConnector::from(config).connect(name, stream).await?))
        }
    }
}

async fn reach(address: &Address) -> io::Result<Box<dyn Stream>> {
    Ok(match address {
        #[cfg(unix)]
        Address::Unix(path) => Box::new(tokio::net::UnixStream::connect(abstract_or_file(path)).await?),
        #[cfg(not(unix))]
        Address::Unix(_) => return Err(io::Error::from(io::ErrorKind::Unsupported)),
        Address::Tcp(address) => {
            let stream = TcpStream::connect(address).await?;
            stream.set_nodelay(true)?;
            Box::new(stream)
        }
    })
}
