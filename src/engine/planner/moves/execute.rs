//! Application of move statements to a state.

use std::collections::{BTreeMap, HashMap};

use addrs::{AbsProviderConfig, AbsResource, AbsResourceInstance, Module, ModuleInstance, ModuleStep, Resource};
use provider::RawState;
use provider::{MoveRequest, ObjectRead, Provider};
use schema::Schema;
use state::{Attributes, InstanceState, Object, Relocation, ResourceState, SharedMap, State};
use std::sync::Arc;
use syntax::{Diagnostic, Diagnostics, Range};

use super::Moves;
use super::statement::{MoveKind, Statement};
use crate::identity::identity_problems;
use crate::instance::{encode, located, returned_write_only};
use crate::providers::Providers;

/// Index of the modules of a state by path, so that a statement need not search the whole state.
struct Places {
    /// For each module path, the instances with resources in them or in modules below, and the number of these resources.
    by_path: HashMap<Module, BTreeMap<ModuleInstance, usize>>,
    /// Number of levels of the deepest module.
    depth: usize,
}

impl Places {
    fn new(state: &State) -> Places {
        let mut places = Places {
            by_path: HashMap::new(),
            depth: 0,
        };
        for resource in state.resources.keys() {
            places.add(&resource.module);
        }
        places
    }

    fn add(&mut self, module: &ModuleInstance) {
        self.depth = self.depth.max(module.0.len());
        for length in 0..=module.0.len() {
            let at = ModuleInstance(module.0[..length].into());
            *self.by_path.entry(at.module()).or_default().entry(at).or_default() += 1;
        }
    }

    fn remove(&mut self, module: &ModuleInstance) {
        for length in 0..=module.0.len() {
            let at = ModuleInstance(module.0[..length].into());
            let Some(instances) = self.by_path.get_mut(&at.module()) else {
                continue;
            };
            if let Some(count) = instances.get_mut(&at) {
                *count -= 1;
                if *count == 0 {
                    instances.remove(&at);
                }
            }
        }
    }

    /// Returns the module instances that match one side of a statement.
    fn matching(&self, side: &super::statement::Endpoint) -> Vec<ModuleInstance> {
        let Some(instances) = self.by_path.get(&side.module()) else {
            return Vec::new();
        };
        // If the pattern has a key for every step, at most one instance matches, which is looked up directly.
        let exact: Option<Arc<[ModuleStep]>> = side
            .steps
            .iter()
            .map(|s| {
                Some(ModuleStep {
                    name: s.name.clone(),
                    key: s.key.clone()?,
                })
            })
            .collect();
        match exact {
            Some(steps) => {
                let one = ModuleInstance(steps);
                instances.contains_key(&one).then_some(one).into_iter().collect()
            }
            None => instances.keys().filter(|m| side.leads_to(m)).cloned().collect(),
        }
    }
}

struct Execution<'e, 'p> {
    state: &'e mut State,
    places: Places,
    moves: Moves,
    providers: &'e Providers<'p>,
}

/// Applies statements in the given order.
pub(super) async fn execute<'s>(
    statements: impl Iterator<Item = &'s Statement>,
    state: &mut State,
    providers: &Providers<'_>,
) -> Result<Moves, Diagnostics> {
    let mut execution = Execution {
        places: Places::new(state),
        state,
        moves: Moves::default(),
        providers,
    };
    for statement in statements {
        match statement.kind {
            MoveKind::Call | MoveKind::ModuleInstance => execution.modules(statement),
            MoveKind::Resource => execution.resources(statement).await?,
            MoveKind::ResourceInstance => execution.instances(statement).await?,
        }
    }
    // Recorded dependencies are rewritten once at the end, because a chain of statements can move an object several times.
    let moved = execution.moves.from.iter().map(|(to, from)| (from, to));
    Relocation::new(moved).rewrite(execution.state);
    Ok(execution.moves)
}

impl Execution<'_, '_> {
    fn note(&mut self, from: AbsResourceInstance, to: AbsResourceInstance) {
        // If the object was moved before, its first address is the previous one that the plan shows.
        let from = self.moves.from.remove(&from).unwrap_or(from);
        self.moves.from.insert(to, from);
    }

    /// Moves all resources of the modules that match the statement, and of the modules below. A module stays where it is if its target has
    /// resources; the move is then recorded as blocked.
    fn modules(&mut self, statement: &Statement) {
        let length = statement.from.steps.len();
        for instance in self.places.matching(&statement.from) {
            for module in self.below(&instance) {
                let to = statement.to.destination(&module, length);
                if to == module {
                    continue;
                }
                if self.resources_of(&to).next().is_some() {
                    self.moves.blocked.insert(module.to_string(), to.to_string());
                    continue;
                }
                let resources: Vec<AbsResource> = self.resources_of(&module).cloned().collect();
                for resource in resources {
                    let new = resource.resource.absolute(&to);
                    self.move_resource(&resource, new);
                }
            }
        }
    }

