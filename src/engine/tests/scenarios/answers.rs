//! Rules for responses of providers: each violation is reported as a bug in the provider, with the attribute path.

use cty::{Path, Type, Value};
use engine::plan::Mode;

use crate::support::remote::with;
use crate::support::{Case, actions, errors};

const ONE: &str = r#"resource "fake_thing" "a" {
  name  = "a"
  value = "1"
  tags  = { k = "v" }
  rule { port = 1 }
}"#;

const BUG: &str = "This is a bug in the provider; please report it to its maintainers.";
const FAKE: &str = "Provider \"registry.terraform.io/hashicorp/fake\"";

fn unknown() -> Value {
    Value::unknown(Type::String)
}

fn tags(pairs: &[(&str, Value)]) -> Value {
    let pairs = pairs.iter().map(|(k, v)| ((*k).into(), v.clone())).collect();
    Value::map(Type::String, pairs)
}

/// Returns the errors of a plan in which the provider's planned object for `a` is changed by `mutate`.
fn planned(mutate: impl Fn(Value) -> Value + Send + Sync + 'static) -> String {
    let case = Case::new(ONE);
    case.remote.mutate("plan a", mutate);
    case.plan_errors()
}

/// Returns the errors of an apply in which the provider's result for `a` is changed by `mutate`.
fn created(mutate: impl Fn(Value) -> Value + Send + Sync + 'static) -> String {
    let mut case = Case::new(ONE);
    case.remote.mutate("create a", mutate);
    case.apply_errors()
}

fn invalid_plan(at: &str, what: &str) -> String {
    format!(
        "Error: Provider produced invalid plan [fake_thing.a]: {FAKE} planned an invalid value for fake_thing.a{at}: {what}.\n\n{BUG}"
    )
}

fn planned_write_only() -> String {
    format!(
        "Error: Provider produced invalid plan [fake_thing.a]: {FAKE} returned a value for the write-only attribute \
         \"fake_thing.a.password\" while planning. A provider must return null for write-only attributes, since \
         they are never stored. {BUG}"
    )
}

fn inconsistent(at: &str, what: &str) -> String {
    format!(
        "Error: Provider produced inconsistent result after apply [fake_thing.a]: The object that the provider \
         returned from apply contradicts the plan for fake_thing.a{at}: {what}.\n\nThis is a bug in the provider \
         registry.terraform.io/hashicorp/fake; please report it to its maintainers."
    )
}

#[test]
fn invalid_plan_responses() {
    let nothing = "planned for absence but config wants existence";
    assert_eq!(planned(|v| Value::null(v.ty().clone())), invalid_plan("", nothing));
    assert_eq!(
        planned(|v| with(&v, "value", Value::string("2"))),
        invalid_plan(".value", "planned value does not match config value")
    );
    assert_eq!(
        planned(|v| with(&v, "value", unknown())),
        invalid_plan(".value", "planned value does not match config value")
    );
    assert_eq!(
        planned(|v| with(&v, "forced", Value::string("x"))),
        invalid_plan(".forced", "planned value for a non-computed attribute")
    );
    assert_eq!(
        planned(|v| with(&v, "secret", Value::string("x"))),
        invalid_plan(".secret", "sensitive planned value for a non-computed attribute")
    );
    assert_eq!(
        planned(|v| with(&v, "password", Value::string("x"))),
        planned_write_only()
    );
    assert_eq!(
        planned(|v| {
            let rules = v.get("rule").unwrap().ty().clone();
            with(&v, "rule", Value::null(rules))
        }),
        invalid_plan(
            ".rule",
            "nested blocks are null; without blocks, the collection must be empty"
        )
    );
    assert_eq!(
        planned(|v| {
            let rule = v.get("rule").unwrap().as_seq().unwrap()[0].clone();
            let two = Value::list(rule.ty().clone(), vec![rule.clone(), rule]);
            with(&v, "rule", two)
        }),
        invalid_plan(".rule", "2 blocks are planned, and 1 are configured")
    );
    assert_eq!(
        planned(|v| {
            let rule = with(
                &v.get("rule").unwrap().as_seq().unwrap()[0],
                "label",
                Value::string("x"),
            );
            let rules = Value::list(rule.ty().clone(), vec![rule]);
            with(&v, "rule", rules)
        }),
        invalid_plan(".rule[0].label", "planned value for a non-computed attribute")
    );
}

#[test]
fn all_problems_of_a_planned_object_are_reported() {
    let errors = planned(|v| with(&with(&v, "value", Value::string("2")), "forced", Value::string("x")));
    assert!(
        errors.contains("fake_thing.a.value") && errors.contains("fake_thing.a.forced"),
        "{errors}"
    );
}

