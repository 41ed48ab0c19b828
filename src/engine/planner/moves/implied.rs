//! Implied moves, for a resource that gets or loses `count`.

use addrs::InstanceKey;
use config::Config;
use state::State;

use super::statement::Statement;

/// Returns moves from the instance without a key to instance 0 for resources with `count`, and the reverse for resources without
/// repetition. A resource in a `moved` block gets no implied move.
pub(super) fn statements(config: &Config, state: &State, explicit: &[Statement]) -> Vec<Statement> {
    let spoken_of: std::collections::HashSet<_> = explicit
        .iter()
        .flat_map(|s| [&s.from, &s.to])
        .filter_map(|side| side.resource.clone().map(|r| (side.module(), r)))
        .collect();
    let mut out = Vec::new();
    for (resource, existing) in &state.resources {
        let Some(block) = config.resource(&resource.config()) else {
            continue;
        };
        // Data sources are read again at their new addresses, so they need no move.
        if resource.resource.mode != addrs::Mode::Managed {
            continue;
        }
        let (from, to, range) = match (&block.count, &block.for_each) {
            (Some(count), _) => (InstanceKey::None, InstanceKey::Int(0), count.range()),
            (None, None) => (InstanceKey::Int(0), InstanceKey::None, &block.range),
            // The object could belong to any key of `for_each`.
            (None, Some(_)) => continue,
        };
        // The set is searched first, because that is fast and most resources are in no statement.
        let mentioned = || {
            spoken_of.contains(&(resource.module.module(), resource.resource.clone()))
                && explicit
                    .iter()
                    .any(|s| s.from.selects_resource(resource) || s.to.selects_resource(resource))
        };
        if existing.instances.contains_key(&from) && !mentioned() {
            out.push(Statement::of_instance(
                config,
                resource.instance(from),
                resource.instance(to),
                range.clone(),
            ));
        }
    }
    out
}
