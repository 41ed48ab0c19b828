//! Requests: their method, headers and body, and redirects.
//!
//! The rules are those that users of the official provider rely on, which are the rules of Go's client: ten requests at most on
//! a way of redirects; 301, 302 and 303 make a `POST` into a `GET`, 307 and 308 do not; what identifies the person stays with
//! the host it was meant for and the hosts below it; proxies come from the environment, and never stand between a machine and
//! itself.

use std::collections::BTreeMap;
use std::sync::OnceLock;
use std::time::Duration;

use http::retry::may_change;
use http::{redirect, remove_secrets, shown as logged};
use monoform_sdk::{Attr, Diagnostic};
use proxies::Proxies;
use reqwest::header::{
    ACCEPT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, RANGE, REFERER, TRAILER,
    TRANSFER_ENCODING, USER_AGENT,
};
use reqwest::{Client, Method, Response};
use rustls::ClientConfig;
use tokio::time::{Instant, sleep};
use url::{Host, Url};

use crate::answer::{Answer, BodyError, LARGEST};
use crate::failure::{Failure, Kind, chain, failure};
use crate::tries::{Limits, asked_pause, exceeded, pause, within};

/// Limit of requests in a chain of redirects, as in Go's client.
const MOST_REQUESTS: usize = 10;
/// Time limit of a connection attempt.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// Default `User-Agent`: that of the official provider, which servers may check.
const AGENT: &str = "Go-http-client/1.1";

