//! What the engine calls on a provider and on a provisioner, whatever protocol it speaks.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use async_trait::async_trait;
use cty::{Path, Type, Value};
use schema::{BlockSchema, NestedBlock, Nesting, Schema};
use syntax::{Diagnostic, Diagnostics};

use crate::SchemaMap;

/// The schemas and capabilities of a provider.
#[derive(Clone, Debug, Default)]
pub struct ProviderSchema {
    /// Its own configuration.
    pub provider: Schema,
    /// The module-wide `provider_meta` block, if it takes one.
    pub provider_meta: Option<Schema>,
    /// Managed resource types.
    pub resources: SchemaMap<Schema>,
    pub data_sources: SchemaMap<Schema>,
    /// Ephemeral resource types.
    pub ephemeral: SchemaMap<Schema>,
    /// List resources, by the resource type whose objects are listed.
    pub lists: SchemaMap<ListSchema>,
    pub functions: SchemaMap<FunctionSchema>,
    /// Action types: the configuration that each takes.
    pub actions: SchemaMap<Schema>,
    /// State stores: the configuration that each takes.
    pub state_stores: SchemaMap<Schema>,
    /// What it can do beyond the basics.
    pub capabilities: Capabilities,
    /// Managed resource types whose objects are all in the state: a read returns the stored object, and a stored object
    /// of the current schema version is the object as it stands. Announced by plugins written against our SDK.
    pub state_only: BTreeSet<Arc<str>>,
}

impl ProviderSchema {
    /// The reason why one of the schemas cannot be used; converts all of them.
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

/// The error about a provider whose schema of a type cannot be used, for this reason.
#[must_use]
pub fn invalid_schema(provider: &str, reason: &str) -> Diagnostic {
    Diagnostic::error(
        "Invalid answer from plugin",
        format!(
            "The provider \"{provider}\" described itself in a way that cannot be understood: {reason}.\n\nThis is a bug in the \
             plugin; its developers should be told."
        ),
    )
}

/// The schemas of a list resource.
#[derive(Clone, Debug, PartialEq)]
pub struct ListSchema {
    /// That of the `config` block, which the provider describes.
    pub config: Schema,
    /// That of a `list` block: the `config` block alone.
    pub block: Schema,
}

impl ListSchema {
    /// The schemas for this `config` block. It is required if something in it is.
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

/// What a provider can do beyond the basics; all false if it does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// It wants to plan destroying, too.
    pub plan_destroy: bool,
    /// Its schema can be cached across processes.
    pub schema_optional: bool,
    /// It can take over objects of other resource types.
    pub move_resource_state: bool,
    /// It can turn an object into the configuration that describes it.
    pub generate_resource_config: bool,
}

/// A function a provider offers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FunctionSchema {
    /// The positional parameters.
    pub parameters: Vec<ParameterSchema>,
    /// What takes all further arguments.
    pub variadic: Option<ParameterSchema>,
    /// The type of the result.
    pub result: Option<Type>,
    /// A summary of one line.
    pub summary: String,
    pub description: schema::Description,
    /// Why not to use it any more.
    pub deprecation_message: String,
}

/// A parameter of a function.
#[derive(Clone, Debug, PartialEq)]
pub struct ParameterSchema {
    pub name: Arc<str>,
    /// What it takes.
    pub ty: Type,
    /// Whether null may be passed.
    pub allow_null: bool,
    /// Whether unknown values may be passed.
    pub allow_unknown: bool,
    pub description: schema::Description,
}

/// An answer and the diagnostics that came with it. With an error among them the answer holds what could be saved.
#[derive(Clone, Debug, Default)]
pub struct Answer<T> {
    /// The answer.
    pub value: T,
    /// Problems, their attribute paths not resolved to source ranges yet.
    pub diagnostics: Vec<PluginDiagnostic>,
}

/// A problem reported by a plugin.
#[derive(Clone, Debug, PartialEq)]
pub struct PluginDiagnostic {
    /// Severity and texts.
    pub diagnostic: Diagnostic,
    /// The attribute it concerns, inside the configuration of the block.
    pub attribute: Path,
}

/// The JSON of an object as some version of the provider stored it.
#[derive(Clone, Debug, PartialEq)]
pub enum RawState {
    /// The `attributes` object of the state file, as text.
    Json(Arc<[u8]>),
    /// The flat map that states from before 0.12 have.
    Flatmap(BTreeMap<String, String>),
}

/// What a provider plans for one object.
#[derive(Clone, Debug)]
pub struct PlannedChange {
    /// The object as it will be, unknown where only apply determines it.
    pub planned: Value,
    /// The paths whose change requires replacement.
    pub requires_replace: Vec<Path>,
    /// For the provider's own use, handed back at apply.
    pub private: Vec<u8>,
    /// The identity of the planned object, as far as it is known; `None` if it has none.
    pub identity: Option<Value>,
    /// The provider is built on the old SDK: its answers may break the rules in small ways.
    pub legacy_type_system: bool,
}

