//! Scale: time and memory are linear in the number of instances, and allocations stay within bounds.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod support;

use std::time::{Duration, Instant};

use allocation_counter::{AllocationInfo, measure};
use support::Case;

/// Two resources of `n` instances. Each instance of the second refers to one of the first. An output refers to the last instance.
fn plain(n: usize) -> String {
    format!(
        r#"
        resource "fake_thing" "a" {{
          count = {n}
          name  = "a${{count.index}}"
          value = "some text of some length"
          tags  = {{ number = count.index, kind = "a" }}
        }}
        resource "fake_thing" "b" {{
          count = {n}
          name  = "b${{count.index}}"
          value = fake_thing.a[count.index].id
        }}
        output "last" {{ value = fake_thing.b[{last}].value }}
        "#,
        last = n - 1
    )
}

fn triggers(n: usize) -> String {
    format!(
        r#"
        variable "v" {{ default = "1" }}
        resource "fake_thing" "a" {{
          count = {n}
          name  = "a${{count.index}}"
          value = var.v
        }}
        resource "fake_thing" "b" {{
          count = {n}
          name  = "b${{count.index}}"
          lifecycle {{ replace_triggered_by = [fake_thing.a[count.index].value] }}
        }}
        "#
    )
}

const KEYS: &str = r#"
    variable "all" { type = map(string) }
    resource "fake_thing" "a" {
      for_each = var.all
      name     = each.key
      value    = each.value
    }
    resource "fake_thing" "b" {
      for_each = var.all
      name     = "b-${each.key}"
      value    = fake_thing.a[each.key].id
    }
"#;

fn keys(n: usize) -> Case {
    let mut case = Case::new(KEYS);
    let all = (0..n).map(|i| (format!("k{i}").into(), cty::Value::string(format!("v{i}"))));
    case.variable("all", cty::Value::map(cty::Type::String, all.collect()));
    case
}

const MODULE: &str = r#"
    variable "name" {}
    locals { full = "m-${var.name}" }
    resource "fake_thing" "t" { name = local.full }
    output "id" { value = fake_thing.t.id }
"#;

fn modules(n: usize) -> String {
    format!(
        r#"
        module "m" {{
          source = "./m"
          count  = {n}
          name   = "n${{count.index}}"
        }}
        resource "fake_thing" "b" {{
          count = {n}
          name  = "b${{count.index}}"
          value = module.m[count.index].id
        }}
        "#
    )
}

/// Returns the peak memory of the process in MiB.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).unwrap_or("0");
    line.trim().trim_end_matches(" kB").trim().parse::<u64>().unwrap_or(0) / 1024
}

/// Plans, applies, plans again and destroys; returns the times.
fn run(case: &mut Case, instances: usize) -> [Duration; 4] {
    // The log is turned off, because its memory would grow with the instances.
    case.remote.lock().quiet = true;
    let timed = |f: &mut dyn FnMut()| {
        let began = Instant::now();
        f();
        began.elapsed()
    };
    let mut plan = None;
    let first = timed(&mut || plan = Some(case.plan()));
    let plan = plan.unwrap();
    assert_eq!(plan.changes.len(), instances);
    let apply = timed(&mut || {
        let diagnostics = case.try_apply(&plan);
        assert!(
            !diagnostics.has_errors(),
            "{}",
            support::texts(diagnostics.iter().take(3))
        );
    });
    // The plan contains states, which would increase the peak of the next operation.
    drop(plan);
    assert_eq!(case.state.instance_count(), instances);
    let again = timed(&mut || case.assert_settled());
    let destroy = timed(&mut || {
        case.destroy();
    });
    assert!(case.state.is_empty());
    [first, apply, again, destroy]
}

fn report(name: &str, n: usize, mut case: Case) -> Duration {
    let times = run(&mut case, 2 * n);
    let [plan, apply, again, destroy] = times.map(|t| format!("{:.2} s", t.as_secs_f64()));
    println!(
        "{name:<9} 2 x {n:>6}: plan {plan}, apply {apply}, plan again {again}, destroy {destroy}; peak so far {} MiB",
        peak()
    );
    times.iter().sum()
}

