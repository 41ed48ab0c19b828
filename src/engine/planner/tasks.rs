//! Planning of one resource: all its instances, in the configuration and in the state, concurrently.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use addrs::{AbsProviderConfig, AbsResource, AbsResourceInstance, ConfigResource, InstanceKey, Mode as ResourceMode};
use config::Resource;
use futures::StreamExt;
use syntax::Diagnostic;
use tokio::sync::SemaphorePermit;

use crate::blocks::Block;
use crate::eval::Reported;
use crate::eval::provider_instances::{NOT_PRESENT, ProviderUse};
use crate::events::{Event, PlanningObject};
use crate::lanes::LanePlace;
use crate::object_config;
use crate::plan::Reason;

use super::targets::Orphan;
use super::{PlannedResource, Planner, import};

/// Maximum number of dependents that the message about a kept object names.
const NAMED_USERS: usize = 3;

/// Concurrency permit that is held while an object is planned: from the lane of its provider, or from the shared limit.
enum Place<'s> {
    Lane { _place: LanePlace },
    Shared { _permit: SemaphorePermit<'s> },
}

/// One object to plan.
enum Task {
    /// A configured instance.
    Desired(AbsResourceInstance, crate::eval::Repetition),
    /// An instance that is only in the state. In a destroy plan, every instance with an object.
    Orphan(AbsResourceInstance, Reason),
    /// A deposed object.
    Deposed(AbsResourceInstance, state::DeposedKey),
}

impl Task {
    fn address(&self) -> &AbsResourceInstance {
        match self {
            Task::Desired(address, _) | Task::Orphan(address, _) | Task::Deposed(address, _) => address,
        }
    }
}

