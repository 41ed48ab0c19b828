//! Limits of concurrent operations for single providers.

use std::sync::Arc;

use addrs::Provider;
use engine::events::Event;
use engine::lanes::{Bounds, Lanes, Limit};

use crate::support::Case;

fn things(count: usize) -> Case {
    Case::new(&format!(
        "resource \"fake_thing\" \"a\" {{\n count = {count}\n name = \"a-${{count.index}}\"\n}}"
    ))
}

fn limited(case: &mut Case, limit: Limit) {
    let listed = [(Provider::default_for("fake"), limit)].into();
    case.lanes = Some(Arc::new(Lanes::new(None, listed)));
}

/// Returns the maximum number of concurrent calls in an apply.
fn most_of_apply(case: &mut Case) -> usize {
    let plan = case.plan();
    case.remote.lock().most_in_flight = 0;
    let diagnostics = case.try_apply(&plan);
    assert!(!diagnostics.has_errors());
    case.remote.lock().most_in_flight
}

#[test]
fn limit_of_a_provider_holds_in_place_of_the_common_one() {
    let mut case = things(40);
    limited(&mut case, Limit::Fixed(2));
    assert_eq!(most_of_apply(&mut case), 2);
    let mut case = things(40);
    limited(&mut case, Limit::Fixed(25));
    let most = most_of_apply(&mut case);
    assert!((11..=25).contains(&most), "{most}");
    // Objects of providers without a limit share `-parallelism`.
    let mut case = things(40);
    case.lanes = Some(Arc::new(Lanes::new(
        None,
        [(Provider::default_for("other"), Limit::Fixed(1))].into(),
    )));
    let most = most_of_apply(&mut case);
    assert!((2..=10).contains(&most), "{most}");
}

#[test]
fn adapted_limit_stays_within_its_bounds() {
    let mut case = things(60);
    limited(&mut case, Limit::Auto(Bounds { lowest: 1, highest: 3 }));
    let most = most_of_apply(&mut case);
    assert!((1..=3).contains(&most), "{most}");
    case.assert_settled();
}

#[test]
fn refused_reads_are_repeated_and_lower_the_limit() {
    let mut case = things(20);
    case.apply();
    case.remote.lock().throttled = 2;
    // Without an adapted limit, a throttled read is an error.
    assert!(case.plan_errors().contains("429"));
    limited(&mut case, Limit::Auto(Bounds::default()));
    case.remote.lock().throttled = 4;
    case.assert_settled();
    assert_eq!(case.remote.lock().throttled, 0);
    let events = case.events.0.lock().unwrap();
    let settled = events.iter().rev().find_map(|event| match event {
        Event::Lanes { limits, settled: true } => Some(limits.clone()),
        _ => None,
    });
    let settled = settled.expect("the limit is reported");
    assert_eq!(settled.len(), 1);
    assert_eq!(settled[0].throttled, 4);
    assert!(settled[0].limit < 10, "{settled:?}");
}
