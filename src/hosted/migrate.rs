//! Migration of states into workspaces of a `cloud` block: the questions, and the new names.

use stores::backend::StateBackend;
use stores::backend::migrate::{Migration, Pair, aborted, agreed, answered};
use stores::workspace::{self, DEFAULT};
use syntax::{Diagnostic, Diagnostics};
use tfe::Mapping;

use crate::{Context, remote};

/// Migrates the states of all workspaces. Returns true if they are in the new backend now.
///
/// # Errors
/// A state cannot be read or written, or the user did not agree. The old states are unchanged.
pub fn migrate(
    context: &Context<'_>,
    how: &Migration<'_>,
    from: &StateBackend,
    to: &StateBackend,
) -> Result<bool, Diagnostics> {
    let StateBackend::Store(store) = to else {
        return Ok(false);
    };
    let Some(settings) = remote::settings(context, &store.saved()?)? else {
        return Ok(false);
    };
    let pair = Pair { how, from, to };
    let selected = workspace::selected(how.context)?;
    // A single workspace needs no pattern for new names.
    let workspaces = from.workspaces()?.filter(|names| names.len() > 1);
    match (workspaces, settings.mapping) {
        (None, mapping) => {
            let source = from.workspaces()?.and_then(|names| names.into_iter().next());
            let source = source.unwrap_or_else(|| DEFAULT.to_owned());
            if pair.is_empty(&source)? {
                return Ok(false);
            }
            if !agreed(how, "Do you wish to proceed?", &proceed(how.context.program.tool))? {
                return Ok(false);
            }
            let name = match mapping {
                Mapping::Name(name) => name,
                _ => name_for_default(how)?,
            };
            workspace::select(how.context.data_dir, &name)?;
            pair.one_agreed(&source, &name)
        }
        (Some(_), Mapping::Name(name)) => {
            if !agreed(
                how,
                "Do you want to copy only your current workspace?",
                &only_current(from.ty(), &name),
            )? {
                return Err(aborted());
            }
            workspace::select(how.context.data_dir, &name)?;
            pair.one_agreed(&selected, &name)
        }
        (Some(names), _) => all(context, &pair, from, &names, &selected),
    }
}

/// Migrates all workspaces. The user enters a pattern for the new names, unless the old backend has a prefix for them.
fn all(
    context: &Context<'_>,
    pair: &Pair<'_>,
    from: &StateBackend,
    names: &[String],
    selected: &str,
) -> Result<bool, Diagnostics> {
    let how = pair.how;
    // An empty default workspace is not migrated, so it needs no name.
    let default = match names.iter().any(|name| name == DEFAULT) && !pair.is_empty(DEFAULT)? {
        true => Some(name_for_default(how)?),
        false => None,
    };
    let pattern = match prefix(context, from)? {
        Some(prefix) => {
            if !agreed(how, "Do you wish to proceed?", &native())? {
                return Err(aborted());
            }
            format!("{prefix}*")
        }
        None => asked_pattern(how, from.ty())?,
    };
    let mut now = None;
    for name in names {
        if pair.is_empty(name)? {
            continue;
        }
        let base = if name == DEFAULT {
            default.as_deref()
        } else {
            Some(&**name)
        };
        let there = pattern.replace('*', base.unwrap_or(name));
        pair.one(name, &there, true)?;
        if name == selected {
            now = Some(there);
        }
    }
    if let Some(now) = now {
        workspace::select(how.context.data_dir, &now)?;
        let ui = &context.console.ui;
        ui.line(ui.style().bold("Migration complete! Your workspaces are as follows:"));
        for name in pair.to.workspaces()?.unwrap_or_default() {
            ui.line(format!("{}{name}", if name == now { "* " } else { "  " }));
        }
        ui.line("");
    }
    Ok(true)
}

/// Returns the common prefix of the workspaces of a `backend "remote"`; `None` for another backend, or without a prefix.
fn prefix(context: &Context<'_>, from: &StateBackend) -> Result<Option<String>, Diagnostics> {
    let StateBackend::Store(store) = from else {
        return Ok(None);
    };
    Ok(
        match remote::settings(context, &store.saved()?)?.map(|settings| settings.mapping) {
            Some(Mapping::Prefix(prefix)) => Some(prefix),
            _ => None,
        },
    )
}

fn name_for_default(how: &Migration<'_>) -> Result<String, Diagnostics> {
    let question = "HCP Terraform and Terraform Enterprise require all workspaces to be given an explicit name.";
    let name = answered(
        how,
        question,
        "Enter the name of the workspace that the state of the workspace \"default\" is to be copied to. It is created if there is \
         none.",
    )?;
    match name.trim() {
        "" => Err(Diagnostic::error(
            "No workspace name",
            "The name of a workspace cannot be empty. Nothing was copied.",
        )
        .into()),
        name => Ok(name.to_owned()),
    }
}

fn asked_pattern(how: &Migration<'_>, old: &str) -> Result<String, Diagnostics> {
    let explanation = format!(
        "Names of workspaces are used once in an organization, for all of its configurations. So they often have several parts, as in \
         COMPONENT-ENVIRONMENT-REGION.\n\nThe workspaces of the backend \"{old}\" can be renamed while they are copied. Enter 1 or \
         2.\n\n1. Rename all workspaces by a pattern.\n2. Keep the names as they are."
    );
    let wrong = |detail: &str| Diagnostics::from(Diagnostic::error("Migration aborted", detail));
    match answered(how, "Would you like to rename your workspaces?", &explanation)?.trim() {
        "2" => return Ok("*".to_owned()),
        "1" => {}
        _ => return Err(wrong("Please select 1 or 2 as part of this option.")),
    }
    let pattern = answered(
        how,
        "How would you like to rename your workspaces?",
        "Enter a pattern with one asterisk (*), which is replaced by the present name of a workspace: with \"app-*\", \"prod\" \
         becomes \
         \"app-prod\".",
    )?;
    let pattern = pattern.trim();
    if pattern.matches('*').count() != 1 {
        return Err(wrong("The pattern must have one asterisk (*)."));
    }
    Ok(pattern.to_owned())
}

fn proceed(tool: &str) -> String {
    format!(
        "{tool} can copy the state of this working directory to the workspace in HCP Terraform.\n\nEnter \"yes\" to copy it, and \
         \"no\" to use the workspace with the state that it has, if it has one."
    )
}

fn only_current(old: &str, name: &str) -> String {
    format!(
        "The previous backend \"{old}\" has several workspaces, and the configuration names one workspace of HCP Terraform, \
         \"{name}\". Only the workspace that is selected now is copied. To copy all of them, use tags in place of the \
         name.\n\nEnter \"yes\" to proceed or \"no\" to cancel."
    )
}

fn native() -> String {
    "The workspaces of the backend \"remote\" are used as they are, under their full names, and get the tags of the configuration. \
     New ones are created where there are none.\n\nEnter \"yes\" to proceed or \"no\" to cancel."
        .to_owned()
}
