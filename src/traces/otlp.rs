//! Messages of OTLP, the OpenTelemetry protocol, limited to spans.

use prost::Message;

use crate::context::{Parent, TraceId};
use crate::settings::Settings;
use crate::{Open, Span};

/// Request of `opentelemetry.proto.collector.trace.v1.TraceService`.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct ExportTraceServiceRequest {
    #[prost(message, repeated, tag = "1")]
    pub resource_spans: Vec<ResourceSpans>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ResourceSpans {
    #[prost(message, optional, tag = "1")]
    pub resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    pub scope_spans: Vec<ScopeSpans>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Resource {
    #[prost(message, repeated, tag = "1")]
    pub attributes: Vec<KeyValue>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct ScopeSpans {
    #[prost(message, optional, tag = "1")]
    pub scope: Option<InstrumentationScope>,
    #[prost(message, repeated, tag = "2")]
    pub spans: Vec<SpanMessage>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct InstrumentationScope {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(string, tag = "2")]
    pub version: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct SpanMessage {
    #[prost(bytes = "vec", tag = "1")]
    pub trace_id: Vec<u8>,
    #[prost(bytes = "vec", tag = "2")]
    pub span_id: Vec<u8>,
    #[prost(string, tag = "3")]
    pub trace_state: String,
    #[prost(bytes = "vec", tag = "4")]
    pub parent_span_id: Vec<u8>,
    #[prost(string, tag = "5")]
    pub name: String,
    #[prost(int32, tag = "6")]
    pub kind: i32,
    #[prost(fixed64, tag = "7")]
    pub start_time_unix_nano: u64,
    #[prost(fixed64, tag = "8")]
    pub end_time_unix_nano: u64,
    #[prost(message, repeated, tag = "9")]
    pub attributes: Vec<KeyValue>,
    #[prost(message, optional, tag = "15")]
    pub status: Option<Status>,
}

/// `SPAN_KIND_INTERNAL`.
const INTERNAL: i32 = 1;

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Status {
    #[prost(string, tag = "2")]
    pub message: String,
    #[prost(int32, tag = "3")]
    pub code: i32,
}

/// `STATUS_CODE_ERROR`.
const ERROR: i32 = 2;

#[derive(Clone, PartialEq, Message)]
pub(crate) struct KeyValue {
    #[prost(string, tag = "1")]
    pub key: String,
    #[prost(message, optional, tag = "2")]
    pub value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct AnyValue {
    #[prost(string, optional, tag = "1")]
    pub string_value: Option<String>,
}

fn attribute(key: &str, value: &str) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue {
            string_value: Some(value.to_owned()),
        }),
    }
}

/// Encodes a request with these spans.
pub(crate) fn encode(settings: &Settings, trace: TraceId, spans: &[Span]) -> Vec<u8> {
    let state = settings.parent.as_ref().map(|Parent { state, .. }| state.as_str());
    let resource = settings.resource.iter().map(|(key, value)| attribute(key, value));
    let request = ExportTraceServiceRequest {
        resource_spans: vec![ResourceSpans {
            resource: Some(Resource {
                attributes: resource.collect(),
            }),
            scope_spans: vec![ScopeSpans {
                scope: Some(InstrumentationScope {
                    name: "monoform".to_owned(),
                    version: settings.version.clone(),
                }),
                spans: spans.iter().map(|span| message(trace, state, span)).collect(),
            }],
        }],
    };
    request.encode_to_vec()
}

fn message(trace: TraceId, state: Option<&str>, Span { open, end, error }: &Span) -> SpanMessage {
    let Open {
        id,
        parent,
        name,
        start,
        attributes,
    } = open;
    SpanMessage {
        trace_id: trace.0.to_vec(),
        span_id: id.0.to_vec(),
        trace_state: state.unwrap_or_default().to_owned(),
        parent_span_id: parent.map(|parent| parent.0.to_vec()).unwrap_or_default(),
        name: name.clone(),
        kind: INTERNAL,
        start_time_unix_nano: *start,
        end_time_unix_nano: *end,
        attributes: attributes.iter().map(|(key, value)| attribute(key, value)).collect(),
        status: error.as_ref().map(|message| Status {
            message: message.clone(),
            code: ERROR,
        }),
    }
}
