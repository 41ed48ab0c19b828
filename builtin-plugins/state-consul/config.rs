//! Arguments of the backend, and defaults from the environment variables of the Consul CLI.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use monoform_sdk::schema::{optional, required};
use monoform_sdk::{Attr, Diagnostic, Diagnostics, Model, Result, env};
use store_client::{Answer, HeaderMap, HeaderValue, HttpClient, Retries, Settings as HttpSettings, Tls, Url};

use crate::kv::Kv;

/// The arguments of the block.
#[derive(Clone, Default, Model)]
pub struct Config {
    /// Path of the state in the key-value store.
    #[member(required())]
    pub path: Attr<String>,
    /// The ACL token.
    #[member(optional())]
    pub access_token: Attr<String>,
    /// Address of the Consul agent: host and port.
    #[member(optional())]
    pub address: Attr<String>,
    /// The protocol: http or https.
    #[member(optional())]
    pub scheme: Attr<String>,
    /// The datacenter; that of the agent by default.
    #[member(optional())]
    pub datacenter: Attr<String>,
    /// Credentials for HTTP basic authentication: `user` or `user:password`.
    #[member(optional())]
    pub http_auth: Attr<String>,
    /// If true, states are compressed with gzip.
    #[member(optional())]
    pub gzip: Attr<bool>,
    /// If false, states are not locked.
    #[member(optional())]
    pub lock: Attr<bool>,
    /// Path of a PEM file with the CA certificates that verify the agent's certificate.
    #[member(optional())]
    pub ca_file: Attr<String>,
    /// Path of a PEM file with the client certificate.
    #[member(optional())]
    pub cert_file: Attr<String>,
    /// Path of a PEM file with the private key of the client certificate.
    #[member(optional())]
    pub key_file: Attr<String>,
}

/// Effective settings of the client.
pub(crate) struct Settings {
    pub path: String,
    pub gzip: bool,
    pub lock: bool,
    pub kv: Arc<Kv>,
}

const SUMMARY: &str = "Invalid consul backend configuration";

fn problem(attribute: &str, detail: impl Into<String>) -> Diagnostic {
    Diagnostic::error(SUMMARY, detail).at_attribute(attribute)
}

fn text(value: &Attr<String>) -> Option<String> {
    value.known().filter(|text| !text.is_empty()).cloned()
}

fn flag(attribute: &str, variable: &str) -> Result<Option<bool>> {
    match env::var(variable).as_deref() {
        None => Ok(None),
        Some("1" | "t" | "T" | "true" | "TRUE" | "True") => Ok(Some(true)),
        Some("0" | "f" | "F" | "false" | "FALSE" | "False") => Ok(Some(false)),
        Some(other) => {
            let detail = format!("The environment variable {variable} must be true or false, and is {other:?}.");
            Err(problem(attribute, detail).into())
        }
    }
}

fn file(attribute: &str, path: &str) -> Result<String> {
    std::fs::read_to_string(env::expand_home(path)).map_err(|e| {
        problem(
            attribute,
            format!("The file {path:?} of {attribute} cannot be read: {e}."),
        )
        .into()
    })
}

/// Returns true if a request with this answer is sent again: the cluster is electing a leader, or the agent is overloaded.
fn again(answer: &Answer) -> bool {
    // Consul also uses status 500 for a value that is too large, for which another attempt is useless.
    matches!(answer.status.as_u16(), 429 | 500 | 502..=504) && !answer.text().contains("too large")
}

/// Address of the agent.
struct AgentAddress {
    base: Url,
    socket: Option<PathBuf>,
}

impl Config {
    /// Returns the errors in the arguments that can be found without a request.
    pub(crate) fn problems(&self) -> Diagnostics {
        let mut found = Diagnostics::new();
        if self.path.as_str() == Some("") {
            found.push(problem("path", "The key of the state must not be empty."));
        }
        found
    }

    /// Returns the effective settings from the arguments and the environment.
    pub(crate) fn settings(&self) -> Result<Settings> {
        let AgentAddress { base, socket } = self.place()?;
        let http = HttpClient::new(HttpSettings {
            tls: self.tls()?,
            retries: Retries {
                max: 4,
                wait_min: Duration::from_millis(500),
                wait_max: Duration::from_secs(8),
                again,
            },
            unix_socket: socket,
            ..HttpSettings::default()
        })
        .map_err(|e| {
            problem(
                "ca_file",
                format!("The certificates of the backend cannot be used: {e}."),
            )
        })?;
        let mut query = Vec::new();
        let parameters = [
            ("dc", text(&self.datacenter)),
            ("ns", env::var("CONSUL_NAMESPACE")),
            ("partition", env::var("CONSUL_PARTITION")),
        ];
        for (name, value) in parameters {
            query.extend(value.map(|value| (name, value)));
        }
        Ok(Settings {
            path: self.path.text().trim_start_matches('/').to_owned(),
            gzip: self.gzip.known() == Some(&true),
            lock: self.lock.known() != Some(&false),
            kv: Arc::new(Kv::new(http, base, self.headers()?, query)),
        })
    }

