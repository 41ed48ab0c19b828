//! Provider configurations.

use cty::Value;
use engine::plan::Mode;

use crate::support::remote::assert_before;
use crate::support::{Case, actions, texts};

#[test]
fn provider_configured_from_variables() {
    let mut case = Case::new(
        r#"
        variable "token" {}
        provider "fake" { token = "t-${var.token}" }
        resource "fake_thing" "a" { name = "a" }
        "#,
    );
    case.variable("token", Value::string("1")).apply();
    assert_eq!(case.attribute("fake_thing.a", "token"), "t-1");
}

const FROM_RESOURCE: &str = r#"
    resource "other_thing" "cluster" {
      name  = "cluster"
      value = "1"
    }
    provider "fake" { token = other_thing.cluster.note }
    resource "fake_thing" "a" { name = "a" }
"#;

#[test]
fn provider_configured_from_object_of_same_apply() {
    let mut case = Case::new(FROM_RESOURCE);
    case.apply();
    let log = case.remote.take_log();
    assert!(
        log.contains(&"> configure (unknown)".to_owned()),
        "in planning it is not known: {log:?}"
    );
    assert_before(&log, "create cluster", "create a");
    assert_eq!(
        case.attribute("fake_thing.a", "token"),
        case.attribute("other_thing.cluster", "note")
    );
    case.assert_settled();
    // Objects are destroyed in reverse order, with the old provider configuration.
    case.remote.take_log();
    case.destroy();
    let log = case.remote.take_log();
    assert_before(&log, "delete a", "delete cluster");
    assert!(!log.contains(&"> configure (unknown)".to_owned()), "{log:?}");
}

#[test]
fn deletion_uses_changed_provider_configuration() {
    let mut case = Case::new(FROM_RESOURCE);
    case.apply();
    let text = FROM_RESOURCE
        .replace("\"1\"", "\"2\"")
        .replace("resource \"fake_thing\" \"a\" { name = \"a\" }", "");
    case.main(&format!("{text}\nresource \"fake_thing\" \"b\" {{ name = \"b\" }}"));
    assert_eq!(
        actions(&case.plan()),
        ["- fake_thing.a", "+ fake_thing.b", "~ other_thing.cluster"]
    );
    case.remote.take_log();
    case.apply();
    let log = case.remote.take_log();
    // The provider that deletes `a` is configured from the new values of the cluster.
    assert_before(&log, "update cluster", "delete a");
    assert_eq!(
        case.attribute("fake_thing.b", "token"),
        case.attribute("other_thing.cluster", "note")
    );
}

#[test]
fn destroy_plan_reads_data_source_of_provider_configuration() {
    let mut case = Case::new(
        r#"
        data "other_lookup" "token" { query = "q" }
        provider "fake" { token = data.other_lookup.token.result }
        resource "fake_thing" "a" { name = "a" }
        "#,
    );
    case.apply();
    assert_eq!(case.attribute("fake_thing.a", "token"), "result of q");
    case.remote.take_log();
    case.options.mode = Mode::Destroy;
    let plan = case.plan();
    let log = case.remote.take_log();
    assert!(
        log.contains(&"> data q".to_owned()),
        "tokens do not last: it is read again: {log:?}"
    );
    let diagnostics = case.try_apply(&plan);
    assert!(!diagnostics.has_errors());
    let log = case.remote.take_log();
    assert!(log.contains(&"> configure result of q".to_owned()), "{log:?}");
    assert!(case.state.is_empty(), "{:?}", case.addresses());
}

#[test]
fn aliases() {
    let mut case = Case::new(
        r#"
        provider "fake" { token = "default" }
        provider "fake" {
          alias = "second"
          token = "second"
        }
        resource "fake_thing" "a" { name = "a" }
        resource "fake_thing" "b" {
          provider = fake.second
          name     = "b"
        }
        "#,
    );
    case.apply();
    assert_eq!(case.attribute("fake_thing.a", "token"), "default");
    assert_eq!(case.attribute("fake_thing.b", "token"), "second");
    case.assert_settled();
}

const CHILD: &str = r#"
    terraform {
      required_providers {
        fake = {
          source                = "hashicorp/fake"
          configuration_aliases = [fake.extra]
        }
      }
    }
    resource "fake_thing" "a" { name = "a" }
    resource "fake_thing" "b" {
      provider = fake.extra
      name     = "b"
    }
"#;

const PARENT: &str = r#"
    provider "fake" { token = "default" }
    provider "fake" {
      alias = "one"
      token = "one"
    }
    provider "fake" {
      alias = "two"
      token = "two"
    }
    module "m" {
      source    = "./m"
      providers = {
        fake       = fake.one
        fake.extra = fake.two
      }
    }
"#;

#[test]
fn provider_configurations_are_passed_to_modules() {
    let mut case = Case::with_files(&[("main.tf", PARENT), ("m/main.tf", CHILD)]);
    case.apply();
    assert_eq!(case.attribute("module.m.fake_thing.a", "token"), "one");
    assert_eq!(case.attribute("module.m.fake_thing.b", "token"), "two");
}

#[test]
fn objects_of_removed_module_are_destroyed_with_their_provider() {
    let mut case = Case::with_files(&[("main.tf", PARENT), ("m/main.tf", CHILD)]);
    case.apply();
    let end = PARENT.find("module \"m\"").unwrap();
    case.files(&[("main.tf", &PARENT[..end])]);
    assert_eq!(
        actions(&case.plan()),
        ["- module.m.fake_thing.a", "- module.m.fake_thing.b"]
    );
    case.remote.take_log();
    case.apply();
    let log = case.remote.take_log();
    assert!(
        log.contains(&"> configure one".to_owned()) && log.contains(&"> configure two".to_owned()),
        "{log:?}"
    );
    assert!(
        !log.contains(&"> configure default".to_owned()),
        "nobody needs it: {log:?}"
    );
    assert!(case.state.is_empty());
}

