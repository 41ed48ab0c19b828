//! `modules mirror`: copies the modules of the configuration into a directory from which other machines install them.

use std::path::Path;
use std::sync::Arc;

use config::TestFile;
use config::manifest::Manifest;
use modules::{Event, Install};
use syntax::Diagnostics;

use crate::args::flags::{self, Flags, FromFlags};
use crate::args::groups::VariableFlags;
use crate::commands::Command;
use crate::loading;
use crate::outcome::{Failure, Outcome};
use crate::session::Session;
use crate::tested;

pub const COMMAND: Command = Command {
    path: "modules mirror",
    about: "Save local copies of all remote modules",
    positional: "DIR",
    details: "Fetches every remote module that the configuration calls, or a test file names, and puts it into a directory. \
      Where nothing can be \
      fetched, \"init -mirror=DIR\" installs from there. Of a registry module it takes the newest version that is allowed; \
      an earlier one that is in the directory already stays. \"providers mirror\" does the same for providers, and the \
      directory can be the same.",
    declare: flags::declare::<Arguments>,
    refused: &[],
    run: |session, matches| run(session, &flags::read(matches)),
};

struct Arguments {
    positional: Vec<String>,
    test_directory: Option<String>,
}

impl FromFlags for Arguments {
    fn read(flags: &mut Flags<'_>) -> Arguments {
        VariableFlags::read(flags);
        Arguments {
            positional: flags.positional(),
            test_directory: tested::directory_flag(flags),
        }
    }
}

fn run(session: &Session, arguments: &Arguments) -> Result<Outcome, Failure> {
    let args = &arguments.positional;
    let [dir] = args.as_slice() else {
        return Err(Failure::usage(
            "No output directory specified",
            "Name the directory that packages are put into. It is the only argument.",
        ));
    };
    let to = Path::new(dir);
    if let Err(e) = std::fs::create_dir_all(to) {
        return Err(Failure::new(
            "Cannot use the output directory",
            format!("The directory {dir} cannot be made: {}.", files::io_reason(&e)),
        ));
    }
    // Modules that are installed in this working directory are ignored: the mirror has fresh copies of everything.
    let made =
        system::files::canonicalize(to).and_then(|to| tempfile::Builder::new().prefix(".staging-").tempdir_in(to));
    let scratch = match made {
        Ok(scratch) => scratch,
        Err(e) => {
            return Err(Failure::new(
                "Cannot use the output directory",
                format!("{dir} cannot be written: {}.", files::io_reason(&e)),
            ));
        }
    };
    let data_dir = scratch.path().to_string_lossy();
    let tests = tested::read(arguments.test_directory.as_deref())?;
    session.pass(&tests.diagnostics, &tests.sources)?;
    let outcome = fetch(session, &data_dir, &tests.files)?;
    let mut problems: Diagnostics = outcome.problems;
    problems.extend(outcome.loaded.apart_from_missing());
    let mut sources = outcome.sources;
    sources.extend(outcome.loaded.sources);
    session.pass(&problems, &sources)?;
    let manifest: Manifest = outcome.manifest;
    let added = modules::mirror::fill(to, scratch.path(), &manifest)
        .map_err(|why| Failure::new("Cannot write the mirror", why.to_string()))?;
    if added.is_empty() {
        return Ok(Outcome::line(
            "There are no remote modules, so there is nothing to mirror.",
        ));
    }
    Ok(Outcome::line(session.ui.style().good(format!(
        "\n{} {} in {dir}.",
        added.len(),
        if added.len() == 1 { "package is" } else { "packages are" }
    ))))
}

/// Fetches the non-local modules of the configuration in the working directory and of its test files into a data directory. Diagnostics are
/// in the outcome.
pub(in crate::commands) fn fetch(
    session: &Session,
    data_dir: &str,
    tests: &[Arc<TestFile>],
) -> Result<modules::Outcome, Failure> {
    let (nothing, set) = (Manifest::default(), session.set_variables());
    let install = Install {
        client: session.net(),
        data_dir,
        upgrade: false,
        load: loading::options(session, &nothing, &set),
        mirror: None,
        // Modules in this executable may be out of date, so they are not used.
        in_memory: None,
        carried: None,
        tests,
        forget: true,
        program: session.ui.program,
    };
    let mut emit = |event| match event {
        Event::Downloading {
            key, package, version, ..
        } => {
            let version = version.map(|v| format!(" {v}")).unwrap_or_default();
            session.ui.line(format!("- Fetching {package}{version} for {key}..."));
        }
        Event::Installed { .. } => {}
    };
    Ok(session.runtime()?.block_on(install.run(".", &mut emit)))
}
