//! Ends the process of a provider configuration after its last operation, so that a long apply with many configurations
//! does not hold the memory of all of them until its end. Terraform ends them at the same point.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use addrs::AbsProviderConfig;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use provider::Provider;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::context::OperationContext;
use crate::execgraph::Operation;
use crate::plan::{Action, Plan};
use crate::providers::Providers;
use crate::requirements;

/// Provider configurations whose processes can end before the apply does.
pub(super) struct Closings<'a> {
    providers: &'a Providers<'a>,
    /// Number of operations of each configuration that have not ended yet.
    left: HashMap<&'a AbsProviderConfig, AtomicUsize>,
    /// Sends the processes to [`Closings::close_ended`]. `None` after [`Closings::finish`], when no operation is left that could end.
    ended: Mutex<Option<UnboundedSender<Arc<dyn Provider>>>>,
    closing: tokio::sync::Mutex<UnboundedReceiver<Arc<dyn Provider>>>,
}

impl<'a> Closings<'a> {
    /// Counts the operations of a plan. Configurations that something else may use after their operations are left out:
    /// those of ephemeral resources, of actions, and of providers whose functions are called.
    pub(super) fn new(context: OperationContext<'a>, plan: &'a Plan) -> Closings<'a> {
        let config = context.inputs.config;
        let mut left: HashMap<&AbsProviderConfig, AtomicUsize> = HashMap::new();
        for operation in &plan.graph.nodes {
            if let Operation::Change(i) | Operation::Destroy(i) = operation
                && let Some(change) = plan.changes.get(*i as usize)
                && change.action != Action::Forget
            {
                *left.entry(&change.provider).or_default().get_mut() += 1;
            }
        }
        // Most applies use one configuration. Closing it a moment before the apply ends would gain nothing.
        if left.len() > 1 {
            let with_functions = requirements::function_providers_needed(config);
            let of_actions: HashSet<&AbsProviderConfig> = plan.invocations.iter().map(|i| &i.provider).collect();
            let ephemerals = context.blocks.ephemeral_users().into_iter();
            let of_ephemerals: HashSet<AbsProviderConfig> =
                ephemerals.map(|(resource, _)| config.provider_for(&resource)).collect();
            left.retain(|address, _| {
                !with_functions.contains(&address.provider)
                    && !of_actions.contains(address)
                    && !of_ephemerals.contains(&address.block())
            });
        } else {
            left.clear();
        }
        let (ended, closing) = unbounded_channel();
        Closings {
            providers: context.providers,
            left,
            ended: Mutex::new(Some(ended)),
            closing: tokio::sync::Mutex::new(closing),
        }
    }

    /// Counts the end of an operation. After the last one of a configuration, [`Closings::close_ended`] ends its process.
    pub(super) async fn count_end(&self, address: &AbsProviderConfig) {
        let Some(left) = self.left.get(address) else { return };
        if left.fetch_sub(1, Ordering::AcqRel) != 1 {
            return;
        }
        // A configuration that could not be opened has no process.
        let Some(process) = self.providers.take(address).await else {
            return;
        };
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(ended) = &*ended {
            // The receiver lives as long as the sender.
            let _ = ended.send(process);
        }
    }

    /// Signals that no operation is left, so that [`Closings::close_ended`] returns.
    pub(super) fn finish(&self) {
        *self.ended.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Ends processes concurrently with the operations, which must not wait for them: a plugin may take seconds to end. Returns after
    /// [`Closings::finish`], when all of these processes have ended.
    pub(super) async fn close_ended(&self) {
        let mut processes = self.closing.lock().await;
        let mut closing = FuturesUnordered::new();
        let mut more = true;
        while more || !closing.is_empty() {
            tokio::select! {
                process = processes.recv(), if more => match process {
                    Some(process) => closing.push(async move { process.close().await }),
                    None => more = false,
                },
                Some(()) = closing.next(), if !closing.is_empty() => {}
            }
        }
    }
}
