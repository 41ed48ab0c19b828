//! `jsondecode`: a document is read token by token, so that the first problem in the text is the one that is reported,
//! as in Terraform.

use cty::{Number, Type, Value};

/// Deeper nesting than documents have, and shallow enough for any stack.
const MAX_DEPTH: usize = 256;

const BEGINNING: &str = " where a value should begin";

/// The value of a document, or what is wrong with it.
pub(super) fn decode(text: &str) -> Result<Value, String> {
    let mut reader = Reader { text, at: 0 };
    let value = reader.value(BEGINNING, 0)?;
    match reader.peek() {
        None => Ok(value),
        Some(_) => Err("there is more text after the end of the value".into()),
    }
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
}

/// A byte of a document as messages show it.
fn unexpected(byte: u8, context: &str) -> String {
    let shown = match char::from(byte) {
        '\'' => "\\'".to_owned(),
        '"' => "\"".to_owned(),
        '\\' => "\\\\".to_owned(),
        '\n' => "\\n".to_owned(),
        '\t' => "\\t".to_owned(),
        '\r' => "\\r".to_owned(),
        '\x07' => "\\a".to_owned(),
        '\x08' => "\\b".to_owned(),
        '\x0b' => "\\v".to_owned(),
        '\x0c' => "\\f".to_owned(),
        c @ ('\0'..='\x1f' | '\x7f') => format!("\\x{:02x}", u32::from(c)),
        c @ ('\u{80}'..='\u{a0}' | '\u{ad}') => format!("\\u{:04x}", u32::from(c)),
        c => c.to_string(),
    };
    format!("invalid character '{shown}'{context}")
}

fn cut_short() -> String {
    "the text ends in the middle of a value".into()
}

impl<'t> Reader<'t> {
    fn byte(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    /// The next byte that is not blank.
    fn peek(&mut self) -> Option<u8> {
        while let Some(b' ' | b'\t' | b'\r' | b'\n') = self.byte() {
            self.at += 1;
        }
        self.byte()
    }

    /// The next byte that is not blank, where the document cannot end.
    fn next(&mut self) -> Result<u8, String> {
        self.peek()
            .ok_or_else(|| "the text ends where a value should follow".into())
    }

    /// A value; `context` is what messages add about the position.
    fn value(&mut self, context: &str, depth: usize) -> Result<Value, String> {
        if depth > MAX_DEPTH {
            return Err("the value is nested too deeply".into());
        }
        match self.next()? {
            b'{' => self.object(depth),
            b'[' => self.array(depth),
            b'"' => Ok(Value::string(self.string()?)),
            b't' => self.word("true", Value::bool(true)),
            b'f' => self.word("false", Value::bool(false)),
            b'n' => self.word("null", Value::null(Type::Dynamic)),
            b'-' | b'0'..=b'9' => self.number(),
            other => Err(unexpected(other, context)),
        }
    }

    fn object(&mut self, depth: usize) -> Result<Value, String> {
        self.at += 1;
        let mut members = Vec::new();
        let mut context = "";
        loop {
            match self.next()? {
                b'}' if members.is_empty() => break,
                b'"' => {}
                other => return Err(unexpected(other, context)),
            }
            let name = Value::string(self.string()?);
            match self.next()? {
                b':' => self.at += 1,
                other => return Err(unexpected(other, " after a key, where a colon should follow")),
            }
            let value = self.value(BEGINNING, depth + 1)?;
            members.push((name.as_arc_str().cloned().unwrap_or_default(), value));
            match self.next()? {
                b',' => self.at += 1,
                b'}' => break,
                other => {
                    return Err(unexpected(
                        other,
                        " after a value of an object, where a comma or a brace should \
                                                       follow",
                    ));
                }
            }
            context = " where a key in quotes should begin";
        }
        self.at += 1;
        Ok(Value::object(members))
    }

    fn array(&mut self, depth: usize) -> Result<Value, String> {
        self.at += 1;
        let mut items = Vec::new();
        if self.next()? == b']' {
            self.at += 1;
            return Ok(Value::tuple(items));
        }
        loop {
            items.push(self.value(BEGINNING, depth + 1)?);
            let after = self.next()?;
            match after {
                b',' => self.at += 1,
                b']' => {
                    self.at += 1;
                    return Ok(Value::tuple(items));
                }
                other => {
                    return Err(unexpected(
                        other,
                        " after an element of an array, where a comma or a bracket \
                                                       should follow",
                    ));
                }
            }
        }
    }

    fn word(&mut self, word: &str, value: Value) -> Result<Value, String> {
        for expected in word.bytes() {
            match self.byte() {
                Some(byte) if byte == expected => self.at += 1,
                Some(other) => {
                    let context = format!(" in {word}, where '{}' should follow", char::from(expected));
                    return Err(unexpected(other, &context));
                }
                None => return Err(cut_short()),
            }
        }
        Ok(value)
    }

    /// Digits, of which there must be one.
    fn digits(&mut self, context: &str) -> Result<(), String> {
        match self.byte() {
            Some(b'0'..=b'9') => {}
            Some(other) => return Err(unexpected(other, context)),
            None => return Err(cut_short()),
        }
        while let Some(b'0'..=b'9') = self.byte() {
            self.at += 1;
        }
        Ok(())
    }

    fn number(&mut self) -> Result<Value, String> {
        let start = self.at;
        if self.byte() == Some(b'-') {
            self.at += 1;
        }
        if self.byte() == Some(b'0') {
            self.at += 1;
        } else {
            self.digits(" in a number")?;
        }
        if self.byte() == Some(b'.') {
            self.at += 1;
            self.digits(" after the point of a number")?;
        }
        if let Some(b'e' | b'E') = self.byte() {
            self.at += 1;
            if let Some(b'+' | b'-') = self.byte() {
                self.at += 1;
            }
            self.digits(" in the exponent of a number")?;
        }
        let written = self.text.get(start..self.at).unwrap_or_default();
        let number = Number::parse(written).ok_or_else(|| format!("the number {written} is out of range."))?;
        Ok(Value::number(number))
    }

    fn string(&mut self) -> Result<String, String> {
        self.at += 1;
        let mut out = String::new();
        loop {
            let rest: &'t str = self.text.get(self.at..).unwrap_or_default();
            let plain = rest
                .bytes()
                .position(|b| b < 0x20 || matches!(b, b'"' | b'\\'))
                .ok_or_else(cut_short)?;
            out.push_str(rest.get(..plain).unwrap_or_default());
            self.at += plain + 1;
            match rest.as_bytes().get(plain) {
                Some(b'"') => return Ok(out),
                Some(b'\\') => out.push(self.escape()?),
                Some(other) => return Err(unexpected(*other, " in a string")),
                None => return Err(cut_short()),
            }
        }
    }

    fn escape(&mut self) -> Result<char, String> {
        let byte = self.byte().ok_or_else(cut_short)?;
        let meant = match byte {
            b'"' | b'\\' | b'/' => char::from(byte),
            b'b' => '\x08',
            b'f' => '\x0c',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                self.at += 1;
                return self.code();
            }
            other => return Err(unexpected(other, " after a backslash")),
        };
        self.at += 1;
        Ok(meant)
    }

