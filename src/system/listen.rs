//! Sockets on which a plugin listens for the program that has started it.

use std::io;
use std::net::{Ipv4Addr, TcpListener};
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// Requirements of the program that started a plugin for its socket, from environment variables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketRequest {
    /// Directory for the socket's file; by default that for temporary files.
    pub dir: Option<PathBuf>,
    /// Group that may use the socket's file: its name or ID.
    pub group: Option<String>,
    /// Ports for systems on which plugins listen on TCP. Port 0 means any free port.
    pub ports: RangeInclusive<u16>,
    /// True if connections require the certificate of the client.
    pub secured: bool,
}

/// Listens at the first free port on the loopback interface.
///
/// # Errors
/// No port of the range is free.
pub fn first_free(ports: RangeInclusive<u16>) -> io::Result<TcpListener> {
    let mut problem = io::Error::from(io::ErrorKind::AddrNotAvailable);
    for port in ports {
        match TcpListener::bind((Ipv4Addr::LOCALHOST, port)) {
            Ok(listener) => return Ok(listener),
            Err(error) => problem = error,
        }
    }
    Err(problem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn port_in_use_is_passed_over() {
        let taken = first_free(0..=0).unwrap();
        let port = taken.local_addr().unwrap().port();
        let error = first_free(port..=port).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AddrInUse);
        // Another process may take the next port, but hardly all that follow.
        let next = first_free(port..=u16::MAX).unwrap();
        assert!(next.local_addr().unwrap().port() > port && next.local_addr().unwrap().ip().is_loopback());
    }
}
