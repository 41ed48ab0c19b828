//! `get`: installs the modules of the configuration, and nothing else.

use std::path::Path;
use std::sync::Arc;

use config::TestFile;
use config::manifest::Manifest;
use modules::{Event, Install, Mirror};
use syntax::Diagnostics;

use crate::args::flags::{self, Flags, FromFlags};
use crate::args::groups::VariableFlags;
use crate::carried_modules;
use crate::commands::{Command, no_positional};
use crate::loading;
use crate::outcome::{Failure, Outcome};
use crate::session::Session;
use crate::tested;
use crate::workdir::Project;

pub const COMMAND: Command = Command {
    path: "get",
    about: "Install or upgrade remote modules",
    positional: "",
    details: "Installs the remote modules that the configuration calls, and those that test files name. Those that are installed \
      already stay as they are, \
      unless their source or their version no longer fits.",
    declare: flags::declare::<Arguments>,
    refused: &[("json", "Terraform has it for other commands only.")],
    run: |session, matches| run(session, &flags::read(matches)),
};

struct Arguments {
    positional: Vec<String>,
    update: bool,
    mirror: Option<String>,
    test_directory: Option<String>,
}

impl FromFlags for Arguments {
    fn read(flags: &mut Flags<'_>) -> Arguments {
        let positional = flags.positional();
        let update = flags.switch(
            "update",
            false,
            "Install all of them again, in the newest versions that are allowed.",
        );
        let mirror = mirror_flag(flags);
        let test_directory = tested::directory_flag(flags);
        flags.json_into();
        VariableFlags::read(flags);
        Arguments {
            positional,
            update,
            mirror,
            test_directory,
        }
    }
}

fn run(session: &Session, arguments: &Arguments) -> Result<Outcome, Failure> {
    no_positional(&arguments.positional, "get")?;
    let tests = tested::read(arguments.test_directory.as_deref())?;
    session.pass(&tests.diagnostics, &tests.sources)?;
    let mirror = mirror(session, arguments.mirror.as_deref());
    let (project, problems) = install(session, arguments.update, mirror.as_deref(), &tests.files)?;
    Ok(Outcome::success().and_problems(problems, &project.sources))
}

/// Reads the flag `-mirror`, which names a mirror directory.
pub fn mirror_flag(flags: &mut Flags<'_>) -> Option<String> {
    flags.value(
        "mirror",
        "DIR",
        "Install only from this directory, which \"modules mirror\" and \"providers mirror\" have filled. The environment variable \
         MONOFORM_MIRROR does the same.",
    )
}

/// Returns the mirror directory that the flag or `MONOFORM_MIRROR` sets. It is then the only source of modules.
pub fn mirror(session: &Session, flag: Option<&str>) -> Option<String> {
    let named = flag.or_else(|| session.env.get("MONOFORM_MIRROR"));
    named.filter(|dir| !dir.is_empty()).map(str::to_owned)
}

/// Installs modules, including those of these test files, and reports each. Returns the whole configuration with its warnings.
///
/// # Errors
/// The configuration or a module of a run cannot be loaded.
pub fn install(
    session: &Session,
    upgrade: bool,
    mirror: Option<&str>,
    tests: &[Arc<TestFile>],
) -> Result<(Project, Diagnostics), Failure> {
    let mirror = mirror.map(|dir| Mirror::open(Path::new(dir))).transpose();
    let mirror = mirror.map_err(|why| Failure::new("Cannot install from the mirror", why.to_string()))?;
    // A mirror is the only source, even for modules that the executable carries.
    let carried = carried_modules::mirror(session).filter(|_| mirror.is_none());
    let (nothing, set) = (Manifest::default(), session.set_variables());
    let install = Install {
        client: session.net(),
        data_dir: session.env.data_dir(),
        upgrade,
        load: loading::options(session, &nothing, &set),
        mirror,
        in_memory: None,
        carried,
        tests,
        // The test files are known here, so modules that neither they nor the configuration call can be dropped.
        forget: true,
        program: session.ui.program,
    };
    let runtime = session.runtime()?;
    let mut emit = |event| match event {
        Event::Downloading {
            key,
            package,
            version,
            carried,
        } => {
            let verb = if carried { "Unpacking" } else { "Downloading" };
            let version = version.map(|version| format!(" {version}")).unwrap_or_default();
            session.message(format!("{verb} {package}{version} for {key}..."));
        }
        Event::Installed { key, dir } => session.message(format!("- {key} in {dir}")),
    };
    // Earlier lines must be visible while packages are downloaded.
    session.ui.flush();
    let outcome = runtime.block_on(install.run(".", &mut emit));
    let (loaded, mut problems, mut sources) = (outcome.loaded, outcome.problems, outcome.sources);
    // If the installation failed, its error explains a missing module better than the loader's.
    problems.extend(if problems.has_errors() {
        loaded.apart_from_missing()
    } else {
        loaded.diagnostics
    });
    sources.extend(loaded.sources);
    if problems.has_errors() {
        return Err(Failure::within(problems, &sources));
    }
    let mut project = Project {
        config: loaded.config,
        sources,
    };
    let root = Arc::new(project.config.clone());
    let tested = tested::modules_of(session, &root, tests.to_vec(), tested::Purpose::Reading);
    if tested.problems.has_errors() {
        return Err(Failure::within(tested.problems, &tested.sources));
    }
    problems.extend(tested.problems);
    project.sources.extend(tested.sources);
    Ok((project, problems))
}
