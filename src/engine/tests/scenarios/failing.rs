//! Failed operations: the state has the objects that exist, dependents are skipped, other operations continue.

use cty::{Type, Value};

use crate::support::remote::with;
use crate::support::{Case, actions, texts};

const THREE: &str = r#"
    resource "fake_thing" "a" {
      name  = "a"
      value = "1"
    }
    resource "fake_thing" "b" {
      name  = "b"
      value = fake_thing.a.id
    }
    resource "fake_thing" "other" { name = "other" }
    output "b" { value = fake_thing.b.id }
    output "other" { value = fake_thing.other.id }
"#;

#[test]
fn failed_creation_stores_nothing_and_skips_dependents() {
    let mut case = Case::new(THREE);
    case.remote.fail("create a");
    let errors = case.apply_errors();
    assert!(errors.contains("Operation failed [fake_thing.a]"), "{errors}");
    assert_eq!(errors.lines().count(), 1, "one problem, told once:\n{errors}");
    assert_eq!(case.addresses(), ["fake_thing.other"]);
    assert!(case.output("b").is_none());
    assert!(case.output("other").is_some());
    case.remote.heal();
    assert_eq!(actions(&case.plan()), ["+ fake_thing.a", "+ fake_thing.b"]);
    case.apply().assert_settled();
}

#[test]
fn creation_with_object_and_error_is_tainted() {
    let mut case = Case::new(THREE);
    case.remote.lock().half.insert("create a".into());
    case.apply_errors();
    assert_eq!(case.addresses(), ["fake_thing.a", "fake_thing.other"]);
    // The object may be incomplete, so the next plan replaces it.
    assert!(case.is_tainted("fake_thing.a"));
    case.remote.heal();
    assert_eq!(actions(&case.plan()), ["-/+ fake_thing.a", "+ fake_thing.b"]);
    case.apply().assert_settled();
    assert_eq!(case.remote.names(), ["a", "b", "other"]);
}

#[test]
fn failed_update_keeps_stored_object() {
    let mut case = Case::new(THREE);
    case.apply();
    case.main(&THREE.replace("\"1\"", "\"2\""));
    case.remote.fail("update a");
    case.apply_errors();
    assert_eq!(case.attribute("fake_thing.a", "value"), "1");
    // Only a failed creation taints an object. This object was complete before.
    assert!(!case.is_tainted("fake_thing.a"));
    assert!(case.output("b").is_some());
    case.remote.heal();
    assert_eq!(actions(&case.plan()), ["~ fake_thing.a"]);
}

#[test]
fn update_with_object_and_error_stores_returned_object() {
    let mut case = Case::new(THREE);
    case.apply();
    case.main(&THREE.replace("\"1\"", "\"2\""));
    case.remote.lock().half.insert("update a".into());
    case.apply_errors();
    assert_eq!(case.attribute("fake_thing.a", "value"), "2");
    assert!(!case.is_tainted("fake_thing.a"));
    case.remote.heal();
    case.assert_settled();
}

#[test]
fn failed_destruction_keeps_object_and_its_dependencies() {
    let mut case = Case::new(THREE);
    case.apply();
    case.remote.fail("delete b");
    case.options.mode = engine::plan::Mode::Destroy;
    let errors = case.apply_errors();
    assert!(errors.contains("Could not delete b"), "{errors}");
    // The dependency is not destroyed, because the object that depends on it still exists.
    assert_eq!(case.addresses(), ["fake_thing.a", "fake_thing.b"]);
    case.remote.heal();
    case.apply();
    assert!(case.state.is_empty(), "{:?}", case.state);
}

#[test]
fn crashed_provider_keeps_stored_objects() {
    let mut case = Case::new(THREE);
    case.apply();
    let before = case.state.clone();
    case.main(&THREE.replace("\"1\"", "\"2\""));
    case.remote.lock().unreachable.insert("update a".into());
    let errors = case.apply_errors();
    assert!(errors.contains("The plugin died during update a"), "{errors}");
    // The effect of the failed request is unknown, and the next refresh will show it.
    assert!(case.state.same_content(&before));
    case.remote.heal();
    case.options.mode = engine::plan::Mode::Destroy;
    case.remote.lock().unreachable.insert("delete b".into());
    case.apply_errors();
    assert_eq!(case.addresses(), ["fake_thing.a", "fake_thing.b"]);
}

#[test]
fn provider_that_cannot_start_changes_nothing() {
    let mut case = Case::new(THREE);
    case.apply();
    case.main(&THREE.replace("\"1\"", "\"2\""));
    let plan = case.plan();
    let before = case.state.clone();
    case.remote.lock().missing.insert("fake".into());
    let diagnostics = case.try_apply(&plan);
    assert!(diagnostics.has_errors());
    assert!(case.state.same_content(&before));
    assert!(case.plan_errors().contains("No fake here"));
}

