//! Profiles in the shared files `~/.aws/config` and `~/.aws/credentials`.

use std::collections::{BTreeMap, BTreeSet};

use monoform_sdk::{Result, env};
use reqsign_aws_v4::Credential;
use store_client::HttpClient;

use super::sts::{self, Role, Token};
use super::{Sources, credential, expiry, machine, problem, sso};
use crate::settings::Services;

/// Where the shared files are.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    config: Vec<String>,
    credentials: Vec<String>,
}

/// A section of a shared file.
pub(crate) type Section = BTreeMap<String, String>;

impl Files {
    pub fn new(config: Option<Vec<String>>, credentials: Option<Vec<String>>) -> Files {
        let or = |given: Option<Vec<String>>, variables: &[&str], usual: &str| {
            given.unwrap_or_else(|| vec![env::first(variables).unwrap_or_else(|| usual.to_owned())])
        };
        Files {
            config: or(config, &["AWS_SHARED_CONFIG_FILE", "AWS_CONFIG_FILE"], "~/.aws/config"),
            credentials: or(credentials, &["AWS_SHARED_CREDENTIALS_FILE"], "~/.aws/credentials"),
        }
    }

    /// All sections, those of profiles by the name of the profile; what stands in a file with credentials comes first.
    fn read(&self) -> (BTreeMap<String, Section>, BTreeMap<String, Section>) {
        let (mut profiles, mut sessions) = (BTreeMap::<String, Section>::new(), BTreeMap::<String, Section>::new());
        let read = |path: &String| std::fs::read_to_string(env::expand_home(path)).unwrap_or_default();
        for (name, section) in self.config.iter().flat_map(|path| sections(&read(path))) {
            let mut words = name.splitn(2, char::is_whitespace);
            match (words.next().unwrap_or_default(), words.next().map(str::trim)) {
                ("profile", Some(name)) => profiles.entry(name.to_owned()).or_default().extend(section),
                ("sso-session", Some(name)) => sessions.entry(name.to_owned()).or_default().extend(section),
                ("default", None) => profiles.entry("default".to_owned()).or_default().extend(section),
                _ => {}
            }
        }
        for (name, section) in self.credentials.iter().flat_map(|path| sections(&read(path))) {
            profiles.entry(name).or_default().extend(section);
        }
        (profiles, sessions)
    }
}

/// The sections of a file, in order.
fn sections(text: &str) -> Vec<(String, Section)> {
    let mut out: Vec<(String, Section)> = Vec::new();
    for line in text.lines() {
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with(['#', ';']) {
            continue;
        }
        if let Some(name) = trimmed.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            out.push((name.trim().to_owned(), Section::new()));
            continue;
        }
        // Lines that are moved in belong to the setting before, which has settings of its own.
        if line.starts_with(char::is_whitespace) {
            continue;
        }
        if let (Some((name, value)), Some((_, section))) = (trimmed.split_once('='), out.last_mut()) {
            let value = value.split(" #").next().unwrap_or_default().trim();
            section.insert(name.trim().to_lowercase(), value.to_owned());
        }
    }
    out
}

/// The credentials of a profile; `None` if it has none, unless it is one that was named.
pub(crate) async fn find(
    sources: &Sources,
    http: &HttpClient,
    services: &Services,
    name: &str,
    named: bool,
) -> Result<Option<Credential>> {
    let (profiles, sessions) = sources.files.read();
    if !profiles.contains_key(name) {
        return match named {
            true => Err(problem(format!(
                "failed to get shared config profile, {name}: there is no profile of this name in {}.",
                [sources.files.config.clone(), sources.files.credentials.clone()]
                    .concat()
                    .join(", ")
            ))),
            false => Ok(None),
        };
    }
    // From the profile to the one that its role is taken on with, and so on; then back.
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
        // A profile may take on its role with its own keys.
        let role = get("role_arn").filter(|_| !with_token && is_new);
        let Some(arn) = role else {
            break of_profile(sources, http, services, &current, profile, &sessions).await?;
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
        match (get("source_profile"), get("credential_source").map(String::as_str)) {
            (Some(next), _) => current.clone_from(next),
            (None, Some("Environment")) => {
                let found = env::var("AWS_ACCESS_KEY_ID").zip(env::var("AWS_SECRET_ACCESS_KEY"));
                let Some((access, secret)) = found else {
                    return Err(problem(format!(
                        "The profile {current:?} takes its credentials from the environment, where AWS_ACCESS_KEY_ID and \
                         AWS_SECRET_ACCESS_KEY are not set."
                    )));
                };
                break Some(credential(
                    &access,
                    &secret,
                    env::var("AWS_SESSION_TOKEN").as_deref(),
                    None,
                ));
            }
            (None, Some("Ec2InstanceMetadata")) => {
                break Some(machine::instance(&sources.machine).await.map_err(problem)?);
            }
            (None, Some("EcsContainer")) => break machine::container().await?,
            (None, Some(other)) => {
                return Err(problem(format!(
                    "The profile {current:?} has an unknown credential_source: {other:?}."
                )));
            }
            (None, None) => {
                return Err(problem(format!(
                    "The profile {current:?} has a role_arn, and neither source_profile nor credential_source to take it on with."
                )));
            }
        }
    };
    let Some(mut found) = base else {
        return match named || !roles.is_empty() {
            true => Err(problem(format!("The profile {current:?} has no credentials."))),
            false => Ok(None),
        };
    };
    for role in roles.iter().rev() {
        found = sts::assume(http, services, &found, role).await?;
    }
    Ok(Some(found))
}

/// What one profile has by itself.
async fn of_profile(
    sources: &Sources,
    http: &HttpClient,
    services: &Services,
    name: &str,
    profile: &Section,
    sessions: &BTreeMap<String, Section>,
) -> Result<Option<Credential>> {
    let get = |key: &str| profile.get(key).filter(|value| !value.is_empty());
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
        return sso::find(http, sources.machine.sso.as_deref(), name, profile, sessions)
            .await
            .map(Some);
    }
    match get("credential_process") {
        Some(command) => process(name, command).await.map(Some),
        None => Ok(None),
    }
}

/// Credentials that a program prints.
async fn process(profile: &str, command: &str) -> Result<Credential> {
    let failed = |why: String| {
        problem(format!(
            "The credential_process of the profile {profile:?} failed: {why}."
        ))
    };
    let output = tokio::process::Command::new("/bin/sh")
        .args(["-c", command])
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
    match (json["Version"].as_i64(), part("AccessKeyId"), part("SecretAccessKey")) {
        (Some(1), Some(access), Some(secret)) => Ok(credential(
            access,
            secret,
            part("SessionToken"),
            part("Expiration").and_then(expiry),
        )),
        _ => Err(failed(
            "its JSON has no Version 1 with AccessKeyId and SecretAccessKey".to_owned(),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_are_read_with_comments_and_nested_settings() {
        let text = "# x\n[default]\nregion = eu-west-1 # where\n[profile dev]\naws_access_key_id=A\ns3 =\n  max = 5\n; y\nROLE_ARN = r\n";
        let found = sections(text);
        assert_eq!(found[0].0, "default");
        assert_eq!(found[0].1["region"], "eu-west-1");
        assert_eq!(found[1].0, "profile dev");
        assert_eq!(found[1].1["role_arn"], "r");
        assert!(!found[1].1.contains_key("max"));
    }
}
