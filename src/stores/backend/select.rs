//! Selection of an existing workspace at the end of `init`.

use syntax::{Diagnostic, Diagnostics};

use super::location::StateBackend;
use super::record::CLOUD;
use crate::{Context, NoAnswer, Question, workspace};

/// Asks for the name of a new workspace and selects it, because no workspace has the tags that the configuration selects.
fn first_of_cloud(context: &Context<'_>, backend: &StateBackend) -> Result<(), Diagnostics> {
    let tags = match backend {
        StateBackend::Store(store) => context.cloud.tags(&store.saved()?)?,
        StateBackend::Local(_) => String::new(),
    };
    let explanation = format!(
        "No workspace of the organization has the tags of the configuration ({tags}), and there must be one to work with. Enter a \
         name to create one with these tags."
    );
    let answer = context.console.ask(&Question {
        warns: true,
        ..Question::new("No workspaces found.", &explanation)
    });
    let failed = |why: &str| {
        Diagnostics::from(Diagnostic::error(
            format!("Couldn't create initial workspace: {why}"),
            "Run init again, or create a workspace with the tags of the configuration in the organization.",
        ))
    };
    match answer {
        Ok(name) if workspace::is_name(name.trim()) => workspace::select(context.data_dir, name.trim()),
        Ok(name) if name.trim().is_empty() => Err(failed("no name provided")),
        Ok(_) => Err(failed("a workspace cannot have this name")),
        Err(NoAnswer::End) => Err(failed("EOF")),
        Err(NoAnswer::Interrupted) => Err(failed("interrupted")),
    }
}

/// If the selected workspace does not exist, selects an existing one: the only one, or one that the user chooses.
///
/// # Errors
/// The workspaces cannot be listed, there is none, or the user cannot be asked.
pub fn existing(context: &Context<'_>, backend: &StateBackend, input: bool) -> Result<(), Diagnostics> {
    let Some(names) = backend.workspaces()? else {
        return Ok(());
    };
    let selected = workspace::selected(context)?;
    match names.as_slice() {
        // The default workspace need not exist yet: it is created by the first write of a state.
        [] if selected == "default" && backend.has_default() => return Ok(()),
        names if names.contains(&selected) => return Ok(()),
        [] if backend.ty() == CLOUD && input => return first_of_cloud(context, backend),
        [] => {
            return Err(Diagnostic::error(
                "No existing workspaces",
                format!(
                    "The workspace \"{selected}\" is selected, and the backend \"{}\" has no workspaces. Create one with \
                     \"workspace new\". If there should be some, the settings of the backend may lead to another place.",
                    backend.ty()
                ),
            )
            .into());
        }
        [only] => return workspace::select(context.data_dir, only),
        _ => {}
    }
    let list: String = names
        .iter()
        .enumerate()
        .map(|(i, name)| format!("{}. {name}\n", i + 1))
        .collect();
    if !input {
        return Err(Diagnostic::error(
            format!("Currently selected workspace \"{selected}\" does not exist"),
            format!(
                "Select another one with \"workspace select\", or create it with \"workspace new\". There are:\n{list}"
            ),
        )
        .into());
    }
    let title = format!("The currently selected workspace ({selected}) does not exist.");
    let explanation = format!(
        "The workspace never had a state in this backend, or was deleted. Enter the number of another one:\n\n{}",
        list.trim_end()
    );
    let answer = context.console.ask(&Question {
        warns: true,
        ..Question::new(&title, &explanation)
    });
    let failed = |why: &str| {
        Diagnostics::from(Diagnostic::error(
            "Failed to select workspace",
            format!("{why} Run init again, and enter the number of a workspace."),
        ))
    };
    match answer {
        Ok(text) => {
            let chosen = text
                .trim()
                .parse::<usize>()
                .ok()
                .and_then(|n| names.get(n.checked_sub(1)?));
            match chosen {
                Some(name) => workspace::select(context.data_dir, name),
                None => Err(failed("The answer is not the number of a workspace.")),
            }
        }
        Err(NoAnswer::End) => Err(failed("The input ended before there was an answer.")),
        Err(NoAnswer::Interrupted) => Err(failed("The question was interrupted.")),
    }
}
