//! The results of an apply, as soon as they are available. A result contains all objects of one instance, so a receiver can
//! update its own copy of the state.

use addrs::{AbsProviderConfig, AbsResourceInstance};
use state::InstanceState;

/// The receiver of results. Called from several tasks concurrently; must not block.
pub trait ResultSink: Send + Sync {
    /// Receives the objects of a changed instance. The results of one instance arrive in order. `None` means that the state has
    /// no entry for it.
    fn instance(&self, address: &AbsResourceInstance, provider: &AbsProviderConfig, objects: Option<InstanceState>);
}

/// Discards all results.
pub struct NoResults;

impl ResultSink for NoResults {
    fn instance(&self, _: &AbsResourceInstance, _: &AbsProviderConfig, _: Option<InstanceState>) {}
}
