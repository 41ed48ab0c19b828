//! Options: `-target`, `-exclude`, `-replace`, destroy mode with targets, imports.

use engine::plan::{ImportedBy, Mode};

use crate::support::{Case, actions, change, instance, texts};

const CHAIN: &str = r#"
    resource "fake_thing" "a" { name = "a" }
    resource "fake_thing" "b" {
      count = 2
      name  = "b${count.index}"
      value = fake_thing.a.id
    }
    resource "fake_thing" "c" {
      name  = "c"
      value = fake_thing.b[0].id
    }
    resource "fake_thing" "other" { name = "other" }
    output "a" { value = fake_thing.a.id }
    output "c" { value = fake_thing.c.id }
"#;

#[test]
fn target_selects_its_dependencies() {
    let mut case = Case::new(CHAIN);
    case.target(&["fake_thing.b[1]"]);
    let (plan, diagnostics) = case.try_plan();
    let plan = plan.unwrap();
    assert_eq!(actions(&plan), ["+ fake_thing.a", "+ fake_thing.b[1]"]);
    assert!(texts(diagnostics.iter()).contains("Resource targeting is in effect"));
    assert_eq!(
        plan.outputs.keys().map(|k| &**k).collect::<Vec<_>>(),
        ["a"],
        "outputs that need nothing else"
    );
    case.apply();
    assert_eq!(case.addresses(), ["fake_thing.a", "fake_thing.b[1]"]);
    case.target(&["fake_thing.b"]);
    assert_eq!(actions(&case.plan()), ["+ fake_thing.b[0]"]);
    case.target(&["fake_thing.c"]);
    assert_eq!(actions(&case.plan()), ["+ fake_thing.b[0]", "+ fake_thing.c"]);
}

#[test]
fn exclude_leaves_out_dependents() {
    let mut case = Case::new(CHAIN);
    case.exclude(&["fake_thing.b"]);
    let (plan, diagnostics) = case.try_plan();
    let plan = plan.unwrap();
    assert_eq!(actions(&plan), ["+ fake_thing.a", "+ fake_thing.other"]);
    assert!(texts(diagnostics.iter()).contains("Resource targeting is in effect"));
    assert_eq!(plan.outputs.keys().map(|k| &**k).collect::<Vec<_>>(), ["a"]);
    assert!(plan.is_partial());
    case.apply();
    assert_eq!(case.addresses(), ["fake_thing.a", "fake_thing.other"]);
    // If one instance is excluded, the other instances are planned, but the dependents of the resource are not.
    case.exclude(&["fake_thing.b[0]"]);
    assert_eq!(actions(&case.plan()), ["+ fake_thing.b[1]"]);
    case.exclude(&["fake_thing.a"]);
    assert!(actions(&case.plan()).is_empty());
    case.exclude(&["fake_thing.other"]);
    assert_eq!(
        actions(&case.plan()),
        ["+ fake_thing.b[0]", "+ fake_thing.b[1]", "+ fake_thing.c"]
    );
}

#[test]
fn check_of_an_excluded_resource_is_not_evaluated_after_apply() {
    let mut case = Case::new(
        r#"
        resource "fake_thing" "a" { name = "a" }
        resource "fake_thing" "b" { name = "b" }
        check "excluded" {
          assert {
            condition     = fake_thing.a.note == "other"
            error_message = "a is wrong"
          }
        }
        check "applied" {
          assert {
            condition     = fake_thing.b.note == "other"
            error_message = "b is wrong"
          }
        }
        "#,
    );
    case.exclude(&["fake_thing.a"]);
    let plan = case.plan();
    let shown = texts(case.try_apply(&plan).iter());
    assert!(shown.contains("b is wrong"), "{shown}");
    assert!(
        !shown.contains("a is wrong") && !shown.contains("known after apply"),
        "{shown}"
    );
}

#[test]
fn excluded_object_keeps_its_dependencies_in_destroy_mode() {
    let mut case = Case::new(CHAIN);
    case.apply();
    case.options.mode = Mode::Destroy;
    case.exclude(&["fake_thing.b[1]"]);
    assert_eq!(
        actions(&case.plan()),
        ["- fake_thing.b[0]", "- fake_thing.c", "- fake_thing.other"]
    );
    case.exclude(&["fake_thing.c"]);
    assert_eq!(actions(&case.plan()), ["- fake_thing.other"]);
    case.apply();
    assert_eq!(
        case.addresses(),
        ["fake_thing.a", "fake_thing.b[0]", "fake_thing.b[1]", "fake_thing.c"]
    );
}

