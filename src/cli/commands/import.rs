//! `import`: adds an existing object to the state.

use std::path::Path;
use std::sync::Arc;

use addrs::{AbsResourceInstance, Mode, Target};
use config::files::Disk;
use engine::inputs::PlanOptions;
use state::journal::{self, Answers};
use syntax::content::suggest;

use crate::args::flags::{self, Flags, FromFlags};
use crate::args::groups::{LockFlags, Parallelism, StateFlags, VariableFlags, ignore_remote_version, input};
use crate::args::operation::OperationArguments;
use crate::commands::Command;
use crate::operation::Operation;
use crate::outcome::{Failure, Outcome};
use crate::session::Session;
use crate::workdir::{self, Project};

pub const COMMAND: Command = Command {
    path: "import",
    about: "Associate existing infrastructure with a Terraform resource",
    positional: "ADDRESS ID",
    details: "Finds an object that exists already by its identifier, and puts it into the state at an address that the \
      configuration has a resource block for. What an identifier is depends on the type of the resource. Nothing is \
      changed but the state.",
    declare: flags::declare::<Arguments>,
    refused: &[],
    run: |session, matches| run(session, &flags::read(matches)),
};

struct Arguments {
    lock: LockFlags,
    state: StateFlags,
    positional: Vec<String>,
    config: Option<String>,
    input: bool,
    parallelism: Parallelism,
}

impl FromFlags for Arguments {
    fn read(flags: &mut Flags<'_>) -> Arguments {
        VariableFlags::read(flags);
        let lock = LockFlags::read(flags);
        let state = StateFlags::read(flags);
        let positional = flags.positional();
        let config = flags.value(
            "config",
            "DIR",
            "The directory with the configuration, if it is not the working directory.",
        );
        let input = input(flags);
        let parallelism = Parallelism::read(flags);
        ignore_remote_version(flags);
        Arguments {
            lock,
            state,
            positional,
            config,
            input,
            parallelism,
        }
    }
}

fn run(session: &Session, arguments: &Arguments) -> Result<Outcome, Failure> {
    let args = &arguments.positional;
    let [address, id] = args.as_slice() else {
        return Err(Failure::usage(
            "The import command expects two arguments.",
            "Give the address that the object will have, and its identifier.",
        ));
    };
    import(session, arguments, address, id)
}

fn import(session: &Session, arguments: &Arguments, address: &str, id: &str) -> Result<Outcome, Failure> {
    let address = addrs::parse::resource_instance(address).map_err(|e| Failure::new(e.summary, e.detail))?;
    if address.resource.resource.mode != Mode::Managed {
        return Err(Failure::new(
            "A managed resource address is required. Importing into a data resource is not allowed.",
            "A data source is read in every plan and is not managed, so there is nothing to import.",
        ));
    }
    let project = configuration(session, arguments.config.as_deref().unwrap_or("."))?;
    check_block(&project, &address)?;
    let operation_arguments = OperationArguments {
        files: arguments.state.clone(),
        lock: arguments.lock,
        input: arguments.input,
        parallelism: arguments.parallelism.clone(),
    };
    let operation = Operation::for_import(session, &operation_arguments, project)?;
    // The address is checked before the object is read: an import must never replace an object in the state.
    if operation.state.current(&address).is_some() {
        let failure = Failure::new(
            "Resource already managed by Terraform",
            format!(
                "There is an object for {address} in the state already. To import another one to this address, first \
                 remove the present one from the state with \"state rm\"."
            ),
        );
        return operation.finish(Err(failure));
    }
    // Only this object is read. Others could take long, and fail.
    let options = PlanOptions {
        refresh: false,
        targets: vec![Target::ResourceInstance(address.clone())],
        import: Some((address.clone(), Arc::from(id))),
        ..PlanOptions::default()
    };
    let (was_found, problems) = perform(&operation, &options, &address);
    if problems.has_errors() {
        let failure = Failure::within(problems, &operation.project.sources);
        return operation.finish(Err(failure));
    }
    if !was_found {
        let failure = Failure::new(
            "Configuration for import target does not exist",
            format!(
                "The configuration has a resource block for it, but no instance {address}. Check count and for_each of the \
                 resource and of its modules."
            ),
        );
        return operation.finish(Err(failure));
    }
    let done = session.ui.style().green(
        "\nImport successful!\n\nThe object is in the state now, and is managed from now on: the next plan compares it with \
         its\nconfiguration.\n",
    );
    operation.finish(Ok(Outcome::text(done + "\n")))
}

