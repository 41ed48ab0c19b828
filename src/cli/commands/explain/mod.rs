//! `explain`: shows where a resource's values come from, and what a plan does to it.

mod document;
mod origins;
mod text;

use std::collections::BTreeMap;
use std::path::Path;

use addrs::{AbsResourceInstance, ConfigResource, Target};
use config::model::Resource;
use engine::graph::{self, ResourceGraph};
use engine::plan::ResourceChange;
use schema::BlockSchema;
use serde_json::Value as Json;
use state::{ObjectStatus, State};
use syntax::content::suggest;
use syntax::{Diagnostics, Range};

use crate::args::flags::{self, Flags, FromFlags};
use crate::args::groups::VariableFlags;
use crate::commands::Command;
use crate::commands::graph::{Subject, of_directory, of_saved_plan};
use crate::outcome::{Failure, Outcome, Within as _};
use crate::session::Session;

use origins::{Origin, Tracer};
use views::json;

pub const COMMAND: Command = Command {
    path: "explain",
    about: "Explain where a resource has its values from",
    positional: "ADDRESS",
    details: "Shows of one resource, or one instance of it, where each value comes from, what it depends on, what depends on \
      it, and, with a saved plan, what will be done to it and why. It changes nothing and asks no server.",
    declare: flags::declare::<Arguments>,
    refused: &[],
    run: |session, matches| run(session, &flags::read(matches)),
};

struct Arguments {
    positional: Vec<String>,
    plan: Option<String>,
    json: bool,
}

impl FromFlags for Arguments {
    fn read(flags: &mut Flags<'_>) -> Arguments {
        VariableFlags::read(flags);
        Arguments {
            positional: flags.positional(),
            plan: flags.value(
                "plan",
                "FILE",
                "Explain also what this saved plan does to the resource, with the configuration and the state that it was \
                 made of.",
            ),
            json: flags.switch("json", false, "Output the explanation as JSON."),
        }
    }
}

/// Explanation of a resource.
struct Explanation {
    /// Requested address.
    address: String,
    /// Source range of the resource's block, if the configuration has one.
    declared: Option<Range>,
    provider: String,
    origins: Vec<Origin>,
    /// Expressions of `replace_triggered_by`, as written.
    triggers: Vec<(String, Range)>,
    objects: Vec<Object>,
    depends_on: Vec<Neighbour>,
    needed_by: Vec<Neighbour>,
    /// References to the resource in its own module.
    uses: Vec<(String, Range)>,
    /// Values and their sensitive parts, if the explanation is about a single object.
    values: Option<(Json, Json)>,
}

/// Instance in the state or in the plan.
struct Object {
    address: String,
    in_state: bool,
    tainted: bool,
    /// Keys of deposed objects.
    deposed: Vec<String>,
    change: Option<ResourceChange>,
}

/// Resource that depends on the explained one, or that it depends on.
struct Neighbour {
    address: String,
    /// True if no other resource is between them.
    direct: bool,
}

fn run(session: &Session, arguments: &Arguments) -> Result<Outcome, Failure> {
    let [name] = arguments.positional.as_slice() else {
        return Err(Failure::usage(
            "Required argument missing",
            "Give exactly one argument: the address of a resource, or of one instance of it.",
        ));
    };
    let target = resource(name)?;
    let subject = match &arguments.plan {
        Some(path) => of_saved_plan(session, Path::new(path)),
        None => of_directory(session),
    };
    let subject = subject?;
    let (explanation, problems) = explained(&subject, &target)?;
    let outcome = Outcome::success().and_problems(problems, &subject.project.sources);
    Ok(outcome.and_outcome(match arguments.json {
        true => Outcome::document(&document::render(&explanation)),
        false => Outcome::text(text::render(&explanation, session.ui.style())),
    }))
}

/// Returns the explanation of a resource as text. `review` uses it for a plan that is not saved yet.
///
/// # Errors
/// There is no such resource.
pub(super) fn of_subject(session: &Session, subject: &Subject, address: &str) -> Result<String, Failure> {
    let (explanation, _) = explained(subject, &resource(address)?)?;
    Ok(text::render(&explanation, session.ui.style()))
}

