//! Plan files that cannot be applied.

use crate::{no_orphans, refused};
use support::{Workspace, needs};

fn planned() -> Workspace {
    let w = Workspace::with(&[(
        "main.tf",
        "variable \"v\" {\n  type = number\n  default = 1\n}\n\nresource \"terraform_data\" \"a\" {\n  input = var.v\n}\n",
    )]);
    w.run(&["plan", "-no-color", "-out=the.plan"]).ok();
    w
}

#[test]
fn a_stale_one() {
    let w = planned();
    w.run(&["apply", "-no-color", "-auto-approve"]).ok();
    refused(
        &w,
        &["apply", "-no-color", "the.plan"],
        &["stale", "has been changed since the plan was made"],
    );
    // A plan of this state can be applied, but only once.
    w.run(&["plan", "-no-color", "-out=the.plan", "-var=v=2"]).ok();
    w.run(&["apply", "-no-color", "the.plan"]).ok();
    refused(&w, &["apply", "-no-color", "the.plan"], &["stale"]);
    assert_eq!(
        w.state()["resources"][0]["instances"][0]["attributes"]["input"]["value"],
        2
    );
    // A plan of a state with another lineage cannot be applied.
    w.run(&["plan", "-no-color", "-out=the.plan", "-var=v=3"]).ok();
    let state = w.read("terraform.tfstate");
    let lineage = w.state()["lineage"].as_str().expect("a lineage").to_owned();
    w.write(
        "terraform.tfstate",
        &state.replace(&lineage, "11111111-2222-3333-4444-555555555555"),
    );
    refused(&w, &["apply", "-no-color", "the.plan"], &["lineage"]);
    no_orphans(&w);
}

#[test]
fn damaged_ones() {
    let w = planned();
    let whole = std::fs::read(w.dir().join("the.plan")).expect("a plan");
    let damaged = w.dir().join("damaged.plan");
    for length in [0, 1, 10, whole.len() / 2, whole.len() - 1] {
        std::fs::write(&damaged, &whole[..length]).expect("a file");
        refused(&w, &["apply", "-no-color", "damaged.plan"], &["damaged.plan"]);
        refused(&w, &["show", "-no-color", "damaged.plan"], &["damaged.plan"]);
    }
    // A changed byte is detected or has no effect, wherever it is.
    for at in (0..whole.len()).step_by(whole.len() / 25 + 1) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x55;
        std::fs::write(&damaged, bytes).expect("a file");
        let ran = w.run(&["show", "-no-color", "damaged.plan"]);
        assert!(
            ran.status == 0 || (ran.status == 1 && ran.stderr.contains("Error: ")),
            "byte {at}: {}",
            ran.all()
        );
    }
    refused(&w, &["apply", "-no-color", "none.plan"], &["none.plan", "-chdir"]);
    refused(&w, &["apply", "-no-color", "main.tf"], &["main.tf"]);
    assert!(!w.exists("terraform.tfstate"));
}

#[test]
fn one_whose_configuration_has_gone() {
    let w = planned();
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = w
            .dir()
            .join("the.plan")
            .metadata()
            .expect("a plan")
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600, "a plan holds every value, secrets too");
    }
    // A saved plan is applied as planned, whatever the files now contain.
    std::fs::remove_file(w.dir().join("main.tf")).expect("a file");
    w.run(&["apply", "-no-color", "the.plan"]).ok();
    assert_eq!(
        w.state()["resources"][0]["instances"][0]["attributes"]["input"]["value"],
        1
    );
}

#[test]
fn other_providers_than_were_planned_with() {
    let locked = |version: &str, hash: &str| {
        format!(
            "provider \"registry.terraform.io/hashicorp/other\" {{\n  version = \"{version}\"\n  hashes = [\n    \"h1:{hash}\",\n  ]\n}}\n"
        )
    };
    let w = Workspace::with(&[
        ("main.tf", "resource \"terraform_data\" \"a\" {}\n"),
        (".terraform.lock.hcl", &locked("1.0.0", "aaaa")),
    ]);
    w.run(&["plan", "-no-color", "-out=the.plan"]).ok();
    let apply = ["apply", "-no-color", "the.plan"];
    w.write(".terraform.lock.hcl", &locked("1.1.0", "aaaa"));
    refused(
        &w,
        &apply,
        &[
            "Inconsistent dependency lock file",
            "hashicorp/other: 1.0.0 when the plan was made, 1.1.0 now",
        ],
    );
    w.write(".terraform.lock.hcl", &locked("1.0.0", "bbbb"));
    refused(
        &w,
        &apply,
        &["Inconsistent dependency lock file", "with other checksums"],
    );
    w.write(".terraform.lock.hcl", "");
    refused(
        &w,
        &apply,
        &[
            "Inconsistent dependency lock file",
            "1.0.0 when the plan was made, none now",
        ],
    );
    assert!(!w.exists("terraform.tfstate"));
    w.write(".terraform.lock.hcl", &locked("1.0.0", "aaaa"));
    w.run(&apply).ok();
    no_orphans(&w);
}

#[test]
fn variables_that_differ() {
    let w = planned();
    refused(
        &w,
        &["apply", "-no-color", "-var=v=2", "the.plan"],
        &["Can't change variable when applying a saved plan"],
    );
    w.run(&["apply", "-no-color", "-var=v=1", "the.plan"]).ok();
}

#[test]
fn one_made_by_terraform() {
    if needs("terraform", "one_made_by_terraform").is_none() {
        return;
    }
    let w = planned();
    w.run_program("terraform", &["plan", "-no-color", "-out=terraform.plan"])
        .ok();
    for command in ["apply", "show"] {
        refused(
            &w,
            &[command, "-no-color", "terraform.plan"],
            &["terraform.plan", "Terraform"],
        );
    }
    // Terraform refuses Monoform's plan, too.
    w.run_program("terraform", &["apply", "-no-color", "the.plan"])
        .fails_with(&["the.plan"]);
    assert!(!w.exists("terraform.tfstate"));
}
