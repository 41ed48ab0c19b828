//! Arguments of the backend, and defaults from the environment.

use std::time::Duration;

use monoform_sdk::schema::{block, optional, required};
use monoform_sdk::{Attr, Diagnostic, Diagnostics, Model, Result, Set, env};
use store_client::arguments;
use store_client::credential::{Credential, CredentialCache};
use store_client::{HttpClient, Retries, Settings as HttpSettings, Url};

use crate::cloud::Cloud;
use crate::credentials::{Profile, Role, Source};
use crate::services::Services;

/// The arguments of the block.
#[derive(Clone, Default, Model)]
pub struct Config {
    /// The name of the bucket, which ends in the APPID of the account.
    #[member(required())]
    pub bucket: Attr<String>,
    /// The region of the bucket.
    #[member(optional())]
    pub region: Attr<String>,
    /// The folder of the bucket in which the states are.
    #[member(optional())]
    pub prefix: Attr<String>,
    /// The name of the state's object.
    #[member(optional())]
    pub key: Attr<String>,
    /// If true, the service encrypts the objects at rest.
    #[member(optional())]
    pub encrypt: Attr<bool>,
    /// The access control list of the objects: `private` or `public-read`.
    #[member(optional())]
    pub acl: Attr<String>,
    /// If true, requests go to the global acceleration endpoint of the bucket.
    #[member(optional())]
    pub accelerate: Attr<bool>,
    /// URL of an endpoint inside Tencent Cloud: `http://cos-internal.REGION.tencentcos.cn`.
    #[member(optional())]
    pub endpoint: Attr<String>,
    /// The domain of the services for roles and tags; `tencentcloudapi.com` by default.
    #[member(optional())]
    pub domain: Attr<String>,
    /// The secret ID of the API key.
    #[member(optional())]
    pub secret_id: Attr<String>,
    /// The secret key of the API key.
    #[member(optional().sensitive())]
    pub secret_key: Attr<String>,
    /// The security token of temporary credentials.
    #[member(optional().sensitive())]
    pub security_token: Attr<String>,
    /// Path of the directory with the configuration of the command line `tccli`.
    #[member(optional())]
    pub shared_credentials_dir: Attr<String>,
    /// The profile in the shared credentials directory.
    #[member(optional())]
    pub profile: Attr<String>,
    /// The CAM role of the machine (CVM instance).
    #[member(optional())]
    pub cam_role_name: Attr<String>,
    /// The role to assume.
    #[member(block())]
    pub assume_role: Set<AssumeRole>,
}

/// The role to assume.
#[derive(Clone, Default, Model)]
pub struct AssumeRole {
    /// The ARN of the role.
    #[member(optional())]
    pub role_arn: Attr<String>,
    /// The name of the session.
    #[member(optional())]
    pub session_name: Attr<String>,
    /// The duration of the session in seconds, at most 43200.
    #[member(optional())]
    pub session_duration: Attr<i64>,
    /// A policy that restricts the permissions of the session, as JSON.
    #[member(optional())]
    pub policy: Attr<String>,
    /// The external ID that the trust policy of the role requires.
    #[member(optional())]
    pub external_id: Attr<String>,
}

/// Effective settings of the client.
pub(crate) struct Settings {
    pub bucket: String,
    pub prefix: String,
    pub key: String,
    pub encrypt: bool,
    pub acl: String,
    pub cloud: Cloud,
}

const SUMMARY: &str = "Invalid cos backend configuration";

fn problem(attribute: &str, detail: impl Into<String>) -> Diagnostic {
    Diagnostic::error(SUMMARY, detail).at_attribute(attribute)
}

/// Returns the text of an argument, or else of a variable.
fn text(value: &Attr<String>, variable: &str) -> Option<String> {
    let variables: &[&str] = if variable.is_empty() { &[] } else { &[variable] };
    arguments::text(value, variables)
}

