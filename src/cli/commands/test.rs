//! `test`: the suites of modules.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use config::files::{Disk, FileSource};
use config::values::{ValueInputs, VariableFlag};
use config::{Config, test_files};
use engine::stop::Stop;
use files::io_reason;
use state::State;
use syntax::{Diagnostic, Diagnostics, SourceMap};
use testing::suite::{self, Leftovers, SuiteResult};
use testing::{Status as TestStatus, Suite, SuiteFile, View};

use crate::args::UsageError;
use crate::args::flags::{self, Flags, FromFlags};
use crate::args::groups::{Parallelism, VariableFlags};
use crate::commands::Command;
use crate::session::{Session, Status};
use crate::tested::{self, modules_of};
use crate::views::tests::{Human, Machine, Report};
use crate::workdir;
use crate::{interrupt, process};

pub const COMMAND: Command = Command {
    path: "test",
    about: "Execute integration tests for modules",
    positional: "",
    details: "Runs the test files (.tftest.hcl and .tftest.json) of the working directory and of its directory for tests: each run \
              plans or applies a module in a state of its own and checks what comes of it. In the end, what was created is \
              destroyed. The state of the working directory is neither read nor changed.",
    declare: flags::declare::<Arguments>,
    refused: &[("cloud-run", "tests run on this machine only.")],
    run: |session, matches| run(session, &flags::read(matches)),
};

struct Arguments {
    variables: VariableFlags,
    filter: Vec<String>,
    test_directory: Option<String>,
    verbose: bool,
    junit_xml: Option<String>,
    parallelism: Parallelism,
    run_parallelism: usize,
}

/// How many runs of a file may go on at a time.
const RUNS_AT_A_TIME: usize = 10;

impl FromFlags for Arguments {
    fn read(flags: &mut Flags<'_>) -> Arguments {
        flags.json_stream();
        flags.positional();
        let run_parallelism = flags.value_or(
            "run-parallelism",
            "N",
            "10",
            "How many runs of a file may go on at a time, if they are parallel.",
        );
        Arguments {
            variables: VariableFlags::read(flags),
            filter: flags.values("filter", "FILE", "Run only this test file. May be given many times."),
            test_directory: tested::directory_flag(flags),
            verbose: flags.switch("verbose", false, "Show the plan or the state of each run."),
            junit_xml: flags.value(
                "junit-xml",
                "PATH",
                "Write a report in the form of JUnit to this file, too.",
            ),
            parallelism: Parallelism::read(flags),
            run_parallelism: run_parallelism
                .parse()
                .ok()
                .filter(|n: &usize| *n > 0)
                .unwrap_or(RUNS_AT_A_TIME),
        }
    }
}

/// Everything that was loaded.
struct Loaded {
    root: Arc<Config>,
    files: Vec<SuiteFile>,
    sources: SourceMap,
    warnings: Diagnostics,
}

fn run(session: &Session, arguments: &Arguments) -> Result<Status, UsageError> {
    let given = arguments.test_directory.as_deref();
    let dir = match test_files::directory(given) {
        Ok(dir) => dir,
        Err(problem) => {
            session.show(&problem.into(), &SourceMap::default());
            return Ok(1);
        }
    };
    let (loaded, mut problems) = load(session, arguments, dir);
    let Some(loaded) = loaded else {
        problems.sort();
        session.show(&problems, &SourceMap::default());
        return Ok(1);
    };
    if problems.has_errors() {
        session.show(&problems, &loaded.sources);
        return Ok(1);
    }
    session.show(&loaded.warnings, &loaded.sources);
    match execute(session, arguments, dir, &loaded) {
        Ok(status) => Ok(status),
        Err(problems) => {
            session.show(&problems, &loaded.sources);
            Ok(1)
        }
    }
}

/// Loads the configuration, the test files, and the modules that these name.
fn load(session: &Session, arguments: &Arguments, dir: &str) -> (Option<Loaded>, Diagnostics) {
    let (root, mut problems) = workdir::load_for_tests(session);
    problems.extend(root.diagnostics);
    let tests = test_files::read(&Disk, ".", dir, arguments.test_directory.is_some());
    problems.extend(tests.diagnostics);
    let mut sources = root.sources;
    sources.extend(tests.sources);
    let root = Arc::new(root.config);
    let tested = modules_of(session, &root, tests.files, true);
    problems.extend(tested.problems);
    sources.extend(tested.sources);
    let wanted =
        |file: &SuiteFile| arguments.filter.is_empty() || arguments.filter.iter().any(|name| **name == *file.file.name);
    let files = tested.files.into_iter().filter(wanted).collect();
    let (errors, warnings): (Vec<_>, Vec<_>) = problems.into_iter().partition(Diagnostic::is_error);
    let failed = !errors.is_empty();
    let loaded = Loaded {
        root,
        files,
        sources,
        warnings: Diagnostics(warnings),
    };
    let problems = if failed {
        errors.into_iter().chain(loaded.warnings.0.clone()).collect()
    } else {
        Diagnostics::new()
    };
    (Some(loaded), problems)
}

