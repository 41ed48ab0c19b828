//! Provider configurations with `for_each` (OpenTofu), and the instances that objects use.

use addrs::InstanceKey;
use cty::{Type, Value};

use crate::support::{Case, actions, texts};

const REGIONS: &str = r#"
    variable "regions" {
      type    = set(string)
      default = ["eu", "us"]
    }
    provider "fake" {
      alias    = "by"
      for_each = var.regions
      token    = "t-${each.key}"
    }
"#;

fn regions(keys: &[&str]) -> Value {
    Value::set(Type::String, keys.iter().map(|k| Value::string(*k)).collect())
}

/// Returns the provider configuration that the state records for an instance.
fn recorded(case: &Case, address: &str) -> String {
    let address = addrs::parse::resource_instance(address).unwrap();
    let resource = &case.state.resources[&address.containing_resource()];
    resource.provider_of(&address.resource.key).to_string()
}

#[test]
fn each_instance_of_a_resource_uses_the_provider_instance_of_its_key() {
    let mut case = Case::new(&format!(
        r#"{REGIONS}
        resource "fake_thing" "a" {{
          for_each = toset(["eu", "us"])
          provider = fake.by[each.key]
          name     = each.key
        }}
        resource "fake_thing" "b" {{
          count    = 1
          provider = fake.by[["us"][count.index]]
          name     = "b"
        }}
        data "fake_lookup" "d" {{
          provider = fake.by["eu"]
          query    = "q"
        }}
        "#
    ));
    case.apply();
    assert_eq!(case.attribute("fake_thing.a[\"eu\"]", "token"), "t-eu");
    assert_eq!(case.attribute("fake_thing.a[\"us\"]", "token"), "t-us");
    assert_eq!(case.attribute("fake_thing.b[0]", "token"), "t-us");
    assert!(recorded(&case, "fake_thing.a[\"eu\"]").ends_with("/fake\"].by[\"eu\"]"));
    assert!(recorded(&case, "data.fake_lookup.d").ends_with("/fake\"].by[\"eu\"]"));
    case.assert_settled();
    // Each object is destroyed by the provider instance that the state records.
    case.destroy();
    assert!(case.state.is_empty());
}

const CHILD: &str = r#"
    terraform {
      required_providers {
        fake = { source = "hashicorp/fake" }
      }
    }
    variable "name" {}
    resource "fake_thing" "x" { name = var.name }
"#;

#[test]
fn instances_are_passed_down_through_modules() {
    let main = format!(
        r#"{REGIONS}
        module "m" {{
          source    = "./m"
          for_each  = toset(["eu", "us"])
          providers = {{ fake = fake.by[each.key] }}
          name      = each.key
        }}
        "#
    );
    let middle = r#"
        terraform {
          required_providers {
            fake = { source = "hashicorp/fake" }
          }
        }
        variable "name" {}
        module "n" {
          source    = "../n"
          providers = { fake = fake }
          name      = var.name
        }
    "#;
    let mut case = Case::with_files(&[("main.tf", &main), ("m/main.tf", middle), ("n/main.tf", CHILD)]);
    case.apply();
    let of = |key: &str| format!("module.m[\"{key}\"].module.n.fake_thing.x");
    assert_eq!(case.attribute(&of("eu"), "token"), "t-eu");
    assert_eq!(case.attribute(&of("us"), "token"), "t-us");
    assert!(
        recorded(&case, &of("us")).starts_with("provider["),
        "the block stands in the root module"
    );
    assert!(recorded(&case, &of("us")).ends_with(".by[\"us\"]"));
    case.assert_settled();
}

#[test]
fn objects_whose_provider_instance_was_removed_cannot_be_destroyed() {
    let mut case = Case::new(&format!(
        r#"{REGIONS}
        variable "objects" {{
          type    = set(string)
          default = ["eu", "us"]
        }}
        resource "fake_thing" "a" {{
          for_each = var.objects
          provider = fake.by[each.key]
          name     = each.key
        }}
        "#
    ));
    case.apply();
    // The object and its provider instance cannot be removed in one step.
    case.variable("regions", regions(&["eu"]))
        .variable("objects", regions(&["eu"]));
    let errors = case.plan_errors();
    assert!(errors.contains("Provider instance not present"), "{errors}");
    assert!(
        errors.contains("fake_thing.a[\"us\"]") && errors.contains(".by[\"us\"]"),
        "{errors}"
    );
    // In two steps it succeeds: first the object is removed, then its provider instance.
    case.variable("regions", regions(&["eu", "us"]));
    assert_eq!(actions(&case.plan()), ["- fake_thing.a[\"us\"]"]);
    case.apply();
    case.variable("regions", regions(&["eu"]));
    case.assert_settled();
}

