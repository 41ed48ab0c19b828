//! `unpack`: writes the contents of a pack to a directory.

use std::path::{Path, PathBuf};

use pack::{Pack, PackError};

use super::{cli_config, failed, write_out};
use crate::args::flags::{self, Flags, FromFlags};
use crate::commands::Command;
use crate::outcome::{Failure, Outcome};
use crate::session::Session;

pub const COMMAND: Command = Command {
    path: "unpack",
    about: "Put what a pack carries into a directory",
    positional: "DIR",
    details: "Puts the packages of providers and modules that a pack carries into a directory, in the layout of a filesystem mirror. \
      Packages that are there already stay as they are. With -config, it writes a configuration that the pack carries into the \
      directory instead; with -cli-config, it writes the CLI configuration into a file, and there is no DIR.",
    declare: flags::declare::<Arguments>,
    refused: &[],
    run: |session, matches| run(session, &flags::read(matches)),
};

const SUMMARY: &str = "Cannot unpack";

struct Arguments {
    positional: Vec<String>,
    from: Option<String>,
    config: Option<String>,
    cli_config: Option<String>,
    replace: bool,
}

impl FromFlags for Arguments {
    fn read(flags: &mut Flags<'_>) -> Arguments {
        Arguments {
            positional: flags.positional(),
            from: flags.value("from", "PACK", "Unpack this pack instead of this executable."),
            config: flags.value(
                "config",
                "NAME",
                "Write the configuration of this name, which \"pack -list\" shows, into the directory.",
            ),
            cli_config: flags.value(
                "cli-config",
                "FILE",
                "Write the CLI configuration into this file, which only its owner can read.",
            ),
            replace: flags.switch(
                "replace",
                false,
                "With -config or -cli-config: replace files that are there and differ. Others stay as they are.",
            ),
        }
    }
}

fn run(session: &Session, arguments: &Arguments) -> Result<Outcome, Failure> {
    if arguments.replace && arguments.config.is_none() && arguments.cli_config.is_none() {
        return Err(Failure::flag("-replace needs -config or -cli-config"));
    }
    let path = arguments
        .from
        .as_ref()
        .map_or_else(|| session.builtins.executable.clone(), PathBuf::from);
    if let Some(file) = &arguments.cli_config {
        return match (&arguments.config, arguments.positional.as_slice()) {
            (Some(_), _) => Err(Failure::flag(
                "only one of -config and -cli-config can be used at a time",
            )),
            (None, [_, ..]) => Err(Failure::usage(
                "Too many command line arguments",
                "The option -cli-config names the only file that is written. Leave the directory out.",
            )),
            (None, []) => {
                let pack = super::open(session, &path).map_err(|error| failed(SUMMARY, &error))?;
                cli_config::write(session, &pack, Path::new(file), arguments.replace)
            }
        };
    }
    let [dir] = arguments.positional.as_slice() else {
        return Err(Failure::usage(
            "No output directory specified",
            "Name the directory that packages are put into. It is the only argument.",
        ));
    };
    let dir = Path::new(dir);
    if let Some(name) = &arguments.config {
        let pack = super::open(session, &path).map_err(|error| failed(SUMMARY, &error))?;
        return write_out::write(session, &pack, name, dir, arguments.replace);
    }
    let unpacked = super::open(session, &path).and_then(|pack| unpack(session, &pack, dir).map(|()| pack));
    let pack = unpacked.map_err(|error| failed(SUMMARY, &error))?;
    if pack.index().modules.is_empty() {
        return Ok(Outcome::success());
    }
    let added = modules::mirror::unpack(dir, &pack).map_err(|error| Failure::new(SUMMARY, error.to_string()))?;
    let lines = added
        .iter()
        .map(|address| format!("- {}\n", modules::mirror::for_display(address)));
    Ok(Outcome::text(lines.collect::<String>()))
}

fn unpack(session: &Session, pack: &Pack, dir: &Path) -> Result<(), PackError> {
    // The limits are checked before the first file is written: a small pack can name more than the disk holds.
    pack.check_all_limits()?;
    for provider in &pack.index().providers {
        let package = dir
            .join(provider.address.to_string())
            .join(provider.version.to_string())
            .join(provider.platform.to_string());
        let failed = |source: std::io::Error| PackError::Write {
            path: package.clone(),
            source,
        };
        let name = format!(
            "{} v{} for {}",
            provider.address.for_display(),
            provider.version,
            provider.platform
        );
        if package.exists() {
            session.ui.line(format!("- {name} is there already"));
            continue;
        }
        // A package must be complete or absent, so it is renamed when it is complete.
        let parent = package.parent().unwrap_or(dir);
        std::fs::create_dir_all(parent).map_err(failed)?;
        let staging = tempfile::Builder::new()
            .prefix(".staging-")
            .tempdir_in(parent)
            .map_err(failed)?;
        let new = staging.path().join("package");
        std::fs::create_dir(&new).map_err(failed)?;
        pack.unpack(&provider.files, &new)?;
        system::rename(&new, &package).map_err(failed)?;
        session.ui.line(format!("- {name}"));
    }
    Ok(())
}
