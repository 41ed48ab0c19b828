//! The text of a state, in any version of the format.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::syntax::{parse, position};
use crate::{FormatError, State, StateError, upgrade, v4};

/// Reads the text of a state. An empty text is a state that was never written, and gives `None`.
pub fn decode(text: &[u8]) -> Result<Option<State>, FormatError> {
    if text.is_empty() {
        return Ok(None);
    }
    let text = std::str::from_utf8(text).map_err(|e| {
        let (line, column) = position(&text[..e.valid_up_to()]);
        FormatError::Syntax {
            line,
            column,
            message: "this is not UTF-8 text".into(),
        }
    })?;
    if !text.trim_start().starts_with('{') {
        let (line, column) = position(&text.as_bytes()[..text.len() - text.trim_start().len()]);
        return Err(FormatError::Syntax {
            line,
            column,
            message: "a state begins with an opening brace".into(),
        });
    }
    // Nearly every state has version 4, so that version is tried first.
    match v4::read(text) {
        Ok(Some(state)) => Ok(Some(state)),
        Ok(None) => older(text).map(Some),
        // A text of another version may fail to parse as version 4, so the error of that attempt is reported only if the text has version
        // 4.
        Err(error) => Err(match version(text) {
            Ok(4) => error,
            Ok(_) => return older(text).map(Some),
            Err(other) => other,
        }),
    }
}

/// Encodes a state in version 4, the only one that is written.
pub fn encode(state: &State) -> Result<Vec<u8>, StateError> {
    v4::write(state)
}

/// Encodes a state like [`encode`], but passes the text on in parts, so that it is never completely in memory.
pub fn encode_in_parts(state: &State, part: &mut dyn FnMut(&[u8])) -> Result<(), StateError> {
    v4::write_in_parts(state, part)
}

fn older(text: &str) -> Result<State, FormatError> {
    match version(text)? {
        1 => upgrade::from_v1(text),
        2 | 3 => upgrade::from_v3(text),
        other => Err(unsupported(text, other.to_string())),
    }
}

#[derive(Deserialize)]
struct Head<'a> {
    #[serde(borrow, default)]
    version: Option<&'a RawValue>,
    #[serde(borrow, default)]
    terraform_version: Option<&'a RawValue>,
}

fn version(text: &str) -> Result<u64, FormatError> {
    let head: Head = parse(text)?;
    let Some(version) = head.version else {
        return Err(FormatError::NoVersion);
    };
    match version.get().parse::<u64>() {
        Ok(version @ 1..=4) => Ok(version),
        _ => Err(unsupported(text, version.get().chars().take(40).collect())),
    }
}

fn unsupported(text: &str, version: String) -> FormatError {
    let terraform_version = parse::<Head>(text)
        .ok()
        .and_then(|head| head.terraform_version)
        .and_then(|raw| serde_json::from_str(raw.get()).ok())
        .filter(|v: &String| !v.is_empty());
    FormatError::UnsupportedVersion {
        version,
        terraform_version,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(text: &str) -> String {
        decode(text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn no_text_is_no_state() {
        assert!(decode(b"").unwrap().is_none());
        assert!(decode(b"\n").is_err());
    }

    #[test]
    fn text_that_is_no_state_is_refused_with_its_position() {
        assert_eq!(
            refusal("{\n  \"version\": 4,\n  \"serial\": "),
            "line 3, column 12: the text ends too early, as if the file were cut off"
        );
        assert_eq!(
            refusal("hello"),
            "line 1, column 1: a state begins with an opening brace"
        );
        assert_eq!(
            refusal("{\"version\":4} x"),
            "line 1, column 15: there is more text after the end of the document"
        );
        assert!(refusal("{\"terraform_version\":\"1.0.0\"}").contains("does not say which version"));
        assert!(refusal("{\"version\":\"4\"}").contains("version \"4\" of the state format;"));
        assert!(refusal("[]").starts_with("line 1, column 1"), "{}", refusal("[]"));
        assert!(
            decode(b"{\n\"version\":\xff4}")
                .unwrap_err()
                .to_string()
                .starts_with("line 2, column 11")
        );
    }

    #[test]
    fn a_newer_format_is_named() {
        let text = refusal("{\"version\":5,\"terraform_version\":\"2.0.0\"}");
        assert!(text.contains("version 5") && text.contains("2.0.0"), "{text}");
        assert!(refusal("{\"version\":5,\"serial\":{}}").contains("version 5"));
    }
}
