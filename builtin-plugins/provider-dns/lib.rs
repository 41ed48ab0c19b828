//! The `dns` provider: records in zones with dynamic updates, and answers of the system's resolver.
//!
//! A managed resource is a set of records with the same name and type. [`records`] has their common code, with the messages of RFC 2136;
//! [`kinds`] has the types. [`settings`] has the server and the credentials, [`exchange`] sends and receives messages, and [`tsig`] signs
//! them (RFC 8945). [`text`] converts names and strings in the form of zone files. The data sources ([`data`]) use the system's resolver
//! ([`lookup`]), and do not need the provider's configuration.
//!
//! It implements version 3.6.1 of the official provider. Of the crates of this workspace it may use only the SDK. It differs from the
//! official provider in these points, in favor of users:
//! - `recursive` has an effect. The official provider clears the flag before it sends a query.
//! - After a failed update, an A or AAAA set stays in the state. The official provider drops it.
//! - The server may write a name or an address in another form (`Mail.example.`, `10.0.0.01`, `2001:0db8::1`, other escapes in a TXT
//!   string). The form of the configuration is then kept. In the official provider, this is an inconsistent result, or a change in every
//!   plan.
//! - After a truncated answer, the repeated query is signed again. The official provider does not sign it.
//! - Answers to signed messages must be signed, unless they are errors. The official provider accepts any answer.
//! - GSS-TSIG is refused, because it needs the Kerberos installation of the machine.

/// Entry points of the fuzz targets.
#[doc(hidden)]
pub mod fuzzing {
    use hickory_proto::op::Message;
    use hickory_proto::rr::Name;

    use crate::tsig::{Algorithm, Key};

    /// Reads a server's answer to an update, including its signature.
    pub fn answer(bytes: &[u8]) {
        drop(Message::from_vec(bytes));
        let algorithms = ["hmac-md5", "hmac-sha1", "hmac-sha256", "hmac-sha512"];
        for algorithm in algorithms.into_iter().filter_map(Algorithm::from_name) {
            let key = Key::new(&Name::root(), algorithm, b"secret".to_vec());
            let _ = key.verify(bytes, &[], 0);
        }
    }

    /// Reads a name and a text in the form of a configuration.
    pub fn texts(text: &str) {
        if let Ok(name) = crate::text::name(text) {
            let written = crate::text::name_text(&name);
            assert_eq!(crate::text::name(&written).as_ref(), Ok(&name), "{written}");
        }
        if let Ok(txt) = crate::text::txt(text) {
            drop(crate::text::txt_text(&txt));
        }
    }
}

mod data;
mod exchange;
mod kinds;
mod lookup;
mod records;
mod settings;
mod text;
mod tsig;

use monoform_sdk::{Members, Provider, Result, Schema, async_trait};

use crate::exchange::Client;
use crate::records::Records;

/// Name of the provider in addresses and in the names of executables.
pub const NAME: &str = "dns";

/// Version of the official provider that this one implements.
pub const VERSION: &str = "3.6.1";

/// Earlier releases with the same major version, which this provider also implements.
pub const RELEASED: &[&str] = &[
    "3.0.0", "3.0.1", "3.1.0", "3.2.0", "3.2.1", "3.2.2", "3.2.3", "3.2.4", "3.3.0", "3.3.1", "3.3.2", "3.4.0",
    "3.4.1", "3.4.2", "3.4.3", "3.5.0", "3.6.0",
];

/// Constructs the provider for the plugin server.
#[must_use]
pub fn provider() -> impl Provider {
    Dns
}

struct Dns;

#[async_trait]
impl Provider for Dns {
    type Config = settings::Config;
    type Client = Client;

    fn schema(&self) -> Schema {
        Schema::of::<settings::Config>().plain()
    }

    fn members(&self, members: &mut Members<Client>) {
        members.plain();
        members.resource("dns_a_record_set", Records(kinds::A));
        members.resource("dns_aaaa_record_set", Records(kinds::Aaaa));
        members.resource("dns_cname_record", Records(kinds::Cname));
        members.resource("dns_mx_record_set", Records(kinds::Mx));
        members.resource("dns_ns_record_set", Records(kinds::Ns));
        members.resource("dns_ptr_record", Records(kinds::Ptr));
        members.resource("dns_srv_record_set", Records(kinds::Srv));
        members.resource("dns_txt_record_set", Records(kinds::Txt));
        members.data_source("dns_a_record_set", data::A);
        members.data_source("dns_aaaa_record_set", data::Aaaa);
        members.data_source("dns_cname_record_set", data::Cname);
        members.data_source("dns_mx_record_set", data::Mx);
        members.data_source("dns_ns_record_set", data::Ns);
        members.data_source("dns_ptr_record_set", data::Ptr);
        members.data_source("dns_srv_record_set", data::Srv);
        members.data_source("dns_txt_record_set", data::Txt);
    }

