//! The `local` provider: files and commands of the machine that runs the configuration.
//!
//! A managed file is written once, and identified by the checksum of its content. A file that is missing or has other content is created
//! again. A change of its mode, or of the file from which it was copied, is not noticed.
//!
//! It implements version 2.9.0 of the official provider. Of the crates of this workspace it may use only the SDK and
//! `cty`.

mod action;
mod checksums;
mod command;
mod data_file;
mod file;

use std::io;

use monoform_sdk::{Arguments, Function, FunctionError, Parameter, Plain, Provider};

/// Name of the provider in addresses and in the names of executables.
pub const NAME: &str = "local";

/// Version of the official provider that this one implements.
pub const VERSION: &str = "2.9.0";

/// Earlier releases with the same major version, which this provider also implements.
pub const RELEASED: &[&str] = &[
    "2.0.0", "2.1.0", "2.2.0", "2.2.1", "2.2.2", "2.2.3", "2.3.0", "2.4.0", "2.4.1", "2.5.0", "2.5.1", "2.5.2",
    "2.5.3", "2.6.0", "2.6.1", "2.6.2", "2.7.0", "2.8.0",
];

/// Constructs the provider for the plugin server.
#[must_use]
pub fn provider() -> impl Provider {
    Plain(|members| {
        // As in the official provider, only these members have descriptions in Markdown.
        members.data_source("local_command", command::LocalCommand);
        members.ephemeral("local_command", command::LocalCommand);
        members.action("local_command", action::LocalCommand);
        members.plain();
        members.resource("local_file", file::LocalFile);
        members.resource("local_sensitive_file", file::LocalSensitiveFile);
        members.data_source("local_file", data_file::LocalFile);
        members.data_source("local_sensitive_file", data_file::LocalSensitiveFile);
        members.function("direxists", direxists());
    })
}

fn direxists() -> Function {
    Function::new(
        "Says whether a directory exists.",
        "Gives true if there is a directory at the path, and false if there is nothing. Anything else there is an error.",
        vec![Parameter::new::<String>(
            "path",
            "Path of a directory, relative to the current one.",
        )],
        |arguments: Arguments<'_>| {
            let path: String = arguments.get(0)?;
            // An empty path means the current directory.
            match std::fs::metadata(if path.is_empty() { "." } else { &path }) {
                Ok(found) if found.is_dir() => Ok(true),
                Ok(_) => Err(FunctionError::argument(
                    0,
                    format!("{path:?} was found, but is not a directory."),
                )),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
                Err(error) => Err(FunctionError::argument(
                    0,
                    format!("{path:?} cannot be looked at: {error}."),
                )),
            }
        },
    )
}

#[cfg(test)]
mod tests {
    use monoform_sdk::cty::Value;
    use monoform_sdk_testing::Harness;

    #[test]
    fn directories_exist_or_not() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "x").unwrap();
        let harness = Harness::new(crate::provider());
        let call = |path: &std::path::Path| harness.call("direxists", &[path.to_str().unwrap().into()]);
        assert_eq!(call(dir.path()), Ok(Value::bool(true)));
        assert_eq!(call(&dir.path().join("no")), Ok(Value::bool(false)));
        let error = call(&file).unwrap_err();
        assert!(
            error.text.contains("was found, but is not a directory"),
            "{}",
            error.text
        );
        assert_eq!(error.argument, Some(0));
    }
}
