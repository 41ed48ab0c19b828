//! JSON documents with the place of every part.

use std::sync::Arc;

use cty::{Number, Type, Value};
use syntax::{Diagnostic, Pos, Range};

/// Deeper nesting than people write, and shallow enough for any stack.
const MAX_DEPTH: usize = 256;

/// A part of a document.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Node {
    pub kind: Kind,
    pub range: Range,
}

/// What a part is.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Kind {
    Null,
    Bool(bool),
    /// The digits as written.
    Number(String),
    String(Arc<str>),
    Array(Vec<Node>),
    Object(Vec<Member>),
}

/// A property of an object.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Member {
    pub name: Arc<str>,
    pub name_range: Range,
    pub value: Node,
}

/// Reads a document. Reading stops at the first problem.
pub(crate) fn parse(file: &str, bytes: &[u8]) -> Result<Node, Box<Diagnostic>> {
    let file: Arc<str> = file.into();
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let text = std::str::from_utf8(bytes).map_err(|_| {
        Box::new(
            Diagnostic::error("Invalid character encoding", "The file is not encoded as UTF-8.")
                .at(&Range::synthetic(&file)),
        )
    })?;
    let mut parser = Parser {
        file,
        rest: text,
        pos: Pos::default(),
    };
    let node = parser.value(0)?;
    parser.blank();
    if !parser.rest.is_empty() {
        let at = parser.here(1);
        return Err(problem(
            "Extraneous data after value",
            "Something follows the end of the document.",
            &at,
        ));
    }
    Ok(node)
}

fn problem(summary: &str, detail: impl Into<String>, at: &Range) -> Box<Diagnostic> {
    Box::new(Diagnostic::error(summary, detail).at(at))
}

struct Parser<'t> {
    file: Arc<str>,
    rest: &'t str,
    pos: Pos,
}

