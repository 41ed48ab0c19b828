//! Signs and remarks that both whole values and strings have, and values that are written as they are.

use cty::{Kind, Value};
use lang::render::quote;

use super::paint::{Ink, Text};
use super::tree::Act;

/// How to write what is inside of something.
#[derive(Clone, Copy, Default)]
pub(super) struct Options {
    /// No signs, and no room for them: for values that are no changes.
    pub(super) no_signs: bool,
    /// No `-> null` after what is removed: an enclosing element has it.
    pub(super) no_null: bool,
    /// Every change inside requires replacement.
    pub(super) all_replace: bool,
    /// No change inside is marked as requiring replacement: an enclosing element is.
    pub(super) none_replace: bool,
    /// Show what does not change.
    pub(super) show_all: bool,
}

impl Text {
    /// The sign of an action, with a blank after it.
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

    /// ` -> null`, where it is shown.
    pub(super) fn null_suffix(&mut self, act: Act, options: Options) -> &mut Text {
        if act == Act::Delete && !options.no_null {
            self.push(" ").inner(Ink::Grey, "-> null");
        }
        self
    }

    /// ` # forces replacement`, where it is shown.
    pub(super) fn forces(&mut self, replace: bool, options: Options) -> &mut Text {
        if !options.none_replace && (replace || options.all_replace) {
            self.push(" ").inner(Ink::Red, "# forces replacement");
        }
        self
    }

    /// The arrow between a value and the one that takes its place.
    pub(super) fn arrow(&mut self) -> &mut Text {
        self.push(" ").inner(Ink::Yellow, "->").push(" ")
    }
}

/// A value in one piece.
pub(super) fn scalar(text: &mut Text, value: Option<&Value>) {
    match value.map(Value::kind) {
        Some(Kind::Bool(b)) => text.push(if *b { "true" } else { "false" }),
        Some(Kind::Number(n)) => text.push(&n.to_string()),
        Some(Kind::String(s)) => text.push(&quote(s)),
        _ => text.inner(Ink::Grey, "null"),
    };
}
