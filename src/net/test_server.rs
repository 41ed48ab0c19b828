//! A server for tests: answers by a closure, one connection after the other, each closed after its answer.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::sync::{Arc, Mutex};

/// What was asked.
pub(crate) struct Asked {
    pub path: String,
    headers: Vec<(String, String)>,
}

impl Asked {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, v)| v.as_str())
    }
}

/// What is answered.
pub(crate) struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    body: String,
}

impl Reply {
    pub fn status(status: u16) -> Reply {
        Reply {
            status,
            headers: Vec::new(),
            body: String::new(),
        }
    }

    pub fn ok(body: &str) -> Reply {
        let mut reply = Reply::status(200);
        reply.body = body.to_owned();
        reply
    }

    pub fn json(body: &str) -> Reply {
        Reply::ok(body).with("Content-Type", "application/json; charset=utf-8")
    }

    pub fn redirect(to: &str) -> Reply {
        Reply::status(302).with("Location", to)
    }

    pub fn with(mut self, name: &str, value: &str) -> Reply {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }
}

/// A server that lives as long as the test program.
pub(crate) struct Server {
    address: SocketAddr,
    tls: bool,
    paths: Arc<Mutex<Vec<String>>>,
}

impl Server {
    pub fn start(answer: impl Fn(&Asked) -> Reply + Send + 'static) -> Server {
        Server::run(None, answer)
    }

    /// With TLS, and with what makes a client trust it.
    pub fn start_tls(answer: impl Fn(&Asked) -> Reply + Send + 'static) -> (Server, rustls::ClientConfig) {
        let names = ["localhost".to_owned(), "127.0.0.1".to_owned()];
        let made = rcgen::generate_simple_self_signed(names).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let key = rustls::pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
        let server = rustls::ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![made.cert.der().clone()], key)
            .unwrap();
        let mut roots = rustls::RootCertStore::empty();
        roots.add(made.cert.der().clone()).unwrap();
        let client = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        (Server::run(Some(Arc::new(server)), answer), client)
    }

    fn run(tls: Option<Arc<rustls::ServerConfig>>, answer: impl Fn(&Asked) -> Reply + Send + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let server = Server {
            address: listener.local_addr().unwrap(),
            tls: tls.is_some(),
            paths: Arc::default(),
        };
        let paths = server.paths.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let served = match &tls {
                    None => serve(stream, &answer, &paths),
                    Some(config) => {
                        let connection = rustls::ServerConnection::new(config.clone()).unwrap();
                        let mut stream = rustls::StreamOwned::new(connection, stream);
                        let served = serve(&mut stream, &answer, &paths);
                        stream.conn.send_close_notify();
                        let _ = stream.flush();
                        served
                    }
                };
                // A client that goes away is part of some tests.
                drop(served);
            }
        });
        server
    }

    pub fn host(&self) -> String {
        format!("localhost:{}", self.address.port())
    }

    pub fn url(&self, path: &str) -> String {
        let scheme = if self.tls { "https" } else { "http" };
        format!("{scheme}://{}{path}", self.address)
    }

    /// How often a path was asked for.
    pub fn count(&self, path: &str) -> usize {
        self.paths.lock().unwrap().iter().filter(|p| *p == path).count()
    }
}

fn serve(
    stream: impl Read + Write,
    answer: &impl Fn(&Asked) -> Reply,
    paths: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    let mut stream = BufReader::new(stream);
    let mut line = String::new();
    stream.read_line(&mut line)?;
    let path = line.split(' ').nth(1).unwrap_or_default().to_owned();
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line)?;
        match line.trim_end().split_once(':') {
            Some((name, value)) => headers.push((name.to_lowercase(), value.trim().to_owned())),
            None => break,
        }
    }
    paths.lock().unwrap().push(path.clone());
    let reply = answer(&Asked { path, headers });
    let mut text = format!(
        "HTTP/1.1 {} X\r\nContent-Length: {}\r\nConnection: close\r\n",
        reply.status,
        reply.body.len()
    );
    for (name, value) in reply.headers {
        text.push_str(&format!("{name}: {value}\r\n"));
    }
    text.push_str("\r\n");
    text.push_str(&reply.body);
    let stream = stream.get_mut();
    stream.write_all(text.as_bytes())?;
    stream.flush()
}