/// What became of one object.
#[derive(Clone, Debug)]
pub struct Applied {
    /// The object as it is now; null if there is none any more.
    pub state: Value,
    /// The provider's private data, stored in the state.
    pub private: Vec<u8>,
    /// The identity of the object; `None` if it has none.
    pub identity: Option<Value>,
    /// The provider is built on the old SDK: its answers may break the rules in small ways.
    pub legacy_type_system: bool,
}

/// An object found by import.
#[derive(Clone, Debug)]
pub struct Imported {
    /// The resource type.
    pub ty: Arc<str>,
    /// The object; null where an import by identity leaves it to the following read.
    pub state: Value,
    /// For the provider's own use.
    pub private: Vec<u8>,
    /// The identity of the object; `None` if it has none.
    pub identity: Option<Value>,
}

/// An open ephemeral resource.
#[derive(Clone, Debug)]
pub struct Opened {
    pub result: Value,
    /// For the provider's own use.
    pub private: Option<Vec<u8>>,
    /// When to renew: seconds and nanoseconds since the epoch.
    pub renew_at: Option<(i64, i32)>,
}

/// A request to read a managed object.
#[derive(Clone, Debug)]
pub struct ReadRequest {
    /// The object as it is stored.
    pub current: Value,
    /// The private data stored with it.
    pub private: Vec<u8>,
    /// The identity stored with it.
    pub identity: Option<Value>,
    /// The value of the module's `provider_meta` block.
    pub meta: Option<Value>,
}

/// The answer to a request to read a managed object, or to move one.
#[derive(Clone, Debug)]
pub struct ObjectRead {
    /// The object; null if it no longer exists.
    pub object: Value,
    /// The provider's private data, stored in the state.
    pub private: Vec<u8>,
    /// The identity of the object; `None` if it has none.
    pub identity: Option<Value>,
}

/// A request to plan the change of a managed object.
#[derive(Clone, Debug)]
pub struct PlanRequest {
    /// The object before the change; null if it is to be created.
    pub prior: Value,
    /// The configuration merged with the computed attributes of the prior object; null if the object is to be destroyed.
    pub proposed: Value,
    /// The configuration; null if the object is to be destroyed.
    pub config: Value,
    /// The private data stored with the prior object.
    pub prior_private: Vec<u8>,
    /// The identity of the prior object. In the second call for a replacement: that of the first call's answer.
    pub prior_identity: Option<Value>,
    /// Where apply has the change planned again: the private data of the plan.
    pub planned_private: Vec<u8>,
    /// The value of the module's `provider_meta` block.
    pub meta: Option<Value>,
}

/// A request to apply a planned change.
#[derive(Clone, Debug)]
pub struct ApplyRequest {
    /// The object before the change; null if it is to be created.
    pub prior: Value,
    /// The planned object; null if the object is to be destroyed.
    pub planned: Value,
    /// The configuration; null if the object is to be destroyed.
    pub config: Value,
    /// The private data of the plan.
    pub planned_private: Vec<u8>,
    pub planned_identity: Option<Value>,
    /// The value of the module's `provider_meta` block.
    pub meta: Option<Value>,
}

/// A request to convert an object of another resource type.
#[derive(Clone, Debug)]
pub struct MoveRequest<'r> {
    /// The address of the provider that stored the object.
    pub source_provider: &'r str,
    /// Its resource type.
    pub source_type: &'r str,
    /// Its schema version.
    pub source_version: u64,
    /// The stored object.
    pub source_state: RawState,
    /// The private data stored with it.
    pub source_private: Vec<u8>,
    /// The JSON of the identity stored with it, and the version of its schema.
    pub source_identity: Option<(Arc<[u8]>, u64)>,
}

/// Which object to import.
#[derive(Clone, Debug, PartialEq)]
pub enum ImportTarget {
    /// The one with this identifier, in a form that the resource type defines.
    Id(Arc<str>),
    /// The one with this identity.
    Identity(Value),
}

/// A request for the existing objects of a resource type.
#[derive(Clone, Debug)]
pub struct ListRequest {
    /// The value of the `config` block, wholly known.
    pub config: Value,
    /// Whether the objects themselves are wanted, beside their identities.
    pub include_object: bool,
    /// At most so many.
    pub limit: u64,
}

/// An existing object that a provider has listed.
#[derive(Clone, Debug)]
pub struct Listed {
    /// What to call it before a user.
    pub display_name: String,
    pub identity: Value,
    /// The object; null unless it was requested and the provider has it.
    pub object: Value,
}

