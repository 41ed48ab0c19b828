//! A third-party provider that uses the SDK: the example `notes`, built as a separate executable.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;

use crate::side_by_side::{compare, compare_with};
use crate::{apply, install, nothing_to_do, nothing_to_do_for_terraform, plans, platform, with_cli_config};
use support::Workspace;

const CONFIG: &str = r#"
terraform {
  required_providers {
    notes = { source = "example/notes" }
  }
}

provider "notes" {
  directory = "notes"
}

resource "notes_note" "list" {
  name = "shopping"
  text = "bread\nmilk\n"
}

output "title" {
  value = provider::notes::title(notes_note.list.text)
}
"#;

/// Builds the example.
pub fn notes() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| support::example("notes"))
}

/// Returns a workspace with the configuration, and a mirror that has the provider.
fn workspace() -> Workspace {
    with_mirror(Workspace::with(&[("main.tf", CONFIG)]), "notes", notes())
}

/// Adds a mirror that has this provider, and a CLI configuration that takes providers only from the mirror.
fn with_mirror(w: Workspace, name: &str, executable: &Path) -> Workspace {
    let mirror = w.home().join("mirror");
    let path = format!(
        "registry.terraform.io/example/{name}/1.0.0/{}/terraform-provider-{name}_v1.0.0",
        platform()
    );
    install(executable, &mirror, &path);
    with_cli_config(w, &support::only_from(&mirror))
}

pub fn the_life_of_a_note() {
    let w = workspace();
    w.run(&["init", "-no-color"]).ok().shows(&["example/notes"]);
    apply(&w, "Resources: 1 added").shows(&["title = \"bread\""]);
    assert_eq!(w.read("notes/shopping"), "bread\nmilk\n");
    assert_eq!(w.attributes("notes_note", "list")["size"], 11);
    nothing_to_do(&w);

    // Another program changes the note, and an apply restores it.
    w.write("notes/shopping", "beer\n");
    plans(&w, "0 to add, 1 to change, 0 to destroy", &["beer"]);
    apply(&w, "0 added, 1 changed");
    assert_eq!(w.read("notes/shopping"), "bread\nmilk\n");
    w.write("main.tf", &CONFIG.replace("\"shopping\"", "\"../shopping\""));
    w.run(&["plan", "-no-color"])
        .fails_with(&["Invalid name", "../shopping"]);
    w.write("main.tf", &CONFIG.replace("\"shopping\"", "\"errands\""));
    apply(&w, "1 added, 0 changed, 1 destroyed");
    assert!(!w.exists("notes/shopping") && w.exists("notes/errands"));

    w.run(&["state", "rm", "notes_note.list"]).ok();
    w.run(&["import", "-no-color", "notes_note.list", "nothing"])
        .fails_with(&["No such note"]);
    w.run(&["import", "-no-color", "notes_note.list", "errands"]).ok();
    nothing_to_do(&w);
    w.run(&["destroy", "-no-color", "-auto-approve"]).ok();
    assert!(!w.exists("notes/errands"));
}

/// Configuration of an action with a write-only argument.
const ACTION: &str = r#"
variable "signature" {
  ephemeral = true
  default   = "-- me\n"
}

action "notes_copy" "all" {
  config {
    to        = "copies-of-${caller.name}"
    signature = var.signature
  }
}
"#;

/// Returns the configuration with an action that the creation of the note triggers.
fn with_action() -> String {
    let trigger = "text = \"bread\\nmilk\\n\"\n  lifecycle {\n    action_trigger {\n      events  = [after_create]\n      actions = \
                   [action.notes_copy.all]\n    }\n  }\n";
    CONFIG.replace("text = \"bread\\nmilk\\n\"\n", trigger) + ACTION
}

/// Searches all files and all output for the value of a write-only argument that comes from an ephemeral variable.
pub fn what_is_write_only_is_written_nowhere() {
    const SECRET: &str = "planted-write-only-7d02";
    let w = workspace();
    w.write("main.tf", &with_action());
    let w = w.env("TF_LOG", "TRACE").env("TF_VAR_signature", SECRET);
    for args in [
        &["init", "-no-color"][..],
        &["plan", "-no-color", "-out=p"],
        &["show", "-json", "p"],
        &["apply", "-json", "p"],
        &["apply", "-no-color", "-auto-approve", "-invoke=action.notes_copy.all"],
        &["apply", "-no-color", "-auto-approve", "-replace=notes_note.list"],
        &["state", "pull"],
        &["show", "-json"],
    ] {
        let ran = w.run(args).ok();
        let line = ran.all().lines().find(|line| line.contains(SECRET)).map(str::to_owned);
        assert_eq!(line, None, "{args:?}");
    }
    let copy = std::fs::read_to_string(w.dir().join("copies-of-shopping/shopping"));
    assert!(copy.expect("the copy").ends_with(SECRET), "it reached the plugin");
    let root = w.dir().parent().expect("a parent").to_owned();
    let found = Command::new("grep")
        .args(["-rlF", SECRET])
        .arg(root)
        .output()
        .expect("grep");
    let found = String::from_utf8_lossy(&found.stdout).into_owned();
    let others: Vec<&str> = found.lines().filter(|path| !path.contains("/copies-of-")).collect();
    assert!(others.is_empty(), "{others:?}");
}

