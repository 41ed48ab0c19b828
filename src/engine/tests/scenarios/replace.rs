//! Replacement, in both orders.

use std::sync::Arc;

use cty::Value;
use engine::plan::{Action, Mode, Reason};

use crate::support::remote::{assert_before, with};
use crate::support::{Case, actions, change, instance};

fn chain(forced: &str, lifecycle_a: &str, lifecycle_b: &str) -> String {
    format!(
        r#"
        resource "fake_thing" "a" {{
          name   = "a"
          forced = "{forced}"
          lifecycle {{ {lifecycle_a} }}
        }}
        resource "fake_thing" "b" {{
          name   = "b"
          forced = fake_thing.a.id
          lifecycle {{ {lifecycle_b} }}
        }}
        "#
    )
}

#[test]
fn replacement_destroys_dependents_first_and_creates_them_last() {
    let mut case = Case::new(&chain("1", "", ""));
    case.apply();
    case.main(&chain("2", "", ""));
    let plan = case.plan();
    assert_eq!(actions(&plan), ["-/+ fake_thing.a", "-/+ fake_thing.b"]);
    let a = change(&plan, "fake_thing.a");
    assert_eq!(a.reason, Reason::ReplaceBecauseCannotUpdate);
    assert_eq!(
        a.replace_paths.iter().map(ToString::to_string).collect::<Vec<_>>(),
        [".forced"]
    );
    assert!(
        !a.after.get("id").unwrap().is_known(),
        "a new object has a new identifier"
    );
    case.remote.take_log();
    case.apply();
    let log = case.remote.take_log();
    assert_before(&log, "delete b", "delete a");
    assert_before(&log, "delete a", "create a");
    assert_before(&log, "create a", "create b");
    case.assert_settled();
}

#[test]
fn updated_dependent_follows_new_object() {
    let text = |forced: &str| {
        format!(
            "resource \"fake_thing\" \"a\" {{\n name = \"a\"\n forced = \"{forced}\"\n}}\n\
             resource \"fake_thing\" \"b\" {{\n name = \"b\"\n value = fake_thing.a.id\n}}"
        )
    };
    let mut case = Case::new(&text("1"));
    case.apply();
    case.main(&text("2"));
    assert_eq!(actions(&case.plan()), ["-/+ fake_thing.a", "~ fake_thing.b"]);
    case.remote.take_log();
    case.apply();
    let log = case.remote.take_log();
    assert_before(&log, "delete a", "create a");
    assert_before(&log, "create a", "update b");
    case.assert_settled();
}

#[test]
fn create_before_destroy_destroys_old_object_after_dependents_change() {
    let cbd = "create_before_destroy = true";
    let mut case = Case::new(&chain("1", cbd, cbd));
    case.apply();
    case.main(&chain("2", cbd, cbd));
    assert_eq!(actions(&case.plan()), ["+/- fake_thing.a", "+/- fake_thing.b"]);
    case.remote.take_log();
    case.apply();
    let log = case.remote.take_log();
    assert_before(&log, "create a", "create b");
    assert_before(&log, "create b", "delete b");
    assert_before(&log, "delete b", "delete a");
    assert_eq!(case.remote.names(), ["a", "b"]);
    assert_eq!(case.addresses(), ["fake_thing.a", "fake_thing.b"]);
    case.assert_settled();
}

#[test]
fn create_before_destroy_applies_to_dependencies() {
    let mut case = Case::new(&chain("1", "", "create_before_destroy = true"));
    case.apply();
    // The state records create_before_destroy, for plans after the block is removed.
    assert!(case.object("fake_thing.a").unwrap().create_before_destroy);
    case.main(&chain("2", "", "create_before_destroy = true"));
    assert_eq!(actions(&case.plan()), ["+/- fake_thing.a", "+/- fake_thing.b"]);
    case.remote.take_log();
    case.apply();
    let log = case.remote.take_log();
    assert_before(&log, "create b", "delete b");
    assert_before(&log, "delete b", "delete a");
}

#[test]
fn create_before_destroy_of_dependent_only() {
    // Only the dependency has create_before_destroy, so the dependent is destroyed first.
    let mut case = Case::new(&chain("1", "create_before_destroy = true", ""));
    case.apply();
    case.main(&chain("2", "create_before_destroy = true", ""));
    assert_eq!(actions(&case.plan()), ["+/- fake_thing.a", "-/+ fake_thing.b"]);
    case.remote.take_log();
    case.apply();
    let log = case.remote.take_log();
    assert_before(&log, "create a", "create b");
    assert_before(&log, "delete b", "create b");
    assert_before(&log, "delete b", "delete a");
    assert_before(&log, "create b", "delete a");
}

