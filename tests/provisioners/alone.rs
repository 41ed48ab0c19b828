//! The static executable in a directory that has nothing else: no `/tmp`, `/dev`, `/proc`, users or libraries.

use std::process::Command;

use crate::object;
use crate::sshd::{self, Sshd};

/// Run by hand, as root: `MONOFORM_STATIC=dist/monoform cargo test --test provisioners -- --ignored alone`.
pub fn in_an_empty_directory() {
    let executable = support::static_monoform().expect("MONOFORM_STATIC is a static executable");
    let executable = std::fs::canonicalize(executable).expect("the executable");
    let server = Sshd::usual();
    let root = tempfile::tempdir().expect("a directory");
    std::fs::copy(executable, root.path().join("monoform")).expect("a copy");
    std::fs::copy(sshd::user_key(), root.path().join("key")).expect("a copy");
    let remote = tempfile::tempdir().expect("a directory");
    let provisioners = format!(
        "{}provisioner \"file\" {{\n  source = \"/key\"\n  destination = \"{remote}/copied\"\n}}\n\
         provisioner \"remote-exec\" {{\n  inline = [\"echo from $((40 + 2)) > {remote}/ran\"]\n}}\n",
        server.connection("private_key = file(\"/key\")"),
        remote = remote.path().display()
    );
    std::fs::write(root.path().join("main.tf"), object(&provisioners)).expect("written");

    let output = Command::new(support::which("chroot").expect("chroot"))
        .arg(root.path())
        .args(["/monoform", "apply", "-no-color", "-auto-approve"])
        .env_clear()
        .output();
    let ran = support::ran(output.expect("chroot starts")).ok();
    ran.shows(&["Apply complete! Resources: 1 added"]);
    let read = |name: &str| std::fs::read_to_string(remote.path().join(name)).expect(name);
    assert_eq!(read("ran"), "from 42\n");
    let key = std::fs::read_to_string(sshd::user_key()).expect("the key");
    assert_eq!(read("copied"), key);
    let mut left: Vec<_> = std::fs::read_dir(root.path())
        .expect("a directory")
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    left.sort();
    assert_eq!(left, ["key", "main.tf", "monoform", "terraform.tfstate"]);
}