/// Tests the action that copies notes, under this program.
fn copied_by(program: &str) {
    let w = workspace();
    w.write("main.tf", &with_action());
    w.run_program(program, &["init", "-no-color", "-input=false"]).ok();
    w.run_program(program, &["plan", "-no-color", "-out=p"])
        .ok()
        .shows(&[
            "        config {\n            signature = (write-only attribute)\n            to        = \"copies-of-shopping\"\n        }\n",
            "Plan: 1 to add, 0 to change, 0 to destroy. Actions: 1 to invoke.",
        ]);
    let document = w.run_program(program, &["show", "-json", "p"]).ok().json();
    let values = &document["action_invocations"][0]["config_values"];
    assert_eq!(
        *values,
        serde_json::json!({"to": "copies-of-shopping", "signature": null})
    );
    w.run_program(program, &["apply", "-no-color", "p"]).ok().shows(&[
        "Action action.notes_copy.all (triggered by notes_note.list): copied shopping\n",
        "Action complete: action.notes_copy.all (triggered by notes_note.list)\n",
        "Apply complete! Resources: 1 added, 0 changed, 0 destroyed. Actions: 1 invoked.",
    ]);
    assert_eq!(w.read("copies-of-shopping/shopping"), "bread\nmilk\n-- me\n");
    // No ephemeral values are passed to an action that is invoked by a saved plan.
    std::fs::remove_dir_all(w.dir().join("copies-of-shopping")).expect("a directory");
    let invoke = ["apply", "-no-color", "-auto-approve", "-invoke=action.notes_copy.all"];
    w.run_program(program, &invoke)
        .ok()
        .shows(&["(triggered by CLI, called from notes_note.list): copied shopping\n"]);
    assert_eq!(w.read("copies-of-shopping/shopping"), "bread\nmilk\n");
}

pub fn its_action_copies_notes() {
    copied_by(support::monoform());
}

pub fn terraform_invokes_its_action() {
    copied_by("terraform-1.16");
}

pub fn terraform_uses_it() {
    let w = workspace();
    w.terraform(&["init", "-no-color", "-input=false"]).ok();
    let w = w.env("TF_LOG", "info");
    let applied = w
        .terraform(&["apply", "-no-color", "-auto-approve", "-input=false"])
        .ok();
    assert!(
        applied
            .stderr
            .contains("[INFO]  provider.terraform-provider-notes_v1.0.0: configured"),
        "what the provider logs is in Terraform's log, at its level:\n{}",
        applied.stderr
    );
    nothing_to_do_for_terraform(&w);
    nothing_to_do(&w);
}

/// Configuration with memos. The directory of the second provider configuration comes from an ephemeral resource, so it is known only
/// during a run.
const MEMO: &str = r#"
terraform {
  required_providers {
    notes = { source = "example/notes" }
  }
}

provider "notes" {
  directory = "notes"
}

ephemeral "notes_text" "where" {
  name = "where"
}

provider "notes" {
  alias     = "elsewhere"
  directory = trimspace(ephemeral.notes_text.where.text)
}

resource "notes_memo" "milk" {
  title    = "milk"
  text     = "two bottles"
  provider = notes.elsewhere
}
"#;

/// Memos are moved to notes, with their identity, under both programs.
pub fn the_same_as_under_terraform() {
    let new = || {
        let w = workspace();
        w.write("notes/where", "elsewhere\n");
        w
    };
    let note = "resource \"notes_note\" \"milk\" {\n  name     = \"milk\"";
    let moved = MEMO.replace("resource \"notes_memo\" \"milk\" {\n  title    = \"milk\"", note)
        + "moved {\n  from = notes_memo.milk\n  to   = notes_note.milk\n}\n";
    assert!(moved.contains(note));
    let changed = moved.replace("two bottles", "three bottles");
    compare(new, &[MEMO, &moved, &changed]);
}

