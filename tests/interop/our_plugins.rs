//! The built-in plugins outside of Monoform: called by Terraform, and by hand.

use std::os::unix::fs::symlink;
use std::path::Path;

use crate::{nothing_to_do, nothing_to_do_for_terraform, platform, with_cli_config};
use support::{Ran, Workspace, lean, monoform};

const CONFIG: &str = r#"
terraform {
  required_providers {
    local  = { source = "hashicorp/local" }
    null   = { source = "hashicorp/null", version = "~> 3.2" }
    random = { source = "hashicorp/random", version = ">= 3.6.0" }
  }
}

resource "random_pet" "name" {
  length = 2
}

resource "random_password" "secret" {
  length      = 16
  min_special = 2
}

resource "random_shuffle" "order" {
  input = ["a", "b", "c"]
}

resource "random_integer" "number" {
  count = 2
  min   = 1
  max   = 1000
}

resource "null_resource" "trigger" {
  triggers = {
    pet = random_pet.name.id
  }
}

resource "local_file" "note" {
  filename = "out/${random_pet.name.id}.txt"
  content  = join(",", random_shuffle.order.result)
}

resource "local_sensitive_file" "secret" {
  filename = "out/secret"
  content  = random_password.secret.result
}

data "local_file" "note" {
  filename = local_file.note.filename
}

output "note" {
  value = data.local_file.note.content
}
"#;

fn run(w: &Workspace, args: &[&str]) -> Ran {
    w.run_program(lean(), args)
}

/// Returns a workspace in which Terraform finds only the built-in plugins, in a mirror that Monoform made.
fn linked() -> Workspace {
    Workspace::with(&[("main.tf", CONFIG)]).with_our_plugins()
}

pub fn terraform_uses_them_and_we_go_on() {
    let w = linked();
    w.terraform(&["init", "-no-color", "-input=false"])
        .ok()
        .shows(&["Installed hashicorp/random v3."]);
    w.terraform(&["apply", "-no-color", "-auto-approve", "-input=false"])
        .ok()
        .shows(&["Resources: 8 added"]);
    nothing_to_do_for_terraform(&w);
    let note = w.terraform(&["output", "-raw", "note"]).ok().stdout;
    assert_eq!(note.len(), "a,b,c".len(), "{note}");

    // The built-in plugins can use the same state and lock file.
    run(&w, &["plan", "-no-color", "-detailed-exitcode"])
        .ok()
        .shows(&["No changes."]);
    let lock = w.read(".terraform.lock.hcl");
    run(&w, &["init", "-no-color"]).ok().shows(&["is built in to Monoform"]);
    assert_eq!(w.read(".terraform.lock.hcl"), lock, "what others pinned stays");
    w.write("main.tf", &CONFIG.replace("length = 2", "length = 3"));
    run(&w, &["apply", "-no-color", "-auto-approve"])
        .ok()
        .shows(&["Resources: 3 added, 0 changed, 3 destroyed."]);
    nothing_to_do_for_terraform(&w);

    w.terraform(&["destroy", "-no-color", "-auto-approve", "-input=false"])
        .ok()
        .shows(&["Resources: 8 destroyed."]);
    assert!(!w.exists("out/secret"));
}

pub fn we_begin_and_terraform_goes_on_with_them() {
    let w = linked();
    run(&w, &["apply", "-no-color", "-auto-approve"])
        .ok()
        .shows(&["Resources: 8 added"]);
    w.terraform(&["init", "-no-color", "-input=false"]).ok();
    nothing_to_do_for_terraform(&w);
    w.write("main.tf", &CONFIG.replace("length = 2", "length = 3"));
    w.terraform(&["apply", "-no-color", "-auto-approve", "-input=false"])
        .ok()
        .shows(&["Resources: 3 added, 0 changed, 3 destroyed."]);
    run(&w, &["plan", "-no-color", "-detailed-exitcode"])
        .ok()
        .shows(&["No changes."]);
    run(&w, &["destroy", "-no-color", "-auto-approve"])
        .ok()
        .shows(&["Resources: 8 destroyed."]);
}

