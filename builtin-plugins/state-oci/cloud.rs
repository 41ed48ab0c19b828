//! Signed requests, and the errors that they return.

use monoform_sdk::{Diagnostic, Diagnostics, Result};
use serde_json::Value as Json;
use store_client::about::About;
use store_client::guard::{Revision, Written};
use store_client::name::{encoded, query as query_text};
use store_client::{Answer, Bytes, HttpClient, Method, Url};
use tokio::sync::Mutex;

use crate::auth::Source;
use crate::config::{SUMMARY, variable};
use crate::identity::Identity;
use crate::profile::expanded;
use crate::signature::{ANOTHER, signed};

/// Header that is the condition of a write.
pub(crate) type Condition = Option<(&'static str, String)>;

/// Client for the object storage of a region.
pub(crate) struct Cloud {
    pub url: Url,
    pub namespace: String,
    pub bucket: String,
    pub region: String,
    pub http: HttpClient,
    pub source: Source,
    pub current: Mutex<Option<Identity>>,
    /// True if requests are made on behalf of another user, whose token is in the environment.
    pub for_another: bool,
}

impl Cloud {
    /// Returns the cached identity, or finds it again if it expires within five minutes.
    pub async fn identity(&self) -> Result<Identity> {
        // The lock is held during the search, so that concurrent requests wait for its result.
        let mut current = self.current.lock().await;
        if let Some(current) = current.as_ref().filter(|current| current.holds()) {
            return Ok(current.clone());
        }
        let found = self.source.find().await?;
        *current = Some(found.clone());
        Ok(found)
    }

    /// Sends a signed request to the bucket. `kind` and `name` are the path below the bucket (`o/NAME`, not percent-encoded).
    pub async fn send(
        &self,
        about: About<'_>,
        method: Method,
        ((kind, name), query): ((&str, &str), &[(&str, &str)]),
        headers: &[(&'static str, String)],
        body: Option<Vec<u8>>,
    ) -> Result<Answer> {
        let identity = self.identity().await?;
        let mut url = self.url.clone();
        let base = url.path().trim_end_matches('/').to_owned();
        let mut path = format!(
            "{base}/n/{}/b/{}/{kind}",
            encoded(&self.namespace),
            encoded(&self.bucket)
        );
        if !name.is_empty() {
            path.push_str(&format!("/{}", encoded(name)));
        }
        url.set_path(&path);
        if !query.is_empty() {
            url.set_query(Some(&query_text(query.iter().copied())));
        }
        let mut headers = headers.to_vec();
        if self.for_another {
            let token = token_of_another()?;
            headers.extend(token.map(|token| (ANOTHER, token)));
        }
        let body = body.map(Bytes::from);
        // Each attempt is signed again, because the service refuses dates that differ by more than five minutes.
        let mut make = || {
            let all = signed(&identity, (&method, &url), &headers, body.as_deref(), true)?;
            Ok((method.clone(), url.clone(), all, body.clone()))
        };
        let sent = self.http.send_signed(&mut make).await;
        sent.map_err(|failure| failure.diagnostic(about.summary, about.what).into())
    }

    /// Interprets the answer to the write of an object.
    pub fn written(&self, about: About<'_>, answer: &Answer) -> Result<Written> {
        match answer.status.as_u16() {
            200..=299 => Ok(Written::Done(Revision::named(answer.header("etag")))),
            412 => Ok(Written::Changed),
            _ => Err(self.problem(about, answer)),
        }
    }

    /// Builds the diagnostic for an error, with advice for its code.
    pub fn problem(&self, about: About<'_>, answer: &Answer) -> Diagnostics {
        let (code, message) = code_and_message(answer);
        let Cloud {
            bucket,
            namespace,
            region,
            ..
        } = self;
        let advice = match (code.as_str(), answer.status.as_u16()) {
            ("BucketNotFound", _) => format!(
                "Create the bucket: oci os bucket create --name {bucket} --namespace {namespace} --region {region} --compartment-id \
                 COMPARTMENT\nOr, if it is there, correct \"bucket\", \"namespace\" or \"region\", or give the user a policy that permits \
                 to read it."
            ),
            ("NamespaceNotFound", _) => {
                "The namespace is that of the tenancy: \"oci os ns get\" shows it. Correct \"namespace\".".to_owned()
            }
            ("NotAuthenticated" | "SignatureNotValid", _) | (_, 401) => {
                "The identity is not accepted: check tenancy_ocid, user_ocid, fingerprint and the private key, or log in again; and the \
                 clock of this machine, which may differ by at most 5 minutes."
                    .to_owned()
            }
            (_, 403) => "The identity needs a policy that permits this on the objects of the bucket.".to_owned(),
            _ => String::new(),
        };
        Diagnostic::error(about.summary, answer.describe(about.what, &code, &message, &advice)).into()
    }
}

/// Returns the code and the message of an error.
pub(crate) fn code_and_message(answer: &Answer) -> (String, String) {
    let json: Json = serde_json::from_slice(&answer.body).unwrap_or_default();
    let part = |name: &str| json[name].as_str().unwrap_or_default().to_owned();
    (part("code"), part("message"))
}

/// Returns the token of the user on whose behalf requests are made; `None` if the environment does not name one.
fn token_of_another() -> Result<Option<String>> {
    let Some(path) = variable("obo_token_path") else {
        return Ok(variable("obo_token"));
    };
    let read = std::fs::read_to_string(expanded(&path));
    let detail = |e| format!("The token in the file {path:?} (obo_token_path) cannot be read: {e}.");
    Ok(Some(
        read.map_err(|e| Diagnostic::error(SUMMARY, detail(e)))?
            .trim()
            .to_owned(),
    ))
}
