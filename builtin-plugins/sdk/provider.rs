//! Providers: the trait that an author implements, and the table of a provider's members.

use std::collections::BTreeMap;

use async_trait::async_trait;
use cty::Value;

use crate::action::{Action, ActionEntry, AnyAction};
use crate::check::own_rules;
use crate::client::ClientCell;
use crate::configure::ConfigureContext;
use crate::data::{AnyDataSource, AnyEphemeral, DataEntry, DataSource, EphemeralEntry, EphemeralResource};
use crate::diag::{Diagnostic, Diagnostics, Result};
use crate::function::Function;
use crate::list::{AnyList, ListEntry, ListResource};
use crate::model::{Cty, Empty, Model};
use crate::resource::{AnyResource, Entry, Resource};
use crate::schema::{Compiled, Described, LazySchema, Schema};
use crate::state_store::{AnyStateStore, StateStore};

/// A provider: its configuration, its client, and the table of its members.
#[async_trait]
pub trait Provider: Send + Sync + 'static {
    /// The provider's configuration, declared by [`model!`](crate::model!); [`Empty`] if there is
    /// none.
    type Config: Model;
    /// The result of [`Provider::configure`], which all members of the provider can use: usually the client of a service.
    type Client: Send + Sync + 'static;

    /// Returns the schema of the configuration. By default, it is derived from [`Provider::Config`].
    fn schema(&self) -> Schema {
        Schema::of::<Self::Config>()
    }

    /// Returns the schema of the `provider_meta` blocks that modules may have for this provider (`terraform { provider_meta "NAME" {…} }`).
    /// Without a schema, modules cannot have such blocks. Resources get the values from
    /// [`Context::provider_meta`](crate::Context::provider_meta).
    fn meta_schema(&self) -> Option<Schema> {
        None
    }

    /// True if code of this provider may block its thread outside of [`blocking`](crate::blocking): by reading files, by a blocking client,
    /// or by long computations. Each call then runs on a thread of its own, so that a blocked call does not hold up the others. A provider
    /// that never blocks can set this to false, which makes calls a little cheaper.
    const BLOCKS: bool = true;

    /// Adds all members of the provider to a table.
    fn members(&self, members: &mut Members<Self::Client>);

    /// Checks rules that the schema's validators cannot express.
    fn validate(&self, _config: &Self::Config) -> Diagnostics {
        Diagnostics::new()
    }

    /// Creates the client from the configuration. An author implements either this or [`Provider::configure_with`].
    async fn configure(&self, _config: Self::Config, _terraform_version: &str) -> Result<Self::Client> {
        Err(Diagnostic::error(
            "Provider not configured",
            "This provider has neither `configure` nor `configure_with`. This is a bug in the plugin.",
        )
        .into())
    }

    /// Creates the client from the configuration. Unlike [`Provider::configure`], this method can add warnings, observe the stop signal,
    /// and defer all resources while the configuration is unknown:
    ///
    /// ```
    /// use monoform_sdk::schema::required;
    /// use monoform_sdk::{Attr, ConfigureContext, Deferral, Members, Provider, Result, async_trait, model};
    ///
    /// model! {
    ///     pub struct Config {
    ///         pub endpoint: Attr<String> = required(),
    ///     }
    /// }
    ///
    /// struct Cloud;
    ///
    /// #[async_trait]
    /// impl Provider for Cloud {
    ///     type Config = Config;
    ///     type Client = String;
    ///
    ///     fn members(&self, _members: &mut Members<String>) {}
    ///
    ///     async fn configure_with(&self, config: Config, cx: &mut ConfigureContext) -> Result<String> {
    ///         if config.endpoint.is_unknown() {
    ///             return Err(cx.defer(Deferral::ProviderConfigUnknown));
    ///         }
    ///         if config.endpoint.text().starts_with("http:") {
    ///             cx.warn("Unencrypted Endpoint", "Everybody on the way can read along.");
    ///         }
    ///         Ok(config.endpoint.text().to_owned())
    ///     }
    /// }
    /// # let _ = Cloud;
    /// ```
    async fn configure_with(&self, config: Self::Config, cx: &mut ConfigureContext) -> Result<Self::Client> {
        self.configure(config, &cx.terraform_version).await
    }
}

