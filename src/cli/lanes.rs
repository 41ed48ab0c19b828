//! Limits of single providers in `-parallelism`, by the local names of the configuration.

use std::collections::BTreeMap;
use std::sync::Arc;

use addrs::Provider;
use config::Config;
use engine::lanes::Lanes;
use engine::requirements::providers_needed;
use state::State;
use syntax::Diagnostic;

use crate::args::groups::Parallelism;

/// Returns the limits; `None` if one limit applies to all providers.
///
/// # Errors
/// A name belongs to no provider that the configuration or the state needs.
pub fn for_operation(
    parallelism: &Parallelism,
    config: &Config,
    state: &State,
) -> Result<Option<Arc<Lanes>>, Diagnostic> {
    if parallelism.is_plain() {
        return Ok(None);
    }
    let needed = providers_needed(config, state);
    let module = &config.root.module;
    let mut listed = BTreeMap::new();
    for (name, limit) in &parallelism.listed {
        let provider = match name.contains('/') {
            true => Provider::parse(name).ok(),
            false => Some(module.provider_for_local_name(name)),
        };
        let Some(provider) = provider.filter(|provider| needed.contains(provider)) else {
            let known: Vec<String> = needed
                .iter()
                .map(|provider| format!("{} ({})", module.local_name_for(provider), provider.for_display()))
                .collect();
            let known = match known.is_empty() {
                true => "They need none.".to_owned(),
                false => format!("They need: {}.", known.join(", ")),
            };
            return Err(Diagnostic::error(
                "Unknown provider in -parallelism",
                format!(
                    "The option -parallelism has a limit for \"{name}\", and neither the configuration nor the state needs such a \
                     provider. {known}"
                ),
            ));
        };
        listed.insert(provider, *limit);
    }
    Ok(Some(Arc::new(Lanes::new(parallelism.others, listed))))
}
