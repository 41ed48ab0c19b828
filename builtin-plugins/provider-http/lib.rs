//! The `http` provider: a data source that is a request to a web server.
//!
//! [`data_source`] has the arguments and attributes. [`request`] sends requests; [`tries`] has time limits and pauses, and [`failure`] the
//! reasons for failed attempts. [`trust`] has the TLS settings, and [`answer`] converts the response to text. Nothing is prepared before a
//! request needs it. For example, the root certificates of the system are read when a server presents a certificate that they have to
//! verify.
//!
//! It implements version 3.6.0 of the official provider. The crate `http` sends the requests, as for all crates. Servers receive the same
//! request as from the official provider, including its `User-Agent`, since some servers decide by that. There are two differences:
//! `Accept: */*` is sent explicitly, and characters that a URL cannot contain are escaped. In the official provider, a space breaks the
//! request.

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

/// Version of the official provider that this one implements.
pub const VERSION: &str = "3.6.0";

/// Earlier releases with the same major version, which this provider also implements.
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
