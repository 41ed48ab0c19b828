//! Process of a state store's plugin.

use std::sync::Arc;

use provider::state_store::StateStore;
use syntax::Diagnostics;
use tokio::runtime::Runtime;

/// Connection to a plugin, with the runtime that its threads belong to.
pub(super) struct Process {
    plugin: Arc<dyn StateStore>,
    runtime: Option<Runtime>,
}

impl Process {
    pub(super) fn new(plugin: Arc<dyn StateStore>, runtime: Runtime) -> Process {
        Process {
            plugin,
            runtime: Some(runtime),
        }
    }

    pub(super) fn plugin(&self) -> &dyn StateStore {
        &*self.plugin
    }

    pub(super) fn runtime(&self) -> Option<&Runtime> {
        self.runtime.as_ref()
    }

    /// Blocks until the plugin has answered.
    pub(super) fn wait<T>(&self, work: impl Future<Output = Result<T, Diagnostics>>) -> Result<T, Diagnostics> {
        match &self.runtime {
            Some(runtime) => runtime.block_on(work),
            // The runtime is taken only by `drop`.
            None => Err(Diagnostics::new()),
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let Some(runtime) = self.runtime.take() else { return };
        // `block_on` would panic inside another runtime.
        if tokio::runtime::Handle::try_current().is_err() {
            runtime.block_on(self.plugin.close());
        }
        // In that case the process ends with the connection.
        runtime.shutdown_background();
    }
}
