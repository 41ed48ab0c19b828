//! The commands around the engine, compared with transcripts of Terraform: the same results, exit statuses and files.
//!
//! A file in `transcripts/` holds scenarios. A scenario begins with `== name: seed`: a fresh copy of `seeds/seed`. Its steps
//! are shell lines in which `tf` is the program, each with its result below it:
//!
//! - `$ line`: the whole standard output, indented by two blanks.
//! - `$~ line`: only its first line, if the rest is prose, which each program words for itself.
//! - `$! line`: only the exit status.
//! - `$- line`: nothing: the step only prepares others.
//! - `$j line`: standard output is a stream of JSON objects; values that differ from run to run are left out.
//!
//! In all of them `! text` is the summary of an error and `[n]` an exit status other than 0. The end of a scenario lists the
//! files (`@ name`) and the content of each state, with a checksum of its bytes.
//!
//! The transcripts are Terraform's own. `MONOFORM_RECORD=terraform-1.16 cargo test --test commands` writes them again, with the
//! program of that name and the built-in plugins; only recording needs it. Tests without a transcript are in [`own`],
//! [`guides`], [`line`], [`live_area`], [`logs`], [`opentofu`], [`opentofu_options`], [`provider_instances`], [`provider_test`],
//! [`shown`], [`state_serve`], [`traces`], [`foreign_states`] and [`backend`].

#![allow(
    clippy::disallowed_methods,
    reason = "tests read their settings from the environment, and need the time"
)]
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test fails by panicking"
)]

mod backend;
mod completion;
mod docs;
mod doctor;
mod documents;
mod explain;
mod facts;
mod flags;
mod foreign_states;
mod graph_page;
mod guards;
mod guides;
mod line;
mod live_area;
mod login;
mod logs;
mod markdown;
mod matrix;
mod opentofu;
mod opentofu_options;
mod own;
mod partial_refresh;
mod provider;
mod provider_instances;
mod provider_test;
mod reading;
mod review;
mod self_check;
mod shown;
mod state_serve;
mod suggestions;
mod traces;

use std::fmt::Write as _;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use libtest_mimic::{Failed, Trial};
use support::{Workspace, monoform};

use facts::Masks;

/// One scenario of a transcript.
#[derive(Clone)]
struct Scenario {
    file: String,
    name: String,
    seed: String,
    /// Steps as written, each with its recorded result.
    steps: Vec<(String, String)>,
    /// Files at the end.
    left: String,
}

fn main() -> ExitCode {
    let record = std::env::var("MONOFORM_RECORD").ok();
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/commands");
    let mut files: Vec<PathBuf> = std::fs::read_dir(dir.join("transcripts"))
        .expect("the transcripts")
        .map(|e| e.expect("an entry").path())
        .collect();
    files.sort();
    if let Some(program) = record {
        let only = std::env::args().nth(1).unwrap_or_default();
        for file in files.iter().filter(|f| f.to_string_lossy().contains(&only)) {
            record_file(file, &program);
        }
        return ExitCode::SUCCESS;
    }
    let mut trials = Vec::new();
    for scenario in files.iter().flat_map(|f| read(f)) {
        let name = format!("{}::{}", scenario.file, scenario.name.replace(' ', "_"));
        trials.push(Trial::test(name, move || check(&scenario)));
    }
    let all = own::TESTS
        .iter()
        .chain(completion::TESTS)
        .chain(docs::TESTS)
        .chain(provider::TESTS)
        .chain(doctor::TESTS)
        .chain(documents::TESTS)
        .chain(explain::TESTS)
        .chain(foreign_states::TESTS)
        .chain(flags::TESTS)
        .chain(graph_page::TESTS)
        .chain(guards::TESTS)
        .chain(partial_refresh::TESTS)
        .chain(line::TESTS)
        .chain(live_area::TESTS)
        .chain(login::TESTS)
        .chain(logs::TESTS)
        .chain(markdown::TESTS)
        .chain(opentofu::TESTS)
        .chain(opentofu_options::TESTS)
        .chain(provider_instances::TESTS)
        .chain(provider_test::TESTS)
        .chain(review::TESTS)
        .chain(matrix::TESTS)
        .chain(reading::TESTS)
        .chain(self_check::TESTS)
        .chain(shown::TESTS)
        .chain(state_serve::TESTS)
        .chain(suggestions::TESTS)
        .chain(traces::TESTS)
        .chain(backend::TESTS);
    for (name, test) in all {
        trials.push(Trial::test(*name, move || {
            test();
            Ok(())
        }));
    }
    trials.extend(matrix::trials());
    trials.extend(guides::trials());
    support::run_trials(trials)
}

