//! Detection of modules whose source has moved to another commit under the same name.

use std::path::Path;

use config::manifest::ManifestEntry;

use crate::fetch::{self, Commit};

/// Returns a warning if a module has the same source and version as before, but another commit: a moved tag, or a version whose
/// address in the registry has changed.
pub(crate) async fn moved(
    before: Option<&ManifestEntry>,
    key: &str,
    [old, new]: [&Path; 2],
    package: &str,
    entry: &ManifestEntry,
) -> Option<String> {
    let before = before?;
    if before.source != entry.source || before.version != entry.version {
        return None;
    }
    let (from, to): (Commit, Commit) = (fetch::commit(old).await?, fetch::commit(new).await?);
    if from == to {
        return None;
    }
    let commits = format!("was at commit {}, and is at {} now", from.short(), to.short());
    let advice = "Look at what has changed before you apply it; \"ref\" can be a commit, which always means the same.";
    if let Some(version) = &entry.version {
        return Some(format!("Version {version} of the module {key} {commits}. {advice}"));
    }
    // Branches are expected to move; only tags promise to stay.
    let url = net::Url::parse(config::source_address::forced(package).1).ok()?;
    let (_, reference) = url.query_pairs().find(|(name, _)| name == "ref")?;
    let tag = fetch::is_tag(new, &reference).await;
    tag.then(|| format!("The tag \"{reference}\" of the module {key} {commits}. {advice}"))
}
