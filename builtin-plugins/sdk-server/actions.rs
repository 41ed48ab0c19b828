//! Invocations of actions as streams of events.

use std::pin::Pin;
use std::sync::Arc;

use futures::Stream;
use monoform_sdk::served::ServedProvider;
use monoform_sdk::wire::Wire;
use monoform_sdk::{Diagnostics, Progress};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;

use crate::threads::spawn;

/// The events of an invocation, as messages of one protocol version.
pub(crate) type Events<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

/// An event of an invocation.
pub(crate) enum ActionEvent {
    /// A progress message of the action.
    Progress(String),
    /// The end of the invocation, with its diagnostics.
    Completed(Diagnostics),
}

/// Invokes an action on a task of its own. `message` converts an event to a message of the protocol.
pub(crate) fn events<T: Send + 'static>(
    provider: Arc<ServedProvider>,
    name: String,
    config: Wire,
    message: impl Fn(ActionEvent) -> T + Send + Sync + 'static,
) -> Events<T> {
    let (responses, stream) = mpsc::channel(64);
    let (progress, mut texts) = Progress::channel();
    let call = provider.calls().begin();
    spawn(provider.blocks(), async move {
        let work = provider.invoke_action(&name, &config, progress, call.stop());
        let mut caller = Some(call.stop_on_drop());
        let forward = async {
            loop {
                tokio::select! {
                    text = texts.recv() => {
                        let Some(text) = text else { break };
                        // A failure is ignored: it means that the caller has disconnected, which the select below handles.
                        drop(responses.send(Ok(message(ActionEvent::Progress(text)))).await);
                    }
                    // The caller has disconnected. Dropping the guard requests the action to stop; its further messages are dropped.
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
