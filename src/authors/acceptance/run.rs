//! Runs acceptance tests: files at the same time up to a limit, their steps and programs one after the other.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use config::TestFile;
use config::model::{CheckRule, RunOptions, TestRun};
use cty::Value;
use engine::stop::Stop;
use files::Environment;
use files::temporary::PrivateDirectory;
use futures::StreamExt as _;
use syntax::ast::Expr;
use syntax::{Diagnostic, Diagnostics, Range};
use testing::events::Destroyed;
use testing::suite::{Counts, SuiteResult};
use testing::{Event, Performed, Status, SuiteFile, View};
use tokio::process::Command;

use super::file::{AcceptanceFile, Step, Sweeper};
use super::program::{NotRun, Program, Tested, Workspace, run_in};
use super::steps::Steps;

/// A run of acceptance tests.
#[derive(Clone, Copy)]
pub struct Acceptance<'a> {
    pub files: &'a [AcceptanceFile],
    pub programs: &'a [Program],
    pub tested: Tested<'a>,
    pub environment: &'a Environment,
    /// Number of files that are run at the same time.
    pub parallelism: usize,
    /// Runs the sweepers in place of the steps.
    pub sweep: bool,
    pub view: &'a dyn View,
    pub stop: &'a Stop,
    pub clock: fn() -> SystemTime,
}

/// Result of a file with a program.
struct Done {
    name: Arc<str>,
    status: Status,
    runs: Vec<Status>,
}

/// Event of a file, which is shown when the file's turn comes.
enum Happened {
    FileBegins,
    RunEnds(usize, Performed),
    TeardownBegins,
    TeardownOfRunEnds(usize, Destroyed),
    FileEnds(Status, Diagnostics),
}

/// Events of one file with one program. With several files at a time they are shown when the file has ended.
pub(super) struct Told<'t> {
    of: &'t SuiteFile,
    view: &'t dyn View,
    clock: fn() -> SystemTime,
    kept: Option<Vec<Happened>>,
    statuses: Vec<Status>,
}

impl Told<'_> {
    fn tell(&mut self, happened: Happened) {
        match &mut self.kept {
            Some(kept) => kept.push(happened),
            None => show(self.of, self.view, &happened),
        }
    }

    /// Shows the start of a run, unless the events of the file are kept. Returns the time of the start.
    fn begins(&self, run: usize) -> SystemTime {
        if self.kept.is_none() {
            self.view.event(&Event::RunBegins(self.of, run));
        }
        (self.clock)()
    }

    fn ends(&mut self, run: usize, began: SystemTime, mut done: Performed) {
        let took = (self.clock)().duration_since(began).unwrap_or(Duration::ZERO);
        done.time = Some((began, took));
        self.set(run, done);
    }

    fn set(&mut self, run: usize, done: Performed) {
        if let Some(status) = self.statuses.get_mut(run) {
            *status = done.status;
        }
        self.tell(Happened::RunEnds(run, done));
    }

    fn skips(&mut self, run: usize) {
        self.set(
            run,
            Performed {
                status: Status::Skip,
                ..Performed::default()
            },
        );
    }
}

fn show(of: &SuiteFile, view: &dyn View, happened: &Happened) {
    view.event(&match happened {
        Happened::FileBegins => Event::FileBegins(of),
        Happened::RunEnds(run, done) => Event::RunEnds(of, *run, done),
        Happened::TeardownBegins => Event::TeardownBegins(of),
        Happened::TeardownOfRunEnds(run, done) => Event::TeardownOfRunEnds(of, *run, done),
        Happened::FileEnds(status, problems) => Event::FileEnds(of, *status, problems),
    });
}

