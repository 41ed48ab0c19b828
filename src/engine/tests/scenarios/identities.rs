//! Identities of objects: from the provider to the plan and the state, and back.

use cty::{Type, Value};
use engine::plan::ImportedBy;
use state::Identity;

use crate::support::identity::identity;
use crate::support::{Case, actions, change, instance};

const ONE: &str = "resource \"fake_thing\" \"a\" { name = \"a\" }";

fn stored(case: &Case) -> Option<Identity> {
    case.state.current(&instance("fake_thing.a")).unwrap().identity.clone()
}

fn stored_text(case: &Case) -> Option<String> {
    Some(stored(case)?.value?.as_str().to_owned())
}

#[test]
fn identity_of_new_object_is_stored_and_handed_back() {
    let mut case = Case::new(ONE);
    case.identities(3);
    case.apply();
    assert_eq!(stored(&case).unwrap().schema_version, 3);
    assert_eq!(stored_text(&case).unwrap(), r#"{"id":"id-a-1","region":"here"}"#);
    case.assert_settled();
    // The update leaves a part of the object unknown. The identity from the plan stays.
    case.main("resource \"fake_thing\" \"a\" {\n name = \"a\"\n value = \"v\"\n}");
    let plan = case.plan();
    let identities = change(&plan, "fake_thing.a").identity.as_deref().unwrap();
    assert_eq!(identities.before, Some(identity("id-a-1")));
    assert_eq!(identities.after, Some(identity("id-a-1")));
}

#[test]
fn objects_without_identity_schema_have_no_identity() {
    let mut case = Case::new(ONE);
    case.apply();
    assert_eq!(stored(&case), None);
    assert!(change(&case.plan(), "fake_thing.a").identity.is_none());
}

#[test]
fn refresh_learns_and_loses_identities() {
    let mut case = Case::new(ONE);
    case.apply();
    // Simulates an upgrade of the provider to a version with identities.
    case.identities(0);
    case.apply();
    assert_eq!(stored_text(&case).unwrap(), r#"{"id":"id-a-1","region":"here"}"#);
    let null = || Value::null(Type::empty_object());
    case.remote.mutate("identity read a", move |_| null());
    case.remote.mutate("identity plan a", move |_| null());
    case.apply();
    assert_eq!(stored(&case), None);
}

#[test]
fn unknown_identity_is_for_objects_to_come() {
    let unknown = |_| Value::object([("id", Value::unknown(Type::String)), ("region", Value::string("here"))]);
    let mut case = Case::new(ONE);
    case.identities(0);
    case.remote.mutate("identity plan a", unknown);
    let plan = case.plan();
    assert!(
        change(&plan, "fake_thing.a")
            .planned_identity()
            .unwrap()
            .get("id")
            .is_some_and(|id| !id.is_known())
    );
    case.apply();
    for call in ["identity read a", "identity plan a"] {
        case.remote.heal();
        case.remote.mutate(call, unknown);
        assert!(
            case.plan_errors().contains("Provider produced invalid identity"),
            "{call}"
        );
    }
}

#[test]
fn identity_of_another_type_is_an_error() {
    for call in ["identity plan a", "identity create a"] {
        let mut case = Case::new(ONE);
        case.identities(0);
        case.remote.mutate(call, |_| Value::object([("id", Value::number(1))]));
        let errors = if call.contains("plan") {
            case.plan_errors()
        } else {
            case.apply_errors()
        };
        assert!(
            errors.contains("Provider produced an identity that doesn't match the schema"),
            "{errors}"
        );
    }
}

#[test]
fn replacement_plans_the_new_object_with_the_identity_of_the_first_plan() {
    let mut case = Case::new("resource \"fake_thing\" \"a\" {\n name = \"a\"\n forced = \"x\"\n}");
    case.identities(0);
    case.apply();
    case.main("resource \"fake_thing\" \"a\" {\n name = \"a\"\n forced = \"y\"\n}");
    let plan = case.plan();
    assert_eq!(actions(&plan), ["-/+ fake_thing.a"]);
    let identities = change(&plan, "fake_thing.a").identity.as_deref().unwrap();
    assert_eq!(identities.before, Some(identity("id-a-1")));
    assert_eq!(identities.after, Some(identity("id-a-1")));
    case.apply();
    assert_eq!(stored_text(&case).unwrap(), r#"{"id":"id-a-2","region":"here"}"#);
}

#[test]
fn stored_identity_of_an_earlier_version_is_upgraded() {
    let mut case = Case::new(ONE);
    case.identities(0);
    case.apply();
    case.identities(1);
    case.apply();
    assert_eq!(stored(&case).unwrap().schema_version, 1);
    case.identities(0);
    let errors = case.plan_errors();
    assert!(
        errors.contains("Resource instance managed by newer provider version"),
        "{errors}"
    );
    case.identities(2);
    case.remote.mutate("identity upgrade ?", |_| {
        Value::object([("id", Value::unknown(Type::String)), ("region", Value::string("here"))])
    });
    let errors = case.plan_errors();
    assert!(errors.contains("Invalid resource identity upgrade"), "{errors}");
}

#[test]
fn sensitivity_alone_keeps_the_planned_identity() {
    let mut case = Case::new("resource \"fake_thing\" \"a\" {\n name = \"a\"\n value = \"v\"\n}");
    case.identities(0);
    case.apply();
    case.main("resource \"fake_thing\" \"a\" {\n name = \"a\"\n value = sensitive(\"v\")\n}");
    case.remote.changes();
    case.apply();
    assert!(case.remote.changes().is_empty());
    assert_eq!(stored_text(&case).unwrap(), r#"{"id":"id-a-1","region":"here"}"#);
}

const BY_IDENTITY: &str = r#"
import {
  to       = fake_thing.a
  identity = { id = "existing" }
}
resource "fake_thing" "a" {
  name  = "a"
  value = "configured"
}
"#;

fn with_object(case: &Case, id: &str, name: &str) {
    let mut other = Case::new(&format!(
        "resource \"fake_thing\" \"a\" {{\n name = \"{name}\"\n value = \"configured\"\n}}"
    ));
    other.apply();
    let object = other.remote.named(name).unwrap();
    let object = crate::support::remote::with(&object, "id", Value::string(id));
    case.remote.lock().objects.insert(id.into(), object);
}

#[test]
fn import_by_identity_records_the_whole_identity() {
    let mut case = Case::new(BY_IDENTITY);
    case.identities(0);
    with_object(&case, "existing", "a");
    let plan = case.plan();
    // The identity in the configuration lacks the region, which the provider adds.
    assert_eq!(
        change(&plan, "fake_thing.a").importing,
        Some(ImportedBy::Identity(identity("existing")))
    );
    case.apply();
    assert_eq!(stored_text(&case).unwrap(), r#"{"id":"existing","region":"here"}"#);
    case.assert_settled();
}

#[test]
fn import_by_identity_needs_one_that_fits() {
    let mut case = Case::new(BY_IDENTITY);
    // At first, the resource type has no identity schema.
    assert!(case.plan_errors().contains("Invalid import identity argument"));
    case.identities(0);
    for (identity, summary) in [
        ("{ region = \"x\" }", "Incorrect value type"),
        ("\"existing\"", "Incorrect value type"),
        ("null", "Invalid import identity argument"),
        ("{ id = fake_thing.b.id }", "Invalid import identity argument"),
    ] {
        let main = BY_IDENTITY.replace("{ id = \"existing\" }", identity);
        case.main(&format!("{main}\nresource \"fake_thing\" \"b\" {{ name = \"b\" }}"));
        let errors = case.plan_errors();
        assert!(errors.contains(summary), "{identity}: {errors}");
    }
}

#[test]
fn import_by_identity_must_answer_with_an_identity() {
    let mut case = Case::new(BY_IDENTITY);
    case.identities(0);
    with_object(&case, "existing", "a");
    case.remote
        .mutate("identity import existing", |_| Value::null(Type::empty_object()));
    let errors = case.plan_errors();
    assert!(
        errors.contains("import of fake_thing.a didn't return an identity"),
        "{errors}"
    );
}

#[test]
fn moved_object_has_the_identity_of_its_new_type() {
    let mut case = Case::new("resource \"plain_thing\" \"a\" { name = \"a\" }");
    case.apply();
    case.identities(0);
    case.main("resource \"fake_thing\" \"a\" { name = \"a\" }\nmoved {\n from = plain_thing.a\n to = fake_thing.a\n}");
    case.remote.mutate("identity move id-a-1", |_| {
        Value::object([("id", Value::unknown(Type::String)), ("region", Value::string("here"))])
    });
    let errors = case.plan_errors();
    assert!(errors.contains("Provider produced invalid identity"), "{errors}");
    case.remote.heal();
    case.apply();
    assert_eq!(stored_text(&case).unwrap(), r#"{"id":"id-a-1","region":"here"}"#);
}

#[test]
fn plan_call_of_apply_brings_the_private_data_of_the_plan() {
    let mut case = Case::new(
        "resource \"fake_thing\" \"b\" { name = \"b\" }\nresource \"fake_thing\" \"a\" {\n name = \"a\"\n value = \
         fake_thing.b.id\n}",
    );
    case.remote.lock().notes = true;
    case.apply();
    let brought = case.remote.lock().planned_private.clone();
    // The plan requests during planning return no private data. Apply plans only one of the two objects again: the one with an unknown
    // value.
    assert_eq!(
        brought.iter().filter(|p| &***p == b"planned ").count(),
        1,
        "{brought:?}"
    );
}
