//! The methods that describe a provider. Two of the answers differ between the protocol versions, so a macro defines the methods for both.

use monoform_sdk::served::{ServedProvider, declared_identity_type};
use monoform_sdk::{Diagnostic, Diagnostics};
use prost::bytes::Bytes;
use proto::{tfplugin5, tfplugin6 as pb};
use tonic::metadata::{MetadataMap, MetadataValue};
use tonic::{Response, Status};

use super::service::Service;
use crate::messages::v6::{function, type_bytes};

/// Defines the methods with the messages of one version of the protocol. `$with_store` adds the schema of a state store to an answer.
macro_rules! descriptions {
    ($version:ident, $with_store:expr) => {
        use std::collections::HashMap;

        use monoform_sdk::served::{Part, ServedProvider};
        use prost::Message as _;
        use prost::bytes::Bytes;

        use crate::messages::$version::{diagnostics, function, pb, schema};

        fn capabilities(provider: &ServedProvider) -> pb::ServerCapabilities {
            pb::ServerCapabilities {
                plan_destroy: provider.plans_destroy(),
                // A process compiles its schemas by itself when calls need them, so a
                // host may use those that an earlier process sent.
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

        /// Returns the answer with all schemas, encoded, or the one that reports the errors in them.
        pub(super) fn schemas(provider: &ServedProvider) -> Result<Bytes, Bytes> {
            use pb::get_provider_schema::Response;
            let mut out = Vec::new();
            let problems = provider.describe(|part, declared| {
                let schema = schema(declared);
                let one = |name: &str, schema| HashMap::from([(name.to_owned(), schema)]);
                let mut answer = Response::default();
                match part {
                    Part::Provider => answer.provider = Some(schema),
                    Part::ProviderMeta => answer.provider_meta = Some(schema),
                    Part::Resource(name) => answer.resource_schemas = one(name, schema),
                    Part::DataSource(name) => answer.data_source_schemas = one(name, schema),
                    Part::Ephemeral(name) => answer.ephemeral_resource_schemas = one(name, schema),
                    Part::List(name) => answer.list_resource_schemas = one(name, schema),
                    Part::Action(name) => {
                        let schema = Some(schema);
                        answer.action_schemas = HashMap::from([(name.to_owned(), pb::ActionSchema { schema })]);
                    }
                    Part::StateStore(name) => $with_store(&mut answer, one(name, schema)),
                }
                // Encoded messages one after another are the message with all of their fields, so only one schema is in memory at
                // a time. A vector has room for all, so encoding cannot fail.
                answer.encode_raw(&mut out);
            });
            if let Some(refused) = super::refused(&problems) {
                let answer = Response {
                    diagnostics: diagnostics(refused),
                    ..Default::default()
                };
                return Err(answer.encode_to_vec().into());
            }
            let functions = provider.functions().iter();
            let last = Response {
                functions: functions
                    .map(|(name, f)| ((*name).to_owned(), function(f)))
                    .collect(),
                server_capabilities: Some(capabilities(provider)),
                ..Default::default()
            };
            last.encode_raw(&mut out);
            Ok(out.into())
        }
    };
}

mod v5 {
    // A provider with state stores is served in protocol 6 only.
    descriptions! { v5, |_: &mut Response, _: HashMap<String, pb::Schema>| () }
}

mod v6 {
    descriptions! { v6, |answer: &mut Response, schemas| answer.state_store_schemas = schemas }
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

/// Returns the error for schemas that cannot work; `None` if all can. Hosts show it, but not what a plugin wrote before it ended.
fn refused(problems: &[String]) -> Option<Diagnostics> {
    if problems.is_empty() {
        return None;
    }
    let list: String = problems.iter().map(|problem| format!("\n- {problem}")).collect();
    let detail =
        format!("This provider cannot be served, since its schemas cannot work. These are bugs in the plugin:{list}");
    Some(Diagnostic::error("Invalid Provider Schema", detail).into())
}

/// Returns the response for an answer with schemas, or for one that refuses them.
fn described(provider: &ServedProvider, schemas: Result<Bytes, Bytes>) -> Response<Bytes> {
    match schemas {
        Ok(schemas) => {
            let mut response = Response::new(schemas);
            beside_schemas(provider, response.metadata_mut());
            response
        }
        Err(refused) => Response::new(refused),
    }
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
            .map(|name| pb::get_metadata::StateStoreMetadata {
                type_name: name.to_owned(),
            })
            .collect();
        Ok(metadata)
    }

    pub(super) async fn get_schema_5(
        &self,
        _: tfplugin5::get_provider_schema::Request,
    ) -> Result<Response<Bytes>, Status> {
        Ok(described(&self.provider, v5::schemas(&self.provider)))
    }

    pub(super) async fn get_schema_6(&self, _: pb::get_provider_schema::Request) -> Result<Response<Bytes>, Status> {
        Ok(described(&self.provider, v6::schemas(&self.provider)))
    }

    pub(super) async fn get_resource_identity_schemas(
        &self,
        _: pb::get_resource_identity_schemas::Request,
    ) -> Result<pb::get_resource_identity_schemas::Response, Status> {
        let with_identity = self.provider.resources().filter(|(_, r)| !r.identity.is_empty());
        let identity_schemas = with_identity.map(|(name, resource)| {
            let ty = declared_identity_type(&resource.member.declared(), resource.identity);
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
    use std::sync::atomic::{AtomicUsize, Ordering};

    use monoform_sdk::schema::{Schema, intern, optional};
    use monoform_sdk::{Attr, Context, Empty, Members, Plain, Provider, Resource, Result, async_trait, model};
    use prost::Message as _;

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
        let answer = service.get_schema_6(pb::get_provider_schema::Request {}).await;
        let answer = pb::get_provider_schema::Response::decode(answer.unwrap().into_inner()).unwrap();
        assert!(answer.resource_schemas.is_empty());
        let detail = &answer.diagnostics[0].detail;
        assert!(
            detail.contains("- resource x_wrong: it: keep() is about results"),
            "{detail}"
        );
        let request = tfplugin5::get_provider_schema::Request {};
        let answer = service.get_schema_5(request).await.unwrap().into_inner();
        let answer = tfplugin5::get_provider_schema::Response::decode(answer).unwrap();
        assert_eq!(answer.diagnostics.len(), 1);
    }

    /// A type that counts how often its schema is made.
    struct Counted(Arc<AtomicUsize>);

    #[async_trait]
    impl Resource for Counted {
        type Model = Right;
        type Client = ();

        fn schema(&self) -> Schema {
            self.0.fetch_add(1, Ordering::SeqCst);
            Schema::of::<Right>()
        }

        async fn create(&self, plan: Right, _: &mut Context<()>) -> Result<Right> {
            Ok(plan)
        }
    }

    model! {
        pub struct Right {
            pub it: Attr<String> = optional(),
        }
    }

    /// A provider with two hundred types.
    struct Large(Arc<AtomicUsize>);

    #[async_trait]
    impl Provider for Large {
        type Config = Empty;
        type Client = ();

        fn members(&self, members: &mut Members<()>) {
            for i in 0..200 {
                members.resource(intern(&format!("x_{i}")), Counted(self.0.clone()));
            }
        }

        async fn configure(&self, _: Empty, _: &str) -> Result<()> {
            Ok(())
        }
    }

    #[tokio::test]
    async fn calls_compile_only_the_types_that_they_use() {
        let made = Arc::new(AtomicUsize::new(0));
        let service = Service::new(Arc::new(ServedProvider::new(Large(made.clone()))));
        let metadata = service.get_metadata_6(pb::get_metadata::Request {}).await.unwrap();
        assert_eq!(metadata.resources.len(), 200);
        let request = pb::get_resource_identity_schemas::Request {};
        service.get_resource_identity_schemas(request).await.unwrap();
        assert_eq!(
            made.load(Ordering::SeqCst),
            0,
            "names and absent identities need no schema"
        );

        let dynamic = |json: &str| {
            Some(pb::DynamicValue {
                json: json.into(),
                ..Default::default()
            })
        };
        for _ in 0..2 {
            let request = pb::plan_resource_change::Request {
                type_name: "x_7".into(),
                prior_state: dynamic("null"),
                proposed_new_state: dynamic(r#"{"it":"a"}"#),
                config: dynamic(r#"{"it":"a"}"#),
                ..Default::default()
            };
            let answer = service.plan_resource_change(request).await.unwrap();
            assert!(answer.diagnostics.is_empty(), "{:?}", answer.diagnostics);
        }
        assert_eq!(made.load(Ordering::SeqCst), 1, "a type in use is compiled once");

        let answer = service.get_schema_6(pb::get_provider_schema::Request {}).await.unwrap();
        let answer = pb::get_provider_schema::Response::decode(answer.into_inner()).unwrap();
        assert_eq!(answer.resource_schemas.len(), 200);
        assert_eq!(made.load(Ordering::SeqCst), 201, "a description makes each schema once");
    }
}
