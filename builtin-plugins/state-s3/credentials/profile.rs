//! Profiles of the shared files.

#![expect(clippy::disallowed_methods, reason = "credentials expire")]

use std::collections::{BTreeMap, BTreeSet};

use http::aws::Credential;
use jiff::Timestamp;
use monoform_sdk::{Result, env};
use store_client::HttpClient;

use super::credential::{credential, expiry, problem};
use super::files::{Files, Section, Sections};
use super::sts::{self, Role, Token};
use super::{machine, sso};
use crate::services::Services;

/// Sources of profiles and of their credentials.
#[derive(Clone)]
pub(super) struct Places {
    pub files: Files,
    pub machine: machine::Settings,
}

/// Returns the credentials of a profile, or those of the container or the instance if it has none. If the user has `named` the profile, it
/// must exist.
pub(super) async fn find(
    places: &Places,
    http: &HttpClient,
    services: &Services,
    name: &str,
    named: bool,
) -> Result<Credential> {
    let Sections { profiles, sessions, .. } = places.files.read();
    if !profiles.contains_key(name) {
        return match named {
            true => Err(problem(format!(
                "failed to get shared config profile, {name}: there is no profile of this name in {}.",
                [places.files.config.clone(), places.files.credentials.clone()]
                    .concat()
                    .join(", ")
            ))),
            false => machine::of_surroundings(&places.machine, name).await,
        };
    }
    // First the chain of source_profile is followed to its end. Then the roles are assumed, beginning with the last one.
    let mut roles: Vec<Role> = Vec::new();
    let mut seen = BTreeSet::new();
    let mut current = name.to_owned();
    let base = loop {
        let Some(profile) = profiles.get(&current) else {
            return Err(problem(format!(
                "The profile {name:?} refers to the profile {current:?}, which is not there."
            )));
        };
        let is_new = seen.insert(current.clone());
        let get = |key: &str| profile.get(key).filter(|value| !value.is_empty());
        let with_token = get("web_identity_token_file").is_some();
        // A profile may be its own source_profile. Its role is then assumed with its own keys, so the second visit ends the chain.
        let role = get("role_arn").filter(|_| !with_token && is_new);
        let Some(arn) = role else {
            break of_profile(http, services, &current, profile, &sessions).await?;
        };
        roles.push(Role {
            arn: arn.clone(),
            duration: get("duration_seconds").map(|seconds| format!("{seconds}s")),
            external_id: get("external_id").cloned(),
            session: get("role_session_name").cloned(),
            ..Role::default()
        });
        if get("mfa_serial").is_some() {
            return Err(problem(format!(
                "The profile {current:?} asks for a code of a device (mfa_serial), which nobody can be asked for here. Use the \
                 credentials of a session that was begun with one, as \"aws sts get-session-token\" gives them."
            )));
        }
        let has_keys = get("aws_access_key_id").is_some() && get("aws_secret_access_key").is_some();
        match (get("source_profile"), get("credential_source").map(String::as_str)) {
            (Some(_), Some(_)) => {
                return Err(problem(format!(
                    "The profile {current:?} has both source_profile and credential_source: its role is taken on with one of them. \
                     Remove the other."
                )));
            }
            // If a source profile has its own keys, the chain ends there. The source_profile of the first profile is always followed.
            (Some(next), None) if !has_keys || seen.len() == 1 => current.clone_from(next),
            (None, Some(source)) => break Some(of_source(places, &current, source).await?),
            // The credentials of the profile itself.
            _ => break of_profile(http, services, &current, profile, &sessions).await?,
        }
    };
    let mut found = match base {
        Some(found) => found,
        None => machine::of_surroundings(&places.machine, &current).await?,
    };
    for role in roles.iter().rev() {
        found = sts::assume(http, services, &found, role).await?;
    }
    Ok(found)
}