#[test]
fn destroying_a_target_selects_its_dependents() {
    let mut case = Case::new(CHAIN);
    case.apply();
    case.options.mode = Mode::Destroy;
    case.target(&["fake_thing.b"]);
    assert_eq!(
        actions(&case.plan()),
        ["- fake_thing.b[0]", "- fake_thing.b[1]", "- fake_thing.c"]
    );
    case.apply();
    assert_eq!(case.addresses(), ["fake_thing.a", "fake_thing.other"]);
}

#[test]
fn modules_are_targets() {
    let files = [
        (
            "main.tf",
            "module \"m\" {\n source = \"./m\"\n count = 2\n name = \"m${count.index}\"\n}\n\
             resource \"fake_thing\" \"other\" { name = \"other\" }",
        ),
        (
            "m/main.tf",
            "variable \"name\" {}\nresource \"fake_thing\" \"t\" { name = var.name }",
        ),
    ];
    let mut case = Case::with_files(&files);
    case.target(&["module.m"]);
    assert_eq!(
        actions(&case.plan()),
        ["+ module.m[0].fake_thing.t", "+ module.m[1].fake_thing.t"]
    );
    case.target(&["module.m[1]"]);
    assert_eq!(actions(&case.plan()), ["+ module.m[1].fake_thing.t"]);
    case.target(&[]).exclude(&["module.m[1]"]);
    assert_eq!(
        actions(&case.plan()),
        ["+ fake_thing.other", "+ module.m[0].fake_thing.t"]
    );
    case.exclude(&["module.m"]);
    assert_eq!(actions(&case.plan()), ["+ fake_thing.other"]);
    case.exclude(&[]).target(&["module.m[0].fake_thing.t"]);
    assert_eq!(actions(&case.plan()), ["+ module.m[0].fake_thing.t"]);
}

/// Returns a configuration in which each instance of `r2` uses the instance of `r1` with the same key.
fn by_key(keys: &str) -> String {
    format!(
        "resource \"fake_thing\" \"r1\" {{\n for_each = toset([{keys}])\n name = \"r1${{each.key}}\"\n}}\n\
         resource \"fake_thing\" \"r2\" {{\n for_each = toset([{keys}])\n name = \"r2${{each.key}}\"\n value = fake_thing.r1[each.key].id\n}}\n"
    )
}

#[test]
fn target_does_not_destroy_what_something_outside_needs() {
    let mut case = Case::new(&by_key("\"A\""));
    case.apply().main(&by_key("\"B\""));
    case.target(&["fake_thing.r2[\"B\"]"]);
    let (plan, diagnostics) = case.try_plan();
    assert_eq!(
        actions(&plan.unwrap()),
        ["+ fake_thing.r1[\"B\"]", "+ fake_thing.r2[\"B\"]"]
    );
    let all = texts(diagnostics.iter());
    assert!(
        all.contains("- fake_thing.r1[\"A\"], for fake_thing.r2[\"A\"]"),
        "{all}"
    );
    case.apply();
    assert_eq!(
        case.addresses(),
        [
            "fake_thing.r1[\"A\"]",
            "fake_thing.r1[\"B\"]",
            "fake_thing.r2[\"A\"]",
            "fake_thing.r2[\"B\"]"
        ]
    );
    // Now all dependents of the object are targeted, so it is destroyed with them.
    case.target(&["fake_thing.r2"]);
    assert_eq!(
        actions(&case.plan()),
        ["- fake_thing.r1[\"A\"]", "- fake_thing.r2[\"A\"]"]
    );
    case.target(&[]).exclude(&["fake_thing.r2[\"A\"]"]);
    assert!(actions(&case.plan()).is_empty());
    // An object that a target names is destroyed, with a warning.
    case.exclude(&[]).target(&["fake_thing.r1[\"A\"]"]);
    let (plan, diagnostics) = case.try_plan();
    assert_eq!(actions(&plan.unwrap()), ["- fake_thing.r1[\"A\"]"]);
    let all = texts(diagnostics.iter());
    assert!(
        all.contains("- fake_thing.r1[\"A\"], for fake_thing.r2[\"A\"]"),
        "{all}"
    );
}