impl Config {
    /// Returns the errors in the arguments that can be found without a request.
    pub(crate) fn problems(&self) -> Diagnostics {
        let mut found = Diagnostics::new();
        let mut add = |attribute: &str, is_wrong: bool, detail: &str| {
            if is_wrong {
                found.push(problem(attribute, detail));
            }
        };
        for (attribute, detail) in arguments::layout_problems(self.prefix.text(), self.key.text()) {
            add(attribute, true, detail);
        }
        let acl = self
            .acl
            .as_str()
            .is_none_or(|acl| matches!(acl, "private" | "public-read"));
        add("acl", !acl, "acl must be private or public-read.");
        let roles = &self.assume_role.0;
        add(
            "assume_role",
            roles.len() > 1,
            "There can be only one block assume_role.",
        );
        let duration = roles
            .iter()
            .filter_map(|role| role.session_duration.known())
            .all(|s| (0..=43_200).contains(s));
        add(
            "assume_role",
            !duration,
            "session_duration must be from 0 to 43200 seconds.",
        );
        found
    }

    fn profile(&self) -> Result<Profile> {
        let folder = match text(&self.shared_credentials_dir, "TENCENTCLOUD_SHARED_CREDENTIALS_DIR") {
            Some(folder) => env::expand_home(&folder),
            None => env::expand_home("~/.tccli"),
        };
        let name = text(&self.profile, "TENCENTCLOUD_PROFILE").unwrap_or_else(|| "default".to_owned());
        Profile::read(&folder, &name)
            .map_err(|why| problem("profile", format!("The profile {name:?} cannot be used: {why}.")).into())
    }

    /// Returns the effective settings from the arguments and the environment.
    pub(crate) fn settings(&self) -> Result<Settings> {
        let profile = self.profile()?;
        let region = text(&self.region, "TENCENTCLOUD_REGION").or_else(|| profile.get("region"));
        let region = region.ok_or_else(|| {
            let detail = "The region of the bucket is missing: set the argument \"region\", or the environment variable \
                          TENCENTCLOUD_REGION.";
            problem("region", detail)
        })?;
        let bucket = self.bucket.text().to_owned();
        let http = |max| {
            HttpClient::new(HttpSettings {
                timeout: Some(Duration::from_secs(60)),
                retries: Retries {
                    max,
                    ..Retries::default()
                },
                ..HttpSettings::default()
            })
            .map_err(|e| Diagnostic::error(SUMMARY, format!("Requests cannot be made: {e}.")))
        };
        let domain = text(&self.domain, "TENCENTCLOUD_DOMAIN").unwrap_or_else(|| "tencentcloudapi.com".to_owned());
        Ok(Settings {
            cloud: Cloud {
                bucket: self.address(&bucket, &region)?,
                http: http(3)?,
                services: Services {
                    address: format!("https://SERVICE.{domain}"),
                    region,
                    once: http(0)?,
                },
                source: self.source(&profile)?,
                current: CredentialCache::default(),
            },
            bucket,
            prefix: self.prefix.text().to_owned(),
            key: text(&self.key, "").unwrap_or_else(|| "terraform.tfstate".to_owned()),
            encrypt: self.encrypt.known() != Some(&false),
            acl: text(&self.acl, "").unwrap_or_else(|| "private".to_owned()),
        })
    }

    fn address(&self, bucket: &str, region: &str) -> Result<Url> {
        let address = match text(&self.endpoint, "TENCENTCLOUD_ENDPOINT") {
            Some(endpoint) => {
                let parts = endpoint.split_once("://").and_then(|(scheme, host)| {
                    // Terraform accepts only addresses in Tencent's internal network.
                    let region = host.strip_prefix("cos-internal.")?.strip_suffix(".tencentcos.cn")?;
                    let fits = matches!(scheme, "http" | "https") && !region.is_empty() && !region.contains(['.', '/']);
                    fits.then(|| format!("{scheme}://{bucket}.{host}"))
                });
                parts.ok_or_else(|| {
                    let detail =
                        format!("Invalid URL: {endpoint} must be: http(s)://cos-internal.{{Region}}.tencentcos.cn");
                    problem("endpoint", detail)
                })?
            }
            None if self.accelerate.known() == Some(&true) => format!("https://{bucket}.cos.accelerate.myqcloud.com"),
            None => format!("https://{bucket}.cos.{region}.myqcloud.com"),
        };
        Url::parse(&address)
            .map_err(|e| problem("bucket", format!("{address:?} is not where a bucket can be: {e}.")).into())
    }

