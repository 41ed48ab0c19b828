//! Settings of commands that serve: the listening address, and the certificate with its key.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use server::{TlsSettings, server_config};

use crate::outcome::Failure;

/// Parses the value of `-listen`. The error shows an example with `port`.
pub fn address(text: &str, port: u16) -> Result<SocketAddr, Failure> {
    text.parse().map_err(|_| {
        Failure::flag(format!(
            "invalid value \"{text}\" for flag -listen: it must be an IP address and a port, like 127.0.0.1:{port} or [::]:{port}"
        ))
    })
}

/// Reads the files of `-tls-cert` and `-tls-key`; `None` if neither flag is set. `summary` is
/// that of the error if a file cannot be used.
pub fn tls(summary: &str, certificate: Option<&str>, key: Option<&str>) -> Result<Option<Arc<TlsSettings>>, Failure> {
    match (certificate, key) {
        (None, None) => Ok(None),
        (Some(certificate), Some(key)) => server_config(Path::new(certificate), Path::new(key))
            .map(Some)
            .map_err(|error| Failure::new(summary, format!("That failed: {error}."))),
        _ => Err(Failure::flag("-tls-cert and -tls-key need each other")),
    }
}
