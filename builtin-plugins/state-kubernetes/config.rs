//! Arguments of the backend, and defaults from the environment.

use std::collections::BTreeMap;
use std::path::PathBuf;

use monoform_sdk::schema::{block, optional, required};
use monoform_sdk::{Attr, Diagnostic, Diagnostics, Model, Result, env};
use store_client::arguments;
use store_client::oauth::bearer;
use store_client::{HeaderName, HeaderValue};

use crate::exec::Exec;
use crate::kubeconfig::{self, Access, Choice};
use crate::session::Sessions;

/// The arguments of the block.
#[derive(Clone, Default, Model)]
pub struct Config {
    /// The suffix of the names of the secrets.
    #[member(required())]
    pub secret_suffix: Attr<String>,
    /// Additional labels of the secrets.
    #[member(optional())]
    pub labels: Attr<BTreeMap<String, Attr<String>>>,
    /// The namespace of the secrets.
    #[member(optional())]
    pub namespace: Attr<String>,
    /// If true, the service account of the pod is used.
    #[member(optional())]
    pub in_cluster_config: Attr<bool>,
    /// Accepted, and without effect, as in Terraform.
    #[member(optional())]
    pub load_config_file: Attr<bool>,
    /// If true, the certificate of the API server is not verified.
    #[member(optional())]
    pub insecure: Attr<bool>,
    /// Paths of kubeconfig files.
    #[member(optional())]
    pub config_paths: Attr<Vec<Attr<String>>>,
    /// URL of the Kubernetes API server.
    #[member(optional())]
    pub host: Attr<String>,
    /// The user name for basic authentication.
    #[member(optional())]
    pub username: Attr<String>,
    /// The password for basic authentication.
    #[member(optional())]
    pub password: Attr<String>,
    /// The client certificate, as PEM text.
    #[member(optional())]
    pub client_certificate: Attr<String>,
    /// The private key of the client certificate, as PEM text.
    #[member(optional())]
    pub client_key: Attr<String>,
    /// CA certificates, as PEM text, that verify the certificate of the API server.
    #[member(optional())]
    pub cluster_ca_certificate: Attr<String>,
    /// Path of the kubeconfig file.
    #[member(optional())]
    pub config_path: Attr<String>,
    /// The context in the kubeconfig files.
    #[member(optional())]
    pub config_context: Attr<String>,
    /// The user in the kubeconfig files.
    #[member(optional())]
    pub config_context_auth_info: Attr<String>,
    /// The cluster in the kubeconfig files.
    #[member(optional())]
    pub config_context_cluster: Attr<String>,
    /// The bearer token of a service account or user.
    #[member(optional())]
    pub token: Attr<String>,
    /// URL of the proxy for requests to the API server.
    #[member(optional())]
    pub proxy_url: Attr<String>,
    /// A credential plugin: a program that prints credentials for the API server.
    #[member(block())]
    pub exec: Attr<ExecBlock>,
}

/// A credential plugin: a program that prints credentials for the API server.
#[derive(Clone, Default, Model)]
pub struct ExecBlock {
    /// The API version of the credentials that the program prints.
    #[member(required())]
    pub api_version: Attr<String>,
    /// The name or path of the program.
    #[member(required())]
    pub command: Attr<String>,
    /// Environment variables of the program.
    #[member(optional())]
    pub env: Attr<BTreeMap<String, Attr<String>>>,
    /// Arguments of the program.
    #[member(optional())]
    pub args: Attr<Vec<Attr<String>>>,
}

/// Effective settings of the client.
pub(crate) struct Settings {
    pub suffix: String,
    pub namespace: String,
    pub labels: BTreeMap<String, String>,
    pub sessions: Sessions,
}

const SUMMARY: &str = "Invalid kubernetes backend configuration";

/// Directory in a pod with the credentials of its service account.
const SERVICE_ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

fn problem(attribute: &str, detail: impl Into<String>) -> Diagnostic {
    Diagnostic::error(SUMMARY, detail).at_attribute(attribute)
}

/// Returns the text of an argument, or else of a variable.
fn text(value: &Attr<String>, variable: &str) -> Option<String> {
    arguments::text(value, &[variable])
}

