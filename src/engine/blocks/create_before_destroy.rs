//! Effect of create_before_destroy on dependencies.

use std::collections::{BTreeMap, BTreeSet};

use addrs::ConfigResource;
use config::Config;

/// Returns the resources that are replaced with create_before_destroy: those with the argument, and their dependencies. The old object of
/// a dependency cannot be destroyed first, because the old object of the dependent still uses it. Of the resources with the argument,
/// only those for which `selected` returns true count.
pub(crate) fn resources(
    config: &Config,
    dependencies: &BTreeMap<ConfigResource, BTreeSet<ConfigResource>>,
    selected: impl Fn(&ConfigResource) -> bool,
) -> BTreeSet<ConfigResource> {
    let mut out = BTreeSet::new();
    for node in config.nodes() {
        for resource in node.module.managed_resources() {
            if resource.lifecycle.create_before_destroy == Some(true) {
                let address = resource.address.in_module(&node.path);
                if !selected(&address) {
                    continue;
                }
                out.extend(dependencies.get(&address).into_iter().flatten().cloned());
                out.insert(address);
            }
        }
    }
    out
}
