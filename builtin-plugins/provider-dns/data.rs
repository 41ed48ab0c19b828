//! Data sources: answers of the system's resolver. They are sorted, so that they do not depend on the order of the server, except for TXT
//! records.

use std::cmp::Reverse;
use std::net::IpAddr;

use hickory_proto::rr::{RData, RecordType};
use monoform_sdk::schema::{computed, required};
use monoform_sdk::{Attr, Context, DataSource, Diagnostic, Diagnostics, Result, Schema, async_trait, model};

use crate::exchange::Client;
use crate::{lookup, text};

fn failed(kind: &str, name: &str, reason: impl std::fmt::Display) -> Diagnostics {
    Diagnostic::error(
        format!("error looking up {kind} records for {name:?}: "),
        format!("{reason}."),
    )
    .into()
}

/// Queries the records of one type; `pick` extracts the data of each record.
async fn answers<T>(name: &str, kind: RecordType, pick: impl Fn(&RData) -> Option<T>) -> Result<Vec<T>> {
    let records = lookup::records(name, kind)
        .await
        .map_err(|e| failed(&kind.to_string(), name, e))?;
    Ok(records.iter().filter_map(|record| pick(&record.data)).collect())
}

/// Implements a data source with a function from its configuration to its result.
macro_rules! data_source {
    ($name:ident($model:ident): $description:literal, $read:path) => {
        pub(crate) struct $name;

        #[async_trait]
        impl DataSource for $name {
            type Model = $model;
            type Client = Client;

            fn schema(&self) -> Schema {
                Schema::of::<$model>().describe($description)
            }

            async fn read(&self, config: $model, _cx: &mut Context<Client>) -> Result<$model> {
                $read(config).await
            }
        }
    };
}

model! {
    /// Addresses of one family.
    pub struct Addresses {
        /// The name to look up.
        pub host: Attr<String> = required(),
        /// Its addresses, sorted as text.
        pub addrs: Attr<Vec<String>> = computed(),
        /// The name.
        pub id: Attr<String> = computed(),
    }
}

async fn addresses(config: Addresses, kind: &str, pick: impl Fn(&IpAddr) -> bool) -> Result<Addresses> {
    let host = config.host.text();
    let found = lookup::addresses(host).await.map_err(|e| failed(kind, host, e))?;
    // An IPv4-mapped IPv6 address counts as an IPv4 address.
    let found = found.into_iter().map(|a| a.to_canonical()).filter(pick);
    let mut addrs: Vec<String> = found.map(|a| a.to_string()).collect();
    // Servers rotate the order of their answers, which must not appear as a change.
    addrs.sort();
    Ok(Addresses {
        id: config.host.clone(),
        addrs: addrs.into(),
        ..config
    })
}

data_source!(A(Addresses): "The IPv4 addresses of a host.", ipv4);

async fn ipv4(config: Addresses) -> Result<Addresses> {
    addresses(config, "A", IpAddr::is_ipv4).await
}

data_source!(Aaaa(Addresses): "The IPv6 addresses of a host.", ipv6);

async fn ipv6(config: Addresses) -> Result<Addresses> {
    addresses(config, "AAAA", IpAddr::is_ipv6).await
}

model! {
    /// The canonical name of an alias (CNAME record).
    pub struct Canonical {
        /// The name to look up.
        pub host: Attr<String> = required(),
        /// The canonical name; `host` itself if it is no alias.
        pub cname: Attr<String> = computed(),
        /// The name.
        pub id: Attr<String> = computed(),
    }
}

data_source!(Cname(Canonical): "The name that a host is an alias of.", canonical);

async fn canonical(config: Canonical) -> Result<Canonical> {
    let host = config.host.text();
    let cname = lookup::canonical(host).await.map_err(|e| failed("CNAME", host, e))?;
    Ok(Canonical {
        id: config.host.clone(),
        cname: cname.into(),
        ..config
    })
}

model! {
    /// A mail server.
    pub struct Exchange {
        /// Servers with a lower number come first.
        pub preference: Attr<i64> = computed(),
        /// The name of the server.
        pub exchange: Attr<String> = computed(),
    }
}

model! {
    /// Mail servers.
    pub struct Exchanges {
        /// The name to look up.
        pub domain: Attr<String> = required(),
        /// The servers, sorted by preference and name.
        pub mx: Attr<Vec<Exchange>> = computed(),
        /// The name.
        pub id: Attr<String> = computed(),
    }
}

data_source!(Mx(Exchanges): "The mail servers of a domain.", exchanges);

