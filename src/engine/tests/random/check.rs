//! Assertions about the operations of an apply and the state after it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use engine::plan::{Action, Mode, Plan, ResourceChange};

use crate::generate::Model;
use crate::support::{Case, attributes};

/// A call that created, changed or destroyed an object of the provider.
#[derive(Debug)]
pub struct Operation {
    pub verb: String,
    pub name: String,
    pub start: usize,
    pub end: usize,
}

/// Parses the calls in a log that create, change or destroy objects.
pub fn operations(log: &[String]) -> Vec<Operation> {
    let mut out: Vec<Operation> = Vec::new();
    for (i, line) in log.iter().enumerate() {
        let Some((sign, call)) = line.split_once(' ') else {
            continue;
        };
        let Some((verb, name)) = call.split_once(' ') else {
            continue;
        };
        if !matches!(verb, "create" | "update" | "delete") {
            continue;
        }
        if sign == ">" {
            out.push(Operation {
                verb: verb.into(),
                name: name.into(),
                start: i,
                end: usize::MAX,
            });
        } else if let Some(o) = out
            .iter_mut()
            .find(|o| o.verb == verb && o.name == name && o.end == usize::MAX)
        {
            o.end = i;
        }
    }
    out
}

/// Properties of an object that the state records before an apply.
pub struct Prior {
    pub address: String,
    pub config: String,
    pub name: String,
    pub dependencies: BTreeSet<String>,
    pub creates_first: bool,
}

/// Returns the current objects by address. Moved objects, and moved dependencies, have their new addresses.
pub fn prior(case: &Case, plan: &Plan) -> BTreeMap<String, Prior> {
    let mut moved: BTreeMap<String, &addrs::AbsResourceInstance> = BTreeMap::new();
    for change in &plan.changes {
        if let Some(from) = &change.previous_address {
            moved.insert(from.to_string(), &change.address);
        }
    }
    // The resource addresses that the objects of a block have after moves.
    let mut blocks: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for (resource, _, key, _) in case.state.instances() {
        let address = resource.instance((*key).clone()).to_string();
        let config = moved.get(&address).map_or_else(|| resource.config(), |to| to.config());
        blocks
            .entry(resource.config().to_string())
            .or_default()
            .insert(config.to_string());
    }
    let mut out = BTreeMap::new();
    for (resource, _, key, instance) in case.state.instances() {
        let Some(object) = &instance.current else { continue };
        if resource.resource.mode != addrs::Mode::Managed {
            continue;
        }
        let name = attributes(object)["name"].as_str().unwrap_or_default().to_owned();
        let address = resource.instance((*key).clone()).to_string();
        let now = moved.get(&address);
        let dependencies = object.dependencies.iter().map(ToString::to_string);
        let prior = Prior {
            address: now.map_or(address, ToString::to_string),
            config: now.map_or_else(|| resource.config(), |to| to.config()).to_string(),
            name,
            dependencies: dependencies
                .flat_map(|d| blocks.get(&d).cloned().unwrap_or_else(|| [d].into()))
                .collect(),
            creates_first: object.create_before_destroy,
        };
        out.insert(prior.address.clone(), prior);
    }
    out
}

fn ensure(holds: bool, what: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(what()) }
}

/// Asserts that the operations are exactly those of the plan, except that an update with unknown values may turn out to be unnecessary.
pub fn as_planned(plan: &Plan, operations: &[Operation]) -> Result<(), String> {
    let mut said: Vec<String> = Vec::new();
    let mut perhaps: BTreeSet<String> = BTreeSet::new();
    for change in &plan.changes {
        if change.address.resource.resource.mode != addrs::Mode::Managed {
            continue;
        }
        let name = |value: &cty::Value| value.get("name").and_then(cty::Value::as_str).unwrap_or("?").to_owned();
        let (before, after) = (&change.before, &change.after);
        match change.action {
            Action::Create | Action::CreateThenForget => said.push(format!("create {}", name(after))),
            Action::Update => {
                said.push(format!("update {}", name(after)));
                if after.get("value").is_some_and(|v| !v.is_known()) || !change.config_known {
                    perhaps.insert(format!("update {}", name(after)));
                }
            }
            Action::Delete => said.push(format!("delete {}", name(before))),
            Action::DeleteThenCreate | Action::CreateThenDelete => {
                said.push(format!("delete {}", name(before)));
                said.push(format!("create {}", name(after)));
            }
            Action::NoOp | Action::Read | Action::Forget => {}
        }
    }
    let mut done: Vec<String> = operations.iter().map(|o| format!("{} {}", o.verb, o.name)).collect();
    said.retain(|call| done.contains(call) || !perhaps.contains(call));
    said.sort();
    done.sort();
    ensure(said == done, || format!("planned {said:#?}\nbut done {done:#?}"))
}

