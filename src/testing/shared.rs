//! Providers that several operations share. An operation that closes such a provider does not end it for the others.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use addrs::Mode;
use async_trait::async_trait;
use cty::Value;
use provider::{
    Actions, Answer, Applied, ApplyRequest, FunctionError, FunctionSchema, ImportTarget, Imported, ListRequest, Listed,
    MoveRequest, ObjectRead, Opened, PlanRequest, PlannedChange, Provider, ProviderSchema, RawState, ReadRequest,
    SchemaMap,
};
use syntax::Diagnostics;

/// Limit of the configurations of a type that are remembered as valid.
const REMEMBERED: usize = 64;

/// Object configurations that an unconfigured provider has found valid. The result depends on the configuration only,
/// and the runs of a suite mostly have equal ones.
#[derive(Debug, Default)]
pub struct Valid(Mutex<HashMap<(Mode, String), Vec<Value>>>);

impl Valid {
    fn all(&self) -> MutexGuard<'_, HashMap<(Mode, String), Vec<Value>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_known(&self, mode: Mode, ty: &str, config: &Value) -> bool {
        let all = self.all();
        all.get(&(mode, ty.to_owned()))
            .is_some_and(|known| known.contains(config))
    }

    fn add(&self, mode: Mode, ty: &str, config: Value) {
        let mut all = self.all();
        let known = all.entry((mode, ty.to_owned())).or_default();
        if known.len() < REMEMBERED {
            known.push(config);
        }
    }
}

/// A provider whose users cannot close it.
pub struct Shared(Arc<dyn Provider>, Option<Arc<Valid>>);

impl Shared {
    #[must_use]
    pub fn new(provider: Arc<dyn Provider>) -> Shared {
        Shared(provider, None)
    }

    /// Shares an unconfigured provider that skips validation of configurations it has found valid.
    #[must_use]
    pub fn remembering(provider: Arc<dyn Provider>, valid: Arc<Valid>) -> Shared {
        Shared(provider, Some(valid))
    }

    /// Validates a configuration unless it is known to be valid.
    async fn checked(
        &self,
        mode: Mode,
        ty: &str,
        config: Value,
        ask: impl AsyncFnOnce(Value) -> Result<Answer<()>, Diagnostics>,
    ) -> Result<Answer<()>, Diagnostics> {
        let Some(valid) = &self.1 else { return ask(config).await };
        if valid.is_known(mode, ty, &config) {
            return Ok(Answer::default());
        }
        let answer = ask(config.clone()).await?;
        // Only an answer without warnings is cached, because warnings are shown for each run.
        if answer.diagnostics.is_empty() {
            valid.add(mode, ty, config);
        }
        Ok(answer)
    }
}

#[async_trait]
impl Provider for Shared {
    async fn schema(&self) -> Result<Arc<ProviderSchema>, Diagnostics> {
        self.0.schema().await
    }

    async fn validate_provider(&self, config: Value) -> Result<Answer<()>, Diagnostics> {
        self.0.validate_provider(config).await
    }

    async fn configure(&self, config: Value) -> Result<Answer<()>, Diagnostics> {
        self.0.configure(config).await
    }

    async fn validate_resource(&self, ty: &str, config: Value) -> Result<Answer<()>, Diagnostics> {
        let ask = async |config| self.0.validate_resource(ty, config).await;
        self.checked(Mode::Managed, ty, config, ask).await
    }

    async fn validate_data(&self, ty: &str, config: Value) -> Result<Answer<()>, Diagnostics> {
        let ask = async |config| self.0.validate_data(ty, config).await;
        self.checked(Mode::Data, ty, config, ask).await
    }

    async fn validate_ephemeral(&self, ty: &str, config: Value) -> Result<Answer<()>, Diagnostics> {
        self.0.validate_ephemeral(ty, config).await
    }

    async fn upgrade(&self, ty: &str, version: u64, state: RawState) -> Result<Answer<Value>, Diagnostics> {
        self.0.upgrade(ty, version, state).await
    }

    async fn upgrade_identity(
        &self,
        ty: &str,
        version: u64,
        identity: Arc<[u8]>,
    ) -> Result<Answer<Option<Value>>, Diagnostics> {
        self.0.upgrade_identity(ty, version, identity).await
    }

    async fn read(&self, ty: &str, request: ReadRequest) -> Result<Answer<ObjectRead>, Diagnostics> {
        self.0.read(ty, request).await
    }

    async fn plan(&self, ty: &str, request: PlanRequest) -> Result<Answer<PlannedChange>, Diagnostics> {
        self.0.plan(ty, request).await
    }

    fn has_ended(&self) -> bool {
        self.0.has_ended()
    }

    async fn apply(&self, ty: &str, request: ApplyRequest) -> Result<Answer<Applied>, Diagnostics> {
        self.0.apply(ty, request).await
    }

    async fn import(&self, ty: &str, target: &ImportTarget) -> Result<Answer<Vec<Imported>>, Diagnostics> {
        self.0.import(ty, target).await
    }

    async fn generate_config(&self, ty: &str, object: Value) -> Result<Answer<Value>, Diagnostics> {
        self.0.generate_config(ty, object).await
    }

    async fn validate_list(&self, ty: &str, config: Value) -> Result<Answer<()>, Diagnostics> {
        self.0.validate_list(ty, config).await
    }

    async fn list(&self, ty: &str, request: ListRequest) -> Result<Answer<Vec<Listed>>, Diagnostics> {
        self.0.list(ty, request).await
    }

    async fn move_state(&self, target_type: &str, request: MoveRequest<'_>) -> Result<Answer<ObjectRead>, Diagnostics> {
        self.0.move_state(target_type, request).await
    }

    async fn read_data(&self, ty: &str, config: Value, meta: Option<Value>) -> Result<Answer<Value>, Diagnostics> {
        self.0.read_data(ty, config, meta).await
    }

    async fn open_ephemeral(&self, ty: &str, config: Value) -> Result<Answer<Opened>, Diagnostics> {
        self.0.open_ephemeral(ty, config).await
    }

    async fn renew_ephemeral(&self, ty: &str, private: Option<Vec<u8>>) -> Result<Answer<Opened>, Diagnostics> {
        self.0.renew_ephemeral(ty, private).await
    }

    async fn close_ephemeral(&self, ty: &str, private: Option<Vec<u8>>) -> Result<Answer<()>, Diagnostics> {
        self.0.close_ephemeral(ty, private).await
    }

    async fn functions(&self) -> Result<SchemaMap<FunctionSchema>, Diagnostics> {
        self.0.functions().await
    }

    async fn call_function(
        &self,
        name: &str,
        arguments: Vec<Value>,
    ) -> Result<Result<Value, FunctionError>, Diagnostics> {
        self.0.call_function(name, arguments).await
    }

    fn actions(&self) -> Option<&dyn Actions> {
        self.0.actions()
    }

    async fn stop(&self) -> Result<(), Diagnostics> {
        self.0.stop().await
    }

    // The pool or the file closes the provider after the last run.
    async fn close(&self) {}
}
