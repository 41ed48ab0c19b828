//! Managed resources: the trait that an author implements, and its calls by the server.

use async_trait::async_trait;
use cty::json::Json;
use cty::{Type, Value};

use crate::calls::CallOptions;
use crate::check::own_rules;
use crate::client::ClientCell;
use crate::context::Context;
use crate::deferral::Deferral;
use crate::diag::{Diagnostic, Diagnostics, Result};
use crate::guard::guarded;
pub use crate::identity::IdentityAttribute;
use crate::model::{Cty, Model};
use crate::plan::{Plan, Planned};
use crate::record::Record;
use crate::schema::{Compiled, Described, LazySchema, Schema};
use crate::state;
pub use crate::upgrade::{MoveSource, Upgrader};
use crate::wire::Wire;

/// A type of managed resource.
///
/// Only `create` must be implemented, which is enough for an object that exists in the state alone: by default, `read` returns it
/// unchanged, `update` returns the plan, and `delete` does nothing.
///
/// ```
/// use std::collections::BTreeMap;
/// use std::sync::Mutex;
///
/// use monoform_sdk::schema::{computed, required};
/// use monoform_sdk::{Attr, Context, Diagnostic, Resource, Result, async_trait, model};
///
/// /// The client of a service: here, the service itself.
/// pub type Notes = Mutex<BTreeMap<String, String>>;
///
/// model! {
///     /// A note.
///     pub struct Note {
///         /// The text.
///         pub text: Attr<String> = required(),
///         /// The identifier.
///         pub id: Attr<String> = computed().keep(),
///     }
/// }
///
/// struct NoteType;
///
/// #[async_trait]
/// impl Resource for NoteType {
///     type Model = Note;
///     type Client = Notes;
///
///     async fn create(&self, plan: Note, cx: &mut Context<Notes>) -> Result<Note> {
///         let client = cx.client()?;
///         let mut notes = client.lock().map_err(|_| Diagnostic::error("Service Failed", "Try again."))?;
///         let id = notes.len().to_string();
///         notes.insert(id.clone(), plan.text.text().to_owned());
///         Ok(Note { id: id.into(), ..plan })
///     }
///
///     async fn read(&self, state: Note, cx: &mut Context<Notes>) -> Result<Option<Note>> {
///         let client = cx.client()?;
///         let notes = client.lock().map_err(|_| Diagnostic::error("Service Failed", "Try again."))?;
///         // `None` means that the object is gone: the next plan creates it again.
///         let text = notes.get(state.id.text()).cloned();
///         Ok(text.map(|text| Note { text: text.into(), ..state }))
///     }
///
///     async fn import(&self, id: &str, _cx: &mut Context<Notes>) -> Result<Note> {
///         // What is missing is read next.
///         Ok(Note { id: id.into(), ..Note::default() })
///     }
/// }
/// # let _ = NoteType;
/// ```
#[async_trait]
pub trait Resource: Send + Sync + 'static {
    /// The object's attributes, declared by [`model!`](crate::model!).
    type Model: Model;
    /// The result of [`Provider::configure`](crate::Provider::configure), usually the client of a service.
    type Client: Send + Sync + 'static;

    /// Returns the schema. By default, it is derived from [`Resource::Model`].
    fn schema(&self) -> Schema {
        Schema::of::<Self::Model>()
    }

    /// Returns the attributes that together identify the object, independently of its state.
    fn identity(&self) -> Vec<IdentityAttribute> {
        Vec::new()
    }

    /// Version of the attributes in [`Resource::identity`], raised when they change.
    const IDENTITY_VERSION: i64 = 0;

    /// Upgrades a stored identity of an earlier version to [`Resource::IDENTITY_VERSION`]. The argument and the result are JSON objects of
    /// the identity's attributes.
    ///
    /// # Errors
    /// The version is not supported.
    fn upgrade_identity(&self, version: i64, _identity: Json) -> Result<Json> {
        Err(Diagnostic::error(
            "Unable to Upgrade Resource Identity",
            format!(
                "The identity in the state has version {version}, and this provider cannot upgrade it to its version, {}. Use \
                 another version of the provider.",
                Self::IDENTITY_VERSION
            ),
        )
        .into())
    }

    /// Returns the upgraders of states with earlier schema versions.
    fn upgraders(&self) -> Vec<Upgrader<Self::Model>> {
        Vec::new()
    }

    /// True if [`Resource::plan_destroy`] is implemented; the SDK calls it only then.
    const PLANS_DESTROY: bool = false;

    /// True if the object exists in the state alone: [`Resource::read`] would always return its argument, and a state of the current schema
    /// version needs no refresh. The SDK reports this to the host in gRPC metadata, which is not part of the protocol. A host that knows
    /// the metadata can skip the call.
    const STATE_ONLY: bool = false;

    /// True if [`Resource::generate_config`] is implemented. The protocol has this flag for a whole provider only: if one resource sets it,
    /// the host calls the method for all resources.
    const GENERATES_CONFIG: bool = false;

    /// True if answers include the identity of the object. False is for compatibility with official providers that declare an identity in
    /// the schema but store none in the state.
    const ANSWERS_IDENTITY: bool = true;

    /// True for the leniency that hosts have for resources of the old Go SDK (`legacy_type_system` in the protocol): plans may deviate from
    /// the configuration, and results from the plan. Use it only if a provider written with the old SDK has fixed the schema.
    const LENIENT: bool = false;

    /// Checks rules that the schema's validators cannot express.
    fn validate(&self, _config: &Self::Model) -> Diagnostics {
        Diagnostics::new()
    }

    /// Adjusts the plan for creating or updating the object, as the last step of planning.
    async fn plan(&self, _plan: &mut Plan<'_, Self::Model>, _cx: &mut Context<Self::Client>) -> Result<()> {
        Ok(())
    }

    /// Checks a plan to destroy the object.
    async fn plan_destroy(&self, _state: Self::Model, _cx: &mut Context<Self::Client>) -> Result<()> {
        Ok(())
    }

    /// Creates the object. Every attribute that is unknown in the plan must be known in the result.
    async fn create(&self, plan: Self::Model, cx: &mut Context<Self::Client>) -> Result<Self::Model>;

    /// Reads the current attributes of the object, for a refresh; `None` if the object no longer exists.
    async fn read(&self, state: Self::Model, _cx: &mut Context<Self::Client>) -> Result<Option<Self::Model>> {
        Ok(Some(state))
    }

    /// Updates the object to the planned attributes, and returns the result.
    async fn update(
        &self,
        _prior: Self::Model,
        plan: Self::Model,
        _cx: &mut Context<Self::Client>,
    ) -> Result<Self::Model> {
        Ok(plan)
    }

    /// Destroys the object with this state.
    async fn delete(&self, _state: Self::Model, _cx: &mut Context<Self::Client>) -> Result<()> {
        Ok(())
    }

    /// Finds an existing object for an import by identity. The argument has the identity that the user set, in the attributes of
    /// [`Resource::identity`]; all others are null. By default, an identity of one attribute is passed on to [`Resource::import`] as text.
    async fn import_identity(&self, identity: Self::Model, cx: &mut Context<Self::Client>) -> Result<Self::Model> {
        let attributes = self.identity();
        let [attribute] = attributes.as_slice() else {
            return Err(Diagnostic::error(
                "Import by Identity Not Supported",
                "This resource is imported by an id only: write `id` in the import block, in place of `identity`.",
            )
            .into());
        };
        let value = identity.field(attribute.name);
        // `import` takes text, so an identity is converted if it has a single attribute.
        let text = value.as_ref().and_then(|value| match value.ty() {
            Type::Number => value.as_number().map(ToString::to_string),
            Type::Bool => value.as_bool().map(|b| b.to_string()),
            _ => value.as_str().map(ToOwned::to_owned),
        });
        match text {
            Some(text) => self.import(&text, cx).await,
            None => Err(Diagnostic::error(
                "Incomplete import identity",
                format!(
                    "The identity does not say which object to import: give its attribute \"{}\" a value.",
                    attribute.name
                ),
            )
            .into()),
        }
    }

    /// Finds an existing object by the import ID that a user set.
    async fn import(&self, _id: &str, _cx: &mut Context<Self::Client>) -> Result<Self::Model> {
        Err(Diagnostic::error(
            "Resource Import Not Implemented",
            "This resource does not support import: create it anew, or keep it where it is managed now.",
        )
        .into())
    }

    /// Returns the configuration for an imported object that has none yet. The SDK then removes the attributes that a configuration cannot
    /// set. Attributes that a configuration need not set may be made null here.
    async fn generate_config(&self, state: Self::Model, _cx: &mut Context<Self::Client>) -> Result<Self::Model> {
        Ok(state)
    }

    /// Converts the state of a resource of another type; `None` if the type of the source is not supported.
    async fn move_from(&self, _source: MoveSource, _cx: &mut Context<Self::Client>) -> Result<Option<Self::Model>> {
        Ok(None)
    }
}

