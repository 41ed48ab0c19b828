//! The HTTP client of a run.

use files::Environment;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use http::{Error, Method, Proxy, Settings, StatusCode, Transport, Url};
use proxies::{Proxies, Way};
use tokio::sync::OnceCell;

use crate::credentials;
use crate::hosts::{CredentialsHelper, Host, HostSettings};
use crate::netrc::Netrc;
use crate::services::Services;
use crate::token::Token;

/// Time limit for establishing a connection. Within it the operating system sends the first packet three times.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The settings of a client.
#[derive(Clone, Debug, Default)]
pub struct NetSettings {
    pub environment: Environment,
    /// Settings of hosts in the CLI configuration.
    pub hosts: HostSettings,
    /// Directories of credentials helper programs.
    pub helper_dirs: Vec<PathBuf>,
    /// Version of Terraform that is sent to registries.
    pub terraform_version: String,
    /// Name and version of the program in the user agent, such as `Monoform/1.0.0`.
    pub product: String,
}

/// Returns the percent-decoded path of a URL; `None` if it is not UTF-8.
#[must_use]
pub fn decoded_path(url: &Url) -> Option<String> {
    let bytes = percent_encoding::percent_decode_str(url.path());
    bytes.decode_utf8().ok().map(Into::into)
}

/// Encodes names and values as the body of a form.
#[must_use]
pub fn form<'v>(pairs: impl IntoIterator<Item = (&'v str, &'v str)>) -> String {
    url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs(pairs)
        .finish()
}

/// A failed request that will be tried again.
#[derive(Clone, Debug)]
pub struct Retry {
    /// The result of the last try, as a sentence without a full stop.
    pub why: String,
    /// The pause before the next try.
    pub pause: Duration,
    /// The number of repetitions, including this one.
    pub attempt: u64,
    /// The maximum number of repetitions.
    pub of: u64,
}

