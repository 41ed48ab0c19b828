//! Decides when an operation on an object may begin.

use std::sync::Arc;

use super::Applier;
use super::slot::Slot;
use crate::execgraph::Operation;
use crate::lanes::Lane;
use crate::plan::{Action, ResourceChange};

impl Applier<'_> {
    /// Waits until an operation may begin, or may at least be prepared.
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

    /// Returns true if an operation makes only one short request to its provider: its intent may be written before its
    /// turn.
    fn is_brief(&self, operation: Operation, change: &ResourceChange) -> bool {
        matches!(operation, Operation::Change(_))
            && matches!(change.action, Action::Create | Action::Update)
            && change.config_known
            && self.slots.are_short()
            && !self.triggered.concerns(&change.address)
    }

    /// Returns true if an operation is about an object that is in the state alone, and runs neither provisioners nor
    /// actions.
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
            // While requests take long, such as the generation of RSA keys, no more operations run than usual,
            // because an interrupt waits for all of them.
            && self.slots.are_short()
            && !self.triggered.concerns(&change.address)
            && self.provisioners(&change.address.config()).is_empty()
    }
}
