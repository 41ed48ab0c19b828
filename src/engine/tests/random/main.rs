//! Property tests: random configurations with random changes and random failures.
//!
//! [`order`]: without failures, an apply carries out exactly its plan in an order that respects dependencies, and the next plan is empty.
//! [`failures`]: with failures, the state has the objects that exist, and a later run without failures succeeds.
//!
//! A failing test prints its seed. `MONOFORM_SEED=N` runs that seed alone and, with `--nocapture`, prints its trace; `MONOFORM_SEED=N..M`
//! runs a range, and `MONOFORM_CASES=N` sets the number of seeds. A failing seed is reported with the smallest case size at which it fails.

#![allow(
    clippy::disallowed_methods,
    reason = "tests read their settings from the environment, and need the time"
)]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]

#[path = "../support/mod.rs"]
mod support;

mod check;
mod failures;
mod generate;
mod order;

use generate::{Dialect, Model, Random};
use support::Case;

/// Enables renaming and removing blocks, with `moved` and `removed` blocks.
const MOVES: bool = true;

/// Limits of the size of a case.
#[derive(Clone, Copy)]
pub struct Size {
    pub blocks: usize,
    pub steps: usize,
}

const SIZES: [Size; 5] = [
    Size { blocks: 2, steps: 1 },
    Size { blocks: 3, steps: 2 },
    Size { blocks: 4, steps: 3 },
    Size { blocks: 6, steps: 4 },
    Size { blocks: 9, steps: 6 },
];

/// Trace of a case, which is printed after a failure.
#[derive(Default)]
pub struct Trace(String);

impl Trace {
    pub fn record(&mut self, text: &str) {
        self.0.push_str(text);
        self.0.push('\n');
    }
}

/// Runs a property for many seeds.
fn for_many(name: &str, usual: u64, property: fn(u64, Size, &mut Trace) -> Result<(), String>) {
    let (seeds, one) = match std::env::var("MONOFORM_SEED") {
        Ok(seed) => match seed.split_once("..") {
            Some((from, to)) => (from.parse().expect("a seed")..to.parse().expect("a seed"), false),
            None => {
                let seed: u64 = seed.parse().expect("a seed");
                (seed..seed + 1, true)
            }
        },
        Err(_) => {
            let cases = std::env::var("MONOFORM_CASES").map(|n| n.parse::<u64>().expect("a number of cases"));
            (0..cases.unwrap_or(usual), false)
        }
    };
    let run = |seed, size| {
        let mut trace = Trace::default();
        // A panic is a failure of this seed only, and must not end the run.
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| property(seed, size, &mut trace)));
        let result = result.unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().cloned();
            Err(text
                .or_else(|| panic.downcast_ref::<&str>().map(|t| (*t).to_owned()))
                .unwrap_or_default())
        });
        if one {
            eprintln!("{}", trace.0);
        }
        result.err().map(|problem| (problem, trace))
    };
    let count = seeds.clone().count();
    let mut failed: Vec<u64> = Vec::new();
    let mut shown = None;
    for seed in seeds {
        // The size depends on the seed, so that any range of seeds covers all sizes.
        let size = SIZES[(seed % SIZES.len() as u64) as usize];
        if let Some(found) = run(seed, size) {
            failed.push(seed);
            if shown.is_none() {
                // A smaller case with the same seed is easier to read.
                let smaller = SIZES.iter().find_map(|size| run(seed, *size));
                shown = Some((seed, smaller.unwrap_or(found)));
            }
        }
    }
    if let Some((seed, (problem, trace))) = shown {
        let more = &failed[..failed.len().min(40)];
        panic!(
            "{name}: {} of {count} seeds failed: {more:?}\n\nMONOFORM_SEED={seed}:\n{}\n{problem}",
            failed.len(),
            trace.0
        );
    }
    eprintln!("{name}: {count} cases");
}

#[test]
fn applies_follow_the_order_and_next_plan_is_empty() {
    for_many("order", 250, order::property);
}

#[test]
fn state_after_failures_has_the_actual_objects() {
    for_many("failures", 250, failures::property);
}

/// Returns a case with the configuration of a model.
fn case_of(model: &Model, seed: u64) -> Case {
    let mut case = Case::new("");
    case.remote.lock().seed = seed;
    write(&mut case, model);
    case
}

fn write(case: &mut Case, model: &Model) {
    let files = model.files();
    let files: Vec<(&str, &str)> = files.iter().map(|(n, t)| (n.as_str(), t.as_str())).collect();
    case.files(&files);
}

fn record_model(trace: &mut Trace, model: &Model) {
    for (name, text) in model.files() {
        trace.record(&format!("--- {name}\n{text}"));
    }
}

fn model(r: &mut Random, size: Size) -> Model {
    Model::random(r, Dialect::Fake, size.blocks)
}
