//! URIs in certificates, such as `spiffe://…`. They are kept as they are, except that invalid characters are escaped. The crate `url` is
//! not used, because it would add a slash after a host and refuse relative URIs.

/// Reason why a text is not a URI.
#[derive(Debug, PartialEq, thiserror::Error)]
pub(crate) enum UriError {
    #[error("it has control characters")]
    ControlCharacters,
    #[error("it has characters outside ASCII where they cannot be escaped")]
    NotAscii,
    #[error("its scheme is missing")]
    NoScheme,
    #[error("its first part has a colon, but is no scheme")]
    Scheme,
    #[error("the ] of its host is missing")]
    Bracket,
    #[error("the host [{0}] is no IPv6 address")]
    Ipv6(String),
    #[error("its host has the character {0:?}")]
    HostCharacter(char),
    #[error("its port {0:?} is no number")]
    Port(String),
    #[error("it has a % that begins no escape")]
    Escape,
}

/// Returns a URI as it is written into a certificate.
pub(crate) fn normal(text: &str) -> Result<String, UriError> {
    if text.chars().any(|c| c.is_ascii_control()) {
        return Err(UriError::ControlCharacters);
    }
    let (before, fragment) = cut(text, '#');
    let (before, query) = cut(before, '?');
    let (scheme, rest) = scheme(before)?;
    let mut out = String::new();
    if let Some(scheme) = scheme {
        out.push_str(&scheme.to_ascii_lowercase());
        out.push(':');
    }
    let path = match rest.strip_prefix("//") {
        Some(rest) => {
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            out.push_str("//");
            out.push_str(checked_authority(authority)?);
            path
        }
        None => rest,
    };
    let opaque = scheme.is_some() && !rest.starts_with('/');
    // As in Go's library, the opaque part is not escaped.
    if opaque {
        out.push_str(path);
    } else {
        out.push_str(&escaped(path)?);
    }
    if let Some(query) = query {
        out.push('?');
        out.push_str(query);
    }
    if let Some(fragment) = fragment {
        out.push('#');
        out.push_str(&escaped(fragment)?);
    }
    match out.is_ascii() {
        true => Ok(out),
        false => Err(UriError::NotAscii),
    }
}

fn cut(text: &str, at: char) -> (&str, Option<&str>) {
    match text.split_once(at) {
        Some((before, after)) => (before, Some(after)),
        None => (text, None),
    }
}

/// Splits a text into its scheme, if there is one, and the rest.
fn scheme(text: &str) -> Result<(Option<&str>, &str), UriError> {
    let end = text.find(|c: char| !(c.is_ascii_alphanumeric() || "+-.".contains(c)));
    match end {
        Some(0) if text.starts_with(':') => Err(UriError::NoScheme),
        Some(end) if text[end..].starts_with(':') && text.starts_with(|c: char| c.is_ascii_alphabetic()) => {
            Ok((Some(&text[..end]), &text[end + 1..]))
        }
        _ => match text.split('/').next() {
            Some(first) if first.contains(':') => Err(UriError::Scheme),
            _ => Ok((None, text)),
        },
    }
}

/// Checks an authority (`user@host:port`) without changing it.
fn checked_authority(authority: &str) -> Result<&str, UriError> {
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let port = match host.strip_prefix('[') {
        Some(rest) => {
            let (address, after) = rest.split_once(']').ok_or(UriError::Bracket)?;
            // A zone may follow the address after a percent sign (RFC 6874).
            let address = address.split('%').next().unwrap_or_default();
            if address.parse::<std::net::Ipv6Addr>().is_err() {
                return Err(UriError::Ipv6(address.to_owned()));
            }
            after
        }
        None => {
            if let Some(bad) = host.chars().find(|c| " ^`{}|\\%".contains(*c)) {
                return Err(UriError::HostCharacter(bad));
            }
            host.rfind(':').map_or("", |i| &host[i..])
        }
    };
    match port.strip_prefix(':') {
        Some(digits) if digits.bytes().all(|b| b.is_ascii_digit()) => Ok(authority),
        None if port.is_empty() => Ok(authority),
        _ => Err(UriError::Port(port.to_owned())),
    }
}

/// Escapes all characters that a URI cannot contain.
fn escaped(text: &str) -> Result<String, UriError> {
    let mut out = String::with_capacity(text.len());
    let bytes = text.as_bytes();
    for (i, byte) in bytes.iter().enumerate() {
        match byte {
            b'%' => match bytes.get(i + 1..i + 3) {
                Some(digits) if digits.iter().all(u8::is_ascii_hexdigit) => out.push('%'),
                _ => return Err(UriError::Escape),
            },
            _ if byte.is_ascii_alphanumeric() || b"-_.~!$&'()*+,;=:@[]/?".contains(byte) => out.push(char::from(*byte)),
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::normal;

    #[test]
    fn valid_uri_is_unchanged_but_for_escapes() {
        for uri in [
            "spiffe://example.org/ns/default/sa/web",
            "https://example.org",
            "https://user@example.org:8443/a%2Fb?q=a b#part",
            "https://[::1]:8443/",
            "urn:uuid:f81d4fae-7dec-11d0-a765-00a0c91e6bf6",
            "mailto:a@example.org",
            "relative/path",
            "//host/path",
        ] {
            assert_eq!(normal(uri).as_deref(), Ok(uri));
        }
        assert_eq!(normal("HTTP://h/ä b").as_deref(), Ok("http://h/%C3%A4%20b"));
    }

    #[test]
    fn invalid_uri_is_refused() {
        for text in [
            "a\nb",
            ":x",
            "1a:b",
            "https://h:port/",
            "https://a b/",
            "https://[::1",
            "h://[x]/",
            "/%zz",
            "?ä",
            "a:ä",
        ] {
            assert!(normal(text).is_err(), "{text}");
        }
    }
}
