//! Rendering of strings: quoted, as a heredoc, or as the JSON document that they contain.

use cty::Value;
use lang::render::quote;

use super::compare;
use super::paint::{Ink, Text};
use super::pair::Pair;
use super::sequence;
use super::signs::{Options, scalar};
use super::tree::{Act, Body, Node};

/// Length in bytes from which a change of a one-line text is abridged to the difference.
const LONG: usize = 160;
/// Number of unchanged characters written on each side of a difference.
const AROUND: usize = 20;
/// Maximum number of characters of an abridged string; the middle of a longer one is replaced by an
/// ellipsis.
const MIDDLE: usize = 120;
/// Number of lines written around a changed line.
const CONTEXT: usize = 3;

/// Content of a string.
enum Content<'v> {
    Absent,
    Json(Value),
    Lines(&'v str),
    Plain(&'v Value),
}

fn content(value: Option<&Value>) -> Content<'_> {
    let Some(value) = value else { return Content::Absent };
    let Some(string) = value.as_str() else {
        return Content::Plain(value);
    };
    // Numbers, quoted strings and null are JSON, too, but are not shown as documents.
    if string.starts_with(['{', '['])
        && let Ok(json) = serde_json::from_str::<serde_json::Value>(string)
        && let Ok(value) = cty::json::from_simple_json(&json)
    {
        return Content::Json(value);
    }
    if string.contains('\n') {
        Content::Lines(string.trim_end_matches('\n'))
    } else {
        Content::Plain(value)
    }
}

impl Content<'_> {
    fn text(&self) -> &str {
        match self {
            Content::Lines(text) => text,
            Content::Plain(value) => value.as_str().unwrap_or_default(),
            Content::Absent | Content::Json(_) => "",
        }
    }

    fn json(&self) -> Option<&Value> {
        match self {
            Content::Json(value) => Some(value),
            _ => None,
        }
    }
}

fn without_middle(text: &[char]) -> String {
    if text.len() <= MIDDLE {
        return text.iter().collect();
    }
    let (head, tail) = (&text[..MIDDLE - AROUND], &text[text.len() - AROUND..]);
    head.iter().chain(&['…']).chain(tail).collect()
}

/// String or its change. A JSON document in it is written like any other value, by `write_node`.
#[derive(Clone, Copy)]
pub(super) struct StringChange<'s, 'v> {
    pub(super) node: &'s Node<'v>,
    pub(super) before: Option<&'v Value>,
    pub(super) after: Option<&'v Value>,
    pub(super) indent: usize,
    pub(super) options: Options,
    pub(super) write_node: fn(&mut Text, &Node<'_>, usize, Options),
}

impl StringChange<'_, '_> {
    /// Writes the string. The beginning of the current line has been written.
    pub(super) fn write(self, text: &mut Text) {
        let act = self.node.act;
        let old = match act {
            Act::Create => Content::Absent,
            _ => content(self.before),
        };
        let new = match act {
            Act::Delete => Content::Absent,
            _ => content(self.after),
        };
        match (&old, &new) {
            (Content::Json(_), Content::Json(_) | Content::Absent) | (Content::Absent, Content::Json(_)) => {
                self.json(text, old.json(), new.json());
            }
            (Content::Json(_), _) | (_, Content::Json(_)) => self.other_content(text),
            _ if act == Act::Update => self.update(text, &old, &new),
            _ => {
                let (shown, value) = match act {
                    Act::Delete => (&old, self.before),
                    _ => (&new, self.after),
                };
                self.whole(text, shown, value);
            }
        }
    }

    /// Writes the change from a JSON document to other text, or from other text to a JSON document.
    fn other_content(self, text: &mut Text) {
        let gone = Node {
            act: Act::Delete,
            replace: false,
            body: Body::Primitive(self.before, None),
        };
        let come = Node {
            act: Act::Create,
            replace: false,
            body: Body::Primitive(None, self.after),
        };
        let change = Node {
            act: self.node.act,
            replace: self.node.replace,
            body: Body::TypeChange(Box::new(gone), Box::new(come)),
        };
        (self.write_node)(text, &change, self.indent, self.options);
    }

    fn update(self, text: &mut Text, old: &Content<'_>, new: &Content<'_>) {
        if !matches!(old, Content::Lines(_)) && !matches!(new, Content::Lines(_)) {
            let sides = (old.text(), new.text());
            if self.options.short
                && sides.0.len().max(sides.1.len()) > LONG
                && !sides.0.is_empty()
                && !sides.1.is_empty()
            {
                self.abridged(text, sides);
                return;
            }
            scalar(text, self.before);
            text.arrow();
            scalar(text, self.after);
            text.forces(self.node.replace, self.options);
            return;
        }
        self.heredoc(text, |text| {
            let (old, new): (Vec<&str>, Vec<&str>) =
                (old.text().split('\n').collect(), new.text().split('\n').collect());
            let steps = sequence::pair_up(&old, &new, |_| false);
            let lines: Vec<(Act, &str)> = steps
                .into_iter()
                .filter_map(|step| match step {
                    (Some(b), None) => Some((Act::Delete, old[b])),
                    (None, Some(a)) => Some((Act::Create, new[a])),
                    (Some(b), Some(_)) => Some((Act::Keep, old[b])),
                    (None, None) => None,
                })
                .collect();
            self.lines(text, &lines);
        });
    }

