//! Name resolution of hosts.

use std::net::{IpAddr, SocketAddr};

use crate::{Error, Result};

/// Returns the addresses of a host, or the address that the host already is.
pub async fn addresses(host: &str, port: u16) -> Result<Vec<SocketAddr>> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    let found = lookup(host, port)
        .await
        .map_err(|error| Error::new(format!("dial tcp: lookup {host}: {error}")))?;
    Ok(found)
}

/// Resolves a name with the services of the system (hosts file, NSS). An IPv6 address with a zone is accepted, too,
/// which `IpAddr` cannot represent.
#[cfg(not(target_feature = "crt-static"))]
async fn lookup(host: &str, port: u16) -> std::io::Result<Vec<SocketAddr>> {
    Ok(tokio::net::lookup_host((host, port)).await?.collect())
}

/// Resolves a name by DNS, with the configuration of the system.
#[cfg(target_feature = "crt-static")]
async fn lookup(host: &str, port: u16) -> std::io::Result<Vec<SocketAddr>> {
    // A static executable cannot load the name services of glibc.
    let resolver = hickory_resolver::TokioResolver::builder_tokio()
        .and_then(|builder| builder.build())
        .map_err(std::io::Error::other)?;
    let found = resolver.lookup_ip(host).await.map_err(std::io::Error::other)?;
    Ok(found.iter().map(|address| SocketAddr::new(address, port)).collect())
}
