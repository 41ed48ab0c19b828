//! The command line itself: positions of flags, completion, help, the program's names, and suggestions.

use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use support::registry::platform;
use support::{Ran, Workspace, monoform};

pub const TESTS: &[(&str, fn())] = &[
    ("line::two_flags_stand_anywhere", two_flags_stand_anywhere),
    (
        "line::called_as_terraform_it_says_terraform",
        called_as_terraform_it_says_terraform,
    ),
    ("line::help_has_a_page_for_everything", help_has_a_page_for_everything),
    ("line::near_names_are_suggested", near_names_are_suggested),
    (
        "line::no_numbers_of_the_system_in_errors",
        no_numbers_of_the_system_in_errors,
    ),
    (
        "line::validate_of_a_directory_uses_its_plugins_if_it_is_initialized",
        validate_of_a_directory_uses_its_plugins_if_it_is_initialized,
    ),
    (
        "line::small_outputs_end_as_terraform_ends_them",
        small_outputs_end_as_terraform_ends_them,
    ),
];

const MAIN: &str = r#"
resource "terraform_data" "one" {
  input = 1
}

resource "terraform_data" "many" {
  count = 2
}

output "result" {
  value = terraform_data.one.output
}
"#;

fn two_flags_stand_anywhere() {
    let w = Workspace::with(&[("main.tf", MAIN)]);
    for args in [
        &["plan", "-out=p", "-no-color"][..],
        &["show", "p", "-no-color"],
        &["show", "-no-color", "p", "-compact-warnings"],
        &["apply", "p", "-compact-warnings", "-no-color"],
        &["workspace", "new", "w", "-no-color"],
        &["workspace", "select", "default", "-no-color"],
        &["workspace", "delete", "w", "-no-color"],
        &["state", "list", "terraform_data.one", "-no-color"],
        &["state", "show", "terraform_data.one", "-no-color"],
        &["output", "result", "-compact-warnings", "-no-color"],
        &["output", "--", "result", "-no-color"],
        &["taint", "terraform_data.one", "-no-color"],
        &["validate", ".", "-no-color"],
        &["fmt", "main.tf", "-no-color"],
    ] {
        w.run(args).ok();
    }
    // As in Terraform, the word after a flag that needs a value is its value, even if it begins with a hyphen.
    w.run(&["plan", "-out", "-no-color"])
        .fails_with(&["flag needs an argument: -out"]);
    let ran = w.run(&["show", "nowhere", "-no-color"]);
    assert!(ran.status == 1 && !ran.stderr.contains('╷'), "{}", ran.all());
}

fn as_terraform(w: &Workspace, args: &[&str]) -> Ran {
    let link = w.home().join("terraform");
    if !link.exists() {
        symlink(monoform(), &link).expect("a link");
    }
    w.run_program(&link, args)
}

fn called_as_terraform_it_says_terraform() {
    let w = Workspace::with(&[("main.tf", MAIN)]);
    for (args, text) in [
        (
            &["init", "-no-color"][..],
            "Terraform has been successfully initialized!",
        ),
        (
            &["init", "-no-color"],
            "Next, \"terraform plan\" shows what Terraform would",
        ),
        (&["plan", "-no-color"], "Terraform will perform the following actions:"),
        (&["plan", "-no-color"], "Terraform used the selected providers"),
        (
            &["plan", "-no-color"],
            "Note: This plan is not saved. \"terraform apply\" makes a new one",
        ),
        (&["plan", "-no-color", "-out=p"], "terraform apply \"p\""),
        (&["output", "-no-color"], "\"terraform apply\" stores the values"),
        (&["-help"], "Usage: terraform [global options]"),
        (&["state", "-help"], "Usage: terraform [global options] state"),
        (&["plan", "-help"], "Usage: terraform [global options] plan"),
    ] {
        let theirs = as_terraform(&w, args).ok();
        assert!(flat(&theirs.stdout).contains(text), "{text}\n{}", theirs.all());
        let ours = w.run(args).ok();
        let text = text.replace("Terraform", "Monoform").replace("terraform", "monoform");
        assert!(flat(&ours.stdout).contains(&text), "{text}\n{}", ours.all());
    }
    let ran = as_terraform(&w, &["aply"]);
    assert!(
        ran.stderr.contains("Terraform has no command named \"aply\""),
        "{}",
        ran.all()
    );
    let ran = as_terraform(&w, &["apply", "-no-color"]);
    assert!(
        ran.stdout
            .contains("  Terraform will perform the actions described above."),
        "{}",
        ran.all()
    );
    as_terraform(&w, &["apply", "-no-color", "-auto-approve"]).ok();
    let ran = as_terraform(&w, &["plan", "-no-color"]).ok();
    assert!(
        ran.stdout
            .contains("Terraform compared every object with its configuration"),
        "{}",
        ran.all()
    );
    assert!(!ran.stdout.contains("onoform"), "{}", ran.all());
    // Errors from low-level crates name the program, too.
    w.write(
        "main.tf",
        "removed {\n  from = terraform_data.one\n  lifecycle {\n    destroy = false\n  }\n}\n",
    );
    let ran = as_terraform(&w, &["plan", "-no-color"]).ok();
    let text = flat(&ran.stdout);
    assert!(
        text.contains("will no longer be managed by Terraform")
            && text.contains("From then on Terraform does not manage"),
        "{}",
        ran.all()
    );
    w.write(
        "main.tf",
        "terraform {\n  required_providers {\n    far = { source = \"example.com/away/far\" }\n  }\n}\nprovider \"far\" {}\n\
         resource \"far_thing\" \"x\" {}\n",
    );
    let ran = as_terraform(&w, &["plan", "-no-color"]);
    assert!(
        ran.status == 1 && flat(&ran.stderr).contains("terraform init\""),
        "{}",
        ran.all()
    );
}

fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn help_has_a_page_for_everything() {
    let w = Workspace::new();
    let overview = w.run(&["-help"]).ok().stdout;
    for command in ["plan", "force-unlock", "state", "workspace"] {
        let line = overview
            .lines()
            .find(|l| l.starts_with(&format!("  {command} ")))
            .expect(command);
        let about = line.find(|c: char| c.is_ascii_uppercase());
        assert_eq!(about, Some(16), "aligned: {line}");
    }
    for title in ["Main commands:", "Configuration:", "State:", "This program:"] {
        assert!(overview.lines().any(|line| line == title), "{title}\n{overview}");
    }
    assert_eq!(w.run(&["help"]).ok().stdout, overview);
    assert_eq!(
        w.run(&["help", "plan"]).ok().stdout,
        w.run(&["plan", "-help"]).ok().stdout
    );
    assert!(w.run(&["help", "ci"]).ok().stdout.starts_with("In CI\n"));
    let unknown = w.run(&["help", "migrat"]);
    assert!(
        unknown.status == 1 && unknown.stderr.contains("Did you mean \"migrate\"?"),
        "{}",
        unknown.all()
    );
    let page = w.run(&["plan", "-help"]).ok().stdout;
    for part in [
        "Examples:\n\n  monoform plan -out=tfplan\n",
        "\nWhat to plan:\n\n  -destroy ",
        "\nValues of variables:\n\n  -var='NAME=VALUE' ",
        "\nState:\n\n  -lock=false ",
        "-lock-timeout=DURATION",
        "Defaults to 0s.",
    ] {
        assert!(page.contains(part), "{part}\n{page}");
    }
    assert!(
        !overview.contains("state replace-provider") && !overview.contains("env list"),
        "{overview}"
    );
    for (args, text) in [
        (
            &["state", "-help"][..],
            "    replace-provider  Replace provider in the state",
        ),
        (&["providers", "-help"], "    schema  Show schemas"),
        (&["env", "-help"], "    select  "),
        (&["graph", "-help"], "Usage: monoform [global options] graph"),
        (
            &["internal-plugin", "-help"],
            "Usage: monoform internal-plugin provider NAME",
        ),
        (
            &["internal-plugin", "list", "-help"],
            "Usage: monoform internal-plugin list",
        ),
        (
            &["internal-plugin", "link", "-help"],
            "Usage: monoform internal-plugin link DIR",
        ),
    ] {
        let ran = w.run(args).ok();
        assert!(ran.stdout.contains(text), "{}", ran.all());
    }
    assert_eq!(
        std::fs::read_dir(w.dir()).expect("a directory").count(),
        0,
        "no directory was made"
    );
    assert_eq!(w.run(&["internal-plugin", "link", "-x"]).status, 1);
    let plan = flat(&w.run(&["plan", "-help"]).ok().stdout);
    assert!(
        plan.contains("-lock=false Work without holding the state's lock"),
        "{plan}"
    );
    assert!(plan.contains("-input=false Do not ask"), "{plan}");
}