/// Asserts the order of operations: dependencies are created and changed before dependents, dependents destroyed before
/// dependencies, and replacements follow `create_before_destroy`.
pub fn order(
    model: &Model,
    plan: &Plan,
    before: &BTreeMap<String, Prior>,
    operations: &[Operation],
) -> Result<(), String> {
    // Keyed by resource address. Creations and updates are ordered by the dependencies of the configuration, deletions by those of the
    // state.
    let mut config_of: HashMap<String, String> = HashMap::new();
    let mut address_of: HashMap<String, String> = HashMap::new();
    for block in &model.blocks {
        for instance in model.instances_of(block) {
            config_of.insert(instance.name.clone(), model.config_address(block));
            address_of.insert(instance.name, instance.address);
        }
    }
    // A creation at the address of a destroyed object is a replacement.
    let created: BTreeMap<&String, &Operation> = operations
        .iter()
        .filter(|o| o.verb == "create")
        .filter_map(|o| Some((address_of.get(&o.name)?, o)))
        .collect();
    // No order is asserted between objects of different providers: the dependencies of a provider configuration may change before its
    // objects are destroyed.
    let loose = |a: &str, b: &str| model.token.is_some() && a.contains("more_thing") != b.contains("more_thing");
    let prior_of: HashMap<&str, &Prior> = before.values().map(|p| (p.name.as_str(), p)).collect();
    let mut changes: BTreeMap<&str, Vec<&Operation>> = BTreeMap::new();
    let mut deletions: BTreeMap<&str, Vec<(&Operation, &Prior)>> = BTreeMap::new();
    for operation in operations {
        if operation.verb == "delete" {
            let prior = *prior_of
                .get(operation.name.as_str())
                .ok_or_else(|| format!("{} was destroyed, but was not in the state", operation.name))?;
            deletions.entry(&prior.config).or_default().push((operation, prior));
        } else {
            let config = config_of
                .get(&operation.name)
                .ok_or_else(|| format!("{} {}: nobody asked for it", operation.verb, operation.name))?;
            changes.entry(config).or_default().push(operation);
        }
    }
    let text = |o: &Operation| format!("{} {}", o.verb, o.name);
    let ordered = |first: &Operation, second: &Operation, why: &str| {
        ensure(first.end < second.start, || {
            format!("{} should end before {} begins: {why}", text(first), text(second))
        })
    };
    let destroying = plan.mode == Mode::Destroy;
    let planned: BTreeSet<String> = plan.changes.iter().map(|c| c.address.config().to_string()).collect();
    let mut creates_first = model.creates_first(|address| !plan.is_partial() || planned.contains(address));
    // In partial plans and in modules with several instances, the expected order of a replacement is taken from the plan: a reference to
    // all instances of a module depends on all of its resources, even on those without instances.
    let told = |c: &&ResourceChange| plan.is_partial() || c.address.module.to_string().contains('[');
    for change in plan.changes.iter().filter(told) {
        let config = change.address.config().to_string();
        match change.action {
            Action::CreateThenDelete => drop(creates_first.insert(config)),
            Action::DeleteThenCreate => drop(creates_first.remove(&config)),
            _ => {}
        }
    }
    let dependencies = model.dependencies();
    for (config, operations) in &changes {
        for dependency in dependencies.get(*config).into_iter().flatten() {
            for operation in operations {
                for other in changes.get(dependency.as_str()).into_iter().flatten() {
                    ordered(other, operation, "it depends on that")?;
                }
                for (deletion, prior) in deletions.get(dependency.as_str()).into_iter().flatten() {
                    // The order of a replacement is decided by the configuration alone, other destructions also by the recorded
                    // dependencies.
                    let replaced = created.contains_key(&prior.address);
                    // Not checked if the dependency was reversed: the destroyed object depended on the changed one.
                    if loose(config, dependency) || prior.dependencies.contains(*config) {
                        continue;
                    }
                    if creates_first.contains(dependency) || (prior.creates_first && !replaced) {
                        ordered(operation, deletion, "what it depends on creates first")?;
                    } else {
                        ordered(deletion, operation, "what it depends on destroys first")?;
                    }
                }
            }
        }
    }
    for (config, operations) in &deletions {
        for (operation, prior) in operations {
            let mut outlives = prior.dependencies.clone();
            if destroying {
                outlives.extend(dependencies.get(*config).into_iter().flatten().cloned());
            }
            for dependency in outlives.iter().filter(|d| d != config && !loose(config, d)) {
                for (other, _) in deletions.get(dependency.as_str()).into_iter().flatten() {
                    ordered(operation, other, "it depended on that")?;
                }
            }
            if let Some(new) = created.get(&prior.address) {
                if creates_first.contains(*config) {
                    ordered(new, operation, "create_before_destroy")?;
                } else {
                    ordered(operation, new, "no create_before_destroy")?;
                }
            }
        }
    }
    Ok(())
}

