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
    assert!(
        errors.contains("Invalid value for variable") && errors.contains("Too small: 1."),
        "{errors}"
    );
    // Blocks that use the variable report no errors of their own.
    assert_eq!(errors.matches("Error: ").count(), 1, "{errors}");
    assert!(errors.contains("The validation block is at main.tf:4,"), "{errors}");
    case.variable("n", Value::number(3)).apply();
}

#[test]
fn known_failed_condition_is_a_planning_error() {
    let text = |pre: &str, post: &str| {
        format!(
            "locals {{ one = 1 }}\nresource \"fake_thing\" \"a\" {{\n name = \"a\"\n lifecycle {{\n\
             precondition {{\n condition = {pre}\n error_message = \"pre\"\n }}\n\
             postcondition {{\n condition = {post}\n error_message = \"post\"\n }}\n }}\n}}\n\
             resource \"fake_thing\" \"b\" {{\n name = \"b\"\n value = fake_thing.a.id\n}}"
        )
    };
    let mut case = Case::new(&text("local.one == 2", "self.name == \"a\""));
    assert!(
        case.plan_errors()
            .contains("Resource precondition failed [fake_thing.a]: pre")
    );
    case.main(&text("local.one == 1", "self.name == \"x\""));
    assert!(
        case.plan_errors()
            .contains("Resource postcondition failed [fake_thing.a]: post")
    );
    // A condition that is unknown in the plan is evaluated during apply. If it fails, the object is stored
    // nevertheless.
    case.main(&text("local.one == 1", "self.id == \"x\""));
    let errors = case.apply_errors();
    assert!(errors.contains("Resource postcondition failed"), "{errors}");
    assert_eq!(case.addresses(), ["fake_thing.a"]);
    // The provider created the object without an error, and only the condition failed, so the object is not tainted.
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
    assert!(
        errors.contains("Module output value precondition failed") && errors.contains("not four"),
        "{errors}"
    );
}

