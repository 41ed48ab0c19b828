//! Service that answers the calls of a provider, and the way in which it runs them.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt as _;
use monoform_sdk::Stop;
use monoform_sdk::calls::Call;
use monoform_sdk::served::ServedProvider;
use monoform_sdk::wire::Wire;
use proto::tfplugin6 as pb;
use tonic::Status;

use crate::messages::v6::dynamic;
use crate::threads;

/// A provider, and the call that is being answered.
#[derive(Clone)]
pub(crate) struct Service {
    pub(super) provider: Arc<ServedProvider>,
    /// The registered call, if the caller has registered it already, as batched calls do.
    pub(super) begun: Option<Arc<Call>>,
}

impl Service {
    pub fn new(provider: Arc<ServedProvider>) -> Service {
        Service { provider, begun: None }
    }

    /// Runs a call to its end, even if the caller disconnects.
    pub(super) async fn run<T, F>(&self, call: impl FnOnce(Arc<ServedProvider>, Stop) -> F) -> Result<T, Status>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        match &self.begun {
            None => {
                threads::run(self.provider.calls(), self.provider.blocks(), |stop| {
                    call(self.provider.clone(), stop)
                })
                .await
            }
            Some(begun) if self.provider.blocks() => {
                let work = call(self.provider.clone(), begun.stop());
                threads::run_begun(true, begun.clone(), work).await
            }
            // This runs on the task that serves all batched calls. The task ends only after its calls, so it needs no task for each.
            Some(begun) => AssertUnwindSafe(call(self.provider.clone(), begun.stop()))
                .catch_unwind()
                .await
                .map_err(|_| Status::internal("this call did not end: it panicked")),
        }
    }

    /// Runs a call that never waits. If the provider cannot block, it runs on this thread.
    pub(super) async fn run_now<T: Send + 'static>(
        &self,
        call: impl FnOnce(&ServedProvider) -> T + Send + 'static,
    ) -> Result<T, Status> {
        match self.provider.blocks() {
            true => self.run(|core, _| async move { call(&core) }).await,
            false => Ok(call(&self.provider)),
        }
    }
}

pub(super) fn identity(wire: Option<Wire>) -> Option<pb::ResourceIdentityData> {
    wire.map(|wire| pb::ResourceIdentityData {
        identity_data: Some(dynamic(wire)),
    })
}
