//! HTTP transport: the underlying client, and redirects.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use proxies::{Proxies, Way};
use reqwest::header::{
    AUTHORIZATION, CONTENT_LENGTH, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, LOCATION, REFERER,
};
use reqwest::{Method, StatusCode};
use rustls::ClientConfig;
use url::{Host, Url};

use crate::error::{Error, Phase, connection, shown};
use crate::reason::chain;
use crate::response::Response;
use crate::rules::{CONNECT_TIMEOUT, PATIENCE, Silence, first_byte_after, stays_behind};

#[derive(Clone, Debug)]
pub struct Settings {
    /// Defaults to the trust anchors of this machine, without a client certificate.
    pub tls: Option<ClientConfig>,
    pub proxy: Proxy,
    pub connect_timeout: Duration,
    /// The user agent; empty if requests set their own, or none.
    pub user_agent: String,
    /// A local socket for all requests, whatever their URLs.
    pub unix_socket: Option<PathBuf>,
    pub silence: Silence,
    /// True if header names are sent in the form `Content-Type` with HTTP/1. Some servers accept no other form.
    pub title_case_headers: bool,
    /// True if only HTTP/1 is offered. In HTTP/2 the host comes from the URL (`:authority`), so a request with its own header `Host` needs
    /// HTTP/1.
    pub http1_only: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            tls: None,
            proxy: Proxy::None,
            connect_timeout: CONNECT_TIMEOUT,
            user_agent: String::new(),
            unix_socket: None,
            silence: Silence::Limited,
            title_case_headers: false,
            http1_only: false,
        }
    }
}

/// The rules for redirects.
#[derive(Clone, Copy, Debug)]
pub struct Redirects {
    /// The maximum number of redirects. With 0, a redirect is the response.
    pub limit: usize,
    pub secrets: Secrets,
    /// True if the redirecting URL is sent as `Referer`, unless the request has that header.
    pub referer: bool,
}

/// The servers that receive headers with secrets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Secrets {
    /// The first origin: scheme, host and port.
    Origin,
    /// The first host and its subdomains, as in Go's client.
    HostAndBelow,
}

impl Redirects {
    /// Returns rules that follow up to `limit` redirects, with secrets for the first origin.
    #[must_use]
    pub const fn within(limit: usize) -> Redirects {
        Redirects {
            limit,
            secrets: Secrets::Origin,
            referer: false,
        }
    }
}

/// Selection of a proxy for a request.
#[derive(Clone, Debug)]
pub enum Proxy {
    None,
    /// One proxy, without exceptions.
    Always(String),
    /// The proxies of variables, with their exceptions; servers on this machine are reached directly.
    Rules(Box<Proxies>),
}

/// A name and password for basic authentication.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Login {
    pub name: String,
    pub password: String,
}

/// One request and its rules for redirects.
pub struct Request<'r> {
    pub method: Method,
    pub url: &'r Url,
    pub headers: HeaderMap,
    pub body: Option<Bytes>,
    pub redirects: Redirects,
    /// Lookup of the login for a host. Used while redirects stay with the first origin.
    pub login: Option<&'r Logins<'r>>,
    /// The callback for a host that has not answered for a while.
    pub waiting: &'r (dyn Fn(&str) + Send + Sync),
}

/// A lookup of logins by host.
pub type Logins<'r> = dyn Fn(&str) -> Option<Login> + Send + Sync + 'r;

/// HTTP transport with fixed settings. The underlying client is built for the first request.
pub struct Transport {
    settings: Settings,
    // Built for the first request, because the library would fail without trust anchors.
    client: OnceLock<Result<reqwest::Client, Error>>,
}

impl std::fmt::Debug for Transport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Transport").finish_non_exhaustive()
    }
}

impl Transport {
    #[must_use]
    pub fn new(settings: Settings) -> Transport {
        Transport {
            settings,
            client: OnceLock::new(),
        }
    }

    fn client(&self) -> Result<&reqwest::Client, Error> {
        self.client.get_or_init(|| self.build()).as_ref().map_err(Clone::clone)
    }

