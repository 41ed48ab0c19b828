//! Actions under test.

use monoform_sdk::{Progress, Provider, Result};

use crate::config::{self, Config};
use crate::harness::{Harness, named};
use crate::wires::encode;

impl<P: Provider> Harness<P> {
    /// Validates, plans and invokes an action. Returns its progress messages; none if the action is deferred.
    ///
    /// # Errors
    /// The errors of the first step that fails.
    pub async fn invoke(&self, name: &str, config: Config<'_>) -> Result<Vec<String>> {
        let schema = named(self.provider.actions(), name);
        let wire = encode(Some(&config::object(schema, config)?), schema)?;
        self.sort(self.provider.validate_action(name, &wire))?;
        let (call, options) = self.begin();
        let stop = options.stop.clone();
        let (deferred, found) = self.provider.plan_action(name, &wire, options).await;
        self.record(deferred);
        self.sort(found)?;
        if deferred.is_some() {
            return Ok(Vec::new());
        }
        let (progress, mut messages) = Progress::channel();
        let work = self.provider.invoke_action(name, &wire, progress, stop);
        let all = async {
            let mut all = Vec::new();
            while let Some(message) = messages.recv().await {
                all.push(message);
            }
            all
        };
        let (found, all) = futures::join!(work, all);
        drop(call);
        self.sort(found)?;
        Ok(all)
    }
}
