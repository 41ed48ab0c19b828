//! Test that the code in `generated` is the generator's output for the protocol files.
//!
//! `MONOFORM_RECORD=1 cargo test -p monoform-proto --test generated` writes it again.

#![allow(
    clippy::disallowed_methods,
    reason = "tests read their settings from the environment"
)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::path::Path;

const FILES: [&str; 5] = [
    "tfplugin5.proto",
    "tfplugin6.proto",
    "go_plugin.proto",
    "health.proto",
    "calls.proto",
];

#[test]
fn code_is_what_the_protocol_files_say() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let committed = root.join("generated");
    let fresh = tempfile::tempdir().unwrap();
    let record = std::env::var_os("MONOFORM_RECORD").is_some();
    let out = if record { committed.as_path() } else { fresh.path() };
    let descriptors = protox::compile(FILES, [root]).unwrap();
    tonic_prost_build::configure()
        .build_transport(false)
        // A nested message shares the memory of the outer one instead of being copied.
        .bytes(".monoform")
        .out_dir(out)
        .compile_fds(descriptors)
        .unwrap();
    let names = |dir: &Path| {
        let entries = std::fs::read_dir(dir).unwrap();
        let mut names: Vec<_> = entries.map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        names
    };
    assert_eq!(names(out), names(&committed));
    for name in names(out) {
        let text = |dir: &Path| std::fs::read_to_string(dir.join(&name)).unwrap();
        assert!(
            text(out) == text(&committed),
            "{} is not what the generator makes of the protocol files; see the head of this test",
            name.display()
        );
    }
}
