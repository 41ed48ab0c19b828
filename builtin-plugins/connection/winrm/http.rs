//! One HTTP connection to a WinRM service, with authentication. NTLM authenticates a connection instead of a request, so this module opens
//! connections itself, and does not use a client with a connection pool.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, USER_AGENT, WWW_AUTHENTICATE};
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;

use super::ntlm::{Challenge, Fresh, Who, negotiate};
use super::settings::Settings;
use super::tls;
use crate::ssh::proxy::tcp;
use crate::{Error, Result};

/// Length limit of a response body in bytes. The bodies of a real service are far shorter.
const LONGEST: usize = 4 * 1024 * 1024;

/// Time limit for a response, in addition to the operation timeout of the service.
const BEYOND: Duration = Duration::from_secs(30);

/// HTTP client of the service. It has at most one connection at a time.
pub struct Http {
    sender: Option<SendRequest<Full<Bytes>>>,
    settings: Settings,
}

impl Http {
    /// Creates a client, which connects with its first request.
    pub fn new(settings: &Settings) -> Http {
        Http {
            sender: None,
            settings: settings.clone(),
        }
    }

    /// Sends a message, and returns the status and the text of the response.
    pub async fn post(&mut self, message: String) -> Result<(StatusCode, String)> {
        let limit = self.settings.timeout + BEYOND;
        let answer = tokio::time::timeout(limit, self.exchange(message)).await;
        let result = answer.unwrap_or_else(|_| Err(Error::new("no answer from the WinRM service in time")));
        if result.is_err() {
            // The connection is dropped: a late response to this request could be read as the response to the next one.
            self.sender = None;
        }
        result
    }

    async fn exchange(&mut self, message: String) -> Result<(StatusCode, String)> {
        let is_new = self.connect().await?;
        let mut answer = if self.settings.ntlm {
            if is_new {
                self.log_in(&message).await?
            } else {
                self.send(None, &message).await?
            }
        } else {
            let credentials = format!("{}:{}", self.settings.user, self.settings.password);
            let credentials = format!("Basic {}", BASE64.encode(credentials));
            self.send(Some(credentials), &message).await?
        };
        if self.settings.ntlm && !is_new && answer.status() == StatusCode::UNAUTHORIZED {
            // A service may require authentication again at any time. The body is read because the connection is busy until then.
            text(answer).await?;
            answer = self.log_in(&message).await?;
        }
        let status = answer.status();
        let text = text(answer).await?;
        if status == StatusCode::UNAUTHORIZED {
            return Err(Error::new(
                "http response error: 401 - invalid content type: the WinRM service refused the user or the password, or this way \
                 to log in",
            ));
        }
        Ok((status, text))
    }

    /// Connects if there is no usable connection. Returns true if it connected.
    async fn connect(&mut self) -> Result<bool> {
        // The service may have closed an idle connection. The caller has to authenticate again on a new one.
        if let Some(sender) = &mut self.sender
            && sender.ready().await.is_ok()
        {
            return Ok(false);
        }
        let settings = &self.settings;
        let stream = tcp(&settings.host, settings.port).await?;
        let failed = |error: hyper::Error| Error::new(error.to_string());
        self.sender = Some(if settings.https {
            let name = ServerName::try_from(settings.host.clone())
                .map_err(|error| Error::fatal(format!("host is no name: {error}")))?;
            let connector = tokio_rustls::TlsConnector::from(Arc::new(tls::configuration(settings)?));
            let stream = connector.connect(name, stream).await.map_err(|error| {
                Error::new(format!(
                    "the connection to the WinRM service cannot be secured: {error}"
                ))
            })?;
            let (sender, connection) = handshake(TokioIo::new(stream)).await.map_err(failed)?;
            tokio::spawn(connection);
            sender
        } else {
            let (sender, connection) = handshake(TokioIo::new(stream)).await.map_err(failed)?;
            tokio::spawn(connection);
            sender
        });
        Ok(true)
    }

    /// Authenticates the connection by NTLM. The message is sent with the last step.
    async fn log_in(&mut self, message: &str) -> Result<Response<Incoming>> {
        // The first step has an empty body, since a server refuses messages before the connection is authenticated.
        let first = self
            .send(Some(format!("Negotiate {}", BASE64.encode(negotiate()))), "")
            .await?;
        let status = first.status();
        let offered = first.headers().get_all(WWW_AUTHENTICATE);
        let challenge = offered.iter().find_map(|value| {
            let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
            let known = scheme.eq_ignore_ascii_case("Negotiate") || scheme.eq_ignore_ascii_case("NTLM");
            let token = known.then(|| BASE64.decode(token.trim()).ok())??;
            Some((scheme.to_owned(), token))
        });
        text(first).await?;
        let Some((scheme, token)) = challenge else {
            return Err(Error::new(format!(
                "the WinRM service does not let NTLM log in (status {status})"
            )));
        };
        let challenge = Challenge::read(&token)?;
        let fresh = Fresh {
            nonce: rand::random(),
            // The time of the challenge is preferred: the server compares the time with its own clock.
            time: challenge.time().unwrap_or_else(windows_time),
        };
        let who = Who::new(&self.settings.user, &self.settings.password);
        let answer = BASE64.encode(challenge.answer(who, &fresh));
        self.send(Some(format!("{scheme} {answer}")), message).await
    }

    async fn send(&mut self, authorization: Option<String>, message: &str) -> Result<Response<Incoming>> {
        let settings = &self.settings;
        let mut request = Request::post("/wsman")
            .header(HOST, settings.address())
            .header(CONTENT_TYPE, "application/soap+xml;charset=UTF-8")
            .header(USER_AGENT, "WinRM client");
        if let Some(value) = authorization {
            request = request.header(AUTHORIZATION, value);
        }
        let request = request
            .body(Full::new(Bytes::from(message.to_owned())))
            .map_err(|error| Error::fatal(error.to_string()))?;
        let sender = self
            .sender
            .as_mut()
            .ok_or_else(|| Error::new("the connection to the WinRM service was lost"))?;
        let lost = |error: hyper::Error| Error::new(format!("the connection to the WinRM service was lost: {error}"));
        sender.ready().await.map_err(lost)?;
        sender.send_request(request).await.map_err(lost)
    }
}

async fn text(answer: Response<Incoming>) -> Result<String> {
    let body = Limited::new(answer.into_body(), LONGEST)
        .collect()
        .await
        .map_err(|error| Error::new(format!("the WinRM service's answer cannot be read: {error}")))?;
    Ok(String::from_utf8_lossy(&body.to_bytes()).into_owned())
}

/// Returns the time in the unit of Windows: intervals of 100 ns since 1601.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place where this crate reads the clock"
)]
fn windows_time() -> u64 {
    let since = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    let tenths = since.as_nanos() / 100 + 116_444_736_000_000_000;
    u64::try_from(tenths).unwrap_or(u64::MAX)
}
