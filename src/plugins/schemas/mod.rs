//! The schemas of a provider as it sends them, and their conversion by type.
//!
//! The largest providers answer GetProviderSchema with thousands of types and tens of megabytes, of which a configuration uses
//! a few types. So an answer is split into the encoded schemas of its types ([`Answer`]), and each is decoded when it is first
//! used ([`Described::schema`]). [`file`] is the format in which they are stored on disk, [`store`] the directory of the user
//! with one such file for each provider package. [`planned`] are the schemas that a saved plan carries.

mod encode;
mod file;
mod messages;
pub mod planned;
mod store;

use std::collections::BTreeMap;
use std::sync::Arc;

use prost::Message;
use prost::bytes::Bytes;
use proto::{tfplugin5, tfplugin6 as pb};
use provider::{Capabilities, FunctionSchema, ListSchema, ProviderSchema, SchemaMap};
use schema::Schema;

use crate::convert::{self, MessageError};
use crate::grpc_v5;

pub(crate) use file::SchemaFile;
pub(crate) use messages::{GetProviderSchema, GetResourceIdentitySchemas, by_name};
pub use store::SchemaStore;

/// Resource type whose output attribute has the type of its input.
const TERRAFORM_DATA: &str = "terraform_data";

/// Kinds of schemas, with their numbers in schema files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(crate) enum Kind {
    /// Configuration of the provider; has no name.
    Provider = 1,
    /// The `provider_meta` block; has no name.
    ProviderMeta = 2,
    Resource = 3,
    DataSource = 4,
    Ephemeral = 5,
    List = 6,
    Function = 7,
    Action = 8,
    StateStore = 9,
    /// The identities of a resource type.
    Identity = 10,
}

impl Kind {
    const ALL: [Kind; 10] = [
        Kind::Provider,
        Kind::ProviderMeta,
        Kind::Resource,
        Kind::DataSource,
        Kind::Ephemeral,
        Kind::List,
        Kind::Function,
        Kind::Action,
        Kind::StateStore,
        Kind::Identity,
    ];

    fn of_number(number: u32) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| *kind as u32 == number)
    }
}

/// Table with one item for each kind and name of a schema.
pub(crate) type Table<T> = BTreeMap<Kind, BTreeMap<Arc<str>, T>>;

fn find<'t, T>(table: &'t Table<T>, kind: Kind, name: &str) -> Option<&'t T> {
    table.get(&kind)?.get(name)
}

/// Properties of a provider other than its schemas.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Properties {
    /// Version of the protocol, which determines the encoding of schemas.
    pub protocol: u32,
    pub capabilities: Capabilities,
    /// True if the provider accepts batched calls.
    pub batches: bool,
    /// See [`ProviderSchema::state_only`].
    pub state_only: Vec<Arc<str>>,
}

/// Answer of a provider about its schemas, which are still encoded.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Answer {
    pub properties: Properties,
    pub schemas: Table<Bytes>,
}

/// Source of encoded schemas: an answer in memory, or a schema file.
pub(crate) trait Encoded: Send + Sync + 'static {
    /// Returns a schema; `None` if there is none of this name, or if it can no longer be read.
    fn schema(&self, kind: Kind, name: &str) -> Option<Bytes>;

    /// Returns the names of all schemas of a kind.
    fn names(&self, kind: Kind) -> Vec<Arc<str>>;
}

impl Encoded for Answer {
    fn schema(&self, kind: Kind, name: &str) -> Option<Bytes> {
        find(&self.schemas, kind, name).cloned()
    }

    fn names(&self, kind: Kind) -> Vec<Arc<str>> {
        self.schemas
            .get(&kind)
            .into_iter()
            .flat_map(|of| of.keys().cloned())
            .collect()
    }
}

