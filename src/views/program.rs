//! The name this program has: the one it was called by.
//!
//! Called by the name `terraform`, it prints Terraform wherever that program names itself, so that scripts which search its
//! output work unchanged. The crates below get the name with their inputs ([`Program`]).

use std::sync::OnceLock;

use addrs::Program;

static CALLED_AS: OnceLock<Program> = OnceLock::new();

/// Sets the name for the life of the process; only the first call counts.
pub fn call(program: Program) {
    let _ = CALLED_AS.set(program);
}

/// The name.
#[must_use]
pub fn name() -> Program {
    CALLED_AS.get().copied().unwrap_or(Program::MONOFORM)
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

/// Whether the program stands in for Terraform.
#[must_use]
pub fn is_terraform() -> bool {
    name() == Program::TERRAFORM
}