/// A provider without configuration, which has only members.
///
/// ```
/// use monoform_sdk::{Function, Parameter, Plain, Provider};
///
/// pub fn provider() -> impl Provider {
///     Plain(|members| {
///         let text = vec![Parameter::new::<String>("text", "Any text.")];
///         members.function("length", Function::new("A length.", "Returns the number of characters.", text, |arguments| {
///             Ok(arguments.get::<String>(0)?.len() as i64)
///         }));
///     })
/// }
/// # let _ = provider();
/// ```
pub struct Plain(pub fn(&mut Members<()>));

#[async_trait]
impl Provider for Plain {
    type Config = Empty;
    type Client = ();

    fn members(&self, members: &mut Members<()>) {
        (self.0)(members);
    }

    async fn configure(&self, _config: Empty, _terraform_version: &str) -> Result<()> {
        Ok(())
    }
}

/// A provider whose code never blocks its thread: see [`Provider::BLOCKS`].
pub struct NeverBlocks<P: Provider>(pub P);

#[async_trait]
impl<P: Provider> Provider for NeverBlocks<P> {
    type Config = P::Config;
    type Client = P::Client;
    const BLOCKS: bool = false;

    fn schema(&self) -> Schema {
        self.0.schema()
    }

    fn meta_schema(&self) -> Option<Schema> {
        self.0.meta_schema()
    }

    fn members(&self, members: &mut Members<P::Client>) {
        self.0.members(members);
    }

    fn validate(&self, config: &P::Config) -> Diagnostics {
        self.0.validate(config)
    }

    async fn configure_with(&self, config: P::Config, cx: &mut ConfigureContext) -> Result<P::Client> {
        self.0.configure_with(config, cx).await
    }
}

/// Two providers combined into one, which has the members of both. Both have the same type of configuration, and each is configured with
/// it.
///
/// A large provider can thereby be split into crates, each with a client of its own; see [`Both::new`].
pub struct Both<A: Provider, B: Provider> {
    one: (A, ClientCell<A::Client>),
    other: (B, ClientCell<B::Client>),
}

impl<A: Provider, B: Provider<Config = A::Config>> Both<A, B> {
    /// Combines two providers; a third is added by `Both::new(Both::new(a, b), c)`. The schemas of the configuration and of
    /// `provider_meta` blocks are those of the first.
    pub fn new(one: A, other: B) -> Both<A, B> {
        Both {
            one: (one, ClientCell::new()),
            other: (other, ClientCell::new()),
        }
    }
}

#[async_trait]
impl<A: Provider, B: Provider<Config = A::Config>> Provider for Both<A, B> {
    type Config = A::Config;
    type Client = ();
    const BLOCKS: bool = A::BLOCKS || B::BLOCKS;

    fn schema(&self) -> Schema {
        self.one.0.schema()
    }

    fn meta_schema(&self) -> Option<Schema> {
        self.one.0.meta_schema()
    }

    fn members(&self, members: &mut Members<()>) {
        members.include(&self.one.0, &self.one.1);
        members.include(&self.other.0, &self.other.1);
    }

    fn validate(&self, config: &A::Config) -> Diagnostics {
        let mut found = self.one.0.validate(config);
        found.append(self.other.0.validate(config));
        found
    }

    async fn configure_with(&self, config: A::Config, cx: &mut ConfigureContext) -> Result<()> {
        // One after the other: if the first fails, the second is not configured, so the same errors are not reported twice.
        let client = self.one.0.configure_with(config.clone(), cx).await?;
        self.one.1.set(client);
        let client = self.other.0.configure_with(config, cx).await?;
        self.other.1.set(client);
        Ok(())
    }
}