#[test]
fn all_failures_are_reported() {
    let mut case = Case::new("resource \"fake_thing\" \"n\" {\n count = 5\n name = \"n${count.index}\"\n}");
    for n in [1, 3] {
        case.remote.fail(&format!("create n{n}"));
    }
    let errors = case.apply_errors();
    assert_eq!(errors.lines().count(), 2, "{errors}");
    assert_eq!(
        case.addresses(),
        ["fake_thing.n[0]", "fake_thing.n[2]", "fake_thing.n[4]"]
    );
}

#[test]
fn invalid_arguments_are_planning_errors_with_position() {
    let case = Case::new("resource \"fake_thing\" \"a\" {\n  name  = \"a\"\n  value = \"invalid\"\n}\n");
    let (_, diagnostics) = case.try_plan();
    let problem = diagnostics
        .iter()
        .find(|d| d.summary == "Invalid value")
        .expect("reported");
    assert_eq!(
        problem.subject.as_ref().map(|r| r.start.line),
        Some(3),
        "{}",
        texts(diagnostics.iter())
    );
    assert_eq!(problem.address.as_deref(), Some("fake_thing.a"));
}

#[test]
fn plan_that_contradicts_configuration_is_an_error() {
    let case = Case::new(THREE);
    case.remote
        .mutate("plan a", |v| with(&v, "value", Value::string("something else")));
    let errors = case.plan_errors();
    assert!(errors.contains("Provider produced invalid plan"), "{errors}");
    assert!(errors.contains("fake_thing.a.value"), "{errors}");
    assert!(errors.contains("planned value does not match config value"), "{errors}");
}

#[test]
fn result_that_contradicts_plan_is_an_error_and_stored() {
    let mut case = Case::new(THREE);
    case.remote
        .mutate("create a", |v| with(&v, "value", Value::string("something else")));
    let errors = case.apply_errors();
    assert!(
        errors.contains("Provider produced inconsistent result after apply"),
        "{errors}"
    );
    assert!(errors.contains("fake_thing.a.value"), "{errors}");
    assert!(case.is_tainted("fake_thing.a"));
    // The state has the object that the provider returned, although it differs from the plan.
    assert_eq!(case.attribute("fake_thing.a", "value"), "something else");
}

#[test]
fn null_or_unknown_result_is_an_error() {
    let mut case = Case::new(THREE);
    case.remote.mutate("create a", |v| Value::null(v.ty().clone()));
    let errors = case.apply_errors();
    assert!(
        errors.contains("was to create or update fake_thing.a and returned no object"),
        "{errors}"
    );
    case.remote.heal();
    case.remote
        .mutate("create a", |v| with(&v, "note", Value::unknown(Type::String)));
    let errors = case.apply_errors();
    assert!(
        errors.contains("Provider returned invalid result object after apply"),
        "{errors}"
    );
    // The state cannot store unknown values.
    assert_eq!(case.attribute("fake_thing.a", "note"), serde_json::Value::Null);
    assert_ne!(
        case.attribute("fake_thing.a", "id"),
        serde_json::Value::Null,
        "what is known is kept"
    );
}

#[test]
fn object_returned_from_destruction_is_an_error() {
    let mut case = Case::new(THREE);
    case.apply();
    let object = case.remote.named("b").unwrap();
    case.remote.mutate("delete b", move |_| object.clone());
    case.options.mode = engine::plan::Mode::Destroy;
    let errors = case.apply_errors();
    assert!(errors.contains("invalid result object after apply"), "{errors}");
    // The provider reports that the object still exists.
    assert_eq!(case.addresses(), ["fake_thing.a", "fake_thing.b"]);
}

#[test]
fn inconsistent_final_plan_is_an_error() {
    let mut case = Case::new(
        r#"
        resource "fake_thing" "a" { name = "a" }
        resource "fake_thing" "b" {
          name  = "b"
          value = fake_thing.a.id
          tags  = { k = "v" }
        }
        "#,
    );
    let plan = case.plan();
    // The mutation is set after planning, so only the second plan, which apply requests when `a.id` is known, contradicts the first.
    case.remote.mutate("plan b", |v| {
        with(
            &v,
            "tags",
            Value::map(Type::String, [("k".into(), Value::string("w"))].into()),
        )
    });
    let diagnostics = case.try_apply(&plan);
    let errors = texts(diagnostics.iter());
    assert!(errors.contains("Provider produced inconsistent final plan"), "{errors}");
    assert!(errors.contains("fake_thing.b.tags"), "{errors}");
    assert_eq!(case.addresses(), ["fake_thing.a"]);
}

#[test]
fn planning_continues_after_failures_and_reports_all() {
    let case = Case::new(THREE);
    case.remote.fail("plan a");
    case.remote.fail("plan other");
    let errors = case.plan_errors();
    assert!(
        errors.contains("Cannot plan [fake_thing.a]") && errors.contains("Cannot plan [fake_thing.other]"),
        "{errors}"
    );
    assert_eq!(errors.lines().count(), 2, "{errors}");
}
