//! Plugins started by hand, and the setting by which hosts find them.

use monoform_sdk::Json;
use system::listening::Socket;

use crate::handshake::Asked;

impl Asked {
    /// Returns the settings of a plugin that was started by hand, for every client that can reach the socket.
    pub fn without_host(version: u32) -> Asked {
        Asked {
            version,
            client_certificate: None,
            socket_dir: None,
            socket_group: None,
            ports: (0, 0),
        }
    }
}

/// Returns the text for the user: an assignment of `TF_REATTACH_PROVIDERS` in shell syntax.
pub(crate) fn invitation(address: &str, version: u32, socket: &Socket) -> String {
    let socket = Json::object([
        ("Network", socket.network.to_owned()),
        ("String", socket.address.clone()),
    ]);
    let entry = Json::object([
        ("Protocol", "grpc".into()),
        ("ProtocolVersion", u64::from(version).into()),
        ("Pid", u64::from(std::process::id()).into()),
        // go-plugin's test mode: the host does not end the plugin when its command ends.
        ("Test", true.into()),
        ("Addr", socket),
    ]);
    let setting = Json::object([(address, entry)]).to_string().replace('\'', r"'\''");
    format!(
        "This provider is being served until it is interrupted (Ctrl-C). To use it, run the program that needs it with:\n\n\
         TF_REATTACH_PROVIDERS='{setting}'"
    )
}
