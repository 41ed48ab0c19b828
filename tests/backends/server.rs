//! Servers that run during a test.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::{Duration, Instant};

use support::ports::ServerPort;

/// A server that ends when this is dropped.
pub struct Server {
    child: Child,
    /// Port on 127.0.0.1.
    pub port: u16,
    /// Resources that end with the server: its files, servers behind it.
    _with: Vec<Box<dyn std::any::Any + Send + Sync>>,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Server {
    /// Starts a program that listens on a port that is reserved for it, and waits until it accepts connections.
    pub fn start(
        reserved: ServerPort,
        command: &mut Command,
        mut with: Vec<Box<dyn std::any::Any + Send + Sync>>,
    ) -> Server {
        let port = reserved.number();
        with.push(Box::new(reserved));
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the server starts");
        let server = Server {
            child,
            port,
            _with: with,
        };
        let end = Instant::now() + Duration::from_secs(60);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < end, "the server answers: {command:?}");
            std::thread::sleep(Duration::from_millis(100));
        }
        server
    }
}

/// A server that all current labs share.
pub type Shared = OnceLock<Mutex<Weak<Server>>>;

/// Returns the shared server, and starts it if there is none.
pub fn shared(cell: &Shared, start: impl FnOnce() -> Server) -> Arc<Server> {
    let mut shared = cell.get_or_init(Mutex::default).lock().expect("the server");
    if let Some(server) = shared.upgrade() {
        return server;
    }
    let server = Arc::new(start());
    *shared = Arc::downgrade(&server);
    server
}

/// Starts a proxy that leads every requested connection to this port, whatever the server's name; returns its own port.
pub fn proxy(to: u16) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("it").port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || lead(stream, to));
        }
    });
    port
}

fn lead(stream: TcpStream, to: u16) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    if !line.starts_with("CONNECT ") {
        return (&stream)
            .write_all(b"HTTP/1.1 405 No\r\nContent-Length: 0\r\n\r\n")
            .ok();
    }
    while !line.trim().is_empty() {
        line.clear();
        reader.read_line(&mut line).ok()?;
    }
    let server = TcpStream::connect(("127.0.0.1", to)).ok()?;
    (&stream).write_all(b"HTTP/1.1 200 Connected\r\n\r\n").ok()?;
    let mut back = (server.try_clone().ok()?, stream.try_clone().ok()?);
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut back.0, &mut back.1);
        let _ = back.1.shutdown(std::net::Shutdown::Write);
    });
    let mut server_side = server;
    let _ = std::io::copy(&mut reader, &mut server_side);
    server_side.shutdown(std::net::Shutdown::Write).ok()
}
