//! The command `plan`, which shows or saves a plan.

use addrs::Program;
use engine::inputs::PlanOptions;
use engine::plan::{ImportedBy, Mode, Plan};
use engine::planner::Planning;
use stores::generated::{target_exists, write_new};
use syntax::Diagnostic;
use views::plan::{Format, Verbosity};
use views::verb::Verb;

use crate::args::flags::{self, Flags, FromFlags};
use crate::args::groups::{ModeFlags, OperationFlags, StateFlags, VariableFlags, state_to_read};
use crate::args::operation::{OperationArguments, plan_options};
use crate::commands::{Command, no_positional};
use crate::guards::{GUARDED, Kinds, guarded};
use crate::operation::Operation;
use crate::outcome::{Failure, Outcome, Status};
use crate::remote_run;
use crate::session::Session;
use views::wrap::wrapped;

pub const COMMAND: Command = Command {
    path: "plan",
    about: "Show changes required by the current configuration",
    positional: "",
    details: "Compares the configuration with the state and with the objects that exist, and shows what apply would \
              do. Nothing is changed.",
    declare: flags::declare::<Arguments>,
    refused: &[],
    run: |session, matches| run(session, &flags::read(matches)),
};

struct Arguments {
    modes: ModeFlags,
    operation: OperationFlags,
    positional: Vec<String>,
    out: Option<String>,
    detailed_exitcode: bool,
    fail_on: Option<String>,
    junit_xml: Option<String>,
    generate_config_out: Option<String>,
    state: Option<String>,
}

impl FromFlags for Arguments {
    fn read(flags: &mut Flags<'_>) -> Arguments {
        flags.summary();
        flags.plan_format();
        flags.show_sensitive();
        let modes = ModeFlags::read(flags);
        VariableFlags::read(flags);
        Arguments {
            modes,
            operation: OperationFlags::read(flags),
            positional: flags.positional(),
            out: flags.value(
                "out",
                "PATH",
                "Write a plan file to this path, which can be given to apply.",
            ),
            detailed_exitcode: flags.switch(
                "detailed-exitcode",
                false,
                "Exit with status 0 if there is nothing to do, 1 after an error, 2 if there are changes.",
            ),
            fail_on: flags.value(
                "fail-on",
                "KINDS",
                "Exit with status 3 if the plan has changes of these kinds, such as replace,destroy.",
            ),
            junit_xml: flags.value(
                "junit-xml",
                "PATH",
                "Also write a JUnit report to this path. Objects that were changed outside since the last apply are its failures.",
            ),
            generate_config_out: flags.value(
                "generate-config-out",
                "PATH",
                "Write configuration for imported objects that have none to this file, which must not exist yet.",
            ),
            state: state_to_read(flags),
        }
    }
}

fn run(session: &Session, arguments: &Arguments) -> Result<Outcome, Failure> {
    no_positional(&arguments.positional, "plan")?;
    let generate = arguments.generate_config_out.as_deref();
    let options = PlanOptions {
        generate_config: generate.is_some(),
        ..plan_options(&arguments.modes, session.ui.program)?
    };
    // The file is checked before planning, which may take long.
    if let Some(path) = generate {
        can_generate(path, options.mode)?;
    }
    let fail_on = match &arguments.fail_on {
        Some(written) => Some((Kinds::parse("fail-on", written, false)?, written)),
        None => None,
    };
    let files = StateFlags {
        state: arguments.state.clone(),
        ..StateFlags::default()
    };
    let operation_arguments = OperationArguments::new(files, &arguments.operation);
    if let Some(status) = remote(session, arguments, &operation_arguments, &options)? {
        return Ok(status.into());
    }
    let operation = Operation::begin(session, &operation_arguments, options.mode, Verb::Plan)?;
    let Planning {
        plan,
        schemas,
        diagnostics: mut problems,
        ..
    } = operation.plan(&options);
    if let Some(path) = &arguments.junit_xml {
        let style = session.invocation.shown.style(&session.ui);
        let (view, sources) = (plan.as_ref().map(Plan::view), &operation.project.sources);
        let text = views::junit::plan_report(view, &schemas, style, &problems, sources);
        problems.extend(write_report(path, &text).err());
    }
    let Some(plan) = plan else {
        let failure = Failure::within(problems, &operation.project.sources);
        return operation.finish(Err(failure));
    };
    let mut generated = None;
    // A plan with errors may have read only some of the objects. Without the file, the next run can write all of them.
    if let Some(path) = generate.filter(|_| !plan.errored && !plan.generated_config.is_empty()) {
        match write_generated(path.as_ref(), &plan, session.ui.program.tool) {
            Ok(()) => generated = Some(path),
            Err(problem) => problems.push(problem),
        }
    }
    session.streams().for_each(|stream| stream.plan(plan.view()));
    if session.stream.is_none() {
        views::plan::show(&session.ui, plan.view(), &schemas, session.invocation.shown);
    }
    let verdict = fail_on.map(|(kinds, written)| guarded(plan.view(), &kinds, written));
    let guarded = verdict.and_then(|verdict| verdict.reported(session.stream.as_ref()));
    let is_guarded = guarded.is_some();
    problems.extend(guarded);
    let errored = plan.errored || problems.has_errors();
    let mut outcome = Outcome::success().and_problems(problems, &operation.project.sources);
    if outcome.status == 0 && arguments.detailed_exitcode && plan.is_applyable() {
        outcome.status = 2;
    }
    if is_guarded && !errored {
        outcome.status = GUARDED;
    }
    let applyable = plan.is_applyable();
    let out = arguments.out.as_deref();
    // A plan with errors is saved for display; apply refuses it. An interrupted plan is not saved.
    if let Some(out) = out
        && !operation.interrupted()
        && let Err(problems) = operation.save_plan(out.as_ref(), plan)
    {
        let outcome = outcome.and_problems(problems, &operation.project.sources);
        return operation.finish(Ok(outcome));
    }
    let as_text = session.stream.is_none() && session.invocation.shown.format == Format::Text;
    if applyable && !errored && as_text && !session.env.in_automation() {
        outcome = outcome.and_text(next_step(session, generated, out));
    }
    operation.finish(Ok(outcome))
}

