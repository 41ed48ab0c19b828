//! Parser of JSON documents. Reading stops at the first problem.

use std::sync::Arc;

use cty::Number;
use unicode_segmentation::UnicodeSegmentation;

use super::{Kind, Member, Node};
use crate::suggest::{did_you_mean, suggest};
use crate::{Diagnostic, Pos, Range};

/// Depth limit: more than any document has, and few enough for any thread's stack.
const MAX_DEPTH: usize = 256;

const START: &str =
    "A value begins with a brace, a bracket, a digit, a quote, or is one of the words true, false and null.";

/// Reads a document.
///
/// # Errors
/// The first problem.
pub fn parse(file: &str, bytes: &[u8]) -> Result<Node, Diagnostic> {
    crate::parser::check_size(file, bytes)?;
    // Editors on Windows write a byte order mark.
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let text = std::str::from_utf8(bytes).map_err(|_| {
        Diagnostic::error("Invalid character encoding", "The file is not encoded as UTF-8.").at(&Range::synthetic(file))
    })?;
    let mut parser = Parser {
        file: file.into(),
        text,
        pos: Pos::default(),
        next: Token {
            kind: T::End,
            start: Pos::default(),
            end: Pos::default(),
        },
    };
    parser.advance();
    let node = parser.value(0)?;
    if parser.next.kind != T::End {
        return Err(parser.unexpected(
            "Extraneous data after value",
            "Something follows the end of the document.",
        ));
    }
    Ok(node)
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum T {
    OpenBrace,
    CloseBrace,
    OpenBracket,
    CloseBracket,
    Comma,
    Colon,
    Equals,
    String,
    Number,
    Word,
    Invalid,
    End,
}

#[derive(Clone, Copy, Debug)]
struct Token {
    kind: T,
    start: Pos,
    end: Pos,
}

struct Parser<'t> {
    file: Arc<str>,
    text: &'t str,
    /// Position after the next token.
    pos: Pos,
    next: Token,
}

type Read<V> = Result<V, Diagnostic>;

fn problem(summary: &str, detail: impl Into<String>, at: &Range) -> Diagnostic {
    Diagnostic::error(summary, detail).at(at)
}

impl<'t> Parser<'t> {
    // ---- tokens -----------------------------------------------------------------------------------------------

