//! Where states are kept: what the `backend` block says, what `init -backend-config` added, and what the last `init` wrote
//! down about both.
//!
//! `init` records the backend in `.terraform/terraform.tfstate`, in the form that Terraform has there. From then on the record
//! decides, since it also has what came from the command line; a block that says something else since then must go through
//! `init` first, which offers to bring the state along (`migrate`). A working directory that was never initialized needs no
//! record: the block says it all.

pub mod configure;
mod migrate;
pub mod record;

use std::path::{Path, PathBuf};

use config::Config;
use config::model::Backend;
use cty::Value;
use lang::eval::Context;
use lang::scope::Constant;
use syntax::ast::Body;
use syntax::{Diagnostic, Diagnostics};

use crate::program;
use crate::session::Session;
use record::Record;

/// The settings of the backend `local`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Local {
    /// The file of the default workspace's state.
    pub path: Option<String>,
    /// The directory of the other workspaces.
    pub workspace_dir: Option<String>,
}

impl Local {
    /// The file of the default workspace's state.
    #[must_use]
    pub fn file(&self) -> PathBuf {
        self.path.as_deref().unwrap_or("terraform.tfstate").into()
    }

    /// The directory of the other workspaces.
    #[must_use]
    pub fn others(&self) -> PathBuf {
        self.workspace_dir.as_deref().unwrap_or("terraform.tfstate.d").into()
    }

    /// The file of a workspace's state.
    #[must_use]
    pub fn state(&self, workspace: &str) -> PathBuf {
        if workspace == "default" {
            self.file()
        } else {
            self.others().join(workspace).join("terraform.tfstate")
        }
    }

    /// The workspaces there are, the default one first.
    pub fn workspaces(&self) -> Result<Vec<String>, Diagnostic> {
        let mut names = Vec::new();
        let dir = self.others();
        match std::fs::read_dir(&dir) {
            Ok(entries) => {
                for entry in entries.filter_map(Result::ok) {
                    if entry.path().is_dir() {
                        names.push(entry.file_name().to_string_lossy().into_owned());
                    }
                }
            }
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
            Err(e) => {
                return Err(Diagnostic::error(
                    "Failed to list workspaces",
                    format!(
                        "The directory {} cannot be read: {}.",
                        dir.display(),
                        files::io_reason(&e)
                    ),
                ));
            }
        }
        names.sort();
        names.retain(|n| n != "default");
        names.insert(0, "default".to_owned());
        Ok(names)
    }

    fn get_mut(&mut self, name: &str) -> Option<&mut Option<String>> {
        match name {
            "path" => Some(&mut self.path),
            "workspace_dir" => Some(&mut self.workspace_dir),
            _ => None,
        }
    }

    /// A number for a block with these settings, which is in records: the same that Terraform computes, so that either program
    /// finds the block unchanged that the other one has recorded.
    #[must_use]
    pub fn hash(&self) -> u32 {
        let text = |setting: &Option<String>| match setting {
            Some(text) => lang::render::quote(text),
            None => "~".to_owned(),
        };
        let all = format!("<\"local\";<{};{};>;>", text(&self.path), text(&self.workspace_dir));
        crc32fast::hash(all.as_bytes())
    }
}

/// The settings in a block of the type `local`, or in a file for `-backend-config`.
fn settings(body: &Body, local: &mut Local) -> Diagnostics {
    let mut problems = Diagnostics::new();
    for block in &body.blocks {
        problems.push(
            Diagnostic::error(
                "Unsupported block type",
                format!("Blocks of type \"{}\" are not expected here.", block.ty),
            )
            .at(&block.type_range),
        );
    }
    for attribute in &body.attributes {
        let name = &*attribute.name;
        let Some(place) = local.get_mut(name) else {
            problems.push(
                Diagnostic::error(
                    "Unsupported argument",
                    format!("An argument named \"{name}\" is not expected here."),
                )
                .at(&attribute.name_range),
            );
            continue;
        };
        let (value, found) = lang::eval::evaluate(&attribute.expr, Context::new(&Constant));
        let failed = found.has_errors();
        problems.extend(found);
        if failed {
            continue;
        }
        match text(name, &value) {
            Ok(text) => *place = text,
            Err(problem) => problems.push(problem.at(attribute.expr.range())),
        }
    }
    problems
}

/// A setting as text; `None` for null.
fn text(name: &str, value: &Value) -> Result<Option<String>, Diagnostic> {
    if value.is_null() {
        return Ok(None);
    }
    let text = cty::convert(value, &cty::Type::String).ok();
    match text.as_ref().and_then(Value::as_str) {
        Some("") => Err(empty(name)),
        Some(text) => Ok(Some(text.to_owned())),
        None => Err(Diagnostic::error(
            "Incorrect attribute value type",
            format!("Inappropriate value for attribute \"{name}\": string required."),
        )),
    }
}

