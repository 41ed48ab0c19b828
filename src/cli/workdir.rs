//! The working directory: its configuration, and the values of variables.

use std::collections::BTreeMap;

use config::files::{Disk, FileSource, Mounted};
use config::manifest::Manifest;
use config::values::{self, SetVariables, StoredValue, ValueSource};
use config::{Config, LoadOptions, Loaded, RootVariables};
use engine::inputs::{EvaluationEnvironment, Variables};
use lang::scope::FunctionSettings;
use stores::planfile::{self, SavedPlan};
use syntax::{Diagnostics, SourceMap};
use views::verb::Verb;

use crate::core_version;
use crate::outcome::{Failure, Within as _};
use crate::process;
use crate::session::{Session, Surroundings};
use crate::{asking, carried_modules, loading};

/// Loaded configuration with the text of its files.
pub struct Project {
    pub config: Config,
    /// Text of every file.
    pub sources: SourceMap,
}

/// Loads the configuration in the working directory, and shows warnings; for commands that evaluate nothing. Errors that only
/// matter to `validate` and to operations become warnings.
pub fn load(session: &Session) -> Result<Project, Failure> {
    let (loaded, mut problems) = load_all(session, ".");
    let loaded = loaded.for_reading();
    problems.extend(loaded.diagnostics);
    let project = Project {
        config: loaded.config,
        sources: loaded.sources,
    };
    session.pass(&problems, &project.sources)?;
    Ok(project)
}

/// Loads the configuration in the working directory, as far as it is valid. Returns it with all diagnostics.
pub fn read(session: &Session) -> (Project, Diagnostics) {
    read_in(session, ".")
}

/// Loads the configuration with the installed modules only: modules of a pack are not installed for it.
pub fn read_as_installed(session: &Session) -> (Project, Diagnostics) {
    let (loaded, mut problems) = load_installed(session, &Disk, ".", config::load);
    problems.extend(loaded.diagnostics);
    (
        Project {
            config: loaded.config,
            sources: loaded.sources,
        },
        problems,
    )
}

/// Loads the configuration in a directory, as far as it is valid. Returns it with all diagnostics.
pub fn read_in(session: &Session, dir: &str) -> (Project, Diagnostics) {
    let (loaded, mut problems) = load_all(session, dir);
    problems.extend(loaded.diagnostics);
    (
        Project {
            config: loaded.config,
            sources: loaded.sources,
        },
        problems,
    )
}

/// Loads the configuration in the working directory from these files, as far as it is valid; with its query files if `queries` is
/// set.
pub fn read_from(session: &Session, files: &dyn FileSource, queries: bool) -> (Project, Diagnostics) {
    let load = if queries {
        config::load_with_queries
    } else {
        config::load
    };
    let (loaded, mut problems) = load_by(session, files, ".", load);
    problems.extend(loaded.diagnostics);
    (
        Project {
            config: loaded.config,
            sources: loaded.sources,
        },
        problems,
    )
}

/// Loads the configuration in the working directory for tests: provider configurations may be missing, and values may be set for
/// undeclared variables.
pub fn load_for_tests(session: &Session) -> (Loaded, Diagnostics) {
    load_by(session, &Disk, ".", config::load_for_tests)
}

/// Loads the configuration in the working directory for installation, with the list of missing modules.
pub fn load_for_installation(session: &Session) -> (Loaded, Diagnostics) {
    let (loaded, problems) = load_installed(session, &Disk, ".", config::load_for_installation);
    (loaded.for_reading(), problems)
}

/// Loads the module in a directory without the modules that it calls.
pub fn load_alone(session: &Session, dir: &str) -> Result<Project, Failure> {
    let (loaded, mut problems) = load_installed(session, &Disk, dir, config::load_alone);
    problems.extend(loaded.diagnostics);
    if problems.has_errors() {
        return Err(Failure::within(problems, &loaded.sources));
    }
    Ok(Project {
        config: loaded.config,
        sources: loaded.sources,
    })
}

/// Loads the configuration in a directory, with the list of missing modules. The diagnostics are about the manifest.
fn load_all(session: &Session, dir: &str) -> (Loaded, Diagnostics) {
    load_by(session, &Disk, dir, config::load)
}

