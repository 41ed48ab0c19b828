//! Requests of the engine to a provider and to a provisioner, independent of the plugin protocol.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use cty::{Path, Type, Value};
use schema::{BlockSchema, NestedBlock, Nesting, Schema};
use syntax::{Diagnostic, Diagnostics};

use crate::SchemaMap;
use crate::answer::{Answer, Output};

/// The schemas and capabilities of a provider.
#[derive(Clone, Debug, Default)]
pub struct ProviderSchema {
    /// The schema of the provider configuration.
    pub provider: Schema,
    /// The schema of the `provider_meta` block, if the provider takes one.
    pub provider_meta: Option<Schema>,
    /// Managed resource types.
    pub resources: SchemaMap<Schema>,
    pub data_sources: SchemaMap<Schema>,
    /// Ephemeral resource types.
    pub ephemeral: SchemaMap<Schema>,
    /// List resources by the resource type that they list.
    pub lists: SchemaMap<ListSchema>,
    pub functions: SchemaMap<FunctionSchema>,
    /// The configuration schemas of action types.
    pub actions: SchemaMap<Schema>,
    /// The configuration schemas of state stores.
    pub state_stores: SchemaMap<Schema>,
    /// Optional capabilities of the provider.
    pub capabilities: Capabilities,
    /// Managed resource types whose objects are all in the state: a read returns the stored object, and a stored object
    /// of the current schema version is up to date. Plugins built with our SDK announce them.
    pub state_only: BTreeSet<Arc<str>>,
}

impl ProviderSchema {
    /// Converts all schemas. Returns the reason why the first invalid one cannot be used; `None` if all are valid.
    #[must_use]
    pub fn first_problem(&self) -> Option<&str> {
        [
            &self.resources,
            &self.data_sources,
            &self.ephemeral,
            &self.actions,
            &self.state_stores,
        ]
        .into_iter()
        .find_map(SchemaMap::first_problem)
        .or_else(|| self.lists.first_problem())
        .or_else(|| self.functions.first_problem())
    }
}

/// Builds the error about a provider whose schema of a type cannot be used.
#[must_use]
pub fn invalid_schema(provider: &str, reason: &str) -> Diagnostic {
    Diagnostic::error(
        "Invalid answer from plugin",
        format!(
            "The provider \"{provider}\" described itself in a way that cannot be understood: {reason}.\n\nThis is a bug in the \
             plugin; report it to its developers."
        ),
    )
}

/// The schemas of a list resource.
#[derive(Clone, Debug, PartialEq)]
pub struct ListSchema {
    /// The schema of the `config` block, from the provider.
    pub config: Schema,
    /// The schema of the body of a `list` block: only a nested `config` block.
    pub block: Schema,
}

impl ListSchema {
    /// Builds the schemas around a `config` block. The block is required if one of its attributes or nested blocks is.
    #[must_use]
    pub fn new(config: Schema) -> ListSchema {
        let inner = &config.block;
        let required = inner.attributes.values().any(|a| a.required) || inner.blocks.values().any(|b| b.min_items > 0);
        let nested = NestedBlock {
            block: (**inner).clone(),
            nesting: Nesting::Single,
            min_items: u64::from(required),
            max_items: 1,
        };
        let block = BlockSchema {
            blocks: BTreeMap::from([(Arc::from("config"), nested)]),
            ..BlockSchema::default()
        };
        ListSchema {
            block: Schema::new(config.version, block),
            config,
        }
    }
}

