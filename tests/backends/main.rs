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

mod crashes;
mod http;
mod lab;
mod postgres;
mod s3;
mod scenarios;

use std::process::ExitCode;

use libtest_mimic::{Arguments, Trial};
use support::needing;

use lab::Lab;

type Labs = fn() -> Lab;

fn main() -> ExitCode {
    let stores: &[(&str, Labs, &[&str])] = &[
        ("http", http::lab, &[]),
        ("pg", postgres::lab, postgres::PROGRAMS),
        ("s3", s3::lab, s3::PROGRAMS),
        ("s3_with_table", s3::lab_with_table, s3::PROGRAMS),
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
    for (name, test) in s3::TESTS {
        let run = move || {
            test();
            Ok(())
        };
        trials.push(needing(Trial::test(format!("s3::{name}"), run), s3::PROGRAMS));
    }
    for (name, test) in http::TESTS {
        trials.push(Trial::test(format!("http::{name}"), move || {
            test();
            Ok(())
        }));
    }
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}
