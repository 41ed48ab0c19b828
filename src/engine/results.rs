//! The results of an apply, as soon as they are available, and what is about to happen before it does. A result contains all
//! objects of one instance, so a receiver can update its own copy of the state.

use addrs::{AbsProviderConfig, AbsResourceInstance};
use async_trait::async_trait;
use state::InstanceState;
use state::journal::{Answers, Intent};
use syntax::Diagnostic;

/// The receiver of results. Called from several tasks concurrently; must not block.
#[async_trait]
pub trait ResultSink: Send + Sync {
    /// Receives the objects of a changed instance, and which operation that is the end of. The results of one instance arrive in
    /// order. `None` means that the state has no entry for it.
    fn instance(
        &self,
        address: &AbsResourceInstance,
        provider: &AbsProviderConfig,
        objects: Option<InstanceState>,
        answers: Answers,
    );

    /// An operation is about to begin. It begins when this returns, unless it fails.
    async fn begin(&self, _intent: Intent) -> Result<(), Diagnostic> {
        Ok(())
    }

    /// An operation has ended. If it changed anything, that was received before.
    fn end(&self, _intent: &Intent) {}

    /// Returns when everything received is where a crash does not destroy it, or when that has turned out to be impossible.
    async fn settled(&self) {}
}

/// Discards all results.
pub struct NoResults;

impl ResultSink for NoResults {
    fn instance(&self, _: &AbsResourceInstance, _: &AbsProviderConfig, _: Option<InstanceState>, _: Answers) {}
}
