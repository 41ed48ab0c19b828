//! Runs provisioners.

use std::sync::Arc;

use addrs::ConfigResource;
use config::{Connection, OnFailure, Provisioner, ProvisionerWhen, Removed, Resource};
use cty::Value;
use lang::body::decode_body;
use lang::eval::Context;
use state::journal::{Intent, IntentAction};

use super::{Applier, ObjectOperation};
use crate::connection::connection_schema;
use crate::eval::{Repetition, Reported};
use crate::events::Event;
use crate::instance::located;

/// Provisioners of a resource block or of a `removed` block.
#[derive(Clone, Copy, Default)]
pub(super) struct Provisioners<'p> {
    list: &'p [Provisioner],
    connection: Option<&'p Connection>,
}

impl<'p> Provisioners<'p> {
    /// Splits the list after the last provisioner with this `when` and with `on_failure = fail`. Later ones with this `when` have
    /// `on_failure = continue`, so their failure has no effect on the object.
    pub(super) fn split_after_last_decisive(self, when: ProvisionerWhen) -> (Provisioners<'p>, Provisioners<'p>) {
        let decisive = |p: &Provisioner| p.when == when && p.on_failure == OnFailure::Fail;
        let at = self.list.iter().rposition(decisive).map_or(0, |last| last + 1);
        let (first, rest) = self.list.split_at(at);
        (
            Provisioners { list: first, ..self },
            Provisioners { list: rest, ..self },
        )
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

impl<'p> From<&'p Resource> for Provisioners<'p> {
    fn from(block: &'p Resource) -> Provisioners<'p> {
        Provisioners {
            list: &block.provisioners,
            connection: block.connection.as_ref(),
        }
    }
}

impl<'p> From<&'p Removed> for Provisioners<'p> {
    fn from(block: &'p Removed) -> Provisioners<'p> {
        Provisioners {
            list: &block.provisioners,
            connection: block.connection.as_ref(),
        }
    }
}

impl Applier<'_> {
    /// Returns the provisioners of a resource, from its resource block or a `removed` block.
    pub(super) fn provisioners(&self, resource: &ConfigResource) -> Provisioners<'_> {
        match self.context.inputs.config.resource(resource) {
            Some(block) => block.into(),
            None => self
                .removals
                .of_resource(resource)
                .map_or_else(Provisioners::default, Into::into),
        }
    }

    /// Runs the provisioners with this `when`, one after the other, until one without `on_failure = continue` fails.
    pub(super) async fn provision(
        &self,
        provisioners: Provisioners<'_>,
        when: ProvisionerWhen,
        s: &ObjectOperation<'_>,
        repetition: &Repetition,
        value: &Value,
    ) -> Result<(), Reported> {
        for provisioner in provisioners.list.iter().filter(|p| p.when == when) {
            // An invalid block is an error whatever its `on_failure` is, so it is evaluated before the
            // provisioner starts.
            let prepared = self.prepared(provisioners.connection, provisioner, s, repetition, value);
            let Some(prepared) = prepared.map_err(|diagnostics| self.context.fail(diagnostics))? else {
                continue;
            };
            self.context.inputs.events.event(Event::ProvisionStart {
                address: s.address.clone(),
                provisioner: provisioner.ty.clone(),
            });
            let intent = Intent {
                address: s.address.to_string(),
                deposed: None,
                action: IntentAction::Provision,
                by: provisioner.ty.to_string(),
                planned: String::new(),
            };
            // The intent is durable before the provisioner starts: if a crash interrupts it, a part of it may
            // have run.
            self.begin(&intent).await?;
            let result = Box::pin(self.provision_one(provisioner, prepared, s)).await;
            self.results.sink.end(&intent);
            let (address, ty) = (s.address.clone(), provisioner.ty.clone());
            match result {
                Ok(()) => {
                    self.context.inputs.events.event(Event::ProvisionComplete {
                        address,
                        provisioner: ty,
                    });
                }
                Err(diagnostics) if provisioner.on_failure == OnFailure::Continue => {
                    self.context.inputs.events.event(Event::ProvisionFailed {
                        address,
                        provisioner: ty,
                    });
                    for diagnostic in diagnostics {
                        tracing::warn!("{}: provisioner failed, going on: {}", s.address, diagnostic.detail);
                    }
                }
                Err(diagnostics) => {
                    self.context.inputs.events.event(Event::ProvisionFailed {
                        address,
                        provisioner: ty,
                    });
                    return Err(self.context.fail(diagnostics));
                }
            }
        }
        Ok(())
    }

