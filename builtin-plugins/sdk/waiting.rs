//! Reports that a server is waited for. How a host learns of it is a matter of the protocol, so whoever serves the plugin installs
//! the function that sends them.

use std::sync::OnceLock;

static SEND: OnceLock<fn(&str)> = OnceLock::new();

/// Installs the function that reports to the host which server is waited for. The first one stays.
pub fn report_waiting_with(send: fn(&str)) {
    // One process serves one plugin.
    SEND.get_or_init(|| send);
}

/// Tells the user that a server has not answered for a while: "Waiting for HOST to answer...". Other programs than Monoform find it in
/// their log. A store that waits in silence looks like one that hangs.
pub fn report_waiting(host: &str) {
    if let Some(send) = SEND.get() {
        send(host);
    }
}
