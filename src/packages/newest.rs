//! Search for the newest version of a provider at its package sources.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use addrs::Provider;
use net::Client;
use syntax::Diagnostic;

use crate::discovery;
use crate::metadata::{AvailableVersion, SourceError};
use crate::not_available::required_by;
use crate::selection::Origins;
use crate::sources::PackageSource;
use addrs::platform::Platform;
use versions::{Constraints, Version};

/// Limit of the versions or providers that an error names.
const LISTED: usize = 8;

/// Explains that a source has no version of a provider, and names providers that a mirror has instead.
fn without_versions(source: &PackageSource) -> String {
    let PackageSource::Packed(dir) = source else {
        return format!("{source} has none of its versions");
    };
    if !dir.is_dir() {
        return format!("{source} does not exist");
    }
    let others = discovery::providers_below(dir);
    let named: Vec<String> = others.iter().take(LISTED).map(Provider::for_display).collect();
    match (named.is_empty(), others.len() > named.len()) {
        (true, _) => format!("{source} has none of its versions"),
        (false, true) => format!(
            "{source} has none of its versions; it has packages of {} and others",
            named.join(", ")
        ),
        (false, false) => format!(
            "{source} has none of its versions; it has packages of {}",
            named.join(", ")
        ),
    }
}

/// Result of the search for the newest version.
pub(crate) struct Newest {
    /// Newest version that meets the constraints.
    pub version: Version,
    /// Newest version that meets the constraints and is known to have a package for this platform.
    pub for_platform: Option<Version>,
}

/// Reason why no version can be chosen.
pub(crate) struct NoVersion {
    /// Complete sentences, with the requirement origins.
    pub detail: String,
    /// True if a source cannot be reached: perhaps there is no network.
    pub unreachable: bool,
}

impl From<NoVersion> for Diagnostic {
    fn from(why: NoVersion) -> Diagnostic {
        Diagnostic::error("Failed to query available provider packages", why.detail)
    }
}

/// Finds the newest version that meets the constraints, among those of the sources and `here`, the newest on this machine.
pub(crate) async fn newest(
    client: &Client,
    provider: &Provider,
    constraints: &Constraints,
    sources: &[PackageSource],
    here: Option<Version>,
    origins: Option<&Origins>,
) -> Result<Newest, NoVersion> {
    let name = provider.for_display();
    // All sources are queried at the same time, because each may take a while to answer or to fail.
    let lists = sources.iter().map(|source| source.versions(client, provider));
    let mut all: BTreeMap<Version, Option<BTreeSet<String>>> = BTreeMap::new();
    let mut missing = Vec::new();
    for (source, list) in sources.iter().zip(futures::future::join_all(lists).await) {
        match list {
            Ok(list) => {
                if list.is_empty() {
                    missing.push(without_versions(source));
                }
                for AvailableVersion { version, platforms } in list {
                    match (all.entry(version).or_insert_with(|| Some(BTreeSet::new())), platforms) {
                        (Some(known), Some(more)) => known.extend(more),
                        // A source that does not list platforms may have packages for all of them, so the platforms of
                        // the version are unknown.
                        (known, _) => *known = None,
                    }
                }
            }
            Err(SourceError::Missing(why)) => missing.push(why),
            // A source that fails may have had the newest version; ignoring it would choose differently from run to run.
            Err(refusal) => {
                let why = refusal.advised();
                let required = required_by(provider, origins);
                let detail = format!("The versions of the provider {name} cannot be listed: {why}.\n{required}");
                return Err(NoVersion {
                    detail: detail.trim_end().to_owned(),
                    unreachable: matches!(refusal, SourceError::Unreachable(_)),
                });
            }
        }
    }
    let allowed = all.keys().rev().find(|version| constraints.allows(version)).cloned();
    if let Some(version) = allowed.max(here.clone()) {
        let platform = Platform::current().to_string();
        let mut runnable = all.iter().rev().filter(|(version, _)| constraints.allows(version));
        let runnable = runnable.find(|(_, platforms)| platforms.as_ref().is_some_and(|p| p.contains(&platform)));
        return Ok(Newest {
            version,
            for_platform: runnable.map(|(version, _)| version.clone()).max(here),
        });
    }
    let versions: Vec<&Version> = all.keys().rev().collect();
    Err(NoVersion {
        detail: none_meets(provider, constraints, sources, &versions, &missing, origins),
        unreachable: false,
    })
}

/// Returns the error for constraints that no version meets. `versions` are sorted, the newest first.
fn none_meets(
    provider: &Provider,
    constraints: &Constraints,
    sources: &[PackageSource],
    versions: &[&Version],
    missing: &[String],
    origins: Option<&Origins>,
) -> String {
    let mut text = format!("There is no version of the provider {}", provider.for_display());
    if !constraints.is_any() {
        let _ = write!(text, " that meets \"{}\"", constraints);
    }
    text.push('.');
    let required = required_by(provider, origins);
    if !required.is_empty() {
        let _ = write!(text, "\n{required}");
    }
    if sources.is_empty() {
        text.push_str("\n\nThe CLI configuration names no source that it may be installed from.");
    }
    let found: Vec<String> = versions.iter().take(LISTED).map(|v| v.to_string()).collect();
    if !found.is_empty() {
        let sources: Vec<String> = sources.iter().map(PackageSource::to_string).collect();
        let more = if versions.len() > found.len() {
            " and older ones"
        } else {
            ""
        };
        let _ = write!(
            text,
            "\n\nThese versions are offered by {}: {}{more}.",
            sources.join(", "),
            found.join(", ")
        );
        if versions.iter().all(|v| v.is_prerelease()) {
            text.push_str(" A pre-release is chosen only if a constraint names exactly it.");
        }
    }
    for why in missing {
        let _ = write!(text, "\n\nAsked, but of no use: {why}.");
    }
    text
}