/// Function that loads a configuration.
type Load = fn(&dyn FileSource, &str, &LoadOptions<'_>) -> Loaded;

/// Loads a configuration by the function `load`. Missing modules that are in the pack are installed, perhaps in memory. The
/// second result has diagnostics about the manifest and the pack.
fn load_by(session: &Session, files: &dyn FileSource, dir: &str, load: Load) -> (Loaded, Diagnostics) {
    let (loaded, problems) = load_installed(session, files, dir, load);
    // Modules are installed for the working directory only.
    if loaded.missing.is_empty() || dir != "." || problems.has_errors() {
        return (loaded, problems);
    }
    let Some(installed) = carried_modules::install(session, &[]) else {
        return (
            loaded,
            problems.into_iter().chain(carried_modules::unusable(session)).collect(),
        );
    };
    let set = session.set_variables();
    let options = loading::options(session, &installed.manifest, &set);
    let files = Mounted {
        mounts: session.mounts.get().cloned(),
        files,
    };
    let mut again = load(&files, dir, &options);
    settle(session, &mut again.config, &set);
    // An error of the installation explains more than the error about the missing module.
    if installed.problems.has_errors() {
        again.diagnostics = again.apart_from_missing();
        again.sources.extend(installed.sources);
    }
    again.diagnostics.extend(installed.problems);
    (again, problems)
}

fn load_installed(session: &Session, files: &dyn FileSource, dir: &str, load: Load) -> (Loaded, Diagnostics) {
    let mut problems = Diagnostics::new();
    let manifest = match Manifest::read(&Disk, session.env.data_dir()) {
        Ok(manifest) => manifest,
        Err(problem) => {
            // Loading continues without the record of installed modules, so that mistakes in the files are reported,
            // too.
            problems.push(problem);
            Manifest::default()
        }
    };
    let set = session.set_variables();
    let options = loading::options(session, &manifest, &set);
    let mut loaded = load(files, dir, &options);
    settle(session, &mut loaded.config, &set);
    (loaded, problems)
}

/// Replaces expressions in the settings of the backend by their values.
fn settle(session: &Session, config: &mut Config, set: &SetVariables) {
    let cwd = session.original_dir.to_str().unwrap_or(".");
    config::known::settle(config, set, cwd, || session.selected_workspace().to_owned());
}

/// Loads the configuration of a saved plan, with the variable values that the plan contains.
pub fn load_planned(surroundings: &Surroundings, saved: &SavedPlan) -> Loaded {
    let (mut files, manifest) = (planfile::files(saved), saved.snapshot.manifest());
    carried_modules::mount_planned(surroundings, &manifest);
    files.mounts = surroundings.mounts.get().cloned();
    let values = saved.plan.variables.iter();
    let values = values
        .map(|(name, value)| (name.clone(), value.clone().unmark_deep().0))
        .collect();
    let options = LoadOptions {
        variables: RootVariables::Known(&values),
        cwd: surroundings.original_dir.to_str().unwrap_or("."),
        ..LoadOptions::new(core_version(), &manifest)
    };
    config::load(&files as &dyn FileSource, saved.snapshot.root_dir(), &options)
}

/// Returns true if the working directory has configuration files.
pub fn has_configuration() -> bool {
    config::loader::has_configuration(&Disk, ".").unwrap_or(false)
}

/// Returns true if the working directory has query files.
pub fn has_queries() -> bool {
    config::loader::has_queries(&Disk, ".").unwrap_or(false)
}

/// Returns the values of the root variables from flags, files, the environment and the variables that the server stores for the
/// workspace. The user is asked for missing ones if input is possible.
pub fn variables(
    session: &Session,
    project: &mut Project,
    stored: &BTreeMap<String, StoredValue>,
    input: bool,
) -> Result<(Variables, Diagnostics), Diagnostics> {
    let root = project.config.root.module.clone();
    let mut collected = values::collect(&root, &session.set_variables());
    values::complete(&root, stored, &mut collected);
    project.sources.extend(std::mem::take(&mut collected.sources));
    let mut problems = collected.diagnostics;
    for name in collected.missing {
        let Some(variable) = root.variables.get(&name) else {
            continue;
        };
        if !(input && session.env.input()) || session.set_variables().is_unanswered() {
            problems.push(values::missing_variable(variable));
            continue;
        }
        match asking::asked(&session.console, &project.sources, variable) {
            Ok(Some((_, found))) => {
                if let Some(value) = problems.take(found) {
                    collected.values.insert(name, value);
                }
            }
            Ok(None) => problems.push(values::missing_variable(variable)),
            Err(interrupted) => return Err(interrupted.into()),
        }
    }
    if problems.has_errors() {
        return Err(problems);
    }
    let mut variables = Variables::default();
    for (name, found) in collected.values {
        let ephemeral = root.variables.get(&name).is_some_and(|v| v.ephemeral);
        if let Some(given) = found.given.filter(|_| !ephemeral) {
            variables.given.insert(name.clone(), given);
        }
        // When a saved plan is applied, it matters whether an ephemeral variable was set, so its default is not stored as a
        // value.
        if found.source != ValueSource::Default || !ephemeral {
            variables.values.insert(name, found.value);
        }
    }
    Ok((variables, problems))
}

/// Returns the evaluation environment: workspace, working directory and time.
#[must_use]
pub fn environment(surroundings: &Surroundings, workspace: &str) -> EvaluationEnvironment {
    EvaluationEnvironment {
        workspace: workspace.to_owned(),
        cwd: surroundings.original_dir.to_string_lossy().into_owned(),
        applying: false,
        functions: FunctionSettings {
            plan_timestamp: Some(now()),
            mounts: surroundings.mounts.get().cloned(),
            max_elements: surroundings.env.max_elements(),
            ..FunctionSettings::default()
        },
        witness: None,
        program: surroundings.ui.program,
        deprecations: surroundings.deprecations,
    }
}

/// Returns the current time in the form of plans: UTC, in whole seconds.
#[must_use]
pub fn now() -> String {
    let now = process::now();
    now.round(jiff::Unit::Second).unwrap_or(now).to_string()
}

/// Returns the values of the root variables for an operation, with warnings about them.
pub fn variables_of_operation(
    session: &Session,
    project: &mut Project,
    verb: Verb,
    input: bool,
) -> Result<(Variables, Diagnostics), Failure> {
    let stored = match verb {
        // An import runs locally even if the workspace's operations run on the server. Then the server stores the variables.
        Verb::Import => hosted::variables::stored(&session.hosted(), &project.config)?,
        _ => BTreeMap::new(),
    };
    let result = variables(session, project, &stored, input && session.stream.is_none());
    result.within(&project.sources)
}
