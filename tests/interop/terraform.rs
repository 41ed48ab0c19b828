//! Each program continues with the other's state.

use serde_json::{Value, json};

use crate::{equal, nothing_to_do, nothing_to_do_for_terraform};
use support::Workspace;

const ROOT: &str = r#"
variable "names" {
  type    = set(string)
  default = ["blue", "green"]
}

variable "token" {
  type      = string
  default   = "s3cret"
  sensitive = true
}

locals {
  ports = { http = 80, https = 443 }
}

resource "terraform_data" "single" {
  input = {
    list   = [1, 2.5, "three", null, true]
    nested = { deep = { deeper = tolist(["x"]) } }
    big    = 12345678901234567890
    text   = "quotes \" and <html> & ünïcode\n"
  }
}

resource "terraform_data" "counted" {
  count = 3
  input = "number ${count.index}"
}

resource "terraform_data" "none" {
  count = 0
}

resource "terraform_data" "keyed" {
  for_each         = local.ports
  input            = each.value
  triggers_replace = [each.key]
}

resource "terraform_data" "secret" {
  input      = { token = var.token, public = "yes" }
  depends_on = [terraform_data.counted]
  lifecycle {
    create_before_destroy = true
  }
}

module "team" {
  source   = "./team"
  for_each = var.names
  name     = each.key
  size     = length(terraform_data.counted)
}

output "everything" {
  value = { for name, team in module.team : name => team.members }
}

output "secret" {
  value     = terraform_data.secret.output
  sensitive = true
}

output "nothing" {
  value = null
}
"#;

const TEAM: &str = r#"
variable "name" {
  type = string
}

variable "size" {
  type = number
  validation {
    condition     = var.size > 0
    error_message = "A team has members."
  }
}

resource "terraform_data" "member" {
  count = var.size
  input = "${var.name}-${count.index}"
}

resource "terraform_data" "lead" {
  input = terraform_data.member[0].output
}

output "members" {
  value = terraform_data.member[*].output
}
"#;

fn workspace() -> Workspace {
    Workspace::with(&[("main.tf", ROOT), ("team/main.tf", TEAM)])
}

/// Returns a state without values that differ from run to run.
fn comparable(mut state: Value) -> Value {
    state["lineage"] = json!("");
    state["serial"] = json!(0);
    crate::side_by_side::without_what_1_11_lacks(&mut state);
    crate::side_by_side::sort_checks(&mut state);
    for resource in state["resources"].as_array_mut().expect("resources") {
        for instance in resource["instances"].as_array_mut().expect("instances") {
            assert!(instance["attributes"]["id"].is_string());
            instance["attributes"]["id"] = json!("ID");
        }
    }
    state
}

pub fn each_goes_on_where_the_other_left_off() {
    let theirs = workspace();
    theirs.terraform(&["init", "-no-color"]).ok();
    theirs
        .terraform(&["apply", "-no-color", "-auto-approve"])
        .ok()
        .shows(&["Resources: 15 added"]);
    let state_of_theirs = comparable(theirs.state());
    nothing_to_do(&theirs);

    let ours = workspace();
    ours.run(&["apply", "-no-color", "-auto-approve"])
        .ok()
        .shows(&["Resources: 15 added"]);
    let state_of_ours = comparable(ours.state());
    ours.terraform(&["init", "-no-color"]).ok();
    nothing_to_do_for_terraform(&ours);
    equal("the state", &state_of_ours, &state_of_theirs);

    // Both programs show the state in the same way.
    for args in [
        &["output", "-json"][..],
        &["output", "-no-color"],
        &["state", "list"],
        &["show", "-no-color"],
    ] {
        let (a, b) = (theirs.run(args).ok().stdout, theirs.terraform(args).ok().stdout);
        // Terraform shows the part in `output` that is sensitive in `input`.
        let b = b.replace("token  = \"s3cret\"", "token  = (sensitive value)");
        assert_eq!(a, b, "{args:?}");
    }
    let [a, b] = [
        theirs.run(&["show", "-json"]).ok().json(),
        theirs.terraform(&["show", "-json"]).ok().json(),
    ]
    .map(|mut shown| {
        crate::side_by_side::without_what_1_11_lacks(&mut shown);
        let resources = shown["values"]["root_module"]["resources"].as_array_mut();
        for resource in resources.into_iter().flatten().filter(|r| r["name"] == "secret") {
            resource["sensitive_values"]["output"].take();
        }
        shown
    });
    equal("the state as shown", &a, &b);

    // Each program changes objects that the other has created.
    for w in [&ours, &theirs] {
        w.write(
            "main.tf",
            &ROOT
                .replace("count = 3", "count = 2")
                .replace("443", "8443")
                .replace("s3cret", "other"),
        );
    }
    // One counted object is destroyed, and one member of each team, because the size of the teams is the number of
    // counted objects.
    let summary = "Resources: 0 added, 2 changed, 3 destroyed.";
    ours.terraform(&["apply", "-no-color", "-auto-approve"])
        .ok()
        .shows(&[summary]);
    theirs
        .run(&["apply", "-no-color", "-auto-approve"])
        .ok()
        .shows(&[summary]);
    nothing_to_do(&ours);
    nothing_to_do_for_terraform(&theirs);
    equal("the state", &comparable(ours.state()), &comparable(theirs.state()));

    ours.run(&["destroy", "-no-color", "-auto-approve"]).ok();
    theirs.terraform(&["destroy", "-no-color", "-auto-approve"]).ok();
    equal("the state", &comparable(ours.state()), &comparable(theirs.state()));
}

