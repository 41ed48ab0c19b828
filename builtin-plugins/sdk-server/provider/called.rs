//! Fields for the log lines of a call: the request, and the type or function that it is about.

use std::future::Future;
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::time::Instant;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use prost::Message as _;
use tracing::field::Empty;
use tracing::{Instrument as _, Level, Span};

/// The part of a request that names a type or function. It is the first field in all requests but one.
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

/// Returns the name of the log field for the type or function that a method is about.
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

/// Returns the span of a call; a disabled span if nothing is logged.
fn span(version: u32, method: &str, request: &[u8]) -> Span {
    if !tracing::enabled!(Level::ERROR) {
        return Span::none();
    }
    // The span has the level ERROR, so that log lines of all levels have its fields.
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
        // If a request cannot be decoded, its log lines have the method without a name; the method itself reports the error.
        let name = match method {
            "MoveResourceState" => Moved::decode(request).map(|moved| moved.target_type_name),
            _ => Named::decode(request).map(|named| named.name),
        };
        span.record(field, name.unwrap_or_default());
    }
    span
}

/// Returns a random ID, which distinguishes the log lines of different calls.
fn request_id() -> String {
    // The random seeds of hash tables suffice: the ID has no use except in logs.
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

/// Runs a call with its fields in all log lines, and logs its beginning and end.
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
