//! Parser of templates.

use super::Mistake;

/// Part of a template.
#[derive(Debug, PartialEq, Eq)]
pub enum Node {
    Text(String),
    Value(Call),
    If(Call, Vec<Node>, Vec<Node>),
    Range(Call, Vec<Node>),
}

/// Pipeline: commands, each a function with arguments or a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    pub line: usize,
    pub commands: Vec<Vec<Term>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Term {
    Text(String),
    /// `.`
    Item,
    /// `.Name`
    Field(String),
    Name(String),
}

/// Text or the content of braces, with its line.
enum Piece<'t> {
    Text(&'t str),
    Braces(&'t str, usize),
}

/// Parses a template.
///
/// # Errors
/// It has a mistake.
pub fn parse(template: &str) -> Result<Vec<Node>, Mistake> {
    let pieces = pieces(template)?;
    let mut parser = Parser {
        pieces: pieces.into_iter(),
    };
    let (nodes, end) = parser.nodes()?;
    match end {
        End::Text => Ok(nodes),
        End::Word(word, line) => Err(Mistake {
            line,
            reason: format!("\"{word}\" has no \"if\" or \"range\""),
        }),
        End::ElseIf(call) => Err(Mistake {
            line: call.line,
            reason: "\"else\" has no \"if\"".to_owned(),
        }),
    }
}

/// Splits a template at braces, and removes blanks beside `-`.
fn pieces(template: &str) -> Result<Vec<Piece<'_>>, Mistake> {
    let mut out = Vec::new();
    let mut rest = template;
    let mut trims = false;
    loop {
        let line = 1 + template
            .get(..template.len() - rest.len())
            .unwrap_or_default()
            .matches('\n')
            .count();
        let Some((text, after)) = rest.split_once("{{") else {
            out.push(Piece::Text(if trims { rest.trim_start() } else { rest }));
            return Ok(out);
        };
        let line = line + text.matches('\n').count();
        let unclosed = || Mistake {
            line,
            reason: "\"{{\" is not closed".to_owned(),
        };
        let end = end_of_braces(after).ok_or_else(unclosed)?;
        let (inner, next) = (
            after.get(..end).unwrap_or_default(),
            after.get(end + 2..).unwrap_or_default(),
        );
        let before = if trims { text.trim_start() } else { text };
        let opening = inner
            .strip_prefix('-')
            .filter(|inner| inner.starts_with(char::is_whitespace));
        out.push(Piece::Text(if opening.is_some() { before.trim_end() } else { before }));
        let inner = opening.unwrap_or(inner);
        let closing = inner
            .strip_suffix('-')
            .filter(|inner| inner.ends_with(char::is_whitespace));
        trims = closing.is_some();
        out.push(Piece::Braces(closing.unwrap_or(inner).trim(), line));
        rest = next;
    }
}

/// Returns the position of the next `}}` that is neither in a quoted text nor in a comment; `None` if there is none.
fn end_of_braces(text: &str) -> Option<usize> {
    if text.trim_start_matches(['-', ' ']).starts_with("/*") {
        return text.find("*/").and_then(|at| Some(at + text.get(at..)?.find("}}")?));
    }
    let mut quoted = false;
    let bytes = text.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match byte {
            b'\\' if quoted => at += 1,
            b'"' => quoted = !quoted,
            b'}' if !quoted && bytes.get(at + 1) == Some(&b'}') => return Some(at),
            _ => {}
        }
        at += 1;
    }
    None
}

struct Parser<'t> {
    pieces: std::vec::IntoIter<Piece<'t>>,
}

