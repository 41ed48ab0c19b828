//! States in stores: the executable and Terraform side by side on the same servers.
//!
//! A [`lab::Lab`] is a server with the `backend` block for it. [`scenarios`] are the tests of every store: migrated states, states
//! that either program reads and locks, workspaces, writes that fail. Tests of one store are in the file of its server. Tests
//! whose server or other program is not installed are reported as ignored, by name.

#![allow(
    clippy::disallowed_methods,
    reason = "tests read their settings from the environment, and need the time"
)]
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test fails by panicking"
)]

mod azure;
mod consul;
mod cos;
mod crashes;
mod credentials;
mod credentials_alibaba;
mod credentials_aws;
mod credentials_aws_accounts;
mod credentials_aws_machine;
mod credentials_aws_roles;
mod credentials_azure;
mod credentials_google;
mod credentials_kubernetes;
mod credentials_oracle;
mod credentials_tencent;
mod cut;
mod encryption;
mod errors;
mod faults;
mod gcs;
mod hcp;
mod hcp_cloud_tests;
mod hcp_lab;
mod hcp_runs;
mod hcp_runs_tests;
mod hcp_scene;
mod hcp_tests;
mod http;
mod key_providers;
mod kubernetes;
mod lab;
mod lost_locks;
mod mixed;
mod oci;
mod oss;
mod postgres;
mod postgres_failures;
mod postgres_locks;
mod postgres_objects;
mod postgres_runs;
mod postgres_served;
mod postgres_tls;
mod postgres_unlocked;
mod power_cut;
mod s3;
mod scenarios;
mod server;

use std::process::ExitCode;

use libtest_mimic::Trial;
use support::needing;

use lab::{Lab, Tool};

type Labs = fn() -> Lab;

/// Tests of a single store.
type Tests = &'static [(&'static str, fn())];

/// Programs that tests of PostgreSQL with Terraform need.
const WITH_TERRAFORM: &[&str] = &["postgres", "psql", "terraform"];

