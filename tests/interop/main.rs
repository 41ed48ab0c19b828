//! Monoform together with other programs: providers written in Go on the official SDKs, Terraform itself, and the built-in plugins used by
//! Terraform.
//!
//! - [`actions`]: actions of a Go provider, compared with Terraform 1.16.
//! - [`stores`]: state stores of third parties.
//! - [`authors`]: a third-party provider that uses the SDK.
//! - [`bare`]: a pack alone in a read-only directory.
//! - [`catalog`]: identities, queries and generated configuration, compared with Terraform 1.16.
//! - [`certificates`]: checks of keys and certificates by OpenSSL and OpenSSH.
//! - [`drivers`]: a program that runs Terraform by HashiCorp's Go module.
//! - [`framework`], [`sdkv2`]: the whole life of objects of a Go provider, over protocol 6 and protocol 5.
//! - [`kinds`]: one provider in every variant, every request to it, from every place.
//! - [`side_by_side`]: the same configurations and providers under Terraform, with the same results.
//! - [`terraform`]: each program continues with the other's state.
//! - [`modules`]: modules installed by both.
//! - [`served`]: a provider from `providers serve`.
//! - [`named`]: records in zones of BIND.
//! - [`our_plugins`]: the built-in plugins, called by Terraform and by hand.
//! - [`secrets`]: a provider that returns values for write-only attributes.
//! - [`racks`]: features of version 2 of the plugin SDK beyond a plain resource.
//! - [`recorded`]: recorded scenarios of Terraform with a provider that has every feature.
//! - [`running`]: start and end of providers.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test fails by panicking"
)]

mod actions;
mod authors;
mod bare;
mod catalog;
mod certificates;
mod drivers;
mod framework;
mod kinds;
mod machines;
mod modules;
mod named;
mod our_plugins;
mod racks;
mod recorded;
mod running;
mod sdkv2;
mod secrets;
mod served;
mod side_by_side;
mod store_programs;
mod stores;
mod terraform;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::OnceLock;

use libtest_mimic::Trial;
use serde_json::{Value, json};
use support::registry::platform;
use support::{Ran, Workspace, needing};

