//! Sockets on which plugins listen: TCP on the loopback interface, as in go-plugin on Windows.

use std::io;

pub use tokio::net::{TcpListener as Listener, TcpStream as Stream};

use crate::listen::{SocketRequest, first_free};

/// A socket, which is closed when this value is dropped.
#[derive(Debug)]
pub struct Socket {
    pub listener: Listener,
    /// Kind of network in the handshake of plugins.
    pub network: &'static str,
    /// Address with the port.
    pub address: String,
}

impl Socket {
    /// Opens a socket that only this machine can reach. Must be called in a Tokio runtime.
    ///
    /// # Errors
    /// No port of the request is free.
    pub fn open(request: &SocketRequest) -> io::Result<Socket> {
        let listener = first_free(request.ports.clone())?;
        listener.set_nonblocking(true)?;
        Ok(Socket {
            network: "tcp",
            address: listener.local_addr()?.to_string(),
            listener: Listener::from_std(listener)?,
        })
    }
}
