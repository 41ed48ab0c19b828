//! Service discovery: the `/.well-known/terraform.json` of a host, or its replacement in the CLI configuration.

use std::collections::BTreeMap;
use std::time::Duration;

use http::{Error, Phase, StatusCode, shown};
use url::Url;

use crate::client::Client;
use crate::hosts::Host;
pub use crate::services::{BadServiceUrl, Services};

pub const MODULES: &str = "modules.v1";
pub const PROVIDERS: &str = "providers.v1";
/// The service that issues tokens.
pub const LOGIN: &str = "login.v1";
/// The API of HCP Terraform and Terraform Enterprise.
pub const TFE: &str = "tfe.v2";
/// The service with the message that `login` prints.
pub const MESSAGE_OF_THE_DAY: &str = "motd.v1";

// Terraform's discovery has the same three limits.
const LIMIT: u64 = 1024 * 1024;
const TIMEOUT: Duration = Duration::from_secs(11);
const REDIRECTS: usize = 3;

/// The reason that a service cannot be used, as a sentence without a full stop.
#[derive(Clone, Debug, thiserror::Error)]
pub enum DiscoveryError {
    /// The host's services cannot be requested.
    #[error("the host {host} cannot be asked for its services: {error}")]
    Unreachable { host: Host, error: Error },
    /// The host offers other services, or none.
    #[error("the host {host} {}", offers(.service, .others))]
    NotOffered {
        host: Host,
        /// The requested service, such as `modules.v1`.
        service: String,
        /// The names of the offered services.
        others: Vec<String>,
    },
    /// The service's entry is not valid.
    #[error("the host {host} gives an address for its service {service} that cannot be used: {reason}")]
    BadAddress {
        host: Host,
        service: String,
        reason: BadServiceUrl,
    },
}

impl DiscoveryError {
    /// Returns true if the host could not be reached: there may be no network.
    #[must_use]
    pub fn is_unreachable(&self) -> bool {
        matches!(self, DiscoveryError::Unreachable { error, .. } if error.is_unreachable())
    }
}

fn offers(service: &str, others: &[String]) -> String {
    let (kind, _) = service.split_once('.').unwrap_or((service, ""));
    let prefix = format!("{kind}.");
    let versions: Vec<&str> = others
        .iter()
        .filter(|o| o.starts_with(&prefix))
        .map(String::as_str)
        .collect();
    let what = match kind {
        "modules" => "a module registry",
        "providers" => "a provider registry",
        "tfe" => "the API of HCP Terraform",
        "state" => "to keep states",
        other => return format!("does not offer the service {other}"),
    };
    if versions.is_empty() {
        format!("does not offer {what}")
    } else {
        format!(
            "offers {what} as {} only, where {service} is needed",
            versions.join(", ")
        )
    }
}

impl Client {
    /// Returns the URL of a host's service, with a slash at the end.
    pub async fn service(&self, host: &Host, service: &str) -> Result<Url, DiscoveryError> {
        let services = self.services(host).await?;
        match services.url(service) {
            Ok(Some(url)) => Ok(url),
            Ok(None) => Err(DiscoveryError::NotOffered {
                host: host.clone(),
                service: service.to_owned(),
                others: services.names(),
            }),
            Err(reason) => Err(DiscoveryError::BadAddress {
                host: host.clone(),
                service: service.to_owned(),
                reason,
            }),
        }
    }

    /// Returns the services of a host, which are requested once in a run, or again after a failure.
    pub async fn services(&self, host: &Host) -> Result<Services, DiscoveryError> {
        let base = Url::parse(&format!("https://{host}/.well-known/terraform.json"));
        if let Some(said) = self.settings().hosts.services.get(host) {
            let entries = said.iter().map(|(name, url)| (name.clone(), url.clone()));
            return Ok(Services {
                base: base.ok(),
                entries: entries.collect(),
            });
        }
        let unreachable = |error| DiscoveryError::Unreachable {
            host: host.clone(),
            error,
        };
        let url =
            base.map_err(|e| unreachable(Error::NoClient(format!("\"{host}\" is not the name of a host ({e})"))))?;
        let cell = self.services_of(host);
        let services = cell.get_or_try_init(async || self.ask(host, url).await).await;
        services.cloned().map_err(unreachable)
    }

