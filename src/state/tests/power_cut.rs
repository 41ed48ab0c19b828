//! A power cut at every moment of a run: what is on the disk then is enough.
//!
//! A run is recorded in a process of its own under `strace`: what it does to files, and which objects it creates. Then, for the
//! moment after each recorded operation, directories are made as a disk may have them: with everything that was done, or without
//! what was not synced yet, in several ways, since a disk may keep later writes and lose earlier ones. In each of them, the next
//! program must find every object in the state or named as in flight.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stderr)]
#![allow(clippy::disallowed_methods, reason = "locks have their time")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use addrs::{AbsProviderConfig, AbsResourceInstance, Provider};
use state::journal::{Answers, Intent, IntentAction, Outcome};
use state::{Attributes, InstanceState, LocalStore, LockInfo, Object, RawJson, State};

/// Names the directory to the process that is recorded.
const RECORDED: &str = "MONOFORM_RECORDED_RUN";

const STATE: &str = "terraform.tfstate";

fn provider() -> AbsProviderConfig {
    AbsProviderConfig::root(Provider::default_for("null"))
}

fn address(name: &str) -> AbsResourceInstance {
    addrs::parse::resource_instance(&format!("null_resource.{name}")).unwrap()
}

fn objects(id: &str) -> InstanceState {
    let json = RawJson::parse(&format!("{{\"id\": \"{id}\"}}")).unwrap();
    InstanceState {
        current: Some(Arc::new(Object::new(0, Attributes::Json(json)))),
        ..InstanceState::default()
    }
}

fn locked(path: &Path) -> LocalStore {
    let mut store = LocalStore::new(path);
    let info = LockInfo::new("test", "1.0.0");
    store.lock(&info, Duration::ZERO, &|| false).unwrap();
    store
}

/// The run: creates objects, each of which is a file in `real`; one that counts as done has a file in `done`. Writes the state
/// now and then, makes the journal smaller, and ends it.
#[test]
fn recorded_run() {
    let Some(dir) = std::env::var_os(RECORDED).map(PathBuf::from) else {
        return;
    };
    let mut store = locked(&dir.join(STATE));
    let mut state = State::new();
    for run in 0..2 {
        let journal = store.begin_journal("OperationTypeApply", "1.0.0").unwrap().unwrap();
        let mut number = 0;
        for i in 0..5 {
            let name = format!("r{run}o{i}");
            let intent = Intent {
                address: address(&name).to_string(),
                deposed: None,
                action: IntentAction::Create,
                by: provider().to_string(),
                planned: String::new(),
            };
            journal.begin(&intent).wait().unwrap();
            fs::write(dir.join("real").join(&name), "").unwrap();
            state.set_instance(&address(&name), &provider(), Some(objects(&name)));
            number = journal.outcome(Outcome {
                address: address(&name),
                provider: provider(),
                objects: Some(objects(&name)),
                answers: Answers::Current,
            });
            journal.sync().wait().unwrap();
            fs::write(dir.join("done").join(&name), "").unwrap();
            if i % 2 == 1 {
                store.write(&state, "1.0.0").unwrap();
            }
        }
        store.write(&state, "1.0.0").unwrap();
        store.compact_journal(number);
        store.end_journal().unwrap();
    }
    store.unlock().unwrap();
}

/// What was done to a file of the directory.
#[derive(Clone, Debug)]
enum Op {
    Create(String),
    Write(String, u64, Vec<u8>),
    Truncate(String, u64),
    Sync(String),
    /// The names in the directory.
    SyncDirectory,
    Rename(String, String),
    Remove(String),
}

/// The bytes of a string that is written in hexadecimal escapes.
fn bytes(text: &str) -> Vec<u8> {
    let digits = text.trim_matches('"').split("\\x").skip(1);
    digits.map(|pair| u8::from_str_radix(&pair[..2], 16).unwrap()).collect()
}

fn text(quoted: &str) -> String {
    String::from_utf8(bytes(quoted)).unwrap()
}

