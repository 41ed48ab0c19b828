//! Functions for encodings: base64, character sets, URLs, CSV and JSON.

use std::io::Write;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, STANDARD};
use cty::{Refinements, Type, Value};

use super::charset::{self, Encoding};
use super::{CallError, CallResult, Function, FunctionEnvironment, Returns, any, string, text, unknown};

/// Base64 as most decoders accept it: superfluous bits in the last symbol are ignored.
pub(super) const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_allow_trailing_bits(true),
);

/// Limit of the size of an unpacked text: a small argument could otherwise fill the memory.
const MAX_UNPACKED: u64 = 256 << 20;

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("base64decode", &[string("str")], Returns::String, |a, _, _| {
        let encoded = text(a, 0);
        let invalid = || CallError::failed(format!("failed to decode base64 data {encoded:?}"));
        // As in Go's decoder, line breaks are ignored.
        let compact: String = encoded.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
        let bytes = LENIENT.decode(compact).map_err(|_| invalid())?;
        match String::from_utf8(bytes) {
            Ok(text) => Ok(Value::string(text)),
            Err(_) => Err(CallError::failed("the decoded bytes are not valid UTF-8")),
        }
    }),
    Function::new("base64encode", &[string("str")], Returns::String, |a, _, _| {
        Ok(Value::string(STANDARD.encode(text(a, 0))))
    }),
    // Only OpenTofu has this function.
    Function::new("base64gunzip", &[string("str")], Returns::String, |a, _, _| {
        // The argument is not quoted: it is often a secret.
        let packed = decode_base64(text(a, 0)).map_err(|_| CallError::failed("failed to decode base64 data"))?;
        let unpacked = deflate::gunzip(&packed, MAX_UNPACKED);
        let unpacked = unpacked.map_err(|e| CallError::failed(format!("failed to gunzip bytestream: {e}")))?;
        match String::from_utf8(unpacked) {
            Ok(text) => Ok(Value::string(text)),
            Err(_) => Err(CallError::failed("the unpacked bytes are not valid UTF-8")),
        }
    }),
    Function::new("base64gzip", &[string("str")], Returns::String, |a, _, _| {
        let failed = |e: std::io::Error| CallError::failed(e.to_string());
        let mut gzip = deflate::Gzip::new(Vec::new());
        gzip.write_all(text(a, 0).as_bytes()).map_err(failed)?;
        // Terraform flushes the stream before it closes it, which adds an empty block.
        gzip.mark();
        Ok(Value::string(STANDARD.encode(gzip.finish().map_err(failed)?)))
    }),
    Function::new("csvdecode", &[string("str")], Returns::By(csv_type), |a, t, _| {
        csv(text(a, 0), t)
    }),
    Function::new(
        "jsondecode",
        &[string("str")],
        Returns::By(jsondecode_type),
        |a, _, _| jsondecode(text(a, 0)),
    )
    .nullable(),
    Function::new(
        "jsonencode",
        &[any("val").null().unknown().dynamic()],
        Returns::String,
        jsonencode,
    ),
    Function::new(
        "textdecodebase64",
        &[string("source"), string("encoding")],
        Returns::String,
        |a, _, _| {
            let encoding = named(text(a, 1))?;
            let bytes = decode_base64(text(a, 0)).map_err(|at| {
                CallError::argument(
                    0,
                    format!("this is not base64: the character at offset {at} cannot stand there"),
                )
            })?;
            encoding.decode(&bytes).map(Value::string).ok_or_else(|| {
                let why = format!("some of the decoded bytes mean nothing in {}", encoding.name);
                CallError::argument(0, why)
            })
        },
    ),
    Function::new(
        "textencodebase64",
        &[string("string"), string("encoding")],
        Returns::String,
        |a, _, _| {
            let encoding = named(text(a, 1))?;
            let bytes = encoding.encode(text(a, 0)).ok_or_else(|| {
                let why = format!("{} has no bytes for some of the characters", encoding.name);
                CallError::argument(0, why)
            })?;
            Ok(Value::string(STANDARD.encode(bytes)))
        },
    ),
    // Only OpenTofu has this function, which reverses `urlencode`.
    Function::new("urldecode", &[string("str")], Returns::String, |a, _, _| {
        let mut out = Vec::new();
        let mut rest = text(a, 0);
        while let Some(next) = rest.bytes().next() {
            let taken = match next {
                b'%' => {
                    let digits = rest.get(1..3).filter(|d| d.bytes().all(|b| b.is_ascii_hexdigit()));
                    let Some(byte) = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) else {
                        let escape: String = rest.chars().take(3).collect();
                        return Err(CallError::failed(format!(
                            "failed to decode URL: invalid URL escape {escape:?}"
                        )));
                    };
                    out.push(byte);
                    3
                }
                b'+' => {
                    out.push(b' ');
                    1
                }
                other => {
                    out.push(other);
                    1
                }
            };
            // An incomplete sequence of a longer character is skipped as a whole, because its other bytes are not
            // characters.
            let end = (taken..=rest.len())
                .find(|end| rest.is_char_boundary(*end))
                .unwrap_or(rest.len());
            out.extend_from_slice(&rest.as_bytes()[taken..end]);
            rest = &rest[end..];
        }
        String::from_utf8(out)
            .map(Value::string)
            .map_err(|_| CallError::failed("the decoded bytes are not valid UTF-8"))
    }),
    Function::new("urlencode", &[string("str")], Returns::String, |a, _, _| {
        let mut out = String::new();
        for byte in text(a, 0).bytes() {
            match byte {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => out.push(char::from(byte)),
                // Encodes as in forms, as Go's url.QueryEscape does, which Terraform uses.
                b' ' => out.push('+'),
                _ => out.push_str(&format!("%{byte:02X}")),
            }
        }
        Ok(Value::string(out))
    }),
];

