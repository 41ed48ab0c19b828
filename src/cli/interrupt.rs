//! Interrupts: the first asks for an orderly end, the second ends at once.

use std::sync::Arc;

use engine::stop::Stop;
use tokio::signal::unix::{SignalKind, signal};

use crate::ui::Ui;

/// Listens for interrupts as long as the runtime lives.
pub fn listen(ui: Arc<Ui>, stop: Stop) {
    tokio::spawn(async move {
        let (Ok(mut interrupt), Ok(mut terminate)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
        else {
            tracing::warn!("signals cannot be listened for");
            return;
        };
        let mut first = true;
        loop {
            let received = tokio::select! {
                received = interrupt.recv() => received,
                received = terminate.recv() => received,
            };
            if received.is_none() {
                return;
            }
            if !first {
                ui.err("\nTwo interrupts received. Exiting immediately. Note that data loss may have occurred.\n");
                std::process::exit(1);
            }
            first = false;
            ui.out(
                "\nInterrupt received.\nPlease wait for Monoform to exit or data loss may occur.\nGracefully shutting \
                 down...\n\n",
            );
            ui.flush();
            stop.request();
        }
    });
}
