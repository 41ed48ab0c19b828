//! Building packs and differences.

use std::collections::BTreeMap;
use std::io::{Seek as _, Write as _};
use std::path::{Path, PathBuf};

use addrs::Provider;
use addrs::platform::Platform;
use files::{Output, Policy};
use pack::signature::SigningKey;
use pack::write::{Contents, Entry, LEVELS, Options, ProviderContents, Source};
use pack::{Conditions, Executable, Pack, PackError, difference};
use packages::cross_platform::Step;
use packages::gather::{Request, UnpackedPackage};
use packages::install::Origins;
use packages::lock_file::LockFile;
use syntax::Diagnostic;
use versions::Constraints;

use super::gathered::{Gathered, Gathering};
use super::{Arguments, configuration, failed, modules};
use crate::commands::providers::{asked, configured, fetching, requested_platforms, required};
use crate::downloads;
use crate::outcome::{Failure, Outcome};
use crate::plugin_source::origins;
use crate::process;
use crate::session::{Invocation, Session, Surroundings};
use crate::workdir::Project;

const SUMMARY: &str = "Cannot make the pack";

/// A new pack has mode 0777 before the umask, like any compiled program.
const EXECUTABLE: Policy = Policy {
    mode: 0o777,
    keep_mode: false,
    durable: true,
};

pub(super) fn run(session: &Session, arguments: &Arguments, out: &Path) -> Result<Outcome, Failure> {
    let level = arguments.compress.parse().ok().filter(|level| LEVELS.contains(level));
    let Some(level) = level else {
        return Err(Failure::flag(format!(
            "invalid value \"{}\" for flag -compress: it must be a whole number from {} to {}",
            arguments.compress,
            LEVELS.start(),
            LEVELS.end()
        )));
    };
    // Paths are made absolute, because the working directory changes while configurations are read.
    let absolute = |path: &Path| std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    let out = absolute(out);
    let conditions = session.pack_conditions();
    let opened = || -> Result<_, PackError> {
        let key = arguments.sign.as_deref().map(|file| SigningKey::read(Path::new(file)));
        let executable = match &arguments.executable {
            Some(file) => Executable::open(&absolute(Path::new(file)), false, &conditions)?,
            None => Executable::open(&session.builtins.executable, true, &conditions)?,
        };
        let from = (arguments.from.iter()).map(|file| Pack::open(&absolute(Path::new(file)), &conditions));
        let since = arguments
            .since
            .as_deref()
            .map(|file| Pack::open(&absolute(Path::new(file)), &conditions));
        Ok((
            key.transpose()?,
            executable,
            from.collect::<Result<Vec<Pack>, _>>()?,
            since.transpose()?,
        ))
    };
    let (key, executable, from, since) = match opened() {
        Ok(opened) => opened,
        Err(error) => return Err(failed(SUMMARY, &error)),
    };
    let cli_config = arguments.cli_config.as_deref().map(|file| absolute(Path::new(file)));
    if let Some(file) = &cli_config
        && let Some(why) = not_to_be_carried(file)
    {
        return Err(Failure::new(
            SUMMARY,
            format!("The CLI configuration {} cannot be carried: {why}.", file.display()),
        ));
    }
    // The executable may be for another platform than this one.
    let platforms = match arguments.platforms.is_empty() {
        true => vec![executable.platform.clone()],
        false => requested_platforms(&arguments.platforms)?,
    };
    let staging = tempfile::Builder::new().prefix("monoform-pack-").tempdir();
    let staging = staging.map_err(|error| {
        let reason = files::io_reason(&error);
        let detail = format!("A temporary directory for packages cannot be created: {reason}.");
        Failure::new(SUMMARY, detail)
    })?;
    let gathered = gathered(session, arguments, &platforms, staging.path())?;
    let contents = match contents(&from, gathered, cli_config) {
        Ok(contents) => contents,
        Err(error) => return Err(failed(SUMMARY, &error)),
    };
    let options = Options {
        level,
        signing: key.as_ref(),
    };
    let written = match since {
        None => write_pack(&out, &executable, contents, &options),
        Some(since) => {
            let made = Made {
                executable: &executable,
                contents,
                options: &options,
            };
            write_difference(&out, staging.path(), &since, made, conditions)
        }
    };
    match written {
        Ok((size, index)) => Ok(made(session, &out, size, &index)),
        Err(error) => Err(failed(SUMMARY, &error)),
    }
}

