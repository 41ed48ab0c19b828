//! What every operation of a plugin is given beside its own arguments.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cty::{Type, Value};
use tokio::sync::watch;

use crate::call::{CallOptions, Deferral};
use crate::wire::{Wire, decode};
use crate::{Diagnostic, Diagnostics, Model};

/// Says whether this call should end early. Each call has a signal of its own: it is set when the person asks to stop while
/// the call is in progress, or when its caller is gone. Later calls begin with a fresh one.
#[derive(Clone, Debug)]
pub struct Stop(watch::Receiver<bool>);

impl Stop {
    /// A stop that never comes.
    #[must_use]
    pub fn never() -> Stop {
        Stop(watch::channel(false).1)
    }

    /// A stop that comes after this time, for tests.
    #[must_use]
    pub fn after(time: std::time::Duration) -> Stop {
        Stop::when(tokio::time::sleep(time))
    }

    /// A stop that comes when a future completes, for tests that stop an operation at a certain point.
    #[must_use]
    pub fn when(event: impl Future<Output = ()> + Send + 'static) -> Stop {
        let (sender, receiver) = watch::channel(false);
        tokio::spawn(async move {
            event.await;
            sender.send_replace(true);
        });
        Stop(receiver)
    }

    /// Whether to stop now.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until the call should end early; perhaps for ever.
    pub async fn requested(&mut self) {
        if self.0.wait_for(|stop| *stop).await.is_err() {
            // The sender is gone: no request can come any more.
            std::future::pending::<()>().await;
        }
    }
}

/// The calls in progress: the stop signal of each.
#[derive(Clone, Debug)]
pub(crate) struct Calls(Arc<Registry>);

#[derive(Debug)]
struct Registry {
    signals: Mutex<Signals>,
    /// How many calls are in progress.
    count: watch::Sender<usize>,
}

#[derive(Debug, Default)]
struct Signals {
    next: u64,
    by_call: HashMap<u64, watch::Sender<bool>>,
}

impl Calls {
    pub fn new() -> Calls {
        Calls(Arc::new(Registry {
            signals: Mutex::default(),
            count: watch::Sender::new(0),
        }))
    }

    fn signals(&self) -> MutexGuard<'_, Signals> {
        self.0.signals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A call begins; it ends when what this gives is dropped.
    pub fn begin(&self) -> Call {
        let (sender, receiver) = watch::channel(false);
        let mut signals = self.signals();
        let id = signals.next;
        signals.next += 1;
        signals.by_call.insert(id, sender);
        drop(signals);
        self.0.count.send_modify(|count| *count += 1);
        Call {
            calls: self.clone(),
            id,
            stop: Stop(receiver),
        }
    }

    /// Asks all calls in progress to stop. Those that begin later are not concerned.
    pub fn stop(&self) {
        for signal in self.signals().by_call.values() {
            signal.send_replace(true);
        }
    }

    /// Waits until no call is in progress.
    pub async fn idle(&self) {
        // The sender lives in `self`, so this cannot fail before it is true.
        drop(self.0.count.subscribe().wait_for(|count| *count == 0).await);
    }
}

/// A call in progress.
#[derive(Debug)]
pub(crate) struct Call {
    calls: Calls,
    id: u64,
    stop: Stop,
}

impl Call {
    /// The signal of this call.
    pub fn stop(&self) -> Stop {
        self.stop.clone()
    }

    /// Asks this call to stop when the value is dropped: the caller, who may go away, holds it.
    pub fn stop_on_drop(&self) -> StopOnDrop {
        StopOnDrop {
            calls: self.calls.clone(),
            id: self.id,
        }
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.calls.signals().by_call.remove(&self.id);
        self.calls.0.count.send_modify(|count| *count -= 1);
    }
}

/// See [`Call::stop_on_drop`]. For a call that has ended, this does nothing.
#[derive(Debug)]
pub(crate) struct StopOnDrop {
    calls: Calls,
    id: u64,
}

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        if let Some(signal) = self.calls.signals().by_call.get(&self.id) {
            signal.send_replace(true);
        }
    }
}

/// What an operation is given beside its arguments, and where it leaves what it has to tell beside its result.
#[derive(Debug)]
pub struct Context<C> {
    pub(crate) client: Option<Arc<C>>,
    pub(crate) options: CallOptions,
    pub(crate) private: Vec<u8>,
    pub(crate) diagnostics: Diagnostics,
    pub(crate) saved: Option<Value>,
    pub(crate) config: Option<(Wire, Type)>,
    pub(crate) deferred: Option<Deferral>,
}

