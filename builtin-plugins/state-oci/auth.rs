//! Sources of identities, which sign requests: the key of a user, or a token with its key.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use monoform_sdk::{Diagnostic, Diagnostics, Result, env};
use store_client::oauth::now;
use store_client::profile::{self, UnreadableFile};

use crate::config::{Config, SUMMARY, text, variable};
use crate::federation::{Cluster, Machine};
use crate::identity::{Identity, problem};
use crate::key;
use crate::kind::Kind;
use crate::profile::{Profile, expanded, usual_file};
use crate::region::full_name;

/// Source of an identity, as the authentication method selects it.
pub(crate) enum Source {
    /// API key of a user.
    User(Identity),
    /// Token and key in files or variables. Another program renews them.
    Token {
        token: TextOrFile,
        key: TextOrFile,
        password: Option<TextOrFile>,
    },
    /// Certificate of an instance.
    Machine(Machine),
    /// Service account of a pod.
    Cluster(Cluster),
}

/// Reason why a token cannot be used.
#[derive(Debug, thiserror::Error)]
enum TokenError {
    #[error(transparent)]
    File(#[from] UnreadableFile),
    #[error(transparent)]
    Key(#[from] key::KeyError),
}

/// Text, or the path of a file with the text.
pub(crate) enum TextOrFile {
    Text(String),
    File(PathBuf),
}

impl TextOrFile {
    /// Reads the value of a variable for resource principals. It is a path if it begins with a slash.
    fn from_variable(value: String) -> TextOrFile {
        match value.starts_with('/') {
            true => TextOrFile::File(value.into()),
            false => TextOrFile::Text(value),
        }
    }

    pub fn read(&self) -> std::result::Result<String, UnreadableFile> {
        match self {
            TextOrFile::Text(text) => Ok(text.clone()),
            TextOrFile::File(path) => profile::text(path),
        }
    }
}

impl Source {
    /// Returns the source that the arguments and the environment select, and the region.
    pub fn from_config(config: &Config) -> Result<(Source, String)> {
        let region = text(&config.region, "region").map(|name| full_name(&name));
        let named = || {
            let detail = "The region of the bucket is missing: set the argument \"region\", or the environment variable OCI_region.";
            Diagnostics::from(Diagnostic::error(SUMMARY, detail).at_attribute("region"))
        };
        // `problems` has reported unknown names, so the default is never used for one.
        let kind = Kind::named(&text(&config.auth, "auth").unwrap_or_default()).unwrap_or(Kind::ApiKey);
        Ok(match kind {
            Kind::ApiKey => {
                let (source, found) = of_user(config)?;
                (source, region.or(found).ok_or_else(named)?)
            }
            Kind::SecurityToken => (of_session(config)?, region.ok_or_else(named)?),
            Kind::ResourcePrincipal => {
                let found = env::var("OCI_RESOURCE_PRINCIPAL_REGION").map(|name| full_name(&name));
                (of_resource()?, region.or(found).ok_or_else(named)?)
            }
            Kind::WorkloadIdentity => {
                let found = env::var("OCI_RESOURCE_PRINCIPAL_REGION").map(|name| full_name(&name));
                (
                    Source::Cluster(Cluster::of_environment()?),
                    region.or(found).ok_or_else(named)?,
                )
            }
            Kind::InstancePrincipal | Kind::InstancePrincipalWithCerts => {
                let region = region.ok_or_else(named)?;
                let own = kind == Kind::InstancePrincipalWithCerts;
                let folder = own.then(|| variable("test_certificates_location").unwrap_or_else(|| ".".to_owned()));
                (
                    Source::Machine(Machine::new(&region, folder.map(PathBuf::from))),
                    region,
                )
            }
        })
    }

    /// Returns an identity that is valid now.
    pub async fn find(&self) -> Result<Identity> {
        match self {
            Source::User(identity) => Ok(identity.clone()),
            Source::Token { token, key, password } => {
                // Token and key are read each time, because another program renews them.
                let read = || {
                    let password = password.as_ref().map(TextOrFile::read).transpose()?;
                    let password = password.as_deref().map(|text| text.trim_end_matches(['\n', '\r']));
                    Ok(Identity::of_token(&token.read()?, key::read(&key.read()?, password)?))
                };
                let found: std::result::Result<Identity, TokenError> = read();
                let identity = found.map_err(|why| problem(format!("The token cannot be used: {why}.")))?;
                // A token that expires soon is used nevertheless, because only the other program can renew it.
                match identity.ends.is_some_and(|end| end <= now()) {
                    true => Err(problem(
                        "The token has expired. Get a new one: \"oci session refresh\", or \"oci session authenticate\".",
                    )),
                    false => Ok(identity),
                }
            }
            Source::Machine(machine) => machine.identity().await,
            Source::Cluster(cluster) => cluster.identity().await,
        }
    }
}

/// Collects the API key of a user. Each part is taken from the arguments or their variables, or else from the configuration file, or else
/// from the older variables of Terraform's provider. Also returns the region, if the file or an older variable sets it.
fn of_user(config: &Config) -> Result<(Source, Option<String>)> {
    let file = usual_file();
    let profile = match text(&config.config_file_profile, "config_file_profile") {
        Some(name) => Profile::read(&file, &name)
            .map_err(|why| Diagnostic::error(SUMMARY, format!("{why}.")).at_attribute("config_file_profile"))?,
        // A missing file is an error only if the configuration names a profile.
        None => Profile::read_if_any(&file, "DEFAULT"),
    };
    let older = |name: &str| env::var(&format!("TF_VAR_{name}"));
    let part = |given: Option<String>, in_file: &str, name: &str| {
        let found = given.or_else(|| profile.get(in_file)).or_else(|| older(name));
        found.ok_or_else(|| {
            problem(format!(
                "There is no {name} to sign requests with: set the argument or the environment variable OCI_{name}, or run \"oci setup \
                 config\", which writes {}; or set \"auth\" where a machine or a program has an identity of its own.",
                file.display()
            ))
        })
    };
    let tenancy = part(text(&config.tenancy_ocid, "tenancy_ocid"), "tenancy", "tenancy_ocid")?;
    let user = part(text(&config.user_ocid, "user_ocid"), "user", "user_ocid")?;
    let fingerprint = part(text(&config.fingerprint, "fingerprint"), "fingerprint", "fingerprint")?;
    let password = text(&config.private_key_password, "private_key_password")
        .or_else(|| profile.get("pass_phrase"))
        .or_else(|| older("private_key_password"));
    let pem = match text(&config.private_key, "private_key") {
        Some(pem) => pem,
        None => {
            let given = text(&config.private_key_path, "private_key_path");
            let path = part(given, "key_file", "private_key_path")?;
            read_key(&expanded(&path))?
        }
    };
    let key = key::read(&pem, password.as_deref()).map_err(|why| {
        Diagnostic::error(
            "Invalid private key",
            format!("The key of the user cannot be used: {why}."),
        )
    })?;
    let identity = Identity {
        key_id: format!("{tenancy}/{user}/{fingerprint}"),
        key: Arc::new(key),
        ends: None,
    };
    let region = profile.get("region").or_else(|| older("region"));
    Ok((Source::User(identity), region.map(|name| full_name(&name))))
}

fn read_key(path: &Path) -> Result<String> {
    std::fs::read_to_string(path).map_err(|e| {
        let detail = format!("can not read private key from: '{}': {e}.", path.display());
        Diagnostic::error("Invalid private key", detail).into()
    })
}

/// Returns the source for the token of a session that the user has started with `oci session authenticate`.
fn of_session(config: &Config) -> Result<Source> {
    let name = text(&config.config_file_profile, "config_file_profile").unwrap_or_default();
    let wrong = |why: String| Diagnostic::error(SUMMARY, format!("{why}.")).at_attribute("config_file_profile");
    let profile = Profile::read(&usual_file(), &name).map_err(|e| wrong(e.to_string()))?;
    let part = |part: &str| {
        let found = profile.get(part);
        found.ok_or_else(|| {
            wrong(format!(
                "The profile {name:?} has no {part}, which \"oci session authenticate\" writes"
            ))
        })
    };
    let password = profile
        .get("pass_phrase")
        .or_else(|| text(&config.private_key_password, "private_key_password"));
    Ok(Source::Token {
        token: TextOrFile::File(expanded(&part("security_token_file")?)),
        key: TextOrFile::File(expanded(&part("key_file")?)),
        password: password.map(TextOrFile::Text),
    })
}

/// Returns the source for a resource principal: a token that an Oracle service provides to the programs that it runs.
fn of_resource() -> Result<Source> {
    let needed = |name: &str| {
        env::var(name).ok_or_else(|| {
            problem(format!(
                "can not create resource principal, environment variable: {name}, not present. Resource principals are there in some \
                 services of Oracle Cloud only."
            ))
        })
    };
    let version = needed("OCI_RESOURCE_PRINCIPAL_VERSION")?;
    if version != "2.2" {
        return Err(problem(format!(
            "can not create resource principal: the version {version:?} (OCI_RESOURCE_PRINCIPAL_VERSION) is not supported. Only 2.2 is, \
             where the service gives a token and a key. Others can use auth = \"InstancePrincipal\" or an API key."
        )));
    }
    Ok(Source::Token {
        token: TextOrFile::from_variable(needed("OCI_RESOURCE_PRINCIPAL_RPST")?),
        key: TextOrFile::from_variable(needed("OCI_RESOURCE_PRINCIPAL_PRIVATE_PEM")?),
        password: env::var("OCI_RESOURCE_PRINCIPAL_PRIVATE_PEM_PASSPHRASE").map(TextOrFile::from_variable),
    })
}