/// The variable files of the directory for tests.
fn files_of_tests(dir: &str) -> Vec<VariableFlag> {
    let mut names = Disk.list(dir).unwrap_or_default();
    names.sort();
    let first = ["terraform.tfvars", "terraform.tfvars.json"];
    let mut out: Vec<&str> = first.into_iter().filter(|f| names.iter().any(|n| n == f)).collect();
    let automatic = |n: &&str| n.ends_with(".auto.tfvars") || n.ends_with(".auto.tfvars.json");
    out.extend(names.iter().map(String::as_str).filter(automatic));
    out.into_iter()
        .map(|name| VariableFlag::File(config::files::join(dir, name)))
        .collect()
}

/// How many states of one file and key are kept beside each other.
const MOST_LEFTOVERS: usize = 100;

/// Keeps states of what could not be destroyed beside the configuration.
struct Beside;

impl Leftovers for Beside {
    fn keep(&self, file: &str, key: &str, state: &State) -> Result<PathBuf, Diagnostics> {
        let name = |text: &str| -> String {
            let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
            text.chars().map(|c| if fits(c) { c } else { '_' }).collect()
        };
        let mut path = format!("errored_test.{}", name(file));
        if !key.is_empty() {
            path.push_str(&format!(".{}", name(key)));
        }
        // What an earlier suite has left is not to be lost.
        let free = (1..=MOST_LEFTOVERS)
            .map(|n| match n {
                1 => format!("{path}.tfstate"),
                n => format!("{path}.{n}.tfstate"),
            })
            .find(|path| !Path::new(path).exists());
        let Some(path) = free else {
            return Err(Diagnostic::error(
                "Failed to keep the state of what was left behind",
                format!(
                    "There are {MOST_LEFTOVERS} state files already whose names begin with {path}: see what is in them."
                ),
            )
            .into());
        };
        // A state that was never stored has no lineage.
        let mut state = state.clone();
        if state.lineage.is_empty() {
            state.lineage = uuid::Uuid::new_v4().to_string();
        }
        state::store::write_copy(Path::new(&path), &state).map_err(|e| {
            Diagnostics::from(Diagnostic::error(
                "Failed to keep the state of what was left behind",
                format!("The state file {path} cannot be written: {e}."),
            ))
        })?;
        Ok(path.into())
    }
}

fn execute(session: &Session, arguments: &Arguments, dir: &str, loaded: &Loaded) -> Result<Status, Diagnostics> {
    let plugins = session.plugins()?;
    let nothing = State::new();
    let mut seen = BTreeSet::new();
    let modules = loaded.files.iter().flat_map(|file| &file.modules);
    for config in modules.filter(|config| seen.insert(Arc::as_ptr(config) as usize)) {
        let warnings = plugins.resolve(config, &nothing)?;
        session.show(&warnings, &loaded.sources);
    }
    let runtime = session.runtime()?;
    let stop = Stop::new();
    let environment = workdir::environment(session, &workdir::workspace(session)?);
    let variables = session.env.variables();
    let flags = &arguments.variables.0;
    let in_tests: Vec<VariableFlag> = flags.iter().cloned().chain(files_of_tests(dir)).collect();
    let outside = |flags| ValueInputs {
        files: &Disk,
        environment: &variables,
        flags,
    };
    let human = Human::new(
        session.ui.clone(),
        loaded.sources.clone(),
        arguments.verbose,
        session.compact_warnings,
    );
    let machine = session
        .stream
        .as_ref()
        .map(|stream| Machine::new(stream.clone(), loaded.sources.clone()));
    let view: &dyn View = match &machine {
        Some(machine) => machine,
        None => &human,
    };
    let report = Report::new(view, loaded.sources.clone());
    let result = runtime.block_on(async {
        interrupt::listen_telling(session.ui.clone(), session.stream.clone(), stop.clone(), Arc::default());
        suite::run(Suite {
            files: &loaded.files,
            root: &loaded.root,
            outside: outside(flags),
            outside_in_tests: outside(&in_tests),
            providers: &plugins,
            environment: &environment,
            clock: || process::now().into(),
            view: if arguments.junit_xml.is_some() { &report } else { view },
            stop: &stop,
            parallelism: arguments.parallelism.0,
            run_parallelism: arguments.run_parallelism,
            verbose: arguments.verbose,
            leftovers: Some(&Beside),
        })
        .await
    });
    if stop.is_cancelled() {
        runtime.shutdown_background();
        return Ok(1);
    }
    match &machine {
        Some(machine) => machine.ends(&result),
        None => human.ends(&result),
    }
    Ok(status(
        session,
        arguments,
        &result,
        &report,
        stop.is_requested(),
        loaded,
    ))
}

/// What remains to be done when the suite is over.
fn status(
    session: &Session,
    arguments: &Arguments,
    result: &SuiteResult,
    report: &Report<'_>,
    interrupted: bool,
    loaded: &Loaded,
) -> Status {
    let mut status = u8::from(result.status > TestStatus::Pass);
    if let Some(path) = &arguments.junit_xml
        && let Err(error) = std::fs::write(path, report.document(interrupted))
    {
        session.fail(
            "Failed to write the JUnit report",
            format!("The file {path} cannot be written: {}.", io_reason(&error)),
        );
        status = 1;
    }
    let known = |name: &String| loaded.files.iter().any(|file| *file.file.name == **name);
    let unknown: Vec<&String> = arguments.filter.iter().filter(|name| !known(name)).collect();
    for name in unknown {
        let warning = Diagnostic::warning(
            "Unknown test file",
            format!("The option -filter names \"{name}\", and there is no such test file."),
        );
        session.show(&warning.into(), &SourceMap::default());
    }
    status
}
