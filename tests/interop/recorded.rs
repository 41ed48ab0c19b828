//! Recorded scenarios with the provider `lab`, which has every feature of the protocol.

use libtest_mimic::Trial;

use crate::{build, install_in_mirror};
use support::Workspace;
use support::scenario::{Collection, Playing};

/// Makes one test for each scenario.
pub fn trials() -> Vec<Trial> {
    fn prepared(w: Workspace) -> Workspace {
        install_in_mirror(&w, lab(), "example.com/test/lab");
        w
    }
    let playing = Playing {
        recorded: support::scenario::TERRAFORM,
        ours: prepared,
        theirs: prepared,
        init: true,
        documents: true,
    };
    Collection::new("tests/interop").trials(playing)
}

/// Builds the provider `lab`.
fn lab() -> &'static std::path::Path {
    static BUILT: std::sync::OnceLock<std::path::PathBuf> = std::sync::OnceLock::new();
    BUILT.get_or_init(|| build("lab", "lab"))
}
