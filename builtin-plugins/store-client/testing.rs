//! A small web server for the tests of stores. A function computes the response to each request.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// A request that the server has received.
#[derive(Clone, Debug)]
pub struct Asked {
    pub method: String,
    pub target: String,
    /// Headers by lower-case name.
    pub headers: BTreeMap<String, String>,
    pub body: Vec<u8>,
}

impl Asked {
    /// Returns a header; empty if there is none.
    #[must_use]
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    #[must_use]
    pub fn path(&self) -> &str {
        self.target.split('?').next().unwrap_or_default()
    }

    /// Returns a parameter of the query, decoded.
    #[must_use]
    pub fn query(&self, name: &str) -> Option<String> {
        let url = url::Url::parse("http://localhost").unwrap().join(&self.target).unwrap();
        url.query_pairs()
            .find(|(key, _)| key == name)
            .map(|(_, value)| value.into_owned())
    }
}

/// A response of the server.
#[derive(Clone, Debug, Default)]
pub struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

impl Reply {
    #[must_use]
    pub fn new(status: u16, body: impl Into<Vec<u8>>) -> Reply {
        Reply {
            status,
            headers: Vec::new(),
            body: body.into(),
        }
    }

    /// Adds a header.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Reply {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }
}

type Answer = dyn Fn(&Asked) -> Reply + Send + Sync;

/// A server that runs until the runtime of the test ends.
#[derive(Clone)]
pub struct Server {
    address: String,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Server {
    /// Starts a server. `answer` computes the response to each request.
    ///
    /// # Panics
    /// No port is free.
    pub async fn start(answer: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Server {
            address: format!("http://{}", listener.local_addr().unwrap()),
            asked: Arc::default(),
        };
        let asked = server.asked.clone();
        let answer: Arc<Answer> = Arc::new(answer);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, answer.clone(), asked.clone()));
            }
        });
        server
    }

    /// Returns the address `http://127.0.0.1:PORT`.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Returns the requests so far.
    ///
    /// # Panics
    /// A response function has panicked.
    #[must_use]
    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

async fn serve(stream: TcpStream, answer: Arc<Answer>, asked: Arc<Mutex<Vec<Asked>>>) {
    let mut stream = BufReader::new(stream);
    while let Some(request) = read(&mut stream).await {
        asked.lock().unwrap().push(request.clone());
        let reply = answer(&request);
        let mut head = format!("HTTP/1.1 {} Status\r\n", reply.status);
        for (name, value) in &reply.headers {
            head.push_str(&format!("{name}: {value}\r\n"));
        }
        // The body of a response to HEAD is not sent, although its length is announced. Responses with status 204 and 304 have no body.
        let own_length = reply
            .headers
            .iter()
            .any(|(name, _)| name.eq_ignore_ascii_case("content-length"));
        if !own_length && !matches!(reply.status, 204 | 304) {
            head.push_str(&format!("content-length: {}\r\n", reply.body.len()));
        }
        head.push_str("\r\n");
        let body: &[u8] = if request.method == "HEAD" { b"" } else { &reply.body };
        let sent = [head.as_bytes(), body].concat();
        if stream.write_all(&sent).await.is_err() || stream.flush().await.is_err() {
            return;
        }
    }
}

async fn read(stream: &mut BufReader<TcpStream>) -> Option<Asked> {
    let mut line = String::new();
    stream.read_line(&mut line).await.ok()?;
    let mut words = line.split_whitespace();
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else {
            break;
        };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").and_then(|n| n.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some(Asked {
        method,
        target,
        headers,
        body,
    })
}