    fn place(&self) -> Result<AgentAddress> {
        let attribute = "address";
        let address = text(&self.address)
            .or_else(|| env::var("CONSUL_HTTP_ADDR"))
            .unwrap_or_else(|| "127.0.0.1:8500".to_owned());
        let mut scheme = match text(&self.scheme) {
            Some(scheme) => scheme,
            None if flag("scheme", "CONSUL_HTTP_SSL")? == Some(true) => "https".to_owned(),
            None => "http".to_owned(),
        };
        if !matches!(scheme.as_str(), "http" | "https") {
            return Err(problem("scheme", format!("scheme must be http or https, and is {scheme:?}.")).into());
        }
        let mut socket = None;
        let rest = match address.split_once("://") {
            None | Some(("http", _)) => address.strip_prefix("http://").unwrap_or(&address),
            Some(("https", rest)) => {
                // As in the Consul CLI, a scheme in the address overrides the argument.
                "https".clone_into(&mut scheme);
                rest
            }
            Some(("unix", path)) => {
                socket = Some(PathBuf::from(path));
                "localhost"
            }
            Some((other, _)) => {
                let detail = format!("Unknown protocol scheme: {other}. There are: http, https, unix.");
                return Err(problem(attribute, detail).into());
            }
        };
        let base = Url::parse(&format!("{scheme}://{}/", rest.trim_end_matches('/')));
        let base = base.map_err(|e| problem(attribute, format!("{address:?} is not where an agent can be: {e}.")))?;
        Ok(AgentAddress { base, socket })
    }

    fn headers(&self) -> Result<HeaderMap> {
        let mut headers = HeaderMap::new();
        let token = match text(&self.access_token).or_else(|| env::var("CONSUL_HTTP_TOKEN")) {
            Some(token) => Some(token),
            None => match env::var("CONSUL_HTTP_TOKEN_FILE") {
                Some(path) => Some(file("access_token", &path)?.trim().to_owned()).filter(|token| !token.is_empty()),
                None => None,
            },
        };
        let secret = |attribute: &str, value: &str| -> Result<HeaderValue> {
            let mut value = HeaderValue::from_str(value).map_err(|_| {
                problem(
                    attribute,
                    format!("{attribute} has characters that HTTP headers cannot have."),
                )
            })?;
            value.set_sensitive(true);
            Ok(value)
        };
        if let Some(token) = token {
            headers.insert("x-consul-token", secret("access_token", &token)?);
        }
        if let Some(login) = text(&self.http_auth).or_else(|| env::var("CONSUL_HTTP_AUTH")) {
            // CONSUL_HTTP_AUTH may contain a user name without a password.
            let complete = match login.contains(':') {
                true => login,
                false => format!("{login}:"),
            };
            headers.insert(
                "authorization",
                secret("http_auth", &format!("Basic {}", BASE64.encode(complete)))?,
            );
        }
        Ok(headers)
    }

    fn tls(&self) -> Result<Tls> {
        let path = |value: &Attr<String>, variable: &str| text(value).or_else(|| env::var(variable));
        let mut authorities = match path(&self.ca_file, "CONSUL_CACERT") {
            Some(path) => Some(file("ca_file", &path)?),
            None => None,
        };
        // A single file takes precedence over a directory.
        if authorities.is_none()
            && let Some(folder) = env::var("CONSUL_CAPATH")
        {
            authorities = Some(all_files(&folder)?);
        }
        let certificate = path(&self.cert_file, "CONSUL_CLIENT_CERT");
        let key = path(&self.key_file, "CONSUL_CLIENT_KEY");
        let client = match (certificate, key) {
            (Some(certificate), Some(key)) => Some((file("cert_file", &certificate)?, file("key_file", &key)?)),
            (None, None) => None,
            (certificate, _) => {
                let (given, missing) = match certificate {
                    Some(_) => ("cert_file", "key_file"),
                    None => ("key_file", "cert_file"),
                };
                let detail = format!("{given} is set, and {missing} is not. A certificate and its key go together.");
                return Err(problem(missing, detail).into());
            }
        };
        Ok(Tls {
            authorities,
            client,
            insecure: flag("scheme", "CONSUL_HTTP_SSL_VERIFY")? == Some(false),
            server_name: env::var("CONSUL_TLS_SERVER_NAME"),
            ..Tls::default()
        })
    }
}

/// Returns the content of all files in a directory.
fn all_files(folder: &str) -> Result<String> {
    let failed = |e: std::io::Error| {
        let detail = format!("The certificates in {folder:?} (CONSUL_CAPATH) cannot be read: {e}.");
        Diagnostics::from(problem("ca_file", detail))
    };
    let mut all = String::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_file() {
            all.push_str(&String::from_utf8_lossy(&std::fs::read(&path).map_err(failed)?));
            all.push('\n');
        }
    }
    Ok(all)
}
