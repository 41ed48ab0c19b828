//! What the options `-show-sensitive` and `-concise` show and leave out.

use support::Workspace;

pub const TESTS: &[(&str, fn())] = &[
    ("shown::sensitive_values_only_where_they_are_asked_for", sensitive),
    ("shown::an_output_that_becomes_visible_or_hidden", visibility),
    ("shown::no_lines_of_progress_with_concise", concise),
    ("shown::options_for_people_are_refused_with_json", refused),
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
    // A positional argument ends the options.
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
    // What a provisioner says is no progress.
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
