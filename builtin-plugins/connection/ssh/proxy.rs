//! TCP connections to the first machine on the route, directly or through a proxy.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use base64::Engine as _;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::{TcpSocket, TcpStream};
use tokio_rustls::client::TlsStream;

use super::settings::Hop;
pub use super::settings::{Proxy, Scheme};
use crate::{Error, Result, resolve};

/// Time limit for a TCP connection to one address, and for connecting through a proxy, including the handshake with the proxy.
const LIMIT: Duration = Duration::from_secs(15);

/// Length limit in bytes for the head of a proxy's response.
const LONGEST_HEAD: usize = 16 * 1024;

/// A byte stream to the first machine on the route.
pub enum Dialed {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// Connects to a machine, through the proxy if there is one.
pub async fn dial(proxy: Option<&Proxy>, hop: &Hop) -> Result<Dialed> {
    let Some(proxy) = proxy else {
        return Ok(Dialed::Plain(tcp(&hop.host, hop.port).await?));
    };
    let through = async {
        match proxy.scheme {
            Scheme::Socks5 => {
                let mut stream = tcp(&proxy.host, proxy.port).await?;
                socks5(&mut stream, proxy, hop).await?;
                Ok(Dialed::Plain(stream))
            }
            Scheme::Http => plain_connect(proxy, hop).await,
            Scheme::Https => match tls(proxy).await? {
                Some(mut stream) => {
                    connect(&mut stream, proxy, hop).await?;
                    Ok(Dialed::Tls(Box::new(stream)))
                }
                None => plain_connect(proxy, hop).await,
            },
        }
    };
    // The time limit covers connecting and the handshake, not the use of the connection.
    match tokio::time::timeout(LIMIT, through).await {
        Ok(result) => result,
        Err(_) => Err(Error::new("no answer within 15 seconds")),
    }
    .map_err(|error| error.context(format_args!("Error connecting to proxy {}:{}", proxy.host, proxy.port)))
}

/// Connects to the first address of a host that accepts a connection.
pub async fn tcp(host: &str, port: u16) -> Result<TcpStream> {
    let mut last = None;
    for address in resolve::addresses(host, port).await? {
        match tokio::time::timeout(LIMIT, tcp_to(address)).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => last = Some(format!("dial tcp {address}: {}", in_words(&error))),
            // The wording of Go's error, which users search for.
            Err(_) => last = Some(format!("dial tcp {address}: i/o timeout")),
        }
    }
    Err(Error::new(
        last.unwrap_or_else(|| format!("dial tcp: lookup {host}: no such host")),
    ))
}

fn in_words(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::ConnectionRefused => "connect: connection refused".to_owned(),
        io::ErrorKind::HostUnreachable => "connect: no route to host".to_owned(),
        io::ErrorKind::NetworkUnreachable => "connect: network is unreachable".to_owned(),
        _ => error.to_string(),
    }
}

async fn tcp_to(address: SocketAddr) -> io::Result<TcpStream> {
    let socket = if address.is_ipv4() {
        TcpSocket::new_v4()?
    } else {
        TcpSocket::new_v6()?
    };
    socket.set_keepalive(true)?;
    let stream = socket.connect(address).await?;
    // Without this option, small packets would be delayed: commands and acknowledgements would wait for each other.
    stream.set_nodelay(true)?;
    Ok(stream)
}

async fn plain_connect(proxy: &Proxy, hop: &Hop) -> Result<Dialed> {
    let mut stream = tcp(&proxy.host, proxy.port).await?;
    connect(&mut stream, proxy, hop).await?;
    Ok(Dialed::Plain(stream))
}

/// Opens a TLS connection to the proxy; `None` if the proxy does not support TLS.
async fn tls(proxy: &Proxy) -> Result<Option<TlsStream<TcpStream>>> {
    let name = ServerName::try_from(proxy.host.clone())
        .map_err(|error| Error::fatal(format!("proxy_host is no name: {error}")))?;
    let config = trust::configuration(Arc::new(trust::Verifier::system()))
        .map_err(|error| Error::fatal(error.to_string()))?
        .with_no_client_auth();
    let stream = tcp(&proxy.host, proxy.port).await?;
    match tokio_rustls::TlsConnector::from(Arc::new(config))
        .connect(name, stream)
        .await
    {
        Ok(stream) => Ok(Some(stream)),
        Err(error) => {
            let tls = error.get_ref().and_then(|e| e.downcast_ref::<rustls::Error>());
            match tls {
                // The reply is not a TLS record, so the server speaks plain HTTP. A failed verification is another error: then nothing may
                // be sent in plain text.
                Some(rustls::Error::InvalidMessage(_)) => Ok(None),
                _ => Err(Error::new(error.to_string())),
            }
        }
    }
}

