//! Benchmarks of plans against a service with latency and with a limit of requests per second. They are run by hand: `cargo test -p
//! monoform-engine --test paces -- --ignored --nocapture --test-threads=1`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod support;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use engine::inputs::{PartialRefresh, RefreshPart};
use engine::lanes::{Bounds, Lanes, Limit};
use support::Case;

const OBJECTS: usize = 2_000;

fn text(value: &str) -> String {
    format!(
        r#"
        resource "fake_thing" "network" {{ name = "network" }}
        resource "fake_thing" "a" {{
          count  = {}
          name   = "a${{count.index}}"
          value  = count.index == 7 ? "{value}" : "same"
          forced = fake_thing.network.id
        }}
        "#,
        OBJECTS - 1
    )
}

/// Returns a case whose objects have been applied, with a service that answers a read after 100 ms.
fn applied() -> Case {
    let mut case = Case::new(&text("one"));
    case.remote.lock().quiet = true;
    case.apply();
    case.remote.lock().latency = Duration::from_millis(100);
    case
}

/// Plans, and prints the time, the number of reads, the number of errors, and the limits of the lanes.
fn measure(case: &Case, name: &str) {
    {
        let mut w = case.remote.lock();
        w.reads = 0;
        w.latest_reads.clear();
    }
    let began = Instant::now();
    let (_, diagnostics) = case.try_plan();
    let errors = diagnostics.iter().filter(|d| d.is_error()).count();
    let settled = case.lanes.as_ref().map(|lanes| lanes.settled());
    let settled = settled
        .into_iter()
        .flatten()
        .map(|one| format!(", at most {}", one.limit));
    let reads = case.remote.lock().reads;
    println!(
        "{name:>24}: {:>6.1} s, {reads:>5} reads, {errors:>5} errors{}",
        began.elapsed().as_secs_f64(),
        settled.collect::<String>()
    );
}

fn auto(case: &mut Case) {
    case.lanes = Some(Arc::new(Lanes::new(
        Some(Limit::Auto(Bounds::default())),
        BTreeMap::new(),
    )));
}

#[test]
#[ignore = "for measuring"]
fn service_without_a_limit() {
    let mut case = applied();
    for parallelism in [10, 50] {
        case.parallelism = parallelism;
        measure(&case, &format!("parallelism {parallelism}"));
    }
    case.parallelism = 10;
    auto(&mut case);
    measure(&case, "parallelism auto");
}

#[test]
#[ignore = "for measuring"]
fn service_that_refuses_more_than_60_reads_a_second() {
    let mut case = applied();
    case.remote.lock().per_second = Some(60);
    for parallelism in [10, 50] {
        case.parallelism = parallelism;
        measure(&case, &format!("parallelism {parallelism}"));
    }
    case.parallelism = 10;
    auto(&mut case);
    measure(&case, "parallelism auto");
}

#[test]
#[ignore = "for measuring"]
fn refresh_after_a_change_of_one_object() {
    let mut case = applied();
    case.main(&text("two"));
    measure(&case, "full refresh");
    case.options.partial_refresh = Some(PartialRefresh {
        part: RefreshPart::Changed,
        last_reads: Arc::default(),
    });
    measure(&case, "-refresh=changed");
}