    async fn ask(&self, host: &Host, url: Url) -> Result<Services, Error> {
        // As in Terraform, the token is sent, because a host may describe its services only to known users.
        let token = self.token(host).await?;
        let request = self.get(url).token(token.as_ref()).header("accept", "application/json");
        let mut response = request
            .to_registry()
            .redirects(REDIRECTS)
            .timeout(TIMEOUT)
            .send()
            .await?;
        // A host without the document has no services.
        if response.status() == StatusCode::NOT_FOUND {
            return Ok(Services::default());
        }
        if !response.status().is_success() {
            return Err(response.failure());
        }
        let bad = |reason: String| Error::BadAnswer {
            url: shown(&response.url),
            reason,
        };
        let kind = response.header("content-type").unwrap_or("").to_owned();
        // Hosts without the document may answer with a web page and the status 200.
        if kind.split(';').next().unwrap_or("").trim() != "application/json" {
            return Err(bad(format!("its content type is \"{kind}\" and not application/json")));
        }
        let base = response.url.clone();
        let body = tokio::time::timeout(TIMEOUT, response.bytes(LIMIT))
            .await
            .unwrap_or_else(|_| {
                Err(Error::Timeout {
                    url: shown(&base),
                    seconds: TIMEOUT.as_secs(),
                    phase: Phase::Whole,
                })
            })?;
        let entries: BTreeMap<String, serde_json::Value> =
            serde_json::from_slice(&body).map_err(|e| Error::BadAnswer {
                url: shown(&base),
                reason: format!("it is not a JSON object ({})", files::json_reason(e)),
            })?;
        Ok(Services {
            base: Some(base),
            entries,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::NetSettings;
    use crate::token::Token;
    use support::server::{Reply, Server};

    #[test]
    fn addresses_of_services() {
        let services = Services {
            base: Url::parse("https://example.com/.well-known/terraform.json").ok(),
            entries: [
                ("relative.v1", "/api/"),
                ("slash.v1", "https://other.example/x"),
                ("ftp.v1", "ftp://example.com/"),
                ("user.v1", "https://u:p@example.com/"),
            ]
            .map(|(name, url)| (name.to_owned(), url.into()))
            .into(),
        };
        let url = |name: &str| services.url(name).map(|u| u.map(String::from));
        assert_eq!(url("relative.v1"), Ok(Some("https://example.com/api/".to_owned())));
        assert_eq!(url("slash.v1"), Ok(Some("https://other.example/x/".to_owned())));
        assert_eq!(url("none.v1"), Ok(None));
        assert!(url("ftp.v1").unwrap_err().to_string().contains("https"));
        assert!(!url("user.v1").unwrap_err().to_string().contains("u:p"));
        assert_eq!(
            offers("modules.v1", &["modules.v2".to_owned(), "x.v1".to_owned()]),
            "offers a module registry as modules.v2 only, where modules.v1 is needed"
        );
    }

    #[tokio::test]
    async fn a_host_is_asked_once_with_its_token() {
        let server = Server::https(|request| match request.path() {
            "/.well-known/terraform.json" => Reply::redirect("/services"),
            "/services" if request.header("authorization") == "Bearer t" => {
                Reply::json(r#"{"modules.v1":"v1/modules","login.v1":{}}"#)
            }
            _ => Reply::status(401),
        });
        let host = Host::parse(&server.host()).unwrap();
        let mut settings = NetSettings::default();
        settings.hosts.tokens.insert(host.clone(), Token::new("t"));
        let said = Host::parse("said.example").unwrap();
        let services = [(MODULES.to_owned(), "http://127.0.0.1/m/".into())];
        settings.hosts.services.insert(said.clone(), services.into());
        let client = Client::trusting(settings, server.trusted());

        let url = client.service(&host, MODULES).await.unwrap();
        assert_eq!(url.as_str(), format!("https://{host}/v1/modules/"));
        let missing = client.service(&host, PROVIDERS).await.unwrap_err().to_string();
        assert!(missing.contains("does not offer a provider registry"), "{missing}");
        assert_eq!(server.count("/services"), 1);
        assert_eq!(
            client.service(&said, MODULES).await.unwrap().as_str(),
            "http://127.0.0.1/m/"
        );

        let stranger = Client::trusting(NetSettings::default(), server.trusted());
        let error = stranger.service(&host, MODULES).await.unwrap_err().to_string();
        assert!(error.contains("401"), "{error}");
        let distrusting = Client::new(NetSettings::default());
        let error = distrusting.service(&host, MODULES).await.unwrap_err().to_string();
        assert!(error.contains("SSL_CERT_FILE"), "{error}");
    }

    #[tokio::test]
    async fn answers_that_make_no_sense() {
        let server = Server::https(|request| match request.header("host") {
            host if host.starts_with("127.0.0.1") => Reply::ok("{}"),
            _ => Reply::json("[]"),
        });
        let client = Client::trusting(NetSettings::default(), server.trusted());
        let ask = async |name: &str| {
            let host = Host::parse(&server.host().replace("127.0.0.1", name)).unwrap();
            client.service(&host, MODULES).await.unwrap_err().to_string()
        };
        for (name, expected) in [("127.0.0.1", "content type"), ("localhost", "JSON object")] {
            let error = ask(name).await;
            assert!(error.contains(expected), "{error}");
        }
    }
}
