//! Credentials from the container or the EC2 instance on which this program runs.

use std::net::IpAddr;
use std::time::Duration;

use http::aws::Credential;
use monoform_sdk::{Result, env};
use serde_json::Value as Json;
use store_client::{
    Answer, Failure, HeaderMap, HeaderValue, HttpClient, Method, Proxy, Retries, Settings as HttpSettings, StatusCode,
    TlsError, Url,
};

use super::credential::{credential, expiry, problem};

/// Addresses of the credential services of Amazon ECS and EKS.
const CONTAINER_SERVICES: [&str; 3] = ["169.254.170.2", "169.254.170.23", "[fd00:ec2::23]"];

/// Settings of the instance metadata service.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// URL of the EC2 metadata service.
    pub endpoint: String,
    pub disabled: bool,
}

/// Creates a client for link-local services. They answer at once or do not exist, so the timeout is short.
fn near() -> std::result::Result<HttpClient, TlsError> {
    HttpClient::new(HttpSettings {
        // A link-local address belongs to this machine, and a proxy would reach another one.
        proxy: Proxy::None,
        timeout: Some(Duration::from_secs(2)),
        retries: Retries {
            max: 1,
            wait_min: Duration::from_millis(200),
            ..Retries::default()
        },
        ..HttpSettings::default()
    })
}

fn of_json(answer: &Answer) -> Option<Credential> {
    let json: Json = serde_json::from_slice(&answer.body).ok()?;
    let part = |name: &str| json[name].as_str();
    let expires = part("Expiration").and_then(expiry);
    Some(credential(
        part("AccessKeyId")?,
        part("SecretAccessKey")?,
        part("Token"),
        expires,
    ))
}

/// Returns true if a request with a token may be sent to this URL. Without TLS, it may be sent only to this machine and to the credential
/// services of containers.
fn is_safe(url: &Url) -> bool {
    let host = url.host_str().unwrap_or_default();
    let address: Option<IpAddr> = host.trim_matches(['[', ']']).parse().ok();
    let of_machine = host == "localhost" || address.is_some_and(|address| address.is_loopback());
    url.scheme() == "https" || of_machine || CONTAINER_SERVICES.contains(&host)
}

/// Returns the credentials of the container, if the environment names a credential service.
pub(super) async fn container() -> Result<Option<Credential>> {
    let relative = env::var("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI").map(|path| format!("http://169.254.170.2{path}"));
    let Some(address) = relative.or_else(|| env::var("AWS_CONTAINER_CREDENTIALS_FULL_URI")) else {
        return Ok(None);
    };
    let failed = |why: String| {
        problem(format!(
            "The credentials of the container cannot be got from {address}: {why}."
        ))
    };
    let url = Url::parse(&address).map_err(|e| failed(e.to_string()))?;
    if !is_safe(&url) {
        return Err(failed(
            "credentials come from this machine (127.0.0.1, or the service for containers), or else by https"
                .to_owned(),
        ));
    }
    // The file takes precedence, because its token is replaced while the container runs, unlike that in the variable.
    let token = match env::var("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE") {
        Some(path) => Some(std::fs::read_to_string(&path).map_err(|e| failed(format!("the token in {path}: {e}")))?),
        None => env::var("AWS_CONTAINER_AUTHORIZATION_TOKEN"),
    };
    let mut headers = HeaderMap::new();
    if let Some(token) = token {
        let value =
            HeaderValue::from_str(token.trim()).map_err(|_| failed("the token is no text of one line".to_owned()))?;
        headers.insert("authorization", value);
    }
    let http = near().map_err(|e| failed(e.to_string()))?;
    let answer = http
        .send(Method::GET, &url, headers, None)
        .await
        .map_err(|f| failed(f.message))?;
    match of_json(&answer).filter(|_| answer.status.is_success()) {
        Some(found) => Ok(Some(found)),
        None => Err(failed(format!("status {}, {}", answer.status, answer.text().trim()))),
    }
}

