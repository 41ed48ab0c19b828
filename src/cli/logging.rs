//! The log: empty, unless `TF_LOG` or a more specific variable enables it.
//!
//! A line has the form that programs for Terraform's logs expect: time, `[LEVEL]`, origin, message, fields. `TF_LOG=JSON` gives
//! an object a line with the same content. Output of plugins is logged under their own names. No line of this program contains a
//! value of the configuration, the state or the environment.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write;
use std::sync::{Mutex, PoisonError};

use serde_json::{Map, Value as Json};
use system::files::OpenOptionsExt as _;
use tracing::field::{Field, Visit};
use tracing::level_filters::LevelFilter;
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt as _};
use tracing_subscriber::util::SubscriberInitExt as _;
use views::terminal::shown;

use crate::env::Env;

/// Target of the events of plugins.
const PROVIDER: &str = "provider";
/// First segments of the event targets of this program's crates.
const OURS: &[&str] = &[
    "cli", "config", "engine", "lang", "modules", "net", "packages", "plugins", "state", "testing", "trust", "views",
];

/// Parses the value of a `TF_LOG` variable.
fn level(text: &str) -> Setting {
    let known = |level| Setting {
        level,
        json: false,
        known: true,
    };
    match text.to_ascii_uppercase().as_str() {
        "OFF" => known(LevelFilter::OFF),
        "ERROR" => known(LevelFilter::ERROR),
        "WARN" => known(LevelFilter::WARN),
        "INFO" => known(LevelFilter::INFO),
        "DEBUG" => known(LevelFilter::DEBUG),
        "TRACE" => known(LevelFilter::TRACE),
        "JSON" => Setting {
            json: true,
            ..known(LevelFilter::TRACE)
        },
        // As in Terraform, an unknown level enables everything.
        _ => Setting {
            known: false,
            ..known(LevelFilter::TRACE)
        },
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Setting {
    level: LevelFilter,
    json: bool,
    known: bool,
}

/// Enabled log levels: for this program, for providers, and for single providers.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Levels {
    core: LevelFilter,
    provider: LevelFilter,
    /// Levels by provider name in capital letters: `TF_LOG_PROVIDER_NULL`.
    providers: BTreeMap<String, LevelFilter>,
}

impl Levels {
    fn of_target(&self, target: &str) -> LevelFilter {
        let root = target.split("::").next().unwrap_or_default();
        if root == PROVIDER {
            self.providers.values().copied().fold(self.provider, LevelFilter::max)
        } else if OURS.contains(&root) {
            self.core
        } else {
            // Libraries log their internals on lower levels, so only their warnings and errors are logged.
            self.core.min(LevelFilter::WARN)
        }
    }

    /// Returns the level for the output of a plugin: `terraform-provider-null_v3.2.3`.
    fn of_plugin(&self, plugin: &str) -> LevelFilter {
        let name = plugin.strip_prefix("terraform-provider-").unwrap_or(plugin);
        let name = name.split("_v").next().unwrap_or_default();
        let name = name.to_ascii_uppercase().replace('-', "_");
        self.providers.get(&name).copied().unwrap_or(self.provider)
    }
}

/// Starts the log. Returns warnings about invalid settings.
pub fn start(env: &Env) -> Vec<String> {
    let mut problems = Vec::new();
    let mut read = |name: &str| {
        let text = env.get(name)?;
        let setting = level(text);
        if !setting.known {
            problems.push(format!(
                "[WARN] Invalid log level: {text:?}. TRACE is used in its place; the others are DEBUG, INFO, WARN, ERROR and OFF."
            ));
        }
        Some(setting)
    };
    let general = read("TF_LOG");
    let core = read("TF_LOG_CORE").or(general);
    let provider = read("TF_LOG_PROVIDER").or(general);
    let off = |setting: Option<Setting>| setting.map_or(LevelFilter::OFF, |s| s.level);
    let named = |(name, text): (&String, &String)| {
        let name = name.strip_prefix("TF_LOG_PROVIDER_").filter(|_| !text.is_empty())?;
        Some((name.to_owned(), level(text).level))
    };
    let levels = Levels {
        core: off(core),
        provider: off(provider),
        // As in Terraform, these variables only change levels, and do not enable logging by themselves.
        providers: match off(provider) {
            LevelFilter::OFF => BTreeMap::new(),
            _ => env.all().iter().filter_map(named).collect(),
        },
    };
    if levels.core == LevelFilter::OFF && levels.provider == LevelFilter::OFF {
        return problems;
    }
    let json = core.is_some_and(|s| s.json) || provider.is_some_and(|s| s.json);
    let file = env.get("TF_LOG_PATH").and_then(|path| {
        OpenOptions::new()
            .create(true)
            .append(true)
            // Providers may log secrets, so only the owner can read the log.
            .mode(0o600)
            .open(path)
            .inspect_err(|e| {
                problems.push(format!(
                    "The log file {path} cannot be written: {}. The log goes to standard error.",
                    files::io_reason(e)
                ));
            })
            .ok()
    });
    let writer: Box<dyn Write + Send> = match file {
        Some(file) => Box::new(file),
        None => Box::new(std::io::stderr()),
    };
    let lines = Lines {
        levels,
        json,
        writer: Mutex::new(writer),
    };
    // A subscriber that is already installed stays. Only tests have one.
    let _ = tracing_subscriber::registry().with(lines).try_init();
    problems
}

/// Layer that writes events as lines.
struct Lines {
    levels: Levels,
    json: bool,
    writer: Mutex<Box<dyn Write + Send>>,
}

impl<S: Subscriber> Layer<S> for Lines {
    fn enabled(&self, metadata: &Metadata<'_>, _: Context<'_, S>) -> bool {
        !metadata.is_span() && *metadata.level() <= self.levels.of_target(metadata.target())
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        let providers = self.levels.of_target(PROVIDER);
        Some(self.levels.core.max(providers))
    }

    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        let level = *event.metadata().level();
        let target = event.metadata().target();
        let module = match fields.plugin.take() {
            Some(plugin) if target == PROVIDER => {
                if level > self.levels.of_plugin(&plugin) {
                    return;
                }
                format!("{PROVIDER}.{plugin}")
            }
            plugin => {
                if let Some(plugin) = plugin {
                    fields.all.insert(0, ("plugin".into(), plugin.into()));
                }
                target.split("::").next().unwrap_or_default().to_owned()
            }
        };
        let time = crate::process::now();
        let line = if self.json {
            json_line(&format!("{time:.6}"), level, &module, fields)
        } else {
            text_line(&format!("{time:.3}"), level, &module, &fields)
        };
        let mut writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        // If standard error is closed, there is nowhere to report it.
        let _ = writer.write_all(line.as_bytes());
    }
}

