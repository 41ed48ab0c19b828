//! `destroy = false`: objects that are no longer needed leave the state without being destroyed.

use engine::plan::Reason;

use crate::support::{Case, actions, change};

fn kept(count: u32, value: &str) -> String {
    format!(
        "resource \"fake_thing\" \"a\" {{\n count = {count}\n name = \"a${{count.index}}\"\n value = \"{value}\"\n lifecycle {{\n  \
         destroy = false\n }}\n}}\n"
    )
}

/// Returns a case whose only object is tainted.
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
fn state_remembers_it_when_block_is_gone() {
    let mut case = Case::new(&kept(1, "1"));
    case.apply().main("");
    let plan = case.plan();
    assert_eq!(actions(&plan), [". fake_thing.a[0]"]);
    assert_eq!(change(&plan, "fake_thing.a[0]").reason, Reason::ForgetBecauseState);
    case.apply().assert_settled();
    assert_eq!(case.remote.names(), ["a0"]);
}

#[test]
fn state_remembers_it_when_module_is_gone() {
    let module = kept(2, "1");
    let mut case = Case::with_files(&[
        ("main.tf", "module \"m\" {\n source = \"./m\"\n}\n"),
        ("m/main.tf", &module),
    ]);
    case.apply().main("");
    case.apply().assert_settled();
    assert!(case.state.is_empty());
    assert_eq!(case.remote.names(), ["a0", "a1"]);
}

#[test]
fn state_remembers_it_in_destroy_plan_without_block() {
    let mut case = Case::new(&kept(1, "1"));
    case.apply().main("").destroy();
    assert!(case.state.is_empty());
    assert_eq!(case.remote.names(), ["a0"]);
}

#[test]
fn state_learns_it_without_another_change_of_object() {
    // The argument is stored even if the plan has no other changes, with and without refresh.
    for refresh in [true, false] {
        let mut case = Case::new(&kept(1, "1").replace("destroy = false", ""));
        case.apply();
        assert!(!case.object("fake_thing.a[0]").unwrap().skip_destroy);
        case.options.refresh = refresh;
        case.main(&kept(1, "1")).apply();
        assert!(case.object("fake_thing.a[0]").unwrap().skip_destroy);
        case.main("");
        assert_eq!(actions(&case.plan()), [". fake_thing.a[0]"]);
        // If the argument is removed from the block, it is also removed from the state.
        case.main(&kept(1, "1").replace("destroy = false", "")).apply();
        assert!(!case.object("fake_thing.a[0]").unwrap().skip_destroy);
        case.main("").apply();
        assert!(case.remote.names().is_empty());
    }
}

#[test]
fn removed_block_overrules_state_only_if_it_says_so() {
    let removed = |lifecycle: &str| format!("removed {{\n from = fake_thing.a\n{lifecycle}\n}}\n");
    for (lifecycle, action) in [
        ("", ". fake_thing.a[0]"),
        ("lifecycle {\n destroy = false\n }", ". fake_thing.a[0]"),
        ("lifecycle {\n destroy = true\n }", "- fake_thing.a[0]"),
    ] {
        let mut case = Case::new(&kept(1, "1"));
        case.apply().main(&removed(lifecycle));
        assert_eq!(actions(&case.plan()), [action], "{lifecycle}");
    }
}

#[test]
fn every_kind_of_replacement_keeps_old_object() {
    let text = |forced: &str, more: &str| {
        format!(
            "resource \"fake_thing\" \"t\" {{\n name = \"t\"\n value = \"{forced}\"\n}}\n\
             resource \"fake_thing\" \"a\" {{\n name = \"a\"\n forced = \"{forced}\"\n lifecycle {{\n  destroy = false\n  {more}\n }}\n}}\n"
        )
    };
    for more in ["", "create_before_destroy = true"] {
        let mut case = Case::new(&text("1", more));
        case.apply().main(&text("2", more));
        assert_eq!(actions(&case.plan()), ["+/. fake_thing.a", "~ fake_thing.t"]);
        case.apply().assert_settled();
        assert_eq!(case.addresses(), ["fake_thing.a", "fake_thing.t"]);
        assert_eq!(case.remote.names(), ["a", "a", "t"]);
    }
    let triggered = |value: &str| {
        text("1", "replace_triggered_by = [fake_thing.t]").replace("value = \"1\"", &format!("value = \"{value}\""))
    };
    let mut case = Case::new(&triggered("1"));
    case.apply().main(&triggered("2"));
    assert_eq!(actions(&case.plan()), ["+/. fake_thing.a", "~ fake_thing.t"]);
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
fn requested_replacement_keeps_old_object() {
    let mut case = Case::new(&kept(1, "1"));
    case.apply();
    case.replace(&["fake_thing.a[0]"]);
    assert_eq!(actions(&case.plan()), ["+/. fake_thing.a[0]"]);
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