/// Runs the tests. A test whose programs are not installed is reported as ignored, by name, and never counted as passed; programs named in
/// `MONOFORM_REQUIRE` must be installed.
fn main() -> ExitCode {
    let tests: &[support::Test] = &[
        (
            "secrets::values_of_write_only_attributes_are_refused",
            &["go"],
            secrets::values_of_write_only_attributes_are_refused,
        ),
        (
            "actions::our_command_under_both",
            &["terraform-1.16"],
            actions::our_command_under_both,
        ),
        (
            "actions::every_event_of_a_resource",
            &["go", "terraform-1.16"],
            actions::every_event_of_a_resource,
        ),
        (
            "actions::create_before_destroy_and_orphans",
            &["go", "terraform-1.16"],
            actions::create_before_destroy_and_orphans,
        ),
        ("actions::conditions", &["go", "terraform-1.16"], actions::conditions),
        ("actions::failures", &["go", "terraform-1.16"], actions::failures),
        (
            "actions::invoked_by_the_user",
            &["go", "terraform-1.16"],
            actions::invoked_by_the_user,
        ),
        (
            "actions::written_in_json_and_overridden",
            &["go", "terraform-1.16"],
            actions::written_in_json_and_overridden,
        ),
        ("authors::the_life_of_a_note", &[], authors::the_life_of_a_note),
        (
            "authors::what_is_write_only_is_written_nowhere",
            &[],
            authors::what_is_write_only_is_written_nowhere,
        ),
        (
            "authors::its_action_copies_notes",
            &[],
            authors::its_action_copies_notes,
        ),
        (
            "authors::terraform_invokes_its_action",
            &["terraform-1.16"],
            authors::terraform_invokes_its_action,
        ),
        ("authors::terraform_uses_it", &["terraform"], authors::terraform_uses_it),
        (
            "authors::the_same_as_under_terraform",
            &["terraform"],
            authors::the_same_as_under_terraform,
        ),
        (
            "authors::computed_blocks_as_under_terraform",
            &["terraform-1.16"],
            authors::computed_blocks_as_under_terraform,
        ),
        (
            "authors::it_waits_to_be_debugged",
            &["kill"],
            authors::it_waits_to_be_debugged,
        ),
        (
            "authors::it_waits_for_terraform",
            &["kill", "terraform"],
            authors::it_waits_for_terraform,
        ),
        (
            "catalog::identities_as_in_terraform_1_16",
            &["go", "terraform-1.16"],
            catalog::identities_as_in_terraform_1_16,
        ),
        (
            "catalog::identities_over_protocol_5",
            &["go", "terraform-1.16"],
            catalog::identities_over_protocol_5,
        ),
        (
            "catalog::queries_as_in_terraform_1_16",
            &["go", "terraform-1.16"],
            catalog::queries_as_in_terraform_1_16,
        ),
        (
            "catalog::notes_as_in_terraform_1_16",
            &["terraform-1.16"],
            catalog::notes_as_in_terraform_1_16,
        ),
        (
            "certificates::openssl_reads_every_form_of_a_key",
            &["openssl"],
            certificates::openssl_reads_every_form_of_a_key,
        ),
        (
            "certificates::ssh_keygen_reads_every_key_it_knows",
            &["ssh-keygen"],
            certificates::ssh_keygen_reads_every_key_it_knows,
        ),
        (
            "certificates::openssl_verifies_requests_and_chains",
            &["openssl"],
            certificates::openssl_verifies_requests_and_chains,
        ),
        (
            "certificates::keys_of_others_are_used",
            &["openssl", "ssh-keygen"],
            certificates::keys_of_others_are_used,
        ),
        (
            "certificates::a_server_shows_its_chain",
            &["openssl"],
            certificates::a_server_shows_its_chain,
        ),
        (
            "certificates::a_web_server_that_redirects",
            &[],
            certificates::a_web_server_that_redirects,
        ),
        (
            "racks::as_in_terraform_1_16",
            &["go", "terraform-1.16"],
            racks::as_in_terraform_1_16,
        ),
        (
            "racks::as_in_terraform_1_11",
            &["go", "terraform"],
            racks::as_in_terraform_1_11,
        ),
        (
            "racks::imported_by_identity",
            &["go", "terraform-1.16"],
            racks::imported_by_identity,
        ),
        ("framework::the_life_of_a_book", &["go"], framework::the_life_of_a_book),
        ("framework::an_import_by_apply", &["go"], framework::an_import_by_apply),
        (
            "drivers::terraform_exec_gets_the_same_from_both",
            &["go", "terraform"],
            drivers::terraform_exec_gets_the_same_from_both,
        ),
        (
            "framework::an_error_at_an_attribute",
            &["go"],
            framework::an_error_at_an_attribute,
        ),
        (
            "framework::a_package_that_was_changed_after_init",
            &["go"],
            framework::a_package_that_was_changed_after_init,
        ),
        ("running::by_another_program", &["go"], running::by_another_program),
        (
            "running::its_output_and_its_end",
            &["go"],
            running::its_output_and_its_end,
        ),
        ("running::a_crash", &["go"], running::a_crash),
        ("running::put_off", &["go"], running::put_off),
        ("running::however_we_end", &["go"], running::however_we_end),
        ("running::lock_files", &["terraform"], running::lock_files),
        (
            "running::a_bar_on_a_terminal",
            &["script"],
            running::a_bar_on_a_terminal,
        ),
        (
            "modules::the_same_lines_and_the_same_manifest",
            &["git", "terraform"],
            modules::the_same_lines_and_the_same_manifest,
        ),
        (
            "modules::we_use_what_terraform_installed",
            &["git", "terraform"],
            modules::we_use_what_terraform_installed,
        ),
        (
            "named::records_of_every_type_are_made_changed_and_deleted",
            &["named", "dig"],
            named::records_of_every_type_are_made_changed_and_deleted,
        ),
        (
            "named::every_algorithm_signs",
            &["named", "dig"],
            named::every_algorithm_signs,
        ),
        (
            "named::an_answer_too_large_for_a_datagram",
            &["named", "dig"],
            named::an_answer_too_large_for_a_datagram,
        ),
        (
            "named::what_the_server_refuses",
            &["named", "dig"],
            named::what_the_server_refuses,
        ),
        (
            "our_plugins::terraform_uses_them_and_we_go_on",
            &["terraform"],
            our_plugins::terraform_uses_them_and_we_go_on,
        ),
        (
            "our_plugins::we_begin_and_terraform_goes_on_with_them",
            &["terraform"],
            our_plugins::we_begin_and_terraform_goes_on_with_them,
        ),
        (
            "our_plugins::by_the_name_of_a_link",
            &["terraform"],
            our_plugins::by_the_name_of_a_link,
        ),
        (
            "our_plugins::the_table_and_the_links",
            &[],
            our_plugins::the_table_and_the_links,
        ),
        ("our_plugins::called_by_people", &[], our_plugins::called_by_people),
        (
            "sdkv2::the_life_of_a_tool_by_a_file_name",
            &["go"],
            sdkv2::the_life_of_a_tool_by_a_file_name,
        ),
        (
            "sdkv2::the_life_of_a_tool_under_development",
            &["go"],
            sdkv2::the_life_of_a_tool_under_development,
        ),
        ("sdkv2::mistakes_in_blocks", &["go"], sdkv2::mistakes_in_blocks),
        ("side_by_side::books", &["go", "terraform"], side_by_side::books),
        ("side_by_side::refactoring", &["terraform"], side_by_side::refactoring),
        ("side_by_side::tools", &["go", "terraform"], side_by_side::tools),
        ("machines::lives", &["go", "terraform"], machines::lives),
        (
            "machines::states_of_an_earlier_version",
            &["go", "terraform"],
            machines::states_of_an_earlier_version,
        ),
        ("machines::imports", &["go", "terraform"], machines::imports),
        (
            "machines::write_only_values_are_nowhere",
            &["go", "terraform"],
            machines::write_only_values_are_nowhere,
        ),
        (
            "served::terraform_and_monoform_run_a_served_provider",
            &["go", "terraform"],
            served::terraform_and_monoform_run_a_served_provider,
        ),
        ("stores::the_life_of_a_state", &["go"], stores::the_life_of_a_state),
        ("stores::locks_of_others", &["go"], stores::locks_of_others),
        (
            "bare::three_providers_and_two_modules",
            &["go", "unshare", "chroot", "ldd"],
            bare::three_providers_and_two_modules,
        ),
        (
            "bare::without_privileges",
            &["go", "unshare", "chroot", "ldd"],
            bare::without_privileges,
        ),
        ("stores::writes_that_fail", &["go"], stores::writes_that_fail),
        (
            "stores::states_move_in_every_direction",
            &["go"],
            stores::states_move_in_every_direction,
        ),
        (
            "stores::versions_and_settings_that_change",
            &["go"],
            stores::versions_and_settings_that_change,
        ),
        ("stores::mistakes", &["go"], stores::mistakes),
        ("stores::a_store_on_our_sdk", &[], stores::a_store_on_our_sdk),
        (
            "store_programs::the_first_use_is_approved",
            &["go", "setsid"],
            store_programs::the_first_use_is_approved,
        ),
        (
            "store_programs::one_that_runs_already",
            &["go"],
            store_programs::one_that_runs_already,
        ),
        (
            "store_programs::one_under_development",
            &["go"],
            store_programs::one_under_development,
        ),
        (
            "store_programs::states_of_several_chunks",
            &["go"],
            store_programs::states_of_several_chunks,
        ),
        (
            "terraform::each_goes_on_where_the_other_left_off",
            &["terraform"],
            terraform::each_goes_on_where_the_other_left_off,
        ),
        (
            "terraform::plans_look_the_same",
            &["terraform"],
            terraform::plans_look_the_same,
        ),
    ];
    let trials = tests.iter().map(|&(name, programs, test)| {
        let trial = Trial::test(name, move || {
            test();
            Ok(())
        });
        needing(trial, programs)
    });
    let in_go = recorded::trials().into_iter().chain(kinds::trials());
    let all = trials.chain(in_go.map(|trial| needing(trial, &["go"]))).collect();
    support::run_trials(all)
}

