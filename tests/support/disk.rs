//! Disk contents after a power cut. [`recorded`] returns the file operations of a run. [`on_the_disk`] returns the files that a restart
//! may find after some of these operations, with all, some or none of the changes that were not synced.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::process::Command;

/// System calls that are recorded: those that change files, names or offsets.
const CALLS: &str =
    "openat,write,lseek,ftruncate,fsync,fdatasync,rename,renameat,renameat2,unlink,unlinkat,mkdir,mkdirat,fallocate";

/// An operation on a file of the recorded directory. Names are relative to the directory.
#[derive(Clone, Debug)]
pub enum Op {
    /// Opening of a file with O_CREAT; it may exist already.
    Create(String),
    /// Creation of a directory.
    CreateDirectory(String),
    /// Name, offset and bytes of a write.
    Write(String, u64, Vec<u8>),
    /// Name of a file and its new length.
    Truncate(String, u64),
    /// Sync of a file's contents.
    Sync(String),
    /// Sync of the names in a directory; empty for the recorded directory itself.
    SyncDirectory(String),
    /// Old and new name.
    Rename(String, String),
    /// Removal of the name of a file or directory.
    Remove(String),
}

/// Returns true if this machine lets `strace` trace. Otherwise the test is skipped by name.
#[track_caller]
#[must_use]
pub fn traceable(test: &str) -> bool {
    if crate::needs("strace", test).is_none() {
        return false;
    }
    // A container may contain the program but forbid its system call.
    let traced = Command::new("strace").args(["-o", "/dev/null", "true"]).output();
    let can = traced.is_ok_and(|traced| traced.status.success());
    if !can {
        crate::skip(test, "strace", "may not trace other programs here");
    }
    can
}

impl Op {
    /// Returns the file or directory that the operation concerns; for a rename, the new name.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            Op::Create(name) | Op::CreateDirectory(name) | Op::Write(name, ..) | Op::Truncate(name, _) => name,
            Op::Sync(name) | Op::SyncDirectory(name) | Op::Rename(_, name) | Op::Remove(name) => name,
        }
    }
}

/// Returns a command that runs a program under `strace`, which writes the recorded calls into the directory `traces`.
#[must_use]
pub fn recording(program: &str, traces: &Path) -> Command {
    let mut command = Command::new("strace");
    // One trace for each process (`-ff`), with the names of descriptors (`-y`) and with times (`-ttt`), by which the traces are merged.
    // Everything is in hexadecimal (`-xx`), so that no content looks like the syntax of a trace, and no write is cut short (`-s`).
    command.args(["-ff", "-y", "-xx", "-ttt", "-s", "10000000", "-e"]);
    command.arg(format!("trace={CALLS}")).arg("-o").arg(traces.join("t"));
    command.arg(program);
    command
}

/// Reads the operations on files below `dir`, in which the program was started, from the traces of [`recording`]. Each has
/// the time of its start, in seconds since 1970; they are in the order of these times.
///
/// # Panics
/// Panics if the output of `strace` has another form.
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

/// Decodes a string of hexadecimal escapes.
fn bytes(text: &str) -> Vec<u8> {
    let digits = text.trim_matches('"').split("\\x").skip(1);
    let byte = |pair: &str| u8::from_str_radix(pair.get(..2)?, 16).ok();
    digits.filter_map(byte).collect()
}

fn text(quoted: &str) -> String {
    String::from_utf8_lossy(&bytes(quoted)).into_owned()
}

/// Returns the number of a descriptor: `5` of `5</dir/name>`.
fn number(descriptor: &str) -> String {
    descriptor.split('<').next().unwrap_or_default().trim().to_owned()
}

struct Recording<'d> {
    dir: &'d Path,
    now: f64,
    ops: Vec<(f64, Op)>,
    /// Directories seen so far, by name.
    directories: BTreeSet<String>,
    /// Offset of each open file, by name and descriptor. The name is part of the key because processes use the same descriptor
    /// numbers.
    places: BTreeMap<(String, String), u64>,
}

impl Recording<'_> {
    fn did(&mut self, op: Op) {
        self.ops.push((self.now, op));
    }

    /// Returns the name below the recorded directory; `None` for other files.
    fn name(&self, path: &str) -> Option<String> {
        let name = match Path::new(path).strip_prefix(self.dir) {
            Ok(name) => name.to_str()?,
            Err(_) if path.starts_with('/') => return None,
            Err(_) => path,
        };
        Some(name.trim_start_matches("./").trim_end_matches('/').to_owned())
    }

    /// Returns the name of the file behind a descriptor `5</dir/name>`; `None` for files outside of the recorded
    /// directory.
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
        // A failed call has changed nothing.
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
            // Reserves space only: neither the length nor the contents change.
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
            // Open descriptors stay valid when the file is renamed.
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

/// The unsynced part of the operations that survives the power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// Everything survives, as after a kill without a power cut.
    All,
    /// Names survive, contents do not.
    Names,
    /// Contents survive, names do not.
    Contents,
    /// Only what was synced survives.
    Nothing,
    /// A part that is chosen by the seed survives.
    Some(u64),
}

/// A file or directory since its creation. The contents belong to the file, even if it is renamed.
#[derive(Clone, Default)]
struct File {
    is_directory: bool,
    /// Contents as of the last sync; `pending` are the operations after it.
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

/// Returns the directory part of a name.
fn parent(name: &str) -> &str {
    name.rsplit_once('/').map_or("", |(directory, _)| directory)
}

/// Files, with their names as programs see them (`names`) and as they are certainly on the disk.
#[derive(Default)]
struct Disk {
    files: Vec<File>,
    names: Names,
    certain: Names,
    /// Names after each change that is not certainly on the disk.
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
                // Syncing a directory makes only its own names durable.
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

/// Returns the files by name as a disk may have them after these operations. Directories that none of the operations creates
/// are taken to exist.
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
        // A file system with a journal preserves the order of changes to names, but may lose all changes after any point.
        Kept::Some(_) => match below(changes.len() + 1) {
            0 => certain,
            n => changes[n - 1].clone(),
        },
    };
    let mut contents = BTreeMap::new();
    for (name, file) in &found {
        // If the name of a directory is lost, its files are lost, too.
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

/// Returns the contents of a file that survive.
fn found_in(file: &File, kept: Kept, below: &mut impl FnMut(usize) -> usize) -> Vec<u8> {
    let mut contents = file.synced.clone();
    for op in &file.pending {
        match kept {
            Kept::All | Kept::Contents => apply(&mut contents, op),
            Kept::Names | Kept::Nothing => {}
            Kept::Some(_) => match (below(3), op) {
                (0, _) => {}
                // The file has its new length, but the end of the data was not written and reads as zeros.
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
