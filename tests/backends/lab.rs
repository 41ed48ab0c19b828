//! A server for states, and working directories with states on it.

use std::any::Any;
use std::sync::OnceLock;

use support::{Ran, Workspace, monoform, which};

/// A server, and the backend settings for it.
pub struct Lab {
    /// Type of the backend.
    pub ty: &'static str,
    /// Arguments of the block.
    pub settings: String,
    /// Environment variables for every command.
    pub environment: Vec<(String, String)>,
    /// True if the backend has workspaces.
    pub workspaces: bool,
    /// True if the backend names the owner of a lock, and removes a lock by its ID.
    pub named_locks: bool,
    /// Another program that has this backend.
    pub peer: Tool,
    /// The Terraform release whose record of the backend (`.terraform/terraform.tfstate`) has the same arguments.
    pub recorder: Tool,
    /// Server, which ends with the lab.
    pub server: Box<dyn Any>,
}

/// Programs that use the states.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tool {
    Monoform,
    /// Terraform 1.11, whose records and messages are compared.
    Terraform,
    /// Terraform 1.16, for backends that 1.11 does not have, or not with all arguments.
    NewerTerraform,
}

impl Tool {
    /// Returns the name of the program.
    pub fn name(self) -> &'static str {
        match self {
            Tool::Monoform => "monoform",
            Tool::Terraform => "terraform",
            Tool::NewerTerraform => "terraform-1.16",
        }
    }

    pub fn path(self) -> String {
        match self {
            Tool::Monoform => monoform().to_owned(),
            other => which(other.name()).expect("it is installed").display().to_string(),
        }
    }
}

/// Configuration with a resource and an output.
pub const RESOURCE: &str = r#"
variable "word" {
  default = "x"
}
resource "terraform_data" "a" {
  input = var.word
}
output "word" {
  value = terraform_data.a.output
}
"#;

impl Lab {
    /// Returns the `backend` block, with additional settings.
    pub fn block(&self, more: &str) -> String {
        format!(
            "terraform {{\n  backend \"{}\" {{\n{}\n{more}\n  }}\n}}\n",
            self.ty, self.settings
        )
    }

    /// Returns a working directory whose configuration has no `backend` block yet.
    pub fn without(&self) -> Workspace {
        let mut workspace = Workspace::with(&[("main.tf", RESOURCE)]);
        for (name, value) in &self.environment {
            workspace = workspace.env(name, value.clone());
        }
        workspace
    }

    /// Returns true if the store has a separate row for each object of a state.
    pub fn keeps_objects(&self) -> bool {
        self.settings.contains("layout = \"objects\"")
    }

    /// Returns an initialized working directory with the backend.
    pub fn directory(&self, tool: Tool) -> Workspace {
        let workspace = self.without();
        workspace.write("backend.tf", &self.block(""));
        run(&workspace, tool, &["init", "-input=false"]).ok();
        workspace
    }
}

/// Runs one of the programs.
pub fn run(workspace: &Workspace, tool: Tool, args: &[&str]) -> Ran {
    // Colours are switched off, so that output can be compared.
    let mut all = vec![args[0]];
    let sub = usize::from(matches!(args[0], "state" | "workspace"));
    all.extend(args.get(1..=sub).unwrap_or_default());
    if !matches!(args[0], "workspace" | "state" | "force-unlock") {
        all.push("-no-color");
    }
    all.extend(&args[1 + sub..]);
    workspace.run_program(tool.path(), &all)
}

/// Returns true if Monoform can read resources that the newer Terraform has written: since 1.16, `terraform_data` has
/// one more block.
pub fn knows_its_resources() -> bool {
    static KNOWN: OnceLock<bool> = OnceLock::new();
    *KNOWN.get_or_init(|| {
        let text = "resource \"terraform_data\" \"a\" {\n  store {\n    input = 1\n  }\n}\n";
        let w = Workspace::with(&[("main.tf", text)]);
        run(&w, Tool::Monoform, &["init"]);
        !run(&w, Tool::Monoform, &["validate"])
            .all()
            .contains("Unsupported block type")
    })
}
