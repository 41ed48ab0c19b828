//! A web server for tests. A closure computes each response. Each connection has a thread, and serves one request.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A request, as the closure receives it.
pub struct Request {
    /// Method and path with query: `GET /x?y`.
    pub line: String,
    /// Bytes of the body.
    pub body: Vec<u8>,
    headers: Vec<(String, String)>,
}

impl Request {
    /// Returns a header by its lower-case name; empty if the request has none.
    pub fn header(&self, name: &str) -> &str {
        let found = self.headers.iter().find(|(n, _)| n == name);
        found.map_or("", |(_, v)| v.as_str())
    }

    pub fn method(&self) -> &str {
        self.line.split(' ').next().unwrap_or_default()
    }

    /// Returns a parameter of the query, decoded.
    pub fn query(&self, name: &str) -> Option<String> {
        let (_, query) = self.line.split_once('?')?;
        let found = query.split('&').find_map(|part| {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            (key == name).then_some(value)
        })?;
        Some(decoded(&found.replace('+', " ")))
    }

    /// Returns the path without its query.
    pub fn path(&self) -> &str {
        let path = self.line.split(' ').nth(1).unwrap_or_default();
        path.split('?').next().unwrap_or_default()
    }
}

/// A response, with faults of its transmission.
pub struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    /// Number of bytes of the body after which the connection breaks.
    cut: Option<usize>,
    /// Size of the parts in which the body is sent, and the pause after each.
    drip: Option<(usize, Duration)>,
}

impl Reply {
    /// Creates a response with this status and no body.
    pub fn status(status: u16) -> Reply {
        Reply {
            status,
            headers: Vec::new(),
            body: Vec::new(),
            cut: None,
            drip: None,
        }
    }

    /// Creates a response with this status and a body.
    pub fn new(status: u16, body: impl Into<Vec<u8>>) -> Reply {
        let mut reply = Reply::status(status);
        reply.body = body.into();
        reply
    }

    /// Creates a response with status 200.
    pub fn ok(body: impl Into<Vec<u8>>) -> Reply {
        let mut reply = Reply::status(200);
        reply.body = body.into();
        reply
    }

    /// Creates a response with a JSON document.
    pub fn json(body: &str) -> Reply {
        Reply::ok(body).with("Content-Type", "application/json")
    }

    /// Creates a redirect (302).
    pub fn redirect(to: &str) -> Reply {
        Reply::status(302).with("Location", to)
    }

    /// Breaks the connection after this number of bytes of the body.
    pub fn cut(mut self, after: usize) -> Reply {
        self.cut = Some(after);
        self
    }

    /// Sends the body in parts of this size, with a pause after each.
    pub fn drip(mut self, size: usize, pause: Duration) -> Reply {
        self.drip = Some((size, pause));
        self
    }

    /// Reduces the body to the bytes from `from` on, with status 206, for a client that has the beginning.
    pub fn partial(mut self, from: usize) -> Reply {
        self.status = 206;
        let all = self.body.len();
        self.body.drain(..from.min(all));
        self.with(
            "Content-Range",
            &format!("bytes {from}-{}/{all}", all.saturating_sub(1)),
        )
    }

    /// Adds a header.
    pub fn with(mut self, name: &str, value: &str) -> Reply {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }
}

/// An HTTP or HTTPS server that lives until it is dropped.
pub struct Server {
    address: SocketAddr,
    scheme: &'static str,
    requests: Arc<Mutex<Vec<String>>>,
    stop: Arc<AtomicBool>,
    /// Certificate in PEM; empty without TLS.
    pub certificate: String,
}

/// Stops the server: later connections are refused.
impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        // The thread waits for a connection, and checks the flag only after one.
        drop(TcpStream::connect(self.address));
    }
}