/// Runs the tests of all files with all programs, or the sweepers of the files. Returns the results.
pub async fn run(acceptance: Acceptance<'_>) -> SuiteResult {
    let mut jobs = Vec::new();
    for file in acceptance.files {
        let programs = match acceptance.sweep {
            true if file.sweepers.is_empty() => continue,
            // Sweepers do not depend on the program.
            true => &[None][..],
            false => &acceptance.programs.iter().map(Some).collect::<Vec<_>>(),
        };
        let parts = programs
            .iter()
            .map(|program| (*program, shown(file, *program, &acceptance)));
        jobs.push((file, parts.collect::<Vec<_>>()));
    }
    let all: Vec<SuiteFile> = jobs
        .iter()
        .flat_map(|(_, parts)| parts)
        .map(|(_, of)| of.clone())
        .collect();
    acceptance.view.event(&Event::SuiteBegins(&all));
    let is_alone = acceptance.parallelism <= 1 || jobs.len() <= 1;
    let mut done = futures::stream::iter(jobs.iter().map(|(file, parts)| async move {
        let mut ended = Vec::new();
        // The programs come one after the other: they could use the same names in the account of the test.
        for (program, of) in parts {
            if acceptance.stop.is_requested() {
                break;
            }
            let mut told = Told {
                of,
                view: acceptance.view,
                clock: acceptance.clock,
                kept: (!is_alone).then(Vec::new),
                statuses: vec![Status::Pending; of.file.runs.len()],
            };
            told.tell(Happened::FileBegins);
            let (status, problems) = match program {
                Some(program) => perform(&acceptance, file, program, &mut told).await,
                None => sweep(&acceptance, file, &mut told).await,
            };
            told.tell(Happened::FileEnds(status, problems));
            for happened in told.kept.iter().flatten() {
                show(of, acceptance.view, happened);
            }
            ended.push(Done {
                name: of.file.name.clone(),
                status,
                runs: told.statuses,
            });
        }
        ended
    }))
    .buffer_unordered(acceptance.parallelism.max(1));
    let mut result = SuiteResult {
        status: Status::Pass,
        ..SuiteResult::default()
    };
    while let Some(ended) = done.next().await {
        for done in ended {
            result.status = result.status.max(done.status);
            done.runs
                .into_iter()
                .for_each(|status| Counts::add(&mut result.counts, status));
            result.files.push((done.name, done.status));
        }
    }
    if acceptance.stop.is_requested() {
        // Steps may have been skipped, so the result must not be a success.
        result.status = result.status.max(Status::Error);
    }
    result
}

/// Converts the file to the suite file that the views of `test` show, with a run for each step.
fn shown(file: &AcceptanceFile, program: Option<&Program>, acceptance: &Acceptance<'_>) -> SuiteFile {
    let runs = match acceptance.sweep {
        true => file
            .sweepers
            .iter()
            .map(|sweeper| test_run(&sweeper.name, &sweeper.range, Vec::new()))
            .collect(),
        false => all_steps(file)
            .map(|step| test_run(&step.name, &step.range, rules(step)))
            .collect(),
    };
    let name = match program.filter(|_| acceptance.programs.len() > 1) {
        Some(program) => format!("{} ({})", file.name, program.label),
        None => file.name.to_string(),
    };
    SuiteFile {
        file: Arc::new(TestFile {
            name: name.into(),
            in_test_dir: true,
            runs,
            ..TestFile::default()
        }),
        modules: Vec::new(),
    }
}

fn all_steps(file: &AcceptanceFile) -> impl Iterator<Item = &Step> {
    file.steps.iter().chain(&file.destroyed)
}

fn test_run(name: &Arc<str>, range: &Range, asserts: Vec<CheckRule>) -> TestRun {
    TestRun {
        name: name.clone(),
        apply: true,
        options: RunOptions::default(),
        variables: Default::default(),
        module: None,
        providers: Vec::new(),
        asserts,
        expect_failures: Vec::new(),
        overrides: Vec::new(),
        state_key: None,
        parallel: false,
        range: range.clone(),
    }
}

/// Returns a rule for each check of a step, since reports count them.
fn rules(step: &Step) -> Vec<CheckRule> {
    let rule = |range: &Range| {
        let literal = || Expr::Literal {
            value: Value::bool(true),
            range: range.clone(),
        };
        CheckRule {
            condition: literal(),
            error_message: literal(),
            range: range.clone(),
        }
    };
    let mut ranges: Vec<&Range> = Vec::new();
    ranges.extend(step.expect_error.iter().map(|(_, range)| range));
    ranges.extend(step.actions.iter().map(|(_, range)| range));
    for check in step.planned.iter().chain(&step.states) {
        ranges.extend(check.action.iter().map(|(_, range)| range));
        ranges.extend(check.values.iter().map(|(.., range)| range));
        ranges.extend(check.matches.iter().map(|(.., range)| range));
        let paths = [&check.set, &check.null, &check.unknown, &check.sensitive];
        ranges.extend(paths.into_iter().flatten().map(|(_, range)| range));
    }
    ranges.extend(step.imports.iter().map(|import| &import.range));
    ranges
        .into_iter()
        .map(rule)
        .chain(step.asserts.iter().cloned())
        .collect()
}

/// Returns the first of these environment variables that is not set.
fn missing<'v>(acceptance: &Acceptance<'_>, names: &'v [String]) -> Option<&'v String> {
    names.iter().find(|name| acceptance.environment.get(name).is_none())
}

fn not_set(what: &str, variable: &str, at: Option<&Range>) -> Diagnostic {
    let problem = Diagnostic::warning(
        "Tests skipped",
        format!("{what} needs the environment variable {variable}, which is not set."),
    );
    match at {
        Some(range) => problem.at(range),
        None => problem,
    }
}