/// Reads what `strace` wrote down, in the order of the beginnings.
fn recorded(traces: &Path, dir: &Path) -> Vec<Op> {
    let mut lines: Vec<(f64, String)> = Vec::new();
    for entry in fs::read_dir(traces).unwrap() {
        let trace = fs::read_to_string(entry.unwrap().path()).unwrap();
        for line in trace.lines() {
            if let Some((time, call)) = line.split_once(' ')
                && let Ok(time) = time.parse()
            {
                lines.push((time, call.to_owned()));
            }
        }
    }
    lines.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut replay = Recording {
        dir,
        ops: Vec::new(),
        places: BTreeMap::new(),
    };
    for (_, call) in &lines {
        replay.call(call);
    }
    replay.ops
}

struct Recording<'d> {
    dir: &'d Path,
    ops: Vec<Op>,
    /// How far each open file is written.
    places: BTreeMap<String, u64>,
}

impl Recording<'_> {
    /// The name below the directory; `None` for other files.
    fn name(&self, path: &str) -> Option<String> {
        let name = Path::new(path).strip_prefix(self.dir).ok()?;
        Some(name.to_str()?.to_owned())
    }

    /// The file behind a descriptor: `5</dir/name>`.
    fn file(&self, descriptor: &str) -> Option<String> {
        let path = descriptor.split_once('<')?.1.split('>').next()?;
        match path.contains("\\x") {
            true => self.name(&text(path)),
            false => self.name(path),
        }
    }

    fn call(&mut self, call: &str) {
        let Some((head, result)) = call.rsplit_once(" = ") else {
            return;
        };
        if result.starts_with('-') {
            return;
        }
        let (function, arguments) = head.split_once('(').unwrap();
        let arguments: Vec<&str> = arguments.trim_end().trim_end_matches(')').split(", ").collect();
        match function {
            "openat" => {
                let Some(name) = self.name(&text(arguments[1])) else {
                    return;
                };
                let flags = arguments[2];
                let descriptor = result.split('<').next().unwrap().to_owned();
                self.places.insert(descriptor, 0);
                if flags.contains("O_CREAT") {
                    self.ops.push(Op::Create(name.clone()));
                }
                if flags.contains("O_TRUNC") {
                    self.ops.push(Op::Truncate(name, 0));
                }
            }
            "write" => {
                let Some(name) = self.file(arguments[0]) else { return };
                let descriptor = arguments[0].split('<').next().unwrap().to_owned();
                let place = self.places.entry(descriptor).or_default();
                let data = bytes(arguments[1]);
                self.ops.push(Op::Write(name, *place, data.clone()));
                *place += data.len() as u64;
            }
            "lseek" => {
                let descriptor = arguments[0].split('<').next().unwrap().to_owned();
                if let Ok(place) = result.trim().parse() {
                    self.places.insert(descriptor, place);
                }
            }
            "ftruncate" => {
                if let Some(name) = self.file(arguments[0]) {
                    self.ops.push(Op::Truncate(name, arguments[1].parse().unwrap()));
                }
            }
            "fsync" | "fdatasync" => match self.file(arguments[0]) {
                Some(name) if name.is_empty() => self.ops.push(Op::SyncDirectory),
                Some(name) => self.ops.push(Op::Sync(name)),
                None => {}
            },
            "rename" => self.rename(arguments[0], arguments[1]),
            "renameat" | "renameat2" => self.rename(arguments[1], arguments[3]),
            "unlink" => self.remove(arguments[0]),
            "unlinkat" => self.remove(arguments[1]),
            _ => panic!("{call}"),
        }
    }

    fn rename(&mut self, from: &str, to: &str) {
        if let (Some(from), Some(to)) = (self.name(&text(from)), self.name(&text(to))) {
            self.ops.push(Op::Rename(from, to));
        }
    }

    fn remove(&mut self, path: &str) {
        if let Some(name) = self.name(&text(path)) {
            self.ops.push(Op::Remove(name));
        }
    }
}

/// What is kept of what was not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kept {
    /// Everything.
    All,
    /// The names, but no contents.
    Names,
    /// The contents, but no names.
    Contents,
    /// Nothing.
    Nothing,
    /// A part, by a number that chooses.
    Some(u64),
}

