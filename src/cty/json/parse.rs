//! Parser of JSON text to a document that borrows from the text.

use std::borrow::Cow;

use super::error::JsonError;
use super::tree::{self, Node, Tree};

/// Depth limit of arrays and objects.
const DEPTH_LIMIT: usize = 512;

/// A JSON document whose names, digits, and strings without escapes are slices of its text.
pub(super) enum Borrowed<'t> {
    Null,
    Bool(bool),
    Number(&'t str),
    String(Cow<'t, str>),
    Array(Vec<Borrowed<'t>>),
    Object(Members<'t>),
}

impl<'t> Borrowed<'t> {
    pub(super) fn parse(text: &'t str) -> Result<Borrowed<'t>, JsonError> {
        let mut parser = Parser { text, at: 0 };
        let document = parser.value(0)?;
        parser.space();
        match parser.at == text.len() {
            true => Ok(document),
            false => parser.fails("something follows after its end"),
        }
    }
}

impl<'t> Tree for Borrowed<'t> {
    type Map = Members<'t>;

    fn node(&self) -> Node<'_, Borrowed<'t>> {
        match self {
            Borrowed::Null => Node::Null,
            Borrowed::Bool(value) => Node::Bool(*value),
            Borrowed::Number(digits) => Node::Number(digits),
            Borrowed::String(text) => Node::String(text),
            Borrowed::Array(items) => Node::Array(items),
            Borrowed::Object(members) => Node::Object(members),
        }
    }
}

/// Members of an object, ordered by name.
#[derive(Default)]
pub(super) struct Members<'t>(Vec<(Cow<'t, str>, Borrowed<'t>)>);

impl<'t> Members<'t> {
    fn push(&mut self, name: Cow<'t, str>, value: Borrowed<'t>) {
        self.0.push((name, value));
    }

    /// Sorts the members, unless they are sorted already, as in text that this crate wrote. The last of several members
    /// with one name is used.
    fn finished(mut self) -> Members<'t> {
        if !self.0.is_sorted_by(|(a, _), (b, _)| a < b) {
            // The members are reversed first, because the stable sort keeps this order for equal names, and `dedup_by`
            // keeps the first.
            self.0.reverse();
            self.0.sort_by(|(a, _), (b, _)| a.cmp(b));
            self.0.dedup_by(|(later, _), (first, _)| later == first);
        }
        self
    }
}

impl<'t> IntoIterator for Members<'t> {
    type Item = (Cow<'t, str>, Borrowed<'t>);
    type IntoIter = std::vec::IntoIter<Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'t> tree::Members<Borrowed<'t>> for Members<'t> {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn member(&self, name: &str) -> Option<&Borrowed<'t>> {
        let at = self.0.binary_search_by(|(member, _)| (**member).cmp(name)).ok()?;
        self.0.get(at).map(|(_, value)| value)
    }

    fn members<'a>(&'a self) -> impl Iterator<Item = (&'a str, &'a Borrowed<'t>)>
    where
        Borrowed<'t>: 'a,
    {
        self.0.iter().map(|(name, value)| (&**name, value))
    }
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Parser<'t> {
    fn fails<T>(&self, message: &'static str) -> Result<T, JsonError> {
        Err(JsonError { byte: self.at, message })
    }

    fn rest(&self) -> &[u8] {
        self.text.as_bytes().get(self.at..).unwrap_or_default()
    }

    fn peek(&self) -> Option<u8> {
        self.rest().first().copied()
    }

    fn space(&mut self) {
        self.at += (self.rest().iter()).take_while(|b| b" \t\r\n".contains(b)).count();
    }

    /// Consumes a byte if it is the next one.
    fn take(&mut self, byte: u8) -> bool {
        let is_next = self.peek() == Some(byte);
        self.at += usize::from(is_next);
        is_next
    }

    fn word(&mut self, word: &'static str, value: Borrowed<'t>) -> Result<Borrowed<'t>, JsonError> {
        if !self.rest().starts_with(word.as_bytes()) {
            return self.fails("a value is expected");
        }
        self.at += word.len();
        Ok(value)
    }

    fn value(&mut self, depth: usize) -> Result<Borrowed<'t>, JsonError> {
        if depth > DEPTH_LIMIT {
            return self.fails("it is nested too deeply");
        }
        self.space();
        match self.peek() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.array(depth),
            Some(b'"') => self.string().map(Borrowed::String),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true", Borrowed::Bool(true)),
            Some(b'f') => self.word("false", Borrowed::Bool(false)),
            _ => self.word("null", Borrowed::Null),
        }
    }

    fn array(&mut self, depth: usize) -> Result<Borrowed<'t>, JsonError> {
        let mut items = Vec::new();
        self.at += 1;
        self.space();
        if self.take(b']') {
            return Ok(Borrowed::Array(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            self.space();
            if self.take(b']') {
                return Ok(Borrowed::Array(items));
            }
            if !self.take(b',') {
                return self.fails("a comma or the end of an array is expected");
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Borrowed<'t>, JsonError> {
        let mut members = Members::default();
        self.at += 1;
        self.space();
        if self.take(b'}') {
            return Ok(Borrowed::Object(members.finished()));
        }
        loop {
            self.space();
            if self.peek() != Some(b'"') {
                return self.fails("a name in quotes is expected");
            }
            let name = self.string()?;
            self.space();
            if !self.take(b':') {
                return self.fails("a colon is expected");
            }
            let value = self.value(depth + 1)?;
            members.push(name, value);
            self.space();
            if self.take(b'}') {
                return Ok(Borrowed::Object(members.finished()));
            }
            if !self.take(b',') {
                return self.fails("a comma or the end of an object is expected");
            }
        }
    }

    fn digits(&mut self) -> Result<(), JsonError> {
        let count = self.rest().iter().take_while(|b| b.is_ascii_digit()).count();
        self.at += count;
        match count {
            0 => self.fails("a digit is expected"),
            _ => Ok(()),
        }
    }

    fn number(&mut self) -> Result<Borrowed<'t>, JsonError> {
        let begin = self.at;
        self.take(b'-');
        // No digit may follow a leading zero.
        if !self.take(b'0') {
            self.digits()?;
        }
        if self.take(b'.') {
            self.digits()?;
        }
        if self.take(b'e') || self.take(b'E') {
            let _signed = self.take(b'+') || self.take(b'-');
            self.digits()?;
        }
        Ok(Borrowed::Number(&self.text[begin..self.at]))
    }

    /// Reads a string. Without escapes, it is a slice of the text.
    fn string(&mut self) -> Result<Cow<'t, str>, JsonError> {
        self.at += 1;
        let mut out = Cow::Borrowed("");
        loop {
            let plain = (self.rest().iter())
                .take_while(|b| !matches!(b, b'"' | b'\\' | 0..=0x1f))
                .count();
            let part = &self.text[self.at..self.at + plain];
            match out.is_empty() {
                true => out = Cow::Borrowed(part),
                false => out.to_mut().push_str(part),
            }
            self.at += plain;
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(out);
                }
                Some(b'\\') => {
                    self.at += 1;
                    out.to_mut().push(self.escaped()?);
                }
                Some(_) => return self.fails("a string has a control character in it"),
                None => return self.fails("a string has no end"),
            }
        }
    }

    fn escaped(&mut self) -> Result<char, JsonError> {
        let Some(byte) = self.peek() else {
            return self.fails("a string has no end");
        };
        self.at += 1;
        Ok(match byte {
            b'"' | b'\\' | b'/' => char::from(byte),
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'n' => '\n',
            b'r' => '\r',
            b't' => '\t',
            b'u' => {
                let first = self.unit()?;
                // Characters beyond 16 bits are escaped as two units.
                let units = match first {
                    0xd800..=0xdbff if self.take(b'\\') && self.take(b'u') => [first, self.unit()?],
                    _ => [first, 0],
                };
                match char::decode_utf16(units).next() {
                    Some(Ok(c)) => c,
                    _ => return self.fails("half of a character is escaped"),
                }
            }
            _ => return self.fails("there is no such escape"),
        })
    }

    /// Reads the four digits of an escaped UTF-16 unit.
    fn unit(&mut self) -> Result<u16, JsonError> {
        let digits = self.rest().get(..4).filter(|d| d.iter().all(u8::is_ascii_hexdigit));
        let unit = digits.and_then(|d| u16::from_str_radix(std::str::from_utf8(d).ok()?, 16).ok());
        match unit {
            Some(unit) => {
                self.at += 4;
                Ok(unit)
            }
            None => self.fails("four hexadecimal digits are expected"),
        }
    }
}
