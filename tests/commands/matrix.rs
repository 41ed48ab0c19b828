//! Every command with every flag of its help, and the test in which the flag has its effect: `matrix.txt`.
//!
//! A line of that file is a command, or one of its flags with one of these:
//!
//! - `tests/FILE NAME`: the test, or the scenario of a transcript, in which the flag is used.
//! - `scene NAME`: a scene of this file, which uses the flag with each command that has it.
//! - `like COMMAND`: the flag is read and used by the same code as that of the other command.
//! - `$ LINE | TEXT | ...`: a shell line, in which `tf` is the program, in a directory that was applied. The output must contain each
//!   `TEXT`; after `! TEXT`, it must not contain the text. `[n]` is an exit status other than 0.
//!
//! `flags.rs` tests the misuse of each flag. Wrong values and contradictory flags are tested together with the effects of the flags.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use libtest_mimic::{Failed, Trial};
use support::terminal::Terminal;
use support::{Workspace, monoform};

use crate::flags::{commands, flags};

const ROWS: &str = include_str!("matrix.txt");

pub const TESTS: &[(&str, fn())] = &[
    ("matrix::each_flag_has_a_row", rows_are_complete),
    ("matrix::rows_name_tests_that_use_the_flag", named_tests_use_the_flags),
    ("matrix::the_last_one_counts", twice),
    ("matrix::scene_color", color),
    ("matrix::scene_lock", lock),
    ("matrix::scene_variables", variables),
];

struct Row {
    command: String,
    flag: String,
    shown: &'static str,
}

fn rows() -> Vec<Row> {
    let mut command = "";
    let mut out = Vec::new();
    for line in ROWS.lines().filter(|line| !line.is_empty()) {
        match line.strip_prefix("  ") {
            None => command = line,
            Some(row) => {
                let (flag, shown) = row.split_once(' ').expect("a flag and where it is shown");
                out.push(Row {
                    command: command.to_owned(),
                    flag: flag.to_owned(),
                    shown: shown.trim(),
                });
            }
        }
    }
    out
}

/// Makes a test for each row that has a shell line.
pub fn trials() -> Vec<Trial> {
    let lines = rows().into_iter().filter_map(|row| {
        let line = row.shown.strip_prefix("$ ")?;
        let name = format!("matrix::{} {}", row.command, row.flag).replace(' ', "_");
        Some(Trial::test(name, move || play(line)))
    });
    lines.collect()
}

const MAIN: &str = r#"
variable "size" {
  default = 1
}

resource "terraform_data" "one" {
  input = var.size
}

resource "terraform_data" "two" {
  input            = var.size
  triggers_replace = terraform_data.one.id
}

output "size" {
  value = terraform_data.two.output
}
"#;

const SUITE: &str =
    "run \"one\" {\n  assert {\n    condition     = output.size == 1\n    error_message = \"no\"\n  }\n}\n";

/// Returns a directory that was applied.
fn applied() -> Workspace {
    let w = Workspace::with(&[
        ("main.tf", MAIN),
        ("other/a.tftest.hcl", SUITE),
        ("list", "terraform_data.one\n"),
    ]);
    w.run(&["apply", "-auto-approve"]).ok();
    let bin = w.home().join("bin");
    std::fs::create_dir(&bin).expect("a directory");
    symlink(monoform(), bin.join("tf")).expect("a link");
    let path = std::env::var("PATH").unwrap_or_else(|_| "/usr/bin:/bin".into());
    let path = format!("{}:{path}", bin.display());
    w.env("PATH", path).env("TF_CLI_ARGS", "-no-color")
}

