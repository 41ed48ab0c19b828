//! Lists of existing objects as streams of events.

use std::sync::Arc;

use monoform_sdk::served::{ListCall, ListEvent, ServedProvider};
use tokio::sync::mpsc;

use crate::threads::spawn;

/// Maximum number of events that wait to be sent.
const WAITING: usize = 64;

/// Lists objects on a task of its own. Dropping the receiver of the events requests the list to stop.
pub(crate) fn events(provider: Arc<ServedProvider>, request: ListCall) -> mpsc::Receiver<ListEvent> {
    let (events, stream) = mpsc::channel(WAITING);
    let call = provider.calls().begin();
    spawn(provider.blocks(), async move {
        // The list is requested to stop instead of being dropped at an `await`: the provider may hold resources on its server that only its
        // own code releases.
        let mut caller = Some(call.stop_on_drop());
        let work = provider.list(request, events.clone(), call.stop());
        tokio::pin!(work);
        let diagnostics = loop {
            tokio::select! {
                diagnostics = &mut work => break diagnostics,
                () = events.closed(), if caller.is_some() => drop(caller.take()),
            }
        };
        // The protocol has no final message for a list. Diagnostics of the whole list are sent in an event without an object.
        if !diagnostics.0.is_empty() {
            let event = ListEvent {
                diagnostics,
                ..ListEvent::default()
            };
            drop(events.send(event).await);
        }
        drop(call);
    });
    stream
}
