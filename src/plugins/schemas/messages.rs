//! Messages of a provider's answers about its schemas, with the schemas still encoded.
//!
//! A message as a field, and bytes as a field, are the same on the wire, and so are a map and a list of its entries.
//! Both protocols have the same numbers here. Messages that are decoded in this way share the memory of the answer.

use std::collections::BTreeMap;
use std::sync::Arc;

use prost::bytes::Bytes;
use proto::tfplugin6 as pb;

use super::{Kind, Table};

/// An entry of a map from names to messages.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Named {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(bytes = "bytes", tag = "2")]
    pub message: Bytes,
}

/// The answer to GetProviderSchema (protocol 5: GetSchema).
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct GetProviderSchema {
    #[prost(bytes = "bytes", optional, tag = "1")]
    pub provider: Option<Bytes>,
    #[prost(message, repeated, tag = "2")]
    pub resources: Vec<Named>,
    #[prost(message, repeated, tag = "3")]
    pub data_sources: Vec<Named>,
    #[prost(message, repeated, tag = "4")]
    pub diagnostics: Vec<pb::Diagnostic>,
    #[prost(bytes = "bytes", optional, tag = "5")]
    pub provider_meta: Option<Bytes>,
    #[prost(message, optional, tag = "6")]
    pub capabilities: Option<pb::ServerCapabilities>,
    #[prost(message, repeated, tag = "7")]
    pub functions: Vec<Named>,
    #[prost(message, repeated, tag = "8")]
    pub ephemeral: Vec<Named>,
    #[prost(message, repeated, tag = "9")]
    pub lists: Vec<Named>,
    #[prost(message, repeated, tag = "10")]
    pub state_stores: Vec<Named>,
    #[prost(message, repeated, tag = "11")]
    pub actions: Vec<Action>,
}

/// Entry of the map of actions, whose messages contain the schemas.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Action {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(message, optional, tag = "2")]
    pub action: Option<ActionSchema>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct ActionSchema {
    #[prost(bytes = "bytes", optional, tag = "1")]
    pub schema: Option<Bytes>,
}

/// The answer to GetResourceIdentitySchemas.
#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct GetResourceIdentitySchemas {
    #[prost(message, repeated, tag = "1")]
    pub identities: Vec<Named>,
    #[prost(message, repeated, tag = "2")]
    pub diagnostics: Vec<pb::Diagnostic>,
}

impl GetProviderSchema {
    /// Returns the schemas by kind and name.
    pub fn into_schemas(self) -> Table<Bytes> {
        let own = |message: Option<Bytes>| message.map(|message| (Arc::from(""), message)).into_iter().collect();
        let actions = self.actions.into_iter().map(|entry| {
            let schema = entry.action.and_then(|action| action.schema).unwrap_or_default();
            (Arc::from(entry.name), schema)
        });
        let mut schemas = Table::from([
            (Kind::Provider, own(self.provider)),
            (Kind::ProviderMeta, own(self.provider_meta)),
            (Kind::Resource, by_name(self.resources)),
            (Kind::DataSource, by_name(self.data_sources)),
            (Kind::Function, by_name(self.functions)),
            (Kind::Ephemeral, by_name(self.ephemeral)),
            (Kind::List, by_name(self.lists)),
            (Kind::StateStore, by_name(self.state_stores)),
            (Kind::Action, actions.collect()),
        ]);
        schemas.retain(|_, of_kind| !of_kind.is_empty());
        schemas
    }
}

pub(crate) fn by_name(entries: Vec<Named>) -> BTreeMap<Arc<str>, Bytes> {
    entries
        .into_iter()
        .map(|entry| (Arc::from(entry.name), entry.message))
        .collect()
}