fn play(line: &str) -> Result<(), Failed> {
    let mut parts = line.split(" | ");
    // A part that begins with `tf` is not an expected text, but the next command of a pipe.
    let mut shell = parts.next().unwrap_or_default().to_owned();
    let mut expected = parts.peekable();
    while let Some(next) = expected.next_if(|part| part.starts_with("tf ")) {
        shell.push_str(&format!(" | {next}"));
    }
    let w = applied();
    let ran = w.run_program("sh", &["-c", &shell]);
    let printed = format!("{}{}", ran.stdout, ran.stderr);
    let mut status = 0;
    for text in expected {
        let fits = match text.strip_prefix("! ") {
            Some(absent) => !printed.contains(absent),
            None if text.starts_with('[') => {
                status = text.trim_matches(['[', ']']).parse().expect("a status");
                true
            }
            None => printed.contains(text),
        };
        if !fits {
            return Err(format!("{text:?} does not hold for\n{shell}\n{}", ran.all()).into());
        }
    }
    if ran.status != status {
        return Err(format!("the status is not {status} of\n{shell}\n{}", ran.all()).into());
    }
    Ok(())
}

/// Returns the commands with their flags, as the help shows them.
fn shown(w: &Workspace) -> BTreeMap<String, Vec<String>> {
    let all = commands(w).into_iter().map(|path| {
        let words: Vec<&str> = path.iter().map(String::as_str).collect();
        let page = w.run(&[&words[..], &["-help"]].concat()).ok().stdout;
        let flags = flags(&page).into_iter().map(|(name, _)| format!("-{name}"));
        (path.join(" "), flags.collect())
    });
    all.collect()
}

fn rows_are_complete() {
    let mut expected: BTreeSet<(String, String)> = BTreeSet::new();
    for (command, flags) in shown(&Workspace::new()) {
        expected.extend(flags.into_iter().map(|flag| (command.clone(), flag)));
    }
    let rows: Vec<(String, String)> = rows().into_iter().map(|row| (row.command, row.flag)).collect();
    let listed: BTreeSet<(String, String)> = rows.iter().cloned().collect();
    let missing: Vec<_> = expected.difference(&listed).collect();
    assert!(
        missing.is_empty(),
        "tests/commands/matrix.txt has no row for {missing:?}"
    );
    let gone: Vec<_> = listed.difference(&expected).collect();
    assert!(
        gone.is_empty(),
        "no help shows what tests/commands/matrix.txt has rows for: {gone:?}"
    );
    assert_eq!(rows.len(), listed.len(), "a row is there twice");
}

/// Returns the part of a file that is the test or the scenario of this name; `None` if there is none.
fn section<'t>(text: &'t str, file: &str, name: &str) -> Option<&'t str> {
    let begins = |line: &str| match file.ends_with(".rs") {
        true => line.trim_start_matches("pub ").starts_with("fn "),
        false => line.starts_with("== ") || line.starts_with("=== "),
    };
    let is_wanted = |line: &str| match file.ends_with(".rs") {
        true => line.trim_start_matches("pub ").starts_with(&format!("fn {name}(")),
        false => {
            line.trim_start_matches("= ")
                .trim_start_matches('=')
                .trim()
                .split(':')
                .next()
                == Some(name)
        }
    };
    let mut at = 0;
    let mut start = None;
    for line in text.split_inclusive('\n') {
        if begins(line) {
            match start {
                Some(start) => return text.get(start..at),
                None if is_wanted(line.trim_end()) => start = Some(at),
                None => {}
            }
        }
        at += line.len();
    }
    start.and_then(|start| text.get(start..))
}

/// Returns true if a text has a flag as a word.
fn uses(text: &str, flag: &str) -> bool {
    text.match_indices(flag).any(|(at, _)| {
        let after = text[at + flag.len()..].chars().next();
        !after.is_some_and(|c| c.is_ascii_lowercase() || c == '-')
    })
}