/// A file as it was created: its contents belong to it under whichever name.
#[derive(Clone, Default)]
struct File {
    /// The operations on it that are not synced, after these contents.
    synced: Vec<u8>,
    pending: Vec<Op>,
}

fn apply(contents: &mut Vec<u8>, op: &Op) {
    match op {
        Op::Write(_, place, data) => {
            let place = usize::try_from(*place).unwrap();
            if contents.len() < place + data.len() {
                contents.resize(place + data.len(), 0);
            }
            contents[place..place + data.len()].copy_from_slice(data);
        }
        Op::Truncate(_, length) => contents.resize(usize::try_from(*length).unwrap(), 0),
        _ => {}
    }
}

/// The directory as a disk may have it.
fn on_the_disk(ops: &[Op], kept: Kept) -> BTreeMap<String, Vec<u8>> {
    let mut files: Vec<File> = Vec::new();
    // Which file has which name: as programs see it, and as the disk has it for certain.
    let mut names: BTreeMap<String, usize> = BTreeMap::new();
    let mut certain = names.clone();
    // What was done to names since then.
    let mut changes: Vec<BTreeMap<String, usize>> = Vec::new();
    for op in ops {
        match op {
            Op::Create(name) if names.contains_key(name) => {}
            Op::Create(name) => {
                files.push(File::default());
                names.insert(name.clone(), files.len() - 1);
                changes.push(names.clone());
            }
            Op::Write(name, ..) | Op::Truncate(name, _) => {
                if let Some(file) = names.get(name) {
                    files[*file].pending.push(op.clone());
                }
            }
            Op::Sync(name) => {
                let Some(at) = names.get(name) else { continue };
                let file = &mut files[*at];
                for op in std::mem::take(&mut file.pending) {
                    apply(&mut file.synced, &op);
                }
            }
            Op::SyncDirectory => {
                certain.clone_from(&names);
                changes.clear();
            }
            Op::Rename(from, to) => {
                if let Some(file) = names.remove(from) {
                    names.insert(to.clone(), file);
                    changes.push(names.clone());
                }
            }
            Op::Remove(name) => {
                names.remove(name);
                changes.push(names.clone());
            }
        }
    }
    let mut random = match kept {
        Kept::Some(seed) => seed,
        _ => 0,
    };
    let mut chance = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        random >> 33
    };
    let found = match kept {
        Kept::All | Kept::Names => names,
        Kept::Contents | Kept::Nothing => certain,
        // Names change in their order, as far as it came.
        Kept::Some(_) => {
            let count = changes.len() as u64 + 1;
            match usize::try_from(chance() % count).unwrap() {
                0 => certain,
                n => changes[n - 1].clone(),
            }
        }
    };
    let contents = found.into_iter().map(|(name, file)| {
        let file = &files[file];
        let mut contents = file.synced.clone();
        for op in &file.pending {
            match kept {
                Kept::All | Kept::Contents => apply(&mut contents, op),
                Kept::Names | Kept::Nothing => {}
                Kept::Some(_) => match (chance() % 3, op) {
                    (0, _) => {}
                    // The file has grown, and not all of its contents are there.
                    (1, Op::Write(name, place, data)) => {
                        let mut torn = data.clone();
                        let cut = usize::try_from(chance()).unwrap() % (torn.len() + 1);
                        torn[cut..].fill(0);
                        apply(&mut contents, &Op::Write(name.clone(), *place, torn));
                    }
                    (_, op) => apply(&mut contents, op),
                },
            }
        }
        (name, contents)
    });
    contents.collect()
}

/// What a program finds after a power cut.
struct FoundAfter {
    state: BTreeSet<String>,
    in_flight: BTreeSet<String>,
}

