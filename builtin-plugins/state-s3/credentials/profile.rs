//! Profiles of the shared files `~/.aws/config` and `~/.aws/credentials`.

#![expect(clippy::disallowed_methods, reason = "credentials expire")]

use std::collections::{BTreeMap, BTreeSet};

use http::aws::Credential;
use monoform_sdk::{Result, env};
use store_client::HttpClient;

use jiff::Timestamp;

use super::sts::{self, Role, Token};
use super::{Sources, credential, expiry, machine, problem, sso};
use crate::config::Config;
use crate::settings::{Services, list, text};

/// Paths of the shared files.
#[derive(Clone, Debug)]
pub(crate) struct Files {
    config: Vec<String>,
    credentials: Vec<String>,
}

/// A section of a shared file. A nested setting `b` of `a` has the name `a.b`.
pub(crate) type Section = BTreeMap<String, String>;

/// Sections of all files: profiles, SSO sessions and services, by name.
#[derive(Default)]
struct Sections {
    profiles: BTreeMap<String, Section>,
    sessions: BTreeMap<String, Section>,
    services: BTreeMap<String, Section>,
}

/// Service endpoints from the environment or the shared profile (`AWS_ENDPOINT_URL_<SERVICE>`).
#[derive(Default)]
pub(crate) struct Endpoints {
    /// Endpoint of all services.
    pub all: Option<String>,
    /// Settings of single services, such as `s3.endpoint_url`.
    services: Section,
}

impl Endpoints {
    /// Returns the endpoint that is set for one service.
    pub fn of(&self, service: &str) -> Option<String> {
        self.services.get(&format!("{service}.endpoint_url")).cloned()
    }
}

impl Files {
    /// Returns the paths from the arguments, the environment, or the defaults.
    pub fn of(arguments: &Config) -> Files {
        let one = text(&arguments.shared_credentials_file).map(|file| vec![file]);
        let credentials = list(&arguments.shared_credentials_files).or(one);
        let config = list(&arguments.shared_config_files);
        let or = |given: Option<Vec<String>>, variables: &[&str], usual: &str| {
            given.unwrap_or_else(|| vec![env::first(variables).unwrap_or_else(|| usual.to_owned())])
        };
        Files {
            config: or(config, &["AWS_SHARED_CONFIG_FILE", "AWS_CONFIG_FILE"], "~/.aws/config"),
            credentials: or(credentials, &["AWS_SHARED_CREDENTIALS_FILE"], "~/.aws/credentials"),
        }
    }

    /// Reads all sections. Settings of credentials files override those of config files.
    fn read(&self) -> Sections {
        let mut all = Sections::default();
        // A file that does not exist, or cannot be read, is an empty one, as for other tools.
        let read = |path: &String| std::fs::read_to_string(env::expand_home(path)).unwrap_or_default();
        for path in &self.config {
            let found = sections(&read(path));
            // If one file has `[default]` and `[profile default]`, the former is ignored.
            let has_long = found.iter().any(|(name, _)| kind(name) == ("profile", "default"));
            for (name, section) in found {
                let (kind, name) = kind(&name);
                let (of_kind, name) = match (kind, name) {
                    ("profile", name) => (&mut all.profiles, name),
                    ("sso-session", name) => (&mut all.sessions, name),
                    ("services", name) => (&mut all.services, name),
                    ("default", "") if !has_long => (&mut all.profiles, "default"),
                    _ => continue,
                };
                of_kind.entry(name.to_owned()).or_default().extend(section);
            }
        }
        for (name, section) in self.credentials.iter().flat_map(|path| sections(&read(path))) {
            all.profiles.entry(name).or_default().extend(section);
        }
        all
    }

    /// Returns the endpoints of the environment and a profile, without the variables and arguments that only Terraform has.
    pub fn endpoints(&self, profile: &str) -> Endpoints {
        let mut all = self.read();
        let section = all.profiles.remove(profile).unwrap_or_default();
        let get = |key: &str| section.get(key).filter(|value| !value.is_empty());
        let ignored =
            env::var("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS").or_else(|| get("ignore_configured_endpoint_urls").cloned());
        if ignored.is_some_and(|text| text.eq_ignore_ascii_case("true")) {
            return Endpoints::default();
        }
        Endpoints {
            all: env::var("AWS_ENDPOINT_URL").or_else(|| get("endpoint_url").cloned()),
            services: get("services")
                .and_then(|name| all.services.remove(name))
                .unwrap_or_default(),
        }
    }
}