/// Returns the outcome of writing a pack.
fn made(session: &Session, out: &Path, size: u64, index: &pack::index::Index) -> Outcome {
    let plural = |count: usize, noun: &str| format!("{count} {noun}{}", if count == 1 { "" } else { "s" });
    let mut what = plural(index.providers.len() + index.modules.len(), "package");
    if !index.configurations.is_empty() {
        what.push_str(&format!(" and {}", plural(index.configurations.len(), "configuration")));
    }
    Outcome::line(session.ui.style().good(format!(
        "\n{} carries {what}: {}.",
        out.display(),
        super::show::bytes(size)
    )))
}

/// Returns the reason why a CLI configuration file must not be put into a pack, as a clause; `None` if it may be.
fn not_to_be_carried(file: &Path) -> Option<String> {
    match std::fs::read_to_string(file) {
        Ok(text) => packages::cli_config::not_to_be_carried(&text),
        Err(error) => Some(files::io_reason(&error)),
    }
}

/// Collects the packages of the configurations, and of the providers and modules that are named.
fn gathered(
    session: &Session,
    arguments: &Arguments,
    platforms: &[Platform],
    staging: &Path,
) -> Result<Gathered, Failure> {
    let named = named(&arguments.providers)?;
    let mut out = Gathered::default();
    let gathering = Gathering {
        arguments,
        platforms,
        staging,
    };
    let outer = session.working_dir.clone();
    let here = [".".to_owned()];
    let nothing_named =
        arguments.providers.is_empty() && arguments.named_modules.is_empty() && arguments.from.is_empty();
    let dirs: &[String] = match &arguments.configs[..] {
        [] if nothing_named || arguments.modules || arguments.include_config => &here,
        dirs => dirs,
    };
    for dir in dirs {
        in_directory(session, Path::new(dir), |session| {
            let project = of_configuration(session, &gathering, &mut out)?;
            match arguments.include_config {
                true => configuration::add(session, &outer, &project, &mut out),
                false => Ok(()),
            }
        })?;
    }
    if !arguments.named_modules.is_empty() {
        let dir = modules::calling(&arguments.named_modules, staging)?;
        in_directory(session, &dir, |session| modules::named(session, &gathering, &mut out))?;
    }
    // Providers named on the command line belong to no configuration, so no lock file selects them.
    let (no_lock, no_origins) = (LockFile::default(), Origins::new());
    for requirements in &named {
        out.providers.extend(gather(
            session,
            requirements,
            &no_lock,
            &no_origins,
            platforms,
            staging,
        )?);
    }
    Ok(out)
}

/// Parses the values of -provider: `SOURCE` or `SOURCE@CONSTRAINT`. A provider that is named several times, for several versions,
/// is in several of the maps.
fn named(texts: &[String]) -> Result<Vec<BTreeMap<Provider, Constraints>>, Diagnostic> {
    let mut out: Vec<BTreeMap<Provider, Constraints>> = Vec::new();
    for text in texts {
        let invalid = |why: String| {
            let why = why.trim_end_matches('.');
            Diagnostic::error(
                "Invalid provider argument",
                format!("The option -provider has the value \"{text}\": {why}."),
            )
        };
        let (source, constraint) = text.split_once('@').unwrap_or((text, ""));
        let provider = Provider::parse(source).map_err(|error| invalid(error.detail))?;
        if provider.is_builtin() {
            return Err(invalid(
                "it is a part of the language, and no package of it exists".to_owned(),
            ));
        }
        let constraints = match constraint {
            "" => Constraints::any(),
            text => Constraints::parse(text).map_err(|error| invalid(error.to_string()))?,
        };
        match out.iter_mut().find(|map| !map.contains_key(&provider)) {
            Some(map) => {
                map.insert(provider, constraints);
            }
            None => out.push([(provider, constraints)].into()),
        }
    }
    Ok(out)
}

