//! The log: nothing, unless `TF_LOG` asks for it.

use std::fs::OpenOptions;
use std::sync::Mutex;

use tracing_subscriber::EnvFilter;

use crate::env::Env;

/// What a `TF_LOG` variable says: a level, and whether lines are JSON; `None` for silence.
fn level(text: &str) -> Option<(&'static str, bool)> {
    match text.to_ascii_uppercase().as_str() {
        "OFF" => None,
        "ERROR" => Some(("error", false)),
        "WARN" => Some(("warn", false)),
        "INFO" => Some(("info", false)),
        "DEBUG" => Some(("debug", false)),
        "JSON" => Some(("trace", true)),
        // What is not known counts as everything.
        _ => Some(("trace", false)),
    }
}

/// Begins to log. Gives a warning if the log cannot be written where it should.
pub fn start(env: &Env) -> Option<String> {
    let general = env.get("TF_LOG");
    let core = env.get("TF_LOG_CORE").or(general).and_then(level);
    let provider = env.get("TF_LOG_PROVIDER").or(general).and_then(level);
    if core.is_none() && provider.is_none() {
        return None;
    }
    let word = |l: Option<(&'static str, bool)>| l.map_or("off", |(l, _)| l);
    // Libraries of others are of interest only where they warn.
    let filter = EnvFilter::new(format!(
        "warn,cli={0},engine={0},config={0},state={0},lang={0},plugins={0},provider={1}",
        word(core),
        word(provider)
    ));
    let json = core.or(provider).is_some_and(|(_, json)| json);
    let mut problem = None;
    let file = env.get("TF_LOG_PATH").and_then(|path| {
        OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .inspect_err(|e| {
                problem = Some(format!(
                    "The log file {path} cannot be written ({e}); the log goes to standard error."
                ))
            })
            .ok()
    });
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false);
    // A log that was started before goes on: that can only be in tests.
    let _ = match (file, json) {
        (Some(file), true) => builder.json().with_writer(Mutex::new(file)).try_init(),
        (Some(file), false) => builder.with_writer(Mutex::new(file)).try_init(),
        (None, true) => builder.json().with_writer(std::io::stderr).try_init(),
        (None, false) => builder.with_writer(std::io::stderr).try_init(),
    };
    problem
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_levels_log_everything() {
        assert_eq!(level("off"), None);
        assert_eq!(level("Debug"), Some(("debug", false)));
        assert_eq!(level("json"), Some(("trace", true)));
        assert_eq!(level("yes"), Some(("trace", false)));
    }
}
