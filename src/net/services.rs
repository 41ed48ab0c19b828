//! The services of a host: their addresses by name.

use std::collections::BTreeMap;

use url::Url;

/// The services of a host.
#[derive(Clone, Debug, Default)]
pub struct Services {
    /// Where the list came from: addresses in it may be relative to this.
    pub(crate) base: Option<Url>,
    /// What each service's entry says.
    pub(crate) entries: BTreeMap<String, serde_json::Value>,
}

/// Why the address of a service cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadServiceUrl {
    /// It is not a string.
    #[error("it is not text")]
    NotText,
    /// It is not a URL.
    #[error("\"{text}\" is not an address ({source})")]
    Malformed {
        /// What the host gives.
        text: String,
        /// Why.
        source: url::ParseError,
    },
    /// Its scheme is not that of HTTP.
    #[error("\"{0}\" is neither an https nor an http address")]
    Scheme(String),
    /// It has a user name or a password.
    #[error("it has a user name or a password in it")]
    Credentials,
}

impl Services {
    /// The address of a service; `None` if it is not offered. The error says what is wrong with its entry.
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
        if !url.username().is_empty() || url.password().is_some() {
            return Err(BadServiceUrl::Credentials);
        }
        // What services answer to is named by paths below.
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
