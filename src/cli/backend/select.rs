//! The selected workspace: which one is, and selecting another.

use std::path::Path;

use syntax::{Diagnostic, Diagnostics};
use tfe::Mapping;
use views::prompt::{Answer, Echo};

use super::Place;
use super::remote::{self, CLOUD};
use crate::session::Surroundings;
use crate::workdir;

/// Writes down which workspace is selected.
///
/// # Errors
/// It cannot be written.
pub fn remember(surroundings: &Surroundings, name: &str) -> Result<(), Diagnostics> {
    let path = Path::new(surroundings.env.data_dir()).join("environment");
    let write = || {
        std::fs::create_dir_all(surroundings.env.data_dir())?;
        files::replace(&path, name.as_bytes(), files::Policy::SHARED)
    };
    write().map_err(|e| {
        Diagnostic::error(
            "Failed to select workspace",
            format!("{} cannot be written: {}.", path.display(), files::io_reason(&e)),
        )
        .into()
    })
}

/// Asks for the name of a workspace to create, where there is none with the tags of the configuration.
fn first_of_cloud(surroundings: &Surroundings, place: &Place) -> Result<(), Diagnostics> {
    let tags = match place {
        Place::Store(store) => match remote::settings(surroundings, store)?.map(|settings| settings.mapping) {
            Some(Mapping::Tags(tags)) => tags.describe(),
            _ => String::new(),
        },
        Place::Local(_) => String::new(),
    };
    let style = surroundings.ui.style();
    let prompt = format!(
        "\n{}\n  No workspace of the organization has the tags of the configuration ({tags}), and there must be one\n  to work \
         with. Enter a name to create one with these tags.\n\n  {} ",
        style.bold(style.yellow("No workspaces found.")),
        style.bold("Enter a value:")
    );
    let answer = surroundings.ui.ask(&prompt, Echo::On);
    surroundings.ui.line("");
    let failed = |why: &str| {
        Diagnostics::from(Diagnostic::error(
            format!("Couldn't create initial workspace: {why}"),
            "Run init again, or create a workspace with the tags of the configuration in the organization.",
        ))
    };
    match answer {
        Answer::Line(name) if workdir::is_workspace_name(name.trim()) => remember(surroundings, name.trim()),
        Answer::Line(name) if name.trim().is_empty() => Err(failed("no name provided")),
        Answer::Line(_) => Err(failed("a workspace cannot have this name")),
        Answer::End => Err(failed("EOF")),
        Answer::Interrupted => Err(failed("interrupted")),
    }
}

/// Sees to it that a workspace is selected that exists: the only one there is, or one that is asked for.
///
/// # Errors
/// The workspaces cannot be listed, there is none, or nobody can be asked which one it is.
pub fn existing(surroundings: &Surroundings, place: &Place, input: bool) -> Result<(), Diagnostics> {
    let Some(names) = place.workspaces()? else {
        return Ok(());
    };
    let selected = workdir::workspace(surroundings)?;
    match names.as_slice() {
        // It will come into being with its first state.
        [] if selected == "default" && place.has_default() => return Ok(()),
        names if names.contains(&selected) => return Ok(()),
        [] if place.ty() == CLOUD && input => return first_of_cloud(surroundings, place),
        [] => {
            return Err(Diagnostic::error(
                "No existing workspaces",
                format!(
                    "The workspace \"{selected}\" is selected, and the backend \"{}\" has no workspaces. Create one with \
                     \"workspace new\". If there should be some, the settings of the backend may lead to another place.",
                    place.ty()
                ),
            )
            .into());
        }
        [only] => return remember(surroundings, only),
        _ => {}
    }
    let list: String = names
        .iter()
        .enumerate()
        .map(|(i, name)| format!("  {}. {name}\n", i + 1))
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
    let style = surroundings.ui.style();
    let prompt = format!(
        "\n{}\n  It never had a state in this backend, or was deleted. Enter the number of\n  another one:\n\n{list}\n  {} ",
        style.bold(style.yellow(format!("The currently selected workspace ({selected}) does not exist."))),
        style.bold("Enter a value:")
    );
    let answer = surroundings.ui.ask(&prompt, Echo::On);
    surroundings.ui.line("");
    let failed = |why: &str| {
        Diagnostics::from(Diagnostic::error(
            "Failed to select workspace",
            format!("{why} Run init again, and enter the number of a workspace."),
        ))
    };
    match answer {
        Answer::Line(text) => {
            let chosen = text
                .trim()
                .parse::<usize>()
                .ok()
                .and_then(|n| names.get(n.checked_sub(1)?));
            match chosen {
                Some(name) => remember(surroundings, name),
                None => Err(failed("The answer is not the number of a workspace.")),
            }
        }
        Answer::End => Err(failed("The input ended before there was an answer.")),
        Answer::Interrupted => Err(failed("The question was interrupted.")),
    }
}
