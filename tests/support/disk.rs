//! What a disk may have after a power cut: what a run does to files is recorded, and directories are made as they may be found
//! after each of those operations, with everything that was done until then, or without what was not synced.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

/// The system calls that are recorded.
const CALLS: &str =
    "openat,write,lseek,ftruncate,fsync,fdatasync,rename,renameat,renameat2,unlink,unlinkat,mkdir,mkdirat,fallocate";

/// What was done to a file of the directory. Names are relative to that.
#[derive(Clone, Debug)]
pub enum Op {
    /// A file that may be there already.
    Create(String),
    /// A new directory.
    CreateDirectory(String),
    /// Bytes, from a place on.
    Write(String, u64, Vec<u8>),
    /// Another length.
    Truncate(String, u64),
    /// The contents of a file.
    Sync(String),
    /// The names in a directory; an empty name for the one that is recorded.
    SyncDirectory(String),
    /// Another name.
    Rename(String, String),
    /// A name is gone.
    Remove(String),
}

/// Whether this machine lets `strace` trace; the test is skipped by name where not.
#[track_caller]
#[must_use]
pub fn traceable(test: &str) -> bool {
    if crate::needs("strace", test).is_none() {
        return false;
    }
    let traced = Command::new("strace").args(["-o", "/dev/null", "true"]).output();
    let can = traced.is_ok_and(|traced| traced.status.success());
    if !can {
        crate::skip(test, "strace", "may not trace other programs here");
    }
    can
}

impl Op {
    /// The file or directory that it concerns; of a new name, that.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Op::Create(name) | Op::CreateDirectory(name) | Op::Write(name, ..) | Op::Truncate(name, _) => name,
            Op::Sync(name) | Op::SyncDirectory(name) | Op::Rename(_, name) | Op::Remove(name) => name,
        }
    }
}

/// A command that runs a program under `strace`, which writes what it does to files into a directory.
#[must_use]
pub fn recording(program: &str, traces: &Path) -> Command {
    let mut command = Command::new("strace");
    command.args(["-ff", "-y", "-xx", "-ttt", "-s", "10000000", "-e"]);
    command.arg(format!("trace={CALLS}")).arg("-o").arg(traces.join("t"));
    command.arg(program);
    command
}

/// Reads what `strace` wrote down of the files below a directory, in which the program was started: when each operation began,
/// in seconds since 1970, in that order.
///
/// # Panics
/// `strace` writes something that is not understood.
#[must_use]
pub fn recorded(traces: &Path, dir: &Path) -> Vec<(f64, Op)> {
    let mut lines: Vec<(f64, String)> = Vec::new();
    for entry in fs::read_dir(traces).expect("a directory") {
        let trace = fs::read_to_string(entry.expect("an entry").path()).expect("a trace");
        for line in trace.lines() {
            if let Some((time, call)) = line.split_once(' ')
                && let Ok(time) = time.parse()
            {
                lines.push((time, call.to_owned()));
            }
        }
    }
    lines.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut recording = Recording {
        dir,
        now: 0.0,
        ops: Vec::new(),
        directories: BTreeSet::from([String::new()]),
        places: BTreeMap::new(),
    };
    for (time, call) in &lines {
        recording.now = *time;
        recording.call(call);
    }
    recording.ops
}

/// The bytes of a string that is written in hexadecimal escapes.
fn bytes(text: &str) -> Vec<u8> {
    let digits = text.trim_matches('"').split("\\x").skip(1);
    let byte = |pair: &str| u8::from_str_radix(pair.get(..2)?, 16).ok();
    digits.filter_map(byte).collect()
}

fn text(quoted: &str) -> String {
    String::from_utf8_lossy(&bytes(quoted)).into_owned()
}

/// The number of a descriptor: `5` of `5</dir/name>`.
fn number(descriptor: &str) -> String {
    descriptor.split('<').next().unwrap_or_default().trim().to_owned()
}

struct Recording<'d> {
    dir: &'d Path,
    now: f64,
    ops: Vec<(f64, Op)>,
    /// Those that are known, by name.
    directories: BTreeSet<String>,
    /// How far each open file is written, by its name and descriptor. Processes that have the same numbers write other files.
    places: BTreeMap<(String, String), u64>,
}

