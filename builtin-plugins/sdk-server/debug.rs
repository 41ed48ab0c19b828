//! Plugins that a person started: how others find them.

use std::path::Path;

use monoform_sdk::Json;

use crate::handshake::Asked;

impl Asked {
    /// Settings of a plugin that was started by hand: the highest version it has, for every client that can reach the socket.
    pub fn without_host(served: &[u32]) -> Asked {
        Asked {
            version: served.iter().max().copied().unwrap_or_default(),
            client_certificate: None,
            socket_dir: None,
            socket_group: None,
        }
    }
}

/// Text for the user: how to set the variable, as a shell takes it.
pub(crate) fn invitation(address: &str, version: u32, socket: &Path) -> String {
    let socket = Json::object([
        ("Network", "unix".to_owned()),
        ("String", socket.to_string_lossy().into_owned()),
    ]);
    let entry = Json::object([
        ("Protocol", "grpc".into()),
        ("ProtocolVersion", u64::from(version).into()),
        ("Pid", u64::from(std::process::id()).into()),
        // go-plugin's test mode: the host leaves the process alive when its command ends.
        ("Test", true.into()),
        ("Addr", socket),
    ]);
    let setting = Json::object([(address, entry)]).to_string().replace('\'', r"'\''");
    format!(
        "This provider is being served until it is interrupted (Ctrl-C). To use it, run the program that needs it with:\n\n\
         TF_REATTACH_PROVIDERS='{setting}'"
    )
}
