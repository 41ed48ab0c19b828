//! Requests to the bucket and to other services of Tencent Cloud, and the errors in their answers.

use monoform_sdk::{Diagnostic, Diagnostics, Result};
use serde_json::Value as Json;
use store_client::about::About;
use store_client::credential::{Credential, CredentialCache};
use store_client::name::{encoded_path, query as query_text};
use store_client::oauth::now;
use store_client::{Answer, Bytes, HeaderMap, HeaderName, HttpClient, Method, Url, header_value as header, xml};

use crate::credentials::Source;
use crate::sign::{self, Call};

/// Validity of a signature for the bucket, in seconds.
const SIGNATURE: i64 = 3600;

/// Addresses, HTTP clients and credentials of the services.
pub(crate) struct Cloud {
    /// Address of the bucket.
    pub bucket: Url,
    /// Address of other services, with `SERVICE` in the place of their names.
    pub services: String,
    pub region: String,
    pub http: HttpClient,
    /// Client without retries, for calls that must not be sent twice.
    pub once: HttpClient,
    pub source: Source,
    pub current: CredentialCache,
}

/// Error of a call.
pub(crate) struct Refused {
    /// Error code of the service.
    pub code: String,
    pub message: String,
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let message = self.message.trim_end_matches('.');
        match self.code.as_str() {
            "" => write!(f, "{message}"),
            code => write!(f, "{code}: {message}"),
        }?;
        match self.code.split('.').nth(1).unwrap_or_default() {
            "SignatureExpire" => write!(f, ". The clock of this machine is wrong"),
            "SecretIdNotFound" | "SignatureFailure" | "TokenFailure" => write!(f, ". Check the credentials"),
            _ => Ok(()),
        }
    }
}

impl Cloud {
    /// Returns credentials that are valid for some minutes yet.
    pub async fn credential(&self) -> Result<Credential> {
        self.current.get(self.source.find(self)).await
    }

    /// Sends a signed request to the bucket. `path` begins with a slash, and is not encoded.
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
        // Each attempt is signed anew, since the signature has a time.
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

    /// Calls another service: its name, the version of its API, and the action.
    pub async fn call(&self, what: (&str, &str, &str), body: &Json) -> Result<std::result::Result<Json, Refused>> {
        let credential = self.credential().await?;
        Ok(self.call_with(&credential, what, body).await)
    }

    /// Calls another service with these credentials.
    pub async fn call_with(
        &self,
        credential: &Credential,
        (service, version, action): (&str, &str, &str),
        body: &Json,
    ) -> std::result::Result<Json, Refused> {
        const TYPE: &str = "application/json";
        let failed = |message: String| Refused {
            code: String::new(),
            message,
        };
        let address = self.services.replace("SERVICE", service);
        let url = Url::parse(&address).map_err(|e| failed(format!("{address:?} is not an address: {e}")))?;
        let host = url.host_str().unwrap_or_default().to_owned();
        let time = now();
        let day = jiff::Timestamp::from_second(time).map(|time| time.strftime("%Y-%m-%d").to_string());
        let (day, body) = (day.unwrap_or_default(), body.to_string());
        let call = Call {
            service,
            host: &host,
            content_type: TYPE,
            body: &body,
            time,
            day: &day,
        };
        let time = time.to_string();
        let authorization = sign::of_call(credential, &call);
        let mut all = HeaderMap::new();
        let mut parts = vec![
            ("content-type", TYPE),
            ("authorization", &authorization),
            ("x-tc-action", action),
            ("x-tc-version", version),
            ("x-tc-timestamp", &time),
            ("x-tc-region", &self.region),
            ("x-tc-language", "en-US"),
        ];
        parts.extend(credential.token.as_deref().map(|token| ("x-tc-token", token)));
        for (name, value) in parts {
            all.insert(
                HeaderName::from_static(name),
                header(value).map_err(|failure| failed(failure.message))?,
            );
        }
        // A second CreateTag after a lost answer would fail as a duplicate, and look like a lock of another program.
        let sent = self.once.send(Method::POST, &url, all, Some(body.into_bytes())).await;
        let answer = sent.map_err(|failure| failed(failure.message))?;
        let mut json: Json = serde_json::from_slice(&answer.body).unwrap_or_default();
        let response = json["Response"].take();
        let error = &response["Error"];
        match (answer.status.is_success(), error.is_object()) {
            (true, false) if response.is_object() => Ok(response),
            (_, true) => Err(Refused {
                code: error["Code"].as_str().unwrap_or_default().to_owned(),
                message: error["Message"].as_str().unwrap_or_default().to_owned(),
            }),
            _ => Err(failed(format!(
                "{address} has answered with the status {}",
                answer.status
            ))),
        }
    }

    /// Makes a diagnostic of an error of the bucket, with advice for its code.
    pub fn problem(&self, about: About<'_>, bucket: &str, answer: &Answer) -> Diagnostics {
        let text = answer.text();
        let part = |name: &str| xml::tag(&text, name).unwrap_or_default();
        let (code, message) = (part("Code"), part("Message"));
        let advice = match (code.as_str(), answer.status.as_u16()) {
            ("NoSuchBucket", _) => format!(
                "Create the bucket: coscli mb cos://{bucket} -e cos.{}.myqcloud.com\nOr, if it is there, correct \"bucket\" (its name \
                 ends with the number of the account) or \"region\".",
                self.region
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
        let detail = answer.told(about.what, &code, &message, &advice);
        Diagnostic::error(about.summary, detail).into()
    }
}
