//! Rendering of a comparison: a line for each part, with its sign, its value before and after, and notes on hidden parts.

use cty::Value;
use lang::render::quote;
use unicode_width::UnicodeWidthStr as _;

use super::paint::{Ink, Text};
use super::signs::{Options, scalar};
use super::strings;
use super::tree::{Act, Block, Blocks, Body, Node, Secret};

/// Attributes by which users recognize an object. They are shown even if they do not change.
const TELLING: [&str; 3] = ["id", "name", "tags"];

impl Text {
    pub(super) fn hidden(&mut self, count: usize, what: &str, indent: usize, options: Options) {
        if count == 0 {
            return;
        }
        self.indent(indent).sign(Act::Keep, options);
        let plural = if count == 1 { "" } else { "s" };
        self.inner(Ink::Grey, &format!("# ({count} unchanged {what}{plural} hidden)"))
            .push("\n");
    }

    fn close(&mut self, bracket: &str, indent: usize, options: Options) -> &mut Text {
        self.indent(indent).sign(Act::Keep, options).push(bracket)
    }
}

/// Writes a value. The beginning of the current line has been written, at this level of indentation.
pub(super) fn node(text: &mut Text, node: &Node<'_>, indent: usize, options: Options) {
    match &node.body {
        Body::Primitive(before, after) => primitive(text, node, *before, *after, indent, options),
        Body::List { items, context } => list(text, node, items, *context, indent, options),
        Body::Set { items, nested } => set(text, node, items, *nested, indent, options),
        Body::Map { items, nested } => map(text, node, items, *nested, indent, options),
        Body::Object { items, nested } => object(text, node, items, *nested, indent, options),
        Body::Block(content) => block(text, node, content, indent, options),
        Body::Unknown(None) => {
            text.push("(known after apply)").forces(node.replace, options);
        }
        Body::Unknown(Some(before)) => {
            // "-> null" after the old value would contradict the arrow that follows.
            self::node(
                text,
                before,
                indent,
                Options {
                    no_null: true,
                    cut: options.short,
                    ..options
                },
            );
            text.push(" -> (known after apply)").forces(node.replace, options);
        }
        Body::Sensitive(_, Some(shown)) | Body::SensitiveBlock(_, Some(shown)) => {
            self::node(text, shown, indent, options);
        }
        Body::Sensitive(_, None) => {
            text.push("(sensitive value)")
                .null_suffix(node.act, options)
                .forces(node.replace, options);
        }
        Body::SensitiveBlock(_, None) => {
            text.push("{").forces(node.replace, options).push("\n");
            text.indent(indent + 1)
                .push("  # At least one attribute in this block is (or was) sensitive,\n");
            text.indent(indent + 1)
                .push("  # so its contents will not be displayed.\n");
            text.close("}", indent, options);
        }
        Body::TypeChange(before, after) => {
            let inner = Options {
                no_null: true,
                ..options
            };
            self::node(text, before, indent, inner);
            text.arrow();
            self::node(text, after, indent, inner);
            text.forces(node.replace, options);
        }
        Body::WriteOnly => {
            text.push("(write-only attribute)")
                .null_suffix(node.act, options)
                .forces(node.replace, options);
        }
    }
}

/// Writes the warnings that come on lines of their own before a value.
fn warnings(text: &mut Text, node: &Node<'_>, indent: usize) {
    let (secret, what) = match &node.body {
        Body::Sensitive(secret, _) => (secret, "attribute value"),
        Body::SensitiveBlock(secret, _) => (secret, "block"),
        Body::Unknown(Some(before)) => return warnings(text, before, indent),
        _ => return,
    };
    let Secret { inner, before, after } = *secret;
    // A created or deleted value has only one side, so its mark cannot change.
    if matches!(node.act, Act::Create | Act::Delete) || before == after {
        return;
    }
    let begin = |text: &mut Text| {
        text.indent(indent).push("  ");
    };
    begin(text);
    text.push("# ")
        .inked(Ink::Yellow, "Warning")
        .push(&format!(": this {what} will "));
    if before {
        text.push("no longer be marked as sensitive\n");
        begin(text);
        text.push("# after applying this change.").ink(Ink::Reset);
    } else {
        text.push("be marked as sensitive and will not\n");
        begin(text);
        text.push("# display in UI output after applying this change.")
            .ink(Ink::Reset);
    }
    if inner == Act::Keep {
        text.push(" The value is unchanged.");
    }
    text.push("\n");
}

