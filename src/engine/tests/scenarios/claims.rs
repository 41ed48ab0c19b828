//! Claims of a plan on its state: the parts that the plan changes, and the parts that these depend on.

use engine::plan::Mode;
use state::Claims;

use crate::support::Case;

/// Returns the claimed objects, the claimed outputs and the needed resources, each as text. If only one instance of a module is needed, the
/// resource is prefixed with that module instance.
fn texts(claims: &Claims) -> [String; 3] {
    let needed = claims.needed.iter().map(|scope| match scope.within.is_root() {
        true => scope.resource.to_string(),
        false => format!("{}: {}", scope.within, scope.resource),
    });
    [
        claims
            .objects
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>()
            .join(" "),
        claims.outputs.iter().map(|name| &**name).collect::<Vec<_>>().join(" "),
        needed.collect::<Vec<_>>().join(" "),
    ]
}

const CHAIN: &str = r#"
    resource "fake_thing" "a" { name = "a" }
    locals { id = fake_thing.a.id }
    resource "fake_thing" "b" {
      name  = "b"
      value = local.id
    }
    resource "fake_thing" "c" {
      name       = "c"
      depends_on = [fake_thing.b]
    }
    resource "fake_thing" "d" { name = "d" }
    output "b" { value = fake_thing.b.id }
    output "d" { value = fake_thing.d.id }
"#;

#[test]
fn changes_are_claimed_with_all_that_they_depend_on() {
    let mut case = Case::new(CHAIN);
    let all = "fake_thing.a fake_thing.b fake_thing.c fake_thing.d";
    assert_eq!(texts(&case.claims()), [all, "b d", "fake_thing.a fake_thing.b"]);
    case.apply();
    assert_eq!(texts(&case.claims()), ["", "", ""]);
    case.replace(&["fake_thing.c"]);
    assert_eq!(texts(&case.claims()), ["fake_thing.c", "", "fake_thing.a fake_thing.b"]);
    case.replace(&["fake_thing.d"]);
    assert_eq!(texts(&case.claims()), ["fake_thing.d", "d", ""]);
}

#[test]
fn objects_without_configuration_need_what_is_recorded_and_moves_claim_both_addresses() {
    let mut case = Case::new(CHAIN);
    case.apply();
    case.main("resource \"fake_thing\" \"a\" { name = \"a\" }\nresource \"fake_thing\" \"b\" {\n name = \"b\"\n value = fake_thing.a.id\n}\n\
               resource \"fake_thing\" \"e\" { name = \"d\" }\nmoved {\n from = fake_thing.d\n to = fake_thing.e\n}");
    assert_eq!(
        texts(&case.claims()),
        [
            "fake_thing.c fake_thing.d fake_thing.e",
            "b d",
            "fake_thing.a fake_thing.b"
        ]
    );
}

#[test]
fn a_refresh_claims_what_it_has_found() {
    let mut case = Case::new(CHAIN);
    case.apply();
    case.remote.drift("d", "value", cty::Value::string("drifted"));
    case.options.mode = Mode::RefreshOnly;
    assert_eq!(texts(&case.claims()), ["fake_thing.d", "", ""]);
}

#[test]
fn dependencies_in_a_module_instance_are_on_that_instance_unless_they_lead_through_the_caller() {
    let mut case = Case::with_files(&[
        (
            "main.tf",
            r#"
            module "m" {
              source   = "./m"
              for_each = toset(["x", "y"])
            }
            module "n" {
              source   = "./n"
              for_each = module.m
              id       = each.value.id
            }
            "#,
        ),
        (
            "m/main.tf",
            r#"
            resource "fake_thing" "a" { name = "a" }
            resource "fake_thing" "b" {
              name  = "b"
              value = fake_thing.a.id
            }
            output "id" { value = fake_thing.b.id }
            "#,
        ),
        (
            "n/main.tf",
            r#"
            variable "id" {}
            resource "fake_thing" "c" { name = "c" }
            resource "fake_thing" "d" {
              name  = "d"
              value = "${fake_thing.c.id} ${var.id}"
            }
            "#,
        ),
    ]);
    case.target(&["module.m[\"x\"].fake_thing.b"]);
    assert_eq!(
        texts(&case.claims()),
        [
            // The targeted instance depends on the whole resource `a`, because dependencies are between resources.
            "module.m[\"x\"].fake_thing.a module.m[\"x\"].fake_thing.b module.m[\"y\"].fake_thing.a",
            "",
            "module.m[\"x\"]: module.m.fake_thing.a"
        ]
    );
    case.target(&[]);
    let claims = case.claims();
    let [_, _, needed] = texts(&claims);
    assert_eq!(
        needed,
        "module.m.fake_thing.a module.m.fake_thing.b module.m[\"x\"]: module.m.fake_thing.a module.m[\"y\"]: module.m.fake_thing.a \
         module.n[\"x\"]: module.n.fake_thing.c module.n[\"y\"]: module.n.fake_thing.c"
    );
    let x = crate::support::instance("module.m[\"x\"].fake_thing.a");
    assert!(claims.needs(&x) && claims.within().len() == 12, "{claims:?}");
}