fn recover(files: &BTreeMap<String, Vec<u8>>) -> Result<FoundAfter, String> {
    let dir = tempfile::tempdir().unwrap();
    for (name, contents) in files.iter().filter(|(name, _)| !name.contains('/')) {
        fs::write(dir.path().join(name), contents).unwrap();
    }
    let mut store = locked(&dir.path().join(STATE));
    let state = store.read().map_err(|e| e.to_string())?.unwrap_or_default();
    let in_flight = store.journal_report().into_iter().flat_map(|report| &report.in_flight);
    let short = |address: &str| address.trim_start_matches("null_resource.").to_owned();
    let found = FoundAfter {
        in_flight: in_flight.map(|operation| short(&operation.address)).collect(),
        state: state
            .instances()
            .map(|(resource, ..)| resource.resource.name.to_string())
            .collect(),
    };
    store.forget_journal().map_err(|e| e.to_string())?;
    store.unlock().map_err(|e| e.to_string())?;
    // And the next one has no question.
    let again = LocalStore::new(dir.path().join(STATE))
        .read()
        .map_err(|e| e.to_string())?;
    assert_eq!(again.unwrap_or_default().instance_count(), found.state.len());
    Ok(found)
}

/// The objects that exist, or are done, at a moment: nothing of that is on this disk.
fn outside(ops: &[Op], directory: &str) -> BTreeSet<String> {
    let created = ops.iter().filter_map(|op| match op {
        Op::Create(name) => name.strip_prefix(directory)?.strip_prefix('/').map(str::to_owned),
        _ => None,
    });
    created.collect()
}

#[test]
fn after_a_power_cut_at_any_moment_nothing_is_lost() {
    const TEST: &str = "after_a_power_cut_at_any_moment_nothing_is_lost";
    if Command::new("strace").arg("-V").output().is_err() {
        eprintln!("SKIPPED {TEST}: strace is not installed");
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let root = root.path().canonicalize().unwrap();
    let (dir, traces) = (root.join("run"), root.join("traces"));
    for dir in [&dir, &traces, &dir.join("real"), &dir.join("done")] {
        fs::create_dir_all(dir).unwrap();
    }
    let calls = "openat,write,lseek,ftruncate,fsync,fdatasync,rename,renameat,renameat2,unlink,unlinkat";
    let run = Command::new("strace")
        .args([
            "-ff",
            "-y",
            "-xx",
            "-ttt",
            "-s",
            "10000000",
            "-e",
            &format!("trace={calls}"),
            "-o",
        ])
        .arg(traces.join("t"))
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "recorded_run", "--test-threads=1"])
        .env(RECORDED, &dir)
        .output()
        .unwrap();
    if !run.status.success() {
        let text = String::from_utf8_lossy(&run.stderr).into_owned();
        assert!(text.contains("PTRACE") || text.contains("not permitted"), "{text}");
        eprintln!("SKIPPED {TEST}: strace may not trace here");
        return;
    }
    let ops = recorded(&traces, &dir);
    assert_eq!(outside(&ops, "done").len(), 10, "{ops:#?}");
    assert!(
        ops.iter().any(|op| matches!(op, Op::SyncDirectory)),
        "directories are synced"
    );
    let mut checked = 0;
    for end in 0..=ops.len() {
        let done = &ops[..end];
        let (real, certain) = (outside(done, "real"), outside(done, "done"));
        let kinds = [Kept::All, Kept::Names, Kept::Contents, Kept::Nothing];
        let random = (0..3).map(|i| Kept::Some(end as u64 * 1_000_003 + i));
        for kept in kinds.into_iter().chain(random) {
            let disk = on_the_disk(done, kept);
            let shown = || {
                let names: Vec<_> = disk.iter().map(|(name, text)| (name, text.len())).collect();
                format!(
                    "after {end} of {} operations, {kept:?}: {names:?}\nlast: {:?}",
                    ops.len(),
                    done.last()
                )
            };
            let found = recover(&disk).unwrap_or_else(|e| panic!("{e}\n{}", shown()));
            let known: BTreeSet<String> = found.state.union(&found.in_flight).cloned().collect();
            assert!(
                real.is_subset(&known),
                "lost: {:?}\n{}",
                real.difference(&known),
                shown()
            );
            assert!(
                certain.is_subset(&found.state),
                "done, and not in the state: {:?}\n{}",
                certain.difference(&found.state),
                shown()
            );
            checked += 1;
        }
    }
    eprintln!("{} operations recorded; recovered from {checked} disks", ops.len());
}
