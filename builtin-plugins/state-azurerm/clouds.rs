//! Service addresses of the Azure clouds.

use serde_json::Value as Json;
use store_client::{Failure, HeaderMap, HttpClient, Method, StatusCode, Url};

/// URLs of the services of a cloud.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cloud {
    /// URL of Entra ID, such as `https://login.microsoftonline.com`.
    pub login: String,
    /// URL of the Resource Manager, such as `https://management.azure.com`.
    pub manager: String,
    /// Resource (audience) of tokens for Azure Storage.
    pub storage: String,
    /// Domain suffix of storage accounts, such as `core.windows.net`.
    pub suffix: String,
}

const STORAGE: &str = "https://storage.azure.com";

fn cloud(login: &str, manager: &str, suffix: &str) -> Cloud {
    Cloud {
        login: format!("https://{login}"),
        manager: format!("https://{manager}"),
        storage: STORAGE.to_owned(),
        suffix: suffix.to_owned(),
    }
}

pub(crate) fn named(name: &str) -> Option<Cloud> {
    match name.to_ascii_lowercase().as_str() {
        "public" | "global" | "canary" => Some(cloud(
            "login.microsoftonline.com",
            "management.azure.com",
            "core.windows.net",
        )),
        "usgovernment" | "usgovernmentl4" | "usgovernmentl5" | "dod" => Some(cloud(
            "login.microsoftonline.us",
            "management.usgovcloudapi.net",
            "core.usgovcloudapi.net",
        )),
        "china" => Some(cloud(
            "login.chinacloudapi.cn",
            "management.chinacloudapi.cn",
            "core.chinacloudapi.cn",
        )),
        _ => None,
    }
}

/// Reason why the metadata of a server do not describe a cloud.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CloudError {
    #[error("{host:?} is not the name of a server: {source}")]
    Host { host: String, source: url::ParseError },
    #[error("asking {host} failed: {source}")]
    Unanswered { host: String, source: Failure },
    #[error("{host} has answered with the status {status}")]
    Status { host: String, status: StatusCode },
    #[error("what {host} says does not describe a cloud")]
    NotDescribed { host: String },
}

/// Requests the description of a cloud from its metadata server.
pub(crate) async fn described(http: &HttpClient, host: &str) -> Result<Cloud, CloudError> {
    let own = || host.to_owned();
    let address = format!("https://{host}/metadata/endpoints?api-version=2022-09-01");
    let url = Url::parse(&address).map_err(|source| CloudError::Host { host: own(), source })?;
    let answer = http
        .send(Method::GET, &url, HeaderMap::new(), None)
        .await
        .map_err(|source| CloudError::Unanswered { host: own(), source })?;
    if !answer.status.is_success() {
        return Err(CloudError::Status {
            host: own(),
            status: answer.status,
        });
    }
    of_json(&answer.body).ok_or_else(|| CloudError::NotDescribed { host: own() })
}

fn of_json(text: &[u8]) -> Option<Cloud> {
    let json: Json = serde_json::from_slice(text).ok()?;
    // Azure Stack returns one cloud. The public servers return a list, whose first entry is used.
    let json = json.as_array().map_or(Some(&json), |clouds| clouds.first())?;
    let trimmed = |text: &Json| Some(text.as_str()?.trim_end_matches('/').to_owned());
    Some(Cloud {
        login: trimmed(&json["authentication"]["loginEndpoint"])?,
        manager: trimmed(&json["resourceManager"])?,
        storage: STORAGE.to_owned(),
        suffix: trimmed(&json["suffixes"]["storage"])?,
    })
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn clouds_are_known_by_name_and_by_description() {
        assert_eq!(named("USGovernment").unwrap().suffix, "core.usgovcloudapi.net");
        assert_eq!(named("German"), None);
        let text = br#"[{"name":"x","resourceManager":"https://rm/","authentication":{"loginEndpoint":"https://login/"},"suffixes":{"storage":"s"}}]"#;
        let cloud = of_json(text).unwrap();
        assert_eq!(
            (cloud.login.as_str(), cloud.manager.as_str(), cloud.suffix.as_str()),
            ("https://login", "https://rm", "s")
        );
        assert_eq!(of_json(b"{}"), None);
    }
}
