//! Client of a state store over gRPC. State stores exist in protocol 6 only.
//!
//! Data for which the protocol has no field is sent as metadata of requests and responses (`proto::STATE_LOCK_INFO`
//! and the constants next to it). The metadata is optional: plugins that do not know it work without it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use async_trait::async_trait;
use cty::Value;
use prost::Message as _;
use prost::bytes::Bytes;
use proto::tfplugin6 as pb;
use proto::tfplugin6::provider_client::ProviderClient;
use provider::state_store::{LockFailure, LockRequest, StateStore, WorkspaceSupport};
use provider::{Answer, PluginDiagnostic};
use schema::Schema;
use syntax::Diagnostics;
use tokio::sync::OnceCell;
use tonic::client::Grpc;
use tonic::codegen::http::uri::PathAndQuery;
use tonic::metadata::MetadataValue;
use tonic::transport::Channel;
use tonic::{Request, Status};

use crate::channel::MESSAGE_LIMIT;
use crate::connection::PluginConnection;
use crate::convert::{self, MessageError};
use crate::grpc::{Methods, encode, relay_stdio, shut_down};
use crate::schemas::{self, GetProviderSchema};

/// Proposed size of the pieces in which a state is sent, in bytes; the plugin may choose another.
const PROPOSED_PIECE: usize = 8 << 20;
/// Maximum size of a piece that a plugin may choose, in bytes: half of [`MESSAGE_LIMIT`].
const LARGEST_PIECE: usize = 128 << 20;

/// Client of a state store at the other end of a channel.
pub struct GrpcStateStore {
    connection: Arc<PluginConnection>,
    client: ProviderClient<Channel>,
    channel: Channel,
    /// Type of the store among those of the plugin.
    name: String,
    schemas: OnceCell<Schemas>,
    terraform_version: Arc<str>,
    piece: AtomicUsize,
    keeps_objects: AtomicBool,
    closed: AtomicBool,
}

/// Schemas of the configurations of a state store and of its provider.
struct Schemas {
    store: Arc<Schema>,
    provider: Arc<Schema>,
}

impl GrpcStateStore {
    /// Creates the client of the plugin's store `name`, and relays the plugin's standard streams to the log.
    #[must_use]
    pub fn new(
        connection: Arc<PluginConnection>,
        channel: Channel,
        name: String,
        terraform_version: Arc<str>,
    ) -> GrpcStateStore {
        relay_stdio(channel.clone(), &connection);
        let client = ProviderClient::new(channel.clone())
            .max_decoding_message_size(MESSAGE_LIMIT)
            .max_encoding_message_size(MESSAGE_LIMIT);
        GrpcStateStore {
            connection,
            client,
            channel,
            name,
            schemas: OnceCell::new(),
            terraform_version,
            piece: AtomicUsize::new(PROPOSED_PIECE),
            keeps_objects: AtomicBool::new(false),
            closed: AtomicBool::new(false),
        }
    }

    async fn encode(&self, method: &str, config: &Value) -> Result<Option<pb::DynamicValue>, Diagnostics> {
        let ty = self.schema().await?.implied_type();
        encode(&self.connection, method, config, &ty).map(Some)
    }

    async fn schemas(&self) -> Result<&Schemas, Diagnostics> {
        let ask = || async {
            const METHOD: &str = "GetProviderSchema";
            let mut response = match self.ask().await {
                Ok(response) => response,
                Err(status) => return self.failure(METHOD, status).await,
            };
            errors(std::mem::take(&mut response.diagnostics))?;
            // Of the answer, only the schemas of the provider configuration and of the state stores are decoded.
            let provider = response.provider.take().unwrap_or_default();
            let mut stores = schemas::by_name(response.state_stores);
            let Some(store) = stores.remove(self.name.as_str()) else {
                return Err(self.lacks(stores.keys()));
            };
            let read = |message: Bytes| {
                let decoded = pb::Schema::decode(message).map_err(MessageError::from);
                match decoded.and_then(convert::schema) {
                    Ok(schema) => Ok(Arc::new(schema)),
                    Err(error) => self.fault(METHOD, &format!("schema: {error}")),
                }
            };
            Ok(Schemas {
                store: read(store)?,
                provider: read(provider)?,
            })
        };
        self.schemas.get_or_try_init(ask).await
    }

