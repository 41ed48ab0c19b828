//! Refresh: drift, vanished objects, and plans without refresh.

use cty::Value;
use engine::plan::{Action, Mode};

use crate::support::{Case, actions, change};

const ONE: &str = r#"
    resource "fake_thing" "a" {
      name  = "a"
      value = "1"
    }
    output "v" { value = fake_thing.a.value }
"#;

#[test]
fn drift_is_reported_and_corrected() {
    let mut case = Case::new(ONE);
    case.apply();
    case.remote.drift("a", "value", Value::string("drifted"));
    let plan = case.plan();
    assert_eq!(actions(&plan), ["~ fake_thing.a"]);
    assert_eq!(plan.drift.len(), 1);
    assert_eq!(plan.drift[0].action, Action::Update);
    assert_eq!(plan.drift[0].after.get("value").unwrap().as_str(), Some("drifted"));
    assert_eq!(
        change(&plan, "fake_thing.a").before.get("value").unwrap().as_str(),
        Some("drifted")
    );
    case.apply().assert_settled();
    assert_eq!(
        case.remote.named("a").unwrap().get("value").unwrap().as_str(),
        Some("1")
    );
}

#[test]
fn vanished_object_is_created_again() {
    let mut case = Case::new(ONE);
    case.apply();
    case.remote.vanish("a");
    let plan = case.plan();
    assert_eq!(actions(&plan), ["+ fake_thing.a"]);
    assert_eq!(plan.drift[0].action, Action::Delete);
    case.apply().assert_settled();
}

#[test]
fn no_refresh_reads_nothing() {
    let mut case = Case::new(ONE);
    case.apply();
    case.remote.drift("a", "value", Value::string("drifted"));
    case.options.refresh = false;
    case.remote.take_log();
    let plan = case.plan();
    assert!(actions(&plan).is_empty());
    assert!(plan.drift.is_empty());
    assert!(!case.remote.take_log().iter().any(|l| l.contains("read")));
}

#[test]
fn refresh_only_plan_changes_the_state_only() {
    let mut case = Case::new(ONE);
    case.apply();
    case.remote.drift("a", "value", Value::string("drifted"));
    case.options.mode = Mode::RefreshOnly;
    let plan = case.plan();
    assert!(actions(&plan).is_empty());
    assert!(plan.is_applyable());
    assert_eq!(plan.outputs["v"].action, Action::Update);
    case.remote.changes();
    case.apply();
    assert!(case.remote.changes().is_empty());
    assert_eq!(case.attribute("fake_thing.a", "value"), "drifted");
    assert_eq!(case.output("v").unwrap().as_str(), Some("drifted"));
    case.remote.vanish("a");
    case.apply();
    assert!(case.addresses().is_empty());
}

#[test]
fn refresh_only_plan_neither_creates_nor_destroys() {
    let mut case = Case::new(ONE);
    case.apply();
    case.main("resource \"fake_thing\" \"b\" { name = \"b\" }");
    case.options.mode = Mode::RefreshOnly;
    let plan = case.plan();
    assert!(actions(&plan).is_empty());
    case.apply();
    assert_eq!(case.addresses(), ["fake_thing.a"]);
}

#[test]
fn vanished_object_is_not_destroyed() {
    let mut case = Case::new(ONE);
    case.apply();
    case.remote.vanish("a");
    case.destroy();
    assert!(case.remote.changes().iter().all(|c| !c.starts_with("delete")));
    assert!(case.state.is_empty());
}

#[test]
fn failed_refresh_is_an_error() {
    let mut case = Case::new(ONE);
    case.apply();
    case.remote.fail("read a");
    assert!(case.plan_errors().contains("Cannot read [fake_thing.a]"));
}

#[test]
fn an_empty_plan_changes_nothing() {
    let mut case = Case::new(ONE);
    case.apply();
    let before = case.state.clone();
    let plan = case.plan();
    assert!(!plan.has_changes() && !plan.is_applyable());
    case.remote.take_log();
    assert!(case.try_apply(&plan).is_empty());
    assert!(case.remote.take_log().is_empty(), "no provider is even configured");
    assert!(case.state.same_content(&before));
}

