//! The order of creation and destruction.

use crate::support::remote::assert_before;
use crate::support::{Case, actions, attributes};

#[test]
fn references_order_creation_and_destruction() {
    let mut case = Case::new(
        r#"
        resource "fake_thing" "a" { name = "a" }
        resource "fake_thing" "b" {
          name  = "b"
          value = fake_thing.a.id
        }
        locals { from_b = "x-${fake_thing.b.id}" }
        resource "fake_thing" "c" {
          name  = "c"
          value = local.from_b
        }
        "#,
    );
    case.apply();
    let log = case.remote.take_log();
    assert_before(&log, "create a", "create b");
    assert_before(&log, "create b", "create c");
    assert_eq!(
        case.attribute("fake_thing.b", "value"),
        case.attribute("fake_thing.a", "id")
    );
    assert_eq!(
        case.attribute("fake_thing.c", "value"),
        format!("x-{}", case.attribute("fake_thing.b", "id").as_str().unwrap())
    );
    case.assert_settled();
    case.destroy();
    let log = case.remote.take_log();
    assert_before(&log, "delete c", "delete b");
    assert_before(&log, "delete b", "delete a");
    assert!(case.state.is_empty());
    assert!(case.remote.names().is_empty());
}

#[test]
fn values_pass_into_and_out_of_modules() {
    let mut case = Case::with_files(&[
        (
            "main.tf",
            r#"
            resource "fake_thing" "first" { name = "first" }
            module "mid" {
              source = "./mid"
              in     = fake_thing.first.id
            }
            resource "fake_thing" "last" {
              name  = "last"
              value = module.mid.out
            }
            "#,
        ),
        (
            "mid/main.tf",
            r#"
            variable "in" {}
            resource "fake_thing" "inner" {
              name  = "inner"
              value = var.in
            }
            output "out" { value = fake_thing.inner.id }
            "#,
        ),
    ]);
    case.apply();
    let log = case.remote.take_log();
    assert_before(&log, "create first", "create inner");
    assert_before(&log, "create inner", "create last");
    assert_eq!(
        case.attribute("fake_thing.last", "value"),
        case.attribute("module.mid.fake_thing.inner", "id")
    );
    case.assert_settled();
    case.destroy();
    let log = case.remote.take_log();
    assert_before(&log, "delete last", "delete inner");
    assert_before(&log, "delete inner", "delete first");
}

