//! Progress events of the engine.

use std::sync::Arc;

use addrs::{AbsActionInstance, AbsResourceInstance};
use cty::Value;

use crate::invocation::InvocationTrigger;
use crate::lanes::Settled;
use crate::plan::{Action, ImportedBy};
use crate::query::QueryInstance;

#[derive(Clone, Debug)]
pub enum Event {
    ImportStart {
        address: AbsResourceInstance,
        /// Import identifier or identity of the object.
        target: ImportedBy,
    },
    /// An imported object is in the state now.
    Imported {
        address: AbsResourceInstance,
        /// Import identifier or identity of the object.
        target: ImportedBy,
    },
    /// The planning of an object starts. Sent only to receivers that want it: see [`EventSink::wants_planning`].
    PlanStart {
        address: AbsResourceInstance,
        /// Key of the deposed object; `None` for the current one.
        deposed: Option<Arc<str>>,
    },
    PlanComplete {
        address: AbsResourceInstance,
        deposed: Option<Arc<str>>,
    },
    PlanFailed {
        address: AbsResourceInstance,
        deposed: Option<Arc<str>>,
    },
    RefreshStart {
        address: AbsResourceInstance,
        /// Name and value of the identifying attribute, such as `id=abc`.
        id: Option<(String, String)>,
    },
    RefreshComplete {
        address: AbsResourceInstance,
        /// Name and value of the identifying attribute.
        id: Option<(String, String)>,
    },
    /// The refresh of an object has failed, or was abandoned.
    RefreshFailed { address: AbsResourceInstance },
    /// An operation starts: a data source is read, or an object created, updated or destroyed.
    OperationStart {
        address: AbsResourceInstance,
        /// Key of the deposed object; `None` for the current one.
        deposed: Option<Arc<str>>,
        /// Action of the operation: read, create, update or delete.
        action: Action,
        /// Name and value of the identifying attribute.
        id: Option<(String, String)>,
    },
    OperationComplete {
        address: AbsResourceInstance,
        /// Key of the deposed object; `None` for the current one.
        deposed: Option<Arc<str>>,
        /// Action of the operation: read, create, update or delete.
        action: Action,
        /// Name and value of the identifying attribute.
        id: Option<(String, String)>,
        /// Time since the operation started.
        elapsed: std::time::Duration,
    },
    OperationFailed {
        address: AbsResourceInstance,
        /// Key of the deposed object; `None` for the current one.
        deposed: Option<Arc<str>>,
        /// Action of the operation: read, create, update or delete.
        action: Action,
        /// Time since the operation started.
        elapsed: std::time::Duration,
    },
    /// A provisioner starts.
    ProvisionStart {
        address: AbsResourceInstance,
        /// Type of the provisioner, such as `local-exec`.
        provisioner: Arc<str>,
    },
    /// Output of a provisioner.
    ProvisionOutput {
        address: AbsResourceInstance,
        /// Type of the provisioner, such as `local-exec`.
        provisioner: Arc<str>,
        /// Text of the output, or a placeholder if the arguments of the provisioner are sensitive or ephemeral.
        output: String,
    },
    /// A provisioner is complete.
    ProvisionComplete {
        address: AbsResourceInstance,
        /// Type of the provisioner, such as `local-exec`.
        provisioner: Arc<str>,
    },
    /// A provisioner has failed.
    ProvisionFailed {
        address: AbsResourceInstance,
        /// Type of the provisioner, such as `local-exec`.
        provisioner: Arc<str>,
    },
    /// The invocation of an action starts.
    ActionStart {
        address: AbsActionInstance,
        /// Trigger of the invocation: the change of an object, or a request by the user.
        trigger: Arc<InvocationTrigger>,
    },
    /// A message from an action that runs.
    ActionProgress {
        address: AbsActionInstance,
        /// Trigger of the invocation: the change of an object, or a request by the user.
        trigger: Arc<InvocationTrigger>,
        /// Text of the message, from the provider.
        message: String,
    },
    ActionComplete {
        address: AbsActionInstance,
        /// Trigger of the invocation: the change of an object, or a request by the user.
        trigger: Arc<InvocationTrigger>,
    },
    ActionFailed {
        address: AbsActionInstance,
        /// Trigger of the invocation: the change of an object, or a request by the user.
        trigger: Arc<InvocationTrigger>,
        /// Errors of the invocation, one on each line.
        error: String,
    },
    /// The opening of an ephemeral resource is deferred to apply, because its configuration is unknown.
    EphemeralDeferred { address: AbsResourceInstance },
    /// The opening, renewal or closing of an ephemeral resource starts.
    EphemeralStart {
        address: AbsResourceInstance,
        action: EphemeralAction,
    },
    EphemeralComplete {
        address: AbsResourceInstance,
        action: EphemeralAction,
        /// Time since the request was sent.
        elapsed: std::time::Duration,
    },
    EphemeralFailed {
        address: AbsResourceInstance,
        action: EphemeralAction,
        /// Time since the request was sent.
        elapsed: std::time::Duration,
    },
    /// The listing of existing objects starts.
    ListStart {
        /// Address of the list block's instance.
        address: AbsResourceInstance,
        /// Value of the `config` block, with marks; null without one.
        config: Value,
    },
    /// Existing objects were listed.
    ListComplete {
        /// Instance of the list block with the listed objects.
        found: Arc<QueryInstance>,
    },
    /// Progress of a plan (planned instances) or of an apply (completed operations), for a progress
    /// display.
    Progress {
        /// Number of planned instances or completed operations.
        done: usize,
        /// Number of planned instances or operations in total, as far as it is known.
        total: usize,
    },
    /// The limits of concurrent operations for individual providers have been adapted.
    Lanes {
        /// The limits of all adapted lanes, sorted by provider.
        limits: Vec<Settled>,
        /// True at the end of the operation.
        settled: bool,
    },
    /// An interrupt was received; running operations are requested to stop.
    Stopping,
}

