//! Locations of states: the configured backend of a configuration, and one state in it.

use std::path::PathBuf;
use std::sync::Arc;

use syntax::Diagnostics;

use super::local::Local;
use super::store::Store;

/// A configured backend, which contains the states of all workspaces.
#[derive(Clone)]
pub enum StateBackend {
    Local(Local),
    Store(Arc<Store>),
}

impl Default for StateBackend {
    fn default() -> StateBackend {
        StateBackend::Local(Local::default())
    }
}

impl StateBackend {
    #[must_use]
    pub fn ty(&self) -> &str {
        match self {
            StateBackend::Local(_) => "local",
            StateBackend::Store(store) => store.ty(),
        }
    }

    /// Returns the file or the workspace of a store that has a workspace's state.
    #[must_use]
    pub fn state(&self, workspace: &str) -> Source {
        match self {
            StateBackend::Local(local) => Source::File(local.state(workspace)),
            StateBackend::Store(store) => Source::Workspace(store.clone(), workspace.to_owned()),
        }
    }

    /// Takes the backend's warnings about its settings.
    #[must_use]
    pub fn take_warnings(&self) -> Diagnostics {
        match self {
            StateBackend::Local(_) => Diagnostics::new(),
            StateBackend::Store(store) => store.take_warnings(),
        }
    }

    /// Lists the workspaces, the default one first; `None` if the backend has only one state.
    ///
    /// # Errors
    /// The workspaces cannot be listed.
    pub fn workspaces(&self) -> Result<Option<Vec<String>>, Diagnostics> {
        match self {
            StateBackend::Local(local) => Ok(Some(local.workspaces()?)),
            StateBackend::Store(store) => store.workspaces(),
        }
    }

    /// Returns true if the backend allows a workspace with the name `default`.
    #[must_use]
    pub fn has_default(&self) -> bool {
        match self {
            StateBackend::Local(_) => true,
            StateBackend::Store(store) => store.has_default(),
        }
    }
}

#[derive(Clone)]
pub enum Source {
    File(PathBuf),
    /// State of a workspace in a store.
    Workspace(Arc<Store>, String),
}

/// Location of one state: the backend, and the workspace that the state belongs to.
#[derive(Clone)]
pub struct StateLocation {
    pub backend: StateBackend,
    pub workspace: String,
}

impl StateLocation {
    #[must_use]
    pub fn source(&self) -> Source {
        self.backend.state(&self.workspace)
    }
}