/// Builds the provider `shelf`, on the plugin framework.
fn shelf() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| build("framework", "shelf"))
}

/// Builds the provider `shed`, on version 2 of the plugin SDK.
fn shed() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| build("sdkv2", "shed"))
}

/// Builds the provider `catalog`, on the plugin framework.
fn catalog_provider() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| build("catalog", "catalog"))
}

/// Builds a provider. Go rebuilds only changed sources.
fn build(source: &str, name: &str) -> PathBuf {
    let out = Path::new(env!("CARGO_TARGET_TMPDIR"))
        .join("interop")
        .join(format!("terraform-provider-{name}"));
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/interop").join(source);
    let built = Command::new("go")
        .args(["build", "-o"])
        .arg(&out)
        .arg(".")
        .current_dir(source)
        // Released providers are built without libraries of the system, too.
        .env("CGO_ENABLED", "0")
        .output();
    let built = support::ran(built.expect("go starts"));
    assert_eq!(built.status, 0, "go build: {}", built.all());
    out
}

/// Puts a built provider at a path below a directory.
fn install(provider: &Path, dir: &Path, path: &str) -> PathBuf {
    let to = dir.join(path);
    std::fs::create_dir_all(to.parent().expect("a parent")).expect("a directory");
    if std::fs::hard_link(provider, &to).is_err() {
        std::fs::copy(provider, &to).expect("a copy");
    }
    to
}

