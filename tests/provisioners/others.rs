//! Provisioners of third parties, in place of the built-in ones.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::sshd::Sshd;
use crate::{apply, object};
use support::{self, Ran, Workspace};

/// Installs a built provisioner so that it replaces `remote-exec`. Returns its path.
fn install(w: &Workspace, built: &Path) -> PathBuf {
    let dir = w.home().join(".terraform.d/plugins");
    std::fs::create_dir_all(&dir).expect("a directory");
    let to = dir.join("terraform-provisioner-remote-exec");
    std::fs::copy(built, &to).expect("a copy");
    to
}

/// Fails the test unless a message names the plugin that replaces the built-in one.
#[track_caller]
fn tells_of_the_override(ran: &Ran, path: &Path) {
    let words: Vec<&str> = ran.stdout.split_whitespace().collect();
    let told = format!(
        "{} overrides an internal plugin for remote-exec-provisioner.",
        path.display()
    );
    assert!(words.join(" ").contains(&told), "{}", ran.all());
}

pub fn a_provisioner_in_rust() {
    let server = Sshd::usual();
    let w = Workspace::with(&[(
        "main.tf",
        &object(&format!(
            "{}provisioner \"remote-exec\" {{\n  inline = [\"echo from $((40 + 2))\"]\n}}\n",
            server.by_key()
        )),
    )]);
    let path = install(&w, &support::example("install"));
    let ran = apply(&w).ok().shows(&[
        "terraform_data.a (remote-exec): installing on the other machine",
        "terraform_data.a (remote-exec): from 42",
    ]);
    assert!(!ran.stdout.contains("Connecting to remote host"), "{}", ran.all());
    tells_of_the_override(&ran, &path);
    // Only the built-in provisioner has the argument `script`.
    w.write(
        "main.tf",
        &object(&format!(
            "{}provisioner \"remote-exec\" {{\n  script = \"x\"\n}}\n",
            server.by_key()
        )),
    );
    w.run(&["validate", "-no-color"]).fails_with(&["inline"]);
}

pub fn a_provisioner_in_go() {
    let w = Workspace::new();
    let built = w.dir().join("shout");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/provisioners/shout");
    let output = Command::new("go")
        .args(["build", "-o"])
        .arg(&built)
        .arg(".")
        .current_dir(source)
        .output();
    let go = support::ran(output.expect("go starts"));
    assert_eq!(go.status, 0, "go build: {}", go.all());
    let path = install(&w, &built);
    let main = |line: &str| {
        object(&format!(
            "connection {{\n  host = \"h\"\n  port = 2222\n  agent = false\n}}\nprovisioner \"remote-exec\" {{\n  inline = [\"{line}\"]\n}}\n"
        ))
    };
    w.write("main.tf", &main("hello"));
    let ran = apply(&w).ok().shows(&[
        // Plugins receive the connection as a map of strings.
        "terraform_data.a (remote-exec): connection agent=false host=h port=2222",
        "terraform_data.a (remote-exec): GO HELLO",
    ]);
    tells_of_the_override(&ran, &path);
    w.write(
        "main.tf",
        &format!("{}{}", main("fail").replace("\"a\"", "\"b\""), main("hello")),
    );
    apply(&w).fails_with(&["remote-exec provisioner error", "told to fail"]);
}