#[test]
fn removed_provider_configuration_with_objects_is_an_error() {
    let mut case = Case::with_files(&[("main.tf", PARENT), ("m/main.tf", CHILD)]);
    case.apply();
    case.files(&[("main.tf", "")]);
    let errors = case.plan_errors();
    assert!(errors.contains("Provider configuration not present"), "{errors}");
    assert!(
        errors.contains("module.m.fake_thing.a")
            && errors.contains("provider[\"registry.terraform.io/hashicorp/fake\"].one"),
        "{errors}"
    );
}

#[test]
fn default_provider_configuration_needs_no_block() {
    let mut case = Case::new("provider \"fake\" { token = \"x\" }\nresource \"fake_thing\" \"a\" { name = \"a\" }");
    case.apply();
    case.main("").apply();
    assert!(case.state.is_empty());
}

#[test]
fn invalid_provider_configuration_is_an_error() {
    let case = Case::new("provider \"fake\" { token = \"bad\" }\nresource \"fake_thing\" \"a\" { name = \"a\" }");
    case.remote.fail("configure bad");
    let errors = case.plan_errors();
    assert!(errors.contains("Bad token"), "{errors}");
    assert_eq!(errors.matches("Error: ").count(), 1, "{errors}");
}

#[test]
fn destroying_a_target_reads_data_sources_of_its_provider_only() {
    let mut case = Case::new(
        r#"
        provider "third" { token = "third" }
        data "third_lookup" "token" { query = "q" }
        data "other_lookup" "unrelated" { query = "u" }
        locals { token = data.third_lookup.token.result }
        provider "fake" { token = local.token }
        resource "fake_thing" "a" { name = "a" }
        resource "fake_thing" "b" { name = "b" }
        "#,
    );
    case.apply();
    case.target(&["fake_thing.a"]);
    case.options.mode = Mode::Destroy;
    case.remote.take_log();
    let plan = case.plan();
    assert_eq!(actions(&plan), ["- fake_thing.a"]);
    let log = case.remote.take_log();
    assert!(
        log.contains(&"> data q".to_owned()) && log.contains(&"> configure result of q".to_owned()),
        "{log:?}"
    );
    assert!(!log.contains(&"> data u".to_owned()), "{log:?}");
    let diagnostics = case.try_apply(&plan);
    assert!(!diagnostics.has_errors());
    assert_eq!(
        case.addresses(),
        ["data.other_lookup.unrelated", "data.third_lookup.token", "fake_thing.b"]
    );
}

#[test]
fn provider_block_that_nothing_uses_stops_no_plan() {
    for body in [
        "token = file(\"missing\")",
        "tokens = 1",
        "token = fake_thing.nope.id",
        "token = tolist([])[0]",
    ] {
        let unused = format!(
            "resource \"other_thing\" \"a\" {{\n name = \"a\"\n}}\n\
             provider \"fake\" {{\n {body}\n}}\n\
             provider \"fake\" {{\n alias = \"x\"\n {body}\n}}"
        );
        let case = Case::new(&unused);
        assert_eq!(actions(&case.plan()), ["+ other_thing.a"], "{body}");
        assert_ne!(texts(&case.validate()), "", "{body}: what is written is judged");
        let case = Case::new(&(unused + "\nresource \"fake_thing\" \"b\" {\n name = \"b\"\n}"));
        assert!(!case.plan_errors().is_empty(), "{body}");
    }
}

#[test]
fn process_ends_after_the_last_operation_of_its_configuration() {
    let mut case = Case::new(
        r#"
        provider "fake" { token = "first" }
        provider "fake" {
          alias = "second"
          token = "second"
        }
        resource "fake_thing" "a" { name = "a" }
        resource "fake_thing" "b" {
          name       = "b"
          provider   = fake.second
          depends_on = [fake_thing.a]
        }
        resource "fake_thing" "c" {
          name       = "c"
          provider   = fake.second
          depends_on = [fake_thing.b]
        }
        "#,
    );
    let plan = case.plan();
    case.remote.take_log();
    case.remote.lock().closed_providers.clear();
    let diagnostics = case.try_apply(&plan);
    assert!(!diagnostics.has_errors(), "{}", texts(diagnostics.iter()));
    let closed = case.remote.lock().closed_providers.clone();
    let log = case.remote.take_log();
    let created = log.iter().position(|entry| entry == "< create c").unwrap();
    let [(first, early), (second, _)] = &closed[..] else {
        panic!("each process is closed once: {closed:?}");
    };
    assert_eq!([first, second], ["first", "second"]);
    assert!(*early <= created, "closed after {early} of {log:?}");
    // Both are needed again to destroy, where the order is reversed.
    case.remote.lock().closed_providers.clear();
    case.destroy();
    let closed = case.remote.lock().closed_providers.clone();
    let tokens: Vec<&str> = closed.iter().map(|(token, _)| &**token).collect();
    assert_eq!(tokens.last(), Some(&"first"), "{tokens:?}");
}

#[test]
fn process_stays_while_functions_of_its_provider_are_called() {
    let mut case = Case::new(
        r#"
        terraform {
          required_providers {
            fake = { source = "hashicorp/fake" }
          }
        }
        provider "fake" { token = "first" }
        provider "other" {}
        resource "fake_thing" "a" { name = "a" }
        resource "other_thing" "b" {
          name       = "b"
          value      = provider::fake::shout(fake_thing.a.id)
          depends_on = [fake_thing.a]
        }
        output "shouted" { value = provider::fake::shout(other_thing.b.value) }
        "#,
    );
    case.apply();
    case.assert_settled();
}