impl Recording<'_> {
    fn did(&mut self, op: Op) {
        self.ops.push((self.now, op));
    }

    /// The name below the directory; `None` for other files.
    fn name(&self, path: &str) -> Option<String> {
        let name = match Path::new(path).strip_prefix(self.dir) {
            Ok(name) => name.to_str()?,
            Err(_) if path.starts_with('/') => return None,
            Err(_) => path,
        };
        Some(name.trim_start_matches("./").trim_end_matches('/').to_owned())
    }

    /// The file behind a descriptor: `5</dir/name>`.
    fn file(&self, descriptor: &str) -> Option<String> {
        let path = descriptor.split_once('<')?.1.split('>').next()?;
        let path = if path.contains("\\x") {
            text(path)
        } else {
            path.to_owned()
        };
        path.starts_with('/').then(|| self.name(&path)).flatten()
    }

    fn call(&mut self, call: &str) {
        let Some((head, result)) = call.rsplit_once(" = ") else {
            return;
        };
        if result.starts_with('-') {
            return;
        }
        let (function, arguments) = head.split_once('(').expect("a call");
        let arguments: Vec<&str> = arguments.trim_end().trim_end_matches(')').split(", ").collect();
        match function {
            "openat" => {
                let Some(name) = self.name(&text(arguments[1])) else {
                    return;
                };
                let flags = arguments[2];
                if flags.contains("O_DIRECTORY") {
                    self.directories.insert(name);
                    return;
                }
                self.places.insert((name.clone(), number(result)), 0);
                if flags.contains("O_CREAT") {
                    self.did(Op::Create(name.clone()));
                }
                if flags.contains("O_TRUNC") {
                    self.did(Op::Truncate(name, 0));
                }
            }
            "write" => {
                let Some(name) = self.file(arguments[0]) else { return };
                let place = self.places.entry((name.clone(), number(arguments[0]))).or_default();
                let data = bytes(arguments[1]);
                let at = *place;
                *place += data.len() as u64;
                self.did(Op::Write(name, at, data));
            }
            "lseek" => {
                if let (Some(name), Ok(place)) = (self.file(arguments[0]), result.trim().parse()) {
                    self.places.insert((name, number(arguments[0])), place);
                }
            }
            "ftruncate" => {
                if let (Some(name), Ok(length)) = (self.file(arguments[0]), arguments[1].parse()) {
                    self.did(Op::Truncate(name, length));
                }
            }
            "fsync" | "fdatasync" => match self.file(arguments[0]) {
                Some(name) if self.directories.contains(&name) || self.dir.join(&name).is_dir() => {
                    self.did(Op::SyncDirectory(name));
                }
                Some(name) => self.did(Op::Sync(name)),
                None => {}
            },
            "mkdir" => self.directory(arguments[0]),
            "mkdirat" => self.directory(arguments[1]),
            "rename" => self.rename(arguments[0], arguments[1]),
            "renameat" | "renameat2" => self.rename(arguments[1], arguments[3]),
            "unlink" => self.remove(arguments[0]),
            "unlinkat" => self.remove(arguments[1]),
            // It makes room only.
            "fallocate" => {}
            _ => panic!("{call}"),
        }
    }

    fn directory(&mut self, path: &str) {
        if let Some(name) = self.name(&text(path)) {
            self.directories.insert(name.clone());
            self.did(Op::CreateDirectory(name));
        }
    }

    fn rename(&mut self, from: &str, to: &str) {
        if let (Some(from), Some(to)) = (self.name(&text(from)), self.name(&text(to))) {
            let (moved, others) = std::mem::take(&mut self.places)
                .into_iter()
                .partition::<BTreeMap<_, _>, _>(|((name, _), _)| *name == from);
            self.places = others;
            let moved = moved
                .into_iter()
                .map(|((_, descriptor), place)| ((to.clone(), descriptor), place));
            self.places.extend(moved);
            self.did(Op::Rename(from, to));
        }
    }

    fn remove(&mut self, path: &str) {
        if let Some(name) = self.name(&text(path)) {
            self.did(Op::Remove(name));
        }
    }
}

/// What is kept of what was not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
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

/// A file or directory as it was created: its contents belong to it under whichever name.
#[derive(Clone, Default)]
struct File {
    is_directory: bool,
    /// The operations on it that are not synced, after these contents.
    synced: Vec<u8>,
    pending: Vec<Op>,
}

fn apply(contents: &mut Vec<u8>, op: &Op) {
    let size = |number: u64| usize::try_from(number).expect("a size");
    match op {
        Op::Write(_, place, data) => {
            let place = size(*place);
            if contents.len() < place + data.len() {
                contents.resize(place + data.len(), 0);
            }
            contents[place..place + data.len()].copy_from_slice(data);
        }
        Op::Truncate(_, length) => contents.resize(size(*length), 0),
        _ => {}
    }
}

