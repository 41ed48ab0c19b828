//! Schemas in a saved plan, so that it can be shown without its plugins.
//!
//! They are in the form of protocol 6, whatever protocol the provider speaks. They are encoded from the converted schemas, not copied from
//! the answer of a plugin, because built-in providers and provisioners have schemas, too.

use std::sync::Arc;

use addrs::Provider;
use prost::Message as _;
use prost::bytes::Bytes;
use proto::tfplugin6 as pb;
use provider::{ProviderSchema, SchemaMap, Schemas};
use schema::Schema;

use super::messages::{Named, by_name};
use super::{Answer, Kind, Properties, Table, encode, provider_schema};
use crate::convert::{self, MessageError};

#[derive(Clone, PartialEq, prost::Message)]
struct Planned {
    #[prost(message, repeated, tag = "1")]
    providers: Vec<Of>,
    /// The schemas of provisioners.
    #[prost(message, repeated, tag = "2")]
    provisioners: Vec<Named>,
}

/// The schemas of one provider.
#[derive(Clone, PartialEq, prost::Message)]
struct Of {
    #[prost(string, tag = "1")]
    address: String,
    #[prost(message, optional, tag = "2")]
    capabilities: Option<pb::ServerCapabilities>,
    #[prost(string, repeated, tag = "3")]
    state_only: Vec<String>,
    #[prost(message, repeated, tag = "4")]
    schemas: Vec<OfKind>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct OfKind {
    #[prost(uint32, tag = "1")]
    kind: u32,
    #[prost(message, repeated, tag = "2")]
    schemas: Vec<Named>,
}

/// Encodes all schemas but the signatures of functions, which a plan does not need any more.
#[must_use]
pub fn encode(schemas: &Schemas) -> Vec<u8> {
    let providers = schemas.providers.iter().map(|(address, schema)| Of {
        address: address.to_string(),
        capabilities: Some(convert::capabilities_message(&schema.capabilities)),
        state_only: schema.state_only.iter().map(ToString::to_string).collect(),
        schemas: of_provider(schema),
    });
    let provisioners = schemas.provisioners.iter();
    let planned = Planned {
        providers: providers.collect(),
        provisioners: provisioners
            .map(|(name, schema)| named(name, &encode::schema(schema)))
            .collect(),
    };
    planned.encode_to_vec()
}

fn named(name: &str, message: &impl prost::Message) -> Named {
    Named {
        name: name.to_owned(),
        message: message.encode_to_vec().into(),
    }
}

fn of_provider(schema: &ProviderSchema) -> Vec<OfKind> {
    let all = |schemas: &SchemaMap<Schema>| schemas.iter().map(|(ty, of)| named(ty, &encode::schema(of))).collect();
    let identities = schema
        .resources
        .iter()
        .filter_map(|(ty, of)| Some((ty, of.identity.as_deref()?)));
    let lists = schema
        .lists
        .iter()
        .map(|(ty, list)| named(ty, &encode::schema(&list.config)));
    let meta = schema.provider_meta.iter().map(|meta| named("", &encode::schema(meta)));
    let kinds: [(Kind, Vec<Named>); 8] = [
        (Kind::Provider, vec![named("", &encode::schema(&schema.provider))]),
        (Kind::ProviderMeta, meta.collect()),
        (Kind::Resource, all(&schema.resources)),
        (Kind::DataSource, all(&schema.data_sources)),
        (Kind::Ephemeral, all(&schema.ephemeral)),
        (Kind::List, lists.collect()),
        (Kind::Action, all(&schema.actions)),
        (
            Kind::Identity,
            identities
                .map(|(ty, of)| named(ty, &encode::identity_schema(of)))
                .collect(),
        ),
    ];
    let of_kind = |(kind, schemas)| OfKind {
        kind: kind as u32,
        schemas,
    };
    kinds.into_iter().map(of_kind).collect()
}

/// Decodes schemas of a saved plan.
///
/// # Errors
/// The schemas are damaged.
pub fn decode(bytes: Vec<u8>) -> Result<Schemas, MessageError> {
    let planned = Planned::decode(Bytes::from(bytes))?;
    let mut schemas = Schemas::default();
    for of in planned.providers {
        let address = Provider::parse(&of.address).map_err(|error| MessageError::Provider(error.detail))?;
        let properties = Properties {
            protocol: PROTOCOL,
            capabilities: convert::capabilities(of.capabilities.unwrap_or_default()),
            // Batches are a property of processes, and these schemas belong to none.
            batches: false,
            state_only: of.state_only.into_iter().map(Arc::from).collect(),
        };
        let of_kind = |of: OfKind| Some((Kind::of_number(of.kind)?, by_name(of.schemas)));
        // Kinds that a later release has added are left out.
        let encoded: Table<Bytes> = of.schemas.into_iter().filter_map(of_kind).collect();
        let answer = Answer {
            properties: properties.clone(),
            schemas: encoded,
        };
        let converted = provider_schema(&properties, Arc::new(answer))?;
        schemas.providers.insert(address, Arc::new(converted));
    }
    for (name, message) in by_name(planned.provisioners) {
        let converted = super::schema(PROTOCOL, message)?;
        schemas.provisioners.insert(name, Arc::new(converted));
    }
    Ok(schemas)
}

const PROTOCOL: u32 = 6;

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use cty::Type;
    use provider::{Capabilities, ListSchema};
    use schema::{
        AttributeSchema, AttributeType, BlockSchema, Description, IdentityAttribute, IdentitySchema, NestedBlock,
        NestedObject, Nesting,
    };

