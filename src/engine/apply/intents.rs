//! Intents: records in the journal that an operation is about to begin. After a crash, they name every operation that may have changed an
//! object.

use cty::Value;
use state::DeposedKey;
use state::journal::{Intent, IntentAction, Outcome, changes, checksum};

use super::{Applier, ObjectOperation};
use crate::eval::Reported;

impl Applier<'_> {
    /// Passes the changes that the plan itself made to the state (refreshed objects, imports, moves) to the result sink, before any
    /// operation.
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

    /// Records the intent of an operation on the object of an instance. The provider may be called once this returns.
    pub(super) async fn intend(
        &self,
        s: &ObjectOperation<'_>,
        deposed: Option<&DeposedKey>,
        action: IntentAction,
        planned: Option<&Value>,
    ) -> Result<Intent, Reported> {
        // A value that cannot be encoded is left out here: the request to the provider encodes the same value, and reports the error.
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

    /// Records an intent, or reports why it cannot be recorded.
    pub(super) async fn begin(&self, intent: &Intent) -> Result<(), Reported> {
        let begun = self.results.sink.begin(intent).await;
        begun.map_err(|diagnostic| self.context.fail(diagnostic.about(&intent.address)))
    }
}
