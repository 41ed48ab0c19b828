//! Client of a provider over gRPC, in either protocol: see [`crate::grpc`] for how one client speaks both. Its requests
//! are in `requests`, those about identities and actions in `identity` and `actions`, and the stream of listed objects
//! in `listing`.

mod actions;
mod describe;
mod identity;
mod listing;
mod requests;
mod started;

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use cty::{Type, Value};
use prost::Message;
use proto::tfplugin6 as pb;
use provider::{Answer, FunctionSchema, PluginDiagnostic, Provider, SchemaMap};
use schema::Schema;
use syntax::{Diagnostic, Diagnostics};
use tokio::sync::OnceCell;

use crate::connection::PluginConnection;
use crate::convert;
use crate::grpc::{Methods, encode, name};

pub use describe::{Description, Kept, SharedSchema};
pub use started::Access;
use started::Started;

/// A provider, whose process is started when the first request is sent to it.
pub struct GrpcProvider {
    connection: Arc<PluginConnection>,
    access: Access,
    /// Process of the provider, or the error of its start. A failed start is not repeated by each request.
    started: OnceCell<Result<Started, Diagnostics>>,
    description: OnceCell<Description>,
    /// Functions that the configured provider offers, if they were requested.
    functions: OnceLock<SchemaMap<FunctionSchema>>,
    shared: SharedSchema,
    /// Stored schemas of the provider, for later runs.
    kept: Option<Arc<Kept>>,
    terraform_version: Arc<str>,
    closed: AtomicBool,
}

impl GrpcProvider {
    /// Creates a provider that is reached by `access`.
    #[must_use]
    pub fn new(
        title: String,
        access: Access,
        shared: SharedSchema,
        kept: Option<Arc<Kept>>,
        terraform_version: Arc<str>,
    ) -> GrpcProvider {
        GrpcProvider {
            connection: Arc::new(PluginConnection::new(title, None)),
            access,
            started: OnceCell::new(),
            description: OnceCell::new(),
            functions: OnceLock::new(),
            shared,
            kept,
            terraform_version,
            closed: AtomicBool::new(false),
        }
    }

    /// Returns the gRPC paths in the protocol of the process.
    async fn methods(&self) -> Result<&'static Methods, Diagnostics> {
        Ok(self.started().await?.methods)
    }

    async fn call<Q, A>(&self, path: &'static str, request: Q) -> Result<A, Diagnostics>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let started = self.ready().await?;
        match self.call_for_status(started, path, request).await {
            Ok(response) => Ok(response.into_inner()),
            Err(status) => Err(self.connection.failure(name(path), &status).await),
        }
    }

    /// Builds the error for a type that the provider does not have or whose schema is invalid; `problem` is the reason
    /// for that.
    fn lacks(&self, kind: &str, ty: &str, problem: Option<&str>) -> Diagnostics {
        match problem {
            Some(reason) => {
                let method = self.started.get().and_then(|started| started.as_ref().ok());
                let method = method.map_or("GetProviderSchema", |started| name(started.methods.get_schema));
                self.connection.fault(method, reason).into()
            }
            None => self.connection.lacks(kind, ty),
        }
    }

    async fn resource(&self, ty: &str) -> Result<Schema, Diagnostics> {
        let schema = self.schema().await?;
        schema
            .resources
            .get(ty)
            .cloned()
            .ok_or_else(|| self.lacks("resource type", ty, schema.resources.problem(ty)))
    }

    async fn data_source(&self, ty: &str) -> Result<Schema, Diagnostics> {
        let schema = self.schema().await?;
        schema
            .data_sources
            .get(ty)
            .cloned()
            .ok_or_else(|| self.lacks("data source", ty, schema.data_sources.problem(ty)))
    }

    async fn ephemeral(&self, ty: &str) -> Result<Schema, Diagnostics> {
        let schema = self.schema().await?;
        schema
            .ephemeral
            .get(ty)
            .cloned()
            .ok_or_else(|| self.lacks("ephemeral resource type", ty, schema.ephemeral.problem(ty)))
    }

    fn encode(&self, path: &str, value: &Value, ty: &Type) -> Result<Option<pb::DynamicValue>, Diagnostics> {
        encode(&self.connection, name(path), value, ty).map(Some)
    }

    /// Encodes a `provider_meta` value. Returns `None` without a value, or if the provider has no schema for it.
    async fn meta(&self, path: &str, meta: Option<Value>) -> Result<Option<pb::DynamicValue>, Diagnostics> {
        match (&self.schema().await?.provider_meta, meta) {
            (Some(schema), Some(meta)) => self.encode(path, &meta, &schema.implied_type()),
            _ => Ok(None),
        }
    }

    /// Decodes a value of an answer. The error includes the diagnostics that came with it.
    fn decode(
        &self,
        path: &str,
        value: Option<pb::DynamicValue>,
        ty: &Type,
        reported: &[PluginDiagnostic],
    ) -> Result<Value, Diagnostics> {
        convert::decode(value, ty).map_err(|error| self.fault(path, &error.to_string(), reported))
    }

    fn fault(&self, path: &str, what: &str, reported: &[PluginDiagnostic]) -> Diagnostics {
        let mut all = plain(reported.to_vec());
        all.push(self.connection.fault(name(path), what));
        all
    }

    /// Reports an error if the provider deferred its answer, which the [`capabilities`] of this client do not allow.
    fn not_deferred(
        &self,
        path: &str,
        deferred: Option<pb::Deferred>,
        reported: &[PluginDiagnostic],
    ) -> Result<(), Diagnostics> {
        match deferred {
            None => Ok(()),
            // An error makes the deferral irrelevant.
            Some(_) if convert::has_errors(reported) => Ok(()),
            Some(deferred) => {
                let detail = format!(
                    "The {} deferred its answer to the request {} to a later run, which was not allowed ({}). This is a \
                     bug in the provider; please report it to its maintainers.",
                    self.connection.title(),
                    name(path),
                    deferred.reason().as_str_name()
                );
                let mut all = plain(reported.to_vec());
                all.push(Diagnostic::error(
                    "Provider deferred changes when Terraform did not allow deferrals",
                    detail,
                ));
                Err(all)
            }
        }
    }

    async fn check(
        &self,
        path: &'static str,
        ty: &str,
        schema: &Schema,
        config: Value,
    ) -> Result<Answer<()>, Diagnostics> {
        let request = pb::validate_resource_config::Request {
            type_name: ty.to_owned(),
            config: self.encode(path, &config, &schema.implied_type())?,
            // Requests to validate data sources and ephemeral resources have the same fields, except for this one.
            client_capabilities: (path == self.methods().await?.validate_resource).then(capabilities),
        };
        let response: pb::validate_resource_config::Response = self.call(path, request).await?;
        Ok(Answer {
            value: (),
            diagnostics: convert::diagnostics(response.diagnostics),
        })
    }
}

/// Returns the optional features of the protocol that this client supports.
fn capabilities() -> pb::ClientCapabilities {
    pb::ClientCapabilities {
        deferral_allowed: false,
        write_only_attributes_allowed: true,
        // Protocol 5 lacks these two fields, and its plugins skip them as unknown ones.
        store_planned_private: true,
        computed_blocks_allowed: true,
    }
}

fn plain(problems: Vec<PluginDiagnostic>) -> Diagnostics {
    problems.into_iter().map(|p| p.diagnostic).collect()
}
