//! Workspaces of a store, from the names of its objects.

use std::collections::BTreeSet;

use monoform_sdk::Result;
use monoform_sdk::state_store::DEFAULT;

use crate::about::{About, problem};
use crate::client::Answer;
use crate::xml::Xml;

/// One page of a list.
#[derive(Clone, Debug, Default)]
pub struct Page {
    pub names: Vec<String>,
    /// Marker of the next page; `None` for the last one.
    pub next: Option<String>,
}

impl Page {
    /// Reads a response of S3's ListObjects, version 1. The next page begins after `NextMarker`, or after the last name if there is no
    /// marker.
    ///
    /// # Errors
    /// The response is not a complete XML document.
    pub fn of_bucket(about: About<'_>, answer: &Answer) -> Result<Page> {
        let listed = Xml::from_answer(answer).map_err(|failure| failure.diagnostic(about.summary, about.what))?;
        let names: Vec<String> = listed.texts("Key").map(str::to_owned).collect();
        let marker = listed.text("NextMarker").filter(|next| !next.is_empty());
        // S3 sends NextMarker only for requests with a delimiter.
        let next = marker.map(str::to_owned).or_else(|| names.last().cloned());
        Ok(Page {
            next: next.filter(|_| listed.text("IsTruncated") == Some("true")),
            names,
        })
    }
}

/// Returns the query of S3's ListObjects, version 1, for object names with a prefix. `place` is the marker after which the page begins.
#[must_use]
pub fn bucket_query<'q>(prefix: &'q str, place: Option<&'q str>) -> [(&'static str, &'q str); 3] {
    [
        ("marker", place.unwrap_or_default()),
        ("max-keys", "1000"),
        ("prefix", prefix),
    ]
}

/// Returns the names on all pages of a list. `page` requests the page that begins at a marker; the first page has none.
///
/// # Errors
/// A request failed, or the service returned the same page again.
pub async fn names<F>(about: About<'_>, mut page: impl FnMut(Option<String>) -> F) -> Result<Vec<String>>
where
    F: Future<Output = Result<Page>>,
{
    let mut names = Vec::new();
    let mut place: Option<String> = None;
    loop {
        let Page { names: more, next } = page(place.clone()).await?;
        names.extend(more);
        let next = next.filter(|next| !next.is_empty());
        if next.is_none() {
            return Ok(names);
        }
        // A repeated marker would make the list endless.
        if next == place {
            let detail = format!("{} failed: the service answers with the same page again.", about.what);
            return Err(problem(about.summary, detail));
        }
        place = next;
    }
}

/// Returns the workspaces whose states are objects named `prefix` + workspace + `end`, sorted. The default workspace comes first, even if
/// it has no object.
#[must_use]
pub fn workspaces<'n>(names: impl IntoIterator<Item = &'n str>, prefix: &str, end: &str) -> Vec<String> {
    let workspace = |name: &'n str| name.strip_prefix(prefix)?.strip_suffix(end);
    let found: BTreeSet<&str> = names
        .into_iter()
        .filter_map(workspace)
        // A name with a slash belongs to a directory below the prefix.
        .filter(|name| !name.is_empty() && !name.contains('/') && *name != DEFAULT)
        .collect();
    [DEFAULT].into_iter().chain(found).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    const ABOUT: About<'static> = About {
        summary: "s",
        what: "Listing",
    };

    #[tokio::test]
    async fn all_pages_are_read_and_a_repeated_one_is_an_error() {
        let page = |place: Option<String>| async move {
            let next = place.is_none().then(|| "b".to_owned());
            Ok(Page {
                names: vec![place.unwrap_or_else(|| "a".to_owned())],
                next,
            })
        };
        assert_eq!(names(ABOUT, page).await.unwrap(), ["a", "b"]);
        let endless = |_| async {
            Ok(Page {
                names: Vec::new(),
                next: Some("a".to_owned()),
            })
        };
        let problems = names(ABOUT, endless).await.unwrap_err();
        assert!(problems.0[0].detail.contains("same page"), "{problems:?}");
    }

    #[test]
    fn workspaces_are_what_stands_between_prefix_and_end() {
        let names = [
            "env:/b/k",
            "env:/a/k",
            "env:/a/k",
            "env:/a/other",
            "env:/a/b/k",
            "env://k",
            "k",
            "env:/default/k",
        ];
        assert_eq!(workspaces(names, "env:/", "/k"), ["default", "a", "b"]);
        assert_eq!(workspaces(["k-env:x", "k-env:", "k"], "k-env:", ""), ["default", "x"]);
    }
}
