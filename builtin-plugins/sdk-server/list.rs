//! Lists of existing objects as streams of events.

use std::sync::Arc;

use monoform_sdk::served::{ListCall, ListEvent, ServedProvider};
use tokio::sync::mpsc;

use crate::threads::spawn;

/// Limit of the events that wait to be sent.
const WAITING: usize = 64;

/// Lists objects on a task of its own. If the receiver of the events is dropped, the list is requested to stop.
pub(crate) fn events(provider: Arc<ServedProvider>, request: ListCall) -> mpsc::Receiver<ListEvent> {
    let (events, stream) = mpsc::channel(WAITING);
    let call = provider.calls().begin();
    spawn(provider.blocks(), async move {
        // Requested to stop rather than dropped at an await: the provider may hold resources on its server that only
        // its own code releases.
        let mut caller = Some(call.stop_on_drop());
        let work = provider.list(request, events.clone(), call.stop());
        tokio::pin!(work);
        let diagnostics = loop {
            tokio::select! {
                diagnostics = &mut work => break diagnostics,
                () = events.closed(), if caller.is_some() => drop(caller.take()),
            }
        };
        // The protocol has no closing message for a list: diagnostics of the whole list are in an event without an object.
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
