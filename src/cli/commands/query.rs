//! `query`.

use std::time::Duration;

use addrs::Mode as ResourceMode;
use config::files::Disk;
use engine::inputs::{PlanOptions, QueryOptions};
use engine::planner::Planning;
use views::program;

use crate::args::UsageError;
use crate::args::flags::{self, Flags, FromFlags};
use crate::args::groups::{LockFlags, VariableFlags};
use crate::commands::plan::{target_exists, write_new};
use crate::commands::{Command, no_positional};
use crate::operation::{Operation, OperationArguments};
use crate::runs;
use crate::session::{Session, Status};
use crate::workdir;

pub const COMMAND: Command = Command {
    path: "query",
    about: "Search and list remote infrastructure",
    positional: "",
    details: "Has providers list existing objects, as the list blocks of the query files (.tfquery.hcl) of the working \
              directory ask for them, and shows what they find. With -generate-config-out it writes the blocks that \
              import the objects. Nothing is changed.",
    declare: flags::declare::<Arguments>,
    refused: &[("policies", "there are no policies to evaluate.")],
    run: |session, matches| run(session, &flags::read(matches)),
};

struct Arguments {
    variables: VariableFlags,
    positional: Vec<String>,
    generate_config_out: Option<String>,
}

impl FromFlags for Arguments {
    fn read(flags: &mut Flags<'_>) -> Arguments {
        flags.json_stream();
        Arguments {
            variables: VariableFlags::read(flags),
            positional: flags.positional(),
            generate_config_out: flags.value(
                "generate-config-out",
                "PATH",
                "Write resource and import blocks for all objects that are found to this file, which must not exist yet.",
            ),
        }
    }
}

fn run(session: &Session, arguments: &Arguments) -> Result<Status, UsageError> {
    no_positional(&arguments.positional, "query")?;
    let generate = arguments.generate_config_out.as_deref();
    if let Some(problem) = generate.and_then(target_exists) {
        session.show(&problem.into(), &syntax::SourceMap::default());
        return Ok(1);
    }
    let options = PlanOptions {
        query: Some(QueryOptions {
            generate_config: generate.is_some(),
        }),
        ..PlanOptions::default()
    };
    let operation_arguments = OperationArguments {
        lock: LockFlags {
            timeout: Some(Duration::ZERO),
        },
        variables: &arguments.variables.0,
        input: true,
        ..OperationArguments::default()
    };
    if !workdir::has_configuration() && !workdir::has_queries() {
        return Ok(session.fail(
            "No configuration files",
            "A query needs query files, and there are none in this directory. Write a list block into a file whose name \
             ends with .tfquery.hcl.",
        ));
    }
    let (project, problems) = workdir::read_from(session, &Disk, true);
    if problems.has_errors() {
        session.show(&problems, &project.sources);
        return Ok(1);
    }
    let is_list = |r: &config::Resource| r.address.mode == ResourceMode::List;
    if !project.config.root.module.resources.values().any(is_list) {
        session.show(&problems, &project.sources);
        return Ok(session.fail(
            "No resources to query",
            "The configuration has no list block: the query files (.tfquery.hcl) say what to look for.",
        ));
    }
    match runs::hosted::of_operation(session, &project.config) {
        Ok(None) => {}
        Ok(Some(hosted)) => {
            return Ok(session.fail(
                "Remote operations not supported",
                format!(
                    "The execution mode of the workspace \"{}\" is \"{}\", and queries run on this machine only. Set the environment \
                     variable TF_FORCE_LOCAL_BACKEND to have this one run here.",
                    hosted.workspace.name, hosted.workspace.execution_mode
                ),
            ));
        }
        Err(problems) => {
            session.show(&problems, &project.sources);
            return Ok(1);
        }
    }
    let operation = match Operation::for_query(session, &operation_arguments, project, problems) {
        Ok(operation) => operation,
        Err(status) => return Ok(status),
    };
    let Planning {
        plan,
        diagnostics: mut problems,
        ..
    } = operation.plan(&options);
    if let Some(plan) = &plan {
        if let Some(path) = generate
            && !problems.has_errors()
            && let Some(text) = views::query::generated_file(plan, program::tool())
            && let Err(problem) = write_new(path.as_ref(), &text)
        {
            problems.push(problem);
        }
        if session.stream.is_none() {
            views::query::warn_of_empty(&session.ui, plan);
        }
    }
    session.show(&problems, &operation.project.sources);
    let status = u8::from(problems.has_errors() || plan.is_none());
    Ok(super::plan::finish(session, operation, status))
}
