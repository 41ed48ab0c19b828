//! IDs of traces and spans, and the W3C trace context (`TRACEPARENT`).

use data_encoding::{HEXLOWER, HEXLOWER_PERMISSIVE};
use uuid::Uuid;

/// Identifier of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceId(pub(crate) [u8; 16]);

/// Identifier of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SpanId(pub(crate) [u8; 8]);

impl TraceId {
    pub(crate) fn random() -> TraceId {
        TraceId(Uuid::new_v4().into_bytes())
    }
}

impl SpanId {
    pub(crate) fn random() -> SpanId {
        // All of these bytes are random, except for the version number of the UUID.
        let [a, b, c, d, e, f, _, _, _, g, h, ..] = Uuid::new_v4().into_bytes();
        SpanId([a, b, c, d, e, f, g, h])
    }
}

/// Trace context of the program that has started this program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parent {
    pub trace: TraceId,
    pub span: SpanId,
    /// `TRACESTATE`, which is passed on unchanged.
    pub state: String,
}

impl Parent {
    /// Parses `TRACEPARENT`. An invalid value gives `None`, and a new trace is started.
    #[must_use]
    pub fn parse(parent: &str, state: Option<&str>) -> Option<Parent> {
        let mut parts = parent.trim().split('-');
        let version = parts.next()?;
        let (trace, span, flags) = (parts.next()?, parts.next()?, parts.next()?);
        // Later versions may have more parts.
        if version.len() != 2 || version == "ff" || flags.len() != 2 || (version == "00" && parts.next().is_some()) {
            return None;
        }
        let trace: [u8; 16] = HEXLOWER.decode(trace.as_bytes()).ok()?.try_into().ok()?;
        let span: [u8; 8] = HEXLOWER.decode(span.as_bytes()).ok()?.try_into().ok()?;
        HEXLOWER_PERMISSIVE
            .decode(format!("{version}{flags}").as_bytes())
            .ok()?;
        (trace != [0; 16] && span != [0; 8]).then(|| Parent {
            trace: TraceId(trace),
            span: SpanId(span),
            state: state.unwrap_or_default().to_owned(),
        })
    }
}

/// Returns the value of `TRACEPARENT` for a span, which is always sampled.
pub(crate) fn traceparent(trace: TraceId, span: SpanId) -> String {
    format!("00-{}-{}-01", HEXLOWER.encode(&trace.0), HEXLOWER.encode(&span.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parent_is_read_and_written_in_the_form_of_the_w3c() {
        let text = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let parent = Parent::parse(text, Some("a=b")).unwrap();
        assert_eq!(traceparent(parent.trace, parent.span), text);
        assert_eq!(parent.state, "a=b");
        for invalid in [
            "",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x",
        ] {
            assert_eq!(Parent::parse(invalid, None), None, "{invalid}");
        }
        // A later version may have further parts.
        assert!(Parent::parse("01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x", None).is_some());
    }
}
