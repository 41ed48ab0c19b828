//! `console`: evaluates expressions.
//!
//! On a terminal, lines can be edited and recalled, an expression may continue over several lines while a bracket or heredoc is
//! open, and an error does not end the command. From a pipe each line is an expression; the first error ends the command, and
//! only the last value is printed.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::{BufRead as _, IsTerminal as _};
use std::sync::Arc;

use addrs::ModuleInstance;
use config::values;
use cty::Value;
use engine::console::{Console, INPUT_NAME, View};
use engine::functions::Functions;
use engine::inputs::PlanOptions;
use engine::planner::Planning;
use engine::requirements::function_providers_needed;
use files::io_reason;
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::MemHistory;
use rustyline::validate::Validator;
use syntax::content::suggest;
use syntax::token::TokenKind;
use syntax::{Diagnostic, Diagnostics, SourceMap};
use views::verb::Verb;

use crate::args::flags::{self, Flags, FromFlags};
use crate::args::groups::{LockFlags, StateFlags, VariableFlags, state_to_read};
use crate::args::operation::OperationArguments;
use crate::commands::Command;
use crate::operation::Operation;
use crate::outcome::{Failure, Outcome, Within as _};
use crate::session::Session;
use crate::workdir::{self, Project};

pub const COMMAND: Command = Command {
    path: "console",
    about: "Try expressions at an interactive command prompt",
    positional: "",
    details: "Evaluates expressions with the values of the configuration and the state. The state is not changed.",
    declare: flags::declare::<Arguments>,
    refused: &[],
    run: |session, matches| run(session, &flags::read(matches)),
};

struct Arguments {
    lock: LockFlags,
    positional: Vec<String>,
    state: Option<String>,
    plan: bool,
    scope: Option<String>,
}

impl FromFlags for Arguments {
    fn read(flags: &mut Flags<'_>) -> Arguments {
        // The flag is accepted because scripts for Terraform pass it.
        flags.switch(
            "input",
            true,
            "Has no effect: variables without a value are unknown, and never asked for.",
        );
        flags.json_into();
        VariableFlags::read(flags);
        Arguments {
            lock: LockFlags::read(flags),
            positional: flags.positional(),
            state: state_to_read(flags),
            plan: flags.switch(
                "plan",
                false,
                "Make a plan first, and evaluate with the objects as planned.",
            ),
            scope: flags.value(
                "scope",
                "MODULE",
                "Evaluate inside this module instance, such as 'module.a[0]', not in the root module.",
            ),
        }
    }
}

const HELP: &str = "The console evaluates expressions of the configuration language. What the\nconfiguration declares can be \
                    referred to as in the configuration: var.x, local.x,\nmodule.x.y, and resources with the attributes they \
                    have in the state.\n\nType an expression and press Enter to see its value. It may go on over several\n\
                    lines while a bracket is open. type(x) prints the type of a value.\n\nTo leave the console, type \"exit\", \
                    or press Control-C or Control-D.";

fn run(session: &Session, arguments: &Arguments) -> Result<Outcome, Failure> {
    if !arguments.positional.is_empty() {
        return Err(Failure::usage(
            "Too many command line arguments",
            "The console takes its expressions from standard input. To choose a working directory, use the global -chdir \
             flag.",
        ));
    }
    let module = match arguments.scope.as_deref().map(addrs::parse::module_instance) {
        None => ModuleInstance::root(),
        Some(Ok(module)) => module,
        Some(Err(e)) => return Err(Failure::new("Invalid module instance address", e.detail)),
    };
    let mut project = workdir::load(session)?;
    let variables = variables(session, &mut project).within(&project.sources)?;
    let operation_arguments = OperationArguments {
        files: StateFlags {
            state: arguments.state.clone(),
            ..StateFlags::default()
        },
        lock: arguments.lock,
        ..OperationArguments::default()
    };
    let operation = Operation::with_project(session, &operation_arguments, project, Verb::Console, Some(variables));
    let operation = operation?;
    let result = with_operation(session, arguments, &operation, module);
    operation.finish(result)
}