    /// Evaluates the arguments and the connection of a provisioner. Returns `None` if no module is left in whose scope the arguments could
    /// be evaluated.
    fn prepared(
        &self,
        shared: Option<&Connection>,
        provisioner: &Provisioner,
        s: &ObjectOperation<'_>,
        repetition: &Repetition,
        value: &Value,
    ) -> Result<Option<Prepared>, syntax::Diagnostics> {
        let schemas = self.context.providers.schemas();
        let Some(schema) = schemas.provisioners.get(&provisioner.ty) else {
            return Err(not_started(provisioner));
        };
        let evaluator = &self.context.evaluator;
        let block = self.context.inputs.config.resource(&s.address.config());
        let value = match block {
            // Deprecation warnings are useful only for objects that stay, so destroy-time provisioners give none.
            Some(block) if provisioner.when == ProvisionerWhen::Create => {
                evaluator.marked_self(s.address, block, value.clone())
            }
            _ => value.clone(),
        };
        let scope =
            |module: &addrs::ModuleInstance| evaluator.scope_with(module, repetition.clone(), Some(value.clone()));
        // If the configuration has no such module any more, a destroy-time provisioner can refer to `self` only.
        let Some(scope) = scope(&s.address.module).or_else(|| scope(&addrs::ModuleInstance::root())) else {
            return Ok(None);
        };
        let about = |d: syntax::Diagnostic| d.about(s.address);
        let (config, diagnostics) = decode_body(&provisioner.body, &schema.block, Context::new(&scope));
        if diagnostics.has_errors() {
            return Err(diagnostics.into_iter().map(about).collect());
        }
        let (config, mut warnings) = scope.without_deprecations(config, &provisioner.body, &schema.block);
        let (config, marks) = config.unmark_deep();
        let (connection, more) = connection_value(shared, provisioner, &scope)
            .map_err(|d| d.into_iter().map(about).collect::<syntax::Diagnostics>())?;
        warnings.extend(more);
        evaluator.report(warnings.into_iter().map(about));
        Ok(Some(Prepared {
            config,
            marks,
            connection,
        }))
    }

    async fn provision_one(
        &self,
        provisioner: &Provisioner,
        prepared: Prepared,
        s: &ObjectOperation<'_>,
    ) -> Result<(), syntax::Diagnostics> {
        let Some(running) = self.context.providers.provisioner(&provisioner.ty) else {
            return Err(not_started(provisioner));
        };
        let Prepared {
            config,
            marks,
            connection,
        } = prepared;
        // The output of a provisioner is hidden if its arguments are sensitive or ephemeral, because a command could print them.
        let hidden = match (marks.is_sensitive(), marks.is_ephemeral()) {
            (false, false) => None,
            (true, false) => Some("(output suppressed due to sensitive value in config)"),
            (false, true) => Some("(output suppressed due to ephemeral value in config)"),
            (true, true) => Some("(output suppressed due to sensitive, ephemeral value in config)"),
        };
        let address = s.address.clone();
        let ty: Arc<str> = provisioner.ty.clone();
        let events = self.context.inputs.events;
        let output = move |text: &str| {
            events.event(Event::ProvisionOutput {
                address: address.clone(),
                provisioner: ty.clone(),
                output: hidden.unwrap_or(text).to_owned(),
            });
        };
        let answer = running.provision(config, connection, &output).await?;
        let problems = located(answer.diagnostics, None, s.address);
        let problems = located_at_provisioner(problems, provisioner);
        if problems.has_errors() {
            return Err(problems);
        }
        self.context.evaluator.report(problems);
        Ok(())
    }
}

/// Evaluated arguments and connection of a provisioner.
struct Prepared {
    config: Value,
    marks: cty::Marks,
    connection: Value,
}

fn not_started(provisioner: &Provisioner) -> syntax::Diagnostics {
    syntax::Diagnostic::error(
        "Missing required provisioner plugin",
        format!("The provisioner \"{}\" was not started.", provisioner.ty),
    )
    .at(&provisioner.type_range)
    .into()
}

/// Returns the connection of a provisioner, without marks, and the deprecation warnings of its evaluation. The connection is null if
/// neither the resource nor the provisioner has a `connection` block.
fn connection_value(
    shared: Option<&Connection>,
    provisioner: &Provisioner,
    scope: &crate::eval::ModuleScope<'_>,
) -> Result<(Value, syntax::Diagnostics), syntax::Diagnostics> {
    let connection_schema = connection_schema();
    let mut warnings = syntax::Diagnostics::new();
    let mut connection = Value::null(connection_schema.implied_type());
    // The connection block of the provisioner overrides single arguments of the connection block of the resource.
    for written in shared.into_iter().chain(&provisioner.connection) {
        let (value, diagnostics) = decode_body(&written.body, &connection_schema.block, Context::new(scope));
        if diagnostics.has_errors() {
            return Err(diagnostics);
        }
        let (value, found) = scope.without_deprecations(value, &written.body, &connection_schema.block);
        warnings.extend(found);
        let (value, _) = value.unmark_deep();
        connection = if connection.is_null() {
            value
        } else {
            connection.map_parts(|part, base| match part {
                cty::value::Part::Attribute(name) => match value.get(name) {
                    Some(own) if !own.is_null() => own.clone(),
                    _ => base.clone(),
                },
                _ => base.clone(),
            })
        };
    }
    Ok((connection, warnings))
}

/// Locates the diagnostics of a provisioner at its block. If an error has only a summary, the summary becomes the detail, under a new
/// summary with the provisioner type.
fn located_at_provisioner(problems: syntax::Diagnostics, provisioner: &Provisioner) -> syntax::Diagnostics {
    problems
        .into_iter()
        .map(|mut d| {
            if d.is_error() && d.detail.is_empty() {
                let summary = format!("{} provisioner error", provisioner.ty);
                d.detail = std::mem::replace(&mut d.summary, summary);
            }
            d.at(&provisioner.range)
        })
        .collect()
}
