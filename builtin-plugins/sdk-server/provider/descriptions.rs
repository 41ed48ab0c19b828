//! The methods that describe a provider. Two of the answers differ between the protocol versions, so a macro defines the methods for both.

use monoform_sdk::served::{ServedProvider, identity_type};
use monoform_sdk::{Diagnostic, Diagnostics};
use proto::{tfplugin5, tfplugin6 as pb};
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::{Request, Response, Status};

use super::service::Service;
use crate::messages;
use crate::messages::v6::{function, schema, type_bytes};

/// Defines the methods with the messages of one version of the protocol.
macro_rules! descriptions {
    ($version:ident) => {
        use std::collections::HashMap;

        use monoform_sdk::schema::Compiled;
        use monoform_sdk::served::ServedProvider;

        use crate::messages::$version::{function, pb, schema};

        fn capabilities(provider: &ServedProvider) -> pb::ServerCapabilities {
            pb::ServerCapabilities {
                plan_destroy: provider.plans_destroy(),
                // The plugin compiles its schemas without this request. So a host that knows the schemas from an earlier process can skip
                // it.
                get_provider_schema_optional: true,
                move_resource_state: true,
                generate_resource_config: provider.generates_config(),
            }
        }

        pub(super) fn metadata(provider: &ServedProvider) -> pb::get_metadata::Response {
            use pb::get_metadata::{
                ActionMetadata, DataSourceMetadata, EphemeralMetadata, FunctionMetadata, ListResourceMetadata,
                ResourceMetadata, Response,
            };
            fn names<V, T>(members: impl Iterator<Item = (&'static str, V)>, message: fn(String) -> T) -> Vec<T> {
                members.map(|(name, _)| message(name.to_owned())).collect()
            }
            let functions = provider.functions().iter().map(|(name, f)| (*name, f));
            Response {
                server_capabilities: Some(capabilities(provider)),
                resources: names(provider.resources(), |type_name| ResourceMetadata { type_name }),
                data_sources: names(provider.data_sources(), |type_name| DataSourceMetadata {
                    type_name,
                }),
                ephemeral_resources: names(provider.ephemerals(), |type_name| EphemeralMetadata { type_name }),
                functions: names(functions, |name| FunctionMetadata { name }),
                list_resources: names(provider.lists(), |type_name| ListResourceMetadata { type_name }),
                actions: names(provider.actions(), |type_name| ActionMetadata { type_name }),
                ..Default::default()
            }
        }

        pub(super) fn schemas(provider: &ServedProvider) -> pb::get_provider_schema::Response {
            fn messages<'a>(
                members: impl Iterator<Item = (&'static str, &'a Compiled)>,
            ) -> HashMap<String, pb::Schema> {
                members
                    .map(|(name, compiled)| (name.to_owned(), schema(compiled)))
                    .collect()
            }
            let functions = provider.functions().iter();
            let actions = provider.actions().map(|(name, action)| {
                let schema = Some(schema(action));
                (name.to_owned(), pb::ActionSchema { schema })
            });
            pb::get_provider_schema::Response {
                provider: Some(schema(provider.config_schema())),
                provider_meta: provider.meta_schema().map(schema),
                resource_schemas: messages(provider.resources().map(|(name, r)| (name, r.schema))),
                data_source_schemas: messages(provider.data_sources()),
                ephemeral_resource_schemas: messages(provider.ephemerals()),
                list_resource_schemas: messages(provider.lists()),
                functions: functions
                    .map(|(name, f)| ((*name).to_owned(), function(f)))
                    .collect(),
                action_schemas: actions.collect(),
                server_capabilities: Some(capabilities(provider)),
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

/// Adds metadata to the answer with the schemas: the resource types that exist in the state only, and the support for batched calls.
fn beside_schemas(provider: &ServedProvider, metadata: &mut MetadataMap) {
    // Metadata instead of a new field, since Terraform defines the messages. Hosts ignore metadata that they do not know.
    let state_only = provider.resources().filter(|(_, resource)| resource.state_only);
    let names: Vec<&str> = state_only.map(|(name, _)| name).collect();
    if let Ok(names) = names.join(",").parse() {
        metadata.insert(proto::STATE_ONLY, names);
    }
    let version = MetadataValue::from_static(proto::STREAM_OF_CALLS_VERSION);
    metadata.insert(proto::STREAM_OF_CALLS, version);
}

/// Returns the error for invalid schemas; `None` if all schemas are valid. It is sent in an answer because hosts show that to the user,
/// unlike the last output of a plugin that ends.
fn refused(provider: &ServedProvider) -> Option<Diagnostics> {
    let problems = provider.problems();
    if problems.is_empty() {
        return None;
    }
    let list: String = problems.iter().map(|problem| format!("\n- {problem}")).collect();
    let detail =
        format!("This provider cannot be served, since its schemas cannot work. These are bugs in the plugin:{list}");
    Some(Diagnostic::error("Invalid Provider Schema", detail).into())
}

impl Service {
    pub(super) async fn get_metadata_5(
        &self,
        _: tfplugin5::get_metadata::Request,
    ) -> Result<tfplugin5::get_metadata::Response, Status> {
        Ok(v5::metadata(&self.provider))
    }

    pub(super) async fn get_metadata_6(
        &self,
        _: pb::get_metadata::Request,
    ) -> Result<pb::get_metadata::Response, Status> {
        let mut metadata = v6::metadata(&self.provider);
        let stores = self.provider.state_stores();
        metadata.state_stores = stores
            .map(|(name, _)| pb::get_metadata::StateStoreMetadata {
                type_name: name.to_owned(),
            })
            .collect();
        Ok(metadata)
    }

    pub(super) async fn get_schema_5(
        &self,
        _: Request<tfplugin5::get_provider_schema::Request>,
    ) -> Result<Response<tfplugin5::get_provider_schema::Response>, Status> {
        if let Some(refused) = refused(&self.provider) {
            return Ok(Response::new(tfplugin5::get_provider_schema::Response {
                diagnostics: messages::v5::diagnostics(refused),
                ..Default::default()
            }));
        }
        let mut response = Response::new(v5::schemas(&self.provider));
        beside_schemas(&self.provider, response.metadata_mut());
        Ok(response)
    }

    pub(super) async fn get_schema_6(
        &self,
        _: Request<pb::get_provider_schema::Request>,
    ) -> Result<Response<pb::get_provider_schema::Response>, Status> {
        if let Some(refused) = refused(&self.provider) {
            return Ok(Response::new(pb::get_provider_schema::Response {
                diagnostics: messages::v6::diagnostics(refused),
                ..Default::default()
            }));
        }
        let mut schemas = v6::schemas(&self.provider);
        let stores = self.provider.state_stores();
        schemas.state_store_schemas = stores.map(|(name, store)| (name.to_owned(), schema(store))).collect();
        let mut response = Response::new(schemas);
        beside_schemas(&self.provider, response.metadata_mut());
        Ok(response)
    }

    pub(super) async fn get_resource_identity_schemas(
        &self,
        _: pb::get_resource_identity_schemas::Request,
    ) -> Result<pb::get_resource_identity_schemas::Response, Status> {
        let with_identity = self.provider.resources().filter(|(_, r)| !r.identity.is_empty());
        let identity_schemas = with_identity.map(|(name, resource)| {
            let ty = identity_type(resource.schema, resource.identity);
            let identity_attributes =
                resource
                    .identity
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
                version: resource.identity_version,
                identity_attributes: identity_attributes.collect(),
            };
            (name.to_owned(), schema)
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
                .provider
                .functions()
                .iter()
                .map(|(n, f)| ((*n).to_owned(), function(f)))
                .collect(),
            ..Default::default()
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use monoform_sdk::schema::optional;
    use monoform_sdk::{Attr, Context, Plain, Resource, Result, async_trait, model};

    use super::*;

    model! {
        pub struct Wrong {
            pub it: Attr<String> = optional().keep(),
        }
    }

    struct Wrongs;

    #[async_trait]
    impl Resource for Wrongs {
        type Model = Wrong;
        type Client = ();

        async fn create(&self, plan: Wrong, _: &mut Context<()>) -> Result<Wrong> {
            Ok(plan)
        }
    }

    #[tokio::test]
    async fn schemas_that_cannot_work_are_refused_with_all_that_is_wrong() {
        let provider = ServedProvider::new(Plain(|members| members.resource("x_wrong", Wrongs)));
        let service = Service::new(Arc::new(provider));
        let answer = service
            .get_schema_6(Request::new(pb::get_provider_schema::Request {}))
            .await;
        let answer = answer.unwrap().into_inner();
        assert!(answer.resource_schemas.is_empty());
        let detail = &answer.diagnostics[0].detail;
        assert!(
            detail.contains("- resource x_wrong: it: keep() is about results"),
            "{detail}"
        );
        let request = tfplugin5::get_provider_schema::Request {};
        let answer = service.get_schema_5(Request::new(request)).await.unwrap().into_inner();
        assert_eq!(answer.diagnostics.len(), 1);
    }
}