#[test]
fn failed_destruction_of_deposed_object_is_planned_again() {
    let text = |forced: &str| {
        format!(
            "resource \"fake_thing\" \"a\" {{\n name = \"a{forced}\"\n forced = \"{forced}\"\n\
             lifecycle {{ create_before_destroy = true }}\n}}"
        )
    };
    let mut case = Case::new(&text("1"));
    case.apply();
    case.main(&text("2"));
    case.remote.fail("delete a1");
    let errors = case.apply_errors();
    assert!(errors.contains("Could not delete a1"), "{errors}");
    assert_eq!(case.addresses(), ["fake_thing.a", "fake_thing.a (deposed)"]);
    assert_eq!(case.attribute("fake_thing.a", "name"), "a2");
    let plan = case.plan();
    assert_eq!(actions(&plan), ["- fake_thing.a (deposed)"]);
    case.remote.heal();
    case.apply();
    assert_eq!(case.remote.names(), ["a2"]);
    case.assert_settled();
}

#[test]
fn vanished_deposed_object_is_dropped() {
    let text = |forced: &str| {
        format!(
            "resource \"fake_thing\" \"a\" {{\n name = \"a{forced}\"\n forced = \"{forced}\"\n\
             lifecycle {{ create_before_destroy = true }}\n}}"
        )
    };
    let mut case = Case::new(&text("1"));
    case.apply();
    case.main(&text("2"));
    case.remote.fail("delete a1");
    case.apply_errors();
    case.remote.vanish("a1");
    assert!(actions(&case.plan()).is_empty());
}

#[test]
fn deposed_object_is_destroyed_as_it_was_refreshed() {
    let text = |forced: &str| {
        format!(
            "resource \"fake_thing\" \"a\" {{\n name = \"a{forced}\"\n forced = \"{forced}\"\n\
             lifecycle {{ create_before_destroy = true }}\n}}"
        )
    };
    let mut case = Case::new(&text("1"));
    case.remote.lock().notes = true;
    case.apply();
    case.main(&text("2"));
    case.remote.fail("delete a1");
    case.apply_errors();
    case.remote.heal();
    case.remote.drift("a1", "value", Value::string("drifted"));
    case.options.mode = Mode::RefreshOnly;
    assert!(case.plan().is_applyable(), "the refreshed object is to be stored");
    case.options.mode = Mode::Normal;
    let plan = case.plan();
    assert_eq!(actions(&plan), ["- fake_thing.a (deposed)"]);
    let deposed = plan.changes.iter().find(|c| c.deposed.is_some()).unwrap();
    assert_eq!(deposed.before.get("value"), Some(&Value::string("drifted")));
    let private = String::from_utf8(deposed.private.clone()).unwrap();
    assert!(private.ends_with("read planned "), "{private}");
    // Apply takes the object from the prior state of the plan.
    let kept = plan.prior_state.instance(&deposed.address).unwrap();
    let kept = kept.deposed.values().next().unwrap();
    assert_eq!(crate::support::attributes(kept)["value"], "drifted");
    assert!(kept.private.ends_with(b"read "));
    case.apply();
    assert_eq!(case.remote.names(), ["a2"]);
}

#[test]
fn deposed_object_of_an_earlier_schema_version_is_destroyed_in_its_upgraded_form() {
    let text = |forced: &str| {
        format!(
            "resource \"fake_thing\" \"a\" {{\n name = \"a{forced}\"\n forced = \"{forced}\"\n\
             lifecycle {{ create_before_destroy = true }}\n}}"
        )
    };
    let mut case = Case::new(&text("1"));
    case.apply();
    case.main(&text("2"));
    case.remote.fail("delete a1");
    case.apply_errors();
    case.remote.heal();
    let instance = case
        .state
        .resources
        .values_mut()
        .next()
        .unwrap()
        .instances
        .values_mut()
        .next()
        .unwrap();
    let object = instance.deposed.values_mut().next().unwrap();
    let id = crate::support::attributes(object)["id"].as_str().unwrap().to_owned();
    *object = Arc::new(state::Object {
        schema_version: 0,
        ..(**object).clone()
    });
    case.remote.mutate(&format!("upgrade {id}"), |v| {
        with(&v, "value", Value::string("upgraded"))
    });
    // Without a refresh, only the upgrade can have changed the object.
    case.options.refresh = false;
    let plan = case.plan();
    let kept = plan
        .prior_state
        .instances()
        .next()
        .unwrap()
        .3
        .deposed
        .values()
        .next()
        .unwrap();
    assert_eq!(kept.schema_version, 1);
    assert_eq!(crate::support::attributes(kept)["value"], "upgraded");
    case.apply();
    assert_eq!(case.remote.names(), ["a2"]);
}

