//! Decision on the action for one object, from the planned change of the provider and the lifecycle arguments.

use std::collections::HashSet;

use addrs::{AbsResource, AbsResourceInstance, InstanceKey};
use cty::{Path, Value};
use lang::checks::block_steps;
use provider::{PlanRequest, PlannedChange};
use schema::BlockSchema;
use schema::marking::is_write_only;
use syntax::ast::Expr;
use syntax::{Diagnostic, Diagnostics};

use super::import::instance_key;
use super::visit::PlanResults;
use super::{PlannedResource, Planner};
use crate::eval::{Repetition, Reported};
use crate::identity::{IdentityChange, identity_problems};
use crate::instance::{PROVIDER_BUG, StoredObject, located, planned_write_only, unanswered};
use crate::objchange::{Problem, Proposal, plan_problems};
use crate::plan::{Action, Reason, ResourceChange};

/// The planned change of an object, with the action that was decided.
pub(super) struct Decision {
    pub(super) action: Action,
    pub(super) reason: Reason,
    pub(super) planned: Value,
    pub(super) private: Vec<u8>,
    pub(super) identity: Option<Value>,
    pub(super) replace_paths: Vec<Path>,
}

impl Decision {
    /// Creates the change of an object that is not imported and whose configuration is known. `after` is the planned object with marks.
    pub(super) fn change(
        self,
        p: &PlannedResource<'_>,
        address: &AbsResourceInstance,
        stored: Option<&StoredObject>,
        after: Value,
    ) -> ResourceChange {
        let identity = stored.filter(|s| !s.is_tainted()).and_then(|s| s.identity.clone());
        ResourceChange {
            address: address.clone(),
            previous_address: None,
            deposed: None,
            provider: p.provider_address.clone(),
            action: self.action,
            reason: self.reason,
            before: match stored {
                Some(stored) => stored.marked(p.schema),
                None => Value::null(p.schema.implied_type()),
            },
            after,
            replace_paths: self.replace_paths,
            private: self.private,
            config_known: true,
            importing: None,
            identity: IdentityChange::new(identity, self.identity),
        }
    }
}

/// Creates a decision without replacement paths.
fn decided(action: Action, reason: Reason, planned: PlannedChange) -> Decision {
    Decision {
        action,
        reason,
        planned: planned.planned,
        private: planned.private,
        identity: planned.identity,
        replace_paths: Vec::new(),
    }
}

