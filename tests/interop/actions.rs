//! Actions of a Go provider on the newest framework, under Monoform and under Terraform 1.16: the same plans, events, operations
//! in the same order, and states. Behaviour of Terraform 1.16.0-rc2 that contradicts its own documentation is left out: actions
//! and provisioners after a failed operation, and the warnings of actions that have succeeded.

use std::path::PathBuf;
use std::sync::OnceLock;

use serde_json::{Value, json};

use crate::{build, with_cli_config};
use support::{Ran, Workspace, monoform};

/// Builds the provider, under a name for each protocol.
fn provider() -> &'static PathBuf {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let built = build("actions", "acts6");
        let other = built.with_file_name("terraform-provider-acts5");
        if !other.exists() {
            // Several tests create the link at the same time, and only one of them has to succeed.
            let _ = std::fs::hard_link(&built, &other);
        }
        built
    })
}

fn workspace(files: &[(&str, &str)]) -> Workspace {
    let dir = provider().parent().expect("a directory").display().to_string();
    let w = Workspace::with(files);
    let log = w.dir().join("log").display().to_string();
    let overrides = format!(
        "provider_installation {{\n  dev_overrides {{\n    \"example.com/test/acts5\" = \"{dir}\"\n    \"example.com/test/acts6\" = \
         \"{dir}\"\n  }}\n  direct {{}}\n}}\n"
    );
    with_cli_config(w, &overrides).env("ACTS_LOG", log)
}

const HEAD: &str = r#"
terraform {
  required_providers {
    acts6 = { source = "example.com/test/acts6" }
  }
}

variable "name" { default = "a" }
variable "size" { default = 1 }
variable "on" { default = true }
variable "fails" { default = null }
"#;

const EVERY_EVENT: &str = r#"
resource "acts6_thing" "a" {
  name = var.name
  size = var.size
  lifecycle {
    action_trigger {
      events  = [before_create, after_create, before_update, after_update]
      actions = [action.acts6_line.one, action.acts6_line.many[1]]
    }
    action_trigger {
      events     = [after_destroy, before_destroy]
      actions    = [action.acts6_line.gone]
      on_failure = continue
    }
  }
  provisioner "local-exec" {
    command = "echo provisioner >> log"
    quiet   = true
  }
}

resource "acts6_thing" "b" {
  name = "b-${acts6_thing.a.id}"
}

action "acts6_line" "one" {
  config {
    text  = "one ${caller.name}"
    steps = 2
  }
}

action "acts6_line" "many" {
  count = 2
  config {
    text = "many ${count.index}"
  }
}

action "acts6_line" "gone" {
  config {
    text = "gone ${caller.id}"
  }
}
"#;

/// Returns the compared events of a stream, without their times.
fn events(stream: &str) -> Vec<Value> {
    const COMPARED: [&str; 9] = [
        "planned_change",
        "planned_action_invocation",
        "change_summary",
        "apply_start",
        "apply_complete",
        "action_start",
        "action_progress",
        "action_complete",
        "action_errored",
    ];
    let lines = stream
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut out = Vec::new();
    for mut line in lines.filter(|line| COMPARED.iter().any(|ty| line["type"] == *ty)) {
        let object = line.as_object_mut().expect("an object");
        object.remove("@timestamp");
        // The duration differs from run to run. It is in the hook and in the message.
        if let Some(hook) = object.get_mut("hook").and_then(Value::as_object_mut) {
            hook.remove("elapsed_seconds");
        }
        if let Some(Value::String(message)) = object.get_mut("@message")
            && let Some(at) = message.find(" complete after ")
        {
            message.truncate(at + " complete".len());
        }
        if let Some(changes) = object.get_mut("changes").and_then(Value::as_object_mut) {
            // Since 1.14 this member is always present.
            changes.entry("action_invocation").or_insert(0.into());
            changes.entry("action_fail").or_insert(0.into());
            // When a destroy plan is applied, the two programs name different operations here.
            changes.remove("operation");
        }
        out.push(line);
    }
    out
}

/// Returns the summaries of the errors in a stream, sorted.
fn errors(stream: &str) -> Vec<String> {
    let lines = stream
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let errors = lines.filter(|line| line["type"] == "diagnostic" && line["@level"] == "error");
    let mut out: Vec<String> = errors
        .map(|line| line["diagnostic"]["summary"].as_str().unwrap_or_default().to_owned())
        .collect();
    out.sort();
    out
}

/// Compared results of one step under one program.
struct Seen {
    status: i32,
    errors: Vec<String>,
    events: Vec<Value>,
    plan: Value,
    shown: String,
    log: String,
    objects: Value,
}