#[test]
fn failed_creation_restores_deposed_object() {
    let cbd = "create_before_destroy = true";
    let mut case = Case::new(&chain("1", cbd, cbd));
    case.apply();
    let old = case.attribute("fake_thing.a", "id");
    case.main(&chain("2", cbd, cbd));
    case.remote.fail("create a");
    case.remote.take_log();
    case.apply_errors();
    assert_eq!(case.remote.changes(), ["create a"], "nothing else may be touched");
    assert_eq!(case.addresses(), ["fake_thing.a", "fake_thing.b"]);
    assert_eq!(case.attribute("fake_thing.a", "id"), old);
    case.remote.heal();
    case.apply();
    case.assert_settled();
}

#[test]
fn failed_replacement_with_object_is_tainted_and_old_object_deposed() {
    let cbd = "create_before_destroy = true";
    let mut case = Case::new(&chain("1", cbd, cbd));
    case.apply();
    case.main(&chain("2", cbd, cbd));
    case.remote.lock().half.insert("create a".into());
    case.apply_errors();
    // The new object, though incomplete, is the current one, and the old one, which still exists, is deposed.
    assert_eq!(
        case.addresses(),
        ["fake_thing.a", "fake_thing.a (deposed)", "fake_thing.b"]
    );
    assert!(case.is_tainted("fake_thing.a"));
    case.remote.heal();
    let plan = case.plan();
    assert_eq!(
        actions(&plan),
        ["+/- fake_thing.a", "- fake_thing.a (deposed)", "+/- fake_thing.b"]
    );
    assert_eq!(change(&plan, "fake_thing.a").reason, Reason::ReplaceBecauseTainted);
    case.apply();
    assert_eq!(case.remote.names(), ["a", "b"]);
    case.assert_settled();
}

#[test]
fn failed_creation_after_destruction_leaves_no_object() {
    let mut case = Case::new(&chain("1", "", ""));
    case.apply();
    case.main(&chain("2", "", ""));
    case.remote.fail("create a");
    case.apply_errors();
    // `b` was destroyed first, because it depends on `a`.
    assert!(case.addresses().is_empty());
    case.remote.heal();
    assert_eq!(actions(&case.plan()), ["+ fake_thing.a", "+ fake_thing.b"]);
}

#[test]
fn failed_destruction_in_replacement_keeps_object() {
    let mut case = Case::new(&chain("1", "", ""));
    case.apply();
    case.main(&chain("2", "", ""));
    case.remote.fail("delete a");
    case.remote.take_log();
    case.apply_errors();
    assert_eq!(case.remote.changes(), ["delete b", "delete a"]);
    assert_eq!(case.addresses(), ["fake_thing.a"]);
}

#[test]
fn replacement_by_request() {
    let mut case = Case::new(&chain("1", "", ""));
    case.apply();
    case.replace(&["fake_thing.a"]);
    let plan = case.plan();
    // `b` is replaced, too, because it refers to the ID of the new object.
    assert_eq!(actions(&plan), ["-/+ fake_thing.a", "-/+ fake_thing.b"]);
    assert_eq!(change(&plan, "fake_thing.a").reason, Reason::ReplaceByRequest);
    case.apply();
    case.replace(&[]).assert_settled();
}

#[test]
fn replace_option_for_resource_with_count_is_an_error() {
    let mut case = Case::new("resource \"fake_thing\" \"n\" {\n count = 2\n name = \"n\"\n}");
    case.apply();
    case.replace(&["fake_thing.n"]);
    case.options.strict_addresses = true;
    let errors = case.plan_errors();
    assert!(errors.contains("Did you mean fake_thing.n[0]?"), "{errors}");
}

#[test]
fn prevent_destroy_forbids_replacement_and_destruction() {
    let mut case = Case::new(&chain("1", "prevent_destroy = true", ""));
    case.apply();
    case.main(&chain("2", "prevent_destroy = true", ""));
    let errors = case.plan_errors();
    assert!(errors.contains("Instance cannot be destroyed"), "{errors}");
    case.main(&chain("1", "prevent_destroy = true", ""));
    case.options.mode = Mode::Destroy;
    assert!(case.plan_errors().contains("Instance cannot be destroyed"));
    case.options.mode = Mode::Normal;
    // Without a block, `prevent_destroy` has no effect.
    case.main("");
    assert_eq!(actions(&case.plan()), ["- fake_thing.a", "- fake_thing.b"]);
}

