//! Signed requests, and the errors in their answers.

#![expect(clippy::disallowed_methods, reason = "requests are signed with the time in them")]

use monoform_sdk::{Diagnostic, Diagnostics, Result};
use serde_json::Value as Json;
use store_client::about::About;
use store_client::name::{encoded, query as query_text};
use store_client::sum::{base64, sha256_base64};
use store_client::{Answer, Bytes, Failure, HeaderMap, HeaderName, HttpClient, Method, Url, header_value};
use tokio::sync::Mutex;

use crate::auth::{Identity, Source};

/// Object storage of a region, with the identity for it.
pub(crate) struct Cloud {
    pub url: Url,
    pub namespace: String,
    pub bucket: String,
    pub region: String,
    pub http: HttpClient,
    pub source: Source,
    pub current: Mutex<Option<Identity>>,
    /// True if requests are made for another user, whose token comes from the environment.
    pub for_another: bool,
}

/// Returns the headers of a signed request. The body of a POST is a part of the signature, that of a PUT is not, as the service
/// defines it for objects.
pub(crate) fn signed(
    identity: &Identity,
    (method, url): (&Method, &Url),
    headers: &[(&'static str, String)],
    body: Option<&[u8]>,
    with_host: bool,
) -> std::result::Result<HeaderMap, Failure> {
    let date = jiff::Timestamp::now().strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
    let target = match url.query() {
        Some(query) => format!("{} {}?{query}", method.as_str().to_lowercase(), url.path()),
        None => format!("{} {}", method.as_str().to_lowercase(), url.path()),
    };
    let mut all: Vec<(&'static str, String)> = headers.to_vec();
    let mut parts = vec![("date", date.clone()), ("(request-target)", target)];
    if with_host {
        let host = url.host_str().unwrap_or_default();
        let host = url.port().map_or(host.to_owned(), |port| format!("{host}:{port}"));
        parts.push(("host", host));
    }
    all.push(("date", date));
    if let (Some(body), &Method::POST) = (body, method) {
        let of_body = [
            ("content-length", body.len().to_string()),
            ("content-type", "application/json".to_owned()),
            ("x-content-sha256", sha256_base64(body)),
        ];
        all.extend(of_body[1..].iter().cloned());
        parts.extend(of_body);
    }
    let token = headers.iter().find(|(name, _)| *name == ANOTHER);
    parts.extend(token.cloned());
    let lines: Vec<String> = parts.iter().map(|(name, value)| format!("{name}: {value}")).collect();
    let signature = identity
        .key
        .sign_sha256(lines.join("\n").as_bytes())
        .map_err(|e| Failure {
            message: e.to_string(),
            passing: false,
        })?;
    let names: Vec<&str> = parts.iter().map(|(name, _)| *name).collect();
    let authorization = format!(
        "Signature version=\"1\",headers=\"{}\",keyId=\"{}\",algorithm=\"rsa-sha256\",signature=\"{}\"",
        names.join(" "),
        identity.key_id,
        base64(&signature)
    );
    all.push(("authorization", authorization));
    let mut map = HeaderMap::new();
    for (name, value) in all {
        map.insert(HeaderName::from_static(name), header_value(&value)?);
    }
    Ok(map)
}

/// Header with the token of another user (on behalf of).
const ANOTHER: &str = "opc-obo-token";

impl Cloud {
    /// Returns an identity that is valid for some minutes yet.
    pub async fn identity(&self) -> Result<Identity> {
        // Held during the search, so that concurrent requests wait for its result.
        let mut current = self.current.lock().await;
        if let Some(current) = current.as_ref().filter(|current| current.holds()) {
            return Ok(current.clone());
        }
        let found = self.source.find().await?;
        *current = Some(found.clone());
        Ok(found)
    }

    /// Sends a signed request to the bucket: the kind and name below it (`o/NAME`, not encoded), and the query.
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
            // Read for each request, since the file is replaced when its token is about to expire.
            let token = crate::settings::token_of_another()?;
            headers.extend(token.map(|token| (ANOTHER, token)));
        }
        let body = body.map(Bytes::from);
        // Each attempt is signed anew: the service refuses dates that differ by more than five minutes.
        let mut make = || {
            let all = signed(&identity, (&method, &url), &headers, body.as_deref(), true)?;
            Ok((method.clone(), url.clone(), all, body.clone()))
        };
        let sent = self.http.send_signed(&mut make).await;
        sent.map_err(|failure| failure.diagnostic(about.summary, about.what).into())
    }

    /// Makes a diagnostic of an error, with advice for its code.
    pub fn problem(&self, about: About<'_>, answer: &Answer) -> Diagnostics {
        let (code, message) = said(answer);
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
        Diagnostic::error(about.summary, answer.told(about.what, &code, &message, &advice)).into()
    }
}

/// Returns code and message of an error.
pub(crate) fn said(answer: &Answer) -> (String, String) {
    let json: Json = serde_json::from_slice(&answer.body).unwrap_or_default();
    let part = |name: &str| json[name].as_str().unwrap_or_default().to_owned();
    (part("code"), part("message"))
}
