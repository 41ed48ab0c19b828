//! Requests: one client for a run.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use reqwest::header::{AUTHORIZATION, HeaderMap, HeaderName, HeaderValue, LOCATION, RETRY_AFTER};
use reqwest::{Method, StatusCode};
use tokio::sync::OnceCell;
use url::Url;

use crate::credentials::{self, Token};
use crate::discovery::Services;
use crate::hosts::{Host, HostSettings};
use crate::netrc::Netrc;
use crate::tls;

/// How long making a connection may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);
/// How long a peer may be silent in the middle of an answer.
const SILENCE: Duration = Duration::from_secs(60);
/// How many redirects are followed where nothing else is said.
const REDIRECTS: usize = 10;
/// The longest pause before a request is tried again.
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

/// What a client must know.
#[derive(Clone, Debug, Default)]
pub struct NetSettings {
    /// The environment variables.
    pub variables: BTreeMap<String, String>,
    /// What the CLI configuration says about hosts.
    pub hosts: HostSettings,
    /// Where the program of a credentials helper may be.
    pub helper_dirs: Vec<PathBuf>,
    /// The version of Terraform we answer as; registries are told.
    pub terraform_version: String,
    /// Our name and version, `Monoform/1.0.0`; servers are told.
    pub product: String,
}

/// Why a request came to nothing. Each is a sentence without its full stop.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
pub enum Error {
    /// No connection, or it broke.
    #[error("the request to {url} failed: {reason}")]
    Connection {
        /// What was asked for, as it may be shown.
        url: String,
        /// Why.
        reason: String,
    },
    /// No answer in time.
    #[error("{url} did not answer within {seconds} seconds")]
    Timeout {
        /// What was asked for, as it may be shown.
        url: String,
        /// How long we waited.
        seconds: u64,
    },
    /// An answer that is not a success.
    #[error("{url} answered with status {status}")]
    Status {
        /// What was asked for, as it may be shown.
        url: String,
        /// The status: `404 Not Found`.
        status: StatusCode,
    },
    /// Redirects without an end.
    #[error("{url} redirects more than {limit} times")]
    TooManyRedirects {
        /// What was asked for, as it may be shown.
        url: String,
        /// How many would have been followed.
        limit: usize,
    },
    /// A redirect that leads nowhere.
    #[error("{url} redirects to an address that cannot be used")]
    BadRedirect {
        /// Who redirects.
        url: String,
    },
    /// More than anybody should send.
    #[error("the answer of {url} is larger than the {limit} bytes that are accepted")]
    TooLarge {
        /// What was asked for, as it may be shown.
        url: String,
        /// How much is accepted.
        limit: u64,
    },
    /// The answer is not what was asked for.
    #[error("the answer of {url} cannot be used: {reason}")]
    BadAnswer {
        /// What was asked for, as it may be shown.
        url: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The machine does not let us make connections.
    #[error("connections cannot be prepared: {0}")]
    NoClient(String),
    /// A credentials helper failed.
    #[error("the credentials helper \"{helper}\" has no answer for {host}: {what}")]
    Helper {
        /// The helper's name.
        helper: String,
        /// The host in question.
        host: String,
        /// What went wrong.
        what: String,
    },
}

impl Error {
    /// The status of the answer, if that was the problem.
    #[must_use]
    pub fn status(&self) -> Option<StatusCode> {
        match self {
            Error::Status { status, .. } => Some(*status),
            _ => None,
        }
    }

    fn worth_another_try(&self) -> bool {
        matches!(self, Error::Connection { .. } | Error::Timeout { .. })
    }
}

/// An address as people may see it: without a password, and without the query, which may hold signatures and keys.
#[must_use]
pub fn shown(url: &Url) -> String {
    let mut url = url.clone();
    // Of an address that cannot have these parts, there is nothing to remove.
    let _ = url.set_username("");
    let _ = url.set_password(None);
    url.set_query(None);
    url.set_fragment(None);
    url.into()
}

/// The path of an address without its escapes; `None` if that is no text.
#[must_use]
pub fn decoded_path(url: &Url) -> Option<String> {
    let bytes = percent_encoding::percent_decode_str(url.path());
    bytes.decode_utf8().ok().map(Into::into)
}

/// Names and values as the body of a form.
#[must_use]
pub fn form<'v>(pairs: impl IntoIterator<Item = (&'v str, &'v str)>) -> String {
    url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs(pairs)
        .finish()
}