fn named(name: &str) -> CallResult<&'static Encoding> {
    charset::find(name).ok_or_else(|| {
        let why = format!("no supported character encoding has the IANA name or alias {name:?}");
        CallError::argument(1, why)
    })
}

/// Decodes base64 text that may have line breaks. The error is the offset that Go's decoder reports for it.
fn decode_base64(text: &str) -> Result<Vec<u8>, usize> {
    let compact: String = text.chars().filter(|c| !matches!(c, '\r' | '\n')).collect();
    LENIENT.decode(&compact).map_err(|_| corrupt_offset(text.as_bytes()))
}

/// Returns the offset of a base64 error as Go's `encoding/base64` counts it. It depends on the kind of the error: the invalid character,
/// the padding in the wrong place, the text after the padding, or the end of the text less the characters of the incomplete group.
fn corrupt_offset(text: &[u8]) -> usize {
    let is_break = |at: usize| matches!(text.get(at), Some(b'\r' | b'\n'));
    let mut at = 0;
    let mut in_group = 0;
    while let Some(&byte) = text.get(at) {
        match byte {
            b'\r' | b'\n' => {}
            b'=' if in_group < 2 => return at,
            b'=' => {
                at += 1;
                while is_break(at) {
                    at += 1;
                }
                if in_group == 2 {
                    match text.get(at) {
                        None => return text.len(),
                        Some(b'=') => at += 1,
                        // Go reports the character before the one that should have been the second padding character.
                        Some(_) => return at - 1,
                    }
                    while is_break(at) {
                        at += 1;
                    }
                }
                return at;
            }
            _ if byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/') => in_group = (in_group + 1) % 4,
            _ => return at,
        }
        at += 1;
    }
    text.len() - in_group
}

fn jsondecode(text: &str) -> CallResult {
    // The parser of configuration files skips a byte order mark, but JSON in a string must not have one.
    if text.starts_with('\u{feff}') {
        return Err(CallError::failed(
            "the text begins with a byte order mark, which is no JSON",
        ));
    }
    let document = syntax::json::parse("", text.as_bytes()).map_err(|problem| {
        let at = problem.subject.as_ref().map_or_else(String::new, |range| {
            format!("line {}, column {}: ", range.start.line, range.start.column)
        });
        CallError::failed(format!("{at}{}", problem.detail.trim_end_matches('.')))
    })?;
    // A repeated property with a value of the same type replaces the earlier one; with another type, Terraform reports
    // it.
    if let Some(name) = document.conflicting_property() {
        return Err(CallError::failed(format!("duplicate {name:?} property in JSON object")));
    }
    Ok(document.literal())
}

