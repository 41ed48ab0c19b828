//! List resources: finding existing objects of a resource type.

use std::marker::PhantomData;

use async_trait::async_trait;
use cty::Value;
use tokio::sync::mpsc;

use crate::check::own_rules;
use crate::client::ClientCell;
use crate::context::Context;
use crate::diag::{Diagnostics, Result};
use crate::guard::guarded;
use crate::model::{Cty, Model};
use crate::schema::{Compiled, Described, LazySchema, Schema};
use crate::stop::Stop;

/// Finds the existing objects of a resource type, for the `list` blocks of queries. A list resource has the name of a resource type of the
/// same provider, which must have an [`identity`](crate::Resource::identity).
///
/// ```
/// use monoform_sdk::schema::{computed, optional, required};
/// use monoform_sdk::{
///     Attr, Context, Found, IdentityAttribute, ListResource, Members, Resource, Result, async_trait, model,
/// };
///
/// model! {
///     /// A pet.
///     pub struct Pet {
///         /// The name.
///         pub name: Attr<String> = required().requires_replace(),
///         /// The identifier.
///         pub id: Attr<String> = computed().keep(),
///     }
/// }
///
/// model! {
///     /// A choice of pets.
///     pub struct Choice {
///         /// The first letters of their names.
///         pub prefix: Attr<String> = optional(),
///     }
/// }
///
/// struct Pets;
///
/// #[async_trait]
/// impl Resource for Pets {
///     type Model = Pet;
///     type Client = ();
///
///     fn identity(&self) -> Vec<IdentityAttribute> {
///         let description = "The identifier.";
///         vec![IdentityAttribute { name: "id", required_for_import: true, description }]
///     }
///
///     async fn create(&self, plan: Pet, _cx: &mut Context<()>) -> Result<Pet> {
///         Ok(Pet { id: plan.name.clone(), ..plan })
///     }
/// }
///
/// #[async_trait]
/// impl ListResource for Pets {
///     type Config = Choice;
///     type Model = Pet;
///     type Client = ();
///
///     async fn list(&self, config: Choice, found: &mut Found<Pet>, _cx: &mut Context<()>) -> Result<()> {
///         for name in ["Bo", "Rex"].into_iter().filter(|name| name.starts_with(config.prefix.text())) {
///             if !found.push(name, Pet { name: name.into(), id: name.into() }).await {
///                 break;
///             }
///         }
///         Ok(())
///     }
/// }
///
/// fn members(members: &mut Members<()>) {
///     members.resource("zoo_pet", Pets);
///     members.list("zoo_pet", Pets);
/// }
/// # let _ = members;
/// ```
#[async_trait]
pub trait ListResource: Send + Sync + 'static {
    /// The arguments of the `config` block, declared by [`model!`](crate::model!); [`Empty`](crate::Empty) if there are none.
    type Config: Model;
    /// The objects: the model of the resource type.
    type Model: Model;
    /// The result of [`Provider::configure`](crate::Provider::configure), usually the client of a service.
    type Client: Send + Sync + 'static;

    /// Returns the schema of the `config` block. By default, it is derived from [`ListResource::Config`].
    fn schema(&self) -> Schema {
        Schema::of::<Self::Config>()
    }

    /// Checks rules that the schema's validators cannot express.
    fn validate(&self, _config: &Self::Config) -> Diagnostics {
        Diagnostics::new()
    }

    /// Finds objects, and passes each to [`Found::push`] until that returns false. Objects need only the attributes of the identity, unless
    /// [`Found::wants_objects`] returns true.
    async fn list(
        &self,
        config: Self::Config,
        found: &mut Found<Self::Model>,
        cx: &mut Context<Self::Client>,
    ) -> Result<()>;
}

/// Receiver of the objects that a list resource finds.
pub struct Found<M> {
    request: ListRequest,
    taken: u64,
    model: PhantomData<fn(M)>,
}

/// A request to list objects: its limit, the requested content, and the channel for the objects.
pub(crate) struct ListRequest {
    /// Maximum number of objects.
    pub limit: u64,
    /// True if the request is for whole objects; false if it is for their identities only.
    pub include_objects: bool,
    pub objects: mpsc::Sender<FoundObject>,
}

