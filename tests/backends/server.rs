//! Programs that serve, for the time of a test.

use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::{Duration, Instant};

/// A server that ends when this is dropped.
pub struct Server {
    child: Child,
    /// Its port on 127.0.0.1.
    pub port: u16,
    /// What ends with it: its files, servers before it.
    _with: Vec<Box<dyn std::any::Any + Send + Sync>>,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A port of 127.0.0.1 that nobody uses.
pub fn free_port() -> u16 {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("it").port()
}

impl Server {
    /// Starts a program that will listen on this port.
    pub fn start(port: u16, command: &mut Command, with: Vec<Box<dyn std::any::Any + Send + Sync>>) -> Server {
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

/// One server for all labs that are there at the same time.
pub type Shared = OnceLock<Mutex<Weak<Server>>>;

/// The server of a cell, started if there is none.
pub fn shared(cell: &Shared, start: impl FnOnce() -> Server) -> Arc<Server> {
    let mut shared = cell.get_or_init(Mutex::default).lock().expect("the server");
    if let Some(server) = shared.upgrade() {
        return server;
    }
    let server = Arc::new(start());
    *shared = Arc::downgrade(&server);
    server
}
