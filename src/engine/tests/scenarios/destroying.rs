//! Destroy plans: with a refresh pass, after a failed refresh pass, and in reverse dependency order.

use cty::Value;
use engine::plan::Mode;

use crate::support::{Case, actions};

const READ: &str = r#"
    data "fake_lookup" "free" { query = "free" }
    data "fake_lookup" "own" { query = fake_thing.a.id }
    resource "fake_thing" "a" { name = "a" }
    resource "fake_thing" "b" {
      name  = "b"
      value = data.fake_lookup.free.result
    }
    output "free" { value = data.fake_lookup.free.result }
"#;

#[test]
fn destroy_plan_begins_with_refresh_pass() {
    let mut case = Case::new(READ);
    case.apply();
    case.remote.drift("b", "value", Value::string("drifted"));
    case.remote.vanish("a");
    case.remote.take_log();
    case.options.mode = Mode::Destroy;
    let plan = case.plan();
    assert_eq!(actions(&plan), ["- fake_thing.b"]);
    let log = case.remote.take_log();
    for read in ["> data free", "> read a", "> read b"] {
        assert_eq!(log.iter().filter(|l| *l == read).count(), 1, "{read} in {log:?}");
    }
    // The results of data sources stay in the state until apply. A deferred read has no result.
    let kept: Vec<String> = plan.prior_state.resources.keys().map(ToString::to_string).collect();
    assert_eq!(kept, ["data.fake_lookup.free", "fake_thing.b"]);
    assert!(plan.drift.is_empty(), "all of it goes, whatever has become of it");
    case.apply();
    assert!(case.state.is_empty(), "{:?}", case.addresses());
}

#[test]
fn destroy_plan_without_refresh_uses_the_state() {
    let mut case = Case::new(READ);
    case.apply();
    case.remote.vanish("a");
    case.remote.take_log();
    case.options.mode = Mode::Destroy;
    case.options.refresh = false;
    let plan = case.plan();
    assert_eq!(actions(&plan), ["- fake_thing.a", "- fake_thing.b"]);
    assert!(
        !case
            .remote
            .take_log()
            .iter()
            .any(|l| l.contains("data ") || l.contains("read "))
    );
    assert_eq!(plan.prior_state.resources.len(), 4);
    case.apply();
    assert!(case.state.is_empty(), "{:?}", case.addresses());
}