/// Returns the credentials for the setting `credential_source`.
async fn of_source(places: &Places, profile: &str, source: &str) -> Result<Credential> {
    match source {
        "Environment" => {
            let found = env::var("AWS_ACCESS_KEY_ID").zip(env::var("AWS_SECRET_ACCESS_KEY"));
            let Some((access, secret)) = found else {
                return Err(problem(format!(
                    "The profile {profile:?} takes its credentials from the environment, where AWS_ACCESS_KEY_ID and \
                     AWS_SECRET_ACCESS_KEY are not set."
                )));
            };
            Ok(credential(
                &access,
                &secret,
                env::var("AWS_SESSION_TOKEN").as_deref(),
                None,
            ))
        }
        "Ec2InstanceMetadata" => machine::instance(&places.machine).await.map_err(|why| {
            problem(format!(
                "The profile {profile:?} takes its credentials from the metadata service of EC2: {why}."
            ))
        }),
        "EcsContainer" => machine::container().await?.ok_or_else(|| {
            problem(format!(
                "The profile {profile:?} takes its credentials from the container, and neither \
                 AWS_CONTAINER_CREDENTIALS_RELATIVE_URI nor AWS_CONTAINER_CREDENTIALS_FULL_URI says where they are."
            ))
        }),
        other => Err(problem(format!(
            "The profile {profile:?} has an unknown credential_source: {other:?}."
        ))),
    }
}

/// Returns the credentials of one profile, without following its `source_profile` and `credential_source`; `None` if it has none.
async fn of_profile(
    http: &HttpClient,
    services: &Services,
    name: &str,
    profile: &Section,
    sessions: &BTreeMap<String, Section>,
) -> Result<Option<Credential>> {
    let get = |key: &str| profile.get(key).filter(|value| !value.is_empty());
    // The same order as in the AWS SDKs.
    if let (Some(access), Some(secret)) = (get("aws_access_key_id"), get("aws_secret_access_key")) {
        let token = get("aws_session_token").map(String::as_str);
        return Ok(Some(credential(access, secret, token, None)));
    }
    if let (Some(file), Some(arn)) = (get("web_identity_token_file"), get("role_arn")) {
        let role = Role {
            arn: arn.clone(),
            session: get("role_session_name").cloned(),
            ..Role::default()
        };
        return sts::assume_with_token(http, services, &role, &Token::File(file.clone()))
            .await
            .map(Some);
    }
    if get("sso_account_id").is_some() || get("sso_session").is_some() || get("sso_start_url").is_some() {
        return sso::find(http, services, name, profile, sessions).await.map(Some);
    }
    match get("credential_process") {
        Some(command) => process(name, command).await.map(Some),
        None => Ok(None),
    }
}

/// Runs the program of the setting `credential_process`, and reads the credentials that it prints.
async fn process(profile: &str, command: &str) -> Result<Credential> {
    let failed = |why: String| {
        problem(format!(
            "The credential_process of the profile {profile:?} failed: {why}."
        ))
    };
    // The setting is a command line for the shell.
    let output = tokio::process::Command::new("/bin/sh")
        .args(["-c", command])
        // No input: the program could otherwise ask a question and wait forever.
        .stdin(std::process::Stdio::null())
        .kill_on_drop(true)
        .output();
    let output = tokio::time::timeout(std::time::Duration::from_secs(60), output)
        .await
        .map_err(|_| failed("it did not end within a minute".to_owned()))?
        .map_err(|e| failed(format!("it cannot be started: {e}")))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(failed(format!("{}: {said}", output.status)));
    }
    let json: serde_json::Value =
        serde_json::from_slice(&output.stdout).map_err(|e| failed(format!("it does not print JSON: {e}")))?;
    let part = |name: &str| json[name].as_str();
    let expires = part("Expiration").and_then(expiry);
    if let Some(at) = expires.filter(|at| *at <= Timestamp::now()) {
        return Err(failed(format!("its credentials have expired at {at}")));
    }
    match (json["Version"].as_i64(), part("AccessKeyId"), part("SecretAccessKey")) {
        (Some(1), Some(access), Some(secret)) => Ok(credential(access, secret, part("SessionToken"), expires)),
        _ => Err(failed(
            "its JSON has no Version 1 with AccessKeyId and SecretAccessKey".to_owned(),
        )),
    }
}