/// Optional capabilities of a provider; all false by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// The provider plans the destruction of objects, too.
    pub plan_destroy: bool,
    /// The schema may be cached across processes.
    pub schema_optional: bool,
    /// Conversion of objects of other resource types.
    pub move_resource_state: bool,
    /// Generation of the configuration of an object.
    pub generate_resource_config: bool,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct FunctionSchema {
    pub parameters: Vec<ParameterSchema>,
    /// The variadic parameter, which takes all further arguments.
    pub variadic: Option<ParameterSchema>,
    pub result: Option<Type>,
    /// A summary in one line.
    pub summary: String,
    pub description: schema::Description,
    /// Reason of the deprecation; empty if not deprecated.
    pub deprecation_message: String,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ParameterSchema {
    pub name: Arc<str>,
    /// The type of the argument.
    pub ty: Type,
    /// True if the argument may be null.
    pub allow_null: bool,
    /// True if the argument may be unknown.
    pub allow_unknown: bool,
    pub description: schema::Description,
}

/// A stored object in the form of some version of the provider.
#[derive(Clone, Debug, PartialEq)]
pub enum RawState {
    /// The text of the `attributes` object in the state file.
    Json(Arc<[u8]>),
    /// The flat map in states from before Terraform 0.12.
    Flatmap(BTreeMap<String, String>),
}

/// The plan of a provider for one object.
#[derive(Clone, Debug)]
pub struct PlannedChange {
    /// The planned object, with unknown values for results of apply.
    pub planned: Value,
    /// The paths whose change requires replacement.
    pub requires_replace: Vec<Path>,
    /// Private data of the provider, sent back to it for apply.
    pub private: Vec<u8>,
    /// The identity of the planned object as far as it is known; `None` if the object has none.
    pub identity: Option<Value>,
    /// True for a provider that is built on the legacy SDK: its answers may break the rules in small ways.
    pub legacy_type_system: bool,
}

/// The result of apply for one object.
#[derive(Clone, Debug)]
pub struct Applied {
    /// The new object; null if it was destroyed.
    pub state: Value,
    /// Private data of the provider, stored in the state.
    pub private: Vec<u8>,
    /// The identity of the object; `None` if the object has none.
    pub identity: Option<Value>,
    /// True for a provider that is built on the legacy SDK: its answers may break the rules in small ways.
    pub legacy_type_system: bool,
}

/// An object found by import.
#[derive(Clone, Debug)]
pub struct Imported {
    pub ty: Arc<str>,
    /// The object; null if an import by identity leaves it to the following read.
    pub state: Value,
    /// Private data of the provider.
    pub private: Vec<u8>,
    /// The identity of the object; `None` if the object has none.
    pub identity: Option<Value>,
}

/// An open ephemeral resource.
#[derive(Clone, Debug)]
pub struct Opened {
    pub result: Value,
    /// Private data of the provider.
    pub private: Option<Vec<u8>>,
    /// The time of the next renewal: seconds and nanoseconds since the epoch.
    pub renew_at: Option<(i64, i32)>,
}

/// The request to read a managed object.
#[derive(Clone, Debug)]
pub struct ReadRequest {
    pub current: Value,
    /// The private data in the state.
    pub private: Vec<u8>,
    /// The identity in the state.
    pub identity: Option<Value>,
    /// The value of the module's `provider_meta` block.
    pub meta: Option<Value>,
}

/// The answer to a request to read or move a managed object.
#[derive(Clone, Debug)]
pub struct ObjectRead {
    /// The object; null if it no longer exists.
    pub object: Value,
    /// Private data of the provider, stored in the state.
    pub private: Vec<u8>,
    /// The identity of the object; `None` if the object has none.
    pub identity: Option<Value>,
}

/// The request to plan the change of a managed object.
#[derive(Clone, Debug)]
pub struct PlanRequest {
    /// The object before the change; null for a creation.
    pub prior: Value,
    /// The configuration merged with the computed attributes of the prior object; null for a destruction.
    pub proposed: Value,
    /// The configuration; null for a destruction.
    pub config: Value,
    /// The private data of the prior object.
    pub prior_private: Vec<u8>,
    /// The identity of the prior object. In the second call for a replacement: the identity that the first call has returned.
    pub prior_identity: Option<Value>,
    /// The private data of the plan, if apply plans the change again.
    pub planned_private: Vec<u8>,
    /// The value of the module's `provider_meta` block.
    pub meta: Option<Value>,
}

/// The request to apply a planned change.
#[derive(Clone, Debug)]
pub struct ApplyRequest {
    /// The object before the change; null for a creation.
    pub prior: Value,
    /// The planned object; null for a destruction.
    pub planned: Value,
    /// The configuration; null for a destruction.
    pub config: Value,
    pub planned_private: Vec<u8>,
    pub planned_identity: Option<Value>,
    /// The value of the module's `provider_meta` block.
    pub meta: Option<Value>,
}

/// The request to convert an object of another resource type.
#[derive(Clone, Debug)]
pub struct MoveRequest<'r> {
    /// The address of the provider that stored the object.
    pub source_provider: &'r str,
    pub source_type: &'r str,
    pub source_version: u64,
    pub source_state: RawState,
    /// The private data of the stored object.
    pub source_private: Vec<u8>,
    /// The JSON of the stored identity and its schema version.
    pub source_identity: Option<(Arc<[u8]>, u64)>,
}

/// The selection of the object to import.
#[derive(Clone, Debug, PartialEq)]
pub enum ImportTarget {
    /// An identifier in a format of the resource type.
    Id(Arc<str>),
    Identity(Value),
}

/// The request for the existing objects of a resource type.
#[derive(Clone, Debug)]
pub struct ListRequest {
    /// The value of the `config` block, wholly known.
    pub config: Value,
    /// True if the objects are needed in addition to their identities.
    pub include_object: bool,
    /// The maximum number of objects.
    pub limit: u64,
}

/// An existing object that a provider has listed.
#[derive(Clone, Debug)]
pub struct Listed {
    /// The name for messages to users.
    pub display_name: String,
    pub identity: Value,
    /// Object; null unless it was requested and the provider has it.
    pub object: Value,
}

