//! `providers`: lists the providers that the modules and the state need. The subcommands show the schemas of these providers, and fetch
//! packages for other machines.

mod json;
mod lock;
mod mirror;
mod schema;
mod serve;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use addrs::Provider;
use addrs::platform::Platform;
use config::{Config, ModuleNode};
use syntax::{Diagnostic, Diagnostics};
use testing::SuiteFile;
use versions::Constraints;

use crate::args::flags::{self, Flags, FromFlags};
use crate::args::groups::VariableFlags;
use crate::commands::output::current_state;
use crate::commands::{Command, no_positional};
use crate::outcome::{Failure, Outcome};
use crate::plugin_source::requirements;
use crate::session::Session;
use crate::tested::{self, Purpose, Tested, modules_of};
use crate::workdir::{self, Project};

pub use lock::COMMAND as LOCK;
pub use mirror::COMMAND as MIRROR;
pub use schema::COMMAND as SCHEMA;
pub use serve::COMMAND as SERVE;
use views::tree::{Tree, draw};

pub const COMMAND: Command = Command {
    path: "providers",
    about: "Show the providers required for this configuration",
    positional: "",
    details: "Shows which providers each module of the configuration needs, in which versions, those that test \
      files name too, and which ones the state needs.",
    declare: flags::declare::<Arguments>,
    refused: &[],
    run: |session, matches| run(session, &flags::read(matches)),
};

struct Arguments {
    positional: Vec<String>,
    test_directory: Option<String>,
    json: bool,
}

impl FromFlags for Arguments {
    fn read(flags: &mut Flags<'_>) -> Arguments {
        VariableFlags::read(flags);
        let positional = flags.positional();
        let test_directory = tested::directory_flag(flags);
        Arguments {
            positional,
            test_directory,
            json: flags.switch("json", false, "Output the requirements as JSON."),
        }
    }
}

fn run(session: &Session, arguments: &Arguments) -> Result<Outcome, Failure> {
    no_positional(&arguments.positional, "providers command")?;
    let (project, tested) = configured_with_tests(session, arguments.test_directory.as_deref())?;
    let state = current_state(session, None)?;
    let stored: BTreeSet<&Provider> = state.resources.values().map(|r| &r.provider.provider).collect();
    let mut problems = Diagnostics::new();
    let needs = needs_of(&project.config, &mut problems);
    if arguments.json {
        let document = json::document(&project.config, &needs, &tested.files, &stored, &mut problems);
        session.pass(&problems, &project.sources)?;
        return Ok(Outcome::document(&document));
    }
    let mut tree = module(&project.config.root, &needs);
    tree.extend(tested.files.iter().map(|file| of_file(file, &mut problems)));
    session.pass(&problems, &project.sources)?;
    let mut out = "\nProviders required by configuration:\n.\n".to_owned();
    draw(&tree, &mut out);
    out.push('\n');
    if !stored.is_empty() {
        out.push_str("Providers required by state:\n\n");
        for provider in stored {
            out.push_str(&format!("    provider[{provider}]\n\n"));
        }
    }
    Ok(Outcome::text(out))
}

/// Required providers of each module.
type Needs = BTreeMap<addrs::Module, BTreeMap<Provider, Constraints>>;

fn needs_of(config: &Config, problems: &mut Diagnostics) -> Needs {
    let mut needs = Needs::new();
    for (provider, requirements) in config.provider_requirements() {
        for requirement in requirements {
            let of_module = needs.entry(requirement.module).or_default();
            // The entry exists even without a constraint, because the provider is listed in any case.
            let all = of_module.entry(provider.clone()).or_insert_with(Constraints::any);
            let Some(constraint) = requirement.constraint else {
                continue;
            };
            match Constraints::parse(&constraint.text) {
                Ok(more) => *all = std::mem::replace(all, Constraints::any()).and(more),
                Err(e) => problems
                    .push(Diagnostic::error("Invalid version constraint", format!("{e}.")).at(&constraint.range)),
            }
        }
    }
    needs
}

/// Returns a test file with the modules of its runs.
fn of_file(file: &SuiteFile, problems: &mut Diagnostics) -> Tree {
    let name = config::file_names::test_stem(&file.file.name);
    let runs = file.file.runs.iter().zip(&file.modules);
    let below = runs
        .filter(|(run, _)| run.module.is_some())
        .map(|(run, config)| Tree {
            text: format!("run.{}", run.name),
            below: module(&config.root, &needs_of(config, problems)),
        })
        .collect();
    Tree {
        text: format!("test.{}", name.replace('/', ".")),
        below,
    }
}

