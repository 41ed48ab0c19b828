//! `test`: runs test suites.

mod failed;
mod leftovers;
mod reports;
mod watch;

use std::collections::BTreeSet;
use std::sync::Arc;

use config::files::{Disk, FileSource};
use config::values::VariableFlag;
use config::{Config, test_files};
use engine::stop::Stop;
use lang::scope::Witness;
use state::State;
use syntax::content::{did_you_mean, suggest};
use syntax::{Diagnostic, Diagnostics, SourceMap};
use testing::coverage::Coverage;
use testing::suite::{self, SuiteResult};
use testing::{Event, Status as TestStatus, Suite, SuiteFile, View};
use views::suite::{Human, Machine, Report};

use self::leftovers::Beside;
use crate::args::flags::{self, Flags, FromFlags};
use crate::args::groups::{Parallelism, VariableFlags};
use crate::commands::Command;
use crate::outcome::{Failure, Outcome};
use crate::session::Session;
use crate::tested::{self, Purpose, modules_of};
use crate::workdir;
use crate::{interrupt, process};

pub const COMMAND: Command = Command {
    path: "test",
    about: "Execute integration tests for modules",
    positional: "",
    details: "Runs the test files (.tftest.hcl and .tftest.json, or .tofutest.hcl and .tofutest.json) of the working \
              directory and of its directory for tests: each run plans or applies a module in a state of its own and checks what comes of it. In the end, what was created is \
              destroyed. The state of the working directory is neither read nor changed. With -watch, files are run again when \
              something changes that they depend on; with -rerun-failed, only those that did not pass the last time; -coverage \
              says what of the module the runs have come upon.",
    declare: flags::declare::<Arguments>,
    refused: &[("cloud-run", "tests run on this machine only.")],
    run: |session, matches| run(session, &flags::read(matches)),
};

struct Arguments {
    filter: Vec<String>,
    test_directory: Option<String>,
    verbose: bool,
    junit_xml: Option<String>,
    parallelism: Parallelism,
    run_parallelism: usize,
    rerun_failed: bool,
    watch: bool,
    coverage: bool,
    coverage_json: Option<String>,
    coverage_lcov: Option<String>,
}

impl Arguments {
    fn measures(&self) -> bool {
        self.coverage || self.coverage_json.is_some() || self.coverage_lcov.is_some()
    }
}

/// Default limit of the runs of a file that are carried out at the same time.
const RUNS_AT_A_TIME: usize = 10;

impl FromFlags for Arguments {
    fn read(flags: &mut Flags<'_>) -> Arguments {
        flags.json_into();
        flags.json_stream();
        flags.positional();
        let run_parallelism = flags.value_or(
            "run-parallelism",
            "N",
            "10",
            "How many runs of a file may go on at a time, if they are parallel.",
        );
        VariableFlags::read(flags);
        Arguments {
            filter: flags.values("filter", "FILE", "Run only this test file. May be given many times."),
            test_directory: tested::directory_flag(flags),
            verbose: flags.switch("verbose", false, "Show the plan or the state of each run."),
            junit_xml: flags.value(
                "junit-xml",
                "PATH",
                "Write a report in the form of JUnit to this file, too.",
            ),
            parallelism: Parallelism::read(flags),
            rerun_failed: flags.switch(
                "rerun-failed",
                false,
                "Run only the test files that did not pass when they were run the last time.",
            ),
            watch: flags.switch(
                "watch",
                false,
                "Go on after the tests: when files change, run the test files again that depend on them.",
            ),
            coverage: flags.switch(
                "coverage",
                false,
                "Say which resources, outputs, local values, conditions and results of conditionals no run has come upon.",
            ),
            coverage_json: flags.value("coverage-json", "PATH", "Write the coverage to this file, as JSON."),
            coverage_lcov: flags.value("coverage-lcov", "PATH", "Write the coverage to this file, in the form of lcov."),
            run_parallelism: run_parallelism
                .parse()
                .ok()
                .filter(|n: &usize| *n > 0)
                .unwrap_or(RUNS_AT_A_TIME),
        }
    }
}

/// Configuration and test files.
struct Loaded {
    root: Arc<Config>,
    files: Vec<SuiteFile>,
    /// All test files, including those that are filtered out.
    all: Vec<SuiteFile>,
    sources: SourceMap,
    warnings: Diagnostics,
}

