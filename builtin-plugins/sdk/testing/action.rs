//! Actions under test.

use super::{Config, EMPTY, Harness, config, encode};
use crate::{Progress, Provider, Result};

impl<P: Provider> Harness<P> {
    /// Validates, plans and invokes an action. Returns the messages about its progress.
    ///
    /// # Errors
    /// What one of the three steps reports.
    pub async fn invoke(&self, name: &str, config: Config<'_>) -> Result<Vec<String>> {
        let schema = self.core.actions.get(name).map_or(&*EMPTY, |a| a.schema());
        let wire = encode(Some(&config::object(schema, config)?), schema)?;
        self.sort(self.core.validate_action(name, &wire))?;
        let call = self.core.calls.begin();
        let (_, found) = self.core.plan_action(name, &wire, call.stop().into()).await;
        self.sort(found)?;
        let (progress, mut messages) = Progress::channel();
        let work = self.core.invoke_action(name, &wire, progress, call.stop());
        let all = async {
            let mut all = Vec::new();
            while let Some(message) = messages.recv().await {
                all.push(message);
            }
            all
        };
        let (found, all) = futures::join!(work, all);
        self.sort(found)?;
        Ok(all)
    }
}
