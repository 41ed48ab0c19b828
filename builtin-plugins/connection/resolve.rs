//! Names of machines to addresses.

use std::net::{IpAddr, SocketAddr};

use crate::{Error, Result};

/// The addresses of a host.
pub async fn addresses(host: &str, port: u16) -> Result<Vec<SocketAddr>> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    let found = lookup(host, port)
        .await
        .map_err(|error| Error::new(format!("dial tcp: lookup {host}: {error}")))?;
    Ok(found)
}

/// The system's own way, with its files, services and rules. An address with a zone is no name, but read here, too.
#[cfg(not(target_feature = "crt-static"))]
async fn lookup(host: &str, port: u16) -> std::io::Result<Vec<SocketAddr>> {
    Ok(tokio::net::lookup_host((host, port)).await?.collect())
}

/// A static executable cannot load the system's name services.
#[cfg(target_feature = "crt-static")]
async fn lookup(host: &str, port: u16) -> std::io::Result<Vec<SocketAddr>> {
    let resolver = hickory_resolver::TokioResolver::builder_tokio()
        .and_then(|builder| builder.build())
        .map_err(std::io::Error::other)?;
    let found = resolver.lookup_ip(host).await.map_err(std::io::Error::other)?;
    Ok(found.iter().map(|address| SocketAddr::new(address, port)).collect())
}