fn empty(name: &str) -> Diagnostic {
    let summary = if name == "path" {
        "Invalid local state file path"
    } else {
        "Invalid local workspace directory path"
    };
    Diagnostic::error(summary, format!("The \"{name}\" attribute value must not be empty."))
}

/// The settings in the configuration's block; `None` without one.
fn in_block(config: Option<&Config>) -> Result<Option<(Local, &Backend)>, Diagnostics> {
    let Some(root) = config.map(|c| &c.root.module) else {
        return Ok(None);
    };
    if let Some(cloud) = &root.cloud {
        return Err(Diagnostic::error(
            "HCP Terraform not supported",
            "The \"cloud\" block is not supported by this version of Monoform. Keep the state in a local file: remove the block.",
        )
        .at(&cloud.range)
        .into());
    }
    let Some(backend) = &root.backend else {
        return Ok(None);
    };
    if &*backend.ty != "local" {
        return Err(Diagnostic::error(
            "Backend not supported",
            format!(
                "The backend \"{}\" is not supported by this version of Monoform, which keeps states in local files only.",
                backend.ty
            ),
        )
        .at(&backend.type_range)
        .into());
    }
    let mut local = Local::default();
    let problems = settings(&backend.body, &mut local);
    if problems.has_errors() {
        return Err(problems);
    }
    Ok(Some((local, backend)))
}

/// Where the states of this configuration are, for every command but `init`.
pub fn current(session: &Session, config: Option<&Config>) -> Result<Local, Diagnostics> {
    let block = in_block(config)?;
    let record = Record::read(session.env.data_dir())?;
    match (block, record.backend) {
        (Some((local, _)), None) => Ok(local),
        (None, None) => Ok(Local::default()),
        // A directory without any configuration has lost it, or never had one: nothing says what belongs there.
        (None, Some(saved)) => {
            Err(needs_init(',', &format!("Unsetting the previously set backend \"{}\"", saved.ty)).into())
        }
        (Some((local, _)), Some(saved)) => match saved.local() {
            Some(recorded) if saved.hash == local.hash() || recorded == local => Ok(recorded),
            Some(_) => Err(needs_init(':', "Backend configuration block has changed").into()),
            None => Err(needs_init(',', &format!("Backend type changed from \"{}\" to \"local\"", saved.ty)).into()),
        },
    }
}

/// Where the states are by what the last `init` wrote down, whatever the configuration says now; `None` if that is a place that
/// cannot be read here.
pub fn as_recorded(session: &Session) -> Result<Option<Local>, Diagnostics> {
    let record = Record::read(session.env.data_dir())?;
    Ok(match record.backend {
        Some(saved) => saved.local(),
        None => Some(Local::default()),
    })
}

fn needs_init(sign: char, reason: &str) -> Diagnostic {
    let command = program::command();
    Diagnostic::error(
        format!("Backend initialization required{sign} please run \"{command} init\""),
        format!(
            "Reason: {reason}\n\nThe \"backend\" block says where the state is kept, and it does not agree with what the last init \
             wrote down. To go on with the block as it is, run \"{command} init\" with -migrate-state, which brings the state \
             along, or with -reconfigure, which leaves it where it is.\n\nNothing was changed."
        ),
    )
}

/// Writes down what a state says at a place that is about to lose it, then empties it: what Terraform leaves of the file that
/// a state has moved out of.
fn empty_with_backup(path: &Path) -> Result<(), Diagnostics> {
    let failed = |e: String| Diagnostics::from(Diagnostic::error("Cannot empty the previous state file", e));
    let text = match std::fs::read(path) {
        Ok(text) if !text.is_empty() => text,
        Ok(_) => return Ok(()),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(e) => {
            return Err(failed(format!(
                "The file {} cannot be read: {}.",
                path.display(),
                files::io_reason(&e)
            )));
        }
    };
    let mut backup = path.as_os_str().to_owned();
    backup.push(".backup");
    files::replace(Path::new(&backup), &text, files::Policy::STATE)
        .map_err(|e| failed(format!("{}.", files::io_reason(&e))))?;
    files::replace(path, b"", files::Policy::STATE).map_err(|e| failed(format!("{}.", files::io_reason(&e))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_the_one_terraform_records() {
        let with = |path: Option<&str>, dir: Option<&str>| Local {
            path: path.map(Into::into),
            workspace_dir: dir.map(Into::into),
        };
        assert_eq!(Local::default().hash(), 666_019_178);
        assert_eq!(with(Some("one.tfstate"), None).hash(), 427_796_062);
        assert_eq!(with(Some("two.tfstate"), Some("ws")).hash(), 1_779_414_609);
    }
}