/// An object that a list has found, with the problems that concern it.
pub(crate) struct FoundObject {
    pub display_name: String,
    pub object: Box<dyn ToObject>,
    pub diagnostics: Diagnostics,
}

/// Model that is converted to a value when the type of the objects is known.
pub(crate) trait ToObject: Send {
    fn to_object(&self, schema: &Compiled) -> Value;
}

impl<M: Model> ToObject for M {
    fn to_object(&self, schema: &Compiled) -> Value {
        schema.without_write_only(<M as Model>::to_object(self, &schema.object))
    }
}

impl<M: Model> Found<M> {
    /// Returns the maximum number of objects.
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.request.limit
    }

    /// Returns true if the host requests whole objects, and false if it requests their identities only.
    #[must_use]
    pub fn wants_objects(&self) -> bool {
        self.request.include_objects
    }

    /// Sends an object to the host, with a display name. Returns true if more objects are requested; false when the limit is reached or the
    /// caller has disconnected.
    pub async fn push(&mut self, display_name: impl Into<String> + Send, object: M) -> bool {
        self.push_with(display_name, object, Diagnostics::new()).await
    }

    /// Passes on an object as [`Found::push`] does, with errors and warnings that concern it alone: an object that cannot be read as a
    /// whole, for example. The list goes on.
    ///
    /// ```
    /// # use monoform_sdk::{Diagnostic, Found, Model};
    /// async fn unreadable<M: Model>(found: &mut Found<M>, name: String, known: M) -> bool {
    ///     let warning = Diagnostic::warning("Object Not Readable", format!("The service denies access to \"{name}\"."));
    ///     found.push_with(name, known, warning.into()).await
    /// }
    /// # let _ = unreadable::<monoform_sdk::Empty>;
    /// ```
    pub async fn push_with(
        &mut self,
        display_name: impl Into<String> + Send,
        object: M,
        diagnostics: Diagnostics,
    ) -> bool {
        // Also holds for lists that ignored the previous return value.
        if self.taken >= self.request.limit {
            return false;
        }
        self.taken += 1;
        // A full channel makes the list wait until the host has taken objects.
        let found = FoundObject {
            display_name: display_name.into(),
            object: Box::new(object),
            diagnostics,
        };
        let sent = self.request.objects.send(found).await;
        sent.is_ok() && self.taken < self.request.limit
    }
}

/// Object-safe form of [`ListResource`]: takes values instead of the list's models.
#[async_trait]
pub(crate) trait AnyList: Described {
    fn validate(&self, config: &Value) -> Diagnostics;
    async fn list(&self, config: &Value, request: ListRequest, stop: Stop) -> Diagnostics;
}

pub(crate) struct ListEntry<L: ListResource> {
    list: L,
    schema: LazySchema,
    client: ClientCell<L::Client>,
}

impl<L: ListResource> ListEntry<L> {
    pub fn new(list: L, plain: bool, client: ClientCell<L::Client>) -> ListEntry<L> {
        ListEntry {
            list,
            schema: LazySchema::new(plain),
            client,
        }
    }
}

impl<L: ListResource> Described for ListEntry<L> {
    fn declared(&self) -> Schema {
        self.schema.declared(|| self.list.schema())
    }

    fn schema(&self) -> &Compiled {
        self.schema.get(|| self.list.schema())
    }
}

#[async_trait]
impl<L: ListResource> AnyList for ListEntry<L> {
    fn validate(&self, config: &Value) -> Diagnostics {
        own_rules(config, |model: &L::Config| self.list.validate(model))
    }

    async fn list(&self, config: &Value, request: ListRequest, stop: Stop) -> Diagnostics {
        let mut cx = Context::new(self.client.get(), stop, Vec::new());
        let mut found = Found {
            request,
            taken: 0,
            model: PhantomData,
        };
        let result = match L::Config::from_cty(config) {
            Ok(config) => guarded(self.list.list(config, &mut found, &mut cx)).await,
            Err(error) => Err(error.into()),
        };
        let mut diagnostics = cx.diagnostics;
        if let Err(errors) = result {
            diagnostics.append(errors);
        }
        diagnostics
    }
}
