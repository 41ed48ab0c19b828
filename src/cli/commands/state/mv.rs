//! `state mv`: moves objects to another address, in the same state or in another one.

use addrs::{AbsResource, AbsResourceInstance, InstanceKey, ModuleInstance, Target};
use state::{Relocation, State};
use stores::session::Backup;

use super::edit::{self, EditFlags};
use crate::args::flags::{self, Flags, FromFlags};
use crate::args::groups::StateFlags;
use crate::commands::Command;
use crate::outcome::{Failure, Outcome, Part};
use crate::session::Session;
use crate::state_session::{self, Closing as _};

pub const COMMAND: Command = Command {
    path: "state mv",
    about: "Move an item in the state",
    positional: "SOURCE DESTINATION",
    details: "Gives the objects at an address another one: a resource instance, a resource with all its instances, or a module \
      with all that is below it. With -state-out they go to another state.",
    declare: flags::declare::<Arguments>,
    refused: &[],
    run: |session, matches| run(session, &flags::read(matches)),
};

struct Arguments {
    edit: EditFlags,
    positional: Vec<String>,
    dry_run: bool,
    state_out: Option<String>,
    backup_out: Option<String>,
}

impl FromFlags for Arguments {
    fn read(flags: &mut Flags<'_>) -> Arguments {
        Arguments {
            edit: EditFlags::read(flags),
            positional: flags.positional(),
            dry_run: flags.switch("dry-run", false, "Only say what would be moved."),
            state_out: flags.value(
                "state-out",
                "PATH",
                "The state file the objects go to, if it is another.",
            ),
            backup_out: flags.value(
                "backup-out",
                "PATH",
                "Where to keep that state as it was. Without it the time is in the name of the backup.",
            ),
        }
    }
}

fn run(session: &Session, arguments: &Arguments) -> Result<Outcome, Failure> {
    let args = &arguments.positional;
    let [from, to] = args.as_slice() else {
        return Err(Failure::usage(
            "Required argument missing",
            "Give exactly two arguments: the address of what is to be moved, and its new address.",
        ));
    };
    run_move(session, arguments, from, to)
}

/// Address of `state mv`. Unlike in a target, an address without a key names only the instance without
/// a key.
#[derive(Clone, Debug, PartialEq, Eq)]
enum StateAddress {
    Module(ModuleInstance),
    Resource(AbsResource),
    Instance(AbsResourceInstance),
}

impl std::fmt::Display for StateAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            StateAddress::Module(m) => m.fmt(f),
            StateAddress::Resource(r) => r.fmt(f),
            StateAddress::Instance(i) => i.fmt(f),
        }
    }
}

fn exactly(target: Target) -> StateAddress {
    // Unlike in -target, an address without keys means the instance without a key.
    let unkeyed = |module: addrs::Module| {
        let steps = module.0.iter();
        steps.fold(ModuleInstance::root(), |m, name| {
            m.child(name.clone(), InstanceKey::None)
        })
    };
    match target {
        Target::Module(m) => StateAddress::Module(unkeyed(m)),
        Target::ModuleInstance(m) => StateAddress::Module(m),
        Target::ConfigResource(r) => StateAddress::Resource(AbsResource {
            module: unkeyed(r.module),
            resource: r.resource,
        }),
        Target::Resource(r) => StateAddress::Resource(r),
        Target::ResourceInstance(i) => StateAddress::Instance(i),
    }
}

#[derive(Debug, PartialEq, Eq)]
struct Refusal {
    summary: &'static str,
    detail: String,
}

impl Refusal {
    fn source(detail: impl Into<String>) -> Refusal {
        Refusal {
            summary: "Invalid source address",
            detail: detail.into(),
        }
    }

    fn target(detail: impl Into<String>) -> Refusal {
        Refusal {
            summary: "Invalid target address",
            detail: detail.into(),
        }
    }
}

/// State that has the objects and, if `-state-out` names another one, the state that they move to.
struct States {
    from: State,
    to: Option<State>,
    /// Old and new addresses of the moved instances.
    moved: Vec<(AbsResourceInstance, AbsResourceInstance)>,
}

