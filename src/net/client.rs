//! Requests: one client for a run.

use files::Environment;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use http::{Error, Proxy, Settings, Transport, Url};
use proxies::{Proxies, Way};
use tokio::sync::OnceCell;

use crate::credentials::{self, Token};
use crate::hosts::{CredentialsHelper, Host, HostSettings};
use crate::netrc::Netrc;
use crate::services::Services;

/// How long making a connection may take: the system repeats its first packet two times in this time.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// What a client must know.
#[derive(Clone, Debug, Default)]
pub struct NetSettings {
    /// The environment variables.
    pub environment: Environment,
    /// What the CLI configuration says about hosts.
    pub hosts: HostSettings,
    /// Where the program of a credentials helper may be.
    pub helper_dirs: Vec<PathBuf>,
    /// The version of Terraform we answer as; registries are told.
    pub terraform_version: String,
    /// Our name and version, `Monoform/1.0.0`; servers are told.
    pub product: String,
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

/// A request that is about to be tried again.
#[derive(Clone, Debug)]
pub struct Retry {
    /// What came of the last try: a sentence without its full stop.
    pub why: String,
    /// How long we wait before the next one.
    pub pause: Duration,
    /// How many tries there were again so far, this one included.
    pub attempt: u64,
    /// How many there may be.
    pub of: u64,
}

/// A notice for a user who waits.
#[derive(Clone, Debug)]
pub enum Notice<'n> {
    /// A request is about to be tried again.
    Retry(&'n Retry),
    /// A host has not answered for a while; reported once for each.
    Waiting(&'n str),
    /// A credentials helper has failed, so that its host is asked without a token; reported once for each.
    NoCredentials(&'n Error),
}

/// A token that can be sent in a header. One that cannot would be left out, and the request be refused for a reason that nobody sees.
fn sendable(token: &Token, host: &Host, source: &str) -> Result<Token, Error> {
    match credentials::unsendable_character(token.expose()) {
        None => Ok(token.clone()),
        Some(character) => Err(Error::Header {
            what: format!("the token for {host} in the {source}"),
            character,
        }),
    }
}

/// Makes requests. Cheap to clone; nothing is prepared before the first request.
#[derive(Clone, Debug)]
pub struct Client(Arc<Inner>);

/// What is called with each notice.
type Report = Box<dyn Fn(Notice<'_>) + Send + Sync>;

struct Inner {
    settings: NetSettings,
    tokens: BTreeMap<Host, Token>,
    transport: Transport,
    netrc: OnceLock<Netrc>,
    report: Option<Report>,
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
    /// A client with these settings.
    #[must_use]
    pub fn new(settings: NetSettings) -> Client {
        Client(Arc::new(Inner {
            tokens: credentials::from_environment(&settings.environment),
            transport: Transport::new(transport(&settings)),
            settings,
            netrc: OnceLock::new(),
            report: None,
            slow: Mutex::default(),
            helped: Mutex::default(),
            services: Mutex::default(),
        }))
    }

    /// A client that trusts whom a test says.
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

    /// The same, with a report of every request that is tried again, and of hosts that do not answer. For a client that was not
    /// cloned yet.
    #[must_use]
    pub fn reporting(mut self, report: impl Fn(Notice<'_>) + Send + Sync + 'static) -> Client {
        if let Some(inner) = Arc::get_mut(&mut self.0) {
            inner.report = Some(Box::new(report));
        }
        self
    }

    /// Reports that a host has not answered for a while, once.
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

    /// Waits before something is tried again, and tells.
    pub async fn before_another_try(&self, retry: Retry) {
        tracing::debug!(why = retry.why, attempt = retry.attempt, "trying again");
        if let Some(report) = &self.0.report {
            report(Notice::Retry(&retry));
        }
        tokio::time::sleep(retry.pause).await;
    }

    /// What this client was made with.
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

    /// The token for a host, if there is one. A helper that fails is reported, and there is no token then: most of what a command
    /// requests needs none.
    ///
    /// # Errors
    /// The token has a character that cannot be sent.
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
        let asked = cell.get_or_init(async || {
            let answer = match self.helper_program(helper, host) {
                Ok(program) => credentials::ask_helper(helper, &program, host).await,
                Err(error) => Err(error),
            };
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

    /// Gives a helper the token of a host to store; without one, has it forget what it has.
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

    /// The way to the server of an address: by a proxy of the environment, or directly.
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
