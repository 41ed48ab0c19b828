//! Recorded scenarios of Terraform, played step by step with the real executable.
//!
//! `cases/` has the scenarios, `recorded/` Terraform's results (`scripts/record-scenarios` records them),
//! `expected.txt` the known differences and their reasons. A listed difference that no longer occurs fails the test, so
//! that the list shrinks. `opentofu/` has the same for the language and options that only OpenTofu has.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test fails by panicking"
)]

use std::path::Path;
use std::process::ExitCode;
use std::sync::OnceLock;

use support::Workspace;
use support::scenario::{Collection, OPENTOFU, Playing, TERRAFORM};

fn main() -> ExitCode {
    let playing = Playing {
        recorded: TERRAFORM,
        ours: |w| w,
        theirs: with_mirror,
        init: false,
        documents: true,
    };
    let mut trials = Collection::new("tests/scenarios").trials(playing);
    // OpenTofu's documents lack parts that Monoform adds.
    let playing = Playing {
        recorded: OPENTOFU,
        ours: |w| w.env("MONOFORM_MODE", "opentofu"),
        theirs: |w| w,
        documents: false,
        ..playing
    };
    trials.extend(Collection::new("tests/scenarios/opentofu").trials(playing));
    support::run_trials(trials)
}

/// Returns a workspace in which Terraform finds the built-in plugins.
fn with_mirror(w: Workspace) -> Workspace {
    static CONFIGURATION: OnceLock<String> = OnceLock::new();
    let file = CONFIGURATION.get_or_init(|| {
        let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("scenarios");
        support::our_plugins(&dir).display().to_string()
    });
    w.env("TF_CLI_CONFIG_FILE", file)
}