/// An action on an ephemeral resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EphemeralAction {
    /// Opened before its first use.
    Open,
    /// Renewed while it is open.
    Renew,
    /// Closed after its last use.
    Close,
}

/// Receiver of events. It is called from several tasks concurrently and must not block for long.
pub trait EventSink: Send + Sync {
    /// Receives an event.
    fn event(&self, event: Event);

    /// Returns true if the planning of each object is to be reported. Most receivers show only its results.
    fn wants_planning(&self) -> bool {
        false
    }
}

/// The planning of an object. It counts as failed if it is dropped before it is completed.
pub(crate) struct PlanningObject<'e> {
    events: &'e dyn EventSink,
    address: AbsResourceInstance,
    deposed: Option<Arc<str>>,
    complete: bool,
}

impl<'e> PlanningObject<'e> {
    /// Reports the start; returns nothing if the receiver does not want it.
    pub(crate) fn start(
        events: &'e dyn EventSink,
        address: &AbsResourceInstance,
        deposed: Option<&Arc<str>>,
    ) -> Option<PlanningObject<'e>> {
        if !events.wants_planning() {
            return None;
        }
        events.event(Event::PlanStart {
            address: address.clone(),
            deposed: deposed.cloned(),
        });
        Some(PlanningObject {
            events,
            address: address.clone(),
            deposed: deposed.cloned(),
            complete: false,
        })
    }

    /// Marks the object as planned.
    pub(crate) fn complete(mut self) {
        self.complete = true;
    }
}

impl Drop for PlanningObject<'_> {
    fn drop(&mut self) {
        let (address, deposed) = (self.address.clone(), self.deposed.take());
        self.events.event(match self.complete {
            true => Event::PlanComplete { address, deposed },
            false => Event::PlanFailed { address, deposed },
        });
    }
}

/// Guard of a refresh that has started. If it is dropped before [`Refreshing::complete`], a failure is reported.
pub(crate) struct Refreshing<'e> {
    events: &'e dyn EventSink,
    address: &'e AbsResourceInstance,
    id: Option<(String, String)>,
    complete: bool,
}

impl<'e> Refreshing<'e> {
    pub(crate) fn start(
        events: &'e dyn EventSink,
        address: &'e AbsResourceInstance,
        id: Option<(String, String)>,
    ) -> Refreshing<'e> {
        events.event(Event::RefreshStart {
            address: address.clone(),
            id: id.clone(),
        });
        Refreshing {
            events,
            address,
            id,
            complete: false,
        }
    }

    /// Reports the refresh as completed.
    pub(crate) fn complete(mut self) {
        self.complete = true;
    }
}

impl Drop for Refreshing<'_> {
    fn drop(&mut self) {
        let address = self.address.clone();
        self.events.event(if self.complete {
            Event::RefreshComplete {
                address,
                id: self.id.take(),
            }
        } else {
            Event::RefreshFailed { address }
        });
    }
}

/// Sink that discards all events.
pub struct NoEvents;

impl EventSink for NoEvents {
    fn event(&self, _event: Event) {}
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    #[derive(Default)]
    struct Recorded(Mutex<Vec<&'static str>>);

    impl EventSink for Recorded {
        fn event(&self, event: Event) {
            self.0.lock().unwrap().push(match event {
                Event::RefreshStart { .. } => "start",
                Event::RefreshComplete { id: Some(_), .. } => "complete",
                Event::RefreshFailed { .. } => "failed",
                _ => "something else",
            });
        }
    }

    #[test]
    fn every_refresh_that_starts_ends_with_one_event() {
        let recorded = Recorded::default();
        let address = addrs::parse::resource_instance("terraform_data.a").unwrap();
        let start = || Refreshing::start(&recorded, &address, Some(("id".to_owned(), "x".to_owned())));
        start().complete();
        drop(start());
        assert_eq!(*recorded.0.lock().unwrap(), ["start", "complete", "start", "failed"]);
    }
}