impl Seen {
    /// Sorts the events. Events of resources that do not depend on each other have no fixed order.
    fn sort(&mut self) {
        self.events.sort_by_cached_key(Value::to_string);
        if let Some(invocations) = self.plan["action_invocations"].as_array_mut() {
            invocations.sort_by_cached_key(Value::to_string);
        }
    }

    /// Sorts the lines of the shown plan and of the log of operations.
    fn sort_log(&mut self) {
        let lines = |text: &str| -> String {
            let mut lines: Vec<&str> = text.lines().collect();
            lines.sort_unstable();
            lines.join("\n")
        };
        self.shown = lines(&self.shown);
        self.log = lines(&self.log);
    }
}

fn run(w: &Workspace, program: &str, args: &[&str]) -> Ran {
    w.run_program(program, args)
}

/// Plans with these arguments, shows the plan, and applies it. Ends after a plan that fails.
fn step(w: &Workspace, program: &str, arguments: &[&str]) -> Seen {
    let _ = std::fs::remove_file(w.dir().join("log"));
    let _ = std::fs::remove_file(w.dir().join("p"));
    let mut plan = vec!["plan", "-json", "-out=p"];
    plan.extend(arguments);
    let mut ran = run(w, program, &plan);
    let mut seen = Seen {
        status: ran.status,
        errors: errors(&ran.stdout),
        events: events(&ran.stdout),
        plan: Value::Null,
        shown: String::new(),
        log: String::new(),
        objects: Value::Null,
    };
    if ran.status != 0 {
        // The events of a failed plan are not compared.
        seen.events.clear();
        return seen;
    }
    let document = run(w, program, &["show", "-json", "p"]).ok().json();
    seen.plan = json!({
        "action_invocations": document["action_invocations"],
        "actions": document["configuration"]["root_module"]["actions"],
        "applyable": document["applyable"],
    });
    let shown = run(w, program, &["show", "-no-color", "p"]).ok().stdout;
    let at = shown.find("will perform the following").unwrap_or_default();
    // Paragraphs may be wrapped differently.
    let wrapped = |line: &str| !line.starts_with(' ') && !line.is_empty();
    let lines = shown[at..]
        .lines()
        .filter(|line| !wrapped(line) || line.starts_with("Plan:"));
    seen.shown = lines.collect::<Vec<_>>().join("\n");
    ran = run(w, program, &["apply", "-json", "-parallelism=1", "p"]);
    seen.status = ran.status;
    seen.errors.extend(errors(&ran.stdout));
    // Some releases repeat the events of the plan, so only the events of operations are compared.
    let done = events(&ran.stdout)
        .into_iter()
        .filter(|e| e["type"] != "planned_change" && e["type"] != "planned_action_invocation");
    seen.events.extend(done);
    if w.exists("log") {
        seen.log = w.read("log");
    }
    if w.exists("terraform.tfstate") {
        seen.objects = objects(&w.state());
    }
    seen
}

fn objects(state: &Value) -> Value {
    let resources = state["resources"].as_array().cloned().unwrap_or_default();
    let one = |r: &Value| -> Vec<Value> {
        let instances = r["instances"].as_array().cloned().unwrap_or_default();
        let pick = |i: &Value| {
            json!([
                r["module"],
                r["type"],
                r["name"],
                i["index_key"],
                i["status"],
                i["attributes"]
            ])
        };
        instances.iter().map(pick).collect()
    };
    resources.iter().flat_map(one).collect()
}

/// Runs the same steps under both programs, and compares the results of each step.
#[track_caller]
fn side_by_side(files: &[(&str, &str)], steps: &[&[&str]]) {
    let (ours, theirs) = (workspace(files), workspace(files));
    for arguments in steps {
        let mut theirs = step(&theirs, "terraform-1.16", arguments);
        let mut ours = step(&ours, monoform(), arguments);
        // Actions of `-invoke` run in any order, and so do changes of instances.
        let any_order = arguments.iter().any(|a| a.starts_with("-invoke")) || files[0].1.contains("# in any order");
        for seen in [&mut ours, &mut theirs] {
            seen.sort();
            if any_order {
                seen.sort_log();
            }
        }
        let about = format!("after {arguments:?}: ours first, then Terraform's");
        assert_eq!((ours.status, &ours.errors), (theirs.status, &theirs.errors), "{about}");
        assert_eq!(ours.shown, theirs.shown, "{about}");
        assert_eq!(ours.plan, theirs.plan, "{about}");
        assert_eq!(ours.log, theirs.log, "{about}");
        assert_eq!(ours.objects, theirs.objects, "{about}");
        for (ours, theirs) in ours.events.iter().zip(&theirs.events) {
            assert_eq!(ours, theirs, "{about}");
        }
        assert_eq!(ours.events.len(), theirs.events.len(), "{about}");
    }
}