    use super::*;

    /// Builds a schema that uses every property of schemas.
    fn sample() -> Schema {
        let attribute = |ty| AttributeSchema {
            ty,
            optional: true,
            computed: true,
            sensitive: true,
            description: Description {
                text: "What it is.".to_owned(),
                markdown: true,
            },
            ..AttributeSchema::default()
        };
        let deprecated = AttributeSchema {
            required: true,
            write_only: true,
            deprecated: true,
            deprecation_message: "No more.".to_owned(),
            ty: AttributeType::Plain(Type::map(Type::tuple([Type::Number, Type::Bool]))),
            ..AttributeSchema::default()
        };
        let nested = |nesting| {
            attribute(AttributeType::Nested(NestedObject {
                attributes: BTreeMap::from([("inner".into(), attribute(AttributeType::Plain(Type::Dynamic)))]),
                nesting,
            }))
        };
        let mut block = BlockSchema {
            attributes: BTreeMap::from([
                ("plain".into(), attribute(AttributeType::Plain(Type::set(Type::String)))),
                ("deprecated".into(), deprecated),
                ("single".into(), nested(Nesting::Single)),
                ("list".into(), nested(Nesting::List)),
                ("set".into(), nested(Nesting::Set)),
                ("map".into(), nested(Nesting::Map)),
            ]),
            deprecated: true,
            deprecation_message: "Use another.".to_owned(),
            ..BlockSchema::default()
        };
        let of = |nesting| NestedBlock {
            block: BlockSchema {
                attributes: BTreeMap::from([("a".into(), attribute(AttributeType::Plain(Type::String)))]),
                ..BlockSchema::default()
            },
            nesting,
            min_items: u64::from(nesting == Nesting::List),
            max_items: 7,
        };
        for (name, nesting) in [
            ("one", Nesting::Single),
            ("group", Nesting::Group),
            ("lists", Nesting::List),
            ("sets", Nesting::Set),
            ("maps", Nesting::Map),
        ] {
            block.blocks.insert(name.into(), of(nesting));
        }
        let mut computed = of(Nesting::List);
        (computed.min_items, computed.block.computed) = (0, true);
        block.blocks.insert("computed".into(), computed);
        let identity = IdentityAttribute {
            ty: Type::String,
            required_for_import: true,
            optional_for_import: false,
            description: "Its name.".to_owned(),
        };
        Schema {
            identity: Some(Arc::new(IdentitySchema::new(
                4,
                BTreeMap::from([("name".into(), identity)]),
            ))),
            ..Schema::new(3, block)
        }
    }

    #[test]
    fn schemas_are_decoded_as_they_were() {
        let plain = || Schema {
            identity: None,
            ..sample()
        };
        let map = |schema: Schema| BTreeMap::from([("acme_thing".into(), schema)]).into();
        let schema = ProviderSchema {
            provider: plain(),
            provider_meta: Some(plain()),
            resources: map(sample()),
            data_sources: map(plain()),
            ephemeral: map(plain()),
            actions: map(plain()),
            lists: BTreeMap::from([("acme_thing".into(), ListSchema::new(plain()))]).into(),
            capabilities: Capabilities {
                move_resource_state: true,
                ..Capabilities::default()
            },
            ..ProviderSchema::default()
        };
        let address = Provider::parse("example.com/acme/acme").unwrap();
        let schemas = Schemas {
            providers: BTreeMap::from([(address.clone(), Arc::new(schema.clone()))]),
            provisioners: BTreeMap::from([("local-exec".into(), Arc::new(plain()))]),
        };
        let again = decode(encode(&schemas)).unwrap();
        let of = &again.providers[&address];
        assert_eq!(
            (&of.provider, &of.provider_meta),
            (&schema.provider, &schema.provider_meta)
        );
        assert_eq!(of.capabilities, schema.capabilities);
        let (was, is) = (&schema, of);
        for (was, is) in [
            (&was.resources, &is.resources),
            (&was.data_sources, &is.data_sources),
            (&was.ephemeral, &is.ephemeral),
            (&was.actions, &is.actions),
        ] {
            assert_eq!(
                is.get("acme_thing"),
                was.get("acme_thing"),
                "{:?}",
                is.problem("acme_thing")
            );
        }
        assert_eq!(is.lists.get("acme_thing"), was.lists.get("acme_thing"));
        assert_eq!(again.provisioners, schemas.provisioners);
    }

    #[test]
    fn damaged_schemas_are_an_error() {
        assert!(decode(vec![0xff; 9]).is_err());
    }
}