fn jsondecode_type(args: &[Value]) -> CallResult<Type> {
    match args[0].as_str() {
        Some(text) => Ok(jsondecode(text)?.ty().clone()),
        None => jsondecode_unknown(&args[0]),
    }
}

/// Returns the type that an unknown text will decode to, as far as its known prefix determines it.
fn jsondecode_unknown(text: &Value) -> CallResult<Type> {
    let prefix = text.refinements().and_then(|r| r.prefix.as_deref()).unwrap_or_default();
    match prefix.trim_start().chars().next() {
        None | Some('{' | '[' | 'n') => Ok(Type::Dynamic),
        Some('"') => Ok(Type::String),
        Some('t' | 'f') => Ok(Type::Bool),
        Some('-' | '0'..='9') => Ok(Type::Number),
        Some(other) => Err(CallError::argument(
            0,
            format!("a JSON document cannot begin with the character {other:?}"),
        )),
    }
}

fn jsonencode(args: &[Value], ty: &Type, _: &FunctionEnvironment<'_>) -> CallResult {
    let value = &args[0];
    if !value.is_wholly_known() {
        // The type determines the first character of the result, unless the value is null.
        let first = if !value.is_certainly_not_null() {
            None
        } else {
            match value.ty() {
                Type::String => Some("\""),
                Type::Object(_) | Type::Map(_) => Some("{"),
                Type::List(_) | Type::Set(_) | Type::Tuple(_) => Some("["),
                _ => None,
            }
        };
        return Ok(Value::unknown_refined(
            ty.clone(),
            Refinements {
                not_null: true,
                prefix: first.map(Arc::from),
                ..Refinements::default()
            },
        ));
    }
    if value.is_null() {
        return Ok(Value::string("null"));
    }
    let text = cty::json::to_simple_text(value).map_err(|e| CallError::failed(e.to_string()))?;
    Ok(Value::string(text))
}

fn csv_type(args: &[Value]) -> CallResult<Type> {
    let Some(text) = args[0].as_str() else {
        return Ok(Type::Dynamic);
    };
    let mut rows = parse_csv(text).into_iter();
    let header = match rows.next() {
        Some(row) => row?.1,
        None => return Err(CallError::failed("missing header line")),
    };
    let mut names: Vec<String> = Vec::new();
    for name in header {
        if names.contains(&name) {
            return Err(CallError::failed(format!("duplicate column name {name:?}")));
        }
        names.push(name);
    }
    Ok(Type::list(Type::object(names.into_iter().map(|n| (n, Type::String)))))
}

fn csv(text: &str, ty: &Type) -> CallResult {
    let Some(element) = ty.element() else {
        return unknown(ty);
    };
    let mut rows = parse_csv(text).into_iter();
    let header = rows.next().transpose()?.map(|(_, fields)| fields).unwrap_or_default();
    let mut out = Vec::new();
    for row in rows {
        let (line, row) = row?;
        if row.len() != header.len() {
            return Err(CallError::failed(format!(
                "CSV parse error on line {line}: wrong number of fields"
            )));
        }
        out.push(Value::object(
            header.iter().cloned().zip(row.into_iter().map(Value::string)),
        ));
    }
    Ok(Value::list(element.clone(), out))
}

