//! Receiver of the results of an apply while it runs, and of the intents before its operations. A result contains all objects of one
//! instance, so the receiver can update its own copy of the state.

use addrs::{AbsProviderConfig, AbsResourceInstance};
use async_trait::async_trait;
use state::InstanceState;
use state::journal::{Answers, Intent};
use syntax::Diagnostic;

/// Receiver of results. It is called from several tasks concurrently and must not block.
#[async_trait]
pub trait ResultSink: Send + Sync {
    /// Receives all objects of an instance after one has changed; `None` if the state has no entry for the instance any more. `answers`
    /// tells which of the instance's intents the result belongs to. The results of one instance arrive in order.
    fn instance(
        &self,
        address: &AbsResourceInstance,
        provider: &AbsProviderConfig,
        objects: Option<InstanceState>,
        answers: Answers,
    );

    /// Records an intent. The operation begins only if this returns `Ok`.
    async fn begin(&self, _intent: &Intent) -> Result<(), Diagnostic> {
        Ok(())
    }

    /// Records the end of an operation, after its results have been received.
    fn end(&self, _intent: &Intent) {}

    /// Waits until all received results are durable, or cannot become durable any more because of an error.
    async fn settled(&self) {}
}

/// Sink that discards all results.
pub struct NoResults;

impl ResultSink for NoResults {
    fn instance(&self, _: &AbsResourceInstance, _: &AbsProviderConfig, _: Option<InstanceState>, _: Answers) {}
}
