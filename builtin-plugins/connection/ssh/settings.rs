//! Settings of a connection over SSH.

use std::net::Ipv6Addr;

use russh::keys::PublicKey;

use super::agent::AgentSettings;
use super::keys::UserKey;

/// Arguments of the connection block for SSH.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub target: Hop,
    pub bastion: Option<Hop>,
    pub proxy: Option<Proxy>,
    pub agent: Option<AgentSettings>,
    /// True if the target is a Windows machine.
    pub windows: bool,
}

/// Host on the route to the target, with its credentials.
#[derive(Clone, Debug)]
pub(crate) struct Hop {
    /// Name or address, without brackets.
    pub host: String,
    pub port: u16,
    pub user: String,
    pub password: Option<String>,
    pub key: Option<UserKey>,
    /// Expected host key. If there is none, every key is accepted.
    pub host_key: Option<PublicKey>,
}

impl Hop {
    /// Returns the host with brackets around an IPv6 address.
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

/// Protocol of a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// HTTP with the method CONNECT.
    Http,
    /// HTTP with the method CONNECT over TLS. If the proxy does not support TLS, plain HTTP is used, because Terraform speaks plain HTTP to
    /// such proxies.
    Https,
    /// SOCKS, version 5.
    Socks5,
}
