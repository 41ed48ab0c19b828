//! A provider as the gRPC service of protocol 5 and of protocol 6.
//!
//! The two services differ in the names of seven calls and in the calls for state stores, which only protocol 6 has.
//! One macro writes both: what is the same is written once, what differs is passed in.

use std::sync::Arc;

use tonic::Status;

use crate::Stop;
use crate::server::core::Core;
use crate::server::threads;

/// The provider behind both services.
#[derive(Clone)]
pub(crate) struct Service(pub Arc<Core>);

impl Service {
    /// Runs a call as a task of its own.
    async fn run<T, F>(&self, call: impl FnOnce(Arc<Core>, Stop) -> F) -> Result<T, Status>
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        threads::run(&self.0.calls, self.0.blocks, |stop| call(self.0.clone(), stop)).await
    }

    /// Runs a call that does not wait: at once where it cannot block.
    async fn run_now<T: Send + 'static>(&self, call: impl FnOnce(&Core) -> T + Send + 'static) -> Result<T, Status> {
        match self.0.blocks {
            true => self.run(|core, _| async move { call(&core) }).await,
            false => Ok(call(&self.0)),
        }
    }
}

macro_rules! provider_service {
    (
        messages: $version:ident,
        get_schema: $get_schema:ident,
        validate_provider: $validate_provider:ident($provider_module:ident),
        validate_resource: $validate_resource:ident($resource_module:ident),
        validate_data: $validate_data:ident($data_module:ident),
        configure: $configure:ident($configure_module:ident),
        stop: $stop:ident($stop_module:ident),
        stores: |$core:ident, $message:ident| $with_stores:expr,
        only_here: { $($only_here:tt)* }
    ) => {
        use std::time::{SystemTime, UNIX_EPOCH};

        use async_trait::async_trait;
        use futures::StreamExt as _;
        use futures::stream::BoxStream;
        use tokio_stream::wrappers::ReceiverStream;
        use tonic::{Request, Response, Status};

        use super::Service;
        use crate::call::CallOptions;
        use crate::resource::identity_type;
        use crate::server::actions::{self, ActionEvent};
use crate::server::core::{Changed, Ephemeral, MovedObject, ObjectMetadata};
        use crate::server::list::ListCall;
        use crate::wire::Wire;
        use crate::server::messages::$version::{
            deferral_allowed, deferred, diagnostics, dynamic, function, path, pb, raw_state, schema, type_bytes, wire,
        };


        type Answer<T> = Result<Response<T>, Status>;

        fn time(at: SystemTime) -> prost_types::Timestamp {
            // Times before 1970 cannot mean anything here.
            let since = at.duration_since(UNIX_EPOCH).unwrap_or_default();
            prost_types::Timestamp {
                seconds: i64::try_from(since.as_secs()).unwrap_or(i64::MAX),
                nanos: i32::try_from(since.subsec_nanos()).unwrap_or(0),
            }
        }

        fn identity(wire: Option<Wire>) -> Option<pb::ResourceIdentityData> {
            wire.map(|wire| pb::ResourceIdentityData { identity_data: Some(dynamic(wire)) })
        }

        fn capabilities(service: &Service) -> pb::ServerCapabilities {
            pb::ServerCapabilities {
                plan_destroy: service.0.plans_destroy(),
                get_provider_schema_optional: true,
                move_resource_state: true,
                generate_resource_config: service.0.generates_config(),
            }
        }

        #[async_trait]
        impl pb::provider_server::Provider for Service {
            async fn get_metadata(
                &self,
                _: Request<pb::get_metadata::Request>,
            ) -> Answer<pb::get_metadata::Response> {
                use pb::get_metadata as m;
                let name = |n: &&'static str| (*n).to_owned();
                Ok(Response::new(m::Response {
                    server_capabilities: Some(capabilities(self)),
                    resources: self.0.resources.keys().map(|n| m::ResourceMetadata { type_name: name(n) }).collect(),
                    data_sources: self.0.data_sources.keys().map(|n| m::DataSourceMetadata { type_name: name(n) }).collect(),
                    ephemeral_resources: self.0.ephemerals.keys().map(|n| m::EphemeralMetadata { type_name: name(n) }).collect(),
                    functions: self.0.functions.keys().map(|n| m::FunctionMetadata { name: name(n) }).collect(),
                    list_resources: self.0.lists.keys().map(|n| m::ListResourceMetadata { type_name: name(n) }).collect(),
                    actions: self.0.actions.keys().map(|n| m::ActionMetadata { type_name: name(n) }).collect(),
                    ..Default::default()
                }))
            }

            async fn $get_schema(
                &self,
                _: Request<pb::get_provider_schema::Request>,
            ) -> Answer<pb::get_provider_schema::Response> {
                let name = |n: &&'static str| (*n).to_owned();
                let $core = &*self.0;
                let $message = pb::get_provider_schema::Response {
                    provider: Some(schema(self.0.config_schema())),
                    provider_meta: self.0.meta.as_ref().map(schema),
                    resource_schemas: self.0.resources.iter().map(|(n, r)| (name(n), schema(r.schema()))).collect(),
                    data_source_schemas: self.0.data_sources.iter().map(|(n, r)| (name(n), schema(r.schema()))).collect(),
                    ephemeral_resource_schemas: self.0.ephemerals.iter().map(|(n, r)| (name(n), schema(r.schema()))).collect(),
                    list_resource_schemas: self.0.lists.iter().map(|(n, l)| (name(n), schema(l.schema()))).collect(),
                    functions: self.0.functions.iter().map(|(n, f)| (name(n), function(f))).collect(),
                    action_schemas: self.0.actions.iter().map(|(n, a)| {
                        (name(n), pb::ActionSchema { schema: Some(schema(a.schema())) })
                    }).collect(),
                    server_capabilities: Some(capabilities(self)),
                    ..Default::default()
                };
                let mut response = Response::new($with_stores);
                let state_only: Vec<&str> =
                    self.0.resources.iter().filter(|(_, r)| r.state_only()).map(|(n, _)| *n).collect();
                if let Ok(names) = state_only.join(",").parse() {
                    response.metadata_mut().insert(proto::STATE_ONLY, names);
                }
                Ok(response)
            }

            async fn get_resource_identity_schemas(
                &self,
                _: Request<pb::get_resource_identity_schemas::Request>,
            ) -> Answer<pb::get_resource_identity_schemas::Response> {
                let with_identity = self.0.resources.iter().filter(|(_, r)| !r.identity().is_empty());
                let identity_schemas = with_identity.map(|(name, resource)| {
                    let ty = identity_type(resource.schema(), resource.identity());
                    let identity_attributes = resource.identity().iter().map(|a| {
                        pb::resource_identity_schema::IdentityAttribute {
                            name: a.name.to_owned(),
                            r#type: ty.as_object().and_then(|o| o.get(a.name)).map(type_bytes).unwrap_or_default(),
                            required_for_import: a.required_for_import,
                            optional_for_import: !a.required_for_import,
                            description: a.description.to_owned(),
                        }
                    });
                    let schema =
                        pb::ResourceIdentitySchema {
                            version: resource.identity_version(),
                            identity_attributes: identity_attributes.collect(),
                        };
                    ((*name).to_owned(), schema)
                });
                Ok(Response::new(pb::get_resource_identity_schemas::Response {
                    identity_schemas: identity_schemas.collect(),
                    ..Default::default()
                }))
            }

            async fn $validate_provider(
                &self,
                request: Request<pb::$provider_module::Request>,
            ) -> Answer<pb::$provider_module::Response> {
                let request = request.into_inner();
                let found = self.run_now(|core| core.validate_provider(&wire(request.config))).await?;
                #[allow(clippy::needless_update, reason = "protocol 5's answer has a second field, protocol 6's has none")]
                Ok(Response::new(pb::$provider_module::Response {
                    diagnostics: diagnostics(found),
                    ..Default::default()
                }))
            }

            async fn $validate_resource(
                &self,
                request: Request<pb::$resource_module::Request>,
            ) -> Answer<pb::$resource_module::Response> {
                let r = request.into_inner();
                let write_only = r.client_capabilities.is_some_and(|c| c.write_only_attributes_allowed);
                let found = self
                    .run_now(move |core| core.validate_resource(&r.type_name, &wire(r.config), write_only))
                    .await?;
                Ok(Response::new(pb::$resource_module::Response { diagnostics: diagnostics(found) }))
            }

            async fn $validate_data(
                &self,
                request: Request<pb::$data_module::Request>,
            ) -> Answer<pb::$data_module::Response> {
                let r = request.into_inner();
                let found = self.run_now(move |core| core.validate_data_source(&r.type_name, &wire(r.config))).await?;
                Ok(Response::new(pb::$data_module::Response { diagnostics: diagnostics(found) }))
            }

            async fn upgrade_resource_state(
                &self,
                request: Request<pb::upgrade_resource_state::Request>,
            ) -> Answer<pb::upgrade_resource_state::Response> {
                let r = request.into_inner();
                let (state, found) = self
                    .run_now(move |core| core.upgrade(&r.type_name, r.version, &raw_state(r.raw_state)))
                    .await?;
                Ok(Response::new(pb::upgrade_resource_state::Response {
                    upgraded_state: state.map(dynamic),
                    diagnostics: diagnostics(found),
                }))
            }

            async fn upgrade_resource_identity(
                &self,
                request: Request<pb::upgrade_resource_identity::Request>,
            ) -> Answer<pb::upgrade_resource_identity::Response> {
                let r = request.into_inner();
                let (upgraded, found) = self
                    .run_now(move |core| core.upgrade_identity(&r.type_name, r.version, &raw_state(r.raw_identity)))
                    .await?;
                Ok(Response::new(pb::upgrade_resource_identity::Response {
                    upgraded_identity: identity(upgraded),
                    diagnostics: diagnostics(found),
                }))
            }

            async fn $configure(
                &self,
                request: Request<pb::$configure_module::Request>,
            ) -> Answer<pb::$configure_module::Response> {
                let r = request.into_inner();
                let found = self
                    .run(|core, _| async move { core.configure(&wire(r.config), &r.terraform_version).await })
                    .await?;
                Ok(Response::new(pb::$configure_module::Response { diagnostics: diagnostics(found) }))
            }

            async fn read_resource(
                &self,
                request: Request<pb::read_resource::Request>,
            ) -> Answer<pb::read_resource::Response> {
                let r = request.into_inner();
                let c = self
                    .run(|core, stop| async move {
                        let identity = r.current_identity.map(|i| wire(i.identity_data));
                        let options = CallOptions::from(stop)
                            .deferral(deferral_allowed(r.client_capabilities.as_ref()))
                            .meta(wire(r.provider_meta));
                        core.read(&r.type_name, wire(r.current_state), r.private, identity, options).await
                    })
                    .await?;
                Ok(Response::new(pb::read_resource::Response {
                    new_state: c.state.map(dynamic),
                    diagnostics: diagnostics(c.diagnostics),
                    private: c.private,
                    deferred: deferred(c.deferred),
                    new_identity: identity(c.identity),
                }))
            }

            async fn plan_resource_change(
                &self,
                request: Request<pb::plan_resource_change::Request>,
            ) -> Answer<pb::plan_resource_change::Response> {
                let r = request.into_inner();
                let lenient = self.0.is_lenient(&r.type_name);
                let c = self
                    .run(|core, stop| async move {
                        let (prior, proposed) = (wire(r.prior_state), wire(r.proposed_new_state));
                        let config = wire(r.config);
                        let beside = ObjectMetadata {
                            private: r.prior_private,
                            identity: r.prior_identity.map(|i| wire(i.identity_data)),
                        };
                        let options = CallOptions::from(stop)
                            .deferral(deferral_allowed(r.client_capabilities.as_ref()))
                            .meta(wire(r.provider_meta));
                        core.plan(&r.type_name, &prior, &proposed, &config, beside, options).await
                    })
                    .await?;
                Ok(Response::new(pb::plan_resource_change::Response {
                    planned_state: c.state.map(dynamic),
                    requires_replace: c.requires_replace.iter().map(path).collect(),
                    planned_private: c.private,
                    diagnostics: diagnostics(c.diagnostics),
                    planned_identity: identity(c.identity),
                    deferred: deferred(c.deferred),
                    legacy_type_system: lenient,
                }))
            }

            async fn apply_resource_change(
                &self,
                request: Request<pb::apply_resource_change::Request>,
            ) -> Answer<pb::apply_resource_change::Response> {
                let r = request.into_inner();
                let lenient = self.0.is_lenient(&r.type_name);
                let c = self
                    .run(|core, stop| async move {
                        let (prior, planned) = (wire(r.prior_state), wire(r.planned_state));
                        let config = wire(r.config);
                        let beside = ObjectMetadata {
                            private: r.planned_private,
                            identity: r.planned_identity.map(|i| wire(i.identity_data)),
                        };
                        let options = CallOptions::from(stop).meta(wire(r.provider_meta));
                        core.apply(&r.type_name, prior, &planned, config, beside, options).await
                    })
                    .await?;
                Ok(Response::new(pb::apply_resource_change::Response {
                    new_state: c.state.map(dynamic),
                    private: c.private,
                    diagnostics: diagnostics(c.diagnostics),
                    new_identity: identity(c.identity),
                    legacy_type_system: lenient,
                }))
            }

            async fn import_resource_state(
                &self,
                request: Request<pb::import_resource_state::Request>,
            ) -> Answer<pb::import_resource_state::Response> {
                let r = request.into_inner();
                let type_name = r.type_name.clone();
                let c: Changed = self
                    .run(|core, stop| async move {
                        let identity = r.identity.map(|i| wire(i.identity_data));
                        let options =
                            CallOptions::from(stop).deferral(deferral_allowed(r.client_capabilities.as_ref()));
                        core.import(&r.type_name, &r.id, identity, options).await
                    })
                    .await?;
                let failed = c.diagnostics.has_errors();
                let imported = pb::import_resource_state::ImportedResource {
                    type_name,
                    state: c.state.map(dynamic),
                    private: c.private,
                    identity: identity(c.identity),
                };
                Ok(Response::new(pb::import_resource_state::Response {
                    imported_resources: if failed { Vec::new() } else { vec![imported] },
                    diagnostics: diagnostics(c.diagnostics),
                    deferred: deferred(c.deferred),
                }))
            }

            async fn move_resource_state(
                &self,
                request: Request<pb::move_resource_state::Request>,
            ) -> Answer<pb::move_resource_state::Response> {
                let r = request.into_inner();
                let c = self
                    .run(|core, stop| async move {
                        let moved = MovedObject {
                            provider: r.source_provider_address,
                            type_name: r.source_type_name,
                            schema_version: r.source_schema_version,
                            state: raw_state(r.source_state),
                            private: r.source_private,
                            identity: r.source_identity.map(|i| raw_state(Some(i))),
                            identity_schema_version: r.source_identity_schema_version,
                        };
                        core.move_from(&r.target_type_name, moved, stop.into()).await
                    })
                    .await?;
                Ok(Response::new(pb::move_resource_state::Response {
                    target_state: c.state.map(dynamic),
                    diagnostics: diagnostics(c.diagnostics),
                    target_private: c.private,
                    target_identity: identity(c.identity),
                }))
            }

            async fn read_data_source(
                &self,
                request: Request<pb::read_data_source::Request>,
            ) -> Answer<pb::read_data_source::Response> {
                let r = request.into_inner();
                let answer = self
                    .run(|core, stop| async move {
                        let options = CallOptions::from(stop)
                            .deferral(deferral_allowed(r.client_capabilities.as_ref()))
                            .meta(wire(r.provider_meta));
                        core.read_data_source(&r.type_name, &wire(r.config), options).await
                    })
                    .await?;
                Ok(Response::new(pb::read_data_source::Response {
                    state: answer.state.map(dynamic),
                    diagnostics: diagnostics(answer.diagnostics),
                    deferred: deferred(answer.deferred),
                }))
            }

            async fn generate_resource_config(
                &self,
                request: Request<pb::generate_resource_config::Request>,
            ) -> Answer<pb::generate_resource_config::Response> {
                let r = request.into_inner();
                let (config, found) = self
                    .run(|core, stop| async move { core.generate_config(&r.type_name, &wire(r.state), stop.into()).await })
                    .await?;
                Ok(Response::new(pb::generate_resource_config::Response {
                    config: config.map(dynamic),
                    diagnostics: diagnostics(found),
                }))
            }

            async fn validate_ephemeral_resource_config(
                &self,
                request: Request<pb::validate_ephemeral_resource_config::Request>,
            ) -> Answer<pb::validate_ephemeral_resource_config::Response> {
                let r = request.into_inner();
                let found = self.run_now(move |core| core.validate_ephemeral(&r.type_name, &wire(r.config))).await?;
                Ok(Response::new(pb::validate_ephemeral_resource_config::Response { diagnostics: diagnostics(found) }))
            }

            async fn open_ephemeral_resource(
                &self,
                request: Request<pb::open_ephemeral_resource::Request>,
            ) -> Answer<pb::open_ephemeral_resource::Response> {
                let r = request.into_inner();
                let e: Ephemeral = self
                    .run(|core, stop| async move {
                        let options =
                            CallOptions::from(stop).deferral(deferral_allowed(r.client_capabilities.as_ref()));
                        core.open(&r.type_name, &wire(r.config), options).await
                    })
                    .await?;
                Ok(Response::new(pb::open_ephemeral_resource::Response {
                    diagnostics: diagnostics(e.diagnostics),
                    renew_at: e.renew_at.map(time),
                    result: e.result.map(dynamic),
                    private: Some(e.private).filter(|p| !p.is_empty()),
                    deferred: deferred(e.deferred),
                }))
            }

            async fn renew_ephemeral_resource(
                &self,
                request: Request<pb::renew_ephemeral_resource::Request>,
            ) -> Answer<pb::renew_ephemeral_resource::Response> {
                let r = request.into_inner();
                let e: Ephemeral = self
                    .run(|core, stop| async move {
                        core.renew(&r.type_name, r.private.unwrap_or_default(), stop.into()).await
                    })
                    .await?;
                Ok(Response::new(pb::renew_ephemeral_resource::Response {
                    diagnostics: diagnostics(e.diagnostics),
                    renew_at: e.renew_at.map(time),
                    private: Some(e.private).filter(|p| !p.is_empty()),
                }))
            }

            async fn close_ephemeral_resource(
                &self,
                request: Request<pb::close_ephemeral_resource::Request>,
            ) -> Answer<pb::close_ephemeral_resource::Response> {
                let r = request.into_inner();
                let found = self
                    .run(|core, _| async move { core.close(&r.type_name, r.private.unwrap_or_default()).await })
                    .await?;
                Ok(Response::new(pb::close_ephemeral_resource::Response { diagnostics: diagnostics(found) }))
            }

            type ListResourceStream = BoxStream<'static, Result<pb::list_resource::Event, Status>>;

            async fn list_resource(
                &self,
                request: Request<pb::list_resource::Request>,
            ) -> Answer<Self::ListResourceStream> {
                let r = request.into_inner();
                let events = self.0.clone().list(ListCall {
                    name: r.type_name,
                    config: wire(r.config),
                    include_objects: r.include_resource_object,
                    limit: r.limit,
                });
                let events = ReceiverStream::new(events).map(|event| {
                    Ok(pb::list_resource::Event {
                        identity: identity(event.identity),
                        display_name: event.display_name,
                        resource_object: event.object.map(dynamic),
                        diagnostic: diagnostics(event.diagnostics),
                    })
                });
                Ok(Response::new(events.boxed()))
            }

            async fn validate_list_resource_config(
                &self,
                request: Request<pb::validate_list_resource_config::Request>,
            ) -> Answer<pb::validate_list_resource_config::Response> {
                let r = request.into_inner();
                let found = self.run_now(move |core| core.validate_list(&r.type_name, &wire(r.config))).await?;
                Ok(Response::new(pb::validate_list_resource_config::Response { diagnostics: diagnostics(found) }))
            }

            async fn get_functions(
                &self,
                _: Request<pb::get_functions::Request>,
            ) -> Answer<pb::get_functions::Response> {
                Ok(Response::new(pb::get_functions::Response {
                    functions: self.0.functions.iter().map(|(n, f)| ((*n).to_owned(), function(f))).collect(),
                    ..Default::default()
                }))
            }

            async fn call_function(
                &self,
                request: Request<pb::call_function::Request>,
            ) -> Answer<pb::call_function::Response> {
                let r = request.into_inner();
                let result = self
                    .run_now(move |core| {
                        let arguments: Vec<Wire> = r.arguments.into_iter().map(|a| wire(Some(a))).collect();
                        core.call(&r.name, &arguments)
                    })
                    .await?;
                let response = match result {
                    Ok(result) => pb::call_function::Response { result: Some(dynamic(result)), error: None },
                    Err(error) => pb::call_function::Response {
                        result: None,
                        error: Some(pb::FunctionError {
                            text: error.text,
                            function_argument: error.argument.and_then(|i| i64::try_from(i).ok()),
                        }),
                    },
                };
                Ok(Response::new(response))
            }

            async fn plan_action(
                &self,
                request: Request<pb::plan_action::Request>,
            ) -> Answer<pb::plan_action::Response> {
                let r = request.into_inner();
                let (why, found) = self
                    .run(|core, stop| async move {
                        let options =
                            CallOptions::from(stop).deferral(deferral_allowed(r.client_capabilities.as_ref()));
                        core.plan_action(&r.action_type, &wire(r.config), options).await
                    })
                    .await?;
                Ok(Response::new(pb::plan_action::Response {
                    diagnostics: diagnostics(found),
                    deferred: deferred(why),
                }))
            }

            type InvokeActionStream = actions::Events<pb::invoke_action::Event>;

            async fn invoke_action(
                &self,
                request: Request<pb::invoke_action::Request>,
            ) -> Answer<Self::InvokeActionStream> {
                use pb::invoke_action::{Event, event::{Completed, Progress, Type}};
                let r = request.into_inner();
                let events = actions::events(self.0.clone(), r.action_type, wire(r.config), |event| Event {
                    r#type: Some(match event {
                        ActionEvent::Progress(message) => Type::Progress(Progress { message }),
                        ActionEvent::Completed(found) => Type::Completed(Completed { diagnostics: diagnostics(found) }),
                    }),
                });
                Ok(Response::new(events))
            }

            async fn validate_action_config(
                &self,
                request: Request<pb::validate_action_config::Request>,
            ) -> Answer<pb::validate_action_config::Response> {
                let r = request.into_inner();
                let found = self.run_now(move |core| core.validate_action(&r.type_name, &wire(r.config))).await?;
                Ok(Response::new(pb::validate_action_config::Response { diagnostics: diagnostics(found) }))
            }

            async fn $stop(&self, _: Request<pb::$stop_module::Request>) -> Answer<pb::$stop_module::Response> {
                self.0.calls.stop();
                Ok(Response::new(pb::$stop_module::Response::default()))
            }

            $($only_here)*
        }
    };
}