/// Requests a tunnel from an HTTP proxy.
async fn connect<S: AsyncRead + AsyncWrite + Unpin>(stream: &mut S, proxy: &Proxy, hop: &Hop) -> Result<()> {
    let target = hop.address();
    // Proxies without authentication ignore empty credentials. Both headers are sent, as in Terraform.
    let credentials = base64::engine::general_purpose::STANDARD.encode(format!("{}:{}", proxy.user, proxy.password));
    let request = format!(
        "CONNECT {target} HTTP/1.1\r\nHost: {target}\r\nAuthorization: Basic {credentials}\r\nProxy-Authorization: Basic \
         {credentials}\r\nUser-Agent: Go-http-client/1.1\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await?;
    stream.flush().await?;
    let mut head = Vec::new();
    // Read byte by byte, because the bytes after the head belong to the tunnel.
    while !head.ends_with(b"\r\n\r\n") {
        match stream.read_u8().await {
            Ok(byte) => head.push(byte),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Err(Error::new("the proxy closed the connection without an answer"));
            }
            Err(error) => return Err(error.into()),
        }
        if head.len() > LONGEST_HEAD {
            return Err(Error::new("the proxy's answer has no end"));
        }
    }
    let text = String::from_utf8_lossy(&head);
    let line = text.lines().next().unwrap_or_default();
    match line.split(' ').nth(1) {
        Some(status) if line.starts_with("HTTP/") && status.starts_with('2') => Ok(()),
        _ => Err(Error::new(format!("the proxy answered \"{line}\""))),
    }
}

/// Requests a connection from a SOCKS proxy (RFC 1928, passwords by RFC 1929).
async fn socks5(stream: &mut TcpStream, proxy: &Proxy, hop: &Hop) -> Result<()> {
    const NONE: u8 = 0;
    const PASSWORD: u8 = 2;
    let methods: &[u8] = if proxy.user.is_empty() {
        &[NONE]
    } else {
        &[NONE, PASSWORD]
    };
    let length = |text: &str, what: &str| {
        // The protocol has one byte for the length of a field.
        u8::try_from(text.len()).map_err(|_| Error::fatal(format!("{what} is longer than a SOCKS proxy can take")))
    };
    stream.write_all(&[&[5, length_of(methods)], methods].concat()).await?;
    let mut answer = [0; 2];
    stream.read_exact(&mut answer).await?;
    match answer {
        [5, NONE] => {}
        [5, PASSWORD] => {
            let mut message = vec![1, length(&proxy.user, "proxy_user_name")?];
            message.extend(proxy.user.as_bytes());
            message.push(length(&proxy.password, "proxy_user_password")?);
            message.extend(proxy.password.as_bytes());
            stream.write_all(&message).await?;
            stream.read_exact(&mut answer).await?;
            if answer[1] != 0 {
                return Err(Error::new("the proxy refused the user name or the password"));
            }
        }
        [5, _] => {
            return Err(Error::new(
                "the proxy wants a user name and a password, or something else yet",
            ));
        }
        _ => return Err(Error::new("the proxy does not speak SOCKS 5")),
    }
    let mut request = vec![5, 1, 0];
    match hop.host.parse::<IpAddr>() {
        Ok(IpAddr::V4(address)) => request.extend([&[1][..], &address.octets()].concat()),
        Ok(IpAddr::V6(address)) => request.extend([&[4][..], &address.octets()].concat()),
        // The proxy resolves the name, which may be known in the network of the proxy only.
        Err(_) => {
            request.extend([3, length(&hop.host, "host")?]);
            request.extend(hop.host.as_bytes());
        }
    }
    request.extend(hop.port.to_be_bytes());
    stream.write_all(&request).await?;
    let mut head = [0; 4];
    stream.read_exact(&mut head).await?;
    if head[1] != 0 {
        let reason = match head[1] {
            2 => "not allowed by its rules",
            3 => "the network is unreachable",
            4 => "the host is unreachable",
            5 => "connection refused",
            6 => "the connection took too long",
            7 => "it cannot connect to others at all",
            8 => "it does not know this kind of address",
            _ => "general failure",
        };
        return Err(Error::new(format!(
            "the proxy could not connect to {}: {reason}",
            hop.address()
        )));
    }
    // The bound address of the proxy is not used, but the data of the tunnel comes after it.
    let rest = match head[3] {
        1 => 4,
        4 => 16,
        _ => usize::from(stream.read_u8().await?),
    };
    stream.read_exact(&mut vec![0; rest + 2]).await?;
    Ok(())
}

fn length_of(methods: &[u8]) -> u8 {
    u8::try_from(methods.len()).unwrap_or(u8::MAX)
}

impl AsyncRead for Dialed {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Dialed::Plain(stream) => Pin::new(stream).poll_read(cx, buffer),
            Dialed::Tls(stream) => Pin::new(stream).poll_read(cx, buffer),
        }
    }
}

impl AsyncWrite for Dialed {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Dialed::Plain(stream) => Pin::new(stream).poll_write(cx, data),
            Dialed::Tls(stream) => Pin::new(stream).poll_write(cx, data),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Dialed::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Dialed::Tls(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Dialed::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Dialed::Tls(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}