/// Object-safe form of [`Provider`]: takes values instead of the provider's models.
#[async_trait]
pub(crate) trait AnyProvider: Described {
    fn meta_schema(&self) -> Option<Schema>;
    fn validate(&self, config: &Value) -> Diagnostics;
    async fn configure(&self, config: &Value, cx: &mut ConfigureContext) -> Result<()>;
}

/// A provider, with the schema of its configuration and the cell of its client.
pub(crate) struct ProviderEntry<P: Provider> {
    provider: P,
    schema: LazySchema,
    client: ClientCell<P::Client>,
}

impl<P: Provider> ProviderEntry<P> {
    pub fn new(provider: P, client: ClientCell<P::Client>) -> ProviderEntry<P> {
        ProviderEntry {
            provider,
            schema: LazySchema::default(),
            client,
        }
    }
}

impl<P: Provider> Described for ProviderEntry<P> {
    fn declared(&self) -> Schema {
        self.provider.schema()
    }

    fn schema(&self) -> &Compiled {
        self.schema.get(|| self.provider.schema())
    }
}

#[async_trait]
impl<P: Provider> AnyProvider for ProviderEntry<P> {
    fn meta_schema(&self) -> Option<Schema> {
        self.provider.meta_schema()
    }

    fn validate(&self, config: &Value) -> Diagnostics {
        own_rules(config, |model: &P::Config| self.provider.validate(model))
    }

    async fn configure(&self, config: &Value, cx: &mut ConfigureContext) -> Result<()> {
        // A host may send null if there is no provider block.
        let config = if config.is_null() {
            P::Config::default()
        } else {
            P::Config::from_cty(config)?
        };
        match self.provider.configure_with(config, cx).await {
            Ok(client) => self.client.set(client),
            // A deferral has no client, and is no error.
            Err(found) if cx.deferred.is_some() && !found.has_errors() => cx.diagnostics.append(found),
            Err(errors) => return Err(errors),
        }
        Ok(())
    }
}

/// Table of a provider's members, by type name or function name.
///
/// ```
/// use monoform_sdk::schema::{computed, required};
/// use monoform_sdk::{Attr, Context, Empty, Members, Provider, Resource, Result, async_trait, model};
///
/// /// The client of a service.
/// pub struct Service;
///
/// model! {
///     pub struct Pet {
///         pub name: Attr<String> = required(),
///         pub id: Attr<String> = computed().keep(),
///     }
/// }
///
/// struct Pets;
///
/// #[async_trait]
/// impl Resource for Pets {
///     type Model = Pet;
///     type Client = Service;
///
///     async fn create(&self, plan: Pet, cx: &mut Context<Service>) -> Result<Pet> {
///         let _service = cx.client()?;
///         Ok(Pet { id: plan.name.clone(), ..plan })
///     }
/// }
///
/// struct Zoo;
///
/// #[async_trait]
/// impl Provider for Zoo {
///     type Config = Empty;
///     type Client = Service;
///
///     fn members(&self, members: &mut Members<Service>) {
///         members.resource("zoo_pet", Pets);
///     }
///
///     async fn configure(&self, _config: Empty, _terraform_version: &str) -> Result<Service> {
///         Ok(Service)
///     }
/// }
/// # let _ = Zoo;
/// ```
pub struct Members<C> {
    pub(crate) client: ClientCell<C>,
    pub(crate) resources: BTreeMap<&'static str, Box<dyn AnyResource>>,
    pub(crate) data_sources: BTreeMap<&'static str, Box<dyn AnyDataSource>>,
    pub(crate) ephemerals: BTreeMap<&'static str, Box<dyn AnyEphemeral>>,
    pub(crate) lists: BTreeMap<&'static str, Box<dyn AnyList>>,
    pub(crate) actions: BTreeMap<&'static str, Box<dyn AnyAction>>,
    pub(crate) functions: BTreeMap<&'static str, Function>,
    pub(crate) state_stores: BTreeMap<&'static str, AnyStateStore>,
    /// Names that more than one member of the same kind has.
    pub(crate) duplicates: Vec<&'static str>,
    /// True if descriptions of the following members are plain text.
    plain: bool,
}