/// Runs `work` in another working directory.
fn in_directory(
    session: &Session,
    dir: &Path,
    work: impl FnOnce(&Session) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let enter = |dir: &Path| {
        process::change_dir(dir)
            .and_then(|()| process::working_dir())
            .map_err(|error| {
                let detail = format!(
                    "The directory {} cannot be entered: {}.",
                    dir.display(),
                    files::io_reason(&error)
                );
                Failure::new(SUMMARY, detail)
            })
    };
    let working_dir = enter(&session.working_dir.join(dir))?;
    let surroundings = Surroundings {
        original_dir: session.original_dir.clone(),
        ..Surroundings::new(
            session.ui.clone(),
            session.env.clone(),
            session.builtins.clone(),
            session.cli_config.clone(),
            working_dir,
        )
    };
    let invocation = Invocation {
        variables: session.invocation.variables.clone(),
        ..Invocation::default()
    };
    let inside = Session::new(surroundings, invocation);
    let result = work(&inside);
    // The working directory is restored even if the work failed, because later relative paths refer to it.
    enter(&session.working_dir)?;
    result
}

/// Collects the packages that the configuration in the working directory needs.
fn of_configuration(session: &Session, gathering: &Gathering<'_>, out: &mut Gathered) -> Result<Project, Failure> {
    let project = match gathering.arguments.modules {
        true => modules::of_configuration(session, gathering, out)?,
        false => configured(session)?,
    };
    let needed = required(&project, None)
        .and_then(|required| asked(session, required, &[]))
        .and_then(|asked| Ok((asked.wanted, LockFile::load(&session.working_dir)?.0)));
    let (wanted, lock) = needed?;
    let origins = origins(&project.config, &state::State::default());
    let Gathering { platforms, staging, .. } = gathering;
    out.providers
        .extend(gather(session, &wanted, &lock, &origins, platforms, staging)?);
    Ok(project)
}

fn gather(
    session: &Session,
    requirements: &BTreeMap<Provider, Constraints>,
    lock: &LockFile,
    origins: &Origins,
    platforms: &[Platform],
    staging: &Path,
) -> Result<Vec<UnpackedPackage>, Failure> {
    let catalog = session.catalog()?;
    let client = session.net();
    let request = Request {
        client: &client,
        requirements,
        lock,
        origins,
        platforms,
        staging,
    };
    let mut emit = |step: Step<'_>| match step {
        Step::Fetching(provider, version, platform) => {
            let name = provider.for_display();
            session
                .ui
                .line(format!("- Packing {name} v{version} for {platform}..."));
        }
        Step::Downloading(overall) => downloads::show(session, &overall),
        Step::Packing(..) | Step::Selected(..) | Step::Retrieved(..) | Step::Compared(..) => {}
    };
    fetching(session, async || catalog.gather(&request, &mut emit).await)
}

/// Combines the contents of the `-from` packs with the collected contents. A collected entry replaces the entry of a pack for the
/// same provider, version and platform, for the same module address, or with the same configuration name.
fn contents<'p>(from: &'p [Pack], gathered: Gathered, cli_config: Option<PathBuf>) -> Result<Contents<'p>, PackError> {
    let mut contents = Contents::default();
    for pack in from {
        let more = Contents::from_pack(pack);
        contents.providers.extend(more.providers);
        contents.modules.extend(more.modules);
        contents.configurations.extend(more.configurations);
        contents.cli_config = more.cli_config.or(contents.cli_config);
    }
    // The last entry of a kind counts, so everything collected now comes after the packs.
    contents.modules.extend(gathered.modules);
    contents.configurations.extend(gathered.configurations);
    contents.cli_config = cli_config.map(Source::File).or(contents.cli_config);
    for one in &gathered.providers {
        contents.providers.push(ProviderContents {
            address: one.provider.clone(),
            version: one.version.clone(),
            platform: one.platform.clone(),
            hashes: one.hashes.clone(),
            files: files_of(&one.path)?,
        });
    }
    Ok(contents)
}