/// Protocol 5.
mod v5 {
    provider_service! {
        messages: v5,
        get_schema: get_schema,
        validate_provider: prepare_provider_config(prepare_provider_config),
        validate_resource: validate_resource_type_config(validate_resource_type_config),
        validate_data: validate_data_source_config(validate_data_source_config),
        configure: configure(configure),
        stop: stop(stop),
        stores: |_core, response| response,
        only_here: {}
    }
}

/// Protocol 6.
mod v6 {
    use crate::server::state_store;

    provider_service! {
        messages: v6,
        get_schema: get_provider_schema,
        validate_provider: validate_provider_config(validate_provider_config),
        validate_resource: validate_resource_config(validate_resource_config),
        validate_data: validate_data_resource_config(validate_data_resource_config),
        configure: configure_provider(configure_provider),
        stop: stop_provider(stop_provider),
        stores: |core, response| pb::get_provider_schema::Response {
            state_store_schemas: core
                .state_stores
                .iter()
                .map(|(name, store)| ((*name).to_owned(), schema(store.store.schema())))
                .collect(),
            ..response
        },
        only_here: {
            async fn validate_state_store_config(
                &self,
                request: Request<pb::validate_state_store::Request>,
            ) -> Answer<pb::validate_state_store::Response> {
                let r = request.into_inner();
                let found = self.run_now(move |core| core.validate_store(&r.type_name, &wire(r.config))).await?;
                Ok(Response::new(pb::validate_state_store::Response { diagnostics: diagnostics(found) }))
            }

            async fn configure_state_store(
                &self,
                request: Request<pb::configure_state_store::Request>,
            ) -> Answer<pb::configure_state_store::Response> {
                let r = request.into_inner();
                let asked = r.capabilities.unwrap_or_default().chunk_size;
                let chunk_size = usize::try_from(asked).unwrap_or_default();
                let result = self
                    .run(move |core, _| async move {
                        core.configure_store(&r.type_name, &wire(r.config), chunk_size).await
                    })
                    .await?;
                let (chunk_size, support, problems) = match result {
                    Ok((chunk_size, support)) => (chunk_size, Some(support), crate::Diagnostics::new()),
                    Err(problems) => (0, None, problems),
                };
                let mut response = Response::new(pb::configure_state_store::Response {
                    diagnostics: diagnostics(problems),
                    capabilities: Some(pb::StateStoreServerCapabilities {
                        chunk_size: i64::try_from(chunk_size).unwrap_or_default(),
                    }),
                });
                if let Some(support) = support {
                    let support = tonic::metadata::MetadataValue::from_static(state_store::support_text(support));
                    response.metadata_mut().insert(proto::STATE_WORKSPACES, support);
                }
                Ok(response)
            }

            async fn get_states(&self, request: Request<pb::get_states::Request>) -> Answer<pb::get_states::Response> {
                let r = request.into_inner();
                let result = self.run(move |core, _| async move { core.states(&r.type_name).await }).await?;
                let (state_id, problems) = match result {
                    Ok(names) => (names, crate::Diagnostics::new()),
                    Err(problems) => (Vec::new(), problems),
                };
                Ok(Response::new(pb::get_states::Response { state_id, diagnostics: diagnostics(problems) }))
            }

            async fn delete_state(
                &self,
                request: Request<pb::delete_state::Request>,
            ) -> Answer<pb::delete_state::Response> {
                let r = request.into_inner();
                let result = self
                    .run(move |core, _| async move { core.delete_state(&r.type_name, &r.state_id).await })
                    .await?;
                let problems = result.err().unwrap_or_default();
                Ok(Response::new(pb::delete_state::Response { diagnostics: diagnostics(problems) }))
            }

            type ReadStateBytesStream = futures::stream::Iter<std::vec::IntoIter<Result<pb::read_state_bytes::Response, Status>>>;

            async fn read_state_bytes(
                &self,
                request: Request<pb::read_state_bytes::Request>,
            ) -> Answer<Self::ReadStateBytesStream> {
                let r = request.into_inner();
                let result = self
                    .run(move |core, _| async move { core.read_state(&r.type_name, &r.state_id).await })
                    .await?;
                let pieces = match result {
                    Ok((bytes, chunk_size)) => state_store::pieces(&bytes, chunk_size)
                        .map(|(range, total_length, bytes)| pb::read_state_bytes::Response {
                            bytes: bytes.to_vec(),
                            total_length,
                            range: Some(range),
                            diagnostics: Vec::new(),
                        })
                        .map(Ok)
                        .collect(),
                    Err(problems) => vec![Ok(pb::read_state_bytes::Response {
                        diagnostics: diagnostics(problems),
                        ..Default::default()
                    })],
                };
                Ok(Response::new(futures::stream::iter(pieces)))
            }

            async fn write_state_bytes(
                &self,
                request: Request<tonic::Streaming<pb::write_state_bytes::RequestChunk>>,
            ) -> Answer<pb::write_state_bytes::Response> {
                let (meta, bytes) = state_store::gather(request.into_inner()).await?;
                let result = self
                    .run(move |core, _| async move { core.write_state(&meta.type_name, &meta.state_id, bytes).await })
                    .await?;
                let problems = result.err().unwrap_or_default();
                Ok(Response::new(pb::write_state_bytes::Response { diagnostics: diagnostics(problems) }))
            }

            async fn lock_state(
                &self,
                request: Request<pb::lock_state::Request>,
            ) -> Answer<pb::lock_state::Response> {
                let info = request.metadata().get_bin(proto::STATE_LOCK_INFO).and_then(|info| info.to_bytes().ok());
                let r = request.into_inner();
                let info = state_store::lock_info(info.as_deref(), &r.operation);
                let result = self
                    .run(move |core, _| async move { core.lock_state(&r.type_name, &r.state_id, info).await })
                    .await?;
                let (lock_id, holder, problems) = match result {
                    Ok(id) => (id, None, crate::Diagnostics::new()),
                    Err(error) => (String::new(), state_store::holder(&error), error.into_diagnostics()),
                };
                let mut response =
                    Response::new(pb::lock_state::Response { lock_id, diagnostics: diagnostics(problems) });
                if let Some(holder) = holder {
                    let holder = tonic::metadata::MetadataValue::from_bytes(holder.as_bytes());
                    response.metadata_mut().insert_bin(proto::STATE_LOCK_HOLDER, holder);
                }
                Ok(response)
            }

            async fn unlock_state(
                &self,
                request: Request<pb::unlock_state::Request>,
            ) -> Answer<pb::unlock_state::Response> {
                let r = request.into_inner();
                let result = self
                    .run(move |core, _| async move { core.unlock_state(&r.type_name, &r.state_id, &r.lock_id).await })
                    .await?;
                let problems = result.err().unwrap_or_default();
                Ok(Response::new(pb::unlock_state::Response { diagnostics: diagnostics(problems) }))
            }
        }
    }
}