/// A request that can be sent.
pub(crate) struct Request {
    method: Method,
    url: Url,
    headers: HeaderMap,
    /// The host to ask for, where it is another than the one to connect to.
    host: Option<HeaderValue>,
    body: Option<String>,
    /// True if we asked for a compressed body without being told to.
    gzip: bool,
    tls: ClientConfig,
    client: OnceLock<Client>,
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
                // They follow from the body.
                CONTENT_LENGTH | TRANSFER_ENCODING | TRAILER => {}
                _ => {
                    out.insert(name, value);
                }
            }
        }
        let gzip = method != Method::HEAD && !out.contains_key(ACCEPT_ENCODING) && !out.contains_key(RANGE);
        if gzip {
            out.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
        }
        Ok(Request {
            host: host.filter(|h| !h.is_empty() && Some(h.as_bytes()) != authority(&url).as_deref().map(str::as_bytes)),
            method,
            url,
            headers: out,
            body: body.map(str::to_owned),
            gzip,
            tls,
            client: OnceLock::new(),
        })
    }

    /// Sends it until there is a result, or no try is left.
    pub async fn send(&self, limits: &Limits) -> Result<Answer, Diagnostic> {
        let mut tries: i64 = 0;
        loop {
            let deadline = limits.timeout.map(|t| Instant::now() + t);
            let (failure, asked_pause) = match within(deadline, self.once()).await {
                Ok(response) if may_change(response.status()) => {
                    let reason = format!("the server answered with status {}", response.status());
                    let failure = Failure {
                        reason,
                        kind: Kind::Passing,
                    };
                    (failure, asked_pause(&response))
                }
                Ok(response) => return self.receive(response, deadline, limits).await,
                Err(failure) => (failure, None),
            };
            if failure.kind == Kind::Lasting || tries >= limits.retries {
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
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let body = within(deadline, async {
            let mut body = Vec::new();
            while let Some(chunk) = response.chunk().await.map_err(|e| failure(&e))? {
                if body.len() + chunk.len() > LARGEST {
                    return Err(Failure::lasting(BodyError::TooLarge.to_string()));
                }
                body.extend_from_slice(&chunk);
            }
            Ok(body)
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
            Kind::Lasting => format!("{request}: {}", failure.reason),
            _ => format!("{request} giving up after {tries} attempt(s): {}", failure.reason),
        };
        let detail = match (failure.kind, limits.timeout) {
            (Kind::Timeout, Some(limit)) => exceeded(limit, &reason),
            (Kind::Timeout, None) => format!("timeout error: {reason}"),
            _ => format!("Error making request: {reason}"),
        };
        Diagnostic::error("Error making request", format!("{detail}."))
    }

    /// One try, with its redirects.
    async fn once(&self) -> Result<Response, Failure> {
        let (mut method, mut url, mut headers) = (self.method.clone(), self.url.clone(), self.headers.clone());
        let (mut body, mut host) = (self.body.clone(), self.host.clone());
        let mut sent = 0;
        loop {
            sent += 1;
            let mut request = self
                .client(&url)?
                .request(method.clone(), url.clone())
                .headers(headers.clone());
            if let Some(host) = &host {
                request = request.header(HOST, host);
            }
            match &body {
                Some(body) if !body.is_empty() => request = request.body(body.clone()),
                // Some servers want to read that there is nothing.
                _ if method == Method::POST => request = request.header(CONTENT_LENGTH, 0),
                _ => {}
            }
            tracing::debug!(%method, url = %logged(&url), "request");
            let response = request.send().await.map_err(|e| failure(&e))?;
            let Some(location) = redirect(response.status(), response.headers()).cloned() else {
                return Ok(response);
            };
            if sent == MOST_REQUESTS {
                return Err(Failure::lasting(format!("stopped after {MOST_REQUESTS} redirects")));
            }
            let next = std::str::from_utf8(location.as_bytes())
                .ok()
                .and_then(|text| Some((text, url.join(text).ok()?)));
            let Some((text, next)) = next else {
                return Err(Failure::lasting(format!(
                    "{} redirects to an address that cannot be read",
                    shown(&url)
                )));
            };
            if Url::parse(text).is_ok() {
                host = None;
            }
            if response.status().as_u16() < 307 && !matches!(method, Method::GET | Method::HEAD) {
                method = Method::GET;
                body = None;
                headers.remove(CONTENT_TYPE);
            }
            // A header like X-Vault-Token identifies the person as much as Authorization does.
            if !is_at_or_below(&next, &self.url) {
                remove_secrets(&mut headers);
            }
            if !self.headers.contains_key(REFERER) {
                headers.remove(REFERER);
                if let Some(from) = referer(&url, &next) {
                    headers.insert(REFERER, from);
                }
            }
            url = next;
        }
    }

    /// The client for an address.
    fn client(&self, url: &Url) -> Result<&Client, Failure> {
        if !matches!(url.scheme(), "http" | "https") {
            return Err(Failure::lasting(format!(
                "unsupported protocol scheme \"{}\": it is http or https",
                url.scheme()
            )));
        }
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let client = self.build().map_err(|e| Failure::lasting(chain(&e)))?;
        Ok(self.client.get_or_init(|| client))
    }

    fn build(&self) -> reqwest::Result<Client> {
        let mut tls = self.tls.clone();
        let proxies = Proxies::from_variables(variable);
        let mut builder = Client::builder()
            .proxy(reqwest::Proxy::custom(move |url| proxies.way(url).proxy().cloned()))
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .connect_timeout(CONNECT_TIMEOUT)
            .http1_title_case_headers();
        if self.host.is_some() {
            // In HTTP/2 the host to ask for is part of the address, which here is the one to connect to.
            tls.alpn_protocols = vec![b"http/1.1".to_vec()];
            builder = builder.http1_only();
        } else {
            tls.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        }
        builder.tls_backend_preconfigured(tls).build()
    }
}

#[expect(clippy::disallowed_methods, reason = "the environment names proxies")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// The host and the port of an address, as the header `Host` has them.
fn authority(url: &Url) -> Option<String> {
    let host = url.host_str()?;
    Some(
        url.port()
            .map_or_else(|| host.to_owned(), |port| format!("{host}:{port}")),
    )
}

/// Returns true if an address is on the host of another, or on one whose name is below that.
fn is_at_or_below(url: &Url, home: &Url) -> bool {
    let (Some(host), Some(home)) = (url.host_str(), home.host()) else {
        return false;
    };
    let name = home.to_string();
    host == name
        || (matches!(home, Host::Domain(_)) && host.strip_suffix(&name).is_some_and(|below| below.ends_with('.')))
}

/// Value of `Referer` after a redirect; none from HTTPS to HTTP.
fn referer(from: &Url, to: &Url) -> Option<HeaderValue> {
    if from.scheme() == "https" && to.scheme() == "http" {
        return None;
    }
    let mut from = from.clone();
    // Of an address that cannot have these parts, there is nothing to remove.
    let _ = from.set_username("");
    let _ = from.set_password(None);
    from.set_fragment(None);
    HeaderValue::from_str(from.as_str()).ok()
}

/// An address as people may see it.
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
    fn who_may_see_what_was_meant_for_a_host() {
        let home: Url = "https://example.com:8443/".parse().unwrap();
        for (url, expected) in [
            ("https://example.com/x", true),
            ("http://a.example.com/", true),
            ("https://badexample.com/", false),
            ("https://com/", false),
        ] {
            assert_eq!(is_at_or_below(&url.parse().unwrap(), &home), expected, "{url}");
        }
        let number: Url = "http://127.0.0.1/".parse().unwrap();
        assert!(!is_at_or_below(
            &"http://1.127.0.0.1.example/".parse().unwrap(),
            &number
        ));
        let secret: Url = "http://me:secret@host/x".parse().unwrap();
        assert_eq!(shown(&secret), "http://me:xxxxx@host/x");
        let signed: Url = "http://me:secret@host/x?token=secret#secret".parse().unwrap();
        assert_eq!(logged(&signed), "http://host/x");
        assert_eq!(referer(&secret, &number).unwrap(), "http://host/x");
        assert_eq!(referer(&home, &number), None);
    }
}
