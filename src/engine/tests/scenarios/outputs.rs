//! Root outputs.

use cty::Value;
use engine::plan::Action;

use crate::support::Case;

fn action(case: &Case, name: &str) -> Action {
    case.plan().outputs[name].action
}

#[test]
fn outputs_are_created_updated_and_deleted() {
    let mut case = Case::new("output \"o\" { value = \"1\" }");
    assert_eq!(action(&case, "o"), Action::Create);
    case.apply();
    assert_eq!(case.output("o"), Some(Value::string("1")));
    assert_eq!(action(&case, "o"), Action::NoOp);
    case.assert_settled();
    case.main("output \"o\" { value = \"2\" }");
    assert_eq!(action(&case, "o"), Action::Update);
    case.apply();
    assert_eq!(case.output("o"), Some(Value::string("2")));
    case.main("");
    assert_eq!(action(&case, "o"), Action::Delete);
    case.apply();
    assert!(case.state.is_empty());
}

#[test]
fn change_of_output_sensitivity_is_planned_and_stored() {
    let mut case = Case::new("output \"o\" { value = \"1\" }");
    case.apply();
    case.main("output \"o\" {\n value = \"1\"\n sensitive = true\n}");
    assert_eq!(action(&case, "o"), Action::Update);
    case.apply();
    assert!(case.state.outputs["o"].sensitive);
    case.assert_settled();
}

#[test]
fn sensitive_output_must_be_declared_sensitive() {
    let mut case = Case::new(
        r#"
        variable "s" {
          default   = "x"
          sensitive = true
        }
        output "o" { value = "-${var.s}" }
        "#,
    );
    assert!(case.plan_errors().contains("Output refers to sensitive values"));
    case.main(
        r#"
        variable "s" {
          default   = "x"
          sensitive = true
        }
        output "o" {
          value     = "-${var.s}"
          sensitive = true
        }
        "#,
    )
    .apply();
    assert_eq!(case.output("o"), Some(Value::string("-x")));
}

#[test]
fn sensitive_values_are_marked_in_plan_and_state() {
    let mut case = Case::new(
        r#"
        variable "s" {
          default   = "x"
          sensitive = true
        }
        resource "fake_thing" "a" {
          name   = "a"
          tags   = { k = var.s, l = "open" }
          secret = "hush"
        }
        "#,
    );
    let plan = case.plan();
    let after = &crate::support::change(&plan, "fake_thing.a").after;
    assert!(after.get("tags").unwrap().get("k").unwrap().marks().is_sensitive());
    assert!(!after.get("tags").unwrap().get("l").unwrap().marks().is_sensitive());
    assert!(after.get("secret").unwrap().marks().is_sensitive());
    case.apply();
    let mut paths: Vec<String> = case
        .object("fake_thing.a")
        .unwrap()
        .sensitive_paths
        .iter()
        .map(ToString::to_string)
        .collect();
    paths.sort();
    assert_eq!(paths, [".secret", ".tags[\"k\"]"]);
    case.assert_settled();
}

#[test]
fn an_unknown_output_is_known_after_apply() {
    let mut case =
        Case::new("resource \"fake_thing\" \"a\" { name = \"a\" }\noutput \"o\" { value = fake_thing.a.id }");
    let plan = case.plan();
    assert!(!plan.outputs["o"].after.is_known());
    case.apply();
    assert_eq!(case.output("o").unwrap().as_str(), Some("id-a-1"));
    case.destroy();
    assert!(case.state.outputs.is_empty());
}

#[test]
fn only_outputs_change() {
    let mut case = Case::new("resource \"fake_thing\" \"a\" { name = \"a\" }");
    case.apply();
    case.main("resource \"fake_thing\" \"a\" { name = \"a\" }\noutput \"o\" { value = fake_thing.a.id }");
    let plan = case.plan();
    assert!(plan.has_changes() && plan.is_applyable());
    case.remote.changes();
    case.apply();
    assert!(case.remote.changes().is_empty());
    assert_eq!(case.output("o").unwrap().as_str(), Some("id-a-1"));
}
