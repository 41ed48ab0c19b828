//! Handshake with a plugin: environment variables at its start, and the one line that it prints to its standard output.

use std::fmt;
use std::path::PathBuf;

use base64::Engine;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// Environment variable by which a plugin recognizes that it was started by a core and not by a person.
pub const COOKIE_NAME: &str = "TF_PLUGIN_MAGIC_COOKIE";
/// Value of [`COOKIE_NAME`], the same for every plugin of Terraform.
pub const COOKIE_VALUE: &str = "d602bf8f470bc67ca7faa0386276bbdd4330efaf76d1a219cb4d6991ca9872b2";
/// Version of the handshake itself.
const CORE_VERSION: u32 = 1;

/// Parsed handshake line of a plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handshake {
    /// Protocol that the plugin chose from those offered.
    pub protocol: u32,
    pub address: Address,
    /// Certificate in DER form; `None` if the plugin does not encrypt.
    pub certificate: Option<Vec<u8>>,
}

/// Address that a plugin listens on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    Unix(PathBuf),
    /// Host and port, such as `127.0.0.1:10000`.
    Tcp(String),
}

/// Error of parsing a handshake line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HandshakeError {
    /// Line that is not a handshake.
    Unrecognized(String),
    /// Unknown version of the handshake itself.
    CoreVersion(u32),
    /// Protocol that was not offered to the plugin.
    Protocol { announced: u32, offered: Vec<u32> },
    /// Network other than a Unix socket and TCP.
    Network(String),
    /// Transport other than gRPC, such as `netrpc`.
    Transport(String),
    /// Certificate that is not base64.
    Certificate,
}

impl Handshake {
    /// Parses a handshake line. Fields after the certificate are ignored.
    pub fn parse(line: &str, offered: &[u32]) -> Result<Handshake, HandshakeError> {
        let line = line.trim();
        let unrecognized = || HandshakeError::Unrecognized(line.to_owned());
        let fields: Vec<&str> = line.split('|').collect();
        let [core, protocol, network, address, ..] = fields.as_slice() else {
            return Err(unrecognized());
        };
        let core: u32 = core.parse().map_err(|_| unrecognized())?;
        let announced: u32 = protocol.parse().map_err(|_| unrecognized())?;
        if core != CORE_VERSION {
            return Err(HandshakeError::CoreVersion(core));
        }
        if !offered.contains(&announced) {
            return Err(HandshakeError::Protocol {
                announced,
                offered: offered.to_vec(),
            });
        }
        let address = match *network {
            "unix" => Address::Unix(address.into()),
            "tcp" => Address::Tcp((*address).to_owned()),
            other => return Err(HandshakeError::Network(other.to_owned())),
        };
        // Plugins without the field speak net/rpc, the transport from before gRPC.
        match fields.get(4).copied().unwrap_or("netrpc") {
            "grpc" => {}
            other => return Err(HandshakeError::Transport(other.to_owned())),
        }
        let certificate = match fields.get(5) {
            None | Some(&"") => None,
            Some(text) => Some(decode_certificate(text).ok_or(HandshakeError::Certificate)?),
        };
        Ok(Handshake {
            protocol: announced,
            address,
            certificate,
        })
    }
}

fn decode_certificate(text: &str) -> Option<Vec<u8>> {
    // go-plugin writes base64 without padding, but a plugin in another language may add it.
    let config = GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
    GeneralPurpose::new(&alphabet::STANDARD, config).decode(text).ok()
}