type Names = BTreeMap<String, usize>;

/// The directory that a name is in.
fn parent(name: &str) -> &str {
    name.rsplit_once('/').map_or("", |(directory, _)| directory)
}

/// Files and their names, as programs see them and as the disk has them for certain.
#[derive(Default)]
struct Disk {
    files: Vec<File>,
    names: Names,
    certain: Names,
    /// What the names were after each change since then.
    changes: Vec<Names>,
}

impl Disk {
    fn create(&mut self, name: &str, is_directory: bool) {
        if self.names.contains_key(name) {
            return;
        }
        self.files.push(File {
            is_directory,
            ..File::default()
        });
        self.names.insert(name.to_owned(), self.files.len() - 1);
        self.changes.push(self.names.clone());
    }

    fn perform(&mut self, op: &Op) {
        match op {
            Op::Create(name) => self.create(name, false),
            Op::CreateDirectory(name) => self.create(name, true),
            Op::Write(name, ..) | Op::Truncate(name, _) => {
                if let Some(file) = self.names.get(name) {
                    self.files[*file].pending.push(op.clone());
                }
            }
            Op::Sync(name) => {
                let Some(at) = self.names.get(name) else { return };
                let file = &mut self.files[*at];
                for op in std::mem::take(&mut file.pending) {
                    apply(&mut file.synced, &op);
                }
            }
            Op::SyncDirectory(directory) => {
                let now = &self.names;
                for names in self.changes.iter_mut().chain([&mut self.certain]) {
                    names.retain(|name, _| parent(name) != directory);
                    let here = now.iter().filter(|(name, _)| parent(name) == directory);
                    names.extend(here.map(|(name, file)| (name.clone(), *file)));
                }
                self.changes.retain(|names| *names != self.certain);
            }
            Op::Rename(from, to) => {
                if let Some(file) = self.names.remove(from) {
                    self.names.insert(to.clone(), file);
                    self.changes.push(self.names.clone());
                }
            }
            Op::Remove(name) => {
                self.names.remove(name);
                self.changes.push(self.names.clone());
            }
        }
    }
}

/// The files as a disk may have them after some operations, by name. Directories that were not made by one of these were there.
#[must_use]
pub fn on_the_disk<'o>(ops: impl IntoIterator<Item = &'o Op>, kept: Kept) -> BTreeMap<String, Vec<u8>> {
    let mut disk = Disk::default();
    let mut created = BTreeSet::new();
    for op in ops {
        if let Op::CreateDirectory(name) = op {
            created.insert(name.as_str());
        }
        disk.perform(op);
    }
    let Disk {
        files,
        names,
        certain,
        changes,
    } = disk;
    let mut random = match kept {
        Kept::Some(seed) => seed,
        _ => 0,
    };
    let mut chance = || {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        random >> 33
    };
    let mut below = |limit: usize| usize::try_from(chance() % limit as u64).unwrap_or_default();
    let found = match kept {
        Kept::All | Kept::Names => names,
        Kept::Contents | Kept::Nothing => certain,
        // Names change in their order, as far as it came.
        Kept::Some(_) => match below(changes.len() + 1) {
            0 => certain,
            n => changes[n - 1].clone(),
        },
    };
    let mut contents = BTreeMap::new();
    for (name, file) in &found {
        let lost = |directory: &str| created.contains(directory) && !found.contains_key(directory);
        let file = &files[*file];
        if file.is_directory
            || std::iter::successors(Some(parent(name)), |d| (!d.is_empty()).then(|| parent(d))).any(lost)
        {
            continue;
        }
        contents.insert(name.clone(), found_in(file, kept, &mut below));
    }
    contents
}

/// What of a file is there.
fn found_in(file: &File, kept: Kept, below: &mut impl FnMut(usize) -> usize) -> Vec<u8> {
    let mut contents = file.synced.clone();
    for op in &file.pending {
        match kept {
            Kept::All | Kept::Contents => apply(&mut contents, op),
            Kept::Names | Kept::Nothing => {}
            Kept::Some(_) => match (below(3), op) {
                (0, _) => {}
                // The file has grown, and not all of its contents are there.
                (1, Op::Write(name, place, data)) => {
                    let mut torn = data.clone();
                    let cut = below(torn.len() + 1);
                    torn[cut..].fill(0);
                    apply(&mut contents, &Op::Write(name.clone(), *place, torn));
                }
                (_, op) => apply(&mut contents, op),
            },
        }
    }
    contents
}
