//! Credentials of clients: a name and a password, in HTTP basic authentication.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::HeaderMap;
use hyper::header::AUTHORIZATION;
use sha2::{Digest as _, Sha256};

/// Name and password that every request must have.
#[derive(Clone)]
pub struct Credentials {
    /// Digest of `NAME:PASSWORD`. Digests are compared, because the time of comparing the texts would reveal how much of a guess is
    /// correct.
    digest: [u8; 32],
}

impl Credentials {
    /// Parses `NAME:PASSWORD`. Returns `None` if one of them is missing, or if the text has control characters.
    #[must_use]
    pub fn parse(text: &str) -> Option<Credentials> {
        let (name, password) = text.split_once(':')?;
        let complete = !name.is_empty() && !password.is_empty() && !text.contains(char::is_control);
        complete.then(|| Credentials {
            digest: Sha256::digest(text).into(),
        })
    }

    /// Returns true if a request contains these credentials.
    #[must_use]
    pub fn are_in(&self, headers: &HeaderMap) -> bool {
        let sent = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
        let encoded = sent.and_then(|value| {
            let (scheme, encoded) = value.split_once(' ')?;
            scheme.eq_ignore_ascii_case("basic").then_some(encoded.trim())
        });
        let text = encoded.and_then(|encoded| STANDARD.decode(encoded).ok());
        text.is_some_and(|text| <[u8; 32]>::from(Sha256::digest(text)) == self.digest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(value: &str) -> HeaderMap {
        HeaderMap::from_iter([(AUTHORIZATION, value.parse().unwrap())])
    }

    #[test]
    fn only_the_same_name_and_password_are_accepted() {
        let credentials = Credentials::parse("ann:a:b").unwrap();
        let basic = |text: &str| headers(&format!("Basic {}", STANDARD.encode(text)));
        assert!(credentials.are_in(&basic("ann:a:b")));
        assert!(!credentials.are_in(&basic("ann:a:c")));
        assert!(!credentials.are_in(&basic("ann")));
        assert!(!credentials.are_in(&headers("Bearer x")));
        assert!(!credentials.are_in(&headers("Basic ***")));
        assert!(!credentials.are_in(&HeaderMap::new()));
    }

    #[test]
    fn incomplete_credentials_are_refused() {
        for text in ["", "ann", "ann:", ":b", "ann:b\n"] {
            assert!(Credentials::parse(text).is_none(), "{text:?}");
        }
    }
}
