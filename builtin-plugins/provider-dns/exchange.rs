//! Exchange of messages with the DNS server.

#![expect(clippy::disallowed_methods, reason = "signed messages have the time in them")]

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hickory_proto::op::{Edns, Message, ResponseCode};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;

use crate::lookup;
use crate::settings::{Settings, Transport};
use crate::tsig;

/// Size of UDP answers in bytes that is offered to the server after an answer of the default size was truncated.
const LARGER: u16 = 4096;

/// Client that sends messages to the server in the provider's configuration.
#[derive(Debug)]
pub(crate) struct Client {
    settings: Settings,
}

/// Reason why there is no answer.
#[derive(Clone, Debug)]
pub(crate) enum Failure {
    Timeout(Duration),
    /// The message cannot be sent, or the response is malformed.
    Other(String),
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Timeout(time) => write!(f, "there was no answer within {} ms", time.as_millis()),
            Failure::Other(what) => f.write_str(what),
        }
    }
}

fn other(what: impl Into<String>) -> Failure {
    Failure::Other(what.into())
}

/// Returns a function that adds the address of the peer to an error of its socket.
fn broken(peer: SocketAddr) -> impl Fn(io::Error) -> Failure {
    move |error| Failure::Other(format!("{peer}: {error}"))
}

impl Client {
    pub fn new(settings: Settings) -> Client {
        Client { settings }
    }

    /// Returns true if the configuration or the environment sets a server.
    pub fn has_server(&self) -> bool {
        self.settings.server.is_some()
    }

    /// Returns true if queries request recursion.
    pub fn is_recursive(&self) -> bool {
        self.settings.recursive
    }

    /// Sends a message, and repeats it after a timeout or the status SERVFAIL until all attempts are used. If the answer is truncated, the
    /// message is sent again with a larger size for answers, and if that is not enough, over TCP. Each time, the count of attempts begins
    /// again.
    pub async fn exchange(&self, mut message: Message) -> Result<Message, Failure> {
        let mut transport = self.settings.transport;
        let mut tries = self.settings.retries;
        loop {
            let problem = match self.once(&message, transport).await {
                Err(problem @ Failure::Timeout(_)) if tries > 0 => problem,
                Err(problem) => return Err(problem),
                Ok(answer) if answer.metadata.response_code == ResponseCode::ServFail && tries > 0 => {
                    other("the server says that it failed (SERVFAIL)")
                }
                Ok(answer) if answer.metadata.truncation => {
                    if message.edns.is_none() {
                        let mut edns = Edns::new();
                        edns.set_max_payload(LARGER);
                        message.set_edns(edns);
                    } else if !transport.is_tcp {
                        transport.is_tcp = true;
                    } else {
                        return Err(other(
                            "the answer was cut short even over TCP (unknown transport for more)",
                        ));
                    }
                    tries = self.settings.retries;
                    continue;
                }
                Ok(answer) => return Ok(answer),
            };
            tries -= 1;
            // As in the official provider, the number of retries includes the first attempt.
            if tries <= 0 {
                return Err(other(format!("unable to complete DNS exchange: {problem}")));
            }
            tracing::debug!(%problem, "asking again");
        }
    }