/// The result of an operation on a resource, as values.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub state: Option<Value>,
    pub private: Vec<u8>,
    pub deferred: Option<Deferral>,
    pub diagnostics: Diagnostics,
}

/// Object-safe form of [`Resource`]: takes values instead of the resource's models.
#[async_trait]
pub(crate) trait AnyResource: Described {
    fn identity(&self) -> &[IdentityAttribute];
    fn identity_version(&self) -> i64;
    fn upgrade_identity(&self, version: i64, identity: Json) -> Result<Json>;
    fn plans_destroy(&self) -> bool;
    fn state_only(&self) -> bool;
    fn is_lenient(&self) -> bool;
    fn generates_config(&self) -> bool;
    fn answers_identity(&self) -> bool;
    /// Returns the errors in the declaration of the upgraders to the version `current`, such as a missing version.
    fn upgrade_problems(&self, current: i64) -> Vec<String>;
    fn validate(&self, config: &Value) -> Diagnostics;
    fn upgrade(&self, version: i64, state: &Json) -> Result<Value>;
    async fn plan(
        &self,
        config: &Value,
        prior: Option<&Value>,
        planned: &mut Planned,
        private: Vec<u8>,
        options: CallOptions,
    ) -> (Vec<u8>, Option<Deferral>);
    async fn plan_destroy(&self, state: &Value, private: Vec<u8>, options: CallOptions) -> Answer;
    async fn create(&self, planned: &Value, config: Wire, private: Vec<u8>, options: CallOptions) -> Answer;
    async fn read(&self, state: &Value, private: Vec<u8>, options: CallOptions) -> Answer;
    async fn update(
        &self,
        prior: &Value,
        planned: &Value,
        config: Wire,
        private: Vec<u8>,
        options: CallOptions,
    ) -> Answer;
    async fn delete(&self, state: &Value, private: Vec<u8>, options: CallOptions) -> Answer;
    async fn import(&self, id: &str, options: CallOptions) -> Answer;
    async fn import_identity(&self, identity: &Value, options: CallOptions) -> Answer;
    async fn move_from(&self, source: MoveSource, private: Vec<u8>, options: CallOptions) -> Answer;
    async fn generate_config(&self, state: &Value, options: CallOptions) -> Answer;
}