impl<C> Context<C> {
    pub(crate) fn new(client: Option<Arc<C>>, options: impl Into<CallOptions>, private: Vec<u8>) -> Context<C> {
        Context {
            client,
            options: options.into(),
            private,
            diagnostics: Diagnostics::new(),
            saved: None,
            config: None,
            deferred: None,
        }
    }

    /// A context for calling an operation from a test.
    pub fn for_test(client: C) -> Context<C> {
        Context::new(Some(Arc::new(client)), Stop::never(), Vec::new())
    }

    /// What the provider made of its configuration.
    pub fn client(&self) -> crate::Result<Arc<C>> {
        self.client.clone().ok_or_else(|| {
            Diagnostic::error(
                "Provider not configured",
                "This operation needs the provider's configuration, which has not been given to it yet. This is a bug \
                 of the program that called the plugin.",
            )
            .into()
        })
    }

    /// Says whether the person asked to stop. Long operations should wait for it too.
    #[must_use]
    pub fn stop(&self) -> Stop {
        self.options.stop.clone()
    }

    /// What the module whose resource or data source this is says in its `provider_meta` block, if it has one: see
    /// [`Provider::meta_schema`](crate::Provider::meta_schema). Planning, applying and reading have it.
    pub fn provider_meta<M: Model>(&self) -> crate::Result<Option<M>> {
        let value = self.options.meta_value(&M::ty())?;
        Ok((!value.is_null()).then(|| M::from_cty(&value)).transpose()?)
    }

    /// Whether the caller takes a deferral for an answer.
    #[must_use]
    pub fn deferral_allowed(&self) -> bool {
        self.options.deferral_allowed
    }

    /// Puts the answer off until more is known: in `plan`, `read`, `import` and `open`, of actions in `plan`. What the
    /// operation then gives as its result is what is known already. An error where the caller does not allow it.
    pub fn defer(&mut self, why: Deferral) -> crate::Result<()> {
        if !self.options.deferral_allowed {
            return Err(why.refused().into());
        }
        self.deferred = Some(why);
        Ok(())
    }

    /// The configuration that is being applied, in `create` and `update`: the one place where write-only attributes
    /// can be read, since plans and states never hold them. Everywhere else there is none, and this is an error.
    pub fn config<M: Model>(&self) -> crate::Result<M> {
        if let Some((wire, ty)) = &self.config {
            let config = decode(wire, ty)?;
            if !config.is_null() {
                return Ok(M::from_cty(&config)?);
            }
        }
        Err(Diagnostic::error(
            "Configuration not available",
            "The plugin asked for the configuration of this object, write-only values included, in an operation that is \
             not given one: only creating and updating are. This is a bug in the plugin.",
        )
        .into())
    }

    /// What the provider noted beside the object's state when it was last written.
    #[must_use]
    pub fn private(&self) -> &[u8] {
        &self.private
    }

    /// Notes something beside the object's state that no person sees.
    pub fn set_private(&mut self, bytes: Vec<u8>) {
        self.private = bytes;
    }

    /// Tells the person something while the operation goes on.
    pub fn warn(&mut self, summary: impl Into<String>, detail: impl Into<String>) {
        self.diagnostics.push(Diagnostic::warning(summary, detail));
    }

    /// Records what exists already, in case a later step of this operation fails, or panics. Without it, a failed creation
    /// leaves nothing in the state, and a failed update leaves the object of before. Attributes that are still unknown become
    /// null in plan and state.
    pub fn save<M: Model>(&mut self, model: &M) {
        self.saved = Some(model.to_cty());
    }

    /// What is to be kept after a failure.
    pub(crate) fn take_saved(&mut self) -> Option<Value> {
        self.saved.take().map(|saved| {
            saved.transform(|_, part| match part.is_known() {
                true => part,
                false => Value::null(part.ty().clone()),
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stop_reaches_calls_in_progress_and_not_later_ones() {
        let calls = Calls::new();
        let (first, ended) = (calls.begin(), calls.begin());
        let ended_signal = ended.stop();
        drop(ended);
        calls.stop();
        assert!(first.stop().is_requested() && !ended_signal.is_requested());
        assert!(!calls.begin().stop().is_requested(), "a later call has a fresh signal");
    }

    #[tokio::test]
    async fn a_call_is_asked_to_stop_when_its_caller_goes_away() {
        let calls = Calls::new();
        let (abandoned, other) = (calls.begin(), calls.begin());
        drop(abandoned.stop_on_drop());
        let mut stop = abandoned.stop();
        stop.requested().await;
        assert!(!other.stop().is_requested());
        drop((abandoned, other));
        calls.idle().await;
    }

    #[test]
    fn there_is_no_configuration_outside_create_and_update() {
        let cx = Context::for_test(());
        let error = cx.config::<crate::Empty>().unwrap_err();
        assert_eq!(error.0[0].summary, "Configuration not available");
    }
}
