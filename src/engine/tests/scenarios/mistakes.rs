//! Errors in configurations, and their messages.

use crate::support::Case;

fn errors(main: &str) -> String {
    Case::new(main).plan_errors()
}

#[test]
fn cycle_is_reported_as_a_path() {
    let text = errors(
        r#"
        locals {
          x = fake_thing.a.id
        }
        resource "fake_thing" "a" { value = fake_thing.b.id }
        resource "fake_thing" "b" { value = local.x }
        "#,
    );
    assert!(text.contains("Cycle: "), "{text}");
    for name in ["local.x", "fake_thing.a", "fake_thing.b"] {
        assert!(text.contains(name), "{text}");
    }
    assert!(text.contains("is needed by"), "{text}");
}

#[test]
fn cycle_through_modules() {
    let case = Case::with_files(&[
        ("main.tf", "module \"m\" {\n source = \"./m\"\n in = module.m.out\n}"),
        ("m/main.tf", "variable \"in\" {}\noutput \"out\" { value = var.in }"),
    ]);
    let text = case.plan_errors();
    assert!(
        text.contains("Cycle: ") && text.contains("module.m.var.in") && text.contains("module.m.output.out"),
        "{text}"
    );
}

#[test]
fn self_reference_is_an_error() {
    let text = errors("resource \"fake_thing\" \"a\" { value = fake_thing.a.id }");
    assert!(text.contains("Self-referential block"), "{text}");
    let text = errors("resource \"fake_thing\" \"a\" {\n count = 2\n value = fake_thing.a[0].id\n}");
    assert!(text.contains("Self-referential block"), "{text}");
}

#[test]
fn undeclared_names_get_suggestions() {
    let text = errors(
        r#"
        variable "region" { default = "x" }
        locals { zone = "z" }
        resource "fake_thing" "server" { name = var.regoin }
        resource "fake_thing" "b" { name = local.zonne }
        resource "fake_thing" "c" { name = fake_thing.servr.id }
        resource "fake_thing" "d" { name = module.nowhere.x }
        resource "fake_thing" "e" { name = data.fake_lookup.x.result }
        "#,
    );
    assert!(
        text.contains("Reference to undeclared input variable") && text.contains("Did you mean \"region\"?"),
        "{text}"
    );
    assert!(
        text.contains("Reference to undeclared local value") && text.contains("Did you mean \"zone\"?"),
        "{text}"
    );
    assert!(
        text.contains("Reference to undeclared resource") && text.contains("fake_thing.server"),
        "{text}"
    );
    assert!(text.contains("Reference to undeclared module"), "{text}");
    assert!(text.contains("data resource \"fake_lookup\" \"x\""), "{text}");
    assert_eq!(text.matches("Error: ").count(), 5, "all of them in one go:\n{text}");
}

#[test]
fn unknown_types_and_arguments() {
    let text = errors("resource \"fake_thng\" \"a\" {}");
    assert!(
        text.contains("Invalid resource type") && text.contains("fake_thing"),
        "{text}"
    );
    let text = errors("resource \"fake_thing\" \"a\" { valeu = \"x\" }");
    assert!(
        text.contains("Unsupported argument") && text.contains("\"value\""),
        "{text}"
    );
    let text = errors("data \"fake_lookup\" \"a\" {}");
    assert!(text.contains("Missing required argument"), "{text}");
    let text = errors("resource \"fake_thing\" \"a\" {\n rule {\n  label = \"x\"\n }\n}");
    assert!(
        text.contains("Missing required argument") && text.contains("port"),
        "{text}"
    );
}

#[test]
fn reference_without_instance_key_is_an_error() {
    let text = errors(
        r#"
        resource "fake_thing" "n" { count = 2 }
        resource "fake_thing" "m" { value = fake_thing.n.id }
        "#,
    );
    assert!(
        text.contains("Missing resource instance key") && text.contains("fake_thing.n[count.index]"),
        "{text}"
    );
    let text = errors(
        r#"
        resource "fake_thing" "n" { count = 2 }
        resource "fake_thing" "m" { value = fake_thing.n[2].id }
        "#,
    );
    assert!(text.contains("Invalid index"), "{text}");
}

#[test]
fn ephemeral_values_in_objects_are_errors() {
    let text = errors(
        r#"
        variable "token" {
          default   = "x"
          ephemeral = true
        }
        resource "fake_thing" "a" { value = var.token }
        "#,
    );
    assert!(text.contains("Invalid use of ephemeral value"), "{text}");
    let text = errors(
        r#"
        variable "token" {
          default   = "x"
          ephemeral = true
        }
        output "t" { value = var.token }
        "#,
    );
    assert!(text.contains("ephemeral"), "{text}");
}

#[test]
fn error_with_many_dependents_is_reported_once() {
    let text = errors(
        r#"
        locals { bad = 1 + "x" }
        resource "fake_thing" "a" {
          count = 3
          value = local.bad
        }
        resource "fake_thing" "b" { value = fake_thing.a[0].id }
        output "o" { value = local.bad }
        "#,
    );
    assert_eq!(text.matches("Error: ").count(), 1, "{text}");
}

#[test]
fn errors_in_different_blocks_are_all_reported() {
    let text = errors(
        r#"
        resource "fake_thing" "a" { value = 1 + "x" }
        resource "fake_thing" "b" { value = upper() }
        output "o" { value = [1][3] }
        "#,
    );
    assert_eq!(text.matches("Error: ").count(), 3, "{text}");
}

#[test]
fn condition_must_be_a_boolean() {
    let of = |condition: &str| {
        errors(&format!(
            "variable \"v\" {{\n default = null\n}}\nresource \"fake_thing\" \"a\" {{\n name = \"a\"\n lifecycle {{\n precondition {{\n \
             condition = {condition}\n error_message = \"m\"\n }}\n }}\n}}"
        ))
    };
    let null = of("var.v == null ? null : true");
    assert!(
        null.contains("Invalid condition result") && null.contains("is null, where true or false is required"),
        "{null}"
    );
    let text = of("terraform.workspace");
    assert!(
        text.contains("Invalid condition result: Invalid condition result value: "),
        "{text}"
    );
}

#[test]
fn replace_triggered_by_with_invalid_key_is_an_error() {
    let case = Case::new(
        r#"
        resource "fake_thing" "a" {
          count = 2
          name  = "a${count.index}"
        }
        resource "fake_thing" "b" {
          count = 2
          name  = "b${count.index}"
          lifecycle { replace_triggered_by = [fake_thing.a[count.index - 1]] }
        }
        "#,
    );
    let errors = case.plan_errors();
    assert_eq!(
        errors,
        "Error: Invalid instance key: The key of a resource instance must be a string or a whole number that is known during \
         planning."
    );
}
