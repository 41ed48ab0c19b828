//! Credentials from the arguments, the environment, a profile, or the role of the machine. With these, or with an OIDC token, another role
//! may be assumed.

use std::path::Path;
use std::time::Duration;

use monoform_sdk::{Diagnostic, Diagnostics, Result, env};
use serde_json::{Map, Value as Json};
use store_client::credential::{Credential, Current};
use store_client::machine::{self, MachineError};
use store_client::profile::{self, ProfileError};

use crate::services::{CallError, Service, Services};

pub(crate) struct Source {
    pub given: Option<Credential>,
    /// Role of the machine. It is used only if there are no keys.
    pub machine: Option<String>,
    pub role: Option<Role>,
    /// OIDC token. It is used only if there are neither keys nor a role of the machine.
    pub oidc: Option<Oidc>,
}

pub(crate) struct Role {
    pub arn: String,
    pub session: String,
    /// Duration of the session in seconds.
    pub duration: u32,
    pub policy: Option<String>,
}

impl Role {
    pub const USUAL_DURATION: u32 = 3600;
}

/// OIDC provider, and path of the token file, which clusters of Alibaba Cloud provide to their pods.
pub(crate) struct Oidc {
    provider: String,
    token_file: String,
}

impl Oidc {
    pub fn of_environment() -> Option<Oidc> {
        Some(Oidc {
            provider: env::var("ALIBABA_CLOUD_OIDC_PROVIDER_ARN")?,
            token_file: env::var("ALIBABA_CLOUD_OIDC_TOKEN_FILE")?,
        })
    }
}

/// Profile of the CLI `aliyun`.
#[derive(Default)]
pub(crate) struct Profile(Map<String, Json>);

impl Profile {
    /// Reads a profile. The result is empty if the file or the profile does not exist.
    pub fn read(path: &Path, name: &str) -> std::result::Result<Profile, ProfileError> {
        let Some(json) = profile::json(path)? else {
            return Ok(Profile::default());
        };
        let profiles = json["profiles"].as_array().into_iter().flatten();
        // As in Terraform, the last one of several profiles with the same name is used.
        let found = profiles.rev().find(|profile| profile["name"] == name);
        Ok(Profile(found.and_then(Json::as_object).cloned().unwrap_or_default()))
    }

    /// Returns a value of the profile, if it belongs to the profile's kind of credentials.
    pub fn get(&self, name: &str) -> Option<String> {
        let mode = self.0.get("mode")?.as_str()?;
        let counts = match name {
            "access_key_id" | "access_key_secret" => mode != "EcsRamRole",
            "ram_role_name" => mode == "EcsRamRole",
            "sts_token" => mode == "StsToken",
            "ram_role_arn" | "ram_session_name" | "expired_seconds" => mode == "RamRoleArn",
            _ => true,
        };
        let text = self.0.get(name).filter(|_| counts)?.as_str()?;
        (!text.is_empty()).then(|| text.to_owned())
    }

    /// Returns the duration of the session for the profile's role in seconds.
    pub fn seconds(&self) -> Option<u32> {
        self.get("ram_role_arn")?;
        self.0.get("expired_seconds")?.as_u64()?.try_into().ok()
    }
}

fn problem(detail: String) -> Diagnostics {
    Diagnostic::error("No valid credentials found", detail).into()
}

impl Source {
    /// Returns the keys, or the credentials of the machine's role, or those of the role that is assumed with either of them or with the
    /// OIDC token.
    pub async fn find(&self, services: &Services) -> Result<Current> {
        let base = match (&self.given, &self.machine, &self.oidc, &self.role) {
            (Some(given), ..) => Current {
                credential: given.clone(),
                ends: None,
            },
            (None, Some(role), ..) => of_machine(role).await?,
            // The token itself proves the identity, so the request needs no credentials.
            (None, None, Some(oidc), Some(role)) => return role.take_on_by_token(services, oidc).await,
            _ => return Err(problem("There are no credentials for Alibaba Cloud.".to_owned())),
        };
        match &self.role {
            Some(role) => role.take_on(services, &base.credential).await,
            None => Ok(base),
        }
    }
}

/// URL of the metadata service for the roles of a machine.
const SERVICE: &str = "http://100.100.100.200/latest/meta-data/ram/security-credentials";

/// Time limit for a request to the metadata service.
const PATIENCE: Duration = Duration::from_secs(5);

/// Requests the credentials of the machine's role.
async fn of_machine(role: &str) -> Result<Current> {
    let failed = |why: MachineError| {
        problem(format!(
            "The role {role:?} of this machine (ecs_role_name) has no credentials: {why}. Roles of machines are there on machines of \
             Alibaba Cloud only."
        ))
    };
    let found = machine::of_machine(SERVICE, role, PATIENCE, |json| {
        (json["Code"] == "Success").then(|| of_json(json)).flatten()
    })
    .await;
    found.map_err(failed)
}

fn of_json(json: &Json) -> Option<Current> {
    let ends = json["Expiration"]
        .as_str()
        .and_then(|text| text.parse::<jiff::Timestamp>().ok());
    Some(Current {
        credential: Credential {
            id: json["AccessKeyId"].as_str()?.to_owned(),
            key: json["AccessKeySecret"].as_str()?.to_owned(),
            token: json["SecurityToken"].as_str().map(str::to_owned),
        },
        ends: ends.map(jiff::Timestamp::as_second),
    })
}

impl Role {
    fn parameters<'p>(&'p self, duration: &'p str) -> Vec<(&'p str, &'p str)> {
        let mut parts = vec![
            ("RoleArn", self.arn.as_str()),
            ("RoleSessionName", self.session.as_str()),
            ("DurationSeconds", duration),
        ];
        parts.extend(self.policy.as_deref().map(|policy| ("Policy", policy)));
        parts
    }

    async fn take_on(&self, services: &Services, base: &Credential) -> Result<Current> {
        let duration = self.duration.to_string();
        let service = Service::sts(&services.sts, "AssumeRole");
        let called = services
            .call(&services.calls, Some(base), service, &self.parameters(&duration))
            .await;
        self.taken(called)
    }

    async fn take_on_by_token(&self, services: &Services, oidc: &Oidc) -> Result<Current> {
        let token = std::fs::read_to_string(&oidc.token_file).map_err(|e| {
            problem(format!(
                "The token in the file {:?} (ALIBABA_CLOUD_OIDC_TOKEN_FILE) cannot be read: {e}.",
                oidc.token_file
            ))
        })?;
        let duration = self.duration.to_string();
        let mut parts = self.parameters(&duration);
        parts.push(("OIDCProviderArn", &oidc.provider));
        parts.push(("OIDCToken", token.trim()));
        let service = Service::sts(&services.sts, "AssumeRoleWithOIDC");
        self.taken(services.call(&services.calls, None, service, &parts).await)
    }

    fn taken(&self, called: std::result::Result<Json, CallError>) -> Result<Current> {
        let failed =
            |why: &dyn std::fmt::Display| problem(format!("The role {:?} cannot be taken on: {why}.", self.arn));
        let json = called.map_err(|e| failed(&e))?;
        of_json(&json["Credentials"]).ok_or_else(|| failed(&"the answer has no credentials"))
    }
}
