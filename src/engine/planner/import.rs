//! `import` blocks: existing objects that become part of the state.

use provider::{ImportTarget, Imported as ImportedObject, ObjectRead, ReadRequest};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use addrs::{AbsResourceInstance, ConfigResource, InstanceKey, ModuleInstance};
use config::{Import, ImportBy, ModuleNode};
use cty::Value;
use state::Object;
use syntax::ast::{Expr, TraversalStep};
use syntax::diag::Extra;
use syntax::{Diagnostic, Diagnostics, Range};

use super::{PlannedResource, Planner};
use crate::blocks::Block;
use crate::eval::{ModuleScope, Repetition, Reported};
use crate::events::{Event, Refreshing};
use crate::identity::identity_text;
use crate::import_id::{INVALID_ID, INVALID_IDENTITY, identifier, import_identity};
use crate::inputs::Inputs;
use crate::instance::{
    PROVIDER_BUG, StoredObject, encode, identity as shown_identity, located, read_problems, returned_write_only,
};
use crate::plan::ImportedBy;

/// An imported object.
pub(super) struct Imported {
    pub(super) stored: StoredObject,
    pub(super) by: ImportedBy,
}

/// Object to import, as an import block or the command `import` identifies it.
pub(super) struct Requested {
    target: ImportTarget,
    /// Set if a part of the ID or identity is sensitive, so that it must not be displayed.
    sensitive: bool,
}

/// Imports of a resource's instances: the import block, the module instance in which it is evaluated, and its `each`.
pub(super) type Imports<'c> = HashMap<AbsResourceInstance, (&'c Import, ModuleInstance, Repetition)>;

fn no_configuration(detail: String) -> Diagnostic {
    Diagnostic::error("Configuration for import target does not exist", detail)
}

/// Converts a string, or a whole number that is not negative, to an instance key. `None` for other values.
pub(super) fn instance_key(key: &Value) -> Option<InstanceKey> {
    match (key.as_arc_str(), key.as_number().and_then(cty::Number::to_i64)) {
        (Some(text), _) => Some(InstanceKey::String(text.clone())),
        (_, Some(n)) if n >= 0 => Some(InstanceKey::Int(n.unsigned_abs())),
        _ => None,
    }
}

/// Returns the only object of the imported resource type in a provider's response. The error has a short message and its explanation.
fn only_object(
    found: Vec<ImportedObject>,
    address: &AbsResourceInstance,
    by_identity: bool,
) -> Result<ImportedObject, (String, &'static str)> {
    let invalid = |summary: &str, what| Err((summary.to_owned(), what));
    // The response may contain related objects of other types. They are ignored, because the import has no address for them.
    let mut found = found.into_iter().filter(|i| i.ty == address.resource.resource.ty);
    let (first, more) = (found.next(), found.next());
    let Some(first) = first else {
        let what = "the provider returned no object, and no error to say why";
        return invalid("Import returned no resources", what);
    };
    if more.is_some() {
        let what = "the provider returned several objects of this type, of which only one can be at the address";
        return invalid("Multiple import states not supported", what);
    }
    if by_identity && first.identity.is_none() {
        let what = "the provider returned an object without an identity";
        return invalid(&format!("import of {address} didn't return an identity"), what);
    }
    if first.state.is_null() && !by_identity {
        return invalid(
            "Import returned null resource",
            "the provider returned an object without a state",
        );
    }
    Ok(first)
}

