//! Modules in packs: those that configurations call, and those that the command line names.

use std::path::{Path, PathBuf};

use config::source_address::ModuleSource;
use serde_json::json;
use syntax::{Diagnostics, SourceMap};
use versions::Constraints;

use super::failed;
use super::gathered::{Gathered, Gathering};
use crate::commands::modules::fetch;
use crate::outcome::Failure;
use crate::session::Session;
use crate::tested;
use crate::workdir::{self, Project};

const SUMMARY: &str = "Cannot pack the modules";

/// Fetches the modules of the configuration in the working directory, and those of its test files. Returns the configuration with
/// them.
pub(super) fn of_configuration(
    session: &Session,
    gathering: &Gathering<'_>,
    out: &mut Gathered,
) -> Result<Project, Failure> {
    if !workdir::has_configuration() {
        let detail = format!(
            "The directory {} contains no Terraform configuration files.",
            session.working_dir.display()
        );
        return Err(Failure::new("No configuration files", detail));
    }
    let tests = tested::read(None)?;
    session.pass(&tests.diagnostics, &tests.sources)?;
    let data_dir = data_dir(gathering.staging)?;
    // The installed modules are the tested ones, so they are packed instead of newer ones.
    modules::mirror::adopt(session.env.data_dir(), &data_dir).map_err(|error| {
        let reason = files::io_reason(&error);
        Failure::new(SUMMARY, format!("The installed modules cannot be copied: {reason}."))
    })?;
    let outcome = fetch(session, &data_dir.to_string_lossy(), &tests.files)?;
    let (mut problems, mut sources) = (outcome.problems.clone(), outcome.sources.clone());
    problems.extend(outcome.loaded.apart_from_missing());
    sources.extend(outcome.loaded.sources.clone());
    session.pass(&problems, &sources)?;
    add(session, &data_dir, &outcome, out)?;
    Ok(Project {
        config: outcome.loaded.config,
        sources,
    })
}

/// Creates a directory with a configuration that calls the modules named on the command line, as `SOURCE` or `SOURCE@CONSTRAINT`.
pub(super) fn calling(texts: &[String], staging: &Path) -> Result<PathBuf, Failure> {
    let mut calls = serde_json::Map::new();
    for (at, text) in texts.iter().enumerate() {
        let (source, version) = named_source(text).map_err(|why| {
            let why = why.to_string();
            let detail = format!(
                "The option -module has the value \"{text}\": {}.",
                why.trim_end_matches('.')
            );
            Failure::new("Invalid module argument", detail)
        })?;
        let call = match version {
            Some(version) => json!({"source": source, "version": version}),
            None => json!({"source": source}),
        };
        calls.insert(format!("named_{}", at + 1), call);
    }
    // The named modules are installed like the modules of any configuration, so that one code path serves both.
    let dir = staging.join("named");
    let text = json!({"module": calls}).to_string();
    let written = std::fs::create_dir(&dir).and_then(|()| std::fs::write(dir.join("main.tf.json"), text));
    written.map_err(|error| {
        let reason = files::io_reason(&error);
        Failure::new(SUMMARY, format!("{} cannot be written: {reason}.", dir.display()))
    })?;
    Ok(dir)
}

/// Reason why an argument names no module for a pack.
#[derive(Debug, PartialEq, thiserror::Error)]
enum SourceError {
    #[error(transparent)]
    Address(#[from] config::source_address::SourceAddressError),
    #[error(transparent)]
    Constraint(#[from] versions::VersionError),
    #[error("a module in a directory is part of the configuration that calls it")]
    Directory,
}

/// Splits an argument into source and version constraint. Only registry addresses have a constraint; others may contain an @
/// themselves.
fn named_source(text: &str) -> Result<(&str, Option<&str>), SourceError> {
    if let Some((source, constraint)) = text.rsplit_once('@')
        && let Ok(ModuleSource::Registry(_)) = ModuleSource::parse(source, false)
    {
        if constraint.is_empty() {
            return Ok((source, None));
        }
        Constraints::parse(constraint)?;
        return Ok((source, Some(constraint)));
    }
    match ModuleSource::parse(text, false)? {
        ModuleSource::Local(_) => Err(SourceError::Directory),
        ModuleSource::Registry(_) | ModuleSource::Remote(_) => Ok((text, None)),
    }
}

/// Fetches the named modules, in the directory that calls them.
pub(super) fn named(session: &Session, gathering: &Gathering<'_>, out: &mut Gathered) -> Result<(), Failure> {
    let data_dir = data_dir(gathering.staging)?;
    let outcome = fetch(session, &data_dir.to_string_lossy(), &[])?;
    // The user does not know the generated file that calls the modules, so source ranges are removed. Missing arguments of the calls do not
    // matter.
    let problems: Diagnostics = (outcome.problems.iter().cloned())
        .map(|mut problem| {
            problem.subject = None;
            problem
        })
        .collect();
    session.pass(&problems, &SourceMap::default())?;
    add(session, &data_dir, &outcome, out)
}

fn data_dir(staging: &Path) -> Result<PathBuf, Failure> {
    let made = tempfile::Builder::new().prefix("modules-").tempdir_in(staging);
    // The directory is kept until the caller removes the staging directory, which contains it.
    made.map(tempfile::TempDir::keep).map_err(|error| {
        let reason = files::io_reason(&error);
        Failure::new(SUMMARY, format!("{} cannot be written: {reason}.", staging.display()))
    })
}

fn add(session: &Session, data_dir: &Path, outcome: &::modules::Outcome, out: &mut Gathered) -> Result<(), Failure> {
    let mut leave = |address: &str, link: &str| {
        let address = modules::mirror::for_display(address);
        session.ui.line(format!(
            "- Leaving out the link {link} of {address}: it leads out of the package"
        ));
    };
    let contents = modules::mirror::contents(data_dir, &outcome.manifest, &mut leave);
    out.modules.extend(contents.map_err(|error| failed(SUMMARY, &error))?);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_modules_of_registries_have_constraints() {
        assert_eq!(
            named_source("acme/net/aws@~> 1.2"),
            Ok(("acme/net/aws", Some("~> 1.2")))
        );
        assert_eq!(
            named_source("acme/net/aws//sub@1.0"),
            Ok(("acme/net/aws//sub", Some("1.0")))
        );
        assert_eq!(named_source("acme/net/aws@"), Ok(("acme/net/aws", None)));
        let git = "git::ssh://git@example.com/a.git?ref=v1";
        assert_eq!(named_source(git), Ok((git, None)));
        for bad in ["./here", "acme/net/aws@what", ""] {
            assert!(named_source(bad).is_err(), "{bad}");
        }
    }
}