/// Puts a built provider into the user's plugin directory, in the layout of a mirror, as version 1.0.0.
fn install_in_mirror(w: &Workspace, provider: &Path, address: &str) {
    let name = provider.file_name().expect("a name").to_string_lossy();
    let path = format!("{address}/1.0.0/{}/{name}_v1.0.0", platform());
    install(provider, &w.home().join(".terraform.d/plugins"), &path);
}

/// Writes a CLI configuration file that all commands in a workspace read from then on.
fn with_cli_config(w: Workspace, text: &str) -> Workspace {
    let path = w.home().join("cli.tfrc");
    std::fs::write(&path, text).expect("a file");
    w.env("TF_CLI_CONFIG_FILE", path.display().to_string())
}

/// Checks that a plan has this summary and these texts.
#[track_caller]
fn plans(w: &Workspace, summary: &str, texts: &[&str]) {
    let plan = w.run(&["plan", "-no-color", "-detailed-exitcode"]);
    assert_eq!(plan.status, 2, "{}", plan.all());
    plan.shows(&[summary]).shows(texts);
}

/// Checks that a plan has no changes.
#[track_caller]
fn nothing_to_do(w: &Workspace) {
    w.run(&["plan", "-no-color", "-detailed-exitcode"])
        .ok()
        .shows(&["No changes."]);
}

/// Checks that a plan of Terraform has no changes.
#[track_caller]
fn nothing_to_do_for_terraform(w: &Workspace) {
    w.terraform(&["plan", "-no-color", "-input=false", "-detailed-exitcode"])
        .ok()
        .shows(&["No changes."]);
}

/// Applies the configuration, with this summary.
#[track_caller]
fn apply(w: &Workspace, summary: &str) -> Ran {
    w.run(&["apply", "-no-color", "-auto-approve"]).ok().shows(&[summary])
}

/// Returns the files in a directory of a workspace.
fn listing(w: &Workspace, dir: &str) -> Vec<PathBuf> {
    let mut out: Vec<PathBuf> = std::fs::read_dir(w.dir().join(dir))
        .expect("a directory")
        .map(|e| e.expect("an entry").path())
        .collect();
    out.sort();
    out
}

/// Changes a JSON file.
fn tamper(path: &Path, change: impl FnOnce(&mut Value)) {
    let mut value = serde_json::from_slice(&std::fs::read(path).expect("a file")).expect("JSON");
    change(&mut value);
    std::fs::write(path, value.to_string()).expect("a file");
}

/// Collects the positions at which two documents differ.
fn differences(at: &str, ours: &Value, theirs: &Value, out: &mut Vec<String>) {
    match (ours, theirs) {
        (Value::Object(a), Value::Object(b)) => {
            for name in a.keys().chain(b.keys()).collect::<BTreeSet<_>>() {
                let none = json!("(none)");
                let of = |map: &serde_json::Map<String, Value>| map.get(name).cloned().unwrap_or(none.clone());
                differences(&format!("{at}.{name}"), &of(a), &of(b), out);
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (i, (a, b)) in a.iter().zip(b).enumerate() {
                differences(&format!("{at}[{i}]"), a, b, out);
            }
        }
        _ if ours != theirs => out.push(format!("{at}: ours {ours}, theirs {theirs}")),
        _ => {}
    }
}

/// Fails the test unless two documents are the same; the message lists the differences.
#[track_caller]
fn equal(what: &str, ours: &Value, theirs: &Value) {
    let mut found = Vec::new();
    differences("", ours, theirs, &mut found);
    assert!(found.is_empty(), "{what} differs:\n{}", found.join("\n"));
}
