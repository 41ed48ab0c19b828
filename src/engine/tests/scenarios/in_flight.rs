//! Limits of concurrent provider calls in configurations with many blocks.

use std::fmt::Write as _;

use crate::support::Case;

const BLOCKS: usize = 2000;

/// Returns a configuration of many independent blocks.
fn blocks(kind: &str, argument: &str) -> String {
    let mut text = String::new();
    for i in 0..BLOCKS {
        writeln!(text, "{kind} \"b{i}\" {{\n  {argument} = \"b{i}\"\n}}").unwrap();
    }
    text
}

fn most(case: &Case) -> usize {
    std::mem::take(&mut case.remote.lock().most_in_flight)
}

#[test]
fn parallelism_limits_calls_for_2000_blocks() {
    let mut case = Case::new(&blocks("resource \"fake_thing\"", "name"));
    case.remote.lock().quiet = true;
    case.apply();
    // Validation calls no service behind the provider, so it has a separate limit.
    assert!(most(&case) <= 64);
    case.remote.lock().validated = 0;
    let plan = case.plan();
    assert_eq!(plan.changes.len(), BLOCKS);
    // Each block is validated before planning, and each object again as it is planned.
    assert_eq!(case.remote.lock().validated, 2 * BLOCKS);
    most(&case);
    case.destroy();
    assert!(most(&case) <= 64);
}

#[test]
fn parallelism_limits_planning_calls_for_2000_blocks() {
    // Refresh and planning follow the last validation.
    for (kind, argument) in [
        ("resource \"fake_thing\"", "name"),
        ("ephemeral \"fake_ticket\"", "name"),
        ("data \"fake_lookup\"", "query"),
    ] {
        let case = Case::new(&blocks(kind, argument));
        case.remote.lock().quiet = true;
        let remote = case.remote.clone();
        // This is the first call that is not a validation.
        case.remote.hook("configure ?", move || {
            remote.lock().most_in_flight = 0;
        });
        case.plan();
        let most = most(&case);
        assert!((1..=case.parallelism).contains(&most), "{kind}: {most} in flight");
    }
}

#[test]
fn state_only_objects_have_one_limit_for_all_blocks() {
    let mut case = Case::new(&blocks("resource \"fake_thing\"", "name"));
    case.remote.lock().quiet = true;
    case.remote.lock().state_only = true;
    case.apply();
    most(&case);
    case.plan();
    let most = most(&case);
    assert!((1..=64).contains(&most), "{most} in flight");
}

#[test]
fn state_only_objects_without_provisioners_have_a_limit_of_their_own_in_apply() {
    let provisioned = "resource \"fake_thing\" \"n\" {\n count = 300\n name = \"n${count.index}\"\n provisioner \"note\" {\n  text = \"made\"\n }\n}";
    let plain = "resource \"fake_thing\" \"n\" {\n count = 300\n name = \"n${count.index}\"\n}";
    // In the first case, 64 operations of the separate limit run, and 10 more that began before requests were known to be short.
    for (text, parallelism, limit) in [(plain, 10, 74), (plain, 3, 3), (provisioned, 10, 10)] {
        let mut case = Case::new(text);
        case.parallelism = parallelism;
        case.remote.lock().state_only = true;
        case.apply();
        let (mut now, mut most) = (0_usize, 0);
        for line in case.remote.take_log() {
            match line.split_once(' ') {
                Some((">", call)) if call.starts_with("create") => now += 1,
                Some(("<", call)) if call.starts_with("create") => now -= 1,
                _ => {}
            }
            most = most.max(now);
        }
        assert!((1..=limit).contains(&most), "{most} in flight of {limit}: {text}");
    }
}