pub(crate) struct Entry<R: Resource> {
    resource: R,
    schema: LazySchema,
    identity: Vec<IdentityAttribute>,
    upgraders: Vec<Upgrader<R::Model>>,
    client: ClientCell<R::Client>,
}

impl<R: Resource> Entry<R> {
    pub fn new(resource: R, plain: bool, client: ClientCell<R::Client>) -> Entry<R> {
        Entry {
            schema: LazySchema::new(plain),
            identity: resource.identity(),
            upgraders: resource.upgraders(),
            resource,
            client,
        }
    }

    fn context(&self, private: Vec<u8>, options: CallOptions) -> Context<R::Client> {
        Context::new(self.client.get(), options, private)
    }

    /// Combines the result of an operation with the data of its context. An object that the operation saved is used after an error or a
    /// panic. After success, a value that means the same as in `before`, the planned or stored object, is replaced by the value there.
    fn answer(&self, result: Result<Option<R::Model>>, before: Option<&Value>, mut cx: Context<R::Client>) -> Answer {
        let saved = cx.take_saved();
        let mut diagnostics = cx.diagnostics;
        let state = match result {
            // Write-only values are removed: models often return the plan as it is, and the host rejects states with such values.
            Ok(model) => model.map(|m| {
                let object = self.schema().without_write_only(m.to_object(&self.schema().object));
                match before {
                    Some(before) => self.schema().settled(before, object),
                    None => object,
                }
            }),
            Err(errors) => {
                diagnostics.append(errors);
                saved.map(|saved| {
                    let object = Record::new(
                        saved
                            .entries()
                            .into_iter()
                            .flatten()
                            .map(|(n, v)| (n.clone(), v.clone())),
                    );
                    self.schema()
                        .without_write_only(object.to_object(&self.schema().object))
                })
            }
        };
        Answer {
            state,
            private: cx.private,
            deferred: cx.deferred,
            diagnostics,
        }
    }
}