/// Message for users: what is wrong, what it usually means, and what to do.
impl fmt::Display for HandshakeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HandshakeError::Unrecognized(line) => write!(
                f,
                "Unrecognized remote plugin message: {line}\n\nThe first line a plugin prints must say where it can be \
                 reached; this line does not. Either the file is not a plugin, or it is a plugin from the time before \
                 this protocol. Remove the file if it is a leftover of an old installation; otherwise rebuild the \
                 plugin with a current version of its SDK."
            ),
            HandshakeError::CoreVersion(version) => write!(
                f,
                "The plugin uses version {version} of the plugin handshake, but only version {CORE_VERSION} is \
                 understood. Rebuild the plugin with a current version of its SDK, or install a release of it that is \
                 made for this tool."
            ),
            HandshakeError::Protocol { announced, offered } => {
                let newer = offered.iter().any(|known| known > announced);
                let offered = offered.iter().map(u32::to_string).collect::<Vec<_>>().join(" and ");
                let advice = if newer {
                    "It was built for an older release of the tool: install a newer version of the plugin."
                } else {
                    "It was built for a newer release of the tool: install an older version of the plugin, or a newer \
                     version of this tool."
                };
                write!(
                    f,
                    "The plugin speaks version {announced} of the plugin protocol, but only {offered} can be used \
                     here. {advice}"
                )
            }
            HandshakeError::Network(network) => write!(
                f,
                "The plugin listens on a network of the kind \"{network}\", but only \"unix\" and \"tcp\" can be used."
            ),
            HandshakeError::Transport(transport) => write!(
                f,
                "The plugin wants to be spoken to by \"{transport}\", but plugins are spoken to by \"grpc\" only. \
                 It was built for a release before 0.12: install a newer version of the plugin."
            ),
            HandshakeError::Certificate => f.write_str(
                "The certificate that the plugin announced cannot be read: it must be the base64 form of a DER \
                 certificate. This is a bug in the plugin.",
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_line() {
        let line = "1|6|unix|/tmp/plugin123|grpc|AQID\n";
        let expected = Handshake {
            protocol: 6,
            address: Address::Unix("/tmp/plugin123".into()),
            certificate: Some(vec![1, 2, 3]),
        };
        assert_eq!(Handshake::parse(line, &[5, 6]), Ok(expected.clone()));
        // The seventh field offers that connections share the socket, which was not requested.
        assert_eq!(
            Handshake::parse("1|6|unix|/tmp/plugin123|grpc|AQID|true", &[5, 6]),
            Ok(expected)
        );
    }

    #[test]
    fn a_line_without_certificate_means_no_encryption() {
        for line in [
            "1|5|tcp|127.0.0.1:10000|grpc",
            "1|5|tcp|127.0.0.1:10000|grpc|",
            "1|5|tcp|127.0.0.1:10000|grpc||false",
        ] {
            let handshake = Handshake::parse(line, &[5, 6]).unwrap();
            assert_eq!(handshake.certificate, None, "{line}");
            assert_eq!(handshake.address, Address::Tcp("127.0.0.1:10000".into()));
        }
    }

    #[test]
    fn padding_of_the_certificate_does_not_matter() {
        for text in ["AQIDBA", "AQIDBA=="] {
            let line = format!("1|5|tcp|127.0.0.1:1|grpc|{text}");
            assert_eq!(
                Handshake::parse(&line, &[5]).unwrap().certificate,
                Some(vec![1, 2, 3, 4])
            );
        }
    }

    #[test]
    fn every_bad_line_says_what_is_wrong() {
        let error = |line: &str| Handshake::parse(line, &[5, 6]).unwrap_err().to_string();
        for line in [
            "",
            "hello",
            "2|unix|/var/folders/tf-plugin604337945",
            "x|5|unix|/s|grpc",
            "1|y|unix|/s|grpc",
        ] {
            let text = error(line);
            assert!(
                text.starts_with(&format!("Unrecognized remote plugin message: {line}\n\n")),
                "{text}"
            );
            assert!(text.contains("rebuild"), "{text}");
        }
        assert!(error("2|5|unix|/s|grpc").contains("version 2 of the plugin handshake"));
        assert!(error("1|4|unix|/s|grpc").contains("version 4 of the plugin protocol, but only 5 and 6"));
        assert!(error("1|4|unix|/s|grpc").contains("install a newer version of the plugin"));
        assert!(error("1|7|unix|/s|grpc").contains("install an older version of the plugin"));
        assert!(error("1|5|pipe|/s|grpc").contains("\"pipe\""));
        assert!(error("1|5|unix|/s|netrpc").contains("\"netrpc\""));
        assert!(error("1|5|unix|/s").contains("\"netrpc\""));
        assert!(error("1|5|unix|/s|grpc|*").contains("certificate"));
    }
}
