//! Provider configurations with `for_each`, and addresses of providers in states of Terraform.

use std::os::unix::fs::symlink;

use support::{Ran, Workspace, monoform, ran};

pub const TESTS: &[(&str, fn())] = &[
    (
        "provider_instances::keys_are_in_states_plans_and_documents",
        keys_are_in_states_plans_and_documents,
    ),
    (
        "provider_instances::opentofu_continues_and_the_other_way",
        opentofu_continues_and_the_other_way,
    ),
    (
        "provider_instances::terraform_mode_refuses_for_each_and_keys",
        terraform_mode_refuses_for_each_and_keys,
    ),
    (
        "provider_instances::moves_and_taints_keep_the_key",
        moves_and_taints_keep_the_key,
    ),
    (
        "provider_instances::states_of_terraform_are_read_with_addresses_of_opentofu",
        states_of_terraform_are_read_with_addresses_of_opentofu,
    ),
    (
        "provider_instances::mocks_have_the_instances_of_their_for_each",
        mocks_have_the_instances_of_their_for_each,
    ),
];

const MAIN: &str = r#"
terraform {
  required_providers {
    null = { source = "hashicorp/null" }
  }
}
variable "regions" {
  type    = set(string)
  default = ["eu", "us"]
}
variable "objects" {
  type    = set(string)
  default = ["eu", "us"]
}
provider "null" {
  alias    = "by"
  for_each = var.regions
}
resource "null_resource" "a" {
  for_each = var.objects
  provider = null.by[each.key]
}
resource "null_resource" "plain" {
  provider = null.by["us"]
}
resource "null_resource" "usual" {}
module "m" {
  source    = "./m"
  for_each  = var.objects
  providers = { null = null.by[each.key] }
}
"#;

const CALLED: &str = r#"
terraform {
  required_providers {
    null = { source = "hashicorp/null" }
  }
}
resource "null_resource" "x" {}
"#;

fn workspace() -> Workspace {
    Workspace::with(&[("main.tf", MAIN), ("m/main.tf", CALLED)])
}

fn in_mode(w: &Workspace, mode: &str, args: &[&str]) -> Ran {
    let mut command = w.command(monoform());
    command.env("MONOFORM_MODE", mode).args(args);
    ran(command.output().expect("the program starts"))
}

fn tofu(w: &Workspace, args: &[&str]) -> Ran {
    in_mode(w, "opentofu", args)
}

/// Returns the provider of each object in a state, in the form `MODULE NAME KEY: PROVIDER`.
fn providers_in(state: &str) -> Vec<String> {
    let state: serde_json::Value = serde_json::from_str(state).expect("a state");
    let mut out = Vec::new();
    for resource in state["resources"].as_array().expect("resources") {
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        for object in resource["instances"].as_array().expect("instances") {
            let of_resource = text(&resource["provider"]);
            let of_object = text(&object["provider"]);
            assert!(of_resource.is_empty() || of_object.is_empty(), "{resource}");
            out.push(format!(
                "{} {} {}: {of_resource}{of_object}",
                text(&resource["module"]),
                text(&resource["name"]),
                text(&object["index_key"]),
            ));
        }
    }
    out
}

/// Returns the providers of the objects of [`MAIN`], as OpenTofu 1.12.6 has written them.
fn expected(host: &str) -> Vec<String> {
    let address = format!("provider[\"{host}/hashicorp/null\"]");
    let rows = [
        (" a eu", ".by[\"eu\"]"),
        (" a us", ".by[\"us\"]"),
        (" plain ", ".by[\"us\"]"),
        (" usual ", ""),
        ("module.m[\"eu\"] x ", ".by[\"eu\"]"),
        ("module.m[\"us\"] x ", ".by[\"us\"]"),
    ];
    rows.map(|(object, of)| format!("{object}: {address}{of}")).to_vec()
}

const APPLY: &[&str] = &["apply", "-auto-approve", "-no-color"];

