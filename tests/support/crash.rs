//! Applies that are killed at random moments, and what exists afterwards compared with what is known: for states in files and in
//! stores, and for other programs.
//!
//! What really exists is seen in a directory: each object is a file there, made by `local_file`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::Workspace;

/// Objects, in two resources. Another version replaces them, half of them with the new one first.
pub const CONFIG: &str = r#"
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

const IN_FLIGHT: [&str; 3] = ["- create local_file.", "- update local_file.", "- delete local_file."];

/// How long anything may take that should happen at once, on a machine with much else to do.
const PATIENCE: Duration = Duration::from_secs(60);

/// Numbers that are the same for the same seed.
pub struct Random(pub u64);

impl Random {
    /// A number below a limit.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % limit
    }
}

/// A number from the environment.
pub fn setting(name: &str, usual: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(usual)
}

/// What is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Victims {
    /// The program.
    Core,
    /// Its plugins.
    Plugins,
    /// The program and its plugins.
    Both,
}

/// What came of one apply that was killed.
#[derive(Debug, Default)]
pub struct Outcome {
    /// Whether it did not end by itself.
    pub unfinished: bool,
    /// How many objects exist.
    pub exist: usize,
    /// The instances that the next command names as in flight, or that the run itself has reported as failed.
    pub named: BTreeSet<String>,
    /// What exists, is in no state, and was not named.
    pub lost: Vec<String>,
    /// What is in the state, does not exist like that, and was not named.
    pub wrong: Vec<String>,
    /// What was printed, for messages.
    pub text: String,
}

/// Sums over many applies.
#[derive(Debug, Default)]
pub struct Counts {
    /// Applies.
    pub runs: usize,
    /// Those that did not end by themselves.
    pub unfinished: usize,
    /// Objects that existed afterwards.
    pub exist: usize,
    /// Operations that were named.
    pub named: usize,
    /// Objects that were lost.
    pub lost: usize,
    /// Objects in the state that were not there.
    pub wrong: usize,
    /// Applies after which something was lost.
    pub losing: usize,
}

impl Counts {
    /// Adds an outcome.
    pub fn add(&mut self, outcome: &Outcome) {
        self.runs += 1;
        self.unfinished += usize::from(outcome.unfinished);
        self.exist += outcome.exist;
        self.named += outcome.named.len();
        self.lost += outcome.lost.len();
        self.wrong += outcome.wrong.len();
        self.losing += usize::from(!outcome.lost.is_empty());
    }
}

impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Counts {
            runs,
            unfinished,
            exist,
            named,
            lost,
            wrong,
            losing,
        } = self;
        write!(
            f,
            "{runs} applies, {unfinished} killed before their end: {exist} objects found afterwards, {named} operations named, \
             {lost} objects lost in {losing} applies, {wrong} in the state and not there"
        )
    }
}

/// The files that exist, by name, with their contents.
fn existing(w: &Workspace) -> BTreeMap<String, String> {
    let Ok(entries) = std::fs::read_dir(w.dir().join("out")) else {
        return BTreeMap::new();
    };
    let read = |entry: std::fs::DirEntry| {
        // What is being destroyed may be gone meanwhile.
        let text = std::fs::read_to_string(entry.path()).ok()?;
        Some((entry.file_name().to_string_lossy().into_owned(), text))
    };
    entries.filter_map(|entry| read(entry.expect("an entry"))).collect()
}

/// The files that a state knows, deposed ones among them, by name, with their contents.
fn known(state: &serde_json::Value) -> BTreeMap<String, String> {
    let resources = state["resources"].as_array().into_iter().flatten();
    let instances = resources.flat_map(|r| r["instances"].as_array().into_iter().flatten());
    instances
        .filter_map(|i| {
            let name = i["attributes"]["filename"].as_str()?;
            let content = i["attributes"]["content"].as_str()?;
            Some((name.strip_prefix("out/")?.to_owned(), content.to_owned()))
        })
        .collect()
}

