//! Behaviour without a transcript of Terraform: options that only Monoform or OpenTofu has, writes that fail, and locks
//! that another process holds.

use std::process::Stdio;
use std::time::{Duration, Instant};

use support::{Ran, Workspace, monoform};

pub const TESTS: &[(&str, fn())] = &[
    ("own::a_large_plan_is_summarised", a_large_plan_is_summarised),
    ("own::exclude", exclude),
    ("own::cycles_are_drawn", cycles_are_drawn),
    (
        "own::a_module_that_only_tests_complete",
        a_module_that_only_tests_complete,
    ),
    ("own::addresses_from_files", addresses_from_files),
    (
        "own::a_write_that_fails_changes_nothing",
        a_write_that_fails_changes_nothing,
    ),
    ("own::a_held_lock_is_respected", a_held_lock_is_respected),
    ("own::interrupts_in_a_stream", interrupts_in_a_stream),
    (
        "own::a_saved_plan_keeps_its_variables",
        a_saved_plan_keeps_its_variables,
    ),
    (
        "own::documents_of_workspaces_and_objects",
        documents_of_workspaces_and_objects,
    ),
    (
        "own::an_action_that_is_not_configured",
        an_action_that_is_not_configured,
    ),
    ("own::documents_that_only_we_have", documents_that_only_we_have),
    (
        "own::failed_plan_writes_no_generated_configuration",
        failed_plan_writes_no_generated_configuration,
    ),
    (
        "own::variable_file_from_a_pipe_sets_module_source_and_value",
        variable_file_from_a_pipe_sets_module_source_and_value,
    ),
    (
        "own::a_state_beside_the_configuration",
        a_state_beside_the_configuration,
    ),
];

fn seed(name: &str) -> Workspace {
    Workspace::copy_of(&format!("tests/commands/seeds/{name}"))
}

fn with_state(name: &str) -> Workspace {
    let w = seed(name);
    let from = format!(
        "{}/tests/commands/seeds/{name}/terraform.tfstate",
        env!("CARGO_MANIFEST_DIR")
    );
    std::fs::copy(from, w.dir().join("terraform.tfstate")).expect("a copy");
    w
}

fn shell(w: &Workspace, line: &str) -> Ran {
    w.run_program("sh", &["-c", &format!("alias tf='{}'\n{line}", monoform())])
}

fn exclude() {
    let w = seed("targets");
    let ran = w
        .run(&[
            "apply",
            "-auto-approve",
            "-exclude=module.m[0]",
            "-exclude=terraform_data.b",
        ])
        .ok();
    assert!(ran.stdout.contains("Resource targeting is in effect"), "{}", ran.all());
    assert!(
        ran.stdout.contains("Applied changes may be incomplete"),
        "{}",
        ran.all()
    );
    let listed = w.run(&["state", "list"]).ok().stdout;
    assert_eq!(
        listed,
        "terraform_data.a\nterraform_data.z\nmodule.m[1].terraform_data.in\n"
    );
    w.run(&["plan", "-target=terraform_data.a", "-exclude=terraform_data.b"])
        .fails_with(&["Invalid combination of arguments"]);
    w.run(&["plan", "-exclude=data.x"])
        .fails_with(&["Invalid exclude \"data.x\""]);
    // The exclusion is recorded in the saved plan.
    w.run(&["plan", "-exclude=terraform_data.c", "-out=p"]).ok();
    let plan = w.run(&["show", "-json", "p"]).ok().json();
    assert_eq!(plan["complete"], false);
    let ran = w.run(&["apply", "p"]).ok();
    assert!(
        ran.stdout.contains("Applied changes may be incomplete"),
        "{}",
        ran.all()
    );
    // In a destroy plan, an excluded object stays, and so do its dependencies.
    w.run(&["destroy", "-auto-approve", "-exclude=terraform_data.b"]).ok();
    let listed = w.run(&["state", "list"]).ok().stdout;
    assert_eq!(listed, "terraform_data.a\nterraform_data.b\n");
}