impl States {
    fn to(&mut self) -> &mut State {
        self.to.as_mut().unwrap_or(&mut self.from)
    }

    /// Moves a resource to another address within these states.
    fn put(&mut self, from: &AbsResource, to: &AbsResource, resource: state::ResourceState) {
        let instances = resource.instances.keys();
        self.moved
            .extend(instances.map(|key| (from.instance(key.clone()), to.instance(key.clone()))));
        self.to().resources.insert(to.clone(), resource);
    }

    /// Updates the recorded dependencies of objects to the new addresses.
    fn rewrite_dependencies(&mut self) {
        let relocation = Relocation::new(self.moved.iter().map(|(from, to)| (from, to)));
        match &mut self.to {
            Some(to) => relocation.rewrite_between(&mut self.from, to),
            None => relocation.rewrite(&mut self.from),
        }
    }
}

fn run_move(session: &Session, arguments: &Arguments, from: &str, to: &str) -> Result<Outcome, Failure> {
    let dry = arguments.dry_run;
    let (mut opened, state) = edit::open(session, &arguments.edit, "state-mv")?;
    let mut other = match arguments.state_out.as_deref() {
        // Locking the same file twice would fail.
        Some(path) if Some(path) != arguments.edit.state.as_deref() => {
            let files = StateFlags {
                state: Some(path.to_owned()),
                ..StateFlags::default()
            };
            let backup = Backup::required(arguments.backup_out.as_deref());
            let lock = arguments.edit.lock;
            Some(state_session::open_for_edit(session, &files, lock, "state-mv", backup)?)
        }
        _ => None,
    };
    let mut states = States {
        from: state,
        to: other.as_mut().map(|o| o.state.take().unwrap_or_default()),
        moved: Vec::new(),
    };
    let source = exactly(edit::address(from)?);
    let destination = exactly(edit::address(to)?);
    let moved = move_objects(&mut states, &source, &destination)
        .map_err(|Refusal { summary, detail }| Failure::new(summary, detail))?;
    states.rewrite_dependencies();
    let verb = if dry { "Would move" } else { "Move" };
    let mut outcome = Outcome::success();
    for (from, to) in &moved {
        outcome = outcome.and_line(format!("{verb} {:?} to {:?}", from.to_string(), to.to_string()));
    }
    if !dry {
        // The destination is written first: a failure in between leaves the objects in both states, never in
        // none.
        if let (Some(other), Some(state)) = (&mut other, &states.to)
            && let Err(failure) = other.write(state)
        {
            return Ok(outcome.and_failure(failure));
        }
        outcome = match opened.write(&states.from) {
            Ok(()) => outcome.and_line(format!("Successfully moved {} object(s).", moved.len())),
            Err(failure) if other.is_some() => outcome.and_failure(failure).and(Part::Error(
                "The objects are in both states now. Remove them from the first with \"state rm\" when it can be written \
                 again.\n"
                    .to_owned(),
            )),
            Err(failure) => outcome.and_failure(failure),
        };
    }
    let result = match other {
        Some(other) => other.close(Ok(outcome)),
        None => Ok(outcome),
    };
    opened.close(result)
}

