//! The methods that describe a provider. Two of their answers differ between the protocols; a macro writes them for both.

use proto::{tfplugin5, tfplugin6 as pb};
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::{Request, Response, Status};

use super::Service;
use crate::resource::identity_type;
use crate::server::core::Core;
use crate::server::messages::v6::{function, schema, type_bytes};

/// The descriptions in the messages of one version of the protocol.
macro_rules! descriptions {
    ($version:ident) => {
        use std::collections::BTreeMap;

        use crate::server::core::Core;
        use crate::server::messages::$version::{function, pb, schema};

        fn capabilities(core: &Core) -> pb::ServerCapabilities {
            pb::ServerCapabilities {
                plan_destroy: core.plans_destroy(),
                get_provider_schema_optional: true,
                move_resource_state: true,
                generate_resource_config: core.generates_config(),
            }
        }

        pub(super) fn metadata(core: &Core) -> pb::get_metadata::Response {
            use pb::get_metadata::{
                ActionMetadata, DataSourceMetadata, EphemeralMetadata, FunctionMetadata, ListResourceMetadata,
                ResourceMetadata, Response,
            };
            fn names<V, T>(members: &BTreeMap<&'static str, V>, message: fn(String) -> T) -> Vec<T> {
                members.keys().map(|name| message((*name).to_owned())).collect()
            }
            Response {
                server_capabilities: Some(capabilities(core)),
                resources: names(&core.resources, |type_name| ResourceMetadata { type_name }),
                data_sources: names(&core.data_sources, |type_name| DataSourceMetadata { type_name }),
                ephemeral_resources: names(&core.ephemerals, |type_name| EphemeralMetadata { type_name }),
                functions: names(&core.functions, |name| FunctionMetadata { name }),
                list_resources: names(&core.lists, |type_name| ListResourceMetadata { type_name }),
                actions: names(&core.actions, |type_name| ActionMetadata { type_name }),
                ..Default::default()
            }
        }

        pub(super) fn schemas(core: &Core) -> pb::get_provider_schema::Response {
            let name = |name: &&'static str| (*name).to_owned();
            let action = |action| pb::ActionSchema {
                schema: Some(schema(action)),
            };
            pb::get_provider_schema::Response {
                provider: Some(schema(core.config_schema())),
                provider_meta: core.meta.as_ref().map(schema),
                resource_schemas: core
                    .resources
                    .iter()
                    .map(|(n, r)| (name(n), schema(r.schema())))
                    .collect(),
                data_source_schemas: core
                    .data_sources
                    .iter()
                    .map(|(n, r)| (name(n), schema(r.schema())))
                    .collect(),
                ephemeral_resource_schemas: core
                    .ephemerals
                    .iter()
                    .map(|(n, r)| (name(n), schema(r.schema())))
                    .collect(),
                list_resource_schemas: core
                    .lists
                    .iter()
                    .map(|(n, l)| (name(n), schema(l.schema())))
                    .collect(),
                functions: core
                    .functions
                    .iter()
                    .map(|(n, f)| (name(n), function(f)))
                    .collect(),
                action_schemas: core
                    .actions
                    .iter()
                    .map(|(n, a)| (name(n), action(a.schema())))
                    .collect(),
                server_capabilities: Some(capabilities(core)),
                ..Default::default()
            }
        }
    };
}

mod v5 {
    descriptions! { v5 }
}

mod v6 {
    descriptions! { v6 }
}

/// Metadata of the answer with the schemas.
fn beside_schemas(core: &Core, metadata: &mut MetadataMap) {
    let state_only = core.resources.iter().filter(|(_, resource)| resource.state_only());
    let names: Vec<&str> = state_only.map(|(name, _)| *name).collect();
    if let Ok(names) = names.join(",").parse() {
        metadata.insert(proto::STATE_ONLY, names);
    }
    let version = MetadataValue::from_static(proto::STREAM_OF_CALLS_VERSION);
    metadata.insert(proto::STREAM_OF_CALLS, version);
}

impl Service {
    pub(super) async fn get_metadata_5(
        &self,
        _: tfplugin5::get_metadata::Request,
    ) -> Result<tfplugin5::get_metadata::Response, Status> {
        Ok(v5::metadata(&self.core))
    }

    pub(super) async fn get_metadata_6(
        &self,
        _: pb::get_metadata::Request,
    ) -> Result<pb::get_metadata::Response, Status> {
        let mut metadata = v6::metadata(&self.core);
        let stores = self.core.state_stores.keys();
        metadata.state_stores = stores
            .map(|name| pb::get_metadata::StateStoreMetadata {
                type_name: (*name).to_owned(),
            })
            .collect();
        Ok(metadata)
    }

    pub(super) async fn get_schema_5(
        &self,
        _: Request<tfplugin5::get_provider_schema::Request>,
    ) -> Result<Response<tfplugin5::get_provider_schema::Response>, Status> {
        let mut response = Response::new(v5::schemas(&self.core));
        beside_schemas(&self.core, response.metadata_mut());
        Ok(response)
    }

    pub(super) async fn get_schema_6(
        &self,
        _: Request<pb::get_provider_schema::Request>,
    ) -> Result<Response<pb::get_provider_schema::Response>, Status> {
        let mut schemas = v6::schemas(&self.core);
        let stores = self.core.state_stores.iter();
        schemas.state_store_schemas = stores
            .map(|(name, store)| ((*name).to_owned(), schema(store.store.schema())))
            .collect();
        let mut response = Response::new(schemas);
        beside_schemas(&self.core, response.metadata_mut());
        Ok(response)
    }

    pub(super) async fn get_resource_identity_schemas(
        &self,
        _: pb::get_resource_identity_schemas::Request,
    ) -> Result<pb::get_resource_identity_schemas::Response, Status> {
        let with_identity = self.core.resources.iter().filter(|(_, r)| !r.identity().is_empty());
        let identity_schemas = with_identity.map(|(name, resource)| {
            let ty = identity_type(resource.schema(), resource.identity());
            let identity_attributes =
                resource
                    .identity()
                    .iter()
                    .map(|a| pb::resource_identity_schema::IdentityAttribute {
                        name: a.name.to_owned(),
                        r#type: ty
                            .as_object()
                            .and_then(|o| o.get(a.name))
                            .map(type_bytes)
                            .unwrap_or_default(),
                        required_for_import: a.required_for_import,
                        optional_for_import: !a.required_for_import,
                        description: a.description.to_owned(),
                    });
            let schema = pb::ResourceIdentitySchema {
                version: resource.identity_version(),
                identity_attributes: identity_attributes.collect(),
            };
            ((*name).to_owned(), schema)
        });
        Ok(pb::get_resource_identity_schemas::Response {
            identity_schemas: identity_schemas.collect(),
            ..Default::default()
        })
    }

    pub(super) async fn get_functions(
        &self,
        _: pb::get_functions::Request,
    ) -> Result<pb::get_functions::Response, Status> {
        Ok(pb::get_functions::Response {
            functions: self
                .core
                .functions
                .iter()
                .map(|(n, f)| ((*n).to_owned(), function(f)))
                .collect(),
            ..Default::default()
        })
    }
}
