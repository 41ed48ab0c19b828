//! Checks of the registries: name resolution and responses.

use std::collections::BTreeSet;

use net::{Host, Way};
use packages::cli_config::Source;

use super::Findings;
use crate::session::Session;

/// Contacts the hosts of the configuration's providers and of mirrors, and the default registry.
pub(super) fn check(session: &Session, mut hosts: BTreeSet<String>, found: &mut Findings) {
    // The host `terraform.io` of the built-in provider offers no services.
    hosts.remove("terraform.io");
    hosts.insert(addrs::provider::default_host().to_owned());
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
        resolve(&client, &runtime, &name, found);
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
                resolve(&client, &runtime, host, found);
            }
            Source::OciMirror(template) => {
                // The host may depend on the provider, and is not known here.
                let text = template.to_string();
                let host = text.split('/').next().filter(|host| !host.contains('$'));
                if let Some(host) = host {
                    resolve(&client, &runtime, host, found);
                }
            }
            Source::FilesystemMirror(_) | Source::Direct => {}
        }
    }
}

/// Reports the route to a host, and resolves its name. Behind a proxy, only the proxy must be able to resolve it.
fn resolve(client: &net::Client, runtime: &tokio::runtime::Runtime, name: &str, found: &mut Findings) {
    let Ok(url) = net::Url::parse(&format!("https://{name}/")) else {
        return;
    };
    let way = client.way(&url);
    way_to(name, &way, found);
    // The lookup needs a port, but does not use it.
    let with_port = if name.contains(':') {
        name.to_owned()
    } else {
        format!("{name}:443")
    };
    let looked_up = runtime
        .block_on(tokio::net::lookup_host(with_port))
        .map(Iterator::count);
    match looked_up {
        Ok(addresses) if addresses > 0 => found.ok("DNS", format!("{name} has an address")),
        _ if way.proxy().is_some() => found.note(
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

/// Reports the proxy for a host, or the reason why it has none.
fn way_to(name: &str, way: &Way<'_>, found: &mut Findings) {
    const SUBJECT: &str = "proxy";
    match way {
        Way::Proxy(url, variable) => {
            let shown = super::machine::hidden(url.as_str());
            let shown = shown.trim_end_matches('/');
            found.ok(SUBJECT, format!("{name} is reached by {shown}, which {variable} names"));
        }
        Way::Excepted(entry) => found.ok(
            SUBJECT,
            format!("{name} is reached directly, because of the entry \"{entry}\" of NO_PROXY"),
        ),
        Way::Unusable(variable) => found.problem(
            SUBJECT,
            format!("{name} is reached directly, because {variable} is not the address of a proxy."),
            format!("Set {variable} to http://HOST:PORT, or unset it."),
        ),
        Way::Local => found.ok(SUBJECT, format!("{name} is this machine, which is reached directly")),
        Way::Direct => found.ok(SUBJECT, format!("{name} is reached directly: HTTPS_PROXY is not set")),
    }
}
