//! Ephemeral resources: opened before their first use, renewed while they are open, closed after their last use.
//!
//! Plans and applies report when a block that can use an ephemeral resource is done ([`Ephemerals::used`]). After the last such block the
//! instances are closed, and all remaining instances at the end ([`Ephemerals::close_all`]). Ephemeral resources are never stored in states
//! or plans.

#![expect(
    clippy::disallowed_methods,
    reason = "providers return the time of the next renewal of an ephemeral resource"
)]

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use addrs::{AbsResourceInstance, ConfigResource, Mode};
use config::Resource;
use cty::{Marks, Path, Value};
use futures::StreamExt;
use provider::Provider;
use schema::Schema;
use syntax::ast::Body;
use syntax::{Diagnostic, Diagnostics};
use tokio::sync::{Notify, Semaphore};

use crate::blocks::Block;
use crate::context::OperationContext;
use crate::eval::checks::FailureSeverity;
use crate::eval::instance_conditions::ConfiguredInstance;
use crate::eval::provider_instances::ProviderUse;
use crate::eval::{Repetition, Reported};
use crate::events::{EphemeralAction, Event};
use crate::instance::located;
use crate::objchange::plan_problems;
use crate::object_config;

/// Ephemeral resources that each block can use, directly or through blocks that have no objects (such as local values).
type Users = HashMap<Block, Vec<ConfigResource>>;

/// Values of the ephemeral resource instances that an operation has opened, with their marks. The value is unknown if the opening was
/// deferred to apply. The instances are closed at the end of the operation, so only evaluations right after it may use the values.
#[derive(Debug, Default)]
pub struct OpenedValues(Mutex<BTreeMap<AbsResourceInstance, Value>>);

impl OpenedValues {
    fn add(&self, address: &AbsResourceInstance, value: Value) {
        let mut values = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        values.insert(address.clone(), value);
    }

    #[must_use]
    pub fn into_values(self) -> BTreeMap<AbsResourceInstance, Value> {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

pub struct Ephemerals<'a> {
    context: OperationContext<'a>,
    values: &'a OpenedValues,
    users: Users,
    /// Number of uses of each resource that are still expected. At zero, its instances are closed.
    waiting: Mutex<BTreeMap<ConfigResource, usize>>,
    open: Mutex<Vec<Arc<Open>>>,
    /// Notified after an instance is opened, so that the renewal loop reconsiders its deadline.
    opened: Notify,
    /// Limit of instances that are opened or closed at the same time.
    slots: Semaphore,
}

/// An open instance of an ephemeral resource.
struct Open {
    address: AbsResourceInstance,
    provider: Arc<dyn Provider>,
    /// Locked during a request to renew or close the instance.
    lease: tokio::sync::Mutex<Lease>,
}

#[derive(Default)]
struct Lease {
    private: Option<Vec<u8>>,
    renew_at: Option<SystemTime>,
    closed: bool,
    problems: Diagnostics,
}

/// An ephemeral resource that is being opened.
struct EphemeralResource<'r> {
    block: &'r Resource,
    schema: &'r Schema,
    provider: Arc<dyn Provider>,
}

impl EphemeralResource<'_> {
    /// Returns the body and the schema with which the attribute paths in a provider's diagnostics are resolved to source ranges.
    fn written(&self) -> Option<(&Body, &Schema)> {
        Some((&self.block.body, self.schema))
    }
}

