//! Names and strings in the form of zone files (RFC 1035, section 5.1). A backslash escapes the next character, or precedes three decimal
//! digits for a byte.

use std::net::Ipv4Addr;

use hickory_proto::rr::Name;
use hickory_proto::rr::rdata::TXT;

/// Reason why an element of a record is invalid.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum TextError {
    #[error("{text:?} is no domain name: {reason}")]
    Name { text: String, reason: NameError },
    /// Invalid text of a TXT record.
    #[error("{text:?} cannot be the text of a TXT record: {reason}")]
    Txt { text: String, reason: StringError },
    #[error("{0:?} is no IPv4 address")]
    Ipv4(String),
    #[error("{0:?} is no IPv6 address")]
    Ipv6(String),
    #[error("{what} is a number from 0 to 65535, but is {number}")]
    Number { what: &'static str, number: i64 },
}

/// Reason why a text is not a domain name.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum NameError {
    #[error("it must end with a dot")]
    NoDot,
    #[error("it contains white space")]
    WhiteSpace,
    #[error("there is nothing between two dots, or before the first")]
    EmptyLabel,
    #[error(transparent)]
    Escape(#[from] EscapeError),
    /// A label or the whole name is too long.
    #[error("{0}")]
    TooLong(String),
}

/// Reason why a text does not fit into a TXT record.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum StringError {
    #[error("a quotation mark that belongs to the text is written with a backslash before it")]
    Quote,
    #[error(transparent)]
    Escape(#[from] EscapeError),
}

#[derive(Clone, Copy, Debug, PartialEq, thiserror::Error)]
pub(crate) enum EscapeError {
    #[error("it ends with a backslash")]
    AtEnd,
    #[error("a backslash with digits needs three, up to 255")]
    Digits,
}

/// Length limit in bytes of a string in a TXT record.
const LONGEST_STRING: usize = 255;

/// Returns the bytes of a text. The flag of a byte is true if it was escaped.
fn bytes(text: &str) -> impl Iterator<Item = Result<(u8, bool), EscapeError>> {
    let all = text.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        let byte = *all.get(at)?;
        at += 1;
        if byte != b'\\' {
            return Some(Ok((byte, false)));
        }
        let Some(next) = all.get(at) else {
            return Some(Err(EscapeError::AtEnd));
        };
        if !next.is_ascii_digit() {
            at += 1;
            return Some(Ok((*next, true)));
        }
        let digits = all
            .get(at..at + 3)
            .and_then(|d| std::str::from_utf8(d).ok())
            .and_then(|d| d.parse().ok());
        at += 3;
        Some(digits.map(|byte| (byte, true)).ok_or(EscapeError::Digits))
    })
}

/// Returns true if the name is fully qualified (ends with a dot).
pub(crate) fn is_complete(name: &str) -> bool {
    let Some(rest) = name.strip_suffix('.') else {
        return false;
    };
    // After an odd number of backslashes, the dot is escaped.
    rest.bytes().rev().take_while(|b| *b == b'\\').count() % 2 == 0
}

/// Parses a fully qualified name.
pub(crate) fn name(text: &str) -> Result<Name, TextError> {
    let bad = |reason| TextError::Name {
        text: text.to_owned(),
        reason,
    };
    let mut labels = Vec::new();
    let mut label = Vec::new();
    for byte in bytes(text) {
        match byte.map_err(|e| bad(e.into()))? {
            (b'.', false) => {
                if label.is_empty() && text != "." {
                    return Err(bad(NameError::EmptyLabel));
                }
                if !label.is_empty() {
                    labels.push(std::mem::take(&mut label));
                }
            }
            (byte, false) if byte.is_ascii_whitespace() => return Err(bad(NameError::WhiteSpace)),
            (byte, _) => label.push(byte),
        }
    }
    if !label.is_empty() {
        return Err(bad(NameError::NoDot));
    }
    Name::from_labels(labels).map_err(|e| bad(NameError::TooLong(e.to_string())))
}

/// Appends a byte of a name or a string, escaped if necessary.
fn push(out: &mut String, byte: u8, special: &[u8]) {
    match byte {
        b' '..=b'~' => {
            if special.contains(&byte) {
                out.push('\\');
            }
            out.push(char::from(byte));
        }
        _ => out.push_str(&format!("\\{byte:03}")),
    }
}

/// Formats a name with escapes and a dot at its end.
pub(crate) fn name_text(name: &Name) -> String {
    let mut out = String::new();
    for label in name.iter() {
        for byte in label {
            push(&mut out, *byte, b". '@;()\"\\");
        }
        out.push('.');
    }
    if out.is_empty() {
        out.push('.');
    }
    out
}

