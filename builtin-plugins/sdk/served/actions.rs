//! Requests for actions.

use super::provider::{ServedProvider, unknown_type};
use crate::action::{AnyAction, Progress};
use crate::calls::CallOptions;
use crate::check;
use crate::deferral::Deferral;
use crate::diag::{Diagnostics, Result};
use crate::guard::guarded_now;
use crate::stop::Stop;
use crate::wire::{Wire, decode};

impl ServedProvider {
    fn action(&self, name: &str) -> Result<&dyn AnyAction> {
        self.actions
            .get(name)
            .map(|a| &**a)
            .ok_or_else(|| unknown_type("action", name))
    }

    pub fn validate_action(&self, name: &str, config: &Wire) -> Diagnostics {
        let check = || -> Result<Diagnostics> {
            let action = self.action(name)?;
            let config = decode(config, &action.schema().ty)?;
            if config.is_null() {
                return Ok(Diagnostics::new());
            }
            let found = check::against_schema(action.schema(), &config, true);
            Ok(check::with_own_rules(found, guarded_now(|| action.validate(&config))?))
        };
        check().unwrap_or_else(|errors| errors)
    }

    pub async fn plan_action(
        &self,
        name: &str,
        config: &Wire,
        options: CallOptions,
    ) -> (Option<Deferral>, Diagnostics) {
        let plan = async {
            let action = self.action(name)?;
            let config = decode(config, &action.schema().ty)?;
            match self.deferred_by(&options) {
                Some(why) => Ok((Some(why), Diagnostics::new())),
                None => Ok(action.plan(&config, options).await),
            }
        };
        plan.await.unwrap_or_else(|errors| (None, errors))
    }

    pub async fn invoke_action(&self, name: &str, config: &Wire, progress: Progress, stop: Stop) -> Diagnostics {
        let invoke = async {
            let action = self.action(name)?;
            let config = decode(config, &action.schema().ty)?;
            Ok(action.invoke(&config, progress, stop).await)
        };
        invoke.await.unwrap_or_else(|errors| errors)
    }
}