/// Lists the files of a package. The plugin is made executable, whatever its mode is here.
fn files_of(package: &Path) -> Result<Vec<Entry<'static>>, PackError> {
    let is_plugin = |path: &str| path.starts_with("terraform-provider-");
    if package.is_dir() {
        let mut files = pack::write::entries(package)?;
        for file in &mut files {
            file.executable |= is_plugin(&file.path);
        }
        return Ok(files);
    }
    let name = package.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    Ok(vec![Entry {
        path: name.to_owned(),
        executable: true,
        source: Source::File(package.to_owned()),
    }])
}

fn write_error(path: &Path) -> impl Fn(std::io::Error) -> PackError + '_ {
    |source| PackError::Write {
        path: path.to_owned(),
        source,
    }
}

fn write_pack(
    out: &Path,
    executable: &Executable,
    contents: Contents<'_>,
    options: &Options<'_>,
) -> Result<(u64, pack::index::Index), PackError> {
    let mut file = Output::create(out, EXECUTABLE).map_err(write_error(out))?;
    let index = pack::write::write(&mut file, out, executable, contents, options)?;
    // Appears at its path only when it is complete: a part of a pack would still be an executable.
    file.commit().map_err(write_error(out))?;
    let size = std::fs::metadata(out).map_err(write_error(out))?.len();
    Ok((size, index))
}

/// Pack to be written.
struct Made<'m> {
    executable: &'m Executable,
    contents: Contents<'m>,
    options: &'m Options<'m>,
}

fn write_difference(
    out: &Path,
    staging: &Path,
    since: &Pack,
    made: Made<'_>,
    conditions: Conditions,
) -> Result<(u64, pack::index::Index), PackError> {
    let whole = staging.join("pack");
    let (_, index) = write_pack(&whole, made.executable, made.contents, made.options)?;
    // The new pack is not signed if no key is named, so it is only opened for inspection; nothing in it is used here.
    let new = Pack::open(&whole, &conditions.to_inspect())?;
    let mut file = Output::create(out, Policy::SHARED).map_err(write_error(out))?;
    let size = difference::write(&mut file, out, since, &new)?;
    file.commit().map_err(write_error(out))?;
    Ok((size, index))
}

pub(super) fn update(
    session: &Session,
    old: &Path,
    difference: &Path,
    out: &Path,
    trust: Option<&str>,
) -> Result<Outcome, Failure> {
    let made = || -> Result<PathBuf, PackError> {
        let conditions = session.pack_conditions();
        let old = Pack::open(old, &conditions)?;
        let conditions = conditions.with_key(trust.map(Path::new));
        // A key that cannot be read is reported before the work begins.
        conditions.trust.key()?;
        // The new pack is verified in a temporary file, before it appears at its path.
        let dir = out
            .parent()
            .filter(|dir| !dir.as_os_str().is_empty())
            .unwrap_or(Path::new("."));
        let mut new = tempfile::Builder::new()
            .prefix(".monoform-pack-")
            .tempfile_in(dir)
            .map_err(write_error(dir))?;
        difference::apply(new.as_file_mut(), out, &old, difference)?;
        new.as_file_mut().flush().map_err(write_error(out))?;
        Pack::open(new.path(), &conditions)?.verify()?;
        let mut file = Output::create(out, EXECUTABLE).map_err(write_error(out))?;
        new.as_file_mut().rewind().map_err(write_error(out))?;
        std::io::copy(new.as_file_mut(), &mut file).map_err(write_error(out))?;
        file.commit().map_err(write_error(out))?;
        Ok(out.to_owned())
    };
    match made() {
        Ok(path) => {
            let style = session.ui.style();
            Ok(Outcome::line(
                style.good(format!("{} is the new pack.", path.display())),
            ))
        }
        Err(error) => Err(failed("Cannot update the pack", &error)),
    }
}