    async fn configure(&self, config: settings::Config, _terraform_version: &str) -> Result<Client> {
        Ok(Client::new(config.settings(&variable)?))
    }
}

/// Returns the value of an environment variable; `None` if it is unset or empty.
#[expect(
    clippy::disallowed_methods,
    reason = "the environment has the settings that the configuration leaves out"
)]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::variable;
    use monoform_sdk::cty::{Type, Value};
    use monoform_sdk_testing::Harness;

    #[test]
    fn the_schema_is_the_official_one() {
        let text = Harness::new(crate::provider()).schema_text();
        let legacy = |kind: &str| {
            format!(
                "resource dns_{kind}_record_set v0\n  addresses set(string) required\n  id string optional computed\n  name string \
                 optional\n  ttl number optional\n  zone string required\n"
            )
        };
        for part in [
            legacy("a"),
            legacy("aaaa"),
            "resource dns_cname_record v0\n  cname string required\n  id string computed\n  name string required\n  ttl number \
             optional computed\n  zone string required\n"
                .to_owned(),
            "resource dns_mx_record_set v0\n  id string computed\n  name string optional\n  ttl number optional computed\n  zone \
             string required\n"
                .to_owned(),
            "data dns_txt_record_set v0\n  host string required\n  id string computed\n  record string computed\n  records \
             list(string) computed\n"
                .to_owned(),
        ] {
            assert!(text.contains(&part), "{part} is not in\n{text}");
        }
        assert_eq!(text.lines().filter(|line| !line.starts_with(' ')).count(), 16);
    }

    #[test]
    fn what_a_configuration_may_not_say() {
        let harness = Harness::new(crate::provider());
        let set = |texts: &[&str]| Value::set(Type::String, texts.iter().map(Value::string).collect());
        let (zone, name) = (("zone", Value::from("z.")), ("name", Value::from("n")));
        for (kind, config, expected) in [
            (
                "a_record_set",
                vec![("zone", "z".into()), ("addresses", set(&["1.2.3.4"]))],
                "must be fully qualified",
            ),
            (
                "a_record_set",
                vec![("zone", " z.".into()), ("addresses", set(&["1.2.3.4"]))],
                "whitespace",
            ),
            (
                "a_record_set",
                vec![("zone", "a..b.".into()), ("addresses", set(&["1.2.3.4"]))],
                "between two dots",
            ),
            (
                "a_record_set",
                vec![zone.clone(), ("name", "".into()), ("addresses", set(&["1.2.3.4"]))],
                "or be empty",
            ),
            (
                "a_record_set",
                vec![zone.clone(), ("name", "n.".into()), ("addresses", set(&["1.2.3.4"]))],
                "must not be fully",
            ),
            (
                "a_record_set",
                vec![zone.clone(), ("addresses", set(&["::1"]))],
                "is no IPv4 address",
            ),
            (
                "a_record_set",
                vec![zone.clone(), ("addresses", set(&[]))],
                "at least 1 elements",
            ),
            (
                "aaaa_record_set",
                vec![zone.clone(), ("addresses", set(&["1.2.3.4"]))],
                "is no IPv6 address",
            ),
            (
                "cname_record",
                vec![zone.clone(), name.clone(), ("cname", "c".into())],
                "CNAME must be fully qualified",
            ),
            (
                "ns_record_set",
                vec![zone.clone(), name.clone(), ("nameservers", set(&["a.", "b"]))],
                "must be fully qualified",
            ),
            (
                "txt_record_set",
                vec![zone.clone(), ("txt", set(&["a\"b"]))],
                "a backslash before it",
            ),
        ] {
            let found = harness.validate(&format!("dns_{kind}"), &config);
            assert_eq!(found.0.len(), 1, "{found:?}");
            assert!(found.0[0].detail.contains(expected), "{found:?}");
        }
        let fine = [zone, name, ("addresses", set(&["010.0.0.1"]))];
        assert!(!harness.validate("dns_a_record_set", &fine).has_errors());
    }

    #[tokio::test]
    async fn without_a_server_addresses_cannot_be_managed() {
        // Skipped if the environment sets a server, because the provider would use it.
        if variable("DNS_UPDATE_SERVER").is_some() {
            return;
        }
        let harness = Harness::new(crate::provider());
        harness.configure(&[]).await.unwrap();
        let addresses = Value::set(Type::String, vec!["192.0.2.1".into()]);
        let error = harness
            .create("dns_a_record_set", &[("zone", "z.".into()), ("addresses", addresses)])
            .await
            .unwrap_err();
        assert_eq!(error.0[0].summary, "update server is not set");
    }
}