impl<'t> Parser<'t> {
    fn advance(&mut self, bytes: usize) -> &'t str {
        let (taken, rest) = self.rest.split_at(bytes);
        self.pos = syntax::lexer::advance(self.pos, taken);
        self.rest = rest;
        taken
    }

    /// The place of so many of the next characters.
    fn here(&self, chars: usize) -> Range {
        let len = self.rest.char_indices().nth(chars).map_or(self.rest.len(), |(i, _)| i);
        Range {
            file: self.file.clone(),
            start: self.pos,
            end: syntax::lexer::advance(self.pos, &self.rest[..len]),
        }
    }

    fn since(&self, start: Pos) -> Range {
        Range {
            file: self.file.clone(),
            start,
            end: self.pos,
        }
    }

    fn blank(&mut self) {
        let len = self.rest.len() - self.rest.trim_start_matches([' ', '\t', '\r', '\n']).len();
        if len > 0 {
            self.advance(len);
        }
    }

    fn value(&mut self, depth: usize) -> Result<Node, Box<Diagnostic>> {
        self.blank();
        let start = self.pos;
        if depth > MAX_DEPTH {
            return Err(problem(
                "JSON nested too deeply",
                "The document has too many levels.",
                &self.here(1),
            ));
        }
        let kind = match self.rest.bytes().next() {
            Some(b'{') => self.object(depth)?,
            Some(b'[') => self.array(depth)?,
            Some(b'"') => Kind::String(self.string()?.0),
            Some(b'-' | b'0'..=b'9') => self.number()?,
            Some(b'a'..=b'z' | b'A'..=b'Z') => self.keyword()?,
            _ => {
                return Err(problem(
                    "Missing JSON value",
                    "A value is expected here: an object, an array, a number, a string, true, false or null.",
                    &self.here(1),
                ));
            }
        };
        Ok(Node {
            kind,
            range: self.since(start),
        })
    }

    fn keyword(&mut self) -> Result<Kind, Box<Diagnostic>> {
        let len = self
            .rest
            .find(|c: char| !c.is_ascii_alphanumeric())
            .unwrap_or(self.rest.len());
        let start = self.pos;
        match self.advance(len) {
            "true" => Ok(Kind::Bool(true)),
            "false" => Ok(Kind::Bool(false)),
            "null" => Ok(Kind::Null),
            word => Err(problem(
                "Invalid JSON keyword",
                format!("\"{word}\" is not a value of JSON: the words are true, false and null."),
                &self.since(start),
            )),
        }
    }

    fn number(&mut self) -> Result<Kind, Box<Diagnostic>> {
        let len = self
            .rest
            .find(|c: char| !matches!(c, '0'..='9' | '-' | '+' | '.' | 'e' | 'E'))
            .unwrap_or(self.rest.len());
        let start = self.pos;
        let text = self.advance(len);
        // The grammar of JSON is the stricter one: no leading plus, zeros or point.
        match serde_json::from_str::<serde_json::Number>(text) {
            Ok(_) => Ok(Kind::Number(text.to_owned())),
            Err(_) => Err(problem(
                "Invalid JSON number",
                format!("\"{text}\" is not a number of JSON."),
                &self.since(start),
            )),
        }
    }

    fn string(&mut self) -> Result<(Arc<str>, Range), Box<Diagnostic>> {
        let start = self.pos;
        let mut escaped = false;
        let close = self.rest.char_indices().skip(1).find(|(_, c)| {
            let closes = *c == '"' && !escaped;
            escaped = *c == '\\' && !escaped;
            closes || *c == '\n'
        });
        let Some((end, '"')) = close else {
            return Err(problem(
                "Invalid JSON string",
                "The string is not closed: a quote is missing before the end of the line.",
                &self.here(1),
            ));
        };
        let text = self.advance(end + 1);
        let range = self.since(start);
        match serde_json::from_str::<String>(text) {
            Ok(content) => Ok((content.into(), range)),
            Err(_) => Err(problem(
                "Invalid JSON string",
                "The string has an escape or a control character that JSON does not allow.",
                &range,
            )),
        }
    }

    /// What follows a value inside brackets: whether there is another one.
    fn separator(&mut self, close: char, what: &str, open: &Range) -> Result<bool, Box<Diagnostic>> {
        self.blank();
        if self.rest.starts_with(',') {
            let comma = self.here(1);
            self.advance(1);
            self.blank();
            if self.rest.starts_with(close) {
                return Err(problem(
                    "Trailing comma in JSON",
                    format!("JSON does not allow a comma after the last {what}."),
                    &comma,
                ));
            }
            return Ok(true);
        }
        if self.rest.starts_with(close) {
            self.advance(1);
            return Ok(false);
        }
        if self.rest.is_empty() {
            return Err(problem(
                "Unclosed JSON value",
                format!("There is no \"{close}\" for the bracket that opens here."),
                open,
            ));
        }
        Err(problem(
            "Missing JSON separator",
            format!("A comma or \"{close}\" is expected after each {what}."),
            &self.here(1),
        ))
    }

    fn array(&mut self, depth: usize) -> Result<Kind, Box<Diagnostic>> {
        let open = self.here(1);
        self.advance(1);
        self.blank();
        let mut items = Vec::new();
        if self.rest.starts_with(']') {
            self.advance(1);
            return Ok(Kind::Array(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            if !self.separator(']', "element", &open)? {
                return Ok(Kind::Array(items));
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Kind, Box<Diagnostic>> {
        let open = self.here(1);
        self.advance(1);
        self.blank();
        let mut members: Vec<Member> = Vec::new();
        if self.rest.starts_with('}') {
            self.advance(1);
            return Ok(Kind::Object(members));
        }
        loop {
            self.blank();
            if !self.rest.starts_with('"') {
                return Err(problem(
                    "Invalid JSON property name",
                    "The name of a property is expected here, in quotes.",
                    &self.here(1),
                ));
            }
            let (name, name_range) = self.string()?;
            self.blank();
            if !self.rest.starts_with(':') {
                return Err(problem(
                    "Missing JSON property value",
                    "A colon is expected after the name of a property.",
                    &self.here(1),
                ));
            }
            self.advance(1);
            let value = self.value(depth + 1)?;
            members.push(Member {
                name,
                name_range,
                value,
            });
            if !self.separator('}', "property", &open)? {
                return Ok(Kind::Object(members));
            }
        }
    }
}

impl Node {
    /// The value of the document as it stands: strings are text, not templates.
    pub fn literal(&self) -> Value {
        match &self.kind {
            Kind::Null => Value::null(Type::Dynamic),
            Kind::Bool(b) => Value::bool(*b),
            Kind::Number(digits) => Number::parse(digits).map_or_else(Value::dynamic, Value::number),
            Kind::String(text) => Value::string(text),
            Kind::Array(items) => Value::tuple(items.iter().map(Node::literal).collect()),
            Kind::Object(members) => {
                // Keys are normalised as all text of the language is.
                let key = |name: &Arc<str>| {
                    Value::string(name)
                        .as_arc_str()
                        .cloned()
                        .unwrap_or_else(|| name.clone())
                };
                Value::object(members.iter().map(|m| (key(&m.name), m.value.literal())))
            }
        }
    }

    /// A second property of one name, anywhere in the document.
    pub fn duplicate(&self) -> Option<Diagnostic> {
        match &self.kind {
            Kind::Object(members) => {
                let mut seen = std::collections::BTreeMap::new();
                for member in members {
                    if let Some(first) = seen.insert(&member.name, &member.name_range) {
                        return Some(
                            Diagnostic::error(
                                "Duplicate JSON object property",
                                format!("The property \"{}\" was already set at {first}.", member.name),
                            )
                            .at(&member.name_range),
                        );
                    }
                }
                members.iter().find_map(|m| m.value.duplicate())
            }
            Kind::Array(items) => items.iter().find_map(Node::duplicate),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn parts_know_their_place() {
        let node = parse("f", "{\"a\": [1, \"ü\\n\"],\n \"b\": null}".as_bytes()).unwrap();
        let Kind::Object(members) = &node.kind else {
            panic!("not an object")
        };
        assert_eq!(members[0].value.range.to_string(), "f:1,7-17");
        assert_eq!(members[1].name_range.to_string(), "f:2,2-5");
    }

    #[test]
    fn problems_are_told_with_their_place() {
        for (text, summary, at) in [
            ("{\"s\": }", "Missing JSON value", "f:1,7-8"),
            ("{\"s\": 1,}", "Trailing comma in JSON", "f:1,8-9"),
            ("[1 2]", "Missing JSON separator", "f:1,4-5"),
            ("[1", "Unclosed JSON value", "f:1,1-2"),
            ("{s: 1}", "Invalid JSON property name", "f:1,2-3"),
            ("01", "Invalid JSON number", "f:1,1-3"),
            ("\"a", "Invalid JSON string", "f:1,1-2"),
            ("nope", "Invalid JSON keyword", "f:1,1-5"),
            ("{} x", "Extraneous data after value", "f:1,4-5"),
        ] {
            let error = parse("f", text.as_bytes()).unwrap_err();
            assert_eq!(
                (&*error.summary, &*error.subject.unwrap().to_string()),
                (summary, at),
                "{text}"
            );
        }
        assert!(parse("f", "[".repeat(100_000).as_bytes()).is_err());
    }

    fn documents() -> impl Strategy<Value = serde_json::Value> {
        let leaf = prop_oneof![
            Just(serde_json::Value::Null),
            any::<bool>().prop_map(Into::into),
            any::<i64>().prop_map(Into::into),
            any::<String>().prop_map(Into::into),
        ];
        leaf.prop_recursive(4, 32, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Into::into),
                prop::collection::btree_map(any::<String>(), inner, 0..6)
                    .prop_map(|m| serde_json::Value::Object(m.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn what_serde_writes_reads_the_same(document in documents(), pretty: bool) {
            let text = if pretty { serde_json::to_string_pretty(&document) } else { serde_json::to_string(&document) }.unwrap();
            let node = parse("f", text.as_bytes()).unwrap();
            prop_assert_eq!(node.literal(), cty::json::from_simple_json(&document).unwrap());
        }

        #[test]
        fn any_text_is_read_or_refused_like_serde_does(text in "[\\[\\]{}:,\"a-z0-9\\\\ .eE+-]{0,24}") {
            let serde = serde_json::from_str::<serde_json::Value>(&text).is_ok();
            prop_assert_eq!(parse("f", text.as_bytes()).is_ok(), serde);
        }
    }
}
