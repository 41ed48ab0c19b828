//! The executable for another processor, natively or under qemu. `scripts/check-processors` builds it and runs these tests and those
//! of the quickstart; without it they are skipped.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test fails by panicking"
)]

use std::path::PathBuf;

use support::exchange::{PROVIDER_CONFIGURATION, build_provider, provider_manages_objects, state_goes_there_and_back};
use support::{Ran, Workspace};

/// Returns the executable for another processor, and its platform; reports the test as skipped if there is none.
#[track_caller]
fn other(test: &str) -> Option<(PathBuf, String)> {
    let Some(executable) = support::other_processor() else {
        support::skip(
            test,
            "processor",
            "runs nothing here: MONOFORM_PROCESSOR, which scripts/check-processors sets, is unset",
        );
        return None;
    };
    let version = Workspace::with(&[]).run_program(&executable, &["version"]).ok();
    let platform = version.stdout.lines().find_map(|line| line.strip_prefix("on "));
    Some((executable, platform.expect("a platform").to_owned()))
}

#[test]
fn program_knows_itself_and_its_plugins() {
    let Some((executable, platform)) = other("program_knows_itself_and_its_plugins") else {
        return;
    };
    Workspace::with(&[])
        .run_program(&executable, &["self-check"])
        .ok()
        .shows(&[&format!("for {platform}, linking: static"), "hashicorp/random"]);
}

#[test]
fn state_goes_on_from_this_processor_to_the_other_and_back() {
    let Some((executable, _)) = other("state_goes_on_from_this_processor_to_the_other_and_back") else {
        return;
    };
    let w = Workspace::with(&[]);
    state_goes_there_and_back(&w, &|args| w.run_program(&executable, args));
}

#[test]
fn provider_in_go_is_installed_and_manages_objects() {
    let test = "provider_in_go_is_installed_and_manages_objects";
    let Some((executable, platform)) = other(test) else {
        return;
    };
    if support::needs("go", test).is_none() {
        return;
    }
    let w = Workspace::with(&[("main.tf", PROVIDER_CONFIGURATION), ("books/x", "")]);
    // Built for the oldest processors that the executable for ARM supports.
    build_provider(&w, &platform, &[("GOARM", "7")]);
    w.write(
        "cli.tfrc",
        "provider_installation {\n  filesystem_mirror {\n    path = \"mirror\"\n  }\n}\n",
    );
    let w = w.env("TF_CLI_CONFIG_FILE", "cli.tfrc");
    let run = |args: &[&str]| -> Ran { w.run_program(&executable, args) };
    provider_manages_objects(&w, &run);
}