/// Makes requests. Cheap to clone; nothing is prepared before the first request.
#[derive(Clone, Debug)]
pub struct Client(Arc<Inner>);

struct Inner {
    settings: NetSettings,
    tokens: BTreeMap<Host, Token>,
    http: OnceLock<Result<reqwest::Client, Error>>,
    netrc: OnceLock<Netrc>,
    helped: Mutex<HashMap<Host, Arc<OnceCell<Option<Token>>>>>,
    pub(crate) services: Mutex<HashMap<Host, Arc<OnceCell<Services>>>>,
    #[cfg(test)]
    tls: Option<rustls::ClientConfig>,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

impl Client {
    /// A client with these settings.
    #[must_use]
    pub fn new(settings: NetSettings) -> Client {
        Client(Arc::new(Inner {
            tokens: credentials::from_environment(&settings.variables),
            settings,
            http: OnceLock::new(),
            netrc: OnceLock::new(),
            helped: Mutex::default(),
            services: Mutex::default(),
            #[cfg(test)]
            tls: None,
        }))
    }

    /// A client that trusts whom a test says.
    #[cfg(test)]
    pub(crate) fn trusting(settings: NetSettings, tls: rustls::ClientConfig) -> Client {
        let mut client = Client::new(settings);
        if let Some(inner) = Arc::get_mut(&mut client.0) {
            inner.tls = Some(tls);
        }
        client
    }

    /// What this client was made with.
    #[must_use]
    pub fn settings(&self) -> &NetSettings {
        &self.0.settings
    }

    pub(crate) fn services_of(&self, host: &Host) -> Arc<OnceCell<Services>> {
        let mut all = self.0.services.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(host.clone()).or_default().clone()
    }

    /// A request for what is at an address.
    pub fn get(&self, url: Url) -> Request<'_> {
        Request {
            client: self,
            method: Method::GET,
            body: None,
            url,
            headers: HeaderMap::new(),
            netrc: false,
            redirects: REDIRECTS,
            retries: 1,
            timeout: None,
            to_registry: false,
        }
    }

    /// A request that sends something.
    pub fn post(&self, url: Url, content_type: &'static str, body: impl Into<Vec<u8>>) -> Request<'_> {
        let mut request = self.get(url);
        request.method = Method::POST;
        request.body = Some(body.into());
        request
            .headers
            .insert(reqwest::header::CONTENT_TYPE, HeaderValue::from_static(content_type));
        request
    }

    /// A request that puts nothing somewhere, as some services want it for what they give.
    pub fn put(&self, url: Url) -> Request<'_> {
        let mut request = self.get(url);
        request.method = Method::PUT;
        request
    }

    /// The token for a host, if anybody knows one.
    pub async fn token(&self, host: &Host) -> Result<Option<Token>, Error> {
        let settings = &self.0.settings;
        if let Some(token) = self.0.tokens.get(host).or_else(|| settings.hosts.tokens.get(host)) {
            return Ok(Some(token.clone()));
        }
        let Some(helper) = &settings.hosts.helper else {
            return Ok(None);
        };
        let cell = {
            let mut all = self.0.helped.lock().unwrap_or_else(PoisonError::into_inner);
            all.entry(host.clone()).or_default().clone()
        };
        cell.get_or_try_init(
            async || match credentials::find_helper(&helper.name, &settings.helper_dirs) {
                Some(program) => credentials::ask_helper(helper, &program, host).await,
                None => Err(Error::Helper {
                    helper: helper.name.clone(),
                    host: host.to_string(),
                    what: format!(
                        "there is no program terraform-credentials-{} in {}",
                        helper.name,
                        settings
                            .helper_dirs
                            .iter()
                            .map(|d| d.display().to_string())
                            .collect::<Vec<_>>()
                            .join(" or ")
                    ),
                }),
            },
        )
        .await
        .cloned()
    }

