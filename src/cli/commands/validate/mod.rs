//! The command `validate`, which checks a configuration.

mod fix;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use config::files::{Disk, FileSource};
use config::{Config, TestFile, test_files};
use files::io_reason;
use stores::backend;
use syntax::{Diagnostics, SourceMap};
use testing::run_providers::{check_overrides_of_file, check_overrides_of_run, check_providers};
use views::json;

use crate::args::flags::{self, Flags, FromFlags};
use crate::args::groups::VariableFlags;
use crate::commands::Command;
use crate::outcome::{Failure, Outcome, Within as _};
use crate::process;
use crate::session::Session;
use crate::tested::{Purpose, modules_of};
use crate::validation::{beyond_loading, check};
use crate::watch::{Watch, beside};
use crate::workdir::{self, Project};

pub const COMMAND: Command = Command {
    path: "validate",
    about: "Check whether the configuration is valid",
    positional: "",
    details: "Checks the configuration files of a directory, without looking at state, variables or any object. Another directory \
              than the working directory has its own lock file and plugins if it was initialized; otherwise those of the working \
              directory are used. With -fix, mistakes \
              are mended of which it is certain what was meant: misspelt names, other quotation marks, and wrong or missing equals \
              signs, in the files of this directory and of its directory for tests. A file is written only if it has fewer errors \
              afterwards. With -watch, the configuration is checked again whenever a file changes.",
    declare: flags::declare::<Arguments>,
    refused: &[],
    run: |session, matches| run(session, &flags::read(matches)),
};

struct Arguments {
    positional: Vec<String>,
    json: bool,
    no_tests: bool,
    test_directory: Option<String>,
    query: bool,
    fix: bool,
    diff: bool,
    watch: bool,
}

impl FromFlags for Arguments {
    fn read(flags: &mut Flags<'_>) -> Arguments {
        flags.json_into();
        VariableFlags::read(flags);
        Arguments {
            positional: flags.positional(),
            json: flags.switch("json", false, "Produce output in a machine-readable JSON format."),
            query: flags.switch("query", false, "Check the query files (.tfquery.hcl), too."),
            fix: flags.switch(
                "fix",
                false,
                "Mend the mistakes of which it is certain what was meant, list what was mended, and show what remains.",
            ),
            diff: flags.switch(
                "diff",
                false,
                "With -fix: show the differences that it would make, and write nothing.",
            ),
            watch: flags.switch(
                "watch",
                false,
                "Go on afterwards: when a file changes, check the configuration again.",
            ),
            no_tests: flags.switch("no-tests", false, "Do not check test files."),
            test_directory: flags.value(
                "test-directory",
                "PATH",
                "The directory of test files, \"tests\" if it is not given.",
            ),
        }
    }
}

fn run(session: &Session, arguments: &Arguments) -> Result<Outcome, Failure> {
    let args = &arguments.positional;
    if args.len() > 1 {
        return Err(Failure::usage(
            "Too many command line arguments",
            "Expected at most one positional argument.",
        ));
    }
    let inside = match args.first() {
        Some(dir) => Some(enter(session, dir)?),
        None => None,
    };
    let session = inside.as_ref().unwrap_or(session);
    if let Some(why) = incompatible(arguments) {
        return Err(Failure::usage("Incompatible command-line flags", why));
    }
    if arguments.fix {
        return fix::fix(session, arguments);
    }
    if arguments.watch {
        return watch(session, arguments);
    }
    Ok(shown(session, arguments, &checked(session, arguments, &Disk)?))
}

/// Changes to the directory whose configuration is checked; returns the session there.
fn enter(session: &Session, dir: &str) -> Result<Session, Failure> {
    let entered = process::change_dir(dir).and_then(|()| process::working_dir());
    let here = entered.map_err(|e| {
        Failure::new(
            "Invalid directory",
            format!("The directory {dir} cannot be used: {}.", io_reason(&e)),
        )
    })?;
    // For modules of an initialized configuration, Terraform uses the lock file and plugins of the calling directory. A
    // directory that was initialized itself has its own.
    let data_dir = Path::new(session.env.data_dir());
    let is_initialized = data_dir.is_relative() && here.join(data_dir).is_dir();
    Ok(session.in_directory(if is_initialized {
        here
    } else {
        session.working_dir.clone()
    }))
}