#[test]
fn required_replacement_of_unknown_attribute_is_an_error() {
    let mut case = Case::new(ONE);
    case.apply();
    case.main(&ONE.replace("\"1\"", "\"2\""));
    let stray = Path::root().attribute("tags").index(Value::string("nope"));
    case.remote.lock().replaced_for.insert("a".into(), stray);
    assert_eq!(
        case.plan_errors(),
        format!(
            "Error: Provider produced invalid plan [fake_thing.a]: {FAKE} requires the replacement of fake_thing.a \
             because of fake_thing.a.tags[\"nope\"], and there is no such attribute. {BUG}"
        )
    );
    // A path is valid if either the prior or the planned object has it.
    let there = Path::root().attribute("tags").index(Value::string("k"));
    case.remote.lock().replaced_for.insert("a".into(), there);
    case.main(&ONE.replace("tags  = { k = \"v\" }", ""));
    assert_eq!(actions(&case.plan()), ["-/+ fake_thing.a"]);
}

#[test]
fn planned_destruction_must_be_null() {
    let mut case = Case::new(ONE);
    case.apply();
    let object = case.remote.named("a").unwrap();
    case.remote.mutate("plan a", move |_| object.clone());
    case.options.mode = Mode::Destroy;
    assert_eq!(
        case.plan_errors(),
        format!(
            "Error: Provider produced invalid plan [fake_thing.a]: {FAKE} planned an object for fake_thing.a, which is to be \
             destroyed, where null is required. {BUG}"
        )
    );
}

#[test]
fn invalid_apply_responses() {
    assert_eq!(
        created(|v| Value::null(v.ty().clone())),
        format!(
            "Error: Provider produced inconsistent result after apply [fake_thing.a]: Provider \
             \"registry.terraform.io/hashicorp/fake\" was to create or update fake_thing.a and returned no \
             object.\n\nThis is a bug in the provider \
             registry.terraform.io/hashicorp/fake; please report it to its maintainers."
        )
    );
    assert_eq!(
        created(|v| with(&v, "value", Value::string("2"))),
        inconsistent(".value", "was \"1\", but now \"2\"")
    );
    assert_eq!(
        created(|v| with(&v, "value", Value::null(Type::String))),
        inconsistent(".value", "was \"1\", but now null")
    );
    assert_eq!(
        created(|v| with(&v, "forced", Value::string("x"))),
        inconsistent(".forced", "was null, but now \"x\"")
    );
    assert_eq!(
        created(|v| with(&v, "tags", tags(&[]))),
        inconsistent(".tags[\"k\"]", "element has vanished")
    );
    assert_eq!(
        created(|v| with(
            &v,
            "tags",
            tags(&[("k", Value::string("v")), ("new", Value::string("v"))])
        )),
        inconsistent(".tags[\"new\"]", "new element has appeared")
    );
    let write_only = created(|v| with(&v, "password", Value::string("hunter2")));
    assert!(
        write_only.contains(
            "Provider produced invalid object [fake_thing.a]: Provider \"registry.terraform.io/hashicorp/fake\" returned a \
             value for the write-only attribute \"fake_thing.a.password\" after applying."
        ),
        "{write_only}"
    );
    assert!(!write_only.contains("hunter2"), "{write_only}");
}

#[test]
fn unknown_values_after_apply_are_reported_and_known_ones_stored() {
    let mut case = Case::new(ONE);
    case.remote.mutate("create a", |v| {
        let v = with(&v, "note", unknown());
        with(&v, "tags", tags(&[("k", unknown())]))
    });
    let unknown_at = |at: &str| {
        format!(
            "Error: Provider returned invalid result object after apply [fake_thing.a]: The provider returned an \
             unknown value for fake_thing.a{at} from apply. After apply every value must be known; the known ones are \
             stored in the state. {BUG}"
        )
    };
    assert_eq!(
        case.apply_errors(),
        format!("{}\n{}", unknown_at(".note"), unknown_at(".tags[\"k\"]"))
    );
    assert!(case.is_tainted("fake_thing.a"));
    assert_eq!(case.attribute("fake_thing.a", "value"), "1");
    assert_eq!(case.attribute("fake_thing.a", "note"), serde_json::Value::Null);
}

#[test]
fn sensitive_values_are_left_out_of_errors() {
    let mut case = Case::new("resource \"fake_thing\" \"a\" {\n name = \"a\"\n secret = \"hunter2\"\n}");
    case.remote
        .mutate("create a", |v| with(&v, "secret", Value::string("other")));
    let errors = case.apply_errors();
    assert!(
        errors.contains("fake_thing.a.secret: inconsistent values for sensitive attribute."),
        "{errors}"
    );
    assert!(!errors.contains("hunter2") && !errors.contains("other"), "{errors}");
}