    async fn once(&self, message: &Message, transport: Transport) -> Result<Message, Failure> {
        let bytes = message
            .to_vec()
            .map_err(|e| other(format!("the message cannot be written: {e}")))?;
        let now = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
        // The message is signed again for each attempt, since the signature contains the time.
        let signed = match &self.settings.key {
            Some(key) => {
                let signed = key.sign(&bytes, now());
                Some((
                    key,
                    signed.ok_or_else(|| other("the message is too large to be signed"))?,
                ))
            }
            None => None,
        };
        let request = signed.as_ref().map_or(&bytes, |(_, (message, _))| message);
        let limit = self.settings.timeout;
        // Resolving the server's name has a time limit of its own, so that it does not shorten the time for the exchange.
        let peers = timeout(limit.saturating_mul(3), self.peers(transport))
            .await
            .map_err(|_| Failure::Timeout(limit))??;
        let work = async {
            let mut last = None;
            for peer in peers {
                let result = if transport.is_tcp {
                    tcp(peer, request).await
                } else {
                    udp(peer, request).await
                };
                match result {
                    Ok(answer) => return Ok(answer),
                    Err(problem) => last = Some(problem),
                }
            }
            Err(last.unwrap_or_else(|| other("the server has no address that can be used")))
        };
        let answer = timeout(limit, work).await.map_err(|_| Failure::Timeout(limit))??;
        let parsed = Message::from_vec(&answer).map_err(|e| other(format!("the answer cannot be read: {e}")))?;
        tracing::debug!(code = %parsed.metadata.response_code, size = answer.len(), "answer");
        if let Some((key, (_, mac))) = &signed {
            match key.verify(&answer, mac, now()) {
                Ok(()) => {}
                // A server may refuse a message before it verifies the signature, so an unsigned refusal is accepted. All other unsigned
                // answers are errors.
                Err(tsig::Problem::Unsigned) if is_refusal(parsed.metadata.response_code) => {}
                Err(problem) => return Err(other(problem.to_string())),
            }
        }
        Ok(parsed)
    }

    /// Returns the addresses of the server in the order of attempts.
    async fn peers(&self, transport: Transport) -> Result<Vec<SocketAddr>, Failure> {
        let addresses = match self.settings.server.as_deref().unwrap_or_default() {
            "" => vec![IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)],
            // An IPv6 address may be in brackets.
            server => match server.trim_matches(['[', ']']).parse() {
                Ok(address) => vec![address],
                Err(_) => lookup::addresses(server)
                    .await
                    .map_err(|e| other(format!("the address of the server {server:?} is not known: {e}")))?,
            },
        };
        let fits = |a: &IpAddr| transport.family.is_none_or(|family| (family == 4) == a.is_ipv4());
        let peers: Vec<SocketAddr> = addresses
            .into_iter()
            .filter(fits)
            .map(|a| SocketAddr::new(a, self.settings.port))
            .collect();
        Ok(peers)
    }
}

fn is_refusal(code: ResponseCode) -> bool {
    !matches!(code, ResponseCode::NoError | ResponseCode::NXDomain)
}

async fn udp(peer: SocketAddr, request: &[u8]) -> Result<Vec<u8>, Failure> {
    let local = if peer.is_ipv4() {
        IpAddr::V4(Ipv4Addr::UNSPECIFIED)
    } else {
        IpAddr::V6(Ipv6Addr::UNSPECIFIED)
    };
    let broken = broken(peer);
    let socket = UdpSocket::bind((local, 0)).await.map_err(&broken)?;
    // A connected UDP socket receives messages from its peer only.
    socket.connect(peer).await.map_err(&broken)?;
    socket.send(request).await.map_err(&broken)?;
    let mut buffer = vec![0; usize::from(u16::MAX)];
    loop {
        let size = socket.recv(&mut buffer).await.map_err(&broken)?;
        // The ID must match: late answers to earlier messages, and messages of others, are ignored.
        if size >= 2 && buffer.get(..2) == request.get(..2) {
            buffer.truncate(size);
            return Ok(buffer);
        }
    }
}

async fn tcp(peer: SocketAddr, request: &[u8]) -> Result<Vec<u8>, Failure> {
    let broken = broken(peer);
    let size = u16::try_from(request.len()).map_err(|_| other("the message is larger than 64 KiB"))?;
    let mut stream = TcpStream::connect(peer).await.map_err(&broken)?;
    // Over TCP, a message follows its length in two bytes (RFC 1035, section 4.2.2).
    let mut bytes = size.to_be_bytes().to_vec();
    bytes.extend_from_slice(request);
    stream.write_all(&bytes).await.map_err(&broken)?;
    let size = stream.read_u16().await.map_err(&broken)?;
    let mut answer = vec![0; usize::from(size)];
    stream.read_exact(&mut answer).await.map_err(&broken)?;
    // The first two bytes of a message are its ID, which the answer repeats.
    if answer.get(..2) != request.get(..2) {
        return Err(other(format!("{peer}: the answer is one to another question")));
    }
    Ok(answer)
}
