//! `kill -9` at any moment, of the core, of a plugin, or of both: what exists afterwards is in the state, or is named by the
//! next command. What really exists is seen in a directory: each object is a file there.
//!
//! `MONOFORM_CRASH_ROUNDS` says how many applies are killed, `MONOFORM_SEED` when; `scripts/crash` is the long form.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use support::Workspace;

use crate::{finish, no_orphans, start, until};

const OBJECTS: usize = 60;

/// Each object is a file. Another version replaces them, half of them with the new one first.
const CONFIG: &str = r#"
variable "objects" {
  type = number
}

variable "version_of_all" {
  type = number
}

resource "local_file" "plain" {
  count    = var.objects / 2
  filename = "out/plain-${count.index}-${var.version_of_all}"
  content  = "plain ${count.index} ${var.version_of_all}"
}

resource "local_file" "early" {
  count    = var.objects / 2
  filename = "out/early-${count.index}-${var.version_of_all}"
  content  = "early ${count.index} ${var.version_of_all}"
  lifecycle {
    create_before_destroy = true
  }
}

output "last" {
  value = [local_file.plain[*].id, local_file.early[*].id]
}
"#;

struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % limit
    }
}

fn setting(name: &str, usual: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(usual)
}

/// The files that exist, by name, with their contents.
fn existing(w: &Workspace) -> BTreeMap<String, String> {
    let Ok(entries) = std::fs::read_dir(w.dir().join("out")) else {
        return BTreeMap::new();
    };
    let read = |entry: std::fs::DirEntry| {
        let text = std::fs::read_to_string(entry.path()).expect("a file");
        (entry.file_name().to_string_lossy().into_owned(), text)
    };
    entries.map(|entry| read(entry.expect("an entry"))).collect()
}

/// The files that a state knows, deposed ones among them, by name, with their contents.
fn known(state: &serde_json::Value) -> BTreeMap<String, String> {
    let resources = state["resources"].as_array().into_iter().flatten();
    let instances = resources.flat_map(|r| r["instances"].as_array().into_iter().flatten());
    instances
        .map(|i| {
            let name = i["attributes"]["filename"].as_str().expect("a name");
            let name = name.strip_prefix("out/").expect("a directory");
            (
                name.to_owned(),
                i["attributes"]["content"].as_str().expect("content").to_owned(),
            )
        })
        .collect()
}

/// What a name of a file begins with for an instance: `plain-3-`.
fn prefix_of(address: &str) -> Option<String> {
    let (name, index) = address.strip_prefix("local_file.")?.split_once('[')?;
    Some(format!("{name}-{}-", index.split_once(']')?.0))
}

/// The instances that a text names as in flight, or that errors name.
fn named(text: &str, marks: &[&str]) -> BTreeSet<String> {
    let lines = text.lines().filter(|line| marks.iter().any(|mark| line.contains(mark)));
    lines
        .filter_map(|line| prefix_of(&line[line.find("local_file.")?..]))
        .collect()
}

const IN_FLIGHT: [&str; 3] = ["- create local_file.", "- update local_file.", "- delete local_file."];

/// The processes of a workspace that serve a plugin.
fn plugins(w: &Workspace) -> Vec<u32> {
    let mark = format!("HOME={}", w.home().display()).into_bytes();
    let entries = std::fs::read_dir("/proc").expect("processes").filter_map(Result::ok);
    let serves = |entry: std::fs::DirEntry| {
        let id: u32 = entry.file_name().to_str()?.parse().ok()?;
        let environment = std::fs::read(entry.path().join("environ")).ok()?;
        let line = std::fs::read(entry.path().join("cmdline")).ok()?;
        let plugin = line.split(|b| *b == 0).any(|word| word == b"internal-plugin");
        (plugin && environment.split(|b| *b == 0).any(|v| v == mark)).then_some(id)
    };
    entries.filter_map(serves).collect()
}

fn kill(ids: &[u32]) {
    for id in ids {
        // It may be gone already.
        let _ = Command::new("kill").args(["-s", "KILL", &id.to_string()]).output();
    }
}

#[derive(Default)]
struct Counts {
    runs: usize,
    unfinished: usize,
    files: usize,
    named: usize,
}

