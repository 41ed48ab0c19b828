//! The `file` provisioner: copies a file, a directory or a text to another machine.
//!
//! The crate `connection` connects to the other machine and copies the files.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use connection::{Content, Error, Progress, Settings};
use monoform_sdk::cty::Value;
use monoform_sdk::schema::{optional, required};
use monoform_sdk::{Attr, Diagnostic, Diagnostics, Output, Provisioner, Result, Stop, async_trait, model};

/// Name of the provisioner in configurations.
pub const NAME: &str = "file";

/// Creates the provisioner for the plugin server.
#[must_use]
pub fn provisioner() -> impl Provisioner {
    FileProvisioner
}

model! {
    /// The arguments.
    pub struct Config {
        /// Path of a file or a directory. If the path of a directory ends with a slash, only its content is copied.
        pub source: Attr<String> = optional(),
        /// The content of the file, in place of `source`.
        pub content: Attr<String> = optional(),
        /// Path on the other machine.
        pub destination: Attr<String> = required(),
    }
}

struct FileProvisioner;

#[async_trait]
impl Provisioner for FileProvisioner {
    type Config = Config;

    fn validate(&self, config: &Config) -> Diagnostics {
        let problem = match (config.source.is_null(), config.content.is_null()) {
            (false, false) => "Cannot set both 'source' and 'content'",
            (true, true) => "Must provide one of 'source' or 'content'",
            _ => return Diagnostics::new(),
        };
        Diagnostic::error(problem, "").into()
    }

    async fn run(&self, config: Config, connection: Value, output: Output, mut stop: Stop) -> Result<()> {
        run(config, &connection, &output, &mut stop)
            .await
            .map_err(|error| Diagnostic::error("file provisioner error", error.to_string()).into())
    }
}

/// Source of the copy, after it has been examined.
enum What {
    One(Content),
    Directory { path: PathBuf, contents_only: bool },
}

async fn run(config: Config, connection: &Value, output: &Output, stop: &mut Stop) -> connection::Result<()> {
    // The settings and the source are checked before connecting, so that their errors are reported early.
    let settings = Settings::read(connection)?;
    let destination = config.destination.text().to_owned();
    let source = config.source.into_known().map(|path| expand(&path)).transpose()?;
    let what = match (source, config.content) {
        (_, Attr::Known(text)) => What::One(Content::Bytes(text.into_bytes())),
        (Some(path), _) => what_is_at(path)?,
        (None, _) => return Err(Error::fatal("source and content cannot both be null")),
    };
    let mut machine = connection::connect(&settings, None, stop).await?;
    let progress = machine.progress();
    let copy = async {
        match what {
            What::One(content) => machine.upload(&destination, content).await,
            What::Directory { path, contents_only } => {
                machine.upload_directory(&destination, &path, contents_only).await
            }
        }
    };
    let result = tokio::select! {
        result = copy => result.map_err(|error| error.context("Upload failed")),
        // Dropping the copy is enough to stop it: the connection is closed below, which ends the program on the other side.
        () = stop.requested() => Err(Error::fatal("Upload failed: interrupted")),
        never = report(&progress, output) => match never {},
    };
    machine.close().await;
    result
}

/// Interval of progress messages. Most copies end before the first one.
const INTERVAL: Duration = Duration::from_secs(10);

/// Shows the progress of a copy at each interval.
async fn report(progress: &Progress, output: &Output) -> std::convert::Infallible {
    loop {
        tokio::time::sleep(INTERVAL).await;
        let copied = progress.bytes();
        output.show(format!("{} copied", size(copied))).await;
    }
}

/// Formats a number of bytes.
fn size(bytes: u64) -> String {
    const UNIT: u64 = 1024;
    let tenths = |unit: u64| format!("{}.{}", bytes / unit, bytes % unit * 10 / unit);
    match bytes {
        0..UNIT => format!("{bytes} bytes"),
        UNIT..0x10_0000 => format!("{} KiB", tenths(UNIT)),
        0x10_0000..0x4000_0000 => format!("{} MiB", tenths(UNIT * UNIT)),
        _ => format!("{} GiB", tenths(UNIT * UNIT * UNIT)),
    }
}

/// Examines the source. A pipe or device is an error, since its content may have no end.
fn what_is_at(path: String) -> connection::Result<What> {
    let kind = std::fs::metadata(&path).map_err(|error| {
        let reason = match error.kind() {
            io::ErrorKind::NotFound => "no such file or directory".to_owned(),
            io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
            _ => error.to_string(),
        };
        Error::fatal(format!("stat {path}: {reason}"))
    })?;
    // As in Terraform, a slash at the end of the path means the content of the directory.
    let contents_only = path.ends_with('/');
    let path = PathBuf::from(path);
    if kind.is_dir() {
        Ok(What::Directory { path, contents_only })
    } else if kind.is_file() {
        Ok(What::One(Content::File(path)))
    } else {
        Err(Error::fatal(format!(
            "{} is neither a file nor a directory, so it cannot be copied",
            path.display()
        )))
    }
}

/// Replaces a tilde at the beginning of a path by the user's home directory.
fn expand(path: &str) -> connection::Result<String> {
    let Some(rest) = path.strip_prefix('~') else {
        return Ok(path.to_owned());
    };
    if !rest.is_empty() && !rest.starts_with('/') {
        return Err(Error::fatal("cannot expand user-specific home dir"));
    }
    Ok(format!("{}{rest}", home()?))
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one place where this crate reads the environment"
)]
fn home() -> connection::Result<String> {
    // If HOME is not set, this reads the user database of the system.
    std::env::home_dir()
        .filter(|home| !home.as_os_str().is_empty())
        .and_then(|home| home.into_os_string().into_string().ok())
        .ok_or_else(|| Error::fatal("the ~ in source cannot be expanded: this user has no home directory"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_source_is_wanted() {
        let config = |source: &str, content: &str| {
            let attr = |text: &str| match text {
                "" => Attr::Null,
                text => Attr::from(text),
            };
            Config {
                source: attr(source),
                content: attr(content),
                destination: "d".into(),
            }
        };
        let summary = |config| FileProvisioner.validate(&config).0.first().map(|d| d.summary.clone());
        assert_eq!(summary(config("a", "")), None);
        assert_eq!(summary(config("", "b")), None);
        assert_eq!(
            summary(config("a", "b")).as_deref(),
            Some("Cannot set both 'source' and 'content'")
        );
        assert_eq!(
            summary(config("", "")).as_deref(),
            Some("Must provide one of 'source' or 'content'")
        );
    }

    #[test]
    fn sizes_are_for_people() {
        for (bytes, text) in [
            (7, "7 bytes"),
            (1536, "1.5 KiB"),
            (64 << 20, "64.0 MiB"),
            (5 << 29, "2.5 GiB"),
        ] {
            assert_eq!(size(bytes), text);
        }
    }

    #[test]
    fn the_tilde_is_the_home_directory() {
        assert_eq!(expand("a/~").unwrap(), "a/~");
        assert!(expand("~/x").unwrap().ends_with("/x"));
        assert!(expand("~root/x").is_err());
    }
}