fn named_tests_use_the_flags() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let all = rows();
    let scenes = ["color", "lock", "variables"];
    let mut wrong = Vec::new();
    for row in &all {
        let fits = if let Some(scene) = row.shown.strip_prefix("scene ") {
            scenes.contains(&scene)
        } else if let Some(other) = row.shown.strip_prefix("like ") {
            let is_other = |r: &&Row| r.command == other && r.flag == row.flag;
            all.iter().find(is_other).is_some_and(|r| r.shown.starts_with("tests/"))
        } else if let Some(line) = row.shown.strip_prefix("$ ") {
            uses(line, &row.flag) && line.contains(" | ")
        } else {
            let (file, name) = row.shown.split_once(' ').unwrap_or_default();
            let text = std::fs::read_to_string(root.join(file)).unwrap_or_default();
            section(&text, file, name).is_some_and(|section| uses(section, &row.flag))
        };
        if !fits {
            wrong.push(format!("{} {}: {}", row.command, row.flag, row.shown));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// If a flag with a single value is repeated, the last value counts, as in Terraform.
fn twice() {
    let w = applied();
    w.run(&["plan", "-out=a", "-out=b"]).ok();
    assert!(!w.exists("a") && w.exists("b"));
    let table = w.run(&["output", "-json", "-json=false"]).ok().stdout;
    assert_eq!(table, "size = 1\n");
    w.run(&["graph", "-format=nothing", "-format=mermaid"])
        .ok()
        .shows(&["flowchart LR"]);
    w.run(&["plan", "-refresh=false", "-refresh=perhaps"])
        .fails_with(&["invalid boolean value \"perhaps\""]);
}

/// On a terminal, errors are colored unless `-no-color` is set.
fn color() {
    let w = Workspace::new();
    let commands: Vec<String> = shown(&w).into_keys().collect();
    let mut script = String::new();
    for command in &commands {
        for flag in ["-no-color=false", "-no-color"] {
            script.push_str(&format!(
                "echo '== {command} {flag}'; {} {command} {flag} -nothing\n",
                monoform()
            ));
        }
    }
    // One terminal serves all commands, because closing one takes a while.
    let mut shell = w.command("sh");
    shell.args(["-c", &script]);
    let (_, _, bytes) = Terminal::start(&mut shell).ends();
    let printed = String::from_utf8_lossy(&bytes);
    let parts: Vec<&str> = printed.split("== ").skip(1).collect();
    assert_eq!(parts.len(), 2 * commands.len(), "{printed:?}");
    for part in parts {
        let (line, shown) = part.split_once("\r\n").expect("a line");
        assert!(shown.contains("flag provided but not defined: -nothing"), "{part:?}");
        let colored = line.ends_with("=false");
        assert_eq!(shown.contains("\u{1b}["), colored, "{part:?}");
    }
}

/// Returns the arguments that a command needs in addition to its flags.
fn arguments(command: &str) -> &'static [&'static str] {
    match command {
        "apply" | "destroy" => &["-auto-approve"],
        "explain" | "taint" | "untaint" | "state rm" | "state show" => &["terraform_data.one"],
        "import" => &["terraform_data.new", "x"],
        "state mv" => &["terraform_data.one", "terraform_data.uno"],
        "state replace-provider" => &["-auto-approve", "terraform.io/builtin/terraform", "a/b"],
        "state push" => &["pushed.json"],
        "state diff" => &["1", "2"],
        "state query" => &["SELECT 1"],
        "state restore" => &["-run=1", "terraform_data.one"],
        "providers schema" | "query" => &["-json"],
        "providers mirror" | "modules mirror" => &["mirror"],
        "pack" => &["-out=packed", "-config=."],
        "workspace new" | "workspace delete" | "workspace select" => &["other"],
        "force-unlock" => &["-force", "x"],
        _ => &[],
    }
}

/// `-lock=false` works while another command has the lock; `-lock-timeout` waits for it, with a message.
fn lock() {
    let w = Workspace::with(&[(
        "main.tf",
        "resource \"terraform_data\" \"one\" {}\nresource \"terraform_data\" \"new\" {}\nresource \"terraform_data\" \"waits\" {\n  \
         depends_on = [terraform_data.one]\n  provisioner \"local-exec\" {\n    command = \"touch started; while test ! -e go; do \
         sleep 0.1; done\"\n  }\n}\n",
    )]);
    w.run(&["apply", "-auto-approve", "-target=terraform_data.one"]).ok();
    let state = w.read("terraform.tfstate");
    w.write("pushed.json", &state);
    let mut holder = w
        .command(monoform())
        .args(["apply", "-auto-approve", "-target=terraform_data.waits"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("monoform starts");
    let begun = Instant::now();
    while !w.exists("started") {
        assert!(begun.elapsed() < Duration::from_secs(60), "the apply has not begun");
        std::thread::sleep(Duration::from_millis(20));
    }
    // These commands are left out. Some lock only if they create, delete or move a state; the console reads a copy of the state of its own;
    // and a state in a file has no history.
    let elsewhere = [
        "console",
        "init",
        "workspace new",
        "workspace delete",
        "state push",
        "state restore",
        "apply",
        "destroy",
    ];
    let mut tried = 0;
    for (command, flags) in shown(&w) {
        if !flags.contains(&"-lock".to_owned()) || elsewhere.contains(&command.as_str()) {
            continue;
        }
        let words: Vec<&str> = command.split(' ').collect();
        let run = |flag: &str| w.run(&[&words[..], &[flag], arguments(&command)].concat()).all();
        let (refused, waiting) = ("Error acquiring the state lock", "Acquiring state lock");
        let at_once = run("-lock=true");
        assert!(
            at_once.contains(refused) && !at_once.contains(waiting),
            "{command}\n{at_once}"
        );
        let later = run("-lock-timeout=700ms");
        assert!(later.contains(refused) && later.contains(waiting), "{command}\n{later}");
        let without = run("-lock=false");
        assert!(!without.contains(refused), "{command}\n{without}");
        tried += 1;
    }
    assert!(tried >= 8, "{tried}");
    w.write("go", "");
    holder.wait().expect("the end of the apply");
}

/// `-var` and `-var-file` set the variables with which the configuration is loaded, in each command that has them.
fn variables() {
    let w = Workspace::with(&[
        (
            "main.tf",
            "variable \"place\" {\n  const = true\n}\nmodule \"m\" {\n  source = var.place\n}\nresource \"terraform_data\" \"one\" {}\n\
             resource \"terraform_data\" \"new\" {}\n",
        ),
        ("m/main.tf", "output \"x\" {\n  value = 1\n}\n"),
        ("set.tfvars", "place = \"./m\"\n"),
        ("a.tftest.hcl", "run \"one\" {}\n"),
        ("q.tfquery.hcl", ""),
    ]);
    w.run(&["init", "-var=place=./m"]).ok();
    w.run(&["apply", "-auto-approve", "-var=place=./m"]).ok();
    let state = w.read("terraform.tfstate");
    w.write("pushed.json", &state);
    let mut tried = 0;
    for (command, flags) in shown(&w) {
        // The servers end only when they are interrupted, and have their own tests.
        if !flags.contains(&"-var".to_owned()) || command.ends_with("serve") {
            continue;
        }
        let words: Vec<&str> = command.split(' ').collect();
        let run = |more: &[&str]| w.run(&[&words[..], more, arguments(&command)].concat()).all();
        let missing = "No value for required variable";
        for more in [&["-var=place=./m"][..], &["-var-file=set.tfvars"]] {
            let ran = run(more);
            assert!(!ran.contains(missing), "{command} {more:?}\n{ran}");
        }
        for (more, expected) in [
            (
                &["-var=place=./m", "-var=nothing=1"][..],
                "Value for undeclared variable",
            ),
            (&["-var-file=none.tfvars"], "Failed to read variables file"),
        ] {
            // Values for tests may be meant for variables that only some of the tested modules have.
            if command == "test" && expected.contains("undeclared") {
                continue;
            }
            let ran = run(more);
            assert!(ran.contains(expected), "{command} {more:?}\n{ran}");
        }
        w.write("terraform.tfstate", &state);
        tried += 1;
    }
    assert!(tried > 20, "{tried}");
}