/// Reads the object, and saves it in the state. The flag is false if planning has read no object, for example because `count` or
/// `for_each` gives the resource no instance of this address.
fn perform(
    operation: &Operation<'_>,
    options: &PlanOptions,
    address: &AbsResourceInstance,
) -> (bool, syntax::Diagnostics) {
    let (planning, journal) = operation.import(options);
    // All warnings are left out: they say that the plan is limited to one object, which is the purpose of the
    // command.
    let problems = planning.diagnostics.into_iter().filter(|d| d.is_error());
    let mut problems: syntax::Diagnostics = problems.collect();
    let found = planning.plan.and_then(|plan| {
        let provider = plan.prior_state.resources.get(&address.containing_resource())?;
        let object = plan.prior_state.current(address)?.clone();
        Some((
            provider.provider_of(&address.resource.key),
            object,
            plan.prior_state.outputs.clone(),
        ))
    });
    let mut saved = false;
    if let (Some((provider, object, outputs)), false) = (&found, problems.has_errors()) {
        let mut state = operation.state.clone();
        state.set_current(address, provider, Some(object.clone()));
        if let Some(journal) = &journal {
            journal.outcome(journal::Outcome {
                address: address.clone(),
                provider: provider.clone(),
                objects: state.instance(address).cloned(),
                answers: Answers::Current,
            });
        }
        // The plan has evaluated the outputs that depend on this object, so they are saved with it.
        state.outputs.clone_from(outputs);
        problems.extend(operation.save(&state));
        saved = !problems.has_errors();
    }
    // If the state could not be saved, it is in a rescue file, and the journal keeps the new object, too.
    if saved || found.is_none() {
        problems.extend(operation.end_journal());
    }
    (found.is_some(), problems)
}

fn configuration(session: &Session, dir: &str) -> Result<Project, Failure> {
    if !config::loader::has_configuration(&Disk, dir).unwrap_or(false) {
        let shown = if dir == "." {
            session.working_dir.display().to_string()
        } else {
            Path::new(dir).display().to_string()
        };
        return Err(Failure::new(
            "No Terraform configuration files",
            format!(
                "There are no configuration files (.tf or .tf.json) in {shown}. To take the configuration of another directory, \
                 use the -config=DIR option."
            ),
        ));
    }
    let (project, problems) = workdir::read_in(session, dir);
    session.pass(&problems, &project.sources)?;
    Ok(project)
}

/// Returns an error if the address has no resource block. Its detail shows a block to start from.
fn check_block(project: &Project, address: &AbsResourceInstance) -> Result<(), Failure> {
    let module = address.module.module();
    if project.config.node(&module).is_none() {
        let modules: Vec<String> = project
            .config
            .nodes()
            .iter()
            .map(|node| node.path.to_string())
            .collect();
        let near = suggest(&module.to_string(), modules.iter().map(String::as_str));
        return Err(Failure::new(
            "Import to non-existent module",
            format!(
                "There is no {module} in the configuration. Add a module block for it before anything is imported into it.{}",
                near.map_or_else(String::new, |near| format!(" Did you mean {near}?"))
            ),
        ));
    }
    // Without a block, the next plan would delete the object that has just been imported.
    if project.config.resource(&address.config()).is_some() {
        return Ok(());
    }
    let (ty, name) = (&address.resource.resource.ty, &address.resource.resource.name);
    let place = if module.is_root() {
        "the root module".to_owned()
    } else {
        format!("the configuration of {module}")
    };
    let containing = address.containing_resource();
    let blocks = project
        .config
        .node(&module)
        .into_iter()
        .flat_map(|node| node.module.resources.keys());
    let blocks: Vec<String> = blocks.map(ToString::to_string).collect();
    let near = suggest(
        &address.config().resource.to_string(),
        blocks.iter().map(String::as_str),
    );
    let hint = near.map_or_else(String::new, |near| format!(" Did you mean {near}?"));
    Err(Failure::new(
        format!("resource address \"{containing}\" does not exist in the configuration."),
        format!(
            "The imported object needs a resource block first.{hint} Put one into {place}, for example:\n\nresource \"{ty}\" \
             \"{name}\" {{\n  # (resource arguments)\n}}"
        ),
    ))
}