impl Planner<'_> {
    pub(super) async fn resource(&self, address: &ConfigResource) -> Result<(), Reported> {
        let config = self.context.inputs.config;
        let block = config.resource(address);
        let in_state = self.resources.by_config.get(address).map_or(&[][..], Vec::as_slice);
        let provider_address = match (block, in_state.first()) {
            // The resource is only in the state, which names the provider configuration that destroys its objects.
            (None, Some(resource)) => self.context.inputs.state.resources[resource].provider.clone(),
            _ => config.provider_for(address),
        };
        let tasks = self.tasks(address, block, in_state)?;
        if tasks.is_empty() {
            return Ok(());
        }
        self.progress.known.fetch_add(tasks.len(), Ordering::Relaxed);
        let expanded = self.context.evaluator.provider_expansion(&provider_address)?.is_some();
        let provider = match expanded {
            // With `for_each` in the provider block, each task determines its own provider instance.
            true => self.context.providers.unconfigured(&provider_address.provider).await,
            false => self.context.providers.get(&provider_address).await,
        };
        let provider = provider.map_err(|d| self.context.fail(d))?;
        let schema = object_config::resource_schema(
            self.context.providers.schemas(),
            &provider_address.provider,
            &address.resource,
            block.map(|b| &b.type_range),
        )
        .map_err(|d| self.context.fail(d))?;
        let dependencies = self.dependencies_of(address);
        let imports = if self.spec.kind.imports() && block.is_some() {
            self.imports(address)?
        } else {
            import::Imports::new()
        };
        let planning = PlannedResource {
            address,
            block,
            provider,
            provider_address,
            expanded,
            schema,
            dependencies,
            imports,
        };
        let planning = &planning;
        let lanes = self.context.inputs.lanes;
        let provider = &planning.provider_address.provider;
        let set = lanes.and_then(|lanes| lanes.fixed(provider));
        let local_limit = self.context.inputs.local_parallelism().filter(|_| {
            set.is_none()
                && address.resource.mode == ResourceMode::Managed
                && self.is_state_only(planning, &address.resource.ty)
        });
        let local = local_limit.is_some();
        let lane = set.or_else(|| lanes.filter(|_| !local)?.lane(provider));
        let lane = lane.as_ref();
        let usual = || self.context.inputs.parallelism.max(1);
        let at_once = local_limit.unwrap_or_else(|| lane.map_or_else(usual, |lane| lane.highest()));
        let mut results = futures::stream::iter(tasks)
            .map(|task| async move {
                let slots = if local {
                    &self.limits.local_slots
                } else {
                    &self.limits.slots
                };
                // The slots limit all resources together, and the stream below limits this resource.
                let _slot = match lane {
                    Some(lane) => Place::Lane {
                        _place: lane.enter().await,
                    },
                    None => Place::Shared {
                        _permit: slots.acquire().await.map_err(|_| Reported)?,
                    },
                };
                if self.context.inputs.stop.is_requested() {
                    return Err(Reported);
                }
                self.run_task(planning, task).await
            })
            .buffer_unordered(at_once);
        let mut failed = false;
        while let Some(result) = results.next().await {
            failed |= result.is_err();
            let done = self.progress.finished.fetch_add(1, Ordering::Relaxed) + 1;
            let total = self.progress.known.load(Ordering::Relaxed);
            self.context.inputs.events.event(Event::Progress { done, total });
            self.context.inputs.report_lanes();
        }
        if failed { Err(Reported) } else { Ok(()) }
    }

    async fn run_task(&self, planning: &PlannedResource<'_>, task: Task) -> Result<(), Reported> {
        let own;
        let mut planning = planning;
        let provider_address = self.provider_of(planning, &task)?;
        let usual = match provider_address.key {
            Some(_) => self.context.providers.get(&provider_address).await,
            None => Ok(planning.provider.clone()),
        };
        let usual = usual.map_err(|d| self.context.fail(d))?;
        let source = self.context.inputs.providers;
        let provider = source.for_object(&provider_address, task.address(), usual);
        if !Arc::ptr_eq(&provider, &planning.provider) || provider_address.key.is_some() {
            own = PlannedResource {
                provider,
                provider_address,
                ..planning.clone()
            };
            planning = &own;
        }
        let events = self.context.inputs.events;
        let span = match (&task, planning.address.resource.mode) {
            (_, ResourceMode::List | ResourceMode::Ephemeral) => None,
            (Task::Deposed(address, key), _) => PlanningObject::start(events, address, Some(&key.0)),
            _ => PlanningObject::start(events, task.address(), None),
        };
        let result = match (task, planning.address.resource.mode) {
            (Task::Desired(address, repetition), ResourceMode::Managed) => {
                self.managed(planning, &address, repetition).await
            }
            (Task::Desired(address, repetition), ResourceMode::Data) => {
                Box::pin(self.data(planning, &address, repetition)).await
            }
            // Ephemeral resources are opened by the module `ephemeral`.
            (Task::Desired(..), ResourceMode::Ephemeral) => Ok(()),
            (Task::Desired(address, repetition), ResourceMode::List) => {
                Box::pin(self.list(planning, &address, repetition)).await
            }
            (Task::Orphan(address, reason), ResourceMode::Managed) => self.delete(planning, &address, reason).await,
            (Task::Orphan(address, _), _) => {
                // In a destroy plan, apply removes the data source at the end, because objects to be destroyed may depend on it.
                if !self.spec.kind.is_destroy() {
                    self.prior().remove_instance(&address);
                }
                Ok(())
            }
            (Task::Deposed(address, key), _) => Box::pin(self.delete_deposed(planning, &address, key)).await,
        };
        if let Some(span) = span.filter(|_| result.is_ok()) {
            span.complete();
        }
        result
    }

    /// Returns the provider configuration of a task: the one that the resource block selects, or for an object without configuration the
    /// one that the state records.
    fn provider_of(&self, planning: &PlannedResource<'_>, task: &Task) -> Result<AbsProviderConfig, Reported> {
        let evaluator = self.context.evaluator;
        let address = task.address();
        if let Task::Desired(_, repetition) = task {
            return match planning.block {
                Some(block) if planning.expanded => evaluator.provider_used(&ProviderUse {
                    module: &address.module,
                    local: &block.local_provider(),
                    reference: block.provider_ref.as_ref(),
                    repetition,
                    about: address,
                }),
                _ => Ok(planning.provider_address.clone()),
            };
        }
        let stored = self.context.inputs.state.instance(address);
        let key = stored.and_then(|instance| instance.provider_key.clone());
        let is_current = key.is_none() && !planning.expanded;
        // No request is needed to remove a data source from the state, so its provider instance need not exist.
        if is_current || planning.address.resource.mode != ResourceMode::Managed {
            return Ok(planning.provider_address.clone());
        }
        let used = planning.provider_address.instance(key);
        if evaluator.has_provider_instance(&used)? {
            return Ok(used);
        }
        Err(self.context.fail(no_instance(&used, task)))
    }

    /// Returns the planning tasks of a resource: one for each configured instance, and one for each other object in the state.
    fn tasks(
        &self,
        address: &ConfigResource,
        block: Option<&Resource>,
        in_state: &[AbsResource],
    ) -> Result<Vec<Task>, Reported> {
        let mut tasks = Vec::new();
        let destroy = self.spec.kind.is_destroy();
        let mut desired: HashMap<addrs::ModuleInstance, Arc<crate::eval::Expansion>> = HashMap::new();
        let module_known = self.context.inputs.config.node(&address.module).is_some();
        let for_provider = self.resources.read_for_providers.contains(address);
        if for_provider {
            self.dependency_evaluation
                .evaluate(self.context.evaluator, &Block::Resource(address.clone()))?;
        }
        if for_provider && !self.spec.options.refresh && !in_state.is_empty() {
            // With `-refresh=false`, provider configurations use the stored results, so nothing is read.
            return Ok(tasks);
        }
        if (!destroy || for_provider) && block.is_some() {
            for module in self.context.evaluator.module_instances(&address.module)? {
                let expansion = self.context.evaluator.resource_expansion(&module, &address.resource)?;
                for key in expansion.keys() {
                    let repetition = expansion.repetition(&key);
                    let instance = address.resource.absolute(&module).instance(key);
                    if self.spec.selection.includes_instance(&instance) {
                        tasks.push(Task::Desired(instance, repetition));
                    }
                }
                desired.insert(module, expansion);
            }
        }
        let module_instances: HashSet<addrs::ModuleInstance> = if destroy || !module_known {
            HashSet::new()
        } else {
            self.context
                .evaluator
                .module_instances(&address.module)?
                .into_iter()
                .collect()
        };
        for resource in in_state {
            let Some(existing) = self.context.inputs.state.resources.get(resource) else {
                continue;
            };
            let expansion = desired.get(&resource.module);
            for (key, instance) in &existing.instances {
                let at = resource.instance(key.clone());
                if !self.spec.selection.includes_instance(&at) {
                    continue;
                }
                if instance.current.is_some() && !expansion.is_some_and(|e| e.has(key)) {
                    let reason = if destroy {
                        Reason::None
                    } else if block.is_none() {
                        if self.spec.moves.from.contains_key(&at) {
                            Reason::DeleteBecauseNoMoveTarget
                        } else {
                            Reason::DeleteBecauseNoResourceConfig
                        }
                    } else if !module_instances.contains(&resource.module) {
                        Reason::DeleteBecauseNoModule
                    } else {
                        orphan_reason(expansion.map(|e| &**e), key)
                    };
                    if self.is_destroyed_as_orphan(&at) {
                        tasks.push(Task::Orphan(at.clone(), reason));
                    }
                }
                if !self.spec.selection.destroys_deposed(&at) {
                    continue;
                }
                for deposed in instance.deposed.keys() {
                    tasks.push(Task::Deposed(at.clone(), deposed.clone()));
                }
            }
        }
        Ok(tasks)
    }
}

