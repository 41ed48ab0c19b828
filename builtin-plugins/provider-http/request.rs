//! Requests: method, headers and body, and the attempts until there is a response.
//!
//! The rules are those of Go's client, on which users of the official provider rely. A chain of redirects has at most ten requests.
//! Credentials are sent to their host and its subdomains only. Proxies come from the environment, and are never used for the machine
//! itself. Without a time limit, a server has unlimited time.

use std::collections::BTreeMap;

use http::header::{
    ACCEPT_ENCODING, CONTENT_LENGTH, HOST, HeaderMap, HeaderName, HeaderValue, RANGE, TRAILER, TRANSFER_ENCODING,
    USER_AGENT,
};
use http::retry::may_change;
use http::{Bytes, Method, Proxy, Redirects, Response, Secrets, Settings, Silence, Transport, Url, shown as logged};
use monoform_sdk::{Attr, Diagnostic};
use proxies::Proxies;
use rustls::ClientConfig;
use tokio::time::{Instant, sleep};

use crate::answer::{Answer, LARGEST};
use crate::failure::{Failure, Kind, failure};
use crate::tries::{Limits, asked_pause, exceeded, pause, within};

/// Redirects that are followed. With the first request, at most ten requests are sent.
const REDIRECTS: Redirects = Redirects {
    limit: 9,
    secrets: Secrets::HostAndBelow,
    referer: true,
};
/// Default of the header `User-Agent`.
const AGENT: &str = "Go-http-client/1.1";

/// A request that can be sent.
pub(crate) struct Request {
    method: Method,
    url: Url,
    headers: HeaderMap,
    body: Option<Bytes>,
    /// True if the provider itself has requested a compressed body, so that the user expects it decompressed.
    gzip: bool,
    transport: Transport,
}

impl Request {
    pub fn new(
        method: &str,
        url: &str,
        headers: Option<&BTreeMap<String, Attr<String>>>,
        body: Option<&str>,
        tls: ClientConfig,
    ) -> Result<Request, Diagnostic> {
        let failed =
            |detail: String| Diagnostic::error("Error creating request", format!("Error creating request: {detail}"));
        let method = Method::from_bytes(method.as_bytes()).map_err(|e| failed(e.to_string()))?;
        let url = Url::parse(url).map_err(|e| {
            let hint = "an address begins with http:// or https:// and the name of a host";
            failed(format!("url cannot be read: {e}; {hint}.")).at_attribute("url")
        })?;

        let mut out = HeaderMap::new();
        out.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        let mut host = None;
        for (name, value) in headers.into_iter().flatten() {
            let bad = |what: String| failed(what).at_attribute("request_headers");
            let value =
                HeaderValue::from_str(value.text()).or_else(|_| HeaderValue::from_bytes(value.text().as_bytes()));
            let value = value.map_err(|_| {
                bad(format!(
                    "the value of the header {name:?} holds a line break or another control character."
                ))
            })?;
            let name: HeaderName = name
                .parse()
                .map_err(|_| bad(format!("{name:?} cannot be the name of a header.")))?;
            match name {
                HOST => host = Some(value),
                USER_AGENT if value.is_empty() => {
                    out.remove(name);
                }
                // These headers of the user are ignored, because they follow from the body.
                CONTENT_LENGTH | TRANSFER_ENCODING | TRAILER => {}
                _ => {
                    out.insert(name, value);
                }
            }
        }
        // Not if the user requests compressed bytes or a range of bytes: those must not be decompressed here.
        let gzip = method != Method::HEAD && !out.contains_key(ACCEPT_ENCODING) && !out.contains_key(RANGE);
        if gzip {
            out.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        }
        let host =
            host.filter(|h| !h.is_empty() && Some(h.as_bytes()) != authority(&url).as_deref().map(str::as_bytes));
        let settings = Settings {
            tls: Some(tls),
            proxy: Proxy::Rules(Box::new(Proxies::from_variables(variable))),
            silence: Silence::Unlimited,
            title_case_headers: true,
            // HTTP/2 takes the host from the URL, so another host in a header can be sent by HTTP/1.1 only.
            http1_only: host.is_some(),
            ..Settings::default()
        };
        out.extend(host.map(|host| (HOST, host)));
        let body = match body {
            Some(body) if !body.is_empty() => Some(Bytes::from(body.to_owned())),
            // An empty body instead of none, because some servers require Content-Length for a POST.
            _ => (method == Method::POST).then(Bytes::new),
        };
        Ok(Request {
            method,
            url,
            headers: out,
            body,
            gzip,
            transport: Transport::new(settings),
        })
    }

