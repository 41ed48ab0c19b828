//! `removed` blocks: forgotten objects, and destroyed ones with destroy-time provisioners.

use engine::plan::{Action, Mode, Reason};

use crate::support::{Case, actions, change};

const BEFORE: &str = r#"
    resource "fake_thing" "a" { name = "a" }
    resource "fake_thing" "b" {
      count = 2
      name  = "b${count.index}"
    }
"#;

#[test]
fn forgotten_object_is_neither_refreshed_nor_destroyed() {
    let mut case = Case::new(BEFORE);
    case.apply();
    case.remote.take_log();
    case.main(
        r#"
        removed {
          from = fake_thing.a
          lifecycle { destroy = false }
        }
        removed {
          from = fake_thing.b
          lifecycle { destroy = true }
        }
        "#,
    );
    let (plan, problems) = case.try_plan();
    let plan = plan.unwrap();
    assert_eq!(
        actions(&plan),
        [". fake_thing.a", "- fake_thing.b[0]", "- fake_thing.b[1]"]
    );
    assert_eq!(
        change(&plan, "fake_thing.a").reason,
        Reason::DeleteBecauseNoResourceConfig
    );
    let warning = problems
        .iter()
        .find(|d| d.summary.starts_with("Some objects will no longer be managed by"))
        .unwrap();
    assert!(warning.detail.contains("\n - fake_thing.a\n"), "{}", warning.detail);
    assert!(!case.remote.take_log().iter().any(|l| l == "> read a"));
    case.apply();
    assert!(case.state.is_empty());
    assert_eq!(case.remote.names(), ["a"]);
}

#[test]
fn destroy_mode_ignores_removed_blocks() {
    let mut case = Case::new(BEFORE);
    case.apply();
    case.main("removed {\n from = fake_thing.a\n lifecycle { destroy = false }\n}");
    case.options.mode = Mode::Destroy;
    let plan = case.plan();
    assert!(plan.changes.iter().all(|c| c.action == Action::Delete));
    case.options.mode = Mode::RefreshOnly;
    assert!(case.plan().changes.is_empty());
}

#[test]
fn removed_module_is_forgotten_with_its_resources() {
    let mut case = Case::with_files(&[
        ("main.tf", "module \"m\" {\n source = \"./m\"\n count = 2\n}"),
        ("m/main.tf", r#"resource "fake_thing" "t" { name = "t" }"#),
    ]);
    case.apply();
    case.files(&[(
        "main.tf",
        "removed {\n from = module.m\n lifecycle { destroy = false }\n}",
    )]);
    assert_eq!(
        actions(&case.plan()),
        [". module.m[0].fake_thing.t", ". module.m[1].fake_thing.t"]
    );
}

#[test]
fn removed_block_for_declared_resource_is_an_error() {
    let mut case = Case::with_files(&[
        (
            "main.tf",
            "resource \"fake_thing\" \"a\" {}\nmodule \"m\" { source = \"./m\" }\nremoved { from = fake_thing.a }\nremoved { \
             from = module.m }\n",
        ),
        ("m/main.tf", ""),
    ]);
    let errors = case.plan_errors();
    assert!(errors.contains("Removed resource still exists"), "{errors}");
    assert!(errors.contains("Removed module still exists"), "{errors}");
    case.files(&[
        ("main.tf", "module \"m\" { source = \"./m\" }"),
        ("m/main.tf", "removed { from = fake_thing.a }"),
    ]);
    case.plan();
}

#[test]
fn destroy_provisioner_of_removed_block_runs() {
    let mut case = Case::new(BEFORE);
    case.apply();
    case.remote.changes();
    case.main(
        r#"
        removed {
          from = fake_thing.b
          provisioner "note" {
            when = destroy
            text = "bye ${self.name} ${count.index}"
          }
        }
        removed {
          from = fake_thing.a
          lifecycle { destroy = false }
        }
        "#,
    );
    case.apply();
    let mut log = case.remote.changes();
    log.sort();
    assert_eq!(
        log,
        ["delete b0", "delete b1", "provision bye b0 0", "provision bye b1 1"]
    );
}
