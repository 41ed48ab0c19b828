//! Settings of a connection over WinRM.

use std::net::Ipv6Addr;
use std::time::Duration;

/// Arguments of the connection block for WinRM.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// Name or address, without brackets.
    pub host: String,
    pub port: u16,
    pub user: String,
    pub password: String,
    pub https: bool,
    pub insecure: bool,
    pub ntlm: bool,
    pub cacert: Option<String>,
    pub timeout: Duration,
}

impl Settings {
    pub fn shown_host(&self) -> String {
        if self.host.parse::<Ipv6Addr>().is_ok() {
            format!("[{}]", self.host)
        } else {
            self.host.clone()
        }
    }

    pub fn address(&self) -> String {
        format!("{}:{}", self.shown_host(), self.port)
    }

    pub fn url(&self) -> String {
        let scheme = if self.https { "https" } else { "http" };
        format!("{scheme}://{}/wsman", self.address())
    }
}