/// Message and fields of an event.
#[derive(Default)]
struct Fields {
    message: String,
    plugin: Option<String>,
    all: Vec<(String, Json)>,
}

impl Fields {
    fn add(&mut self, field: &Field, value: Json) {
        let text = |value: Json| match value {
            Json::String(text) => text,
            other => other.to_string(),
        };
        match field.name() {
            "message" => self.message = text(value),
            "plugin" => self.plugin = Some(text(value)),
            // Fields of a plugin's log line, in addition to its message.
            "fields" => {
                if let Some(Ok(Json::Object(all))) = value.as_str().map(serde_json::from_str) {
                    self.all.extend(all);
                }
            }
            "module" if value.as_str() == Some("") => {}
            "module" => self.all.push(("@module".into(), value)),
            name => self.all.push((name.to_owned(), value)),
        }
    }
}

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.add(field, format!("{value:?}").into());
    }
    fn record_str(&mut self, field: &Field, value: &str) {
        self.add(field, value.into());
    }
    fn record_i64(&mut self, field: &Field, value: i64) {
        self.add(field, value.into());
    }
    fn record_u64(&mut self, field: &Field, value: u64) {
        self.add(field, value.into());
    }
    fn record_bool(&mut self, field: &Field, value: bool) {
        self.add(field, value.into());
    }
}

fn text_line(time: &str, level: Level, module: &str, fields: &Fields) -> String {
    let mut out = format!(
        "{time} {:<7} {module}: {}",
        format!("[{level}]"),
        shown(fields.message.trim_end())
    );
    for (i, (name, value)) in fields.all.iter().enumerate() {
        out.push_str(if i == 0 { ": " } else { " " });
        let text = match value {
            Json::String(text) => text.clone(),
            other => other.to_string(),
        };
        // Other values are quoted, so that a line can be split into its pairs again.
        let plain = |c: char| !c.is_whitespace() && !c.is_control() && !matches!(c, '"' | '=' | '\\');
        if !text.is_empty() && text.chars().all(plain) {
            let _ = write!(out, "{name}={text}");
        } else {
            let _ = write!(out, "{name}={}", shown(&format!("{text:?}")));
        }
    }
    out.push('\n');
    out
}