#[test]
fn legacy_type_system_is_no_excuse_for_write_only_values() {
    let leak = |v: Value| with(&v, "password", Value::string("hunter2"));
    let mut case = Case::new(ONE);
    case.remote.lock().legacy = true;
    case.remote.mutate("plan a", leak);
    assert_eq!(case.plan_errors(), planned_write_only());
    // The same rules for an update of an existing object.
    case.remote.heal();
    case.apply();
    case.remote.mutate("plan a", leak);
    assert_eq!(case.plan_errors(), planned_write_only());
    case.remote.heal();
    case.remote.mutate("update a", leak);
    case.main(&ONE.replace("\"1\"", "\"2\""));
    let errors = case.apply_errors();
    assert!(errors.contains("\"fake_thing.a.password\" after applying"), "{errors}");
    assert!(case.attribute("fake_thing.a", "password").is_null());
}

#[test]
fn write_only_values_of_a_final_plan_are_errors() {
    let text = format!(
        "{}\nresource \"fake_thing\" \"b\" {{\n  name  = \"b\"\n  value = fake_thing.a.note\n}}",
        ONE
    );
    for legacy in [false, true] {
        let mut case = Case::new(&text);
        case.remote.lock().legacy = legacy;
        // Only the second plan, which apply requests when the values of `a` are known, is wrong.
        case.remote
            .mutate("plan b", |v| match v.get("value").is_some_and(Value::is_known) {
                true => with(&v, "password", Value::string("hunter2")),
                false => v,
            });
        let errors = case.apply_errors();
        assert!(
            errors.contains("Provider produced invalid plan")
                && errors.contains("\"fake_thing.b.password\" while planning"),
            "{errors}"
        );
        assert_eq!(case.addresses(), ["fake_thing.a"]);
    }
}

#[test]
fn legacy_type_system_may_break_rules_except_unknown_values() {
    let mut case = Case::new(ONE);
    case.remote.lock().legacy = true;
    case.remote
        .mutate("plan a", |v| with(&v, "forced", Value::string("by the plan")));
    case.remote
        .mutate("create a", |v| with(&v, "value", Value::string("by the apply")));
    case.apply();
    assert_eq!(case.attribute("fake_thing.a", "forced"), "by the plan");
    assert_eq!(case.attribute("fake_thing.a", "value"), "by the apply");
    assert!(!case.is_tainted("fake_thing.a"));
    // Unknown values and missing objects stay errors even with the legacy type system, because the state cannot store them.
    let mut case = Case::new(ONE);
    case.remote.lock().legacy = true;
    case.remote.mutate("create a", |v| with(&v, "note", unknown()));
    assert!(
        case.apply_errors()
            .contains("returned an unknown value for fake_thing.a.note")
    );
    let mut case = Case::new(ONE);
    case.remote.lock().legacy = true;
    case.remote.mutate("create a", |v| Value::null(v.ty().clone()));
    assert!(
        case.apply_errors()
            .contains("was to create or update fake_thing.a and returned no object")
    );
}

#[test]
fn invalid_read_responses() {
    let mut case = Case::new(ONE);
    case.apply();
    case.remote.mutate("read a", |v| with(&v, "note", unknown()));
    assert_eq!(
        case.plan_errors(),
        format!(
            "Error: Provider produced invalid object [fake_thing.a]: {FAKE} returned an unknown value for fake_thing.a.note \
             while reading the object. All values of an existing object must be known. {BUG}"
        )
    );
    case.remote
        .mutate("read a", |v| with(&v, "password", Value::string("hunter2")));
    assert_eq!(
        case.plan_errors(),
        format!(
            "Error: Provider produced invalid object [fake_thing.a]: {FAKE} returned a value for the write-only attribute \
             \"fake_thing.a.password\" while reading the object. A provider must return null for write-only attributes, \
             since they are never stored. {BUG}"
        )
    );
}

#[test]
fn invalid_upgrade_responses() {
    let mut case = Case::new(ONE);
    case.apply();
    // Objects of the current version are sent for upgrade, too, so this applies to every object.
    let upgraded = |case: &Case, mutate: fn(Value) -> Value| {
        let id = case.attribute("fake_thing.a", "id").as_str().unwrap().to_owned();
        case.remote.mutate(&format!("upgrade {id}"), mutate);
        case.plan_errors()
    };
    let invalid = |what: &str| {
        format!(
            "Error: Invalid resource state upgrade [fake_thing.a]: The provider upgraded the state of fake_thing.a to {what} {BUG}"
        )
    };
    assert_eq!(upgraded(&case, |v| Value::null(v.ty().clone())), invalid("null."));
    assert_eq!(
        upgraded(&case, |v| with(&v, "value", unknown())),
        invalid("an object in which fake_thing.a.value is not known.")
    );
    assert_eq!(
        upgraded(&case, |v| with(&v, "password", Value::string("hunter2"))),
        invalid(
            "an object with a value for the write-only attribute \"fake_thing.a.password\", which is never stored."
        )
    );
}

