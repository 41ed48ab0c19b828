//! What the engine tells while it works.

use std::sync::Arc;

use addrs::AbsResourceInstance;

use crate::plan::Action;

/// Something happened.
#[derive(Clone, Debug)]
pub enum Event {
    /// An object is being looked for, to be imported.
    ImportStart {
        /// The address it will have.
        address: AbsResourceInstance,
        /// The identifier by which it is looked for.
        id: Arc<str>,
    },
    /// An object that was found in planning becomes part of the state.
    Imported {
        /// The address it has.
        address: AbsResourceInstance,
        /// The identifier by which it was found.
        id: Arc<str>,
    },
    /// An object is being read to see what it is now. The identity is a short text such as `id=abc`, if there is one.
    RefreshStart {
        /// The object.
        address: AbsResourceInstance,
        /// Name and value of the attribute that identifies it.
        id: Option<(String, String)>,
    },
    /// That is done.
    RefreshComplete {
        /// The object.
        address: AbsResourceInstance,
        /// Name and value of the attribute that identifies it.
        id: Option<(String, String)>,
    },
    /// A data source is being read, or an object created, updated or destroyed.
    OperationStart {
        /// The object.
        address: AbsResourceInstance,
        /// Which deposed object, if it is not the current one.
        deposed: Option<Arc<str>>,
        /// What is done: read, create, update or delete.
        action: Action,
        /// Name and value of the attribute that identifies it.
        id: Option<(String, String)>,
    },
    /// That is done.
    OperationComplete {
        /// The object.
        address: AbsResourceInstance,
        /// Which deposed object, if it is not the current one.
        deposed: Option<Arc<str>>,
        /// What was done.
        action: Action,
        /// Name and value of the attribute that identifies it.
        id: Option<(String, String)>,
        /// How long it took.
        elapsed: std::time::Duration,
    },
    /// That failed.
    OperationFailed {
        /// The object.
        address: AbsResourceInstance,
        /// Which deposed object, if it is not the current one.
        deposed: Option<Arc<str>>,
        /// What was tried.
        action: Action,
        /// How long it took.
        elapsed: std::time::Duration,
    },
    /// A provisioner begins.
    ProvisionStart {
        /// The object.
        address: AbsResourceInstance,
        /// The type of the provisioner.
        provisioner: Arc<str>,
    },
    /// A provisioner printed something.
    ProvisionOutput {
        /// The object.
        address: AbsResourceInstance,
        /// The type of the provisioner.
        provisioner: Arc<str>,
        /// What it printed.
        output: String,
    },
    /// A provisioner has ended well.
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
    /// An ephemeral resource is not opened while planning, because its configuration is not known yet.
    EphemeralDeferred {
        /// The instance.
        address: AbsResourceInstance,
    },
    /// An ephemeral resource is being opened, renewed or closed.
    EphemeralStart {
        /// The instance.
        address: AbsResourceInstance,
        /// What is done.
        action: EphemeralAction,
    },
    /// That is done.
    EphemeralComplete {
        /// The instance.
        address: AbsResourceInstance,
        /// What was done.
        action: EphemeralAction,
        /// How long it took.
        elapsed: std::time::Duration,
    },
    /// That failed.
    EphemeralFailed {
        /// The instance.
        address: AbsResourceInstance,
        /// What was tried.
        action: EphemeralAction,
        /// How long it took.
        elapsed: std::time::Duration,
    },
    /// The number of instances planned so far and known to be planned in all, for a progress display.
    Progress {
        /// So many are done.
        done: usize,
        /// So many are known.
        total: usize,
    },
    /// An interrupt was received; running operations are being asked to stop.
    Stopping,
}

/// What is done with an ephemeral resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EphemeralAction {
    /// It is opened.
    Open,
    /// It is kept open.
    Renew,
    /// It is closed.
    Close,
}

/// Where events go. Called from several tasks at once, and must not block for long.
pub trait EventSink: Send + Sync {
    /// Takes one event.
    fn event(&self, event: Event);
}

/// Drops every event.
pub struct NoEvents;

impl EventSink for NoEvents {
    fn event(&self, _event: Event) {}
}
