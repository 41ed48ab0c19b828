//! Options of commands that only OpenTofu has.

use support::terminal::Terminal;
use support::{Workspace, monoform};

use crate::opentofu::{both, in_mode};

pub const TESTS: &[(&str, fn())] = &[
    (
        "opentofu_options::view_flags_fold_and_filter_diagnostics",
        view_flags_fold_and_filter_diagnostics,
    ),
    (
        "opentofu_options::workspaces_and_locks_take_variables",
        workspaces_and_locks_take_variables,
    ),
    (
        "opentofu_options::variables_that_are_needed_early_are_asked_for_once_on_a_terminal",
        variables_that_are_needed_early_are_asked_for_once_on_a_terminal,
    ),
    (
        "opentofu_options::state_or_plan_to_show_is_named_by_an_option",
        state_or_plan_to_show_is_named_by_an_option,
    ),
    (
        "opentofu_options::configuration_and_modules_are_shown_as_documents",
        configuration_and_modules_are_shown_as_documents,
    ),
    (
        "opentofu_options::streams_are_written_beside_the_text",
        streams_are_written_beside_the_text,
    ),
    (
        "opentofu_options::documents_are_written_beside_the_text",
        documents_are_written_beside_the_text,
    ),
    (
        "opentofu_options::messages_are_written_beside_the_text",
        messages_are_written_beside_the_text,
    ),
];

fn view_flags_fold_and_filter_diagnostics() {
    let main = r#"
module "a" {
  source = "./m"
  old    = 1
}
module "b" {
  source = "./m"
  old    = 2
}
resource "terraform_data" "x" {
  input = nothing_here
}
resource "terraform_data" "y" {
  input = nothing_there
}
"#;
    let child = "variable \"old\" {\n  default    = 0\n  deprecated = \"use new\"\n}\n";
    let valid = main.replace("nothing_here", "1").replace("nothing_there", "2");
    both(&[("main.tf", main), ("m/main.tf", child)], |w, run| {
        let errors = |args: &[&str]| run(args).stderr.matches("Error: ").count();
        assert_eq!(errors(&["validate", "-no-color"]), 2);
        let ran = run(&["validate", "-no-color", "-consolidate-errors"]);
        assert!(
            ran.stderr.matches("Error: ").count() == 1 && ran.stderr.contains("(and one more similar error elsewhere)"),
            "{}",
            ran.all()
        );
        w.write("main.tf", &valid);
        let warnings = |args: &[&str]| {
            let ran = run(&[&["plan", "-no-color"], args].concat()).ok();
            ran.stdout.matches("Warning: Deprecated variable got a value").count()
        };
        assert_eq!(warnings(&[]), 1);
        assert_eq!(warnings(&["-consolidate-warnings=false"]), 2);
        assert_eq!(warnings(&["-deprecation=module:local"]), 1);
        assert_eq!(warnings(&["-deprecation=module:none"]), 0);
        run(&["plan", "-consolidate-errors=maybe"]).fails_with(&["neither true nor false"]);
        run(&["plan", "-deprecation=none"]).fails_with(&["Invalid -deprecation option"]);
        in_mode(w, "terraform", &["plan", "-consolidate-errors"]).fails_with(&["-consolidate-errors"]);
    });
}

fn workspaces_and_locks_take_variables() {
    let main = "variable \"name\" {\n  type = string\n}\nterraform {\n  backend \"local\" {\n    path = \"${var.name}.tfstate\"\n  }\n}\n";
    both(&[("main.tf", main)], |_, run| {
        let name = "-var=name=a";
        run(&["init", name]).ok();
        run(&["workspace", "new", name, "blue"]).ok();
        assert!(run(&["workspace", "list", name]).ok().stdout.contains("* blue"));
        run(&["workspace", "select", name, "default"]).ok();
        run(&["workspace", "delete", name, "blue"]).ok();
        run(&["workspace", "list"]).fails_with(&["Required variable not set"]);
        run(&["workspace", "list", "-var=name=b"]).fails_with(&["Backend initialization required"]);
        run(&["force-unlock", "-force", "x"]).fails_with(&["Required variable not set"]);
        let ran = run(&["force-unlock", "-force", name, "x"]);
        assert!(ran.status == 1 && !ran.all().contains("variable"), "{}", ran.all());
    });
}

