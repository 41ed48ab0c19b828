//! `provider docs`: pages of a provider in the layout that registries read.

use std::path::Path;

use authors::docs::{Differences, DocsError, Project, compare, pages, write};

use super::{Executable, one};
use crate::args::flags::{self, Flags, FromFlags};
use crate::commands::Command;
use crate::outcome::{Failure, Outcome};
use crate::session::Session;

pub const COMMAND: Command = Command {
    path: "provider docs",
    about: "Write the pages of a provider that registries show",
    positional: "DIR|EXECUTABLE",
    details: "Writes the directory docs of a provider's project, in the layout that registries read: a page about the provider \
      and one about each resource, data source, function, ephemeral resource, list resource and action. Descriptions come from \
      the schemas of the executable, which is started for that and can be written in any language. Examples come from \
      the directory examples (examples/provider/provider.tf, examples/resources/TYPE/resource.tf and import.sh, and so on), and \
      guides and pages of another form from templates (templates/index.md, templates/resources.md, templates/resources/NAME.md, \
      templates/guides/NAME.md). With a directory, the project is there, and its newest executable is used; with an executable, \
      the project is the working directory. Generated pages of types that are gone are removed.",
    declare: flags::declare::<Arguments>,
    refused: &[],
    run: |session, matches| run(session, &flags::read(matches)),
};

struct Arguments {
    check: bool,
    name: Option<String>,
    positional: Vec<String>,
}

impl FromFlags for Arguments {
    fn read(flags: &mut Flags<'_>) -> Arguments {
        Arguments {
            check: flags.switch(
                "check",
                false,
                "Write nothing; list the pages that differ from what would be written, with status 1 if there are some.",
            ),
            name: flags.value(
                "name",
                "NAME",
                "Name of the provider, if that of its executable is not terraform-provider-NAME.",
            ),
            positional: flags.positional(),
        }
    }
}

fn run(session: &Session, arguments: &Arguments) -> Result<Outcome, Failure> {
    let target = Path::new(one(
        &arguments.positional,
        "the directory of the provider's project, or its executable",
    )?);
    let name = arguments.name.as_deref();
    let (root, executable) = match target.is_dir() {
        true => (target.to_owned(), Executable::in_directory(target, name)?),
        false => (Path::new(".").to_owned(), Executable::at(target, name)?),
    };
    let schema = executable.schema(session)?;
    let project = Project {
        root,
        name: executable.name,
    };
    let pages = pages(&project, &schema).map_err(|error| failure(&error))?;
    if !arguments.check {
        let written = write(&project, &pages).map_err(|error| failure(&error))?;
        return Ok(Outcome::text(report(&written, pages.len())));
    }
    let found = compare(&project, &pages).map_err(|error| failure(&error))?;
    if found.is_empty() {
        return Ok(Outcome::line(format!("All {} pages are up to date.", pages.len())));
    }
    let command = session.ui.program.command;
    Err(Failure::new(
        "Pages are not up to date",
        format!(
            "These pages in {} differ from the provider:\n{}\n\nTo write them, run: {command} provider docs {}",
            project.root.join("docs").display(),
            listed(&found),
            target.display()
        ),
    ))
}

fn failure(error: &DocsError) -> Failure {
    let summary = match error {
        DocsError::Read { .. } => "Failed to read project",
        DocsError::Write { .. } => "Failed to write pages",
        DocsError::Template { .. } => "Invalid template",
    };
    Failure::new(summary, format!("{error}."))
}

fn listed(found: &Differences) -> String {
    let kinds = [
        (&found.missing, "is missing"),
        (&found.changed, "is out of date"),
        (&found.left_over, "is about something that the provider does not have"),
    ];
    let lines = kinds
        .into_iter()
        .flat_map(|(paths, what)| paths.iter().map(move |path| format!("  - {path} {what}")));
    lines.collect::<Vec<_>>().join("\n")
}

fn report(written: &Differences, all: usize) -> String {
    let mut out = String::new();
    for (paths, what) in [
        (&written.missing, "Wrote"),
        (&written.changed, "Updated"),
        (&written.left_over, "Removed"),
    ] {
        for path in paths {
            out.push_str(&format!("{what} {path}\n"));
        }
    }
    let changed = written.missing.len() + written.changed.len();
    out.push_str(&format!("{all} pages, {changed} of them written.\n"));
    out
}
