//! Services of a host: their URLs by name.

use std::collections::BTreeMap;

use url::Url;

/// The services of a host.
#[derive(Clone, Debug, Default)]
pub struct Services {
    /// URL of the discovery document, against which relative URLs are resolved.
    pub(crate) base: Option<Url>,
    /// The entry of each service.
    pub(crate) entries: BTreeMap<String, serde_json::Value>,
}

/// The reason that the URL of a service cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadServiceUrl {
    #[error("it is not text")]
    NotText,
    #[error("\"{text}\" is not an address ({source})")]
    Malformed { text: String, source: url::ParseError },
    /// The scheme is neither http nor https.
    #[error("\"{0}\" is neither an https nor an http address")]
    Scheme(String),
    /// The URL has a user name or password.
    #[error("it has a user name or a password in it")]
    Credentials,
}

impl Services {
    /// Returns the URL of a service; `None` if it is not offered. An invalid entry is an error.
    pub fn url(&self, service: &str) -> Result<Option<Url>, BadServiceUrl> {
        let text = match self.entries.get(service) {
            None | Some(serde_json::Value::Null) => return Ok(None),
            Some(serde_json::Value::String(text)) => text,
            Some(_) => return Err(BadServiceUrl::NotText),
        };
        let parsed = match &self.base {
            Some(base) => base.join(text),
            None => Url::parse(text),
        };
        let mut url = parsed.map_err(|source| BadServiceUrl::Malformed {
            text: text.clone(),
            source,
        })?;
        if !matches!(url.scheme(), "https" | "http") {
            return Err(BadServiceUrl::Scheme(text.clone()));
        }
        // As in Terraform, credentials come from settings only, never from the response of a host.
        if !url.username().is_empty() || url.password().is_some() {
            return Err(BadServiceUrl::Credentials);
        }
        // Paths are joined to this URL; without the slash at its end, they would replace its last segment.
        if !url.path().ends_with('/') {
            let path = format!("{}/", url.path());
            url.set_path(&path);
        }
        url.set_fragment(None);
        Ok(Some(url))
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.entries.keys().cloned().collect()
    }
}
