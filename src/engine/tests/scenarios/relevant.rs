//! Relevant attributes of a plan.

use crate::support::Case;

fn relevant(case: &Case) -> Vec<String> {
    case.plan()
        .relevant_attributes
        .iter()
        .map(|(address, path)| format!("{address} {path}"))
        .collect()
}

#[test]
fn relevant_attributes_follow_references() {
    let case = Case::with_files(&[
        (
            "main.tf",
            r#"
            resource "fake_thing" "a" { name = "a" }
            resource "fake_thing" "b" {
              count = 2
              name  = fake_thing.a.name
            }
            resource "fake_thing" "counted" { count = length(fake_thing.not.tags) }
            resource "fake_thing" "not" { tags = {} }
            resource "fake_thing" "each" {
              for_each = toset([fake_thing.keyed.name])
              value    = each.key
            }
            resource "fake_thing" "keyed" { name = "k" }
            resource "fake_thing" "in" { name = "in" }
            locals { l = fake_thing.local.note }
            resource "fake_thing" "local" {}
            resource "fake_thing" "c" {
              name       = "${fake_thing.b[0].name} ${fake_thing.b[1].id} ${local.l} ${module.m.x}"
              depends_on = [fake_thing.not]
            }
            module "m" {
              source = "./m"
              v      = fake_thing.in.id
            }
            output "o" { value = fake_thing.b[*].value }
            "#,
        ),
        (
            "m/main.tf",
            r#"
            variable "v" {}
            resource "fake_thing" "t" { name = "t" }
            output "x" { value = var.v }
            output "y" { value = fake_thing.t.id }
            "#,
        ),
    ]);
    assert_eq!(
        relevant(&case),
        [
            "fake_thing.a .name",
            "fake_thing.b ",
            "fake_thing.b[0] .name",
            "fake_thing.b[1] .id",
            "fake_thing.in .id",
            "fake_thing.keyed .name",
            "fake_thing.local .note",
            "module.m.fake_thing.t .id",
        ]
    );
}

#[test]
fn relevant_attributes_are_those_of_changed_resources() {
    let text = |value: &str| {
        format!(
            "resource \"fake_thing\" \"a\" {{ name = \"a\" }}\n\
             resource \"fake_thing\" \"b\" {{\n name = \"b\"\n value = fake_thing.a.id\n}}\n\
             resource \"fake_thing\" \"c\" {{\n name = \"c{value}\"\n value = fake_thing.a.name\n}}"
        )
    };
    let mut case = Case::new(&text(""));
    case.apply();
    assert!(relevant(&case).is_empty());
    case.main(&text("c"));
    assert_eq!(relevant(&case), ["fake_thing.a .name"]);
}
