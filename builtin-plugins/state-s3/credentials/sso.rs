//! Credentials of IAM Identity Center (formerly SSO), for users who have logged in with `aws sso login`.

#![expect(clippy::disallowed_methods, reason = "tokens expire")]

use std::collections::BTreeMap;
use std::path::PathBuf;

use ::files::Policy;
use http::aws::Credential;
use jiff::Timestamp;
use monoform_sdk::{Diagnostics, Result, env};
use serde_json::{Value as Json, json};
use store_client::sum::sha1_hex;
use store_client::{Answer, HeaderMap, HeaderValue, HttpClient, Method};

use super::credential::{credential, expiry, problem};
use super::files::Section;
use crate::services::{Services, url};

/// Returns the path of the cached token of a login. The file name is the SHA-1 of the session's name, or else of the portal's URL.
fn file(key: &str) -> PathBuf {
    let name = sha1_hex(key.as_bytes());
    env::expand_home(&format!("~/.aws/sso/cache/{name}.json"))
}

fn expired(profile: &str) -> Diagnostics {
    problem(format!(
        "The login of the profile {profile:?} has expired, or there was none. Run \"aws sso login --profile {profile}\"."
    ))
}

/// Returns the credentials of a profile.
pub(super) async fn find(
    http: &HttpClient,
    services: &Services,
    name: &str,
    profile: &Section,
    sessions: &BTreeMap<String, Section>,
) -> Result<Credential> {
    let session = match profile.get("sso_session") {
        None => None,
        Some(session) => Some((
            session,
            sessions.get(session).ok_or_else(|| {
                problem(format!(
                    "The profile {name:?} refers to the sso-session {session:?}, which is not there."
                ))
            })?,
        )),
    };
    // As in the AWS CLI, settings of the SSO session override those of the profile.
    let get = |key: &str| {
        let of_session = session.and_then(|(_, section)| section.get(key));
        of_session
            .or_else(|| profile.get(key))
            .filter(|value| !value.is_empty())
    };
    let need = |key: &str| {
        get(key)
            .cloned()
            .ok_or_else(|| problem(format!("The profile {name:?} has no {key}.")))
    };
    let (account, role) = (need("sso_account_id")?, need("sso_role_name")?);
    let (region, start_url) = (need("sso_region")?, need("sso_start_url")?);
    let path = file(session.map_or(&start_url, |(session, _)| session));
    let text = std::fs::read_to_string(&path).map_err(|_| expired(name))?;
    let cached: Json = serde_json::from_str(&text).map_err(|_| expired(name))?;
    let holds = cached["expiresAt"]
        .as_str()
        .and_then(expiry)
        .is_some_and(|at| at > Timestamp::now());
    let token = match cached["accessToken"].as_str() {
        Some(token) if holds => token.to_owned(),
        _ => refreshed(http, services, &region, &cached, &path)
            .await
            .ok_or_else(|| expired(name))?,
    };
    let what = format!("Asking for the credentials of the role {role} in the account {account}");
    let answer = ask_portal(http, services, &what, [&region, &account, &role], &token).await?;
    match answer.status.as_u16() {
        200 => {}
        401 => return Err(expired(name)),
        status => {
            return Err(problem(format!(
                "{what} was answered with the status {status}: {}",
                answer.text()
            )));
        }
    }
    let json: Json = serde_json::from_slice(&answer.body).unwrap_or_default();
    let found = &json["roleCredentials"];
    match (found["accessKeyId"].as_str(), found["secretAccessKey"].as_str()) {
        (Some(access), Some(secret)) => {
            let expires = found["expiration"]
                .as_i64()
                .and_then(|ms| Timestamp::from_millisecond(ms).ok());
            Ok(credential(access, secret, found["sessionToken"].as_str(), expires))
        }
        _ => Err(problem(format!("{what} was answered without credentials."))),
    }
}

/// Requests the credentials of a role from the portal in a region.
async fn ask_portal(
    http: &HttpClient,
    services: &Services,
    what: &str,
    [region, account, role]: [&str; 3],
    token: &str,
) -> Result<Answer> {
    let usual = format!("https://portal.sso.{region}.amazonaws.com");
    let mut address = url("SSO", services.sso.as_ref().unwrap_or(&usual))?;
    address.set_path(&format!(
        "{}/federation/credentials",
        address.path().trim_end_matches('/')
    ));
    address
        .query_pairs_mut()
        .append_pair("account_id", account)
        .append_pair("role_name", role);
    let mut headers = HeaderMap::new();
    if let Ok(value) = HeaderValue::from_str(token) {
        headers.insert("x-amz-sso_bearer_token", value);
    }
    let answer = http.send(Method::GET, &address, headers, None).await;
    answer.map_err(|failure| failure.diagnostic("Error asking AWS for credentials", what).into())
}

/// If the login has a refresh token, replaces the expired token by a new one, and writes that to the cache file. `None` if there is no new
/// token.
async fn refreshed(
    http: &HttpClient,
    services: &Services,
    region: &str,
    cached: &Json,
    path: &std::path::Path,
) -> Option<String> {
    let part = |name: &str| cached[name].as_str();
    let until = part("registrationExpiresAt").and_then(expiry);
    if until.is_some_and(|until| until <= Timestamp::now()) {
        return None;
    }
    let body = json!({
        "clientId": part("clientId")?,
        "clientSecret": part("clientSecret")?,
        "refreshToken": part("refreshToken")?,
        "grantType": "refresh_token",
    });
    let usual = format!("https://oidc.{region}.amazonaws.com");
    let mut address = url("SSO", services.sso_login.as_ref().unwrap_or(&usual)).ok()?;
    address.set_path(&format!("{}/token", address.path().trim_end_matches('/')));
    let mut headers = HeaderMap::new();
    headers.insert("content-type", HeaderValue::from_static("application/json"));
    let answer = http
        .send(Method::POST, &address, headers, Some(body.to_string().into_bytes()))
        .await
        .ok()?;
    let json: Json = serde_json::from_slice(&answer.body)
        .ok()
        .filter(|_| answer.status.is_success())?;
    let token = json["accessToken"].as_str()?.to_owned();
    // The AWS CLI uses the same file, so its other fields are kept, and the time is written in the CLI's format.
    let mut kept = cached.clone();
    kept["accessToken"] = token.clone().into();
    if let Some(seconds) = json["expiresIn"].as_i64() {
        let at = Timestamp::now()
            .saturating_add(jiff::SignedDuration::from_secs(seconds))
            .unwrap_or(Timestamp::MAX);
        kept["expiresAt"] = at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string().into();
    }
    if let Some(token) = json["refreshToken"].as_str() {
        kept["refreshToken"] = token.into();
    }
    // The token can be used even if the file cannot be written; then the next command has to refresh it again. The file is replaced as a
    // whole, because other programs may read it at any time.
    if let Err(e) = ::files::replace(path, kept.to_string().as_bytes(), Policy::STATE) {
        tracing::warn!("the new token of the login cannot be kept in {}: {e}", path.display());
    }
    Some(token)
}