#[test]
fn depends_on_orders_without_references() {
    let mut case = Case::with_files(&[
        (
            "main.tf",
            r#"
            resource "fake_thing" "a" { name = "a" }
            resource "fake_thing" "b" {
              name       = "b"
              depends_on = [fake_thing.a]
            }
            module "m" {
              source     = "./m"
              depends_on = [fake_thing.b]
            }
            resource "fake_thing" "z" {
              name       = "z"
              depends_on = [module.m]
            }
            "#,
        ),
        ("m/main.tf", r#"resource "fake_thing" "in" { name = "in" }"#),
    ]);
    case.apply();
    let log = case.remote.take_log();
    assert_before(&log, "create a", "create b");
    assert_before(&log, "create b", "create in");
    assert_before(&log, "create in", "create z");
    case.destroy();
    let log = case.remote.take_log();
    assert_before(&log, "delete z", "delete in");
    assert_before(&log, "delete in", "delete b");
    assert_before(&log, "delete b", "delete a");
}

#[test]
fn orphans_are_destroyed_in_recorded_order() {
    let mut case = Case::new(
        r#"
        resource "fake_thing" "a" { name = "a" }
        resource "fake_thing" "b" {
          name  = "b"
          value = fake_thing.a.id
        }
        resource "fake_thing" "c" {
          name       = "c"
          depends_on = [fake_thing.b]
        }
        "#,
    );
    case.apply();
    case.remote.take_log();
    case.main("");
    assert_eq!(
        actions(&case.plan()),
        ["- fake_thing.a", "- fake_thing.b", "- fake_thing.c"]
    );
    case.apply();
    let log = case.remote.take_log();
    assert_before(&log, "delete c", "delete b");
    assert_before(&log, "delete b", "delete a");
    assert!(case.state.is_empty());
}

#[test]
fn dependency_added_without_change_orders_later_destruction() {
    let mut case = Case::new(
        r#"
        resource "fake_thing" "a" { name = "a" }
        resource "fake_thing" "b" { name = "b" }
        "#,
    );
    case.apply();
    case.main(
        r#"
        resource "fake_thing" "a" { name = "a" }
        resource "fake_thing" "b" {
          name       = "b"
          depends_on = [fake_thing.a]
        }
        "#,
    );
    case.apply();
    // Deletions are slow, so that they would overlap if they were not ordered.
    for world_turns in ["delete a", "delete b"] {
        case.remote.lock().turns.insert(world_turns.into(), 20);
    }
    case.main("");
    case.remote.take_log();
    case.apply();
    assert_before(&case.remote.take_log(), "delete b", "delete a");
}

#[test]
fn deletion_precedes_update_of_dependency() {
    let mut case = Case::new(
        r#"
        resource "fake_thing" "a" {
          name  = "a"
          value = "1"
        }
        resource "fake_thing" "b" {
          name  = "b"
          value = fake_thing.a.id
        }
        "#,
    );
    case.apply();
    case.main(
        r#"
        resource "fake_thing" "a" {
          name  = "a"
          value = "2"
        }
        "#,
    );
    case.remote.take_log();
    // The deletion is slow, so that without an order the update would begin before the deletion ends.
    case.remote.lock().turns.insert("delete b".into(), 50);
    case.apply();
    assert_before(&case.remote.take_log(), "delete b", "update a");
}

#[test]
fn plan_is_independent_of_response_order() {
    let text = r#"
        resource "fake_thing" "n" {
          count = 12
          name  = "n${count.index}"
        }
        resource "fake_thing" "m" {
          for_each = toset(["x", "y", "z"])
          name     = each.key
          value    = join(",", fake_thing.n[*].id)
        }
        output "all" { value = [for m in fake_thing.m : m.id] }
    "#;
    let mut plans = Vec::new();
    let mut orders = Vec::new();
    for seed in 0..4 {
        let mut case = Case::new(text);
        // The seed determines how long requests take, and so the order of responses.
        case.remote.lock().seed = seed * 7919;
        let plan = case.plan();
        plans.push(format!("{:?} {:?} {:?}", plan.changes, plan.outputs, plan.graph));
        let diagnostics = case.try_apply(&plan);
        assert!(!diagnostics.has_errors());
        orders.push(case.remote.take_log());
    }
    assert!(plans.iter().all(|p| *p == plans[0]));
    assert!(
        orders.iter().any(|o| *o != orders[0]),
        "the answers should really have come in different orders"
    );
}

#[test]
fn parallelism_limits_operations() {
    let mut case = Case::new(
        r#"
        resource "fake_thing" "n" {
          count = 30
          name  = "n${count.index}"
        }
        "#,
    );
    case.parallelism = 3;
    case.apply();
    let (mut now, mut most) = (0, 0);
    for line in case.remote.take_log() {
        now += if line.starts_with('>') { 1 } else { -1 };
        most = most.max(now);
    }
    assert_eq!(most, 3);
}

#[test]
fn chain_of_20_000_locals_is_evaluated() {
    // Recursion along a chain of this length would overflow the stack.
    let mut text = String::from("resource \"fake_thing\" \"a\" { name = \"a\" }\nlocals {\n l0 = fake_thing.a.id\n");
    for i in 1..20_000 {
        text.push_str(&format!(" l{i} = \"${{local.l{}}}\"\n", i - 1));
    }
    text.push_str("}\nresource \"fake_thing\" \"b\" {\n name = \"b\"\n value = local.l19999\n}\nprovider \"other\" { token = local.l19999 }\nresource \"other_thing\" \"c\" { name = \"c\" }");
    let mut case = Case::new(&text);
    case.apply();
    let id = attributes(&case.object("fake_thing.a").unwrap())["id"].clone();
    assert_eq!(attributes(&case.object("fake_thing.b").unwrap())["value"], id);
    assert_eq!(dependencies(&case, "fake_thing.b"), ["fake_thing.a"]);
    case.destroy();
    assert!(case.state.is_empty());
}

fn dependencies(case: &Case, address: &str) -> Vec<String> {
    let object = case.object(address).unwrap();
    object.dependencies.iter().map(ToString::to_string).collect()
}

#[test]
fn module_reference_depends_on_all_resources_in_it() {
    let module = "resource \"fake_thing\" \"x\" { name = \"x\" }\noutput \"o\" { value = \"constant\" }";
    let call = "module \"m\" {\n source = \"./m\"\n count = 1\n}\n";
    let text = |value: &str| format!("{call}resource \"fake_thing\" \"b\" {{\n name = \"b\"\n value = {value}\n}}");
    let mut case = Case::with_files(&[("main.tf", &text("join(\",\", module.m[*].o)")), ("m/m.tf", module)]);
    case.apply();
    assert_eq!(dependencies(&case, "fake_thing.b"), ["module.m.fake_thing.x"]);
    // A reference to one output depends on that output only.
    case.files(&[("main.tf", &text("module.m[0].o")), ("m/m.tf", module)]);
    // The object is created again, and records its current dependencies.
    case.remote.vanish("b");
    case.apply();
    assert!(dependencies(&case, "fake_thing.b").is_empty());
}

#[test]
fn module_reference_from_its_own_dependency_is_no_cycle() {
    let mut case = Case::with_files(&[
        (
            "main.tf",
            "resource \"fake_thing\" \"b\" {\n name = \"b\"\n value = join(\",\", module.m[*].o)\n}\n\
             module \"m\" {\n source = \"./m\"\n count = 1\n in = fake_thing.b.id\n}",
        ),
        (
            "m/m.tf",
            "variable \"in\" {}\nresource \"fake_thing\" \"x\" {\n name = \"x\"\n value = var.in\n}\n\
             resource \"fake_thing\" \"y\" { name = \"y\" }\noutput \"o\" { value = fake_thing.y.name }",
        ),
    ]);
    case.apply().assert_settled();
    assert_eq!(dependencies(&case, "fake_thing.b"), ["module.m.fake_thing.y"]);
    assert_eq!(
        dependencies(&case, "module.m[0].fake_thing.x"),
        ["fake_thing.b", "module.m.fake_thing.y"]
    );
}