#[test]
fn refresh_adds_configured_dependencies_to_recorded_ones() {
    let text = |on: &str| {
        format!(
            "resource \"fake_thing\" \"a\" {{}}\nresource \"fake_thing\" \"c\" {{}}\nresource \"fake_thing\" \"b\" {{\n \
             depends_on = [fake_thing.{on}]\n}}"
        )
    };
    let mut case = Case::new(&text("c"));
    case.apply();
    case.options.mode = Mode::RefreshOnly;
    assert!(!case.plan().is_applyable());
    case.main(&text("a"));
    let plan = case.plan();
    assert!(plan.drift.is_empty() && plan.is_applyable());
    case.apply();
    let object = case.object("fake_thing.b").unwrap();
    let names: Vec<String> = object.dependencies.iter().map(ToString::to_string).collect();
    assert_eq!(names, ["fake_thing.a", "fake_thing.c"]);
}

#[test]
fn refresh_only_plan_has_existing_instances() {
    let text = |count: u8, output: &str| {
        format!(
            "resource \"fake_thing\" \"a\" {{\n count = {count}\n name = \"a${{count.index}}\"\n}}\noutput \"o\" {{ value = {output} }}"
        )
    };
    let all = "join(\",\", fake_thing.a[*].name)";
    let mut case = Case::new(&text(2, "\"\""));
    case.apply();
    case.options.mode = Mode::RefreshOnly;
    for asked in [1, 3] {
        case.main(&text(asked, all));
        case.apply();
        assert_eq!(case.output("o").unwrap().as_str(), Some("a0,a1"), "{asked} asked for");
    }
    case.remote.vanish("a1");
    case.main(&text(1, all));
    case.apply();
    assert_eq!(case.output("o").unwrap().as_str(), Some("a0"));
}

#[test]
fn unknown_output_is_no_change_in_refresh_only_plan() {
    let mut case = Case::new(ONE);
    case.apply();
    case.main("resource \"fake_thing\" \"b\" {}\noutput \"v\" { value = fake_thing.b.value }\nresource \"fake_thing\" \"a\" {}");
    case.options.mode = Mode::RefreshOnly;
    let plan = case.plan();
    assert!(!plan.outputs["v"].after.is_known() && !plan.is_applyable());
    case.apply();
    assert_eq!(case.output("v").unwrap().as_str(), Some("1"), "it stays as it was");
}

#[test]
fn drifted_orphan_is_shown_as_stored_and_destroyed_as_refreshed() {
    let mut case = Case::new(r#"resource "fake_thing" "a" { name = "a" }"#);
    case.apply();
    case.remote.drift("a", "value", Value::string("drifted"));
    case.main("");
    let plan = case.plan();
    assert_eq!(actions(&plan), ["- fake_thing.a"]);
    let value = |v: &Value| v.get("value").and_then(Value::as_str).map(str::to_owned);
    // As in Terraform, the drift is reported in addition to this change.
    assert_eq!(value(&plan.changes[0].before), None);
    assert_eq!(value(&plan.drift[0].after).as_deref(), Some("drifted"));
    case.try_apply(&plan);
    assert!(case.remote.names().is_empty());
}

#[test]
fn sensitive_schema_path_missing_in_state_is_no_drift_and_is_stored() {
    let mut case = Case::new("resource \"fake_thing\" \"a\" {\n name = \"a\"\n secret = \"s\"\n}");
    case.apply();
    let object = case.object("fake_thing.a").unwrap();
    assert_eq!(object.sensitive_paths.len(), 1);
    assert!(case.plan().drift.is_empty());
    let address = crate::support::instance("fake_thing.a");
    let provider = case.state.resources[&address.containing_resource()].provider.clone();
    let older = state::Object {
        sensitive_paths: Vec::new(),
        ..(*object).clone()
    };
    case.state
        .set_current(&address, &provider, Some(std::sync::Arc::new(older)));
    let plan = case.plan();
    assert!(plan.drift.is_empty());
    case.options.mode = Mode::RefreshOnly;
    case.apply();
    assert_eq!(case.object("fake_thing.a").unwrap().sensitive_paths.len(), 1);
}
