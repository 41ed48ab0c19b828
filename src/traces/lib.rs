//! OpenTelemetry traces of commands, with spans for the command, its phases, and the objects in them. They are sent to a collector by OTLP
//! over HTTP when the command ends.
//!
//! Nothing is recorded unless `OTEL_TRACES_EXPORTER=otlp` is set. If the collector does not answer, that is logged, and does not change the
//! result of the command.
//!
//! Start with [`Tracer`]; [`Settings`] has the environment variables.

mod context;
mod export;
mod otlp;
mod settings;

use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

pub use context::{Parent, SpanId, TraceId};
pub use export::ExportError;
pub use settings::{Product, Settings, SettingsError};

/// Maximum number of recorded spans. Larger operations are rare, and a collector would reject or sample so many spans.
const LIMIT: usize = 100_000;

/// A span that has not ended.
#[derive(Clone, Debug)]
pub struct Open {
    pub id: SpanId,
    parent: Option<SpanId>,
    name: String,
    start: u64,
    attributes: Vec<(&'static str, String)>,
}

impl Open {
    /// Adds an attribute.
    pub fn set(&mut self, name: &'static str, value: impl Into<String>) {
        self.attributes.push((name, value.into()));
    }
}

/// A span that has ended.
#[derive(Clone, Debug)]
struct Span {
    open: Open,
    end: u64,
    /// Description of the failure.
    error: Option<String>,
}

/// Recorder of the spans of one command.
#[derive(Debug)]
pub struct Tracer {
    settings: Settings,
    trace: TraceId,
    spans: Mutex<Vec<Span>>,
    /// Parent of new spans for which no other parent is given: the current phase of the command.
    current: Mutex<Option<SpanId>>,
}

impl Tracer {
    /// Creates a recorder. If the environment contains a trace context, the spans belong to that trace.
    #[must_use]
    pub fn new(settings: Settings) -> Tracer {
        let parent = settings.parent.as_ref();
        Tracer {
            trace: parent.map_or_else(TraceId::random, |parent| parent.trace),
            current: Mutex::new(parent.map(|parent| parent.span)),
            settings,
            spans: Mutex::default(),
        }
    }

    /// Starts a span whose parent is the current span.
    #[must_use]
    pub fn start(&self, name: impl Into<String>) -> Open {
        Open {
            id: SpanId::random(),
            parent: *self.current.lock().unwrap_or_else(PoisonError::into_inner),
            name: name.into(),
            start: now(),
            attributes: Vec::new(),
        }
    }

    /// Starts a span with this parent.
    #[must_use]
    pub fn start_below(&self, parent: SpanId, name: impl Into<String>) -> Open {
        Open {
            parent: Some(parent),
            ..self.start(name)
        }
    }

    /// Starts a span and makes it the current one, so that it is the parent of spans that start before it ends.
    #[must_use]
    pub fn enter(&self, name: impl Into<String>) -> Open {
        let open = self.start(name);
        *self.current.lock().unwrap_or_else(PoisonError::into_inner) = Some(open.id);
        open
    }

    /// Ends a span, with the reason if it has failed. If [`LIMIT`] spans are recorded already, this one is dropped.
    pub fn end(&self, open: Open, error: Option<String>) {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if *current == Some(open.id) {
            *current = open.parent;
        }
        drop(current);
        let mut spans = self.spans.lock().unwrap_or_else(PoisonError::into_inner);
        if spans.len() < LIMIT {
            let end = now();
            spans.push(Span { open, end, error });
        }
    }

    /// Returns the value of `TRACEPARENT` for programs that are started during a span.
    #[must_use]
    pub fn traceparent(&self, span: SpanId) -> String {
        context::traceparent(self.trace, span)
    }

    /// Returns the value of `TRACEPARENT` for programs that are started during the current span; `None` if there is none.
    #[must_use]
    pub fn current_traceparent(&self) -> Option<String> {
        let current = *self.current.lock().unwrap_or_else(PoisonError::into_inner);
        Some(self.traceparent(current?))
    }
}

/// Returns the time in nanoseconds since 1970.
#[expect(
    clippy::disallowed_methods,
    reason = "spans have the times at which they start and end; no result depends on them"
)]
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
