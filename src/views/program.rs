//! The name this program has: the one it was called by.
//!
//! Called by the name `terraform`, it prints Terraform wherever that program names itself, so that scripts which search its
//! output work unchanged. Only this file decides it.

use std::borrow::Cow;
use std::sync::OnceLock;

/// The version of Terraform we answer as: of the language, the state, the plans and the JSON.
pub const TERRAFORM_VERSION: &str = "1.16.0";

/// A name of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Program {
    /// In sentences.
    pub tool: &'static str,
    /// On a command line.
    pub command: &'static str,
}

/// Our own name.
pub const MONOFORM: Program = Program {
    tool: "Monoform",
    command: "monoform",
};

/// The name of a link that stands in for Terraform.
pub const TERRAFORM: Program = Program {
    tool: "Terraform",
    command: "terraform",
};

static CALLED_AS: OnceLock<Program> = OnceLock::new();

/// Sets the name for the life of the process; only the first call counts.
pub fn call(program: Program) {
    let _ = CALLED_AS.set(program);
}

/// The name.
#[must_use]
pub fn name() -> Program {
    CALLED_AS.get().copied().unwrap_or(MONOFORM)
}

/// The name in sentences.
#[must_use]
pub fn tool() -> &'static str {
    name().tool
}

/// The name on a command line.
#[must_use]
pub fn command() -> &'static str {
    name().command
}

/// A text with the right name in it: that of problems and help pages. The crates below do not know the name, and write ours.
#[must_use]
pub fn named(text: &str) -> Cow<'_, str> {
    match is_terraform() {
        true => renamed(text),
        false => text.into(),
    }
}

/// A text with Terraform's name in place of ours. Names of files and variables stay, and so does what is said of this implementation
/// itself: "version 1.0 of Monoform".
fn renamed(text: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let mut copied = 0;
    for (at, word) in text
        .match_indices(|c: char| c.is_ascii_alphabetic())
        .filter_map(|(at, _)| {
            let rest = &text[at..];
            let ours = [MONOFORM.tool, MONOFORM.command];
            ours.into_iter()
                .find(|name| rest.starts_with(name))
                .map(|name| (at, name))
        })
    {
        let (before, after) = (&text[..at], &text[at + word.len()..]);
        let part_of_name = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '/');
        let follows = after.strip_prefix('.').unwrap_or(after);
        let alone = !before.ends_with(|c| part_of_name(c) || c == '.') && !follows.starts_with(part_of_name);
        if !alone || before.ends_with("of ") {
            continue;
        }
        out.push_str(&text[copied..at]);
        out.push_str(if word == MONOFORM.tool {
            TERRAFORM.tool
        } else {
            TERRAFORM.command
        });
        copied = at + word.len();
    }
    if copied == 0 {
        return text.into();
    }
    out.push_str(&text[copied..]);
    out.into()
}

/// Whether the program stands in for Terraform.
#[must_use]
pub fn is_terraform() -> bool {
    name() == TERRAFORM
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_program_is_renamed() {
        for (text, expected) in [
            ("Monoform does not manage them.", "Terraform does not manage them."),
            ("no longer managed by Monoform", "no longer managed by Terraform"),
            ("run:\n  monoform pack -out=FILE", "run:\n  terraform pack -out=FILE"),
            ("Make it with \"monoform plan\".", "Make it with \"terraform plan\"."),
            (
                "in /tmp/monoform, ~/.cache/monoform/packed",
                "in /tmp/monoform, ~/.cache/monoform/packed",
            ),
            (
                "monoform-crash-1.txt and monoform.tf",
                "monoform-crash-1.txt and monoform.tf",
            ),
            ("set MONOFORM_LOCAL_PLUGINS=1", "set MONOFORM_LOCAL_PLUGINS=1"),
            (
                "it was saved by version 2 of Monoform",
                "it was saved by version 2 of Monoform",
            ),
            ("nothing", "nothing"),
        ] {
            assert_eq!(renamed(text), expected);
        }
    }
}