fn main() -> ExitCode {
    let stores: &[(&str, Labs, &[&str], Tool)] = &[
        ("http", http::lab, &[], Tool::Terraform),
        ("pg", postgres::lab, postgres::PROGRAMS, Tool::Terraform),
        (
            postgres_objects::NAME,
            postgres::lab_with_objects,
            postgres::PROGRAMS,
            Tool::Terraform,
        ),
        ("s3", s3::lab, s3::PROGRAMS, Tool::Terraform),
        ("s3_with_table", s3::lab_with_table, s3::PROGRAMS, Tool::Terraform),
        ("gcs", gcs::lab, gcs::PROGRAMS, Tool::Terraform),
        ("kubernetes", kubernetes::lab, &[], Tool::Terraform),
        ("cos", cos::lab, &[], Tool::Terraform),
        ("remote", hcp_lab::lab, &[], Tool::Terraform),
        ("azurerm", azure::lab, azure::PROGRAMS, Tool::Terraform),
        ("consul", consul::lab, consul::PROGRAMS, Tool::Terraform),
        (
            "consul_with_gzip",
            consul::lab_with_compression,
            consul::PROGRAMS,
            Tool::Terraform,
        ),
        ("oci", oci::lab, &[], Tool::NewerTerraform),
        ("oss", oss::lab, oss::PROGRAMS, Tool::Terraform),
    ];
    let mut trials = Vec::new();
    for (store, lab, programs, peer) in stores {
        for (name, scenario, with_terraform) in scenarios::ALL {
            // The layout `objects` is tested elsewhere: Terraform does not know it, its states cannot be encrypted, and the results of a
            // killed run are in the state at once, without a journal (see `postgres_runs`).
            let of_journals = name.contains("journal") || name.starts_with("what_a_killed_apply");
            let other = *with_terraform || name.starts_with("an_encrypted") || of_journals;
            if *store == postgres_objects::NAME && other {
                continue;
            }
            let (lab, scenario) = (*lab, *scenario);
            let run = move || {
                scenario(&lab());
                Ok(())
            };
            let mut needed = programs.to_vec();
            if *with_terraform {
                needed.push(peer.name());
            }
            let trial = needing(Trial::test(format!("{store}::{name}"), run), &needed);
            let apart =
                *peer == Tool::NewerTerraform && scenarios::OF_BOTH.contains(name) && !lab::knows_its_resources();
            trials.push(match apart {
                true => trial
                    .with_kind("needs terraform_data with a store")
                    .with_ignored_flag(true),
                false => trial,
            });
        }
    }
    // HCP Terraform is left out: its locks belong to users, and states are not migrated from it to other backends.
    for (store, lab, programs, peer) in stores.iter().filter(|(store, ..)| *store != "remote") {
        let (lab, peer) = (*lab, *peer);
        // For oss, Terraform is needed only to make recordings, so these tests run without it.
        let programs = if *store == "oss" { &[] } else { *programs };
        let mut add = |name: &str, programs: &[&str], test: Box<dyn FnOnce() + Send>| {
            let run = move || {
                test();
                Ok(())
            };
            trials.push(needing(Trial::test(format!("{store}::{name}"), run), programs));
        };
        // In the layout `objects`, the results before the loss of a lock are in the state already; `postgres_runs` has the test for it.
        if *store != postgres_objects::NAME {
            let name = "a_lock_that_was_taken_away_overwrites_nothing";
            add(name, programs, Box::new(move || lost_locks::taken_away(&lab())));
        }
        // If the other program has this store, it reads the migrated state.
        let knows = peer == Tool::Terraform && *store != postgres_objects::NAME;
        let with_peer = knows && support::which(peer.name()).is_some();
        let other = if *store == "oci" { oss::lab } else { oci::lab };
        let name = "states_are_brought_from_store_to_store_and_back";
        add(
            name,
            programs,
            Box::new(move || mixed::migrated(&lab(), &other(), with_peer)),
        );
        if mixed::AT_ONCE.contains(store) {
            let programs = [programs, &[peer.name()]].concat();
            let name = "both_programs_apply_in_turn_and_at_once";
            add(name, &programs, Box::new(move || mixed::in_turn_and_at_once(&lab())));
        }
    }
    let of_store = |name: &&str| stores.iter().find(|(store, ..)| store == name);
    let faulty = faults::STORES
        .iter()
        .filter_map(of_store)
        .map(|(store, lab, programs, _)| {
            let programs = if *store == "oss" { Vec::new() } else { programs.to_vec() };
            (*store, *lab, programs)
        });
    let faulty: Vec<_> = faulty.collect();
    let name = "a_failing_server_leaves_a_whole_state_and_what_it_lacks_is_kept";
    // The longest test, which mostly waits, starts first.
    let longest = Trial::test(name, move || {
        faults::all(&faulty);
        Ok(())
    });
    trials.insert(0, longest);
    let own: &[(&str, Tests, &[&str])] = &[
        ("s3", s3::TESTS, s3::PROGRAMS),
        ("pg", lost_locks::TESTS_OF_PG, postgres::PROGRAMS),
        ("pg", postgres_tls::TESTS, postgres::PROGRAMS),
        ("pg", postgres_locks::TESTS, postgres::PROGRAMS),
        (postgres_objects::NAME, postgres_objects::TESTS, postgres::PROGRAMS),
        (postgres_objects::NAME, postgres_runs::TESTS, postgres::PROGRAMS),
        (postgres_objects::NAME, postgres_unlocked::TESTS, postgres::PROGRAMS),
        (postgres_objects::NAME, postgres_failures::TESTS, postgres::PROGRAMS),
        (postgres_objects::NAME, postgres_served::TESTS, postgres::PROGRAMS),
        (postgres_objects::NAME, postgres_objects::WITH_TERRAFORM, WITH_TERRAFORM),
        ("gcs", gcs::TESTS, gcs::PROGRAMS),
        ("azurerm", azure::TESTS, azure::PROGRAMS),
        ("consul", consul::TESTS, consul::PROGRAMS),
        ("oci", oci::TESTS, &[]),
        ("kubernetes", kubernetes::TESTS, &["terraform"]),
        ("remote", hcp_tests::TESTS, &[]),
        ("remote", hcp_cloud_tests::TESTS, &[]),
        ("power_cut", power_cut::TESTS, &[]),
    ];
    for (store, tests, programs) in own {
        for (name, test) in *tests {
            let run = move || {
                test();
                Ok(())
            };
            trials.push(needing(Trial::test(format!("{store}::{name}"), run), programs));
        }
    }
    trials.extend(errors::trials());
    trials.extend(credentials::trials(&[
        &credentials_aws::TABLE,
        &credentials_aws_roles::TABLE,
        &credentials_aws_accounts::TABLE,
        &credentials_aws_machine::TABLE,
        &credentials_google::TABLE,
        &credentials_azure::TABLE,
        &credentials_kubernetes::TABLE,
        &credentials_oracle::TABLE,
        &credentials_alibaba::TABLE,
        &credentials_tencent::TABLE,
    ]));
    trials.extend(key_providers::trials());
    trials.extend(hcp_runs_tests::trials());
    for (name, test) in http::TESTS.iter().chain(encryption::TESTS) {
        trials.push(Trial::test(format!("http::{name}"), move || {
            test();
            Ok(())
        }));
    }
    support::run_trials(trials)
}
