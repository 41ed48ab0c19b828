//! Telling the result sink what is about to happen, so that a crash leaves nothing unnamed.

use cty::Value;
use state::DeposedKey;
use state::journal::{Answers, Intent, IntentAction, checksum};

use super::{Applier, ObjectOperation};
use crate::eval::Reported;

impl Applier<'_> {
    /// Passes on what the plan has changed already, before any operation: what refresh has found, imports, moves.
    pub(super) fn pass_changes_before_apply(&self) {
        let (before, after) = (&self.context.inputs.state, &self.plan.prior_state);
        let sink = self.results.sink;
        for (resource, now, key, instance) in after.instances() {
            let address = resource.instance(key.clone());
            let known = before.resources.get(resource);
            let same = known.is_some_and(|known| {
                known.provider == now.provider
                    && known
                        .instances
                        .get(key)
                        .is_some_and(|old| old.current == instance.current && old.deposed == instance.deposed)
            });
            if !same {
                sink.instance(&address, &now.provider, Some(instance.clone()), Answers::Nothing);
            }
        }
        for (resource, old, key, _) in before.instances() {
            let address = resource.instance(key.clone());
            if after.instance(&address).is_none() {
                sink.instance(&address, &old.provider, None, Answers::Nothing);
            }
        }
    }

    /// Begins an operation on the object of an instance: it can be called once this returns.
    pub(super) async fn intend(
        &self,
        s: &ObjectOperation<'_>,
        deposed: Option<&DeposedKey>,
        action: IntentAction,
        planned: Option<&Value>,
    ) -> Result<Intent, Reported> {
        // What cannot be encoded is refused by the call itself.
        let planned = planned.and_then(|value| cty::msgpack::encode(value, &s.schema.implied_type()).ok());
        let intent = Intent {
            address: s.address.to_string(),
            deposed: deposed.cloned(),
            action,
            by: s.change.provider.to_string(),
            planned: planned.map(|bytes| checksum(&bytes)).unwrap_or_default(),
        };
        self.begin(&intent).await?;
        Ok(intent)
    }

    /// Begins an operation, or reports why it cannot.
    pub(super) async fn begin(&self, intent: &Intent) -> Result<(), Reported> {
        let begun = self.results.sink.begin(intent.clone()).await;
        begun.map_err(|diagnostic| self.context.fail(diagnostic.about(&intent.address)))
    }
}
