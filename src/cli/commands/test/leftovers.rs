//! What could not be destroyed is kept in state files.

use std::path::{Path, PathBuf};

use state::State;
use syntax::{Diagnostic, Diagnostics};
use testing::suite::Leftovers;

/// How many states of one file and key are kept beside each other.
const MOST_LEFTOVERS: usize = 100;

/// Keeps states of what could not be destroyed beside the configuration.
pub(super) struct Beside;

impl Leftovers for Beside {
    fn keep(&self, file: &str, key: &str, state: &State) -> Result<PathBuf, Diagnostics> {
        let name = |text: &str| -> String {
            let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
            text.chars().map(|c| if fits(c) { c } else { '_' }).collect()
        };
        let mut path = format!("errored_test.{}", name(file));
        if !key.is_empty() {
            path.push_str(&format!(".{}", name(key)));
        }
        // What an earlier suite has left is not to be lost.
        let free = (1..=MOST_LEFTOVERS)
            .map(|n| match n {
                1 => format!("{path}.tfstate"),
                n => format!("{path}.{n}.tfstate"),
            })
            .find(|path| !Path::new(path).exists());
        let Some(path) = free else {
            return Err(Diagnostic::error(
                "Failed to keep the state of what was left behind",
                format!(
                    "There are {MOST_LEFTOVERS} state files already whose names begin with {path}: see what is in them."
                ),
            )
            .into());
        };
        // A state that was never stored has no lineage.
        let mut state = state.clone();
        if state.lineage.is_empty() {
            state.lineage = uuid::Uuid::new_v4().to_string();
        }
        state::store::write_copy(Path::new(&path), &state).map_err(|e| {
            Diagnostics::from(Diagnostic::error(
                "Failed to keep the state of what was left behind",
                format!("The state file {path} cannot be written: {e}."),
            ))
        })?;
        Ok(path.into())
    }
}