impl<C: Send + Sync + 'static> Members<C> {
    pub(crate) fn new(client: ClientCell<C>) -> Members<C> {
        Members {
            client,
            resources: BTreeMap::new(),
            data_sources: BTreeMap::new(),
            ephemerals: BTreeMap::new(),
            lists: BTreeMap::new(),
            actions: BTreeMap::new(),
            functions: BTreeMap::new(),
            state_stores: BTreeMap::new(),
            duplicates: Vec::new(),
            plain: false,
        }
    }

    /// Adds all members of another provider, which use the client in this cell.
    fn include<P: Provider>(&mut self, provider: &P, client: &ClientCell<P::Client>) {
        let mut members = Members::new(client.clone());
        provider.members(&mut members);
        self.duplicates.append(&mut members.duplicates);
        add(&mut self.resources, members.resources, &mut self.duplicates);
        add(&mut self.data_sources, members.data_sources, &mut self.duplicates);
        add(&mut self.ephemerals, members.ephemerals, &mut self.duplicates);
        add(&mut self.lists, members.lists, &mut self.duplicates);
        add(&mut self.actions, members.actions, &mut self.duplicates);
        add(&mut self.functions, members.functions, &mut self.duplicates);
        add(&mut self.state_stores, members.state_stores, &mut self.duplicates);
    }

    /// Makes the descriptions of all members that are added later plain text: see [`Schema::plain`](crate::Schema::plain).
    pub fn plain(&mut self) -> &mut Members<C> {
        self.plain = true;
        self
    }

    /// Adds a type of managed resource.
    pub fn resource(&mut self, name: &'static str, resource: impl Resource<Client = C>) {
        let entry: Box<dyn AnyResource> = Box::new(Entry::new(resource, self.plain, self.client.clone()));
        add(&mut self.resources, [(name, entry)], &mut self.duplicates);
    }

    /// Adds a type of data source.
    pub fn data_source(&mut self, name: &'static str, source: impl DataSource<Client = C>) {
        let entry: Box<dyn AnyDataSource> = Box::new(DataEntry::new(source, self.plain, self.client.clone()));
        add(&mut self.data_sources, [(name, entry)], &mut self.duplicates);
    }

    /// Adds a type of ephemeral resource.
    pub fn ephemeral(&mut self, name: &'static str, resource: impl EphemeralResource<Client = C>) {
        let entry: Box<dyn AnyEphemeral> = Box::new(EphemeralEntry::new(resource, self.plain, self.client.clone()));
        add(&mut self.ephemerals, [(name, entry)], &mut self.duplicates);
    }

    /// Adds a list resource, for the resource type of this name.
    pub fn list(&mut self, name: &'static str, list: impl ListResource<Client = C>) {
        let entry: Box<dyn AnyList> = Box::new(ListEntry::new(list, self.plain, self.client.clone()));
        add(&mut self.lists, [(name, entry)], &mut self.duplicates);
    }

    /// Adds a type of action.
    pub fn action(&mut self, name: &'static str, action: impl Action<Client = C>) {
        let entry: Box<dyn AnyAction> = Box::new(ActionEntry::new(action, self.plain, self.client.clone()));
        add(&mut self.actions, [(name, entry)], &mut self.duplicates);
    }

    /// Adds a provider-defined function, which configurations call as `provider::NAME::FUNCTION`.
    pub fn function(&mut self, name: &'static str, function: Function) {
        let function = if self.plain { function.plain() } else { function };
        add(&mut self.functions, [(name, function)], &mut self.duplicates);
    }

    /// Adds a state store. A provider that has one is served in protocol 6 only.
    pub fn state_store(&mut self, name: &'static str, store: impl StateStore) {
        add(
            &mut self.state_stores,
            [(name, AnyStateStore::new(store))],
            &mut self.duplicates,
        );
    }
}