/// One apply that is killed, and what comes after.
fn round(w: &Workspace, version: u64, random: &mut Random, counts: &mut Counts) {
    let objects = if random.below(4) == 0 { 0 } else { OBJECTS };
    let (objects, version) = (
        format!("-var=objects={objects}"),
        format!("-var=version_of_all={version}"),
    );
    let arguments = ["apply", "-no-color", "-auto-approve", &objects, &version];
    let before = existing(w);
    // Not to a pipe: the plan is longer than one holds, and nobody reads while it runs.
    let output = || {
        std::fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(w.dir().join("log"))
            .expect("a file")
    };
    w.write("log", "");
    let mut apply = w
        .command(support::monoform())
        .args(arguments)
        .stdout(output())
        .stderr(output())
        .spawn()
        .expect("monoform starts");
    // Most of the time goes by before anything changes.
    while existing(w) == before && apply.try_wait().expect("a status").is_none() {
        std::thread::sleep(Duration::from_millis(2));
    }
    std::thread::sleep(Duration::from_micros(random.below(400_000)));
    let victims = random.below(4);
    if victims > 0 {
        let mut ids = if victims < 3 { vec![apply.id()] } else { Vec::new() };
        if victims > 1 {
            ids.extend(plugins(w));
        }
        kill(&ids);
    } else {
        kill(&[apply.id()]);
    }
    let told = finish(apply);
    no_orphans(w);
    let log = w.read("log");
    counts.runs += 1;
    counts.unfinished += usize::from(told.status != 0);

    let exists = existing(w);
    // Who only reads sees what the next command is going to save.
    let seen = known(&w.run(&["state", "pull"]).ok().json());
    let next = w.run(&["plan", "-no-color", "-refresh=false", &objects, &version]).ok();
    let state = known(&serde_json::from_str(&w.read("terraform.tfstate")).unwrap_or_default());
    assert_eq!(seen, state, "what is read differs from what is saved: {}", next.all());
    let mut unsure = named(&next.all(), &IN_FLIGHT);
    assert!(unsure.len() <= 10, "more than can run at a time: {unsure:?}");
    counts.named += unsure.len();
    // A plugin that dies alone is told by the run itself.
    unsure.extend(named(&log, &["with local_file.", "Error: "]));
    let sure = |files: &BTreeMap<String, String>| -> BTreeMap<String, String> {
        let known = files
            .iter()
            .filter(|(name, _)| !unsure.iter().any(|prefix| name.starts_with(prefix)));
        known.map(|(name, text)| (name.clone(), text.clone())).collect()
    };
    counts.files += exists.len();
    assert_eq!(
        sure(&exists),
        sure(&state),
        "what exists (left) differs from the state (right)\n--- the run\n{}\n--- the next\n{}",
        log,
        next.all()
    );
    // It was told once, and nothing is left of it.
    assert!(!w.exists(".terraform.tfstate.journal"));
    let again = w.run(&["plan", "-no-color", "-refresh=false", &objects, &version]).ok();
    assert!(named(&again.all(), &IN_FLIGHT).is_empty(), "{}", again.all());
    // What is named is looked after, as the message says; here the files are removed or created as the state has them.
    for (name, _) in exists.iter().filter(|(name, _)| !state.contains_key(*name)) {
        std::fs::remove_file(w.dir().join("out").join(name)).expect("a file");
    }
}

#[test]
fn killed_at_any_moment_the_state_and_what_is_named_are_what_exists() {
    let rounds = setting("MONOFORM_CRASH_ROUNDS", 6);
    let mut random = Random(setting("MONOFORM_SEED", 1));
    let mut counts = Counts::default();
    let mut w = Workspace::with(&[("main.tf", CONFIG)]);
    for i in 0..rounds {
        if i % 20 == 0 {
            w = Workspace::with(&[("main.tf", CONFIG)]);
        }
        round(&w, i, &mut random, &mut counts);
    }
    let Counts {
        runs,
        unfinished,
        files,
        named,
    } = counts;
    eprintln!(
        "{runs} applies, {unfinished} of them killed before their end: {files} objects found afterwards, all known or named; \
         {named} operations named"
    );
}

#[test]
fn an_interrupted_creation_is_named_by_whatever_comes_next() {
    for command in ["plan", "apply", "refresh", "state"] {
        let w = Workspace::with(&[("main.tf", crate::WAITING)]);
        let run = start(&w, &["apply", "-no-color", "-auto-approve"]);
        until("the provisioner runs", || w.exists("started"));
        let journal = w.dir().join(".terraform.tfstate.journal");
        let mode = std::fs::metadata(&journal).expect("a journal").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        // While it runs, others see its results, and leave the journal alone.
        let listed = w.run(&["state", "list"]).ok();
        assert_eq!(listed.stdout.lines().count(), 2, "{}", listed.all());
        kill(&[run.id()]);
        finish(run);
        w.write("go", "");
        no_orphans(&w);
        let listed = w.run(&["state", "list"]).ok();
        assert_eq!(listed.stdout.lines().count(), 2, "{}", listed.all());
        assert!(journal.exists(), "who reads leaves the journal");
        let next = match command {
            "state" => w.run(&["state", "rm", "terraform_data.before"]),
            "apply" => w.run(&["apply", "-no-color", "-auto-approve"]),
            command => w.run(&[command, "-no-color"]),
        };
        let next = next.ok();
        let text = next.all();
        for part in ["provision terraform_data.waiting with local-exec, since ", "taint"] {
            assert!(text.contains(part), "{command}: {part}\n{text}");
        }
        if let Some(plan) = text.find("Terraform will perform") {
            assert!(
                text.find("provision terraform_data.waiting") < Some(plan),
                "it is told first: {text}"
            );
        }
        assert!(!journal.exists());
    }
}

