//! Client of a provisioner over gRPC. Provisioners exist in protocol 5 only.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use cty::{Type, Value};
use proto::tfplugin5 as pb;
use proto::tfplugin5::provisioner_client::ProvisionerClient;
use schema::Schema;
use syntax::{Diagnostic, Diagnostics};
use tokio::sync::OnceCell;
use tonic::Status;
use tonic::transport::Channel;

use crate::channel::MESSAGE_LIMIT;
use crate::connection::PluginConnection;
use crate::grpc::{encode, relay_stdio, shut_down};
use crate::{convert, grpc_v5};
use provider::{Answer, Output, PluginDiagnostic, Provisioner};

/// Client of a provisioner at the other end of a channel.
pub struct GrpcProvisioner {
    connection: Arc<PluginConnection>,
    client: ProvisionerClient<Channel>,
    channel: Channel,
    schema: OnceCell<Arc<Schema>>,
    closed: AtomicBool,
}

impl GrpcProvisioner {
    /// Creates the client, and relays the plugin's standard streams to the log.
    #[must_use]
    pub fn new(connection: Arc<PluginConnection>, channel: Channel) -> GrpcProvisioner {
        relay_stdio(channel.clone(), &connection);
        let client = ProvisionerClient::new(channel.clone())
            .max_decoding_message_size(MESSAGE_LIMIT)
            .max_encoding_message_size(MESSAGE_LIMIT);
        GrpcProvisioner {
            connection,
            client,
            channel,
            schema: OnceCell::new(),
            closed: AtomicBool::new(false),
        }
    }

    fn encode(&self, method: &str, value: &Value, ty: &Type) -> Result<Option<pb::DynamicValue>, Diagnostics> {
        let encoded = encode(&self.connection, method, value, ty)?;
        // Both protocols have the same fields here, but different types.
        Ok(Some(pb::DynamicValue {
            msgpack: encoded.msgpack,
            json: encoded.json,
        }))
    }

    async fn failure<T>(&self, method: &str, status: Status) -> Result<T, Diagnostics> {
        Err(self.connection.failure(method, &status).await)
    }
}

fn diagnostics(list: Vec<pb::Diagnostic>) -> Vec<PluginDiagnostic> {
    convert::diagnostics(list.into_iter().map(grpc_v5::diagnostic).collect())
}

#[async_trait]
impl Provisioner for GrpcProvisioner {
    async fn schema(&self) -> Result<Arc<Schema>, Diagnostics> {
        let ask = || async {
            const METHOD: &str = "GetSchema";
            let response = match self
                .client
                .clone()
                .get_schema(pb::get_provisioner_schema::Request {})
                .await
            {
                Ok(response) => response.into_inner(),
                Err(status) => return self.failure(METHOD, status).await,
            };
            let problems = diagnostics(response.diagnostics);
            if convert::has_errors(&problems) {
                return Err(problems.into_iter().map(|p| p.diagnostic).collect());
            }
            let schema = response.provisioner.unwrap_or_default();
            convert::schema(grpc_v5::schema(schema))
                .map(Arc::new)
                .map_err(|error| self.connection.fault(METHOD, &format!("schema: {error}")).into())
        };
        self.schema.get_or_try_init(ask).await.cloned()
    }

    async fn validate(&self, config: Value) -> Result<Answer<()>, Diagnostics> {
        const METHOD: &str = "ValidateProvisionerConfig";
        let ty = self.schema().await?.implied_type();
        let request = pb::validate_provisioner_config::Request {
            config: self.encode(METHOD, &config, &ty)?,
        };
        let _permit = self.connection.permit().await;
        match self.client.clone().validate_provisioner_config(request).await {
            Ok(response) => Ok(Answer {
                value: (),
                diagnostics: diagnostics(response.into_inner().diagnostics),
            }),
            Err(status) => self.failure(METHOD, status).await,
        }
    }

    async fn provision(
        &self,
        config: Value,
        connection: Value,
        output: &Output<'_>,
    ) -> Result<Answer<()>, Diagnostics> {
        const METHOD: &str = "ProvisionResource";
        let ty = self.schema().await?.implied_type();
        // Plugins expect the connection block as a map of strings.
        let connection_type = Type::map(Type::String);
        let connection = cty::convert::convert(&connection, &connection_type)
            .map_err(|error| self.connection.fault(METHOD, &format!("connection: {error}")))?;
        let request = pb::provision_resource::Request {
            config: self.encode(METHOD, &config, &ty)?,
            connection: self.encode(METHOD, &connection, &connection_type)?,
        };
        // The permit is held until the last output is read.
        let _permit = self.connection.permit().await;
        let mut stream = match self.client.clone().provision_resource(request).await {
            Ok(response) => response.into_inner(),
            Err(status) => return self.failure(METHOD, status).await,
        };
        let mut problems = Vec::new();
        loop {
            match stream.message().await {
                Ok(Some(message)) => {
                    if !message.output.is_empty() {
                        output(&message.output);
                    }
                    problems.extend(diagnostics(message.diagnostics));
                }
                Ok(None) => {
                    return Ok(Answer {
                        value: (),
                        diagnostics: problems,
                    });
                }
                Err(status) => {
                    let mut all: Diagnostics = problems.into_iter().map(|p| p.diagnostic).collect();
                    all.extend(self.connection.failure(METHOD, &status).await);
                    return Err(all);
                }
            }
        }
    }

    async fn stop(&self) -> Result<(), Diagnostics> {
        // The request is sent without a permit, because a request to stop must not wait for the request that it
        // stops.
        match self.client.clone().stop(pb::stop::Request {}).await {
            Ok(response) => match response.into_inner().error {
                error if error.is_empty() => Ok(()),
                error => {
                    let what = format!(
                        "The {} could not stop what it is doing: {error}.",
                        self.connection.title()
                    );
                    Err(Diagnostic::error("Plugin did not stop", what).into())
                }
            },
            Err(status) => self.failure("Stop", status).await,
        }
    }

    async fn close(&self) {
        if !self.closed.swap(true, Ordering::SeqCst) {
            shut_down(&self.connection, self.channel.clone()).await;
        }
    }
}
