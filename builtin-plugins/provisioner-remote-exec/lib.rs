//! The `remote-exec` provisioner: runs commands or scripts on another machine.
//!
//! Each script is written to the other machine and run there. After it has succeeded, its file is emptied; a failed script is kept for
//! inspection. Its output is shown line by line. An interrupt ends the command on the other machine. The crate `connection` connects to
//! that machine.

use connection::{Content, Error, Settings};
use monoform_sdk::cty::Value;
use monoform_sdk::schema::optional;
use monoform_sdk::{Attr, Diagnostic, Diagnostics, Output, Provisioner, Result, Stop, async_trait, model};

/// Name of the provisioner in configurations.
pub const NAME: &str = "remote-exec";

/// Creates the provisioner for the plugin server.
#[must_use]
pub fn provisioner() -> impl Provisioner {
    RemoteExec
}

model! {
    /// The arguments.
    pub struct Config {
        /// Lines of one script.
        pub inline: Attr<Vec<Attr<String>>> = optional(),
        /// The path of a script.
        pub script: Attr<String> = optional(),
        /// The paths of scripts, which are run in this order.
        pub scripts: Attr<Vec<Attr<String>>> = optional(),
    }
}

struct RemoteExec;

#[async_trait]
impl Provisioner for RemoteExec {
    type Config = Config;

    fn validate(&self, config: &Config) -> Diagnostics {
        let set = [
            !config.inline.is_null(),
            !config.script.is_null(),
            !config.scripts.is_null(),
        ];
        let mut found = Diagnostics::new();
        if set.into_iter().filter(|set| *set).count() != 1 {
            found.push(Diagnostic::error(
                "Invalid remote-exec provisioner configuration",
                "Set either \"inline\", \"script\" or \"scripts\"",
            ));
        }
        found
    }

    async fn run(&self, config: Config, connection: Value, output: Output, mut stop: Stop) -> Result<()> {
        run(config, &connection, &output, &mut stop)
            .await
            .map_err(|error| Diagnostic::error("remote-exec provisioner error", error.to_string()).into())
    }
}

async fn run(config: Config, connection: &Value, output: &Output, stop: &mut Stop) -> connection::Result<()> {
    let settings = Settings::read(connection)?;
    // Local scripts are read before connecting, so that a missing one is reported before anything has run.
    let scripts = scripts(config)?;
    let mut machine = connection::connect(&settings, Some(output), stop).await?;
    let mut result = Ok(());
    for script in scripts {
        let path = settings.script_path();
        let uploaded = tokio::select! {
            uploaded = machine.upload_script(&path, script) => uploaded,
            () = stop.requested() => Err(Error::fatal("interrupted")),
        };
        result = match uploaded {
            Ok(()) => machine.run_script(&path, output, stop).await,
            Err(error) => Err(error.context("Failed to upload script")),
        };
        // The failed script stays on the machine for inspection, and the remaining ones are not run.
        if result.is_err() {
            break;
        }
        // The file is emptied, because scripts may contain secrets. A failure to do so is ignored, since the script has succeeded.
        drop(machine.upload(&path, Content::Bytes(Vec::new())).await);
    }
    machine.close().await;
    result
}

/// Reads all scripts, before a connection is attempted.
fn scripts(config: Config) -> connection::Result<Vec<Vec<u8>>> {
    if let Attr::Known(lines) = config.inline {
        let mut script = String::new();
        for line in texts(lines, "inline")? {
            script.push_str(&line);
            script.push('\n');
        }
        return Ok(vec![script.into_bytes()]);
    }
    let mut paths = texts(
        config.script.into_known().map(Attr::Known).into_iter().collect(),
        "script",
    )?;
    paths.extend(texts(config.scripts.or(Vec::new()), "scripts")?);
    let read = |path: String| {
        std::fs::read(&path).map_err(|error| {
            let reason = match error.kind() {
                // The text of `io::Error` would end with "(os error 2)", unlike Go's message.
                std::io::ErrorKind::NotFound => "no such file or directory".to_owned(),
                std::io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
                _ => error.to_string(),
            };
            Error::fatal(format!("Failed to open script '{path}': open {path}: {reason}"))
        })
    };
    paths.into_iter().map(read).collect()
}

/// Returns the texts of a list, none of which may be null or empty.
fn texts(list: Vec<Attr<String>>, argument: &str) -> connection::Result<Vec<String>> {
    list.into_iter()
        .map(|item| match item {
            Attr::Known(text) if text.is_empty() => Err(Error::fatal(format!("invalid empty string in '{argument}'"))),
            Attr::Known(text) => Ok(text),
            Attr::Null | Attr::Unknown => Err(Error::fatal(format!("invalid null string in '{argument}'"))),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use monoform_sdk::cty::Type;

    use super::*;

    fn list(items: &[&str]) -> Attr<Vec<Attr<String>>> {
        Attr::Known(items.iter().map(|item| Attr::Known((*item).to_owned())).collect())
    }

    #[test]
    fn one_source_of_scripts_is_wanted() {
        for (config, count) in [
            (Config::default(), 1),
            (
                Config {
                    inline: list(&["a"]),
                    ..Config::default()
                },
                0,
            ),
            (
                Config {
                    inline: list(&["a"]),
                    script: "b".into(),
                    ..Config::default()
                },
                1,
            ),
        ] {
            assert_eq!(RemoteExec.validate(&config).0.len(), count);
        }
    }

    #[test]
    fn inline_lines_are_one_script() {
        let config = Config {
            inline: list(&["a", "b c"]),
            ..Config::default()
        };
        assert_eq!(scripts(config).unwrap(), [b"a\nb c\n".to_vec()]);
    }

    #[tokio::test]
    async fn what_is_wrong_is_known_before_connecting() {
        let inline = |items: &[&str]| Config {
            inline: list(items),
            ..Config::default()
        };
        let script = |path: &str| Config {
            script: path.into(),
            ..Config::default()
        };
        let null = Value::null(Type::map(Type::String));
        let there = Value::map(
            Type::String,
            [("host".into(), Value::string("127.0.0.1"))].into_iter().collect(),
        );
        for (config, connection, part) in [
            (
                inline(&["a"]),
                &null,
                "Missing connection configuration for provisioner.",
            ),
            (inline(&["a", ""]), &there, "invalid empty string in 'inline'"),
            (script(""), &there, "invalid empty string in 'script'"),
            (script("/nowhere"), &there, "Failed to open script '/nowhere'"),
        ] {
            let (output, _lines) = Output::channel();
            let errors = RemoteExec
                .run(config, connection.clone(), output, Stop::never())
                .await
                .unwrap_err();
            assert_eq!(errors.0[0].summary, "remote-exec provisioner error");
            assert!(errors.0[0].detail.contains(part), "{}", errors.0[0].detail);
        }
    }
}