fn with_head(text: &str) -> String {
    format!("{HEAD}{text}")
}

pub fn every_event_of_a_resource() {
    let main = with_head(EVERY_EVENT);
    side_by_side(
        &[("main.tf", &main)],
        &[
            &[],
            &["-var", "size=2"],
            &["-var", "size=2", "-var", "name=c"],
            &["-var", "size=2", "-var", "name=c"],
            &["-destroy"],
        ],
    );
    // The same steps are repeated over protocol 5.
    let five = main.replace("acts6", "acts5");
    side_by_side(&[("main.tf", &five)], &[&[], &["-var", "size=2"], &["-destroy"]]);
}

pub fn create_before_destroy_and_orphans() {
    let main = with_head(
        r#"
# in any order
resource "acts6_thing" "a" {
  count = var.size
  name  = "${var.name}-${count.index}"
  lifecycle {
    create_before_destroy = true
    action_trigger {
      events  = [before_create, after_create, before_destroy, after_destroy]
      actions = [action.acts6_line.one[count.index]]
    }
  }
}

action "acts6_line" "one" {
  count = 2
  config {
    text = "one ${count.index} ${caller.name}"
  }
}
"#,
    );
    side_by_side(
        &[("main.tf", &main)],
        &[
            &["-var", "size=2"],
            &["-var", "size=1"],
            &["-var", "size=1", "-var", "name=b"],
            &["-destroy"],
        ],
    );
    let keyed = with_head(
        r#"
# in any order
resource "acts6_thing" "a" {
  for_each = var.on ? { x = "1", y = "2" } : { y = "2" }
  name     = each.key
  lifecycle {
    action_trigger {
      events  = [after_create, after_destroy]
      actions = [action.acts6_line.one[each.key]]
    }
  }
}

action "acts6_line" "one" {
  for_each = var.on ? toset(["x", "y"]) : toset(["y"])
  config {
    text = "one ${each.value} ${caller.name}"
  }
}
"#,
    );
    side_by_side(&[("main.tf", &keyed)], &[&[], &["-var", "on=false"], &["-destroy"]]);
}

pub fn conditions() {
    let main = with_head(
        r#"
resource "acts6_thing" "first" {
  name = var.name
}

resource "acts6_thing" "a" {
  name = "a-${acts6_thing.first.name}"
  size = var.size
  lifecycle {
    action_trigger {
      events    = [after_create, after_update]
      condition = var.on
      actions   = [action.acts6_line.known]
    }
    action_trigger {
      events    = [after_create, after_update]
      condition = self.id == "id-a-${acts6_thing.first.name}"
      actions   = [action.acts6_line.of_self]
    }
    action_trigger {
      events    = [before_create, before_update]
      condition = acts6_thing.first.id == "no"
      actions   = [action.acts6_line.never]
    }
  }
}

action "acts6_line" "known" {
  config {
    text = "known"
  }
}

action "acts6_line" "of_self" {
  config {
    text = "self ${caller.id}"
  }
}

action "acts6_line" "never" {
  config {
    text = "never"
  }
}
"#,
    );
    side_by_side(
        &[("main.tf", &main)],
        &[
            &[],
            &["-var", "size=2", "-var", "on=false"],
            &["-var", "size=3", "-var", "on=true", "-var", "name=z"],
            &["-var", "size=3", "-var", "on=\"x\"", "-var", "name=z"],
        ],
    );
}

fn failing(on_failure: &str) -> String {
    with_head(&format!(
        r#"
resource "acts6_thing" "a" {{
  name = var.name
  size = var.size
  lifecycle {{
    action_trigger {{
      events     = [after_create, after_update, before_destroy]
      actions    = [action.acts6_line.one, action.acts6_line.two]
      on_failure = {on_failure}
    }}
  }}
}}

resource "acts6_thing" "b" {{
  name       = "b"
  depends_on = [acts6_thing.a]
}}

action "acts6_line" "one" {{
  config {{
    text  = "one"
    fails = var.fails
  }}
}}

action "acts6_line" "two" {{
  config {{
    text = "two"
  }}
}}
"#
    ))
}

pub fn failures() {
    for on_failure in ["halt", "taint", "continue"] {
        let main = failing(on_failure);
        side_by_side(
            &[("main.tf", &main)],
            &[
                &["-var", "fails=plan"],
                &["-var", "fails=invoke"],
                &[],
                &["-var", "fails=invoke", "-var", "size=2"],
                &[],
                &["-var", "name=other", "-var", "fails=invoke"],
                &["-destroy", "-var", "fails=invoke"],
            ],
        );
    }
}

