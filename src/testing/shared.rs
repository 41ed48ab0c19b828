//! A provider that several operations use: it does not end with one of them.

use std::sync::Arc;

use async_trait::async_trait;
use cty::Value;
use provider::{
    Actions, Answer, Applied, ApplyRequest, FunctionError, ImportTarget, Imported, ListRequest, Listed, MoveRequest,
    ObjectRead, Opened, PlanRequest, PlannedChange, Provider, ProviderSchema, RawState, ReadRequest,
};
use syntax::Diagnostics;

/// A provider that is not closed by those who use it.
pub struct Shared(Arc<dyn Provider>);

impl Shared {
    /// The same provider.
    #[must_use]
    pub fn new(provider: Arc<dyn Provider>) -> Shared {
        Shared(provider)
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
        self.0.validate_resource(ty, config).await
    }

    async fn validate_data(&self, ty: &str, config: Value) -> Result<Answer<()>, Diagnostics> {
        self.0.validate_data(ty, config).await
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

    async fn close(&self) {}
}
