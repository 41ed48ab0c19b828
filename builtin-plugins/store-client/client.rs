//! Requests: sent again where that may help, redirects followed, answers read as a whole.

use std::error::Error as _;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;

use bytes::Bytes;
use monoform_sdk::Diagnostic;
use monoform_sdk::state_store::report_waiting;
use proxies::Proxies;
use reqwest::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION, RETRY_AFTER};
use reqwest::{Client, Method, StatusCode};
use rustls::ClientConfig;
use trust::http::{LARGEST_STATE, PATIENCE, SILENCE, asked_pause, first_byte_after, stays_behind};
use url::Url;

use crate::tls::Tls;

/// What the program calls itself.
const USER_AGENT: &str = concat!("Monoform/", env!("CARGO_PKG_VERSION"));

/// How long it may take until there is a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// How many redirects are followed.
const REDIRECTS: usize = 10;

/// How a client is made.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Which servers are trusted.
    pub tls: Tls,
    /// How often requests are sent again.
    pub retries: Retries,
    /// Through which servers requests go.
    pub proxy: Proxy,
    /// How long one request may take, answer included; without end if not said.
    pub timeout: Option<Duration>,
    /// How long it may take until there is a connection, if not the usual time.
    pub connect_timeout: Option<Duration>,
    /// Whether redirects are followed.
    pub follow_redirects: bool,
    /// What the program calls itself, if not by its name and version.
    pub user_agent: Option<String>,
    /// The socket of this machine that all requests go to, whatever their addresses.
    pub unix_socket: Option<PathBuf>,
    /// The largest answer that is read, in bytes.
    pub largest: usize,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            tls: Tls::default(),
            retries: Retries::default(),
            proxy: Proxy::default(),
            timeout: None,
            connect_timeout: None,
            follow_redirects: true,
            user_agent: None,
            unix_socket: None,
            largest: LARGEST_STATE,
        }
    }
}

/// Through which servers requests go.
#[derive(Clone, Debug, Default)]
pub enum Proxy {
    /// What the environment says (`HTTPS_PROXY` and the like); servers on this machine are asked directly.
    #[default]
    Environment,
    /// None.
    None,
    /// This one, without exceptions.
    Always(String),
    /// These; what is not said comes from the environment.
    Custom {
        /// For addresses with `http`.
        http: Option<String>,
        /// For addresses with `https`.
        https: Option<String>,
        /// Servers that are asked directly, as in `NO_PROXY`.
        except: Option<String>,
    },
}

/// How often requests are sent again, and how long to wait before.
#[derive(Clone, Copy, Debug)]
pub struct Retries {
    /// How many times, after the first.
    pub max: u32,
    /// Before the first repetition; twice as long before each further one.
    pub wait_min: Duration,
    /// At most.
    pub wait_max: Duration,
    /// Whether an answer is worth another request.
    pub again: fn(&Answer) -> bool,
}

impl Retries {
    /// The pause after so many repetitions: the one that a server asks for, as far as that is acceptable.
    fn pause(&self, attempt: u32, asked: Option<Duration>) -> Duration {
        let doubled = self
            .wait_min
            .saturating_mul(1_u32.checked_shl(attempt).unwrap_or(u32::MAX));
        asked.map_or(doubled.min(self.wait_max), asked_pause)
    }
}

impl Default for Retries {
    fn default() -> Retries {
        Retries {
            max: 2,
            wait_min: Duration::from_secs(1),
            wait_max: Duration::from_secs(30),
            again: overloaded,
        }
    }
}

/// Too many requests, or a server's own error: all from 500 but 501.
fn overloaded(answer: &Answer) -> bool {
    let status = answer.status;
    status == StatusCode::TOO_MANY_REQUESTS || status.is_server_error() && status != StatusCode::NOT_IMPLEMENTED
}

/// An answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Its status.
    pub status: StatusCode,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Vec<u8>,
}

impl Answer {
    /// A header's value, if it is text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// The body as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// What was answered to something that was done, in a sentence, then advice: with the code and the message of the server, as
    /// far as there are any.
    #[must_use]
    pub fn told(&self, what: &str, code: &str, message: &str, advice: &str) -> String {
        let said: Vec<&str> = [code, message.trim_end_matches('.')]
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect();
        let said = match said.join(": ") {
            text if text.is_empty() => text,
            text => format!(" ({text})"),
        };
        let space = if advice.is_empty() { "" } else { " " };
        format!(
            "{what} was answered with the status {}{said}.{space}{advice}",
            self.status
        )
    }
}

/// There was no answer, or none that helps.
#[derive(Clone, Debug)]
pub struct Failure {
    /// What went wrong.
    pub message: String,
    /// Whether another attempt may succeed.
    pub passing: bool,
}