    async fn ask(&self) -> Result<GetProviderSchema, Status> {
        let mut grpc = Grpc::new(self.channel.clone()).max_decoding_message_size(MESSAGE_LIMIT);
        grpc.ready().await.map_err(|error| Status::from_error(error.into()))?;
        let request = Request::new(pb::get_provider_schema::Request {});
        let path = PathAndQuery::from_static(Methods::for_protocol(6).get_schema);
        let codec = tonic_prost::ProstCodec::<pb::get_provider_schema::Request, GetProviderSchema>::default();
        Ok(grpc.unary(request, path, codec).await?.into_inner())
    }

    /// Returns the error for a store that the plugin does not have, with those that it has.
    fn lacks<'n>(&self, names: impl Iterator<Item = &'n Arc<str>>) -> Diagnostics {
        let mut names: Vec<&str> = names.map(|name| &**name).collect();
        names.sort_unstable();
        let mut problems = self.connection.lacks("state store", &self.name);
        for problem in &mut problems.0 {
            problem.detail.push_str(&match names.as_slice() {
                [] => " It has no state stores at all.".to_owned(),
                names => format!(" It has: {}.", names.join(", ")),
            });
        }
        problems
    }

    fn read_request(&self, workspace: &str) -> Request<pb::read_state_bytes::Request> {
        Request::new(pb::read_state_bytes::Request {
            type_name: self.name.clone(),
            state_id: workspace.to_owned(),
        })
    }

    /// Joins the pieces of an answer.
    async fn read_bytes(&self, request: Request<pb::read_state_bytes::Request>) -> Result<Vec<u8>, Diagnostics> {
        const METHOD: &str = "ReadStateBytes";
        let mut stream = match self.client.clone().read_state_bytes(request).await {
            Ok(response) => response.into_inner(),
            Err(status) => return self.failure(METHOD, status).await,
        };
        let mut state = Vec::new();
        let mut total = 0;
        loop {
            match stream.message().await {
                Ok(Some(piece)) => {
                    errors(piece.diagnostics)?;
                    total = usize::try_from(piece.total_length).unwrap_or_default();
                    let start = piece.range.and_then(|range| usize::try_from(range.start).ok());
                    // The beginning of the piece is checked, because a gap would produce a damaged state.
                    if start.is_some_and(|start| start != state.len()) {
                        return self.fault(METHOD, "the pieces of the state do not follow each other");
                    }
                    state.extend_from_slice(&piece.bytes);
                }
                // An interrupted stream ends like a complete one, so the length is compared.
                Ok(None) if state.len() == total => return Ok(state),
                Ok(None) => {
                    let what = format!("{} of {total} bytes of the state arrived", state.len());
                    return self.fault(METHOD, &what);
                }
                Err(status) => return self.failure(METHOD, status).await,
            }
        }
    }

    async fn failure<T>(&self, method: &str, status: Status) -> Result<T, Diagnostics> {
        Err(self.connection.failure(method, &status).await)
    }

    fn fault<T>(&self, method: &str, what: &str) -> Result<T, Diagnostics> {
        Err(self.connection.fault(method, what).into())
    }

    /// Sends a state or, with `is_request`, a request for single objects (`proto::STATE_REQUEST`) in place of a state.
    async fn write_bytes(&self, workspace: &str, state: &[u8], is_request: bool) -> Result<(), Diagnostics> {
        let total = length(state.len());
        let meta = pb::RequestChunkMeta {
            type_name: self.name.clone(),
            state_id: workspace.to_owned(),
        };
        let mut start = 0;
        let mut pieces: Vec<pb::write_state_bytes::RequestChunk> = state
            .chunks(self.piece.load(Ordering::Relaxed).max(1))
            .map(|bytes| {
                // A range includes its last byte.
                let end = start + bytes.len() - 1;
                let range = pb::StateRange {
                    start: length(start),
                    end: length(end),
                };
                start = end + 1;
                pb::write_state_bytes::RequestChunk {
                    meta: None,
                    bytes: bytes.to_vec(),
                    total_length: total,
                    range: Some(range),
                }
            })
            .collect();
        if pieces.is_empty() {
            // Even an empty state needs a message, which carries the metadata below.
            pieces.push(pb::write_state_bytes::RequestChunk::default());
        }
        if let Some(first) = pieces.first_mut() {
            first.meta = Some(meta);
        }
        let mut request = Request::new(futures::stream::iter(pieces));
        if is_request {
            let version = MetadataValue::from_static("1");
            request.metadata_mut().insert(proto::STATE_REQUEST, version);
        }
        match self.client.clone().write_state_bytes(request).await {
            Ok(response) => errors(response.into_inner().diagnostics),
            Err(status) => self.failure("WriteStateBytes", status).await,
        }
    }
}

