//! `count` and `for_each`, on resources and modules.

use cty::Value;
use engine::plan::Reason;

use crate::support::{Case, actions, change, texts};

fn counted(n: usize) -> String {
    format!("resource \"fake_thing\" \"n\" {{\n count = {n}\n name = \"n${{count.index}}\"\n}}\n")
}

#[test]
fn count_grows_and_shrinks() {
    let mut case = Case::new(&counted(2));
    case.apply();
    assert_eq!(case.addresses(), ["fake_thing.n[0]", "fake_thing.n[1]"]);
    case.main(&counted(4));
    assert_eq!(actions(&case.plan()), ["+ fake_thing.n[2]", "+ fake_thing.n[3]"]);
    case.apply();
    case.main(&counted(1));
    let plan = case.plan();
    assert_eq!(
        actions(&plan),
        ["- fake_thing.n[1]", "- fake_thing.n[2]", "- fake_thing.n[3]"]
    );
    assert_eq!(change(&plan, "fake_thing.n[3]").reason, Reason::DeleteBecauseCountIndex);
    case.apply();
    assert_eq!(case.remote.names(), ["n0"]);
    case.main(&counted(0)).apply();
    assert!(case.state.is_empty());
}

#[test]
fn for_each_creates_and_destroys_by_key() {
    let text = |keys: &str| {
        format!(
            "resource \"fake_thing\" \"n\" {{\n for_each = {{ {keys} }}\n name = each.key\n value = each.value\n}}\n"
        )
    };
    let mut case = Case::new(&text(r#"a = "1", b = "2""#));
    case.apply();
    case.main(&text(r#"b = "3", c = "4""#));
    let plan = case.plan();
    assert_eq!(
        actions(&plan),
        [
            r#"- fake_thing.n["a"]"#,
            r#"~ fake_thing.n["b"]"#,
            r#"+ fake_thing.n["c"]"#
        ]
    );
    assert_eq!(
        change(&plan, r#"fake_thing.n["a"]"#).reason,
        Reason::DeleteBecauseEachKey
    );
    case.apply();
    assert_eq!(case.remote.names(), ["b", "c"]);
}

#[test]
fn change_of_repetition_argument_replaces_objects() {
    let mut case = Case::new(&counted(1));
    case.apply();
    case.main("resource \"fake_thing\" \"n\" {\n for_each = toset([\"k\"])\n name = each.key\n}");
    let plan = case.plan();
    assert_eq!(actions(&plan), ["- fake_thing.n[0]", r#"+ fake_thing.n["k"]"#]);
    assert_eq!(
        change(&plan, "fake_thing.n[0]").reason,
        Reason::DeleteBecauseWrongRepetition
    );
    case.apply();
    // An instance with a key of for_each is not moved to the single instance, unlike one with index 0.
    case.main("resource \"fake_thing\" \"n\" { name = \"single\" }");
    assert_eq!(actions(&case.plan()), ["+ fake_thing.n", r#"- fake_thing.n["k"]"#]);
    case.apply();
    assert_eq!(case.remote.names(), ["single"]);
}

const CHILD: &str = r#"
    variable "name" {}
    resource "fake_thing" "t" {
      count = 2
      name  = "${var.name}-${count.index}"
    }
    output "ids" { value = fake_thing.t[*].id }
"#;

#[test]
fn modules_with_count_and_for_each() {
    let main = |keys: &str| {
        format!(
            "module \"m\" {{\n source = \"./m\"\n for_each = toset([{keys}])\n name = each.key\n}}\n\
             output \"ids\" {{ value = {{ for k, m in module.m : k => m.ids }} }}"
        )
    };
    let mut case = Case::with_files(&[("main.tf", &main(r#""a", "b""#)), ("m/main.tf", CHILD)]);
    case.apply();
    assert_eq!(case.remote.names(), ["a-0", "a-1", "b-0", "b-1"]);
    assert_eq!(case.output("ids").unwrap().get("b").unwrap().len(), Some(2));
    case.files(&[("main.tf", &main(r#""b", "c""#)), ("m/main.tf", CHILD)]);
    let plan = case.plan();
    assert_eq!(
        actions(&plan),
        [
            r#"- module.m["a"].fake_thing.t[0]"#,
            r#"- module.m["a"].fake_thing.t[1]"#,
            r#"+ module.m["c"].fake_thing.t[0]"#,
            r#"+ module.m["c"].fake_thing.t[1]"#,
        ]
    );
    assert_eq!(
        change(&plan, r#"module.m["a"].fake_thing.t[0]"#).reason,
        Reason::DeleteBecauseNoModule
    );
    case.apply();
    case.assert_settled();
    case.files(&[("main.tf", "")]).apply();
    assert!(case.remote.names().is_empty());
}

#[test]
fn module_instances_are_referenced_by_index() {
    let main = r#"
        module "m" {
          source = "./m"
          count  = 2
          name   = "m${count.index}"
        }
        resource "fake_thing" "last" {
          name  = "last"
          value = module.m[1].ids[0]
        }
    "#;
    let mut case = Case::with_files(&[("main.tf", main), ("m/main.tf", CHILD)]);
    case.apply();
    assert_eq!(
        case.attribute("fake_thing.last", "value"),
        case.attribute("module.m[1].fake_thing.t[0]", "id")
    );
    case.assert_settled();
}

#[test]
fn unknown_count_is_an_error_with_advice() {
    let case = Case::new(
        r#"
        resource "fake_thing" "a" { name = "a" }
        resource "fake_thing" "b" { count = length(fake_thing.a.id) }
        resource "fake_thing" "c" { for_each = toset([fake_thing.a.id]) }
        "#,
    );
    let errors = case.plan_errors();
    assert!(errors.contains("Invalid count argument"), "{errors}");
    assert!(errors.contains("Invalid for_each argument"), "{errors}");
    assert!(errors.contains("-target"), "{errors}");
}

#[test]
fn count_becomes_known_after_targeted_apply() {
    let mut case = Case::new(
        r#"
        resource "fake_thing" "a" { name = "a" }
        resource "fake_thing" "b" {
          count = fake_thing.a.id == "" ? 0 : 1
          name  = "b"
        }
        "#,
    );
    // The ID of `a` is not known before it exists.
    case.plan_errors();
    case.target(&["fake_thing.a"]).apply();
    case.target(&[]).apply();
    assert_eq!(case.remote.names(), ["a", "b"]);
}

#[test]
fn count_from_variable() {
    let mut case = Case::new(
        "variable \"n\" { type = number }\nresource \"fake_thing\" \"n\" {\n count = var.n\n name = \"n\"\n}",
    );
    case.variable("n", Value::number(3)).apply();
    assert_eq!(case.addresses().len(), 3);
    case.variable("n", Value::number(-1));
    assert!(case.plan_errors().contains("Invalid count argument"));
}

#[test]
fn count_instances_are_ordered_numerically() {
    let mut case = Case::new(&counted(12));
    case.apply();
    let addresses = case.addresses();
    // Keys are sorted as numbers: as text, n[10] would come before n[2].
    assert_eq!(addresses[2], "fake_thing.n[2]");
    assert_eq!(addresses[11], "fake_thing.n[11]");
}

#[test]
fn count_has_a_limit() {
    let case = Case::new("resource \"fake_thing\" \"a\" {\n count = 4294967296\n name = \"a\"\n}");
    let errors = case.plan_errors();
    assert!(
        errors.contains("The value of \"count\" is 4294967296") && errors.contains("MONOFORM_MAX_ELEMENTS"),
        "{errors}"
    );
}

#[test]
fn block_without_instances_names_ephemeral_values_only_of_modules() {
    let text = |count: &str, value: &str| {
        format!(
            "variable \"e\" {{\n ephemeral = true\n default = \"x\"\n}}\n\
             variable \"n\" {{\n default = 0\n}}\n\
             module \"m\" {{\n source = \"./m\"\n}}\n\
             locals {{\n of_variable = var.e\n of_module = module.m.o\n}}\n\
             resource \"fake_thing\" \"a\" {{\n {count}\n name = {value}\n}}"
        )
    };
    let module = "variable \"v\" {\n ephemeral = true\n default = \"y\"\n}\noutput \"o\" {\n value = var.v\n ephemeral = true\n}";
    let case = |count: &str, value: &str| Case::with_files(&[("main.tf", &text(count, value)), ("m/m.tf", module)]);
    for none in ["count = 0", "count = var.n", "for_each = {}", "for_each = toset([])"] {
        // As in Terraform, these values are invalid whatever the count is.
        for value in ["var.e", "local.of_variable"] {
            let errors = texts(&case(none, value).validate());
            assert!(
                errors.contains("Invalid use of ephemeral value"),
                "{none}, {value}: {errors}"
            );
        }
        for value in ["module.m.o", "local.of_module"] {
            let case = case(none, value);
            assert_eq!(texts(&case.validate()), "", "{none}, {value}");
            assert!(case.plan().changes.is_empty(), "{none}, {value}");
        }
    }
    for some in ["", "count = 1", "count = var.n + 1"] {
        for value in ["var.e", "module.m.o"] {
            let errors = case(some, value).plan_errors();
            assert!(
                errors.contains("Invalid use of ephemeral value"),
                "{some}, {value}: {errors}"
            );
        }
    }
}
