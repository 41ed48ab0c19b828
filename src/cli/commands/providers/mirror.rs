//! `providers mirror`: copies packages into a directory from which other machines install them.

use std::collections::BTreeMap;
use std::path::Path;

use addrs::Provider;
use addrs::platform::Platform;
use addrs::program::Program;
use packages::cross_platform::{Request, Step};
use packages::local_mirror;
use packages::lock_file::LockFile;
use packages::sources::PackageSource;
use syntax::{Diagnostic, Diagnostics};
use versions::Constraints;

use super::{asked, configured, fetching, requested_platforms, required};
use crate::args::flags::{self, Flags, FromFlags};
use crate::args::groups::{VariableFlags, platforms};
use crate::commands::Command;
use crate::downloads;
use crate::outcome::{Failure, Outcome};
use crate::plugin_source::origins;
use crate::session::Session;

pub const COMMAND: Command = Command {
    path: "providers mirror",
    about: "Save local copies of all required provider plugins",
    positional: "DIR",
    details: "Puts the packages of the providers that the configuration needs into a directory, which can then be a filesystem \
      mirror, or be served as a network mirror. Providers that are installed in a plugin directory of the user, such as \
      ~/.terraform.d/plugins, come from there, as with init. Providers that are built in are among them, for programs that do not have them; where \
      their registry cannot be reached, the command warns and leaves them out. \
      \"modules mirror\" does the same for modules, and \"init -mirror=DIR\" installs from both.",
    declare: flags::declare::<Arguments>,
    refused: &[],
    run: |session, matches| run(session, &flags::read(matches)),
};

struct Arguments {
    positional: Vec<String>,
    platforms: Vec<String>,
    lock_file: bool,
}

impl FromFlags for Arguments {
    fn read(flags: &mut Flags<'_>) -> Arguments {
        flags.json_into();
        VariableFlags::read(flags);
        Arguments {
            positional: flags.positional(),
            platforms: platforms(flags),
            lock_file: flags.switch(
                "lock-file",
                true,
                "Get the newest versions that are allowed, whatever the dependency lock file says.",
            ),
        }
    }
}

fn run(session: &Session, arguments: &Arguments) -> Result<Outcome, Failure> {
    let args = &arguments.positional;
    let [dir] = args.as_slice() else {
        return Err(Failure::new(
            "No output directory specified",
            "Name the directory that packages are put into. It is the only argument.",
        ));
    };
    let platforms = requested_platforms(&arguments.platforms)?;
    let project = configured(session)?;
    if let Err(e) = std::fs::create_dir_all(dir) {
        return Err(Failure::new(
            "Cannot use the output directory",
            format!("The directory {dir} cannot be made: {}.", files::io_reason(&e)),
        ));
    }
    let prepared = required(&project, None)
        .and_then(|required| asked(session, required, &[]))
        .and_then(|asked| {
            let lock = match arguments.lock_file {
                true => LockFile::load(&session.working_dir)?.0,
                false => LockFile::default(),
            };
            consistent(&lock, &asked.wanted, session.ui.program.command)?;
            Ok((asked, lock))
        });
    let (asked, lock) = prepared?;
    let catalog = session.catalog()?;
    let (installed, wanted): (BTreeMap<_, _>, BTreeMap<_, _>) = asked
        .wanted
        .into_iter()
        .partition(|(provider, _)| catalog.is_in_plugin_directory(provider, &platforms));
    // Other programs install from the mirror, too, so it contains all providers that have packages, even those that are
    // built in here.
    let (no_packages, built_in): (BTreeMap<_, _>, BTreeMap<_, _>) = asked
        .built_in
        .into_iter()
        .partition(|(provider, _)| provider.is_builtin());
    no_packages.keys().for_each(|provider| skipped(session, provider));
    let client = session.net();
    let origins = origins(&project.config, &state::State::default());
    let request = |requirements, platforms| Request {
        client: &client,
        requirements,
        origins: &origins,
        platforms,
        source: PackageSource::Direct,
        cache: None,
    };
    let left_out = fetching(session, async || {
        let mut emit = |step: Step<'_>| emit(session, &step);
        let dir = Path::new(dir);
        let of_plugin_directories = Installed {
            catalog: &catalog,
            client: &client,
            lock: &lock,
            origins: &origins,
            platforms: &platforms,
        };
        for (provider, constraints) in &installed {
            of_plugin_directories
                .mirror(provider, constraints, dir, &mut emit)
                .await?;
        }
        let wanted = request(&wanted, &platforms[..]);
        let unreachable = wanted.mirror(dir, &lock, &mut emit).await?;
        if !unreachable.is_empty() {
            return Err(unreachable.into_values().collect());
        }
        // The built-in providers are selected separately, since the lock file need not contain them, and
        // failures need another explanation.
        let nothing = LockFile::default();
        let mirrored = request(&built_in, &platforms[..])
            .mirror(dir, &nothing, &mut emit)
            .await;
        mirrored.map_err(|problems| about_built_in(problems, session.ui.program.tool))
    })?;
    let problems: Diagnostics = not_mirrored(&left_out, session.ui.program).into_iter().collect();
    Ok(Outcome::success().and_problems(problems, &project.sources))
}

fn skipped(session: &Session, provider: &Provider) {
    session.message(format!(
        "- Skipping {} because it is built in to {}",
        provider.for_display(),
        session.ui.program.tool
    ));
}

