//! Name resolution of hosts.

use std::net::{IpAddr, SocketAddr};

use crate::{Error, Result};

/// Returns the addresses of a host. If the host is an IP address, it is returned without a lookup.
pub async fn addresses(host: &str, port: u16) -> Result<Vec<SocketAddr>> {
    if let Ok(address) = host.parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(address, port)]);
    }
    let found = lookup(host, port)
        .await
        .map_err(|error| Error::new(format!("dial tcp: lookup {host}: {error}")))?;
    Ok(found)
}

/// Resolves a name with the services of the system (hosts file, NSS). This also accepts an IPv6 address with a zone, which `IpAddr` cannot
/// represent.
#[cfg(not(target_feature = "crt-static"))]
async fn lookup(host: &str, port: u16) -> std::io::Result<Vec<SocketAddr>> {
    Ok(tokio::net::lookup_host((host, port)).await?.collect())
}

/// Resolves a name by DNS, with the DNS settings of the system.
#[cfg(target_feature = "crt-static")]
async fn lookup(host: &str, port: u16) -> std::io::Result<Vec<SocketAddr>> {
    // The resolver of the system is not available: a static executable cannot load the name services of glibc.
    let resolver = hickory_resolver::TokioResolver::builder_tokio()
        .and_then(|builder| builder.build())
        .map_err(std::io::Error::other)?;
    let found = resolver.lookup_ip(host).await.map_err(std::io::Error::other)?;
    Ok(found.iter().map(|address| SocketAddr::new(address, port)).collect())
}
