//! Validation of URLs that must have certain schemes.

use monoform_sdk::Diagnostic;
use url::{ParseError, Url};

/// Returns the error in a URL that must have a host and one of these schemes; `None` if it is valid.
pub(crate) fn check(text: &str, schemes: &[&str]) -> Option<Diagnostic> {
    let url = match Url::parse(text) {
        Ok(url) => url,
        Err(ParseError::EmptyHost | ParseError::RelativeUrlWithoutBase) => return Some(no_host(text)),
        Err(error) => {
            return Some(Diagnostic::error(
                "Invalid URL",
                format!("Parsing URL {text:?} failed: {error}."),
            ));
        }
    };
    if url.host_str().is_none_or(str::is_empty) {
        return Some(no_host(text));
    }
    if schemes.contains(&url.scheme()) {
        return None;
    }
    Some(Diagnostic::error(
        "Invalid URL scheme",
        format!(
            "URL {text:?} expected to use scheme from {schemes:?}, got: {:?}.",
            url.scheme()
        ),
    ))
}

fn no_host(text: &str) -> Diagnostic {
    Diagnostic::error("Invalid URL", format!("URL {text:?} contains no host."))
}

#[cfg(test)]
mod tests {
    use super::check;

    #[test]
    fn hosts_and_schemes() {
        let summary = |text: &str| check(text, &["https", "tls"]).map(|d| d.summary);
        for fine in [
            "https://example.com",
            "tls://example.com:8443",
            "https://[::1]:1/x",
            "tls://10.0.0.1:1",
        ] {
            assert_eq!(summary(fine), None, "{fine}");
        }
        for no_url in ["example.com", "tls://", "https://", "mailto:x", "https://a:b"] {
            assert_eq!(summary(no_url).as_deref(), Some("Invalid URL"), "{no_url}");
        }
        assert_eq!(summary("ftp://example.com").as_deref(), Some("Invalid URL scheme"));
    }
}