fn primitive(
    text: &mut Text,
    node: &Node<'_>,
    before: Option<&Value>,
    after: Option<&Value>,
    indent: usize,
    options: Options,
) {
    let is_text = |v: Option<&Value>| v.is_some_and(|v| v.as_str().is_some());
    if is_text(before) || is_text(after) {
        let change = strings::StringChange {
            node,
            before,
            after,
            indent,
            options,
            write_node: self::node,
        };
        return change.write(text);
    }
    match node.act {
        Act::Create | Act::Keep => scalar(text, after),
        Act::Delete => scalar(text, before),
        Act::Update => {
            scalar(text, before);
            text.arrow();
            scalar(text, after);
        }
    }
    text.null_suffix(node.act, options).forces(node.replace, options);
}

fn list(text: &mut Text, node: &Node<'_>, items: &[Node<'_>], context: bool, indent: usize, options: Options) {
    if items.is_empty() {
        text.push("[]")
            .null_suffix(node.act, options)
            .forces(node.replace, options);
        return;
    }
    text.push("[").forces(node.replace, options).push("\n");
    let inner = Options {
        no_null: true,
        ..options
    };
    let whole = Options {
        show_all: true,
        ..inner
    };
    let element = |text: &mut Text, item: &Node<'_>| {
        let options = if item.act == Act::Keep { whole } else { inner };
        warnings(text, item, indent + 1);
        text.indent(indent + 1).sign(item.act, options);
        self::node(text, item, indent + 1, options);
        text.push(",\n");
    };
    let mut skipped: Option<&Node<'_>> = None;
    let mut count = 0;
    let mut show_next = false;
    for item in items {
        if item.act == Act::Keep && !show_next && !options.show_all {
            skipped = Some(item);
            count += 1;
            continue;
        }
        if context {
            // The elements next to a change are shown as its context.
            if let Some(last) = skipped.take() {
                text.hidden(count - 1, "element", indent + 1, options);
                element(text, last);
                count = 0;
            }
            show_next = item.act != Act::Keep;
        }
        element(text, item);
    }
    text.hidden(count, "element", indent + 1, options);
    text.close("]", indent, options).null_suffix(node.act, options);
}

/// Returns whether a forced replacement is noted here, and the options for the parts. For collections of nested objects
/// it is noted at each element instead.
fn replacement(node: &Node<'_>, nested: bool, options: Options) -> (bool, Options) {
    let inner = Options {
        no_null: true,
        ..options
    };
    if nested {
        (
            false,
            Options {
                all_replace: node.replace,
                ..inner
            },
        )
    } else {
        (node.replace, inner)
    }
}

fn set(text: &mut Text, node: &Node<'_>, items: &[Node<'_>], nested: bool, indent: usize, options: Options) {
    let (here, inner) = replacement(node, nested, options);
    if items.is_empty() {
        text.push("[]")
            .null_suffix(node.act, options)
            .forces(node.replace, options);
        return;
    }
    text.push("[").forces(here, options).push("\n");
    let mut hidden = 0;
    for item in items {
        if item.act == Act::Keep && !options.show_all {
            hidden += 1;
            continue;
        }
        warnings(text, item, indent + 1);
        text.indent(indent + 1).sign(item.act, options);
        self::node(text, item, indent + 1, inner);
        text.push(",\n");
    }
    text.hidden(hidden, "element", indent + 1, options);
    text.close("]", indent, options).null_suffix(node.act, options);
}