/// A running provider. Failure to reach the plugin is an error; problems that the plugin reports are in the answer.
///
/// Values have the implied type of the schema in question, without marks.
#[async_trait]
pub trait Provider: Send + Sync {
    /// Returns the schemas of the provider; requested once, then cached.
    async fn schema(&self) -> Result<Arc<ProviderSchema>, Diagnostics>;
    /// Checks the provider configuration.
    async fn validate_provider(&self, config: Value) -> Result<Answer<()>, Diagnostics>;
    /// Sends the configuration. Must precede all methods below other than validations and upgrades.
    async fn configure(&self, config: Value) -> Result<Answer<()>, Diagnostics>;
    /// Checks the configuration of a managed resource.
    async fn validate_resource(&self, ty: &str, config: Value) -> Result<Answer<()>, Diagnostics>;
    /// Checks the configuration of a data source.
    async fn validate_data(&self, ty: &str, config: Value) -> Result<Answer<()>, Diagnostics>;
    /// Checks the configuration of an ephemeral resource.
    async fn validate_ephemeral(&self, ty: &str, config: Value) -> Result<Answer<()>, Diagnostics>;
    /// Converts a stored object to the current schema version.
    async fn upgrade(&self, ty: &str, version: u64, state: RawState) -> Result<Answer<Value>, Diagnostics>;
    /// Converts a stored identity, as JSON, to the current schema version.
    async fn upgrade_identity(
        &self,
        ty: &str,
        version: u64,
        identity: Arc<[u8]>,
    ) -> Result<Answer<Option<Value>>, Diagnostics>;
    async fn read(&self, ty: &str, request: ReadRequest) -> Result<Answer<ObjectRead>, Diagnostics>;
    async fn plan(&self, ty: &str, request: PlanRequest) -> Result<Answer<PlannedChange>, Diagnostics>;
    /// Returns true if the provider's process has ended and requests cannot reach it.
    fn has_ended(&self) -> bool;
    /// Applies a planned change.
    async fn apply(&self, ty: &str, request: ApplyRequest) -> Result<Answer<Applied>, Diagnostics>;
    /// Finds existing objects by an identifier or an identity.
    async fn import(&self, ty: &str, target: &ImportTarget) -> Result<Answer<Vec<Imported>>, Diagnostics>;
    /// Returns the configuration of an object, with null for attributes that it can omit; needs the capability `generate_resource_config`.
    async fn generate_config(&self, ty: &str, object: Value) -> Result<Answer<Value>, Diagnostics>;
    /// Checks the `config` block of a `list` block.
    async fn validate_list(&self, ty: &str, config: Value) -> Result<Answer<()>, Diagnostics>;
    /// Lists the existing objects of a resource type.
    async fn list(&self, ty: &str, request: ListRequest) -> Result<Answer<Vec<Listed>>, Diagnostics>;
    /// Converts an object of another resource type to the target type; needs the capability `move_resource_state`.
    async fn move_state(&self, target_type: &str, request: MoveRequest<'_>) -> Result<Answer<ObjectRead>, Diagnostics>;
    /// Reads a data source.
    async fn read_data(&self, ty: &str, config: Value, meta: Option<Value>) -> Result<Answer<Value>, Diagnostics>;
    /// Opens an ephemeral resource.
    async fn open_ephemeral(&self, ty: &str, config: Value) -> Result<Answer<Opened>, Diagnostics>;
    /// Renews an open ephemeral resource.
    async fn renew_ephemeral(&self, ty: &str, private: Option<Vec<u8>>) -> Result<Answer<Opened>, Diagnostics>;
    /// Closes an open ephemeral resource.
    async fn close_ephemeral(&self, ty: &str, private: Option<Vec<u8>>) -> Result<Answer<()>, Diagnostics>;
    /// Calls a function. The inner error is the function's own and may name the argument at fault.
    async fn call_function(
        &self,
        name: &str,
        arguments: Vec<Value>,
    ) -> Result<Result<Value, FunctionError>, Diagnostics>;
    /// Returns the functions that the provider offers. After it is configured, there may be more than in its schema.
    async fn functions(&self) -> Result<SchemaMap<FunctionSchema>, Diagnostics> {
        Ok(self.schema().await?.functions.clone())
    }
    /// Returns the provider's actions; `None` if it has none, whatever its schema.
    fn actions(&self) -> Option<&dyn crate::Actions> {
        None
    }
    /// Requests a graceful stop of the provider's running operations.
    async fn stop(&self) -> Result<(), Diagnostics>;
    /// Ends the plugin. A second call has no effect.
    async fn close(&self);
}

/// The error of a function call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionError {
    pub text: String,
    /// The index of the argument at fault; `None` if the error is not about one argument.
    pub argument: Option<usize>,
}

/// A running provisioner.
#[async_trait]
pub trait Provisioner: Send + Sync {
    /// Returns the schema of the provisioner's configuration; requested once, then cached.
    async fn schema(&self) -> Result<Arc<Schema>, Diagnostics>;
    /// Checks the provisioner's configuration.
    async fn validate(&self, config: Value) -> Result<Answer<()>, Diagnostics>;
    /// Runs the provisioner. `output` receives each chunk of output as it arrives.
    async fn provision(&self, config: Value, connection: Value, output: &Output<'_>)
    -> Result<Answer<()>, Diagnostics>;
    /// Requests a graceful stop of the running provisioner.
    async fn stop(&self) -> Result<(), Diagnostics>;
    /// Ends the plugin. A second call has no effect.
    async fn close(&self);
}