/// Result of one pass over the test files.
struct Ran {
    outcome: Outcome,
    /// Loaded files; `None` if loading failed.
    loaded: Option<Loaded>,
    interrupted: bool,
}

impl Ran {
    fn failed(failure: Failure) -> Ran {
        Ran {
            outcome: failure.into(),
            loaded: None,
            interrupted: false,
        }
    }
}

fn run(session: &Session, arguments: &Arguments) -> Result<Outcome, Failure> {
    if arguments.watch && (session.stream.is_some() || arguments.junit_xml.is_some()) {
        return Err(Failure::usage(
            "Incompatible command-line flags",
            "With -watch the tests have no end, so that there is nothing for -json or -junit-xml to report: use it without them.",
        ));
    }
    if !arguments.parallelism.is_plain() {
        return Err(Failure::usage(
            "Option not supported",
            "The runs of tests share one limit, so -parallelism takes a number here. Limits of single providers are for plan and apply.",
        ));
    }
    let only = arguments.rerun_failed.then(|| failed::read(session)).transpose()?;
    if only.as_ref().is_some_and(BTreeSet::is_empty) && session.stream.is_none() {
        session
            .ui
            .line("No test file is known to have failed: there is nothing to run again.");
    }
    if arguments.watch {
        return watch::watch(session, arguments, only);
    }
    Ok(once(session, arguments, only.as_ref()).outcome)
}

/// Runs the test files, or only those in `only`.
fn once(session: &Session, arguments: &Arguments, only: Option<&BTreeSet<String>>) -> Ran {
    let given = arguments.test_directory.as_deref();
    let dir = match test_files::directory(given) {
        Ok(dir) => dir,
        Err(problem) => return Ran::failed(problem.into()),
    };
    // Leftovers are recovered before anything else, so that objects of a killed run are reported even if
    // loading fails.
    leftovers::recover(session);
    let (mut loaded, mut problems) = load(session, arguments, dir);
    if problems.has_errors() {
        problems.sort();
        return Ran::failed(Failure::within(problems, &loaded.sources));
    }
    if let Some(only) = only {
        loaded.files.retain(|file| only.contains(&*file.file.name));
    }
    session.show_now(&loaded.warnings, &loaded.sources);
    match execute(session, arguments, dir, &loaded) {
        Ok((outcome, interrupted)) => Ran {
            outcome,
            loaded: Some(loaded),
            interrupted,
        },
        Err(problems) => Ran::failed(Failure::within(problems, &loaded.sources)),
    }
}

/// Loads the configuration, the test files, and their modules.
fn load(session: &Session, arguments: &Arguments, dir: &str) -> (Loaded, Diagnostics) {
    let (root, mut problems) = workdir::load_for_tests(session);
    problems.extend(root.diagnostics);
    let tests = test_files::read(&Disk, ".", dir, arguments.test_directory.is_some());
    problems.extend(tests.diagnostics);
    let mut sources = root.sources;
    sources.extend(tests.sources);
    let root = Arc::new(root.config);
    let tested = modules_of(session, &root, tests.files, Purpose::Runs);
    problems.extend(tested.problems);
    sources.extend(tested.sources);
    let all = tested.files.clone();
    let wanted =
        |file: &SuiteFile| arguments.filter.is_empty() || arguments.filter.iter().any(|name| **name == *file.file.name);
    let files = tested.files.into_iter().filter(wanted).collect();
    // Warnings are shown before the runs. With errors there are no runs, and both are shown together.
    let (errors, warnings): (Vec<_>, Vec<_>) = problems.into_iter().partition(Diagnostic::is_error);
    let failed = !errors.is_empty();
    let loaded = Loaded {
        root,
        files,
        all,
        sources,
        warnings: Diagnostics(warnings),
    };
    let problems = if failed {
        errors.into_iter().chain(loaded.warnings.0.clone()).collect()
    } else {
        Diagnostics::new()
    };
    (loaded, problems)
}

/// Returns the flags for the variable files in the directory of test files.
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

