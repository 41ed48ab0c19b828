//! Patterns for provider addresses in the CLI configuration: `example.com/*/*`.

use addrs::Provider;

/// Pattern of provider addresses; a part that is `None` matches everything.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    pub(crate) host: Option<String>,
    pub(crate) namespace: Option<String>,
    pub(crate) ty: Option<String>,
}

/// Reason why a provider address pattern is invalid. The text is a clause without a full stop.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PatternError {
    #[error("it must have two or three parts, like example.com/namespace/type")]
    Parts,
    /// A wildcard is followed by a fixed part.
    #[error("a part before a fixed one must not be \"*\"")]
    Wildcard,
    /// A fixed part is not valid in a provider address.
    #[error("{0}")]
    Address(String),
}

impl Pattern {
    /// Parses a pattern of two or three parts.
    pub fn parse(text: &str) -> Result<Pattern, PatternError> {
        let parts: Vec<&str> = text.split('/').collect();
        let (host, namespace, ty) = match parts.as_slice() {
            [namespace, ty] => (addrs::provider::default_host(), *namespace, *ty),
            [host, namespace, ty] => (*host, *namespace, *ty),
            _ => return Err(PatternError::Parts),
        };
        let part = |p: &str| (p != "*").then(|| p.to_ascii_lowercase());
        let pattern = Pattern {
            host: part(host),
            namespace: part(namespace),
            ty: part(ty),
        };
        // As in Terraform, a wildcard must not be followed by a fixed part.
        if (pattern.namespace.is_none() && pattern.ty.is_some())
            || (pattern.host.is_none() && pattern.namespace.is_some())
        {
            return Err(PatternError::Wildcard);
        }
        // The fixed parts are validated as a complete address, with placeholders for the wildcards.
        let concrete = |p: &Option<String>, filler: &str| p.clone().unwrap_or_else(|| filler.to_owned());
        let sample = format!(
            "{}/{}/{}",
            concrete(&pattern.host, "example.com"),
            concrete(&pattern.namespace, "n"),
            concrete(&pattern.ty, "t")
        );
        Provider::parse(&sample).map_err(|error| PatternError::Address(error.detail))?;
        Ok(pattern)
    }

    /// Returns true if the pattern matches this address.
    #[must_use]
    pub fn matches(&self, provider: &Provider) -> bool {
        let fits = |pattern: &Option<String>, part: &str| pattern.as_deref().is_none_or(|p| p == part);
        fits(&self.host, &provider.host) && fits(&self.namespace, &provider.namespace) && fits(&self.ty, &provider.ty)
    }
}