pub fn invoked_by_the_user() {
    let main = with_head(
        r#"
# in any order
resource "acts6_thing" "a" {
  count = 2
  name  = "a${count.index}"
  lifecycle {
    action_trigger {
      events  = [after_create]
      actions = [action.acts6_line.called]
    }
  }
}

resource "acts6_thing" "b" {
  name = "b"
}

action "acts6_line" "called" {
  config {
    text = "called by ${caller.id}"
  }
}

action "acts6_line" "alone" {
  for_each = toset(["x", "y"])
  config {
    text  = "alone ${each.key} ${acts6_thing.b.id}"
    steps = 1
    fails = var.fails
  }
}
"#,
    );
    side_by_side(
        &[("main.tf", &main)],
        &[
            &["-invoke=action.acts6_line.called"],
            &["-invoke=action.acts6_line.alone"],
            &[],
            &["-invoke=action.acts6_line.called", "-target=acts6_thing.a[1]"],
            &["-invoke=action.acts6_line.alone[\"y\"]"],
            &[
                "-invoke=action.acts6_line.alone[\"y\"]",
                "-refresh=false",
                "-var",
                "fails=invoke",
            ],
            &["-invoke=action.acts6_line.alone[\"z\"]"],
            &["-invoke=action.acts6_line.no"],
            &["-invoke=acts6_thing.a"],
            &["-invoke=action.acts6_line.called", "-destroy"],
            &["-invoke=action.acts6_line.called", "-invoke=action.acts6_line.alone"],
        ],
    );
}

pub fn written_in_json_and_overridden() {
    let main = json!({
        "terraform": {"required_providers": {"acts6": {"source": "example.com/test/acts6"}}},
        "resource": {"acts6_thing": {"a": {
            "name": "a",
            "lifecycle": {"action_trigger": [{
                "events": ["after_create"],
                "actions": ["action.acts6_line.one", "action.acts6_line.many[\"k\"]"],
                "on_failure": "continue",
            }]},
        }}},
        "action": {"acts6_line": {
            "one": {"config": {"text": "${caller.name} in JSON"}},
            "many": {"for_each": {"k": "v"}, "config": {"text": "${each.key}=${each.value}"}},
        }},
    })
    .to_string();
    side_by_side(&[("main.tf.json", &main)], &[&[], &["-destroy"]]);
    let over = "action \"acts6_line\" \"one\" {\n  config {\n    text = \"overridden\"\n  }\n}\n";
    side_by_side(&[("main.tf.json", &main), ("x_override.tf", over)], &[&[]]);
}

const COMMANDS: &str = r#"
terraform {
  required_providers {
    local = { source = "hashicorp/local" }
  }
}

variable "code" { default = 0 }

resource "terraform_data" "a" {
  input = var.code
  lifecycle {
    action_trigger {
      events  = [after_create, after_update]
      actions = [action.local_command.shown, action.local_command.ends]
    }
  }
}

action "local_command" "shown" {
  config {
    command     = "sh"
    arguments   = ["-c", "cat; printf ' %s' \"$GREETING\""]
    stdin       = caller.output
    environment = { GREETING = "hello" }
  }
}

action "local_command" "ends" {
  config {
    command   = "sh"
    arguments = ["-c", "echo because >&2; exit ${var.code}"]
  }
}
"#;

/// Runs the built-in `local_command` under both programs.
pub fn our_command_under_both() {
    let told = |program: &str| -> Vec<Value> {
        let w = Workspace::with(&[("main.tf", COMMANDS)]).with_our_plugins();
        run(&w, program, &["init", "-no-color", "-input=false"]).ok();
        let mut all = Vec::new();
        for arguments in [
            &[][..],
            &["-var", "code=3"],
            &["-invoke=action.local_command.shown", "-var", "code=3"],
        ] {
            let ran = run(&w, program, &[&["apply", "-json", "-auto-approve"], arguments].concat());
            all.push(json!(ran.status));
            all.extend(events(&ran.stdout).into_iter().map(|mut event| {
                // The object's ID is random, and Monoform has its own text after the failure of its program.
                if let Some(hook) = event["hook"].as_object_mut() {
                    hook.remove("id_value");
                    hook.remove("error");
                }
                event.as_object_mut().expect("an object").remove("@message");
                event
            }));
        }
        all
    };
    let (ours, theirs) = (told(monoform()), told("terraform-1.16"));
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_eq!(ours, theirs);
    }
    assert_eq!(ours.len(), theirs.len());
    let messages: Vec<&str> = ours.iter().filter_map(|e| e["hook"]["message"].as_str()).collect();
    assert_eq!(messages, ["\n\n0 hello\n", "\n\n\n", "\n\n3 hello\n", "\n\n3 hello\n"]);
}
