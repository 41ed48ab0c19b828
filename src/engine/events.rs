//! Progress events of the engine.

use std::sync::Arc;

use addrs::{AbsActionInstance, AbsResourceInstance};
use cty::Value;

use crate::invocation::InvocationTrigger;
use crate::plan::{Action, ImportedBy};
use crate::query::QueryInstance;

/// An event.
#[derive(Clone, Debug)]
pub enum Event {
    /// The import of an object starts.
    ImportStart {
        /// The address of the object.
        address: AbsResourceInstance,
        /// What it is imported by.
        target: ImportedBy,
    },
    /// An imported object is in the state.
    Imported {
        /// The address of the object.
        address: AbsResourceInstance,
        /// What it is imported by.
        target: ImportedBy,
    },
    /// The refresh of an object starts.
    RefreshStart {
        /// The object.
        address: AbsResourceInstance,
        /// The name and value of the identifying attribute, such as `id=abc`.
        id: Option<(String, String)>,
    },
    /// The refresh of an object is complete.
    RefreshComplete {
        /// The object.
        address: AbsResourceInstance,
        /// The name and value of the identifying attribute.
        id: Option<(String, String)>,
    },
    /// The refresh of an object has failed, or was given up.
    RefreshFailed {
        /// The object.
        address: AbsResourceInstance,
    },
    /// An operation starts: a data source is read, or an object created, updated or destroyed.
    OperationStart {
        /// The object.
        address: AbsResourceInstance,
        /// The key of the deposed object, if it is not the current one.
        deposed: Option<Arc<str>>,
        /// The action: read, create, update or delete.
        action: Action,
        /// The name and value of the identifying attribute.
        id: Option<(String, String)>,
    },
    /// An operation is complete.
    OperationComplete {
        /// The object.
        address: AbsResourceInstance,
        /// The key of the deposed object, if it is not the current one.
        deposed: Option<Arc<str>>,
        /// The action.
        action: Action,
        /// The name and value of the identifying attribute.
        id: Option<(String, String)>,
        /// The duration.
        elapsed: std::time::Duration,
    },
    /// An operation has failed.
    OperationFailed {
        /// The object.
        address: AbsResourceInstance,
        /// The key of the deposed object, if it is not the current one.
        deposed: Option<Arc<str>>,
        /// The action.
        action: Action,
        /// The duration.
        elapsed: std::time::Duration,
    },
    /// A provisioner starts.
    ProvisionStart {
        /// The object.
        address: AbsResourceInstance,
        /// The type of the provisioner.
        provisioner: Arc<str>,
    },
    /// Output of a provisioner.
    ProvisionOutput {
        /// The object.
        address: AbsResourceInstance,
        /// The type of the provisioner.
        provisioner: Arc<str>,
        /// The output.
        output: String,
    },
    /// A provisioner is complete.
    ProvisionComplete {
        /// The object.
        address: AbsResourceInstance,
        /// The type of the provisioner.
        provisioner: Arc<str>,
    },
    /// A provisioner has failed.
    ProvisionFailed {
        /// The object.
        address: AbsResourceInstance,
        /// The type of the provisioner.
        provisioner: Arc<str>,
    },
    /// The invocation of an action starts.
    ActionStart {
        /// The action.
        address: AbsActionInstance,
        /// Why it is invoked.
        trigger: Arc<InvocationTrigger>,
    },
    /// A message from an action that runs.
    ActionProgress {
        /// The action.
        address: AbsActionInstance,
        /// Why it is invoked.
        trigger: Arc<InvocationTrigger>,
        /// The message.
        message: String,
    },
    /// The invocation of an action is complete.
    ActionComplete {
        /// The action.
        address: AbsActionInstance,
        /// Why it was invoked.
        trigger: Arc<InvocationTrigger>,
    },
    /// The invocation of an action has failed.
    ActionFailed {
        /// The action.
        address: AbsActionInstance,
        /// Why it was invoked.
        trigger: Arc<InvocationTrigger>,
        /// Its errors.
        error: String,
    },
    /// The opening of an ephemeral resource is deferred to apply, because its configuration is unknown.
    EphemeralDeferred {
        /// The instance.
        address: AbsResourceInstance,
    },
    /// The opening, renewal or closing of an ephemeral resource starts.
    EphemeralStart {
        /// The instance.
        address: AbsResourceInstance,
        /// The action.
        action: EphemeralAction,
    },
    /// An action on an ephemeral resource is complete.
    EphemeralComplete {
        /// The instance.
        address: AbsResourceInstance,
        /// The action.
        action: EphemeralAction,
        /// The duration.
        elapsed: std::time::Duration,
    },
    /// An action on an ephemeral resource has failed.
    EphemeralFailed {
        /// The instance.
        address: AbsResourceInstance,
        /// The action.
        action: EphemeralAction,
        /// The duration.
        elapsed: std::time::Duration,
    },
    /// The listing of existing objects starts.
    ListStart {
        /// The instance of the list block.
        address: AbsResourceInstance,
        /// The value of its `config` block, with marks; null without one.
        config: Value,
    },
    /// Existing objects were listed.
    ListComplete {
        /// What was found.
        found: Arc<QueryInstance>,
    },
    /// The number of planned instances or completed operations, for a progress display.
    Progress {
        /// The number that is done.
        done: usize,
        /// The number in all, as far as it is known.
        total: usize,
    },
    /// An interrupt was received; running operations are requested to stop.
    Stopping,
}

/// An action on an ephemeral resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EphemeralAction {
    /// Open.
    Open,
    /// Renew.
    Renew,
    /// Close.
    Close,
}

/// The receiver of events. Called from several tasks concurrently; must not block for long.
pub trait EventSink: Send + Sync {
    /// Receives an event.
    fn event(&self, event: Event);
}

/// A refresh that has started. It has failed unless it is completed before it is dropped.
pub(crate) struct Refreshing<'e> {
    events: &'e dyn EventSink,
    address: &'e AbsResourceInstance,
    id: Option<(String, String)>,
    complete: bool,
}

impl<'e> Refreshing<'e> {
    /// Reports the start.
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

    /// Reports that the object was read.
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

/// Discards all events.
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
