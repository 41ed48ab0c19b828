//! `moved` blocks and implied moves.

use cty::Value;
use engine::plan::{Action, Mode, Reason};

use crate::support::{Case, actions, change, instance};

/// Lists the moves of a plan as `from -> to`.
fn moves(plan: &engine::plan::Plan) -> Vec<String> {
    plan.changes
        .iter()
        .filter_map(|c| Some(format!("{} -> {}", c.previous_address.as_ref()?, c.address)))
        .collect()
}

#[test]
fn renamed_resource_keeps_its_object() {
    let mut case = Case::new(r#"resource "fake_thing" "a" { name = "one" }"#);
    case.apply();
    case.main(
        r#"
        resource "fake_thing" "b" { name = "one" }
        moved {
          from = fake_thing.a
          to   = fake_thing.b
        }
        "#,
    );
    let plan = case.plan();
    assert_eq!(actions(&plan), [""; 0]);
    assert_eq!(moves(&plan), ["fake_thing.a -> fake_thing.b"]);
    assert!(plan.has_changes(), "the state must be written");
    assert!(plan.drift.is_empty());
    case.apply();
    assert_eq!(case.addresses(), ["fake_thing.b"]);
    case.assert_settled();
}

#[test]
fn moved_objects_are_updated_and_replaced() {
    let mut case = Case::new(r#"resource "fake_thing" "a" { name = "one" }"#);
    case.apply();
    case.main(
        r#"
        resource "fake_thing" "b" {
          name  = "one"
          value = "new"
        }
        moved {
          from = fake_thing.a
          to   = fake_thing.b
        }
        "#,
    );
    let plan = case.plan();
    assert_eq!(actions(&plan), ["~ fake_thing.b"]);
    assert_eq!(moves(&plan), ["fake_thing.a -> fake_thing.b"]);
    case.remote.drift("one", "value", Value::string("drifted"));
    let plan = case.plan();
    assert_eq!(plan.drift.len(), 1);
    assert_eq!(plan.drift[0].previous_address, Some(instance("fake_thing.a")));
    case.options.mode = Mode::RefreshOnly;
    // Restores the stored value, so that the plan contains only the move.
    case.remote.drift("one", "value", Value::null(cty::Type::String));
    let plan = case.plan();
    assert_eq!((plan.drift.len(), plan.drift[0].action), (1, Action::NoOp));
    assert!(!plan.is_applyable(), "a move alone is nothing to apply a refresh for");
    case.options.mode = Mode::Destroy;
    let plan = case.plan();
    assert_eq!(actions(&plan), ["- fake_thing.b"]);
    assert_eq!(moves(&plan), [""; 0]);
}

#[test]
fn chains_and_modules_and_keys() {
    const CHILD: &str = r#"
        variable "n" {}
        resource "fake_thing" "new" { name = var.n }
        moved {
          from = fake_thing.old
          to   = fake_thing.new
        }
    "#;
    let mut case = Case::with_files(&[
        (
            "main.tf",
            r#"
            module "a" {
              source = "./m"
              n      = "in-a"
            }
            resource "fake_thing" "top" { name = "top" }
            resource "fake_thing" "list" {
              count = 2
              name  = "list-${count.index}"
            }
            "#,
        ),
        (
            "m/main.tf",
            "variable \"n\" {}\nresource \"fake_thing\" \"old\" { name = var.n }",
        ),
    ]);
    case.apply();
    case.files(&[
        (
            "main.tf",
            r#"
            module "b" {
              for_each = toset(["k"])
              source   = "./m"
              n        = "in-a"
            }
            module "c" {
              source = "./c"
            }
            resource "fake_thing" "map" {
              for_each = { zero = "list-0", one = "list-1" }
              name     = each.value
            }
            moved {
              from = module.x
              to   = module.b["k"]
            }
            moved {
              from = module.a
              to   = module.x
            }
            moved {
              from = fake_thing.top
              to   = module.c.fake_thing.inner
            }
            moved {
              from = fake_thing.list[0]
              to   = fake_thing.map["zero"]
            }
            moved {
              from = fake_thing.list[1]
              to   = fake_thing.map["one"]
            }
            "#,
        ),
        ("m/main.tf", CHILD),
        ("c/main.tf", r#"resource "fake_thing" "inner" { name = "top" }"#),
    ]);
    let plan = case.plan();
    assert_eq!(actions(&plan), [""; 0]);
    assert_eq!(
        moves(&plan),
        [
            // The moves are sorted by the new addresses.
            r#"fake_thing.list[1] -> fake_thing.map["one"]"#,
            r#"fake_thing.list[0] -> fake_thing.map["zero"]"#,
            r#"module.a.fake_thing.old -> module.b["k"].fake_thing.new"#,
            "fake_thing.top -> module.c.fake_thing.inner",
        ]
    );
    case.apply();
    case.assert_settled();
}

#[test]
fn adding_and_removing_count_implies_moves() {
    let single = r#"resource "fake_thing" "a" { name = "x" }"#;
    let counted = r#"
        resource "fake_thing" "a" {
          count = 2
          name  = "x"
        }
    "#;
    let mut case = Case::new(single);
    case.apply();
    case.main(counted);
    let plan = case.plan();
    assert_eq!(actions(&plan), ["+ fake_thing.a[1]"]);
    assert_eq!(moves(&plan), ["fake_thing.a -> fake_thing.a[0]"]);
    case.apply();
    case.main(single);
    let plan = case.plan();
    assert_eq!(actions(&plan), ["- fake_thing.a[1]"]);
    assert_eq!(moves(&plan), ["fake_thing.a[0] -> fake_thing.a"]);
    // An explicit statement takes precedence over an implied one.
    case.main(&format!(
        "{counted}\nmoved {{\n from = fake_thing.a[0]\n to = fake_thing.a[1]\n}}"
    ));
    assert!(case.plan_errors().contains("Moved object still exists"));
    case.main(&format!(
        "{counted}\nmoved {{\n from = fake_thing.a\n to = fake_thing.a[1]\n}}"
    ));
    case.apply();
    assert_eq!(case.addresses(), ["fake_thing.a[0]", "fake_thing.a[1]"]);
}

#[test]
fn moved_module_call_keeps_instance_keys() {
    let child = ("m/main.tf", r#"resource "fake_thing" "t" { name = "x" }"#);
    let call = |name: &str, count: usize| format!("module \"{name}\" {{\n source = \"./m\"\n count = {count}\n}}\n");
    let mut case = Case::with_files(&[("main.tf", &call("a", 2)), child]);
    case.apply();
    let main = call("b", 2) + "moved {\n from = module.a\n to = module.b\n}";
    case.files(&[("main.tf", &main), child]);
    assert_eq!(
        moves(&case.plan()),
        [
            "module.a[0].fake_thing.t -> module.b[0].fake_thing.t",
            "module.a[1].fake_thing.t -> module.b[1].fake_thing.t"
        ]
    );
    // If instance 0 does not exist, removing `count` implies no move.
    let main = "module \"a\" {\n source = \"./m\"\n}\n";
    case.files(&[("main.tf", main), child]);
    let plan = case.plan();
    assert_eq!(moves(&plan), [""; 0]);
    assert_eq!(
        change(&plan, "module.a[0].fake_thing.t").reason,
        Reason::DeleteBecauseNoModule
    );
}

#[test]
fn object_at_target_blocks_move() {
    let mut case = Case::new(
        r#"
        resource "fake_thing" "a" { name = "a" }
        resource "fake_thing" "b" { name = "b" }
        "#,
    );
    case.apply();
    case.main(
        r#"
        resource "fake_thing" "b" { name = "b" }
        moved {
          from = fake_thing.a
          to   = fake_thing.b
        }
        "#,
    );
    let (plan, problems) = case.try_plan();
    // The object was not moved, and its address is not in the configuration any more, so it is destroyed.
    assert_eq!(actions(&plan.unwrap()), ["- fake_thing.a"]);
    let warning = problems
        .iter()
        .find(|d| d.summary == "Unresolved resource instance address changes");
    assert!(
        warning
            .unwrap()
            .detail
            .contains("fake_thing.a could not move to fake_thing.b"),
        "{warning:?}"
    );
}

#[test]
fn move_to_undeclared_target_destroys_object_with_reason() {
    let mut case = Case::new(r#"resource "fake_thing" "a" { name = "a" }"#);
    case.apply();
    case.main("moved {\n from = fake_thing.a\n to = fake_thing.b\n}");
    let plan = case.plan();
    let gone = change(&plan, "fake_thing.b");
    assert_eq!(
        (gone.action, gone.reason),
        (Action::Delete, Reason::DeleteBecauseNoMoveTarget)
    );
    assert_eq!(gone.previous_address, Some(instance("fake_thing.a")));
}

#[test]
fn contradictory_statements_are_errors() {
    let refused = |main: &str, summary: &str| {
        let mut case = Case::new("");
        case.main(main);
        let errors = case.plan_errors();
        assert!(errors.contains(summary), "{errors}");
    };
    let moved = |from: &str, to: &str| format!("moved {{\n from = {from}\n to = {to}\n}}\n");
    refused(&moved("fake_thing.a", "fake_thing.a"), "Redundant move statement");
    refused(
        &(moved("fake_thing.a", "fake_thing.b") + &moved("fake_thing.b", "fake_thing.a")),
        "Cyclic dependency in move statements",
    );
    refused(
        &(moved("fake_thing.a", "fake_thing.b") + &moved("fake_thing.a", "fake_thing.c")),
        "Ambiguous move statements",
    );
    refused(
        &(moved("fake_thing.a", "fake_thing.c") + &moved("fake_thing.b", "fake_thing.c")),
        "Ambiguous move statements",
    );
    refused(
        &(r#"resource "fake_thing" "a" {}"#.to_owned() + "\n" + &moved("fake_thing.a", "fake_thing.b")),
        "Moved object still exists",
    );
}

#[test]
fn move_to_the_new_name_of_a_module_that_renames_is_no_contradiction() {
    let files = |root: &'static str| {
        [
            ("main.tf", root),
            (
                "m/main.tf",
                "resource \"fake_thing\" \"new\" { name = \"a\" }\nmoved {\n from = fake_thing.old\n to = fake_thing.new\n}\n",
            ),
        ]
    };
    const CALL: &str =
        "module \"m\" { source = \"./m\" }\nmoved {\n from = fake_thing.a\n to = module.m.fake_thing.new\n}\n";
    let mut case = Case::new("resource \"fake_thing\" \"a\" { name = \"a\" }");
    case.apply().files(&files(CALL));
    assert_eq!(moves(&case.plan()), ["fake_thing.a -> module.m.fake_thing.new"]);
    case.apply().assert_settled();
    // Two moves to one address are an error if the state has both source objects, even if one of them moves in two
    // steps.
    let mut case =
        Case::new("resource \"fake_thing\" \"a\" { name = \"a\" }\nresource \"fake_thing\" \"b\" { name = \"b\" }");
    case.apply().files(&files(
        "module \"m\" { source = \"./m\" }\nmoved {\n from = fake_thing.a\n to = module.m.fake_thing.new\n}\nmoved {\n from = fake_thing.b\n to = module.m.fake_thing.old\n}\n",
    ));
    assert!(case.plan_errors().contains("Ambiguous move statements"));
}

#[test]
fn targets_must_cover_moves() {
    let mut case = Case::new(r#"resource "fake_thing" "a" { name = "a" }"#);
    case.apply();
    case.main("resource \"fake_thing\" \"b\" { name = \"a\" }\nmoved {\n from = fake_thing.a\n to = fake_thing.b\n}");
    case.target(&["fake_thing.b"]);
    // A plan with this target only would create a second object instead of moving the existing one.
    let errors = case.plan_errors();
    assert!(
        errors.contains("Moved resource instances excluded by targeting"),
        "{errors}"
    );
    assert!(errors.contains("-target=\"fake_thing.a\""), "{errors}");
    case.target(&["fake_thing.b", "fake_thing.a"]);
    assert_eq!(moves(&case.plan()), ["fake_thing.a -> fake_thing.b"]);
}

#[test]
fn move_between_types_requires_provider_support() {
    let mut case = Case::new(r#"resource "other_thing" "a" { name = "a" }"#);
    case.apply();
    let id = case.attribute("other_thing.a", "id");
    let main = "resource \"fake_thing\" \"b\" { name = \"a\" }\nmoved {\n from = other_thing.a\n to = fake_thing.b\n}";
    case.main(main);
    let plan = case.plan();
    assert_eq!(actions(&plan), [""; 0]);
    case.apply();
    assert_eq!(case.addresses(), ["fake_thing.b"]);
    assert_eq!(case.attribute("fake_thing.b", "id"), id);
    case.main("resource \"plain_thing\" \"c\" { name = \"a\" }\nmoved {\n from = fake_thing.b\n to = plain_thing.c\n}");
    assert!(case.plan_errors().contains("Unsupported `moved` across resource types"));
}

#[test]
fn instances_that_move_one_by_one_to_another_type_are_each_converted_from_their_own() {
    let mut case = Case::new("resource \"other_thing\" \"a\" {\n count = 3\n name = \"a${count.index}\"\n}");
    case.apply();
    case.main(
        r#"
        resource "fake_thing" "b" {
          count = 2
          name  = "a${count.index}"
        }
        moved {
          from = other_thing.a[0]
          to   = fake_thing.b[0]
        }
        moved {
          from = other_thing.a[1]
          to   = fake_thing.b[1]
        }
        "#,
    );
    let plan = case.plan();
    let source = "registry.terraform.io/hashicorp/other other_thing";
    assert_eq!(case.remote.lock().moved, [source, source]);
    assert_eq!(actions(&plan), ["- other_thing.a[2]"]);
    let left = change(&plan, "other_thing.a[2]");
    assert_eq!(&*left.provider.provider.ty, "other", "it stays with its provider");
    assert_eq!(
        moves(&plan),
        [
            "other_thing.a[0] -> fake_thing.b[0]",
            "other_thing.a[1] -> fake_thing.b[1]"
        ]
    );
    case.apply();
    assert_eq!(case.addresses(), ["fake_thing.b[0]", "fake_thing.b[1]"]);
    case.assert_settled();
}

#[test]
fn instances_that_move_one_by_one_to_another_provider_are_all_converted() {
    const BY: &str = "terraform {\n required_providers {\n fake = { source = \"SOURCE\" }\n }\n}\n";
    let list = "resource \"fake_thing\" \"a\" {\n count = 2\n name = \"a${count.index}\"\n}";
    let mut case = Case::new(&(BY.replace("SOURCE", "old/fake") + list));
    case.apply();
    let map = "resource \"fake_thing\" \"a\" {\n for_each = toset([\"a0\", \"a1\"])\n name = each.key\n}\n";
    let moved: String = (0..2)
        .map(|i| format!("moved {{\n from = fake_thing.a[{i}]\n to = fake_thing.a[\"a{i}\"]\n}}\n"))
        .collect();
    case.main(&(BY.replace("SOURCE", "new/fake") + map + &moved));
    assert_eq!(actions(&case.plan()), [""; 0]);
    let source = "registry.terraform.io/old/fake fake_thing";
    assert_eq!(case.remote.lock().moved, [source, source]);
    case.apply();
    assert_eq!(case.addresses(), [r#"fake_thing.a["a0"]"#, r#"fake_thing.a["a1"]"#]);
    let provider = &case.state.resources.values().next().unwrap().provider.provider;
    assert_eq!(provider.to_string(), "registry.terraform.io/new/fake");
    case.assert_settled();
}

#[test]
fn deposed_objects_are_converted_with_their_instance() {
    let mut case = Case::new(
        r#"
        resource "other_thing" "a" {
          name   = "a"
          forced = "1"
          lifecycle { create_before_destroy = true }
        }
        "#,
    );
    case.apply();
    case.remote.fail("delete a");
    case.main(
        r#"
        resource "other_thing" "a" {
          name   = "a"
          forced = "2"
          lifecycle { create_before_destroy = true }
        }
        "#,
    );
    case.apply_errors();
    assert_eq!(case.addresses(), ["other_thing.a", "other_thing.a (deposed)"]);
    case.remote.heal();
    case.main(
        r#"
        resource "fake_thing" "b" {
          name   = "a"
          forced = "2"
        }
        moved {
          from = other_thing.a
          to   = fake_thing.b
        }
        "#,
    );
    assert_eq!(actions(&case.plan()), ["- fake_thing.b (deposed)"]);
    let source = "registry.terraform.io/hashicorp/other other_thing";
    assert_eq!(case.remote.lock().moved, [source, source]);
    case.apply();
    assert_eq!(case.addresses(), ["fake_thing.b"]);
    case.assert_settled();
}

#[test]
fn invalid_move_state_responses() {
    let mut case = Case::new(r#"resource "other_thing" "a" { name = "a" }"#);
    case.apply();
    let id = case.attribute("other_thing.a", "id").as_str().unwrap().to_owned();
    case.main("resource \"fake_thing\" \"b\" { name = \"a\" }\nmoved {\n from = other_thing.a\n to = fake_thing.b\n}");
    case.remote
        .mutate(&format!("upgrade {id}"), |v| Value::null(v.ty().clone()));
    assert_eq!(
        case.plan_errors(),
        "Error: Provider returned invalid value: The provider returned no object, or one that is not wholly known, \
         when asked to take over the object of other_thing.a as fake_thing.b. This is a bug in the provider; \
         please report it to its maintainers."
    );
    case.remote.mutate(&format!("upgrade {id}"), |v| {
        crate::support::remote::with(&v, "password", Value::string("hunter2"))
    });
    assert_eq!(
        case.plan_errors(),
        "Error: Provider returned invalid value [fake_thing.b]: Provider \"registry.terraform.io/hashicorp/fake\" returned a \
         value for the write-only attribute \"fake_thing.b.password\" when asked to take over the object of other_thing.a. \
         A provider must return null for write-only attributes, since they are never stored. This is a \
         bug in the provider; please report it to its maintainers."
    );
}