#[test]
fn objects_of_a_configuration_that_gets_for_each_need_a_key() {
    let with = |provider: &str, of: &str| {
        format!(
            r#"
            provider "fake" {{
              alias = "by"
              {provider}
              token = "t"
            }}
            resource "fake_thing" "a" {{
              for_each = toset(["eu"])
              provider = {of}
              name     = each.key
            }}
            "#
        )
    };
    let mut case = Case::new(&with("", "fake.by"));
    case.apply();
    assert!(recorded(&case, "fake_thing.a[\"eu\"]").ends_with(".by"));
    // An object that had no provider key is now managed through the key in its configuration.
    case.main(&with("for_each = toset([\"eu\"])", "fake.by[each.key]"));
    case.apply();
    assert!(recorded(&case, "fake_thing.a[\"eu\"]").ends_with(".by[\"eu\"]"));
    // The reverse: now it is managed without a key.
    case.main(&with("", "fake.by"));
    case.apply();
    assert!(recorded(&case, "fake_thing.a[\"eu\"]").ends_with(".by"));
    let gone = with("for_each = toset([\"eu\"])", "fake.by[each.key]").replacen(
        "toset([\"eu\"])\n              provider",
        "toset([])\n              provider",
        1,
    );
    case.main(&gone);
    let errors = case.plan_errors();
    assert!(errors.contains("has got for_each since"), "{errors}");
}

#[test]
fn unsuitable_keys_are_errors() {
    let with = |key: &str| {
        Case::new(&format!(
            r#"{REGIONS}
            variable "secret" {{
              default   = "eu"
              sensitive = true
            }}
            variable "never" {{
              default   = "eu"
              ephemeral = true
            }}
            resource "fake_thing" "first" {{
              provider = fake.by["eu"]
              name     = "first"
            }}
            resource "fake_thing" "a" {{
              provider = fake.by[{key}]
              name     = "a"
            }}
            "#
        ))
    };
    for (key, expected) in [
        (
            "var.secret",
            "Invalid provider instance key [fake_thing.a]: The key is sensitive",
        ),
        (
            "var.never",
            "Invalid provider instance key [fake_thing.a]: The key depends on an ephemeral value",
        ),
        ("null", "Invalid provider instance key [fake_thing.a]: The key is null"),
        (
            "[]",
            "Invalid provider instance key [fake_thing.a]: The key must be a string",
        ),
        (
            "fake_thing.first.id",
            "Invalid provider instance key [fake_thing.a]: The key is known only after apply",
        ),
        (
            "\"asia\"",
            "Provider instance not present [fake_thing.a]: fake_thing.a uses the provider instance",
        ),
        ("each.key", "each"),
    ] {
        let errors = with(key).plan_errors();
        assert!(errors.contains(expected), "{key}: {errors}");
    }
    for key in ["var.secret", "null", "[]"] {
        let problems = with(key).validate();
        assert!(
            texts(&problems).contains("Invalid provider instance key"),
            "{key}: {}",
            texts(&problems)
        );
    }
    assert!(!with("var.regions == null ? \"x\" : \"eu\"").validate().has_errors());
}

#[test]
fn the_collection_of_a_provider_configuration_is_static() {
    for (for_each, expected) in [
        ("fake_thing.first", "Dynamic value in static context"),
        ("local.ids", "Dynamic value in static context"),
        ("{ x = terraform.applying }", "Invalid attribute in static context"),
        ("each.value", "each"),
        ("[\"eu\"]", "Invalid for_each argument"),
    ] {
        let errors = Case::new(&case_text(for_each)).plan_errors();
        assert!(errors.contains(expected), "{for_each}: {errors}");
    }
    Case::new(&case_text("local.plain")).apply();
}

fn case_text(for_each: &str) -> String {
    format!(
        r#"
        provider "fake" {{
          alias    = "by"
          for_each = {for_each}
        }}
        locals {{
          ids   = {{ for k, v in fake_thing.first : k => v }}
          plain = toset(["eu"])
        }}
        resource "fake_thing" "first" {{ name = "first" }}
        resource "fake_thing" "a" {{
          provider = fake.by["eu"]
          name     = "a"
        }}
        "#
    )
}

#[test]
fn an_instance_without_uses_and_none_at_all_are_allowed() {
    let mut case = Case::new(&format!("{REGIONS}\nresource \"fake_thing\" \"a\" {{ name = \"a\" }}"));
    case.variable("regions", regions(&[]));
    case.apply();
    let address = addrs::parse::resource_instance("fake_thing.a").unwrap();
    let resource = &case.state.resources[&address.containing_resource()];
    assert_eq!(resource.instances[&InstanceKey::None].provider_key, None);
}

#[test]
fn generated_blocks_have_the_key_of_their_provider_instance() {
    let mut case = Case::new("resource \"fake_thing\" \"a\" { name = \"a\" }");
    case.apply();
    let id = case.attribute("fake_thing.a", "id");
    case.main(&format!(
        "{REGIONS}\nremoved {{\n from = fake_thing.a\n lifecycle {{\n  destroy = false\n }}\n}}\nimport {{\n to = fake_thing.b\n id = {id}\n \
         provider = fake.by[\"eu\"]\n}}"
    ));
    case.options.generate_config = true;
    let plan = case.plan();
    let address = addrs::parse::resource_instance("fake_thing.b").unwrap();
    let text = &plan.generated_config[&address];
    assert!(text.contains("provider = fake.by[\"eu\"]"), "{text}");
}
