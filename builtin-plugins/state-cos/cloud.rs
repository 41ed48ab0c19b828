//! Requests to the bucket and to other services of Tencent Cloud, and the errors that they return.

use monoform_sdk::{Diagnostic, Diagnostics, Result};
use serde_json::Value as Json;
use store_client::about::About;
use store_client::credential::{Credential, CredentialCache};
use store_client::name::{encoded_path, query as query_text};
use store_client::oauth::now;
use store_client::{Answer, Bytes, HeaderMap, HttpClient, Method, Url, header_value as header, xml};

use crate::credentials::Source;
use crate::services::{Refused, Services};
use crate::sign;

/// Validity of a signature for the bucket, in seconds.
const SIGNATURE: i64 = 3600;

/// Addresses, HTTP clients and credentials of the services.
pub(crate) struct Cloud {
    /// URL of the bucket.
    pub bucket: Url,
    pub http: HttpClient,
    pub services: Services,
    pub source: Source,
    pub current: CredentialCache,
}

impl Cloud {
    /// Returns the cached credentials, or new ones if those expire within five minutes.
    pub async fn credential(&self) -> Result<Credential> {
        self.current.get(self.source.find(&self.services)).await
    }

    /// Sends a signed request to the bucket. `path` begins with a slash and is not percent-encoded.
    pub async fn send(
        &self,
        about: About<'_>,
        method: Method,
        (path, query): (&str, &[(&str, &str)]),
        headers: &[(&'static str, String)],
        body: Option<Vec<u8>>,
    ) -> Result<Answer> {
        let credential = self.credential().await?;
        let mut url = self.bucket.clone();
        let base = url.path().trim_end_matches('/').to_owned();
        url.set_path(&format!("{base}{}", encoded_path(path)));
        if !query.is_empty() {
            url.set_query(Some(&query_text(query.iter().copied())));
        }
        let host = match (url.host_str(), url.port()) {
            (Some(host), Some(port)) => format!("{host}:{port}"),
            (host, _) => host.unwrap_or_default().to_owned(),
        };
        let body = body.map(Bytes::from);
        // The signature contains the time, so each attempt is signed again.
        let mut make = || {
            let mut signed: Vec<(&str, &str)> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
            signed.push(("host", &host));
            let (from, to) = (now(), now() + SIGNATURE);
            let value = sign::of_bucket(
                &credential,
                method.as_str(),
                path,
                query,
                &signed,
                &format!("{from};{to}"),
            );
            let mut all = HeaderMap::new();
            for (name, value) in headers {
                all.insert(*name, header(value)?);
            }
            all.insert("authorization", header(&value)?);
            if let Some(token) = &credential.token {
                all.insert("x-cos-security-token", header(token)?);
            }
            Ok((method.clone(), url.clone(), all, body.clone()))
        };
        let sent = self.http.send_signed(&mut make).await;
        sent.map_err(|failure| failure.diagnostic(about.summary, about.what).into())
    }

    /// Calls another service: `what` is its name, the version of its API, and the action.
    pub async fn call(&self, what: (&str, &str, &str), body: &Json) -> Result<std::result::Result<Json, Refused>> {
        let credential = self.credential().await?;
        Ok(self.services.call(&credential, what, body).await)
    }

    /// Builds the diagnostic for an error of the bucket, with advice for its code.
    pub fn problem(&self, about: About<'_>, bucket: &str, answer: &Answer) -> Diagnostics {
        let text = answer.text();
        let part = |name: &str| xml::tag(&text, name).unwrap_or_default();
        let (code, message) = (part("Code"), part("Message"));
        let advice = match (code.as_str(), answer.status.as_u16()) {
            ("NoSuchBucket", _) => format!(
                "Create the bucket: coscli mb cos://{bucket} -e cos.{}.myqcloud.com\nOr, if it is there, correct \"bucket\" (its name \
                 ends with the number of the account) or \"region\".",
                self.services.region
            ),
            ("InvalidAccessKeyId" | "SignatureDoesNotMatch" | "InvalidSecurity", _) => {
                "The credentials are wrong: check secret_id and secret_key, or TENCENTCLOUD_SECRET_ID and \
                 TENCENTCLOUD_SECRET_KEY."
                    .to_owned()
            }
            ("RequestTimeTooSkewed" | "AccessDenied", 403) if message.to_lowercase().contains("time") => {
                "The clock of this machine is wrong.".to_owned()
            }
            ("RequestTimeTooSkewed", _) => "The clock of this machine is wrong.".to_owned(),
            (_, 403) => "The account needs a policy that permits this, on the bucket and on tags (tag:*).".to_owned(),
            _ => String::new(),
        };
        let detail = answer.describe(about.what, &code, &message, &advice);
        Diagnostic::error(about.summary, detail).into()
    }
}