/// Reason why the metadata service of an instance provides no credentials. The text is appended to a sentence that names the service.
#[derive(Debug, thiserror::Error)]
pub(super) enum InstanceError {
    #[error("it is not asked, by a setting (AWS_EC2_METADATA_DISABLED or skip_metadata_api_check)")]
    Disabled,
    #[error("its address {address:?} is wrong: {source}")]
    Address { address: String, source: url::ParseError },
    #[error(transparent)]
    Client(#[from] TlsError),
    #[error("it does not answer")]
    Silent,
    #[error("it gives no token (status {0})")]
    NoToken(StatusCode),
    #[error("its token is no text")]
    TokenText,
    #[error("{}", .0.reason())]
    Unanswered(#[from] Failure),
    #[error("the machine has no role")]
    NoRole,
    #[error("it has no credentials for the role {role} (status {status})")]
    NoCredentials { role: String, status: StatusCode },
}

/// Returns the credentials of the instance, with version 2 of the metadata service.
pub(super) async fn instance(settings: &Settings) -> std::result::Result<Credential, InstanceError> {
    if settings.disabled {
        return Err(InstanceError::Disabled);
    }
    let wrong = |source| InstanceError::Address {
        address: settings.endpoint.clone(),
        source,
    };
    let base = Url::parse(&settings.endpoint).map_err(wrong)?;
    let at = |path: &str| base.join(path).map_err(wrong);
    let http = near()?;
    let mut headers = HeaderMap::new();
    // Version 2 requires a session token, so that requests that a proxy or browser was tricked into cannot read credentials. Six hours is
    // the longest possible lifetime.
    headers.insert(
        "x-aws-ec2-metadata-token-ttl-seconds",
        HeaderValue::from_static("21600"),
    );
    let answer = http
        .send(Method::PUT, &at("/latest/api/token")?, headers, Some(Vec::new()))
        .await;
    let answer = answer.map_err(|_| InstanceError::Silent)?;
    if !answer.status.is_success() {
        return Err(InstanceError::NoToken(answer.status));
    }
    let mut headers = HeaderMap::new();
    let token = HeaderValue::from_bytes(answer.body.trim_ascii()).map_err(|_| InstanceError::TokenText)?;
    headers.insert("x-aws-ec2-metadata-token", token);
    let path = "/latest/meta-data/iam/security-credentials/";
    let roles = http.send(Method::GET, &at(path)?, headers.clone(), None).await?;
    let text = roles.text();
    let role = text.lines().next().map(str::trim).filter(|_| roles.status.is_success());
    let role = role.filter(|role| !role.is_empty()).ok_or(InstanceError::NoRole)?;
    let answer = http
        .send(Method::GET, &at(&format!("{path}{role}"))?, headers, None)
        .await?;
    of_json(&answer).ok_or_else(|| InstanceError::NoCredentials {
        role: role.to_owned(),
        status: answer.status,
    })
}

/// Returns the credentials of the container, or else of the instance, for a profile without credentials.
pub(super) async fn of_surroundings(machine: &Settings, profile: &str) -> Result<Credential> {
    // The container's credentials come first, because the metadata service returns the role of the whole machine.
    if let Some(found) = container().await? {
        return Ok(found);
    }
    let why = match instance(machine).await {
        Ok(found) => return Ok(found),
        Err(why) => why,
    };
    Err(problem(format!(
        "There are no credentials for AWS: none in the backend, in the environment (AWS_ACCESS_KEY_ID and \
         AWS_SECRET_ACCESS_KEY), or in the profile {profile:?} of the shared files, and none from the metadata service of EC2: \
         {why}.\n\nSet the variables, or make a profile with \"aws configure\" or \"aws configure sso\" and name it in \
         AWS_PROFILE or with the argument \"profile\"."
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_go_in_plain_text_to_this_machine_only() {
        for (address, safe) in [
            ("http://127.0.0.1:8080/x", true),
            ("http://[::1]/x", true),
            ("http://localhost/x", true),
            ("http://169.254.170.2/v2/x", true),
            ("http://169.254.170.23/v1/credentials", true),
            ("http://[fd00:ec2::23]/v1/credentials", true),
            ("https://credentials.example/x", true),
            ("http://credentials.example/x", false),
            ("http://169.254.170.2@credentials.example/x", false),
            ("http://10.0.0.1/x", false),
        ] {
            assert_eq!(is_safe(&Url::parse(address).unwrap()), safe, "{address}");
        }
    }
}
