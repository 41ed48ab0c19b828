//! The `http` provider: a data source that is a request to a web server.
//!
//! [`data_source`] is what a configuration says and what it gets. [`request`] sends and follows redirects;
//! [`tries`] has the limits of time and the pauses, and [`failure`] says why a try failed.
//! [`trust`] says which servers are believed, and [`answer`] makes the response into text. Nothing is prepared before a
//! request needs it: the machine's root certificates are read when a server presents a certificate that they must vouch for.
//!
//! It stands for version 3.6.0 of the official provider. Requests are sent by the client of all crates (`http`). Servers see the same request (its
//! `User-Agent` too, since some answer by that), except that `Accept: */*` is said and not left to be understood, and that
//! characters which cannot stand in an address are escaped (there, a space breaks the request).

mod answer;
mod data_source;
mod failure;
mod request;
#[cfg(test)]
mod test_server;
#[cfg(test)]
mod tests;
mod tries;
mod trust;

use monoform_sdk::{Empty, Members, Provider, Result, async_trait};

/// Name of the provider in addresses and in the names of executables.
pub const NAME: &str = "http";

/// The version of the official provider that this one stands for.
pub const VERSION: &str = "3.6.0";

/// The earlier versions of the same major, which this one stands for too.
pub const RELEASED: &[&str] = &[
    "3.0.0", "3.0.1", "3.1.0", "3.2.0", "3.2.1", "3.3.0", "3.4.0", "3.4.1", "3.4.2", "3.4.3", "3.4.4", "3.4.5", "3.5.0",
];

/// Constructs the provider for the plugin server.
#[must_use]
pub fn provider() -> impl Provider {
    Http
}

struct Http;

#[async_trait]
impl Provider for Http {
    type Config = Empty;
    type Client = ();

    fn members(&self, members: &mut Members<()>) {
        members.plain();
        members.data_source("http", data_source::Http);
    }

    async fn configure(&self, _config: Empty, _terraform_version: &str) -> Result<()> {
        Ok(())
    }
}