/// Adds an entry to a table, and records duplicate names.
fn add<T>(
    table: &mut BTreeMap<&'static str, T>,
    more: impl IntoIterator<Item = (&'static str, T)>,
    duplicates: &mut Vec<&'static str>,
) {
    for (name, entry) in more {
        // The problem is reported when the schemas are requested, because the methods of the table return no errors.
        if table.insert(name, entry).is_some() {
            duplicates.push(name);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::schema::{nested, optional};
    use crate::served::ServedProvider;
    use crate::wire::encode;
    use crate::{Attr, Context, Parameter, model};

    model! {
        pub struct Part {
            pub name: Attr<String> = optional(),
        }
    }

    model! {
        pub struct Thing {
            pub part: Attr<Part> = nested(optional()),
        }
    }

    struct Things;

    #[async_trait]
    impl Resource for Things {
        type Model = Thing;
        type Client = ();

        async fn create(&self, plan: Thing, _cx: &mut Context<()>) -> Result<Thing> {
            Ok(plan)
        }
    }

    #[test]
    fn only_protocol_6_has_nested_attributes() {
        assert_eq!(ServedProvider::new(Plain(|_| {})).protocols(), [5, 6]);
        assert_eq!(
            ServedProvider::new(Plain(|m| m.resource("x_thing", Things))).protocols(),
            [6]
        );
    }

    #[test]
    fn argument_that_does_not_fit_is_an_error_at_its_position() {
        let provider = ServedProvider::new(Plain(|members| {
            let parameters = vec![Parameter::new::<String>("text", ""), Parameter::new::<i64>("count", "")];
            members.function("repeat", Function::new("", "", parameters, |_| Ok(String::new())));
        }));
        let fits = encode(&"a".into(), &String::ty()).unwrap();
        let error = provider.call("repeat", &[fits.clone(), fits]).unwrap_err();
        assert_eq!(error.argument, Some(1), "{error:?}");
    }

    /// Number of times that the schema of [`Counted`] has been built.
    static BUILT: AtomicUsize = AtomicUsize::new(0);

    struct Counted;

    #[async_trait]
    impl Resource for Counted {
        type Model = Part;
        type Client = ();

        fn schema(&self) -> Schema {
            BUILT.fetch_add(1, Ordering::Relaxed);
            Schema::of::<Part>()
        }

        async fn create(&self, plan: Part, _cx: &mut Context<()>) -> Result<Part> {
            Ok(plan)
        }
    }

    #[test]
    fn schema_is_built_once_and_only_when_it_is_used() {
        let provider = ServedProvider::new(Plain(|members| {
            members.resource("x_counted", Counted);
            members.resource("x_thing", Things);
        }));
        let thing = encode(&Thing::default().to_cty(), &Thing::ty()).unwrap();
        assert_eq!(provider.validate_resource("x_thing", &thing, true), Diagnostics::new());
        assert_eq!(BUILT.load(Ordering::Relaxed), 0);
        let part = encode(&Part::default().to_cty(), &Part::ty()).unwrap();
        for _ in 0..2 {
            assert_eq!(provider.validate_resource("x_counted", &part, true), Diagnostics::new());
        }
        assert_eq!(BUILT.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn duplicate_name_is_a_problem() {
        let one = || Plain(|m| m.resource("x_thing", Things));
        assert!(ServedProvider::new(one()).problems().is_empty());
        assert_eq!(
            ServedProvider::new(Both::new(one(), one())).problems(),
            ["there is more than one member x_thing of the same kind"]
        );
    }
}
