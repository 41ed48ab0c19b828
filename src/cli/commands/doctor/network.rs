//! The registries: whether their names are known, and whether they answer.

use std::collections::BTreeSet;

use net::Host;
use packages::cli_config::Source;

use super::Findings;
use crate::session::Session;

/// Asks the hosts of the configuration's providers and of mirrors, and the default registry.
pub(super) fn check(session: &Session, mut hosts: BTreeSet<String>, found: &mut Findings) {
    // The one of what is part of the language is nowhere.
    hosts.remove("terraform.io");
    hosts.insert(addrs::provider::DEFAULT_HOST.to_owned());
    let runtime = match session.runtime() {
        Ok(runtime) => runtime,
        Err(problems) => {
            for problem in &problems {
                found.problem("network", problem.detail.clone(), "");
            }
            return;
        }
    };
    let client = session.net();
    for name in hosts {
        let Some(host) = Host::parse(&name) else { continue };
        resolve(session, &runtime, &name, found);
        match runtime.block_on(client.service(&host, "providers.v1")) {
            Ok(_) => found.ok("registry", format!("{name} answers")),
            Err(error) => found.problem(
                "registry",
                format!("{error}."),
                "Check the network and the proxy, or have providers come from a mirror: provider_installation in the CLI \
                 configuration.",
            ),
        }
    }
    for method in session.cli_config.provider_installation.iter().flatten() {
        match &method.source {
            Source::NetworkMirror(url) => {
                let rest = url.split_once("://").map_or(&**url, |(_, rest)| rest);
                let authority = rest.split('/').next().unwrap_or(rest);
                let host = authority.rsplit('@').next().unwrap_or(authority);
                resolve(session, &runtime, host, found);
            }
            Source::OciMirror(template) => {
                // A host that depends on the provider is not known here.
                let text = template.to_string();
                let host = text.split('/').next().filter(|host| !host.contains('$'));
                if let Some(host) = host {
                    resolve(session, &runtime, host, found);
                }
            }
            Source::FilesystemMirror(_) | Source::Direct => {}
        }
    }
}

/// Asks for the address of a host. Behind a proxy it is the proxy that has to know it.
fn resolve(session: &Session, runtime: &tokio::runtime::Runtime, name: &str, found: &mut Findings) {
    let with_port = if name.contains(':') {
        name.to_owned()
    } else {
        format!("{name}:443")
    };
    let looked_up = runtime
        .block_on(tokio::net::lookup_host(with_port))
        .map(Iterator::count);
    let proxied = ["HTTPS_PROXY", "https_proxy"]
        .iter()
        .any(|name| session.env.get(name).is_some());
    match looked_up {
        Ok(addresses) if addresses > 0 => found.ok("DNS", format!("{name} has an address")),
        _ if proxied => found.note(
            "DNS",
            format!("{name} is not known here; the proxy has to know it."),
            "",
        ),
        _ => found.problem(
            "DNS",
            format!("The name {name} has no address."),
            "Check the name, and the name servers of this machine.",
        ),
    }
}
