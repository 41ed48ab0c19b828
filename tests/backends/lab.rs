//! A server that keeps states, and working directories whose states are there.

use std::any::Any;
use std::sync::OnceLock;

use support::{Ran, Workspace, monoform, which};

/// A server, and how to reach it.
pub struct Lab {
    /// The type of the backend.
    pub ty: &'static str,
    /// What stands in the block.
    pub settings: String,
    /// Variables of the environment for every command.
    pub environment: Vec<(String, String)>,
    /// Whether it has workspaces.
    pub workspaces: bool,
    /// Whether it tells who holds a lock, and frees a lock by its name.
    pub named_locks: bool,
    /// The other program: one that has this backend.
    pub peer: Tool,
    /// The other program whose records have the same arguments.
    pub recorder: Tool,
    /// What ends with the lab.
    pub server: Box<dyn Any>,
}

/// The programs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tool {
    Monoform,
    /// Terraform 1.11, which is what records and messages are compared with.
    Terraform,
    /// Terraform 1.16, for backends that the other does not have, or not with all arguments.
    NewerTerraform,
}

impl Tool {
    /// The name of the program.
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

/// A resource and an output.
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
    /// The block, with more settings.
    pub fn block(&self, more: &str) -> String {
        format!(
            "terraform {{\n  backend \"{}\" {{\n{}\n{more}\n  }}\n}}\n",
            self.ty, self.settings
        )
    }

    /// A working directory whose configuration has no backend yet.
    pub fn without(&self) -> Workspace {
        let mut workspace = Workspace::with(&[("main.tf", RESOURCE)]);
        for (name, value) in &self.environment {
            workspace = workspace.env(name, value.clone());
        }
        workspace
    }

    /// A working directory with the backend, initialized.
    pub fn directory(&self, tool: Tool) -> Workspace {
        let workspace = self.without();
        workspace.write("backend.tf", &self.block(""));
        run(&workspace, tool, &["init", "-input=false"]).ok();
        workspace
    }
}

/// Runs one of the programs.
pub fn run(workspace: &Workspace, tool: Tool, args: &[&str]) -> Ran {
    // Nobody looks at colours here.
    let mut all = vec![args[0]];
    let sub = usize::from(matches!(args[0], "state" | "workspace"));
    all.extend(args.get(1..=sub).unwrap_or_default());
    if !matches!(args[0], "workspace" | "state" | "force-unlock") {
        all.push("-no-color");
    }
    all.extend(&args[1 + sub..]);
    workspace.run_program(tool.path(), &all)
}

/// Whether Monoform reads what the newer Terraform writes of a resource: since 1.16 its built-in one has a block more.
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
