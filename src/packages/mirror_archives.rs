//! Archives of packages in mirror directories.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use addrs::Provider;
use addrs::platform::Platform;

use crate::discovery;
use versions::Version;

#[derive(Clone, Debug)]
pub struct Packed {
    pub version: Version,
    pub platform: Platform,
    pub path: PathBuf,
}

/// Returns the archives of a provider in mirror layout: `HOST/NS/TYPE/terraform-provider-TYPE_VERSION_OS_ARCH.zip`.
#[must_use]
pub fn packed(base: &Path, provider: &Provider) -> Vec<Packed> {
    let dir = discovery::provider_dir(base, provider);
    let prefix = format!("terraform-provider-{}_", provider.ty);
    let mut out = Vec::new();
    for name in discovery::entries(&dir) {
        // As in Terraform, these names are not case-sensitive.
        let lower = name.to_lowercase();
        let Some(rest) = lower.strip_prefix(&prefix).and_then(|rest| rest.strip_suffix(".zip")) else {
            continue;
        };
        let parsed = rest
            .split_once('_')
            .and_then(|(version, platform)| Some((Version::parse(version).ok()?, platform.parse::<Platform>().ok()?)));
        match parsed {
            Some((version, platform)) => out.push(Packed {
                version,
                platform,
                path: dir.join(name),
            }),
            None => tracing::warn!(name, "archive ignored: its name says no version and platform"),
        }
    }
    out
}

/// Returns the packages of a provider in mirror layout, unpacked or as archives: the platforms of each version.
pub(crate) fn mirrored(base: &Path, provider: &Provider) -> BTreeMap<Version, BTreeSet<Platform>> {
    let mut all = discovery::platforms_below(base, provider);
    for archive in packed(base, provider) {
        all.entry(archive.version).or_default().insert(archive.platform);
    }
    all
}

pub(crate) fn listed(platforms: &BTreeSet<Platform>) -> String {
    platforms.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