    fn build(&self) -> Result<reqwest::Client, Error> {
        let failed = |e: &dyn std::error::Error| Error::NoClient(files::plain(&chain(e)));
        let tls = match &self.settings.tls {
            Some(tls) => tls.clone(),
            None => trust::configuration(Arc::new(trust::Verifier::system()))
                .map_err(|e| failed(&e))?
                .with_no_client_auth(),
        };
        let mut builder = reqwest::Client::builder()
            .tls_backend_preconfigured(with_protocols(tls, self.settings.http1_only))
            // Redirects are followed in `send`: each request has its own limit and removes its secrets.
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .connect_timeout(self.settings.connect_timeout);
        if !self.settings.user_agent.is_empty() {
            builder = builder.user_agent(&self.settings.user_agent);
        }
        if self.settings.title_case_headers {
            builder = builder.http1_title_case_headers();
        }
        if self.settings.http1_only {
            builder = builder.http1_only();
        }
        if let Some(socket) = &self.settings.unix_socket {
            builder = on_socket(builder, socket).map_err(|e| failed(&e))?;
        }
        builder = match &self.settings.proxy {
            Proxy::None => builder.no_proxy(),
            Proxy::Always(url) => builder.proxy(reqwest::Proxy::all(url).map_err(|e| failed(&e))?),
            Proxy::Rules(proxies) => {
                let proxies = proxies.clone();
                builder.proxy(reqwest::Proxy::custom(move |url| proxies.way(url).proxy().cloned()))
            }
        };
        builder.build().map_err(|e| failed(&e))
    }

    /// Returns the route to the server of a URL: through a proxy of the rules, or directly. A proxy for all requests ([`Proxy::Always`]) is
    /// not considered.
    #[must_use]
    pub fn way(&self, url: &Url) -> Way<'_> {
        match &self.settings.proxy {
            Proxy::Rules(proxies) => proxies.way(url),
            Proxy::None | Proxy::Always(_) => Way::Direct,
        }
    }

    /// Returns host and port of the proxy for a URL, for errors; `None` if there is no proxy for it.
    fn proxy_for(&self, url: &Url) -> Option<String> {
        let always = match &self.settings.proxy {
            Proxy::Always(text) => Url::parse(text).ok(),
            _ => None,
        };
        let proxy = always.as_ref().or_else(|| self.way(url).proxy())?;
        let port = proxy
            .port_or_known_default()
            .map_or_else(String::new, |port| format!(":{port}"));
        Some(format!("{}{port}", proxy.host_str().unwrap_or_default()))
    }

    /// Sends a request once and follows its redirects.
    ///
    /// # Errors
    /// Returns an error if there was no response, or if there were too many redirects.
    pub async fn send(&self, request: Request<'_>) -> Result<Response, Error> {
        let Request {
            mut method,
            url: first,
            mut headers,
            mut body,
            redirects,
            login,
            waiting,
        } = request;
        let client = self.client()?;
        let mut url = first.clone();
        let mut at_home = true;
        let has_referer = headers.contains_key(REFERER);
        for _ in 0..=redirects.limit {
            tracing::debug!(%method, url = %shown(&url), "request");
            let mut request = client.request(method.clone(), url.clone()).headers(headers.clone());
            // Credentials in the URL or in a header take precedence over the login.
            let own = at_home && url.username().is_empty() && !headers.contains_key(AUTHORIZATION);
            if let Some(login) = login.filter(|_| own)
                && let Some(login) = url.host_str().and_then(login)
            {
                request = request.basic_auth(&login.name, Some(&login.password));
            }
            let length = body.as_ref().map_or(0, Bytes::len);
            if let Some(body) = &body {
                // Without this header, the library sends a request without a body, which some servers refuse.
                if body.is_empty() {
                    request = request.header(CONTENT_LENGTH, 0);
                }
                request = request.body(body.clone());
            }
            let response = self.head(&url, request, length, waiting).await?;
            let location = redirect(response.status(), response.header_map()).filter(|_| redirects.limit > 0);
            let Some(Target { url: next, is_whole }) = location.map(|location| target(&url, location)).transpose()?
            else {
                return Ok(response);
            };
            // A redirect back to the first origin does not restore the login.
            if next.origin() != url.origin() {
                at_home = false;
            }
            let is_trusted = match redirects.secrets {
                Secrets::Origin => next.origin() == url.origin(),
                Secrets::HostAndBelow => is_at_or_below(&next, first),
            };
            if !is_trusted {
                remove_secrets(&mut headers);
            }
            if is_whole {
                // The header was for the host of the previous URL.
                headers.remove(HOST);
            }
            if redirects.referer && !has_referer {
                match referer(&url, &next) {
                    Some(from) => headers.insert(REFERER, from),
                    None => headers.remove(REFERER),
                };
            }
            // 307 and 308 keep the method. For other redirects, browsers and Go's client change it to
            // GET.
            if response.status().as_u16() < 307 && !matches!(method, Method::GET | Method::HEAD) {
                method = Method::GET;
                body = None;
                headers.remove(CONTENT_TYPE);
                headers.remove(CONTENT_LENGTH);
            }
            url = next;
        }
        Err(Error::TooManyRedirects {
            url: shown(first),
            limit: redirects.limit,
        })
    }

    /// Sends a request with a body of this length, and reads the head of the response.
    async fn head(
        &self,
        url: &Url,
        request: reqwest::RequestBuilder,
        length: usize,
        waiting: &(dyn Fn(&str) + Send + Sync),
    ) -> Result<Response, Error> {
        let proxy = self.proxy_for(url);
        let began = Instant::now();
        let limit = first_byte_after(length);
        let notify = || waiting(url.host_str().unwrap_or_default());
        let silence = self.settings.silence;
        let Some(sent) = silence.within(limit, patient(notify, request.send())).await else {
            return Err(Error::Timeout {
                url: shown(url),
                seconds: limit.as_secs(),
                phase: Phase::Head,
            });
        };
        let connect_timeout = self.settings.connect_timeout;
        let inner = sent.map_err(|e| connection(url, &e, proxy.as_deref(), connect_timeout))?;
        tracing::debug!(
            url = %shown(url),
            status = inner.status().as_u16(),
            elapsed = ?began.elapsed(),
            "response"
        );
        Ok(Response {
            url: url.clone(),
            proxy,
            connect_timeout,
            silence,
            inner,
        })
    }
}