fn module(node: &ModuleNode, needs: &Needs) -> Vec<Tree> {
    let own = needs.get(&node.path).into_iter().flatten();
    let mut out: Vec<Tree> = own
        .map(|(provider, constraints)| Tree {
            text: format!("provider[{provider}] {constraints}").trim_end().to_owned(),
            below: Vec::new(),
        })
        .collect();
    out.extend(node.children.iter().map(|(name, child)| Tree {
        text: format!("module.{name}"),
        below: module(child, needs),
    }));
    out
}

/// Loads the configuration, which must exist.
pub(super) fn configured(session: &Session) -> Result<Project, Failure> {
    if !workdir::has_configuration() {
        return Err(Failure::new(
            "No configuration files",
            format!(
                "The directory {} contains no Terraform configuration files.",
                session.working_dir.display()
            ),
        ));
    }
    workdir::load(session)
}

/// Loads the configuration and the test files with the modules of their runs. At least one of both must exist.
fn configured_with_tests(session: &Session, dir: Option<&str>) -> Result<(Project, Tested), Failure> {
    let tests = tested::read(dir)?;
    session.pass(&tests.diagnostics, &tests.sources)?;
    let mut project = if tests.files.is_empty() {
        configured(session)?
    } else {
        workdir::load(session)?
    };
    let root = Arc::new(project.config.clone());
    let mut tested = modules_of(session, &root, tests.files, Purpose::Reading);
    project.sources.extend(std::mem::take(&mut tested.sources));
    session.pass(&tested.problems, &project.sources)?;
    Ok((project, tested))
}

/// Returns the providers that the configuration and the modules of tests need.
pub(super) fn required(
    project: &Project,
    tested: Option<&Tested>,
) -> Result<BTreeMap<Provider, Constraints>, Diagnostics> {
    let required = requirements(&project.config, &state::State::default())?;
    match tested {
        None => Ok(required),
        Some(tested) => tested::add_requirements(tested, &Arc::new(project.config.clone()), required),
    }
}

/// Returns the platforms in the flags, or the current one.
pub(super) fn requested_platforms(flags: &[String]) -> Result<Vec<Platform>, Failure> {
    let mut out = Vec::new();
    for text in flags {
        let Ok(platform) = text.parse::<Platform>() else {
            return Err(Failure::new(
                "Invalid target platform",
                format!(
                    "The option -platform has the value \"{text}\", which is no platform: that is an operating \
                     system and a processor with an underscore between them, like \"linux_amd64\"."
                ),
            ));
        };
        if !out.contains(&platform) {
            out.push(platform);
        }
    }
    if out.is_empty() {
        out.push(Platform::current());
    }
    Ok(out)
}

/// Providers whose packages are requested, and built-in ones that are left out.
pub(super) struct Asked {
    pub(super) wanted: BTreeMap<Provider, Constraints>,
    built_in: BTreeMap<Provider, Constraints>,
}

/// Splits the required providers into those whose packages are needed and the built-in ones. The package of a built-in provider is also
/// needed if the user names the provider, or if the lock file has an entry for it: then other programs install it.
pub(super) fn asked(
    session: &Session,
    required: BTreeMap<Provider, Constraints>,
    named: &[String],
) -> Result<Asked, Diagnostics> {
    let mut names = BTreeSet::new();
    for text in named {
        let invalid = |why: String| Diagnostics::from(Diagnostic::error("Invalid provider argument", why));
        let provider = Provider::parse(text).map_err(|e| {
            invalid(format!(
                "\"{text}\" is not the address of a provider: {}.",
                e.detail.trim_end_matches('.')
            ))
        })?;
        if !required.contains_key(&provider) {
            return Err(invalid(format!("No module of the configuration requires {provider}.")));
        }
        names.insert(provider);
    }
    let catalog = session.catalog()?;
    let (locked, _) = packages::lock_file::LockFile::load(&session.working_dir)?;
    let mut asked = Asked {
        wanted: BTreeMap::new(),
        built_in: BTreeMap::new(),
    };
    for (provider, constraints) in required {
        if !names.is_empty() && !names.contains(&provider) {
            continue;
        }
        let others_use_it = names.contains(&provider) || locked.providers.contains_key(&provider);
        if provider.is_builtin() || (!others_use_it && catalog.is_built_in(&provider, &constraints)) {
            asked.built_in.insert(provider, constraints);
        } else {
            asked.wanted.insert(provider, constraints);
        }
    }
    Ok(asked)
}

/// Runs an asynchronous function that fetches packages.
pub(super) fn fetching<T>(session: &Session, work: impl AsyncFnOnce() -> Result<T, Diagnostics>) -> Result<T, Failure> {
    let result = session.runtime().and_then(|runtime| runtime.block_on(work()));
    result.map_err(Failure::from)
}
