//! Status of each operation of an apply, for the summary of a run that did not complete.

use std::sync::atomic::{AtomicU8, Ordering};

use state::{ObjectStatus, State};

use crate::execgraph::Operation;
use crate::plan::{Action, Plan, ResourceChange};

const NOT_BEGUN: u8 = 0;
const RUNNING: u8 = 1;
const DONE: u8 = 2;
const FAILED: u8 = 3;

pub(super) struct Tally {
    /// Statuses of the operations: two for each change (its change operation and its destroy operation), and then
    /// one for each invocation.
    status: Vec<AtomicU8>,
    /// Number of changes.
    changes: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnfinishedOperation {
    /// Address of the object or of the action.
    pub address: String,
    /// Action on the object: create, update, delete, read or forget. `None` if an action of a provider is invoked.
    pub action: Option<Action>,
    /// Content of the state for the object, if its change was canceled while it ran. `None` for operations that did not start, for reads
    /// and for invocations.
    pub recorded: Option<Recorded>,
}

/// Content of the state for an object whose change was canceled while it ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recorded {
    /// No object.
    Nothing,
    /// New object whose provisioners or actions had not all succeeded: the next plan replaces it.
    Tainted,
    /// An object: the new one if the operation was a creation, otherwise the one from before the operation.
    Object,
}

impl Recorded {
    fn new(change: &ResourceChange, state: &State) -> Recorded {
        let Some(instance) = state.instance(&change.address) else {
            return Recorded::Nothing;
        };
        let creates = change.action == Action::Create || change.action.is_replace();
        match &instance.current {
            Some(object) if creates && object.status == ObjectStatus::Tainted => Recorded::Tainted,
            Some(_) => Recorded::Object,
            // Only the deposed object is left: the old object of a replacement, not the one to be created.
            None if creates => Recorded::Nothing,
            None => Recorded::Object,
        }
    }
}

/// Counts of completed and failed operations, and lists of those that were canceled or did not start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Completion {
    /// Number of operations.
    pub total: usize,
    /// Number of completed operations.
    pub done: usize,
    /// Number of failed operations, whose errors have been reported.
    pub failed: usize,
    /// Operations that were running when the apply was canceled: their results are unknown.
    pub aborted: Vec<UnfinishedOperation>,
    /// Operations that did not start, because a dependency failed or the run was interrupted.
    pub not_begun: Vec<UnfinishedOperation>,
}

impl Completion {
    /// Returns true if all operations were completed.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.done == self.total
    }
}

/// Guard of a running operation: unless `end` is called, the operation counts as aborted.
pub(super) struct Begun<'t>(Option<&'t AtomicU8>);

impl Begun<'_> {
    pub fn end(self, done: bool) {
        if let Some(status) = self.0 {
            status.store(if done { DONE } else { FAILED }, Ordering::Relaxed);
        }
    }
}

impl Tally {
    pub fn new(plan: &Plan) -> Tally {
        Tally {
            status: std::iter::repeat_with(AtomicU8::default)
                .take(plan.changes.len() * 2 + plan.invocations.len())
                .collect(),
            changes: plan.changes.len(),
        }
    }

    fn place(&self, operation: Operation) -> Option<usize> {
        match operation {
            Operation::Change(i) => Some(i as usize * 2),
            Operation::Destroy(i) => Some(i as usize * 2 + 1),
            Operation::Invoke(i) => Some(self.changes * 2 + i as usize),
            Operation::GroupStart(_) | Operation::GroupEnd(_) => None,
        }
    }

    pub fn begin(&self, operation: Operation) -> Begun<'_> {
        let status = self.place(operation).and_then(|i| self.status.get(i));
        if let Some(status) = status {
            status.store(RUNNING, Ordering::Relaxed);
        }
        Begun(status)
    }

    /// Returns the completion of the operations of this plan. `state` is the resulting state.
    pub fn completion(&self, plan: &Plan, state: &State) -> Completion {
        let mut completion = Completion::default();
        for operation in &plan.graph.nodes {
            let Some(status) = self.place(*operation).and_then(|i| self.status.get(i)) else {
                continue;
            };
            completion.total += 1;
            let status = status.load(Ordering::Relaxed);
            let list = match status {
                DONE => {
                    completion.done += 1;
                    continue;
                }
                NOT_BEGUN => &mut completion.not_begun,
                RUNNING => &mut completion.aborted,
                _ => {
                    completion.failed += 1;
                    continue;
                }
            };
            let (index, destroy) = match operation {
                Operation::Change(i) => (*i, false),
                Operation::Destroy(i) => (*i, true),
                Operation::Invoke(i) => {
                    list.extend(plan.invocations.get(*i as usize).map(|invocation| UnfinishedOperation {
                        address: invocation.address.to_string(),
                        action: None,
                        recorded: None,
                    }));
                    continue;
                }
                Operation::GroupStart(_) | Operation::GroupEnd(_) => continue,
            };
            let Some(change) = plan.changes.get(index as usize) else {
                continue;
            };
            // An interrupted read has no effect, but an interrupted change may have one.
            let cut_short = status == RUNNING && change.address.resource.resource.mode == addrs::Mode::Managed;
            list.push(UnfinishedOperation {
                address: change.address.to_string(),
                recorded: match cut_short {
                    true if destroy => Some(Recorded::Object),
                    true => Some(Recorded::new(change, state)),
                    false => None,
                },
                action: Some(match change.action {
                    _ if destroy => Action::Delete,
                    // The destruction of the old object is a separate operation.
                    replace if replace.is_replace() => Action::Create,
                    action => action,
                }),
            });
        }
        completion
    }
}