fn state_or_plan_to_show_is_named_by_an_option() {
    let w = Workspace::with(&[("main.tf", "resource \"terraform_data\" \"a\" {}\n")]);
    w.run(&["apply", "-auto-approve"]).ok();
    w.run(&["plan", "-destroy", "-out=p"]).ok();
    let shown = |args: &[&str]| w.run(&[&["show", "-no-color"], args].concat()).ok().stdout;
    assert_eq!(shown(&["-state"]), shown(&[]));
    assert_eq!(shown(&["-plan=p"]), shown(&["p"]));
    for (args, problem) in [
        (&["show", "-plan=terraform.tfstate"][..], "as a plan file"),
        (&["show", "-plan=none"], "as a plan file"),
        (&["show", "-state", "-plan=p"], "Incompatible options"),
        (&["show", "-state", "p"], "Incompatible options"),
    ] {
        w.run(args).fails_with(&[problem]);
    }
}

fn configuration_and_modules_are_shown_as_documents() {
    let main = r#"
variable "v" {
  type       = object({ a = string, b = optional(number) })
  deprecated = "Use w."
}
variable "w" {
  default   = 1
  ephemeral = true
}
resource "terraform_data" "a" {
  count = 2
  input = var.v.a
}
module "m" {
  source = "./m"
}
module "far" {
  source  = "example.com/a/b/c"
  version = "~> 1.0"
}
output "o" {
  value      = terraform_data.a[0].output
  deprecated = "Use p."
}
"#;
    let w = Workspace::with(&[("main.tf", main), ("m/main.tf", "output \"x\" {\n  value = 1\n}\n")]);
    let document = |args: &[&str]| -> serde_json::Value {
        let ran = w.run(&[&["show", "-json"], args].concat()).ok();
        serde_json::from_str(&ran.stdout).expect("a document")
    };
    // The module alone can be shown although another one is not installed.
    let alone = &document(&["-module=."])["root_module"];
    assert_eq!(
        alone["variables"],
        serde_json::json!({
            "v": {
                "type": ["object", { "a": "string", "b": "number" }, ["b"]],
                "required": true,
                "deprecated": "Use w.",
            },
            "w": { "default": 1, "ephemeral": true },
        })
    );
    assert_eq!(
        alone["module_calls"],
        serde_json::json!({
            "far": { "source": "example.com/a/b/c", "version_constraint": "~> 1.0" },
            "m": { "source": "./m" },
        })
    );
    assert_eq!(
        alone["resources"],
        serde_json::json!([{
            "address": "terraform_data.a",
            "mode": "managed",
            "type": "terraform_data",
            "name": "a",
            "provider_config_key": "terraform",
        }])
    );
    w.run(&["show", "-json", "-config"])
        .fails_with(&["Module not installed"]);
    w.write(
        "main.tf",
        &main.replace(
            "module \"far\" {\n  source  = \"example.com/a/b/c\"\n  version = \"~> 1.0\"\n}\n",
            "",
        ),
    );
    let whole = &document(&["-config"])["root_module"];
    assert_eq!(whole["variables"], alone["variables"]);
    assert_eq!(whole["resources"][0]["count_expression"]["constant_value"], 2);
    assert_eq!(whole["outputs"]["o"]["deprecated"], "Use p.");
    assert_eq!(
        whole["module_calls"]["m"]["module"]["outputs"]["x"]["expression"]["constant_value"],
        1
    );
    for (args, problem) in [
        (&["show", "-config"][..], "JSON output required"),
        (&["show", "-module=m"], "JSON output required"),
        (&["show", "-json", "-module=none"], "Failed to read module directory"),
        (&["show", "-json", "-config", "-state"], "Incompatible options"),
        (&["show", "-json", "-config", "-summary"], "Incompatible options"),
    ] {
        w.run(args).fails_with(&[problem]);
    }
    w.write("main.tf", "resource \"terraform_data\" {}\n");
    w.run(&["show", "-json", "-config"])
        .fails_with(&["Missing name for resource"]);
    std::fs::remove_file(w.dir().join("main.tf")).expect("the file");
    w.run(&["show", "-json", "-config"])
        .fails_with(&["No configuration files"]);
}