/// Returns the paragraphs of a plan. Prose is without line breaks, since the names of the programs differ in length;
/// refreshed objects, whose order differs from run to run, are sorted.
fn paragraphs(text: &str) -> Vec<String> {
    let mark = ": Refreshing state...";
    let mut refreshed: Vec<&str> = text.lines().filter(|l| l.contains(mark)).collect();
    refreshed.sort_unstable();
    let rest: Vec<&str> = text.lines().filter(|l| !l.contains(mark)).collect();
    let prose = |p: &str| p.lines().all(|l| !l.starts_with(' '));
    let rest = rest.join("\n");
    let rest = rest
        .split("\n\n")
        .map(|p| if prose(p) { p.replace('\n', " ") } else { p.to_owned() });
    std::iter::once(refreshed.join("\n")).chain(rest).collect()
}

/// Cuts the paragraph of the object whose input is sensitive before its `output`, which Terraform does not hide. Other
/// paragraphs remain as they are.
fn without_secret_output(paragraph: &str) -> String {
    let mut kept: Vec<&str> = paragraph.lines().collect();
    if paragraph.contains("resource \"terraform_data\" \"secret\"") {
        let at = kept
            .iter()
            .position(|line| line.contains(" output") || line.contains("# Warning"));
        kept.truncate(at.unwrap_or(kept.len()));
    }
    kept.join("\n")
}

/// Beginnings of equivalent paragraphs that each program words for itself: Monoform's, then Terraform's.
const EXPLANATIONS: &[(&str, &str)] = &[
    ("Note: This plan is not saved.", "Note: You didn't use the -out option"),
    (
        "Applying this plan saves the new",
        "You can apply this plan to save these new",
    ),
    (
        "These objects are not as the last",
        "Terraform detected the following changes",
    ),
    ("This is a refresh-only plan.", "This is a refresh-only plan, so"),
    ("The plan below may revert", "Unless you have made equivalent"),
    ("Every object is as the last run left it", "Terraform has checked that"),
    ("The state has no objects", "Either you have not created"),
    (
        "The configuration already has the values",
        "Your configuration already applies",
    ),
    ("Terraform compared every object", "Terraform has compared your real"),
];

/// Returns true if the paragraphs are equal, or if [`EXPLANATIONS`] lists their beginnings as equivalent.
fn alike(ours: &str, theirs: &str) -> bool {
    let explain = |(own, other): &(&str, &str)| ours.starts_with(own) && theirs.starts_with(other);
    ours == theirs || EXPLANATIONS.iter().any(explain)
}

pub fn plans_look_the_same() {
    let w = workspace();
    w.terraform(&["init", "-no-color"]).ok();
    let compare = |what: &str| {
        let (ours, theirs) = (
            w.run(&["plan", "-no-color"]).ok().stdout,
            w.terraform(&["plan", "-no-color"]).ok().stdout,
        );
        let ours = ours.replace("monoform", "terraform").replace("Monoform", "Terraform");
        let (ours, theirs) = (paragraphs(&ours), paragraphs(&theirs));
        for (ours, theirs) in ours.iter().zip(&theirs) {
            let (ours, theirs) = (without_secret_output(ours), without_secret_output(theirs));
            assert!(alike(&ours, &theirs), "{what}\n--- ours\n{ours}\n--- theirs\n{theirs}");
        }
        assert_eq!(ours.len(), theirs.len(), "{what}");
    };
    compare("at first");
    w.run(&["apply", "-no-color", "-auto-approve"]).ok();
    compare("with nothing to do");
    w.write(
        "main.tf",
        &ROOT
            .replace("count = 3", "count = 2")
            .replace("443", "8443")
            .replace("\"three\"", "\"drei\"")
            .replace("s3cret", "other"),
    );
    compare("with changes");
    w.write("main.tf", &ROOT.replace("\"blue\", ", "").replace("https =", "tls ="));
    compare("with things gone");
}
