//! Messages to the user that the plugin is waiting for a server. How a message is sent depends on the protocol, so `monoform-sdk-server`
//! installs a function for it.

use std::sync::OnceLock;

static SEND: OnceLock<fn(&str)> = OnceLock::new();

/// Installs the function that sends the message; its argument is the host name of the server. Later calls have no effect.
pub fn report_waiting_with(send: fn(&str)) {
    // One process serves one plugin, so there is only one function.
    SEND.get_or_init(|| send);
}

/// Tells the user that a server has not answered for a while: "Waiting for HOST to answer...". Terraform and OpenTofu write the message to
/// their log. Without the message, the plugin would seem to hang.
pub fn report_waiting(host: &str) {
    if let Some(send) = SEND.get() {
        send(host);
    }
}
