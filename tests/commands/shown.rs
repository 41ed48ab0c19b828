//! The options `-show-sensitive`, which shows hidden values, and `-concise`, which shortens the output.

use support::terminal::Terminal;
use support::{Workspace, monoform};

pub const TESTS: &[(&str, fn())] = &[
    ("shown::sensitive_values_only_where_they_are_asked_for", sensitive),
    ("shown::an_output_that_becomes_visible_or_hidden", visibility),
    (
        "shown::sensitive_input_of_terraform_data_is_hidden_in_its_output",
        sensitive_terraform_data,
    ),
    ("shown::sensitive_import_id_is_hidden", sensitive_import_id),
    ("shown::no_lines_of_progress_with_concise", concise),
    ("shown::options_for_people_are_refused_with_json", refused),
    ("shown::plans_are_brief_or_full", verbosity),
    (
        "shown::terminal_has_the_difference_of_long_texts",
        differences_on_a_terminal,
    ),
    (
        "shown::destroy_plan_that_prevent_destroy_forbids_is_shown",
        forbidden_destroy,
    ),
    (
        "shown::command_to_apply_a_plan_keeps_the_directory",
        directory_of_saved_plan,
    ),
    (
        "shown::errors_beside_a_bookmark_have_their_source",
        errors_beside_a_bookmark,
    ),
];

const SECRETS: &str = r#"
variable "secret" {
  type      = string
  sensitive = true
}

resource "terraform_data" "a" {
  triggers_replace = var.secret
}

output "o" {
  value     = var.secret
  sensitive = true
}
"#;

fn forbidden_destroy() {
    let w = Workspace::with(&[(
        "main.tf",
        "resource \"terraform_data\" \"kept\" {\n  lifecycle {\n    prevent_destroy = true\n  }\n}\n\nresource \"terraform_data\" \
         \"other\" {}\n",
    )]);
    w.run(&["apply", "-auto-approve"]).ok();
    for args in [&["destroy", "-auto-approve"][..], &["plan", "-destroy", "-out=p"]] {
        let failed = w.run(args);
        assert_eq!(failed.status, 1);
        let text = support::words(&failed.all());
        for part in [
            "planned the following actions, but then encountered a problem",
            "# terraform_data.kept will be destroyed",
            "# terraform_data.other will be destroyed",
            "Plan: 0 to add, 0 to change, 2 to destroy.",
            "Instance cannot be destroyed",
        ] {
            assert!(text.contains(part), "{part} is missing: {text}");
        }
    }
    w.run(&["apply", "p"]).fails_with(&["Cannot apply incomplete plan"]);
    assert_eq!(
        w.run(&["state", "list"]).ok().stdout,
        "terraform_data.kept\nterraform_data.other\n"
    );
}

fn directory_of_saved_plan() {
    let w = Workspace::with(&[("the site/main.tf", "resource \"terraform_data\" \"a\" {}\n")]);
    w.run(&["-chdir=the site", "plan", "-out=p"])
        .ok()
        .shows(&["\n    monoform '-chdir=the site' apply \"p\"\n"]);
    w.run(&["-chdir=the site", "apply", "p"]).ok();
    w.run(&["plan", "-chdir=the site"])
        .fails_with(&["goes before the command"]);
}

/// Returns a configuration with a long text, a list of objects, and a trigger.
fn long(word: &str, first: &str, trigger: &str) -> String {
    let rules = |begin: &str| format!("[{begin}{{ port = 22, from = \"a\" }}, {{ port = 80, from = \"b\" }}]");
    format!(
        "resource \"terraform_data\" \"text\" {{\n  input = join(\"\", [\"{{0}}\", \"{}\", \"{word}\", \"{}\"])\n}}\n\nresource \
         \"terraform_data\" \"lines\" {{\n  input = join(\"\\n\", [for i in range(40) : i == 20 ? \"{word}\" : \"line ${{i}}\"])\n}}\n\nresource \
         \"terraform_data\" \"rules\" {{\n  input = {}\n}}\n\nresource \"terraform_data\" \"replaced\" {{\n  input            = \
         \"same\"\n  triggers_replace = \"{trigger}\"\n}}\n",
        "a".repeat(300),
        "z".repeat(300),
        rules(first),
    )
}

