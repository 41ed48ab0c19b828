//! The log: off unless `TF_LOG` asks for it, to standard error or to the file of `TF_LOG_PATH`.

use std::fs::OpenOptions;
use std::sync::Mutex;

use tracing_subscriber::EnvFilter;

use crate::env::Env;

/// Starts logging as the environment says. Gives what is wrong with what it says.
pub fn start(env: &Env) -> Vec<String> {
    let mut problems = Vec::new();
    let setting = env.get("TF_LOG").or(env.get("TF_LOG_CORE")).or(env.get("TF_LOG_PROVIDER"));
    let Some(setting) = setting else { return problems };
    let (level, json) = match setting.to_ascii_uppercase().as_str() {
        "OFF" => return problems,
        "TRACE" => ("trace", false),
        "DEBUG" => ("debug", false),
        "INFO" => ("info", false),
        "WARN" => ("warn", false),
        "ERROR" => ("error", false),
        "JSON" => ("trace", true),
        other => {
            problems.push(format!(
                "[WARN] Invalid log level: \"{other}\". Defaulting to level: TRACE. Valid levels are: [TRACE DEBUG INFO WARN \
                 ERROR OFF JSON]"
            ));
            ("trace", false)
        }
    };
    // The libraries below speak of frames and sockets: that is nobody's question here.
    let filter = EnvFilter::new(format!("{level},h2=warn,hyper=warn,hyper_util=warn,tower=warn,tonic=warn,rustls=warn"));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false);
    let file = env.get("TF_LOG_PATH").and_then(|path| {
        let mut options = OpenOptions::new();
        options.append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        match options.open(path) {
            Ok(file) => Some(file),
            Err(error) => {
                problems.push(format!("Error opening log file {path}: {error}"));
                None
            }
        }
    });
    let started = match (file, json) {
        (Some(file), true) => builder.json().with_writer(Mutex::new(file)).try_init(),
        (Some(file), false) => builder.with_writer(Mutex::new(file)).try_init(),
        (None, true) => builder.json().with_writer(std::io::stderr).try_init(),
        (None, false) => builder.with_writer(std::io::stderr).try_init(),
    };
    if let Err(error) = started {
        problems.push(format!("The log cannot be started: {error}"));
    }
    problems
}
