//! Functions of providers.

use cty::Value;

use crate::support::{Case, change, load_with_queries};

const REQUIRED: &str = r#"
    terraform {
      required_providers {
        loud = { source = "example.com/test/fake" }
      }
    }
"#;

fn case(main: &str) -> Case {
    Case::new(&format!("{REQUIRED}{main}"))
}

#[test]
fn function_results_are_cached_by_arguments() {
    let mut case = case(
        r#"
        resource "fake_thing" "a" {
          count = 3
          name  = provider::loud::shout("same")
          value = provider::loud::shout("no ${count.index}")
        }
        output "x" { value = provider::loud::shout("same") }
        "#,
    );
    let plan = case.plan();
    assert_eq!(
        change(&plan, "fake_thing.a[1]")
            .after
            .get("value")
            .and_then(Value::as_str),
        Some("NO 1")
    );
    let mut calls = case.remote.changes();
    // Instances are evaluated in parallel, so the calls are in any order.
    calls.sort();
    assert_eq!(
        calls,
        [
            "call shout no 0",
            "call shout no 1",
            "call shout no 2",
            "call shout same"
        ]
    );
    assert!(!case.try_apply(&plan).has_errors());
    assert_eq!(case.output("x").as_ref().and_then(Value::as_str), Some("SAME"));
}

#[test]
fn unknown_and_marked_function_arguments() {
    let mut case = case(
        r#"
        variable "s" { sensitive = true }
        resource "fake_thing" "a" { name = "a" }
        resource "fake_thing" "b" {
          name  = provider::loud::shout(var.s)
          value = provider::loud::shout(fake_thing.a.id)
        }
        "#,
    );
    case.variable("s", Value::string("b"));
    let plan = case.plan();
    let after = &change(&plan, "fake_thing.b").after;
    assert!(!after.get("value").unwrap().is_known());
    assert!(after.get("name").unwrap().marks().is_sensitive());
    assert!(!case.try_apply(&plan).has_errors());
    assert_eq!(case.attribute("fake_thing.b", "value"), "ID-A-1");
}

#[test]
fn function_errors_have_positions() {
    let case = case(
        r#"
        output "a" { value = provider::loud::shuot("x") }
        output "b" { value = provider::lout::shout("x") }
        output "c" { value = provider::loud::shout() }
        output "d" { value = provider::loud::shout("x", "y") }
        output "e" { value = provider::loud::shout(["x"]) }
        output "f" { value = provider::loud::shout(null) }
        output "g" { value = provider::loud::shout("") }
        output "h" { value = try(provider::loud::shout(""), "fine") }
        "#,
    );
    let (_, problems) = case.try_plan();
    let text = crate::support::errors(&problems);
    for expected in [
        "Unknown provider function: The function \"shuot\" is not available from the provider \"example.com/test/fake\". Did you \
         mean \"shout\"?",
        "Unknown provider function: There is no function named \"provider::lout::shout\".",
        "Not enough function arguments: Function \"provider::loud::shout\" takes one argument. There is no value for \"text\".",
        "Too many function arguments: Function \"provider::loud::shout\" takes only one argument.",
        "Invalid function argument: Invalid value for \"text\" parameter: string required, but have tuple.",
        "Invalid function argument: Invalid value for \"text\" parameter: argument must not be null.",
        "Invalid function argument: Invalid value for \"text\" parameter: nothing to say.",
    ] {
        assert!(text.contains(expected), "{expected}\nin\n{text}");
    }
    // There is one error for each output except the one with `try`.
    assert_eq!(text.matches("Error: ").count(), 7, "{text}");
    let at = problems
        .iter()
        .find(|d| d.detail.contains("nothing to say"))
        .and_then(|d| d.subject.clone())
        .unwrap();
    assert_eq!(at.end.byte - at.start.byte, 2, "the argument itself: {at}");
}

#[test]
fn different_function_result_during_apply_is_an_error() {
    let mut case = case(
        r#"
        resource "fake_thing" "a" { name = provider::loud::shout("a") }
        "#,
    );
    let plan = case.plan();
    case.remote.mutate("call shout a", |_| Value::string("B"));
    let text = crate::support::errors(&case.try_apply(&plan));
    assert!(
        text.contains("Error in function call") && text.contains("provider function returned an inconsistent result"),
        "{text}"
    );
    assert!(case.remote.names().is_empty());
}

#[test]
fn validation_calls_functions() {
    let case = case("output \"a\" { value = provider::loud::shout(\"\") }");
    let text = crate::support::errors(&case.validate());
    assert!(text.contains("nothing to say"), "{text}");
}

#[test]
fn files_must_not_change_between_plan_and_apply() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("text");
    std::fs::write(&path, "one").unwrap();
    let mut case = Case::new(&format!(
        "resource \"fake_thing\" \"a\" {{\n name = \"a\"\n value = file(\"{}\")\n}}\n",
        path.display()
    ));
    let plan = case.plan();
    std::fs::write(&path, "two").unwrap();
    let problems = case.try_apply(&plan);
    assert!(
        crate::support::errors(&problems).contains("function returned an inconsistent result"),
        "{problems:?}"
    );
    // A new plan reads the file again.
    case.apply().assert_settled();
    assert_eq!(case.attribute("fake_thing.a", "value"), "two");
}

