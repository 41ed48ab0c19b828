//! `provider check`: conformance of a provider executable to the plugin protocol.

use std::path::Path;
use std::sync::Arc;

use authors::check::{Outcome as Found, Report, Row, Subject, check};
use cty::Value;
use lang::body::decode_body;
use lang::eval::Context;
use lang::scope::Constant;
use plugins::Program;
use provider::Provider;
use serde_json::{Value as Json, json};
use syntax::{Diagnostics, SourceMap};
use views::json::Object;
use views::terminal;
use views::wrap::wrap;

use super::{Executable, one};
use crate::args::flags::{self, Flags, FromFlags};
use crate::commands::Command;
use crate::outcome::{Failure, Outcome, Within};
use crate::session::Session;

pub const COMMAND: Command = Command {
    path: "provider check",
    about: "Check that a provider keeps the rules of the plugin protocol",
    positional: "DIR|EXECUTABLE",
    details: "Starts a provider, in whatever language it is written, and sends it legal, wrong and hostile requests: protocols, \
      TLS, signals and end of the process; rules of schemas; malformed messages; configurations that are empty or unknown; \
      plans of the same object, imports of identifiers that do not exist, objects of its own version. No object is created and \
      no data source is read. A provider that has arguments is configured only with -config, and without it \
      plans and imports are left out. The status is 1 if a check has failed; warnings are about what is not forbidden.",
    declare: flags::declare::<Arguments>,
    refused: &[],
    run: |session, matches| run(session, &flags::read(matches)),
};

struct Arguments {
    config: Option<String>,
    name: Option<String>,
    timeout: String,
    json: bool,
    positional: Vec<String>,
}

impl FromFlags for Arguments {
    fn read(flags: &mut Flags<'_>) -> Arguments {
        Arguments {
            config: flags.value(
                "config",
                "FILE",
                "Configure the provider with the arguments in this file, which are those of a provider block, without references. \
                 Use credentials of a test account: imports may reach the service.",
            ),
            name: flags.value(
                "name",
                "NAME",
                "Name of the provider, if that of its executable is not terraform-provider-NAME.",
            ),
            timeout: flags.value_or(
                "timeout",
                "DURATION",
                "10s",
                "Time limit of each start, each request and each end.",
            ),
            json: flags.switch("json", false, "Output the report as JSON."),
            positional: flags.positional(),
        }
    }
}

fn run(session: &Session, arguments: &Arguments) -> Result<Outcome, Failure> {
    let target = Path::new(one(
        &arguments.positional,
        "the provider's executable, or the directory of its project",
    )?);
    let limit = gotext::duration::parse(&arguments.timeout).filter(|limit| !limit.is_zero());
    let Some(limit) = limit else {
        return Err(Failure::flag(format!(
            "invalid value {:?} for flag -timeout: a duration such as 10s is needed",
            arguments.timeout
        )));
    };
    let name = arguments.name.as_deref();
    let executable = match target.is_dir() {
        true => Executable::in_directory(target, name)?,
        false => Executable::at(target, name)?,
    };
    if !executable.path.is_file() {
        return Err(Failure::new(
            "No provider executable",
            format!("The file {} does not exist.", target.display()),
        ));
    }
    let config = match &arguments.config {
        Some(file) => Some(configuration(session, &executable, file)?),
        None => None,
    };
    let host = session.plugin_host()?;
    let start = || -> Result<Arc<dyn Provider>, Diagnostics> {
        let program = Program::Executable {
            path: executable.path.clone(),
            package: None,
        };
        host.provider(&executable.address(), program)
    };
    let subject = Subject {
        program: &executable.path,
        name: &executable.name,
        start: &start,
        config,
        limit,
    };
    let report = session.runtime()?.block_on(check(&subject));
    let status = u8::from(report.count(Found::Failed) > 0);
    let outcome = match arguments.json {
        true => Outcome::document(&document(&executable.name, &report)),
        false => Outcome::text(shown(session, &report)),
    };
    Ok(outcome.with_status(status))
}

/// Reads the arguments of the provider from a file.
fn configuration(session: &Session, executable: &Executable, file: &str) -> Result<Value, Failure> {
    let bytes = std::fs::read(file).map_err(|error| {
        Failure::new(
            "Failed to read configuration",
            format!("The file {file} cannot be read: {}.", files::io_reason(&error)),
        )
    })?;
    let schema = executable.schema(session)?;
    let mut sources = SourceMap::default();
    sources.insert(file, String::from_utf8_lossy(&bytes).into_owned());
    let (body, mut problems) = syntax::parser::parse_file(file, &bytes);
    let (value, more) = decode_body(&body, &schema.provider.block, Context::new(&Constant));
    problems.extend(more);
    problems.into_result(value).within(&sources)
}

fn document(name: &str, report: &Report) -> Json {
    let row = |row: &Row| {
        Json::from(
            Object::default()
                .with("group", row.group)
                .with("name", row.name.clone())
                .with("outcome", row.outcome.name())
                .with_content("detail", row.detail.clone()),
        )
    };
    let counts = Found::ALL.map(|outcome| (outcome.name().to_owned(), Json::from(report.count(outcome))));
    json!({
        "format_version": "1.0",
        "provider": name,
        "protocols": report.protocols,
        "counts": serde_json::Map::from_iter(counts),
        "rows": report.rows.iter().map(row).collect::<Vec<_>>(),
    })
}

fn shown(session: &Session, report: &Report) -> String {
    let style = session.ui.style();
    let width = session.ui.width().clamp(40, 100);
    let mut out = String::new();
    let mut group = "";
    for row in &report.rows {
        if row.group != group {
            let gap = if group.is_empty() { "" } else { "\n" };
            group = row.group;
            out.push_str(&format!("{gap}{}\n", style.bold(format!("{group}:"))));
        }
        let mark = match row.outcome {
            Found::Passed => style.green("passed "),
            Found::Warning => style.yellow("warning"),
            Found::Failed => style.red("failed "),
            Found::Skipped => "skipped".to_owned(),
        };
        for (at, line) in wrap(&row.name, width - 11).iter().enumerate() {
            let left = if at == 0 { &*mark } else { "       " };
            out.push_str(&format!("  {left}  {}\n", terminal::shown(line)));
        }
        // Details contain texts of the provider, which may contain control characters.
        for line in wrap(&row.detail, width - 13).iter().filter(|line| !line.is_empty()) {
            out.push_str(&format!("             {}\n", terminal::shown(line)));
        }
    }
    let count = |outcome| report.count(outcome);
    let warnings = match count(Found::Warning) {
        1 => "1 warning".to_owned(),
        number => format!("{number} warnings"),
    };
    out.push_str(&format!(
        "\n{} passed, {warnings}, {} failed, {} skipped.\n",
        count(Found::Passed),
        count(Found::Failed),
        count(Found::Skipped)
    ));
    out
}