impl Planner<'_> {
    /// Returns the instances of a resource that are to be imported. If blocks in several modules import the same instance, the block in the
    /// outermost module takes precedence.
    pub(super) fn imports(&self, resource: &ConfigResource) -> Result<Imports<'_>, Reported> {
        let mut out = Imports::new();
        let mut modules: Option<HashSet<ModuleInstance>> = None;
        let mut node = Some(&self.context.inputs.config.root);
        let mut inner = resource.module.0.iter();
        while let Some(declaring) = node {
            node = inner.next().and_then(|name| declaring.children.get(name));
            let blocks = declaring.module.imports.iter();
            for import in blocks.filter(|i| i.imports_to(&declaring.path, resource)) {
                // Modules are expanded only when an import block matches, because most resources are not imported.
                let modules = match &modules {
                    Some(modules) => modules,
                    None => {
                        let instances = self.context.evaluator.module_instances(&resource.module)?;
                        modules.insert(instances.into_iter().collect())
                    }
                };
                for module in self.context.evaluator.module_instances(&declaring.path)? {
                    for repetition in self.import_repetitions(import, &module)? {
                        let target = self.import_target(import, &module, &repetition)?;
                        self.check_import_target(import, &target, modules)?;
                        let import = (import, module.clone(), repetition);
                        out.entry(target).or_insert(import);
                    }
                }
            }
        }
        Ok(out)
    }

    /// Reports an error if the target instance of an import is not in the configuration.
    fn check_import_target(
        &self,
        import: &Import,
        target: &AbsResourceInstance,
        modules: &HashSet<ModuleInstance>,
    ) -> Result<(), Reported> {
        let evaluator = self.context.evaluator;
        if modules.contains(&target.module)
            && evaluator
                .resource_expansion(&target.module, &target.resource.resource)?
                .has(&target.resource.key)
        {
            return Ok(());
        }
        let problem = no_configuration(format!(
            "There is no instance {target} in the configuration, which an import block names. Every object that is imported \
             needs an instance of a resource block."
        ));
        Err(self.context.fail(problem.at(import.to.range())))
    }

    /// Reports import blocks for resources that are not in the configuration.
    pub(super) fn check_imports(&self) {
        let config = self.context.inputs.config;
        for node in config.nodes() {
            for import in &node.module.imports {
                let target = import.target(&node.path);
                if config.resource(&target).is_none() {
                    let problem = no_configuration(unconfigured(self.context.inputs, node, import, &target));
                    self.context.evaluator.report([problem.at(import.to.range())]);
                }
            }
        }
    }

    /// Returns the object to import for an instance, if an import block has that instance as its target.
    pub(super) fn import_target_of(
        &self,
        p: &PlannedResource<'_>,
        address: &AbsResourceInstance,
    ) -> Result<Option<Requested>, Reported> {
        let Some((import, module, repetition)) = p.imports.get(address) else {
            return Ok(None);
        };
        self.evaluate_by(p, import, module, repetition.clone()).map(Some)
    }

    fn import_repetitions(&self, import: &Import, module: &ModuleInstance) -> Result<Vec<Repetition>, Reported> {
        let Some(expr) = &import.for_each else {
            return Ok(vec![Repetition::default()]);
        };
        let scope = self.context.evaluator.scope(module).ok_or(Reported)?;
        self.context.evaluator.import_for_each(expr, &scope)
    }

    fn import_target(
        &self,
        import: &Import,
        module: &ModuleInstance,
        repetition: &Repetition,
    ) -> Result<AbsResourceInstance, Reported> {
        if let Some(address) = &import.to_instance {
            return Ok(within(module, address.clone()));
        }
        let scope = self
            .context
            .evaluator
            .scope_with(module, repetition.clone(), None)
            .ok_or(Reported)?;
        // The instance keys in the address are expressions. The address is written as text with their values, and parsed like an address on
        // the command line.
        let mut text = String::new();
        self.address_text(&import.to, &scope, &mut text)?;
        let address = addrs::parse::resource_instance(&text).map_err(|e| {
            self.context
                .fail(Diagnostic::error(e.summary, e.detail).at(import.to.range()))
        })?;
        Ok(within(module, address))
    }

    /// Appends the text of an address whose keys may be expressions.
    fn address_text(&self, expr: &Expr, scope: &ModuleScope<'_>, out: &mut String) -> Result<(), Reported> {
        let invalid = |range: &Range, detail: &str| {
            self.context
                .fail(Diagnostic::error("Invalid import address", detail).at(range))
        };
        let key = |key: &Value, range: &Range, out: &mut String| {
            let key = instance_key(&key.clone().unmark().0).ok_or_else(|| {
                invalid(
                    range,
                    "The instance key must be a string or a whole number that is known during planning.",
                )
            })?;
            out.push_str(&key.to_string());
            Ok(())
        };
        let steps = |steps: &[TraversalStep], out: &mut String| {
            for step in steps {
                match step {
                    TraversalStep::Attribute { name, .. } => {
                        out.push('.');
                        out.push_str(name);
                    }
                    TraversalStep::Index { key: value, range } => key(value, range, out)?,
                    TraversalStep::Splat { range } => return Err(invalid(range, "An address cannot contain a splat.")),
                }
            }
            Ok(())
        };
        match expr {
            Expr::Traversal(traversal) => {
                out.push_str(&traversal.root);
                steps(&traversal.steps, out)
            }
            Expr::Index {
                collection, key: value, ..
            } => {
                self.address_text(collection, scope, out)?;
                key(&self.context.evaluator.evaluate(value, scope)?, value.range(), out)
            }
            Expr::Relative {
                source, steps: more, ..
            } => {
                self.address_text(source, scope, out)?;
                steps(more, out)
            }
            other => Err(invalid(
                other.range(),
                "This is not the address of a resource instance.",
            )),
        }
    }

    fn evaluate_by(
        &self,
        p: &PlannedResource<'_>,
        import: &Import,
        module: &ModuleInstance,
        repetition: Repetition,
    ) -> Result<Requested, Reported> {
        let scope = self
            .context
            .evaluator
            .scope_with(module, repetition, None)
            .ok_or(Reported)?;
        let expr = import.by.expr();
        let value = self.context.evaluator.evaluate(expr, &scope)?;
        let sensitive = value.deep_marks().is_sensitive();
        let (target, summary, argument) = match &import.by {
            ImportBy::Id(_) => {
                let id = identifier(value, expr.range()).map_err(|problem| self.context.fail(problem))?;
                (id.map(ImportTarget::Id), INVALID_ID, "id")
            }
            ImportBy::Identity(_) => {
                let ty = &p.address.resource.ty;
                let identity = import_identity(value, p.schema, ty, expr.range());
                let identity = identity.map_err(|problem| self.context.fail(problem))?;
                (identity.map(ImportTarget::Identity), INVALID_IDENTITY, "identity")
            }
        };
        target
            .map(|target| Requested { target, sensitive })
            .ok_or_else(|| self.context.fail(not_known(summary, argument, expr.range())))
    }

    /// Reports invalid import IDs of resources that are not in the configuration, in addition to the missing resource block. Otherwise
    /// users would see this error only after they have written the block. Called after the walk, when the blocks that the IDs refer to have
    /// been planned.
    pub(super) fn check_ids_of_unconfigured(&self) {
        let config = self.context.inputs.config;
        for node in config.nodes() {
            for import in &node.module.imports {
                if config.resource(&import.target(&node.path)).is_none() {
                    // `check_id` reports its failures itself.
                    let _: Result<(), Reported> = self.check_id(import, &node.path);
                }
            }
        }
    }

    fn check_id(&self, import: &Import, declared_in: &addrs::Module) -> Result<(), Reported> {
        let ImportBy::Id(expr) = &import.by else { return Ok(()) };
        let evaluator = self.context.evaluator;
        for module in evaluator.module_instances(declared_in)? {
            for repetition in self.import_repetitions(import, &module)? {
                let scope = evaluator.scope_with(&module, repetition, None).ok_or(Reported)?;
                let value = evaluator.evaluate(expr, &scope)?;
                let id = identifier(value, expr.range()).map_err(|problem| self.context.fail(problem))?;
                if id.is_none() {
                    return Err(self.context.fail(not_known(INVALID_ID, "id", expr.range())));
                }
            }
        }
        Ok(())
    }

    /// If this plan is for the command `import`, and this instance is its target, imports the object and returns true.
    pub(super) async fn import_only(
        &self,
        p: &PlannedResource<'_>,
        address: &AbsResourceInstance,
    ) -> Result<bool, Reported> {
        let Some((_, id)) = self
            .spec
            .options
            .import
            .as_ref()
            .filter(|(imported, _)| imported == address)
        else {
            return Ok(false);
        };
        let requested = Requested {
            target: ImportTarget::Id(id.clone()),
            sensitive: false,
        };
        let imported = self.import(p, address, requested).await?;
        // The object is not from this configuration, so no dependencies are recorded until an apply.
        let object = Object {
            dependencies: Arc::default(),
            ..(*imported.stored.object).clone()
        };
        self.prior()
            .set_current(address, &p.provider_address, Some(Arc::new(object)));
        self.context
            .evaluator
            .set_object(address, imported.stored.marked(p.schema));
        Ok(true)
    }

    /// Imports an object by its identifier or identity, refreshes it, and records it in the prior state.
    pub(super) async fn import(
        &self,
        p: &PlannedResource<'_>,
        address: &AbsResourceInstance,
        Requested { target, sensitive }: Requested,
    ) -> Result<Imported, Reported> {
        let ty = &address.resource.resource.ty;
        let shown_target = |target: &ImportTarget| match sensitive {
            true => ImportedBy::Sensitive,
            false => target.into(),
        };
        let (by, said) = match &target {
            ImportTarget::Id(_) if sensitive => ("ID", "(sensitive value)".to_owned()),
            ImportTarget::Id(id) => ("ID", format!("\"{id}\"")),
            ImportTarget::Identity(_) if sensitive => ("identity", "(sensitive value)".to_owned()),
            ImportTarget::Identity(identity) => ("identity", identity_text(identity)),
        };
        self.context.inputs.events.event(Event::ImportStart {
            address: address.clone(),
            target: shown_target(&target),
        });
        let answer = p.provider.import(ty, &target).await.map_err(|d| self.context.fail(d))?;
        self.context.report(located(answer.diagnostics, None, address))?;
        let shown = match &target {
            _ if sensitive => None,
            ImportTarget::Id(id) => Some(("id".to_owned(), id.to_string())),
            ImportTarget::Identity(_) => answer.value.first().and_then(|first| shown_identity(&first.state)),
        };
        let refreshing = Refreshing::start(self.context.inputs.events, address, shown);
        let by_identity = matches!(target, ImportTarget::Identity(_));
        let first = only_object(answer.value, address, by_identity).map_err(|(summary, what)| {
            let detail = format!("While importing {address} with the {by} {said}, {what}. {PROVIDER_BUG}");
            self.context.fail(Diagnostic::error(summary, detail).about(address))
        })?;
        let provider = &p.provider_address.provider;
        self.context.report(returned_write_only(
            &first.state,
            p.schema,
            provider,
            "Import returned a non-null value for a write-only attribute",
            "while importing",
            address,
        ))?;
        // The imported object may have only the identifying attributes, so it is read even with `-refresh=false`.
        let answer = p
            .provider
            .read(
                ty,
                ReadRequest {
                    current: first.state,
                    private: first.private,
                    identity: first.identity,
                    meta: self.context.provider_meta(address, &p.provider_address.provider)?,
                },
            )
            .await
            .map_err(|d| self.context.fail(d))?;
        self.context.report(located(answer.diagnostics, None, address))?;
        let read = answer.value;
        self.check_identity(p, address, read.identity.as_ref(), true)?;
        if read.object.is_null() {
            return Err(self.context.fail(not_found(address)));
        }
        let when = "while reading the imported object";
        self.context
            .report(read_problems(&read.object, p.schema, provider, when, address))?;
        refreshing.complete();
        let target = match (target, &read.identity) {
            // The identity in the configuration may lack attributes that are optional for import, so the provider's identity is used.
            (ImportTarget::Identity(_), Some(identity)) => ImportTarget::Identity(identity.clone()),
            (target, _) => target,
        };
        let stored = self.record_imported(p, address, read)?;
        Ok(Imported {
            stored,
            by: shown_target(&target),
        })
    }

    /// Records an imported object in the prior state.
    fn record_imported(
        &self,
        p: &PlannedResource<'_>,
        address: &AbsResourceInstance,
        read: ObjectRead,
    ) -> Result<StoredObject, Reported> {
        let ObjectRead {
            object: value,
            private,
            identity,
        } = read;
        let record = Object {
            dependencies: p.dependencies.clone(),
            skip_destroy: p.keeps_objects(),
            destroy_provisioners: p.block.map(config::Resource::destroy_provisioners).unwrap_or_default(),
            ..Object::new(p.schema.version, state::Attributes::Flat(Arc::default()))
        };
        let marked = schema::marking::mark_sensitive(&p.schema.block, value.clone());
        let object = encode(p.schema, &marked, identity.as_ref(), private.clone(), record);
        let object = Arc::new(object.map_err(|d| self.context.fail(d))?);
        self.prior()
            .set_current(address, &p.provider_address, Some(object.clone()));
        Ok(StoredObject {
            value,
            marks: Vec::new(),
            private,
            identity,
            object,
        })
    }

    /// Returns the direct and indirect dependencies of a resource, sorted as in the state.
    pub(super) fn dependencies_of(&self, resource: &ConfigResource) -> Arc<[ConfigResource]> {
        let mut out: Vec<_> = self
            .context
            .blocks
            .resources_before(&Block::Resource(resource.clone()))
            .into_iter()
            .collect();
        out.sort_by_cached_key(ToString::to_string);
        out.into()
    }
}

