//! Fields that each log line of a call has: the request, and the type that it is about.

use std::future::Future;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::time::Instant;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use prost::Message as _;
use tracing::field::Empty;
use tracing::{Instrument as _, Level, Span};

/// The parts of requests that name a type: the first field of all but one.
#[derive(Clone, PartialEq, prost::Message)]
struct Named {
    #[prost(string, tag = "1")]
    name: String,
}

/// The field of a `MoveResourceState` request that names the target resource type.
#[derive(Clone, PartialEq, prost::Message)]
struct Moved {
    #[prost(string, tag = "5")]
    target_type_name: String,
}

/// Returns the field of a log line for the type or function that a method is about.
fn field(method: &str) -> Option<&'static str> {
    Some(match method {
        "ValidateResourceTypeConfig"
        | "ValidateResourceConfig"
        | "UpgradeResourceState"
        | "UpgradeResourceIdentity"
        | "ReadResource"
        | "PlanResourceChange"
        | "ApplyResourceChange"
        | "ImportResourceState"
        | "MoveResourceState"
        | "GenerateResourceConfig" => "tf_resource_type",
        "ValidateDataSourceConfig" | "ValidateDataResourceConfig" | "ReadDataSource" => "tf_data_source_type",
        "ValidateEphemeralResourceConfig"
        | "OpenEphemeralResource"
        | "RenewEphemeralResource"
        | "CloseEphemeralResource" => "tf_ephemeral_resource_type",
        "ValidateListResourceConfig" | "ListResource" => "tf_list_resource_type",
        "ValidateActionConfig" | "PlanAction" | "InvokeAction" => "tf_action_type",
        "CallFunction" => "tf_function_name",
        "ValidateStateStoreConfig"
        | "ConfigureStateStore"
        | "GetStates"
        | "DeleteState"
        | "ReadStateBytes"
        | "LockState"
        | "UnlockState" => "tf_state_store_type",
        _ => return None,
    })
}

/// Returns the span of a call; none if nothing is logged.
fn span(version: u32, method: &str, request: &[u8]) -> Span {
    if !tracing::enabled!(Level::ERROR) {
        return Span::none();
    }
    // The span has the level of errors, so that lines of all levels get its fields.
    let span = tracing::error_span!(
        "call",
        tf_proto_version = version,
        tf_rpc = method,
        tf_req_id = request_id(),
        tf_resource_type = Empty,
        tf_data_source_type = Empty,
        tf_ephemeral_resource_type = Empty,
        tf_list_resource_type = Empty,
        tf_action_type = Empty,
        tf_function_name = Empty,
        tf_state_store_type = Empty,
    );
    if let Some(field) = field(method) {
        // A request that cannot be read is reported by its method.
        let name = match method {
            "MoveResourceState" => Moved::decode(request).map(|moved| moved.target_type_name),
            _ => Named::decode(request).map(|named| named.name),
        };
        span.record(field, name.unwrap_or_default());
    }
    span
}

/// Returns a random ID, which tells lines of different calls apart.
fn request_id() -> String {
    // Seeds of hash tables are random enough: nothing depends on the ID.
    let half = || RandomState::new().build_hasher().finish();
    let text = format!("{:016x}{:016x}", half(), half());
    format!(
        "{}-{}-{}-{}-{}",
        &text[..8],
        &text[8..12],
        &text[12..16],
        &text[16..20],
        &text[20..]
    )
}

/// Runs the answer to a call with the fields of the call in all its log lines, and logs its begin and end.
pub(super) fn logged<T: 'static>(
    version: u32,
    method: &str,
    request: &[u8],
    answer: BoxFuture<'static, T>,
) -> BoxFuture<'static, T> {
    let span = span(version, method, request);
    if span.is_none() {
        return answer;
    }
    timed(answer).instrument(span).boxed()
}

async fn timed<T>(answer: impl Future<Output = T>) -> T {
    let begin = Instant::now();
    tracing::trace!("Received request");
    let result = answer.await;
    let time = u64::try_from(begin.elapsed().as_millis()).unwrap_or(u64::MAX);
    tracing::trace!(tf_req_duration_ms = time, "Served request");
    result
}

#[cfg(test)]
mod tests {
    use super::*;
    use proto::tfplugin6 as pb;

    #[test]
    fn types_are_read_from_requests() {
        let read = pb::read_resource::Request {
            type_name: "x_thing".into(),
            private: vec![1, 2],
            ..Default::default()
        };
        assert_eq!(Named::decode(&*read.encode_to_vec()).unwrap().name, "x_thing");
        let moved = pb::move_resource_state::Request {
            source_type_name: "x_old".into(),
            target_type_name: "x_new".into(),
            ..Default::default()
        };
        assert_eq!(
            Moved::decode(&*moved.encode_to_vec()).unwrap().target_type_name,
            "x_new"
        );
        assert_eq!(
            (field("ReadResource"), field("GetMetadata")),
            (Some("tf_resource_type"), None)
        );
    }
}
