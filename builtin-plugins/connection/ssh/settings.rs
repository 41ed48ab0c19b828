//! Settings of a connection over SSH.

use std::net::Ipv6Addr;

use russh::keys::PublicKey;

use super::agent::AgentSettings;
use super::keys::UserKey;

/// What the connection block says.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub target: Hop,
    pub bastion: Option<Hop>,
    pub proxy: Option<Proxy>,
    pub agent: Option<AgentSettings>,
    /// Whether the target is a Windows machine.
    pub windows: bool,
}

/// A machine, and how to log in there.
#[derive(Clone, Debug)]
pub(crate) struct Hop {
    /// Without brackets.
    pub host: String,
    pub port: u16,
    pub user: String,
    pub password: Option<String>,
    pub key: Option<UserKey>,
    /// The key that it must have; without one, every key is fine.
    pub host_key: Option<PublicKey>,
}

impl Hop {
    /// The host as it is shown: an IPv6 address in brackets.
    pub fn shown(&self) -> String {
        if self.host.parse::<Ipv6Addr>().is_ok() {
            format!("[{}]", self.host)
        } else {
            self.host.clone()
        }
    }

    pub fn address(&self) -> String {
        format!("{}:{}", self.shown(), self.port)
    }
}

/// A proxy.
#[derive(Clone, Debug)]
pub struct Proxy {
    pub scheme: Scheme,
    pub host: String,
    pub port: u16,
    pub user: String,
    pub password: String,
}

/// How a proxy is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// HTTP, method CONNECT.
    Http,
    /// The same within TLS. Terraform speaks plain HTTP to such proxies; one that answers without TLS is spoken to as Terraform
    /// does.
    Https,
    /// SOCKS, version 5.
    Socks5,
}
