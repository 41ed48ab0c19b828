//! States that other programs have written: states of older releases, and states with leftovers of a
//! replacement.

use serde_json::{Value, json};
use support::Workspace;

pub const TESTS: &[(&str, fn())] = &[
    (
        "foreign_states::objects_of_an_older_release_are_equal_and_hashes_of_them_are_not",
        objects_of_an_older_release_are_equal_and_hashes_of_them_are_not,
    ),
    (
        "foreign_states::deposed_objects_are_counted_when_they_are_destroyed",
        deposed_objects_are_counted_when_they_are_destroyed,
    ),
];

fn object(attributes: &Value) -> Value {
    json!({"schema_version": 0, "attributes": attributes, "sensitive_attributes": []})
}

fn resource(name: &str, instances: &[Value]) -> Value {
    json!({
        "mode": "managed", "type": "terraform_data", "name": name,
        "provider": "provider[\"terraform.io/builtin/terraform\"]", "instances": instances,
    })
}

fn with_state(configuration: &str, resources: &[Value]) -> Workspace {
    let state = json!({
        "version": 4, "terraform_version": "1.11.4", "serial": 1, "lineage": "b7f8c1a6-0000-4000-8000-000000000001",
        "outputs": {}, "resources": resources, "check_results": null,
    });
    Workspace::with(&[("main.tf", configuration), ("terraform.tfstate", &state.to_string())])
}

/// Terraform 1.16 added an attribute to `terraform_data`. A value that is computed from a whole object differs after that,
/// but a copy of the object is recognized as equal.
fn objects_of_an_older_release_are_equal_and_hashes_of_them_are_not() {
    let trigger = json!({"id": "i", "input": {"data": "hello"}, "output": {"data": "hello"}, "triggers_replace": null});
    let ty = json!(["object", {
        "id": "string", "input": ["object", {"data": "string"}], "output": ["object", {"data": "string"}], "triggers_replace": "dynamic",
    }]);
    let dynamic = |value: &Value| json!({"value": value, "type": ["object", {"data": "string"}]});
    let stored = json!({
        "id": "i", "input": dynamic(&trigger["input"]), "output": dynamic(&trigger["output"]), "triggers_replace": null,
    });
    let whole = json!({"id": "w", "input": null, "output": null, "triggers_replace": {"value": trigger, "type": ty}});
    // SHA-1 of the JSON form of the object without the new attribute.
    let hash = json!({"value": "246ba94895da2c856beb7fa1b17e68132e594b3c", "type": "string"});
    let hashed = json!({"id": "h", "input": null, "output": null, "triggers_replace": hash});
    let configuration = r#"
resource "terraform_data" "trigger" {
  input = { data = "hello" }
}
resource "terraform_data" "whole" {
  triggers_replace = terraform_data.trigger
}
resource "terraform_data" "hashed" {
  triggers_replace = sha1(jsonencode(terraform_data.trigger))
}
"#;
    let resources = [("hashed", &hashed), ("trigger", &stored), ("whole", &whole)];
    let w = with_state(
        configuration,
        &resources.map(|(name, attributes)| resource(name, &[object(attributes)])),
    );
    let plan = w.run(&["plan", "-no-color"]).ok();
    let plan = plan.shows(&[
        "terraform_data.hashed must be replaced",
        "Plan: 1 to add, 0 to change, 1 to destroy.",
    ]);
    assert!(!plan.stdout.contains("# terraform_data.whole"), "{}", plan.stdout);
}

/// The expected number is that of the plan. Terraform's number depends on the order in which objects are destroyed: it may be three instead
/// of five.
fn deposed_objects_are_counted_when_they_are_destroyed() {
    let of = |id: &str| object(&json!({"id": id, "input": null, "output": null, "triggers_replace": null}));
    let deposed = |id: &str, key: &str| {
        let mut object = of(id);
        object["deposed"] = key.into();
        object
    };
    let resources = [
        resource("a", &[of("a"), deposed("a1", "00000001")]),
        resource("b", &[of("b"), deposed("b1", "00000002")]),
        resource("c", &[of("c")]),
    ];
    let w = with_state("", &resources);
    w.run(&["destroy", "-no-color", "-auto-approve"]).ok().shows(&[
        "Plan: 0 to add, 0 to change, 5 to destroy.",
        "Destroy complete! Resources: 5 destroyed.",
    ]);
}