fn read(file: &Path) -> Vec<Scenario> {
    let text = std::fs::read_to_string(file).expect("a transcript");
    let stem = file.file_stem().expect("a name").to_string_lossy().into_owned();
    let mut out: Vec<Scenario> = Vec::new();
    for line in text.lines() {
        if let Some(head) = line.strip_prefix("== ") {
            let (name, seed) = head.split_once(": ").expect("a scenario is named `== name: seed`");
            out.push(Scenario {
                file: stem.clone(),
                name: name.into(),
                seed: seed.into(),
                steps: Vec::new(),
                left: String::new(),
            });
            continue;
        }
        let Some(scenario) = out.last_mut() else { continue };
        if line.starts_with('$') {
            scenario.steps.push((line.into(), String::new()));
        } else if line.starts_with('@') {
            scenario.left.push_str(&format!("{line}\n"));
        } else if !line.is_empty()
            && let Some((_, recorded)) = scenario.steps.last_mut()
        {
            if scenario.left.is_empty() {
                recorded.push_str(&format!("{line}\n"));
            } else {
                scenario.left.push_str(&format!("{line}\n"));
            }
        }
    }
    out
}

/// Plays a scenario with a program and returns the result in the form of a transcript.
fn play(scenario: &Scenario, program: &Path, recording: bool) -> Scenario {
    let seed = format!("tests/commands/seeds/{}", scenario.seed);
    let mut w = Workspace::copy_of(&seed);
    // `copy_of` leaves out state files, because they may be left over from manual runs. The state of a seed is part of it, so it is copied
    // here.
    let state = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(&seed)
        .join("terraform.tfstate");
    if state.exists() {
        std::fs::copy(state, w.dir().join("terraform.tfstate")).expect("a copy");
    }
    let bin = w.home().join("bin");
    std::fs::create_dir(&bin).expect("a directory");
    symlink(program, bin.join("tf")).expect("a link");
    let path = format!(
        "{}:{}",
        bin.display(),
        std::env::var("PATH").unwrap_or_else(|_| "/usr/bin:/bin".into())
    );
    w = w.env("PATH", path).env("TF_CLI_ARGS", "-no-color");
    if recording {
        w = w.with_our_plugins();
    }
    let masks = Masks::new(&w.dir());
    let ran = w.run_program("sh", &["-c", "tf init"]);
    assert_eq!(ran.status, 0, "{}", ran.all());
    let mut steps = Vec::new();
    for (line, _) in &scenario.steps {
        let (kind, command) = line.split_once(' ').expect("`$ line`");
        let ran = w.run_program("sh", &["-c", command]);
        let mut recorded = String::new();
        match kind {
            "$" => {
                for line in facts::output(&masks.text(&ran.stdout)).lines() {
                    let _ = writeln!(recorded, "{}", format!("  {line}").trim_end());
                }
            }
            "$~" => {
                if let Some(line) = masks.text(&ran.stdout).lines().find(|l| !l.trim().is_empty()) {
                    let _ = writeln!(recorded, "  {line}");
                }
            }
            "$j" => {
                for line in facts::stream(&masks.text(&ran.stdout)) {
                    let _ = writeln!(recorded, "  {line}");
                }
            }
            "$-" | "$!" => {}
            other => panic!("{other} is no kind of step"),
        }
        if kind == "$j" && ran.status != 0 {
            let _ = writeln!(recorded, "[{}]", ran.status);
        } else if kind != "$-" && ran.status != 0 {
            if kind != "$!" {
                for summary in facts::errors(&masks.text(&ran.stderr)) {
                    let _ = writeln!(recorded, "! {summary}");
                }
            }
            let _ = writeln!(recorded, "[{}]", ran.status);
        } else if !matches!(kind, "$-" | "$!") {
            assert!(ran.status == 0 && ran.stderr.is_empty(), "{line}\n{}", ran.all());
        }
        steps.push((line.clone(), recorded));
    }
    let writes_in_between = ["tf apply", "tf destroy", "tf refresh"];
    let counted = !scenario
        .steps
        .iter()
        .any(|(line, _)| writes_in_between.iter().any(|w| line.contains(w)));
    Scenario {
        steps,
        left: facts::files(&w.dir(), &masks, counted),
        ..scenario.clone()
    }
}

fn check(recorded: &Scenario) -> Result<(), Failed> {
    let played = play(recorded, Path::new(monoform()), false);
    let (theirs, ours) = (text(recorded), text(&played));
    if theirs == ours {
        return Ok(());
    }
    Err(format!("--- recorded\n{theirs}\n--- played\n{ours}").into())
}

fn text(scenario: &Scenario) -> String {
    let mut out = format!("== {}: {}\n", scenario.name, scenario.seed);
    for (line, recorded) in &scenario.steps {
        let _ = write!(out, "{line}\n{recorded}");
    }
    out.push_str(&scenario.left);
    out
}

fn record_file(file: &Path, program: &str) {
    let program = support::which(program).unwrap_or_else(|| panic!("{program} is not installed"));
    let scenarios = read(file);
    let texts: Vec<String> = scenarios.iter().map(|s| text(&play(s, &program, true))).collect();
    std::fs::write(file, texts.join("\n")).expect("the transcript is written");
    eprintln!("{}: {} scenarios recorded", file.display(), scenarios.len());
}