#[test]
fn object_of_newer_schema_version_is_a_planning_error() {
    let mut case = Case::new(ONE);
    case.apply();
    let newer = engine_object(&case, 7);
    case.state = newer;
    let errors = case.plan_errors();
    assert_eq!(
        errors,
        "Error: Resource instance managed by newer provider version [fake_thing.a]: The stored object of fake_thing.a \
         has a later schema version than the selected version of its provider. Select a version that is at least as \
         new as the one that stored it."
    );
}

/// Returns the state of a case as if a later version of the schema had written it.
fn engine_object(case: &Case, schema_version: u64) -> state::State {
    let mut state = case.state.clone();
    let object = case.object("fake_thing.a").unwrap();
    let provider = state.resources.values().next().unwrap().provider.clone();
    let object = state::Object {
        schema_version,
        ..(*object).clone()
    };
    state.set_current(
        &crate::support::instance("fake_thing.a"),
        &provider,
        Some(std::sync::Arc::new(object)),
    );
    state
}

const LOOKUP: &str = r#"data "fake_lookup" "d" { query = "q" }"#;

#[test]
fn invalid_data_source_responses() {
    let case = Case::new(LOOKUP);
    case.remote.mutate("data q", |v| Value::null(v.ty().clone()));
    let nothing = format!(
        "Error: Provider produced null object [data.fake_lookup.d]: {FAKE} produced no object for data.fake_lookup.d, where \
         there must be one or an error. {BUG}"
    );
    assert_eq!(case.plan_errors(), nothing);
    case.remote.mutate("data q", |v| with(&v, "result", unknown()));
    let not_known = format!(
        "Error: Provider produced invalid object [data.fake_lookup.d]: {FAKE} returned an unknown value for \
         data.fake_lookup.d.result while reading the data source. All values of an existing object must be known. {BUG}"
    );
    assert_eq!(case.plan_errors(), not_known);
    // Reads of data sources during apply must follow the same rules.
    let text = format!("{ONE}\ndata \"fake_lookup\" \"d\" {{\n  query      = \"q\"\n  depends_on = [fake_thing.a]\n}}");
    let mut case = Case::new(&text);
    case.remote.mutate("data q", |v| Value::null(v.ty().clone()));
    assert_eq!(case.apply_errors(), nothing);
    let mut case = Case::new(&text);
    case.remote.mutate("data q", |v| with(&v, "result", unknown()));
    assert_eq!(case.apply_errors(), not_known);
}

#[test]
fn invalid_import_responses() {
    let import = format!("import {{\n  to = fake_thing.a\n  id = \"x\"\n}}\n{ONE}");
    let refused = |prepare: &dyn Fn(&Case)| {
        let case = Case::new(&import);
        prepare(&case);
        case.plan_errors()
    };
    let count = |n: usize| {
        move |case: &Case| {
            case.remote.lock().imported.insert("x".into(), n);
        }
    };
    let with_id = |summary: &str, what: &str| {
        format!("Error: {summary} [fake_thing.a]: While importing fake_thing.a with the ID \"x\", {what}. {BUG}")
    };
    assert_eq!(
        refused(&count(0)),
        with_id(
            "Import returned no resources",
            "the provider returned no object, and no error to say why"
        )
    );
    assert_eq!(
        refused(&count(2)),
        with_id(
            "Multiple import states not supported",
            "the provider returned several objects of this type, of which only one can be at the address"
        )
    );
    assert_eq!(
        refused(&|case| case.remote.mutate("import x", |v| Value::null(v.ty().clone()))),
        with_id(
            "Import returned null resource",
            "the provider returned an object without a state"
        )
    );
    let secret = refused(&|case| {
        case.remote
            .mutate("import x", |v| with(&v, "password", Value::string("hunter2")));
    });
    assert!(
        secret.contains("Import returned a non-null value for a write-only attribute")
            && secret.contains("\"fake_thing.a.password\" while importing"),
        "{secret}"
    );
    // The import ID does not belong to any remote object.
    assert!(refused(&|_| ()).contains("Cannot import non-existent remote object"));
}

#[test]
fn private_data_is_passed_from_call_to_call() {
    let private = |case: &Case| String::from_utf8(case.object("fake_thing.a").unwrap().private.clone()).unwrap();
    let mut case = Case::new(ONE);
    case.remote.lock().notes = true;
    case.apply();
    assert_eq!(private(&case), "planned applied ");
    case.main(&ONE.replace("\"1\"", "\"2\""));
    case.apply();
    assert_eq!(private(&case), "planned applied read planned applied ");
    case.options.mode = Mode::RefreshOnly;
    case.apply();
    assert_eq!(private(&case), "planned applied read planned applied read ");
    let (_, problems) = case.try_plan();
    assert!(!problems.has_errors(), "{}", errors(&problems));
}
