//! Results of an apply, as soon as they are available, and intents before their operations. A result contains all
//! objects of one instance, so a receiver can update its own copy of the state.

use addrs::{AbsProviderConfig, AbsResourceInstance};
use async_trait::async_trait;
use state::InstanceState;
use state::journal::{Answers, Intent};
use syntax::Diagnostic;

/// Receiver of results. It is called from several tasks concurrently and must not block.
#[async_trait]
pub trait ResultSink: Send + Sync {
    /// Receives the objects of a changed instance. `answers` is the operation that has ended. The results of
    /// one instance arrive in order. `None` means that the state has no entry for it.
    fn instance(
        &self,
        address: &AbsResourceInstance,
        provider: &AbsProviderConfig,
        objects: Option<InstanceState>,
        answers: Answers,
    );

    /// Records an intent. The operation begins when this returns, unless it is an error.
    async fn begin(&self, _intent: &Intent) -> Result<(), Diagnostic> {
        Ok(())
    }

    /// Records the end of an operation, after its results have been received.
    fn end(&self, _intent: &Intent) {}

    /// Returns when every received result would survive a crash, or can no longer be made durable.
    async fn settled(&self) {}
}

/// Sink that discards all results.
pub struct NoResults;

impl ResultSink for NoResults {
    fn instance(&self, _: &AbsResourceInstance, _: &AbsProviderConfig, _: Option<InstanceState>, _: Answers) {}
}
