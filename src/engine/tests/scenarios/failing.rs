//! Operations that fail: the state tells the truth, dependents are left alone, everything else goes on.

use cty::{Type, Value};

use crate::support::world::with;
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
fn a_failed_creation_leaves_nothing_and_skips_dependents() {
    let mut case = Case::new(THREE);
    case.world.fail("create a");
    let errors = case.apply_errors();
    assert!(errors.contains("Operation failed [fake_thing.a]"), "{errors}");
    assert_eq!(errors.lines().count(), 1, "one problem, told once:\n{errors}");
    assert_eq!(case.addresses(), ["fake_thing.other"]);
    assert!(case.output("b").is_none());
    assert!(case.output("other").is_some());
    case.world.heal();
    assert_eq!(actions(&case.plan()), ["+ fake_thing.a", "+ fake_thing.b"]);
    case.apply().assert_settled();
}

#[test]
fn a_half_failed_creation_is_tainted() {
    let mut case = Case::new(THREE);
    case.world.lock().half.insert("create a".into());
    case.apply_errors();
    assert_eq!(case.addresses(), ["fake_thing.a", "fake_thing.other"]);
    assert!(case.is_tainted("fake_thing.a"));
    case.world.heal();
    assert_eq!(actions(&case.plan()), ["-/+ fake_thing.a", "+ fake_thing.b"]);
    case.apply().assert_settled();
    assert_eq!(case.world.names(), ["a", "b", "other"]);
}

#[test]
fn a_failed_update_keeps_the_object_as_it_was() {
    let mut case = Case::new(THREE);
    case.apply();
    case.main(&THREE.replace("\"1\"", "\"2\""));
    case.world.fail("update a");
    case.apply_errors();
    assert_eq!(case.attribute("fake_thing.a", "value"), "1");
    assert!(!case.is_tainted("fake_thing.a"));
    assert!(case.output("b").is_some());
    case.world.heal();
    assert_eq!(actions(&case.plan()), ["~ fake_thing.a"]);
}

#[test]
fn a_half_failed_update_keeps_what_the_provider_says() {
    let mut case = Case::new(THREE);
    case.apply();
    case.main(&THREE.replace("\"1\"", "\"2\""));
    case.world.lock().half.insert("update a".into());
    case.apply_errors();
    assert_eq!(case.attribute("fake_thing.a", "value"), "2");
    assert!(!case.is_tainted("fake_thing.a"));
    case.world.heal();
    case.assert_settled();
}

#[test]
fn a_failed_destruction_keeps_the_object_and_all_it_depends_on() {
    let mut case = Case::new(THREE);
    case.apply();
    case.world.fail("delete b");
    case.options.mode = engine::plan::Mode::Destroy;
    let errors = case.apply_errors();
    assert!(errors.contains("Could not delete b"), "{errors}");
    assert_eq!(case.addresses(), ["fake_thing.a", "fake_thing.b"]);
    case.world.heal();
    case.apply();
    assert!(case.state.is_empty(), "{:?}", case.state);
}

#[test]
fn a_provider_that_dies_keeps_the_state() {
    let mut case = Case::new(THREE);
    case.apply();
    let before = case.state.clone();
    case.main(&THREE.replace("\"1\"", "\"2\""));
    case.world.lock().unreachable.insert("update a".into());
    let errors = case.apply_errors();
    assert!(errors.contains("The plugin died during update a"), "{errors}");
    assert!(case.state.same_content(&before));
    case.world.heal();
    case.options.mode = engine::plan::Mode::Destroy;
    case.world.lock().unreachable.insert("delete b".into());
    case.apply_errors();
    assert_eq!(case.addresses(), ["fake_thing.a", "fake_thing.b"]);
}