async fn exchanges(config: Exchanges) -> Result<Exchanges> {
    let mut found = answers(config.domain.text(), RecordType::MX, |data| match data {
        RData::MX(mx) => Some((mx.preference, text::name_text(&mx.exchange))),
        _ => None,
    })
    .await?;
    found.sort();
    let mx = found.into_iter().map(|(preference, exchange)| Exchange {
        preference: i64::from(preference).into(),
        exchange: exchange.into(),
    });
    Ok(Exchanges {
        id: config.domain.clone(),
        mx: mx.collect::<Vec<_>>().into(),
        ..config
    })
}

model! {
    /// Name servers.
    pub struct NameServers {
        /// The name to look up.
        pub host: Attr<String> = required(),
        /// The names of the servers, sorted.
        pub nameservers: Attr<Vec<String>> = computed(),
        /// The name.
        pub id: Attr<String> = computed(),
    }
}

data_source!(Ns(NameServers): "The name servers of a zone.", name_servers);

async fn name_servers(config: NameServers) -> Result<NameServers> {
    let mut found = answers(config.host.text(), RecordType::NS, |data| match data {
        RData::NS(name) => Some(text::name_text(&name.0)),
        _ => None,
    })
    .await?;
    found.sort();
    Ok(NameServers {
        id: config.host.clone(),
        nameservers: found.into(),
        ..config
    })
}

model! {
    /// The name of an address.
    pub struct Pointer {
        /// The address to look up.
        pub ip_address: Attr<String> = required(),
        /// Its name; the first one if there are several.
        pub ptr: Attr<String> = computed(),
        /// The address.
        pub id: Attr<String> = computed(),
    }
}

data_source!(Ptr(Pointer): "The name of an address.", pointer);

async fn pointer(config: Pointer) -> Result<Pointer> {
    let address = config.ip_address.text();
    let names = lookup::names(address).await.map_err(|e| failed("PTR", address, e))?;
    let Some(name) = names.into_iter().next() else {
        return Err(failed("PTR", address, "no records found"));
    };
    Ok(Pointer {
        id: config.ip_address.clone(),
        ptr: name.into(),
        ..config
    })
}

model! {
    /// A server of a service.
    pub struct Server {
        /// Servers with a lower number come first.
        pub priority: Attr<i64> = computed(),
        /// Among servers of one priority, those with a higher number get more requests.
        pub weight: Attr<i64> = computed(),
        /// The port of the service.
        pub port: Attr<i64> = computed(),
        /// The name of the server.
        pub target: Attr<String> = computed(),
    }
}

model! {
    /// Servers of a service.
    pub struct Servers {
        /// The name to look up, such as `_sip._tcp.example.com.`.
        pub service: Attr<String> = required(),
        /// The servers, sorted by priority, falling weight, name and port.
        pub srv: Attr<Vec<Server>> = computed(),
        /// The name.
        pub id: Attr<String> = computed(),
    }
}

data_source!(Srv(Servers): "The servers of a service.", servers);

async fn servers(config: Servers) -> Result<Servers> {
    let mut found = answers(config.service.text(), RecordType::SRV, |data| match data {
        RData::SRV(srv) => Some((
            // Sorted as in the official provider: by priority, then the largest weight first.
            srv.priority,
            Reverse(srv.weight),
            text::name_text(&srv.target),
            srv.port,
        )),
        _ => None,
    })
    .await?;
    found.sort();
    let srv = found
        .into_iter()
        .map(|(priority, Reverse(weight), target, port)| Server {
            priority: i64::from(priority).into(),
            weight: i64::from(weight).into(),
            port: i64::from(port).into(),
            target: target.into(),
        });
    Ok(Servers {
        id: config.service.clone(),
        srv: srv.collect::<Vec<_>>().into(),
        ..config
    })
}

model! {
    /// Texts.
    pub struct Texts {
        /// The name to look up.
        pub host: Attr<String> = required(),
        /// The first text; null if there is none.
        pub record: Attr<String> = computed(),
        /// The texts in the order in which the server gives them.
        pub records: Attr<Vec<String>> = computed(),
        /// The name.
        pub id: Attr<String> = computed(),
    }
}

data_source!(Txt(Texts): "The texts of a name.", texts);

async fn texts(config: Texts) -> Result<Texts> {
    let found = answers(config.host.text(), RecordType::TXT, |data| match data {
        RData::TXT(txt) => {
            // The strings of a record are the pieces of one text; each has at most 255 bytes.
            let bytes: Vec<u8> = txt.txt_data.iter().flatten().copied().collect();
            Some(String::from_utf8_lossy(&bytes).into_owned())
        }
        _ => None,
    })
    .await?;
    Ok(Texts {
        id: config.host.clone(),
        record: found.first().cloned().into(),
        records: found.into(),
        ..config
    })
}
