//! Name resolution with the settings of this machine: the hosts file, then the servers in `/etc/resolv.conf`.

use std::net::{IpAddr, Ipv4Addr};

use hickory_proto::rr::{Name, RData, Record, RecordType};
use hickory_resolver::config::{NameServerConfig, ResolverConfig};
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::{Resolver, TokioResolver};

use crate::text;

const HOSTS: &str = "/etc/hosts";

#[derive(Debug, thiserror::Error)]
pub(crate) enum LookupError {
    #[error("it is no name: {0}")]
    Name(hickory_proto::ProtoError),
    #[error("{0:?} is no address")]
    Address(String),
    /// The servers have answered, but there are no records.
    #[error("there are no records of it")]
    NoRecords,
    /// The resolver could not be set up, or no server answered successfully.
    #[error(transparent)]
    Resolver(#[from] NetError),
}

/// A line of the hosts file.
struct Line {
    address: IpAddr,
    names: Vec<String>,
}

fn hosts() -> Vec<Line> {
    // The file is read for each lookup: it is small, and may change while the plugin process runs.
    let text = std::fs::read_to_string(HOSTS).unwrap_or_default();
    lines(&text)
}

fn lines(text: &str) -> Vec<Line> {
    let line = |line: &str| {
        let mut words = line.split('#').next()?.split_whitespace();
        // The zone of an IPv6 address (`fe80::1%eth0`) has no meaning in DNS, and is dropped.
        let address = words.next()?.split('%').next()?.parse().ok()?;
        let names = words.map(str::to_owned).collect();
        Some(Line { address, names })
    };
    text.lines().filter_map(line).collect()
}

impl Line {
    fn has(&self, host: &str) -> bool {
        let same = |name: &String| {
            name.trim_end_matches('.')
                .eq_ignore_ascii_case(host.trim_end_matches('.'))
        };
        self.names.iter().any(same)
    }
}

/// Appends a dot to a name that contains a dot, unless it already ends with one.
fn complete(name: &str) -> String {
    if name.contains('.') && !name.ends_with('.') {
        format!("{name}.")
    } else {
        name.to_owned()
    }
}

fn resolver() -> Result<TokioResolver, LookupError> {
    let provider = TokioRuntimeProvider::default();
    let mut builder = match Resolver::builder(provider.clone()) {
        Ok(builder) => builder,
        // If `resolv.conf` cannot be read, a resolver on this machine is assumed, as in Go's library.
        Err(_) => {
            let local = NameServerConfig::udp_and_tcp(IpAddr::V4(Ipv4Addr::LOCALHOST));
            Resolver::builder_with_config(ResolverConfig::from_parts(None, Vec::new(), vec![local]), provider)
        }
    };
    // Records of intermediate aliases are kept, because the canonical name is found by following them.
    builder.options_mut().preserve_intermediates = true;
    Ok(builder.build()?)
}

/// Queries the records of a name, including those of intermediate aliases.
pub(crate) async fn records(host: &str, kind: RecordType) -> Result<Vec<Record>, LookupError> {
    let name: Name = host.parse().map_err(LookupError::Name)?;
    let found = resolver()?.lookup(name, kind).await?;
    Ok(found.answers().to_vec())
}

/// Returns the IPv4 and IPv6 addresses of a host. If the hosts file has the host, DNS is not queried.
pub(crate) async fn addresses(host: &str) -> Result<Vec<IpAddr>, LookupError> {
    if let Ok(address) = host.parse() {
        return Ok(vec![address]);
    }
    let known: Vec<IpAddr> = hosts()
        .iter()
        .filter(|line| line.has(host))
        .map(|line| line.address)
        .collect();
    if !known.is_empty() {
        return Ok(known);
    }
    let name: Name = host.parse().map_err(LookupError::Name)?;
    let mut builder = resolver()?;
    // Without the hosts file, which was consulted above for both families.
    builder.set_hosts(std::sync::Arc::default());
    let found = tokio::join!(
        builder.lookup(name.clone(), RecordType::A),
        builder.lookup(name, RecordType::AAAA)
    );
    let of = |result: &Result<hickory_resolver::lookup::Lookup, _>| match result {
        Ok(lookup) => lookup.answers().iter().filter_map(address).collect(),
        Err(_) => Vec::new(),
    };
    let addresses: Vec<IpAddr> = of(&found.0).into_iter().chain(of(&found.1)).collect();
    match (addresses.is_empty(), found.0, found.1) {
        // A missing family is no error if the other family has addresses.
        (true, Err(error), Err(_)) => Err(error.into()),
        _ => Ok(addresses),
    }
}

fn address(record: &Record) -> Option<IpAddr> {
    match &record.data {
        RData::A(a) => Some(a.0.into()),
        RData::AAAA(a) => Some(a.0.into()),
        _ => None,
    }
}

/// Returns the canonical name of a host: the first name on its line of the hosts file, or else the target of its CNAME record. Without
/// either, returns the host itself, if it has an address.
pub(crate) async fn canonical(host: &str) -> Result<String, LookupError> {
    if let Some(line) = hosts().iter().find(|line| line.has(host)) {
        return Ok(line.names.first().map(|n| complete(n)).unwrap_or_default());
    }
    let mut problem = None;
    for kind in [RecordType::A, RecordType::AAAA, RecordType::CNAME] {
        // As in the official provider, only the first alias of a chain is followed.
        match records(host, kind).await {
            Ok(records) => {
                if let Some(first) = records.first() {
                    return Ok(text::name_text(match &first.data {
                        RData::CNAME(target) => &target.0,
                        _ => &first.name,
                    }));
                }
            }
            Err(error) => {
                problem.get_or_insert(error);
            }
        }
    }
    Err(problem.unwrap_or(LookupError::NoRecords))
}

/// Returns the names of an address: those in the hosts file or, if it has none, those of the PTR records.
pub(crate) async fn names(address: &str) -> Result<Vec<String>, LookupError> {
    let ip: IpAddr = address.parse().map_err(|_| LookupError::Address(address.to_owned()))?;
    let known: Vec<String> = hosts()
        .iter()
        .filter(|line| line.address == ip)
        .flat_map(|line| line.names.iter().map(|n| complete(n)))
        .collect();
    if !known.is_empty() {
        return Ok(known);
    }
    let records = records(&text::name_text(&Name::from(ip)), RecordType::PTR).await?;
    Ok(records
        .iter()
        .filter_map(|record| match &record.data {
            RData::PTR(name) => Some(text::name_text(&name.0)),
            _ => None,
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_files() {
        let lines = lines("# comment\n127.0.0.1 localhost Me.Example # me\n\nfe80::1%eth0 me\nnonsense here\n");
        assert_eq!(lines.len(), 2);
        assert!(lines[0].has("me.example.") && lines[0].has("LOCALHOST") && !lines[0].has("me"));
        assert_eq!(lines[1].address, "fe80::1".parse::<IpAddr>().unwrap());
        assert_eq!(
            (complete("localhost"), complete("a.b")),
            ("localhost".to_owned(), "a.b.".to_owned())
        );
    }
}
