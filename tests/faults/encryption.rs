//! Encrypted states and plans: the written files, the programs that can read them, and states that are kept when the key is
//! missing.
//!
//! `encryption/opentofu.tfstate` and `encryption/opentofu.plan` were written by OpenTofu 1.12.6 with the passphrase of these
//! tests.

use nix::sys::signal::Signal;
use support::Workspace;

use crate::{WAITING, files, no_orphans, refused, start, until};

const SECRET: &str = "done before";

const APPLY: &[&str] = &["apply", "-no-color", "-auto-approve"];

/// The text of `TF_ENCRYPTION` for a passphrase and the targets.
fn settings(passphrase: &str, targets: &str) -> String {
    format!(
        "key_provider \"pbkdf2\" \"p\" {{\n  passphrase = \"{passphrase}\"\n}}\nmethod \"aes_gcm\" \"m\" {{\n  \
         keys = key_provider.pbkdf2.p\n}}\nmethod \"unencrypted\" \"u\" {{}}\n{targets}\n"
    )
}

fn encrypting(passphrase: &str) -> String {
    settings(
        passphrase,
        "state {\n  method = method.aes_gcm.m\n}\nplan {\n  method = method.aes_gcm.m\n}",
    )
}

const PASSPHRASE: &str = "correct horse battery staple";

/// Returns a working directory in which states and plans are encrypted.
fn encrypted(config: &str) -> Workspace {
    Workspace::with(&[("main.tf", config)]).env("TF_ENCRYPTION", encrypting(PASSPHRASE))
}

/// Fails the test if any file except the configuration contains the secret in clear text.
#[track_caller]
fn hidden(w: &Workspace) {
    for (path, content) in files(w) {
        let found = content.windows(SECRET.len()).any(|part| part == SECRET.as_bytes());
        assert!(!found || path.ends_with("main.tf"), "{} has the secret", path.display());
    }
}

#[test]
fn no_file_has_a_secret_in_clear_text_even_after_a_kill() {
    let w = encrypted(WAITING);
    let run = start(&w, APPLY);
    until("the provisioner runs", || w.exists("started"));
    until("a journal is there", || w.exists(".terraform.tfstate.journal"));
    hidden(&w);
    run.signal(Signal::SIGKILL);
    assert_eq!(run.ends().status, -1);
    hidden(&w);
    w.write("go", "");
    // The journal is read with the key of the state.
    no_orphans(&w);
    hidden(&w);
    w.run(APPLY).ok();
    w.write(
        "main.tf",
        &WAITING.replace("input = terraform_data.waiting.id", "input = \"done before\""),
    );
    w.run(&["plan", "-no-color", "-out=plan"]).ok();
    hidden(&w);
    w.run(&["show", "-no-color", "plan"]).ok().shows(&[SECRET]);
    w.run(&["apply", "-no-color", "plan"]).ok();
    assert!(w.exists("terraform.tfstate.backup"));
    hidden(&w);
    w.run(&["state", "pull"]).ok().shows(&[SECRET]);
}

#[test]
fn plan_in_clear_text_of_an_encrypted_state_warns() {
    let w = Workspace::with(&[("main.tf", WAITING)]).env(
        "TF_ENCRYPTION",
        settings(PASSPHRASE, "state {\n  method = method.aes_gcm.m\n}"),
    );
    w.run(&["plan", "-no-color", "-out=plan"])
        .ok()
        .shows(&["Warning: Saved plan is not encrypted"]);
    let w = w.env("TF_ENCRYPTION", encrypting(PASSPHRASE));
    let ran = w.run(&["plan", "-no-color", "-out=plan"]).ok();
    assert!(!ran.all().contains("Saved plan is not encrypted"));
}

#[test]
fn lost_key_is_an_error_that_changes_nothing() {
    let w = encrypted(WAITING);
    w.write("go", "");
    w.run(APPLY).ok();
    w.run(&["plan", "-out=plan"]).ok();
    let without = w.env("TF_ENCRYPTION", " ");
    for args in [
        APPLY,
        &["destroy", "-auto-approve"],
        &["state", "rm", "terraform_data.after"],
        &["output"],
        &["show"],
    ] {
        refused(
            &without,
            args,
            &[
                "Unsupported state file format",
                "can not be read without an encryption configuration",
            ],
        );
    }
    refused(
        &without,
        &["apply", "plan"],
        &["Failed to read plan file", "needs a valid encryption configuration"],
    );
    let other = without.env("TF_ENCRYPTION", encrypting("another passphrase, long enough"));
    refused(
        &other,
        APPLY,
        &["Failed to decrypt state", "decryption failed for all provided methods"],
    );
    refused(
        &other,
        &["apply", "plan"],
        &["decryption failed for all provided methods"],
    );
    refused(
        &other,
        &["state", "push", "terraform.tfstate"],
        &["decryption failed for all provided methods"],
    );
}