    /// Advances to the next token and returns the one before it.
    fn advance(&mut self) -> Token {
        let taken = self.next;
        let bytes = self.text.as_bytes();
        let byte = |pos: Pos| bytes.get(pos.byte as usize).copied();
        while let Some(blank) = byte(self.pos) {
            match blank {
                b' ' => self.pos.column += 1,
                // In JSON, HCL counts a tab as two columns.
                b'\t' => self.pos.column += 2,
                b'\r' => {}
                b'\n' => {
                    self.pos.line += 1;
                    self.pos.column = 1;
                }
                _ => break,
            }
            self.pos.byte += 1;
        }
        let start = self.pos;
        let rest = bytes.get(start.byte as usize..).unwrap_or_default();
        let run = |belongs: fn(u8) -> bool| rest.iter().take_while(|b| belongs(**b)).count() as u32;
        let (kind, len) = match rest.first() {
            None => (T::End, 0),
            Some(b'{') => (T::OpenBrace, 1),
            Some(b'}') => (T::CloseBrace, 1),
            Some(b'[') => (T::OpenBracket, 1),
            Some(b']') => (T::CloseBracket, 1),
            Some(b',') => (T::Comma, 1),
            Some(b':') => (T::Colon, 1),
            Some(b'=') => (T::Equals, 1),
            Some(b'-' | b'+' | b'.' | b'0'..=b'9') => (
                T::Number,
                run(|b| matches!(b, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9')),
            ),
            Some(b'a'..=b'z' | b'A'..=b'Z') => (T::Word, run(|b| b.is_ascii_alphabetic() || b == b'_')),
            Some(b'"') => (T::String, 0),
            Some(_) => (T::Invalid, 1),
        };
        self.pos.byte += len;
        self.pos.column += len;
        match kind {
            T::String => self.skip_string(),
            // Nothing is read after an invalid token, so its length does not matter.
            T::Invalid => self.pos.byte = self.text.len() as u32,
            _ => {}
        }
        self.next = Token {
            kind,
            start,
            end: if kind == T::Invalid { after(start) } else { self.pos },
        };
        taken
    }

    /// Skips to the end of the string that begins here, or to a control character in it.
    fn skip_string(&mut self) {
        let rest = self.text.get(self.pos.byte as usize + 1..).unwrap_or_default();
        let mut escaped = false;
        let mut end = rest.len();
        for (at, byte) in rest.bytes().enumerate() {
            if byte < 0x20 {
                end = at;
                break;
            }
            if byte == b'"' && !escaped {
                end = at + 1;
                break;
            }
            escaped = byte == b'\\' && !escaped;
        }
        let inside = rest.get(..end).unwrap_or_default();
        let columns = if inside.is_ascii() {
            inside.len()
        } else {
            inside.graphemes(true).count()
        };
        self.pos.byte += 1 + end as u32;
        self.pos.column += 1 + columns as u32;
    }

    fn range(&self, start: Pos, end: Pos) -> Range {
        Range {
            file: self.file.clone(),
            start,
            end,
        }
    }

    fn range_of(&self, token: Token) -> Range {
        self.range(token.start, token.end)
    }

    fn text_of(&self, token: Token) -> &'t str {
        self.text
            .get(token.start.byte as usize..token.end.byte as usize)
            .unwrap_or_default()
    }

    /// Builds an error about the next token.
    fn unexpected(&self, summary: &str, detail: &str) -> Diagnostic {
        problem(summary, detail, &self.range_of(self.next))
    }

    /// Builds an error about the token after the next closing bracket, at which Terraform reports it.
    fn unexpected_after(&mut self, close: T, summary: &str, detail: &str) -> Diagnostic {
        let open = if close == T::CloseBrace {
            T::OpenBrace
        } else {
            T::OpenBracket
        };
        let mut depth = 1;
        loop {
            let token = self.advance();
            if token.kind == T::End {
                break;
            }
            if token.kind == open {
                depth += 1;
            }
            if token.kind == close {
                depth -= 1;
                if depth <= 1 {
                    break;
                }
            }
        }
        self.unexpected(summary, detail)
    }

    // ---- values -----------------------------------------------------------------------------------------------

    fn value(&mut self, depth: usize) -> Read<Node> {
        if depth > MAX_DEPTH {
            return Err(self.unexpected(
                "JSON nested too deeply",
                "Objects and arrays may stand inside each other up to 256 levels deep.",
            ));
        }
        let start = self.next.start;
        let (kind, end) = match self.next.kind {
            T::OpenBrace => self.object(depth)?,
            T::OpenBracket => self.array(depth)?,
            T::String => {
                let token = self.advance();
                (Kind::String(self.string(token)?), token.end)
            }
            T::Number => {
                let token = self.advance();
                (self.number(token)?, token.end)
            }
            T::Word => {
                let token = self.advance();
                (self.word(token)?, token.end)
            }
            T::CloseBrace => return Err(self.unexpected("Missing JSON value", START)),
            T::CloseBracket => return Err(self.unexpected("Missing array element value", START)),
            T::End => return Err(self.unexpected("Missing value", "The document ends where a value is expected.")),
            T::Comma | T::Colon | T::Equals | T::Invalid => {
                return Err(self.unexpected("Invalid start of value", START));
            }
        };
        Ok(Node {
            kind,
            range: self.range(start, end),
        })
    }

    fn word(&self, token: Token) -> Read<Kind> {
        match self.text_of(token) {
            "true" => Ok(Kind::Bool(true)),
            "false" => Ok(Kind::Bool(false)),
            "null" => Ok(Kind::Null),
            word => {
                let hint = did_you_mean(suggest(word, ["true", "false", "null"]));
                Err(problem(
                    "Invalid JSON keyword",
                    format!("\"{word}\" is not a valid JSON keyword.{hint}"),
                    &self.range_of(token),
                ))
            }
        }
    }

    fn number(&self, token: Token) -> Read<Kind> {
        let text = self.text_of(token);
        let detail = if !is_number(text.as_bytes()) {
            format!("\"{text}\" is not written as JSON writes numbers.")
        } else if let Some(number) = Number::parse(text) {
            return Ok(Kind::Number(number));
        } else {
            format!("The exponent of {text} is out of range.")
        };
        Err(problem("Invalid JSON number", detail, &self.range_of(token)))
    }

    fn string(&self, token: Token) -> Read<Arc<str>> {
        let text = self.text_of(token);
        unescape(text).map_err(|at| {
            // Terraform reports the column after the wrong character.
            let start = Pos {
                column: token.start.column + at as u32,
                byte: token.start.byte + at as u32,
                ..token.start
            };
            let range = self.range(start, after(start));
            let detail = if at == text.len() {
                "The string is not closed: a quote is missing before the end of the line."
            } else {
                "The string has an escape that JSON does not know."
            };
            Diagnostic::error("Invalid JSON string", detail)
                .at(&range)
                .within(&self.range_of(token))
        })
    }

    fn array(&mut self, depth: usize) -> Read<(Kind, Pos)> {
        let open = self.advance();
        let mut items = Vec::new();
        while self.next.kind != T::CloseBracket {
            items.push(self.value(depth + 1)?);
            match self.next.kind {
                T::Comma => {
                    let comma = self.advance();
                    if self.next.kind == T::CloseBracket {
                        return Err(problem(
                            "Trailing comma in array",
                            "JSON does not allow a comma after the last element of an array.",
                            &self.range_of(comma),
                        ));
                    }
                }
                T::CloseBracket => {}
                T::End => {
                    return Err(problem(
                        "Unclosed object",
                        "There is no closing bracket for this array.",
                        &self.range_of(open),
                    ));
                }
                kind => {
                    let (summary, detail) = match kind {
                        T::Colon => ("Invalid array value", "The elements of an array have no names."),
                        T::CloseBrace => (
                            "Mismatched brackets",
                            "An array is closed with a bracket, not with a brace.",
                        ),
                        // The spelling is that of HCL's message.
                        _ => (
                            "Missing attribute seperator comma",
                            "There must be a comma between the elements of an array.",
                        ),
                    };
                    return Err(self.unexpected_after(T::CloseBracket, summary, detail));
                }
            }
        }
        let close = self.advance();
        Ok((Kind::Array(items.into()), close.end))
    }

    fn object(&mut self, depth: usize) -> Read<(Kind, Pos)> {
        let open = self.advance();
        let mut members = Vec::new();
        while self.next.kind != T::CloseBrace {
            let name = self.value(depth + 1)?;
            let Kind::String(text) = name.kind else {
                return Err(problem(
                    "Invalid object property name",
                    "The name of a property must be a string.",
                    &name.start_range(),
                ));
            };
            match self.next.kind {
                T::Colon => {}
                T::CloseBrace | T::Comma => {
                    return Err(self.unexpected(
                        "Missing object value",
                        "A property has a value, which a colon introduces. Elements without names stand in brackets.",
                    ));
                }
                T::Equals => {
                    return Err(self.unexpected(
                        "Missing property value colon",
                        "In JSON a colon stands between the name of a property and its value, not an equals sign.",
                    ));
                }
                _ => {
                    return Err(self.unexpected(
                        "Missing property value colon",
                        "A colon must stand between the name of a property and its value.",
                    ));
                }
            }
            self.advance();
            members.push(Member {
                name: text,
                name_range: name.range,
                value: self.value(depth + 1)?,
            });
            match self.next.kind {
                T::Comma => {
                    let comma = self.advance();
                    if self.next.kind == T::CloseBrace {
                        return Err(problem(
                            "Trailing comma in object",
                            "JSON does not allow a comma after the last property of an object.",
                            &self.range_of(comma),
                        ));
                    }
                }
                T::CloseBrace => {}
                // The error is reported at the opening brace, because the end of the file does not show which
                // object is open.
                T::End => {
                    return Err(problem(
                        "Unclosed object",
                        "There is no closing brace for this object.",
                        &self.range_of(open),
                    ));
                }
                T::CloseBracket => {
                    self.advance();
                    return Err(self.unexpected(
                        "Mismatched braces",
                        "An object is closed with a brace, not with a bracket.",
                    ));
                }
                _ => {
                    return Err(self.unexpected_after(
                        T::CloseBrace,
                        "Missing attribute seperator comma",
                        "There must be a comma between the properties of an object.",
                    ));
                }
            }
        }
        let close = self.advance();
        Ok((Kind::Object(members.into()), close.end))
    }
}

fn after(pos: Pos) -> Pos {
    super::after(pos)
}

/// Returns true if a text is a number by the grammar of JSON: no leading plus, zeros or point.
fn is_number(text: &[u8]) -> bool {
    let digits = |text: &[u8]| text.iter().take_while(|b| b.is_ascii_digit()).count();
    let text = text.strip_prefix(b"-").unwrap_or(text);
    let whole = digits(text);
    if whole == 0 || (whole > 1 && text.first() == Some(&b'0')) {
        return false;
    }
    let mut rest = text.get(whole..).unwrap_or_default();
    if let Some(fraction) = rest.strip_prefix(b".") {
        let len = digits(fraction);
        if len == 0 {
            return false;
        }
        rest = fraction.get(len..).unwrap_or_default();
    }
    if let [b'e' | b'E', exponent @ ..] = rest {
        let exponent = match exponent {
            [b'+' | b'-', exponent @ ..] => exponent,
            exponent => exponent,
        };
        return !exponent.is_empty() && digits(exponent) == exponent.len();
    }
    rest.is_empty()
}

/// Decodes a string token. The error is the number of bytes up to the end of the invalid character, or of the token if
/// the string is not closed.
fn unescape(text: &str) -> Result<Arc<str>, usize> {
    let Some(inside) = text.get(1..) else {
        return Err(text.len());
    };
    let mut out = String::with_capacity(inside.len());
    let mut rest = inside;
    let read = |rest: &str| text.len() - rest.len();
    loop {
        let Some(special) = rest.find(['"', '\\']) else {
            return Err(text.len());
        };
        out.push_str(rest.get(..special).unwrap_or_default());
        let tail = rest.get(special..).unwrap_or_default();
        if tail.starts_with('"') {
            return Ok(out.into());
        }
        let mut chars = tail.chars();
        chars.next();
        let Some(escape) = chars.next() else {
            return Err(text.len());
        };
        rest = chars.as_str();
        out.push(match escape {
            '"' | '\\' | '/' => escape,
            'b' => '\x08',
            'f' => '\x0c',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'u' => {
                let first = hex(&mut rest).map_err(read)?;
                // Characters beyond the basic plane are written as two escapes, which form a surrogate pair.
                let second = match (first, rest.strip_prefix("\\u")) {
                    (0xd800..0xdc00, Some(mut after)) => hex(&mut after)
                        .ok()
                        .filter(|low| (0xdc00..0xe000).contains(low))
                        .inspect(|_| rest = after),
                    _ => None,
                };
                let code = second.map_or(first, |low| 0x10000 + ((first - 0xd800) << 10) + (low - 0xdc00));
                // An unpaired surrogate becomes the replacement character.
                char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER)
            }
            _ => return Err(read(rest)),
        });
    }
}

/// Reads four hexadecimal digits. On failure, returns the text after the first character that is not a hexadecimal
/// digit.
fn hex<'r>(rest: &mut &'r str) -> Result<u32, &'r str> {
    let mut code = 0;
    for _ in 0..4 {
        let mut chars = rest.chars();
        let digit = chars.next().and_then(|c| c.to_digit(16));
        *rest = chars.as_str();
        code = code * 16 + digit.ok_or(*rest)?;
    }
    Ok(code)
}