impl Planner<'_> {
    /// Returns true if an orphan is destroyed. It is kept if objects depend on it that the plan leaves out, unless a target names the
    /// orphan. In both cases the dependents are recorded for a warning.
    fn is_destroyed_as_orphan(&self, address: &AbsResourceInstance) -> bool {
        if address.resource.resource.mode != ResourceMode::Managed || !self.spec.kind.compares_with_configuration() {
            return true;
        }
        match self.spec.selection.orphan(address) {
            Orphan::Destroyed => true,
            Orphan::Needed(user) => {
                let note = (address.clone(), user.to_string());
                self.results().destroyed_though_needed.push(note);
                true
            }
            Orphan::Kept(users) => {
                let named: Vec<String> = users.iter().take(NAMED_USERS).map(ToString::to_string).collect();
                let more = match users.len().saturating_sub(NAMED_USERS) {
                    0 => String::new(),
                    more => format!(" and {more} more"),
                };
                let note = (address.clone(), format!("{}{more}", named.join(", ")));
                self.results().kept_for_others.push(note);
                false
            }
        }
    }
}

/// Returns the error about an object whose provider instance is not configured any more.
fn no_instance(used: &AbsProviderConfig, task: &Task) -> Diagnostic {
    let address = task.address();
    let object = match task {
        Task::Deposed(_, key) => format!("The deposed object {key} of {address}"),
        Task::Desired(..) | Task::Orphan(..) => address.to_string(),
    };
    let advice = match used.key {
        Some(_) => {
            "Put the key back into the for_each of the provider configuration, apply, and remove the key afterwards. If the \
             resource and its provider have the same for_each, a second collection must say which objects exist."
        }
        None => {
            "The configuration has got for_each since. Remove for_each, apply, and add it again afterwards; or configure the \
             object, with the key of the instance that manages it from now on."
        }
    };
    Diagnostic::error(
        NOT_PRESENT,
        format!(
            "{object} can be destroyed only through the provider instance {used}, which the configuration does not have any \
             more. {advice}"
        ),
    )
    .about(address)
}

fn orphan_reason(expansion: Option<&crate::eval::Expansion>, key: &InstanceKey) -> Reason {
    use crate::eval::Expansion;
    match (expansion, key) {
        (None, _) => Reason::DeleteBecauseNoResourceConfig,
        (Some(Expansion::Count(_)), InstanceKey::Int(_)) => Reason::DeleteBecauseCountIndex,
        (Some(Expansion::ForEach(_)), InstanceKey::String(_)) => Reason::DeleteBecauseEachKey,
        (Some(Expansion::Disabled), InstanceKey::None) => Reason::DeleteBecauseEnabledFalse,
        _ => Reason::DeleteBecauseWrongRepetition,
    }
}