    /// Sends the request, and repeats it after a failure that is not permanent, or a status that may change, until all attempts are used.
    pub async fn send(&self, limits: &Limits) -> Result<Answer, Diagnostic> {
        let mut tries: i64 = 0;
        loop {
            // As in the official provider, the time limit applies to each attempt.
            let deadline = limits.timeout.map(|t| Instant::now() + t);
            let (failure, asked_pause) = match within(deadline, self.once()).await {
                Ok(response) if may_change(response.status()) => {
                    let reason = format!("the server answered with status {}", response.status());
                    let failure = Failure {
                        reason,
                        kind: Kind::Transient,
                    };
                    (failure, asked_pause(&response))
                }
                Ok(response) => return self.receive(response, deadline, limits).await,
                Err(failure) => (failure, None),
            };
            if failure.kind == Kind::Permanent || tries >= limits.retries {
                return Err(self.given_up(&failure, tries + 1, limits));
            }
            let pause = asked_pause.unwrap_or_else(|| pause(tries, limits));
            tracing::debug!(url = %logged(&self.url), reason = failure.reason, ?pause, "trying again");
            sleep(pause).await;
            tries += 1;
        }
    }

    async fn receive(
        &self,
        mut response: Response,
        deadline: Option<Instant>,
        limits: &Limits,
    ) -> Result<Answer, Diagnostic> {
        let (status, headers) = (response.status().as_u16(), response.header_map().clone());
        let body = within(deadline, async {
            response.bytes(LARGEST as u64).await.map_err(|e| failure(&e))
        });
        let answer = match body.await {
            Ok(body) => Answer::new(status, headers, body, self.gzip).map_err(|e| e.to_string()),
            Err(failure) => Err(match limits.timeout {
                Some(limit) if failure.kind == Kind::Timeout => exceeded(limit, &failure.reason),
                _ => failure.reason,
            }),
        };
        answer.map_err(|reason| {
            Diagnostic::error(
                "Error reading response body",
                format!(
                    "Error reading response body: {reason}. The request was {} {}.",
                    self.method,
                    shown(&self.url)
                ),
            )
        })
    }

    fn given_up(&self, failure: &Failure, tries: i64, limits: &Limits) -> Diagnostic {
        let request = format!("{} {}", self.method, shown(&self.url));
        let reason = match failure.kind {
            Kind::Permanent => format!("{request}: {}", failure.reason),
            _ => format!("{request} giving up after {tries} attempt(s): {}", failure.reason),
        };
        let detail = match (failure.kind, limits.timeout) {
            (Kind::Timeout, Some(limit)) => exceeded(limit, &reason),
            (Kind::Timeout, None) => format!("timeout error: {reason}"),
            _ => format!("Error making request: {reason}"),
        };
        Diagnostic::error("Error making request", format!("{detail}."))
    }

    /// Sends the request once, and follows redirects.
    async fn once(&self) -> Result<Response, Failure> {
        if !matches!(self.url.scheme(), "http" | "https") {
            return Err(Failure::scheme(self.url.scheme()));
        }
        let request = http::Request {
            method: self.method.clone(),
            url: &self.url,
            headers: self.headers.clone(),
            body: self.body.clone(),
            redirects: REDIRECTS,
            login: None,
            waiting: &|_| {},
        };
        self.transport.send(request).await.map_err(|e| failure(&e))
    }
}

#[expect(clippy::disallowed_methods, reason = "the environment names proxies")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Returns the host and the port of a URL, in the form of the header `Host`.
fn authority(url: &Url) -> Option<String> {
    let host = url.host_str()?;
    Some(
        url.port()
            .map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")),
    )
}

/// Returns a URL with its password hidden.
fn shown(url: &Url) -> String {
    let mut url = url.clone();
    if url.password().is_some() {
        let _ = url.set_password(Some("xxxxx"));
    }
    url.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_shown_as_crosses() {
        let secret: Url = "http://me:secret@host/x".parse().unwrap();
        assert_eq!(shown(&secret), "http://me:xxxxx@host/x");
    }
}
