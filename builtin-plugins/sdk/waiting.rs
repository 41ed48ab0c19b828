//! Reports to the host that the plugin is waiting for a server. The report depends on the protocol, so the server of the plugin
//! installs the function that sends it.

use std::sync::OnceLock;

static SEND: OnceLock<fn(&str)> = OnceLock::new();

/// Installs the function that reports to the host which server the plugin is waiting for. Later calls have no effect.
pub fn report_waiting_with(send: fn(&str)) {
    // One process serves one plugin.
    SEND.get_or_init(|| send);
}

/// Tells the user that a server has not answered for a while: "Waiting for HOST to answer...". Terraform and OpenTofu write the
/// message to their log. Without it, a waiting store looks as if it hung.
pub fn report_waiting(host: &str) {
    if let Some(send) = SEND.get() {
        send(host);
    }
}
