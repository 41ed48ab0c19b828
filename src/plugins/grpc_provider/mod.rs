//! Client of a provider over gRPC, in either protocol: see [`crate::grpc`] for how one client speaks both. Its requests
//! are in `requests`, those about identities and actions in `identity` and `actions`, and the stream of listed objects
//! in `listing`.

mod actions;
mod identity;
mod listing;
mod requests;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use cty::{Type, Value};
use prost::Message;
use proto::{tfplugin5, tfplugin6 as pb};
use schema::Schema;
use syntax::{Diagnostic, DiagnosticParts, Diagnostics};
use tokio::runtime::Handle;
use tokio::sync::OnceCell;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::transport::Channel;
use tonic::{Request, Response};

use crate::batches::{self, Batches};
use crate::channel::MESSAGE_LIMIT;
use crate::connection::PluginConnection;
use crate::grpc::{Methods, encode, name, relay_stdio};
use crate::launch::Launched;
use crate::{convert, grpc_v5};
use provider::{Answer, PluginDiagnostic, Provider, ProviderSchema};

/// Description of a provider, shared by all processes of the same provider and version.
pub type SharedSchema = Arc<OnceCell<Description>>;

/// Answer of a provider to the schema request.
#[derive(Clone)]
pub struct Description {
    schema: Arc<ProviderSchema>,
    /// True if the provider accepts batched calls.
    batches: bool,
}

/// Client of a provider at the other end of a channel.
pub struct GrpcProvider {
    connection: Arc<PluginConnection>,
    methods: &'static Methods,
    grpc: Grpc<Channel>,
    channel: Channel,
    /// Answer of this process, or the shared one where that suffices.
    description: OnceCell<Description>,
    shared: SharedSchema,
    /// Stream of batched calls, opened with the first one; `None` if that failed.
    batches: OnceCell<Option<Batches>>,
    /// Runtime that the connection lives on.
    runtime: Handle,
    terraform_version: Arc<str>,
    closed: AtomicBool,
}

/// Resource type whose output repeats its input.
const TERRAFORM_DATA: &str = "terraform_data";

impl GrpcProvider {
    /// Creates the client of a provider that was just started.
    #[must_use]
    pub fn launched(
        title: &str,
        launched: Launched,
        shared: SharedSchema,
        terraform_version: Arc<str>,
    ) -> GrpcProvider {
        let methods = Methods::of(launched.protocol);
        let connection = Arc::new(PluginConnection::new(title.to_owned(), Some(launched.process)));
        GrpcProvider::new(connection, launched.channel, methods, shared, terraform_version)
    }

    /// Creates the client of a provider at the other end of the channel, and relays its standard streams to the log.
    #[must_use]
    pub fn new(
        connection: Arc<PluginConnection>,
        channel: Channel,
        methods: &'static Methods,
        shared: SharedSchema,
        terraform_version: Arc<str>,
    ) -> GrpcProvider {
        relay_stdio(channel.clone(), &connection);
        GrpcProvider {
            grpc: Grpc::new(channel.clone())
                .max_decoding_message_size(MESSAGE_LIMIT)
                .max_encoding_message_size(MESSAGE_LIMIT),
            connection,
            methods,
            channel,
            description: OnceCell::new(),
            shared,
            batches: OnceCell::new(),
            runtime: Handle::current(),
            terraform_version,
            closed: AtomicBool::new(false),
        }
    }

    async fn call<Q, A>(&self, path: &'static str, request: Q) -> Result<A, Diagnostics>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        self.call_whole(path, request).await.map(Response::into_inner)
    }

