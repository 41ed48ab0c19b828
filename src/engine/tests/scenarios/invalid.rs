//! Validation before planning: all errors are found before an object is refreshed, planned or opened.

use engine::plan::Mode;

use crate::support::Case;

const VALID: &str = r#"
    resource "fake_thing" "a" { name = "a" }
    resource "fake_thing" "b" { name = "b" }
    data "fake_lookup" "d" { query = "d" }
    ephemeral "fake_ticket" "t" { name = "t" }
    provider "other" { token = ephemeral.fake_ticket.t.secret }
    resource "other_thing" "o" { name = "o" }
"#;

/// Errors of several kinds, each in a separate block.
const MISTAKES: &str = r#"
    resource "fake_thing" "wrong" { value = "invalid" }
    resource "fake_thing" "unknown" { nmae = "x" }
    output "undeclared" { value = local.nothing }
    locals { call = nope(1) }
"#;

fn case() -> Case {
    let mut case = Case::new(VALID);
    case.apply();
    case.main(&format!("{VALID}{MISTAKES}"));
    case.remote.take_log();
    case
}

fn assert_refused(case: &Case) {
    let (plan, problems) = case.try_plan();
    assert!(plan.is_none());
    let errors = crate::support::errors(&problems);
    for part in ["The value is invalid", "nmae", "local value", "nope"] {
        assert!(errors.contains(part), "{part} is missing in:\n{errors}");
    }
    assert_eq!(case.remote.take_log(), Vec::<String>::new());
}

#[test]
fn plan_of_invalid_configuration_reports_all_errors_without_calls() {
    assert_refused(&case());
}

#[test]
fn refresh_of_invalid_configuration_reports_all_errors_without_calls() {
    let mut case = case();
    case.options.mode = Mode::RefreshOnly;
    assert_refused(&case);
}

#[test]
fn destroy_plan_of_invalid_configuration_reports_all_errors_without_calls() {
    let mut case = case();
    case.options.mode = Mode::Destroy;
    assert_refused(&case);
}

#[test]
fn plan_with_valid_targets_reports_all_errors_without_calls() {
    let mut case = case();
    case.target(&["fake_thing.a"]);
    assert_refused(&case);
}

#[test]
fn instances_are_not_validated_before_planning() {
    let case = Case::new(r#"resource "fake_thing" "a" { count = 50 }"#);
    case.plan();
    // The block is validated once, and each instance again when it is planned.
    assert_eq!(case.remote.lock().validated, 51);
}

#[test]
fn module_with_many_calls_is_validated_once() {
    let mut main = String::new();
    for i in 0..40 {
        main.push_str(&format!(
            "module \"m{i}\" {{\n  source = \"./m\"\n  name = \"n{i}\"\n}}\n"
        ));
    }
    let module = r#"
        variable "name" {}
        resource "fake_thing" "t" { name = var.name }
    "#;
    let case = Case::with_files(&[("main.tf", &main), ("m/main.tf", module)]);
    assert!(!case.validate().has_errors());
    assert_eq!(case.remote.lock().validated, 1);
    // The module is called several times, but an error in it is reported once.
    let module = r#"
        variable "name" {}
        resource "fake_thing" "t" { value = "invalid" }
    "#;
    let case = Case::with_files(&[("main.tf", &main), ("m/main.tf", module)]);
    assert_eq!(
        case.validate().iter().filter(|d| d.summary == "Invalid value").count(),
        1
    );
}

#[test]
fn validation_warnings_are_reported_once_by_every_kind_of_plan() {
    let main = r#"
        resource "fake_thing" "a" {
          count = 3
          name  = "a"
          lifecycle { ignore_changes = [note] }
        }
    "#;
    let mut case = Case::new(main);
    case.apply();
    for mode in [Mode::Normal, Mode::RefreshOnly, Mode::Destroy] {
        case.options.mode = mode;
        let (_, problems) = case.try_plan();
        let redundant = problems
            .iter()
            .filter(|d| d.summary.contains("Redundant ignore_changes"));
        assert_eq!(redundant.count(), 1, "{mode:?}");
    }
}
