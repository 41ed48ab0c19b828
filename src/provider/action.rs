//! What the engine calls on the actions of a provider.

use async_trait::async_trait;
use cty::Value;
use syntax::Diagnostics;

use crate::contract::{Answer, Output};

/// The actions of a running provider. As in [`crate::Provider`], failing to reach the plugin is an error result, and problems
/// that it reports are in the answer; values are of the implied type of the action's schema, without marks.
#[async_trait]
pub trait Actions: Send + Sync {
    /// Checks the configuration of an action.
    async fn validate_action(&self, ty: &str, config: Value) -> Result<Answer<()>, Diagnostics>;
    /// Checks that an action can be invoked with a configuration, which may have unknown values.
    async fn plan_action(&self, ty: &str, config: Value) -> Result<Answer<()>, Diagnostics>;
    /// Invokes an action. Each message about its progress is sent to `progress` as it arrives.
    async fn invoke_action(&self, ty: &str, config: Value, progress: &Output<'_>) -> Result<Answer<()>, Diagnostics>;
}
