//! Effect of create_before_destroy on dependencies.

use std::collections::{BTreeMap, BTreeSet};

use addrs::ConfigResource;
use config::Config;

/// Returns the resources whose new objects are created before the old ones are destroyed: those with
/// create_before_destroy, and their dependencies, which cannot be destroyed while the old object exists. Only selected
/// resources count.
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