/// Moves objects, and returns each move.
fn move_objects(
    states: &mut States,
    source: &StateAddress,
    destination: &StateAddress,
) -> Result<Vec<(StateAddress, StateAddress)>, Refusal> {
    match source {
        StateAddress::Module(from) => {
            let modules = states.from.modules_below(from);
            if modules.is_empty() {
                return Err(nothing(source, &states.from));
            }
            let StateAddress::Module(to) = destination else {
                return Err(Refusal::target(format!(
                    "Cannot move {source} to {destination}: a module can only be moved to the address of a module."
                )));
            };
            let mut moved = Vec::new();
            for module in modules {
                let below = module.0.iter().skip(from.0.len());
                let new = below.fold(to.clone(), |m, step| m.child(step.name.clone(), step.key.clone()));
                move_module(states, &module, &new)?;
                moved.push((StateAddress::Module(module), StateAddress::Module(new)));
            }
            Ok(moved)
        }
        StateAddress::Resource(from) => {
            let Some(kept) = states.from.resources.get(from) else {
                return Err(nothing(source, &states.from));
            };
            if kept.instances.contains_key(&InstanceKey::None) {
                // The address of a resource without keys means its only instance, which can be moved to one
                // with a key.
                let from = from.instance(InstanceKey::None);
                return move_instance(states, &from, destination).map(|pair| vec![pair]);
            }
            let StateAddress::Resource(to) = destination else {
                return Err(Refusal::target(format!(
                    "Cannot move {source} to {destination}: {source} is the address of all instances of a resource, so the \
                     target must \
                     be a resource as well."
                )));
            };
            same_kind(&from.resource, &to.resource, source, destination)?;
            if states.to().resources.contains_key(to) {
                return Err(Refusal::target(format!(
                    "Cannot move to {to}: the state has a resource there already."
                )));
            }
            if let Some(kept) = states.from.resources.remove(from) {
                states.put(from, to, kept);
            }
            Ok(vec![(source.clone(), destination.clone())])
        }
        StateAddress::Instance(from) => move_instance(states, from, destination).map(|pair| vec![pair]),
    }
}

fn nothing(source: &StateAddress, state: &State) -> Refusal {
    Refusal::source(format!(
        "Cannot move {source}: it does not match anything in the current state.{}",
        edit::nearest(state, &source.to_string())
    ))
}

fn same_kind(
    from: &addrs::Resource,
    to: &addrs::Resource,
    source: &dyn std::fmt::Display,
    destination: &dyn std::fmt::Display,
) -> Result<(), Refusal> {
    let refuse = |why: &str| {
        Err(Refusal {
            summary: "Invalid state move request",
            detail: format!("Cannot move {source} to {destination}: {why}."),
        })
    };
    if from.mode != to.mode {
        return refuse(match from.mode {
            addrs::Mode::Managed => "one of them is a managed resource, and the other is not",
            _ => "one of them is a data source, and the other is not",
        });
    }
    if from.ty != to.ty {
        return refuse("resource types don't match");
    }
    Ok(())
}

fn move_module(states: &mut States, from: &ModuleInstance, to: &ModuleInstance) -> Result<(), Refusal> {
    if states.to().has_module(to) {
        return Err(Refusal {
            summary: "Error moving state: destination module already exists",
            detail: format!(
                "There are objects in {to} already. Move resources into it one by one, or choose another address. No state was \
                 changed."
            ),
        });
    }
    for (address, kept) in states.from.take_module(from) {
        let new = AbsResource {
            module: to.clone(),
            resource: address.resource.clone(),
        };
        states.put(&address, &new, kept);
    }
    Ok(())
}

fn move_instance(
    states: &mut States,
    from: &AbsResourceInstance,
    destination: &StateAddress,
) -> Result<(StateAddress, StateAddress), Refusal> {
    let source = StateAddress::Instance(from.clone());
    let to = match destination {
        StateAddress::Instance(to) => to.clone(),
        // As in Terraform: the address of a resource is that of its instance without a key.
        StateAddress::Resource(to) => to.instance(InstanceKey::None),
        StateAddress::Module(_) => {
            return Err(Refusal::target(format!(
                "Cannot move {from} to {destination}: an instance can only be moved to the address of an instance."
            )));
        }
    };
    same_kind(&from.resource.resource, &to.resource.resource, from, &to)?;
    let containing = from.containing_resource();
    let Some(provider) = states
        .from
        .instance(from)
        .and_then(|_| states.from.resources.get(&containing))
        .map(|r| r.provider_of(&from.resource.key))
    else {
        return Err(Refusal::source(format!(
            "The current state does not contain {from}.{}",
            edit::nearest(&states.from, &from.to_string())
        )));
    };
    if states.to().instance(&to).is_some() {
        return Err(Refusal::target(format!(
            "Cannot move to {to}: the state has an instance there already."
        )));
    }
    if let Some(instance) = states.from.remove_instance(from) {
        states.to().put_instance(&to, &provider, instance);
        states.moved.push((from.clone(), to.clone()));
    }
    Ok((source, StateAddress::Instance(to)))
}
