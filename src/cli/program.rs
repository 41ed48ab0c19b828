//! The name this program has: the one it was called by.
//!
//! Called by the name `terraform`, it prints Terraform wherever that program names itself, so that scripts which search its
//! output work unchanged. Only this file decides it.

use std::borrow::Cow;
use std::sync::OnceLock;

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

/// The summary of a problem with the right name in it. The crates below do not know the name, and write ours where Terraform
/// writes its own; programs search for these lines.
#[must_use]
pub fn summary(text: &str) -> Cow<'_, str> {
    const WITH_NAME: &[&str] = &["Some objects will no longer be managed by Monoform"];
    if is_terraform() && WITH_NAME.contains(&text) {
        return text.replace(MONOFORM.tool, TERRAFORM.tool).into();
    }
    text.into()
}

/// Whether the program stands in for Terraform.
#[must_use]
pub fn is_terraform() -> bool {
    name() == TERRAFORM
}