impl<'a> Ephemerals<'a> {
    /// Creates the ephemeral resources of a configuration. No instance is open yet. `count` returns how many times a block
    /// that can use one will be reported with [`Ephemerals::used`].
    pub fn new(
        context: OperationContext<'a>,
        values: &'a OpenedValues,
        mut count: impl FnMut(&Block) -> usize,
    ) -> Ephemerals<'a> {
        let mut users: Users = HashMap::new();
        let mut waiting = BTreeMap::new();
        for (resource, blocks) in context.blocks.ephemeral_users() {
            let mut all = 0;
            for block in blocks {
                all += count(&block);
                users.entry(block).or_default().push(resource.clone());
            }
            waiting.insert(resource, all);
        }
        Ephemerals {
            context,
            values,
            users,
            waiting: Mutex::new(waiting),
            open: Mutex::default(),
            opened: Notify::new(),
            slots: Semaphore::new(context.inputs.permits()),
        }
    }

    /// Returns true if the configuration has no ephemeral resources.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.waiting().is_empty()
    }

    fn waiting(&self) -> MutexGuard<'_, BTreeMap<ConfigResource, usize>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn opened(&self) -> MutexGuard<'_, Vec<Arc<Open>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens the instances of a resource. Its provider must be configured, and its dependencies must have their values.
    pub async fn open(&self, address: &ConfigResource) -> Result<(), Reported> {
        let Some(block) = self.context.inputs.config.resource(address) else {
            return Ok(());
        };
        let provider_address = self.context.inputs.config.provider_for(address);
        let schema = object_config::resource_schema(
            self.context.providers.schemas(),
            &provider_address.provider,
            &address.resource,
            Some(&block.type_range),
        )
        .map_err(|d| self.context.fail(d))?;
        let provider_address = &provider_address;
        let expanded = self.context.evaluator.provider_expansion(provider_address)?.is_some();
        let mut tasks: Vec<(AbsResourceInstance, Repetition)> = Vec::new();
        for module in self.context.evaluator.module_instances(&address.module)? {
            let expansion = self.context.evaluator.resource_expansion(&module, &address.resource)?;
            for key in expansion.keys() {
                let repetition = expansion.repetition(&key);
                tasks.push((address.resource.absolute(&module).instance(key), repetition));
            }
        }
        let mut results = futures::stream::iter(tasks)
            .map(|(address, repetition)| async move {
                let provider_address = match expanded {
                    false => provider_address.clone(),
                    true => self.context.evaluator.provider_used(&ProviderUse {
                        module: &address.module,
                        local: &block.local_provider(),
                        reference: block.provider_ref.as_ref(),
                        repetition: &repetition,
                        about: &address,
                    })?,
                };
                let provider = self.context.providers.get(&provider_address).await;
                let resource = EphemeralResource {
                    block,
                    schema,
                    provider: provider.map_err(|d| self.context.fail(d))?,
                };
                self.open_instance(&resource, &address, &repetition).await
            })
            .buffer_unordered(self.context.inputs.permits());
        let mut failed = false;
        // All instances are awaited even after a failure, because every instance that was opened must be recorded to be closed later.
        while let Some(result) = results.next().await {
            failed |= result.is_err();
        }
        drop(results);
        if failed {
            return Err(Reported);
        }
        // No block uses the resource, so no user would close it.
        if self.waiting().get(address) == Some(&0) {
            self.close(address).await;
        }
        Ok(())
    }

    async fn open_instance(
        &self,
        resource: &EphemeralResource<'_>,
        address: &AbsResourceInstance,
        repetition: &Repetition,
    ) -> Result<(), Reported> {
        let _slot = self.slots.acquire().await.map_err(|_| Reported)?;
        if self.context.inputs.stop.is_requested() {
            return Err(Reported);
        }
        let evaluator = self.context.evaluator;
        let instance = ConfiguredInstance {
            address,
            block: resource.block,
            repetition,
        };
        evaluator.check_preconditions(instance, FailureSeverity::Error)?;
        let (config, marks) = self.validated_config(resource, instance).await?;
        if !config.is_wholly_known() {
            // Apply opens the instance, when its configuration is known.
            self.context.inputs.events.event(Event::EphemeralDeferred {
                address: address.clone(),
            });
            let unknown = Value::unknown(resource.schema.implied_type()).with_marks(Marks::EPHEMERAL);
            self.values.add(address, unknown.clone());
            evaluator.set_object(address, unknown);
            return Ok(());
        }
        let result = self.request_open(resource, address, config).await?;
        let value = result.mark_paths(&marks).with_marks(Marks::EPHEMERAL);
        self.values.add(address, value.clone());
        evaluator.set_object(address, value.clone());
        evaluator.check_postconditions(instance, Some(value), FailureSeverity::Error)
    }

    /// Validates the configuration of an instance with the provider. Returns the configuration without marks, and its marks.
    async fn validated_config(
        &self,
        resource: &EphemeralResource<'_>,
        instance: ConfiguredInstance<'_>,
    ) -> Result<(Value, Vec<(Path, Marks)>), Reported> {
        let address = instance.address;
        let scope = self.context.evaluator.instance_scope(instance)?;
        let body = &resource.block.body;
        let config = object_config::object_config(self.context.evaluator, address, body, resource.schema, &scope)?;
        let marks = config.paths_with_marks();
        let (config, _) = config.unmark_deep();
        let ty = &address.resource.resource.ty;
        let answer = resource
            .provider
            .validate_ephemeral(ty, config.clone())
            .await
            .map_err(|d| self.context.fail(d))?;
        self.context
            .report(located(answer.diagnostics, resource.written(), address))?;
        Ok((config, marks))
    }

    /// Requests the provider to open an instance, and adds it to the open instances. Returns the value, without marks.
    async fn request_open(
        &self,
        resource: &EphemeralResource<'_>,
        address: &AbsResourceInstance,
        config: Value,
    ) -> Result<Value, Reported> {
        let ty = &address.resource.resource.ty;
        let began = self.begin(address, EphemeralAction::Open);
        let answer = match resource.provider.open_ephemeral(ty, config.clone()).await {
            Ok(answer) => answer,
            Err(problems) => {
                self.end(address, EphemeralAction::Open, began, true);
                return Err(self.context.fail(problems));
            }
        };
        let mut problems = located(answer.diagnostics, resource.written(), address);
        let failed = problems.has_errors();
        self.end(address, EphemeralAction::Open, began, failed);
        if failed {
            return Err(self.context.fail(problems));
        }
        let answer = answer.value;
        // The instance is open even if the response is invalid, so it must be closed.
        self.opened().push(Arc::new(Open {
            address: address.clone(),
            provider: resource.provider.clone(),
            lease: tokio::sync::Mutex::new(Lease {
                private: answer.private,
                renew_at: answer.renew_at.and_then(time),
                ..Lease::default()
            }),
        }));
        // The renewal loop may be waiting for a later deadline than the one of this instance.
        self.opened.notify_one();
        let invalid = result_problems(resource.schema, &config, &answer.result);
        problems.extend(invalid.into_iter().map(|what| {
            Diagnostic::error(
                "Provider produced invalid ephemeral resource instance",
                format!(
                    "The provider for {ty} produced an inconsistent result: {}.\n\nThis is a bug in the provider; \
                     please report it to its maintainers.",
                    what.trim_start_matches(": ")
                ),
            )
            .at(&resource.block.range)
            .about(address)
        }));
        self.context.report(problems)?;
        Ok(answer.result)
    }

    /// Counts one use by a block of each ephemeral resource that it can use, and closes the resources for which no more uses are
    /// expected.
    pub async fn used(&self, block: &Block) {
        let Some(resources) = self.users.get(block) else { return };
        let idle: Vec<&ConfigResource> = {
            // The guard must be dropped before the resources are closed, which waits for a plugin.
            let mut waiting = self.waiting();
            let done = resources.iter().filter(|r| {
                waiting.get_mut(*r).is_some_and(|left| {
                    *left = left.saturating_sub(1);
                    *left == 0
                })
            });
            done.collect()
        };
        if idle.is_empty() {
            return;
        }
        self.close_where(|address| idle.contains(&address)).await;
    }

    async fn close(&self, resource: &ConfigResource) {
        self.close_where(|address| address == resource).await;
    }

    /// Closes all open instances.
    pub async fn close_all(&self) {
        self.close_where(|_| true).await;
    }

    /// Closes the open instances of the resources for which `which` returns true, in the reverse order of opening, because an instance
    /// may depend on one that was opened before it.
    async fn close_where(&self, which: impl Fn(&ConfigResource) -> bool) {
        let mut closing: Vec<Arc<Open>> = {
            let mut open = self.opened();
            let (closing, staying) = std::mem::take(&mut *open)
                .into_iter()
                .partition(|o| which(&o.address.config()));
            *open = staying;
            closing
        };
        while let Some(last) = closing.pop() {
            // Instances of one resource do not depend on one another.
            let resource = last.address.config();
            let mut together = vec![last];
            while let Some(next) = closing.pop_if(|o| o.address.config() == resource) {
                together.push(next);
            }
            futures::future::join_all(together.iter().map(|o| self.close_instance(o))).await;
        }
    }

    async fn close_instance(&self, open: &Open) {
        // The semaphore is never closed, so this cannot fail.
        let _slot = self.slots.acquire().await.ok();
        let mut lease = open.lease.lock().await;
        // The instance is marked as closed under the lock, so that a renewal that waits for the lock does not
        // renew a closed instance.
        lease.closed = true;
        let mut problems = std::mem::take(&mut lease.problems);
        let began = self.begin(&open.address, EphemeralAction::Close);
        let ty = &open.address.resource.resource.ty;
        let closed = match open.provider.close_ephemeral(ty, lease.private.take()).await {
            Ok(answer) => located(answer.diagnostics, self.written(open), &open.address),
            Err(problems) => problems,
        };
        self.end(&open.address, EphemeralAction::Close, began, closed.has_errors());
        problems.extend(closed);
        self.context.evaluator.report(problems);
    }

    fn written(&self, open: &Open) -> Option<(&Body, &Schema)> {
        let address = open.address.config();
        let block = self.context.inputs.config.resource(&address)?;
        let provider = self.context.inputs.config.provider_for(&address).provider.clone();
        let ty = &address.resource.ty;
        let schema = self
            .context
            .providers
            .schemas()
            .resource(&provider, Mode::Ephemeral, ty)?;
        Some((&block.body, schema))
    }

    /// Renews open instances when they are due, and never returns.
    pub async fn renew_until_closed(&self) -> std::convert::Infallible {
        loop {
            let next = self.renewals().await;
            let due = next.iter().map(|(_, at)| *at).min();
            let wait = due.map_or(Duration::MAX, |at| {
                at.duration_since(SystemTime::now()).unwrap_or_default()
            });
            if wait > Duration::ZERO {
                // A timer does not notice when the system clock is set, so the clock is read again after at most a minute.
                let wait = wait.min(Duration::from_secs(60));
                tokio::select! {
                    () = tokio::time::sleep(wait) => {}
                    () = self.opened.notified() => {}
                }
                continue;
            }
            let now = SystemTime::now();
            let due = next
                .iter()
                .filter(|(_, at)| *at <= now)
                .map(|(open, _)| self.renew(open));
            futures::future::join_all(due).await;
        }
    }

    async fn renewals(&self) -> Vec<(Arc<Open>, SystemTime)> {
        let open: Vec<Arc<Open>> = self.opened().clone();
        let mut out = Vec::new();
        for open in open {
            let at = open.lease.lock().await.renew_at;
            out.extend(at.map(|at| (open, at)));
        }
        out
    }

    async fn renew(&self, open: &Open) {
        let mut lease = open.lease.lock().await;
        if lease.closed {
            return;
        }
        let began = self.begin(&open.address, EphemeralAction::Renew);
        let ty = &open.address.resource.resource.ty;
        let answer = open.provider.renew_ephemeral(ty, lease.private.clone()).await;
        let problems = match answer {
            Ok(answer) => {
                let problems = located(answer.diagnostics, self.written(open), &open.address);
                // The minimum of one second protects against providers that request a renewal at once, again and again.
                let soon = SystemTime::now() + Duration::from_secs(1);
                let next = answer.value.renew_at.and_then(time).map(|at| at.max(soon));
                lease.renew_at = next.filter(|_| !problems.has_errors());
                if answer.value.private.is_some() {
                    lease.private = answer.value.private;
                }
                problems
            }
            Err(problems) => {
                lease.renew_at = None;
                problems
            }
        };
        self.end(&open.address, EphemeralAction::Renew, began, problems.has_errors());
        // Reported when the instance is closed: if no block uses the value after this, the failed renewal does no harm.
        lease.problems.extend(problems);
    }

    fn begin(&self, address: &AbsResourceInstance, action: EphemeralAction) -> Instant {
        let address = address.clone();
        self.context
            .inputs
            .events
            .event(Event::EphemeralStart { address, action });
        Instant::now()
    }

    fn end(&self, address: &AbsResourceInstance, action: EphemeralAction, began: Instant, failed: bool) {
        let (address, elapsed) = (address.clone(), began.elapsed());
        self.context.inputs.events.event(if failed {
            Event::EphemeralFailed {
                address,
                action,
                elapsed,
            }
        } else {
            Event::EphemeralComplete {
                address,
                action,
                elapsed,
            }
        });
    }
}

/// Returns the rules that the result of an open call breaks.
fn result_problems(schema: &Schema, config: &Value, result: &Value) -> Vec<String> {
    let null = Value::null(schema.implied_type());
    let mut problems: Vec<String> = plan_problems(&schema.block, &null, config, result)
        .into_iter()
        .map(|p| format!("{}: {}", p.path.to_string().trim_start_matches('.'), p.message))
        .collect();
    if problems.is_empty() && !result.is_wholly_known() {
        problems.push("the result contains unknown values".into());
    }
    problems
}

/// Converts a protocol timestamp; none if it is out of range.
fn time((seconds, nanoseconds): (i64, i32)) -> Option<SystemTime> {
    let (seconds, nanoseconds) = (u64::try_from(seconds).ok()?, u32::try_from(nanoseconds).ok()?);
    UNIX_EPOCH.checked_add(Duration::new(seconds, nanoseconds.min(999_999_999)))
}
