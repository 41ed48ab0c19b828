//! The `tls` provider: private keys, certificate requests, certificates, and the certificates of servers.
//!
//! [`key`] generates, writes and reads private keys. [`name`] and [`alt_names`] have names. [`certificate`] encodes certificates and
//! requests field by field, because users rely on the exact form of each field. [`terms`] has the common code of both types of
//! certificates, above all renewal. [`fetch`] reads the certificates of servers, through the proxy in the provider's configuration
//! ([`proxying`]).
//!
//! It implements version 4.2.1 of the official provider. Of the crates of this workspace it may use only the SDK. It differs from the
//! official provider in these points, in favor of users:
//! - `max_path_length = 0` is written into a CA certificate, which then cannot sign another CA certificate. The official provider omits the
//!   limit without an error.
//! - A validity of more than 292 years is possible. In the official provider, the end overflows to a time before the beginning.
//! - `ready_for_renewal` is unknown while the hours are unknown. In the official provider, it is true, which is wrong once they are known.
//! - The wait for a server that does not answer ends after half a minute. In the official provider, it never ends.

mod algorithms;
mod alt_names;
mod cert_request;
mod certificate;
mod certificate_data;
mod fetch;
mod key;
mod locally_signed;
mod name;
mod oid;
mod pem;
mod private_key;
mod problem;
mod proxying;
mod public_key;
mod self_signed;
mod subject;
mod terms;
mod uri;
mod usage;
mod web_address;

#[cfg(test)]
mod tests;

use monoform_sdk::schema::Text;
use monoform_sdk::{Diagnostic, Diagnostics, Members, Provider, Result, Schema, async_trait};

use crate::proxying::{Config, Proxying};

/// Name of the provider in addresses and in the names of executables.
pub const NAME: &str = "tls";

/// Version of the official provider that this one implements.
pub const VERSION: &str = "4.2.1";

/// Earlier releases with the same major version, which this provider also implements.
pub const RELEASED: &[&str] = &[
    "4.0.0", "4.0.1", "4.0.2", "4.0.3", "4.0.4", "4.0.5", "4.0.6", "4.1.0", "4.2.0",
];

/// Constructs the provider for the plugin server.
#[must_use]
pub fn provider() -> impl Provider {
    Tls
}

struct Tls;

/// Marks the descriptions of a schema as plain text. As in the official provider, the descriptions of the root and of the given members
/// stay Markdown.
fn plain_but(schema: Schema, markdown: &[&str]) -> Schema {
    let mut schema = schema.plain();
    schema.root.text = Text::Markdown;
    for attribute in schema.root.attributes.iter_mut().filter(|a| markdown.contains(&a.name)) {
        attribute.text = Text::Markdown;
    }
    for nested in schema.root.blocks.iter_mut().filter(|b| markdown.contains(&b.name)) {
        nested.block.text = Text::Markdown;
    }
    schema
}

#[async_trait]
impl Provider for Tls {
    type Config = Config;
    type Client = Proxying;

    fn schema(&self) -> Schema {
        Schema::of::<Config>().describe("Creates and reads keys and certificates.")
    }

    fn members(&self, members: &mut Members<Proxying>) {
        members.resource("tls_cert_request", cert_request::CertRequest);
        members.resource("tls_locally_signed_cert", locally_signed::LocallySignedCert);
        members.resource("tls_private_key", private_key::PrivateKey);
        members.resource("tls_self_signed_cert", self_signed::SelfSignedCert);
        members.data_source("tls_certificate", certificate_data::CertificateSource);
        members.data_source("tls_public_key", public_key::PublicKey);
        members.ephemeral("tls_private_key", private_key::EphemeralPrivateKey);
        members.ephemeral("tls_public_key", public_key::EphemeralPublicKey);
    }

    fn validate(&self, config: &Config) -> Diagnostics {
        config.check()
    }

    async fn configure(&self, config: Config, _terraform_version: &str) -> Result<Proxying> {
        Proxying::configured(&config)
    }
}

fn failed(summary: &str, detail: impl Into<String>) -> Diagnostics {
    Diagnostic::error(summary, detail).into()
}
