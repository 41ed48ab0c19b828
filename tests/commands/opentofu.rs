//! Modes: called as `tofu` or with `MONOFORM_MODE`, the program answers as OpenTofu.

use std::os::unix::fs::symlink;

use support::{Ran, Workspace, monoform, ran};

pub const TESTS: &[(&str, fn())] = &[
    (
        "opentofu::called_as_tofu_it_answers_as_opentofu",
        called_as_tofu_it_answers_as_opentofu,
    ),
    (
        "opentofu::variable_selects_the_mode_of_any_name",
        variable_selects_the_mode_of_any_name,
    ),
    (
        "opentofu::each_mode_reads_its_files_and_its_version_constraints",
        each_mode_reads_its_files_and_its_version_constraints,
    ),
];

/// Runs the program through a link with the name of OpenTofu's.
fn tofu(w: &Workspace, args: &[&str]) -> Ran {
    let link = w.home().join("tofu");
    if !link.exists() {
        symlink(monoform(), &link).expect("a link");
    }
    w.run_program(&link, args)
}

/// Runs the executable under its own name in a mode.
fn in_mode(w: &Workspace, mode: &str, args: &[&str]) -> Ran {
    let mut command = w.command(monoform());
    command.env("MONOFORM_MODE", mode).args(args);
    ran(command.output().expect("the program starts"))
}

fn called_as_tofu_it_answers_as_opentofu() {
    let w = Workspace::with(&[(
        "main.tf",
        "terraform {\n  required_version = \">= 99\"\n  required_providers {\n    null = {\n      source = \"hashicorp/null\"\n    }\n  }\n}\n\
         resource \"null_resource\" \"a\" {}\n",
    )]);
    let ran = tofu(&w, &["version"]).ok();
    assert!(ran.stdout.starts_with("OpenTofu v1.12.6\n"), "{}", ran.all());
    let ran = tofu(&w, &["version", "-json"]).ok();
    assert!(
        ran.stdout.contains("\"terraform_version\": \"1.12.6\""),
        "{}",
        ran.all()
    );
    let ran = tofu(&w, &["init", "-no-color"]).ok();
    assert!(
        ran.stdout.contains("OpenTofu has been successfully initialized!") && ran.stdout.contains("\"tofu plan\""),
        "{}",
        ran.all()
    );
    let ran = tofu(&w, &["plan", "-json"]).ok();
    let first = ran.stdout.lines().next().unwrap_or_default();
    for part in [
        "\"OpenTofu 1.12.6\"",
        "\"tofu.ui\"",
        "\"tofu\":\"1.12.6\"",
        "\"ui\":\"1.2\"",
    ] {
        assert!(first.contains(part), "{part}\n{first}");
    }
    let ran = tofu(&w, &["apply", "-auto-approve", "-no-color"]).ok();
    assert!(!ran.stdout.contains("Terraform"), "{}", ran.all());
    let state = w.read("terraform.tfstate");
    assert!(
        state.contains("\"terraform_version\": \"1.12.6\"")
            && state.contains("provider[\\\"registry.opentofu.org/hashicorp/null\\\"]"),
        "{state}"
    );
    // The same configuration, read as Terraform's.
    w.run(&["plan", "-no-color"])
        .fails_with(&["Unsupported Terraform Core version", "version \">= 99\" of Terraform"]);
}

fn variable_selects_the_mode_of_any_name() {
    let w = Workspace::with(&[("main.tf", "")]);
    let ran = in_mode(&w, "opentofu", &["version"]).ok();
    assert!(ran.stdout.starts_with("OpenTofu v1.12.6\n"), "{}", ran.all());
    let ran = in_mode(&w, "terraform", &["version"]).ok();
    assert!(ran.stdout.starts_with("Terraform v1.16.0\n"), "{}", ran.all());
    let ran = in_mode(&w, "tofu", &["version"]);
    assert!(
        ran.stderr.contains("\"tofu\", is not a mode") && ran.stdout.starts_with("Monoform v"),
        "{}",
        ran.all()
    );
}

fn each_mode_reads_its_files_and_its_version_constraints() {
    let w = Workspace::with(&[
        ("main.tf", "output \"from\" {\n  value = \"tf\"\n}\n"),
        ("main.tofu", "output \"from\" {\n  value = \"tofu\"\n}\n"),
        ("more.tofu", "output \"more\" {\n  value = 1\n}\n"),
    ]);
    let outputs = |mode: &str| {
        let ran = in_mode(&w, mode, &["plan", "-no-color"]).ok();
        let has = |text: &str| ran.all().contains(text);
        let warned = has("File of OpenTofu is not read") && has("Beside main.tofu is a file of Terraform");
        (has("from = \"tf\""), has("from = \"tofu\""), has("more = 1"), warned)
    };
    assert_eq!(outputs("terraform"), (true, false, false, false));
    assert_eq!(outputs("opentofu"), (false, true, true, false));
    assert_eq!(outputs("monoform"), (true, false, true, true));
    w.write("version.tofu", "terraform {\n  required_version = \">= 1.13\"\n}\n");
    for mode in ["opentofu", "monoform"] {
        in_mode(&w, mode, &["plan", "-no-color"]).fails_with(&["Incompatible module", "answers as version 1.12.6"]);
    }
    in_mode(&w, "terraform", &["plan"]).ok();
}