    fn http(&self) -> Result<&reqwest::Client, Error> {
        self.0.http.get_or_init(|| self.build()).as_ref().map_err(Clone::clone)
    }

    fn build(&self) -> Result<reqwest::Client, Error> {
        let failed = |e: &dyn std::error::Error| Error::NoClient(chain(e));
        #[cfg(test)]
        let tls = self.0.tls.clone().map_or_else(tls::configuration, Ok);
        #[cfg(not(test))]
        let tls = tls::configuration();
        let settings = &self.0.settings;
        let mut agent = format!("Terraform/{} {}", settings.terraform_version, settings.product);
        if let Some(more) = settings.variables.get("TF_APPEND_USER_AGENT").map(|v| v.trim()) {
            agent.push(' ');
            agent.push_str(more);
        }
        reqwest::Client::builder()
            .tls_backend_preconfigured(tls.map_err(|e| failed(&e))?)
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT_TIMEOUT)
            .read_timeout(SILENCE)
            .user_agent(agent.trim())
            .build()
            .map_err(|e| failed(&e))
    }

    fn number(&self, variable: &str, default: u64) -> u64 {
        let value = self.0.settings.variables.get(variable);
        value.and_then(|v| v.trim().parse().ok()).unwrap_or(default)
    }
}

/// A request that is being put together.
#[derive(Debug)]
#[must_use = "a request does nothing before it is sent"]
pub struct Request<'c> {
    client: &'c Client,
    method: Method,
    body: Option<Vec<u8>>,
    url: Url,
    headers: HeaderMap,
    netrc: bool,
    redirects: usize,
    retries: u64,
    timeout: Option<Duration>,
    to_registry: bool,
}

/// An answer, of which the head has been read.
#[derive(Debug)]
pub struct Response {
    /// Where it came from, after redirects.
    pub url: Url,
    inner: reqwest::Response,
}