impl<R: Resource> Described for Entry<R> {
    fn declared(&self) -> Schema {
        self.schema.declared(|| self.resource.schema())
    }

    fn schema(&self) -> &Compiled {
        self.schema.get(|| self.resource.schema())
    }
}

#[async_trait]
impl<R: Resource> AnyResource for Entry<R> {
    fn identity(&self) -> &[IdentityAttribute] {
        &self.identity
    }

    fn identity_version(&self) -> i64 {
        R::IDENTITY_VERSION
    }

    fn upgrade_identity(&self, version: i64, identity: Json) -> Result<Json> {
        self.resource.upgrade_identity(version, identity)
    }

    fn plans_destroy(&self) -> bool {
        R::PLANS_DESTROY
    }

    fn state_only(&self) -> bool {
        R::STATE_ONLY
    }

    fn is_lenient(&self) -> bool {
        R::LENIENT
    }

    fn generates_config(&self) -> bool {
        R::GENERATES_CONFIG
    }

    fn answers_identity(&self) -> bool {
        R::ANSWERS_IDENTITY
    }

    fn upgrade_problems(&self, current: i64) -> Vec<String> {
        let mut found = Vec::new();
        for (i, upgrader) in self.upgraders.iter().enumerate() {
            let from = upgrader.from;
            if !(0..current).contains(&from) {
                found.push(format!(
                    "there is an upgrader from version {from}, but the schema has version {current}"
                ));
            }
            if self.upgraders[..i].iter().any(|u| u.from == from) {
                found.push(format!("there is more than one upgrader from version {from}"));
            }
        }
        found
    }

    fn validate(&self, config: &Value) -> Diagnostics {
        own_rules(config, |model: &R::Model| self.resource.validate(model))
    }

    fn upgrade(&self, version: i64, json: &Json) -> Result<Value> {
        let current = self.schema().version;
        // A state of this version may still lack attributes that a later release has added.
        if version == current {
            return state::read_object(json, self.schema());
        }
        match self.upgraders.iter().find(|u| u.from == version) {
            Some(upgrader) => Ok((upgrader.run)(json)?.to_object(&self.schema().object)),
            None => Err(Diagnostic::error(
                "Unable to Upgrade Resource State",
                format!(
                    "The state has schema version {version}, and this provider cannot upgrade it to its version, \
                     {current}. Use another version of the provider."
                ),
            )
            .into()),
        }
    }

    async fn plan(
        &self,
        config: &Value,
        prior: Option<&Value>,
        planned: &mut Planned,
        private: Vec<u8>,
        options: CallOptions,
    ) -> (Vec<u8>, Option<Deferral>) {
        let mut cx = self.context(private, options);
        let mut plan = Plan {
            schema: self.schema(),
            config,
            prior,
            planned,
            model: std::marker::PhantomData,
        };
        let result = guarded(self.resource.plan(&mut plan, &mut cx)).await;
        planned.diagnostics.append(cx.diagnostics);
        if let Err(errors) = result {
            planned.diagnostics.append(errors);
        }
        (cx.private, cx.deferred)
    }

    async fn plan_destroy(&self, state: &Value, private: Vec<u8>, options: CallOptions) -> Answer {
        let mut cx = self.context(private, options);
        let result = match R::Model::from_cty(state) {
            Ok(state) => guarded(self.resource.plan_destroy(state, &mut cx)).await.map(|()| None),
            Err(error) => Err(error.into()),
        };
        self.answer(result, None, cx)
    }

