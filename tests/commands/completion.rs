//! Completion: candidates, scripts in their shells, and the scripts' installation.

use support::{Workspace, monoform, needs};

pub const TESTS: &[(&str, fn())] = &[
    ("completion::prints_candidates_only", prints_candidates_only),
    ("completion::knows_the_working_directory", knows_the_working_directory),
    ("completion::works_in_bash", works_in_bash),
    ("completion::works_in_zsh", works_in_zsh),
    ("completion::works_in_fish", works_in_fish),
    ("completion::is_installed_and_taken_out", is_installed_and_taken_out),
];

fn complete_in(w: &Workspace, line: &str) -> Vec<String> {
    let mut command = w.command(monoform());
    command.args(["monoform", "x", "y"]).env("COMP_LINE", line);
    let ran = support::ran(command.output().expect("it runs")).ok();
    assert!(ran.stderr.is_empty(), "{}", ran.all());
    ran.stdout.lines().map(ToOwned::to_owned).collect()
}

fn complete(line: &str) -> Vec<String> {
    complete_in(&Workspace::new(), line)
}

fn prints_candidates_only() {
    assert_eq!(complete("monoform pla"), ["plan"]);
    assert_eq!(complete("monoform state s"), ["serve", "show"]);
    assert_eq!(
        complete("monoform workspace "),
        ["delete", "list", "new", "select", "show"]
    );
    assert_eq!(complete("monoform apply -auto"), ["-auto-approve"]);
    assert!(complete("monoform apply -").contains(&"-refresh-only".to_owned()));
    assert!(complete("monoform nonsense").is_empty());
    let w = Workspace::new()
        .env("COMP_LINE", "monoform plan")
        .env("COMP_POINT", "11");
    assert_eq!(w.run(&[]).ok().stdout, "plan\n");
}

const MAIN: &str = r#"
variable "size" { default = 1 }

resource "terraform_data" "one" {}

resource "terraform_data" "each" {
  for_each = toset(["x y"])
}

module "below" { source = "./below" }

output "url" { value = 1 }
"#;

/// Returns an applied directory `site` with a second workspace.
fn applied() -> Workspace {
    let w = Workspace::with(&[
        ("site/main.tf", MAIN),
        ("site/below/main.tf", "resource \"terraform_data\" \"deep\" {}\n"),
    ]);
    w.run(&["-chdir=site", "apply", "-auto-approve"]).ok();
    w.run(&["-chdir=site", "workspace", "new", "staging"]).ok();
    w.run(&["-chdir=site", "workspace", "select", "default"]).ok();
    w
}

fn knows_the_working_directory() {
    let w = applied();
    for (line, expected) in [
        ("workspace select s", &["staging"][..]),
        (
            "state show ",
            &[
                "module.below.terraform_data.deep",
                "terraform_data.each\\[\\\"x\\ y\\\"\\]",
                "terraform_data.one",
            ],
        ),
        ("state show 'terraform_data.e", &["terraform_data.each[\"x y\"]"]),
        // Bash replaces only the text after the equals sign.
        (
            "plan -target=module",
            &["module.below", "module.below.terraform_data.deep"],
        ),
        ("plan -var ", &["size="]),
        ("output ", &["url"]),
        ("fmt b", &["below/"]),
    ] {
        let mut found = complete_in(&w, &format!("monoform -chdir=site {line}"));
        found.dedup();
        assert_eq!(found, expected, "{line}");
    }
    // In a directory without a configuration there are no candidates, and there is no error.
    assert!(complete_in(&w, "monoform state show ").is_empty());
    assert!(complete_in(&w, "monoform -chdir=nowhere state show ").is_empty());
    assert!(complete_in(&w, "monoform state show 'never closed").is_empty());
}