fn variables_that_are_needed_early_are_asked_for_once_on_a_terminal() {
    let main = r#"
variable "file" {
  type        = string
  description = "File of the state."
}
variable "dir" {
  type = string
}
terraform {
  backend "local" {
    path = "${var.file}.tfstate"
  }
}
module "m" {
  source = "./${var.dir}"
}
output "o" {
  value = "${var.file} ${module.m.x}"
}
"#;
    for mode in ["monoform", "opentofu"] {
        let w = Workspace::with(&[("main.tf", main), ("m/main.tf", "output \"x\" {\n  value = 1\n}\n")]);
        let start = |args: &[&str]| {
            let mut command = w.command(monoform());
            Terminal::start(command.env("MONOFORM_MODE", mode).args(args))
        };
        // Each variable is asked for when it is needed, and never again by the same command.
        let answered = |args: &[&str]| {
            let mut terminal = start(args);
            for _ in 0..2 {
                let seen = terminal.sees("Enter a value:");
                let is_file = seen.contains("var.file");
                assert!(is_file == seen.contains("File of the state."), "{seen}");
                terminal.press(if is_file { "s\r" } else { "m\r" });
            }
            let (status, text, _) = terminal.ends();
            assert!(status.success(), "{args:?}: {text}");
            text
        };
        answered(&["init", "-no-color"]);
        let text = answered(&["apply", "-auto-approve", "-no-color"]);
        assert!(text.contains("o = \"s 1\""), "{text}");
        assert!(w.dir().join("s.tfstate").exists());
        let (status, text, _) = start(&["plan", "-no-color", "-input=false"]).ends();
        assert!(!status.success() && !text.contains("Enter a value"), "{text}");
        // Commands that ask nothing else do not ask for variables either.
        let (status, text, _) = start(&["workspace", "list", "-no-color"]).ends();
        assert!(
            !status.success() && text.contains("Required variable not set"),
            "{text}"
        );
        let mut terminal = start(&["plan", "-no-color"]);
        terminal.sees("Enter a value:");
        terminal.press("\u{4}");
        let (status, text, _) = terminal.ends();
        assert!(!status.success(), "{text}");
    }
}

/// Returns the types of the messages of a stream.
fn types(stream: &str) -> Vec<String> {
    let parsed = stream
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"));
    parsed
        .map(|message| message["type"].as_str().unwrap_or_default().to_owned())
        .collect()
}

fn streams_are_written_beside_the_text() {
    use std::os::unix::fs::PermissionsExt as _;

    let main =
        "resource \"terraform_data\" \"a\" {\n  input = 1\n}\noutput \"o\" {\n  value = terraform_data.a.output\n}\n";
    both(&[("main.tf", main)], |w, run| {
        let alone = types(&run(&["plan", "-json"]).stdout);
        let ran = run(&["plan", "-no-color", "-json-into=j"]).ok();
        assert!(ran.stdout.contains("Plan: 1 to add"), "{}", ran.all());
        assert_eq!(types(&w.read("j")), alone);
        let mode = std::fs::metadata(w.dir().join("j"))
            .expect("the file")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600);
        let ran = run(&["apply", "-auto-approve", "-no-color", "-json-into=j"]).ok();
        assert!(
            ran.stdout.contains("Apply complete!") && ran.stdout.contains("o = 1"),
            "{}",
            ran.all()
        );
        let of_apply = types(&w.read("j"));
        for ty in [
            "version",
            "planned_change",
            "apply_start",
            "apply_complete",
            "change_summary",
            "outputs",
        ] {
            assert!(of_apply.iter().any(|found| found == ty), "{ty}\n{of_apply:?}");
        }
        let alone = types(&run(&["refresh", "-json"]).stdout);
        run(&["refresh", "-json-into=j"]).ok();
        assert_eq!(types(&w.read("j")), alone);
        let ran = run(&["plan", "-json", "-json-into=j"]);
        assert!(
            ran.status == 1 && ran.stdout.contains("exclude each other"),
            "{}",
            ran.all()
        );
        run(&["plan", "-json-into=none/j"]).fails_with(&["Failed to open the file for JSON output"]);
        run(&["destroy", "-auto-approve", "-json-into=j"]).ok();
        assert!(types(&w.read("j")).contains(&"apply_complete".to_owned()));
        w.write("main.tf", "output \"o\" {\n  value = nothing.here\n}\n");
        run(&["plan", "-no-color", "-json-into=j"]).fails_with(&["Reference to undeclared resource"]);
        assert!(types(&w.read("j")).contains(&"diagnostic".to_owned()));
    });
}