/// Returns the values of the root variables; those that are not set are unknown.
fn variables(session: &Session, project: &mut Project) -> Result<BTreeMap<Arc<str>, Value>, Diagnostics> {
    let root = project.config.root.module.clone();
    let mut collected = values::collect(&root, &session.set_variables());
    let stored = hosted::variables::stored(&session.hosted(), &project.config)?;
    values::complete(&root, &stored, &mut collected);
    project.sources.extend(collected.sources);
    let mut out: BTreeMap<Arc<str>, Value> = collected.values.into_iter().map(|(name, v)| (name, v.value)).collect();
    for name in collected.missing {
        if let Some(variable) = root.variables.get(&name) {
            out.insert(name, Value::unknown(variable.value_type()));
        }
    }
    if collected.diagnostics.has_errors() {
        return Err(collected.diagnostics);
    }
    session.show_now(&collected.diagnostics, &project.sources);
    Ok(out)
}

fn with_operation(
    session: &Session,
    arguments: &Arguments,
    operation: &Operation<'_>,
    module: ModuleInstance,
) -> Result<Outcome, Failure> {
    let sources = &operation.project.sources;
    let mut problems = operation.take_warnings();
    let (plan, schemas) = if arguments.plan {
        let Planning {
            plan,
            schemas,
            diagnostics,
            ..
        } = operation.plan_silently(&PlanOptions::default());
        problems.extend(diagnostics);
        if plan.is_none() {
            return Err(Failure::within(problems, sources));
        }
        (plan, schemas)
    } else {
        (None, operation.schemas().within(sources)?)
    };
    let config = &operation.project.config;
    let functions = operation.functions();
    problems.extend(operation.start_functions(&functions, function_providers_needed(config)));
    let environment = workdir::environment(session, &operation.workspace);
    let view = View {
        state: plan.as_ref().map_or(&operation.state, |p| &p.prior_state),
        plan: plan.as_ref(),
        schemas: &schemas,
        variables: &operation.variables.values,
        functions: &functions,
        environment: &environment,
    };
    let (console, found) = Console::new(config, view);
    for problem in found {
        // Planning has already reported many of these problems.
        if !problems.iter().any(|p| *p == problem) {
            problems.push(problem);
        }
    }
    let Some(console) = console else {
        operation.end_functions(&functions);
        return Err(Failure::within(problems, sources));
    };
    if problems.has_errors() {
        // As in Terraform, the console also starts with an invalid configuration, and uses its valid parts.
        problems.push(Diagnostic::warning(
            "Due to the problems above, some expressions may produce unexpected results.",
            "",
        ));
    }
    session.show_now(&problems, sources);
    let scope = module.to_string();
    let nodes = operation.project.config.nodes();
    let modules: Vec<String> = nodes.iter().map(|node| node.path.to_string()).collect();
    let Some(console) = console.inside(module) else {
        operation.end_functions(&functions);
        let near = suggest(&scope, modules.iter().map(String::as_str)).filter(|near| *near != scope);
        let hint = near.map_or_else(String::new, |near| format!(" Did you mean {near}?"));
        return Err(Failure::new(
            "Module instance not found",
            format!("There is no module instance {scope}, which the -scope option names, in the configuration.{hint}"),
        ));
    };
    let mut conversation = Conversation {
        session,
        operation,
        functions: &functions,
        console,
    };
    let result = if std::io::stdin().is_terminal() {
        conversation.terminal()
    } else {
        conversation.pipe()
    };
    operation.end_functions(&functions);
    result
}

struct Conversation<'a> {
    session: &'a Session,
    operation: &'a Operation<'a>,
    functions: &'a Functions<'a>,
    console: Console<'a>,
}

/// Result of evaluating one input.
enum Answer {
    Text(String),
    Wrong,
    Exit,
}

/// Returns the reason why the terminal cannot be used.
fn reason(error: &ReadlineError) -> String {
    match error {
        ReadlineError::Io(error) => io_reason(error),
        other => other.to_string(),
    }
}