fn imports(n: usize) -> Case {
    let text = r#"
        variable "all" { type = map(string) }
        resource "fake_thing" "a" {
          for_each = var.all
          name     = each.key
          value    = each.value
        }
        import {
          for_each = var.all
          to       = fake_thing.a[each.key]
          id       = "id-${each.key}"
        }
        resource "fake_thing" "b" {
          count = length(var.all)
          name  = "b"
        }
    "#;
    let mut case = keys(n);
    case.main(text);
    // A separate case creates the objects to import.
    let mut maker = keys(n);
    maker.remote.lock().quiet = true;
    maker.apply();
    let objects = std::mem::take(&mut maker.remote.lock().objects);
    for object in objects.into_values() {
        let id = format!("id-{}", object.get("name").and_then(cty::Value::as_str).unwrap());
        let object = support::remote::with(&object, "id", cty::Value::string(&id));
        case.remote.lock().objects.insert(id, object);
    }
    case
}

fn all(n: usize) -> [Duration; 5] {
    [
        report("imports", n, imports(n)),
        report("count", n, Case::new(&plain(n))),
        report("for_each", n, keys(n)),
        report("triggers", n, {
            let mut case = Case::new(&triggers(n));
            case.remote.lock().quiet = true;
            case.apply();
            case.variable("v", cty::Value::string("2"));
            case
        }),
        report(
            "modules",
            n,
            Case::with_files(&[("main.tf", &modules(n)), ("m/main.tf", MODULE)]),
        ),
    ]
}

#[test]
fn plan_and_apply_scale_linearly_with_instances() {
    let few: Duration = all(100).iter().sum();
    let many: Duration = all(1000).iter().sum();
    let factor = many.as_secs_f64() / few.as_secs_f64();
    // The tolerance allows for other load on the machine. Quadratic growth would exceed it by far: a hundredfold increase.
    assert!(
        factor < 50.0,
        "{few:?} for 100, {many:?} for 1000: a factor of {factor:.0}"
    );
}

/// Returns the allocations and the peak memory of each operation, in the order of [`OPERATIONS`].
fn counts(mut case: Case) -> [AllocationInfo; 4] {
    case.remote.lock().quiet = true;
    let mut plan = None;
    let first = measure(|| plan = Some(case.plan()));
    let plan = plan.unwrap();
    let apply = measure(|| assert!(!case.try_apply(&plan).has_errors()));
    drop(plan);
    let again = measure(|| case.assert_settled());
    let destroy = measure(|| {
        case.destroy();
    });
    [first, apply, again, destroy]
}

const OPERATIONS: [&str; 4] = ["plan", "apply", "plan again", "destroy"];

/// Upper bounds for each further instance: the number of allocations, and the bytes at the peak. They are the measured numbers plus 10 %.
const BOUNDS: [(u64, u64); 4] = [(52, 2_270), (91, 4_100), (151, 3_450), (261, 4_720)];

#[test]
fn every_further_instance_costs_at_most_its_bound_of_allocations_and_memory() {
    // Two sizes are compared, so that the fixed cost of a run does not count. One is twice the other: vectors grow by doubling, so both
    // sizes have the same share of spare capacity.
    let [few, many] = [150, 300].map(|n| counts(Case::new(&plain(n))));
    let instances = 2 * (300 - 150);
    let mut over = Vec::new();
    for (i, (allocations, bytes)) in BOUNDS.into_iter().enumerate() {
        let measured = (
            (many[i].count_total - few[i].count_total) / instances,
            (many[i].bytes_max - few[i].bytes_max) / instances,
        );
        println!(
            "{}: {} allocations, {} bytes an instance",
            OPERATIONS[i], measured.0, measured.1
        );
        if measured.0 > allocations || measured.1 > bytes {
            over.push(format!(
                "{}: {measured:?} for each instance, with bounds of {allocations} allocations and {bytes} bytes",
                OPERATIONS[i]
            ));
        }
    }
    assert!(over.is_empty(), "{over:#?}");
}

#[test]
#[ignore = "20 s in debug mode"]
fn twenty_thousand_instances() {
    report("count", 20_000, Case::new(&plain(20_000)));
}

#[test]
#[ignore = "for measuring in release mode: cargo test --release --test scale -- --ignored --nocapture --test-threads=1"]
fn measure_10_000() {
    all(10_000);
}

#[test]
#[ignore = "as above"]
fn measure_100_000() {
    report("count", 100_000, Case::new(&plain(100_000)));
}

#[test]
#[ignore = "as above"]
fn measure_100_000_of_every_kind() {
    all(100_000);
}
