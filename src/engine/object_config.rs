//! Configuration of one object: the schema of its type, and its block decoded under that schema.

use std::fmt::Display;
use std::sync::Arc;

use addrs::{Mode, Provider};
use cty::Value;
use lang::body::decode_body;
use lang::eval::Context;
use provider::{Schemas, invalid_schema};
use schema::Schema;
use syntax::ast::Body;
use syntax::content::{hint, near};
use syntax::{Diagnostic, Diagnostics, Range};

use crate::eval::{Evaluator, ModuleScope, Reported};

/// Returns the schema of a resource type. The error suggests the other kind (resource or data source) if it has a type of this name,
/// otherwise the type with the most similar name.
pub fn resource_schema<'s>(
    schemas: &'s Schemas,
    provider: &Provider,
    resource: &addrs::Resource,
    range: Option<&Range>,
) -> Result<&'s Schema, Diagnostics> {
    if let Some(schema) = schemas.resource(provider, resource.mode, &resource.ty) {
        return Ok(schema);
    }
    if let Some(reason) = schemas.resource_problem(provider, resource.mode, &resource.ty) {
        let invalid = invalid_schema(&provider.for_display(), reason);
        return Err(range.map_or(invalid.clone(), |range| invalid.at(range)).into());
    }
    let (what, kind, known): (&str, &str, Vec<&Arc<str>>) = match (schemas.providers.get(provider), resource.mode) {
        (None, _) => ("resource type", "Invalid resource type", Vec::new()),
        (Some(p), Mode::Managed) => ("resource type", "Invalid resource type", p.resources.keys().collect()),
        (Some(p), Mode::Data) => ("data source", "Invalid data source", p.data_sources.keys().collect()),
        (Some(p), Mode::List) => ("list resource", "Invalid list resource", p.lists.keys().collect()),
        (Some(p), Mode::Ephemeral) => (
            "ephemeral resource",
            "Invalid ephemeral resource",
            p.ephemeral.keys().collect(),
        ),
    };
    // If the name exists as the other kind (resource or data source), that hint is better than one with a similar name.
    let other_mode = schemas.providers.get(provider).is_some_and(|p| match resource.mode {
        Mode::Managed => p.data_sources.contains_key(&resource.ty),
        Mode::List => false,
        _ => p.resources.contains_key(&resource.ty),
    });
    let near = near(&resource.ty, known.into_iter().map(|n| &**n)).filter(|_| !other_mode);
    let hint = if other_mode {
        let other = if resource.mode == Mode::Managed {
            "data source"
        } else {
            "managed resource type"
        };
        format!("\n\nDid you intend to use the {other} \"{}\"?", resource.ty)
    } else {
        hint(near.as_ref())
    };
    let diagnostic = Diagnostic::error(
        kind,
        format!(
            "The provider {} does not support {what} \"{}\".{hint}",
            provider.for_display(),
            resource.ty
        ),
    );
    Err(match range {
        Some(range) => diagnostic.at(range).misspelt(&resource.ty, range, near.as_ref()).into(),
        None => diagnostic.into(),
    })
}

/// Decodes the block of an object under the schema of its type. Diagnostics name the object.
pub fn object_config(
    evaluator: &Evaluator<'_>,
    address: &impl Display,
    body: &Body,
    schema: &Schema,
    scope: &ModuleScope<'_>,
) -> Result<Value, Reported> {
    let (config, diagnostics) = decode_body(body, &schema.block, Context::new(scope));
    let failed = diagnostics.has_errors();
    let (config, warnings) = scope.without_deprecations(config, body, &schema.block);
    evaluator.report(diagnostics.into_iter().chain(warnings).map(|d| d.about(address)));
    if failed { Err(Reported) } else { Ok(config) }
}
