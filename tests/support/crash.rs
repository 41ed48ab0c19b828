//! Applies that are killed at random times. Afterwards, the existing objects are compared with the state and with the reported operations.
//! The same tests serve states in files, states in stores, and other programs.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::Workspace;

/// Configuration of `objects` objects in two resources. A new version replaces all of them, half of them with
/// `create_before_destroy`.
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

/// Time limit for steps that usually end at once, even on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// Pseudo-random numbers, the same for the same seed.
pub struct Random(pub u64);

impl Random {
    /// Returns a number below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        // The high bits are used, because the low bits of such a generator repeat soon.
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (self.0 >> 33) % limit
    }
}

/// Returns the number in the environment variable `name`; `usual` if it is not set.
pub fn setting(name: &str, usual: u64) -> u64 {
    std::env::var(name)
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(usual)
}

/// Processes to kill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Victims {
    /// The program alone.
    Core,
    /// The plugin processes alone.
    Plugins,
    /// The program and its plugin processes.
    Both,
}

/// Findings after one apply that was killed.
#[derive(Debug, Default)]
pub struct Outcome {
    /// True if the apply did not end with status 0.
    pub unfinished: bool,
    /// Number of objects that exist.
    pub exist: usize,
    /// Prefixes of the file names of instances that the next command names as in flight, or that the run itself has reported as
    /// failed.
    pub named: BTreeSet<String>,
    /// Files that exist, are in no state, and were not named.
    pub lost: Vec<String>,
    /// Objects of the state that do not exist with that content, and were not named.
    pub wrong: Vec<String>,
    /// Output of the run and of the next command, for messages.
    pub text: String,
}

/// Sums of the findings of many applies.
#[derive(Debug, Default)]
pub struct Counts {
    /// Number of applies that were started.
    pub runs: usize,
    /// Number of applies that did not end with status 0.
    pub unfinished: usize,
    /// Objects that existed after the applies.
    pub exist: usize,
    /// Operations that a report named as in flight or as failed.
    pub named: usize,
    /// Objects that existed, unknown to the state and to the reports.
    pub lost: usize,
    /// Objects of the state that did not exist with that content, and were not named.
    pub wrong: usize,
    /// Number of applies after which something was lost.
    pub losing: usize,
}

impl Counts {
    /// Adds the findings of one apply.
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

/// Reads the existing objects: file names and contents.
fn existing(w: &Workspace) -> BTreeMap<String, String> {
    let Ok(entries) = std::fs::read_dir(w.dir().join("out")) else {
        return BTreeMap::new();
    };
    let read = |entry: std::fs::DirEntry| {
        // A running destroy may remove the file after it was listed.
        let text = std::fs::read_to_string(entry.path()).ok()?;
        Some((entry.file_name().to_string_lossy().into_owned(), text))
    };
    entries.filter_map(|entry| read(entry.expect("an entry"))).collect()
}

/// Returns the file names and contents that a state records, deposed objects included.
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

/// Returns the names of the files that the text of a state records.
pub fn files_in(state: &str) -> BTreeSet<String> {
    known(&serde_json::from_str(state).unwrap_or_default())
        .into_keys()
        .collect()
}

/// Returns the beginning of the file names of an instance, such as `plain-3-`, before the version.
fn prefix_of(address: &str) -> Option<String> {
    let (name, index) = address.strip_prefix("local_file.")?.split_once('[')?;
    Some(format!("{name}-{}-", index.split_once(']')?.0))
}

/// Returns the prefixes of the instances that lines with one of `marks` name.
fn named(text: &str, marks: &[&str]) -> BTreeSet<String> {
    let lines = text.lines().filter(|line| marks.iter().any(|mark| line.contains(mark)));
    lines
        .filter_map(|line| prefix_of(&line[line.find("local_file.")?..]))
        .collect()
}

/// Returns the IDs of the workspace's processes except `core`, whoever started them.
fn plugins(w: &Workspace, core: u32) -> Vec<u32> {
    // The parent of these plugins was killed, so they are recognized by the home directory in their environment.
    let mark = format!("HOME={}", w.home().display()).into_bytes();
    let entries = std::fs::read_dir("/proc").expect("processes").filter_map(Result::ok);
    let serves = |entry: std::fs::DirEntry| {
        let id: u32 = entry.file_name().to_str()?.parse().ok()?;
        let environment = std::fs::read(entry.path().join("environ")).ok()?;
        (id != core && environment.split(|b| *b == 0).any(|v| v == mark)).then_some(id)
    };
    entries.filter_map(serves).collect()
}

/// Kills processes with SIGKILL.
pub fn kill(ids: &[u32]) {
    for id in ids {
        // The process may have ended already.
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

/// Settings of a test that kills applies in a working directory with [`CONFIG`].
pub struct CrashTest<'w> {
    /// Workspace in which `init` has run.
    pub workspace: &'w Workspace,
    pub program: PathBuf,
    /// Number of objects of a full apply.
    pub objects: usize,
    /// Longest time from the first change to the kill, in microseconds.
    pub window: u64,
    /// Set if operations of an interrupted apply are reported by each plan until an apply reports them: plans take no lock, so they cannot
    /// record the report.
    pub plans_repeat_reports: bool,
}

impl CrashTest<'_> {
    fn variables(&self, objects: usize, version: u64) -> [String; 2] {
        [
            format!("-var=objects={objects}"),
            format!("-var=version_of_all={version}"),
        ]
    }

    /// Runs a command. If a killed process has left a lock, this function removes the lock as the error message advises, and runs the
    /// command again. A lock that a server holds for a session ends within two seconds of the end of the process, so the function waits for
    /// it.
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
        // The output is written to a file, because the plan does not fit into a pipe, which nobody reads while
        // the program runs.
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

    /// Starts an apply of `objects` objects in `version`, kills `victims` at a random time after its first change, and returns
    /// the findings.
    pub fn round(&self, version: u64, objects: usize, victims: Victims, random: &mut Random) -> Outcome {
        let w = self.workspace;
        let before = existing(w);
        let mut apply = self.start(version, objects);
        // Waits for the first change, because most of an apply's time passes before it, when a kill would test
        // nothing.
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
        // Plugins end by themselves after the program, but first complete the operation that they have begun. Only then
        // does the directory stay unchanged.
        let began = Instant::now();
        while !plugins(w, 0).is_empty() {
            assert!(began.elapsed() < PATIENCE, "plugins are left behind");
            std::thread::sleep(Duration::from_millis(20));
        }
        let mut outcome = self.compare(version, objects);
        outcome.unfinished = status != 0;
        outcome
    }

    /// Compares the existing objects with the state and the reports, after a run whose output is in the file `log`.
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
        // If only a plugin dies, the run itself survives and reports the failed instances.
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

    /// Removes the files that are not in the state, as a user would after the report of the next command.
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

    /// Kills `rounds` applies. Fails the test if, after one of them, the existing objects differ from the state and
    /// the reports, or a report is repeated.
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
            // The report appears once, and the first command after the crash has shown it.
            let [objects, version] = self.variables(objects, version);
            let again = self.unlocked(&["plan", "-no-color", "-refresh=false", &objects, &version]);
            let repeated = named(&again.all(), &IN_FLIGHT);
            assert!(self.plans_repeat_reports || repeated.is_empty(), "{}", again.all());
            self.look_after();
        }
    }
}
