//! `explain`: origins of values, effects of a plan, and dependencies.

use support::Workspace;

pub const TESTS: &[(&str, fn())] = &[
    ("explain::where_values_come_from", where_values_come_from),
    ("explain::what_a_plan_does", what_a_plan_does),
    ("explain::what_is_not_there", what_is_not_there),
];

const MAIN: &str = r#"variable "size" {
  default = "small"
}
variable "pin" {
  sensitive = true
  default   = "12-34-56"
}
locals {
  label = "${var.size}-${terraform.workspace}"
}
resource "terraform_data" "base" {
  input            = local.label
  triggers_replace = var.size
}
resource "terraform_data" "secret" {
  input = var.pin
}
module "m" {
  source = "./m"
  given  = terraform_data.base.output
}
resource "terraform_data" "last" {
  count = 2
  input = "${module.m.made}-${count.index}"
  lifecycle {
    replace_triggered_by = [terraform_data.secret]
  }
}
output "o" {
  value = terraform_data.base.id
}
"#;

const CHILD: &str = r#"variable "given" {}
resource "terraform_data" "inner" {
  input = var.given
}
output "made" {
  value = terraform_data.inner.output
}
"#;

fn workspace() -> Workspace {
    Workspace::with(&[("main.tf", MAIN), ("m/main.tf", CHILD)])
}

fn where_values_come_from() {
    let w = workspace();
    w.run(&["get"]).ok();
    w.write("terraform.tfvars", "size = \"large\"\n");
    // The resource is explained before there is a state.
    w.run(&["explain", "terraform_data.base"]).ok().shows(&[
        "Declared at main.tf:11. Its provider is terraform.io/builtin/terraform.",
        "None in the state yet.",
        "  input\n    main.tf:12: local.label\n      local.label: local value, main.tf:9\n        var.size: file of variables, \
         terraform.tfvars:1\n        terraform.workspace: a fact about this run\n",
        "  id\n    decided by the provider\n",
        "Depends on\n  Nothing.\n",
        "Needed by\n  module.m.terraform_data.inner\n  terraform_data.last (by way of others)\n",
        "  main.tf:20: module.m\n",
        "  main.tf:30: output.o\n",
    ]);
    w.run(&["explain", "-var=size=x", "terraform_data.base"])
        .ok()
        .shows(&["var.size: option -var, main.tf:1"]);
    w.run(&["apply", "-auto-approve"]).ok();
    // The resource is explained through modules, in both directions.
    w.run(&["explain", "module.m.terraform_data.inner"]).ok().shows(&[
        "module.m.terraform_data.inner: in the state",
        "  input = \"large-default\"\n    m/main.tf:3: var.given\n      var.given: argument of module.m, main.tf:20\n        \
         terraform_data.base: resource, main.tf:11\n",
        "Depends on\n  terraform_data.base\n",
    ]);
    w.run(&["explain", "terraform_data.last"]).ok().shows(&[
        "terraform_data.last[1]: in the state",
        "  count\n    main.tf:23: 2\n",
        "module.m.made: output value, m/main.tf:5\n        terraform_data.inner: resource, m/main.tf:2\n",
        "count.index: the number of the instance\n",
    ]);
    let secret = w.run(&["explain", "terraform_data.secret"]).ok().shows(&[
        "input = (sensitive value)",
        "var.pin: default of the variable, main.tf:4",
    ]);
    let document = w.run(&["explain", "-json", "terraform_data.secret"]).ok();
    assert!(!secret.all().contains("12-34-56"), "{}", secret.all());
    assert!(!document.all().contains("12-34-56"), "{}", document.all());
    let document = document.json();
    assert_eq!(document["format_version"], "1.0");
    assert_eq!(
        document["declared"],
        serde_json::json!({"filename": "main.tf", "line": 15})
    );
    let input = document["values"]
        .as_array()
        .and_then(|all| all.iter().find(|value| value["name"] == "input"));
    let input = input.expect("the argument");
    assert_eq!(
        *input,
        serde_json::json!({
            "name": "input",
            "origin": "configuration",
            "range": {"filename": "main.tf", "line": 16},
            "expression": "var.pin",
            "sensitive": true,
            "from": [{
                "reference": "var.pin",
                "about": "default of the variable",
                "range": {"filename": "main.tf", "line": 4},
            }],
        })
    );
}

fn what_a_plan_does() {
    let w = workspace();
    w.run(&["get"]).ok();
    w.run(&["apply", "-auto-approve"]).ok();
    w.run(&["plan", "-var=size=huge", "-var=pin=new-pin-9", "-out=p"]).ok();
    let before = w.read("terraform.tfstate");
    w.run(&["explain", "-plan=p", "terraform_data.base"]).ok().shows(&[
        "The plan replaces it: the old object is destroyed before the new one is created.",
        "The provider cannot make such a change in place.",
        "triggers_replace: \"small\" -> \"huge\"  (requires replacement)",
        "input: \"small-default\" -> \"huge-default\"\n",
        "id: ",
        "-> (known after apply)",
        "var.size: value in the saved plan, main.tf:1",
    ]);
    w.run(&["explain", "-plan=p", "terraform_data.last[0]"]).ok().shows(&[
        "Something that replace_triggered_by names will change.",
        "main.tf:26: terraform_data.secret\n",
    ]);
    let document = w.run(&["explain", "-plan=p", "-json", "terraform_data.secret"]).ok();
    assert!(!document.all().contains("new-pin"), "{}", document.all());
    let change = &document.json()["instances"][0]["change"];
    assert_eq!(change["actions"], serde_json::json!(["update"]));
    assert_eq!(
        change["changed"][0],
        serde_json::json!({
            "name": "input",
            "before": "(sensitive value)",
            "after": "(sensitive value)",
            "requires_replacement": false,
        })
    );
    // Explains resources that are no longer in the configuration.
    w.write("main.tf", "");
    w.run(&["explain", "terraform_data.base"]).ok().shows(&[
        "Not in the configuration. Its provider is terraform.io/builtin/terraform.",
        "terraform_data.base: in the state",
    ]);
    assert_eq!(w.read("terraform.tfstate"), before);
}

fn what_is_not_there() {
    let w = workspace();
    w.run(&["get"]).ok();
    w.run(&["explain", "terraform_data.bass"])
        .fails_with(&["No such resource", "Did you mean terraform_data.base?"]);
    w.run(&["explain", "module.m"])
        .fails_with(&["Not the address of a resource"]);
    w.run(&["explain"]).fails_with(&["Required argument missing"]);
    w.run(&["explain", "-plan=none", "terraform_data.base"])
        .fails_with(&["none"]);
}
