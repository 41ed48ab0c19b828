//! The process of a state store's plugin.

use std::sync::Arc;

use provider::state_store::StateStore;
use tokio::runtime::{Handle, Runtime};

/// The plugin's process, and the threads of the connection to it.
pub(super) struct Process {
    plugin: Arc<dyn StateStore>,
    handle: Handle,
    /// Taken when this is dropped.
    runtime: Option<Runtime>,
}

impl Process {
    pub(super) fn new(plugin: Arc<dyn StateStore>, runtime: Runtime) -> Process {
        Process {
            plugin,
            handle: runtime.handle().clone(),
            runtime: Some(runtime),
        }
    }

    pub(super) fn plugin(&self) -> &dyn StateStore {
        &*self.plugin
    }

    /// Waits for an answer of the plugin.
    pub(super) fn wait<T>(&self, work: impl Future<Output = T>) -> T {
        self.handle.block_on(work)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let Some(runtime) = self.runtime.take() else { return };
        if Handle::try_current().is_err() {
            runtime.block_on(self.plugin.close());
        }
        // Where nothing can be waited for, the process ends with the connection.
        runtime.shutdown_background();
    }
}