/// Decodes the percent escapes of a URL.
pub fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let hex = tail.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        match hex
            .and_then(|hex| u8::from_str_radix(hex, 16).ok())
            .filter(|_| *first == b'%')
        {
            Some(byte) => {
                bytes.push(byte);
                rest = &tail[2..];
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

type Answer = dyn Fn(&Request) -> Reply + Send + Sync;

impl Server {
    /// Starts a server without TLS.
    pub fn http(answer: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Server {
        Server::run(None, String::new(), Arc::new(answer))
    }

    /// Starts a server with a self-signed certificate for this machine.
    pub fn https(answer: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Server {
        Server::https_as(&["127.0.0.1", "localhost"], answer)
    }

    /// Starts a server with a self-signed certificate for these names.
    pub fn https_as(names: &[&str], answer: impl Fn(&Request) -> Reply + Send + Sync + 'static) -> Server {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let made = rcgen::generate_simple_self_signed(names).expect("a certificate");
        let key = rustls::pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der()).expect("a key");
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = rustls::ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .expect("a configuration");
        Server::run(Some(Arc::new(config)), made.cert.pem(), Arc::new(answer))
    }

    fn run(tls: Option<Arc<rustls::ServerConfig>>, certificate: String, answer: Arc<Answer>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let server = Server {
            address: listener.local_addr().expect("an address"),
            scheme: if tls.is_some() { "https" } else { "http" },
            requests: Arc::default(),
            stop: Arc::default(),
            certificate,
        };
        let (asked, stop) = (server.requests.clone(), server.stop.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if stop.load(Ordering::SeqCst) {
                    return;
                }
                let (tls, answer, asked) = (tls.clone(), answer.clone(), asked.clone());
                std::thread::spawn(move || {
                    // Some tests close the connection on the client's side.
                    let _ = match tls {
                        None => serve(stream, &*answer, &asked),
                        Some(config) => {
                            let connection = rustls::ServerConnection::new(config).expect("a connection");
                            let mut stream = rustls::StreamOwned::new(connection, stream);
                            let served = serve(&mut stream, &*answer, &asked);
                            stream.conn.send_close_notify();
                            let _ = stream.flush();
                            served
                        }
                    };
                });
            }
        });
        server
    }

    /// Returns `127.0.0.1:PORT`.
    pub fn host(&self) -> String {
        self.address.to_string()
    }

    pub fn url(&self, path: &str) -> String {
        format!("{}://{}{path}", self.scheme, self.address)
    }

    /// Returns a client's TLS configuration that trusts this server only.
    pub fn trusted(&self) -> rustls::ClientConfig {
        let mut roots = rustls::RootCertStore::empty();
        let certificate = rustls::pki_types::pem::PemObject::from_pem_slice(self.certificate.as_bytes());
        roots.add(certificate.expect("a certificate")).expect("a root");
        rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .expect("versions")
            .with_root_certificates(roots)
            .with_no_client_auth()
    }

    /// Returns the number of GET requests for a path since the last call of [`Server::requests`].
    pub fn count(&self, path: &str) -> usize {
        let line = format!("GET {path}");
        let requests = self.requests.lock().expect("no panic");
        requests.iter().filter(|request| **request == line).count()
    }

    /// Returns the requests since the last call: method and path.
    pub fn requests(&self) -> Vec<String> {
        std::mem::take(&mut *self.requests.lock().expect("no panic"))
    }
}

fn serve(stream: impl Read + Write, answer: &Answer, asked: &Mutex<Vec<String>>) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    stream.read_line(&mut line)?;
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line)?;
        match line.trim_end().split_once(':') {
            Some((name, value)) => headers.push((name.to_lowercase(), value.trim().to_owned())),
            None => break,
        }
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let mut body = vec![0; length.and_then(|(_, n)| n.parse().ok()).unwrap_or(0)];
    stream.read_exact(&mut body)?;
    let line = line.trim_end().trim_end_matches(" HTTP/1.1").to_owned();
    asked.lock().expect("no panic").push(line.clone());
    let reply = answer(&Request { line, body, headers });
    let mut head = format!(
        "HTTP/1.1 {} X\r\nContent-Length: {}\r\nConnection: close\r\n",
        reply.status,
        reply.body.len()
    );
    for (name, value) in reply.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("\r\n");
    let stream = stream.get_mut();
    stream.write_all(head.as_bytes())?;
    let body = reply
        .body
        .get(..reply.cut.unwrap_or(reply.body.len()))
        .unwrap_or_default();
    match reply.drip {
        None => stream.write_all(body)?,
        Some((size, pause)) => {
            for part in body.chunks(size) {
                stream.write_all(part)?;
                stream.flush()?;
                std::thread::sleep(pause);
            }
        }
    }
    stream.flush()
}