fn flag(attribute: &str, value: &Attr<bool>, variable: &str) -> Result<bool> {
    if let Some(value) = value.known() {
        return Ok(*value);
    }
    let Some(text) = env::var(variable) else {
        return Ok(false);
    };
    gotext::boolean(&text).ok_or_else(|| {
        let detail = format!("The environment variable {variable} must be true or false, and is {text:?}.");
        problem(attribute, detail).into()
    })
}

fn map(value: &Attr<BTreeMap<String, Attr<String>>>) -> BTreeMap<String, String> {
    let entries = value.known().into_iter().flatten();
    entries
        .map(|(name, value)| (name.clone(), value.text().to_owned()))
        .collect()
}

/// Returns true if the name ends in a hyphen and a number, which the names of the parts of large states do.
fn ends_with_number(name: &str) -> bool {
    name.rsplit_once('-').is_some_and(|(_, end)| end.parse::<i64>().is_ok())
}

impl Config {
    /// Returns the errors in the arguments that can be found without a request.
    pub(crate) fn problems(&self) -> Diagnostics {
        let mut found = Diagnostics::new();
        let Some(suffix) = self.secret_suffix.as_str() else {
            return found;
        };
        if ends_with_number(suffix) {
            let detail = format!(
                "secret_suffix must not end with '-<number>', got {suffix:?}: the parts of large states are secrets with such names."
            );
            found.push(problem("secret_suffix", detail));
        }
        found
    }

    /// Returns the effective settings from the arguments and the environment.
    pub(crate) fn settings(&self) -> Result<Settings> {
        let access = match flag("in_cluster_config", &self.in_cluster_config, "KUBE_IN_CLUSTER_CONFIG")? {
            true => in_cluster()?,
            false => self.of_files()?,
        };
        let access = self.overridden(access)?;
        if access.server.is_empty() {
            let detail = "The backend does not say where the cluster is: set config_path (or KUBE_CONFIG_PATH) to the file that \
                          kubectl uses, which is usually \"~/.kube/config\", or host (or KUBE_HOST), or, in a pod, \
                          in_cluster_config = true.";
            return Err(problem("config_path", detail).into());
        }
        for (name, value) in &access.instead {
            let fits = HeaderName::from_bytes(name.as_bytes()).is_ok() && HeaderValue::from_str(value).is_ok();
            if !fits {
                let detail = format!("The user in the files takes a place that no header can say: {name}.");
                return Err(problem("config_path", detail).into());
            }
        }
        if access.token.as_deref().is_some_and(|token| bearer(token).is_none()) {
            return Err(problem("token", "The token has characters that HTTP headers cannot have.").into());
        }
        Ok(Settings {
            suffix: self.secret_suffix.text().to_owned(),
            namespace: text(&self.namespace, "KUBE_NAMESPACE").unwrap_or_else(|| "default".to_owned()),
            labels: map(&self.labels),
            sessions: Sessions::new(access),
        })
    }

    fn paths(&self) -> Vec<PathBuf> {
        if let Some(path) = text(&self.config_path, "KUBE_CONFIG_PATH") {
            return vec![env::expand_home(&path)];
        }
        if let Some(paths) = self.config_paths.known() {
            return paths.iter().map(|path| env::expand_home(path.text())).collect();
        }
        let paths = env::var("KUBE_CONFIG_PATHS").unwrap_or_default();
        let separated = paths.split(if system::Os::CURRENT == system::Os::Windows {
            ';'
        } else {
            ':'
        });
        separated
            .filter(|path| !path.is_empty())
            .map(env::expand_home)
            .collect()
    }

    fn of_files(&self) -> Result<Access> {
        let choice = Choice {
            context: text(&self.config_context, "KUBE_CTX"),
            user: text(&self.config_context_auth_info, "KUBE_CTX_AUTH_INFO"),
            cluster: text(&self.config_context_cluster, "KUBE_CTX_CLUSTER"),
        };
        let access = kubeconfig::read(&self.paths(), &choice).map_err(|why| {
            problem(
                "config_path",
                format!("Failed to initialize kubernetes configuration: {why}."),
            )
        })?;
        // If nothing else is configured, a program in a pod uses the pod's service account.
        let is_elsewhere = !access.server.is_empty() || text(&self.host, "KUBE_HOST").is_some();
        match is_elsewhere || env::var("KUBERNETES_SERVICE_HOST").is_none() {
            true => Ok(access),
            false => in_cluster(),
        }
    }

