//! Ports of 127.0.0.1 that no other program can take while a test uses them.
//!
//! If a test only binds a port, frees it and passes it on, another server may take the port meanwhile, and answer where
//! a refusal is expected.

use std::fs::File;
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, SocketType, bind, getsockname, socket};

/// A port that refuses connections until this value is dropped: a socket is bound to it, but does not listen.
pub struct ClosedPort {
    _socket: OwnedFd,
    port: u16,
}

impl ClosedPort {
    /// Takes a free port.
    pub fn new() -> ClosedPort {
        let socket = socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
        let any = std::net::SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0);
        bind(&socket, &any).expect("a port");
        let address = getsockname(&socket).expect("its address");
        let address = std::net::SocketAddrV4::try_from(address).expect("version 4");
        ClosedPort {
            _socket: socket,
            port: address.port(),
        }
    }

    /// Returns the port number.
    pub fn port(&self) -> u16 {
        self.port
    }
}

impl Default for ClosedPort {
    fn default() -> ClosedPort {
        ClosedPort::new()
    }
}

/// A port for a program that takes its port as a number, such as `sshd`. The port is reserved until this value is
/// dropped.
///
/// The port is below the range from which the system assigns ports to sockets that request any port. A lock on a file
/// in the temporary directory keeps other tests from taking it, in this process or another one.
pub struct ServerPort {
    _lock: File,
    port: u16,
}

impl ServerPort {
    /// Reserves a port that is free for TCP and UDP.
    pub fn reserve() -> ServerPort {
        let dir = std::env::temp_dir().join(format!("monoform-test-ports-{}", rustix::process::getuid().as_raw()));
        std::fs::create_dir_all(&dir).expect("a directory");
        let end = first_ephemeral().clamp(10_001, 32_768);
        // Processes that start at the same time would otherwise all try the same ports.
        let offset = u16::try_from(std::process::id() % 1_000).expect("below 1,000") * 20;
        for step in 0..end - 10_000 {
            let port = 10_000 + (offset + step) % (end - 10_000);
            let lock = File::create(dir.join(port.to_string())).expect("a lock file");
            if lock.try_lock().is_ok() && is_free(port) {
                return ServerPort { _lock: lock, port };
            }
        }
        panic!("no port from 10000 to {end} is free");
    }

    pub fn number(&self) -> u16 {
        self.port
    }
}

fn is_free(port: u16) -> bool {
    let address = (Ipv4Addr::LOCALHOST, port);
    TcpListener::bind(address).is_ok() && UdpSocket::bind(address).is_ok()
}

/// Returns the lowest port of the range from which the system assigns ports to sockets that request any port.
fn first_ephemeral() -> u16 {
    let range = std::fs::read_to_string("/proc/sys/net/ipv4/ip_local_port_range").unwrap_or_default();
    let first = range.split_whitespace().next().and_then(|word| word.parse().ok());
    first.unwrap_or(32_768)
}
