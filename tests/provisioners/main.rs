//! The provisioners `file` and `remote-exec` on the real executable, against OpenSSH servers on this machine.
//!
//! - [`login`]: every way to authenticate, and verification of hosts.
//! - [`ways`]: bastions, proxies, and servers that start late or disappear.
//! - [`copies`]: files and trees, with and without SFTP.
//! - [`life`]: provisioners in the engine; interruption.
//! - [`beside`]: comparison with Terraform.
//! - [`others`]: third-party provisioners in place of the built-in ones.
//! - [`alone`]: the static executable in an empty directory.
//! - [`sshd`]: the servers.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a test fails by panicking"
)]

mod alone;
mod beside;
mod copies;
mod life;
mod login;
mod others;
mod sshd;
mod ways;

use std::process::ExitCode;

use libtest_mimic::Trial;
use support::{Ran, Workspace, needing};

const SSHD: &[&str] = &["sshd", "ssh-keygen"];

/// Runs the tests. `ROOT` marks tests whose server needs its own password file, which takes a mount namespace and so the rights of root.
fn main() -> ExitCode {
    const ROOT: bool = true;
    const ANYBODY: bool = false;
    /// Name, needed programs, true if root's rights are needed, and function.
    type Test = (&'static str, &'static [&'static str], bool, fn());
    let tests: &[Test] = &[
        ("login::passwords", SSHD, ROOT, login::passwords),
        (
            "login::wrong_password_is_reported",
            SSHD,
            ROOT,
            login::wrong_password_is_reported,
        ),
        ("login::keys_of_every_form", SSHD, ANYBODY, login::keys_of_every_form),
        (
            "login::a_locked_key_is_refused",
            SSHD,
            ANYBODY,
            login::a_locked_key_is_refused,
        ),
        ("login::certificates", SSHD, ANYBODY, login::certificates),
        (
            "login::agents",
            &["sshd", "ssh-keygen", "ssh-agent", "ssh-add"],
            ANYBODY,
            login::agents,
        ),
        ("login::host_keys", SSHD, ANYBODY, login::host_keys),
        ("login::host_certificates", SSHD, ANYBODY, login::host_certificates),
        (
            "ways::a_server_that_comes_late",
            SSHD,
            ANYBODY,
            ways::a_server_that_comes_late,
        ),
        ("ways::paths_of_scripts", SSHD, ANYBODY, ways::paths_of_scripts),
        ("ways::bastions", SSHD, ANYBODY, ways::bastions),
        ("ways::proxies", SSHD, ANYBODY, ways::proxies),
        ("ways::a_proxy_within_tls", SSHD, ANYBODY, ways::a_proxy_within_tls),
        (
            "ways::a_connection_that_is_cut",
            SSHD,
            ANYBODY,
            ways::a_connection_that_is_cut,
        ),
        (
            "ways::version_six_addresses",
            SSHD,
            ANYBODY,
            ways::version_six_addresses,
        ),
        (
            "copies::trees_over_sftp_and_scp",
            SSHD,
            ANYBODY,
            copies::trees_over_sftp_and_scp,
        ),
        ("copies::two_thousand_files", SSHD, ANYBODY, copies::two_thousand_files),
        (
            "copies::a_large_file_in_little_memory",
            SSHD,
            ANYBODY,
            copies::a_large_file_in_little_memory,
        ),
        (
            "copies::problems_are_reported",
            SSHD,
            ANYBODY,
            copies::problems_are_reported,
        ),
        ("life::scripts", SSHD, ANYBODY, life::scripts),
        (
            "life::order_failures_and_destruction",
            SSHD,
            ANYBODY,
            life::order_failures_and_destruction,
        ),
        (
            "life::secrets_are_not_shown",
            SSHD,
            ANYBODY,
            life::secrets_are_not_shown,
        ),
        (
            "life::interruption_ends_the_command",
            SSHD,
            ANYBODY,
            life::interruption_ends_the_command,
        ),
        (
            "life::a_local_command_writes_a_lot_and_anything",
            &["head"],
            ANYBODY,
            life::a_local_command_writes_a_lot_and_anything,
        ),
        (
            "beside::terraform",
            &["sshd", "ssh-keygen", "terraform"],
            ANYBODY,
            beside::terraform,
        ),
        (
            "others::a_provisioner_in_rust",
            SSHD,
            ANYBODY,
            others::a_provisioner_in_rust,
        ),
        (
            "others::a_provisioner_in_go",
            &["go"],
            ANYBODY,
            others::a_provisioner_in_go,
        ),
    ];
    let large: &[(&str, fn())] = &[
        ("alone::in_an_empty_directory", alone::in_an_empty_directory),
        ("copies::a_gigabyte", copies::a_gigabyte),
        ("beside::timed", beside::timed),
    ];
    let is_root = sshd::may_give_passwords();
    let trial = |name: &str, test: fn()| {
        Trial::test(name, move || {
            test();
            Ok(())
        })
    };
    let mut trials: Vec<Trial> = tests
        .iter()
        .map(|(name, programs, root, test)| {
            let trial = trial(name, *test);
            if *root && !is_root {
                trial
                    .with_kind("needs root and mount namespaces")
                    .with_ignored_flag(true)
            } else {
                needing(trial, programs)
            }
        })
        .collect();
    // Run it by hand: cargo test --test provisioners -- --ignored gigabyte
    let by_hand = |(name, test): &(&str, fn())| trial(name, *test).with_kind("large").with_ignored_flag(true);
    trials.extend(large.iter().map(by_hand));
    support::run_trials(trials)
}

fn apply(w: &Workspace) -> Ran {
    w.run(&["apply", "-no-color", "-auto-approve"])
}

/// Returns a configuration of one object with this body.
fn object(body: &str) -> String {
    format!("resource \"terraform_data\" \"a\" {{\n{body}\n}}\n")
}
