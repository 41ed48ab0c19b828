//! Requests of [`Provider`]: each encodes its values, decodes the answer and checks it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use async_trait::async_trait;
use cty::{Type, Value};
use proto::tfplugin6 as pb;
use syntax::{Diagnostic, Diagnostics};

use super::{GrpcProvider, capabilities, plain};
use crate::convert;
use crate::grpc::{encode, name, shut_down};
use provider::{
    Actions, Answer, Applied, ApplyRequest, FunctionError, FunctionSchema, ImportTarget, Imported, ListRequest, Listed,
    MoveRequest, ObjectRead, Opened, PlanRequest, PlannedChange, Provider, ProviderSchema, RawState, ReadRequest,
    SchemaMap,
};

#[async_trait]
impl Provider for GrpcProvider {
    async fn schema(&self) -> Result<Arc<ProviderSchema>, Diagnostics> {
        // The first process of a provider describes all processes of that provider. `ready` decides whether the others
        // need the request, too.
        let ask = || async { self.shared.get_or_try_init(|| self.describe()).await.cloned() };
        let description = self.description.get_or_try_init(ask).await?;
        Ok(description.schema.clone())
    }

    async fn validate_provider(&self, config: Value) -> Result<Answer<()>, Diagnostics> {
        let path = self.methods().await?.validate_provider;
        let ty = self.schema().await?.provider.implied_type();
        let request = pb::validate_provider_config::Request {
            config: self.encode(path, &config, &ty)?,
        };
        let response: pb::validate_provider_config::Response = self.call(path, request).await?;
        Ok(Answer {
            value: (),
            diagnostics: convert::diagnostics(response.diagnostics),
        })
    }

    async fn configure(&self, config: Value) -> Result<Answer<()>, Diagnostics> {
        let path = self.methods().await?.configure;
        let ty = self.schema().await?.provider.implied_type();
        let request = pb::configure_provider::Request {
            terraform_version: self.terraform_version.to_string(),
            config: self.encode(path, &config, &ty)?,
            client_capabilities: Some(capabilities()),
        };
        let response: pb::configure_provider::Response = self.call(path, request).await?;
        Ok(Answer {
            value: (),
            diagnostics: convert::diagnostics(response.diagnostics),
        })
    }

    async fn validate_resource(&self, ty: &str, config: Value) -> Result<Answer<()>, Diagnostics> {
        let schema = self.resource(ty).await?;
        self.check(self.methods().await?.validate_resource, ty, &schema, config)
            .await
    }

    async fn validate_data(&self, ty: &str, config: Value) -> Result<Answer<()>, Diagnostics> {
        let schema = self.data_source(ty).await?;
        self.check(self.methods().await?.validate_data, ty, &schema, config)
            .await
    }

    async fn validate_ephemeral(&self, ty: &str, config: Value) -> Result<Answer<()>, Diagnostics> {
        let schema = self.ephemeral(ty).await?;
        self.check(self.methods().await?.validate_ephemeral, ty, &schema, config)
            .await
    }

    async fn upgrade(&self, ty: &str, version: u64, state: RawState) -> Result<Answer<Value>, Diagnostics> {
        let path = self.methods().await?.upgrade;
        let object = self.resource(ty).await?.implied_type();
        let request = pb::upgrade_resource_state::Request {
            type_name: ty.to_owned(),
            version: wire_version(version),
            raw_state: Some(convert::raw_state(state)),
        };
        let response: pb::upgrade_resource_state::Response = self.call(path, request).await?;
        let diagnostics = convert::diagnostics(response.diagnostics);
        let value = self.decode(path, response.upgraded_state, &object, &diagnostics)?;
        // A stored object is the result of an apply, so it must be known completely.
        if !value.is_wholly_known() {
            return Err(self.fault(path, "a stored object contains unknown values", &diagnostics));
        }
        Ok(Answer { value, diagnostics })
    }