/// A running provider. Failing to reach the plugin at all is an error result; problems it reports are in the answer.
///
/// Values are passed and returned in the implied type of the schema in question. Marks must be removed before.
#[async_trait]
pub trait Provider: Send + Sync {
    /// The schemas of the provider; requested once, then cached.
    async fn schema(&self) -> Result<Arc<ProviderSchema>, Diagnostics>;
    /// Checks the provider's own configuration.
    async fn validate_provider(&self, config: Value) -> Result<Answer<()>, Diagnostics>;
    /// Hands over the configuration. Must come before anything below but the validations and upgrades.
    async fn configure(&self, config: Value) -> Result<Answer<()>, Diagnostics>;
    /// Checks the configuration of a managed resource.
    async fn validate_resource(&self, ty: &str, config: Value) -> Result<Answer<()>, Diagnostics>;
    /// Checks the configuration of a data source.
    async fn validate_data(&self, ty: &str, config: Value) -> Result<Answer<()>, Diagnostics>;
    /// Checks the configuration of an ephemeral resource.
    async fn validate_ephemeral(&self, ty: &str, config: Value) -> Result<Answer<()>, Diagnostics>;
    /// Brings a stored object to the current schema version.
    async fn upgrade(&self, ty: &str, version: u64, state: RawState) -> Result<Answer<Value>, Diagnostics>;
    /// Brings a stored identity, as JSON, to the current version of its schema.
    async fn upgrade_identity(
        &self,
        ty: &str,
        version: u64,
        identity: Arc<[u8]>,
    ) -> Result<Answer<Option<Value>>, Diagnostics>;
    /// Reads a managed object.
    async fn read(&self, ty: &str, request: ReadRequest) -> Result<Answer<ObjectRead>, Diagnostics>;
    /// Plans a change of a managed object.
    async fn plan(&self, ty: &str, request: PlanRequest) -> Result<Answer<PlannedChange>, Diagnostics>;
    /// Returns true if the provider's process has ended, so that a request does not reach it any more.
    fn has_ended(&self) -> bool {
        false
    }
    /// Carries out a planned change.
    async fn apply(&self, ty: &str, request: ApplyRequest) -> Result<Answer<Applied>, Diagnostics>;
    /// Finds existing objects by an identifier or an identity.
    async fn import(&self, ty: &str, target: &ImportTarget) -> Result<Answer<Vec<Imported>>, Diagnostics>;
    /// The configuration that describes an object, with null for what it need not say; needs the capability.
    async fn generate_config(&self, ty: &str, object: Value) -> Result<Answer<Value>, Diagnostics>;
    /// Checks the `config` block of a `list` block.
    async fn validate_list(&self, ty: &str, config: Value) -> Result<Answer<()>, Diagnostics>;
    /// Lists the existing objects of a resource type.
    async fn list(&self, ty: &str, request: ListRequest) -> Result<Answer<Vec<Listed>>, Diagnostics>;
    /// Converts an object of another resource type to the target type; needs the capability.
    async fn move_state(&self, target_type: &str, request: MoveRequest<'_>) -> Result<Answer<ObjectRead>, Diagnostics>;
    /// Reads a data source.
    async fn read_data(&self, ty: &str, config: Value, meta: Option<Value>) -> Result<Answer<Value>, Diagnostics>;
    /// Opens an ephemeral resource.
    async fn open_ephemeral(&self, ty: &str, config: Value) -> Result<Answer<Opened>, Diagnostics>;
    /// Renews an open ephemeral resource.
    async fn renew_ephemeral(&self, ty: &str, private: Option<Vec<u8>>) -> Result<Answer<Opened>, Diagnostics>;
    /// Closes an open ephemeral resource.
    async fn close_ephemeral(&self, ty: &str, private: Option<Vec<u8>>) -> Result<Answer<()>, Diagnostics>;
    /// Calls a function; the error is the function's own and may name the argument at fault.
    async fn call_function(
        &self,
        name: &str,
        arguments: Vec<Value>,
    ) -> Result<Result<Value, FunctionError>, Diagnostics>;
    /// Its actions; `None` if it has none, whatever its schema.
    fn actions(&self) -> Option<&dyn crate::Actions> {
        None
    }
    /// Requests a graceful stop of the provider's running operations.
    async fn stop(&self) -> Result<(), Diagnostics>;
    /// Ends the plugin. Does nothing the second time.
    async fn close(&self);
}

/// A function's own error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionError {
    /// What is wrong.
    pub text: String,
    /// The argument at fault, from 0.
    pub argument: Option<usize>,
}

/// What takes a provisioner's output, piece by piece. (A name, because `async_trait` would give the `&str` one fixed
/// lifetime if the type were written out in a method.)
pub type Output<'a> = dyn Fn(&str) + Send + Sync + 'a;

/// A running provisioner.
#[async_trait]
pub trait Provisioner: Send + Sync {
    /// The schema of its configuration; requested once, then cached.
    async fn schema(&self) -> Result<Arc<Schema>, Diagnostics>;
    /// Checks its configuration.
    async fn validate(&self, config: Value) -> Result<Answer<()>, Diagnostics>;
    /// Runs it; every chunk of its output is sent to `output` as it arrives.
    async fn provision(&self, config: Value, connection: Value, output: &Output<'_>)
    -> Result<Answer<()>, Diagnostics>;
    /// Requests a graceful stop of the running provisioner.
    async fn stop(&self) -> Result<(), Diagnostics>;
    /// Ends the plugin. Does nothing the second time.
    async fn close(&self);
}
