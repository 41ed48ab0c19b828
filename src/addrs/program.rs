//! The name of this program in what it says to users.

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

impl Program {
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
}

impl Default for Program {
    fn default() -> Program {
        Program::MONOFORM
    }
}