    /// Returns this module instance and the instances below it, without those that have no resources of their own.
    fn below(&self, module: &ModuleInstance) -> Vec<ModuleInstance> {
        let mut out: Vec<ModuleInstance> = Vec::new();
        // The map is sorted by depth and then by module, so the instances of one depth are one range.
        for depth in module.0.len()..=self.places.depth {
            let missing = depth - module.0.len();
            let first = ModuleInstance(
                module
                    .0
                    .iter()
                    .cloned()
                    .chain(std::iter::repeat_n(
                        ModuleStep {
                            name: "".into(),
                            key: addrs::InstanceKey::None,
                        },
                        missing,
                    ))
                    .collect(),
            );
            let found = self.state.resources.range(first_of(&first)..).map(|(r, _)| &r.module);
            for m in found.take_while(|m| m.0.len() == depth && module.contains(m)) {
                if out.last() != Some(m) {
                    out.push(m.clone());
                }
            }
        }
        out
    }

    fn resources_of<'m>(&'m self, module: &'m ModuleInstance) -> impl Iterator<Item = &'m AbsResource> {
        let from = self.state.resources.range(first_of(module)..).map(|(r, _)| r);
        from.take_while(|r| r.module == *module)
    }

    /// Moves a resource with all its instances to an address without objects.
    fn move_resource(&mut self, from: &AbsResource, to: AbsResource) {
        let Some(resource) = self.state.resources.remove(from) else {
            return;
        };
        self.places.remove(&from.module);
        self.places.add(&to.module);
        for key in resource.instances.keys() {
            self.note(from.instance(key.clone()), to.instance(key.clone()));
        }
        self.state.resources.insert(to, resource);
    }

    async fn resources(&mut self, statement: &Statement) -> Result<(), Diagnostics> {
        let (Some(from), Some(to)) = (&statement.from.resource, &statement.to.resource) else {
            return Ok(());
        };
        for module in self.places.matching(&statement.from) {
            let old = from.absolute(&module);
            if !self.state.resources.contains_key(&old) {
                continue;
            }
            let new = to.absolute(&statement.to.destination(&module, statement.from.steps.len()));
            // As in Terraform, the object at the new address stays, and the plan warns that the move had no effect.
            if self.state.resources.contains_key(&new) {
                self.moves.blocked.insert(old.to_string(), new.to_string());
                continue;
            }
            if let Some(conversion) = self.conversion(statement, &old, &new).await? {
                let mut instances = BTreeMap::new();
                for (key, instance) in &self.state.resources[&old].instances {
                    let (from, to) = (old.instance(key.clone()), new.instance(key.clone()));
                    instances.insert(key.clone(), conversion.instance(instance, &from, &to).await?);
                }
                let provider = conversion.target.clone();
                self.state.resources.insert(
                    old.clone(),
                    ResourceState {
                        provider,
                        instances: instances.into(),
                    },
                );
            }
            self.move_resource(&old, new);
        }
        Ok(())
    }

    async fn instances(&mut self, statement: &Statement) -> Result<(), Diagnostics> {
        let (Some(from), Some(to)) = (&statement.from.resource, &statement.to.resource) else {
            return Ok(());
        };
        let key = statement.from.key.clone().unwrap_or_default();
        for module in self.places.matching(&statement.from) {
            let old = from.absolute(&module);
            let there = |state: &State| {
                state
                    .resources
                    .get(&old)
                    .is_some_and(|r| r.instances.contains_key(&key))
            };
            if !there(self.state) {
                continue;
            }
            let new = to
                .absolute(&statement.to.destination(&module, statement.from.steps.len()))
                .instance(statement.to.key.clone().unwrap_or_default());
            let old_instance = old.instance(key.clone());
            if self.state.instance(&new).is_some() {
                self.moves.blocked.insert(old_instance.to_string(), new.to_string());
                continue;
            }
            let new_resource = new.containing_resource();
            let mut converted = None;
            if let Some(conversion) = self.conversion(statement, &old, &new_resource).await?
                && let Some(instance) = self.state.instance(&old_instance)
            {
                let instance = conversion.instance(instance, &old_instance, &new).await?;
                converted = Some((conversion.target, instance));
            }
            let Some(resource) = self.state.resources.get_mut(&old) else {
                continue;
            };
            let Some(instance) = resource.instances.remove(&key) else {
                continue;
            };
            // Without a conversion, the object keeps its provider, so that a later statement can still see that a conversion is needed.
            let (provider, instance) = converted.unwrap_or_else(|| (resource.provider.clone(), instance));
            // A state must not contain a resource without instances.
            if resource.instances.is_empty() {
                self.state.resources.remove(&old);
                self.places.remove(&old.module);
            }
            let places = &mut self.places;
            let target = self.state.resources.entry(new_resource.clone()).or_insert_with(|| {
                places.add(&new_resource.module);
                ResourceState {
                    provider,
                    instances: SharedMap::default(),
                }
            });
            target.instances.insert(new.resource.key.clone(), instance);
            self.note(old_instance, new);
        }
        Ok(())
    }