impl Conversation<'_> {
    fn answer(&mut self, input: &str) -> Answer {
        match input.trim() {
            "" => Answer::Text(String::new()),
            "exit" => Answer::Exit,
            "help" => Answer::Text(HELP.into()),
            _ => match self.value(input) {
                Ok(value) => Answer::Text(lang::render::format_value(&value, 0)),
                Err(problems) => {
                    let mut sources = SourceMap::default();
                    // Without the text, the problems would be shown without an excerpt.
                    sources.insert(INPUT_NAME, input);
                    self.session.show_now(&problems, &sources);
                    Answer::Wrong
                }
            },
        }
    }

    fn value(&mut self, input: &str) -> Result<Value, Diagnostics> {
        let called = self.console.function_providers(input);
        let problems = self.operation.start_functions(self.functions, called);
        if problems.has_errors() {
            return Err(problems);
        }
        self.console.evaluate(input)
    }

    fn pipe(&mut self) -> Result<Outcome, Failure> {
        let mut last = String::new();
        for line in std::io::stdin().lock().lines() {
            let line = match line {
                Ok(line) => line,
                Err(e) => {
                    return Err(Failure::new(
                        "Cannot read expressions",
                        format!("Standard input cannot be read: {}.", io_reason(&e)),
                    ));
                }
            };
            match self.answer(line.trim()) {
                Answer::Text(text) => last = text,
                Answer::Wrong => return Ok(Outcome::from(1)),
                Answer::Exit => return Ok(Outcome::success()),
            }
        }
        Ok(Outcome::line(last))
    }

    fn terminal(&mut self) -> Result<Outcome, Failure> {
        let config = rustyline::Config::builder().auto_add_history(true).build();
        let editor = rustyline::Editor::<Typed, MemHistory>::with_history(config, MemHistory::new());
        let mut editor = match editor {
            Ok(editor) => editor,
            Err(e) => return Err(Failure::new("Cannot use the terminal", format!("{}.", reason(&e)))),
        };
        editor.set_helper(Some(Typed::default()));
        let mut input = String::new();
        loop {
            self.session.ui.flush();
            let prompt = if input.is_empty() { "> " } else { ": " };
            match editor.readline(prompt) {
                Ok(line) => {
                    input.push_str(&line);
                    // A heredoc begins and ends with a whole line.
                    input.push('\n');
                    if open(&input) {
                        continue;
                    }
                    match self.answer(&std::mem::take(&mut input)) {
                        Answer::Text(text) => self.session.message(text),
                        Answer::Wrong => {}
                        Answer::Exit => return Ok(Outcome::success()),
                    }
                }
                // An interrupt drops an unfinished input; with nothing typed, it ends the console.
                Err(ReadlineError::Interrupted) if !input.is_empty() => {
                    input.clear();
                    self.session.ui.line("(multi-line entry canceled)");
                }
                Err(ReadlineError::Interrupted) if editor.helper().is_some_and(|typed| typed.0.get()) => {}
                Err(ReadlineError::Interrupted | ReadlineError::Eof) => return Ok(Outcome::success()),
                Err(e) => return Err(Failure::new("Cannot read expressions", format!("{}.", reason(&e)))),
            }
        }
    }
}

/// Records whether the edited line has text, which is not known from an interrupt itself.
#[derive(Default)]
struct Typed(Cell<bool>);

impl Hinter for Typed {
    type Hint = String;

    fn hint(&self, line: &str, _: usize, _: &rustyline::Context<'_>) -> Option<String> {
        self.0.set(!line.is_empty());
        None
    }
}

impl Completer for Typed {
    type Candidate = String;
}

impl Highlighter for Typed {}
impl Validator for Typed {}
impl rustyline::Helper for Typed {}

/// Returns true if a bracket or heredoc is still open at the end of an input.
fn open(input: &str) -> bool {
    let file: Arc<str> = INPUT_NAME.into();
    let mut depth = 0usize;
    for token in &syntax::lexer::lex(&file, input, syntax::Pos::default()).list {
        match token.kind {
            // A string ends with its line, closed or not.
            TokenKind::OpenQuote | TokenKind::CloseQuote => {}
            kind if kind.is_opener() => depth += 1,
            kind if kind.is_closer() => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    depth > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expression_goes_on_while_something_is_open() {
        for (input, goes_on) in [
            ("1 + 1", false),
            ("[", true),
            ("{ a = [\n1\n]", true),
            ("{ a = [\n1\n]\n}", false),
            ("\"(\"", false),
            ("\"${f(", true),
            ("<<EOT\n", true),
            ("<<EOT\na(\n", true),
            ("<<EOT\na(\nEOT\n", false),
            ("f(<<-EOT\n", true),
            ("]", false),
            ("\"abc", false),
        ] {
            assert_eq!(open(input), goes_on, "{input:?}");
        }
    }
}