    async fn upgrade_identity(
        &self,
        ty: &str,
        version: u64,
        identity: Arc<[u8]>,
    ) -> Result<Answer<Option<Value>>, Diagnostics> {
        self.upgraded_identity(ty, wire_version(version), &identity).await
    }

    async fn read(&self, ty: &str, request: ReadRequest) -> Result<Answer<ObjectRead>, Diagnostics> {
        let ReadRequest {
            current,
            private,
            identity,
            meta,
        } = request;
        let path = self.methods().await?.read;
        let schema = self.resource(ty).await?;
        let object = schema.implied_type();
        let request = pb::read_resource::Request {
            type_name: ty.to_owned(),
            current_state: self.encode(path, &current, &object)?,
            private,
            provider_meta: self.meta(path, meta).await?,
            client_capabilities: Some(capabilities()),
            current_identity: self.encode_identity(path, &schema, identity.as_ref())?,
        };
        let response: pb::read_resource::Response = self.call(path, request).await?;
        let diagnostics = convert::diagnostics(response.diagnostics);
        self.not_deferred(path, response.deferred, &diagnostics)?;
        let value = ObjectRead {
            object: self.decode(path, response.new_state, &object, &diagnostics)?,
            private: response.private,
            identity: self.decode_identity(path, ty, &schema, response.new_identity, &diagnostics)?,
        };
        Ok(Answer { value, diagnostics })
    }

    async fn plan(&self, ty: &str, request: PlanRequest) -> Result<Answer<PlannedChange>, Diagnostics> {
        let PlanRequest {
            prior,
            proposed,
            config,
            prior_private,
            prior_identity,
            planned_private,
            meta,
        } = request;
        let path = self.methods().await?.plan;
        let schema = self.resource(ty).await?;
        let object = schema.implied_type();
        let request = pb::plan_resource_change::Request {
            type_name: ty.to_owned(),
            prior_state: self.encode(path, &prior, &object)?,
            proposed_new_state: self.encode(path, &proposed, &object)?,
            config: self.encode(path, &config, &object)?,
            prior_private,
            provider_meta: self.meta(path, meta).await?,
            client_capabilities: Some(capabilities()),
            prior_identity: self.encode_identity(path, &schema, prior_identity.as_ref())?,
            planned_private,
        };
        let response: pb::plan_resource_change::Response = self.call(path, request).await?;
        let diagnostics = convert::diagnostics(response.diagnostics);
        self.not_deferred(path, response.deferred, &diagnostics)?;
        let planned = self.decode(path, response.planned_state, &object, &diagnostics)?;
        let mut requires_replace = Vec::with_capacity(response.requires_replace.len());
        for attribute in response.requires_replace {
            // A shortened path would name another attribute.
            match convert::path(attribute) {
                (attribute, true) => requires_replace.push(attribute),
                (_, false) => return Err(self.fault(path, "a path that requires replacement is empty", &diagnostics)),
            }
        }
        let value = PlannedChange {
            planned,
            requires_replace,
            private: response.planned_private,
            identity: self.decode_identity(path, ty, &schema, response.planned_identity, &diagnostics)?,
            legacy_type_system: response.legacy_type_system,
        };
        Ok(Answer { value, diagnostics })
    }

    fn has_ended(&self) -> bool {
        self.connection
            .process()
            .is_some_and(|process| process.exit().is_some())
    }

