//! Sources of credentials: arguments, environment, profiles, and roles that are assumed with their credentials.

use std::time::Duration;

use http::aws::Credential;
use monoform_sdk::{Result, env};
use store_client::HttpClient;
use tokio::sync::Mutex;

use super::credential::{credential, problem};
use super::files::Files;
use super::machine;
use super::profile::{self, Places};
use super::sts::{self, Role};
use crate::config::{AssumeRole, Config, WebIdentity, list, text};
use crate::services::Services;

/// Time before their expiry at which credentials count as expired.
const HEADROOM: Duration = Duration::from_secs(300);

/// Sources of credentials: arguments, the environment, a profile, the machine, and the roles to assume.
#[derive(Clone)]
pub(crate) struct Sources {
    fixed: Option<Credential>,
    profile: Option<String>,
    places: Places,
    role: Option<Role>,
    web_identity: Option<(Role, sts::Token)>,
}

impl Sources {
    /// Collects the sources from the arguments and the environment.
    pub fn new(config: &Config) -> Result<Sources> {
        let (access, secret, token) = (text(&config.access_key), text(&config.secret_key), text(&config.token));
        let fixed = match (&access, &secret, &token) {
            (None, None, None) => None,
            (Some(access), Some(secret), _) => Some(credential(access, secret, token.as_deref(), None)),
            _ => {
                return Err(problem(
                    "access_key and secret_key go together: one of them is set in the backend, and the other is not.",
                ));
            }
        };
        let profile = text(&config.profile);
        if profile.is_some() && env::var("AWS_ACCESS_KEY_ID").is_some() {
            tracing::warn!("the backend names a profile, so AWS_ACCESS_KEY_ID in the environment is not used");
        }
        let web_identity = config.assume_role_with_web_identity.known().map(|role| {
            let token = match text(&role.web_identity_token) {
                Some(token) => sts::Token::Text(token),
                None => sts::Token::File(role.web_identity_token_file.text().to_owned()),
            };
            (of_web_identity(role), token)
        });
        let endpoint = text(&config.ec2_metadata_service_endpoint)
            .or_else(|| env::first(&["AWS_EC2_METADATA_SERVICE_ENDPOINT", "AWS_METADATA_URL"]));
        let mode = text(&config.ec2_metadata_service_endpoint_mode)
            .or_else(|| env::var("AWS_EC2_METADATA_SERVICE_ENDPOINT_MODE"));
        let disabled = match config.skip_metadata_api_check.known() {
            Some(skip) => *skip,
            None => env::var("AWS_EC2_METADATA_DISABLED").is_some_and(|text| text.eq_ignore_ascii_case("true")),
        };
        // Default addresses of the instance metadata service, which are link-local.
        let usual = match mode.as_deref() {
            Some(mode) if mode.eq_ignore_ascii_case("ipv6") => "http://[fd00:ec2::254]",
            _ => "http://169.254.169.254",
        };
        Ok(Sources {
            fixed,
            profile,
            places: Places {
                files: Files::from_config(config),
                machine: machine::Settings {
                    endpoint: endpoint.unwrap_or_else(|| usual.to_owned()),
                    disabled,
                },
            },
            role: config.assume_role.known().map(of_role),
            web_identity,
        })
    }

    /// Finds credentials in the sources, and assumes the role with them if one is set.
    async fn find(&self, http: &HttpClient, services: &Services) -> Result<Credential> {
        let base = match &self.web_identity {
            _ if self.fixed.is_some() => self.fixed.clone().unwrap_or_default(),
            Some((role, token)) => sts::assume_with_token(http, services, role, token).await?,
            None => self.base(http, services).await?,
        };
        match &self.role {
            Some(role) => sts::assume(http, services, &base, role).await,
            None => Ok(base),
        }
    }

    async fn base(&self, http: &HttpClient, services: &Services) -> Result<Credential> {
        // A profile in the block takes precedence over the environment. Apart from that, the order is that of the AWS SDKs.
        if let Some(profile) = &self.profile {
            return profile::find(&self.places, http, services, profile, true).await;
        }
        if let (Some(access), Some(secret)) = (
            env::first(&["AWS_ACCESS_KEY_ID", "AWS_ACCESS_KEY"]),
            env::first(&["AWS_SECRET_ACCESS_KEY", "AWS_SECRET_KEY"]),
        ) {
            return Ok(credential(
                &access,
                &secret,
                env::var("AWS_SESSION_TOKEN").as_deref(),
                None,
            ));
        }
        if let Some(file) = env::var("AWS_WEB_IDENTITY_TOKEN_FILE") {
            let Some(arn) = env::var("AWS_ROLE_ARN") else {
                return Err(problem(
                    "The environment variable AWS_WEB_IDENTITY_TOKEN_FILE names a token, and AWS_ROLE_ARN, the role to take on with \
                     it, is not set. Set both, or neither.",
                ));
            };
            let role = Role {
                arn,
                session: env::var("AWS_ROLE_SESSION_NAME"),
                ..Role::default()
            };
            return sts::assume_with_token(http, services, &role, &sts::Token::File(file)).await;
        }
        let named = env::first(&["AWS_PROFILE", "AWS_DEFAULT_PROFILE"]);
        let profile = named.clone().unwrap_or_else(|| "default".to_owned());
        profile::find(&self.places, http, services, &profile, named.is_some()).await
    }
}

fn of_role(role: &AssumeRole) -> Role {
    Role {
        arn: role.role_arn.text().to_owned(),
        duration: text(&role.duration),
        external_id: text(&role.external_id),
        policy: text(&role.policy).map(|policy| policy.trim().to_owned()),
        policy_arns: list(&role.policy_arns).unwrap_or_default(),
        session: text(&role.session_name),
        source_identity: text(&role.source_identity),
        tags: role.tags.known().cloned().unwrap_or_default(),
        transitive: list(&role.transitive_tag_keys).unwrap_or_default(),
    }
}

fn of_web_identity(role: &WebIdentity) -> Role {
    Role {
        arn: role.role_arn.text().to_owned(),
        duration: text(&role.duration),
        policy: text(&role.policy).map(|policy| policy.trim().to_owned()),
        policy_arns: list(&role.policy_arns).unwrap_or_default(),
        session: text(&role.session_name),
        ..Role::default()
    }
}

/// Sources of credentials, and a cache of the current credentials, which are replaced before they expire.
pub(crate) struct Credentials {
    sources: Sources,
    current: Mutex<Option<Credential>>,
}

impl Credentials {
    pub fn new(sources: Sources) -> Credentials {
        Credentials {
            sources,
            current: Mutex::new(None),
        }
    }

    /// Returns the cached credentials, or new ones if those expire within five minutes.
    pub async fn get(&self, http: &HttpClient, services: &Services) -> Result<Credential> {
        let mut current = self.current.lock().await;
        let soon = reqsign_core::time::Timestamp::now() + HEADROOM;
        if let Some(credential) = current.as_ref().filter(|c| c.expires_in.is_none_or(|at| at > soon)) {
            return Ok(credential.clone());
        }
        let found = self.sources.find(http, services).await?;
        *current = Some(found.clone());
        Ok(found)
    }
}
