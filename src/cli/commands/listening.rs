//! Settings of commands that serve: the address, and the certificate with its key.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use server::{TlsSettings, server_config};

use crate::outcome::Failure;

/// Parses the flag `-listen`. The example in the error has this port.
pub fn address(text: &str, port: u16) -> Result<SocketAddr, Failure> {
    text.parse().map_err(|_| {
        Failure::flag(format!(
            "invalid value \"{text}\" for flag -listen: it must be an IP address and a port, like 127.0.0.1:{port} or [::]:{port}"
        ))
    })
}

/// Reads the files of `-tls-cert` and `-tls-key`; `None` without them. Errors have this summary.
pub fn tls(summary: &str, certificate: Option<&str>, key: Option<&str>) -> Result<Option<Arc<TlsSettings>>, Failure> {
    match (certificate, key) {
        (None, None) => Ok(None),
        (Some(certificate), Some(key)) => server_config(Path::new(certificate), Path::new(key))
            .map(Some)
            .map_err(|error| Failure::new(summary, format!("That failed: {error}."))),
        _ => Err(Failure::flag("-tls-cert and -tls-key need each other")),
    }
}