/// Context for mirroring providers that are installed in plugin directories of the user.
struct Installed<'a> {
    catalog: &'a packages::Catalog,
    client: &'a net::Client,
    lock: &'a LockFile,
    origins: &'a packages::selection::Origins,
    platforms: &'a [Platform],
}

impl Installed<'_> {
    /// Writes the packages of one provider into the mirror, as archives.
    async fn mirror(
        &self,
        provider: &Provider,
        constraints: &Constraints,
        to: &Path,
        emit: &mut dyn FnMut(Step<'_>),
    ) -> Result<(), Diagnostics> {
        let failed = |why: String| Diagnostics::from(Diagnostic::error("Could not retrieve providers", why));
        let staging = tempfile::tempdir();
        let staging = staging.map_err(|e| failed(format!("No temporary directory: {}.", files::io_reason(&e))))?;
        let requirements = BTreeMap::from([(provider.clone(), constraints.clone())]);
        let request = packages::gather::Request {
            client: self.client,
            requirements: &requirements,
            lock: self.lock,
            origins: self.origins,
            platforms: self.platforms,
            staging: staging.path(),
        };
        let found = self.catalog.gather(&request, &mut |_| {}).await?;
        let Some(version) = found.first().map(|package| package.version.clone()) else {
            return Ok(());
        };
        let locked = self.lock.providers.get(provider);
        let from_lock = locked.is_some_and(|locked| locked.version == version);
        emit(Step::Selected(provider, &version, constraints, from_lock));
        for package in &found {
            emit(Step::Packing(&package.platform, &package.path));
        }
        let to = to.to_owned();
        let environment = self.client.settings().environment.clone();
        let written = tokio::task::spawn_blocking(move || local_mirror::write(&to, &found, &environment)).await;
        let written = written.map_err(|_| failed("The work was interrupted.".to_owned()))?;
        written.map_err(Diagnostics::from)
    }
}

/// Returns a warning about the built-in providers that the mirror does not have. This is no error: for this program the mirror is
/// complete, and it must be possible to make it without a network.
fn not_mirrored(left_out: &BTreeMap<Provider, Diagnostic>, program: Program) -> Option<Diagnostic> {
    // The reasons of the built-in providers are the same; only the requirement origins below the first line differ.
    let reason = left_out.values().next()?.detail.lines().next()?.to_owned();
    let names: Vec<String> = left_out
        .keys()
        .map(|provider| format!("  - {}", provider.for_display()))
        .collect();
    let (tool, command) = (program.tool, program.command);
    Some(Diagnostic::warning(
        "Built-in providers are not in the mirror",
        format!(
            "These providers are built in to {tool}, which needs no packages of them, and their registry cannot be \
             reached:\n{}\n\n{reason}\n\nWhere other programs install from the mirror, run this command again with a connection to the \
             registry. Without one, \"{command} internal-plugin link DIR\" makes a directory with these providers, in the layout of a \
             mirror, for other programs on this machine.",
            names.join("\n")
        ),
    ))
}

/// Adds a hint to failures: packages of built-in providers are requested here as well.
fn about_built_in(mut problems: Diagnostics, tool: &str) -> Diagnostics {
    for problem in &mut problems.0 {
        problem.detail.push_str(&format!(
            "\n\n{tool} has these providers built in and needs no packages of them, but others that install from the mirror do. What the \
             lock file selects is in the mirror already."
        ));
    }
    problems
}

/// Checks the lock file against the requirements of the configuration. Otherwise the mirror would get versions that no `init` has
/// selected. An empty lock file constrains nothing.
fn consistent(lock: &LockFile, wanted: &BTreeMap<Provider, Constraints>, command: &str) -> Result<(), Diagnostic> {
    if lock.providers.is_empty() {
        return Ok(());
    }
    let problems: Vec<String> = wanted
        .iter()
        .filter_map(|(provider, constraints)| match lock.providers.get(provider) {
            None => Some(format!(
                "  - {provider}: required by the configuration, and no version is locked"
            )),
            Some(locked) if !constraints.allows(&locked.version) => Some(format!(
                "  - {provider}: version {} is locked, and the configuration requires \"{constraints}\"",
                locked.version
            )),
            Some(_) => None,
        })
        .collect();
    if problems.is_empty() {
        return Ok(());
    }
    Err(Diagnostic::error(
        "Inconsistent dependency lock file",
        format!(
            "The dependency lock file {} does not go with the configuration:\n{}\n\nTo select versions again, run \"{} init \
             -upgrade\"; to mirror the newest versions that the configuration allows, whatever is locked, use -lock-file=false.",
            packages::lock_file::FILE_NAME,
            problems.join("\n"),
            command
        ),
    ))
}

fn emit(session: &Session, step: &Step<'_>) {
    session.message(match step {
        Step::Downloading(overall) => return downloads::show(session, overall),
        Step::Selected(provider, version, constraints, from_lock) => {
            let why = match (from_lock, constraints.is_any()) {
                (true, _) => "to match dependency lock file".to_owned(),
                (false, true) => "with no constraints".to_owned(),
                (false, false) => format!("to meet constraints {constraints}"),
            };
            format!(
                "- Mirroring {}...\n  - Selected v{version} {why}",
                provider.for_display()
            )
        }
        Step::Fetching(_, _, platform) => format!("  - Downloading package for {platform}..."),
        Step::Retrieved(_, _, _, authentication) => format!("  - Package authenticated: {authentication}"),
        Step::Packing(platform, path) => format!("  - Packing {} for {platform}...", path.display()),
        Step::Compared(..) => return,
    });
}
