//! HTTP client of the stores: requests with retries and redirects, responses read as a whole.

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
    /// Limit of one request including its response; unlimited by default.
    pub timeout: Option<Duration>,
    /// Limit of connecting, if it is not [`http::rules::CONNECT_TIMEOUT`].
    pub connect_timeout: Option<Duration>,
    pub follow_redirects: bool,
    /// Defaults to name and version of the program.
    pub user_agent: Option<String>,
    /// Socket of this machine that all requests go to, whatever their addresses.
    pub unix_socket: Option<PathBuf>,
    /// Limit of a response body in bytes.
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
    /// The proxies of the environment (`HTTPS_PROXY` and the like). Servers on this machine are reached directly.
    #[default]
    Environment,
    /// No proxy.
    None,
    /// This proxy for all servers.
    Always(String),
    /// Proxies for each scheme; an absent one comes from the environment.
    Custom {
        /// Proxy for addresses with `http`.
        http: Option<String>,
        /// Proxy for addresses with `https`.
        https: Option<String>,
        /// Servers that are reached directly, as in `NO_PROXY`.
        except: Option<String>,
    },
}

/// Number of retries, and the waits before them.
#[derive(Clone, Copy, Debug)]
pub struct Retries {
    /// Number of retries after the first attempt.
    pub max: u32,
    /// Wait before the first retry; it doubles before each further one.
    pub wait_min: Duration,
    /// Upper limit of the wait.
    pub wait_max: Duration,
    /// Returns true if an answer calls for a retry.
    pub again: fn(&Answer) -> bool,
}

impl Retries {
    /// Returns the wait before a retry: the one that the server requests (`Retry-After`), else an exponential one.
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

/// Response of a server, whatever its status.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl Answer {
    /// Returns the value of a header if it is text.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// Describes the answer to a request in a sentence, with the code and the message of the server if there are any, and
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

/// Failure of a request: no answer, or no usable one after all retries.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{message}")]
pub struct Failure {
    /// Complete sentences, with advice.
    pub message: String,
    /// True if another attempt may succeed.
    pub passing: bool,
}

impl Failure {
    /// Returns the message without its full stop, as a part of a sentence.
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

/// Parts of a signed request: method, address, headers, body.
pub type SignedRequest = (Method, Url, HeaderMap, Option<Bytes>);

impl HttpClient {
    /// Creates a client; certificates are parsed here.
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

    /// Sends a request until an answer needs no retry or the attempts are used up.
    ///
    /// # Errors
    /// No attempt got such an answer.
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

    /// Sends a request that is built again for each attempt, because its signature contains the time.
    ///
    /// # Errors
    /// A request could not be made, or no attempt got an answer that needs no retry.
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
                // Without retries, the store explains the answer itself; an error "after one attempt" would only hide
                // the status.
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

    /// Sends a request once and follows redirects.
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
            // The limit keeps a wrong or hostile server from filling the memory.
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

/// Awaits a server, and reports its host to the user if that takes long.
pub async fn waiting<T>(host: &str, work: impl Future<Output = T>) -> T {
    patient(|| report_waiting(host), work).await
}

/// Converts text to the value of a header.
///
/// # Errors
/// The text has characters that no header can have.
pub fn header_value(text: &str) -> Result<HeaderValue, Failure> {
    HeaderValue::from_str(text).map_err(|_| Failure {
        message: "a header of the request has characters that it cannot have".to_owned(),
        passing: false,
    })
}

/// Returns the first line of the body of an error, at most 300 characters.
fn text_excerpt(answer: &Answer) -> String {
    match answer.text().trim().lines().next() {
        Some(line) if !line.is_empty() => format!(": {}", line.chars().take(300).collect::<String>()),
        _ => String::new(),
    }
}

/// Converts an error of the transport.
fn failure(error: &Error) -> Failure {
    // Unlike for registries, a timeout is retried here: a registry has mirrors, a state has no other location.
    let is_late = matches!(error, Error::Timeout { .. });
    let advice = if is_late {
        " Check the address, the network of this machine and its firewalls, and whether a proxy is needed (HTTPS_PROXY)."
    } else {
        ""
    };
    let passing = is_late || error.worth_another_try();
    // The error after the last repetition names the address anyway.
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