impl Planner<'_> {
    /// Requests a plan of the change from the provider, and decides the action.
    pub(super) async fn decide(
        &self,
        p: &PlannedResource<'_>,
        address: &AbsResourceInstance,
        repetition: &Repetition,
        stored: Option<&StoredObject>,
        config: &Value,
    ) -> Result<Decision, Reported> {
        let block = p.block.ok_or(Reported)?;
        let null = Value::null(p.schema.implied_type());
        let tainted = stored.is_some_and(StoredObject::is_tainted);
        // A tainted object is always replaced, so the change is planned as a creation.
        let prior = match stored {
            Some(stored) if !tainted => stored.value.clone(),
            _ => null.clone(),
        };
        let propose = |prior: &Value| Proposal::new(p.schema, prior, config, &block.lifecycle.ignore_changes);
        let private = stored
            .filter(|_| !tainted)
            .map(|s| s.private.clone())
            .unwrap_or_default();
        let identity = stored.filter(|_| !tainted).and_then(|s| s.identity.clone());
        let mut first = self
            .provider_plan(p, address, &prior, propose(&prior), (private, identity))
            .await?;
        let replace = if block.lifecycle.keeps_object() {
            Action::CreateThenForget
        } else if self.is_create_before_destroy(p.address) {
            Action::CreateThenDelete
        } else {
            Action::DeleteThenCreate
        };
        let triggered = self.triggered(p, address, repetition, stored)?;
        // `replace_triggered_by` takes precedence over other reasons, and is also shown for new objects.
        let because = |reason| if triggered { Reason::ReplaceByTriggers } else { reason };
        if stored.is_none() {
            return Ok(decided(Action::Create, because(Reason::None), first));
        }
        if tainted {
            return Ok(decided(replace, because(Reason::ReplaceBecauseTainted), first));
        }
        self.check_replace_paths(p, address, &prior, &first)?;
        let replace_paths = effective_replace_paths(&p.schema.block, &prior, &first);
        let requested = self.spec.options.force_replace.contains(address);
        let equal = first.planned == prior;
        if equal {
            // The planned object shares memory with the prior one, because most objects of most plans do not change.
            first.planned = prior;
        }
        let reason = if requested || triggered {
            because(Reason::ReplaceByRequest)
        } else if !replace_paths.is_empty() {
            Reason::ReplaceBecauseCannotUpdate
        } else {
            let action = if equal { Action::NoOp } else { Action::Update };
            // The object exists, so its identity is known.
            self.check_identity(p, address, first.identity.as_ref(), true)?;
            return Ok(decided(action, Reason::None, first));
        };
        // The new object is planned without a prior object, so computed attributes keep no prior values, and `ignore_changes` has no
        // effect.
        let second = self
            .provider_plan(p, address, &null, propose(&null), (first.private, first.identity))
            .await?;
        Ok(Decision {
            replace_paths,
            ..decided(replace, reason, second)
        })
    }

    /// Reports an error if the provider requires replacement for a path that exists neither in the old nor in the new object.
    fn check_replace_paths(
        &self,
        p: &PlannedResource<'_>,
        address: &AbsResourceInstance,
        prior: &Value,
        change: &PlannedChange,
    ) -> Result<(), Reported> {
        // Both objects are checked, because a change can add or remove the element that forces the replacement.
        let strays = change
            .requires_replace
            .iter()
            .filter(|path| !leads_somewhere(path, prior) && !leads_somewhere(path, &change.planned));
        let problems = strays.map(|path| {
            Diagnostic::error(
                "Provider produced invalid plan",
                format!(
                    "Provider \"{}\" requires the replacement of {address} because of {address}{path}, and there is no such attribute. \
                     {PROVIDER_BUG}",
                    p.provider_address.provider
                ),
            )
            .about(address)
        });
        self.context.report(problems.collect())
    }

    /// Returns true if a `replace_triggered_by` argument applies: the resource or instance that it names is updated, replaced or created
    /// again, or the attribute that it names changes.
    fn triggered(
        &self,
        p: &PlannedResource<'_>,
        address: &AbsResourceInstance,
        repetition: &Repetition,
        stored: Option<&StoredObject>,
    ) -> Result<bool, Reported> {
        let block = p.block.ok_or(Reported)?;
        for expr in &block.lifecycle.replace_triggered_by {
            let Some((resource, key, path)) = self.trigger(expr, address, repetition)? else {
                continue;
            };
            let results = self.results();
            if stored.is_some_and(|stored| self.is_created_anew(&results, stored, &resource, key.as_ref(), &path)) {
                return Ok(true);
            }
            let Some(changed) = results.changed.get(&resource) else {
                continue;
            };
            // The reference is to the whole resource, and one of its instances has changed.
            let Some(key) = key else { return Ok(true) };
            let Some(change) = changed.get(&key).and_then(|i| results.changes.get(*i)) else {
                continue;
            };
            if path.0.is_empty() || path.get(&change.before) != path.get(&change.after) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns true if the trigger is created again: it existed when the dependent object was applied, and was then deleted outside or lost
    /// from the state. A trigger that is new, such as a further instance of a resource, does not cause a replacement.
    fn is_created_anew(
        &self,
        results: &PlanResults,
        stored: &StoredObject,
        resource: &AbsResource,
        key: Option<&InstanceKey>,
        path: &Path,
    ) -> bool {
        let Some(created) = results.created.get(resource) else {
            return false;
        };
        // The state records a dependency only on a resource that existed when the dependent object was applied.
        if !stored.object.dependencies.contains(&resource.config()) {
            return false;
        }
        let state = self.context.inputs.state;
        let Some(key) = key else {
            let vanished = |key: &InstanceKey| state.current(&resource.instance(key.clone())).is_some();
            return created.keys().any(vanished) || !state.resources.contains_key(resource);
        };
        let Some(change) = created.get(key).and_then(|i| results.changes.get(*i)) else {
            return false;
        };
        if path.0.is_empty() {
            return true;
        }
        let after = path.get(&change.after);
        // The previous value is known only if the refresh found the object deleted. It is then in the drift.
        let vanished = results.drift.iter().find(|drift| drift.address == change.address);
        match vanished {
            Some(drift) => path.get(&drift.before) != after,
            None => after.is_some_and(|value| !value.is_wholly_known()),
        }
    }

    /// Parses a `replace_triggered_by` expression: a reference to a resource, an instance of it, or an attribute of an instance. `None`
    /// for other expressions.
    fn trigger(
        &self,
        expr: &Expr,
        address: &AbsResourceInstance,
        repetition: &Repetition,
    ) -> Result<Option<(AbsResource, Option<InstanceKey>, Path)>, Reported> {
        let (inner, steps) = match expr {
            Expr::Relative { source, steps, .. } => (&**source, steps.as_slice()),
            other => (other, &[][..]),
        };
        let (inner, key) = match inner {
            Expr::Index { collection, key, .. } => (&**collection, Some(&**key)),
            other => (other, None),
        };
        let Expr::Traversal(traversal) = inner else {
            return Ok(None);
        };
        let reference = lang::refs::reference(traversal).map_err(|d| self.context.fail(d))?;
        let mut path = steps_to_path(&reference.remaining);
        path.0.extend(steps_to_path(steps).0);
        let (resource, mut found) = match reference.subject {
            addrs::Referenceable::Resource(r) => (r, None),
            addrs::Referenceable::ResourceInstance(i) => (i.resource, Some(i.key)),
            _ => return Ok(None),
        };
        if let Some(key) = key {
            // Validation has checked the attributes in references whose keys are constant, but not with a key expression.
            self.check_trigger_path(&resource, &address.module.module(), steps)?;
            let scope = self
                .context
                .evaluator
                .scope_with(&address.module, repetition.clone(), None)
                .ok_or(Reported)?;
            found = Some(instance_key(&self.context.evaluator.evaluate(key, &scope)?).ok_or_else(|| {
                self.context.fail(
                    Diagnostic::error(
                        "Invalid instance key",
                        "The key of a resource instance must be a string or a whole number that is known during planning.",
                    )
                    .at(key.range()),)
            })?);
        }
        if found.is_none() && !path.0.is_empty() {
            // A reference to an attribute of a resource without `count` and `for_each`.
            found = Some(InstanceKey::None);
        }
        Ok(Some((resource.absolute(&address.module), found, path)))
    }

    /// Checks that the objects of a resource have the attribute of a `replace_triggered_by` expression.
    fn check_trigger_path(
        &self,
        resource: &addrs::Resource,
        module: &addrs::Module,
        steps: &[syntax::ast::TraversalStep],
    ) -> Result<(), Reported> {
        let provider = self.context.inputs.config.provider_for(&resource.in_module(module));
        let schemas = self.context.providers.schemas();
        match schemas.resource(&provider.provider, resource.mode, &resource.ty) {
            Some(schema) => block_steps(&schema.block, steps).map_err(|problem| self.context.fail(problem)),
            None => Ok(()),
        }
    }

    /// Calls the provider to plan a change, and validates the response.
    async fn provider_plan(
        &self,
        p: &PlannedResource<'_>,
        address: &AbsResourceInstance,
        prior: &Value,
        Proposal { config, proposed }: Proposal,
        (private, identity): (Vec<u8>, Option<Value>),
    ) -> Result<PlannedChange, Reported> {
        let ty = &address.resource.resource.ty;
        let written = p.block.map(|b| (&*b.body, p.schema));
        let answer = p
            .provider
            .plan(
                ty,
                PlanRequest {
                    prior: prior.clone(),
                    proposed,
                    config: config.clone(),
                    prior_private: private,
                    prior_identity: identity,
                    planned_private: Vec::new(),
                    meta: self.context.provider_meta(address, &p.provider_address.provider)?,
                },
            )
            .await
            .map_err(|d| self.context.fail(unanswered(d, written, address)))?;
        self.context.report(located(answer.diagnostics, written, address))?;
        let change = answer.value;
        self.context.report(planned_write_only(
            &change.planned,
            p.schema,
            &p.provider_address.provider,
            address,
        ))?;
        let problems = plan_problems(&p.schema.block, prior, &config, &change.planned);
        // Providers with the legacy type system may break these rules, as in Terraform.
        if change.legacy_type_system {
            for problem in &problems {
                tracing::warn!(
                    "{address}: the provider's plan breaks a rule at {}: {}",
                    problem.path,
                    problem.message
                );
            }
        } else if !problems.is_empty() {
            return Err(self.context.fail(invalid_plan(p, address, &problems)));
        }
        self.check_identity(p, address, change.identity.as_ref(), false)?;
        Ok(change)
    }

    /// Checks an identity that the provider has returned. With `known`, unknown parts are errors.
    pub(super) fn check_identity(
        &self,
        p: &PlannedResource<'_>,
        address: &AbsResourceInstance,
        identity: Option<&Value>,
        known: bool,
    ) -> Result<(), Reported> {
        let provider = &p.provider_address.provider;
        self.context
            .report(identity_problems(identity, p.schema, known, provider, address))
    }
}

/// Returns the paths that require replacement and whose values change, without duplicates. An unknown planned value counts as changed, and
/// so does a write-only attribute, because its prior value is not stored.
fn effective_replace_paths(schema: &BlockSchema, prior: &Value, change: &PlannedChange) -> Vec<Path> {
    let mut named = HashSet::new();
    change
        .requires_replace
        .iter()
        // Some providers return the same path several times.
        .filter(|path| named.insert(path.to_string()))
        .filter(|path| {
            let (was, will) = (path.get(prior), path.get(&change.planned));
            was != will || will.is_some_and(|v| !v.is_known()) || is_write_only(schema, path)
        })
        .cloned()
        .collect()
}

/// Returns true if a value has a part at a path. If the path leads into an unknown value, the part is assumed to exist.
fn leads_somewhere(path: &Path, value: &Value) -> bool {
    let mut at = value;
    for step in &path.0 {
        if !at.is_known() {
            return true;
        }
        match step.get(at) {
            Some(part) => at = part,
            None => return false,
        }
    }
    true
}

fn steps_to_path(steps: &[syntax::ast::TraversalStep]) -> Path {
    use syntax::ast::TraversalStep;
    Path(
        steps
            .iter()
            .map_while(|s| match s {
                TraversalStep::Attribute { name, .. } => Some(cty::Step::Attribute(name.clone())),
                TraversalStep::Index { key, .. } => Some(cty::Step::Index(key.clone())),
                TraversalStep::Splat { .. } => None,
            })
            .collect(),
    )
}

fn invalid_plan(p: &PlannedResource<'_>, address: &AbsResourceInstance, problems: &[Problem]) -> Diagnostics {
    problems
        .iter()
        .map(|problem| {
            Diagnostic::error(
                "Provider produced invalid plan",
                format!(
                    "Provider \"{}\" planned an invalid value for {address}{}: {}.\n\n{PROVIDER_BUG}",
                    p.provider_address.provider, problem.path, problem.message
                ),
            )
            .about(address)
        })
        .collect()
}