impl<'c> Request<'c> {
    /// With a token, for as long as redirects stay with the same host.
    pub fn token(self, token: Option<&Token>) -> Request<'c> {
        match token {
            Some(token) => self.secret("authorization", format!("Bearer {}", token.expose())),
            None => self,
        }
    }

    /// With a header. A value that cannot be sent is left out.
    pub fn header(mut self, name: &'static str, value: impl AsRef<str>) -> Request<'c> {
        match HeaderValue::from_str(value.as_ref()) {
            Ok(value) => {
                self.headers.insert(HeaderName::from_static(name), value);
            }
            Err(_) => tracing::warn!(header = name, "a value that cannot be sent in a header"),
        }
        self
    }

    /// With a header that is not shown, and does not follow a redirect to another host.
    pub fn secret(mut self, name: &'static str, value: impl AsRef<str>) -> Request<'c> {
        match HeaderValue::from_str(value.as_ref()) {
            Ok(mut value) => {
                value.set_sensitive(true);
                self.headers.insert(HeaderName::from_static(name), value);
            }
            Err(_) => tracing::warn!(header = name, "a secret that cannot be sent in a header"),
        }
        self
    }

    /// With the name and the password that `.netrc` has for the host, unless the address or a header has its own.
    pub fn with_netrc(mut self) -> Request<'c> {
        self.netrc = true;
        self
    }

    /// Following so many redirects; with none, the answer that redirects is the answer.
    pub fn redirects(mut self, limit: usize) -> Request<'c> {
        self.redirects = limit;
        self
    }

    /// Tried again so many times, where it may help.
    pub fn retries(mut self, retries: u64) -> Request<'c> {
        self.retries = retries;
        self
    }

    /// Given up after so long, the reading of the answer included where [`Request::read`] does it.
    pub fn timeout(mut self, timeout: Duration) -> Request<'c> {
        self.timeout = Some(timeout);
        self
    }

    /// As registries are asked: with our version, and with the retries and the patience that the environment says.
    pub fn to_registry(mut self) -> Request<'c> {
        self.to_registry = true;
        self.retries = self.client.number("TF_REGISTRY_DISCOVERY_RETRY", 1);
        let seconds = self.client.number("TF_REGISTRY_CLIENT_TIMEOUT", 10);
        self.timeout = Some(Duration::from_secs(seconds.max(1)));
        let version = self.client.0.settings.terraform_version.clone();
        self.header("x-terraform-version", version)
    }

    /// Sends it, and gives the answer whatever its status.
    pub async fn send(self) -> Result<Response, Error> {
        let mut tries = 0;
        loop {
            let result = self.limited(self.once()).await;
            let pause = match &result {
                Ok(response) if worth_another_try(response.status()) => response.pause(tries),
                Err(error) if error.worth_another_try() => pause(tries),
                _ => return result,
            };
            if tries >= self.retries {
                return result;
            }
            tries += 1;
            tracing::debug!(url = %shown(&self.url), "trying again");
            tokio::time::sleep(pause).await;
        }
    }

    /// Sends it, and reads the whole of an answer that must be a success and no larger than this.
    pub async fn read(self, limit: u64) -> Result<(Url, Vec<u8>), Error> {
        let mut tries = 0;
        loop {
            let whole = async {
                let response = self.once().await?;
                if worth_another_try(response.status()) {
                    let pause = response.pause(tries);
                    return Ok(Err((response.failure(), pause)));
                }
                let mut response = response.success()?;
                let body = response.bytes(limit).await?;
                Ok(Ok((response.url, body)))
            };
            let (error, pause) = match self.limited(whole).await {
                Ok(Ok(done)) => return Ok(done),
                Ok(Err(failed)) => failed,
                Err(error) if error.worth_another_try() => (error, pause(tries)),
                Err(error) => return Err(error),
            };
            if tries >= self.retries {
                return Err(error);
            }
            tries += 1;
            tracing::debug!(url = %shown(&self.url), %error, "trying again");
            tokio::time::sleep(pause).await;
        }
    }

    async fn limited<T>(&self, work: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
        match self.timeout {
            None => work.await,
            Some(limit) => tokio::time::timeout(limit, work).await.unwrap_or_else(|_| {
                Err(Error::Timeout {
                    url: shown(&self.url),
                    seconds: limit.as_secs(),
                })
            }),
        }
    }

    /// One try, with its redirects.
    async fn once(&self) -> Result<Response, Error> {
        let http = self.client.http()?;
        let mut url = self.url.clone();
        let mut headers = self.headers.clone();
        let mut method = self.method.clone();
        let mut body = self.body.clone();
        let mut at_home = true;
        for _ in 0..=self.redirects {
            tracing::debug!(%method, url = %shown(&url), "request");
            let mut request = http.request(method.clone(), url.clone()).headers(headers.clone());
            if self.netrc && at_home && url.username().is_empty() && !headers.contains_key(AUTHORIZATION) {
                let netrc = self
                    .client
                    .0
                    .netrc
                    .get_or_init(|| Netrc::load(&self.client.0.settings.variables));
                if let Some(login) = url.host_str().and_then(|host| netrc.login(host)) {
                    request = request.basic_auth(&login.name, Some(&login.password));
                }
            }
            if let Some(body) = &body {
                request = request.body(body.clone());
            }
            let inner = request.send().await.map_err(|e| connection(&url, &e))?;
            let response = Response {
                url: url.clone(),
                inner,
            };
            let location = match response.status().as_u16() {
                301 | 302 | 303 | 307 | 308 if self.redirects > 0 => response.inner.headers().get(LOCATION).cloned(),
                _ => return Ok(response),
            };
            let Some(location) = location else {
                return Ok(response);
            };
            let bad = || Error::BadRedirect { url: shown(&url) };
            let text = std::str::from_utf8(location.as_bytes()).map_err(|_| bad())?;
            let next = url.join(text).map_err(|_| bad())?;
            if !matches!(next.scheme(), "http" | "https") {
                return Err(bad());
            }
            if next.origin() != url.origin() {
                at_home = false;
                let secret: Vec<HeaderName> = headers
                    .iter()
                    .filter(|(_, value)| value.is_sensitive())
                    .map(|(name, _)| name.clone())
                    .collect();
                for name in secret {
                    headers.remove(name);
                }
            }
            if response.status().as_u16() < 307 && method != Method::GET {
                method = Method::GET;
                body = None;
                headers.remove(reqwest::header::CONTENT_TYPE);
            }
            url = next;
        }
        Err(Error::TooManyRedirects {
            url: shown(&self.url),
            limit: self.redirects,
        })
    }
}

