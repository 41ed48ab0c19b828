//! `import` blocks in called modules.

use engine::plan::ImportedBy;

use crate::options::with_object;
use crate::support::{Case, actions};

const MODULE: &str = r#"
    variable "id" {}
    resource "fake_thing" "t" {
      count = 2
      name  = "imported"
    }
    import {
      to = fake_thing.t[0]
      id = "${var.id}-0"
    }
    import {
      to = fake_thing.t[1]
      id = "${var.id}-1"
    }
"#;

fn imported(case: &Case) -> Vec<String> {
    let plan = case.plan();
    let imported = plan.changes.iter();
    imported
        .filter_map(|c| match &c.importing {
            Some(ImportedBy::Id(id)) => Some(format!("{} {id}", c.address)),
            _ => None,
        })
        .collect()
}

#[test]
fn one_block_serves_all_instances_of_its_module_and_each_block_counts() {
    let case = Case::with_files(&[
        (
            "main.tf",
            "module \"m\" {\n source = \"./m\"\n for_each = toset([\"x\", \"y\"])\n id = each.key\n}\n",
        ),
        ("m/main.tf", MODULE),
    ]);
    for id in ["x-0", "x-1", "y-0", "y-1"] {
        with_object(&case, id, "imported");
    }
    assert_eq!(
        imported(&case),
        [
            "module.m[\"x\"].fake_thing.t[0] x-0",
            "module.m[\"x\"].fake_thing.t[1] x-1",
            "module.m[\"y\"].fake_thing.t[0] y-0",
            "module.m[\"y\"].fake_thing.t[1] y-1",
        ]
    );
}

#[test]
fn block_of_the_caller_goes_first() {
    let case = Case::with_files(&[
        (
            "main.tf",
            "module \"m\" {\n source = \"./m\"\n id = \"inner\"\n}\nimport {\n to = module.m.fake_thing.t[0]\n id = \"outer\"\n}\n",
        ),
        ("m/main.tf", MODULE),
    ]);
    for id in ["outer", "inner-1"] {
        with_object(&case, id, "imported");
    }
    assert_eq!(
        imported(&case),
        ["module.m.fake_thing.t[0] outer", "module.m.fake_thing.t[1] inner-1"]
    );
}

#[test]
fn target_without_configuration_is_an_error() {
    let mut case = Case::with_files(&[
        ("main.tf", "module \"m\" {\n source = \"./m\"\n}\n"),
        ("m/main.tf", "resource \"fake_thing\" \"t\" {\n name = \"t\"\n}\n"),
    ]);
    case.apply();
    case.files(&[
        ("main.tf", "module \"m\" {\n source = \"./m\"\n}\n"),
        ("m/main.tf", "import {\n to = fake_thing.t\n id = \"t\"\n}\n"),
    ]);
    assert!(
        case.plan_errors()
            .contains("Configuration for import target does not exist")
    );
}

#[test]
fn module_without_instances_imports_nothing() {
    let case = Case::with_files(&[
        (
            "main.tf",
            "module \"m\" {\n source = \"./m\"\n count = 0\n id = \"x\"\n}\n",
        ),
        ("m/main.tf", MODULE),
    ]);
    assert!(actions(&case.plan()).is_empty());
}