#[test]
fn target_does_not_destroy_deposed_objects_of_its_dependencies() {
    let text = |forced: &str| {
        format!(
            "resource \"fake_thing\" \"a\" {{\n name = \"a\"\n forced = \"{forced}\"\n lifecycle {{\n  create_before_destroy = true\n }}\n}}\n\
             resource \"fake_thing\" \"b\" {{\n name = \"b\"\n value = fake_thing.a.name\n}}\n"
        )
    };
    let mut case = Case::new(&text("1"));
    case.apply().main(&text("2"));
    // The failed deletion leaves the old object deposed.
    case.remote.fail("delete a");
    case.apply_errors();
    case.remote.heal();
    case.target(&["fake_thing.b"]);
    assert!(actions(&case.plan()).is_empty());
    case.target(&["fake_thing.a"]);
    assert_eq!(actions(&case.plan()), ["- fake_thing.a (deposed)"]);
    case.target(&["fake_thing.b"]).options.mode = Mode::Destroy;
    assert_eq!(actions(&case.plan()), ["- fake_thing.b"]);
    case.target(&["fake_thing.a"]);
    assert_eq!(
        actions(&case.plan()),
        ["- fake_thing.a", "- fake_thing.a (deposed)", "- fake_thing.b"]
    );
}

#[test]
fn untargeted_objects_are_neither_refreshed_nor_destroyed() {
    let mut case = Case::new(CHAIN);
    case.apply();
    case.main("resource \"fake_thing\" \"a\" { name = \"a\" }");
    case.target(&["fake_thing.other"]);
    case.remote.take_log();
    assert_eq!(actions(&case.plan()), ["- fake_thing.other"]);
    let log = case.remote.take_log();
    assert!(
        !log.iter().any(|l| l.contains("read a") || l.contains("read b0")),
        "{log:?}"
    );
}

#[test]
fn references_to_untargeted_resources_see_stored_objects() {
    let mut case = Case::new(CHAIN);
    case.apply();
    case.target(&["fake_thing.c"]).assert_settled();
    case.target(&["fake_thing.a"]);
    assert!(actions(&case.plan()).is_empty());
}

const IMPORT: &str = r#"
    import {
      to = fake_thing.a
      id = "existing"
    }
    resource "fake_thing" "a" {
      name  = "a"
      value = "configured"
    }
"#;

/// Adds a remote object that no state has.
pub fn with_object(case: &Case, id: &str, name: &str) {
    // Created by another case, so that this case's state does not have it.
    let mut other = Case::new(&format!(
        "resource \"fake_thing\" \"a\" {{\n name = \"{name}\"\n value = \"configured\"\n}}"
    ));
    other.apply();
    let object = other.remote.named(name).unwrap();
    let object = crate::support::remote::with(&object, "id", cty::Value::string(id));
    case.remote.lock().objects.insert(id.into(), object);
}

#[test]
fn import_blocks_import_existing_objects() {
    let mut case = Case::new(IMPORT);
    with_object(&case, "existing", "a");
    let plan = case.plan();
    assert_eq!(
        change(&plan, "fake_thing.a").importing,
        Some(ImportedBy::Id("existing".into()))
    );
    assert!(actions(&plan).is_empty() && plan.has_changes());
    case.remote.changes();
    case.apply();
    let told: Vec<_> = case.events.0.lock().unwrap().iter().map(|e| format!("{e:?}")).collect();
    assert!(
        told.iter()
            .any(|e| e.starts_with("Imported") && e.contains("\"existing\"")),
        "{told:#?}"
    );
    assert!(!case.remote.changes().iter().any(|c| c.starts_with("create")));
    assert_eq!(case.attribute("fake_thing.a", "id"), "existing");
    case.assert_settled();
    case.main(&IMPORT.replace("configured", "changed"));
    assert_eq!(actions(&case.plan()), ["~ fake_thing.a"]);
}

#[test]
fn import_of_missing_object_is_an_error() {
    let case = Case::new(IMPORT);
    assert!(case.plan_errors().contains("Cannot import non-existent remote object"));
}