fn not_known(summary: &str, argument: &str, range: &Range) -> Diagnostic {
    let detail = format!(
        "The argument \"{argument}\" of the import block is not known before apply, and an import needs it during planning."
    );
    let mut diagnostic = Diagnostic::error(summary, detail).at(range);
    diagnostic.extra = Extra::CausedByUnknown;
    diagnostic
}

/// Converts an address relative to a module instance to an absolute address.
fn within(module: &ModuleInstance, mut address: AbsResourceInstance) -> AbsResourceInstance {
    let mut outer = module.clone();
    for step in address.module.0.iter() {
        outer = outer.child(step.name.clone(), step.key.clone());
    }
    address.module = outer;
    address
}

/// Explains why the target of an import is not in the configuration, and what to do.
fn unconfigured(inputs: Inputs<'_>, node: &ModuleNode, import: &Import, target: &ConfigResource) -> String {
    let missing = format!("There is no configuration for {target}, which an import block names");
    if inputs.config.node(&target.module).is_none() {
        return format!("{missing}: its module is not called. Every object that is imported needs a resource block.");
    }
    let missing = format!("{missing}. Write a resource block for it");
    if !target.module.is_root() || !node.path.is_root() {
        format!("{missing}: configuration can be generated for resources of the root module only.")
    } else if super::generate::subject(import).is_none() {
        format!(
            "{missing}: configuration cannot be generated (-generate-config-out) for import blocks with for_each, nor for \
             resources with count or for_each."
        )
    } else {
        format!(
            "{missing}, or let one be generated from the object:\n\n  {} plan -generate-config-out=generated.tf",
            inputs.environment.program.command
        )
    }
}

fn not_found(address: &AbsResourceInstance) -> Diagnostics {
    Diagnostic::error(
        "Cannot import non-existent remote object",
        format!(
            "The provider found no object with this identifier for \"{address}\". Check the identifier, and \
             whether the provider is configured for the region or account that has the object. If there is no \
             such object yet, remove the import, and apply will create one."
        ),
    )
    .about(address)
    .into()
}