impl Failure {
    /// As a problem with what was being done (`reading the state`).
    #[must_use]
    pub fn diagnostic(&self, summary: &str, what: &str) -> Diagnostic {
        Diagnostic::error(summary, format!("{what} failed: {}", self.message))
    }
}

/// Sends requests.
pub struct HttpClient {
    tls: ClientConfig,
    settings: Settings,
    /// It is made when it is needed.
    client: OnceLock<Client>,
}

/// A request that is signed: method, address, headers, body.
pub type SignedRequest = (Method, Url, HeaderMap, Option<Bytes>);

impl HttpClient {
    /// A client.
    ///
    /// # Errors
    /// The certificates cannot be used.
    pub fn new(settings: Settings) -> Result<HttpClient, String> {
        Ok(HttpClient {
            tls: settings.tls.configuration()?,
            settings,
            client: OnceLock::new(),
        })
    }

    /// Sends a request until there is an answer that is no call for another attempt, or attempts run out.
    ///
    /// # Errors
    /// There was no such answer.
    pub async fn send(
        &self,
        method: Method,
        url: &Url,
        headers: HeaderMap,
        body: Option<Vec<u8>>,
    ) -> Result<Answer, Failure> {
        // A state may be large: it is not copied for each attempt.
        let body = body.map(Bytes::from);
        self.send_signed(&mut || Ok((method.clone(), url.clone(), headers.clone(), body.clone())))
            .await
    }

    /// The same for requests that are made anew for each attempt, because they carry a signature with the time in it.
    ///
    /// # Errors
    /// A request could not be made, or there was no answer.
    pub async fn send_signed(
        &self,
        make: &mut (dyn FnMut() -> Result<SignedRequest, Failure> + Send),
    ) -> Result<Answer, Failure> {
        let retries = self.settings.retries;
        let mut attempt = 0;
        loop {
            let (method, url, headers, body) = make()?;
            let shown = without_secrets(&url);
            let result = self.once(method.clone(), url, headers, body).await;
            let (wait, again) = match &result {
                Ok(answer) => (asked_to_wait(answer), (retries.again)(answer)),
                Err(failure) => (None, failure.passing),
            };
            let outcome = match &result {
                Ok(answer) => answer.status.to_string(),
                Err(failure) => failure.message.clone(),
            };
            tracing::debug!(%method, url = shown, outcome, attempt, "request");
            if !again {
                return result;
            }
            if attempt >= retries.max {
                // What a server said is of more use than that it was asked several times.
                return match result {
                    Ok(answer) if retries.max == 0 => Ok(answer),
                    Ok(answer) => Err(Failure {
                        message: format!(
                            "{method} {shown} giving up after {} attempt(s): {outcome}{}",
                            attempt + 1,
                            said(&answer)
                        ),
                        passing: true,
                    }),
                    Err(_) => Err(Failure {
                        message: format!("{method} {shown} giving up after {} attempt(s): {outcome}", attempt + 1),
                        passing: true,
                    }),
                };
            }
            tokio::time::sleep(retries.pause(attempt, wait)).await;
            attempt += 1;
        }
    }