    /// Returns the conversion between resource types that a statement requires, if any.
    async fn conversion(
        &self,
        statement: &Statement,
        old: &AbsResource,
        new: &AbsResource,
    ) -> Result<Option<Conversion>, Diagnostics> {
        // Validation reports targets that are not configured.
        let Some(target) = &statement.provider else {
            return Ok(None);
        };
        let Some(existing) = self.state.resources.get(old) else {
            return Ok(None);
        };
        if target.provider == existing.provider.provider && old.resource.ty == new.resource.ty {
            return Ok(None);
        }
        let schemas = self.providers.schemas();
        let capable = schemas
            .providers
            .get(&target.provider)
            .is_some_and(|s| s.capabilities.move_resource_state);
        if !capable {
            return Err(Diagnostic::error(
                "Unsupported `moved` across resource types",
                format!(
                    "The provider \"{}\" cannot take over objects of other resource types.",
                    target.provider
                ),
            )
            .at(&statement.range)
            .into());
        }
        let schema =
            crate::object_config::resource_schema(schemas, &target.provider, &new.resource, Some(&statement.range))?;
        Ok(Some(Conversion {
            provider: self.providers.unconfigured(&target.provider).await?,
            target: target.clone(),
            schema: Arc::new(schema.clone()),
            source: existing.provider.provider.to_string(),
            range: statement.range.clone(),
        }))
    }
}

fn move_request<'r>(object: &Object, source_provider: &'r str, source_type: &'r str) -> MoveRequest<'r> {
    let identity = object.identity.as_ref();
    MoveRequest {
        source_provider,
        source_type,
        source_version: object.schema_version,
        source_state: match &object.attributes {
            Attributes::Json(json) => RawState::Json(json.as_str().as_bytes().into()),
            Attributes::Flat(flat) => RawState::Flatmap((**flat).clone()),
        },
        source_private: object.private.clone(),
        source_identity: identity.and_then(|i| Some((i.value.as_ref()?.as_str().as_bytes().into(), i.schema_version))),
    }
}

const INVALID_MOVED: &str = "Provider returned invalid value";

/// A conversion to another resource type, or to the same type of another provider.
struct Conversion {
    provider: Arc<dyn Provider>,
    target: AbsProviderConfig,
    schema: Arc<Schema>,
    /// Address of the provider of the source type.
    source: String,
    /// Range of the statement.
    range: Range,
}

impl Conversion {
    /// Converts all objects of an instance.
    async fn instance(
        &self,
        instance: &InstanceState,
        from: &AbsResourceInstance,
        to: &AbsResourceInstance,
    ) -> Result<InstanceState, Diagnostics> {
        let mut converted = InstanceState::default();
        if let Some(object) = &instance.current {
            let what = format!("the object of {from}");
            converted.current = Some(self.object(object, from, to, &what).await?);
        }
        // Deposed objects are converted, too, because they will be refreshed and destroyed as objects of the new type.
        for (key, object) in &instance.deposed {
            let what = format!("the deposed object {key} of {from}");
            let object = self.object(object, from, to, &what).await?;
            converted.deposed.insert(key.clone(), object);
        }
        Ok(converted)
    }

    /// Has the provider convert an object. `what` names it in errors.
    async fn object(
        &self,
        object: &Object,
        from: &AbsResourceInstance,
        to: &AbsResourceInstance,
        what: &str,
    ) -> Result<Arc<Object>, Diagnostics> {
        let request = move_request(object, &self.source, &from.resource.resource.ty);
        let answer = self.provider.move_state(&to.resource.resource.ty, request).await?;
        let problems: Diagnostics = located(answer.diagnostics, None, to)
            .into_iter()
            .map(|d| if d.subject.is_none() { d.at(&self.range) } else { d })
            .collect();
        if problems.has_errors() {
            return Err(problems);
        }
        let ObjectRead {
            object: value,
            private,
            identity,
        } = answer.value;
        if !value.is_present() || !value.is_wholly_known() {
            return Err(Diagnostic::error(
                INVALID_MOVED,
                format!(
                    "The provider returned no object, or one that is not wholly known, when asked to take over {what} as \
                     {to}. This is a bug in the provider; please report it to its maintainers."
                ),
            )
            .at(&self.range)
            .into());
        }
        let target = &self.target.provider;
        let when = format!("when asked to take over {what}");
        let mut problems = returned_write_only(&value, &self.schema, target, INVALID_MOVED, &when, to);
        problems.extend(identity_problems(identity.as_ref(), &self.schema, true, target, to));
        if problems.has_errors() {
            return Err(problems.into_iter().map(|d| d.at(&self.range)).collect());
        }
        // The sensitive paths of the object are dropped, because they refer to the schema of the old type.
        let like = Object {
            sensitive_paths: Vec::new(),
            ..object.clone()
        };
        let marked = schema::marking::mark_sensitive(&self.schema.block, value);
        let converted = encode(&self.schema, &marked, identity.as_ref(), private, like)?;
        Ok(Arc::new(converted))
    }
}

/// Returns the smallest possible address of a resource in a module, as the start of a range of the sorted state.
fn first_of(module: &ModuleInstance) -> AbsResource {
    Resource::data("", "").absolute(module)
}
