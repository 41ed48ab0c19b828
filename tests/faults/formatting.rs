//! `fmt`: the files it changes, its messages and its exit statuses.

use std::io::Write as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::process::Stdio;

use support::{Ran, Workspace, monoform, ran};

const UNTIDY: &str = "a=1\n";
const TIDY: &str = "a = 1\n";

fn from_stdin(w: &Workspace, args: &[&str], text: &str) -> Ran {
    let mut command = w.command(monoform());
    command
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("it starts");
    let mut stdin = child.stdin.take().expect("its input");
    stdin.write_all(text.as_bytes()).expect("it reads");
    drop(stdin);
    ran(child.wait_with_output().expect("it ends"))
}

#[test]
fn files_are_rewritten_and_listed() {
    let w = Workspace::with(&[
        ("main.tf", UNTIDY),
        ("tidy.tf", TIDY),
        ("terraform.tfvars", UNTIDY),
        ("a.tftest.hcl", UNTIDY),
        ("a.tfmock.hcl", UNTIDY),
        ("x.tf.json", "{ }"),
        ("other.hcl", UNTIDY),
        (".hidden.tf", UNTIDY),
        ("main.tf~", UNTIDY),
        ("sub/main.tf", UNTIDY),
        (".sub/main.tf", UNTIDY),
    ]);
    let place = w.dir().join("main.tf");
    std::fs::set_permissions(&place, std::fs::Permissions::from_mode(0o640)).unwrap();
    std::fs::rename(w.dir().join("a.tfmock.hcl"), w.dir().join("real")).unwrap();
    symlink("real", w.dir().join("a.tfmock.hcl")).unwrap();

    let checked = w.run(&["fmt", "-check", "-recursive"]);
    assert_eq!(checked.status, 3, "{}", checked.all());
    let here = "a.tfmock.hcl\na.tftest.hcl\nmain.tf\n";
    assert_eq!(checked.stdout, format!("{here}sub/main.tf\nterraform.tfvars\n"));
    assert_eq!(w.read("main.tf"), UNTIDY, "-check writes nothing");

    assert_eq!(w.run(&["fmt"]).ok().stdout, format!("{here}terraform.tfvars\n"));
    assert_eq!(w.read("main.tf"), TIDY);
    assert_eq!(w.read("real"), TIDY);
    assert!(w.dir().join("a.tfmock.hcl").is_symlink(), "a link stays one");
    assert_eq!(
        place.metadata().unwrap().permissions().mode() & 0o777,
        0o640,
        "the mode stays"
    );
    for name in [".hidden.tf", "main.tf~", "other.hcl", "sub/main.tf", ".sub/main.tf"] {
        assert_eq!(w.read(name), UNTIDY, "{name}");
    }
    assert_eq!(
        w.run(&["fmt", "-recursive", "sub", "tidy.tf"]).ok().stdout,
        "sub/main.tf\n"
    );
    assert_eq!(w.run(&["fmt", "-check", "-recursive"]).ok().stdout, "");
}

#[test]
fn nothing_is_written_when_only_shown() {
    let w = Workspace::with(&[("main.tf", "a=1\nb=2")]);
    let expected = "main.tf\n--- old/main.tf\n+++ new/main.tf\n@@ -1,2 +1,2 @@\n-a=1\n-b=2\n\\ No newline at end of \
                    file\n+a = 1\n+b = 2\n\\ No newline at end of file\n";
    assert_eq!(w.run(&["fmt", "-diff", "-write=false"]).ok().stdout, expected);
    assert_eq!(
        w.run(&["fmt", "-write=false", "-list=false"]).ok().stdout,
        "a = 1\nb = 2\n"
    );
    let silent = w.run(&["fmt", "-check", "-list=false", "-diff"]);
    assert_eq!((silent.status, &*silent.stdout, &*silent.stderr), (3, "", ""));
    assert_eq!(w.read("main.tf"), "a=1\nb=2");
}

#[test]
fn standard_input_goes_to_standard_output() {
    let w = Workspace::new();
    assert_eq!(from_stdin(&w, &["fmt", "-"], UNTIDY).ok().stdout, TIDY);
    let checked = from_stdin(&w, &["fmt", "-check", "-"], UNTIDY);
    assert_eq!((checked.status, &*checked.stdout, &*checked.stderr), (3, "", ""));
    assert_eq!(from_stdin(&w, &["fmt", "-check", "-"], TIDY).ok().stdout, "");
    let broken = from_stdin(&w, &["fmt", "-"], "a = \n");
    assert_eq!(broken.status, 2, "{}", broken.all());
    assert!(broken.stderr.contains("on <stdin> line 1"), "{}", broken.stderr);
}

#[test]
fn broken_file_is_reported_and_not_changed() {
    let w = Workspace::with(&[("a.tf", "x = [\n"), ("b.tf", UNTIDY)]);
    let ran = w.run(&["fmt"]);
    assert_eq!((ran.status, &*ran.stdout), (2, "b.tf\n"), "{}", ran.all());
    assert!(ran.stderr.contains("on a.tf line"), "{}", ran.stderr);
    assert_eq!((&*w.read("a.tf"), &*w.read("b.tf")), ("x = [\n", TIDY));
    for (args, text) in [
        (&["fmt", "nowhere"][..], "No file or directory at nowhere"),
        (&["fmt", "../x.json", "b.tf"], "No file or directory at ../x.json"),
    ] {
        let ran = w.run(args);
        assert_eq!(ran.status, 2, "{}", ran.all());
        assert!(ran.stderr.contains(text), "{}", ran.all());
    }
    w.write("c.json", "{}");
    let ran = w.run(&["fmt", "c.json"]);
    assert_eq!(ran.status, 2, "{}", ran.all());
    assert!(
        ran.stderr.contains("can be processed with monoform fmt"),
        "{}",
        ran.all()
    );
    assert_eq!(w.run(&["fmt", "-nope"]).status, 1);
}
