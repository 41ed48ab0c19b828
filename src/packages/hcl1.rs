//! A parser for the syntax of CLI configuration files: HCL 1, or JSON.
//!
//! HCL 1 differs from HCL 2 where it matters: keys may be quoted (`"hashicorp/null" = "…"` in a block), `=` before a block is
//! optional, and there are no expressions. `hcl-rs` parses HCL 2 only.

#[derive(Clone, Debug, PartialEq)]
pub enum Node {
    String(String),
    /// Number as written.
    Number(String),
    Bool(bool),
    /// Null, in JSON only.
    Null,
    List(Vec<Node>),
    /// Assignments and blocks, in order.
    Object(Vec<Item>),
}

/// Assignment, or block with its labels.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// Key, or type and labels of a block. Never empty.
    pub keys: Vec<String>,
    /// Assigned value, or content of a block.
    pub value: Node,
    /// Line, from 1; 0 in JSON.
    pub line: usize,
}

/// Syntax error.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {message}")]
pub struct ParseError {
    /// Line, from 1.
    pub line: usize,
    pub message: String,
}

/// Limit of nesting, which keeps the recursion from exhausting the stack.
const DEPTH: usize = 64;

/// Parses the text of a file.
pub fn parse(text: &str) -> Result<Vec<Item>, ParseError> {
    // Editors on Windows put a byte order mark before the text.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim_start().starts_with('{') {
        return parse_json(text);
    }
    let mut reader = Reader {
        rest: text,
        line: 1,
        depth: 0,
    };
    let items = reader.items(None)?;
    Ok(items)
}

fn parse_json(text: &str) -> Result<Vec<Item>, ParseError> {
    // serde_json limits nesting itself.
    let json: serde_json::Value = serde_json::from_str(text).map_err(|error| ParseError {
        line: error.line(),
        message: files::json_mistake(error.to_string().rsplit_once(" at line ").map_or("", |(what, _)| what)),
    })?;
    match node(json) {
        Node::Object(items) => Ok(items),
        _ => Err(ParseError {
            line: 1,
            message: "an object is expected".to_owned(),
        }),
    }
}

fn node(json: serde_json::Value) -> Node {
    use serde_json::Value as J;
    match json {
        J::Null => Node::Null,
        J::Bool(b) => Node::Bool(b),
        J::Number(n) => Node::Number(n.to_string()),
        J::String(s) => Node::String(s),
        J::Array(items) => Node::List(items.into_iter().map(node).collect()),
        J::Object(map) => Node::Object(
            map.into_iter()
                .map(|(key, value)| Item {
                    keys: vec![key],
                    value: node(value),
                    // The JSON parser does not record positions.
                    line: 0,
                })
                .collect(),
        ),
    }
}

struct Reader<'t> {
    rest: &'t str,
    line: usize,
    depth: usize,
}