impl Response {
    /// The status.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        self.inner.status()
    }

    /// A header's text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.inner.headers().get(name).and_then(|v| v.to_str().ok())
    }

    /// The size of the body, as far as it was announced.
    #[must_use]
    pub fn announced_size(&self) -> Option<u64> {
        self.inner.content_length()
    }

    /// The error that a status which is no success is.
    #[must_use]
    pub fn failure(&self) -> Error {
        Error::Status {
            url: shown(&self.url),
            status: self.status(),
        }
    }

    /// An answer that is no success as an error.
    pub fn success(self) -> Result<Response, Error> {
        if self.status().is_success() {
            Ok(self)
        } else {
            Err(self.failure())
        }
    }

    /// The next part of the body; `None` at its end.
    pub async fn chunk(&mut self) -> Result<Option<impl AsRef<[u8]> + use<>>, Error> {
        self.inner.chunk().await.map_err(|e| connection(&self.url, &e))
    }

    /// The whole body, unless it is larger than this.
    pub async fn bytes(&mut self, limit: u64) -> Result<Vec<u8>, Error> {
        let too_large = || Error::TooLarge {
            url: shown(&self.url),
            limit,
        };
        if self.announced_size().is_some_and(|size| size > limit) {
            return Err(too_large());
        }
        let mut body = Vec::new();
        while let Some(chunk) = self.inner.chunk().await.map_err(|e| connection(&self.url, &e))? {
            if (body.len() + chunk.len()) as u64 > limit {
                return Err(too_large());
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body)
    }

    fn pause(&self, tries: u64) -> Duration {
        let asked = self
            .inner
            .headers()
            .get(RETRY_AFTER)
            .and_then(|v| v.to_str().ok()?.trim().parse().ok())
            .map(Duration::from_secs);
        asked.map_or_else(|| pause(tries), |asked| asked.min(LONGEST_PAUSE))
    }
}

fn worth_another_try(status: StatusCode) -> bool {
    status == StatusCode::TOO_MANY_REQUESTS || (status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED)
}

/// Longer with every try.
fn pause(tries: u64) -> Duration {
    let doubled = 1_u32
        .checked_shl(u32::try_from(tries).unwrap_or(u32::MAX))
        .unwrap_or(u32::MAX);
    Duration::from_millis(500).saturating_mul(doubled).min(LONGEST_PAUSE)
}

fn connection(url: &Url, error: &reqwest::Error) -> Error {
    let url = shown(url);
    if error.is_timeout() {
        return Error::Timeout {
            url,
            seconds: if error.is_connect() { CONNECT_TIMEOUT } else { SILENCE }.as_secs(),
        };
    }
    let mut reason = error.source_text();
    if reason.contains("UnknownIssuer") {
        reason.push_str(
            ". The certificate is not signed by anybody this machine trusts; the environment variable SSL_CERT_FILE can name a \
             file with more certificates to trust",
        );
    }
    Error::Connection { url, reason }
}

trait SourceText {
    fn source_text(&self) -> String;
}

impl SourceText for reqwest::Error {
    /// The causes only: the error itself names the address with all its parts.
    fn source_text(&self) -> String {
        std::error::Error::source(self).map_or_else(|| "the connection broke".to_owned(), chain)
    }
}

