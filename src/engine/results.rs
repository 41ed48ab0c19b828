//! Where the results of an apply go as soon as they are there.
//!
//! Each one says all that one instance has now, so whoever keeps them needs no copy of the whole state: it follows its own.

use addrs::{AbsProviderConfig, AbsResourceInstance};
use state::InstanceState;

/// Takes results while an apply is running. Called from several tasks at once, and must not block.
pub trait ResultSink: Send + Sync {
    /// The objects of an instance have changed. Results of one instance come in their order; no objects means that the state
    /// has no entry for it any more.
    fn instance(&self, address: &AbsResourceInstance, provider: &AbsProviderConfig, objects: Option<InstanceState>);
}

/// Drops every result: for those who only want the state at the end.
pub struct NoResults;

impl ResultSink for NoResults {
    fn instance(&self, _: &AbsResourceInstance, _: &AbsProviderConfig, _: Option<InstanceState>) {}
}