/// Makes the plan on the server, if the workspace's operations run there; otherwise returns `None`.
fn remote(
    session: &Session,
    arguments: &Arguments,
    of_operation: &OperationArguments,
    options: &PlanOptions,
) -> Result<Option<Status>, Failure> {
    let request = remote_run::Request {
        verb: Verb::Plan,
        arguments: of_operation,
        options,
        auto_approve: false,
        only_local: only_local(session, arguments),
        out: arguments.out.as_deref(),
        generate: arguments.generate_config_out.as_deref(),
        detailed_exitcode: arguments.detailed_exitcode,
        saved: None,
    };
    remote_run::perform(session, &request)
}

/// Returns the first flag that a run on a server does not support, if one is set.
fn only_local(session: &Session, arguments: &Arguments) -> Option<&'static str> {
    let flags = [
        ("-fail-on", arguments.fail_on.is_some()),
        ("-junit-xml", arguments.junit_xml.is_some()),
        ("-format", session.invocation.shown.format != Format::Text),
        ("-verbosity", session.invocation.shown.verbosity != Verbosity::Normal),
    ];
    flags.into_iter().find(|(_, is_set)| *is_set).map(|(flag, _)| flag)
}

fn write_report(path: &str, text: &str) -> Result<(), Diagnostic> {
    std::fs::write(path, text).map_err(|e| {
        Diagnostic::error(
            "Failed to write the report",
            format!("The file {path} cannot be written: {}.", files::io_reason(&e)),
        )
    })
}

/// Reports an error if configuration is to be generated in a mode without imports, or into an existing file.
fn can_generate(path: &str, mode: Mode) -> Result<(), Failure> {
    if mode != Mode::Normal {
        return Err(Failure::usage(
            "Invalid generate-config-out flag",
            "The option -generate-config-out writes blocks for objects that a plan imports. With -destroy or -refresh-only nothing is \
             imported.",
        ));
    }
    match target_exists(path) {
        Some(problem) => Err(problem.into()),
        None => Ok(()),
    }
}

/// Returns the text below a plan: how to apply it.
fn next_step(session: &Session, generated: Option<&str>, out: Option<&str>) -> String {
    let ui = &session.ui;
    let Program { tool, command } = ui.program;
    let mut text = views::plan::rule(ui.style(), ui.width());
    if let Some(path) = generated {
        let note = format!(
            "{tool} wrote blocks for the imported objects to {path}. Check them, and complete what the provider left open, before they \
             become part of the configuration."
        );
        text.push_str(&format!("\n{}\n", wrapped(&note, ui.width())));
    }
    text.push_str(&match out {
        None => views::plan::not_saved(ui.width(), command),
        Some(out) => {
            // The path of the plan is relative to the directory of -chdir.
            let global = session.invocation.typed.iter().take_while(|word| word.starts_with('-'));
            let global = global.filter(|word| word.trim_start_matches('-').starts_with("chdir="));
            let words: Vec<String> = std::iter::once(command.to_owned()).chain(global.cloned()).collect();
            views::plan::saved(out, ui.width(), &views::command_line::joined(&words))
        }
    });
    text
}

/// Writes the blocks that were generated for imports to a new file.
fn write_generated(path: &std::path::Path, plan: &Plan, tool: &str) -> Result<(), Diagnostic> {
    let mut text = format!(
        "# __generated__ by {tool}\n# Please review these resources and move them into your main configuration files.\n"
    );
    for (address, block) in &plan.generated_config {
        let change = plan.changes.iter().find(|c| c.address == *address);
        text.push_str(&format!("\n# __generated__ by {tool}"));
        if let Some(ImportedBy::Id(id)) = change.and_then(|c| c.importing.as_ref()) {
            text.push_str(" from ");
            text.push_str(&lang::render::quote(id));
        }
        text.push('\n');
        text.push_str(block);
        text.push('\n');
    }
    write_new(path, &text)
}