fn verbosity() {
    let w = Workspace::with(&[("main.tf", &long("old", "", "1"))]);
    w.run(&["apply", "-auto-approve", "-verbosity=brief"])
        .ok()
        .shows(&["\nChanges:\n  + terraform_data.lines\n  + terraform_data.replaced\n"]);
    w.write("main.tf", &long("new", "{ port = 21, from = \"z\" }, ", "2"));
    let expected = "\nChanges:\n  ~ terraform_data.lines (input, output)\n-/+ terraform_data.replaced (because of \
                    triggers_replace)\n  ~ terraform_data.rules (input, output)\n  ~ terraform_data.text (input, output)\n\nPlan: 1 to add, 3 \
                    to change, 1 to destroy.\n";
    w.run(&["plan", "-verbosity=brief", "-out=p"]).ok().shows(&[expected]);
    w.run(&["show", "-verbosity=brief", "p"]).ok().shows(&[expected]);
    // Without a terminal, the text is Terraform's: both values completely, and all lines.
    let normal = w.run(&["show", "p"]).ok().stdout;
    assert_eq!(w.run(&["show", "-verbosity=normal", "p"]).ok().stdout, normal);
    assert_eq!(normal.matches(&"z".repeat(300)).count(), 3, "{normal}");
    assert!(
        normal.contains("line 3\n") && !normal.contains("input            = \"same\""),
        "{normal}"
    );
    let full = w.run(&["show", "-verbosity=full", "p"]).ok().stdout;
    assert!(
        full.contains("input            = \"same\"") && !full.contains("hidden)"),
        "{full}"
    );
    // Markdown shows the differences.
    let short = w.run(&["show", "-format=markdown", "p"]).ok().stdout;
    let text = "\"…aaaaaaaaaaaaaaaaaaaaoldzzzzzzzzzzzzzzzzzzzz…\" -> \"…aaaaaaaaaaaaaaaaaaaanewzzzzzzzzzzzzzzzzzzzz…\" # (606 -> 606 characters)";
    assert!(short.contains(text), "{short}");
    assert!(!short.contains(&"z".repeat(200)), "{short}");
    assert!(
        short.contains("(17 unchanged lines hidden)") && !short.contains("line 3\n"),
        "{short}"
    );
    w.run(&["destroy", "-auto-approve", "-verbosity=brief"])
        .ok()
        .shows(&["  - terraform_data.text\n"]);
    for arguments in [
        &["plan", "-verbosity=loud"][..],
        &["plan", "-verbosity=brief", "-summary"],
        &["plan", "-verbosity=full", "-format=markdown"],
        &["show", "-verbosity=brief"],
        &["apply", "-verbosity=brief", "p"],
    ] {
        w.run(arguments).fails_with(&["-verbosity"]);
    }
}

fn differences_on_a_terminal() {
    let w = Workspace::with(&[("main.tf", &long("old", "", "1"))]);
    w.run(&["apply", "-auto-approve"]).ok();
    w.write("main.tf", &long("new", "{ port = 21, from = \"z\" }, ", "1"));
    let mut terminal = Terminal::start(w.command(monoform()).args(["plan", "-no-color"]));
    // Only the inserted object is shown as a difference.
    terminal.sees("+ {");
    terminal.sees("+ from = \"z\"");
    terminal.sees("# (1 unchanged element hidden)");
    terminal.sees("# (606 -> 606 characters)");
}

fn visibility() {
    let w = Workspace::new();
    let output = |more: &str| w.write("main.tf", &format!("output \"o\" {{\n  value = \"v\"\n  {more}\n}}\n"));
    output("");
    w.run(&["apply", "-auto-approve"]).ok();
    for (more, text, after) in [
        (
            "sensitive = true",
            "Changes to Outputs:\n  ~ o = (sensitive value) # becomes sensitive\n",
            "o = <sensitive>\n",
        ),
        (
            "",
            "Changes to Outputs:\n  ~ o = (sensitive value) # becomes visible: it is not sensitive any more\n",
            "o = \"v\"\n",
        ),
    ] {
        output(more);
        let planned = w.run(&["plan", "-no-color", "-detailed-exitcode"]);
        assert_eq!(planned.status, 2, "{}", planned.all());
        assert!(
            planned.stdout.contains(text) && !planned.stdout.contains("No changes"),
            "{}",
            planned.all()
        );
        w.run(&["apply", "-auto-approve"]).ok();
        assert_eq!(w.run(&["output"]).ok().stdout, after);
    }
}