/// Splits the header of a section in the config file into kind and name.
fn kind(header: &str) -> (&str, &str) {
    let (kind, name) = header.split_once(char::is_whitespace).unwrap_or((header, ""));
    (kind, name.trim())
}

/// Parses the sections of a file, in their order.
fn sections(text: &str) -> Vec<(String, Section)> {
    let mut out: Vec<(String, Section)> = Vec::new();
    let mut outer = String::new();
    for line in text.lines() {
        let trimmed = line.trim();
        if trimmed.is_empty() || trimmed.starts_with(['#', ';']) {
            continue;
        }
        if let Some(name) = trimmed.strip_prefix('[').and_then(|rest| rest.split(']').next()) {
            out.push((name.trim().to_owned(), Section::new()));
            continue;
        }
        if let (Some((name, value)), Some((_, section))) = (trimmed.split_once('='), out.last_mut()) {
            let value = value.split(" #").next().unwrap_or_default().trim();
            let name = name.trim().to_lowercase();
            // Indented lines are settings of the setting before.
            let name = match line.starts_with(char::is_whitespace) {
                true => format!("{outer}.{name}"),
                false => {
                    outer.clone_from(&name);
                    name
                }
            };
            section.insert(name, value.to_owned());
        }
    }
    out
}

/// Returns the credentials of a profile, or those of the container or the instance if it has none. The profile must exist if it
/// is `named` by the user.
pub(crate) async fn find(
    sources: &Sources,
    http: &HttpClient,
    services: &Services,
    name: &str,
    named: bool,
) -> Result<Credential> {
    let Sections { profiles, sessions, .. } = sources.files.read();
    if !profiles.contains_key(name) {
        return match named {
            true => Err(problem(format!(
                "failed to get shared config profile, {name}: there is no profile of this name in {}.",
                [sources.files.config.clone(), sources.files.credentials.clone()]
                    .concat()
                    .join(", ")
            ))),
            false => sources.of_surroundings(name).await,
        };
    }
    // The chain of source_profile is followed to its end; then the roles are assumed from the last to the first.
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
        // A profile may name itself as source: its role is assumed with its own keys, so a second visit ends the chain.
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
            // A source profile with its own keys ends the chain; the source of the first profile is always followed.
            (Some(next), None) if !has_keys || seen.len() == 1 => current.clone_from(next),
            (None, Some(source)) => break Some(of_source(sources, &current, source).await?),
            // The profile's own keys, or any other source that it has.
            _ => break of_profile(http, services, &current, profile, &sessions).await?,
        }
    };
    let mut found = match base {
        Some(found) => found,
        None => sources.of_surroundings(&current).await?,
    };
    for role in roles.iter().rev() {
        found = sts::assume(http, services, &found, role).await?;
    }
    Ok(found)
}

/// Returns the credentials of a `credential_source`.
async fn of_source(sources: &Sources, profile: &str, source: &str) -> Result<Credential> {
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
        "Ec2InstanceMetadata" => machine::instance(&sources.machine).await.map_err(|why| {
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

/// Returns the credentials of one profile without its role and source.
async fn of_profile(
    http: &HttpClient,
    services: &Services,
    name: &str,
    profile: &Section,
    sessions: &BTreeMap<String, Section>,
) -> Result<Option<Credential>> {
    let get = |key: &str| profile.get(key).filter(|value| !value.is_empty());
    // The order of these sources is that of the AWS SDKs.
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

/// Runs a `credential_process` and reads the credentials that it prints.
async fn process(profile: &str, command: &str) -> Result<Credential> {
    let failed = |why: String| {
        problem(format!(
            "The credential_process of the profile {profile:?} failed: {why}."
        ))
    };
    // The setting is a command line for the shell.
    let output = tokio::process::Command::new("/bin/sh")
        .args(["-c", command])
        // A question at the terminal would wait for an answer for ever.
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
        assert_eq!(found[1].1["s3.max"], "5");
    }
}
