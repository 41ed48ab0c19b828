//! API calls of services other than the bucket.

use serde_json::Value as Json;
use store_client::credential::Credential;
use store_client::oauth::now;
use store_client::{HeaderMap, HeaderName, HttpClient, Method, Url, header_value as header};

use crate::sign::{self, Call};

/// Client for services other than the bucket.
pub(crate) struct Services {
    /// URL of a service, in which `SERVICE` stands for its name.
    pub address: String,
    pub region: String,
    /// HTTP client that never repeats a request, because calls must not be repeated.
    pub once: HttpClient,
}

/// Error of a call.
pub(crate) struct Refused {
    /// Error code of the service.
    pub code: String,
    pub message: String,
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The sentence in which this text is used has its own full stop.
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

impl Services {
    /// Calls a service. `what` is the name of the service, the version of its API, and the action.
    pub async fn call(
        &self,
        credential: &Credential,
        (service, version, action): (&str, &str, &str),
        body: &Json,
    ) -> Result<Json, Refused> {
        const TYPE: &str = "application/json";
        let failed = |message: String| Refused {
            code: String::new(),
            message,
        };
        let address = self.address.replace("SERVICE", service);
        let url = Url::parse(&address).map_err(|e| failed(format!("{address:?} is not an address: {e}")))?;
        let host = url.host_str().unwrap_or_default().to_owned();
        let time = now();
        // The credential scope contains the UTC day of this timestamp, and the service compares them.
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
}
