//! Requests of the engine to the actions of a provider.

use async_trait::async_trait;
use cty::Value;
use syntax::Diagnostics;

use crate::answer::{Answer, Output};

/// The actions of a running provider. As in [`crate::Provider`], failure to reach the plugin is an error, and problems
/// that the plugin reports are in the answer. Values have the implied type of the action's schema, without marks.
#[async_trait]
pub trait Actions: Send + Sync {
    async fn validate_action(&self, ty: &str, config: Value) -> Result<Answer<()>, Diagnostics>;
    /// Checks that an action can be invoked with a configuration, which may have unknown values.
    async fn plan_action(&self, ty: &str, config: Value) -> Result<Answer<()>, Diagnostics>;
    /// Invokes an action. `progress` receives each progress message as it arrives.
    async fn invoke_action(&self, ty: &str, config: Value, progress: &Output<'_>) -> Result<Answer<()>, Diagnostics>;
}