#[test]
fn providers_are_required_for_functions_in_every_part_of_a_configuration() {
    let required = |main: &str, query: &str| {
        let main = format!("{REQUIRED}{main}");
        let (config, problems) = load_with_queries(&[("main.tf", main.as_str()), ("all.tfquery.hcl", query)]);
        assert!(!problems.has_errors(), "{}", crate::support::errors(&problems));
        let needed = engine::requirements::function_providers_needed(&config);
        needed.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let list = |argument: &str| format!("list \"fake_thing\" \"all\" {{\n provider = fake\n {argument}\n}}");
    let provisioner = "provisioner \"local\" {\n when = destroy\n text = provider::loud::shout(\"x\")\n}";
    let cases = [
        (String::new(), list("limit = length(provider::loud::shout(\"x\"))")),
        (
            String::new(),
            list("include_resource = provider::loud::shout(\"x\") == \"X\""),
        ),
        (
            format!("removed {{\n from = fake_thing.a\n lifecycle {{ destroy = true }}\n {provisioner}\n}}"),
            String::new(),
        ),
    ];
    for (main, query) in cases {
        assert_eq!(required(&main, &query), ["example.com/test/fake"], "{main}{query}");
    }
}

const SIGNING: &str = r#"
    terraform {
      required_providers {
        fake = { source = "hashicorp/fake" }
      }
    }
    provider "fake" {
      alias = "other"
      token = "other"
    }
"#;

#[test]
fn functions_of_a_configured_provider_are_called_by_its_alias() {
    let mut case = Case::new(&format!(
        r#"{SIGNING}
        provider "fake" {{ token = "first" }}
        locals {{ signed = provider::fake::sign("b") }}
        resource "fake_thing" "a" {{ name = provider::fake::other::sign("a") }}
        resource "fake_thing" "b" {{ name = local.signed }}
        output "o" {{ value = provider::fake::other::shout("o") }}
        "#
    ));
    assert!(case.validate().is_empty(), "{:?}", case.validate());
    let plan = case.plan();
    let name = |address: &str| change(&plan, address).after.get("name").cloned();
    assert_eq!(name("fake_thing.a"), Some(Value::string("other:a")));
    assert_eq!(name("fake_thing.b"), Some(Value::string("first:b")));
    assert!(!case.try_apply(&plan).has_errors());
    assert_eq!(case.output("o").as_ref().and_then(Value::as_str), Some("O"));
    case.assert_settled();
    case.destroy();
    assert!(case.state.is_empty());
}

#[test]
fn functions_wait_for_the_objects_that_the_configuration_of_their_provider_needs() {
    let mut case = Case::new(&format!(
        r#"{SIGNING}
        resource "fake_thing" "key" {{
          provider = fake.other
          name     = "key"
        }}
        provider "fake" {{ token = fake_thing.key.id }}
        resource "fake_thing" "a" {{
          provider = fake.other
          name     = "a"
          value    = provider::fake::sign("a")
        }}
        output "o" {{ value = provider::fake::sign("o") }}
        "#
    ));
    let plan = case.plan();
    assert!(!change(&plan, "fake_thing.a").after.get("value").unwrap().is_known());
    assert!(!case.try_apply(&plan).has_errors());
    assert_eq!(case.attribute("fake_thing.a", "value"), "id-key-1:a");
    assert_eq!(case.output("o").as_ref().and_then(Value::as_str), Some("id-key-1:o"));
    case.assert_settled();
}

#[test]
fn module_calls_functions_of_the_provider_instance_that_it_gets() {
    let main = format!(
        r#"{SIGNING}
        provider "fake" {{
          alias    = "by"
          for_each = toset(["eu", "us"])
          token    = each.key
        }}
        module "m" {{
          source    = "./m"
          for_each  = toset(["eu", "us"])
          providers = {{ fake = fake.by[each.key] }}
        }}
        output "o" {{ value = [for m in module.m : m.signed] }}
        "#
    );
    let child = r#"
        terraform {
          required_providers {
            fake = { source = "hashicorp/fake" }
          }
        }
        output "signed" { value = provider::fake::sign("x") }
    "#;
    let mut case = Case::with_files(&[("main.tf", &main), ("m/main.tf", child)]);
    case.apply();
    let signed = case.output("o").unwrap();
    let signed: Vec<&str> = signed.as_seq().unwrap().iter().filter_map(Value::as_str).collect();
    assert_eq!(signed, ["eu:x", "us:x"]);
}

#[test]
fn errors_in_calls_of_configured_functions() {
    let by = r#"
        provider "fake" {
          alias    = "by"
          for_each = toset(["eu"])
          token    = each.key
        }
    "#;
    // The first two errors are found before any provider is configured.
    for (calls, expected) in [
        (
            ["by::eu::sign", "absent::sign"],
            [
                "Invalid function format: \"provider::fake::by::eu::sign\" has too many parts.",
                "The function \"sign\" is not available from the provider \"hashicorp/fake\".",
            ],
        ),
        (
            ["other::sing", "by::sign"],
            [
                "The function \"sing\" is not available from the provider \"hashicorp/fake\", even after its configuration. Did \
                 you mean \"sign\"?",
                "Provider instance not selected: The provider configuration \
                 provider[\"registry.terraform.io/hashicorp/fake\"].by has for_each",
            ],
        ),
    ] {
        let outputs = calls.map(|call| {
            let name = call.replace("::", "_");
            format!("output \"{name}\" {{\n value = provider::fake::{call}(\"x\")\n}}\n")
        });
        let text = Case::new(&format!("{SIGNING}{by}{}", outputs.concat())).plan_errors();
        for expected in expected {
            assert!(text.contains(expected), "{expected}\nin\n{text}");
        }
        assert_eq!(text.matches("Error: ").count(), 2, "{text}");
    }
}
