//! Providers that the user started, usually in a debugger, from `TF_REATTACH_PROVIDERS`.

use std::collections::BTreeMap;

use addrs::Provider;
use serde::Deserialize;
use syntax::{Diagnostic, Diagnostics};

use crate::handshake::Address;

/// Address and protocol of a provider that the user started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reattach {
    pub protocol: u32,
    pub address: Address,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Entry {
    #[serde(default)]
    protocol: String,
    #[serde(default)]
    protocol_version: u32,
    addr: Addr,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Addr {
    network: String,
    string: String,
}

/// Parses the value of `TF_REATTACH_PROVIDERS`.
pub fn parse(text: &str) -> Result<BTreeMap<Provider, Reattach>, Diagnostics> {
    let invalid = |why: String| -> Diagnostics {
        Diagnostic::error(
            "Invalid TF_REATTACH_PROVIDERS",
            format!("The value of the environment variable TF_REATTACH_PROVIDERS cannot be used: {why}."),
        )
        .into()
    };
    let entries: BTreeMap<String, Entry> =
        serde_json::from_str(text).map_err(|error| invalid(files::json_reason(error)))?;
    let mut out = BTreeMap::new();
    for (name, entry) in entries {
        let provider = Provider::parse(&name).map_err(|error| invalid(format!("\"{name}\": {}", error.detail)))?;
        let address = match entry.addr.network.as_str() {
            "unix" => Address::Unix(entry.addr.string.into()),
            "tcp" => Address::Tcp(entry.addr.string),
            other => {
                return Err(invalid(format!(
                    "\"{name}\": the network \"{other}\" is neither \"unix\" nor \"tcp\""
                )));
            }
        };
        if entry.protocol != "grpc" && !entry.protocol.is_empty() {
            return Err(invalid(format!(
                "\"{name}\": the protocol \"{}\" is not \"grpc\"",
                entry.protocol
            )));
        }
        let protocol = match entry.protocol_version {
            // SDKs from before protocol 6 do not write the version.
            0 | 5 => 5,
            6 => 6,
            other => {
                return Err(invalid(format!(
                    "\"{name}\": version {other} of the protocol is neither 5 nor 6"
                )));
            }
        };
        out.insert(provider, Reattach { protocol, address });
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_debuggers_print() {
        let text = r#"{"example/demo":{"Protocol":"grpc","ProtocolVersion":6,"Pid":1,"Test":true,
            "Addr":{"Network":"unix","String":"/tmp/plugin1"}},"old":{"Addr":{"Network":"tcp","String":"127.0.0.1:1"}}}"#;
        let all = parse(text).unwrap();
        let demo = &all[&Provider::parse("example/demo").unwrap()];
        assert_eq!(
            *demo,
            Reattach {
                protocol: 6,
                address: Address::Unix("/tmp/plugin1".into())
            }
        );
        assert_eq!(all[&Provider::default_for("old")].protocol, 5);
        for bad in [
            "",
            "{",
            "{\"a\":{}}",
            r#"{"a":{"ProtocolVersion":7,"Addr":{"Network":"tcp","String":"x"}}}"#,
        ] {
            assert!(
                parse(bad).unwrap_err().0[0].detail.contains("TF_REATTACH_PROVIDERS"),
                "{bad}"
            );
        }
    }
}
