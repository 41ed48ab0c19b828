//! The socket: where it stands, who may use it, and the connections that come in.

use std::io;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use rustls::ServerConfig;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::server::Connected;

use crate::handshake::Asked;

/// A socket in a directory of its own, which goes away with this value.
pub(crate) struct Socket {
    pub listener: UnixListener,
    /// Path of the socket; `@` and a name for an abstract one, which is no file (see `unix(7)`).
    pub path: PathBuf,
    // Removed when dropped.
    _dir: Option<tempfile::TempDir>,
}

impl Socket {
    /// Opens a socket that only this user (and the group asked for) can reach.
    pub fn open(asked: &Asked) -> io::Result<Socket> {
        let base = asked.socket_dir.as_ref().map_or_else(std::env::temp_dir, PathBuf::from);
        let dir = match tempfile::Builder::new().prefix("plugin-").tempdir_in(base) {
            Ok(dir) => dir,
            // Every user can connect to a socket that is no file, but nothing comes in without the certificate of the client.
            Err(error) if asked.client_certificate.is_some() && asked.socket_dir.is_none() => {
                return Socket::without_file().map_err(|_| error);
            }
            Err(error) => return Err(error),
        };
        // Whatever the umask says.
        std::fs::set_permissions(dir.path(), PermissionsExt::from_mode(0o700))?;
        let path = dir.path().join("socket");
        let listener = UnixListener::bind(&path)?;
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o700))?;
        if let Some(group) = &asked.socket_group {
            let group = group_id(group)?;
            // Members of the group get through the directory to the socket, and cannot list it.
            open_to_group(dir.path(), group, 0o710)?;
            open_to_group(&path, group, 0o660)?;
        }
        Ok(Socket {
            listener,
            path,
            _dir: Some(dir),
        })
    }

    /// A socket with a name that is in no directory, for systems where no directory can be written.
    #[cfg(target_os = "linux")]
    fn without_file() -> io::Result<Socket> {
        use std::os::linux::net::SocketAddrExt as _;
        // The name only has to be free.
        let random: u64 = ring::rand::generate(&ring::rand::SystemRandom::new())
            .map(|bytes: ring::rand::Random<[u8; 8]>| u64::from_ne_bytes(bytes.expose()))
            .map_err(|_| io::Error::other("the system has no random numbers"))?;
        let name = format!("monoform-plugin-{random:016x}");
        let address = std::os::unix::net::SocketAddr::from_abstract_name(&name)?;
        let listener = std::os::unix::net::UnixListener::bind_addr(&address)?;
        listener.set_nonblocking(true)?;
        Ok(Socket {
            listener: UnixListener::from_std(listener)?,
            path: PathBuf::from(format!("@{name}")),
            _dir: None,
        })
    }

    #[cfg(not(target_os = "linux"))]
    fn without_file() -> io::Result<Socket> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

fn open_to_group(path: &Path, group: u32, mode: u32) -> io::Result<()> {
    chown(path, None, Some(group))?;
    std::fs::set_permissions(path, PermissionsExt::from_mode(mode))
}

/// The number of a group given by number or by name.
fn group_id(group: &str) -> io::Result<u32> {
    if let Ok(id) = group.parse() {
        return Ok(id);
    }
    // From the file: a statically linked executable has no name service to ask.
    let groups = std::fs::read_to_string("/etc/group")?;
    let id = groups.lines().find_map(|line| {
        let mut fields = line.split(':');
        (fields.next() == Some(group))
            .then(|| fields.nth(1)?.parse().ok())
            .flatten()
    });
    id.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, format!("there is no group {group:?}")))
}

/// A connection, encrypted or not.
pub(crate) enum Connection {
    Plain(UnixStream),
    Encrypted(Box<TlsStream<UnixStream>>),
}

impl Connected for Connection {
    type ConnectInfo = ();
    fn connect_info(&self) {}
}

impl AsyncRead for Connection {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Connection::Plain(stream) => Pin::new(stream).poll_read(cx, buffer),
            Connection::Encrypted(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Connection {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Connection::Plain(stream) => Pin::new(stream).poll_write(cx, bytes),
            Connection::Encrypted(stream) => Pin::new(stream).poll_write(cx, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Connection::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Connection::Encrypted(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Connection::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Connection::Encrypted(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

/// The connections of a socket. A client that fails to prove itself never becomes one.
pub(crate) fn connections(
    listener: UnixListener,
    tls: Option<Arc<ServerConfig>>,
) -> ReceiverStream<io::Result<Connection>> {
    let (sender, receiver) = mpsc::channel(4);
    let acceptor = tls.map(TlsAcceptor::from);
    tokio::spawn(async move {
        while !sender.is_closed() {
            let stream = match listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => {
                    // Out of file descriptors, most likely: others may come free.
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    continue;
                }
            };
            let (sender, acceptor) = (sender.clone(), acceptor.clone());
            // Handshakes run side by side, so that a client that connects and stays silent keeps no other out.
            tokio::spawn(async move {
                let connection = match acceptor {
                    None => Connection::Plain(stream),
                    Some(acceptor) => match acceptor.accept(stream).await {
                        Ok(stream) => Connection::Encrypted(Box::new(stream)),
                        Err(error) => {
                            tracing::warn!(%error, "a client could not prove itself");
                            return;
                        }
                    },
                };
                drop(sender.send(Ok(connection)).await);
            });
        }
    });
    ReceiverStream::new(receiver)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_socket_without_a_file_is_reached_by_its_name() {
        let socket = Socket::without_file().unwrap();
        let name = socket.path.to_str().unwrap().strip_prefix('@').unwrap().to_owned();
        let (connected, accepted) = tokio::join!(UnixStream::connect(format!("\0{name}")), socket.listener.accept());
        assert!(connected.is_ok() && accepted.is_ok());
        assert!(!socket.path.exists());
    }
}
