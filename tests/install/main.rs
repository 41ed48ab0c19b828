//! Installation of providers: registries, network mirrors, archives on this machine, the plugin cache; by the real
//! executable, from servers of the tests.

#![allow(
    clippy::disallowed_methods,
    reason = "tests read their settings from the environment, and need the time"
)]
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test fails by panicking"
)]

mod cache;
mod elsewhere;
mod golden;
mod limits;
mod mirrors;
mod oci;
mod packs;
mod packs_config;
mod packs_keys;
mod packs_modules;
mod refusals;
mod registry;
mod release;
mod schemas;
mod serve;
mod site;
mod versions;

use support::Workspace;
use support::registry::Registry;
use support::server::Server;

/// Returns the path of an installed package below `.terraform/providers` or a cache.
fn package(server: &Server, provider: &str, version: &str) -> String {
    format!(
        "{}/{provider}/{version}/{}",
        server.host(),
        support::registry::platform()
    )
}

/// Starts a server that answers as a registry.
fn serve(registry: Registry) -> Server {
    Server::https(move |request| registry.answer(request))
}

/// Returns a configuration that requires these providers, each with a constraint that may be empty.
fn requiring(server: &Server, providers: &[(&str, &str)]) -> String {
    let line = |(provider, constraint): &(&str, &str)| {
        let name = provider.rsplit('/').next().expect("a name");
        let version = if constraint.is_empty() {
            String::new()
        } else {
            format!("version = \"{constraint}\"")
        };
        format!(
            "    {name} = {{\n      source  = \"{}/{provider}\"\n      {version}\n    }}\n",
            server.host()
        )
    };
    let lines: String = providers.iter().map(line).collect();
    format!("terraform {{\n  required_providers {{\n{lines}  }}\n}}\n")
}

/// Returns a workspace with a configuration and trust in the server's certificate.
fn workspace(server: &Server, configuration: &str) -> Workspace {
    let w = Workspace::with(&[("main.tf", configuration), ("../roots.pem", &server.certificate)]);
    let roots = w.dir().join("../roots.pem");
    w.env("SSL_CERT_FILE", roots.to_string_lossy())
}