/// Awaits a future, and calls `notify` once if that takes longer than [`PATIENCE`].
pub async fn patient<T>(notify: impl FnOnce(), work: impl Future<Output = T>) -> T {
    let mut work = std::pin::pin!(work);
    match tokio::time::timeout(PATIENCE, &mut work).await {
        Ok(done) => done,
        Err(_) => {
            notify();
            work.await
        }
    }
}

fn with_protocols(mut tls: ClientConfig, http1_only: bool) -> ClientConfig {
    let offered: &[&[u8]] = if http1_only {
        &[b"http/1.1"]
    } else {
        &[b"h2", b"http/1.1"]
    };
    tls.alpn_protocols = offered.iter().map(|name| name.to_vec()).collect();
    tls
}

/// Returns the `Location` of a redirect; `None` if the response is not a redirect, or has no `Location`.
#[must_use]
pub fn redirect(status: StatusCode, headers: &HeaderMap) -> Option<&HeaderValue> {
    // The redirects that Go's client follows.
    let leads = matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308);
    headers.get(LOCATION).filter(|location| leads && !location.is_empty())
}

/// Removes the headers that another origin must not receive.
pub fn remove_secrets(headers: &mut HeaderMap) {
    let secret: Vec<HeaderName> = headers
        .iter()
        .filter(|(name, value)| stays_behind(name.as_str(), value.is_sensitive()))
        .map(|(name, _)| name.clone())
        .collect();
    for name in secret {
        headers.remove(name);
    }
}

/// The target of a redirect.
#[derive(Debug)]
struct Target {
    url: Url,
    /// True for an absolute URL, false for a relative reference.
    is_whole: bool,
}

fn target(url: &Url, location: &HeaderValue) -> Result<Target, Error> {
    let bad = |scheme: Option<&str>| Error::BadRedirect {
        url: shown(url),
        scheme: scheme.map(str::to_owned),
    };
    let text = std::str::from_utf8(location.as_bytes()).map_err(|_| bad(None))?;
    let next = url.join(text).map_err(|_| bad(None))?;
    if !matches!(next.scheme(), "http" | "https") {
        return Err(bad(Some(next.scheme())));
    }
    Ok(Target {
        url: next,
        is_whole: Url::parse(text).is_ok(),
    })
}

