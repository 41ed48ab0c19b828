//! Module installation compared with Terraform's: the same lines, the same manifest, and each program continues with the
//! other's installation.

use std::path::Path;
use std::process::Command;

use support::Workspace;

fn git(dir: &Path, args: &[&str]) {
    let status = Command::new("git")
        .current_dir(dir)
        .args([
            "-c",
            "user.name=nobody",
            "-c",
            "user.email=nobody@example.com",
            "-c",
            "init.defaultBranch=main",
        ])
        .args(args)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .status()
        .expect("git runs");
    assert!(status.success(), "{args:?}");
}

/// Returns a workspace whose configuration calls a package by every local kind of address. The package is beside the
/// working directory, as a directory and as a repository with a tag.
fn workspace() -> Workspace {
    let w = Workspace::with(&[
        (
            "../pkg/main.tf",
            "module \"s\" {\n  source = \"./sub\"\n}\noutput \"x\" {\n  value = 1\n}\n",
        ),
        ("../pkg/sub/main.tf", "module \"o\" {\n  source = \"../other\"\n}\n"),
        ("../pkg/other/main.tf", "output \"x\" {\n  value = 2\n}\n"),
        ("loc/main.tf", "module \"in\" {\n  source = \"../loc2\"\n}\n"),
        ("loc2/main.tf", ""),
    ]);
    let pkg = w.dir().join("../pkg").canonicalize().expect("a path");
    git(&pkg, &["init", "--quiet"]);
    git(&pkg, &["add", "--all"]);
    git(&pkg, &["commit", "--quiet", "-m", "first"]);
    git(&pkg, &["tag", "v1"]);
    let pkg = pkg.display();
    let calls = [
        ("abs", format!("{pkg}")),
        ("abs_sub", format!("{pkg}//sub")),
        ("git_sub", format!("git::file://{pkg}//sub?ref=v1")),
        ("git_whole", format!("git::file://{pkg}?ref=v1")),
        ("loc", "./loc".to_owned()),
    ];
    let blocks: Vec<String> = calls
        .iter()
        .map(|(name, source)| format!("module \"{name}\" {{\n  source = \"{source}\"\n}}\n"))
        .collect();
    w.write("main.tf", &blocks.concat());
    w
}

const MANIFEST: &str = ".terraform/modules/modules.json";

pub fn the_same_lines_and_the_same_manifest() {
    let w = workspace();
    let theirs = w.terraform(&["get", "-no-color"]).ok();
    let their_manifest = w.read(MANIFEST);
    std::fs::remove_dir_all(w.dir().join(".terraform")).expect("removed");
    let ours = w.run(&["get", "-no-color"]).ok();
    assert_eq!(ours.stdout, theirs.stdout);
    assert_eq!(w.read(MANIFEST), their_manifest);

    // Both programs accept the existing installation silently, and install it again with -update.
    assert_eq!(w.terraform(&["get", "-no-color"]).ok().stdout, "");
    assert_eq!(
        w.run(&["get", "-update", "-no-color"]).ok().stdout,
        w.terraform(&["get", "-update", "-no-color"]).ok().stdout
    );
    w.terraform(&["plan", "-no-color"]).ok();
}

pub fn we_use_what_terraform_installed() {
    let w = workspace();
    w.terraform(&["init", "-no-color"]).ok();
    let manifest = w.read(MANIFEST);
    w.run(&["plan", "-no-color"]).ok();
    let init = w.run(&["init", "-no-color"]).ok();
    assert!(!init.stdout.contains("Downloading"), "{}", init.all());
    assert_eq!(w.read(MANIFEST), manifest);
}
