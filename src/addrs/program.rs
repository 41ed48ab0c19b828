//! Names of this program in messages, and its mode: whether it behaves like Terraform, like OpenTofu, or as the union of both.

use std::sync::OnceLock;

/// The version of Terraform that the program reports for the configuration language, states, plans and JSON output.
pub const TERRAFORM_VERSION: &str = "1.16.0";

/// The version of OpenTofu that the program reports in OpenTofu mode.
pub const OPENTOFU_VERSION: &str = "1.12.6";

/// Environment variable that selects the mode. It overrides the name of the executable.
pub const MODE_VARIABLE: &str = "MONOFORM_MODE";

/// Tool whose language and conventions apply where Terraform and OpenTofu contradict each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Mode {
    /// The union of both tools. Where they contradict each other, Terraform's meaning applies, with a warning.
    #[default]
    Monoform,
    Terraform,
    OpenTofu,
}

/// The mode of this process. It is global, because the default registry host of source addresses depends on it, and every parser of
/// addresses needs that host.
static MODE: OnceLock<Mode> = OnceLock::new();

impl Mode {
    /// Reads the value of [`MODE_VARIABLE`]; `None` if no mode has that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Mode> {
        match name {
            "monoform" => Some(Mode::Monoform),
            "terraform" => Some(Mode::Terraform),
            "opentofu" => Some(Mode::OpenTofu),
            _ => None,
        }
    }

    /// Returns the mode for the name by which the executable was called.
    #[must_use]
    pub fn called_as(name: &str) -> Mode {
        match name {
            "terraform" => Mode::Terraform,
            "tofu" => Mode::OpenTofu,
            _ => Mode::Monoform,
        }
    }

    /// Makes this the mode of the process. Only the first selection has an effect.
    pub fn select(self) {
        let _ = MODE.set(self);
    }

    /// Returns the mode of the process.
    #[must_use]
    pub fn current() -> Mode {
        MODE.get().copied().unwrap_or_default()
    }

    /// Returns true if OpenTofu's meaning applies where the tools contradict each other.
    #[must_use]
    pub fn is_opentofu(self) -> bool {
        self == Mode::OpenTofu
    }

    /// Returns true if the configuration language includes the features that only OpenTofu has.
    #[must_use]
    pub fn has_opentofu(self) -> bool {
        self != Mode::Terraform
    }

    /// Returns the version that this mode reports for the configuration language, states, plans and JSON output.
    #[must_use]
    pub fn version(self) -> &'static str {
        match self {
            Mode::Monoform | Mode::Terraform => TERRAFORM_VERSION,
            Mode::OpenTofu => OPENTOFU_VERSION,
        }
    }

    /// Returns the tool whose paths are used for the user's files.
    #[must_use]
    pub fn paths(self) -> system::Tool {
        match self {
            Mode::Monoform | Mode::Terraform => system::Tool::Terraform,
            Mode::OpenTofu => system::Tool::OpenTofu,
        }
    }

    /// Returns the name of the tool whose version the program reports.
    #[must_use]
    pub fn tool(self) -> &'static str {
        match self {
            Mode::Monoform | Mode::Terraform => "Terraform",
            Mode::OpenTofu => "OpenTofu",
        }
    }
}

/// Returns the version that the program reports for the configuration language, states, plans and JSON output.
#[must_use]
pub fn core_version() -> &'static str {
    Mode::current().version()
}

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

    /// The names if the program is called as `terraform`.
    pub const TERRAFORM: Program = Program {
        tool: "Terraform",
        command: "terraform",
    };

    /// The names if the program is called as `tofu`.
    pub const OPENTOFU: Program = Program {
        tool: "OpenTofu",
        command: "tofu",
    };

    /// Returns the names for a mode, and for the name by which the executable was called.
    #[must_use]
    pub fn called_as(name: &str, mode: Mode) -> Program {
        let of = |mode| match mode {
            Mode::Monoform => Program::MONOFORM,
            Mode::Terraform => Program::TERRAFORM,
            Mode::OpenTofu => Program::OPENTOFU,
        };
        Program {
            tool: of(mode).tool,
            // The command in suggestions must exist on this machine, so it depends only on the name of the executable.
            command: of(Mode::called_as(name)).command,
        }
    }
}

impl Default for Program {
    fn default() -> Program {
        Program::MONOFORM
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_of_the_executable_selects_mode_and_texts() {
        for (name, mode, tool) in [
            ("monoform", Mode::Monoform, "Monoform"),
            ("terraform", Mode::Terraform, "Terraform"),
            ("tofu", Mode::OpenTofu, "OpenTofu"),
        ] {
            assert_eq!(Mode::called_as(name), mode);
            let program = Program::called_as(name, mode);
            assert_eq!((program.tool, program.command), (tool, name));
        }
        let program = Program::called_as("monoform", Mode::OpenTofu);
        assert_eq!((program.tool, program.command), ("OpenTofu", "monoform"));
        assert_eq!(Mode::OpenTofu.version(), "1.12.6");
    }
}