/// An error with its causes. Layers that say only that something below failed are left out.
fn chain(error: &dyn std::error::Error) -> String {
    let mut texts: Vec<String> = Vec::new();
    let mut next = Some(error);
    while let Some(error) = next {
        let text = error.to_string();
        if let Some(last) = texts.last_mut()
            && (last.starts_with("client error (") || last.ends_with(&text) || last == "tls handshake eof")
        {
            if !last.ends_with(&text) {
                *last = text;
            }
        } else {
            texts.push(text);
        }
        next = error.source();
    }
    texts.join(": ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::test_server::{Reply, Server};

    fn client() -> Client {
        Client::new(NetSettings {
            terraform_version: "1.2.3".to_owned(),
            product: "Monoform/0".to_owned(),
            ..NetSettings::default()
        })
    }

    #[test]
    fn what_is_shown_has_no_secrets() {
        let url = Url::parse("https://user:pass@example.com/a?X-Amz-Signature=s#f").unwrap();
        assert_eq!(shown(&url), "https://example.com/a");
        assert_eq!(pause(0), Duration::from_millis(500));
        assert_eq!(pause(500), LONGEST_PAUSE);
    }

    #[tokio::test]
    async fn a_token_does_not_follow_to_another_host() {
        let other = Server::start(|request| Reply::ok(request.header("authorization").unwrap_or("none")));
        let target = other.url("/there");
        let server = Server::start(move |request| match &*request.path {
            "/away" => Reply::redirect(&target),
            "/here" => Reply::redirect("stay"),
            "/round" => Reply::redirect("/round"),
            "/file" => Reply::redirect("file:///etc/passwd"),
            _ => Reply::ok(&format!(
                "{} {}",
                request.header("authorization").unwrap_or("none"),
                request.header("user-agent").unwrap_or("none")
            )),
        });
        let client = client();
        let read = async |path: &str| {
            let token = Token::new("t");
            let request = client.get(server.url(path).parse().unwrap()).token(Some(&token));
            request
                .read(100)
                .await
                .map(|(_, body)| String::from_utf8(body).unwrap())
        };
        assert_eq!(read("/here").await.unwrap(), "Bearer t Terraform/1.2.3 Monoform/0");
        assert_eq!(read("/away").await.unwrap(), "none");
        assert!(matches!(
            read("/round").await,
            Err(Error::TooManyRedirects { limit: 10, .. })
        ));
        assert!(matches!(read("/file").await, Err(Error::BadRedirect { .. })));
    }

    #[tokio::test]
    async fn a_busy_server_is_asked_again() {
        let server = Server::start({
            let count = std::sync::atomic::AtomicUsize::new(0);
            move |request| match &*request.path {
                "/later" if count.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 0 => {
                    Reply::status(503).with("Retry-After", "0")
                }
                "/never" => Reply::status(500).with("Retry-After", "0"),
                "/missing" => Reply::status(404),
                _ => Reply::ok("done"),
            }
        });
        let client = client();
        let read = async |path: &str, limit| client.get(server.url(path).parse().unwrap()).read(limit).await;
        assert_eq!(read("/later", 4).await.unwrap().1, b"done");
        assert_eq!(
            read("/never", 4).await.unwrap_err().status(),
            Some(StatusCode::INTERNAL_SERVER_ERROR)
        );
        assert_eq!(server.count("/never"), 2);
        assert_eq!(
            read("/missing", 4).await.unwrap_err().status(),
            Some(StatusCode::NOT_FOUND)
        );
        assert_eq!(server.count("/missing"), 1);
        assert!(matches!(read("/big", 3).await, Err(Error::TooLarge { limit: 3, .. })));
    }

    #[tokio::test]
    async fn nobody_there_is_told_without_secrets() {
        let url = {
            let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            format!("http://u:secret@{}/x?key=secret", listener.local_addr().unwrap())
        };
        let error = client().get(url.parse().unwrap()).retries(0).send().await.unwrap_err();
        let text = error.to_string();
        assert!(text.contains("onnection refused") && !text.contains("secret"), "{text}");
    }
}