#[test]
fn ignore_changes_has_no_effect_on_replacement() {
    let text = |value: &str, forced: &str, ignore: &str| {
        format!(
            "resource \"fake_thing\" \"a\" {{\n name = \"a\"\n value = \"{value}\"\n forced = \"{forced}\"\n\
             tags = {{ k = \"{value}\" }}\n lifecycle {{ ignore_changes = {ignore} }}\n}}"
        )
    };
    let mut case = Case::new(&text("1", "1", "[value, tags[\"k\"]]"));
    case.apply();
    case.main(&text("2", "1", "[value, tags[\"k\"]]")).assert_settled();
    case.main(&text("2", "1", "[value]"));
    assert_eq!(actions(&case.plan()), ["~ fake_thing.a"]);
    // With `all`, even the argument that would force a replacement is ignored.
    case.main(&text("2", "2", "all")).assert_settled();
    case.main(&text("2", "2", "[value, tags[\"k\"]]"));
    let plan = case.plan();
    assert_eq!(actions(&plan), ["-/+ fake_thing.a"]);
    case.apply();
    assert_eq!(
        case.attribute("fake_thing.a", "value"),
        "2",
        "a new object takes everything as it is written"
    );
}

#[test]
fn replace_triggered_by() {
    let text = |value: &str, trigger: &str| {
        format!(
            "resource \"fake_thing\" \"a\" {{\n count = 2\n name = \"a${{count.index}}\"\n\
             value = count.index == 0 ? \"{value}\" : \"\"\n}}\n\
             resource \"fake_thing\" \"b\" {{\n count = 2\n name = \"b${{count.index}}\"\n\
             lifecycle {{ replace_triggered_by = [{trigger}] }}\n}}"
        )
    };
    let mut case = Case::new(&text("1", "fake_thing.a[count.index].value"));
    case.apply();
    case.main(&text("2", "fake_thing.a[count.index].value"));
    let plan = case.plan();
    assert_eq!(actions(&plan), ["~ fake_thing.a[0]", "-/+ fake_thing.b[0]"]);
    assert_eq!(change(&plan, "fake_thing.b[0]").reason, Reason::ReplaceByTriggers);
    case.main(&text("2", "fake_thing.a[count.index].forced"));
    assert_eq!(
        actions(&case.plan()),
        ["~ fake_thing.a[0]"],
        "another attribute than the one that changed"
    );
    case.main(&text("2", "fake_thing.a[1]"));
    assert_eq!(actions(&case.plan()), ["~ fake_thing.a[0]"]);
    case.main(&text("2", "fake_thing.a"));
    assert_eq!(
        actions(&case.plan()),
        ["~ fake_thing.a[0]", "-/+ fake_thing.b[0]", "-/+ fake_thing.b[1]"]
    );
    case.main(&text("2", "fake_thing.a[count.index]"));
    assert_eq!(actions(&case.plan()), ["~ fake_thing.a[0]", "-/+ fake_thing.b[0]"]);
    case.apply();
    case.assert_settled();
}

#[test]
fn replacement_because_of_unknown_value() {
    // `forced` depends on an unknown value.
    let mut case = Case::new(
        r#"
        resource "fake_thing" "b" {
          name   = "b"
          forced = "fixed"
        }
        "#,
    );
    case.apply();
    case.main(
        r#"
        resource "fake_thing" "a" { name = "a" }
        resource "fake_thing" "b" {
          name   = "b"
          forced = fake_thing.a.id
        }
        "#,
    );
    let plan = case.plan();
    assert_eq!(actions(&plan), ["+ fake_thing.a", "-/+ fake_thing.b"]);
    assert_eq!(change(&plan, "fake_thing.b").action, Action::DeleteThenCreate);
    case.apply();
    case.assert_settled();
}

#[test]
fn change_of_sensitivity_alone_makes_no_provider_call() {
    let text = |sensitive: bool| {
        format!(
            "variable \"v\" {{\n default = \"x\"\n sensitive = {sensitive}\n}}\n\
             resource \"fake_thing\" \"a\" {{\n name = \"a\"\n value = var.v\n}}"
        )
    };
    let mut case = Case::new(&text(false));
    case.apply();
    assert_eq!(
        case.object("fake_thing.a")
            .unwrap()
            .sensitive_paths
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>(),
        [".secret"]
    );
    case.main(&text(true));
    let plan = case.plan();
    assert_eq!(actions(&plan), ["~ fake_thing.a"]);
    assert!(
        change(&plan, "fake_thing.a")
            .after
            .get("value")
            .unwrap()
            .marks()
            .is_sensitive()
    );
    case.remote.take_log();
    case.apply();
    // Only marks have changed, and providers do not see marks, so there is no request.
    assert!(case.remote.changes().is_empty());
    let paths: Vec<String> = case
        .object("fake_thing.a")
        .unwrap()
        .sensitive_paths
        .iter()
        .map(ToString::to_string)
        .collect();
    assert!(paths.contains(&".value".to_owned()), "{paths:?}");
    case.assert_settled();
    assert_eq!(case.remote.named("a").unwrap().get("value"), Some(&Value::string("x")));
}

