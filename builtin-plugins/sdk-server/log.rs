//! Logs in the format that hosts read: one JSON object in each line, on standard error.
//!
//! Authors write events with `tracing`. The line of an event has the fields of the spans around it. The log level comes from the first of
//! these variables that is set: `TF_LOG_PROVIDER_<NAME>` with the provider's own name, `TF_LOG_PROVIDER`, `TF_LOG`. If none is set, no
//! event is written, and events cost almost nothing.

#![expect(clippy::disallowed_methods, reason = "lines of a log have the time in them")]

mod spans;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::io::Write;
use std::path::Path;
use std::time::SystemTime;

use monoform_sdk::Json;
use monoform_sdk::guard::watch_panics;
use monoform_sdk::log::{MASK, is_masked, masked};
use monoform_sdk::served::report_waiting_with;
use spans::Spans;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_core::span::Current;

/// Starts the log, if the environment enables it.
pub(crate) fn start(environment: impl Fn(&str) -> Option<String>) {
    let set = |name: &str| environment(name).filter(|v| !v.is_empty());
    let own = own_name(std::env::args_os()).and_then(|name| set(&format!("TF_LOG_PROVIDER_{name}")));
    let level = level(
        own.or_else(|| set("TF_LOG_PROVIDER"))
            .or_else(|| set("TF_LOG"))
            .as_deref(),
    );
    if level != LevelFilter::OFF {
        // Fails if the author has set a subscriber already, which then stays in use.
        drop(tracing::subscriber::set_global_default(Log::new(level)));
    }
    // Independent of the log level: the host needs reports of panics and of waits for a server even if nothing is logged.
    watch_panics();
    report_waiting_with(waiting);
}

/// Returns the provider's name as it appears in names of variables. The name comes from the executable
/// (`terraform-provider-my-cloud_v1.0.0`), or from the arguments of an executable that serves several providers (`… internal-plugin
/// provider NAME`). Other executables have no such name.
fn own_name(mut arguments: impl Iterator<Item = OsString>) -> Option<String> {
    let program = arguments.next()?;
    let program = Path::new(&program).file_name()?.to_string_lossy();
    let name = match program.strip_prefix("terraform-provider-") {
        Some(rest) => rest.split("_v").next().unwrap_or_default().to_owned(),
        None if arguments.next()? == "internal-plugin" => arguments.nth(1)?.to_string_lossy().into_owned(),
        None => return None,
    };
    Some(name.to_ascii_uppercase().replace('-', "_"))
}

fn level(text: Option<&str>) -> LevelFilter {
    match text.map(str::to_ascii_uppercase).as_deref() {
        None | Some("OFF") => LevelFilter::OFF,
        Some("ERROR") => LevelFilter::ERROR,
        Some("WARN") => LevelFilter::WARN,
        Some("INFO") => LevelFilter::INFO,
        Some("DEBUG") => LevelFilter::DEBUG,
        // `JSON` means the most detailed level, and so does any other text, as in Terraform.
        Some(_) => LevelFilter::TRACE,
    }
}

struct Log {
    level: LevelFilter,
    spans: Spans,
}

impl Log {
    fn new(level: LevelFilter) -> Log {
        Log {
            level,
            spans: Spans::default(),
        }
    }
}

impl Subscriber for Log {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        // Events of the libraries for HTTP/2 and TLS would hide those of the plugin.
        let noise = [
            "h2",
            "hyper",
            "hyper_util",
            "tonic",
            "rustls",
            "tower",
            "tokio",
            "tokio_util",
        ];
        let root = metadata.target().split("::").next().unwrap_or_default();
        *metadata.level() <= self.level && !noise.contains(&root)
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        Some(self.level)
    }

    fn event(&self, event: &Event<'_>) {
        let around = match event.is_root() {
            true => BTreeMap::new(),
            false => self.spans.fields(event.parent()),
        };
        let text = line(event, around, &gotext::instant::rfc3339_micro(SystemTime::now()));
        // Standard error is the only place to report to.
        drop(std::io::stderr().lock().write_all(text.as_bytes()));
    }

    fn new_span(&self, span: &Attributes<'_>) -> Id {
        self.spans.open(span)
    }
    fn record(&self, span: &Id, values: &Record<'_>) {
        self.spans.record(span, values);
    }
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, span: &Id) {
        spans::enter(span);
    }
    fn exit(&self, span: &Id) {
        spans::exit(span);
    }
    fn clone_span(&self, span: &Id) -> Id {
        self.spans.clone_handle(span);
        span.clone()
    }
    fn try_close(&self, span: Id) -> bool {
        self.spans.close_handle(&span)
    }
    fn current_span(&self) -> Current {
        match self.spans.current() {
            Some((id, metadata)) => Current::new(id, metadata),
            None => Current::none(),
        }
    }
}

/// Writes the line that tells the host which server the plugin is waiting for. The line is written at every log level.
fn waiting(host: &str) {
    let fields = [("@level", "info"), ("@module", proto::WAITING), ("@message", host)];
    let line = Json::Object(fields.map(|(name, value)| (name.to_owned(), Json::from(value))).into());
    // A failure to write is ignored: there is no other place to report it.
    drop(std::io::stderr().lock().write_all(format!("{line}\n").as_bytes()));
}

