//! Addresses of providers in states that Terraform has written, read in the mode of OpenTofu.

use addrs::Provider;
use addrs::program::Mode;
use addrs::provider::{OPENTOFU_HOST, TERRAFORM_HOST};
use config::Config;
use state::State;

use crate::session::Session;

/// Variable that turns the translation off, if it is `0`.
const VARIABLE: &str = "OPENTOFU_STATEFILE_PROVIDER_ADDRESS_TRANSLATION";

/// In OpenTofu mode, replaces the host of Terraform's registry by that of OpenTofu's in the provider addresses of a state. An address stays
/// if the configuration requires it with Terraform's host.
pub fn translate(session: &Session, config: &Config, state: &mut State) {
    if !Mode::current().is_opentofu() || session.env.get(VARIABLE).is_some_and(|value| value == "0") {
        return;
    }
    let stored = state.resources.values().map(|r| &r.provider.provider);
    let of_terraform = stored.filter(|provider| &*provider.host == TERRAFORM_HOST);
    let mut old: Vec<Provider> = of_terraform.cloned().collect();
    if old.is_empty() {
        return;
    }
    old.sort();
    old.dedup();
    let required = config.provider_requirements();
    for provider in old.iter().filter(|provider| !required.contains_key(provider)) {
        let new = Provider {
            host: OPENTOFU_HOST.into(),
            ..provider.clone()
        };
        state.replace_provider(provider, &new);
    }
}