/// Converts the schemas of a provider. Those of its types are converted on first use.
///
/// # Errors
/// The schema of the provider configuration or of the `provider_meta` block is invalid.
pub(crate) fn provider_schema(
    properties: &Properties,
    encoded: Arc<dyn Encoded>,
) -> Result<ProviderSchema, MessageError> {
    let protocol = properties.protocol;
    let own = |kind: Kind, what: &str| {
        let message = encoded.schema(kind, "");
        let converted = message.map(|message| schema(protocol, message));
        converted
            .transpose()
            .map_err(|error| error.within(format!("schema of the {what}")))
    };
    let provider = own(Kind::Provider, "provider configuration")?;
    let provider_meta = own(Kind::ProviderMeta, "provider_meta block")?;
    let types =
        |kind: Kind, what: &'static str| convert_lazily(&encoded, kind, what, move |message| schema(protocol, message));
    let state_only = properties.state_only.iter().cloned().collect();
    let of_resources = {
        // Only the built-in provider declares terraform_data as state-only. This test therefore excludes other providers with a
        // type of that name.
        let repeats = properties.state_only.iter().any(|ty| &**ty == TERRAFORM_DATA);
        let from = encoded.clone();
        SchemaMap::lazy(encoded.names(Kind::Resource), move |name| {
            let mut converted = lookup(&*from, Kind::Resource, name, "resource type", |m| schema(protocol, m))?;
            if let Some(message) = from.schema(Kind::Identity, name) {
                let identity = pb::ResourceIdentitySchema::decode(message)
                    .map_err(MessageError::from)
                    .and_then(convert::identity_schema)
                    .map_err(|error| error.within(format!("identity schema of \"{name}\"")))?;
                converted.identity = Some(Arc::new(identity));
            }
            if repeats && name == TERRAFORM_DATA {
                converted.repeats = vec![("input".into(), "output".into())];
            }
            Ok(converted)
        })
    };
    let list = move |message| Ok(ListSchema::new(schema(protocol, message)?));
    Ok(ProviderSchema {
        provider: provider.unwrap_or_default(),
        provider_meta,
        resources: of_resources,
        data_sources: types(Kind::DataSource, "data source"),
        ephemeral: types(Kind::Ephemeral, "ephemeral resource type"),
        lists: convert_lazily(&encoded, Kind::List, "list resource", list),
        functions: convert_lazily(&encoded, Kind::Function, "function", move |m| function(protocol, m)),
        actions: types(Kind::Action, "action type"),
        state_stores: types(Kind::StateStore, "state store"),
        capabilities: properties.capabilities,
        state_only,
    })
}

fn convert_lazily<T>(
    encoded: &Arc<dyn Encoded>,
    kind: Kind,
    what: &'static str,
    convert: impl Fn(Bytes) -> Result<T, MessageError> + Send + Sync + 'static,
) -> SchemaMap<T> {
    let from = encoded.clone();
    SchemaMap::lazy(encoded.names(kind), move |name| {
        Ok(lookup(&*from, kind, name, what, &convert)?)
    })
}

/// Reason why the schema of a type cannot be used.
#[derive(Debug, thiserror::Error)]
enum SchemaError {
    #[error(transparent)]
    Invalid(MessageError),
    /// The file of schemas has been damaged since it was opened, and the provider does not answer.
    #[error("{0}: it cannot be read any more")]
    Unreadable(String),
}

fn lookup<T>(
    from: &dyn Encoded,
    kind: Kind,
    name: &str,
    what: &str,
    convert: impl Fn(Bytes) -> Result<T, MessageError>,
) -> Result<T, SchemaError> {
    let part = if kind == Kind::Function { "signature" } else { "schema" };
    let subject = || format!("{part} of the {what} \"{name}\"");
    match from.schema(kind, name) {
        Some(message) => convert(message).map_err(|error| SchemaError::Invalid(error.within(subject()))),
        None => Err(SchemaError::Unreadable(subject())),
    }
}

fn schema(protocol: u32, message: Bytes) -> Result<Schema, MessageError> {
    convert::schema(match protocol {
        5 => grpc_v5::schema(tfplugin5::Schema::decode(message)?),
        _ => pb::Schema::decode(message)?,
    })
}

fn function(protocol: u32, message: Bytes) -> Result<FunctionSchema, MessageError> {
    convert::function(match protocol {
        5 => grpc_v5::function(tfplugin5::Function::decode(message)?),
        _ => pb::Function::decode(message)?,
    })
}
