//! Federation: exchanges a proof of identity for a token. The proof is the certificate of an instance, or the service account of a pod.
//! Each token is for a new key.

use std::path::PathBuf;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use monoform_sdk::{Diagnostics, Result, env};
use serde_json::{Value as Json, json};
use store_client::oauth::{PrivateKey, bearer};
use store_client::sum::base64;
use store_client::{
    Bytes, HeaderMap, HeaderName, HttpClient, Method, Proxy, Settings as HttpSettings, Tls, Url, header_value,
};
use x509_parser::prelude::{FromDer as _, X509Certificate};

use crate::identity::{Identity, problem};
use crate::region::host;
use crate::signature::signed;
use crate::{key, requests};

const AUTHORIZATION: HeaderName = HeaderName::from_static("authorization");

/// Identity of a compute instance.
pub(crate) struct Machine {
    /// URL of the service that issues tokens for certificates.
    pub service: String,
    /// Directory with the certificate. `None` if the metadata service of the instance has it.
    folder: Option<PathBuf>,
}

/// Certificate of an instance and its key.
struct Proof {
    certificate: Vec<u8>,
    intermediate: Vec<u8>,
    key: PrivateKey,
}

fn failed(why: impl std::fmt::Display) -> Diagnostics {
    problem(format!(
        "The identity of this machine cannot be used: {why}. Instances have one on Oracle Cloud only (auth = \"InstancePrincipal\")."
    ))
}

impl Machine {
    pub fn new(region: &str, folder: Option<PathBuf>) -> Machine {
        let usual = format!("https://{}", host("auth", region));
        Machine {
            service: env::var("OCI_SDK_AUTH_CLIENT_REGION_URL").unwrap_or(usual),
            folder,
        }
    }

    /// Reads a part of the proof.
    async fn part(&self, http: &HttpClient, name: &str, in_folder: &str) -> Result<String> {
        if let Some(folder) = &self.folder {
            let path = folder.join(in_folder);
            return std::fs::read_to_string(&path)
                .map_err(|e| failed(format!("{} cannot be read: {e}", path.display())));
        }
        let base = env::var("OCI_METADATA_BASE_URL").unwrap_or_else(|| "http://169.254.169.254/opc/v2".to_owned());
        let url = Url::parse(&format!("{}/identity/{name}", base.trim_end_matches('/'))).map_err(failed)?;
        let mut headers = HeaderMap::new();
        // Version 2 of the metadata service requires this constant header, so that requests that a proxy or browser was tricked into cannot
        // read keys.
        headers.extend(bearer("Oracle").map(|value| (AUTHORIZATION, value)));
        let answer = http.send(Method::GET, &url, headers, None).await;
        let answer = answer.map_err(|failure| failed(failure.message))?;
        match answer.status.is_success() {
            true => Ok(answer.text()),
            false => Err(failed(answer.describe(&format!("Reading {url}"), "", "", ""))),
        }
    }

    async fn proof(&self) -> Result<Proof> {
        let http = HttpClient::new(HttpSettings {
            // The address is link-local, so a proxy would reach the metadata service of another machine.
            proxy: Proxy::None,
            timeout: Some(std::time::Duration::from_secs(10)),
            ..HttpSettings::default()
        })
        .map_err(failed)?;
        let der = |text: &str| {
            let block = pem::parse(text).map_err(|e| failed(format!("a certificate is no PEM text: {e}")))?;
            Ok::<_, Diagnostics>(block.into_contents())
        };
        let password = match &self.folder {
            Some(folder) => std::fs::read_to_string(folder.join("leaf_passphrase")).ok(),
            None => None,
        };
        let key = self.part(&http, "key.pem", "ip_key.pem").await?;
        Ok(Proof {
            certificate: der(&self.part(&http, "cert.pem", "ip_cert.pem").await?)?,
            intermediate: der(&self.part(&http, "intermediate.pem", "intermediate.pem").await?)?,
            key: key::read(&key, password.as_deref().map(str::trim_end)).map_err(failed)?,
        })
    }