#[test]
fn create_before_destroy_of_unselected_resources_has_no_effect() {
    let mut case = Case::new(
        "resource \"fake_thing\" \"a\" { name = \"a\" }\nresource \"fake_thing\" \"b\" {\n name = \"b\"\n value = fake_thing.a.name\n \
         lifecycle { create_before_destroy = true }\n}",
    );
    case.apply();
    case.replace(&["fake_thing.a"]);
    assert_eq!(change(&case.plan(), "fake_thing.a").action, Action::CreateThenDelete);
    // The plan leaves out `b`, whose create_before_destroy also applies to its dependency `a`.
    case.target(&["fake_thing.a"]);
    assert_eq!(change(&case.plan(), "fake_thing.a").action, Action::DeleteThenCreate);
}

/// Returns a configuration in which a change of `trigger` replaces `b`.
fn triggered_by(a: &str, trigger: &str) -> String {
    format!(
        "{a}\nresource \"fake_thing\" \"b\" {{\n name = \"b\"\n lifecycle {{\n  replace_triggered_by = [{trigger}]\n }}\n}}\n"
    )
}

#[test]
fn trigger_that_is_created_anew_replaces_dependents() {
    let a = "resource \"fake_thing\" \"a\" {\n name = \"a\"\n value = \"v\"\n}";
    for (trigger, replaces_if_vanished, replaces_if_lost) in [
        ("fake_thing.a", true, true),
        ("fake_thing.a.id", true, true),
        // The trigger is the value of `a`, which does not change when `a` is replaced.
        ("fake_thing.a.value", false, false),
    ] {
        let expected = |replaces: bool| match replaces {
            true => vec!["+ fake_thing.a", "-/+ fake_thing.b"],
            false => vec!["+ fake_thing.a"],
        };
        let mut case = Case::new(&triggered_by(a, trigger));
        // The creation of a new dependent has no reason.
        assert_eq!(change(&case.plan(), "fake_thing.b").reason, Reason::None);
        case.apply();
        case.remote.vanish("a");
        let plan = case.plan();
        assert_eq!(actions(&plan), expected(replaces_if_vanished), "{trigger}");
        if replaces_if_vanished {
            assert_eq!(change(&plan, "fake_thing.b").reason, Reason::ReplaceByTriggers);
        }
        let mut case = Case::new(&triggered_by(a, trigger));
        case.apply();
        case.state.remove_instance(&instance("fake_thing.a"));
        assert_eq!(actions(&case.plan()), expected(replaces_if_lost), "{trigger}");
        case.apply().assert_settled();
    }
}

#[test]
fn new_trigger_replaces_nothing() {
    let mut case = Case::new("resource \"fake_thing\" \"b\" {\n name = \"b\"\n}\n");
    case.apply();
    let many =
        |count: u32| format!("resource \"fake_thing\" \"a\" {{\n count = {count}\n name = \"a${{count.index}}\"\n}}");
    case.main(&triggered_by(&many(1), "fake_thing.a"));
    assert_eq!(actions(&case.plan()), ["+ fake_thing.a[0]"]);
    case.apply().main(&triggered_by(&many(2), "fake_thing.a"));
    assert_eq!(actions(&case.plan()), ["+ fake_thing.a[1]"]);
    case.apply();
    case.remote.vanish("a1");
    assert_eq!(actions(&case.plan()), ["+ fake_thing.a[1]", "-/+ fake_thing.b"]);
}

#[test]
fn trigger_of_an_attribute_that_is_not_there_is_an_error() {
    let case = Case::new(
        r#"
        resource "fake_thing" "a" {
          count = 1
          name  = "a"
        }
        resource "fake_thing" "b" {
          count = 1
          name  = "b"
          lifecycle { replace_triggered_by = [fake_thing.a[count.index].nothing] }
        }
        "#,
    );
    assert!(case.plan_errors().contains("Unsupported attribute"));
}
