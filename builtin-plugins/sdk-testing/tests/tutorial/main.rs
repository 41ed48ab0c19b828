//! The provider of the guide `tutorial`, whose chapters show these files word for word. Each has the tests of its chapter.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod animal;
mod delivery;
mod keeper;
mod lookup;
mod pen;
mod provider;
mod service;
mod visit;

/// Files in the order of the chapters.
const FILES: [(&str, &str); 8] = [
    ("service.rs", include_str!("service.rs")),
    ("provider.rs", include_str!("provider.rs")),
    ("pen.rs", include_str!("pen.rs")),
    ("animal.rs", include_str!("animal.rs")),
    ("visit.rs", include_str!("visit.rs")),
    ("delivery.rs", include_str!("delivery.rs")),
    ("keeper.rs", include_str!("keeper.rs")),
    ("lookup.rs", include_str!("lookup.rs")),
];

#[test]
fn guide_shows_these_files_word_for_word() {
    let guide = include_str!("../../../../src/cli/guide/tutorial.md");
    let mut blocks = guide.split("```rust\n").skip(1);
    for (name, source) in FILES {
        let mut shown = String::new();
        // A chapter may show a file in parts.
        while shown != source {
            let block = blocks.next().and_then(|rest| rest.split("```").next());
            let Some(block) = block else {
                panic!("the guide shows less than the file {name}")
            };
            if !shown.is_empty() {
                shown.push('\n');
            }
            shown.push_str(block);
            assert!(
                source.starts_with(&shown),
                "the guide shows another {name} than {shown}"
            );
        }
    }
    assert_eq!(blocks.next(), None, "the guide shows code of no file");
}