/// End of a sequence of nodes.
enum End {
    /// End of the template.
    Text,
    /// `end` or `else`.
    Word(&'static str, usize),
    /// `else if` with its condition.
    ElseIf(Call),
}

impl Parser<'_> {
    fn nodes(&mut self) -> Result<(Vec<Node>, End), Mistake> {
        let mut nodes = Vec::new();
        while let Some(piece) = self.pieces.next() {
            let (inner, line) = match piece {
                Piece::Text(text) => {
                    nodes.push(Node::Text(text.to_owned()));
                    continue;
                }
                Piece::Braces(inner, line) => (inner, line),
            };
            if inner.starts_with("/*") {
                continue;
            }
            let (word, rest) = inner.split_once(char::is_whitespace).unwrap_or((inner, ""));
            match word {
                "end" => return Ok((nodes, End::Word("end", line))),
                "else" => match rest.trim_start().strip_prefix("if ") {
                    Some(condition) => return Ok((nodes, End::ElseIf(pipeline(condition, line)?))),
                    None => return Ok((nodes, End::Word("else", line))),
                },
                "if" => {
                    let condition = pipeline(rest, line)?;
                    nodes.push(self.conditional(condition)?);
                }
                "range" => {
                    let list = pipeline(rest, line)?;
                    let (body, end) = self.nodes()?;
                    match end {
                        End::Word("end", _) => nodes.push(Node::Range(list, body)),
                        _ => return Err(unended("range", line)),
                    }
                }
                "with" | "define" | "template" | "block" => {
                    return Err(Mistake {
                        line,
                        reason: format!("\"{word}\" cannot be used here; there are \"if\" and \"range\""),
                    });
                }
                _ => nodes.push(Node::Value(pipeline(inner, line)?)),
            }
        }
        Ok((nodes, End::Text))
    }

    /// Parses what follows the condition of an `if`, to its `end`.
    fn conditional(&mut self, condition: Call) -> Result<Node, Mistake> {
        let line = condition.line;
        let (then, end) = self.nodes()?;
        let otherwise = match end {
            End::Word("end", _) => Vec::new(),
            End::Word(..) => match self.nodes()? {
                (otherwise, End::Word("end", _)) => otherwise,
                _ => return Err(unended("else", line)),
            },
            End::ElseIf(next) => vec![self.conditional(next)?],
            End::Text => return Err(unended("if", line)),
        };
        Ok(Node::If(condition, then, otherwise))
    }
}

fn unended(word: &str, line: usize) -> Mistake {
    Mistake {
        line,
        reason: format!("\"{word}\" has no \"end\""),
    }
}

/// Parses a pipeline. A call in parentheses is supported only as the last argument, as in `and .A (not .B)`: it is rewritten to the
/// pipeline `not .B | and .A`.
fn pipeline(text: &str, line: usize) -> Result<Call, Mistake> {
    let mistake = |reason: String| Mistake { line, reason };
    let text = text.trim();
    if let Some((before, inner)) = text.strip_suffix(')').and_then(|text| text.split_once('(')) {
        let mut inner = pipeline(inner, line)?;
        inner.commands.push(terms(before).map_err(mistake)?);
        return Ok(inner);
    }
    let commands = terms(text).map_err(mistake)?;
    let is_pipe = |term: &Term| matches!(term, Term::Name(name) if name == "|");
    let commands = commands.split(is_pipe).map(<[Term]>::to_vec).collect();
    Ok(Call { line, commands })
}

fn terms(text: &str) -> Result<Vec<Term>, String> {
    let mut out = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let (term, next) = match first {
            '"' => quoted(rest.get(1..).unwrap_or_default())?,
            '`' => match rest.get(1..).and_then(|rest| rest.split_once('`')) {
                Some((text, next)) => (Term::Text(text.to_owned()), next),
                None => return Err("a text in back quotes is not closed".to_owned()),
            },
            '|' => (Term::Name("|".to_owned()), rest.get(1..).unwrap_or_default()),
            _ => {
                let end = rest
                    .find(|c: char| c.is_whitespace() || c == '|' || c == '"')
                    .unwrap_or(rest.len());
                let (word, next) = rest.split_at(end);
                let term = match word.strip_prefix('.') {
                    Some("") => Term::Item,
                    Some(name) => Term::Field(name.to_owned()),
                    None => Term::Name(word.to_owned()),
                };
                (term, next)
            }
        };
        out.push(term);
        rest = next.trim_start();
    }
    Ok(out)
}

/// Reads a text in quotes, whose first quote has been read.
fn quoted(text: &str) -> Result<(Term, &str), String> {
    let mut out = String::new();
    let mut characters = text.char_indices();
    while let Some((at, c)) = characters.next() {
        match c {
            '"' => return Ok((Term::Text(out), text.get(at + 1..).unwrap_or_default())),
            '\\' => match characters.next() {
                Some((_, 'n')) => out.push('\n'),
                Some((_, 't')) => out.push('\t'),
                Some((_, c)) => out.push(c),
                None => break,
            },
            c => out.push(c),
        }
    }
    Err("a text in quotes is not closed".to_owned())
}