fn addresses_from_files() {
    let w = seed("targets");
    w.write("list", "# what matters\n\n  terraform_data.z  \nmodule.m[1]\n");
    w.run(&["apply", "-auto-approve", "-target-file=list"]).ok();
    let listed = w.run(&["state", "list"]).ok().stdout;
    assert_eq!(
        listed,
        "terraform_data.a\nterraform_data.z\nmodule.m[1].terraform_data.in\n"
    );
    let ran = w.run(&["plan", "-exclude-file=list", "-exclude=terraform_data.b"]).ok();
    assert!(
        ran.stdout.contains("module.m[0].terraform_data.in will be created"),
        "{}",
        ran.all()
    );
    assert!(!ran.stdout.contains("terraform_data.c"), "{}", ran.all());
    w.write("list", "terraform_data.a\nbad..\n");
    w.run(&["plan", "-target-file=list"])
        .fails_with(&["Invalid target \"bad..\"", "In list, line 2"]);
    w.run(&["plan", "-target-file=none"])
        .fails_with(&["Cannot read the targets", "none"]);
}

fn a_write_that_fails_changes_nothing() {
    for command in [
        "state mv terraform_data.one terraform_data.uno",
        "state rm terraform_data.one",
        "state replace-provider -auto-approve terraform.io/builtin/terraform a/b",
        "state push -force new.json",
        "taint terraform_data.one",
        "import -lock=false terraform_data.extra abc",
    ] {
        let w = with_state("mixed");
        let before = w.read("terraform.tfstate");
        w.write("new.json", &before.replace("\"one\"", "\"uno\""));
        w.write("extra.tf", "resource \"terraform_data\" \"extra\" {}\n");
        // The limit of one kilobyte per file simulates a full disk.
        let ran = shell(&w, &format!("trap '' XFSZ; ulimit -f 1; tf {command}"));
        assert_eq!(ran.status, 1, "{command}: {}", ran.all());
        assert_eq!(w.read("terraform.tfstate"), before, "{command}");
        let listed = w.run(&["state", "list"]).ok().stdout;
        assert_eq!(listed.lines().count(), 8, "{command}: {listed}");
        // An interrupted write does not prevent later ones.
        let ran = shell(&w, &format!("tf {command}")).ok();
        assert_ne!(w.read("terraform.tfstate"), before, "{command}: {}", ran.all());
    }
}

