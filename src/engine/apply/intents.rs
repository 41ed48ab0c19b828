//! Telling the result sink what is about to happen, so that a crash leaves nothing unnamed.

use cty::Value;
use state::DeposedKey;
use state::journal::{Intent, IntentAction, Outcome, changes, checksum};

use super::{Applier, ObjectOperation};
use crate::eval::Reported;

impl Applier<'_> {
    /// Passes on what the plan has changed already, before any operation: what refresh has found, imports, moves.
    pub(super) fn pass_changes_before_apply(&self) {
        for Outcome {
            address,
            provider,
            objects,
            answers,
        } in changes(self.context.inputs.state, &self.plan.prior_state)
        {
            self.results.sink.instance(&address, &provider, objects, answers);
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