    /// Sends a request and returns the answer with its metadata.
    async fn call_whole<Q, A>(&self, path: &'static str, request: Q) -> Result<Response<A>, Diagnostics>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        match self.call_for_status(path, request).await {
            Ok(response) => Ok(response),
            Err(status) => Err(self.connection.failure(name(path), &status).await),
        }
    }

    /// Sends a request; a failure is returned as its status, not as diagnostics.
    async fn call_for_status<Q, A>(&self, path: &'static str, request: Q) -> Result<Response<A>, tonic::Status>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        // Held until the answer is read.
        let _permit = if path == self.methods.stop {
            // A request to stop waits for no other: it is to end those that hold the permits.
            None
        } else if path == self.methods.renew_ephemeral {
            // A token may expire while operations that take an hour hold all other permits.
            self.connection.renewal_permit().await
        } else {
            self.connection.permit().await
        };
        let began = Instant::now();
        let batches = self.batches_for(path, &request).await;
        let batched = batches.is_some();
        let answer = match batches {
            Some((batches, method)) => batches.call(method, request.encode_to_vec()).await.map(Response::new),
            None => self.call_alone(path, request).await,
        };
        tracing::trace!(
            plugin = self.connection.title(),
            request = name(path),
            elapsed = ?began.elapsed(),
            failed = answer.is_err(),
            batched,
            "provider request"
        );
        answer
    }

    /// Returns the stream for a call that can be batched.
    async fn batches_for(&self, path: &str, request: &impl Message) -> Option<(&Batches, batches::Method)> {
        // Before the schema is read it is unknown if the provider has batches: such a call is sent on its own.
        if !self.description.get()?.batches {
            return None;
        }
        let method = batches::Method::named(name(path))?;
        let open = || async {
            let opened = Batches::open(self.channel.clone(), &self.runtime).await;
            // The call is sent on its own then, and reports what is wrong with the connection.
            opened
                .inspect_err(|error| tracing::debug!(%error, "no stream of calls"))
                .ok()
        };
        let batches = self.batches.get_or_init(open).await.as_ref()?;
        (request.encoded_len() < batches::LARGE).then_some((batches, method))
    }

    async fn call_alone<Q, A>(&self, path: &'static str, request: Q) -> Result<Response<A>, tonic::Status>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let mut grpc = self.grpc.clone();
        // tower's buffer panics when it is called before it is ready.
        grpc.ready()
            .await
            .map_err(|error| tonic::Status::from_error(error.into()))?;
        let codec = tonic_prost::ProstCodec::<Q, A>::default();
        grpc.unary(Request::new(request), PathAndQuery::from_static(path), codec)
            .await
    }

    async fn describe(&self) -> Result<Description, Diagnostics> {
        let path = self.methods.get_schema;
        let (metadata, mut response): (_, pb::get_provider_schema::Response) = if self.methods.version == 5 {
            let request = tfplugin5::get_provider_schema::Request {};
            let (metadata, response, _) = self.call_whole(path, request).await?.into_parts();
            (metadata, grpc_v5::provider_schema(response))
        } else {
            let request = pb::get_provider_schema::Request {};
            let (metadata, response, _) = self.call_whole(path, request).await?.into_parts();
            (metadata, response)
        };
        let batches = metadata.get(proto::STREAM_OF_CALLS);
        let batches = batches.is_some_and(|version| version == proto::STREAM_OF_CALLS_VERSION);
        let announced = metadata.get(proto::STATE_ONLY).and_then(|names| names.to_str().ok());
        let announced = announced.unwrap_or_default().split(',').filter(|n| !n.is_empty());
        let state_only = announced.map(Arc::from).collect();
        let problems = convert::diagnostics(std::mem::take(&mut response.diagnostics));
        if convert::has_errors(&problems) {
            return Err(plain(problems));
        }
        for problem in problems {
            let DiagnosticParts { summary, detail, .. } = problem.diagnostic.into_parts();
            tracing::warn!(
                plugin = self.connection.title(),
                summary,
                detail,
                "the schema comes with a warning"
            );
        }
        let mut schema = convert::provider_schema(response)
            .map_err(|error| self.connection.fault(name(path), &error.to_string()))?;
        schema.state_only = state_only;
        // Only the built-in terraform_data announces itself as state-only.
        if schema.state_only.contains(TERRAFORM_DATA)
            && let Some(data) = schema.resources.get_mut(TERRAFORM_DATA)
        {
            data.repeats = vec![("input".into(), "output".into())];
        }
        self.add_identity_schemas(&mut schema).await?;
        Ok(Description {
            schema: Arc::new(schema),
            batches,
        })
    }

    /// Returns the schema like [`Provider::schema`], for the modules below this one.
    async fn schema_of_all(&self) -> Result<Arc<ProviderSchema>, Diagnostics> {
        self.schema().await
    }

    async fn resource(&self, ty: &str) -> Result<Schema, Diagnostics> {
        let schema = self.schema().await?;
        schema
            .resources
            .get(ty)
            .cloned()
            .ok_or_else(|| self.connection.lacks("resource type", ty))
    }

    async fn data_source(&self, ty: &str) -> Result<Schema, Diagnostics> {
        let schema = self.schema().await?;
        schema
            .data_sources
            .get(ty)
            .cloned()
            .ok_or_else(|| self.connection.lacks("data source", ty))
    }

    async fn ephemeral(&self, ty: &str) -> Result<Schema, Diagnostics> {
        let schema = self.schema().await?;
        schema
            .ephemeral
            .get(ty)
            .cloned()
            .ok_or_else(|| self.connection.lacks("ephemeral resource type", ty))
    }

    fn encode(&self, path: &str, value: &Value, ty: &Type) -> Result<Option<pb::DynamicValue>, Diagnostics> {
        encode(&self.connection, name(path), value, ty).map(Some)
    }

    /// Encodes a `provider_meta` value, if the provider's schema has one.
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

    /// Fails if the provider deferred its answer, which the [`capabilities`] of this client do not allow.
    fn not_deferred(
        &self,
        path: &str,
        deferred: Option<pb::Deferred>,
        reported: &[PluginDiagnostic],
    ) -> Result<(), Diagnostics> {
        match deferred {
            None => Ok(()),
            // Beside an error the deferral says nothing more.
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
            // The requests for data sources and ephemeral resources lack this field, and have the same ones before it.
            client_capabilities: (path == self.methods.validate_resource).then(capabilities),
        };
        let response: pb::validate_resource_config::Response = self.call(path, request).await?;
        Ok(Answer {
            value: (),
            diagnostics: convert::diagnostics(response.diagnostics),
        })
    }
}

/// Capabilities of this client beyond the basics.
fn capabilities() -> pb::ClientCapabilities {
    pb::ClientCapabilities {
        deferral_allowed: false,
        write_only_attributes_allowed: true,
        // Protocol 5 lacks these two: its plugins skip them as unknown fields.
        store_planned_private: true,
        computed_blocks_allowed: true,
    }
}

fn plain(problems: Vec<PluginDiagnostic>) -> Diagnostics {
    problems.into_iter().map(|p| p.diagnostic).collect()
}