    async fn apply(&self, ty: &str, request: ApplyRequest) -> Result<Answer<Applied>, Diagnostics> {
        let ApplyRequest {
            prior,
            planned,
            config,
            planned_private,
            planned_identity,
            meta,
        } = request;
        let path = self.methods().await?.apply;
        let schema = self.resource(ty).await?;
        let object = schema.implied_type();
        let request = pb::apply_resource_change::Request {
            type_name: ty.to_owned(),
            prior_state: self.encode(path, &prior, &object)?,
            planned_state: self.encode(path, &planned, &object)?,
            config: self.encode(path, &config, &object)?,
            planned_private,
            provider_meta: self.meta(path, meta).await?,
            planned_identity: self.encode_identity(path, &schema, planned_identity.as_ref())?,
        };
        let response: pb::apply_resource_change::Response = self.call(path, request).await?;
        let diagnostics = convert::diagnostics(response.diagnostics);
        // Decoded despite errors, because after a failed change this is the remaining object.
        let state = self.decode(path, response.new_state, &object, &diagnostics)?;
        let value = Applied {
            state,
            private: response.private,
            identity: self.decode_identity(path, ty, &schema, response.new_identity, &diagnostics)?,
            legacy_type_system: response.legacy_type_system,
        };
        Ok(Answer { value, diagnostics })
    }

    async fn import(&self, ty: &str, target: &ImportTarget) -> Result<Answer<Vec<Imported>>, Diagnostics> {
        let path = self.methods().await?.import;
        let target_schema = self.resource(ty).await?;
        let (id, identity) = match target {
            ImportTarget::Id(id) => (id.to_string(), None),
            ImportTarget::Identity(identity) => (String::new(), Some(identity)),
        };
        let request = pb::import_resource_state::Request {
            type_name: ty.to_owned(),
            id,
            client_capabilities: Some(capabilities()),
            identity: self.encode_identity(path, &target_schema, identity)?,
        };
        let response: pb::import_resource_state::Response = self.call(path, request).await?;
        let diagnostics = convert::diagnostics(response.diagnostics);
        self.not_deferred(path, response.deferred, &diagnostics)?;
        let schema = self.schema().await?;
        let mut value = Vec::with_capacity(response.imported_resources.len());
        for object in response.imported_resources {
            // An import may return objects of several types, each with its own schema.
            let Some(of_type) = schema.resources.get(object.type_name.as_str()) else {
                let what = format!(
                    "it imported an object of the type \"{}\", which it does not have",
                    object.type_name
                );
                return Err(self.fault(path, &what, &diagnostics));
            };
            let state = self.decode(path, object.state, &of_type.implied_type(), &diagnostics)?;
            let identity = self.decode_identity(path, &object.type_name, of_type, object.identity, &diagnostics)?;
            value.push(Imported {
                ty: object.type_name.into(),
                state,
                private: object.private,
                identity,
            });
        }
        Ok(Answer { value, diagnostics })
    }

    async fn move_state(&self, target_type: &str, request: MoveRequest<'_>) -> Result<Answer<ObjectRead>, Diagnostics> {
        let MoveRequest {
            source_provider,
            source_type,
            source_version,
            source_state,
            source_private,
            source_identity,
        } = request;
        let path = self.methods().await?.move_state;
        let schema = self.resource(target_type).await?;
        let object = schema.implied_type();
        let (source_identity, source_identity_version) = match source_identity {
            Some((json, version)) => (Some(json), version),
            None => (None, 0),
        };
        let request = pb::move_resource_state::Request {
            source_provider_address: source_provider.to_owned(),
            source_type_name: source_type.to_owned(),
            source_schema_version: wire_version(source_version),
            source_state: Some(convert::raw_state(source_state)),
            target_type_name: target_type.to_owned(),
            source_private,
            source_identity: source_identity.map(|json| pb::RawState {
                json: json.to_vec(),
                ..Default::default()
            }),
            source_identity_schema_version: wire_version(source_identity_version),
        };
        let response: pb::move_resource_state::Response = self.call(path, request).await?;
        let diagnostics = convert::diagnostics(response.diagnostics);
        let value = self.decode(path, response.target_state, &object, &diagnostics)?;
        // A stored object has no unknown values, as after an upgrade.
        if !value.is_wholly_known() {
            return Err(self.fault(path, "a stored object contains unknown values", &diagnostics));
        }
        let value = ObjectRead {
            object: value,
            private: response.target_private,
            identity: self.decode_identity(path, target_type, &schema, response.target_identity, &diagnostics)?,
        };
        Ok(Answer { value, diagnostics })
    }