fn sensitive() {
    let w = Workspace::with(&[("main.tf", SECRETS)]).env("TF_VAR_secret", "hunter2");
    let check = |args: &[&str]| {
        let hidden = w.run(args).ok();
        assert!(!hidden.all().contains("hunter2"), "{args:?} {}", hidden.all());
        let shown = w.run(&[args, &["-show-sensitive"]].concat()).ok();
        assert!(shown.stdout.contains("hunter2"), "{args:?} {}", shown.all());
        let words = ["(sensitive value)", "<sensitive>"];
        assert!(!words.iter().any(|word| shown.stdout.contains(word)), "{}", shown.all());
        shown.stdout
    };
    let text = check(&["plan", "-out=p"]);
    assert!(
        text.contains("+ triggers_replace = \"hunter2\"") && text.contains("+ o = \"hunter2\""),
        "{text}"
    );
    w.run(&["apply", "-auto-approve"]).ok();
    assert_eq!(check(&["output"]), "o = \"hunter2\"\n");
    check(&["show"]);
    assert!(check(&["apply", "-auto-approve"]).contains("Outputs:\n\no = \"hunter2\"\n"));
    assert!(check(&["plan", "-destroy", "-out=p"]).contains("- triggers_replace = \"hunter2\" -> null"));
    // No options are recognized after a positional argument.
    let shown = |args: &[&str]| {
        let ran = w.run(args).ok();
        assert!(ran.stdout.contains("hunter2"), "{}", ran.all());
    };
    assert!(!w.run(&["show", "p"]).ok().all().contains("hunter2"));
    shown(&["show", "-show-sensitive", "p"]);
    assert!(
        !w.run(&["state", "show", "terraform_data.a"])
            .ok()
            .all()
            .contains("hunter2")
    );
    shown(&["state", "show", "-show-sensitive", "terraform_data.a"]);
    shown(&["destroy", "-auto-approve", "-show-sensitive"]);
    w.run(&["apply", "-auto-approve"]).ok();
    assert!(!w.run(&["destroy", "-auto-approve"]).ok().all().contains("hunter2"));
}

const KEPT: &str = r#"
variable "secret" {
  sensitive = true
}

resource "terraform_data" "a" {
  input = { k = var.secret, open = "seen" }
}

module "m" {
  source = "./m"
  secret = var.secret
}

resource "terraform_data" "later" {
  input = terraform_data.a.output.k
}
"#;

const MODULE: &str = r#"
variable "secret" {}

resource "terraform_data" "b" {
  for_each         = toset(["x"])
  input            = [var.secret]
  triggers_replace = "t"
}
"#;

fn sensitive_terraform_data() {
    let w = Workspace::with(&[("main.tf", KEPT), ("m/m.tf", MODULE)]).env("TF_VAR_secret", "hunter2");
    w.run(&["init"]).ok();
    let hidden = |w: &Workspace, args: &[&str]| {
        let ran = w.run(args).ok();
        assert!(!ran.all().contains("hunter"), "{args:?} {}", ran.all());
        ran.stdout
    };
    hidden(&w, &["apply", "-auto-approve"]);
    assert!(
        hidden(&w, &["show"]).contains("\"seen\""),
        "only what is sensitive is hidden"
    );
    hidden(&w, &["state", "show", "terraform_data.a"]);
    let settled = w.run(&["plan", "-detailed-exitcode"]);
    assert_eq!(settled.status, 0, "{}", settled.all());
    let document: serde_json::Value = serde_json::from_str(&w.run(&["show", "-json"]).ok().stdout).unwrap();
    let resources = document["values"]["root_module"]["resources"].as_array().unwrap();
    let a = resources.iter().find(|r| r["address"] == "terraform_data.a").unwrap();
    let marks = serde_json::json!({"input": {"k": true}, "output": {"k": true}});
    assert_eq!(a["sensitive_values"], marks);
    // The old output is shown if the input changes; everything is shown if the object is destroyed.
    let w = w.env("TF_VAR_secret", "hunter3");
    let changed = hidden(&w, &["plan", "-out=p"]);
    assert!(changed.contains("3 to change"), "{changed}");
    hidden(&w, &["show", "p"]);
    let document: serde_json::Value = serde_json::from_str(&w.run(&["show", "-json", "p"]).ok().stdout).unwrap();
    let changes = document["resource_changes"].as_array().unwrap();
    let a = changes.iter().find(|c| c["address"] == "terraform_data.a").unwrap();
    assert_eq!(a["change"]["before_sensitive"], marks);
    assert_eq!(
        a["change"]["after_sensitive"],
        serde_json::json!({"input": {"k": true}, "output": true})
    );
    hidden(&w, &["apply", "-auto-approve", "p"]);
    hidden(&w, &["destroy", "-auto-approve"]);
}

