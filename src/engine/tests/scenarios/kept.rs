//! `destroy = false`: objects that are no longer needed leave the state, and nothing is done to them.

use engine::plan::Reason;

use crate::support::{Case, actions, change};

fn kept(count: u32, value: &str) -> String {
    format!(
        "resource \"fake_thing\" \"a\" {{\n count = {count}\n name = \"a${{count.index}}\"\n value = \"{value}\"\n lifecycle {{ \
         destroy = false }}\n}}\n"
    )
}

/// A case whose only object is tainted.
fn tainted() -> Case {
    let mut case = Case::new(&kept(1, "1"));
    case.remote.lock().half.insert("create a0".into());
    case.apply_errors();
    case.remote.heal();
    assert!(case.is_tainted("fake_thing.a[0]"));
    case
}

#[test]
fn instances_that_are_not_configured_are_forgotten_without_refresh() {
    let mut case = Case::new(&kept(2, "1"));
    case.apply();
    case.remote.take_log();
    case.main(&kept(1, "1"));
    let (plan, problems) = case.try_plan();
    let plan = plan.unwrap();
    assert_eq!(actions(&plan), [". fake_thing.a[1]"]);
    assert_eq!(change(&plan, "fake_thing.a[1]").reason, Reason::DeleteBecauseCountIndex);
    assert!(!case.remote.take_log().iter().any(|l| l == "> read a1"));
    let warning = problems.iter().find(|d| d.detail.contains("\n - fake_thing.a[1]\n"));
    assert!(warning.is_some_and(|w| w.summary.starts_with("Some objects will no longer be managed by")));
    case.apply().assert_settled();
    assert_eq!(case.remote.names(), ["a0", "a1"]);
}

#[test]
fn destroy_plan_forgets() {
    let mut case = Case::new(&kept(2, "1"));
    case.apply().destroy();
    assert!(case.state.is_empty());
    assert_eq!(case.remote.names(), ["a0", "a1"]);
}

#[test]
fn removed_block_destroys() {
    let mut case = Case::new(&kept(1, "1"));
    case.apply().main("");
    assert_eq!(actions(&case.plan()), ["- fake_thing.a[0]"]);
}

#[test]
fn tainted_object_is_replaced_and_kept() {
    let mut case = tainted();
    let plan = case.plan();
    assert_eq!(actions(&plan), ["+/. fake_thing.a[0]"]);
    assert_eq!(change(&plan, "fake_thing.a[0]").reason, Reason::ReplaceBecauseTainted);
    case.apply().assert_settled();
    assert_eq!(case.addresses(), ["fake_thing.a[0]"]);
    assert_eq!(case.remote.names(), ["a0", "a0"]);
}

#[test]
fn failed_replacement_restores_the_tainted_object() {
    let mut case = tainted();
    case.remote.fail("create a0");
    case.apply_errors();
    assert_eq!(case.addresses(), ["fake_thing.a[0]"]);
    assert!(case.is_tainted("fake_thing.a[0]"));
    assert_eq!(case.remote.names(), ["a0"]);
}

#[test]
fn deposed_object_is_forgotten() {
    let mut case = tainted();
    case.remote.lock().half.insert("create a0".into());
    case.apply_errors();
    assert_eq!(case.addresses(), ["fake_thing.a[0]", "fake_thing.a[0] (deposed)"]);
    case.remote.heal();
    assert_eq!(
        actions(&case.plan()),
        ["+/. fake_thing.a[0]", ". fake_thing.a[0] (deposed)"]
    );
    case.apply().assert_settled();
    assert_eq!(case.addresses(), ["fake_thing.a[0]"]);
    assert_eq!(case.remote.names(), ["a0", "a0", "a0"]);
}

#[test]
fn requested_replacement_destroys() {
    let mut case = Case::new(&kept(1, "1"));
    case.apply();
    case.replace(&["fake_thing.a[0]"]);
    assert_eq!(actions(&case.plan()), ["-/+ fake_thing.a[0]"]);
}

#[test]
fn prevent_destroy_does_not_keep_from_forgetting() {
    let protected = |count| kept(count, "1").replace("destroy = false", "destroy = false\n prevent_destroy = true");
    let mut case = Case::new(&protected(2));
    case.apply().main(&protected(1));
    case.apply();
    let mut case = tainted();
    case.main(&protected(1));
    assert!(case.plan_errors().contains("Instance cannot be destroyed"));
}