/// Returns true if a URL is on the host `home` or on a subdomain of it.
fn is_at_or_below(url: &Url, home: &Url) -> bool {
    let (Some(host), Some(home)) = (url.host_str(), home.host()) else {
        return false;
    };
    let name = home.to_string();
    host == name
        || (matches!(home, Host::Domain(_)) && host.strip_suffix(&name).is_some_and(|below| below.ends_with('.')))
}

/// Returns the `Referer` header of the request that follows a redirect; `None` if the redirect leaves HTTPS.
fn referer(from: &Url, to: &Url) -> Option<HeaderValue> {
    // As in browsers and Go's client, the URL of a secure page is not sent over plain HTTP.
    if from.scheme() == "https" && to.scheme() == "http" {
        return None;
    }
    let mut from = from.clone();
    // Fails for URLs that cannot have a user name and password, so nothing has to be removed.
    let _ = from.set_username("");
    let _ = from.set_password(None);
    from.set_fragment(None);
    HeaderValue::from_str(from.as_str()).ok()
}

/// Sends all requests to a Unix socket of this machine.
#[cfg(unix)]
fn on_socket(builder: reqwest::ClientBuilder, socket: &Path) -> io::Result<reqwest::ClientBuilder> {
    Ok(builder.unix_socket(socket))
}

/// Returns an error: the library does not support such sockets on Windows.
#[cfg(not(unix))]
fn on_socket(_builder: reqwest::ClientBuilder, socket: &Path) -> io::Result<reqwest::ClientBuilder> {
    Err(io::Error::other(format!(
        "the socket {} cannot be used: this system has no Unix sockets for HTTP",
        socket.display()
    )))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    #[test]
    fn redirects_lead_to_web_servers_only() {
        let url = Url::parse("https://example.com/a/b?x=1").unwrap();
        let to =
            |text: &str| target(&url, &HeaderValue::from_str(text).unwrap()).map(|target| String::from(target.url));
        assert_eq!(to("c").unwrap(), "https://example.com/a/c");
        assert_eq!(to("//other.example/").unwrap(), "https://other.example/");
        for bad in ["file:///etc/passwd", "http://[", "ftp://example.com/"] {
            let error = to(bad).unwrap_err();
            assert!(
                matches!(&error, Error::BadRedirect { url, .. } if url == "https://example.com/a/b"),
                "{bad}: {error}"
            );
        }
    }

    #[test]
    fn secrets_may_follow_to_a_host_and_below_it() {
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
    }

    #[test]
    fn referer_has_no_password_and_does_not_leave_https() {
        let number: Url = "http://127.0.0.1/".parse().unwrap();
        let from: Url = "http://me:secret@host/x#part".parse().unwrap();
        assert_eq!(referer(&from, &number).unwrap(), "http://host/x");
        assert_eq!(referer(&"https://host/".parse().unwrap(), &number), None);
    }

    #[test]
    fn only_redirects_with_a_location_are_redirects() {
        let headers = HeaderMap::from_iter([(LOCATION, HeaderValue::from_static("/x"))]);
        let leads =
            |status: u16, headers: &HeaderMap| redirect(StatusCode::from_u16(status).unwrap(), headers).is_some();
        for status in [301, 302, 303, 307, 308] {
            assert!(leads(status, &headers) && !leads(status, &HeaderMap::new()), "{status}");
        }
        assert!(
            ![200, 201, 300, 304, 404]
                .into_iter()
                .any(|status| leads(status, &headers))
        );
    }

    #[test]
    fn secrets_are_removed_by_mark_and_by_name() {
        let mut marked = HeaderValue::from_static("1");
        marked.set_sensitive(true);
        let mut headers = HeaderMap::from_iter([
            (HeaderName::from_static("x-consul-token"), HeaderValue::from_static("1")),
            (HeaderName::from_static("x-own"), marked),
            (HeaderName::from_static("accept"), HeaderValue::from_static("1")),
        ]);
        remove_secrets(&mut headers);
        assert_eq!(headers.keys().map(HeaderName::as_str).collect::<Vec<_>>(), ["accept"]);
    }
}