#[test]
fn key_is_replaced_by_a_fallback_and_encryption_is_left_in_the_same_way() {
    let w = Workspace::with(&[("main.tf", WAITING), ("go", "")]);
    w.run(APPLY).ok();
    let plain = w.state();
    // Without the method "unencrypted", a plain state is refused.
    let w = w.env("TF_ENCRYPTION", encrypting(PASSPHRASE));
    refused(
        &w,
        APPLY,
        &["encountered unencrypted payload without unencrypted method configured"],
    );
    let into = "state {\n  method = method.aes_gcm.m\n  fallback {\n    method = method.unencrypted.u\n  }\n}";
    let w = w.env("TF_ENCRYPTION", settings(PASSPHRASE, into));
    w.run(APPLY)
        .ok()
        .shows(&["Unencrypted method configured", "0 added, 0 changed, 0 destroyed"]);
    hidden(&w);
    // The encrypted state has the same serial and lineage.
    assert_eq!(w.state()["serial"], plain["serial"]);
    assert_eq!(w.state()["lineage"], plain["lineage"]);
    assert_eq!(w.state()["encryption_version"], "v0");
    let w = w.env("TF_ENCRYPTION", encrypting(PASSPHRASE));
    w.run(&["state", "list"]).ok();
    let out_of = "state {\n  method = method.unencrypted.u\n  fallback {\n    method = method.aes_gcm.m\n  }\n}";
    let w = w.env("TF_ENCRYPTION", settings(PASSPHRASE, out_of));
    w.run(APPLY).ok();
    assert_eq!(w.state()["resources"], plain["resources"]);
}

#[test]
fn variables_give_the_passphrase_also_to_a_saved_plan() {
    let config = format!(
        "variable \"pass\" {{\n  type      = string\n  sensitive = true\n}}\n\
         terraform {{\n  encryption {{\n{}\n  }}\n}}\n{WAITING}",
        encrypting("${var.pass}${var.pass}")
    );
    let w = Workspace::with(&[("main.tf", &config), ("go", "")]);
    w.run(&["plan", "-out=plan", "-var=pass=twice this"]).ok();
    refused(&w, &["apply", "-input=false", "plan"], &["Required variable not set"]);
    w.run(&["apply", "-var=pass=twice this", "plan"]).ok();
    w.run(&["state", "list", "-var=pass=twice this"])
        .ok()
        .shows(&["terraform_data.after"]);
    hidden(&w);
}

#[test]
fn remote_states_are_decrypted_by_their_own_target() {
    let w = Workspace::with(&[
        ("main.tf", "output \"word\" {\n  value = \"done before\"\n}\n"),
        (
            "reader/main.tf",
            "data \"terraform_remote_state\" \"other\" {\n  backend = \"local\"\n  config = {\n    path = \"../terraform.tfstate\"\n  }\n  \
             defaults = { more = 1 }\n}\noutput \"all\" {\n  value = data.terraform_remote_state.other.outputs\n}\n",
        ),
    ])
    .env("TF_ENCRYPTION", encrypting(PASSPHRASE));
    w.run(APPLY).ok();
    let reader: &[&str] = &["-chdir=reader", "apply", "-no-color", "-auto-approve"];
    w.run(reader)
        .fails_with(&["the state is encrypted", "remote_state_data_sources"]);
    for name in ["default", "remote_state_data_source \"other\""] {
        let targets = format!("remote_state_data_sources {{\n  {name} {{\n    method = method.aes_gcm.m\n  }}\n}}");
        let w = Workspace::with(&[
            ("reader/main.tf", &w.read("reader/main.tf")),
            ("terraform.tfstate", &w.read("terraform.tfstate")),
        ])
        .env("TF_ENCRYPTION", settings(PASSPHRASE, &targets));
        w.run(reader)
            .ok()
            .shows(&["\"word\" = \"done before\"", "\"more\" = 1"]);
    }
}

#[test]
fn files_of_opentofu_are_read() {
    let w = encrypted("resource \"terraform_data\" \"a\" {\n  input = \"from OpenTofu\"\n}\n");
    w.write("terraform.tfstate", include_str!("encryption/opentofu.tfstate"));
    w.write("plan", include_str!("encryption/opentofu.plan"));
    w.run(&["output", "-raw", "word"]).ok().shows(&["from OpenTofu"]);
    w.run(&["show", "-no-color", "terraform.tfstate"])
        .ok()
        .shows(&["from OpenTofu"]);
    // The plan inside the file has OpenTofu's own format.
    w.run(&["show", "plan"])
        .fails_with(&["it was saved by Terraform or OpenTofu"]);
}

#[test]
fn opentofu_reads_what_is_written_here_and_the_other_way() {
    let Some(tofu) = support::needs("tofu", "opentofu_reads_what_is_written_here_and_the_other_way") else {
        return;
    };
    let config = |word: &str| {
        format!(
            "resource \"terraform_data\" \"a\" {{\n  input = \"{word}\"\n}}\noutput \"word\" {{\n  value = terraform_data.a.output\n}}\n"
        )
    };
    let w = encrypted(&config("ours"));
    w.run(APPLY).ok();
    w.run_program(&tofu, &["init"]).ok();
    w.run_program(&tofu, &["output", "-raw", "word"]).ok().shows(&["ours"]);
    w.write("main.tf", &config("theirs"));
    w.run_program(&tofu, APPLY)
        .ok()
        .shows(&["0 added, 1 changed, 0 destroyed"]);
    w.run(&["output", "-raw", "word"]).ok().shows(&["theirs"]);
    w.run(&["plan", "-detailed-exitcode"]).ok();
}