fn documents_are_written_beside_the_text() {
    let main = "resource \"terraform_data\" \"a\" {\n  input = 1\n}\noutput \"o\" {\n  value = \"x\"\n}\n";
    both(&[("main.tf", main)], |w, run| {
        run(&["apply", "-auto-approve"]).ok();
        run(&["plan", "-destroy", "-out=p"]).ok();
        for args in [
            &["output"][..],
            &["output", "o"],
            &["show"],
            &["show", "p"],
            &["state", "list"],
            &["state", "show", "terraform_data.a"],
            &["validate"],
            &["workspace", "list"],
        ] {
            let text = run(&[args, &["-no-color"]].concat()).ok().stdout;
            let (last, words) = args.split_last().expect("a command");
            // Options come before arguments.
            let with = |flag: &str| match args {
                ["output", "o"] | ["show", "p"] | ["state", "show", _] => [words, &[flag, last]].concat().join(" "),
                _ => [args, &[flag]].concat().join(" "),
            };
            let call = |line: String| run(&line.split(' ').collect::<Vec<_>>());
            let ran = call(with("-no-color -json-into=j")).ok();
            assert_eq!(ran.stdout, text, "{args:?}");
            assert_eq!(w.read("j"), call(with("-json")).ok().stdout, "{args:?}");
            let ran = call(with("-json -json-into=j"));
            assert!(
                ran.status == 1 && ran.all().contains("exclude each other"),
                "{}",
                ran.all()
            );
        }
        w.write("main.tf", "output \"o\" {\n  value = nothing.here\n}\n");
        run(&["validate", "-json-into=j"]).fails_with(&["Reference to undeclared resource"]);
        assert_eq!(w.read("j"), run(&["validate", "-json"]).stdout);
    });
}

/// Returns the texts of the messages of a stream.
fn messages(stream: &str) -> Vec<String> {
    let parsed = stream
        .lines()
        .map(|line| serde_json::from_str::<serde_json::Value>(line).expect("JSON"));
    parsed
        .map(|message| message["@message"].as_str().unwrap_or_default().to_owned())
        .collect()
}

fn messages_are_written_beside_the_text() {
    let files = [
        (
            "main.tf",
            "resource \"terraform_data\" \"a\" {}\nmodule \"m\" {\n  source = \"./m\"\n}\n",
        ),
        ("m/main.tf", ""),
        ("a.tftest.hcl", "run \"r\" {\n  command = plan\n}\n"),
    ];
    both(&files, |w, run| {
        for (args, message) in [
            ("get", "m in m"),
            ("init", "successfully initialized"),
            ("apply -auto-approve", "Apply complete!"),
            ("test", "1 passed, 0 failed"),
            (
                "state mv terraform_data.a terraform_data.b",
                "Successfully moved 1 object(s).",
            ),
            ("taint terraform_data.b", "terraform_data.b has been marked as tainted."),
            (
                "untaint terraform_data.b",
                "terraform_data.b has been successfully untainted.",
            ),
            (
                "state rm terraform_data.b",
                "Successfully removed 1 resource instance(s).",
            ),
            (
                "state replace-provider -auto-approve a/b d/e",
                "No matching resources found.",
            ),
            ("import terraform_data.a x", "Import successful!"),
            ("workspace new b", "Created and switched to workspace \"b\"!"),
            ("workspace select default", "Switched to workspace \"default\"."),
            ("workspace delete b", "Deleted workspace \"b\"!"),
            ("providers lock", "found no need for changes"),
            ("logout example.com", "No credentials for example.com are stored."),
        ] {
            let (command, rest) = match args.split_once(' ') {
                Some((group @ ("state" | "workspace" | "providers"), rest)) => match rest.split_once(' ') {
                    Some((name, rest)) => (format!("{group} {name}"), rest),
                    None => (args.to_owned(), ""),
                },
                Some((name, rest)) => (name.to_owned(), rest),
                None => (args.to_owned(), ""),
            };
            let line = format!("{command} -no-color -json-into=j {rest}");
            let words: Vec<&str> = line.split_whitespace().collect();
            let ran = run(&words).ok();
            let found = messages(&w.read("j"));
            assert!(
                found.len() > 1 && found.iter().any(|found| found.contains(message)),
                "{args}: {found:?}\n{}",
                ran.all()
            );
        }
        run(&["taint", "-json-into=j", "terraform_data.none"]).fails_with(&["No such resource instance"]);
        assert!(types(&w.read("j")).contains(&"diagnostic".to_owned()));
        run(&["force-unlock", "-force", "-json-into=j", "none"]).fails_with(&["Failed to unlock state"]);
        assert!(types(&w.read("j")).contains(&"diagnostic".to_owned()));
    });
}
