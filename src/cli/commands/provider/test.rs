//! `provider test`: acceptance tests of a provider executable.

use std::path::{Path, PathBuf};

use authors::acceptance::file::{AcceptanceFile, SUFFIX};
use authors::acceptance::program::{Program, Tested};
use authors::acceptance::{Acceptance, read_all, run as run_tests};
use engine::stop::Stop;
use syntax::{Diagnostic, Diagnostics, SourceMap};
use testing::{Status, View};
use views::suite::{Human, Machine, Report};

use super::{Executable, one};
use crate::args::flags::{self, Flags, FromFlags};
use crate::commands::Command;
use crate::outcome::{Failure, Outcome};
use crate::session::Session;
use crate::{interrupt, process};

pub const COMMAND: Command = Command {
    path: "provider test",
    about: "Run the acceptance tests of a provider",
    positional: "DIR|EXECUTABLE",
    details: "Runs the steps in files that end in .acctest.hcl, against a provider executable in any language. A step plans and applies \
      a configuration, plans once more, which must find no change, and checks actions, planned values, the state, errors and imports. \
      In the end everything is destroyed. With a directory, the project is there, and its newest executable is used; with an executable, \
      the project is the working directory. Each file and program has a temporary directory of its own, in which a development override \
      makes the program use the executable. \"help provider\" describes the files.",
    declare: flags::declare::<Arguments>,
    refused: &[],
    run: |session, matches| run(session, &flags::read(matches)),
};

struct Arguments {
    with: Vec<String>,
    filter: Vec<String>,
    test_directory: String,
    name: Option<String>,
    parallelism: String,
    junit_xml: Option<String>,
    sweep: bool,
    positional: Vec<String>,
}

impl FromFlags for Arguments {
    fn read(flags: &mut Flags<'_>) -> Arguments {
        flags.json_stream();
        Arguments {
            with: flags.values(
                "with",
                "PROGRAM",
                "Program that carries out the steps: terraform, tofu or another one, as a path or a name. Can be repeated. Without \
                 it, this program does.",
            ),
            filter: flags.values("filter", "FILE", "Run only this file. Can be repeated."),
            test_directory: flags.value_or(
                "test-directory",
                "DIR",
                "tests",
                "Directory of the files, in that of the project.",
            ),
            name: flags.value(
                "name",
                "NAME",
                "Name of the provider, if that of its executable is not terraform-provider-NAME.",
            ),
            parallelism: flags.value_or(
                "parallelism",
                "N",
                "4",
                "How many files may be run at the same time. With 1, results are shown as they come.",
            ),
            junit_xml: flags.value(
                "junit-xml",
                "PATH",
                "Write a report in the form of JUnit to this file, too.",
            ),
            sweep: flags.switch(
                "sweep",
                false,
                "Run the commands of the sweeper blocks in place of the steps: they remove what earlier tests have left.",
            ),
            positional: flags.positional(),
        }
    }
}

fn run(session: &Session, arguments: &Arguments) -> Result<Outcome, Failure> {
    let target = Path::new(one(
        &arguments.positional,
        "the directory of the provider's project, or its executable",
    )?);
    let parallelism = arguments.parallelism.parse().ok().filter(|number| *number > 0);
    let Some(parallelism) = parallelism else {
        return Err(Failure::flag(format!(
            "invalid value {:?} for flag -parallelism: a number from 1 is needed",
            arguments.parallelism
        )));
    };
    let name = arguments.name.as_deref();
    let (root, executable) = match target.is_dir() {
        true => (target.to_owned(), Executable::in_directory(target, name)?),
        false => (PathBuf::from("."), Executable::at(target, name)?),
    };
    if !executable.path.is_file() {
        return Err(Failure::new(
            "No provider executable",
            format!("The file {} does not exist.", target.display()),
        ));
    }
    let (files, sources, warnings) = load(&root, arguments)?;
    session.show_now(&warnings, &sources);
    execute(session, arguments, &executable, &files, &sources, parallelism)
}

/// Reads the files that the options select.
fn load(root: &Path, arguments: &Arguments) -> Result<(Vec<AcceptanceFile>, SourceMap, Diagnostics), Failure> {
    let directory = Path::new(&arguments.test_directory);
    let dir = root.join(directory);
    let dir = std::path::absolute(&dir).unwrap_or(dir);
    let shown = match root.to_str() {
        None | Some("." | "./") => directory.to_path_buf(),
        Some(root) => Path::new(root).join(directory),
    };
    let (mut files, sources, problems) = read_all(&dir, &shown.to_string_lossy());
    if problems.has_errors() {
        return Err(Failure::within(problems, &sources));
    }
    let wanted = |file: &AcceptanceFile| {
        let is_named =
            |name: &String| **name == *file.name || Path::new(name).file_name() == Path::new(&*file.name).file_name();
        arguments.filter.is_empty() || arguments.filter.iter().any(is_named)
    };
    files.retain(wanted);
    if files.is_empty() {
        let detail = match arguments.filter.is_empty() {
            true => format!("The directory {} has no files that end in {SUFFIX}.", shown.display()),
            false => "No file has a name that the option -filter sets.".to_owned(),
        };
        return Err(Failure::new("No acceptance tests", detail));
    }
    Ok((files, sources, problems))
}

fn execute(
    session: &Session,
    arguments: &Arguments,
    executable: &Executable,
    files: &[AcceptanceFile],
    sources: &SourceMap,
    parallelism: usize,
) -> Result<Outcome, Failure> {
    let own = session.builtins.executable.to_string_lossy().into_owned();
    let names = match arguments.with.is_empty() {
        true => std::slice::from_ref(&own),
        false => &arguments.with[..],
    };
    let runtime = session.runtime()?;
    let programs = runtime.block_on(async {
        let mut found = Vec::new();
        for name in names {
            found.push(Program::find(name).await?);
        }
        Ok::<_, Diagnostic>(found)
    })?;
    let human = Human::new(session.ui.clone(), sources.clone(), false, session.form.compact);
    let machine = session
        .stream
        .as_ref()
        .map(|stream| Machine::new(stream.clone(), sources.clone(), false));
    let view: &dyn View = match &machine {
        Some(machine) => machine,
        None => &human,
    };
    let report = Report::new(view, sources.clone());
    let stop = Stop::new();
    let result = runtime.block_on(async {
        interrupt::listen_with_messages(
            session.ui.clone(),
            session.stream.clone(),
            stop.clone(),
            std::sync::Arc::default(),
        );
        run_tests(Acceptance {
            files,
            programs: &programs,
            tested: Tested {
                executable: &executable.path,
                name: &executable.name,
            },
            environment: &session.env,
            parallelism,
            sweep: arguments.sweep,
            view: &report,
            stop: &stop,
            clock: || process::now().into(),
        })
        .await
    });
    match &machine {
        Some(machine) => machine.ends(&result),
        None => human.ends(&result),
    }
    let outcome = Outcome::from(u8::from(result.status > Status::Pass));
    Ok(match &arguments.junit_xml {
        Some(path) => outcome.and_outcome(written(path, report.document(stop.is_requested()))),
        None => outcome,
    })
}

fn written(path: &str, document: String) -> Outcome {
    match std::fs::write(path, document) {
        Ok(()) => Outcome::success(),
        Err(error) => Failure::new(
            "Failed to write the JUnit report",
            format!("The file {path} cannot be written: {}.", files::io_reason(&error)),
        )
        .into(),
    }
}