/// Fails with the errors of an answer. Warnings go to the log, because the results of the callers have no place for them.
fn errors(list: Vec<pb::Diagnostic>) -> Result<(), Diagnostics> {
    let problems = convert::diagnostics(list);
    if convert::has_errors(&problems) {
        return Err(plain(problems));
    }
    for problem in problems {
        let syntax::DiagnosticParts { summary, detail, .. } = problem.diagnostic.into_parts();
        tracing::warn!(summary, detail, "a warning of the state store");
    }
    Ok(())
}

fn plain(problems: Vec<PluginDiagnostic>) -> Diagnostics {
    problems.into_iter().map(|p| p.diagnostic).collect()
}

#[async_trait]
impl StateStore for GrpcStateStore {
    async fn schema(&self) -> Result<Arc<Schema>, Diagnostics> {
        Ok(self.schemas().await?.store.clone())
    }

    async fn provider_schema(&self) -> Result<Arc<Schema>, Diagnostics> {
        Ok(self.schemas().await?.provider.clone())
    }

    async fn configure_provider(&self, config: Value) -> Result<Answer<()>, Diagnostics> {
        let ty = self.provider_schema().await?.implied_type();
        let config = encode(&self.connection, "ConfigureProvider", &config, &ty)?;
        // The configuration is validated before the provider is configured, as in Terraform, because a provider
        // may rely on that.
        let request = pb::validate_provider_config::Request {
            config: Some(config.clone()),
        };
        let checked = match self.client.clone().validate_provider_config(request).await {
            Ok(response) => response.into_inner(),
            Err(status) => return self.failure("ValidateProviderConfig", status).await,
        };
        let mut diagnostics = convert::diagnostics(checked.diagnostics);
        if !convert::has_errors(&diagnostics) {
            let request = pb::configure_provider::Request {
                terraform_version: self.terraform_version.to_string(),
                config: Some(config),
                client_capabilities: Some(pb::ClientCapabilities::default()),
            };
            match self.client.clone().configure_provider(request).await {
                Ok(response) => diagnostics.extend(convert::diagnostics(response.into_inner().diagnostics)),
                Err(status) => return self.failure("ConfigureProvider", status).await,
            }
        }
        Ok(Answer { value: (), diagnostics })
    }

    async fn validate(&self, config: Value) -> Result<Answer<()>, Diagnostics> {
        const METHOD: &str = "ValidateStateStoreConfig";
        let request = pb::validate_state_store::Request {
            type_name: self.name.clone(),
            config: self.encode(METHOD, &config).await?,
        };
        match self.client.clone().validate_state_store_config(request).await {
            Ok(response) => Ok(Answer {
                value: (),
                diagnostics: convert::diagnostics(response.into_inner().diagnostics),
            }),
            Err(status) => self.failure(METHOD, status).await,
        }
    }

    async fn configure(&self, config: Value) -> Result<Answer<WorkspaceSupport>, Diagnostics> {
        const METHOD: &str = "ConfigureStateStore";
        let request = pb::configure_state_store::Request {
            type_name: self.name.clone(),
            config: self.encode(METHOD, &config).await?,
            capabilities: Some(pb::StateStoreClientCapabilities {
                chunk_size: i64::try_from(PROPOSED_PIECE).unwrap_or_default(),
            }),
        };
        let response = match self.client.clone().configure_state_store(request).await {
            Ok(response) => response,
            Err(status) => return self.failure(METHOD, status).await,
        };
        let support = response.metadata().get(proto::STATE_WORKSPACES);
        let support = match support.and_then(|text| text.to_str().ok()) {
            Some("single") => WorkspaceSupport::Single,
            Some("default") => WorkspaceSupport::NamedAndDefault,
            Some("by-state") => WorkspaceSupport::NamedByState,
            Some("no-default") => WorkspaceSupport::NamedWithoutDefault,
            // An answer without the metadata means, too, that the default workspace exists only if it is listed.
            _ => WorkspaceSupport::Named,
        };
        let keeps_objects = response.metadata().contains_key(proto::STATE_INQUIRIES);
        self.keeps_objects.store(keeps_objects, Ordering::Relaxed);
        let response = response.into_inner();
        let diagnostics = convert::diagnostics(response.diagnostics);
        if !convert::has_errors(&diagnostics) {
            let piece = response.capabilities.unwrap_or_default().chunk_size;
            match usize::try_from(piece) {
                Ok(size) if (1..=LARGEST_PIECE).contains(&size) => self.piece.store(size, Ordering::Relaxed),
                _ => return self.fault(METHOD, &format!("pieces of states cannot have {piece} bytes")),
            }
        }
        Ok(Answer {
            value: support,
            diagnostics,
        })
    }

