//! Deprecated outputs and variables, and outputs with a type.

use cty::{Marks, Type, Value};

use crate::support::{Case, texts};

const MODULE: &str = r#"
    variable "old" {
      default    = "a"
      deprecated = "Use new."
    }
    output "gone" {
      value      = "v"
      deprecated = "Use kept."
    }
    output "typed" {
      type  = object({ a = string, b = optional(number, 5) })
      value = { a = 1 }
    }
"#;

const ONLY_TYPED: &str = r#"
    output "typed" {
      type  = string
      value = 1
    }
"#;

#[test]
fn uses_of_deprecated_values_are_warned_about_and_nothing_is_marked() {
    let mut case = Case::with_files(&[
        (
            "main.tf",
            r#"
            module "m" {
              source = "./m"
              old    = "x"
            }
            resource "fake_thing" "a" {
              name = module.m.gone
            }
            output "o" { value = { k = module.m.gone } }
            "#,
        ),
        ("m/main.tf", MODULE),
    ]);
    let (plan, diagnostics) = case.try_plan();
    let plan = plan.unwrap();
    let uses: Vec<_> = diagnostics
        .iter()
        .filter(|d| d.summary == "Deprecated value used")
        .collect();
    let mut lines: Vec<_> = uses.iter().map(|d| d.subject.as_ref().unwrap().start.line).collect();
    lines.dedup();
    assert_eq!(lines, [7, 9], "{}", texts(diagnostics.iter()));
    assert!(
        uses.iter()
            .all(|d| d.deprecation_origin.as_deref() == Some("module.m.gone"))
    );
    assert!(
        diagnostics
            .iter()
            .any(|d| d.summary == "Deprecated variable got a value")
    );
    assert_eq!(plan.outputs["o"].after.deep_marks(), Marks::NONE);
    case.apply().assert_settled();
    assert_eq!(case.output("o"), Some(Value::object([("k", Value::string("v"))])));
}

#[test]
fn calls_can_ignore_deprecations() {
    let case = Case::with_files(&[
        (
            "main.tf",
            r#"
            module "n" {
              source                     = "./n"
              ignore_nested_deprecations = true
            }
            "#,
        ),
        (
            "n/main.tf",
            "module \"m\" { source = \"../m\" }\nresource \"fake_thing\" \"a\" { name = module.m.gone }",
        ),
        ("m/main.tf", MODULE),
    ]);
    let (_, diagnostics) = case.try_plan();
    assert!(diagnostics.is_empty(), "{}", texts(diagnostics.iter()));
}

#[test]
fn instances_of_a_module_with_typed_outputs_are_a_list_or_map() {
    let mut case = Case::with_files(&[
        (
            "main.tf",
            r#"
            module "m" {
              source = "./m"
            }
            module "counted" {
              source = "./t"
              count  = 2
            }
            module "each" {
              source   = "./t"
              for_each = toset(["k"])
            }
            output "typed" { value = module.m.typed }
            output "counted" { value = module.counted }
            output "each" { value = module.each }
            "#,
        ),
        ("m/main.tf", MODULE),
        ("t/main.tf", ONLY_TYPED),
    ]);
    case.apply();
    let typed = Value::object([("a", Value::string("1")), ("b", Value::number(5i64))]);
    assert_eq!(case.output("typed"), Some(typed));
    let instance = Value::object([("typed", Value::string("1"))]);
    let ty = Type::object([("typed", Type::String)]);
    let list = Value::list(ty.clone(), vec![instance.clone(), instance.clone()]);
    assert_eq!(case.output("counted"), Some(list));
    assert_eq!(
        case.output("each"),
        Some(Value::map(ty, [("k".into(), instance)].into()))
    );
}

#[test]
fn deprecated_output_of_the_root_module_is_an_error() {
    let case = Case::new("output \"o\" {\n value = 1\n deprecated = \"No.\"\n}");
    assert!(case.plan_errors().contains("Root module output deprecated"));
}