    pub async fn identity(&self) -> Result<Identity> {
        let proof = self.proof().await?;
        let tenancy = tenancy(&proof.certificate).ok_or_else(|| failed("the certificate does not name a tenancy"))?;
        let signer = Identity {
            key_id: format!("{tenancy}/fed-x509/{}", key::fingerprint(&proof.certificate)),
            key: Arc::new(proof.key),
            ends: None,
        };
        let (own, public) = key::fresh().map_err(failed)?;
        let body = json!({
            "certificate": base64(&proof.certificate),
            "publicKey": base64(&public),
            "intermediateCertificates": [base64(&proof.intermediate)],
        });
        let url = Url::parse(&format!("{}/v1/x509", self.service.trim_end_matches('/'))).map_err(failed)?;
        let body = Bytes::from(body.to_string());
        // The federation service requires a signature that does not cover the host.
        let mut make = || {
            let headers = signed(&signer, (&Method::POST, &url), &[], Some(&body), false)?;
            Ok((Method::POST, url.clone(), headers, Some(body.clone())))
        };
        let http = requests::http(2).map_err(failed)?;
        let answer = http
            .send_signed(&mut make)
            .await
            .map_err(|failure| failed(failure.message))?;
        let json: Json = serde_json::from_slice(&answer.body).unwrap_or_default();
        match json["token"].as_str() {
            Some(token) if answer.status.is_success() => Ok(Identity::of_token(token, own)),
            _ => {
                let part = |name: &str| json[name].as_str().unwrap_or_default();
                Err(failed(answer.describe(
                    "Asking for a token",
                    part("code"),
                    part("message"),
                    "",
                )))
            }
        }
    }
}

/// Returns the tenancy from the subject of a certificate.
fn tenancy(certificate: &[u8]) -> Option<String> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    let parts = certificate.subject().iter_attributes();
    let mut names = parts.filter_map(|part| part.as_str().ok()?.strip_prefix("opc-tenant:"));
    names.next().map(str::to_owned)
}

/// Service account of a pod in an Oracle cluster (OKE).
pub(crate) struct Cluster {
    url: Url,
    authorities: String,
}

const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

fn not_in_cluster(why: impl std::fmt::Display) -> Diagnostics {
    problem(format!(
        "The identity of this program in its cluster cannot be used: {why}. Programs have one in enhanced clusters of Oracle Cloud only \
         (auth = \"OKEWorkloadIdentity\")."
    ))
}

impl Cluster {
    pub fn of_environment() -> Result<Cluster> {
        let server = env::var("KUBERNETES_SERVICE_HOST")
            .ok_or_else(|| not_in_cluster("the environment variable KUBERNETES_SERVICE_HOST is not set"))?;
        let file = env::var("OCI_KUBERNETES_SERVICE_ACCOUNT_CERT_PATH").unwrap_or_else(|| format!("{ACCOUNT}/ca.crt"));
        // In every OKE cluster, the API server issues these tokens at this port.
        let url = Url::parse(&format!("https://{server}:12250/resourcePrincipalSessionTokens"));
        Ok(Cluster {
            url: url.map_err(not_in_cluster)?,
            authorities: std::fs::read_to_string(&file)
                .map_err(|e| not_in_cluster(format!("{file} cannot be read: {e}")))?,
        })
    }

    pub async fn identity(&self) -> Result<Identity> {
        let path = format!("{ACCOUNT}/token");
        let account =
            std::fs::read_to_string(&path).map_err(|e| not_in_cluster(format!("{path} cannot be read: {e}")))?;
        let http = HttpClient::new(HttpSettings {
            tls: Tls {
                authorities: Some(self.authorities.clone()),
                ..Tls::default()
            },
            // The service is inside the cluster's network, so no proxy is used.
            proxy: Proxy::None,
            timeout: Some(std::time::Duration::from_secs(30)),
            ..HttpSettings::default()
        })
        .map_err(not_in_cluster)?;
        let (own, public) = key::fresh().map_err(not_in_cluster)?;
        let body = json!({"podKey": pem::encode(&pem::Pem::new("PUBLIC KEY", public))});
        let mut headers = HeaderMap::new();
        headers.extend(bearer(account.trim()).map(|value| (AUTHORIZATION, value)));
        let kind = header_value("application/json").map_err(|failure| not_in_cluster(failure.message))?;
        headers.insert("content-type", kind);
        let answer = http
            .send(Method::POST, &self.url, headers, Some(body.to_string().into_bytes()))
            .await;
        let answer = answer.map_err(|failure| not_in_cluster(failure.message))?;
        token_of(&answer.body)
            .filter(|_| answer.status.is_success())
            .map(|token| Identity::of_token(&token, own))
            .ok_or_else(|| not_in_cluster(answer.describe("Asking for a token", "", "", "")))
    }
}

/// Reads the token in the answer, which is a JSON string with Base64 of a JSON object.
fn token_of(body: &[u8]) -> Option<String> {
    let text: String = serde_json::from_slice(body).ok()?;
    let json: Json = serde_json::from_slice(&STANDARD.decode(text).ok()?).ok()?;
    let token = json["token"].as_str().or_else(|| json["Token"].as_str())?;
    Some(token.strip_prefix("ST$").unwrap_or(token).to_owned())
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn the_token_of_a_cluster_is_unpacked() {
        let text = STANDARD.encode(r#"{"token":"ST$abc"}"#);
        assert_eq!(token_of(format!("{text:?}").as_bytes()).as_deref(), Some("abc"));
        assert_eq!(token_of(b"{}"), None);
    }
}
