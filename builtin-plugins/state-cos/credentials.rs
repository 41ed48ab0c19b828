//! Credentials from arguments, a profile or the role of the machine; and a role that is assumed with them.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use monoform_sdk::{Diagnostic, Diagnostics, Result};
use serde_json::{Value as Json, json};
use store_client::credential::{Credential, Current};
use store_client::machine::{self, MachineError};
use store_client::name::encoded;
use store_client::profile::{self, ProfileError};

use crate::services::Services;

/// Sources of credentials.
#[derive(Clone)]
pub(crate) struct Source {
    pub given: Credential,
    /// Role of the machine, which takes precedence over keys.
    pub machine: Option<String>,
    pub role: Option<Role>,
}

/// A role to assume.
#[derive(Clone)]
pub(crate) struct Role {
    pub arn: String,
    pub session: String,
    pub duration: u32,
    pub policy: Option<String>,
    pub external_id: Option<String>,
}

impl Role {
    pub const USUAL_DURATION: u32 = 7200;
}

/// Profile of the CLI `tccli`.
#[derive(Default)]
pub(crate) struct Profile(BTreeMap<String, String>);

impl Profile {
    /// Reads the files of a profile. A missing file counts as empty.
    pub fn read(folder: &Path, name: &str) -> std::result::Result<Profile, ProfileError> {
        let mut all = BTreeMap::new();
        for ending in ["credential", "configure"] {
            let Some(json) = profile::json(&folder.join(format!("{name}.{ending}")))? else {
                continue;
            };
            // In one of the files, values are at the top level; in the other one they are in a section.
            let parts = match ending {
                "configure" => &json["_sys_param"],
                _ => &json,
            };
            for (name, value) in parts.as_object().into_iter().flatten() {
                if let Some(text) = value.as_str() {
                    all.insert(name.clone(), text.trim().to_owned());
                }
            }
        }
        Ok(Profile(all))
    }

    pub fn get(&self, name: &str) -> Option<String> {
        self.0.get(name).filter(|text| !text.is_empty()).cloned()
    }
}

fn problem(detail: String) -> Diagnostics {
    Diagnostic::error("No valid credentials found", detail).into()
}

impl Source {
    /// Returns the given keys or those of the machine, or those of the role that is assumed with them.
    pub async fn find(&self, services: &Services) -> Result<Current> {
        let base = match &self.machine {
            Some(role) => of_machine(role).await?,
            None => Current {
                credential: self.given.clone(),
                ends: None,
            },
        };
        match &self.role {
            Some(role) => role.take_on(services, &base.credential).await,
            None => Ok(base),
        }
    }
}

/// URL of the metadata service for the roles of a machine.
const SERVICE: &str = "http://metadata.tencentyun.com/latest/meta-data/cam/security-credentials";

/// Time limit for a request to the metadata service.
const PATIENCE: Duration = Duration::from_secs(2);

/// Requests the credentials of the machine's role.
async fn of_machine(role: &str) -> Result<Current> {
    let failed = |why: MachineError| {
        problem(format!(
            "The role {role:?} of this machine (cam_role_name) has no credentials: {why}. Roles of machines are there on machines of \
             Tencent Cloud only."
        ))
    };
    let found = machine::of_machine(SERVICE, role, PATIENCE, |json| of_json(json, &json["ExpiredTime"])).await;
    found.map_err(failed)
}

fn of_json(json: &Json, ends: &Json) -> Option<Current> {
    Some(Current {
        credential: Credential {
            id: json["TmpSecretId"].as_str()?.to_owned(),
            key: json["TmpSecretKey"].as_str()?.to_owned(),
            token: json["Token"].as_str().map(str::to_owned),
        },
        ends: ends.as_i64(),
    })
}

impl Role {
    async fn take_on(&self, services: &Services, base: &Credential) -> Result<Current> {
        let mut body = json!({
            "RoleArn": self.arn,
            "RoleSessionName": self.session,
            "DurationSeconds": self.duration,
        });
        if let Some(policy) = &self.policy {
            // The service expects the policy to be percent-encoded.
            body["Policy"] = encoded(policy).into();
        }
        if let Some(id) = &self.external_id {
            body["ExternalId"] = id.as_str().into();
        }
        let called = services.call(base, ("sts", "2018-08-13", "AssumeRole"), &body).await;
        let json = called.map_err(|why| problem(format!("The role {:?} cannot be taken on: {why}.", self.arn)))?;
        of_json(&json["Credentials"], &json["ExpiredTime"]).ok_or_else(|| {
            problem(format!(
                "The role {:?} cannot be taken on: the answer has no credentials.",
                self.arn
            ))
        })
    }
}