    async fn generate_config(&self, ty: &str, object: Value) -> Result<Answer<Value>, Diagnostics> {
        let path = self.methods().await?.generate_config;
        let of = self.resource(ty).await?.implied_type();
        let request = pb::generate_resource_config::Request {
            type_name: ty.to_owned(),
            state: self.encode(path, &object, &of)?,
        };
        let response: pb::generate_resource_config::Response = self.call(path, request).await?;
        let diagnostics = convert::diagnostics(response.diagnostics);
        let value = self.decode(path, response.config, &of, &diagnostics)?;
        Ok(Answer { value, diagnostics })
    }

    async fn validate_list(&self, ty: &str, config: Value) -> Result<Answer<()>, Diagnostics> {
        self.check_list(ty, &config).await
    }

    async fn list(&self, ty: &str, request: ListRequest) -> Result<Answer<Vec<Listed>>, Diagnostics> {
        self.listed(ty, request).await
    }

    async fn read_data(&self, ty: &str, config: Value, meta: Option<Value>) -> Result<Answer<Value>, Diagnostics> {
        let path = self.methods().await?.read_data;
        let object = self.data_source(ty).await?.implied_type();
        let request = pb::read_data_source::Request {
            type_name: ty.to_owned(),
            config: self.encode(path, &config, &object)?,
            provider_meta: self.meta(path, meta).await?,
            client_capabilities: Some(capabilities()),
        };
        let response: pb::read_data_source::Response = self.call(path, request).await?;
        let diagnostics = convert::diagnostics(response.diagnostics);
        self.not_deferred(path, response.deferred, &diagnostics)?;
        let value = self.decode(path, response.state, &object, &diagnostics)?;
        Ok(Answer { value, diagnostics })
    }

    async fn open_ephemeral(&self, ty: &str, config: Value) -> Result<Answer<Opened>, Diagnostics> {
        let path = self.methods().await?.open_ephemeral;
        let object = self.ephemeral(ty).await?.implied_type();
        let request = pb::open_ephemeral_resource::Request {
            type_name: ty.to_owned(),
            config: self.encode(path, &config, &object)?,
            client_capabilities: Some(capabilities()),
        };
        let response: pb::open_ephemeral_resource::Response = self.call(path, request).await?;
        let diagnostics = convert::diagnostics(response.diagnostics);
        self.not_deferred(path, response.deferred, &diagnostics)?;
        let result = self.decode(path, response.result, &object, &diagnostics)?;
        let renew_at = response.renew_at.map(|t| (t.seconds, t.nanos));
        Ok(Answer {
            value: Opened {
                result,
                private: response.private,
                renew_at,
            },
            diagnostics,
        })
    }

    async fn renew_ephemeral(&self, ty: &str, private: Option<Vec<u8>>) -> Result<Answer<Opened>, Diagnostics> {
        let path = self.methods().await?.renew_ephemeral;
        let object = self.ephemeral(ty).await?.implied_type();
        let request = pb::renew_ephemeral_resource::Request {
            type_name: ty.to_owned(),
            private,
        };
        let response: pb::renew_ephemeral_resource::Response = self.call(path, request).await?;
        let diagnostics = convert::diagnostics(response.diagnostics);
        let renew_at = response.renew_at.map(|t| (t.seconds, t.nanos));
        // A renewal has no result; that of the opening stays valid.
        let result = Value::null(object);
        Ok(Answer {
            value: Opened {
                result,
                private: response.private,
                renew_at,
            },
            diagnostics,
        })
    }

    async fn close_ephemeral(&self, ty: &str, private: Option<Vec<u8>>) -> Result<Answer<()>, Diagnostics> {
        self.ephemeral(ty).await?;
        let request = pb::close_ephemeral_resource::Request {
            type_name: ty.to_owned(),
            private,
        };
        let response: pb::close_ephemeral_resource::Response =
            self.call(self.methods().await?.close_ephemeral, request).await?;
        Ok(Answer {
            value: (),
            diagnostics: convert::diagnostics(response.diagnostics),
        })
    }