fn map(text: &mut Text, node: &Node<'_>, items: &[(&str, Node<'_>)], nested: bool, indent: usize, options: Options) {
    let (here, inner) = replacement(node, nested, options);
    // In a map that still exists, each removed element gets `-> null`, unless it is an object whose attributes
    // get it.
    let inner = Options {
        no_null: options.no_null || nested || node.act == Act::Delete,
        ..inner
    };
    if items.is_empty() {
        text.push("{}")
            .null_suffix(node.act, options)
            .forces(node.replace, options);
        return;
    }
    let keys: Vec<String> = items.iter().map(|(key, _)| quote(key)).collect();
    let longest = if nested {
        0
    } else {
        keys.iter().map(|k| k.width()).max().unwrap_or(0)
    };
    text.push("{").forces(here, options).push("\n");
    let mut hidden = 0;
    for (key, (_, item)) in keys.iter().zip(items) {
        if item.act == Act::Keep && !options.show_all {
            hidden += 1;
            continue;
        }
        warnings(text, item, indent + 1);
        text.indent(indent + 1).sign(item.act, options).push(key);
        text.blanks(longest.saturating_sub(key.width())).push(" = ");
        self::node(text, item, indent + 1, inner);
        let object = matches!(item.body, Body::Object { .. });
        text.push(if nested || object { ",\n" } else { "\n" });
    }
    text.hidden(hidden, "element", indent + 1, options);
    text.close("}", indent, options).null_suffix(node.act, options);
}

/// Returns a name in the form for the left side of an equals sign: quoted if necessary.
pub(super) fn attribute_name(name: &str) -> std::borrow::Cow<'_, str> {
    if addrs::parse::is_identifier(name) {
        name.into()
    } else {
        quote(name).into()
    }
}

/// Writes one attribute on each line, with aligned equals signs, and the number of hidden ones. Their values are written
/// with the options `inner`.
fn attributes(text: &mut Text, items: &[(&str, Node<'_>)], indent: usize, options: Options, inner: Options) {
    let names: Vec<_> = items.iter().map(|(name, _)| attribute_name(name)).collect();
    let longest = names.iter().map(|n| n.width()).max().unwrap_or(0);
    let mut hidden = 0;
    for (name, (key, item)) in names.iter().zip(items) {
        let telling = TELLING.contains(key);
        if item.act == Act::Keep && !telling && !options.show_all {
            hidden += 1;
            continue;
        }
        let inner = Options {
            show_all: inner.show_all || telling,
            ..inner
        };
        warnings(text, item, indent);
        text.indent(indent).sign(item.act, options).push(name);
        text.blanks(longest - name.width()).push(" = ");
        node(text, item, indent, inner);
        text.push("\n");
    }
    text.hidden(hidden, "attribute", indent, options);
}

fn object(text: &mut Text, node: &Node<'_>, items: &[(&str, Node<'_>)], nested: bool, indent: usize, options: Options) {
    // Every attribute removed inside a nested object gets `-> null`.
    let inner = Options {
        no_null: !nested,
        all_replace: false,
        ..options
    };
    if items.is_empty() {
        text.push("{}")
            .null_suffix(node.act, options)
            .forces(node.replace, options);
        return;
    }
    text.push("{").forces(node.replace, options).push("\n");
    attributes(text, items, indent + 1, options, inner);
    text.close("}", indent, options).null_suffix(node.act, options);
}

fn block(text: &mut Text, node: &Node<'_>, content: &Block<'_>, indent: usize, options: Options) {
    if content.attributes.is_empty() && content.blocks.is_empty() {
        text.push("{").forces(node.replace, options).push("}");
        return;
    }
    text.push("{").forces(node.replace, options).push("\n");
    let options = Options {
        all_replace: false,
        ..options
    };
    attributes(text, &content.attributes, indent + 1, options, options);
    let mut hidden = 0;
    for (name, Blocks { items, replace }) in &content.blocks {
        let mut apart = false;
        for (label, item) in items {
            if item.act == Act::Keep && !options.show_all {
                hidden += 1;
                continue;
            }
            // If there are no attributes, no blank line separates the blocks.
            if !apart && !content.attributes.is_empty() {
                text.push("\n");
                apart = true;
            }
            let inner = Options {
                all_replace: *replace,
                ..options
            };
            warnings(text, item, indent + 1);
            text.indent(indent + 1)
                .sign(item.act, options)
                .push(&attribute_name(name))
                .push(" ");
            if let Some(label) = label {
                text.push(&quote(label)).push(" ");
            }
            self::node(text, item, indent + 1, inner);
            text.push("\n");
        }
    }
    if hidden > 0 {
        text.push("\n");
        text.hidden(hidden, "block", indent + 1, options);
    }
    text.close("}", indent, options);
}
