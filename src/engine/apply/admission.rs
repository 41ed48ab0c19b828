//! Decides when an operation on an object may begin.

use std::sync::Arc;

use super::Applier;
use super::slot::Slot;
use crate::execgraph::Operation;
use crate::lanes::Lane;
use crate::plan::{Action, ResourceChange};

impl Applier<'_> {
    /// Waits until an operation may send requests. An operation that consists of one short request is admitted earlier, to write its intent
    /// in advance; it must then wait for [`Slot::run`] before it sends the request.
    pub(super) async fn admit(&self, operation: Operation, change: &ResourceChange) -> Slot<'_> {
        if let Some(lane) = self.lane(change) {
            return self.slots.admit_to(lane.enter().await);
        }
        let slot = self.slots.admit().await;
        let runs = self.is_local(change) && slot.run_local().await;
        if !runs && !self.is_brief(operation, change) {
            slot.run().await;
        }
        slot
    }

    fn lane(&self, change: &ResourceChange) -> Option<Arc<Lane>> {
        let (lanes, provider) = (self.context.inputs.lanes?, &change.provider.provider);
        lanes
            .fixed(provider)
            .or_else(|| lanes.lane(provider).filter(|_| !self.is_local(change)))
    }

    /// Returns true if an operation consists of one short request to its provider. Only such an operation may write its intent before it
    /// may send requests, because a crash then leaves few intents of operations that did not begin.
    fn is_brief(&self, operation: Operation, change: &ResourceChange) -> bool {
        matches!(operation, Operation::Change(_))
            && matches!(change.action, Action::Create | Action::Update)
            && change.config_known
            && self.slots.are_short()
            && !self.triggered.concerns(&change.address)
    }

    /// Returns true if the separate limit for state-only objects applies to an operation: the operation changes an object that exists
    /// only in the state (such as `terraform_data`), runs neither provisioners nor actions, and requests are short.
    fn is_local(&self, change: &ResourceChange) -> bool {
        let resource = &change.address.resource.resource;
        let schema = self
            .context
            .providers
            .schemas()
            .providers
            .get(&change.provider.provider);
        resource.mode == addrs::Mode::Managed
            && schema.is_some_and(|schema| schema.state_only.contains(&*resource.ty))
            // The separate limit for such objects adds operations to those of `-parallelism`. An interrupt waits for all running
            // operations, so none are added while requests take long, such as the generation of RSA keys.
            && self.slots.are_short()
            && !self.triggered.concerns(&change.address)
            && self.provisioners(&change.address.config()).is_empty()
    }
}