fn keys_are_in_states_plans_and_documents() {
    let w = workspace();
    tofu(&w, &["init"]).ok();
    tofu(&w, &["validate"]).ok();
    tofu(&w, &["plan", "-out=plan"]).ok().shows(&["Plan: 6 to add"]);
    let document = tofu(&w, &["show", "-json", "plan"]).ok().stdout;
    let document: serde_json::Value = serde_json::from_str(&document).expect("a plan");
    let called = &document["configuration"]["root_module"]["module_calls"]["m"]["module"]["resources"][0];
    assert_eq!(called["provider_config_key"], "null.by");
    tofu(&w, &["apply", "-no-color", "plan"]).ok().shows(&["6 added"]);
    assert_eq!(
        providers_in(&w.read("terraform.tfstate")),
        expected("registry.opentofu.org")
    );
    tofu(&w, &["plan", "-detailed-exitcode"]).ok();
    tofu(&w, &["state", "show", "null_resource.a[\"eu\"]"])
        .ok()
        .shows(&["resource \"null_resource\" \"a\""]);
    tofu(&w, &["providers"])
        .ok()
        .shows(&["provider[registry.opentofu.org/hashicorp/null]"]);
    // The plan would remove the objects together with the provider instance by which they have to be destroyed.
    let both = ["-var", "regions=[\"eu\"]", "-var", "objects=[\"eu\"]"];
    let ran = tofu(&w, &[&["plan", "-no-color"], &both[..]].concat());
    ran.fails_with(&[
        "Provider instance not present",
        "null_resource.a[\"us\"]",
        ".by[\"us\"]",
    ]);
    let ran = tofu(&w, &["destroy", "-auto-approve", "-no-color"]).ok();
    ran.shows(&["6 destroyed"]);
}

fn opentofu_continues_and_the_other_way() {
    let Some(opentofu) = support::needs("tofu", "provider_instances::opentofu_continues_and_the_other_way") else {
        return;
    };
    let w = workspace();
    let dir = w.home().join("development");
    std::fs::create_dir(&dir).expect("a directory");
    symlink(monoform(), dir.join("terraform-provider-null")).expect("a link");
    let config = format!(
        "provider_installation {{\n  dev_overrides {{\n    \"hashicorp/null\" = \"{}\"\n  }}\n  direct {{}}\n}}\n",
        dir.display()
    );
    let path = w.home().join("overrides.tfrc");
    std::fs::write(&path, config).expect("written");
    let w = w.env("TF_CLI_CONFIG_FILE", path.display().to_string());
    // `init` installs the module. Then it fails, because it cannot reach the registry.
    let _ = w.run_program(&opentofu, &["init", "-no-color"]);
    w.run_program(&opentofu, APPLY).ok().shows(&["6 added"]);
    let theirs = providers_in(&w.read("terraform.tfstate"));
    assert_eq!(theirs, expected("registry.opentofu.org"));
    tofu(&w, &["plan", "-detailed-exitcode"]).ok();
    // Monoform creates a new object, and changes the provider key of another one.
    w.write("main.tf", &MAIN.replace("null.by[\"us\"]", "null.by[\"eu\"]"));
    tofu(&w, &[APPLY, &["-replace=null_resource.usual"]].concat())
        .ok()
        .shows(&["1 added, 0 changed, 1 destroyed"]);
    let ours = providers_in(&w.read("terraform.tfstate"));
    assert!(
        ours.contains(&" plain : provider[\"registry.opentofu.org/hashicorp/null\"].by[\"eu\"]".to_owned()),
        "{ours:?}"
    );
    w.run_program(&opentofu, &["plan", "-no-color", "-detailed-exitcode"])
        .ok();
    w.run_program(&opentofu, &["destroy", "-auto-approve", "-no-color"])
        .ok()
        .shows(&["6 destroyed"]);
}

fn terraform_mode_refuses_for_each_and_keys() {
    let w = workspace();
    in_mode(&w, "terraform", &["validate", "-no-color"]).fails_with(&[
        "Reserved argument name in provider block",
        "Only OpenTofu has it",
        "Invalid provider configuration reference",
    ]);
    // A state that OpenTofu has written can be read.
    let w = workspace();
    tofu(&w, &["init"]).ok();
    tofu(&w, APPLY).ok();
    in_mode(&w, "terraform", &["state", "list"])
        .ok()
        .shows(&["null_resource.a[\"eu\"]"]);
}