    async fn functions(&self) -> Result<SchemaMap<FunctionSchema>, Diagnostics> {
        let path = self.methods().await?.get_functions;
        let request = pb::get_functions::Request {};
        let response: pb::get_functions::Response = self.call(path, request).await?;
        let problems = convert::diagnostics(response.diagnostics);
        if convert::has_errors(&problems) {
            return Err(plain(problems));
        }
        let mut functions = BTreeMap::new();
        // Both protocols have the same messages of functions.
        for (function, schema) in response.functions {
            let schema = convert::function(schema);
            let schema =
                schema.map_err(|error| self.connection.fault(name(path), &error.within(&function).to_string()))?;
            functions.insert(Arc::from(function), schema);
        }
        let functions = SchemaMap::from(functions);
        // Keep the first response after the provider was configured: `call_function` takes signatures from it, so later callers must see
        // the same signatures.
        Ok(self.functions.get_or_init(|| functions).clone())
    }

    async fn call_function(
        &self,
        function: &str,
        arguments: Vec<Value>,
    ) -> Result<Result<Value, FunctionError>, Diagnostics> {
        let path = self.methods().await?.call_function;
        let schema = self.schema().await?;
        let in_schema = schema.functions.get(function);
        let signature = in_schema
            .or_else(|| self.functions.get()?.get(function))
            .ok_or_else(|| self.lacks("function", function, schema.functions.problem(function)))?;
        let mut encoded = Vec::with_capacity(arguments.len());
        for (index, argument) in arguments.iter().enumerate() {
            let Some(parameter) = signature.parameters.get(index).or(signature.variadic.as_ref()) else {
                let text = format!(
                    "takes {} arguments, not {}",
                    signature.parameters.len(),
                    arguments.len()
                );
                return Ok(Err(FunctionError { text, argument: None }));
            };
            encoded.push(encode(&self.connection, name(path), argument, &parameter.ty)?);
        }
        let request = pb::call_function::Request {
            name: function.to_owned(),
            arguments: encoded,
        };
        let response: pb::call_function::Response = self.call(path, request).await?;
        if let Some(error) = response.error {
            let argument = error.function_argument.and_then(|n| usize::try_from(n).ok());
            return Ok(Err(FunctionError {
                text: error.text,
                argument,
            }));
        }
        let result = signature.result.as_ref().unwrap_or(&Type::Dynamic);
        self.decode(path, response.result, result, &[]).map(Ok)
    }

    fn actions(&self) -> Option<&dyn Actions> {
        Some(self)
    }

    async fn stop(&self) -> Result<(), Diagnostics> {
        let Some(Ok(started)) = self.started.get() else {
            // The process was not started, so it has no running operation that could be stopped.
            return Ok(());
        };
        let path = started.methods.stop;
        let request = pb::stop_provider::Request {};
        let response: pb::stop_provider::Response = match self.call_for_status(started, path, request).await {
            Ok(response) => response.into_inner(),
            Err(status) => return Err(self.connection.failure(name(path), &status).await),
        };
        if response.error.is_empty() {
            return Ok(());
        }
        let what = format!(
            "The {} could not stop what it is doing: {}.",
            self.connection.title(),
            response.error
        );
        Err(Diagnostic::error("Plugin did not stop", what).into())
    }

    async fn close(&self) {
        if let Some(Ok(started)) = self.started.get()
            && !self.closed.swap(true, Ordering::SeqCst)
        {
            shut_down(&self.connection, started.channel.clone()).await;
        }
    }
}

/// Converts a schema version, which is signed in messages. A number that is too large becomes the largest one, which is newer
/// than any schema.
fn wire_version(version: u64) -> i64 {
    i64::try_from(version).unwrap_or(i64::MAX)
}