    async fn workspaces(&self) -> Result<Vec<String>, Diagnostics> {
        let request = pb::get_states::Request {
            type_name: self.name.clone(),
        };
        match self.client.clone().get_states(request).await {
            Ok(response) => {
                let response = response.into_inner();
                errors(response.diagnostics)?;
                Ok(response.state_id)
            }
            Err(status) => self.failure("GetStates", status).await,
        }
    }

    fn keeps_objects(&self) -> bool {
        self.keeps_objects.load(Ordering::Relaxed)
    }

    async fn inquire(&self, workspace: &str, question: &str) -> Result<Vec<u8>, Diagnostics> {
        let mut request = self.read_request(workspace);
        let question = MetadataValue::from_bytes(question.as_bytes());
        request.metadata_mut().insert_bin(proto::STATE_INQUIRY, question);
        self.read_bytes(request).await
    }

    async fn read(&self, workspace: &str) -> Result<Vec<u8>, Diagnostics> {
        self.read_bytes(self.read_request(workspace)).await
    }

    async fn request(&self, workspace: &str, request: &str) -> Result<(), Diagnostics> {
        self.write_bytes(workspace, request.as_bytes(), true).await
    }

    async fn write(&self, workspace: &str, state: Vec<u8>) -> Result<(), Diagnostics> {
        self.write_bytes(workspace, &state, false).await
    }

    async fn delete(&self, workspace: &str) -> Result<(), Diagnostics> {
        let request = pb::delete_state::Request {
            type_name: self.name.clone(),
            state_id: workspace.to_owned(),
        };
        match self.client.clone().delete_state(request).await {
            Ok(response) => errors(response.into_inner().diagnostics),
            Err(status) => self.failure("DeleteState", status).await,
        }
    }

    async fn lock(&self, workspace: &str, lock: &LockRequest) -> Result<String, LockFailure> {
        let mut request = Request::new(pb::lock_state::Request {
            type_name: self.name.clone(),
            state_id: workspace.to_owned(),
            operation: lock.operation.clone(),
        });
        // The lock is sent as binary metadata, because the JSON text may contain characters that a header may
        // not.
        let info = MetadataValue::from_bytes(lock.info.as_bytes());
        request.metadata_mut().insert_bin(proto::STATE_LOCK_INFO, info);
        let response = match self.client.clone().lock_state(request).await {
            Ok(response) => response,
            Err(status) => {
                return Err(LockFailure::Failed(self.connection.failure("LockState", &status).await));
            }
        };
        let holder = response.metadata().get_bin(proto::STATE_LOCK_HOLDER);
        let holder = holder.and_then(|holder| holder.to_bytes().ok());
        let response = response.into_inner();
        // Only a named holder means that the lock is held, and that another attempt may succeed.
        match (errors(response.diagnostics), holder) {
            (Ok(()), _) => Ok(response.lock_id),
            (Err(problems), Some(holder)) => Err(LockFailure::Held {
                holder: Some(String::from_utf8_lossy(&holder).into_owned()),
                problems,
            }),
            (Err(problems), None) => Err(LockFailure::Failed(problems)),
        }
    }

    async fn unlock(&self, workspace: &str, id: &str) -> Result<(), Diagnostics> {
        let request = pb::unlock_state::Request {
            type_name: self.name.clone(),
            state_id: workspace.to_owned(),
            lock_id: id.to_owned(),
        };
        match self.client.clone().unlock_state(request).await {
            Ok(response) => errors(response.into_inner().diagnostics),
            Err(status) => self.failure("UnlockState", status).await,
        }
    }

    async fn close(&self) {
        if !self.closed.swap(true, Ordering::SeqCst) {
            shut_down(&self.connection, self.channel.clone()).await;
        }
    }
}

fn length(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
