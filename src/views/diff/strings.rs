//! Strings: in quotes, as the lines of a heredoc, or as the JSON document they hold.

use cty::Value;

use super::compare;
use super::paint::Text;
use super::pair::Pair;
use super::render::{self, Options, scalar};
use super::sequence;
use super::tree::{Act, Body, Node};

/// What a string holds.
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

/// Writes a string, or its change.
pub(super) fn write(
    text: &mut Text,
    node: &Node<'_>,
    before: Option<&Value>,
    after: Option<&Value>,
    indent: usize,
    options: Options,
) {
    let old = if matches!(node.act, Act::Create) {
        Content::Absent
    } else {
        content(before)
    };
    let new = if matches!(node.act, Act::Delete) {
        Content::Absent
    } else {
        content(after)
    };
    let shown = if matches!(node.act, Act::Delete) { &old } else { &new };
    match (&old, &new) {
        (Content::Json(_), Content::Json(_) | Content::Absent) | (Content::Absent, Content::Json(_)) => {
            return json(text, node, old.json(), new.json(), indent, options);
        }
        (Content::Json(_), _) | (_, Content::Json(_)) => {
            let gone = Node {
                act: Act::Delete,
                replace: false,
                body: Body::Primitive(before, None),
            };
            let come = Node {
                act: Act::Create,
                replace: false,
                body: Body::Primitive(None, after),
            };
            let change = Body::TypeChange(Box::new(gone), Box::new(come));
            return render::node(
                text,
                &Node {
                    act: node.act,
                    replace: node.replace,
                    body: change,
                },
                indent,
                options,
            );
        }
        _ => {}
    }
    if node.act == Act::Update {
        if !matches!(old, Content::Lines(_)) && !matches!(new, Content::Lines(_)) {
            scalar(text, before);
            text.arrow();
            scalar(text, after);
            text.forces(node.replace, options);
            return;
        }
        heredoc(text, node, indent, options, |text| {
            let (old, new): (Vec<&str>, Vec<&str>) =
                (old.text().split('\n').collect(), new.text().split('\n').collect());
            for step in sequence::pair_up(&old, &new, |_| false) {
                let (act, line) = match step {
                    (Some(b), None) => (Act::Delete, old[b]),
                    (None, Some(a)) => (Act::Create, new[a]),
                    (Some(b), Some(_)) => (Act::Keep, old[b]),
                    (None, None) => continue,
                };
                text.indent(indent + 1).sign(act, options).push(line).push("\n");
            }
        });
        return;
    }
    match shown {
        Content::Lines(lines) => heredoc(text, node, indent, options, |text| {
            for line in lines.split('\n') {
                text.indent(indent + 1).sign(Act::Keep, options).push(line).push("\n");
            }
        }),
        _ => {
            scalar(text, if node.act == Act::Delete { before } else { after });
            text.null_suffix(node.act, options).forces(node.replace, options);
        }
    }
}

fn heredoc(text: &mut Text, node: &Node<'_>, indent: usize, options: Options, lines: impl FnOnce(&mut Text)) {
    text.push("<<-EOT").forces(node.replace, options).push("\n");
    lines(text);
    text.indent(indent)
        .sign(Act::Keep, options)
        .push("EOT")
        .null_suffix(node.act, options);
}

/// Writes the documents that strings hold.
fn json(
    text: &mut Text,
    node: &Node<'_>,
    before: Option<&Value>,
    after: Option<&Value>,
    indent: usize,
    options: Options,
) {
    let document = compare::dynamic(Pair::of_value(before, after));
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
    render::node(&mut rendered, &document, indent + 1, inner);
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