/// The names of the files that the text of a state knows.
pub fn files_in(state: &str) -> BTreeSet<String> {
    known(&serde_json::from_str(state).unwrap_or_default())
        .into_keys()
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

/// The processes of a workspace that serve a plugin, whoever started them.
fn plugins(w: &Workspace, core: u32) -> Vec<u32> {
    let mark = format!("HOME={}", w.home().display()).into_bytes();
    let entries = std::fs::read_dir("/proc").expect("processes").filter_map(Result::ok);
    let serves = |entry: std::fs::DirEntry| {
        let id: u32 = entry.file_name().to_str()?.parse().ok()?;
        let environment = std::fs::read(entry.path().join("environ")).ok()?;
        (id != core && environment.split(|b| *b == 0).any(|v| v == mark)).then_some(id)
    };
    entries.filter_map(serves).collect()
}

/// Ends processes without warning.
pub fn kill(ids: &[u32]) {
    for id in ids {
        // It may be gone already.
        let _ = Command::new("kill").args(["-s", "KILL", &id.to_string()]).output();
    }
}

fn wait(child: &mut Child) -> i32 {
    let began = Instant::now();
    loop {
        if let Some(status) = child.try_wait().expect("a status") {
            return status.code().unwrap_or(-1);
        }
        assert!(
            began.elapsed() < PATIENCE,
            "the end of a command: not after {PATIENCE:?}"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A working directory with [`CONFIG`] in which applies are killed.
pub struct CrashTest<'w> {
    /// The directory, initialized.
    pub workspace: &'w Workspace,
    /// The program.
    pub program: PathBuf,
    /// How many objects there are.
    pub objects: usize,
    /// The longest time from the first change to the kill, in microseconds.
    pub window: u64,
}

impl CrashTest<'_> {
    fn variables(&self, objects: usize, version: u64) -> [String; 2] {
        [
            format!("-var=objects={objects}"),
            format!("-var=version_of_all={version}"),
        ]
    }

    /// Runs a command. Where somebody who was killed has left a lock, that is broken, as its message says; one that a server
    /// holds for a session ends with the process that has the session, within two seconds.
    pub fn unlocked(&self, args: &[&str]) -> crate::Ran {
        let locked = |ran: &crate::Ran| ran.status != 0 && ran.all().contains("Error acquiring the state lock");
        let end = Instant::now() + Duration::from_secs(5);
        let mut ran = self.workspace.run_program(&self.program, args);
        while locked(&ran) && ran.all().contains("ends with") && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(200));
            ran = self.workspace.run_program(&self.program, args);
        }
        if !locked(&ran) {
            return ran;
        }
        let all = ran.all();
        let id = all.lines().find_map(|line| line.split("ID:").nth(1)).map(str::trim);
        let Some(id) = id else { return ran };
        self.workspace
            .run_program(&self.program, &["force-unlock", "-force", id])
            .ok();
        self.workspace.run_program(&self.program, args)
    }

    fn start(&self, version: u64, objects: usize) -> Child {
        let [objects, version] = self.variables(objects, version);
        // Not to a pipe: the plan is longer than one holds, and nobody reads while it runs.
        let output = || {
            let log = self.workspace.dir().join("log");
            let file = std::fs::OpenOptions::new().append(true).create(true).open(log);
            Stdio::from(file.expect("a file"))
        };
        self.workspace.write("log", "");
        self.workspace
            .command(&self.program)
            .args(["apply", "-no-color", "-auto-approve", &objects, &version])
            .stdout(output())
            .stderr(output())
            .spawn()
            .expect("it starts")
    }

    /// One apply that is killed, and what is known after it. `objects` is how many there are to be.
    pub fn round(&self, version: u64, objects: usize, victims: Victims, random: &mut Random) -> Outcome {
        let w = self.workspace;
        let before = existing(w);
        let mut apply = self.start(version, objects);
        // Most of the time goes by before anything changes.
        while existing(w) == before && apply.try_wait().expect("a status").is_none() {
            std::thread::sleep(Duration::from_millis(2));
        }
        std::thread::sleep(Duration::from_micros(random.below(self.window)));
        if victims != Victims::Plugins {
            kill(&[apply.id()]);
        }
        if victims != Victims::Core {
            kill(&plugins(w, apply.id()));
        }
        let status = wait(&mut apply);
        // Plugins end by themselves, and what they were doing may still come to its end.
        let began = Instant::now();
        while !plugins(w, 0).is_empty() {
            assert!(began.elapsed() < PATIENCE, "plugins are left behind");
            std::thread::sleep(Duration::from_millis(20));
        }
        let mut outcome = self.compare(version, objects);
        outcome.unfinished = status != 0;
        outcome
    }

    /// What is known after a run whose output is in the file `log`.
    pub fn compare(&self, version: u64, objects: usize) -> Outcome {
        let w = self.workspace;
        let log = w.read("log");
        let exists = existing(w);
        let [objects, version] = self.variables(objects, version);
        let next = self.unlocked(&[
            "plan",
            "-no-color",
            "-input=false",
            "-refresh=false",
            &objects,
            &version,
        ]);
        let pulled = self.unlocked(&["state", "pull"]);
        let state = known(&serde_json::from_str(&pulled.stdout).unwrap_or_default());
        let mut all = named(&next.all(), &IN_FLIGHT);
        // A plugin that dies alone is told by the run itself.
        all.extend(named(&log, &["with local_file.", "Error: "]));
        let told = |name: &str| all.iter().any(|prefix| name.starts_with(prefix));
        let differ = |one: &BTreeMap<String, String>, other: &BTreeMap<String, String>| -> Vec<String> {
            let differs = |(name, text): &(&String, &String)| other.get(*name) != Some(*text) && !told(name);
            one.iter().filter(differs).map(|(name, _)| name.clone()).collect()
        };
        Outcome {
            unfinished: false,
            exist: exists.len(),
            lost: differ(&exists, &state),
            wrong: differ(&state, &exists),
            text: format!("--- the run\n{log}\n--- the next\n{}", next.all()),
            named: all,
        }
    }

    /// What is named is looked after, as the message says: here, files that the state does not have are removed.
    pub fn look_after(&self) {
        let pulled = self.unlocked(&["state", "pull"]);
        let state = known(&serde_json::from_str(&pulled.stdout).unwrap_or_default());
        for name in existing(self.workspace)
            .keys()
            .filter(|name| !state.contains_key(*name))
        {
            std::fs::remove_file(self.workspace.dir().join("out").join(name)).expect("a file");
        }
    }

    /// Many applies that are killed, after each of which everything must be known.
    pub fn nothing_is_lost(&self, rounds: u64, random: &mut Random, counts: &mut Counts) {
        for version in 0..rounds {
            let objects = if random.below(4) == 0 { 0 } else { self.objects };
            let victims = match random.below(4) {
                0 | 1 => Victims::Core,
                2 => Victims::Both,
                _ => Victims::Plugins,
            };
            let outcome = self.round(version, objects, victims, random);
            counts.add(&outcome);
            assert!(
                outcome.lost.is_empty() && outcome.wrong.is_empty(),
                "round {version}, {victims:?} killed: lost {:?}, wrong {:?}, named {:?}\n{}",
                outcome.lost,
                outcome.wrong,
                outcome.named,
                outcome.text
            );
            // It was told once.
            let [objects, version] = self.variables(objects, version);
            let again = self.unlocked(&["plan", "-no-color", "-refresh=false", &objects, &version]);
            assert!(named(&again.all(), &IN_FLIGHT).is_empty(), "{}", again.all());
            self.look_after();
        }
    }
}
