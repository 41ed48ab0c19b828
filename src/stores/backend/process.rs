//! Connection to the plugin process of a state store.

use std::sync::Arc;

use provider::state_store::StateStore;
use tokio::runtime::{Handle, Runtime};

/// Connection to a plugin, and the runtime on which the connection runs.
pub(super) struct Process {
    plugin: Arc<dyn StateStore>,
    handle: Handle,
    /// `None` only while the connection is being dropped.
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

    /// Runs a request, and blocks until the plugin has answered.
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
        // If this is called inside another runtime, that one must not block: nothing is awaited, and dropping the connection ends the
        // plugin process.
        runtime.shutdown_background();
    }
}
