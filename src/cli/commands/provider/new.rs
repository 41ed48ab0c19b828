//! `provider new`: the project of a new provider in Rust.

use std::path::{Path, PathBuf};

use authors::new::{License, NewError, NewProject};

use super::{PREFIX, one};
use crate::args::flags::{self, Flags, FromFlags};
use crate::commands::Command;
use crate::outcome::{Failure, Outcome};
use crate::session::Session;

pub const COMMAND: Command = Command {
    path: "provider new",
    about: "Make the project of a new provider",
    positional: "NAME",
    details: "Makes a project in Rust that compiles: a provider with a configuration, a resource, a data source, a function, \
      their tests, an acceptance test, examples, a workflow for CI and a README. Its types begin with NAME. The project depends on the crates of the SDK \
      by their version. They are not published yet: until they are, name a copy of this program's repository by the option -sdk, and the \
      project depends on its directories.",
    declare: flags::declare::<Arguments>,
    refused: &[],
    run: |session, matches| run(session, &flags::read(matches)),
};

struct Arguments {
    dir: Option<String>,
    sdk: Option<String>,
    license: String,
    positional: Vec<String>,
}

impl FromFlags for Arguments {
    fn read(flags: &mut Flags<'_>) -> Arguments {
        Arguments {
            dir: flags.value(
                "dir",
                "DIR",
                "Directory of the project, which must be empty or absent. Without it, terraform-provider-NAME.",
            ),
            sdk: flags.value(
                "sdk",
                "DIR",
                "Copy of this program's repository: the project depends on the SDK there.",
            ),
            license: flags.value_or(
                "license",
                "LICENSE",
                "mpl-2.0",
                "Licence of the project: \"mpl-2.0\", \"mit\" or \"none\".",
            ),
            positional: flags.positional(),
        }
    }
}

fn run(session: &Session, arguments: &Arguments) -> Result<Outcome, Failure> {
    let name = one(&arguments.positional, "the new provider")?;
    let Some(license) = License::parse(&arguments.license) else {
        return Err(Failure::flag(format!(
            "invalid value {:?} for flag -license: mpl-2.0, mit or none is needed",
            arguments.license
        )));
    };
    let sdk = arguments.sdk.as_ref().map(|dir| {
        let dir = Path::new(dir).join("builtin-plugins");
        std::path::absolute(&dir).unwrap_or(dir)
    });
    let dir = arguments.dir.clone().unwrap_or_else(|| format!("{PREFIX}{name}"));
    let dir = PathBuf::from(dir);
    let is_published = sdk.is_some();
    let project = NewProject { name, license, sdk };
    let files = project.write(&dir).map_err(|error| failure(&error))?;
    let command = session.ui.program.command;
    let mut out: String = files
        .iter()
        .map(|path| format!("Wrote {}\n", dir.join(path).display()))
        .collect();
    if !is_published {
        out.push_str(
            "\nThe crates of the SDK are not published yet, so that Cargo does not find them. Name a copy of the repository by -sdk, or change \
             the dependencies in Cargo.toml.\n",
        );
    }
    out.push_str(&format!(
        "\nNext, in {}: \"cargo test\", \"cargo build\", and \"{command} provider check target/debug/{PREFIX}{name}\". \
         \"{command} help provider\" has more.\n",
        dir.display()
    ));
    Ok(Outcome::text(out))
}

fn failure(error: &NewError) -> Failure {
    let summary = match error {
        NewError::Name(_) => "Invalid name of a provider",
        NewError::NotEmpty(_) => "Directory is not empty",
        NewError::NoSdk(_) => "No SDK found",
        NewError::Write { .. } => "Failed to write project",
    };
    let text = error.to_string();
    let mut characters = text.chars();
    let first = characters
        .next()
        .map(|c| c.to_uppercase().to_string())
        .unwrap_or_default();
    Failure::new(summary, format!("{first}{}.", characters.as_str()))
}