    /// Writes lines of a text; in the short form, only those near a change.
    fn lines(self, text: &mut Text, lines: &[(Act, &str)]) {
        let is_near = |at: usize| {
            let near = at.saturating_sub(CONTEXT)..(at + CONTEXT + 1).min(lines.len());
            lines[near].iter().any(|(act, _)| *act != Act::Keep)
        };
        let mut hidden = 0;
        for (at, (act, line)) in lines.iter().enumerate() {
            if self.options.short && !is_near(at) {
                hidden += 1;
                continue;
            }
            text.hidden(std::mem::take(&mut hidden), "line", self.indent + 1, self.options);
            self.line(text, *act, line);
        }
        text.hidden(hidden, "line", self.indent + 1, self.options);
    }

    /// Writes the change of a long one-line text: the difference, with a few characters around it.
    fn abridged(self, text: &mut Text, (old, new): (&str, &str)) {
        let (old, new): (Vec<char>, Vec<char>) = (old.chars().collect(), new.chars().collect());
        let same = |pairs: &mut dyn Iterator<Item = (&char, &char)>| pairs.take_while(|(a, b)| a == b).count();
        let begin = same(&mut old.iter().zip(&new));
        // The common end must not overlap the common beginning.
        let (rest_old, rest_new) = (&old[begin..], &new[begin..]);
        let end = same(&mut rest_old.iter().rev().zip(rest_new.iter().rev()));
        let part = |all: &[char]| {
            let from = begin.saturating_sub(AROUND);
            let to = (all.len() - end + AROUND).min(all.len());
            let shown: String = match all.get(from..to) {
                // If the two sides have nothing in common, both are shortened.
                Some(middle) => without_middle(middle),
                None => String::new(),
            };
            let mark = |is_cut: bool| if is_cut { "…" } else { "" };
            format!("{}{shown}{}", mark(from > 0), mark(to < all.len()))
        };
        text.push(&quote(&part(&old))).arrow().push(&quote(&part(&new)));
        text.push(" ")
            .inner(Ink::Grey, &format!("# ({} -> {} characters)", old.len(), new.len()));
        text.forces(self.node.replace, self.options);
    }

    /// Writes a string that is unchanged, added or removed.
    fn whole(self, text: &mut Text, shown: &Content<'_>, value: Option<&Value>) {
        match shown {
            Content::Lines(lines) => self.heredoc(text, |text| {
                let all: Vec<&str> = lines.split('\n').collect();
                let hidden = match self.options.cut {
                    true => all.len().saturating_sub(2 * CONTEXT),
                    false => 0,
                };
                let (head, rest) = all.split_at(CONTEXT.min(all.len()));
                head.iter().for_each(|line| self.line(text, Act::Keep, line));
                text.hidden(hidden, "line", self.indent + 1, self.options);
                let tail = rest.get(hidden..).unwrap_or_default();
                tail.iter().for_each(|line| self.line(text, Act::Keep, line));
            }),
            Content::Plain(_) if self.options.cut && shown.text().len() > LONG => {
                let all: Vec<char> = shown.text().chars().collect();
                text.push(&quote(&without_middle(&all)));
                text.null_suffix(self.node.act, self.options)
                    .forces(self.node.replace, self.options);
            }
            _ => {
                scalar(text, value);
                text.null_suffix(self.node.act, self.options)
                    .forces(self.node.replace, self.options);
            }
        }
    }

    fn line(self, text: &mut Text, act: Act, line: &str) {
        text.indent(self.indent + 1)
            .sign(act, self.options)
            .push(line)
            .push("\n");
    }

    fn heredoc(self, text: &mut Text, lines: impl FnOnce(&mut Text)) {
        text.push("<<-EOT").forces(self.node.replace, self.options).push("\n");
        lines(text);
        text.indent(self.indent)
            .sign(Act::Keep, self.options)
            .push("EOT")
            .null_suffix(self.node.act, self.options);
    }

    /// Writes the JSON documents in strings.
    fn json(self, text: &mut Text, before: Option<&Value>, after: Option<&Value>) {
        let StringChange {
            node, indent, options, ..
        } = self;
        let document = compare::dynamic(Pair::of_value(before, after).alike(options.short));
        // If only blanks differ, the whole document is shown, because an empty diff would not show what the
        // string is.
        let only_spaces = document.act == Act::Keep && node.act == Act::Update;
        let inner = Options {
            no_null: true,
            show_all: options.show_all || only_spaces,
            ..options
        };
        let remark = |text: &mut Text| {
            if only_spaces {
                let words = if node.replace {
                    "# whitespace changes force replacement"
                } else {
                    "# whitespace changes"
                };
                text.push(" ").push(words);
            }
        };
        let replaced = node.replace && !only_spaces;
        let mut rendered = Text::new(text.colour);
        (self.write_node)(&mut rendered, &document, indent + 1, inner);
        text.push("jsonencode(");
        if rendered.out.contains('\n') {
            remark(text);
            let act = if matches!(node.act, Act::Create | Act::Delete) {
                Act::Keep
            } else {
                document.act
            };
            text.push("\n")
                .indent(indent + 1)
                .sign(act, options)
                .push(&rendered.out)
                .forces(replaced, options)
                .push("\n");
            text.indent(indent).sign(Act::Keep, options).push(")");
        } else {
            text.push(&rendered.out).push(")");
            remark(text);
            text.forces(replaced, options);
        }
        text.null_suffix(node.act, options);
    }
}