    async fn create(&self, planned: &Value, config: Wire, private: Vec<u8>, options: CallOptions) -> Answer {
        let mut cx = self.context(private, options);
        // Only the configuration has write-only values, so operations can read it from the context.
        cx.config = Some((config, self.schema().ty.clone()));
        let result = match R::Model::from_cty(planned) {
            Ok(plan) => guarded(self.resource.create(plan, &mut cx)).await.map(Some),
            Err(error) => Err(error.into()),
        };
        self.answer(result, Some(planned), cx)
    }

    async fn read(&self, state: &Value, private: Vec<u8>, options: CallOptions) -> Answer {
        let mut cx = self.context(private, options);
        let result = match R::Model::from_cty(state) {
            Ok(state) => guarded(self.resource.read(state, &mut cx)).await,
            Err(error) => Err(error.into()),
        };
        let failed = result.is_err();
        let mut answer = self.answer(result, Some(state), cx);
        // A refresh that failed must not lose the object.
        if failed && answer.state.is_none() {
            answer.state = Some(state.clone());
        }
        answer
    }

    async fn update(
        &self,
        prior: &Value,
        planned: &Value,
        config: Wire,
        private: Vec<u8>,
        options: CallOptions,
    ) -> Answer {
        let mut cx = self.context(private, options);
        cx.config = Some((config, self.schema().ty.clone()));
        let result = match (R::Model::from_cty(prior), R::Model::from_cty(planned)) {
            (Ok(prior), Ok(plan)) => guarded(self.resource.update(prior, plan, &mut cx)).await.map(Some),
            (Err(error), _) | (_, Err(error)) => Err(error.into()),
        };
        let failed = result.is_err();
        let mut answer = self.answer(result, Some(planned), cx);
        // Nothing was saved, so the object counts as unchanged.
        if failed && answer.state.is_none() {
            answer.state = Some(prior.clone());
        }
        answer
    }

    async fn delete(&self, state: &Value, private: Vec<u8>, options: CallOptions) -> Answer {
        let mut cx = self.context(private, options);
        let result = match R::Model::from_cty(state) {
            Ok(state) => guarded(self.resource.delete(state, &mut cx)).await.map(|()| None),
            Err(error) => Err(error.into()),
        };
        let failed = result.is_err();
        let mut answer = self.answer(result, None, cx);
        if failed {
            // An object that could not be destroyed still exists.
            answer.state.get_or_insert_with(|| state.clone());
        }
        answer
    }

    async fn import(&self, id: &str, options: CallOptions) -> Answer {
        let mut cx = self.context(Vec::new(), options);
        let result = guarded(self.resource.import(id, &mut cx)).await.map(Some);
        self.answer(result, None, cx)
    }

    async fn import_identity(&self, identity: &Value, options: CallOptions) -> Answer {
        let mut cx = self.context(Vec::new(), options);
        let given = self
            .identity
            .iter()
            .filter_map(|a| Some((a.name, identity.get(a.name)?.clone())));
        let result = match R::Model::from_cty(&self.schema().object_with(&given.collect())) {
            Ok(identity) => guarded(self.resource.import_identity(identity, &mut cx))
                .await
                .map(Some),
            Err(error) => Err(error.of_configuration()),
        };
        self.answer(result, None, cx)
    }

    async fn generate_config(&self, state: &Value, options: CallOptions) -> Answer {
        let mut cx = self.context(Vec::new(), options);
        let result = match R::Model::from_cty(state) {
            Ok(state) => guarded(self.resource.generate_config(state, &mut cx)).await.map(Some),
            Err(error) => Err(error.into()),
        };
        self.answer(result, None, cx)
    }

    async fn move_from(&self, source: MoveSource, private: Vec<u8>, options: CallOptions) -> Answer {
        let mut cx = self.context(private, options);
        let (provider, type_name) = (source.provider.clone(), source.type_name.clone());
        let result = match guarded(self.resource.move_from(source, &mut cx)).await {
            Ok(None) => Err(Diagnostic::error(
                "Unable to Move Resource State",
                format!(
                    "This resource cannot take over the state of {type_name} of the provider {provider}. Move within one \
                     resource type, or destroy the old object and create a new one."
                ),
            )
            .into()),
            other => other,
        };
        self.answer(result, None, cx)
    }
}