/// Parses the address of a resource or of an instance.
fn resource(name: &str) -> Result<Target, Failure> {
    match addrs::parse::target(name) {
        Ok(Target::Module(_) | Target::ModuleInstance(_)) => Err(Failure::new(
            "Not the address of a resource",
            format!("{name} is a module. Only resources can be explained: give the address of one that is in it."),
        )),
        Ok(target) => Ok(target),
        Err(problem) => Err(Failure::new(problem.summary, problem.detail)),
    }
}

/// Returns the explanation of a resource, with warnings.
fn explained(subject: &Subject, target: &Target) -> Result<(Explanation, Diagnostics), Failure> {
    let (config, sources) = (&subject.project.config, &subject.project.sources);
    let (graph, problems) = graph::resources(config, &subject.schemas, &subject.state).within(sources)?;
    match explain(subject, &graph, target) {
        Some(explanation) => Ok((explanation, problems)),
        None => {
            let failure = Failure::new(
                "No such resource",
                format!(
                    "Neither the configuration nor the state has {target}.{}",
                    nearest(subject, &target.to_string())
                ),
            );
            Err(Failure::within(problems, sources).and(failure))
        }
    }
}

/// Suggests the most similar address in the form ` Did you mean …?`; empty if none is similar.
fn nearest(subject: &Subject, wanted: &str) -> String {
    let nodes = subject.project.config.nodes();
    let configured = nodes.iter().flat_map(|node| {
        let resources = node.module.resources.keys();
        resources.map(|resource| resource.in_module(&node.path).to_string())
    });
    let stored = subject
        .state
        .instances()
        .map(|(resource, _, key, _)| resource.instance(key.clone()).to_string());
    let all: Vec<String> = configured.chain(stored).collect();
    suggest(wanted, all.iter().map(String::as_str)).map_or_else(String::new, |near| format!(" Did you mean {near}?"))
}

/// Returns the configured resource that an address refers to; `None` for the address of a module.
fn configured(target: &Target) -> Option<ConfigResource> {
    match target {
        Target::ConfigResource(resource) => Some(resource.clone()),
        Target::Resource(resource) => Some(resource.config()),
        Target::ResourceInstance(instance) => Some(instance.config()),
        Target::Module(_) | Target::ModuleInstance(_) => None,
    }
}

/// Explains a resource; `None` if it does not exist.
fn explain(subject: &Subject, graph: &ResourceGraph, target: &Target) -> Option<Explanation> {
    let wanted = configured(target)?;
    let config = &subject.project.config;
    let objects = objects(subject, target);
    let node = config.node(&wanted.module);
    let block = node.and_then(|node| Some((node, node.module.resources.get(&wanted.resource)?)));
    if block.is_none() && objects.is_empty() {
        return None;
    }
    let stored = subject
        .state
        .resources
        .iter()
        .find(|(address, _)| address.config() == wanted);
    // A resource that is only in the state keeps the provider that made its objects.
    let provider = match (block, stored) {
        (None, Some((_, stored))) => stored.provider.provider.clone(),
        _ => config.provider_for(&wanted).provider.clone(),
    };
    let schema = |resource: &Resource| {
        let found = subject
            .schemas
            .resource(&resource.provider, resource.mode(), &resource.address.ty);
        found.map_or_else(BlockSchema::default, |schema| BlockSchema::clone(&schema.block))
    };
    let values = &subject.values;
    let mut tracer = Tracer::new(config, values, &subject.project.sources, subject.plan.is_some());
    let (mut origins, mut triggers, mut uses) = (Vec::new(), Vec::new(), Vec::new());
    if let Some((node, resource)) = block {
        origins = tracer.resource(node, resource, &schema(resource));
        uses = origins::uses(node, &wanted.resource, schema);
        let written = resource.lifecycle.replace_triggered_by.iter();
        triggers = written
            .map(|expr| (tracer.text(expr.range()).unwrap_or_default(), expr.range().clone()))
            .collect();
    }
    let (depends_on, needed_by) = match graph.resources.iter().position(|resource| *resource == wanted) {
        Some(at) => (neighbours(graph, at, false), neighbours(graph, at, true)),
        None => (Vec::new(), Vec::new()),
    };
    Some(Explanation {
        address: target.to_string(),
        declared: block.map(|(_, resource)| resource.range.clone()),
        provider: provider.to_string(),
        origins,
        triggers,
        depends_on,
        needed_by,
        uses,
        values: only_values(subject, target),
        objects,
    })
}

