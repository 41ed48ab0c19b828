//! Fuzz target: any bytes as a configuration file, an expression and a template. No crash, no hang, and every range
//! inside the text.

#![no_main]

use libfuzzer_sys::fuzz_target;
use syntax::{Diagnostics, Pos};

fuzz_target!(|bytes: &[u8]| {
    let (_, diagnostics) = syntax::parse_file("main.tf", bytes);
    within(&diagnostics, bytes.len());
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let (_, diagnostics) = syntax::parse_expression("main.tf", text, Pos::default());
    within(&diagnostics, bytes.len());
    let (_, diagnostics) = syntax::parse_template("main.tf", text, Pos::default());
    within(&diagnostics, bytes.len());
    drop(syntax::parse_traversal("main.tf", text, Pos::default()));
});

/// Checks that each range is in the text and not reversed, as a view needs it to show the line of a problem.
fn within(diagnostics: &Diagnostics, length: usize) {
    for diagnostic in diagnostics.iter() {
        if let Some(range) = &diagnostic.subject {
            assert!(range.start.byte <= range.end.byte, "{diagnostic:?}");
            assert!(range.end.byte as usize <= length, "{diagnostic:?} ends after {length}");
        }
    }
}
