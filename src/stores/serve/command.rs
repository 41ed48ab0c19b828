//! What threads of the server ask of the thread of the command, which has its services.

use std::sync::mpsc::{Sender, SyncSender, sync_channel};

use syntax::{Diagnostic, Diagnostics};

use crate::backend::StateBackend;

/// Request of a thread to the thread of the command, which has its services.
pub enum Event {
    /// Open the backend once more.
    Open(SyncSender<Result<StateBackend, Diagnostics>>),
    /// Show a warning, and confirm that.
    Warning(Box<Diagnostic>, SyncSender<()>),
    /// The server has ended, or a thread has panicked.
    End,
}

/// The thread of the command.
pub(super) struct Command(Sender<Event>);

impl Command {
    pub fn new(events: Sender<Event>) -> Command {
        Command(events)
    }

    pub fn open(&self) -> Result<StateBackend, Diagnostics> {
        let (sender, opened) = sync_channel(1);
        let sent = self.0.send(Event::Open(sender)).ok();
        sent.and_then(|()| opened.recv().ok()).unwrap_or_else(|| {
            Err(Diagnostic::error(
                "Server is ending",
                "The backend cannot be opened any more. Send the request again when the server runs.",
            )
            .into())
        })
    }

    /// Shows a warning. Returns when it is on the screen.
    pub fn warn(&self, warning: Diagnostic) {
        let (sender, shown) = sync_channel(1);
        if self.0.send(Event::Warning(Box::new(warning), sender)).is_ok() {
            // An error means that the command ends: it shows nothing more.
            let _ = shown.recv();
        }
    }
}