    fn source(&self, profile: &Profile) -> Result<Source> {
        let id = text(&self.secret_id, "TENCENTCLOUD_SECRET_ID");
        let key = text(&self.secret_key, "TENCENTCLOUD_SECRET_KEY");
        let token = text(&self.security_token, "TENCENTCLOUD_SECURITY_TOKEN");
        // ID, key and token must come from the same source. Only arguments can be completed by environment variables.
        let given = match (id, key, token) {
            (None, None, None) => Credential {
                id: profile.get("secretId").unwrap_or_default(),
                key: profile.get("secretKey").unwrap_or_default(),
                token: profile.get("token"),
            },
            (id, key, token) => Credential {
                id: id.unwrap_or_default(),
                key: key.unwrap_or_default(),
                token,
            },
        };
        let machine = text(&self.cam_role_name, "TENCENTCLOUD_CAM_ROLE_NAME");
        if machine.is_none() && (given.id.is_empty() || given.key.is_empty()) {
            let detail = "There are no credentials for Tencent Cloud: set secret_id and secret_key, or TENCENTCLOUD_SECRET_ID and \
                          TENCENTCLOUD_SECRET_KEY, or make a profile with \"tccli configure\", or name the role of the machine in \
                          cam_role_name.";
            return Err(Diagnostic::error("No valid credentials found", detail).into());
        }
        Ok(Source {
            given,
            machine,
            role: self.role(profile)?,
        })
    }

    /// Returns the role to assume: from the block, the environment, or the profile.
    fn role(&self, profile: &Profile) -> Result<Option<Role>> {
        if let Some(role) = self.assume_role.0.first() {
            let (arn, session) = (
                text(&role.role_arn, "TENCENTCLOUD_ASSUME_ROLE_ARN"),
                text(&role.session_name, "TENCENTCLOUD_ASSUME_ROLE_SESSION_NAME"),
            );
            let (Some(arn), Some(session)) = (arn, session) else {
                let detail = "The block assume_role needs role_arn and session_name (or the variables \
                              TENCENTCLOUD_ASSUME_ROLE_ARN and TENCENTCLOUD_ASSUME_ROLE_SESSION_NAME).";
                return Err(problem("assume_role", detail).into());
            };
            let duration = match role.session_duration.known() {
                Some(seconds) => u32::try_from(*seconds).unwrap_or(Role::USUAL_DURATION),
                None => of_environment()?,
            };
            return Ok(Some(Role {
                arn,
                session,
                duration,
                policy: text(&role.policy, ""),
                external_id: text(&role.external_id, "TENCENTCLOUD_ASSUME_ROLE_EXTERNAL_ID"),
            }));
        }
        let named = |first: Option<String>, second: Option<String>| first.zip(second);
        let of_variables = named(
            env::var("TENCENTCLOUD_ASSUME_ROLE_ARN"),
            env::var("TENCENTCLOUD_ASSUME_ROLE_SESSION_NAME"),
        );
        if let Some((arn, session)) = of_variables {
            return Ok(Some(Role {
                arn,
                session,
                duration: of_environment()?,
                policy: None,
                external_id: env::var("TENCENTCLOUD_ASSUME_ROLE_EXTERNAL_ID"),
            }));
        }
        let of_profile = named(profile.get("role-arn"), profile.get("role-session-name"));
        Ok(of_profile.map(|(arn, session)| Role {
            arn,
            session,
            duration: Role::USUAL_DURATION,
            policy: None,
            external_id: None,
        }))
    }
}

/// Returns the duration of role sessions from the environment, or the default.
fn of_environment() -> Result<u32> {
    let variable = "TENCENTCLOUD_ASSUME_ROLE_SESSION_DURATION";
    match env::var(variable) {
        None => Ok(Role::USUAL_DURATION),
        Some(text) => text.trim().parse().map_err(|_| {
            let detail = format!("The environment variable {variable} must be a number of seconds, and is {text:?}.");
            problem("assume_role", detail).into()
        }),
    }
}
