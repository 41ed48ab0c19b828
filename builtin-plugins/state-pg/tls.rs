//! TLS connections to PostgreSQL, with the TLS library that all crates use.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// TLS connector for the PostgreSQL library.
#[derive(Clone)]
pub(crate) struct Encryption(pub Arc<ClientConfig>);

/// TLS connector for one server.
pub(crate) struct ToServer {
    config: Arc<ClientConfig>,
    name: String,
}

pub(crate) struct Encrypted(Box<TlsStream<tokio_postgres::Socket>>);

impl MakeTlsConnect<tokio_postgres::Socket> for Encryption {
    type Stream = Encrypted;
    type TlsConnect = ToServer;
    type Error = io::Error;

    fn make_tls_connect(&mut self, name: &str) -> io::Result<ToServer> {
        Ok(ToServer {
            config: self.0.clone(),
            name: name.to_owned(),
        })
    }
}

impl TlsConnect<tokio_postgres::Socket> for ToServer {
    type Stream = Encrypted;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Encrypted>> + Send>>;

    fn connect(self, stream: tokio_postgres::Socket) -> Self::Future {
        Box::pin(async move {
            let name = ServerName::try_from(self.name).map_err(io::Error::other)?;
            let stream = TlsConnector::from(self.config).connect(name, stream).await?;
            Ok(Encrypted(Box::new(stream)))
        })
    }
}

impl tokio_postgres::tls::TlsStream for Encrypted {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl AsyncRead for Encrypted {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl AsyncWrite for Encrypted {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}
