//! The calls for actions: what they do, and how an invocation becomes a stream of events.

use std::pin::Pin;
use std::sync::Arc;

use futures::Stream;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

use crate::action::{AnyAction, Progress};
use crate::call::{CallOptions, Deferral};
use crate::check;
use crate::guard::guarded_now;
use crate::server::core::{Core, unknown_type};
use crate::server::threads::spawn;
use crate::wire::{Wire, decode};
use crate::{Diagnostics, Result, Stop};

/// The events of an invocation, in the messages of a protocol.
pub(crate) type Events<T> = Pin<Box<dyn Stream<Item = std::result::Result<T, Status>> + Send>>;

/// An event of an invocation.
pub(crate) enum ActionEvent {
    /// How far it is.
    Progress(String),
    /// Its end.
    Completed(Diagnostics),
}

impl Core {
    fn action(&self, name: &str) -> Result<&dyn AnyAction> {
        self.actions
            .get(name)
            .map(|a| &**a)
            .ok_or_else(|| unknown_type("action", name))
    }

    pub fn validate_action(&self, name: &str, config: &Wire) -> Diagnostics {
        let check = || -> Result<Diagnostics> {
            let action = self.action(name)?;
            let config = decode(config, &action.schema().ty)?;
            if config.is_null() {
                return Ok(Diagnostics::new());
            }
            let mut found = check::against_schema(action.schema(), &config, true);
            found.append(guarded_now(|| action.validate(&config))?);
            Ok(found)
        };
        check().unwrap_or_else(|errors| errors)
    }

    pub async fn plan_action(
        &self,
        name: &str,
        config: &Wire,
        options: CallOptions,
    ) -> (Option<Deferral>, Diagnostics) {
        let plan = async {
            let action = self.action(name)?;
            let config = decode(config, &action.schema().ty)?;
            Ok(action.plan(&config, options).await)
        };
        plan.await.unwrap_or_else(|errors| (None, errors))
    }

    pub async fn invoke_action(&self, name: &str, config: &Wire, progress: Progress, stop: Stop) -> Diagnostics {
        let invoke = async {
            let action = self.action(name)?;
            let config = decode(config, &action.schema().ty)?;
            Ok(action.invoke(&config, progress, stop).await)
        };
        invoke.await.unwrap_or_else(|errors| errors)
    }
}

/// Invokes an action on a task of its own. `message` makes an event what the protocol sends.
pub(crate) fn events<T: Send + 'static>(
    core: Arc<Core>,
    name: String,
    config: Wire,
    message: impl Fn(ActionEvent) -> T + Send + Sync + 'static,
) -> Events<T> {
    let (responses, stream) = mpsc::channel(64);
    let (text, mut texts) = mpsc::channel(64);
    let call = core.calls.begin();
    spawn(core.blocks, async move {
        let work = core.invoke_action(&name, &config, Progress(text), call.stop());
        let mut caller = Some(call.stop_on_drop());
        let forward = async {
            loop {
                tokio::select! {
                    text = texts.recv() => {
                        let Some(text) = text else { break };
                        // The events are no longer read: the select below notices.
                        drop(responses.send(Ok(message(ActionEvent::Progress(text)))).await);
                    }
                    // The caller is gone: the work is asked to stop, and its messages are dropped.
                    () = responses.closed(), if caller.is_some() => drop(caller.take()),
                }
            }
        };
        let (found, ()) = futures::join!(work, forward);
        drop(responses.send(Ok(message(ActionEvent::Completed(found)))).await);
        drop(call);
    });
    Box::pin(ReceiverStream::new(stream))
}