fn a_held_lock_is_respected() {
    let w = Workspace::with(&[(
        "main.tf",
        "resource \"terraform_data\" \"first\" {}\nresource \"terraform_data\" \"waiting\" {\n  depends_on = [terraform_data.first]\n  \
         provisioner \"local-exec\" {\n    command = \"touch started; while [ ! -e go ]; do sleep 0.05; done\"\n  }\n}\n",
    )]);
    w.run(&["apply", "-auto-approve", "-target=terraform_data.first"]).ok();
    let mut holder = w
        .command(monoform())
        .args(["apply", "-auto-approve"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("monoform starts");
    wait("the apply", || w.exists("started"));
    for arguments in [
        &["state", "mv", "terraform_data.first", "terraform_data.other"][..],
        &["state", "rm", "terraform_data.first"],
        &[
            "state",
            "replace-provider",
            "-auto-approve",
            "terraform.io/builtin/terraform",
            "a/b",
        ],
        &["state", "push", "none.json"],
        &["taint", "terraform_data.first"],
        &["untaint", "terraform_data.first"],
        &["import", "terraform_data.waiting", "abc"],
        &["plan"],
        &["refresh"],
        &["destroy", "-auto-approve"],
    ] {
        let ran = w.run(arguments);
        assert_eq!(ran.status, 1, "{arguments:?}: {}", ran.all());
        if arguments.get(1) != Some(&"push") {
            assert!(
                ran.stderr.contains("Error acquiring the state lock"),
                "{arguments:?}: {}",
                ran.all()
            );
        }
    }
    // Reading needs no lock.
    w.run(&["state", "list"]).ok();
    w.run(&["state", "pull"]).ok();
    let began = Instant::now();
    w.run(&["taint", "-lock-timeout=1s", "terraform_data.first"])
        .fails_with(&["Error acquiring the state lock"]);
    assert!(began.elapsed() >= Duration::from_secs(1));
    w.write("go", "");
    wait("the end of the apply", || {
        holder.try_wait().expect("a status").is_some()
    });
    w.run(&["taint", "terraform_data.first"]).ok();
}

fn interrupts_in_a_stream() {
    let w = Workspace::with(&[(
        "main.tf",
        "resource \"terraform_data\" \"first\" {\n  provisioner \"local-exec\" {\n    command = \"touch started; sleep 2\"\n  }\n}\n\
         resource \"terraform_data\" \"second\" {\n  input = terraform_data.first.id\n}\n",
    )]);
    let child = w
        .command(monoform())
        .args(["apply", "-auto-approve", "-json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("monoform starts");
    wait("the apply", || w.exists("started"));
    let sent = std::process::Command::new("kill")
        .args(["-s", "INT", &child.id().to_string()])
        .status();
    assert!(sent.expect("kill runs").success());
    let ran = support::ran(child.wait_with_output().expect("its output"));
    assert_eq!(ran.status, 1, "{}", ran.all());
    let types: Vec<String> = ran
        .stdout
        .lines()
        .map(|l| serde_json::from_str::<serde_json::Value>(l).unwrap_or_else(|e| panic!("{e}: {l}")))
        .map(|o| o["type"].as_str().unwrap_or_default().to_owned())
        .collect();
    assert!(types.iter().any(|t| t == "log"), "{types:?}");
    assert_eq!(types.last().map(String::as_str), Some("diagnostic"), "{types:?}");
    // Operations that had begun are in the state, and others are not.
    assert_eq!(w.run(&["state", "list"]).ok().stdout, "terraform_data.first\n");
}

fn wait(what: &str, mut done: impl FnMut() -> bool) {
    let began = Instant::now();
    while !done() {
        assert!(began.elapsed() < Duration::from_secs(40), "{what}: not in time");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn a_saved_plan_keeps_its_variables() {
    let w = Workspace::with(&[
        ("main.tf", "variable \"x\" {}\noutput \"o\" {\n  value = var.x\n}\n"),
        ("../two.tfvars", "x = \"two\"\n"),
    ]);
    let plan = || w.run(&["plan", "-var=x=one", "-out=p"]).ok();
    plan();
    for flag in ["-var=x=two", "-var-file=../two.tfvars"] {
        w.run(&["apply", flag, "p"]).fails_with(&[
            "Can't change variable when applying a saved plan",
            "In the plan it is \"one\", and \"two\" is given",
            "ephemeral = true",
        ]);
    }
    assert!(!w.exists("terraform.tfstate"));
    w.write("terraform.tfvars", "x = \"not heeded\"\n");
    let w = w.env("TF_VAR_x", "three");
    let applied = w.run(&["apply", "-no-color", "p"]).ok();
    assert!(applied.stdout.contains("o = \"one\""), "{}", applied.all());
    w.write(
        "main.tf",
        "variable \"x\" {\n  sensitive = true\n}\noutput \"o\" {\n  value = \"\"\n}\n",
    );
    w.run(&["plan", "-var=x=one", "-out=p"]).ok();
    let hidden = w
        .run(&["apply", "-var=x=two", "p"])
        .fails_with(&["The values are sensitive."]);
    assert!(!hidden.all().contains("two"), "{}", hidden.all());
}

fn a_state_beside_the_configuration() {
    let w = Workspace::with(&[("main.tf", "resource \"terraform_data\" \"a\" {}\n")]);
    let applied = w
        .run(&["apply", "-no-color", "-auto-approve", "-state=s", "-state-out=o"])
        .ok();
    for line in ["Warning: Deprecated flag: -state\n", "\nState path: o\n"] {
        assert!(applied.stdout.contains(line), "{}", applied.all());
    }
    assert!(w.exists("o") && !w.exists("s") && !w.exists("terraform.tfstate"));
    let destroyed = w
        .run(&["apply", "-destroy", "-no-color", "-auto-approve", "-state=o"])
        .ok();
    assert!(
        destroyed
            .stdout
            .contains("Apply complete! Resources: 0 added, 0 changed, 1 destroyed."),
        "{}",
        destroyed.all()
    );
}

/// A pipe can be read only once, so loading the configuration and planning must not both read it.
fn variable_file_from_a_pipe_sets_module_source_and_value() {
    let w = Workspace::new();
    w.write(
        "main.tf",
        "variable \"place\" {\n  type  = string\n  const = true\n}\nvariable \"size\" {\n  type = string\n}\nmodule \"m\" {\n  source = \
         var.place\n}\noutput \"both\" {\n  value = \"${module.m.name} ${var.size}\"\n}\n",
    );
    w.write("m/main.tf", "output \"name\" {\n  value = \"from m\"\n}\n");
    let ran = shell(
        &w,
        "printf 'place = \"./m\"\\nsize = \"large\"\\n' | tf plan -no-color -input=false -var-file=/dev/stdin",
    );
    assert_eq!(ran.status, 0, "{}{}", ran.stdout, ran.stderr);
    assert!(ran.stdout.contains("+ both = \"from m large\""), "{}", ran.stdout);
}

/// A module can be valid only together with its tests, which configure its providers and use its ephemeral outputs.
/// `init` must install the module's providers nevertheless.
fn a_module_that_only_tests_complete() {
    let module = "terraform {\n  required_providers {\n    null = {\n      source = \"hashicorp/null\"\n      configuration_aliases \
                  = [null.mine]\n    }\n  }\n}\nresource \"null_resource\" \"a\" {\n  provider = null.mine\n}\noutput \"o\" {\n  value \
                  = \"x\"\n  ephemeral = true\n}\n";
    let suite = "provider \"null\" {\n  alias = \"mine\"\n}\nrun \"one\" {\n  assert {\n    condition = null_resource.a.id != \
                 \"\"\n    error_message = \"no\"\n  }\n}\n";
    let w = Workspace::with(&[("main.tf", module), ("a.tftest.hcl", suite)]);
    w.run(&["init"]).ok();
    w.run(&["test"]).ok().shows(&["1 passed, 0 failed"]);
    w.run(&["plan"])
        .fails_with(&["Provider configuration not present", "Ephemeral output not allowed"]);
}

/// A cycle is an error, and `graph` can draw it.
fn cycles_are_drawn() {
    let text = "locals {\n  a = local.b\n  b = local.a\n}\nresource \"terraform_data\" \"x\" {\n  input = local.a\n}\n";
    let w = Workspace::with(&[("main.tf", text)]);
    w.run(&["graph"]).fails_with(&["Cycle: local.a, local.b"]);
    w.run(&["graph", "-type=plan"]).fails_with(&["Cycle: local.a, local.b"]);
    let drawn = w.run(&["graph", "-type=plan", "-draw-cycles"]).ok();
    let red = |from: &str, to: &str| format!("\"[root] {from}\" -> \"[root] {to}\" [color = \"red\"");
    let (a, b) = ("local.a (expand)", "local.b (expand)");
    drawn.shows(&[
        &red(a, b),
        &red(b, a),
        "\"[root] terraform_data.x (expand)\" -> \"[root] local.a (expand)\"\n",
    ]);
    let mermaid = w.run(&["graph", "-type=plan", "-draw-cycles", "-format=mermaid"]).ok();
    mermaid.shows(&["flowchart LR", "linkStyle 0,1 stroke:red"]);
    w.run(&["graph", "-format=svg"])
        .fails_with(&["Unsupported graph format"]);
}

/// `-json` of `state list`, `fmt` and `providers`, which only Monoform has.
fn documents_that_only_we_have() {
    let w = Workspace::with(&[
        (
            "main.tf",
            "resource \"terraform_data\" \"a\" {\n  for_each = toset([\"x\"])\n}\nmodule \"m\" {\n  source = \"./m\"\n  count  = 2\n}\n",
        ),
        (
            "m/main.tf",
            "terraform {\n  required_providers {\n    random = {\n      source  = \"hashicorp/random\"\n      version = \">= 3.0.0\"\n    \
             }\n  }\n}\nresource \"random_pet\" \"p\" {}\n",
        ),
        ("untidy.tf", "locals {\n a = 1\n}\n"),
    ]);
    w.run(&["apply", "-auto-approve"]).ok();
    w.run(&["taint", "module.m[1].random_pet.p"]).ok();
    let listed = w.run(&["state", "list", "-json"]).ok().json();
    assert_eq!(
        listed,
        serde_json::json!({
            "format_version": "1.0",
            "resource_instances": [
                {
                    "address": "terraform_data.a[\"x\"]",
                    "mode": "managed",
                    "type": "terraform_data",
                    "name": "a",
                    "index": "x",
                    "provider_name": "terraform.io/builtin/terraform",
                },
                {
                    "address": "module.m[0].random_pet.p",
                    "module_address": "module.m[0]",
                    "mode": "managed",
                    "type": "random_pet",
                    "name": "p",
                    "provider_name": "registry.terraform.io/hashicorp/random",
                },
                {
                    "address": "module.m[1].random_pet.p",
                    "module_address": "module.m[1]",
                    "mode": "managed",
                    "type": "random_pet",
                    "name": "p",
                    "provider_name": "registry.terraform.io/hashicorp/random",
                    "tainted": true,
                },
            ],
        })
    );
    let one = w.run(&["state", "list", "-json", "module.m[0]"]).ok().json();
    assert_eq!(one["resource_instances"].as_array().map(Vec::len), Some(1), "{one}");
    w.run(&["state", "list", "-json", "module.n"])
        .fails_with(&["Unknown module"]);

    let checked = w.run(&["fmt", "-check", "-diff", "-json"]);
    assert_eq!(checked.status, 3, "{}", checked.all());
    let checked = checked.json();
    assert_eq!(
        checked["files"][0],
        serde_json::json!({"path": "main.tf", "formatted": true, "written": false})
    );
    let untidy = &checked["files"][1];
    assert_eq!(
        (&untidy["formatted"], &untidy["written"]),
        (&false.into(), &false.into())
    );
    let difference = untidy["diff"].as_str().expect("a text");
    assert!(difference.contains("\n+  a = 1\n"), "{difference}");
    let written = w.run(&["fmt", "-json"]).ok().json();
    assert_eq!(
        written["files"][1],
        serde_json::json!({"path": "untidy.tf", "formatted": false, "written": true})
    );
    assert_eq!(w.read("untidy.tf"), "locals {\n  a = 1\n}\n");
    w.write("untidy.tf", "locals {");
    let broken = w.run(&["fmt", "-json"]);
    assert_eq!(broken.status, 2, "{}", broken.all());
    assert_eq!(broken.json()["diagnostics"][0]["severity"], "error");
    w.run(&["fmt", "-json", "-"]).fails_with(&["only with -check"]);
    let piped = shell(&w, "printf 'a=1\\n' | tf fmt -check -json -");
    assert_eq!(piped.status, 3, "{}", piped.all());
    assert_eq!(
        piped.json()["files"],
        serde_json::json!([{"path": "<stdin>", "formatted": false, "written": false}])
    );
    w.write("untidy.tf", "");

    w.write(
        "m.tftest.hcl",
        "run \"alone\" {\n  module {\n    source = \"./m\"\n  }\n}\n",
    );
    w.run(&["init"]).ok();
    let needed = w.run(&["providers", "-json"]).ok().json();
    assert_eq!(
        needed,
        serde_json::json!({
            "format_version": "1.0",
            "root_module": {
                "providers": [{"source": "terraform.io/builtin/terraform"}],
                "modules": [{
                    "providers": [{
                        "source": "registry.terraform.io/hashicorp/random",
                        "version_constraints": ">= 3.0.0",
                    }],
                    "name": "m",
                }],
            },
            "tests": [{
                "path": "m.tftest.hcl",
                "runs": [{
                    "name": "alone",
                    "module": {
                        "providers": [{
                            "source": "registry.terraform.io/hashicorp/random",
                            "version_constraints": ">= 3.0.0",
                        }],
                    },
                }],
            }],
            "state": ["registry.terraform.io/hashicorp/random", "terraform.io/builtin/terraform"],
        })
    );
}

/// A plan that invokes an action which is not configured fails before planning. So it prints no summary, as in
/// Terraform 1.16.
fn an_action_that_is_not_configured() {
    let w = Workspace::with(&[("main.tf", "resource \"terraform_data\" \"a\" {}\n")]);
    let invoke = "-invoke=action.local_command.a";
    let text = w
        .run(&["plan", "-no-color", invoke])
        .fails_with(&["invoke target action.local_command.a not found"]);
    assert!(!text.all().contains("Planning failed"), "{}", text.all());
    let stream = w.run(&["plan", "-json", invoke]);
    assert_eq!(stream.status, 1, "{}", stream.all());
    assert!(!stream.stdout.contains("change_summary"), "{}", stream.stdout);
    w.run(&["refresh", "-no-color", invoke])
        .fails_with(&["-invoke is not supported here"]);
}

/// Tests the machine-readable output and `console -scope` of Terraform 1.16.
fn documents_of_workspaces_and_objects() {
    let w = Workspace::with(&[
        (
            "main.tf",
            "resource \"terraform_data\" \"a\" {\n  input = \"x\"\n}\nmodule \"m\" {\n  source = \"./m\"\n  count  = 2\n  x      = \
             count.index\n}\n",
        ),
        ("m/main.tf", "variable \"x\" {}\nlocals {\n  y = var.x * 10\n}\n"),
    ]);
    w.run(&["apply", "-auto-approve"]).ok();
    let shown = w.run(&["state", "show", "-json", "terraform_data.a"]).ok().json();
    assert_eq!(shown["resource"]["address"], "terraform_data.a");
    assert_eq!(shown["resource"]["values"]["input"], "x");
    assert_eq!(shown["diagnostics"], serde_json::json!([]));
    let ran = w.run(&["state", "show", "-json", "terraform_data.b"]);
    assert_eq!(ran.status, 1, "{}", ran.all());
    let missing = ran.json();
    assert_eq!(
        missing["resource"],
        serde_json::json!({"provider_name": "", "schema_version": 0})
    );
    assert_eq!(missing["diagnostics"][0]["severity"], "error");
    w.run(&["workspace", "new", "w2"]).ok();
    let listed = w.run(&["workspace", "list", "-json"]).ok().json();
    assert_eq!(
        listed,
        serde_json::json!({
            "format_version": "1.0",
            "workspaces": [{"name": "default"}, {"name": "w2", "is_current": true}],
            "diagnostics": [],
        })
    );
    // An invalid workspace name in the file does not prevent selecting another workspace.
    w.write(".terraform/environment", "a/b");
    w.run(&["plan"]).fails_with(&["Invalid workspace name"]);
    let listed = w.run(&["workspace", "list", "-json"]);
    assert_eq!(listed.status, 1, "{}", listed.all());
    assert_eq!(listed.json()["diagnostics"][0]["summary"], "Invalid workspace name");
    w.run(&["workspace", "select", "default"]).ok();
    let value = shell(&w, "echo local.y | tf console -scope='module.m[1]'").ok().stdout;
    assert_eq!(value.trim(), "10");
    for scope in ["module.m", "module.n", "m"] {
        let ran = shell(&w, &format!("echo 1 | tf console -scope='{scope}'"));
        assert_eq!(ran.status, 1, "{}", ran.all());
    }
    let refused = w.run(&["validate", "-json", "-nothing"]);
    assert_eq!(refused.status, 1, "{}", refused.all());
    assert_eq!(
        refused.json()["diagnostics"][0]["summary"],
        "Failed to parse command-line flags"
    );
    // A plan is applied in the workspace that it was made for.
    w.run(&["plan", "-out=p", "-var=nothing=1"])
        .fails_with(&["Value for undeclared variable"]);
    w.run(&["plan", "-refresh-only", "-detailed-exitcode", "-out=p"]).ok();
    w.run(&["workspace", "select", "w2"]).ok();
    w.run(&["apply", "p"])
        .fails_with(&["Saved plan is for another workspace", "\"default\"", "\"w2\""]);
}

fn a_large_plan_is_summarised() {
    let module = "resource \"terraform_data\" \"n\" {\n  count = 3\n  input = \"in the module\"\n}\n";
    let first = r#"
module "below" {
  source = "./below"
}

resource "terraform_data" "many" {
  count            = 70
  input            = "some text that nobody wants to read seventy times"
  triggers_replace = 1
}

resource "terraform_data" "old" {}

resource "terraform_data" "changed" {
  input = 1
}

output "one" {
  value = 1
}
"#;
    let w = Workspace::with(&[("main.tf", first), ("below/main.tf", module)]);
    let shown = w.run(&["plan", "-summary", "-out=p"]).ok().stdout;
    let expected = "
  module        type            create
  -             terraform_data      72
  module.below  terraform_data       3

Outputs that change: 1

Plan: 75 to add, 0 to change, 0 to destroy.
";
    assert!(shown.starts_with(expected), "{shown}");
    assert!(!shown.contains("nobody wants to read"), "{shown}");
    // The saved plan is complete, so it can be shown in both forms.
    assert!(w.run(&["show", "-summary", "p"]).ok().stdout.starts_with(expected));
    w.run(&["show", "p"]).ok().shows(&["nobody wants to read"]);
    w.run(&["apply", "-auto-approve", "-summary"])
        .ok()
        .shows(&["75 added", "72"]);
    w.run(&["plan", "-summary"]).ok().shows(&["No changes."]);

    let second = first
        .replace("triggers_replace = 1", "triggers_replace = 2")
        .replace("resource \"terraform_data\" \"old\" {}\n", "")
        .replace("input = 1", "input = 2");
    w.write("main.tf", &second);
    let shown = w.run(&["plan", "-summary"]).ok().stdout;
    for part in [
        "\nReplaced:\n  terraform_data.many[0] (because of triggers_replace)\n",
        "  and 20 more\n\nDestroyed:\n  terraform_data.old\n\n",
        "  module  type            update  replace  destroy\n  -       terraform_data       1       70        1\n",
        "\nPlan: 70 to add, 1 to change, 71 to destroy.\n",
    ] {
        assert!(shown.contains(part), "{part}\n{shown}");
    }
    // There are no lines for single objects.
    assert!(!shown.contains("Refreshing state"), "{shown}");
    // These options contradict the summary.
    w.run(&["show", "-summary"]).fails_with(&["Incompatible options"]);
    w.run(&["apply", "-summary", "p"]).fails_with(&["Incompatible options"]);
}

fn failed_plan_writes_no_generated_configuration() {
    let import = "import {\n  to = terraform_data.a\n  id = \"x\"\n}\n";
    let fails = "output \"o\" {\n  value = 1\n  precondition {\n    condition     = 1 == 2\n    error_message = \"no\"\n  }\n}\n";
    let w = Workspace::with(&[("main.tf", &format!("{import}{fails}"))]);
    let generated = w.dir().join("generated.tf");
    let plan = w.run(&["plan", "-generate-config-out=generated.tf"]);
    assert_eq!(plan.status, 1, "{}", plan.all());
    assert!(!generated.exists());
    std::fs::write(w.dir().join("main.tf"), import).expect("a file");
    w.run(&["plan", "-generate-config-out=generated.tf"]).ok();
    assert!(generated.exists());
}
