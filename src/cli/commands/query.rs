//! The command `query`, which lists existing objects by `list` blocks.

use std::time::Duration;

use addrs::Mode as ResourceMode;
use config::files::Disk;
use engine::inputs::{PlanOptions, QueryOptions};
use engine::planner::Planning;
use stores::generated::{target_exists, write_new};

use crate::args::flags::{self, Flags, FromFlags};
use crate::args::groups::{LockFlags, VariableFlags};
use crate::args::operation::OperationArguments;
use crate::commands::{Command, no_positional};
use crate::operation::Operation;
use crate::outcome::{Failure, Outcome, Within as _};
use crate::session::Session;
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
    positional: Vec<String>,
    generate_config_out: Option<String>,
}

impl FromFlags for Arguments {
    fn read(flags: &mut Flags<'_>) -> Arguments {
        flags.json_stream();
        VariableFlags::read(flags);
        Arguments {
            positional: flags.positional(),
            generate_config_out: flags.value(
                "generate-config-out",
                "PATH",
                "Write resource and import blocks for all objects that are found to this file, which must not exist yet.",
            ),
        }
    }
}

fn run(session: &Session, arguments: &Arguments) -> Result<Outcome, Failure> {
    no_positional(&arguments.positional, "query")?;
    let generate = arguments.generate_config_out.as_deref();
    if let Some(problem) = generate.and_then(target_exists) {
        return Err(Failure::from(problem));
    }
    let options = PlanOptions {
        query: Some(QueryOptions {
            generate_config: generate.is_some(),
        }),
        ..PlanOptions::default()
    };
    let operation_arguments = OperationArguments {
        lock: LockFlags {
            // A query changes nothing, so it does not wait for another run: it fails at once if the state is locked.
            timeout: Some(Duration::ZERO),
        },
        input: true,
        ..OperationArguments::default()
    };
    if !workdir::has_configuration() && !workdir::has_queries() {
        return Err(Failure::new(
            "No configuration files",
            "A query needs query files, and there are none in this directory. Write a list block into a file whose name \
             ends with .tfquery.hcl.",
        ));
    }
    let (project, problems) = workdir::read_from(session, &Disk, true);
    if problems.has_errors() {
        return Err(Failure::within(problems, &project.sources));
    }
    let is_list = |r: &config::Resource| r.address.mode == ResourceMode::List;
    if !project.config.root.module.resources.values().any(is_list) {
        let failure = Failure::new(
            "No resources to query",
            "The configuration has no list block. Write one into a query file (.tfquery.hcl).",
        );
        return Err(Failure::within(problems, &project.sources).and(failure));
    }
    if let Some(hosted) =
        hosted::workspace::of_operation(&session.hosted(), &project.config).within(&project.sources)?
    {
        return Err(Failure::new(
            "Remote operations not supported",
            format!(
                "The execution mode of the workspace \"{}\" is \"{}\", and queries run on this machine only. Set the environment \
                 variable TF_FORCE_LOCAL_BACKEND to have this one run here.",
                hosted.workspace.name, hosted.workspace.execution_mode
            ),
        ));
    }
    let operation = Operation::for_query(session, &operation_arguments, project, problems)?;
    let Planning {
        plan,
        diagnostics: mut problems,
        ..
    } = operation.plan(&options);
    if let Some(plan) = &plan {
        if let Some(path) = generate
            && !problems.has_errors()
            && let Some(text) = views::query::generated_file(plan, session.ui.program.tool)
            && let Err(problem) = write_new(path.as_ref(), &text)
        {
            problems.push(problem);
        }
        // In the stream, each list block reports its number of results.
        if session.stream.is_none() {
            views::query::warn_of_empty(&session.ui, plan);
        }
    }
    let outcome = Outcome::from(u8::from(plan.is_none())).and_problems(problems, &operation.project.sources);
    operation.finish(Ok(outcome))
}
