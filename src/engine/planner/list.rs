//! Queries: lists the existing objects for each instance of a `list` block.

use std::sync::Arc;

use addrs::{AbsResourceInstance, InstanceKey};
use cty::{Type, Value};
use provider::{ListRequest, Listed};
use schema::Schema;
use schema::marking::{mark_sensitive, without_write_only};
use syntax::Diagnostic;
use syntax::ast::Expr;

use super::{PlannedResource, Planner, generate};
use crate::eval::{ModuleScope, Repetition, Reported};
use crate::events::Event;
use crate::identity::identity_problems;
use crate::instance::{located, unanswered};
use crate::object_config;
use crate::query::{GeneratedImport, QueryInstance, QueryResult, limit_of, list_argument};

/// Maximum number of listed objects if the block has no `limit` argument, as in Terraform.
const DEFAULT_LIMIT: u64 = 100;

impl Planner<'_> {
    /// Lists the objects for one instance of a `list` block.
    pub(super) async fn list(
        &self,
        p: &PlannedResource<'_>,
        address: &AbsResourceInstance,
        repetition: Repetition,
    ) -> Result<(), Reported> {
        let block = p.block.ok_or(Reported)?;
        let evaluator = self.context.evaluator;
        let scope = evaluator
            .scope_with(&address.module, repetition, None)
            .ok_or(Reported)?;
        let ty = &address.resource.resource.ty;
        let (config_schema, managed) = self.listed_schemas(p, ty)?;
        let whole = object_config::object_config(evaluator, address, &block.body, p.schema, &scope)?;
        let shown = whole.get("config").cloned().unwrap_or_else(Value::dynamic);
        let (config, _) = shown.clone().unmark_deep();
        if !config.is_wholly_known() {
            let detail = format!(
                "The config block of {address} has values that are known only after apply. A query needs all of them now."
            );
            let problem = Diagnostic::error("config is not known", detail).at(&block.range);
            return Err(self.context.fail(problem.about(address)));
        }
        let arguments = block.list.as_deref().ok_or(Reported)?;
        let limit = match &arguments.limit {
            Some(expr) => self.limit(expr, &scope)?,
            None => DEFAULT_LIMIT,
        };
        let included = match &arguments.include_resource {
            Some(expr) => self.included(expr, &scope)?,
            None => false,
        };
        let generates = self.spec.options.query.as_ref().is_some_and(|q| q.generate_config);
        self.context.inputs.events.event(Event::ListStart {
            address: address.clone(),
            config: mark_sensitive(&config_schema.block, shown),
        });
        // Without a `config` block the provider gets an empty one, not null.
        let config = if config.is_null() {
            config_schema.block.empty_object()
        } else {
            config
        };
        let written = Some((&*block.body, p.schema));
        let answer = p.provider.validate_list(ty, config.clone()).await;
        let answer = answer.map_err(|d| self.context.fail(unanswered(d, written, address)))?;
        self.context.report(located(answer.diagnostics, written, address))?;
        let request = ListRequest {
            config: config.clone(),
            // Configuration can be generated only from the whole object, even if the block does not request it.
            include_object: included || generates,
            limit,
        };
        let answer = p.provider.list(ty, request).await;
        let answer = answer.map_err(|d| self.context.fail(unanswered(d, written, address)))?;
        self.context.report(located(answer.diagnostics, written, address))?;
        self.take_listed(p, address, managed, config, answer.value).await
    }

    /// Checks the listed objects, generates configuration for them, and sets the value of the list block's instance.
    async fn take_listed(
        &self,
        p: &PlannedResource<'_>,
        address: &AbsResourceInstance,
        managed: &Schema,
        config: Value,
        mut listed: Vec<Listed>,
    ) -> Result<(), Reported> {
        // Results of queries are displayed and become configuration, so they must not contain write-only values.
        for one in &mut listed {
            one.object = without_write_only(&managed.block, &one.object);
        }
        let provider = &p.provider_address.provider;
        // Each listed object must have a known identity, which distinguishes it from the others.
        for one in &listed {
            self.context
                .report(identity_problems(Some(&one.identity), managed, true, provider, address))?;
        }
        let data = listed.iter().map(|one| {
            Value::object([
                ("display_name", Value::string(one.display_name.as_str())),
                ("identity", one.identity.clone()),
                ("state", one.object.clone()),
            ])
        });
        let value = Value::object([("data", Value::tuple(data.collect())), ("config", config)]);
        let generates = self.spec.options.query.as_ref().is_some_and(|q| q.generate_config);
        let sibling = if generates { self.sibling(address)? } else { None };
        let mut results = Vec::with_capacity(listed.len());
        for (i, one) in listed.into_iter().enumerate() {
            let generated = if generates {
                Some(self.generate_listed(p, address, managed, (sibling, i), &one).await?)
            } else {
                None
            };
            results.push(QueryResult {
                display_name: one.display_name,
                identity: one.identity,
                object: one.object,
                generated,
            });
        }
        let found = Arc::new(QueryInstance {
            address: address.clone(),
            identity_version: managed.identity.as_ref().map_or(0, |identity| identity.version),
            results,
        });
        self.context
            .inputs
            .events
            .event(Event::ListComplete { found: found.clone() });
        self.context.evaluator.set_object(address, value);
        self.results().queries.push(found);
        Ok(())
    }

    /// Returns the position of an instance among those of its block; `None` if the block has neither `count` nor `for_each`.
    fn sibling(&self, address: &AbsResourceInstance) -> Result<Option<usize>, Reported> {
        if address.resource.key == InstanceKey::None {
            return Ok(None);
        }
        let resource = &address.resource.resource;
        let expansion = self.context.evaluator.resource_expansion(&address.module, resource)?;
        let found = expansion.keys().iter().position(|key| *key == address.resource.key);
        Ok(Some(found.unwrap_or_default()))
    }

    async fn generate_listed(
        &self,
        p: &PlannedResource<'_>,
        address: &AbsResourceInstance,
        managed: &Schema,
        (sibling, i): (Option<usize>, usize),
        listed: &Listed,
    ) -> Result<GeneratedImport, Reported> {
        let addrs::Resource { ty, name, .. } = &address.resource.resource;
        // Names of generated resources contain the index and not the key, because keys may contain characters that names cannot.
        let name = match sibling {
            Some(sibling) => format!("{name}_{sibling}_{i}"),
            None => format!("{name}_{i}"),
        };
        let resource = addrs::Resource::managed(ty.clone(), name);
        let config = self.generated_config(p, ty, managed, &listed.object, address).await?;
        let local = addrs::LocalProviderConfig {
            name: p.provider_address.provider.ty.clone(),
            alias: p.provider_address.alias.clone(),
        };
        let provider = generate::local_name(&local, p.provider_address.key.as_ref());
        Ok(GeneratedImport {
            resource: generate::resource_text(&resource, Some(&provider), managed, &config),
            import: generate::import_text(&resource, &provider, &listed.identity),
        })
    }

    /// Returns the schemas of the `config` block and of the listed objects.
    fn listed_schemas(&self, p: &PlannedResource<'_>, ty: &str) -> Result<(&Schema, &Schema), Reported> {
        let schemas = self.context.providers.schemas();
        let provider = schemas.providers.get(&p.provider_address.provider).ok_or(Reported)?;
        let list = provider.lists.get(ty).ok_or(Reported)?;
        match provider
            .resources
            .get(ty)
            .filter(|resource| resource.identity.is_some())
        {
            Some(resource) => Ok((&list.config, resource)),
            None => {
                let detail = format!(
                    "The provider {} lists objects of the type \"{ty}\", which are known by their identities, but it \
                     has no identity schema for them. This is a bug in the provider; please report it to its maintainers.",
                    p.provider_address.provider.for_display()
                );
                let problem = Diagnostic::error("Invalid list resource", detail);
                Err(self.context.fail(match p.block {
                    Some(block) => problem.at(&block.type_range),
                    None => problem,
                }))
            }
        }
    }

    fn limit(&self, expr: &Expr, scope: &ModuleScope<'_>) -> Result<u64, Reported> {
        let value = self.argument(expr, scope, "limit", &Type::Number)?;
        limit_of(&value, expr.range()).map_err(|problem| self.context.fail(problem))
    }

    fn included(&self, expr: &Expr, scope: &ModuleScope<'_>) -> Result<bool, Reported> {
        let value = self.argument(expr, scope, "include_resource", &Type::Bool)?;
        Ok(value.as_bool().unwrap_or_default())
    }

    /// Evaluates an argument of a list block. An unknown value is an error.
    fn argument(&self, expr: &Expr, scope: &ModuleScope<'_>, name: &str, ty: &Type) -> Result<Value, Reported> {
        let value = self.context.evaluator.evaluate(expr, scope)?;
        let value = list_argument(value, name, ty, expr.range()).map_err(|problem| self.context.fail(problem))?;
        value.ok_or_else(|| {
            let detail = format!("The argument \"{name}\" is known only after apply, and a query needs it now.");
            let problem = Diagnostic::error(format!("Invalid \"{name}\" argument"), detail);
            self.context.fail(problem.at(expr.range()))
        })
    }
}