/// A notice for a waiting user.
#[derive(Clone, Debug)]
pub enum Notice<'n> {
    /// A request has failed, and will be tried again.
    Retry(&'n Retry),
    /// A host has not answered for a while; reported once for each host.
    Waiting(&'n str),
    /// A credentials helper has failed, so requests to the host have no token; reported once for each host.
    NoCredentials(&'n Error),
}

/// Checks that a token can be sent in a header.
// If a token that cannot be sent were left out, the request would be refused without a visible reason.
fn sendable(token: &Token, host: &Host, source: &str) -> Result<Token, Error> {
    match credentials::unsendable_character(token.expose()) {
        None => Ok(token.clone()),
        Some(character) => Err(Error::Header {
            what: format!("the token for {host} in the {source}"),
            character,
        }),
    }
}

/// The client. Cheap to clone; nothing is prepared before the first request.
#[derive(Clone, Debug)]
pub struct Client(Arc<Inner>);

/// The receiver of notices.
type Report = Box<dyn Fn(Notice<'_>) + Send + Sync>;

/// The observer of requests.
type Watch = Box<dyn Fn(&Method, &Url) -> WatchedRequest + Send + Sync>;

/// Receiver of the status of an answer, or of the error.
pub type OnAnswer = Box<dyn FnOnce(Result<StatusCode, &Error>) + Send>;

/// A request that is observed.
pub struct WatchedRequest {
    /// Value of the header `traceparent`.
    pub traceparent: String,
    /// Called with the status of the answer, or the error. Not called if the request was abandoned.
    pub end: OnAnswer,
}

impl std::fmt::Debug for WatchedRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WatchedRequest").finish_non_exhaustive()
    }
}

struct Inner {
    settings: NetSettings,
    tokens: BTreeMap<Host, Token>,
    transport: Transport,
    netrc: OnceLock<Netrc>,
    report: Option<Report>,
    watch: Option<Watch>,
    slow: Mutex<BTreeSet<String>>,
    helped: Mutex<HashMap<Host, Arc<OnceCell<Option<Token>>>>>,
    pub(crate) services: Mutex<HashMap<Host, Arc<OnceCell<Services>>>>,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

impl Client {
    #[must_use]
    pub fn new(settings: NetSettings) -> Client {
        Client(Arc::new(Inner {
            tokens: credentials::from_environment(&settings.environment),
            transport: Transport::new(transport(&settings)),
            settings,
            netrc: OnceLock::new(),
            report: None,
            watch: None,
            slow: Mutex::default(),
            helped: Mutex::default(),
            services: Mutex::default(),
        }))
    }

    /// Creates a client that trusts the certificates of a test.
    #[cfg(test)]
    pub(crate) fn trusting(settings: NetSettings, tls: rustls::ClientConfig) -> Client {
        let mut client = Client::new(settings);
        if let Some(inner) = Arc::get_mut(&mut client.0) {
            inner.transport = Transport::new(Settings {
                tls: Some(tls),
                ..transport(&inner.settings)
            });
        }
        client
    }

    /// Sets the receiver of notices about repeated requests and silent hosts. Has no effect on a client that was
    /// cloned.
    #[must_use]
    pub fn reporting(mut self, report: impl Fn(Notice<'_>) + Send + Sync + 'static) -> Client {
        if let Some(inner) = Arc::get_mut(&mut self.0) {
            inner.report = Some(Box::new(report));
        }
        self
    }

    /// Sets the observer of requests. Has no effect on a client that was cloned.
    #[must_use]
    pub fn watched(mut self, watch: impl Fn(&Method, &Url) -> WatchedRequest + Send + Sync + 'static) -> Client {
        if let Some(inner) = Arc::get_mut(&mut self.0) {
            inner.watch = Some(Box::new(watch));
        }
        self
    }

    /// Tells the observer that a request is sent.
    pub(crate) fn watch(&self, method: &Method, url: &Url) -> Option<WatchedRequest> {
        self.0.watch.as_ref().map(|watch| watch(method, url))
    }

    /// Reports once that a host has not answered for a while.
    pub(crate) fn waiting(&self, host: &str) {
        let new = self
            .0
            .slow
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .insert(host.to_owned());
        if let Some(report) = self.0.report.as_ref().filter(|_| new) {
            report(Notice::Waiting(host));
        }
    }

    /// Reports a retry, and waits for the pause before it.
    pub async fn before_another_try(&self, retry: Retry) {
        tracing::debug!(why = retry.why, attempt = retry.attempt, "trying again");
        if let Some(report) = &self.0.report {
            report(Notice::Retry(&retry));
        }
        tokio::time::sleep(retry.pause).await;
    }

    #[must_use]
    pub fn settings(&self) -> &NetSettings {
        &self.0.settings
    }

    pub(crate) fn netrc(&self) -> &Netrc {
        self.0.netrc.get_or_init(|| Netrc::load(&self.0.settings.environment))
    }

    pub(crate) fn services_of(&self, host: &Host) -> Arc<OnceCell<Services>> {
        let mut all = self.0.services.lock().unwrap_or_else(PoisonError::into_inner);
        all.entry(host.clone()).or_default().clone()
    }

    /// Returns the token for a host; `None` if there is none. The failure of a credentials helper is reported, and counts as no token.
    ///
    /// # Errors
    /// Returns an error if the token has a character that cannot be sent.
    pub async fn token(&self, host: &Host) -> Result<Option<Token>, Error> {
        let settings = &self.0.settings;
        for (tokens, source) in [
            (&self.0.tokens, "environment"),
            (&settings.hosts.tokens, "CLI configuration"),
        ] {
            if let Some(token) = tokens.get(host) {
                return sendable(token, host, source).map(Some);
            }
        }
        let Some(helper) = &settings.hosts.helper else {
            return Ok(None);
        };
        let cell = {
            let mut all = self.0.helped.lock().unwrap_or_else(PoisonError::into_inner);
            all.entry(host.clone()).or_default().clone()
        };
        // The helper is started once for each host in a run, because a helper may ask the user.
        let asked = cell.get_or_init(async || {
            let answer = match self.helper_program(helper, host) {
                Ok(program) => credentials::ask_helper(helper, &program, host).await,
                Err(error) => Err(error),
            };
            // Only logged, because most requests of a command need no token.
            answer.unwrap_or_else(|error| {
                tracing::warn!(%error, "no token");
                if let Some(report) = &self.0.report {
                    report(Notice::NoCredentials(&error));
                }
                None
            })
        });
        match asked.await {
            Some(token) => sendable(token, host, "answer of the credentials helper").map(Some),
            None => Ok(None),
        }
    }

    fn helper_program(&self, helper: &CredentialsHelper, host: &Host) -> Result<PathBuf, Error> {
        let dirs = &self.0.settings.helper_dirs;
        credentials::find_helper(&helper.name, dirs).ok_or_else(|| {
            let dirs: Vec<String> = dirs.iter().map(|dir| dir.display().to_string()).collect();
            let what = format!(
                "there is no program terraform-credentials-{} in {}",
                helper.name,
                dirs.join(" or ")
            );
            credentials::helper_error(helper, host, &what)
        })
    }

    /// Stores the token of a host in a helper; `None` removes it.
    pub async fn change_in_helper(
        &self,
        helper: &CredentialsHelper,
        host: &Host,
        token: Option<&Token>,
    ) -> Result<(), Error> {
        let program = self.helper_program(helper, host)?;
        match token {
            Some(token) => credentials::store_in_helper(helper, &program, host, token).await,
            None => credentials::forget_in_helper(helper, &program, host).await,
        }
    }

    pub(crate) fn transport(&self) -> &Transport {
        &self.0.transport
    }

    /// Returns the route to the server of a URL: through a proxy of the environment, or directly.
    #[must_use]
    pub fn way(&self, url: &Url) -> Way<'_> {
        self.0.transport.way(url)
    }

    pub(crate) fn number(&self, variable: &str, default: u64) -> u64 {
        let value = self.0.settings.environment.get(variable);
        value.and_then(|v| v.trim().parse().ok()).unwrap_or(default)
    }
}

fn transport(settings: &NetSettings) -> Settings {
    let environment = &settings.environment;
    let mut agent = format!("Terraform/{} {}", settings.terraform_version, settings.product);
    if let Some(more) = environment.get("TF_APPEND_USER_AGENT").map(|v| v.trim()) {
        agent.push(' ');
        agent.push_str(more);
    }
    Settings {
        proxy: Proxy::Rules(Box::new(Proxies::from_variables(|name| {
            environment.get(name).map(str::to_owned)
        }))),
        connect_timeout: CONNECT_TIMEOUT,
        user_agent: agent.trim().to_owned(),
        ..Settings::default()
    }
}
