//! Providers: what an author writes, and the table of what a provider has.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};

use async_trait::async_trait;

use crate::data::{AnyDataSource, AnyEphemeral, DataEntry, EphemeralEntry};
use crate::function::Function;
use crate::model::Model;
use crate::resource::{AnyResource, Entry};
use crate::schema::Schema;
use crate::{DataSource, Diagnostics, EphemeralResource, Resource, Result};

/// A provider.
#[async_trait]
pub trait Provider: Send + Sync + 'static {
    /// The provider's configuration, declared by [`model!`](crate::model!); [`Empty`](crate::model::Empty) if there is
    /// none.
    type Config: Model;
    /// What [`Provider::configure`] makes of it, for resources to use: usually a client of some service.
    type Client: Send + Sync + 'static;

    /// The schema of the configuration; the model's unless there is more to say.
    fn schema(&self) -> Schema {
        Schema::of::<Self::Config>()
    }

    /// Lists everything the provider has.
    fn members(&self, members: &mut Members<Self::Client>);

    /// Checks a configuration beyond what the rules of its attributes say.
    fn validate(&self, _config: &Self::Config) -> Diagnostics {
        Diagnostics::new()
    }

    /// Makes the configuration into what resources use.
    async fn configure(&self, config: Self::Config, terraform_version: &str) -> Result<Self::Client>;
}

/// Where the provider's client is kept from `configure` on.
pub(crate) struct ClientCell<C>(Arc<RwLock<Option<Arc<C>>>>);

impl<C> Clone for ClientCell<C> {
    fn clone(&self) -> ClientCell<C> {
        ClientCell(self.0.clone())
    }
}

impl<C> ClientCell<C> {
    pub fn new() -> ClientCell<C> {
        ClientCell(Arc::new(RwLock::new(None)))
    }

    pub fn get(&self) -> Option<Arc<C>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn set(&self, client: C) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(client));
    }
}

/// The table of what a provider has, by type name (or function name).
pub struct Members<C> {
    pub(crate) client: ClientCell<C>,
    pub(crate) resources: BTreeMap<&'static str, Box<dyn AnyResource>>,
    pub(crate) data_sources: BTreeMap<&'static str, Box<dyn AnyDataSource>>,
    pub(crate) ephemerals: BTreeMap<&'static str, Box<dyn AnyEphemeral>>,
    pub(crate) functions: BTreeMap<&'static str, Function>,
}

impl<C: Send + Sync + 'static> Members<C> {
    pub(crate) fn new() -> Members<C> {
        Members {
            client: ClientCell::new(),
            resources: BTreeMap::new(),
            data_sources: BTreeMap::new(),
            ephemerals: BTreeMap::new(),
            functions: BTreeMap::new(),
        }
    }

    /// Adds a type of managed resource.
    pub fn resource(&mut self, name: &'static str, resource: impl Resource<Client = C>) {
        self.resources
            .insert(name, Box::new(Entry::new(resource, self.client.clone())));
    }

    /// Adds a type of data source.
    pub fn data_source(&mut self, name: &'static str, source: impl DataSource<Client = C>) {
        self.data_sources
            .insert(name, Box::new(DataEntry::new(source, self.client.clone())));
    }

    /// Adds a type of ephemeral resource.
    pub fn ephemeral(&mut self, name: &'static str, resource: impl EphemeralResource<Client = C>) {
        self.ephemerals
            .insert(name, Box::new(EphemeralEntry::new(resource, self.client.clone())));
    }

    /// Adds a function.
    pub fn function(&mut self, name: &'static str, function: Function) {
        self.functions.insert(name, function);
    }
}