    /// Sends a request once, redirects followed.
    async fn once(&self, method: Method, url: Url, headers: HeaderMap, body: Option<Bytes>) -> Result<Answer, Failure> {
        let (mut method, mut url, mut headers, mut body) = (method, url, headers, body);
        for _ in 0..=REDIRECTS {
            let mut request = self
                .client()?
                .request(method.clone(), url.clone())
                .headers(headers.clone());
            if let Some(body) = &body {
                // Without this header an empty body is none, and some servers refuse that.
                if body.is_empty() {
                    request = request.header(CONTENT_LENGTH, 0);
                }
                request = request.body(body.clone());
            }
            if let Some(timeout) = self.settings.timeout {
                request = request.timeout(timeout);
            }
            let length = body.as_ref().map_or(0, Bytes::len);
            let mut response = first_byte(&url, length, request).await?;
            let (status, response_headers) = (response.status(), response.headers().clone());
            let location = response_headers
                .get(LOCATION)
                .filter(|_| self.settings.follow_redirects && matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308));
            let Some(location) = location else {
                let body = self.whole(&mut response, &url).await?;
                return Ok(Answer {
                    status,
                    headers: response_headers,
                    body,
                });
            };
            let location = location.to_str().ok().and_then(|to| url.join(to).ok());
            let Some(next) = location else {
                return Err(Failure {
                    message: format!(
                        "{} redirects to an address that cannot be understood",
                        without_secrets(&url)
                    ),
                    passing: false,
                });
            };
            if status.as_u16() < 304 && !matches!(method, Method::GET | Method::HEAD) {
                method = Method::GET;
                body = None;
                headers.remove(CONTENT_TYPE);
                headers.remove(CONTENT_LENGTH);
            }
            if !matches!(next.scheme(), "http" | "https") {
                return Err(Failure {
                    message: format!(
                        "{} redirects to an address that is not of a web server",
                        without_secrets(&url)
                    ),
                    passing: false,
                });
            }
            if next.origin() != url.origin() {
                let secret = headers
                    .iter()
                    .filter(|(name, value)| stays_behind(name.as_str(), value.is_sensitive()));
                let secret: Vec<HeaderName> = secret.map(|(name, _)| name.clone()).collect();
                for name in secret {
                    headers.remove(name);
                }
            }
            url = next;
        }
        Err(Failure {
            message: format!("stopped after {REDIRECTS} redirects"),
            passing: false,
        })
    }

    /// Reads an answer to its end, as long as it goes on and does not become too large.
    async fn whole(&self, response: &mut reqwest::Response, url: &Url) -> Result<Vec<u8>, Failure> {
        let largest = self.settings.largest;
        let too_large = || Failure {
            message: format!(
                "the answer of {} is larger than the {largest} bytes that are accepted",
                without_secrets(url)
            ),
            passing: false,
        };
        if response.content_length().is_some_and(|length| length > largest as u64) {
            return Err(too_large());
        }
        let mut body = Vec::new();
        loop {
            let Ok(part) = tokio::time::timeout(SILENCE, response.chunk()).await else {
                return Err(late(url, SILENCE, "sent nothing more for"));
            };
            match part.map_err(|e| failure(&e, url))? {
                Some(part) if body.len() + part.len() > largest => return Err(too_large()),
                Some(part) => body.extend_from_slice(&part),
                None => return Ok(body),
            }
        }
    }

    fn client(&self) -> Result<&Client, Failure> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let client = self.build().map_err(|e| Failure {
            message: chain(&e),
            passing: false,
        })?;
        Ok(self.client.get_or_init(|| client))
    }

    fn build(&self) -> reqwest::Result<Client> {
        let mut builder = Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .referer(false)
            .connect_timeout(self.settings.connect_timeout.unwrap_or(CONNECT_TIMEOUT))
            .user_agent(self.settings.user_agent.as_deref().unwrap_or(USER_AGENT))
            .tls_backend_preconfigured(self.tls.clone());
        if let Some(socket) = &self.settings.unix_socket {
            builder = builder.unix_socket(socket.as_path());
        }
        let environment = || Proxies::from_variables(variable);
        let proxies = match &self.settings.proxy {
            Proxy::None => return builder.no_proxy().build(),
            Proxy::Always(url) => return builder.proxy(reqwest::Proxy::all(url)?).build(),
            Proxy::Environment => environment(),
            Proxy::Custom { http, https, except } => {
                environment().with(http.as_deref(), https.as_deref(), except.as_deref())
            }
        };
        let custom = reqwest::Proxy::custom(move |url| proxies.way(url).proxy().cloned());
        builder.proxy(custom).build()
    }
}

#[expect(clippy::disallowed_methods, reason = "the environment names proxies")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Sends a request with a body of this length, and waits for the head of the answer. After a while a user is told for whom.
async fn first_byte(url: &Url, body: usize, request: reqwest::RequestBuilder) -> Result<reqwest::Response, Failure> {
    let sent = waiting(url.host_str().unwrap_or_default(), request.send());
    let limit = first_byte_after(body);
    match tokio::time::timeout(limit, sent).await {
        Ok(sent) => sent.map_err(|e| failure(&e, url)),
        Err(_) => Err(late(url, limit, "did not begin to answer within")),
    }
}

/// Waits for work of a server, and tells the user of the host if that takes long.
pub async fn waiting<T>(host: &str, work: impl Future<Output = T>) -> T {
    let mut work = std::pin::pin!(work);
    match tokio::time::timeout(PATIENCE, &mut work).await {
        Ok(done) => done,
        Err(_) => {
            report_waiting(host);
            work.await
        }
    }
}

fn late(url: &Url, limit: Duration, what: &str) -> Failure {
    Failure {
        message: format!(
            "{} {what} {} seconds.{}",
            url.origin().ascii_serialization(),
            limit.as_secs(),
            hint("", true)
        ),
        passing: true,
    }
}

/// Text as the value of a header.
///
/// # Errors
/// It has characters that no header can have.
pub fn header_value(text: &str) -> Result<HeaderValue, Failure> {
    HeaderValue::from_str(text).map_err(|_| Failure {
        message: "a header of the request has characters that it cannot have".to_owned(),
        passing: false,
    })
}

/// The first line of what a server says about an error.
fn said(answer: &Answer) -> String {
    match answer.text().trim().lines().next() {
        Some(line) if !line.is_empty() => format!(": {}", line.chars().take(300).collect::<String>()),
        _ => String::new(),
    }
}

