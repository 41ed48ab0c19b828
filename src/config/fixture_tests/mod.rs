//! Test support: loads whole configurations from text, and compares their diagnostics.

mod actions;
mod blocks;
mod overrides;
mod providers;
mod tree;
mod values;

use crate::files::MemoryFiles;
use crate::manifest::Manifest;
use crate::{Config, LoadOptions, Loaded, Module, load};

/// Loads files from pairs of path and text.
fn loaded(files: &[(&str, &str)]) -> Loaded {
    loaded_with(files, &Manifest::default())
}

fn loaded_with(files: &[(&str, &str)], manifest: &Manifest) -> Loaded {
    let files: MemoryFiles = files.iter().copied().collect();
    load(&files, ".", &LoadOptions::new("1.11.4", manifest))
}

/// Loads files and asserts that there are no diagnostics.
fn config(files: &[(&str, &str)]) -> Config {
    let loaded = loaded(files);
    assert_eq!(report(&loaded), "");
    loaded.config
}

/// Loads one file and asserts that there are no diagnostics.
fn module(text: &str) -> Module {
    (*config(&[("main.tf", text)]).root.module).clone()
}

/// Formats every problem as a line `error main.tf:1,2-3 Summary`, sorted by position.
fn report(loaded: &Loaded) -> String {
    let mut lines: Vec<_> = loaded
        .diagnostics
        .iter()
        .map(|d| {
            let word = if d.is_error() { "error" } else { "warning" };
            let place = d.subject.as_ref().map_or("-".to_owned(), ToString::to_string);
            (d.subject.clone(), format!("{word} {place} {}", d.summary))
        })
        .collect();
    lines.sort();
    lines.into_iter().map(|(_, line)| line).collect::<Vec<_>>().join("\n")
}

/// Checks the diagnostics of one file.
fn check(text: &str, expected: &str) {
    check_files(&[("main.tf", text)], expected);
}

/// Checks the diagnostics of several files.
fn check_files(files: &[(&str, &str)], expected: &str) {
    let expected: Vec<&str> = expected.lines().map(str::trim).filter(|l| !l.is_empty()).collect();
    assert_eq!(report(&loaded(files)), expected.join("\n"), "{files:?}");
}