#[test]
fn a_plan_without_the_lock_sees_what_a_crash_left_and_changes_nothing() {
    let w = Workspace::with(&[("main.tf", crate::WAITING)]).env("TF_STATE_PERSIST_INTERVAL", "1000");
    let run = start(&w, &["apply", "-no-color", "-auto-approve"]);
    until("the provisioner runs", || w.exists("started"));
    kill(&[run.id()]);
    finish(run);
    w.write("go", "");
    no_orphans(&w);
    let before = crate::files(&w);
    w.run(&["plan", "-no-color", "-lock=false"]).ok().shows(&[
        "terraform_data.before: Refreshing state",
        "1 to add",
        "is as it was, since it is not",
    ]);
    assert!(w.run(&["show", "-no-color"]).ok().stdout.contains("done before"));
    assert!(before == crate::files(&w));
    w.run(&["apply", "-no-color", "-auto-approve"])
        .ok()
        .shows(&["1 added, 0 changed, 0 destroyed"]);
}

#[test]
fn what_another_program_wrote_since_is_not_overwritten() {
    let w = Workspace::with(&[("main.tf", crate::WAITING)]).env("TF_STATE_PERSIST_INTERVAL", "1000");
    let run = start(&w, &["apply", "-no-color", "-auto-approve"]);
    until("the provisioner runs", || w.exists("started"));
    kill(&[run.id()]);
    finish(run);
    w.write("go", "");
    no_orphans(&w);
    let other = r#"{"version":4,"terraform_version":"1.11.4","serial":3,"lineage":"another","outputs":{},"resources":[],"check_results":null}"#;
    w.write("terraform.tfstate", other);
    let next = w.run(&["plan", "-no-color"]).ok();
    let text = next.all();
    for part in [
        "Journal of an earlier run not used",
        "terraform_data.before",
        "3 to add",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    assert_eq!(w.read("terraform.tfstate"), other);
    let kept: Vec<PathBuf> = crate::files(&w)
        .into_keys()
        .filter(|p| p.extension().is_some_and(|e| e == "journal"))
        .collect();
    let [kept] = &kept[..] else {
        panic!("one journal is kept: {kept:?}")
    };
    assert!(
        text.replace(['│', '\n', ' '], "")
            .contains(&*kept.file_name().expect("a name").to_string_lossy()),
        "{text}"
    );
}

#[test]
fn on_a_full_disk_nothing_begins_that_cannot_be_written_down() {
    const TEST: &str = "on_a_full_disk_nothing_begins_that_cannot_be_written_down";
    let config = r#"
variable "n" {
  type = number
}

resource "terraform_data" "n" {
  count = var.n
  input = join("", [for i in range(1000) : "01234567890123456789"])
}
"#;
    let w = Workspace::with(&[("main.tf", config)]);
    let disk = w.dir().join("disk");
    std::fs::create_dir(&disk).expect("a directory");
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=1m", "none"])
        .arg(&disk)
        .output();
    if !mounted.is_ok_and(|o| o.status.success()) {
        support::skip(TEST, "mount", "a file system of 1 MiB cannot be mounted");
        return;
    }
    let state = "-state=disk/s.tfstate";
    let run = |n: &str| w.run(&["apply", "-no-color", "-auto-approve", state, n]);
    let checked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let full = run("-var=n=100");
        let first = w.exists("errored.tfstate");
        (full, first, w.run(&["state", "list", state]))
    }));
    let unmounted = Command::new("umount").arg(&disk).output();
    assert!(unmounted.is_ok_and(|o| o.status.success()));
    let (full, rescued, _) = checked.expect("it runs");
    let full = full.fails_with(&["Cannot write the journal", "o space left on device"]);
    // All that was created is in the state that was rescued, or in the one on the disk.
    let created = full
        .stdout
        .lines()
        .filter(|line| line.contains("Creation complete"))
        .count();
    if rescued {
        let saved: serde_json::Value = serde_json::from_str(&w.read("errored.tfstate")).expect("JSON");
        let instances = saved["resources"][0]["instances"].as_array().map_or(0, Vec::len);
        assert_eq!(instances, created, "{}", full.all());
    }
    assert!(created > 0 && created < 100, "{created}");
}
