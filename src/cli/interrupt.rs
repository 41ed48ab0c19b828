//! Interrupts: the first asks for an orderly end, the second ends at once.

use std::sync::Arc;

use engine::stop::Stop;
use tokio::signal::unix::{SignalKind, signal};

use crate::ui::Ui;
use crate::views::stream::Stream;

/// Listens for interrupts as long as the runtime lives.
pub fn listen(ui: Arc<Ui>, stop: Stop) {
    listen_telling(ui, None, stop);
}

/// The same, telling a program.
pub fn listen_telling(ui: Arc<Ui>, stream: Option<Arc<Stream>>, stop: Stop) {
    crate::prompt::listened();
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
            if crate::prompt::is_asking() {
                // The question ends, and with it the command.
                stop.request();
                continue;
            }
            if !first {
                let text = "\nTwo interrupts received. Exiting immediately. Note that data loss may have occurred.\n";
                match &stream {
                    Some(stream) => stream.log(text),
                    None => ui.err(text),
                }
                std::process::exit(1);
            }
            first = false;
            let text = format!(
                "\nInterrupt received.\nPlease wait for {} to exit or data loss may occur.\nGracefully shutting down...\n",
                crate::program::tool()
            );
            match &stream {
                Some(stream) => stream.log(&text),
                None => ui.line(text),
            }
            ui.flush();
            stop.request();
        }
    });
}