/// Returns the attributes of all managed objects of the state, current and deposed, by their IDs.
pub fn identities(case: &Case) -> BTreeMap<String, serde_json::Value> {
    let mut out = BTreeMap::new();
    for (resource, _, _, instance) in case.state.instances() {
        if resource.resource.mode != addrs::Mode::Managed {
            continue;
        }
        for object in instance.current.iter().chain(instance.deposed.values()) {
            let attributes = attributes(object);
            let id = attributes["id"].as_str().unwrap_or("(none)").to_owned();
            assert!(!out.contains_key(&id), "{id} is twice in the state");
            out.insert(id, attributes);
        }
    }
    out
}

/// Asserts that the state has exactly the objects that exist in the remote, with the same attributes. `untold` lists the IDs of objects
/// whose creation, deletion or change (in this order) the provider could not report; they are exempt.
pub fn truth(case: &Case, untold: &[BTreeSet<String>; 3]) -> Result<(), String> {
    let [come, gone, changed] = untold;
    let state = identities(case);
    let remote = case.remote.lock().objects.clone();
    for (id, object) in &remote {
        let Some(stored) = state.get(id) else {
            ensure(come.contains(id), || format!("{id} exists, but is not in the state"))?;
            continue;
        };
        if changed.contains(id) {
            continue;
        }
        for name in ["name", "value", "forced", "note"] {
            let real = object.get(name).and_then(cty::Value::as_str);
            ensure(stored[name].as_str() == real, || {
                format!("{name} of {id} is {real:?}, but {} in the state", stored[name])
            })?;
        }
    }
    for id in state.keys() {
        ensure(remote.contains_key(id) || gone.contains(id), || {
            format!("{id} is in the state, but does not exist")
        })?;
    }
    Ok(())
}

/// Asserts that the state and the remote have exactly the instances of the model. `orphans` are remote objects that the state cannot know.
pub fn complete(case: &Case, model: &Model, orphans: &BTreeSet<String>) -> Result<(), String> {
    let wanted: Vec<String> = model.instances().into_iter().map(|e| e.address).collect();
    let mut there: Vec<String> = case.addresses().into_iter().filter(|a| !a.contains("data.")).collect();
    there.sort();
    let mut wanted = wanted;
    wanted.sort();
    ensure(wanted == there, || format!("wanted {wanted:#?}\nthere is {there:#?}"))?;
    let names: Vec<String> = {
        let remote = case.remote.lock();
        let objects = remote.objects.iter().filter(|(id, _)| !orphans.contains(*id));
        let mut names: Vec<String> = objects
            .filter_map(|(_, o)| Some(o.get("name")?.as_str()?.to_owned()))
            .collect();
        names.sort();
        names
    };
    let mut wanted: Vec<String> = model.instances().into_iter().map(|e| e.name).collect();
    wanted.sort();
    ensure(wanted == names, || {
        format!("wanted in the remote {wanted:#?}\nthere is {names:#?}")
    })
}

/// Asserts that the next plan is empty.
pub fn settled(case: &Case) -> Result<(), String> {
    let (plan, diagnostics) = case.try_plan();
    ensure(!diagnostics.has_errors(), || crate::support::texts(diagnostics.iter()))?;
    let plan = plan.ok_or("no plan")?;
    ensure(!plan.has_changes(), || {
        format!(
            "the next plan is not empty: {:?} {:?}",
            crate::support::actions(&plan),
            plan.outputs
        )
    })
}