/// Formats the first `count` labels of a name, without a dot at the end.
pub(crate) fn first_labels(name: &Name, count: usize) -> String {
    let labels = name.iter().take(count).map(<[u8]>::to_vec);
    let text = Name::from_labels(labels).map(|n| name_text(&n)).unwrap_or_default();
    text.strip_suffix('.').unwrap_or(&text).to_owned()
}

/// Parses the content between the outer quotes of a TXT record. A pair of quotes inside ends one string and begins the next.
pub(crate) fn txt(text: &str) -> Result<TXT, TextError> {
    let bad = |reason| TextError::Txt {
        text: text.to_owned(),
        reason,
    };
    let mut strings = vec![Vec::new()];
    let mut inside = true;
    for byte in bytes(text) {
        match byte.map_err(|e| bad(e.into()))? {
            (b'"', false) => {
                inside = !inside;
                if inside {
                    strings.push(Vec::new());
                }
            }
            (byte, false) if !inside && byte.is_ascii_whitespace() => {}
            (byte, _) if inside => {
                // A text that is longer than a string continues in the next string of the record.
                if strings.last().is_some_and(|s| s.len() == LONGEST_STRING) {
                    strings.push(Vec::new());
                }
                if let Some(string) = strings.last_mut() {
                    string.push(byte);
                }
            }
            _ => {
                return Err(bad(StringError::Quote));
            }
        }
    }
    if !inside {
        return Err(bad(StringError::Quote));
    }
    Ok(TXT::from_bytes(strings.iter().map(Vec::as_slice).collect()))
}

/// Formats the strings of a TXT record as one string.
pub(crate) fn txt_text(txt: &TXT) -> String {
    let mut out = String::new();
    for byte in txt.txt_data.iter().flatten() {
        push(&mut out, *byte, b"\"\\");
    }
    out
}

/// Parses an IPv4 address whose numbers may have leading zeros.
pub(crate) fn ipv4(text: &str) -> Option<Ipv4Addr> {
    let part = |part: &str| {
        let digits = part.trim_start_matches('0');
        if part.is_empty() || !part.bytes().all(|b| b.is_ascii_digit()) {
            return None;
        }
        if digits.is_empty() {
            Some(0)
        } else {
            digits.parse::<u8>().ok()
        }
    };
    let parts: Option<Vec<u8>> = text.split('.').map(part).collect();
    <[u8; 4]>::try_from(parts?).ok().map(Ipv4Addr::from)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_there_and_back() {
        for text in [
            "example.com.",
            "_sip._tcp.Example.com.",
            "0/25.2.0.192.in-addr.arpa.",
            "a\\.b.c.",
            "*.x.",
            "\\195\\169.",
            ".",
        ] {
            assert_eq!(name(text).map(|n| name_text(&n)).as_deref(), Ok(text));
        }
        for text in [
            "",
            "a",
            "a..b.",
            ".a.",
            "a b.",
            "a\\",
            "a\\25.",
            "a\\999.",
            &format!("{}.", "x".repeat(64)),
        ] {
            if text.is_empty() {
                continue;
            }
            assert!(name(text).is_err(), "{text}");
        }
        assert!(
            is_complete("a.") && is_complete("a\\\\.") && !is_complete("a\\.") && !is_complete("a") && !is_complete("")
        );
        assert_eq!(first_labels(&name("a.b\\.c.d.").unwrap(), 2), "a.b\\.c");
    }

    #[test]
    fn strings_there_and_back() {
        let strings = |text: &str| txt(text).map(|t| t.txt_data.iter().map(|s| s.to_vec()).collect::<Vec<_>>());
        assert_eq!(strings("").unwrap(), [b"".to_vec()]);
        assert_eq!(strings(r#"a;\"b\\ \065é"#).unwrap(), ["a;\"b\\ Aé".as_bytes().to_vec()]);
        assert_eq!(strings(r#"one" "two"#).unwrap(), [b"one".to_vec(), b"two".to_vec()]);
        assert_eq!(
            strings(&"x".repeat(600))
                .unwrap()
                .iter()
                .map(Vec::len)
                .collect::<Vec<_>>(),
            [255, 255, 90]
        );
        for text in ["a\"b", "a\"b\"c", "\\", "\\1"] {
            assert!(txt(text).is_err(), "{text}");
        }
        let back = |text: &str| txt_text(&txt(text).unwrap());
        assert_eq!(back(r#"a;\"b\\ \065é"#), r#"a;\"b\\ A\195\169"#);
        assert_eq!(back(r#"one" "two"#), "onetwo");
    }

    #[test]
    fn addresses_with_zeros() {
        assert_eq!(ipv4("010.000.0.01"), Some(Ipv4Addr::new(10, 0, 0, 1)));
        for text in ["", "1.2.3", "1.2.3.4.5", "1.2.3.256", "1.2.3.x", "1..2.3"] {
            assert_eq!(ipv4(text), None, "{text}");
        }
    }
}