#[test]
fn a_provider_that_cannot_be_started_changes_nothing() {
    let mut case = Case::new(THREE);
    case.apply();
    case.main(&THREE.replace("\"1\"", "\"2\""));
    let plan = case.plan();
    let before = case.state.clone();
    case.world.lock().missing.insert("fake".into());
    let diagnostics = case.try_apply(&plan);
    assert!(diagnostics.has_errors());
    assert!(case.state.same_content(&before));
    assert!(case.plan_errors().contains("No fake here"));
}

#[test]
fn all_that_fails_is_told() {
    let mut case = Case::new("resource \"fake_thing\" \"n\" {\n count = 5\n name = \"n${count.index}\"\n}");
    for n in [1, 3] {
        case.world.fail(&format!("create n{n}"));
    }
    let errors = case.apply_errors();
    assert_eq!(errors.lines().count(), 2, "{errors}");
    assert_eq!(
        case.addresses(),
        ["fake_thing.n[0]", "fake_thing.n[2]", "fake_thing.n[4]"]
    );
}

#[test]
fn invalid_arguments_are_found_in_planning_with_their_place() {
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
fn a_plan_that_contradicts_the_configuration_is_refused() {
    let case = Case::new(THREE);
    case.world
        .twist("plan a", |v| with(&v, "value", Value::string("something else")));
    let errors = case.plan_errors();
    assert!(errors.contains("Provider produced invalid plan"), "{errors}");
    assert!(errors.contains("fake_thing.a.value"), "{errors}");
    assert!(errors.contains("planned value does not match config value"), "{errors}");
}

#[test]
fn a_result_that_contradicts_the_plan_is_an_error_and_kept() {
    let mut case = Case::new(THREE);
    case.world
        .twist("create a", |v| with(&v, "value", Value::string("something else")));
    let errors = case.apply_errors();
    assert!(
        errors.contains("Provider produced inconsistent result after apply"),
        "{errors}"
    );
    assert!(errors.contains("fake_thing.a.value"), "{errors}");
    assert!(case.is_tainted("fake_thing.a"));
    assert_eq!(case.attribute("fake_thing.a", "value"), "something else");
}

#[test]
fn no_result_or_an_unknown_one_is_an_error() {
    let mut case = Case::new(THREE);
    case.world.twist("create a", |v| Value::null(v.ty().clone()));
    let errors = case.apply_errors();
    assert!(
        errors.contains("was to create or update fake_thing.a and returned no object"),
        "{errors}"
    );
    case.world.heal();
    case.world
        .twist("create a", |v| with(&v, "note", Value::unknown(Type::String)));
    let errors = case.apply_errors();
    assert!(
        errors.contains("Provider returned invalid result object after apply"),
        "{errors}"
    );
    assert_eq!(case.attribute("fake_thing.a", "note"), serde_json::Value::Null);
    assert_ne!(
        case.attribute("fake_thing.a", "id"),
        serde_json::Value::Null,
        "what is known is kept"
    );
}

#[test]
fn an_object_that_outlives_its_destruction_is_an_error() {
    let mut case = Case::new(THREE);
    case.apply();
    let object = case.world.named("b").unwrap();
    case.world.twist("delete b", move |_| object.clone());
    case.options.mode = engine::plan::Mode::Destroy;
    let errors = case.apply_errors();
    assert!(errors.contains("invalid result object after apply"), "{errors}");
    assert_eq!(case.addresses(), ["fake_thing.a", "fake_thing.b"]);
}

#[test]
fn a_final_plan_that_differs_from_the_first_is_refused() {
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
    case.world.twist("plan b", |v| {
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
fn planning_goes_on_beside_what_fails_and_tells_everything() {
    let case = Case::new(THREE);
    case.world.fail("plan a");
    case.world.fail("plan other");
    let errors = case.plan_errors();
    assert!(
        errors.contains("Cannot plan [fake_thing.a]") && errors.contains("Cannot plan [fake_thing.other]"),
        "{errors}"
    );
    assert_eq!(errors.lines().count(), 2, "{errors}");
}