const STREET: &str = r#"
terraform {
  required_providers {
    streets = { source = "example/streets" }
  }
}

resource "streets_street" "main" {
  length = 120
}

output "lamps" {
  value = streets_street.main.lamp[*].at
}
"#;

const SIGN: &str = "  sign {\n    text = \"High Street\"\n  }\n";
const TWO_SIGNS: &str = "  sign {\n    text = \"Main Street\"\n  }\n  sign {\n    text = \"Main Street\"\n  }\n";

/// Blocks that the provider computes if the configuration has none: planned, kept, configured in part, and left out again.
pub fn computed_blocks_as_under_terraform() {
    let executable = support::example("streets");
    let new = || with_mirror(Workspace::new(), "streets", &executable);
    let longer = STREET.replace("120", "160");
    let with_lamps = longer.replace("160", "160\n  lamp {\n    watts = 60\n  }\n  lamp {}\n");
    let with_signs = longer.replace("160", &format!("160\n{TWO_SIGNS}"));
    let unknown = longer.replace(
        "160",
        "160\n  dynamic \"lamp\" {\n    for_each = [terraform_data.watts.output]\n    content {\n      watts = lamp.value\n    }\n  }\n",
    ) + "resource \"terraform_data\" \"watts\" {\n  input = 25\n}\n";
    compare_with(
        "terraform-1.16",
        new,
        &[STREET, STREET, &longer, &with_lamps, &longer, &with_signs, &unknown],
    );
    // One block more than the schema allows.
    let too_many = with_signs.replace(TWO_SIGNS, &format!("{TWO_SIGNS}{SIGN}"));
    let refusals = [true, false].map(|ours| {
        let w = new();
        w.write("main.tf", &too_many);
        let run = |args: &[&str]| {
            if ours {
                w.run(args)
            } else {
                w.run_program("terraform-1.16", args)
            }
        };
        run(&["init", "-no-color"]).ok();
        let refused = run(&["validate", "-json"]).json();
        let first = &refused["diagnostics"][0];
        (
            refused["error_count"].clone(),
            first["summary"].clone(),
            first["range"].clone(),
        )
    });
    assert_eq!(refusals[0], refusals[1]);
    assert_eq!(refusals[0].0, 1, "{refusals:?}");
}

/// A running example in debug mode.
struct Waiting {
    process: Child,
    /// Value for `TF_REATTACH_PROVIDERS`, by which programs attach to the process.
    setting: String,
}

impl Waiting {
    fn start(w: &Workspace) -> Waiting {
        let mut command = w.command(notes());
        let mut process = command.arg("-debug").stdout(Stdio::piped()).spawn().expect("it starts");
        let lines = BufReader::new(process.stdout.take().expect("its output")).lines();
        let mut settings = lines.map_while(Result::ok).filter_map(|line| {
            let value = line.strip_prefix("TF_REATTACH_PROVIDERS='")?.strip_suffix('\'')?;
            Some(value.to_owned())
        });
        let setting = settings.next().expect("a setting of TF_REATTACH_PROVIDERS");
        Waiting { process, setting }
    }

    /// Interrupts the process, as a user would.
    fn interrupt(mut self) {
        let id = self.process.id().to_string();
        let sent = Command::new("kill").args(["-INT", &id]).status().expect("kill starts");
        assert!(sent.success() && self.process.wait().expect("an end").success());
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        // Fails if the process has ended already, which is normal unless a test failed.
        drop(self.process.kill());
    }
}

pub fn it_waits_to_be_debugged() {
    let w = Workspace::with(&[("main.tf", CONFIG)]);
    let waiting = Waiting::start(&w);
    let w = w.env("TF_REATTACH_PROVIDERS", waiting.setting.clone());
    w.run(&["init", "-no-color", "-input=false"])
        .ok()
        .shows(&["Warning: Unmanaged providers are in effect"]);
    apply(&w, "Resources: 1 added");
    nothing_to_do(&w);
    w.run(&["destroy", "-no-color", "-auto-approve"]).ok();
    waiting.interrupt();
    w.run(&["plan", "-no-color"]).fails_with(&["notes"]);
}

pub fn it_waits_for_terraform() {
    let w = Workspace::with(&[("main.tf", CONFIG)]);
    let waiting = Waiting::start(&w);
    let w = w.env("TF_REATTACH_PROVIDERS", waiting.setting.clone());
    w.terraform(&["init", "-no-color", "-input=false"]).ok();
    w.terraform(&["apply", "-no-color", "-auto-approve", "-input=false"])
        .ok();
    nothing_to_do_for_terraform(&w);
    nothing_to_do(&w);
    waiting.interrupt();
}