#[test]
fn imports_by_key() {
    let mut case = Case::new(
        r#"
        import {
          for_each = { x = "id-x", y = "id-y" }
          to       = fake_thing.a[each.key]
          id       = each.value
        }
        resource "fake_thing" "a" {
          for_each = toset(["x", "y", "z"])
          name     = each.key
          value    = "configured"
        }
        "#,
    );
    with_object(&case, "id-x", "x");
    with_object(&case, "id-y", "y");
    let plan = case.plan();
    assert_eq!(actions(&plan), [r#"+ fake_thing.a["z"]"#]);
    assert_eq!(
        change(&plan, r#"fake_thing.a["y"]"#).importing,
        Some(ImportedBy::Id("id-y".into()))
    );
    case.apply().assert_settled();
}

/// Plans an import block with these arguments. Returns the number of imports, and the actions in the plan.
fn imported(for_each: &str, repeated: &str, key: &str, id: &str) -> (usize, Vec<String>) {
    let case = Case::new(&format!(
        r#"
        import {{
          for_each = {for_each}
          to       = fake_thing.a[{key}]
          id       = {id}
        }}
        resource "fake_thing" "a" {{
          {repeated}
          name  = "x"
          value = "configured"
        }}
        "#
    ));
    for id in ["id-0", "id-1"] {
        with_object(&case, id, "x");
    }
    let plan = case.plan();
    let imports = plan.changes.iter().filter(|c| c.importing.is_some()).count();
    (imports, actions(&plan))
}

#[test]
fn imports_by_the_elements_of_any_collection() {
    let (counted, keyed) = ("count = 2", "for_each = toset([\"k\"])");
    let two =
        |for_each: &str, id: &str| assert_eq!(imported(for_each, counted, "each.key", id), (2, vec![]), "{for_each}");
    two("[\"id-0\", \"id-1\"]", "each.value");
    two("tolist([\"id-0\", \"id-1\"])", "each.value");
    two("[{ id = \"id-0\" }, { id = \"id-1\" }]", "each.value.id");
    two("toset([0, 1])", "\"id-${each.key}\"");
    let one = |for_each: &str, key: &str, id: &str| {
        assert_eq!(imported(for_each, keyed, key, id), (1, vec![]), "{for_each}");
    };
    one("[{ k = \"k\", id = \"id-0\" }]", "each.value.k", "each.value.id");
    one("toset([{ k = \"k\", id = \"id-0\" }])", "each.value.k", "each.key.id");
    one("tomap({ k = \"id-0\" })", "each.key", "each.value");
    one("sensitive({ k = \"id-0\" })", "each.key", "each.value");
    assert_eq!(imported("null", "count = 0", "0", "each.value"), (0, vec![]));
    assert_eq!(imported("[]", "count = 0", "0", "each.value"), (0, vec![]));
}

#[test]
fn for_each_of_imports_is_a_collection_that_is_known() {
    let refused = |for_each: &str| {
        let case = Case::new(&format!(
            "import {{\n for_each = {for_each}\n to = fake_thing.a[each.key]\n id = \"x\"\n}}\n\
             resource \"fake_thing\" \"a\" {{\n count = 1\n name = \"a\"\n}}\n\
             resource \"fake_thing\" \"b\" {{\n name = \"b\"\n}}\n\
             variable \"e\" {{\n ephemeral = true\n default = [\"x\"]\n}}"
        ));
        case.plan_errors()
    };
    let text = refused("\"x\"");
    assert!(
        text.contains("Invalid for_each argument") && text.contains("is of type string"),
        "{text}"
    );
    let text = refused("toset(fake_thing.b.id == \"\" ? [0] : [0, 1])");
    assert!(text.contains("is known only after apply"), "{text}");
    assert!(refused("var.e").contains("ephemeral"));
}

#[test]
fn sensitive_import_id_reaches_the_provider_only() {
    let import = |id: &str| {
        format!(
            "import {{\n to = fake_thing.a\n id = {id}\n}}\n\
             resource \"fake_thing\" \"a\" {{\n name = \"a\"\n value = \"configured\"\n}}\n\
             variable \"e\" {{\n ephemeral = true\n default = \"existing\"\n}}"
        )
    };
    let mut case = Case::new(&import("sensitive(\"existing\")"));
    with_object(&case, "existing", "a");
    let plan = case.plan();
    assert_eq!(change(&plan, "fake_thing.a").importing, Some(ImportedBy::Sensitive));
    case.apply();
    assert_eq!(case.attribute("fake_thing.a", "id"), "existing");
    let told = format!("{:?}", case.events.0.lock().unwrap());
    let imports = told.matches("target: Sensitive").count();
    assert!(imports >= 2 && !told.contains("target: Id"), "{told}");
    let case = Case::new(&import("sensitive(\"gone\")"));
    assert!(!case.plan_errors().contains("gone"));
    let case = Case::new(&import("var.e"));
    let text = case.plan_errors();
    assert!(
        text.contains("Invalid import id argument") && text.contains("ephemeral"),
        "{text}"
    );
}

#[test]
fn imports_need_a_configuration() {
    let case = Case::new("import {\n to = fake_thing.nope\n id = \"x\"\n}");
    let errors = case.plan_errors();
    assert!(
        errors.contains("Configuration for import target does not exist") && errors.contains("fake_thing.nope"),
        "{errors}"
    );
    let case =
        Case::new("import {\n to = fake_thing.a[5]\n id = \"x\"\n}\nresource \"fake_thing\" \"a\" { count = 1 }");
    let errors = case.plan_errors();
    assert!(
        errors.contains("Configuration for import target does not exist") && errors.contains("fake_thing.a[5]"),
        "{errors}"
    );
}

#[test]
fn import_without_configuration_checks_its_id() {
    let case = Case::new(
        "import {\n to = fake_thing.nope\n id = fake_thing.b.id\n}\nresource \"fake_thing\" \"b\" {\n name = \"b\"\n}",
    );
    let errors = case.plan_errors();
    assert!(
        errors.contains("Configuration for import target does not exist")
            && errors.contains("The argument \"id\" of the import block is not known before apply"),
        "{errors}"
    );
}

#[test]
fn imports_into_instances_of_modules() {
    let main = r#"
        module "m" {
          source   = "./m"
          for_each = toset(["x", "y"])
          name     = each.key
        }
        import {
          for_each = { x = "id-x" }
          to       = module.m[each.key].fake_thing.a[0]
          id       = each.value
        }
    "#;
    let child = r#"
        variable "name" {}
        resource "fake_thing" "a" {
          count = 1
          name  = var.name
          value = "configured"
        }
    "#;
    let case = Case::with_files(&[("main.tf", main), ("m/main.tf", child)]);
    with_object(&case, "id-x", "x");
    assert_eq!(actions(&case.plan()), [r#"+ module.m["y"].fake_thing.a[0]"#]);
}

#[test]
fn configuration_is_generated_for_imported_objects() {
    let mut case = Case::new("import {\n to = fake_thing.a\n id = \"existing\"\n}");
    with_object(&case, "existing", "a");
    case.options.generate_config = true;
    let (plan, problems) = case.try_plan();
    assert!(!problems.has_errors(), "{problems:?}");
    assert!(
        problems
            .iter()
            .any(|d| d.summary == "Config generation is experimental")
    );
    let plan = plan.unwrap();
    assert!(actions(&plan).is_empty());
    assert_eq!(
        change(&plan, "fake_thing.a").importing,
        Some(ImportedBy::Id("existing".into()))
    );
    let text = &plan.generated_config[&instance("fake_thing.a")];
    assert_eq!(
        text,
        "resource \"fake_thing\" \"a\" {\n  forced   = null\n  name     = \"a\"\n  password = null\n  secret   = null # sensitive\n  \
         tags     = null\n  value    = \"configured\"\n}"
    );
    // With the generated configuration in place, nothing is left to change.
    let whole = format!("import {{\n to = fake_thing.a\n id = \"existing\"\n}}\n{text}");
    case.options.generate_config = false;
    case.main(&whole).apply().assert_settled();
    // No block can be generated for an instance with a key.
    case.options.generate_config = true;
    case.main("import {\n to = fake_thing.b[0]\n id = \"existing\"\n}");
    assert!(case.plan_errors().contains("-generate-config-out"));
}

/// If a count is unknown, the resources it depends on can be targeted, as the error message advises.
#[test]
fn target_makes_unknown_count_plannable() {
    let config = [
        (
            "main.tf",
            r#"
            resource "fake_thing" "a" { name = "a" }
            resource "fake_thing" "many" {
              count = length(fake_thing.a.id)
              name  = "many${count.index}"
            }
            module "m" {
              source = "./m"
              count  = length(fake_thing.a.id) > 0 ? 1 : 0
            }
            output "size" { value = length(module.m) }
            output "id" { value = fake_thing.a.id }
            "#,
        ),
        ("m/main.tf", r#"resource "fake_thing" "x" { name = "x" }"#),
    ];
    let mut case = Case::with_files(&config);
    let errors = case.plan_errors();
    assert!(
        errors.contains("Invalid count argument") && errors.contains("-target"),
        "{errors}"
    );
    case.target(&["fake_thing.a"]).apply();
    assert!(case.output("id").is_some());
    case.target(&[]).apply().assert_settled();
    assert!(case.object("module.m[0].fake_thing.x").is_some());
}