/// Returns the instances in the state and in the plan.
fn objects(subject: &Subject, target: &Target) -> Vec<Object> {
    let mut found: BTreeMap<AbsResourceInstance, Object> = BTreeMap::new();
    let empty = |address: &AbsResourceInstance| Object {
        address: address.to_string(),
        in_state: false,
        tainted: false,
        deposed: Vec::new(),
        change: None,
    };
    for (resource, _, key, instance) in subject.state.instances() {
        let address = resource.instance(key.clone());
        if !target.selects(&address) {
            continue;
        }
        let object = found.entry(address.clone()).or_insert_with(|| empty(&address));
        object.in_state = instance.current.is_some();
        object.tainted = instance
            .current
            .as_ref()
            .is_some_and(|o| o.status == ObjectStatus::Tainted);
        object.deposed = instance.deposed.keys().map(|key| key.0.to_string()).collect();
    }
    let changes = subject.plan.iter().flat_map(|plan| &plan.changes);
    // A deposed object has the address of the current one, whose change it must not replace here.
    for change in changes.filter(|change| change.deposed.is_none() && target.selects(&change.address)) {
        let object = found
            .entry(change.address.clone())
            .or_insert_with(|| empty(&change.address));
        object.change = Some(change.clone());
    }
    found.into_values().collect()
}

/// Returns the stored values and their sensitive parts, if the address selects a single object.
fn only_values(subject: &Subject, target: &Target) -> Option<(Json, Json)> {
    let mut selected = subject
        .state
        .instances()
        .filter_map(|(resource, stored, key, instance)| {
            let address = resource.instance(key.clone());
            let object = target
                .selects(&address)
                .then_some(instance.current.as_ref())
                .flatten()?;
            Some((address, stored, object))
        });
    let (address, stored, object) = selected.next()?;
    if selected.next().is_some() {
        return None;
    }
    let mut only = State::new();
    only.set_current(&address, &stored.provider, Some(object.clone()));
    let document = json::state::single_object(&only, &subject.schemas);
    let (values, mut sensitive) = (document["values"].clone(), document["sensitive_values"].clone());
    let mut secrets = document::Secrets::default();
    secrets.add(&values, &sensitive);
    // A copy of a secret in another attribute is as sensitive as the original.
    for (name, value) in values.as_object().into_iter().flatten() {
        if let Some(parts) = sensitive.as_object_mut().filter(|_| secrets.are_in(value)) {
            parts.insert(name.clone(), true.into());
        }
    }
    Some((values, sensitive))
}

/// Returns the resources that a resource depends on or, with `backwards`, the resources that depend on it; direct ones first.
fn neighbours(graph: &ResourceGraph, at: usize, backwards: bool) -> Vec<Neighbour> {
    let mut next: Vec<Vec<usize>> = vec![Vec::new(); graph.resources.len()];
    for (from, to) in &graph.edges {
        let (from, to) = if backwards { (to, from) } else { (from, to) };
        next[*from].push(*to);
    }
    let mut seen = vec![false; next.len()];
    // Breadth first, so that direct neighbours count as direct even if there is a longer path.
    seen[at] = true;
    let mut out = Vec::new();
    let mut ring = next[at].clone();
    let mut direct = true;
    while !ring.is_empty() {
        let mut further = Vec::new();
        for node in ring {
            if !std::mem::replace(&mut seen[node], true) {
                let address = graph.resources[node].to_string();
                out.push(Neighbour { address, direct });
                further.extend(&next[node]);
            }
        }
        ring = further;
        direct = false;
    }
    out.sort_by(|a, b| (!a.direct, &a.address).cmp(&(!b.direct, &b.address)));
    out
}