fn json_line(time: &str, level: Level, module: &str, fields: Fields) -> String {
    let mut object = Map::new();
    object.insert("@level".into(), level.as_str().to_ascii_lowercase().into());
    object.insert("@message".into(), fields.message.into());
    object.insert("@timestamp".into(), time.into());
    object.insert("@module".into(), module.into());
    for (name, value) in fields.all {
        // A field of a plugin must not replace one of the log's own.
        if !object.contains_key(&name) {
            object.insert(name, value);
        }
    }
    format!("{}\n", Json::Object(object))
}

/// Returns the arguments of a command for the log, without the values of flags that may be secret.
#[must_use]
pub fn arguments(all: &[String]) -> Vec<String> {
    // The value of either flag may be a secret. The path of a variable file is hidden, too.
    let secret = ["var", "backend-config"];
    let mut hide_next = false;
    all.iter()
        .map(|argument| {
            if std::mem::take(&mut hide_next) {
                return hidden(argument);
            }
            let Some(flag) = argument.strip_prefix("--").or_else(|| argument.strip_prefix('-')) else {
                return argument.clone();
            };
            match flag.split_once('=') {
                Some((name, value)) if secret.contains(&name) => format!("-{name}={}", hidden(value)),
                None if secret.contains(&flag) => {
                    hide_next = true;
                    argument.clone()
                }
                _ => argument.clone(),
            }
        })
        .collect()
}

/// Removes the value from `name=value`.
fn hidden(setting: &str) -> String {
    match setting.split_once('=') {
        Some((name, _)) => format!("{name}=…"),
        None => "…".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_levels_log_everything() {
        assert_eq!(level("off").level, LevelFilter::OFF);
        assert_eq!(level("Debug").level, LevelFilter::DEBUG);
        assert_eq!((level("json").level, level("json").json), (LevelFilter::TRACE, true));
        assert_eq!((level("yes").level, level("yes").known), (LevelFilter::TRACE, false));
    }

    #[test]
    fn levels_are_those_of_the_part_that_writes() {
        let levels = Levels {
            core: LevelFilter::DEBUG,
            provider: LevelFilter::WARN,
            providers: BTreeMap::from([("MY_CLOUD".to_owned(), LevelFilter::TRACE)]),
        };
        assert_eq!(levels.of_target("engine::planner"), LevelFilter::DEBUG);
        assert_eq!(levels.of_target("hyper::client"), LevelFilter::WARN);
        assert_eq!(levels.of_target("provider"), LevelFilter::TRACE);
        assert_eq!(
            levels.of_plugin("terraform-provider-my-cloud_v1.0.0"),
            LevelFilter::TRACE
        );
        assert_eq!(levels.of_plugin("terraform-provider-null_v3.2.3"), LevelFilter::WARN);
    }

    #[test]
    fn lines_have_one_form() {
        let fields = || Fields {
            message: "calling\x1b[2J".into(),
            plugin: None,
            all: vec![
                ("a".into(), "b".into()),
                ("c".into(), "d \"e\"".into()),
                ("n".into(), 5.into()),
            ],
        };
        assert_eq!(
            text_line("2026-01-02T03:04:05.006Z", Level::INFO, "plugins", &fields()),
            "2026-01-02T03:04:05.006Z [INFO]  plugins: calling\\x1b[2J: a=b c=\"d \\\"e\\\"\" n=5\n"
        );
        let line = json_line("2026-01-02T03:04:05.006789Z", Level::WARN, "plugins", fields());
        let json: Json = serde_json::from_str(&line).unwrap();
        assert_eq!(json["@level"], "warn");
        assert_eq!(json["@message"], "calling\u{1b}[2J");
        assert_eq!(json["@module"], "plugins");
        assert_eq!(json["n"], 5);
    }

    #[test]
    fn values_of_variables_are_not_in_logged_arguments() {
        let all = [
            "plan",
            "-var=a=secret",
            "-var",
            "b=secret",
            "--backend-config=k=secret",
            "-out=x",
        ];
        let all: Vec<String> = all.iter().map(|a| (*a).to_owned()).collect();
        assert_eq!(
            arguments(&all),
            ["plan", "-var=a=…", "-var", "b=…", "-backend-config=k=…", "-out=x"]
        );
    }
}