/// Formats an event with the fields of the spans around it. Masked fields and texts are replaced.
fn line(event: &Event<'_>, around: BTreeMap<String, Json>, time: &str) -> String {
    let mut fields = Fields(around);
    event.record(&mut fields);
    for (name, value) in &mut fields.0 {
        if is_masked(name) {
            *value = MASK.into();
        } else if let Json::String(text) = value {
            *text = masked(text).into_owned();
        }
    }
    let message = fields.0.remove("message").unwrap_or_default();
    let level = match *event.metadata().level() {
        Level::ERROR => "error",
        Level::WARN => "warn",
        Level::INFO => "info",
        Level::DEBUG => "debug",
        Level::TRACE => "trace",
    };
    let mut out = BTreeMap::new();
    out.insert("@level".to_owned(), Json::from(level));
    out.insert("@message".into(), message);
    out.insert("@timestamp".into(), time.into());
    // hclog separates the names of nested loggers by dots.
    out.insert("@module".into(), event.metadata().target().replace("::", ".").into());
    out.extend(fields.0);
    format!("{}\n", Json::Object(out))
}

/// The fields of an event.
struct Fields(BTreeMap<String, Json>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name().into(), format!("{value:?}").into());
    }
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().into(), value.into());
    }
    fn record_i64(&mut self, field: &Field, value: i64) {
        self.0.insert(field.name().into(), value.into());
    }
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.insert(field.name().into(), value.into());
    }
    fn record_bool(&mut self, field: &Field, value: bool) {
        self.0.insert(field.name().into(), value.into());
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[test]
    fn the_name_comes_from_the_executable_or_its_arguments() {
        let name = |all: &[&str]| own_name(all.iter().map(|a| OsString::from(*a)));
        assert_eq!(
            name(&["/x/terraform-provider-my-cloud_v1.0.0"]).as_deref(),
            Some("MY_CLOUD")
        );
        assert_eq!(
            name(&["monoform", "internal-plugin", "provider", "http"]).as_deref(),
            Some("HTTP")
        );
        assert_eq!(name(&["monoform", "plan"]), None);
        assert_eq!(name(&[]), None);
    }

    #[test]
    fn lines_have_the_fields_of_the_spans_around_them_without_secrets() {
        #[derive(Clone, Default)]
        struct Lines(Arc<Mutex<Vec<Json>>>);
        struct Recorded(Log, Lines);
        impl Subscriber for Recorded {
            fn enabled(&self, metadata: &Metadata<'_>) -> bool {
                self.0.enabled(metadata)
            }
            fn event(&self, event: &Event<'_>) {
                let text = line(event, self.0.spans.fields(event.parent()), "");
                (self.1.0.lock().unwrap()).push(Json::parse(text.as_bytes()).unwrap());
            }
            fn new_span(&self, span: &Attributes<'_>) -> Id {
                self.0.new_span(span)
            }
            fn record(&self, span: &Id, values: &Record<'_>) {
                self.0.record(span, values);
            }
            fn record_follows_from(&self, _: &Id, _: &Id) {}
            fn enter(&self, span: &Id) {
                self.0.enter(span);
            }
            fn exit(&self, span: &Id) {
                self.0.exit(span);
            }
            fn clone_span(&self, span: &Id) -> Id {
                self.0.clone_span(span)
            }
            fn try_close(&self, span: Id) -> bool {
                self.0.try_close(span)
            }
            fn current_span(&self) -> Current {
                self.0.current_span()
            }
        }
        monoform_sdk::log::mask_fields(["spans_token"]);
        monoform_sdk::log::mask_texts(["spans-secret"]);
        let lines = Lines::default();
        let log = Recorded(Log::new(LevelFilter::INFO), lines.clone());
        tracing::subscriber::with_default(log, || {
            let call = tracing::error_span!("call", tf_rpc = "Read", kind = tracing::field::Empty);
            call.record("kind", "x_thing");
            let inner = call.in_scope(|| tracing::info_span!("own", page = 2));
            // A task that continues on another thread after the span of its call has ended.
            drop(call);
            std::thread::scope(|_| inner.in_scope(|| tracing::info!(spans_token = "t", "got spans-secret")));
            drop(inner);
            tracing::info!("outside");
        });
        let lines = lines.0.lock().unwrap();
        let text = |line: &Json, name: &str| line.get(name).map(ToString::to_string);
        let first = |name| text(&lines[0], name);
        assert_eq!(first("tf_rpc").as_deref(), Some("\"Read\""));
        assert_eq!(first("kind").as_deref(), Some("\"x_thing\""));
        assert_eq!(first("page").as_deref(), Some("2"));
        assert_eq!(first("spans_token").as_deref(), Some("\"***\""));
        assert_eq!(first("@message").as_deref(), Some("\"got ***\""));
        assert_eq!(text(&lines[1], "tf_rpc"), None);
    }

    #[test]
    fn the_level_comes_from_the_environment() {
        for (text, expected) in [
            (None, LevelFilter::OFF),
            (Some("off"), LevelFilter::OFF),
            (Some("Warn"), LevelFilter::WARN),
            (Some("JSON"), LevelFilter::TRACE),
            (Some("what"), LevelFilter::TRACE),
        ] {
            assert_eq!(level(text), expected, "{text:?}");
        }
    }
}
