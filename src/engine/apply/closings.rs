//! Ends the process of a provider configuration after its last operation, so that a long apply with many provider configurations does not
//! hold the memory of all their processes until its end. Terraform ends them at the same point.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use addrs::AbsProviderConfig;
use futures::StreamExt;
use futures::stream::FuturesUnordered;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::context::OperationContext;
use crate::execgraph::Operation;
use crate::plan::{Action, Plan};
use crate::providers::Providers;
use crate::requirements;

/// Provider configurations whose processes can end before the apply does.
pub(super) struct Closings<'a> {
    providers: &'a Providers<'a>,
    /// Number of operations of each provider configuration that have not ended yet.
    left: HashMap<&'a AbsProviderConfig, AtomicUsize>,
    /// Sends each provider configuration whose operations have all ended to [`Closings::close_ended`]; `None` after the last operation of
    /// the apply.
    ended: Mutex<Option<UnboundedSender<&'a AbsProviderConfig>>>,
    closing: tokio::sync::Mutex<UnboundedReceiver<&'a AbsProviderConfig>>,
}

impl<'a> Closings<'a> {
    /// Counts the operations of a plan by provider configuration. Provider configurations that may be used after their last operation are
    /// left out: those of ephemeral resources, of actions, and of providers whose functions are called.
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
        // Most applies use one provider configuration. Closing it just before the apply ends would gain nothing.
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

    /// Counts the end of an operation. After the last operation of a provider configuration, [`Closings::close_ended`] ends its process.
    pub(super) fn count_end(&self, address: &AbsProviderConfig) {
        let Some((address, left)) = self.left.get_key_value(address) else {
            return;
        };
        if left.fetch_sub(1, Ordering::AcqRel) == 1
            && let Some(ended) = &*self.ended.lock().unwrap_or_else(PoisonError::into_inner)
        {
            // The receiver lives as long as the sender.
            let _ = ended.send(address);
        }
    }

    /// Signals that no operation is left, so that [`Closings::close_ended`] returns.
    pub(super) fn finish(&self) {
        *self.ended.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    /// Ends processes concurrently with the operations, which must not wait for them: a plugin may take seconds to end. Returns after
    /// [`Closings::finish`], when all of these processes have ended.
    pub(super) async fn close_ended(&self) {
        let mut ended = self.closing.lock().await;
        let mut closing = FuturesUnordered::new();
        let mut more = true;
        while more || !closing.is_empty() {
            tokio::select! {
                address = ended.recv(), if more => match address {
                    Some(address) => closing.push(self.providers.close_one(address)),
                    None => more = false,
                },
                Some(()) = closing.next(), if !closing.is_empty() => {}
            }
        }
    }
}
