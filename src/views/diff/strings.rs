//! Rendering of strings: quoted, as a heredoc, or as the JSON document that they contain.

use cty::Value;

use super::compare;
use super::paint::Text;
use super::pair::Pair;
use super::sequence;
use super::signs::{Options, scalar};
use super::tree::{Act, Body, Node};

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
    // Numbers, quoted strings and null are JSON, too, but no documents.
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
    /// Writes the string. The current line has begun.
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

    /// Writes the change from a JSON document to other text, or back.
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
            scalar(text, self.before);
            text.arrow();
            scalar(text, self.after);
            text.forces(self.node.replace, self.options);
            return;
        }
        self.heredoc(text, |text| {
            let (old, new): (Vec<&str>, Vec<&str>) =
                (old.text().split('\n').collect(), new.text().split('\n').collect());
            for step in sequence::pair_up(&old, &new, |_| false) {
                let (act, line) = match step {
                    (Some(b), None) => (Act::Delete, old[b]),
                    (None, Some(a)) => (Act::Create, new[a]),
                    (Some(b), Some(_)) => (Act::Keep, old[b]),
                    (None, None) => continue,
                };
                self.line(text, act, line);
            }
        });
    }

    /// Writes a string that is unchanged, added or removed.
    fn whole(self, text: &mut Text, shown: &Content<'_>, value: Option<&Value>) {
        match shown {
            Content::Lines(lines) => self.heredoc(text, |text| {
                lines.split('\n').for_each(|line| self.line(text, Act::Keep, line));
            }),
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
        let document = compare::dynamic(Pair::of_value(before, after));
        // Then all of the document is shown: an empty diff would not say what the string is.
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