fn moves_and_taints_keep_the_key() {
    let w = workspace();
    tofu(&w, &["init"]).ok();
    tofu(&w, APPLY).ok();
    tofu(&w, &["taint", "null_resource.plain"]).ok();
    tofu(&w, &["untaint", "null_resource.plain"]).ok();
    tofu(&w, &["state", "mv", "null_resource.plain", "null_resource.other"]).ok();
    let providers = providers_in(&w.read("terraform.tfstate"));
    let address = "provider[\"registry.opentofu.org/hashicorp/null\"].by[\"us\"]";
    assert!(providers.contains(&format!(" other : {address}")), "{providers:?}");
    let moved = MAIN.replace("\"plain\"", "\"last\"")
        + "moved {\n  from = null_resource.other\n  to   = null_resource.last\n}\n";
    w.write("main.tf", &moved);
    tofu(&w, APPLY).ok().shows(&["0 added, 0 changed, 0 destroyed"]);
    let providers = providers_in(&w.read("terraform.tfstate"));
    assert!(providers.contains(&format!(" last : {address}")), "{providers:?}");
}

fn states_of_terraform_are_read_with_addresses_of_opentofu() {
    let main = "resource \"null_resource\" \"a\" {}\n";
    let w = Workspace::with(&[("main.tf", main)]);
    in_mode(&w, "terraform", APPLY).ok();
    let of = |w: &Workspace| providers_in(&w.read("terraform.tfstate"));
    let address = |host: &str| vec![format!(" a : provider[\"{host}/hashicorp/null\"]")];
    assert_eq!(of(&w), address("registry.terraform.io"));
    tofu(&w, &["init"]).ok();
    tofu(&w, &["state", "show", "null_resource.a"]).ok();
    let ran = tofu(&w, &["plan", "-no-color", "-detailed-exitcode"]).ok();
    ran.shows(&["No changes"]);
    assert_eq!(of(&w), address("registry.terraform.io"), "nothing has been written yet");
    // A copy of the state for the second case, in which addresses are not translated.
    let off = w.dir().join("off.tfstate");
    std::fs::copy(w.dir().join("terraform.tfstate"), &off).expect("a copy");
    tofu(&w, APPLY).ok().shows(&["0 added, 0 changed, 0 destroyed"]);
    assert_eq!(of(&w), address("registry.opentofu.org"));
    // If the configuration has the full source address, the address in the state is not translated.
    let explicit = format!(
        "terraform {{\n  required_providers {{\n    null = {{ source = \"registry.terraform.io/hashicorp/null\" }}\n  }}\n}}\n{main}"
    );
    std::fs::copy(&off, w.dir().join("terraform.tfstate")).expect("a copy");
    w.write("main.tf", &explicit);
    tofu(&w, &["init"]).ok();
    tofu(&w, APPLY).ok().shows(&["0 added, 0 changed, 0 destroyed"]);
    assert_eq!(of(&w), address("registry.terraform.io"));
}

fn mocks_have_the_instances_of_their_for_each() {
    let main = r#"
terraform {
  required_providers {
    random = { source = "hashicorp/random" }
  }
}
variable "regions" {
  type    = set(string)
  default = ["a"]
}
variable "objects" {
  type    = set(string)
  default = ["a"]
}
provider "random" {
  alias    = "by"
  for_each = var.regions
}
resource "random_pet" "p" {
  for_each = var.objects
  provider = random.by[each.key]
}
"#;
    let suite = |header: &str, object: &str| {
        format!(
            r#"
mock_provider "random" {{
  {header}
  mock_resource "random_pet" {{
    defaults = {{ id = "mocked" }}
  }}
}}
run "mocked" {{
  variables {{
    objects = ["{object}"]
  }}
  assert {{
    condition     = random_pet.p["{object}"].id == "mocked"
    error_message = random_pet.p["{object}"].id
  }}
}}
"#
        )
    };
    let of_mock = "alias    = \"by\"\n  for_each = toset([\"b\"])";
    let w = Workspace::with(&[("main.tf", main), ("a.tftest.hcl", &suite(of_mock, "b"))]);
    for mode in ["monoform", "opentofu"] {
        let test = || {
            let mut command = w.command(monoform());
            command.env("MONOFORM_MODE", mode).args(["test", "-no-color"]);
            ran(command.output().expect("the program starts"))
        };
        w.write("a.tftest.hcl", &suite(of_mock, "b"));
        test().ok();
        // The instances of the configuration are not those of the mock.
        w.write("a.tftest.hcl", &suite(of_mock, "a"));
        test().fails_with(&["a"]);
        // A mock without for_each stands in for all instances of the configuration.
        w.write("a.tftest.hcl", &suite("alias = \"by\"", "a"));
        test().ok();
        w.write("a.tftest.hcl", &suite("for_each = toset([\"b\"])", "b"));
        test().fails_with(&["Alias required when using \"for_each\""]);
    }
}