/// Runs a shell in the applied directory, with the program on the search path. Returns the lines of its output.
fn in_shell(shell: &str, arguments: &[&str]) -> Vec<String> {
    let w = applied();
    let bin = w.home().join("bin");
    std::fs::create_dir_all(&bin).expect("a directory");
    std::os::unix::fs::symlink(monoform(), bin.join("monoform")).expect("a link");
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let mut command = w.command(shell);
    command
        .current_dir(w.dir().join("site"))
        .args(arguments)
        .env("PATH", path);
    let ran = support::ran(command.output().expect("the shell runs")).ok();
    assert!(ran.stderr.is_empty(), "{}", ran.all());
    ran.stdout.lines().map(ToOwned::to_owned).collect()
}

fn works_in_bash() {
    if needs("bash", "completion::works_in_bash").is_none() {
        return;
    }
    let script = "source <(monoform completion bash); complete -p monoform
        try() { COMP_LINE=$1 COMP_POINT=${#1}; _monoform_completion monoform; printf '%s\\n' \"${COMPREPLY[@]}\"; }
        try 'monoform workspace sel'; try 'monoform state show terraform_data.ea'; try 'monoform output '";
    assert_eq!(
        in_shell("bash", &["--norc", "-c", script]),
        [
            "complete -o default -F _monoform_completion monoform",
            "select",
            "terraform_data.each\\[\\\"x\\ y\\\"\\]",
            "url"
        ]
    );
}

fn works_in_zsh() {
    if needs("zsh", "completion::works_in_zsh").is_none() {
        return;
    }
    // Completion needs a terminal, so the test replaces the functions that take the candidates.
    let script = "compdef() { print -r -- compdef $@ }; compadd() { print -r -- $names $partial }
        source <(monoform completion zsh)
        try() { words=($@); CURRENT=$#words; PREFIX=$words[-1]; _monoform_completion }
        try monoform workspace sel; try monoform state show terraform_data.ea; try monoform fmt be";
    assert_eq!(
        in_shell("zsh", &["-f", "-c", script]),
        [
            "compdef _monoform_completion monoform",
            "select",
            "terraform_data.each[\"x y\"]",
            "below/"
        ]
    );
}

fn works_in_fish() {
    if needs("fish", "completion::works_in_fish").is_none() {
        return;
    }
    let script = "monoform completion fish | source; complete -C 'monoform workspace sel'
        complete -C 'monoform state show terraform_data.ea'; complete -C 'monoform plan -target=terraform_data.o'";
    assert_eq!(
        in_shell("fish", &["--no-config", "-c", script]),
        [
            "select\tSelect a workspace",
            "terraform_data.each[\"x y\"]",
            "-target=terraform_data.one"
        ]
    );
}

fn is_installed_and_taken_out() {
    let w = Workspace::new();
    w.run(&["-install-autocomplete"])
        .fails_with(&["Completion not changed", ".bashrc"]);
    let (bash, zsh) = (w.home().join(".bashrc"), w.home().join(".zshrc"));
    let fish = w.home().join(".config/fish/completions/monoform.fish");
    std::fs::write(&bash, "alias ll='ls -l'").expect("a file");
    std::fs::write(&zsh, "").expect("a file");
    std::fs::create_dir_all(w.home().join(".config/fish")).expect("a directory");
    w.run(&["-install-autocomplete"])
        .ok()
        .shows(&["Completion is installed in"]);
    let text = std::fs::read_to_string(&bash).expect("the file");
    assert!(text.starts_with("alias ll='ls -l'\ncommand -v monoform"), "{text}");
    assert!(
        std::fs::read_to_string(&zsh)
            .expect("the file")
            .contains("completion zsh")
    );
    assert!(
        std::fs::read_to_string(&fish)
            .expect("the file")
            .contains("completion fish")
    );
    w.run(&["-install-autocomplete"]).ok().shows(&["Nothing to do in"]);
    assert_eq!(std::fs::read_to_string(&bash).expect("the file"), text);
    w.run(&["-uninstall-autocomplete"]).ok();
    assert_eq!(std::fs::read_to_string(&bash).expect("the file"), "alias ll='ls -l'\n");
    assert!(std::fs::read_to_string(&zsh).expect("the file").is_empty());
    assert!(!fish.exists());
    w.run(&["completion"]).fails_with(&["bash, zsh or fish"]);
    w.run(&["completion", "tcsh"]).fails_with(&["bash, zsh or fish"]);
}