/// Splits a CSV text into records, each with the number of the line in which it begins. Empty lines are skipped.
fn parse_csv(text: &str) -> Vec<CallResult<(usize, Vec<String>)>> {
    let mut rows = Vec::new();
    let mut chars = text.chars().peekable();
    let mut line = 1;
    while chars.peek().is_some() {
        if chars.next_if_eq(&'\n').is_some() {
            line += 1;
            continue;
        }
        let begin = line;
        let mut row = Vec::new();
        let mut error = None;
        // A line with a quoted empty field is a record, but an empty line is none.
        let mut quoted = false;
        loop {
            let mut field = String::new();
            if chars.next_if_eq(&'"').is_some() {
                quoted = true;
                loop {
                    match chars.next() {
                        Some('"') if chars.next_if_eq(&'"').is_some() => field.push('"'),
                        Some('"') => break,
                        Some(c) => {
                            line += usize::from(c == '\n');
                            if c == '\r' && chars.peek() == Some(&'\n') {
                                continue;
                            }
                            field.push(c);
                        }
                        None => {
                            error = Some(format!(
                                "CSV parse error on line {line}: extraneous or missing \" in quoted-field"
                            ));
                            break;
                        }
                    }
                }
                if !matches!(chars.peek(), None | Some(',' | '\n' | '\r')) && error.is_none() {
                    error = Some(format!(
                        "CSV parse error on line {line}: extraneous or missing \" in quoted-field"
                    ));
                }
            }
            while let Some(c) = chars.next_if(|c| !matches!(c, ',' | '\n')) {
                // As in Go's reader, a line may end with "\r\n"; elsewhere, a carriage return belongs to the
                // text.
                if c == '\r' && matches!(chars.peek(), Some('\n') | None) {
                    continue;
                }
                if c == '"' && error.is_none() {
                    error = Some(format!("CSV parse error on line {line}: bare \" in non-quoted-field"));
                }
                field.push(c);
            }
            row.push(field);
            match chars.next() {
                Some(',') => {}
                _ => {
                    line += 1;
                    break;
                }
            }
        }
        let blank = row.len() == 1 && row[0].is_empty() && error.is_none() && !quoted;
        match error {
            Some(error) => rows.push(Err(CallError::Failed(error))),
            None if blank => {}
            None => rows.push(Ok((begin, row))),
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_problem_of_a_json_document_is_reported_with_its_position() {
        for (text, expected) in [
            ("", "line 1, column 1: The document ends where a value is expected"),
            (
                "{\n  \"a\": 1,\n}",
                "line 2, column 9: JSON does not allow a comma after the last property of an object",
            ),
            (
                "[nul]",
                "line 1, column 2: \"nul\" is not a valid JSON keyword. Did you mean \"null\"?",
            ),
            ("\u{feff}{}", "the text begins with a byte order mark, which is no JSON"),
        ] {
            assert_eq!(jsondecode(text), Err(CallError::failed(expected)), "{text}");
        }
        assert!(jsondecode(&"[".repeat(100_000)).is_err());
    }

    #[test]
    fn offsets_of_base64_errors_count_line_breaks() {
        // As Terraform 1.11 reports them.
        for (text, offset) in [
            ("QUJD\nQU!=", 7),
            ("QUJD\n\nQUI", 6),
            ("QUJDQ", 4),
            ("QUJD\nQ=", 6),
            ("QU\nJDQUI", 5),
            ("QUJD\nQUI\n", 6),
            ("QUJD\nQU=\n", 9),
            ("QUJD\nQU=x", 7),
            ("QUJD\nQUI=A", 9),
            ("QUJD\nQUI\n=A", 10),
        ] {
            assert_eq!(decode_base64(text), Err(offset), "{text:?}");
        }
        assert_eq!(decode_base64("QUJD\nQUI=\n"), Ok(b"ABCAB".to_vec()));
    }

    #[test]
    fn unpaired_surrogates_become_replacement_characters() {
        assert_eq!(jsondecode(r#""\ud83d""#), Ok(Value::string("\u{fffd}")));
        assert_eq!(jsondecode(r#""\ud83d\ude00\ud83da""#), Ok(Value::string("😀\u{fffd}a")));
    }

    #[test]
    fn csv_errors_name_the_line_in_which_the_record_begins() {
        let text = Value::string("a,b\n\"x\ny\",2\n\n1\n");
        let ty = csv_type(std::slice::from_ref(&text)).unwrap();
        let error = format!("{:?}", csv(text.as_str().unwrap(), &ty).unwrap_err());
        assert!(error.contains("on line 5: wrong number of fields"), "{error}");
    }
}