pub fn by_the_name_of_a_link() {
    let w = Workspace::with(&[(
        "main.tf",
        "resource \"null_resource\" \"a\" {\n  triggers = { x = \"y\" }\n}\n",
    )]);
    let dir = w.home().join("development");
    std::fs::create_dir(&dir).expect("a directory");
    let link = dir.join("terraform-provider-null_v3.2.1");
    symlink(monoform(), &link).expect("a link");
    // The plugin is called by hand.
    let by_hand = w.run_program(&link, &[]);
    assert_eq!(by_hand.status, 1, "{}", by_hand.all());
    assert!(by_hand.stderr.contains("plugin"), "{}", by_hand.all());
    let config = format!(
        "provider_installation {{\n  dev_overrides {{\n    \"hashicorp/null\" = \"{}\"\n  }}\n}}\n",
        dir.display()
    );
    let w = with_cli_config(w, &config);
    w.terraform(&["apply", "-no-color", "-auto-approve", "-input=false"])
        .ok()
        .shows(&["Resources: 1 added"]);
    nothing_to_do_for_terraform(&w);
    // Monoform accepts the same link as a development override.
    nothing_to_do(&w);
}

pub fn the_table_and_the_links() {
    let w = Workspace::new();
    let list = w.run(&["internal-plugin", "list"]).ok().stdout;
    for row in [
        "archive provider 2.8.0 5, 6",
        "cloudinit provider 2.4.0 5, 6",
        "external provider 2.4.0 5, 6",
        "http provider 3.6.0 5, 6",
        "local provider 2.9.0 5, 6",
        "null provider 3.3.1 5, 6",
        "random provider 3.9.0 5, 6",
        "terraform provider Terraform 1.16.0 5, 6",
        "time provider 0.14.0 5, 6",
        "tls provider 4.2.1 5, 6",
        "local-exec provisioner Terraform 1.16.0 5",
    ] {
        let found = list
            .lines()
            .any(|l| l.split_whitespace().collect::<Vec<_>>().join(" ") == row);
        assert!(found, "{row:?} is not in\n{list}");
    }

    let links = w.run(&["internal-plugin", "link", "mirror"]).ok().stdout;
    let links: Vec<&str> = links.lines().collect();
    assert!(links.len() >= 6, "{links:?}");
    for link in &links {
        let target = std::fs::canonicalize(w.dir().join(link)).expect("a link that leads somewhere");
        assert_eq!(
            target,
            std::fs::canonicalize(monoform()).expect("the executable"),
            "{link}"
        );
    }
    let null = links
        .iter()
        .find(|l| l.contains("registry.terraform.io/hashicorp/null/"))
        .expect("null");
    assert!(
        Path::new(null).parent().expect("a parent").ends_with(platform()),
        "{null}"
    );
    // A second call succeeds, and a file that is not a link is not changed.
    w.run(&["internal-plugin", "link", "mirror"]).ok();
    let path = w.dir().join(null);
    std::fs::remove_file(&path).expect("a link");
    std::fs::write(&path, "mine").expect("a file");
    w.run(&["internal-plugin", "link", "mirror"])
        .fails_with(&["terraform-provider-null"]);
    assert_eq!(std::fs::read_to_string(&path).expect("a file"), "mine");
}

pub fn called_by_people() {
    let w = Workspace::new();
    for args in [
        ["provider", "null"],
        ["provider", "random"],
        ["provider", "terraform"],
        ["provisioner", "local-exec"],
    ] {
        let ran = w.run(&["internal-plugin", args[0], args[1]]);
        assert_eq!(ran.status, 1, "{}", ran.all());
        assert!(ran.stdout.is_empty() && ran.stderr.contains("plugin"), "{}", ran.all());
    }
    for (args, texts) in [
        (&["provider", "nul"][..], &["no built-in provider \"nul\"", "null"][..]),
        (
            &["provisioner", "null"],
            &["no built-in provisioner \"null\"", "local-exec"],
        ),
        (&["provider"], &["Usage:"]),
        (&["nothing"], &["Usage:"]),
        (&[], &["Usage:"]),
    ] {
        w.run(&[&["internal-plugin"], args].concat()).fails_with(texts);
    }
    w.run(&["internal-plugin", "-help"])
        .ok()
        .shows(&["Usage: monoform internal-plugin"]);
}
