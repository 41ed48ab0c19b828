//! Absolute URLs.

use super::text::text_type;
use crate::model::ModelError;

/// An absolute URL (RFC 3986), with a scheme. Two texts mean the same if they differ only in the case of scheme and host, in the default
/// port of the scheme, in an empty path, or in escapes of characters that need none.
///
/// ```
/// use monoform_sdk::CustomType as _;
/// use monoform_sdk::types::Url;
///
/// let url = Url::new("https://Example.com:443")?;
/// assert!(url.same(&Url::new("https://example.com/")?));
/// assert_eq!((url.scheme(), url.host()), ("https", Some("Example.com")));
/// # Ok::<(), monoform_sdk::model::ModelError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    text: String,
    /// Position of the end of the scheme in `text`.
    scheme: usize,
    /// Positions of the beginning and the end of the host in `text`, if there is a host.
    host: Option<(usize, usize)>,
    /// Position of the end of user, host and port in `text`.
    authority: usize,
    port: Option<u16>,
}

text_type!(Url);

impl Url {
    /// Reads a URL.
    ///
    /// # Errors
    /// The text is not an absolute URL.
    pub fn new(text: impl Into<String>) -> Result<Url, ModelError> {
        read(text.into())
            .ok_or_else(|| ModelError::new("it must be an absolute URL, such as \"https://example.com/path\""))
    }

    /// Returns the scheme (the part before the first colon), as it is written.
    #[must_use]
    pub fn scheme(&self) -> &str {
        &self.text[..self.scheme]
    }

    /// Returns the host as it is written; `None` if the URL has none. An IPv6 address is in brackets.
    #[must_use]
    pub fn host(&self) -> Option<&str> {
        self.host.map(|(from, to)| &self.text[from..to])
    }

    /// Returns the port, if the URL has one.
    #[must_use]
    pub fn port(&self) -> Option<u16> {
        self.port
    }

    fn meaning(&self) -> String {
        let scheme = self.scheme().to_ascii_lowercase();
        let mut out = format!("{scheme}:");
        let rest = &self.text[self.authority..];
        if let Some((from, to)) = self.host {
            let user = &self.text[self.scheme + 3..from];
            out += &format!("//{user}{}", self.text[from..to].to_ascii_lowercase());
            let default = match scheme.as_str() {
                "http" | "ws" => Some(80),
                "https" | "wss" => Some(443),
                "ftp" => Some(21),
                _ => None,
            };
            if let Some(port) = self.port.filter(|port| Some(*port) != default) {
                out += &format!(":{port}");
            }
            if !rest.starts_with('/') {
                out.push('/');
            }
        }
        out + &unescaped(rest)
    }
}

fn read(text: String) -> Option<Url> {
    let scheme = text.find(':')?;
    let mut letters = text[..scheme].chars();
    let valid_scheme = letters.next()?.is_ascii_alphabetic()
        && letters.all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'));
    let rest = &text[scheme + 1..];
    if !valid_scheme || rest.is_empty() || !valid_characters(rest) {
        return None;
    }
    let Some(after) = rest.strip_prefix("//") else {
        return Some(Url {
            authority: scheme + 1,
            text,
            scheme,
            host: None,
            port: None,
        });
    };
    let begin = scheme + 3;
    let length = after.find(['/', '?', '#']).unwrap_or(after.len());
    let authority = &after[..length];
    let from = authority.rfind('@').map_or(0, |at| at + 1);
    let host_and_port = &authority[from..];
    // An IPv6 address is in brackets, because its colons would look like the colon before a port.
    let host_length = match host_and_port.strip_prefix('[') {
        Some(inner) => {
            let end = inner.find(']')?;
            inner[..end].parse::<std::net::Ipv6Addr>().ok()?;
            end + 2
        }
        None => host_and_port.find(':').unwrap_or(host_and_port.len()),
    };
    let (host, port) = host_and_port.split_at(host_length);
    let port = match port.strip_prefix(':') {
        Some(digits) if !digits.bytes().all(|b| b.is_ascii_digit()) => return None,
        Some("") => None,
        Some(digits) => Some(digits.parse().ok()?),
        None if port.is_empty() => None,
        None => return None,
    };
    // Only the scheme `file` allows an empty host.
    if host.is_empty() && !text[..scheme].eq_ignore_ascii_case("file") {
        return None;
    }
    let host = Some((begin + from, begin + from + host_length));
    let authority = begin + length;
    Some(Url {
        text,
        scheme,
        host,
        authority,
        port,
    })
}

/// Returns true if the text has only characters that are allowed in a URL, and each percent sign begins an escape.
fn valid_characters(text: &str) -> bool {
    let bytes = text.as_bytes();
    let allowed = |b: u8| b.is_ascii_alphanumeric() || b"-._~:/?#[]@!$&'()*+,;=%".contains(&b);
    bytes.iter().all(|b| allowed(*b))
        && (bytes.iter().enumerate())
            .filter(|(_, b)| **b == b'%')
            .all(|(i, _)| escaped(bytes, i).is_some())
}

/// Returns the byte of the escape that begins at this position.
fn escaped(bytes: &[u8], at: usize) -> Option<u8> {
    let digits = bytes.get(at + 1..at + 3)?;
    // Checked first, because `from_str_radix` accepts a sign.
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return None;
    }
    u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// Returns the text with escapes decoded if their characters need none. The hexadecimal digits of all other escapes become upper case.
fn unescaped(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match (*byte == b'%').then(|| escaped(bytes, at)).flatten() {
            Some(b) if b.is_ascii_alphanumeric() || b"-._~".contains(&b) => out.push(b.into()),
            Some(b) => out += &format!("%{b:02X}"),
            // `valid_characters` allows ASCII only, so the byte is a whole character.
            None => {
                out.push((*byte).into());
                at += 1;
                continue;
            }
        }
        at += 3;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CustomType as _;

    #[test]
    fn forms_of_one_url_mean_the_same() {
        let read = |text: &str| Url::new(text).unwrap();
        for (one, other) in [
            ("HTTPS://Example.com:443", "https://example.com/"),
            ("http://a/%7Euser/%2f", "http://a/~user/%2F"),
            ("http://a?q", "http://a/?q"),
            ("http://[::A]:80/", "http://[::a]/"),
        ] {
            assert!(read(one).same(&read(other)), "{one} {other}");
        }
        for (one, other) in [
            ("http://a/b", "http://a/B"),
            ("http://a/", "https://a/"),
            ("http://a/b", "http://a/b/"),
            ("http://a/%2F", "http://a//"),
            ("http://U@a/", "http://u@a/"),
            ("http://a:8080/", "http://a/"),
        ] {
            assert!(!read(one).same(&read(other)), "{one} {other}");
        }
        let url = read("s3+x://me:pw@host:9000/p?a#f");
        assert_eq!(
            (url.scheme(), url.host(), url.port()),
            ("s3+x", Some("host"), Some(9000))
        );
        assert_eq!(read("mailto:a@b").host(), None);
        assert_eq!(read("file:///etc").host(), Some(""));
    }

    #[test]
    fn what_is_no_absolute_url_is_refused() {
        for wrong in [
            "",
            "example.com",
            "/path",
            "//host/path",
            "http:",
            "http://",
            "http://a b",
            "http://a/%2",
            "http://a/%+1",
            "http://a:port",
            "http://a:65536",
            "http://[::1",
            "1http://a",
            "http://ü",
        ] {
            assert!(Url::new(wrong).is_err(), "{wrong}");
        }
    }
}
