//! Handshake between a plugin and the program that started it: environment variables, and the line in response.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use system::SocketRequest;
use system::listening::Socket;

/// Variable that only programs with support for this kind of plugin set. Its value is public.
const COOKIE_NAME: &str = "TF_PLUGIN_MAGIC_COOKIE";
const COOKIE_VALUE: &str = "d602bf8f470bc67ca7faa0386276bbdd4330efaf76d1a219cb4d6991ca9872b2";

/// Version of the handshake, independent of the plugin protocol.
const CORE_VERSION: u32 = 1;

/// The text for a user who starts a plugin by hand.
pub(crate) const NOTICE: &str = "\
This program is a plugin: it does its work for another program and has nothing to show by itself.
Run the program that uses it (for example `terraform apply` or `monoform apply`), which starts it as needed.
";

/// The settings in the environment, by which the host requests a protocol version, TLS and a socket.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Asked {
    /// The protocol version to serve.
    pub version: u32,
    /// Certificate of the only client that may connect; without it, the connection is not encrypted.
    pub client_certificate: Option<String>,
    /// The directory for the socket.
    pub socket_dir: Option<String>,
    /// The group that may use the socket.
    pub socket_group: Option<String>,
    /// First and last port to listen on, for systems where plugins do not use Unix sockets.
    pub ports: (u16, u16),
}

impl Asked {
    /// Reads the environment. Returns `None` if the plugin was not started by a program that supports plugins. `served` returns the
    /// protocol versions of the plugin; `highest` is the highest of them.
    pub fn read<'v>(
        environment: impl Fn(&str) -> Option<String>,
        highest: u32,
        served: impl FnOnce() -> &'v [u32],
    ) -> Option<Asked> {
        if environment(COOKIE_NAME).as_deref() != Some(COOKIE_VALUE) {
            return None;
        }
        let set = |name: &str| environment(name).filter(|value| !value.is_empty());
        Some(Asked {
            version: choose(set("PLUGIN_PROTOCOL_VERSIONS").as_deref(), highest, served),
            client_certificate: set("PLUGIN_CLIENT_CERT"),
            socket_dir: set("PLUGIN_UNIX_SOCKET_DIR"),
            socket_group: set("PLUGIN_UNIX_SOCKET_GROUP"),
            // Port 0 if there is no limit: the system then chooses a port.
            ports: (port(set("PLUGIN_MIN_PORT")), port(set("PLUGIN_MAX_PORT"))),
        })
    }

    /// Returns the host's requirements for the socket.
    pub fn socket(&self) -> SocketRequest {
        SocketRequest {
            dir: self.socket_dir.as_ref().map(Into::into),
            group: self.socket_group.clone(),
            ports: self.ports.0..=self.ports.1,
            secured: self.client_certificate.is_some(),
        }
    }
}

fn port(text: Option<String>) -> u16 {
    text.and_then(|text| text.trim().parse().ok()).unwrap_or_default()
}

/// Chooses the highest version that both sides support. If there is none, chooses the lowest version of this plugin; the client then
/// reports the mismatch. A client that requests no version supports only versions older than all of these.
fn choose<'v>(wanted: Option<&str>, highest: u32, served: impl FnOnce() -> &'v [u32]) -> u32 {
    let wanted: Vec<u32> = wanted
        .unwrap_or_default()
        .split(',')
        .filter_map(|v| v.trim().parse().ok())
        .collect();
    // `served` has to compile all schemas. Nearly all hosts support the highest version, for which no schema is needed.
    if wanted.contains(&highest) {
        return highest;
    }
    let served = served();
    let common = served.iter().filter(|v| wanted.contains(v)).max();
    common.or(served.iter().min()).copied().unwrap_or_default()
}

/// Builds the line that answers the host, with the socket address and the certificate of this plugin.
pub(crate) fn line(version: u32, socket: &Socket, certificate: Option<&[u8]>) -> String {
    // Without padding, since go-plugin refuses padding in this field.
    let certificate = certificate.map(|der| STANDARD_NO_PAD.encode(der)).unwrap_or_default();
    let (network, address) = (socket.network, &*socket.address);
    text(version, network, address, &certificate)
}

fn text(version: u32, network: &str, address: &str, certificate: &str) -> String {
    format!("{CORE_VERSION}|{version}|{network}|{address}|grpc|{certificate}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_handshake_without_the_cookie() {
        assert_eq!(Asked::read(|_| None, 6, || &[5, 6]), None);
        assert_eq!(
            Asked::read(|name| (name == COOKIE_NAME).then(|| "other".into()), 6, || &[5, 6]),
            None
        );
    }

    #[test]
    fn the_highest_common_version_is_served() {
        for (wanted, served, version) in [
            (Some("5,6"), &[5, 6][..], 6),
            (Some("6,5"), &[5, 6], 6),
            (Some("5"), &[5, 6], 5),
            (Some(" 5 , x"), &[5, 6], 5),
            (Some("5,6"), &[5], 5),
            (Some("7"), &[5, 6], 5),
            (None, &[5, 6], 5),
        ] {
            let asked = Asked::read(
                |name| match name {
                    COOKIE_NAME => Some(COOKIE_VALUE.into()),
                    "PLUGIN_PROTOCOL_VERSIONS" => wanted.map(Into::into),
                    _ => None,
                },
                served.iter().max().copied().unwrap(),
                || served,
            );
            assert_eq!(asked.map(|a| a.version), Some(version), "{wanted:?} of {served:?}");
        }
    }

    #[test]
    fn the_line_has_six_fields() {
        assert_eq!(text(5, "unix", "/tmp/x/s", ""), "1|5|unix|/tmp/x/s|grpc|");
        assert_eq!(
            text(6, "tcp", "127.0.0.1:10000", "AQIDBA"),
            "1|6|tcp|127.0.0.1:10000|grpc|AQIDBA"
        );
    }
}
