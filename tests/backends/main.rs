//! States in stores: the executable and Terraform side by side, on the same servers.
//!
//! A [`lab::Lab`] is a server with the `backend` block that leads to it. [`scenarios`] are what every store goes through: states
//! that are brought along, read and locked by either program, workspaces, writes that fail. What only one store has is in the file
//! of its server. Tests whose server or whose other program is not installed are reported as ignored, by name.

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
mod gcs;
mod hcp;
mod http;
mod kubernetes;
mod lab;
mod postgres;
mod s3;
mod scenarios;
mod server;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};
use support::needing;

use lab::Lab;

type Labs = fn() -> Lab;

/// Tests that only one store has.
type Tests = &'static [(&'static str, fn())];

fn main() -> ExitCode {
    let stores: &[(&str, Labs, &[&str])] = &[
        ("http", http::lab, &[]),
        ("pg", postgres::lab, postgres::PROGRAMS),
        ("s3", s3::lab, s3::PROGRAMS),
        ("s3_with_table", s3::lab_with_table, s3::PROGRAMS),
        ("gcs", gcs::lab, gcs::PROGRAMS),
        ("kubernetes", kubernetes::lab, &[]),
        ("cos", cos::lab, &[]),
        ("remote", hcp::lab, &[]),
        ("azurerm", azure::lab, azure::PROGRAMS),
        ("consul", consul::lab, consul::PROGRAMS),
        ("consul_with_gzip", consul::lab_with_compression, consul::PROGRAMS),
    ];
    let mut trials = Vec::new();
    for (store, lab, programs) in stores {
        for (name, scenario, with_terraform) in scenarios::ALL {
            let (lab, scenario) = (*lab, *scenario);
            let run = move || {
                scenario(&lab());
                Ok(())
            };
            let mut needed = programs.to_vec();
            if *with_terraform {
                needed.push("terraform");
            }
            trials.push(needing(Trial::test(format!("{store}::{name}"), run), &needed));
        }
    }
    let own: &[(&str, Tests, &[&str])] = &[
        ("s3", s3::TESTS, s3::PROGRAMS),
        ("gcs", gcs::TESTS, gcs::PROGRAMS),
        ("azurerm", azure::TESTS, azure::PROGRAMS),
        ("consul", consul::TESTS, consul::PROGRAMS),
        ("kubernetes", kubernetes::TESTS, &["terraform"]),
        ("remote", hcp::TESTS, &[]),
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
    for (name, test) in http::TESTS {
        trials.push(Trial::test(format!("http::{name}"), move || {
            test();
            Ok(())
        }));
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
