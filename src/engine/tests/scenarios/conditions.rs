//! Validations, preconditions, postconditions, assertions.

use cty::Value;

use crate::support::{Case, texts};

#[test]
fn variables_are_validated() {
    let mut case = Case::new(
        r#"
        variable "n" {
          type = number
          validation {
            condition     = var.n > 2
            error_message = "Too small: ${var.n}."
          }
        }
        resource "fake_thing" "a" { name = "a${var.n}" }
        "#,
    );
    case.variable("n", Value::number(1));
    let errors = case.plan_errors();
    assert!(errors.contains("Invalid value for variable") && errors.contains("Too small: 1."), "{errors}");
    assert_eq!(errors.lines().count(), 1, "{errors}");
    case.variable("n", Value::number(3)).apply();
}

#[test]
fn conditions_stop_planning_where_they_can_be_decided() {
    let text = |pre: &str, post: &str| {
        format!(
            "locals {{ one = 1 }}\nresource \"fake_thing\" \"a\" {{\n name = \"a\"\n lifecycle {{\n\
             precondition {{\n condition = {pre}\n error_message = \"pre\"\n }}\n\
             postcondition {{\n condition = {post}\n error_message = \"post\"\n }}\n }}\n}}\n\
             resource \"fake_thing\" \"b\" {{\n name = \"b\"\n value = fake_thing.a.id\n}}"
        )
    };
    let mut case = Case::new(&text("local.one == 2", "self.name == \"a\""));
    assert!(case.plan_errors().contains("Resource precondition failed [fake_thing.a]: pre"));
    case.main(&text("local.one == 1", "self.name == \"x\""));
    assert!(case.plan_errors().contains("Resource postcondition failed [fake_thing.a]: post"));
    // What only apply can know is checked then, and the object that came is kept.
    case.main(&text("local.one == 1", "self.id == \"x\""));
    let errors = case.apply_errors();
    assert!(errors.contains("Resource postcondition failed"), "{errors}");
    assert_eq!(case.addresses(), ["fake_thing.a"]);
    assert!(!case.is_tainted("fake_thing.a"));
}

#[test]
fn data_sources_and_outputs_have_conditions() {
    let case = Case::new(
        r#"
        data "fake_lookup" "d" {
          query = "q"
          lifecycle {
            postcondition {
              condition     = self.result == "x"
              error_message = "not x"
            }
          }
        }
        "#,
    );
    assert!(case.plan_errors().contains("not x"));
    let case = Case::new(
        r#"
        locals { three = "abc" }
        output "o" {
          value = "o"
          precondition {
            condition     = length(local.three) == 4
            error_message = "not four"
          }
        }
        "#,
    );
    let errors = case.plan_errors();
    assert!(errors.contains("Module output value precondition failed") && errors.contains("not four"), "{errors}");
}

#[test]
fn check_blocks_only_warn() {
    let mut case = Case::new(
        r#"
        resource "fake_thing" "a" { name = "a" }
        check "c" {
          assert {
            condition     = fake_thing.a.name == "x"
            error_message = "should be x"
          }
        }
        "#,
    );
    let (_, diagnostics) = case.try_plan();
    assert!(texts(diagnostics.iter()).contains("Warning: Check block assertion failed: should be x"));
    case.apply();
}

#[test]
fn a_precondition_that_fails_in_apply_stops_only_its_object() {
    let mut case = Case::new(
        r#"
        resource "fake_thing" "a" { name = "a" }
        resource "fake_thing" "b" {
          name = "b"
          lifecycle {
            precondition {
              condition     = fake_thing.a.id == "x"
              error_message = "wrong id ${fake_thing.a.id}"
            }
          }
        }
        resource "fake_thing" "c" { name = "c" }
        "#,
    );
    let errors = case.apply_errors();
    assert!(errors.contains("wrong id id-a-"), "{errors}");
    assert_eq!(case.addresses(), ["fake_thing.a", "fake_thing.c"]);
}

#[test]
fn postconditions_see_results_even_where_nothing_changes() {
    let text = |want: &str| {
        format!(
            "resource \"fake_thing\" \"a\" {{\n name = \"a\"\n lifecycle {{\n\
             postcondition {{\n condition = self.name == \"{want}\"\n error_message = \"post\"\n }}\n }}\n}}"
        )
    };
    let mut case = Case::new(&text("a"));
    case.apply();
    case.main(&text("b"));
    assert!(case.plan_errors().contains("post"));
}

#[test]
fn postconditions_are_checked_where_an_update_comes_to_nothing() {
    let text = |note: &str| {
        format!(
            "resource \"fake_thing\" \"a\" {{\n name = \"a\"\n tags = {{ v = \"{note}\" }}\n}}\n\
             resource \"fake_thing\" \"b\" {{\n name = \"b\"\n value = fake_thing.a.note == \"\" ? \"1\" : \"2\"\n\
             lifecycle {{\n postcondition {{\n condition = fake_thing.a.note == \"note-1\"\n error_message = \"new note\"\n }}\n }}\n}}"
        )
    };
    let mut case = Case::new(&text("1"));
    case.apply();
    case.main(&text("2"));
    case.world.changes();
    let errors = case.apply_errors();
    assert_eq!(case.world.changes(), ["update a"]);
    assert!(errors.contains("new note"), "{errors}");
}

#[test]
fn check_blocks_are_checked_again_when_everything_is_known() {
    let mut case = Case::new(
        r#"
        resource "fake_thing" "a" { name = "a" }
        check "c" {
          assert {
            condition     = fake_thing.a.id == "x"
            error_message = "should be x, not ${fake_thing.a.id}"
          }
        }
        "#,
    );
    let (plan, diagnostics) = case.try_plan();
    assert!(texts(diagnostics.iter()).contains("Check block assertion known after apply"));
    let diagnostics = case.try_apply(&plan.unwrap());
    assert!(texts(diagnostics.iter()).contains("should be x, not id-a-1"), "{}", texts(diagnostics.iter()));
    assert!(!diagnostics.has_errors());
}
