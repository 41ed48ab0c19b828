//! Signs, notes and scalars in the text of values.

use cty::{Kind, Value};
use lang::render::quote;

use super::paint::{Ink, Text};
use super::tree::Act;

/// Options for writing the content of a value.
#[derive(Clone, Copy, Default)]
pub(super) struct Options {
    /// Writes no signs and reserves no columns for them: for values that do not change.
    pub(super) no_signs: bool,
    /// Writes no `-> null` after removed values, because an enclosing element has it.
    pub(super) no_null: bool,
    /// Marks every change inside as forcing replacement.
    pub(super) all_replace: bool,
    /// Marks no change inside as forcing replacement: an enclosing element is marked.
    pub(super) none_replace: bool,
    /// Writes unchanged parts, too.
    pub(super) show_all: bool,
    /// Writes long texts as differences.
    pub(super) short: bool,
    /// Shortens long texts to their beginning and end, because they will be replaced by values that are not known.
    pub(super) cut: bool,
}

impl Text {
    /// Writes the sign of an action, with a blank after it.
    pub(super) fn sign(&mut self, act: Act, options: Options) -> &mut Text {
        if options.no_signs {
            return self;
        }
        match act {
            Act::Keep => self.push("    "),
            Act::Create => self.push("  ").inner(Ink::Green, "+").push(" "),
            Act::Delete => self.push("  ").inner(Ink::Red, "-").push(" "),
            Act::Update => self.push("  ").inner(Ink::Yellow, "~").push(" "),
        }
    }

    /// Writes ` -> null`, if the options allow it.
    pub(super) fn null_suffix(&mut self, act: Act, options: Options) -> &mut Text {
        if act == Act::Delete && !options.no_null {
            self.push(" ").inner(Ink::Grey, "-> null");
        }
        self
    }

    /// Writes ` # forces replacement`, if it applies.
    pub(super) fn forces(&mut self, replace: bool, options: Options) -> &mut Text {
        if !options.none_replace && (replace || options.all_replace) {
            self.push(" ").inner(Ink::Red, "# forces replacement");
        }
        self
    }

    /// Writes the arrow between the old and the new value.
    pub(super) fn arrow(&mut self) -> &mut Text {
        self.push(" ").inner(Ink::Yellow, "->").push(" ")
    }
}

pub(super) fn scalar(text: &mut Text, value: Option<&Value>) {
    match value.map(Value::kind) {
        Some(Kind::Bool(b)) => text.push(if *b { "true" } else { "false" }),
        Some(Kind::Number(n)) => text.push(&n.to_string()),
        Some(Kind::String(s)) => text.push(&quote(s)),
        _ => text.inner(Ink::Grey, "null"),
    };
}