/// Runs the steps of a file with a program.
async fn perform(
    acceptance: &Acceptance<'_>,
    file: &AcceptanceFile,
    program: &Program,
    told: &mut Told<'_>,
) -> (Status, Diagnostics) {
    if let Some(variable) = missing(acceptance, &file.skip_unless) {
        (0..told.statuses.len()).for_each(|run| told.skips(run));
        return (Status::Skip, not_set(&file.name, variable, None).into());
    }
    let workspace = Workspace::create(
        program,
        acceptance.tested,
        file.source.as_deref(),
        acceptance.environment,
        acceptance.stop,
    );
    let workspace = match workspace {
        Ok(workspace) => workspace,
        Err(error) => {
            let detail = format!(
                "The temporary directory for {} cannot be written: {}.",
                file.name,
                files::io_reason(&error)
            );
            return (Status::Error, Diagnostic::error("Failed to begin", detail).into());
        }
    };
    let mut steps = Steps::new(file, workspace);
    let mut is_usable = true;
    for (run, step) in file.steps.iter().enumerate() {
        if !is_usable || acceptance.stop.is_requested() {
            told.skips(run);
            continue;
        }
        let began = told.begins(run);
        let done = steps.perform(step).await;
        is_usable = matches!(done.status, Status::Pass | Status::Fail);
        told.ends(run, began, done);
    }
    let mut left = false;
    if !acceptance.stop.is_cancelled() {
        told.tell(Happened::TeardownBegins);
        let destroyed = steps.destroy().await;
        left = destroyed.diagnostics.has_errors();
        if left {
            told.tell(Happened::TeardownOfRunEnds(
                file.steps.len().saturating_sub(1),
                destroyed,
            ));
        }
    }
    if let Some(step) = &file.destroyed {
        let run = file.steps.len();
        if left || acceptance.stop.is_requested() {
            told.skips(run);
        } else {
            let began = told.begins(run);
            let done = steps.perform(step).await;
            told.ends(run, began, done);
        }
    }
    let mut status = told
        .statuses
        .iter()
        .copied()
        .max()
        .unwrap_or(Status::Pass)
        .max(Status::Skip);
    if left {
        status = Status::Error;
    }
    let mut problems = Diagnostics::new();
    if acceptance.stop.is_cancelled() {
        status = Status::Error;
        problems.extend(steps.interrupted());
    }
    (status, problems)
}

/// Runs the sweepers of a file.
async fn sweep(acceptance: &Acceptance<'_>, file: &AcceptanceFile, told: &mut Told<'_>) -> (Status, Diagnostics) {
    let mut problems = Diagnostics::new();
    for (run, sweeper) in file.sweepers.iter().enumerate() {
        let missing = missing(acceptance, &sweeper.skip_unless);
        if missing.is_some() || acceptance.stop.is_requested() {
            problems.extend(missing.map(|variable| {
                let what = format!("The sweeper \"{}\"", sweeper.name);
                not_set(&what, variable, Some(&sweeper.range))
            }));
            told.skips(run);
            continue;
        }
        let began = told.begins(run);
        let done = match swept(acceptance, file, sweeper).await {
            Ok(()) => Performed {
                status: Status::Pass,
                ..Performed::default()
            },
            Err(problem) => Performed {
                status: Status::Error,
                diagnostics: problem.at(&sweeper.range).into(),
                ..Performed::default()
            },
        };
        told.ends(run, began, done);
    }
    let status = told.statuses.iter().copied().max().unwrap_or(Status::Pass);
    (status, problems)
}

/// Runs the commands of a sweeper in the directory of its file.
async fn swept(acceptance: &Acceptance<'_>, file: &AcceptanceFile, sweeper: &Sweeper) -> Result<(), Diagnostic> {
    let logs = PrivateDirectory::create_in(&std::env::temp_dir()).map_err(|error| {
        let detail = format!(
            "The temporary directory cannot be written: {}.",
            files::io_reason(&error)
        );
        Diagnostic::error("Failed to begin", detail)
    })?;
    for words in &sweeper.run {
        let Some((name, arguments)) = words.split_first() else {
            continue;
        };
        let mut command = Command::new(name);
        command.args(arguments);
        match run_in(command, name, &file.dir, logs.path(), acceptance.stop).await {
            Ok(ran) if ran.status.success() => {}
            Ok(ran) => return Err(ran.failure(&format!("\"{name}\" has failed"))),
            Err(NotRun::Failed(problem)) => return Err(problem),
            Err(NotRun::Stopped) => return Err(Diagnostic::error("Interrupted", format!("\"{name}\" was ended."))),
        }
    }
    Ok(())
}