/// How long a server asks to wait, if it is too busy.
fn asked_to_wait(answer: &Answer) -> Option<Duration> {
    if !matches!(answer.status.as_u16(), 429 | 503) {
        return None;
    }
    let text = answer.headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let at = httpdate::parse_http_date(text).ok()?;
    #[expect(clippy::disallowed_methods, reason = "a server names a time to wait for")]
    at.duration_since(std::time::SystemTime::now()).ok()
}

/// An address for logs and messages: without a password, and without a query, which may hold a signature.
fn without_secrets(url: &Url) -> String {
    let mut url = url.clone();
    // Addresses that cannot have a password have none.
    let _ = url.set_password(None);
    let _ = url.set_username("");
    url.set_query(None);
    url.to_string()
}

/// Why there was no answer.
fn failure(error: &reqwest::Error, url: &Url) -> Failure {
    let text = chain(error);
    // Neither a certificate nor the address becomes right by another attempt.
    let lasting = error.is_builder() || text.contains("certificate") || text.contains("CertificateRequired");
    let hint = hint(&text, error.is_timeout());
    // The error after the last retry names the URL anyway.
    let server = match lasting {
        true => format!("{}: ", url.origin().ascii_serialization()),
        false => String::new(),
    };
    Failure {
        message: format!("{server}{text}.{hint}"),
        passing: !lasting,
    }
}

/// Advice for a failed connection; empty if there is none.
fn hint(text: &str, late: bool) -> &'static str {
    let has = |parts: &[&str]| parts.iter().any(|part| text.contains(part));
    if has(&["dns error", "failed to lookup address", "resolve"]) {
        " Check the name of the server, and the network of this machine."
    } else if has(&["NotValidYet", "Expired", "not valid yet", "expired"]) {
        " If the certificate is right, the clock of this machine is wrong."
    } else if has(&["UnknownIssuer", "CaUsedAsEndEntity"]) {
        " The authority that has signed the server's certificate is not trusted on this machine: add it to the machine's \
         authorities, or to a file that SSL_CERT_FILE names."
    } else if has(&["NotValidForName", "not valid for name"]) {
        " This is the certificate of another server: correct the address, or the server's certificate."
    } else if has(&[
        "InvalidContentType",
        "corrupt message",
        "InvalidMessage",
        "handshake eof",
    ]) {
        " What answers there does not speak TLS: the address should perhaps begin with http://."
    } else if has(&["Connection refused"]) {
        " Nothing listens there: check the address and the port, and whether the server is running."
    } else if has(&["Network is unreachable", "No route to host"]) {
        " This machine has no way to the server: check its network, and whether a proxy is needed (HTTPS_PROXY)."
    } else if late {
        " Check the address, the network of this machine and its firewalls, and whether a proxy is needed (HTTPS_PROXY)."
    } else {
        ""
    }
}

/// An error with all its causes, the address not among them, since it may hold secrets.
fn chain(error: &reqwest::Error) -> String {
    let mut text = String::new();
    let mut source = error.source();
    while let Some(cause) = source {
        let next = cause.to_string();
        if !text.contains(&next) {
            if !text.is_empty() {
                text.push_str(": ");
            }
            text.push_str(&next);
        }
        source = cause.source();
    }
    match text.as_str() {
        "" if error.is_timeout() => "the server did not answer in time".to_owned(),
        "" => error.to_string(),
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_cannot_ask_for_a_long_pause() {
        let retries = Retries::default();
        let pause = |attempt, seconds: Option<u64>| retries.pause(attempt, seconds.map(Duration::from_secs)).as_secs();
        assert_eq!(
            [
                pause(0, None),
                pause(3, None),
                pause(40, None),
                pause(0, Some(2)),
                pause(0, Some(3600))
            ],
            [1, 8, 30, 2, trust::http::LONGEST_PAUSE.as_secs()]
        );
    }

    #[test]
    fn each_way_to_get_no_answer_has_its_advice() {
        for (text, advice) in [
            ("dns error: failed to lookup address information", "name of the server"),
            ("invalid peer certificate: Expired", "the clock of this machine"),
            ("invalid peer certificate: UnknownIssuer", "SSL_CERT_FILE"),
            ("certificate not valid for name \"a\"", "certificate of another server"),
            ("received corrupt message of type InvalidContentType", "http://"),
            ("client error (Connect): tls handshake eof", "http://"),
            ("tcp connect error: Connection refused", "Nothing listens there"),
            ("tcp connect error: No route to host", "HTTPS_PROXY"),
        ] {
            assert!(hint(text, false).contains(advice), "{text}");
        }
        assert!(hint("operation timed out", true).contains("firewalls"));
        assert_eq!(hint("connection reset", false), "");
    }
}
