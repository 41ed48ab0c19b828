//! Ephemeral resources: opened when first needed, renewed while they are open, closed when nobody needs them any more.
//!
//! Planning and applying do this alike. Each tells when something that might use an ephemeral resource is done
//! ([`Ephemerals::used`]); when the last one is, its instances are closed, and in any case at the end
//! ([`Ephemerals::close_all`]). Nothing of all this goes into the state or into a plan.

#![expect(
    clippy::disallowed_methods,
    reason = "a provider says at what time an ephemeral resource is to be renewed"
)]

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use addrs::{AbsResourceInstance, ConfigResource, Mode};
use config::Resource;
use cty::{Marks, Value};
use futures::StreamExt;
use provider::Provider;
use schema::Schema;
use syntax::{Diagnostic, Diagnostics};
use tokio::sync::{Notify, Semaphore};

use crate::blocks::{Block, Blocks};
use crate::eval::checks::{Checked, ConditionKind, Conditions, FailureSeverity};
use crate::eval::{Evaluator, Repetition, Reported};
use crate::events::{EphemeralAction, Event};
use crate::inputs::Inputs;
use crate::instance::located;
use crate::objchange::plan_problems;
use crate::object_config;
use crate::providers::Providers;

/// Something that may use ephemeral resources.
type Users = HashMap<Block, Vec<ConfigResource>>;

/// The ephemeral resources of one walk.
pub struct Ephemerals<'a> {
    inputs: Inputs<'a>,
    providers: &'a Providers<'a>,
    evaluator: &'a Evaluator<'a>,
    /// What each block uses, directly or through blocks that are only evaluated.
    users: Users,
    /// How many that might still use a resource are not done.
    waiting: Mutex<BTreeMap<ConfigResource, usize>>,
    open: Mutex<Vec<Arc<Open>>>,
    /// Something was opened that wants to be renewed.
    opened: Notify,
    /// One for each instance that may be opened or closed at the same time, whatever blocks they are of.
    slots: Semaphore,
}

/// An open instance.
struct Open {
    address: AbsResourceInstance,
    provider: Arc<dyn Provider>,
    /// The provider's own data and when it wants to be asked again. Held while it is being asked.
    lease: tokio::sync::Mutex<Lease>,
}

#[derive(Default)]
struct Lease {
    private: Option<Vec<u8>>,
    renew_at: Option<SystemTime>,
    closed: bool,
    problems: Diagnostics,
}