/// Returns the reason why these flags exclude each other; `None` if they can be combined.
fn incompatible(arguments: &Arguments) -> Option<&'static str> {
    match arguments {
        Arguments {
            fix: false, diff: true, ..
        } => Some("The option -diff shows what -fix would change: use both together."),
        Arguments {
            fix: true, json: true, ..
        } => Some(
            "With -fix, files are changed and the changes are listed for people. Use -json in a run of its own afterwards.",
        ),
        Arguments {
            fix: true, watch: true, ..
        } => {
            Some("The options -fix and -watch exclude each other, since files that are being edited would be changed.")
        }
        Arguments {
            watch: true,
            json: true,
            ..
        } => Some("With -watch the command does not end, so it prints no JSON document. Leave out -watch or -json."),
        _ => None,
    }
}

/// Configuration with its diagnostics.
struct Checked {
    project: Project,
    problems: Diagnostics,
}

/// Validates the configuration in these files.
fn checked(session: &Session, arguments: &Arguments, files: &dyn FileSource) -> Result<Checked, Failure> {
    let (mut project, mut problems) = workdir::read_from(session, files, arguments.query);
    problems.extend(beyond_loading(session, &project, &problems));
    problems.extend(backend::check_type(&session.stores(), &project.config));
    if !arguments.no_tests {
        let given = arguments.test_directory.as_deref();
        let dir = test_files::directory(given).within(&project.sources)?;
        let tests = test_files::read(files, ".", dir, given.is_some());
        project.sources.extend(tests.sources);
        // If the configuration has errors, checking the tests would mostly repeat them.
        let readable = !tests.diagnostics.has_errors() && !problems.has_errors();
        problems.extend(tests.diagnostics);
        if readable {
            problems.extend(check_tests(session, &mut project, tests.files));
        }
    }
    problems.sort();
    Ok(Checked { project, problems })
}

/// Returns the outcome with all diagnostics.
fn shown(session: &Session, arguments: &Arguments, checked: &Checked) -> Outcome {
    let Checked { project, problems } = checked;
    let document = || {
        let document = json::diagnostics::validation(problems, &project.sources);
        Outcome::document(&document).with_status(u8::from(problems.has_errors()))
    };
    if arguments.json {
        return document();
    }
    let style = session.ui.style();
    let outcome = session
        .with_document(Outcome::success(), document)
        .and_problems(problems.clone(), &project.sources);
    if outcome.status == 0 {
        let text = if problems.is_empty() {
            format!("{} The configuration is valid.\n", style.good("Success!"))
        } else {
            format!(
                "{} The configuration is valid, but there were some validation warnings as shown above.\n",
                style.good("Success!")
            )
        };
        return outcome.and_line(text);
    }
    outcome
}

/// Validates the configuration, and again whenever a file changes, until an interrupt. Returns the status of the last validation.
fn watch(session: &Session, arguments: &Arguments) -> Result<Outcome, Failure> {
    let mut watch = Watch::new();
    loop {
        watch.begin();
        let checked = checked(session, arguments, &Disk)?;
        let status = session.render(shown(session, arguments, &checked));
        watch.also(beside([&checked.project.config]));
        if watch.wait(session)?.is_none() {
            return Ok(status.into());
        }
    }
}

/// Validates test files against the modules that they test, and these modules.
fn check_tests(session: &Session, project: &mut Project, tests: Vec<Arc<TestFile>>) -> Diagnostics {
    let root = Arc::new(project.config.clone());
    let tested = modules_of(session, &root, tests, Purpose::Checks);
    project.sources.extend(tested.sources);
    let mut problems = tested.problems;
    // Runs share modules, so the checked ones are recognized by their addresses in memory.
    let mut seen = BTreeSet::from([Arc::as_ptr(&root) as usize]);
    for suite in &tested.files {
        problems.extend(check_overrides_of_file(&suite.file, &suite.modules));
        for (run, module) in suite.file.runs.iter().zip(&suite.modules) {
            problems.extend(testing::expected::check(run));
            problems.extend(check_providers(&suite.file, run));
            problems.extend(check_overrides_of_run(run, module));
            if seen.insert(Arc::as_ptr(module) as usize) {
                // The project's sources already contain these texts.
                let module = Project {
                    config: Config::clone(module),
                    sources: SourceMap::default(),
                };
                problems.extend(check(session, &module).unwrap_or_else(|problems| problems));
            }
        }
    }
    problems
}
