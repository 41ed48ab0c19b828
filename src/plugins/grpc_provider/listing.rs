//! Requests about list resources. The answer to a list request is a stream of events, which the client reads up to its limit.

use cty::{Step, Value};
use proto::tfplugin6 as pb;
use provider::{Answer, ListRequest, Listed, PluginDiagnostic, Provider};
use schema::Schema;
use syntax::{Diagnostic, Diagnostics};
use tonic::codegen::http::uri::PathAndQuery;
use tonic::{Request, Streaming};

use super::GrpcProvider;
use super::started::Started;
use crate::convert;
use crate::grpc::name;

impl GrpcProvider {
    pub(super) async fn list_schema(&self, ty: &str) -> Result<Schema, Diagnostics> {
        let schema = self.schema().await?;
        schema
            .lists
            .get(ty)
            .map(|list| list.config.clone())
            .ok_or_else(|| self.lacks("list resource type", ty, schema.lists.problem(ty)))
    }

    /// Validates the `config` block of a `list` block. The other arguments of the block are not sent.
    pub(super) async fn check_list(&self, ty: &str, config: &Value) -> Result<Answer<()>, Diagnostics> {
        let path = self.methods().await?.validate_list;
        let schema = self.list_schema(ty).await?;
        let request = pb::validate_list_resource_config::Request {
            type_name: ty.to_owned(),
            config: self.encode(path, config, &schema.implied_type())?,
            ..Default::default()
        };
        let response: pb::validate_list_resource_config::Response = self.call(path, request).await?;
        Ok(Answer {
            value: (),
            diagnostics: in_config(convert::diagnostics(response.diagnostics)),
        })
    }

    /// Lists objects until the stream ends, an event has an error, or the limit is reached.
    pub(super) async fn listed(&self, ty: &str, request: ListRequest) -> Result<Answer<Vec<Listed>>, Diagnostics> {
        let path = self.methods().await?.list;
        let schema = self.list_schema(ty).await?;
        let resource = self.resource(ty).await?;
        if resource.identity.is_none() {
            let what = format!("the resource type \"{ty}\", whose objects it lists, has no identity schema");
            return Err(self.fault(path, &what, &[]));
        }
        let message = pb::list_resource::Request {
            type_name: ty.to_owned(),
            config: self.encode(path, &request.config, &schema.implied_type())?,
            include_resource_object: request.include_object,
            limit: i64::try_from(request.limit).unwrap_or(i64::MAX),
        };
        let started = self.ready().await?;
        let _permit = self.connection.permit().await;
        let mut answer = Answer::<Vec<Listed>>::default();
        let mut events = match open_stream(started, path, message).await {
            Ok(events) => events,
            Err(status) => return Err(self.connection.failure(name(path), &status).await),
        };
        while (answer.value.len() as u64) < request.limit {
            let event = match events.message().await {
                Ok(Some(event)) => event,
                Ok(None) => break,
                Err(status) => {
                    let mut problems = super::plain(answer.diagnostics);
                    problems.extend(self.connection.failure(name(path), &status).await);
                    return Err(problems);
                }
            };
            if !self.take_event(path, ty, &resource, &request, event, &mut answer)? {
                break;
            }
        }
        // If more objects would follow, dropping the stream cancels the request.
        Ok(answer)
    }

    /// Adds an event to the answer. Returns true if more events may follow.
    fn take_event(
        &self,
        path: &str,
        ty: &str,
        resource: &Schema,
        request: &ListRequest,
        event: pb::list_resource::Event,
        answer: &mut Answer<Vec<Listed>>,
    ) -> Result<bool, Diagnostics> {
        let problems = in_config(convert::diagnostics(event.diagnostic));
        let failed = convert::has_errors(&problems);
        let warned = !problems.is_empty();
        answer.diagnostics.extend(problems);
        if failed {
            return Ok(false);
        }
        let identity = self.decode_identity(path, ty, resource, event.identity, &answer.diagnostics)?;
        let Some(identity) = identity else {
            // A warning may come as an event of its own, without an object.
            if warned {
                return Ok(true);
            }
            let detail = format!(
                "The {} listed an object of the type \"{ty}\" without its identity, which every listed object must have. \
                 This is a bug in the provider; please report it to its maintainers.",
                self.connection.title()
            );
            return Err(
                Diagnostic::error(format!("missing identity data in ListResource event for {ty}"), detail).into(),
            );
        };
        // The provider may send the object although it was not requested.
        let object = event.resource_object.filter(|_| request.include_object);
        let object = self.decode(path, object, &resource.implied_type(), &answer.diagnostics)?;
        answer.value.push(Listed {
            display_name: event.display_name,
            identity,
            object,
        });
        Ok(true)
    }
}

async fn open_stream(
    started: &Started,
    path: &'static str,
    request: pb::list_resource::Request,
) -> Result<Streaming<pb::list_resource::Event>, tonic::Status> {
    let mut grpc = started.grpc.clone();
    grpc.ready()
        .await
        .map_err(|error| tonic::Status::from_error(error.into()))?;
    let codec = tonic_prost::ProstCodec::<pb::list_resource::Request, pb::list_resource::Event>::default();
    let answer = grpc.server_streaming(Request::new(request), PathAndQuery::from_static(path), codec);
    Ok(answer.await?.into_inner())
}

/// Prepends `config` to the paths of problems: the provider sees only the inside of that block.
fn in_config(mut problems: Vec<PluginDiagnostic>) -> Vec<PluginDiagnostic> {
    for problem in &mut problems {
        problem.attribute.0.insert(0, Step::Attribute("config".into()));
    }
    problems
}