    /// Applies the arguments and variables that override the files or the service account.
    fn overridden(&self, mut access: Access) -> Result<Access> {
        let set = |part: &mut Option<String>, value: &Attr<String>, variable: &str| {
            if let Some(text) = text(value, variable) {
                *part = Some(text);
            }
        };
        if let Some(host) = text(&self.host, "KUBE_HOST") {
            access.server = host;
        }
        access.insecure |= flag("insecure", &self.insecure, "KUBE_INSECURE")?;
        set(
            &mut access.authorities,
            &self.cluster_ca_certificate,
            "KUBE_CLUSTER_CA_CERT_DATA",
        );
        if !access.server.is_empty() && !access.server.contains("://") {
            // As in Terraform, a host without a scheme is reached by https if there is any TLS setting.
            let certificate =
                access.certificate.is_some() || text(&self.client_certificate, "KUBE_CLIENT_CERT_DATA").is_some();
            let is_tls = access.authorities.is_some() || certificate || access.insecure;
            access.server = format!("{}://{}", if is_tls { "https" } else { "http" }, access.server);
        }
        // Without TLS, the credentials from the files are dropped, and only those from the arguments and variables (below) are used.
        if access.server.to_ascii_lowercase().starts_with("http://") {
            tracing::warn!(
                "the user of the file is not used: the connection to {} is not safe",
                access.server
            );
            access.without_user();
        }
        set(&mut access.username, &self.username, "KUBE_USER");
        set(&mut access.password, &self.password, "KUBE_PASSWORD");
        set(
            &mut access.certificate,
            &self.client_certificate,
            "KUBE_CLIENT_CERT_DATA",
        );
        set(&mut access.key, &self.client_key, "KUBE_CLIENT_KEY_DATA");
        set(&mut access.proxy, &self.proxy_url, "KUBE_PROXY_URL");
        if let Some(token) = text(&self.token, "KUBE_TOKEN") {
            (access.token, access.token_file) = (Some(token), None);
        }
        if let Some(exec) = self.exec.known() {
            access.exec = Some(Exec {
                api_version: exec.api_version.text().to_owned(),
                command: exec.command.text().into(),
                args: exec
                    .args
                    .known()
                    .into_iter()
                    .flatten()
                    .map(|a| a.text().to_owned())
                    .collect(),
                env: map(&exec.env).into_iter().collect(),
                hint: String::new(),
                with_cluster: false,
            });
        }
        Ok(access)
    }
}

/// Returns the access settings for a program in a pod to its own cluster.
fn in_cluster() -> Result<Access> {
    let attribute = "in_cluster_config";
    let (Some(host), Some(port)) = (env::var("KUBERNETES_SERVICE_HOST"), env::var("KUBERNETES_SERVICE_PORT")) else {
        let detail = "unable to load in-cluster configuration, KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT must be defined: \
                      in_cluster_config is for pods of the cluster.";
        return Err(problem(attribute, detail).into());
    };
    let file = |name: &str| format!("{SERVICE_ACCOUNT}/{name}");
    let authorities = std::fs::read_to_string(file("ca.crt"))
        .map_err(|e| problem(attribute, format!("{} cannot be read: {e}.", file("ca.crt"))))?;
    let host = if host.contains(':') { format!("[{host}]") } else { host };
    Ok(Access {
        server: format!("https://{host}:{port}"),
        authorities: Some(authorities),
        // Kubernetes replaces the token while the pod runs, so the file is read again for each session.
        token_file: Some(file("token").into()),
        ..Access::default()
    })
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn credentials_of_files_are_not_sent_to_a_host_without_tls() {
        let of_files = Access {
            server: "https://cluster".into(),
            token: Some("secret".into()),
            ..Access::default()
        };
        let access = |host: &str| {
            let config = Config {
                host: Attr::Known(host.into()),
                username: Attr::Known("me".into()),
                ..Config::default()
            };
            config.overridden(of_files.clone()).unwrap()
        };
        for host in ["http://other", "HTTP://other", "other"] {
            let access = access(host);
            // Credentials from arguments are used even without TLS.
            assert_eq!((access.token, access.username.as_deref()), (None, Some("me")), "{host}");
        }
        assert_eq!(access("https://other").token.as_deref(), Some("secret"));
    }

    #[test]
    fn suffixes_that_parts_have_are_refused() {
        assert!(ends_with_number("a-1") && ends_with_number("-0"));
        assert!(!ends_with_number("a1") && !ends_with_number("a-1b") && !ends_with_number("1"));
    }
}
