//! `docs -html`: the pages of `help` and `docs` as a static site. It works without a server: pages, style and search are files in
//! one directory, with relative links.

mod html;
mod pages;

use std::path::Path;

use files::{Policy, io_reason, replace};
use serde_json::json;

use crate::outcome::{Failure, Outcome};
use crate::session::Session;

const STYLE: &str = include_str!("style.css");
const SEARCH: &str = include_str!("search.js");

/// A page that is lost in a crash is written again by the same command, so there is no fsync.
const FILE: Policy = Policy {
    durable: false,
    ..Policy::SHARED
};

/// Page of the site.
pub(super) struct Page {
    pub file: String,
    pub title: String,
    /// Section of the navigation that lists the page.
    pub section: &'static str,
    /// One-line description.
    pub about: String,
    /// Content as HTML.
    pub body: String,
    /// Entries of the search index.
    pub entries: Vec<Entry>,
}

/// Entry of the search index: a page or a part of one.
pub(super) struct Entry {
    pub title: String,
    pub kind: &'static str,
    /// File name of the page; for a part of it, followed by `#` and an anchor.
    pub address: String,
    pub about: String,
    /// Further words by which the search finds the entry.
    pub words: String,
}

/// Writes the site into a directory, which is created if necessary. Files of an earlier site are replaced; others stay.
pub(super) fn write(session: &Session, dir: &str) -> Result<Outcome, Failure> {
    let pages = pages::all(session)?;
    let failed = |path: &Path, e: &std::io::Error| {
        Failure::new(
            "Failed to write the documentation",
            format!("{} cannot be written: {}.", path.display(), io_reason(e)),
        )
    };
    let dir = Path::new(dir);
    std::fs::create_dir_all(dir).map_err(|e| failed(dir, &e))?;
    let put = |name: &str, text: &str| {
        let path = dir.join(name);
        replace(&path, text.as_bytes(), FILE).map_err(|e| failed(&path, &e))
    };
    put("style.css", STYLE)?;
    // The index is a script because browsers refuse to fetch data from a page that was opened from a disk.
    put("search.js", &format!("const ENTRIES = {};\n{SEARCH}", index(&pages)))?;
    for page in &pages {
        put(&page.file, &html::page(page, &pages))?;
    }
    Ok(Outcome::line(format!(
        "{} pages were written. Open {} in a browser.",
        pages.len(),
        dir.join("index.html").display()
    )))
}

/// Returns the search index as a script. Browsers load scripts by tags from local files, but refuse requests for local documents.
fn index(pages: &[Page]) -> String {
    let entries = pages.iter().flat_map(|page| &page.entries);
    let entries: Vec<_> = entries
        .map(|entry| {
            json!({
                "t": entry.title,
                "k": entry.kind,
                "u": entry.address,
                "a": entry.about,
                "w": entry.words.to_lowercase(),
            })
        })
        .collect();
    // The end tag of a script must not appear in it.
    json!(entries).to_string().replace("</", "<\\/")
}
