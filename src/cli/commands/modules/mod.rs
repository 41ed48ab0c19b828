//! `modules`: lists the modules that the configuration calls. Its subcommand copies them for other machines.

mod mirror;

use config::model::ModuleNode;
use serde_json::{Value as Json, json};

use crate::args::flags::{self, Flags, FromFlags};
use crate::args::groups::VariableFlags;
use crate::commands::{Command, no_positional};
use crate::outcome::{Failure, Outcome};
use crate::session::Session;
use crate::workdir;

pub use mirror::COMMAND as MIRROR;
pub(in crate::commands) use mirror::fetch;
use views::tree::{Tree, draw};

pub const COMMAND: Command = Command {
    path: "modules",
    about: "Show all declared modules in a working directory",
    positional: "",
    details: "Shows the modules that the configuration calls, and those that they call, with their sources and versions.",
    declare: flags::declare::<Arguments>,
    refused: &[],
    run: |session, matches| run(session, &flags::read(matches)),
};

struct Arguments {
    positional: Vec<String>,
    json: bool,
}

impl FromFlags for Arguments {
    fn read(flags: &mut Flags<'_>) -> Arguments {
        VariableFlags::read(flags);
        Arguments {
            positional: flags.positional(),
            json: flags.switch("json", false, "Output the modules as JSON."),
        }
    }
}

fn run(session: &Session, arguments: &Arguments) -> Result<Outcome, Failure> {
    no_positional(&arguments.positional, "modules command")?;
    let project = workdir::load(session)?;
    let root = &project.config.root;
    if arguments.json {
        let mut all = Vec::new();
        list(root, &mut all);
        let document = json!({"format_version": "1.0", "modules": all});
        return Ok(Outcome::exact(cty::json::to_text(&document, None) + "\n"));
    }
    if root.children.is_empty() {
        return Ok(Outcome::line("No modules found in configuration."));
    }
    let mut out = "\nModules declared by configuration:\n.\n".to_owned();
    draw(&calls(root), &mut out);
    Ok(Outcome::line(out))
}

fn calls(node: &ModuleNode) -> Vec<Tree> {
    let line = |(name, child): (&std::sync::Arc<str>, &ModuleNode)| {
        let mut text = format!("\"{name}\"[{}]", child.source);
        if let Some(version) = &child.version {
            text.push_str(&format!(" {version}"));
        }
        if let Some(constraint) = &child.constraint {
            text.push_str(&format!(" ({})", constraint.text));
        }
        Tree {
            text,
            below: calls(child),
        }
    };
    node.children.iter().map(line).collect()
}

/// Adds the module calls below a node, depth first. The root module has no entry, as other tools expect.
fn list(node: &ModuleNode, out: &mut Vec<Json>) {
    for (name, child) in &node.children {
        out.push(json!({
            "key": &**name,
            "source": child.source,
            "version": child.version.as_deref().unwrap_or_default(),
        }));
        list(child, out);
    }
}
