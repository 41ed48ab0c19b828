//! Requests that validate, plan and invoke actions.

use async_trait::async_trait;
use cty::Value;
use proto::tfplugin6 as pb;
use provider::{Actions, Answer, Output, PluginDiagnostic, Provider};
use schema::Schema;
use syntax::{Diagnostic, Diagnostics};
use tonic::Request;
use tonic::codegen::http::uri::PathAndQuery;

use super::{GrpcProvider, capabilities, plain};
use crate::convert;
use crate::grpc::name;

impl GrpcProvider {
    async fn action(&self, ty: &str) -> Result<Schema, Diagnostics> {
        let schema = self.schema().await?;
        schema
            .actions
            .get(ty)
            .cloned()
            .ok_or_else(|| self.lacks("action type", ty, schema.actions.problem(ty)))
    }

    /// Reads the events of an invocation to the end of the stream, and returns the diagnostics of its completion.
    async fn action_events(
        &self,
        path: &'static str,
        mut stream: tonic::Streaming<pb::invoke_action::Event>,
        progress: &Output<'_>,
    ) -> Result<Vec<PluginDiagnostic>, Diagnostics> {
        use pb::invoke_action::event::Type as Kind;
        let mut completed: Option<Vec<PluginDiagnostic>> = None;
        loop {
            match stream.message().await {
                Ok(Some(event)) => match event.r#type {
                    Some(Kind::Progress(event)) => progress(&event.message),
                    Some(Kind::Completed(event)) => {
                        // The stream has not ended yet: its status may still be an error.
                        completed
                            .get_or_insert_default()
                            .extend(convert::diagnostics(event.diagnostics));
                    }
                    None => {
                        let what = "an event of the invocation is neither a progress message nor the end";
                        return Err(self.fault(path, what, &completed.unwrap_or_default()));
                    }
                },
                Ok(None) => {
                    return completed.ok_or_else(|| {
                        let what = "the events of the invocation ended without the event of completion";
                        self.fault(path, what, &[])
                    });
                }
                Err(status) => {
                    let mut all = plain(completed.unwrap_or_default());
                    all.extend(self.connection.failure(name(path), &status).await);
                    return Err(all);
                }
            }
        }
    }
}

#[async_trait]
impl Actions for GrpcProvider {
    async fn validate_action(&self, ty: &str, config: Value) -> Result<Answer<()>, Diagnostics> {
        let path = self.methods().await?.validate_action;
        let object = self.action(ty).await?.implied_type();
        let request = pb::validate_action_config::Request {
            type_name: ty.to_owned(),
            config: self.encode(path, &config, &object)?,
        };
        let response: pb::validate_action_config::Response = self.call(path, request).await?;
        Ok(Answer {
            value: (),
            diagnostics: convert::diagnostics(response.diagnostics),
        })
    }

    async fn plan_action(&self, ty: &str, config: Value) -> Result<Answer<()>, Diagnostics> {
        let path = self.methods().await?.plan_action;
        let object = self.action(ty).await?.implied_type();
        let request = pb::plan_action::Request {
            action_type: ty.to_owned(),
            config: self.encode(path, &config, &object)?,
            client_capabilities: Some(capabilities()),
        };
        let response: pb::plan_action::Response = self.call(path, request).await?;
        let diagnostics = convert::diagnostics(response.diagnostics);
        // The client does not announce that it accepts deferrals.
        if let Some(deferred) = response.deferred {
            let mut all = plain(diagnostics);
            all.push(Diagnostic::error(
                "Invalid deferral",
                format!(
                    "The {} deferred the action \"{ty}\" to a later run ({}), which was not allowed. This is a bug in the \
                     provider; please report it to its maintainers.",
                    self.connection.title(),
                    deferred.reason().as_str_name()
                ),
            ));
            return Err(all);
        }
        Ok(Answer { value: (), diagnostics })
    }

    async fn invoke_action(&self, ty: &str, config: Value, progress: &Output<'_>) -> Result<Answer<()>, Diagnostics> {
        let path = self.methods().await?.invoke_action;
        let object = self.action(ty).await?.implied_type();
        let request = pb::invoke_action::Request {
            action_type: ty.to_owned(),
            config: self.encode(path, &config, &object)?,
            client_capabilities: Some(capabilities()),
        };
        let mut grpc = self.ready().await?.grpc.clone();
        // The permit is held until the last event is read.
        let _permit = self.connection.permit().await;
        let begin = async {
            grpc.ready()
                .await
                .map_err(|error| tonic::Status::from_error(error.into()))?;
            let codec = tonic_prost::ProstCodec::<_, pb::invoke_action::Event>::default();
            grpc.server_streaming(Request::new(request), PathAndQuery::from_static(path), codec)
                .await
        };
        let stream = match begin.await {
            Ok(response) => response.into_inner(),
            Err(status) => return Err(self.connection.failure(name(path), &status).await),
        };
        let diagnostics = self.action_events(path, stream, progress).await?;
        Ok(Answer { value: (), diagnostics })
    }
}