/// Runs the loaded files. Returns the outcome, and true if an interrupt has ended the run.
fn execute(
    session: &Session,
    arguments: &Arguments,
    dir: &str,
    loaded: &Loaded,
) -> Result<(Outcome, bool), Diagnostics> {
    let plugins = session.plugins()?;
    let nothing = State::new();
    let mut seen = BTreeSet::new();
    let modules = loaded.files.iter().flat_map(|file| &file.modules);
    for config in modules.filter(|config| seen.insert(Arc::as_ptr(config) as usize)) {
        let warnings = plugins.resolve(config, &nothing)?;
        session.show_now(&warnings, &loaded.sources);
    }
    let runtime = session.runtime()?;
    let stop = Stop::new();
    let mut environment = workdir::environment(session, &stores::workspace::selected(&session.stores())?);
    let coverage = arguments.measures().then(Arc::<Coverage>::default);
    environment.witness = coverage.clone().map(|c| c as Arc<dyn Witness>);
    let set = session.set_variables();
    let set_in_tests = set.with_flags(&Disk, &files_of_tests(dir));
    let views = Views::new(session, arguments, &loaded.sources);
    let report = Report::new(&views, loaded.sources.clone());
    let beside = Beside::new(session)?;
    let result = runtime.block_on(async {
        interrupt::listen_with_messages(session.ui.clone(), session.stream.clone(), stop.clone(), Arc::default());
        suite::run(Suite {
            files: &loaded.files,
            root: &loaded.root,
            outside: &set,
            outside_in_tests: &set_in_tests,
            providers: &plugins,
            environment: &environment,
            clock: || process::now().into(),
            view: match arguments.junit_xml {
                Some(_) => &report,
                None => &views,
            },
            stop: &stop,
            parallelism: arguments.parallelism.number,
            run_parallelism: arguments.run_parallelism,
            verbose: arguments.verbose,
            coverage: coverage.as_deref(),
            leftovers: Some(&beside),
        })
        .await
    });
    leftovers::tidy(session);
    failed::note(session, &result.files);
    if stop.is_cancelled() {
        // A provider that hangs must not keep the process alive.
        runtime.shutdown_background();
        return Ok((1.into(), true));
    }
    views.ends(&result);
    let mut outcome = Outcome::from(u8::from(result.status > TestStatus::Pass));
    if let Some(path) = &arguments.junit_xml {
        let document = report.document(stop.is_requested());
        outcome = outcome.and_outcome(reports::write(path, "JUnit report", document));
    }
    if let Some(coverage) = coverage {
        outcome = outcome.and_outcome(reports::coverage(session, arguments, &coverage.measured(&loaded.root)));
    }
    for warning in unknown_files(arguments, loaded) {
        outcome = outcome.and_unplaced(warning);
    }
    Ok((outcome, stop.is_requested()))
}

/// Returns warnings about values of `-filter` that are no test files.
fn unknown_files(arguments: &Arguments, loaded: &Loaded) -> impl Iterator<Item = Diagnostic> {
    let known = |name: &String| loaded.all.iter().any(|file| *file.file.name == **name);
    arguments.filter.iter().filter(move |name| !known(name)).map(|name| {
        let hint = did_you_mean(suggest(name, loaded.all.iter().map(|file| &*file.file.name)));
        Diagnostic::warning(
            "Unknown test file",
            format!("The option -filter names \"{name}\", and there is no such test file.{hint}"),
        )
    })
}

/// Views for text and for machine-readable output: one of them, or both with `-json-into`.
struct Views {
    human: Option<Human>,
    machine: Option<Machine>,
}

impl View for Views {
    fn event(&self, event: &Event<'_>) {
        if let Some(human) = &self.human {
            human.event(event);
        }
        if let Some(machine) = &self.machine {
            machine.event(event);
        }
    }
}

impl Views {
    fn new(session: &Session, arguments: &Arguments, sources: &SourceMap) -> Views {
        let human = || {
            Human::new(
                session.ui.clone(),
                sources.clone(),
                arguments.verbose,
                session.form.compact,
            )
        };
        let machine = session.streams().next();
        Views {
            human: session.stream.is_none().then(human),
            machine: machine.map(|stream| Machine::new(stream.clone(), sources.clone(), arguments.verbose)),
        }
    }

    fn ends(&self, result: &SuiteResult) {
        if let Some(human) = &self.human {
            human.ends(result);
        }
        if let Some(machine) = &self.machine {
            machine.ends(result);
        }
    }
}
