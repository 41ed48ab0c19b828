//! `get`: the modules of the configuration are installed, and nothing else is done.

use std::path::Path;

use modules::{Event, Install, Mirror};
use syntax::{Diagnostics, SourceMap};

use crate::TERRAFORM_VERSION;
use crate::args::matches::Given;
use crate::args::{UsageError, flags};
use crate::commands::{Command, no_positional};
use crate::session::{Session, Status};
use crate::workdir::Project;

pub const COMMAND: Command = Command {
    path: "get",
    about: "Install or upgrade remote modules",
    positional: "",
    declare: || {
        let command = flags::command(
            "get",
            "Installs the modules that the configuration calls from elsewhere. Those that are installed already stay as they are, \
             unless their source or their version no longer fits.",
        );
        flags::positional(command, "args")
            .arg(flags::switch(
                "update",
                false,
                "Install all of them again, in the newest versions that are allowed.",
            ))
            .arg(mirror_flag())
            .arg(flags::value(
                "test-directory",
                "DIR",
                "Where test files are, \"tests\" by default. None of this release's commands reads them.",
            ))
    },
    refused: &[("json", "Terraform has it for other commands only.")],
    run,
};

fn run(session: &Session, given: &Given) -> Result<Status, UsageError> {
    no_positional(given, "get")?;
    Ok(
        match install(session, given.on("update"), mirror(session, given).as_deref()) {
            Ok((project, problems)) => u8::from(session.show(&problems, &project.sources)),
            Err(status) => status,
        },
    )
}

/// The flag that names a mirror.
pub fn mirror_flag() -> clap::Arg {
    flags::value(
        "mirror",
        "DIR",
        "Install only from this directory, which \"modules mirror\" and \"providers mirror\" have filled. The environment variable \
         MONOFORM_MIRROR does the same.",
    )
}

/// The mirror to install from, if only that one is wanted.
pub fn mirror(session: &Session, given: &Given) -> Option<String> {
    let named = given.value("mirror").or_else(|| session.env.get("MONOFORM_MIRROR"));
    named.filter(|dir| !dir.is_empty()).map(str::to_owned)
}

/// Installs modules, and tells. Gives the whole configuration with its warnings; where that is not to be had, the problems
/// have been shown.
pub fn install(session: &Session, upgrade: bool, mirror: Option<&str>) -> Result<(Project, Diagnostics), Status> {
    let mirror = mirror.map(|dir| Mirror::open(Path::new(dir))).transpose();
    let mirror = mirror.map_err(|why| session.fail("Cannot install from the mirror", why.to_string()))?;
    let install = Install {
        client: session.net(),
        data_dir: session.env.data_dir(),
        upgrade,
        tool_version: TERRAFORM_VERSION,
        mirror,
    };
    let runtime = session.runtime().map_err(|problems| {
        session.show(&problems, &SourceMap::default());
        1
    })?;
    let say = |text: String| match &session.stream {
        Some(stream) => stream.log(text.trim_start_matches("- ")),
        None => session.ui.line(text),
    };
    let mut tell = |event| match event {
        Event::Downloading {
            key,
            package,
            version: Some(version),
        } => say(format!("Downloading {package} {version} for {key}...")),
        Event::Downloading { key, package, .. } => say(format!("Downloading {package} for {key}...")),
        Event::Installed { key, dir } => say(format!("- {key} in {dir}")),
    };
    session.ui.flush();
    let outcome = runtime.block_on(install.run(".", &mut tell));
    let (loaded, mut problems, mut sources) = (outcome.loaded, outcome.problems, outcome.sources);
    // Where installing failed, that is what is wrong with a module that is not there.
    problems.extend(if problems.has_errors() {
        loaded.apart_from_missing()
    } else {
        loaded.diagnostics
    });
    sources.extend(loaded.sources);
    if problems.has_errors() {
        session.show(&problems, &sources);
        return Err(1);
    }
    let project = Project {
        config: loaded.config,
        sources,
    };
    Ok((project, problems))
}
