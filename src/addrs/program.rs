//! Names of this program in messages.

/// The version of Terraform that the program reports for the language, states, plans and JSON output.
pub const TERRAFORM_VERSION: &str = "1.16.0";

/// The names of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Program {
    /// The name in sentences.
    pub tool: &'static str,
    /// The name in command lines.
    pub command: &'static str,
}

impl Program {
    pub const MONOFORM: Program = Program {
        tool: "Monoform",
        command: "monoform",
    };

    /// The names for a link that replaces Terraform's executable.
    pub const TERRAFORM: Program = Program {
        tool: "Terraform",
        command: "terraform",
    };
}

impl Default for Program {
    fn default() -> Program {
        Program::MONOFORM
    }
}