fn near_names_are_suggested() {
    let w = Workspace::with(&[("main.tf", MAIN)]);
    w.run(&["apply", "-auto-approve"]).ok();
    w.run(&["workspace", "new", "staging"]).ok();
    w.run(&["workspace", "select", "default"]).ok();
    for (args, text) in [
        (&["plan", "-refresh-onyl"][..], "Did you mean -refresh-only?"),
        (&["workspace", "select", "stagign"], "Did you mean \"staging\"?"),
        (&["workspace", "delete", "stagin"], "Did you mean \"staging\"?"),
        (&["output", "reslut"], "Did you mean \"result\"?"),
        (
            &["state", "show", "terraform_data.on"],
            "Did you mean terraform_data.one?",
        ),
        (
            &["state", "show", "terraform_data.many"],
            "Did you mean terraform_data.many[0]?",
        ),
        (
            &["state", "rm", "terraform_data.ones"],
            "Did you mean terraform_data.one?",
        ),
        (
            &["state", "mv", "terraform_data.noe", "terraform_data.x"],
            "Did you mean terraform_data.one?",
        ),
        (
            &["state", "list", "terraform_data.oen"],
            "Did you mean terraform_data.one?",
        ),
        (&["taint", "terraform_data.oen"], "Did you mean terraform_data.one?"),
        (
            &["untaint", "terraform_data.many"],
            "Did you mean terraform_data.many[0]?",
        ),
    ] {
        w.run(args).fails_with(&[text]);
    }
    let ran = w.run(&["state", "shwo"]);
    assert!(
        ran.status == 1 && ran.stdout.contains("Did you mean \"show\"?"),
        "{}",
        ran.all()
    );
}

fn validate_of_a_directory_uses_its_plugins_if_it_is_initialized() {
    let requiring = "terraform {\n  required_providers {\n    null = {\n      source = \"example.com/acme/null\"\n    }\n  }\n}\nresource \
                     \"null_resource\" \"a\" {\n}\n";
    // A local module is not installed, so it needs no initialization.
    let module = "variable \"x\" {}\n";
    for initialized in [".", "module"] {
        let w = Workspace::with(&[
            ("main.tf", requiring),
            ("module/main.tf", requiring),
            ("module/more.tf", module),
        ]);
        let plugins = format!("{initialized}/terraform.d/plugins/example.com/acme/null/1.0.0");
        let plugin = format!("{plugins}/{}/terraform-provider-null_v1.0.0", platform());
        w.write(
            &plugin,
            &format!("#!/bin/sh\nexec '{}' internal-plugin provider null\n", monoform()),
        );
        std::fs::set_permissions(w.dir().join(&plugin), Permissions::from_mode(0o755)).expect("a file");
        w.run(&["validate", "module"]).fails_with(&["Provider not available"]);
        w.run(&[&format!("-chdir={initialized}"), "init"]).ok();
        w.run(&["validate", "module"]).ok();
        // The paths of variable files are relative to the calling directory.
        w.write("given.tfvars", "x = 1\n");
        w.run(&["validate", "-var-file=given.tfvars", "module"]).ok();
    }
}

fn no_numbers_of_the_system_in_errors() {
    let w = Workspace::with(&[("main.tf", MAIN), ("file", "")]);
    for args in [
        &["-chdir=nowhere", "plan"][..],
        &["validate", "nowhere"],
        &["fmt", "nowhere.tf"],
        &["state", "push", "nowhere"],
        &["plan", "-target-file=nowhere"],
        &["plan", "-state=file/below"],
        &["show", "nowhere"],
        &["init", "-backend-config=nowhere"],
        &["workspace", "new", "-state=nowhere", "w"],
    ] {
        let ran = w.run(args);
        assert!(!ran.all().contains("os error"), "{args:?}\n{}", ran.all());
    }
    let ran = w.run(&["-chdir=nowhere", "plan"]);
    assert!(
        ran.stderr.contains("chdir nowhere: no such file or directory\n"),
        "{}",
        ran.all()
    );
}

fn small_outputs_end_as_terraform_ends_them() {
    let w = Workspace::new();
    assert_eq!(
        w.run(&["providers", "schema", "-json"]).ok().stdout,
        "{\"format_version\":\"1.0\"}\n"
    );
    w.write("main.tf", MAIN);
    w.run(&["apply", "-auto-approve"]).ok();
    let shown = w.run(&["state", "show", "-no-color", "terraform_data.one"]).ok().stdout;
    assert!(shown.ends_with("\n}\n"), "{shown:?}");
}
