//! HTTP client of the stores: sends requests with retries and redirects, and reads responses as a whole.

use std::path::PathBuf;
use std::time::Duration;

use http::retry::{Backoff, asked_pause, may_change};
use http::rules::LARGEST_STATE;
use http::{
    Bytes, Error, HeaderMap, HeaderValue, Method, Phase, Redirects, StatusCode, Transport, Url, patient, shown,
};
use monoform_sdk::Diagnostic;
use monoform_sdk::state_store::report_waiting;
use proxies::Proxies;

use crate::tls::{Tls, TlsError};

const USER_AGENT: &str = concat!("Monoform/", env!("CARGO_PKG_VERSION"));

const REDIRECTS: usize = 10;

/// Options of a client.
#[derive(Clone, Debug)]
pub struct Settings {
    pub tls: Tls,
    pub retries: Retries,
    pub proxy: Proxy,
    /// Time limit of one request including its response; unlimited by default.
    pub timeout: Option<Duration>,
    /// Time limit for connecting; [`http::rules::CONNECT_TIMEOUT`] by default.
    pub connect_timeout: Option<Duration>,
    pub follow_redirects: bool,
    /// Defaults to the name and version of the program.
    pub user_agent: Option<String>,
    /// Unix socket that receives all requests, whatever their URLs are.
    pub unix_socket: Option<PathBuf>,
    /// Size limit of a response body in bytes.
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

/// Proxies of a client.
#[derive(Clone, Debug, Default)]
pub enum Proxy {
    /// Proxies from the environment (`HTTPS_PROXY` and others). Servers on this machine are reached directly.
    #[default]
    Environment,
    /// No proxy.
    None,
    /// This proxy for all servers.
    Always(String),
    /// A proxy for each scheme. If one is absent, it comes from the environment.
    Custom {
        /// Proxy for `http` URLs.
        http: Option<String>,
        /// Proxy for `https` URLs.
        https: Option<String>,
        /// Servers that are reached without a proxy, in the form of `NO_PROXY`.
        except: Option<String>,
    },
}

/// Number of retries, and the pauses before them.
#[derive(Clone, Copy, Debug)]
pub struct Retries {
    /// Number of retries after the first attempt.
    pub max: u32,
    /// Pause before the first retry. The pause doubles before each further retry.
    pub wait_min: Duration,
    /// Upper limit of the pause.
    pub wait_max: Duration,
    /// Returns true if a request with this answer is to be retried.
    pub again: fn(&Answer) -> bool,
}

impl Retries {
    /// Returns the pause before a retry: the time that the server requests (`Retry-After`), or else an exponentially growing one.
    fn pause(&self, attempt: u32, asked: Option<Duration>) -> Duration {
        let backoff = Backoff {
            first: self.wait_min,
            longest: self.wait_max,
        };
        asked.unwrap_or_else(|| backoff.pause(attempt.into()))
    }
}

impl Default for Retries {
    fn default() -> Retries {
        Retries {
            max: 2,
            wait_min: Duration::from_secs(1),
            wait_max: Duration::from_secs(30),
            again: |answer| may_change(answer.status),
        }
    }
}

/// Response of a server with any status.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl Answer {
    /// Returns the value of a header; `None` if it is absent or not text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Describes the answer to a request in a sentence. It includes the code and the message of the server, if there are any, and the
    /// advice.
    #[must_use]
    pub fn describe(&self, what: &str, code: &str, message: &str, advice: &str) -> String {
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

/// Failure of a request: no answer, or no usable answer after all retries.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// Description in complete sentences, with advice.
    pub message: String,
    /// True if another attempt may succeed.
    pub passing: bool,
}

impl Failure {
    /// Returns the message without its full stop, for use as a part of a sentence.
    #[must_use]
    pub fn reason(&self) -> &str {
        self.message.trim_end_matches('.')
    }

    /// Builds the diagnostic for the failure; `what` is the operation (`reading the state`).
    #[must_use]
    pub fn diagnostic(&self, summary: &str, what: &str) -> Diagnostic {
        Diagnostic::error(summary, format!("{what} failed: {}", self.message))
    }
}

pub struct HttpClient {
    settings: Settings,
    transport: Transport,
}

/// Parts of a signed request: method, URL, headers, body.
pub type SignedRequest = (Method, Url, HeaderMap, Option<Bytes>);

impl HttpClient {
    /// Creates a client. Certificates are parsed here.
    ///
    /// # Errors
    /// The certificates cannot be used.
    pub fn new(settings: Settings) -> Result<HttpClient, TlsError> {
        let transport = Transport::new(http::Settings {
            tls: Some(settings.tls.configuration()?),
            proxy: proxy(&settings.proxy),
            connect_timeout: settings.connect_timeout.unwrap_or(http::rules::CONNECT_TIMEOUT),
            user_agent: settings.user_agent.clone().unwrap_or_else(|| USER_AGENT.to_owned()),
            unix_socket: settings.unix_socket.clone(),
            ..http::Settings::default()
        });
        Ok(HttpClient { settings, transport })
    }

    /// Sends a request, and repeats it until an answer needs no retry or all retries are used.
    ///
    /// # Errors
    /// All attempts failed.
    pub async fn send(
        &self,
        method: Method,
        url: &Url,
        headers: HeaderMap,
        body: Option<Vec<u8>>,
    ) -> Result<Answer, Failure> {
        // `Bytes` is shared by all attempts: a state may be large, and is not copied for each.
        let body = body.map(Bytes::from);
        self.send_signed(&mut || Ok((method.clone(), url.clone(), headers.clone(), body.clone())))
            .await
    }

