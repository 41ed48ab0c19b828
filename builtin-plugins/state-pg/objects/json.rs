//! JSON texts, and pairs of columns that restore them exactly.
//!
//! A column of the type `jsonb` stores values and not texts: it reorders keys, writes numbers without exponents, and cannot store the
//! character NUL. A state must be restored byte for byte. So if `jsonb` would not restore a text, the text is also stored in a column of
//! the type `json`, which keeps texts.

use serde_json::Value;

/// Size in bytes above which a text is stored only as `json`. The limit of `jsonb` is 256 MB for one string or array.
const LARGE: usize = 64 << 20;

/// Limit of the digits and of the exponent of a number that is stored as `jsonb`. PostgreSQL's own limit is 131,072 digits.
const LONG_NUMBER: usize = 1000;

/// Compact JSON text.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Json(String);

impl std::fmt::Debug for Json {
    /// Prints only the length, because attributes may contain secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Json({} bytes)", self.0.len())
    }
}

impl Json {
    /// Removes the blanks between the tokens of a valid text.
    pub fn compact(text: &str) -> Json {
        let mut out = String::with_capacity(text.len());
        let (mut inside, mut escaped) = (false, false);
        for character in text.chars() {
            if inside {
                match character {
                    _ if escaped => escaped = false,
                    '\\' => escaped = true,
                    '"' => inside = false,
                    _ => {}
                }
            } else if matches!(character, ' ' | '\t' | '\n' | '\r') {
                continue;
            } else {
                inside = character == '"';
            }
            out.push(character);
        }
        Json(out)
    }

    pub fn string(text: &str) -> Json {
        Json(written(&Value::from(text)))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn into_text(self) -> String {
        self.0
    }

    /// Returns the texts for the `jsonb` and the `json` column. The second one is `None` if the first one restores this text.
    pub fn columns(&self) -> (Option<&str>, Option<&str>) {
        let text = &*self.0;
        let Some(value) = value_for_jsonb(text) else {
            return (None, Some(text));
        };
        let restored = !has_other_form(&value) && canonical(value) == text;
        (Some(text), (!restored).then_some(text))
    }

    /// Restores a text from the two columns. If both are NULL, the text is `null`.
    pub fn from_columns(jsonb: Option<&str>, exact: Option<&str>) -> Json {
        match (exact, jsonb) {
            (Some(exact), _) => Json::compact(exact),
            (None, Some(jsonb)) => match serde_json::from_str(jsonb) {
                Ok(value) => Json(canonical(value)),
                Err(_) => Json::compact(jsonb),
            },
            (None, None) => Json("null".to_owned()),
        }
    }
}

/// Parses a text. Returns `None` if it exceeds a limit of `jsonb` or contains a character that `jsonb` cannot store.
fn value_for_jsonb(text: &str) -> Option<Value> {
    if text.len() > LARGE {
        return None;
    }
    let value: Value = serde_json::from_str(text).ok()?;
    fits(&value).then_some(value)
}

fn fits(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) => true,
        Value::Number(number) => {
            let digits = number.as_str();
            let exponent = digits.split(['e', 'E']).nth(1).map_or(Ok(0), str::parse::<i64>);
            let small = exponent.is_ok_and(|exponent| exponent.unsigned_abs() < LONG_NUMBER as u64);
            digits.len() < LONG_NUMBER && small
        }
        Value::String(text) => !text.contains('\0'),
        Value::Array(items) => items.iter().all(fits),
        Value::Object(members) => members.iter().all(|(name, value)| !name.contains('\0') && fits(value)),
    }
}

/// Returns true if a number has a form that `jsonb` does not restore: with an exponent, or a zero with a sign.
fn has_other_form(value: &Value) -> bool {
    match value {
        Value::Number(number) => {
            let digits = number.as_str();
            let is_zero = digits.bytes().all(|b| matches!(b, b'-' | b'0' | b'.'));
            digits.contains(['e', 'E']) || digits.starts_with('-') && is_zero
        }
        Value::Array(items) => items.iter().any(has_other_form),
        Value::Object(members) => members.values().any(has_other_form),
        _ => false,
    }
}

/// Renders a value as in states: with sorted keys, and the escapes of Go's encoder.
fn canonical(mut value: Value) -> String {
    value.sort_all_objects();
    written(&value)
}

fn written(value: &Value) -> String {
    let text = value.to_string();
    if !text.contains(['<', '>', '&', '\u{2028}', '\u{2029}']) {
        return text;
    }
    // In JSON, these characters occur only in strings, so all of them can be replaced.
    let mut out = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match character {
            '<' => out.push_str("\\u003c"),
            '>' => out.push_str("\\u003e"),
            '&' => out.push_str("\\u0026"),
            '\u{2028}' => out.push_str("\\u2028"),
            '\u{2029}' => out.push_str("\\u2029"),
            other => out.push(other),
        }
    }
    out
}

/// Breaks compact JSON into lines with indentation, as in state files.
pub(crate) fn indented(text: &str) -> String {
    let mut out = String::with_capacity(text.len() * 2);
    let (mut inside, mut escaped, mut level) = (false, false, 0_usize);
    let line = |level: usize, out: &mut String| {
        out.push('\n');
        out.extend(std::iter::repeat_n("  ", level));
    };
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        if inside {
            out.push(character);
            match character {
                _ if escaped => escaped = false,
                '\\' => escaped = true,
                '"' => inside = false,
                _ => {}
            }
            continue;
        }
        match character {
            '{' | '[' => {
                out.push(character);
                match characters.next_if(|next| matches!(next, '}' | ']')) {
                    Some(close) => out.push(close),
                    None => {
                        level += 1;
                        line(level, &mut out);
                    }
                }
            }
            '}' | ']' => {
                level = level.saturating_sub(1);
                line(level, &mut out);
                out.push(character);
            }
            ',' => {
                out.push(',');
                line(level, &mut out);
            }
            ':' => out.push_str(": "),
            other => {
                inside = other == '"';
                out.push(other);
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns two flags: the text needs the `jsonb` column, and it needs the `json` column.
    fn columns(text: &str) -> (bool, bool) {
        let json = Json::compact(text);
        let (jsonb, exact) = json.columns();
        (jsonb.is_some(), exact.is_some())
    }

    #[test]
    fn text_that_jsonb_restores_is_stored_once() {
        for text in [
            "{}",
            r#"{"a":1,"b":[1.50,-2,0.000001,"\u003c\n\\\""],"c":null,"é":true}"#,
            "123456789012345678901234567890",
        ] {
            assert_eq!(columns(text), (true, false), "{text}");
            // `jsonb` adds blanks, and sorts keys by length.
            let stored = text.replace(',', ", ").replace(':', ": ");
            assert_eq!(Json::from_columns(Some(&stored), None).as_str(), text);
        }
    }

    #[test]
    fn text_in_another_form_is_kept_beside_its_value() {
        for text in [
            r#"{"b":1,"a":2}"#,
            "1e3",
            "-0",
            "-0.0",
            r#"{"a":1,"a":2}"#,
            r#""<""#,
            r#""\/""#,
        ] {
            assert_eq!(columns(text), (true, true), "{text}");
            assert_eq!(Json::from_columns(Some("1"), Some(text)).as_str(), text);
        }
    }

    #[test]
    fn text_that_jsonb_refuses_is_kept_as_text_only() {
        let long = "9".repeat(LONG_NUMBER);
        for text in [r#""\u0000""#, r#"{"\u0000":1}"#, r#""\ud800""#, "1e2000", &*long] {
            assert_eq!(columns(text), (false, true), "{text}");
        }
    }
}