impl Reader<'_> {
    fn fail<T>(&self, message: impl Into<String>) -> Result<T, ParseError> {
        Err(ParseError {
            line: self.line,
            message: message.into(),
        })
    }

    fn peek(&self) -> Option<char> {
        self.rest.chars().next()
    }

    fn advance(&mut self, bytes: usize) {
        let (skipped, rest) = self.rest.split_at(bytes);
        self.line += skipped.bytes().filter(|&b| b == b'\n').count();
        self.rest = rest;
    }

    /// Skips blanks, line ends and comments.
    fn skip(&mut self) -> Result<(), ParseError> {
        loop {
            let blank = self.rest.len() - self.rest.trim_start().len();
            self.advance(blank);
            if self.rest.starts_with('#') || self.rest.starts_with("//") {
                self.advance(self.rest.find('\n').unwrap_or(self.rest.len()));
            } else if self.rest.starts_with("/*") {
                match self.rest.find("*/") {
                    Some(end) => self.advance(end + 2),
                    None => return self.fail("the comment is not closed"),
                }
            } else {
                return Ok(());
            }
        }
    }

    fn items(&mut self, end: Option<char>) -> Result<Vec<Item>, ParseError> {
        let mut items = Vec::new();
        loop {
            self.skip()?;
            match self.peek() {
                found if found == end => {
                    self.advance(found.map_or(0, char::len_utf8));
                    return Ok(items);
                }
                // In HCL 1, commas between items are permitted, and not required.
                Some(',') if !items.is_empty() => self.advance(1),
                None => return self.fail("a closing brace is missing"),
                Some(_) => items.push(self.item()?),
            }
        }
    }

    fn item(&mut self) -> Result<Item, ParseError> {
        let line = self.line;
        let mut keys = Vec::new();
        loop {
            self.skip()?;
            match self.peek() {
                Some('"') => keys.push(self.string()?),
                Some(c) if is_word(c) => keys.push(self.word()),
                Some('{') if !keys.is_empty() => {
                    let value = self.object()?;
                    return Ok(Item { keys, value, line });
                }
                Some('=') if !keys.is_empty() => {
                    self.advance(1);
                    let value = self.value()?;
                    return Ok(Item { keys, value, line });
                }
                Some(c) => return self.fail(format!("a name, \"=\" or \"{{\" is expected, not \"{c}\"")),
                None => return self.fail("the file ends in the middle of an assignment or block"),
            }
        }
    }

    fn value(&mut self) -> Result<Node, ParseError> {
        self.skip()?;
        match self.peek() {
            Some('"') => Ok(Node::String(self.string()?)),
            Some('{') => self.object(),
            Some('[') => self.list(),
            Some('<') => self.heredoc(),
            Some(c) if is_word(c) => Ok(match self.word() {
                word if word == "true" => Node::Bool(true),
                word if word == "false" => Node::Bool(false),
                word if word.starts_with(|c: char| c.is_ascii_digit() || c == '-') => Node::Number(word),
                word => return self.fail(format!("\"{word}\" is not a value: text must be in quotes")),
            }),
            _ => self.fail("a value is expected"),
        }
    }

    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, ParseError>) -> Result<T, ParseError> {
        if self.depth == DEPTH {
            return self.fail("the nesting is too deep");
        }
        self.depth += 1;
        self.advance(1);
        let result = read(self);
        self.depth -= 1;
        result
    }

    fn object(&mut self) -> Result<Node, ParseError> {
        self.deeper(|reader| reader.items(Some('}')).map(Node::Object))
    }

    fn list(&mut self) -> Result<Node, ParseError> {
        self.deeper(|reader| {
            let mut items = Vec::new();
            loop {
                reader.skip()?;
                match reader.peek() {
                    Some(']') => {
                        reader.advance(1);
                        return Ok(Node::List(items));
                    }
                    Some(',') if !items.is_empty() => reader.advance(1),
                    _ => items.push(reader.value()?),
                }
            }
        })
    }

    fn word(&mut self) -> String {
        let end = self.rest.find(|c| !is_word(c)).unwrap_or(self.rest.len());
        let word = self.rest[..end].to_owned();
        self.advance(end);
        word
    }

    fn string(&mut self) -> Result<String, ParseError> {
        let mut out = String::new();
        // A quotation mark inside `${…}` does not end the string.
        let mut braces = 0_usize;
        let mut chars = self.rest.char_indices().skip(1).peekable();
        while let Some((at, c)) = chars.next() {
            match c {
                '"' if braces == 0 => {
                    self.advance(at + 1);
                    return Ok(out);
                }
                '\n' => return self.fail("the text is not closed on its line"),
                '$' if chars.peek().is_some_and(|(_, c)| *c == '{') => {
                    chars.next();
                    braces += 1;
                    out.push_str("${");
                }
                '}' if braces > 0 => {
                    braces -= 1;
                    out.push('}');
                }
                '\\' if braces == 0 => match chars.next() {
                    Some((_, 'n')) => out.push('\n'),
                    Some((_, 't')) => out.push('\t'),
                    Some((_, 'r')) => out.push('\r'),
                    Some((_, c @ ('"' | '\\'))) => out.push(c),
                    Some((_, u @ ('u' | 'U'))) => {
                        let digits: String = chars
                            .by_ref()
                            .take(if u == 'u' { 4 } else { 8 })
                            .map(|(_, c)| c)
                            .collect();
                        match u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32) {
                            Some(c) => out.push(c),
                            None => return self.fail(format!("\"\\{u}{digits}\" is not a character")),
                        }
                    }
                    _ => {
                        return self.fail(
                            "a backslash must be followed by n, t, r, u, a quotation mark or a backslash \
                             (write paths with forward slashes, or double every backslash)",
                        );
                    }
                },
                c => out.push(c),
            }
        }
        self.fail("the text is not closed")
    }

    fn heredoc(&mut self) -> Result<Node, ParseError> {
        let Some(head) = self.rest.strip_prefix("<<") else {
            return self.fail("a value is expected");
        };
        let Some((marker, body)) = head.split_once('\n') else {
            return self.fail("the text is not closed");
        };
        let (marker, indented) = match marker.strip_prefix('-') {
            Some(marker) => (marker.trim(), true),
            None => (marker.trim(), false),
        };
        let mut lines = Vec::new();
        let mut at = self.rest.len() - body.len();
        for line in body.split_inclusive('\n') {
            at += line.len();
            // The marker may be indented, with or without `-`, as in HCL 1.
            if line.trim() == marker {
                let indent = |l: &&str| l.len() - l.trim_start_matches([' ', '\t']).len();
                let common = if indented {
                    lines.iter().map(indent).min().unwrap_or(0)
                } else {
                    0
                };
                let text = lines.iter().map(|l| &l[common..]).collect();
                self.advance(at);
                return Ok(Node::String(text));
            }
            lines.push(line);
        }
        self.fail(format!("the text is not closed by a line \"{marker}\""))
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '-' | '.')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn everything_that_stands_in_such_files() {
        let text = r#"
            # comment
            plugin_cache_dir = "$HOME/.terraform.d/plugin-cache" // comment
            disable_checkpoint = true
            /* longer
               comment */
            credentials "app.terraform.io" { token = "a\"b\\c${HOME}" }
            provider_installation {
              dev_overrides { "hashicorp/null" = "/x", "a/b" = "/y" }
              filesystem_mirror { path = "/m"  include = ["*/*", "e.com/*/*",] }
            }
            host "x" { services = { "modules.v1" = "https://x/" } }
            note = <<-EOT
              a
               b
              EOT
            n = 1.5
        "#;
        let items = parse(text).unwrap();
        let keys: Vec<String> = items.iter().map(|i| i.keys.join(" ")).collect();
        assert_eq!(
            keys,
            [
                "plugin_cache_dir",
                "disable_checkpoint",
                "credentials app.terraform.io",
                "provider_installation",
                "host x",
                "note",
                "n"
            ]
        );
        assert_eq!(items[5].value, Node::String("a\n b\n".into()));
        let Node::Object(methods) = &items[3].value else {
            panic!()
        };
        let Node::Object(overrides) = &methods[0].value else {
            panic!()
        };
        assert_eq!(
            (overrides[0].keys[0].as_str(), &overrides[0].value),
            ("hashicorp/null", &Node::String("/x".into()))
        );
        let Node::Object(token) = &items[2].value else { panic!() };
        assert_eq!(token[0].value, Node::String("a\"b\\c${HOME}".into()));
    }

    #[test]
    fn errors_name_the_line() {
        for (text, line) in [
            ("a = \n\nb", 3),
            ("a {\n", 2),
            ("\na = \"x", 2),
            ("a = [1", 1),
            ("a = \"\\q\"", 1),
            ("= 1", 1),
            ("a = <<E\nx\n", 1),
        ] {
            assert_eq!(parse(text).unwrap_err().line, line, "{text:?}");
        }
        assert!(parse(&"a {".repeat(100_000)).is_err());
        assert!(parse(&format!("a = {}", "[".repeat(100_000))).is_err());
    }

    #[test]
    fn json_gives_the_same() {
        let json = parse(r#"{"host": {"x": {"services": {"a": "b"}}}, "disable_checkpoint": true}"#).unwrap();
        assert_eq!(json[1].value, Node::Bool(true));
        assert_eq!(json[0].keys, ["host"]);
    }

    proptest! {
        #[test]
        fn no_text_makes_it_panic(text in "[a-z\"{}=\\[\\],<$\\\\#/*\\n é-]{0,60}") {
            let _ = parse(&text);
        }
    }
}
