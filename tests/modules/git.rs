//! Modules in git repositories. The tests are skipped by name if git is not installed.

use std::path::Path;
use std::process::Command;

use crate::says;
use support::{Workspace, needs};

/// Runs git in a directory, without the user's settings.
fn git(dir: &Path, args: &[&str]) -> String {
    let output = Command::new("git")
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
        .output()
        .expect("git runs");
    assert!(
        output.status.success(),
        "{args:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// Makes a repository beside the working directory. It has a module, two more in subdirectories, a tag and a branch.
/// Returns its source address.
fn repository(w: &Workspace) -> String {
    w.write("../repo/main.tf", &says("first"));
    w.write(
        "../repo/sub/main.tf",
        "module \"other\" {\n  source = \"../other\"\n}\noutput \"said\" {\n  value = module.other.said\n}\n",
    );
    w.write("../repo/other/main.tf", &says("other"));
    let repo = w.dir().join("../repo").canonicalize().expect("a path");
    git(&repo, &["init", "--quiet"]);
    commit(&repo, "first");
    git(&repo, &["tag", "v1"]);
    git(&repo, &["checkout", "--quiet", "-b", "next"]);
    w.write("../repo/main.tf", &says("next"));
    commit(&repo, "next");
    git(&repo, &["checkout", "--quiet", "main"]);
    format!("git::file://{}", repo.display())
}

fn commit(repo: &Path, message: &str) {
    git(repo, &["add", "--all"]);
    git(repo, &["commit", "--quiet", "-m", message]);
}

fn call(name: &str, source: &str) -> String {
    format!(
        "module \"{name}\" {{\n  source = \"{source}\"\n}}\noutput \"{name}\" {{\n  value = module.{name}.said\n}}\n"
    )
}

#[test]
fn branches_tags_commits_and_directories() {
    let Some(_) = needs("git", "branches_tags_commits_and_directories") else {
        return;
    };
    let w = Workspace::new();
    let source = repository(&w);
    let first = git(&w.dir().join("../repo"), &["rev-parse", "v1"]);
    w.write(
        "main.tf",
        &[
            call("a_head", &source),
            call("b_tag", &format!("{source}?ref=v1")),
            call("c_branch", &format!("{source}?ref=next")),
            call("d_commit", &format!("{source}?ref={first}")),
            call("e_depth", &format!("{source}?ref=next&depth=1")),
            call("f_sub", &format!("{source}//sub?ref=v1")),
        ]
        .concat(),
    );
    let get = w.run(&["get", "-no-color"]).ok();
    assert_eq!(
        get.stdout,
        format!(
            "Downloading {source} for a_head...\n- a_head in .terraform/modules/a_head\nDownloading {source}?ref=v1 for \
             b_tag...\n- b_tag in .terraform/modules/b_tag\nDownloading {source}?ref=next for c_branch...\n- c_branch in \
             .terraform/modules/c_branch\nDownloading {source}?ref={first} for d_commit...\n- d_commit in \
             .terraform/modules/d_commit\nDownloading {source}?ref=next&depth=1 for e_depth...\n- e_depth in \
             .terraform/modules/e_depth\nDownloading {source}?ref=v1 for f_sub...\n- f_sub in \
             .terraform/modules/f_sub/sub\n- f_sub.other in .terraform/modules/f_sub/other\n"
        )
    );
    let plan = w.run(&["plan", "-no-color"]).ok().stdout;
    for line in [
        "a_head   = \"first\"",
        "b_tag    = \"first\"",
        "c_branch = \"next\"",
        "e_depth  = \"next\"",
        "f_sub    = \"other\"",
    ] {
        assert!(plan.contains(line), "{line}\n{plan}");
    }
    assert!(
        w.read(".terraform/modules/modules.json")
            .contains(&format!("\"{source}//sub?ref=v1\""))
    );
    assert_eq!(w.run(&["get"]).ok().stdout, "", "all is there");
}

#[test]
fn a_commit_with_depth_and_arguments_that_are_there_twice() {
    let Some(_) = needs("git", "a_commit_with_depth_and_arguments_that_are_there_twice") else {
        return;
    };
    let w = Workspace::new();
    let source = repository(&w);
    let repo = w.dir().join("../repo");
    // The commit is not the head of any branch; another commit follows it.
    git(&repo, &["checkout", "--quiet", "next"]);
    let wanted = git(&repo, &["rev-parse", "HEAD"]);
    w.write("../repo/main.tf", &says("later"));
    commit(&repo, "later");
    git(&repo, &["checkout", "--quiet", "main"]);
    git(&repo, &["config", "uploadpack.allowAnySHA1InWant", "true"]);
    w.write(
        "main.tf",
        &[
            call("commit", &format!("{source}?ref={wanted}&depth=1")),
            call("twice", &format!("{source}?ref=v1&ref=next")),
        ]
        .concat(),
    );
    w.run(&["get"]).ok();
    let plan = w.run(&["plan", "-no-color"]).ok().stdout;
    for line in ["commit = \"next\"", "twice  = \"first\""] {
        assert!(plan.contains(line), "{line}\n{plan}");
    }
    let fetched = w.dir().join(".terraform/modules/commit");
    assert_eq!(git(&fetched, &["rev-parse", "HEAD"]), wanted);
    assert_eq!(git(&fetched, &["rev-list", "--count", "HEAD"]), "1");
    let unknown = "0123456789abcdef0123456789abcdef01234567";
    w.write("main.tf", &call("none", &format!("{source}?ref={unknown}&depth=1")));
    w.run(&["get"]).fails_with(&["Failed to download module", unknown]);
    assert!(!w.exists(".terraform/modules/none"));
}

#[test]
fn what_a_repository_does_not_have() {
    let Some(_) = needs("git", "what_a_repository_does_not_have") else {
        return;
    };
    let w = Workspace::new();
    let source = repository(&w);
    let get = |source: &str| {
        w.write("main.tf", &call("m", source));
        w.run(&["get"])
    };
    get(&format!("{source}?ref=v9")).fails_with(&[
        "Failed to download module",
        "no branch, tag or commit \"v9\"",
        "main.tf line 2",
    ]);
    get(&format!("{source}?ref=v9&depth=1")).fails_with(&["no branch or tag \"v9\""]);
    get(&format!("{source}?ref=abcdef0123&depth=1")).fails_with(&["must be the name of a branch or a tag"]);
    assert!(!w.exists(".terraform/modules/m"));
    get(&format!("{source}//none")).fails_with(&["Unreadable module subdirectory", "other, sub"]);
    get(&format!("{source}-none")).fails_with(&["git could not clone", "does not appear to be a git repository"]);
}

#[test]
fn a_tag_that_was_moved_is_noticed() {
    let Some(_) = needs("git", "a_tag_that_was_moved_is_noticed") else {
        return;
    };
    let w = Workspace::new();
    let source = repository(&w);
    w.write(
        "main.tf",
        &(call("tag", &format!("{source}?ref=v1")) + &call("head", &source)),
    );
    w.run(&["init"]).ok();
    let repo = w.dir().join("../repo");
    w.write("../repo/main.tf", &says("moved"));
    commit(&repo, "second");
    git(&repo, &["tag", "--force", "v1"]);
    let quiet = w.run(&["init", "-no-color"]).ok();
    assert!(!quiet.stdout.contains("Downloading"), "{}", quiet.all());
    let upgrade = w.run(&["init", "-upgrade", "-no-color"]).ok();
    let all = upgrade.all();
    assert!(all.contains("Module source was changed under the same name"), "{all}");
    assert_eq!(
        all.matches("was at commit").count(),
        1,
        "branches are expected to move: {all}"
    );
    let plan = w.run(&["plan", "-no-color"]).ok().stdout;
    assert!(plan.contains("tag  = \"moved\""), "{plan}");
}

#[test]
fn modules_that_call_themselves() {
    let Some(_) = needs("git", "modules_that_call_themselves") else {
        return;
    };
    let w = Workspace::new();
    let repo = w.dir().join("../repo");
    let source = format!(
        "git::file://{}",
        w.dir().parent().unwrap().canonicalize().unwrap().join("repo").display()
    );
    w.write(
        "../repo/main.tf",
        &format!("module \"again\" {{\n  source = \"{source}\"\n}}\n{}", says("me")),
    );
    git(&repo, &["init", "--quiet"]);
    commit(&repo, "first");
    w.write("main.tf", &call("m", &source));
    w.run(&["get"])
        .fails_with(&["Module calls itself", "module.m.module.again"]);
}

#[test]
fn a_module_becomes_a_configuration() {
    let Some(_) = needs("git", "a_module_becomes_a_configuration") else {
        return;
    };
    let w = Workspace::new();
    let source = repository(&w);
    let from = |source: &str| w.run(&["init", "-no-color", &format!("-from-module={source}")]);
    from(&format!("{source}//sub"))
        .fails_with(&["Root module references parent directory", &format!("{source}//other")]);
    assert!(!w.exists("main.tf"), "nothing is copied that cannot work");
    let init = from(&format!("{source}?ref=next")).ok();
    assert!(
        init.stdout
            .contains(&format!("Copying configuration from \"{source}?ref=next\"...")),
        "{}",
        init.all()
    );
    assert!(w.read("main.tf").contains("next") && !w.exists(".git"));
    from(&source).fails_with(&["The working directory already contains files"]);
    w.run(&["plan"]).ok();

    let relative = Workspace::new();
    repository(&relative);
    relative.run(&["init", "-from-module=../repo"]).ok();
    assert!(relative.read("main.tf").contains("first"));
}

#[test]
fn the_module_around_the_working_directory_is_copied_without_the_working_directory() {
    let w = Workspace::new();
    w.write("outer/main.tf", "output \"a\" {\n  value = 1\n}\n");
    w.write("outer/templates/a.txt", "a");
    std::fs::create_dir_all(w.dir().join("outer/envs/test")).unwrap();
    w.run(&["-chdir=outer/envs/test", "init", "-from-module=../.."]).ok();
    assert!(w.exists("outer/envs/test/main.tf") && w.exists("outer/envs/test/templates/a.txt"));
    assert!(w.exists("outer/envs/test/envs") && !w.exists("outer/envs/test/envs/test"));
    w.run(&["-chdir=outer/envs/test", "plan"]).ok();
}