const BY_SECRET: &str = r#"
resource "terraform_data" "a" {
  lifecycle {
    ignore_changes = all
  }
}

import {
  to = terraform_data.a
  id = sensitive("hunter2")
}
"#;

fn sensitive_import_id() {
    let w = Workspace::with(&[("main.tf", BY_SECRET)]);
    let plan = w.run(&["plan", "-out=p"]).ok();
    assert!(plan.all().contains("[(sensitive value)]"), "{}", plan.all());
    assert!(plan.stdout.contains("1 to import"), "{}", plan.all());
    let document: serde_json::Value = serde_json::from_str(&w.run(&["show", "-json", "p"]).ok().stdout).unwrap();
    assert_eq!(
        document["resource_changes"][0]["change"]["importing"],
        serde_json::json!({})
    );
    let stream = w.run(&["apply", "-json", "p"]).ok();
    assert!(!stream.stdout.contains("\"id\":\"hunter2\"}"), "{}", stream.all());
    assert!(stream.stdout.contains("1 imported"), "{}", stream.all());
}

const TALKING: &str = r#"
data "external" "d" {
  program = ["sh", "-c", "echo '{\"a\":\"b\"}'"]
}

resource "terraform_data" "a" {
  input = data.external.d.result.a

  provisioner "local-exec" {
    command = "echo said"
  }
}
"#;

fn concise() {
    let w = Workspace::with(&[("main.tf", TALKING)]);
    w.run(&["init"]).ok();
    let lines = [
        ": Creating...",
        ": Creation complete",
        ": Refreshing state...",
        ": Reading...",
        ": Read complete",
        ": Destroying...",
    ];
    let progress = |text: &str| lines.iter().filter(|line| text.contains(**line)).count();
    let ran = w.run(&["apply", "-auto-approve", "-concise"]).ok();
    assert_eq!(progress(&ran.stdout), 0, "{}", ran.all());
    // The output of a provisioner is not a progress message.
    ran.shows(&[
        "+ resource \"terraform_data\" \"a\"",
        "terraform_data.a (local-exec): said",
        "Apply complete! Resources: 1 added",
    ]);
    for args in [
        &["plan"][..],
        &["plan", "-refresh-only"],
        &["refresh"],
        &["destroy", "-auto-approve"],
    ] {
        if args[0] != "destroy" {
            let ran = w.run(args).ok();
            assert!(progress(&ran.stdout) > 1, "{args:?} {}", ran.all());
        }
        let ran = w.run(&[args, &["-concise"]].concat()).ok();
        assert_eq!(progress(&ran.stdout), 0, "{args:?} {}", ran.all());
    }
}

fn refused() {
    let w = Workspace::with(&[("main.tf", TALKING)]);
    for (command, flag) in [
        ("plan", "-concise"),
        ("plan", "-show-sensitive"),
        ("apply", "-concise"),
        ("apply", "-show-sensitive"),
        ("destroy", "-concise"),
        ("destroy", "-show-sensitive"),
        ("refresh", "-concise"),
        ("show", "-show-sensitive"),
        ("output", "-show-sensitive"),
    ] {
        let ran = w.run(&[command, "-json", flag]);
        assert_eq!(ran.status, 1, "{command} {flag}");
        let expected = format!("The option {flag} is about what people read.");
        assert!(support::words(&ran.all()).contains(&expected), "{}", ran.all());
    }
    for (command, flag) in [
        ("refresh", "-show-sensitive"),
        ("show", "-concise"),
        ("output", "-concise"),
        ("import", "-concise"),
    ] {
        let ran = w.run(&[command, flag]);
        assert_eq!(ran.status, 1, "{command} {flag}");
        assert!(ran.all().contains(flag), "{}", ran.all());
    }
    for (command, flags) in [
        ("plan", "-concise -show-sensitive"),
        ("output", "-show-sensitive"),
        ("refresh", "-concise"),
    ] {
        let page = w.run(&[command, "-help"]).ok().stdout;
        for flag in flags.split(' ') {
            assert!(page.contains(flag), "{page}");
        }
    }
}

fn errors_beside_a_bookmark() {
    let w = Workspace::new();
    w.write("main.tf", "output \"o\" {\n  valeu = 1\n}\n");
    w.write(
        "p",
        r#"{"remote_plan_format": 1, "run_id": "run-1", "hostname": "app.example"}"#,
    );
    w.run(&["show", "-no-color", "p"])
        .fails_with(&["Unsupported argument", "valeu = 1"]);
}