    /// Sends a request that is built again for each attempt, because its signature contains the time.
    ///
    /// # Errors
    /// A request could not be built, or all attempts failed.
    pub async fn send_signed(
        &self,
        make: &mut (dyn FnMut() -> Result<SignedRequest, Failure> + Send),
    ) -> Result<Answer, Failure> {
        let retries = self.settings.retries;
        let mut attempt = 0;
        loop {
            let (method, url, headers, body) = make()?;
            let shown = shown(&url);
            let result = self.once(method.clone(), url, headers, body).await;
            let (wait, again) = match &result {
                Ok(answer) => (asked_pause(&answer.headers), (retries.again)(answer)),
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
                // If the store has disabled retries, it explains the answer itself. An error "giving up after 1 attempt(s)" would hide the
                // status.
                return match result {
                    Ok(answer) if retries.max == 0 => Ok(answer),
                    Ok(answer) => Err(Failure {
                        message: format!(
                            "{method} {shown} giving up after {} attempt(s): {outcome}{}",
                            attempt + 1,
                            text_excerpt(&answer)
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

    /// Sends a request once, and follows redirects if the settings allow that.
    async fn once(&self, method: Method, url: Url, headers: HeaderMap, body: Option<Bytes>) -> Result<Answer, Failure> {
        let work = async {
            let request = http::Request {
                method,
                url: &url,
                headers,
                body,
                redirects: Redirects::within(if self.settings.follow_redirects { REDIRECTS } else { 0 }),
                login: None,
                waiting: &report_waiting,
            };
            let mut response = self.transport.send(request).await?;
            // The size limit keeps a faulty or hostile server from exhausting the memory.
            let body = response.bytes(self.settings.largest as u64).await?;
            Ok(Answer {
                status: response.status(),
                headers: response.header_map().clone(),
                body,
            })
        };
        let result = match self.settings.timeout {
            None => work.await,
            Some(limit) => tokio::time::timeout(limit, work).await.unwrap_or_else(|_| {
                Err(Error::Timeout {
                    url: shown(&url),
                    seconds: limit.as_secs(),
                    phase: Phase::Whole,
                })
            }),
        };
        result.map_err(|error| failure(&error))
    }
}

fn proxy(given: &Proxy) -> http::Proxy {
    let environment = || Proxies::from_variables(variable);
    match given {
        Proxy::None => http::Proxy::None,
        Proxy::Always(url) => http::Proxy::Always(url.clone()),
        Proxy::Environment => http::Proxy::Rules(Box::new(environment())),
        Proxy::Custom { http, https, except } => http::Proxy::Rules(Box::new(environment().with(
            http.as_deref(),
            https.as_deref(),
            except.as_deref(),
        ))),
    }
}

#[expect(clippy::disallowed_methods, reason = "the environment names proxies")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Waits for a server. If that takes long, the host name is reported to the user.
pub async fn waiting<T>(host: &str, work: impl Future<Output = T>) -> T {
    patient(|| report_waiting(host), work).await
}

/// Converts text to the value of a header.
///
/// # Errors
/// The text has characters that no header can have.
pub fn header_value(text: &str) -> Result<HeaderValue, Failure> {
    HeaderValue::from_str(text).map_err(|_| Failure {
        message: "a header of the request has characters that HTTP headers cannot have".to_owned(),
        passing: false,
    })
}

/// Returns a colon and the first line of the body of an answer, at most 300 characters; empty if the body is empty.
fn text_excerpt(answer: &Answer) -> String {
    match answer.text().trim().lines().next() {
        Some(line) if !line.is_empty() => format!(": {}", line.chars().take(300).collect::<String>()),
        _ => String::new(),
    }
}

/// Converts an error of the transport.
fn failure(error: &Error) -> Failure {
    // Unlike for a registry, a timeout is retried: a registry has mirrors, but a state has no other location.
    let is_late = matches!(error, Error::Timeout { .. });
    let advice = if is_late {
        " Check the address, the network of this machine and its firewalls, and whether a proxy is needed (HTTPS_PROXY)."
    } else {
        ""
    };
    let passing = is_late || error.worth_another_try();
    // Without the URL if the request is retried, since the error after the last attempt names it anyway.
    let reason = if passing { error.reason() } else { error.to_string() };
    Failure {
        message: format!("{reason}.{advice}"),
        passing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_unless_a_server_asks_for_another() {
        let retries = Retries::default();
        let pause = |attempt, seconds: Option<u64>| retries.pause(attempt, seconds.map(Duration::from_secs)).as_secs();
        assert_eq!(
            [pause(0, None), pause(3, None), pause(40, None), pause(0, Some(2))],
            [1, 8, 30, 2]
        );
    }

    #[test]
    fn silent_servers_are_asked_again_and_those_without_trust_are_not() {
        let late = failure(&Error::Timeout {
            url: "https://a.example/".to_owned(),
            seconds: 30,
            phase: Phase::Body,
        });
        assert!(late.passing);
        assert!(
            late.message
                .starts_with("https://a.example/ sent nothing more for 30 seconds. Check the address"),
            "{}",
            late.message
        );
        let distrust = failure(&Error::Tls {
            url: "https://a.example/".to_owned(),
            reason: "the certificate of a.example has expired".to_owned(),
            problem: http::TlsProblem::Certificate,
        });
        let expected = "the request to https://a.example/ failed: the certificate of a.example has expired.";
        assert_eq!((&*distrust.message, distrust.passing), (expected, false));
    }
}