#[test]
fn failed_check_block_is_a_warning() {
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
fn failed_precondition_during_apply_affects_its_object_only() {
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
fn postconditions_of_unchanged_objects_are_evaluated() {
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
fn postconditions_are_evaluated_after_update_without_changes() {
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
    // Empties the log of changes.
    case.remote.changes();
    let errors = case.apply_errors();
    // `b` is planned as an update, because the new note of `a` is unknown. The note does not change, so `b` is not updated.
    assert_eq!(case.remote.changes(), ["update a"]);
    assert!(errors.contains("new note"), "{errors}");
}

#[test]
fn check_blocks_are_evaluated_again_after_apply() {
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
    assert!(
        texts(diagnostics.iter()).contains("should be x, not id-a-1"),
        "{}",
        texts(diagnostics.iter())
    );
    assert!(!diagnostics.has_errors());
}

/// Formats check results as `address: status [objects]`.
fn results<'c>(checks: impl IntoIterator<Item = &'c state::CheckResult>) -> Vec<String> {
    checks
        .into_iter()
        .map(|c| {
            let objects: Vec<String> = c
                .objects
                .iter()
                .map(|o| format!(" {}={}{:?}", o.object_addr, o.status.as_str(), o.failure_messages))
                .collect();
            format!("{}: {}{}", c.config_addr, c.status.as_str(), objects.concat())
        })
        .collect()
}

const CHECKED: &str = r#"
    variable "v" {
      default = "x"
      validation {
        condition     = var.v != ""
        error_message = "empty"
      }
    }
    resource "fake_thing" "a" {
      count = 2
      name  = "a${count.index}"
      lifecycle {
        postcondition {
          condition     = self.id != ""
          error_message = "no id"
        }
      }
    }
    resource "fake_thing" "none" {
      count = 0
      lifecycle {
        precondition {
          condition     = var.v == "x"
          error_message = "not x"
        }
      }
    }
    output "o" {
      value = "o"
      precondition {
        condition     = fake_thing.a[0].id != ""
        error_message = "no output"
      }
    }
    check "c" {
      data "fake_lookup" "l" { query = "q" }
      assert {
        condition     = data.fake_lookup.l.result == "result of q"
        error_message = "other result"
      }
      assert {
        condition     = fake_thing.a[1].name == "b"
        error_message = "not b but ${fake_thing.a[1].name}"
      }
    }
"#;

#[test]
fn check_results_are_in_plan_and_state() {
    let mut case = Case::new(CHECKED);
    let plan = case.plan();
    assert_eq!(
        results(&plan.checks),
        [
            r#"check.c: fail check.c=fail["not b but a1"]"#,
            "fake_thing.a: unknown fake_thing.a[0]=unknown[] fake_thing.a[1]=unknown[]",
            "fake_thing.none: pass",
            "output.o: unknown output.o=unknown[]",
            "var.v: pass var.v=pass[]",
        ]
    );
    case.apply();
    let expected = [
        r#"check.c: fail check.c=fail["not b but a1"]"#,
        "fake_thing.a: pass fake_thing.a[0]=pass[] fake_thing.a[1]=pass[]",
        "fake_thing.none: pass",
        "output.o: pass output.o=pass[]",
        "var.v: pass var.v=pass[]",
    ];
    assert_eq!(
        results(case.state.check_results.iter().flat_map(|c| c.iter())),
        expected
    );
    assert_eq!(results(&case.plan().checks), expected);
    // Results of conditions that the configuration no longer has are dropped.
    case.main("");
    assert_eq!(results(&case.plan().checks), [""; 0]);
}

#[test]
fn failed_data_source_of_check_is_a_warning() {
    let mut case = Case::new(CHECKED);
    case.remote.fail("data q");
    let (plan, problems) = case.try_plan();
    let plan = plan.unwrap();
    assert!(!problems.has_errors() && problems.iter().any(|d| d.summary == "Cannot look up"));
    // Apply reads the data source again, because the object may exist by then.
    assert_eq!(
        crate::support::change(&plan, "data.fake_lookup.l").reason,
        engine::plan::Reason::ReadBecauseCheckNested
    );
    assert!(
        results(&plan.checks)[0].starts_with("check.c: fail check.c=fail[\"Cannot look up: Nothing found.\""),
        "{:?}",
        results(&plan.checks)
    );
    let problems = case.try_apply(&plan);
    assert!(!problems.has_errors(), "{}", texts(problems.iter()));
    assert_eq!(case.remote.names(), ["a0", "a1"]);
    case.remote.heal();
    case.apply();
    let results = results(case.state.check_results.iter().flat_map(|c| c.iter()));
    assert_eq!(results[0], r#"check.c: fail check.c=fail["not b but a1"]"#);
}

#[test]
fn validations_of_module_variables_are_evaluated_before_dependents() {
    let child = r#"
        variable "v" {
          validation {
            condition     = var.v != "id-a-1"
            error_message = "not this one"
          }
        }
        resource "fake_thing" "inner" { name = "inner-${var.v}" }
    "#;
    let main = r#"
        resource "fake_thing" "a" { name = "a" }
        module "m" {
          source = "./m"
          v      = fake_thing.a.id
        }
    "#;
    let mut case = Case::with_files(&[("main.tf", main), ("m/main.tf", child)]);
    let errors = case.apply_errors();
    assert!(errors.contains("not this one"), "{errors}");
    // `inner` was not created, because its variable had failed before.
    assert_eq!(case.remote.names(), ["a"]);
}

#[test]
fn failed_conditions_are_warnings_in_refresh_only_plan() {
    let mut case = Case::new(
        r#"
        resource "fake_thing" "a" {
          name = "a"
          lifecycle {
            postcondition {
              condition     = self.value == null
              error_message = "has a value"
            }
          }
        }
        "#,
    );
    case.apply();
    case.remote.drift("a", "value", Value::string("v"));
    case.options.mode = engine::plan::Mode::RefreshOnly;
    // The condition is not about this plan, which must succeed so that the state can record the object as it is.
    let (plan, problems) = case.try_plan();
    assert!(problems.iter().any(|d| d.detail == "has a value"), "{problems:?}");
    assert_eq!(
        results(&plan.unwrap().checks),
        [r#"fake_thing.a: fail fake_thing.a=fail["has a value"]"#]
    );
}

#[test]
fn condition_is_judged_when_its_message_is_known() {
    let main = "module \"m\" {\n source = \"./m\"\n name = \"web\"\n n = 7\n}";
    let child = r#"
        variable "name" { type = string }
        locals { allowed = [1, 2, 4] }
        variable "n" {
          type = number
          validation {
            condition     = var.n < 3
            error_message = "${var.name}: not ${var.n}; allowed: ${jsonencode(local.allowed)}."
          }
        }
    "#;
    let case = Case::with_files(&[("main.tf", main), ("m/main.tf", child)]);
    assert_eq!(texts(&case.validate()), "");
    let errors = case.plan_errors();
    assert!(errors.contains("web: not 7; allowed: [1,2,4]."), "{errors}");
    // The message now has no references, so it is known in validation.
    let child = child.replace("${var.name}", "n");
    let child = child.replace("${jsonencode(local.allowed)}", "few");
    let case = Case::with_files(&[("main.tf", main), ("m/main.tf", &child)]);
    let problems = texts(&case.validate());
    assert!(problems.contains("n: not 7; allowed: few."), "{problems}");
}

#[test]
fn message_that_is_not_known_in_a_plan_is_reported() {
    let case = Case::new(
        r#"
        resource "fake_thing" "b" { name = "b" }
        resource "fake_thing" "a" {
          name = "a"
          lifecycle {
            precondition {
              condition     = fake_thing.b.name == "c"
              error_message = "It is ${fake_thing.b.id}."
            }
            precondition {
              condition     = fake_thing.b.name == "c"
              error_message = fake_thing.b.value
            }
          }
        }
        "#,
    );
    let errors = case.plan_errors();
    assert!(
        errors.contains("Its message depends on values that are known only after apply."),
        "{errors}"
    );
    assert!(errors.contains("Its message is null."), "{errors}");
}