#[test]
fn refresh_pass_ignores_conditions_imports_and_prevent_destroy() {
    let mut case = Case::new(r#"resource "fake_thing" "a" { name = "a" }"#);
    case.apply();
    case.main(
        r#"
        locals { wrong = 2 }
        resource "fake_thing" "a" {
          name   = "a"
          forced = "now"
          lifecycle {
            precondition {
              condition     = local.wrong == 1
              error_message = "never"
            }
          }
        }
        resource "fake_thing" "i" { name = "i" }
        import {
          to = fake_thing.i
          id = "i"
        }
        "#,
    );
    case.options.mode = Mode::Destroy;
    let (plan, problems) = case.try_plan();
    assert_eq!(actions(&plan.unwrap()), ["- fake_thing.a"]);
    assert!(
        problems.iter().next().is_none(),
        "{}",
        crate::support::texts(problems.iter())
    );
}

#[test]
fn failed_refresh_pass_does_not_prevent_destruction() {
    // The first apply failed early, so the count of the second resource stays unknown.
    let mut case = Case::new(
        r#"
        resource "fake_thing" "other" { name = "other" }
        resource "fake_thing" "a" { name = "a" }
        resource "fake_thing" "many" {
          count = length(fake_thing.a.id)
          name  = "many${count.index}"
        }
        data "fake_lookup" "gone" { query = "gone" }
        "#,
    );
    case.target(&["fake_thing.other"]).apply();
    case.target(&[]);
    case.remote.fail("data gone");
    case.remote.vanish("a");
    case.destroy();
    assert!(case.state.is_empty(), "{:?}", case.addresses());
    assert!(case.remote.names().is_empty());
}

#[test]
fn destroying_a_target_keeps_other_data_sources() {
    let mut case = Case::new(
        r#"
        data "fake_lookup" "x" { query = "x" }
        data "fake_lookup" "y" { query = fake_thing.b.name }
        resource "fake_thing" "a" {
          name  = "a"
          value = data.fake_lookup.x.result
        }
        resource "fake_thing" "b" { name = "b" }
        "#,
    );
    case.apply();
    case.target(&["fake_thing.b"]).destroy();
    assert_eq!(case.addresses(), ["data.fake_lookup.x", "fake_thing.a"]);
    case.target(&["data.fake_lookup.x"]).destroy();
    assert!(case.state.is_empty(), "{:?}", case.addresses());
}

#[test]
fn provider_dependencies_are_destroyed_after_its_objects() {
    let text = r#"
        resource "fake_thing" "seed" { name = "seed" }
        data "fake_lookup" "token" { query = fake_thing.seed.id }
        provider "more" { token = "${data.fake_lookup.token.result} ${fake_thing.seed.name}" }
        resource "more_thing" "m" { name = "m" }
    "#;
    for refresh in [true, false] {
        let mut case = Case::new(text);
        case.apply();
        case.remote.take_log();
        case.options.refresh = refresh;
        case.destroy();
        assert!(case.state.is_empty(), "{:?}", case.addresses());
        let log = case.remote.take_log();
        crate::support::remote::assert_before(&log, "delete m", "delete seed");
        assert!(!log.iter().any(|l| l.contains("(unknown)")), "{log:?}");
        assert!(
            log.iter().any(|l| l.starts_with("> configure result of id-seed")),
            "{log:?}"
        );
    }
    // The seed is to be replaced, and the provider is configured with the old seed when it destroys.
    let mut case = Case::new(text);
    case.apply();
    case.main(&text.replace("{ name = \"seed\" }", "{\n name = \"seed\"\n forced = \"now\"\n }"));
    case.destroy();
    assert!(case.state.is_empty(), "{:?}", case.addresses());
    assert!(case.remote.names().is_empty());
}

#[test]
fn target_without_object_selects_no_dependents() {
    let mut case = Case::new(
        "resource \"fake_thing\" \"old\" { name = \"old\" }\nresource \"fake_thing\" \"b\" {\n name = fake_thing.old.id\n}",
    );
    case.apply();
    // The new object does not exist, so no stored object depends on it yet.
    case.main("resource \"fake_thing\" \"new\" { name = \"new\" }\nresource \"fake_thing\" \"b\" {\n name = fake_thing.new.id\n}");
    case.options.mode = Mode::Destroy;
    case.target(&["fake_thing.new"]);
    let plan = case.plan();
    assert!(plan.changes.is_empty(), "{:?}", plan.changes);
}

#[test]
fn destroying_a_target_selects_recorded_dependents_only() {
    let mut case = Case::new(
        "resource \"fake_thing\" \"a\" { name = \"a\" }\nresource \"fake_thing\" \"b\" {\n name = \"b\"\n value = fake_thing.a.id\n}\n\
         resource \"fake_thing\" \"c\" { name = \"c\" }",
    );
    case.apply();
    case.main(
        "resource \"fake_thing\" \"a\" { name = \"a\" }\nresource \"fake_thing\" \"b\" { name = \"b\" }\n\
         resource \"fake_thing\" \"c\" {\n name = \"c\"\n value = fake_thing.a.id\n}",
    );
    case.options.mode = Mode::Destroy;
    case.target(&["fake_thing.a"]);
    assert_eq!(actions(&case.plan()), ["- fake_thing.a", "- fake_thing.b"]);
}

#[test]
fn reversed_dependency_without_apply_can_be_destroyed() {
    let mut case = Case::new(
        "resource \"fake_thing\" \"a\" { name = \"a\" }\nresource \"fake_thing\" \"b\" {\n name = \"b\"\n value = fake_thing.a.id\n}",
    );
    case.apply();
    case.main(
        "resource \"fake_thing\" \"a\" {\n name = \"a\"\n value = fake_thing.b.id\n}\nresource \"fake_thing\" \"b\" { name = \"b\" }",
    );
    case.options.mode = Mode::RefreshOnly;
    case.apply();
    case.remote.changes();
    // In the refreshed state, each resource depends on the other.
    case.options.mode = Mode::Normal;
    case.destroy();
    assert!(case.state.is_empty());
    assert_eq!(case.remote.changes(), ["delete b", "delete a"]);
}

#[test]
fn objects_are_destroyed_although_files_of_their_configuration_are_gone() {
    let missing = r#"
        locals { text = file("missing.txt") }
        resource "fake_thing" "a" {
          name  = "a"
          value = file("missing.txt")
        }
        resource "fake_thing" "b" {
          for_each = toset([local.text])
          name     = templatefile("missing.tftpl", {})
        }
        data "fake_lookup" "d" { query = filesha256("missing.txt") }
        output "o" { value = local.text }
    "#;
    for refresh in [true, false] {
        let mut case = Case::new("resource \"fake_thing\" \"a\" {\n name = \"a\"\n value = \"1\"\n}");
        case.apply();
        case.main(missing);
        assert!(
            case.plan_errors().contains("missing.txt"),
            "any other plan needs the file"
        );
        case.options.mode = Mode::Destroy;
        case.options.refresh = refresh;
        assert_eq!(actions(&case.plan()), ["- fake_thing.a"], "refresh: {refresh}");
        case.apply();
        assert!(case.state.is_empty(), "{:?}", case.addresses());
    }
}

#[test]
fn provider_whose_file_is_gone_destroys_nothing() {
    let mut case = Case::new("resource \"fake_thing\" \"a\" {\n name = \"a\"\n}");
    case.apply();
    case.main(
        "provider \"fake\" {\n token = file(\"missing.txt\")\n}\nresource \"fake_thing\" \"a\" {\n name = \"a\"\n}",
    );
    case.options.mode = Mode::Destroy;
    case.remote.take_log();
    let errors = case.plan_errors();
    assert!(errors.contains("missing.txt"), "{errors}");
    assert!(
        !case
            .remote
            .take_log()
            .iter()
            .any(|call| call.starts_with("> configure"))
    );
}
