//! Incoming connections on the socket.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use rustls::ServerConfig;
use system::listening::{Listener, Stream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::mpsc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// A connection, encrypted or not.
pub(crate) enum Connection {
    Plain(Stream),
    Encrypted(Box<TlsStream<Stream>>),
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

/// Connections of a socket, as they come.
pub(crate) type Connections = mpsc::Receiver<Connection>;

/// Returns the connections of a socket. A client that fails authentication is left out.
pub(crate) fn connections(listener: Listener, tls: Option<Arc<ServerConfig>>) -> Connections {
    let (sender, receiver) = mpsc::channel(4);
    let acceptor = tls.map(TlsAcceptor::from);
    tokio::spawn(async move {
        while !sender.is_closed() {
            let stream = match listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => {
                    // The usual cause is a lack of file descriptors. After a pause, some may be free.
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(Duration::from_millis(20)).await;
                    continue;
                }
            };
            let (sender, acceptor) = (sender.clone(), acceptor.clone());
            // TLS handshakes run in parallel, so that a client that connects and sends nothing does not delay the others.
            tokio::spawn(async move {
                let connection = match acceptor {
                    None => Connection::Plain(stream),
                    Some(acceptor) => match acceptor.accept(stream).await {
                        Ok(stream) => Connection::Encrypted(Box::new(stream)),
                        Err(error) => {
                            tracing::warn!(%error, "a client was refused, since the TLS handshake with it failed");
                            return;
                        }
                    },
                };
                drop(sender.send(connection).await);
            });
        }
    });
    receiver
}