    /// What follows `\u`: a character, of which the second half may follow as another escape.
    fn code(&mut self) -> Result<char, String> {
        let first = self.hex()?;
        if (0xd800..0xdc00).contains(&first) && self.text.get(self.at..).is_some_and(|r| r.starts_with("\\u")) {
            let back = self.at;
            self.at += 2;
            let second = self.hex()?;
            if (0xdc00..0xe000).contains(&second) {
                let code = 0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            self.at = back;
        }
        // An unpaired surrogate becomes the replacement character.
        Ok(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn hex(&mut self) -> Result<u32, String> {
        let mut code = 0;
        for _ in 0..4 {
            let byte = self.byte().ok_or_else(cut_short)?;
            let digit = char::from(byte)
                .to_digit(16)
                .ok_or_else(|| unexpected(byte, " in the four digits after \\u"))?;
            code = code * 16 + digit;
            self.at += 1;
        }
        Ok(code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_problem_of_a_document_is_reported() {
        for (text, expected) in [
            ("", "the text ends where a value should follow"),
            ("[1,", "the text ends where a value should follow"),
            ("[1,]", "invalid character ']' where a value should begin"),
            ("{a: 1}", "invalid character 'a'"),
            ("{\"a\":1,b", "invalid character 'b' where a key in quotes should begin"),
            ("nope", "invalid character 'o' in null, where 'u' should follow"),
            ("tru", "the text ends in the middle of a value"),
            ("01", "there is more text after the end of the value"),
            ("-", "the text ends in the middle of a value"),
            ("1.x", "invalid character 'x' after the point of a number"),
            ("\"\\x\"", "invalid character 'x' after a backslash"),
            ("\"\t\"", "invalid character '\\t' in a string"),
            ("\u{feff}{}", "invalid character 'ï' where a value should begin"),
        ] {
            assert_eq!(decode(text), Err(expected.to_owned()), "{text}");
        }
        assert_eq!(
            decode(&"[".repeat(100_000)),
            Err("the value is nested too deeply".to_owned())
        );
    }

    #[test]
    fn unpaired_surrogates_become_replacement_characters() {
        assert_eq!(decode(r#""\ud83d""#), Ok(Value::string("\u{fffd}")));
        assert_eq!(decode(r#""\ud83d\ude00\ud83da""#), Ok(Value::string("😀\u{fffd}a")));
    }
}