impl<'a> Ephemerals<'a> {
    /// The ephemeral resources of a configuration; none is open. `count` says how often a block that may use one will
    /// report that it is done.
    pub fn new(
        inputs: Inputs<'a>,
        providers: &'a Providers<'a>,
        evaluator: &'a Evaluator<'a>,
        blocks: &Blocks,
        mut count: impl FnMut(&Block) -> usize,
    ) -> Ephemerals<'a> {
        let mut users: Users = HashMap::new();
        let mut waiting = BTreeMap::new();
        for (resource, blocks) in blocks.ephemeral_users() {
            let mut all = 0;
            for block in blocks {
                all += count(&block);
                users.entry(block).or_default().push(resource.clone());
            }
            waiting.insert(resource, all);
        }
        Ephemerals {
            inputs,
            providers,
            evaluator,
            users,
            waiting: Mutex::new(waiting),
            open: Mutex::default(),
            opened: Notify::new(),
            slots: Semaphore::new(inputs.parallelism.max(1)),
        }
    }

    /// Whether there are any.
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

    fn reported(&self, diagnostics: impl Into<Diagnostics>) -> Reported {
        self.evaluator.report(diagnostics.into());
        Reported
    }

    /// Opens the instances of a resource. Its provider is open, and what its configuration refers to is there.
    pub async fn open(&self, address: &ConfigResource) -> Result<(), Reported> {
        let Some(block) = self.inputs.config.resource(address) else {
            return Ok(());
        };
        let provider_address = self.inputs.config.provider_for(address);
        let schema = object_config::resource_schema(
            self.providers.schemas(),
            &provider_address.provider,
            &address.resource,
            Some(&block.type_range),
        )
        .map_err(|d| self.reported(d))?;
        let provider = self
            .providers
            .get(&provider_address)
            .await
            .map_err(|d| self.reported(d))?;
        let mut tasks: Vec<(AbsResourceInstance, Repetition)> = Vec::new();
        for module in self.evaluator.module_instances(&address.module)? {
            let expansion = self.evaluator.resource_expansion(&module, &address.resource)?;
            for key in expansion.keys() {
                let repetition = expansion.repetition(&key);
                tasks.push((address.resource.absolute(&module).instance(key), repetition));
            }
        }
        let mut results = futures::stream::iter(tasks)
            .map(|(address, repetition)| {
                let provider = provider.clone();
                async move { self.open_instance(&address, repetition, block, schema, provider).await }
            })
            .buffer_unordered(self.inputs.parallelism.max(1));
        let mut failed = false;
        while let Some(result) = results.next().await {
            failed |= result.is_err();
        }
        drop(results);
        if failed {
            return Err(Reported);
        }
        if self.waiting().get(address) == Some(&0) {
            self.close(address).await;
        }
        Ok(())
    }

    async fn open_instance(
        &self,
        address: &AbsResourceInstance,
        repetition: Repetition,
        block: &Resource,
        schema: &Schema,
        provider: Arc<dyn Provider>,
    ) -> Result<(), Reported> {
        let _slot = self.slots.acquire().await.map_err(|_| Reported)?;
        if self.inputs.stop.is_requested() {
            return Err(Reported);
        }
        let scope = self
            .evaluator
            .scope_with(&address.module, repetition.clone(), None)
            .ok_or(Reported)?;
        self.conditions(
            &block.lifecycle.preconditions,
            ConditionKind::Precondition,
            &scope,
            address,
        )?;
        let config = object_config::object_config(self.evaluator, address, &block.body, schema, &scope)?;
        let marks = config.paths_with_marks();
        let (config, _) = config.unmark_deep();
        let ty = &address.resource.resource.ty;
        let written = Some((&*block.body, schema));
        let answer = provider
            .validate_ephemeral(ty, config.clone())
            .await
            .map_err(|d| self.reported(d))?;
        self.report(located(answer.diagnostics, written, address))?;
        if !config.is_wholly_known() {
            // It is opened during apply, when all is known.
            let address = address.clone();
            self.inputs.events.event(Event::EphemeralDeferred {
                address: address.clone(),
            });
            let unknown = Value::unknown(schema.implied_type()).with_marks(Marks::EPHEMERAL);
            self.evaluator.set_object(&address, unknown);
            return Ok(());
        }
        let began = self.begin(address, EphemeralAction::Open);
        let answer = match provider.open_ephemeral(ty, config.clone()).await {
            Ok(answer) => answer,
            Err(problems) => {
                self.end(address, EphemeralAction::Open, began, true);
                return Err(self.reported(problems));
            }
        };
        let mut problems = located(answer.diagnostics, written, address);
        let failed = problems.has_errors();
        self.end(address, EphemeralAction::Open, began, failed);
        if failed {
            self.evaluator.report(problems);
            return Err(Reported);
        }
        let answer = answer.value;
        // Whatever becomes of the answer, the instance is open now, and must be closed.
        self.opened().push(Arc::new(Open {
            address: address.clone(),
            provider,
            lease: tokio::sync::Mutex::new(Lease {
                private: answer.private,
                renew_at: answer.renew_at.and_then(time),
                ..Lease::default()
            }),
        }));
        self.opened.notify_one();
        let null = Value::null(schema.implied_type());
        let mut broken: Vec<String> = plan_problems(&schema.block, &null, &config, &answer.result)
            .into_iter()
            .map(|p| format!("{}: {}", p.path.to_string().trim_start_matches('.'), p.message))
            .collect();
        if broken.is_empty() && !answer.result.is_wholly_known() {
            broken.push("the result contains unknown values".into());
        }
        problems.extend(broken.into_iter().map(|what| {
            Diagnostic::error(
                "Provider produced invalid ephemeral resource instance",
                format!(
                    "The provider for {ty} produced an inconsistent result: {}.\n\nThis is a defect of the provider; \
                     please report it to its maintainers.",
                    what.trim_start_matches(": ")
                ),
            )
            .at(&block.range)
            .about(address)
        }));
        self.report(problems)?;
        let value = answer.result.mark_paths(&marks).with_marks(Marks::EPHEMERAL);
        self.evaluator.set_object(address, value.clone());
        let scope = self
            .evaluator
            .scope_with(&address.module, repetition, Some(value))
            .ok_or(Reported)?;
        self.conditions(
            &block.lifecycle.postconditions,
            ConditionKind::Postcondition,
            &scope,
            address,
        )
    }

    fn report(&self, problems: Diagnostics) -> Result<(), Reported> {
        let failed = problems.has_errors();
        self.evaluator.report(problems);
        if failed { Err(Reported) } else { Ok(()) }
    }

    fn conditions(
        &self,
        rules: &[config::CheckRule],
        kind: ConditionKind,
        scope: &crate::eval::ModuleScope<'_>,
        address: &AbsResourceInstance,
    ) -> Result<(), Reported> {
        self.evaluator.check_all(&Conditions {
            rules,
            kind,
            scope,
            of: &Checked::Resource(address.clone()),
            severity: FailureSeverity::Error,
        })
    }

    /// A block that may use ephemeral resources is done, once. What nobody needs any more is closed.
    pub async fn used(&self, block: &Block) {
        let Some(resources) = self.users.get(block) else { return };
        let idle: Vec<&ConfigResource> = {
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

    /// Closes what is still open.
    pub async fn close_all(&self) {
        self.close_where(|_| true).await;
    }

    /// Closes the open instances of some resources: what was opened last goes first, since it may be made of the others.
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
            // The instances of one resource do not need one another.
            let resource = last.address.config();
            let mut together = vec![last];
            while let Some(next) = closing.pop_if(|o| o.address.config() == resource) {
                together.push(next);
            }
            futures::future::join_all(together.iter().map(|o| self.close_instance(o))).await;
        }
    }

    async fn close_instance(&self, open: &Open) {
        // Nobody closes the semaphore, and what is open must be closed in any case.
        let _slot = self.slots.acquire().await.ok();
        let mut lease = open.lease.lock().await;
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
        self.evaluator.report(problems);
    }

    fn written(&self, open: &Open) -> Option<(&syntax::ast::Body, &Schema)> {
        let address = open.address.config();
        let block = self.inputs.config.resource(&address)?;
        let provider = self.inputs.config.provider_for(&address).provider;
        let ty = &address.resource.ty;
        let schema = self.providers.schemas().resource(&provider, Mode::Ephemeral, ty)?;
        Some((&block.body, schema))
    }

    /// Renews what wants to be renewed, whenever it does, and never ends.
    pub async fn renew_until_closed(&self) -> std::convert::Infallible {
        loop {
            let next = self.renewals().await;
            let due = next.iter().map(|(_, at)| *at).min();
            let wait = due.map_or(Duration::MAX, |at| {
                at.duration_since(SystemTime::now()).unwrap_or_default()
            });
            if wait > Duration::ZERO {
                // A clock that is set back or forward is noticed within a minute.
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
                // Whatever it says, it is not asked again at once.
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
        // They are told when it is closed: the work that goes on may not need the value any more.
        lease.problems.extend(problems);
    }

    fn begin(&self, address: &AbsResourceInstance, action: EphemeralAction) -> Instant {
        let address = address.clone();
        self.inputs.events.event(Event::EphemeralStart { address, action });
        Instant::now()
    }

    fn end(&self, address: &AbsResourceInstance, action: EphemeralAction, began: Instant, failed: bool) {
        let (address, elapsed) = (address.clone(), began.elapsed());
        self.inputs.events.event(if failed {
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

/// A time on the wire; none if it makes no sense.
fn time((seconds, nanoseconds): (i64, i32)) -> Option<SystemTime> {
    let (seconds, nanoseconds) = (u64::try_from(seconds).ok()?, u32::try_from(nanoseconds).ok()?);
    UNIX_EPOCH.checked_add(Duration::new(seconds, nanoseconds.min(999_999_999)))
}
