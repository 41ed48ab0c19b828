//! Copies of files and directories to another machine.

use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

use crate::sshd::Sshd;
use crate::{apply, object};
use support::{Workspace, monoform, ran};

/// Returns the content of a directory: the modes of directories, and the modes and hashes of files.
pub fn tree(dir: &Path) -> BTreeMap<PathBuf, String> {
    let mut found = BTreeMap::new();
    let mut open = vec![dir.to_owned()];
    while let Some(next) = open.pop() {
        for entry in next.read_dir().expect("a directory").flatten() {
            let path = entry.path();
            let metadata = path.symlink_metadata().expect("it is there");
            let mode = metadata.permissions().mode() & 0o7777;
            let what = if metadata.is_dir() {
                open.push(path.clone());
                format!("{mode:04o} directory")
            } else {
                let content = std::fs::read(&path).expect("a file");
                format!("{mode:04o} {:?} {}", metadata.file_type().is_symlink(), hash(&content))
            };
            found.insert(path.strip_prefix(dir).expect("below").to_owned(), what);
        }
    }
    found
}

fn hash(content: &[u8]) -> String {
    Sha256::digest(content)
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Makes a tree with files of each kind.
pub fn source(w: &Workspace) {
    w.write("src/plain", "text\n");
    w.write("src/a b/it's", "quoted\n");
    w.write("src/a b/empty", "");
    w.write("src/a b/deep/er/\u{fc}ml\u{e4}ut", "name\n");
    w.write("src/large", &"0123456789abcdef".repeat(20_000));
    w.write("elsewhere/file", "linked\n");
    std::fs::create_dir_all(w.dir().join("src/nothing")).expect("a directory");
    symlink("../elsewhere", w.dir().join("src/to_directory")).expect("a link");
    symlink("../elsewhere/file", w.dir().join("src/to_file")).expect("a link");
    let script = w.dir().join("src/script");
    std::fs::write(&script, "#!/bin/sh\n").expect("written");
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).expect("a mode");
}

/// Returns provisioners that copy texts, and the files and directories in `src`, in each way.
pub fn copies(to: &Path) -> String {
    let file = |arguments: &str| format!("provisioner \"file\" {{\n{arguments}\n}}\n");
    let to = to.display();
    [
        format!("content = \"text\\n\"\ndestination = \"{to}/content\""),
        format!("content = \"\"\ndestination = \"{to}/nothing\""),
        format!("source = \"src/large\"\ndestination = \"{to}/name with blanks\""),
        format!("source = \"src/script\"\ndestination = \"{to}/existing\""),
        format!("source = \"src\"\ndestination = \"{to}/inside\""),
        format!("source = \"src/\"\ndestination = \"{to}/contents\""),
        format!("source = \"src\"\ndestination = \"{to}/new\""),
        format!("source = \"src\"\ndestination = \"{to}/inside\""),
        format!("source = \"src/plain\"\ndestination = \"{to}/named/\""),
    ]
    .map(|arguments| file(&arguments))
    .concat()
}

/// Makes the directory for the copies.
pub fn target(w: &Workspace, name: &str) -> PathBuf {
    let to = w.dir().join(name);
    for dir in ["inside", "contents", "named"] {
        std::fs::create_dir_all(to.join(dir)).expect("a directory");
    }
    std::fs::write(to.join("existing"), "a longer text than the other one\n").expect("written");
    std::fs::set_permissions(to.join("existing"), std::fs::Permissions::from_mode(0o600)).expect("a mode");
    to
}

pub fn trees_over_sftp_and_scp() {
    let w = Workspace::new();
    source(&w);
    let mut found = Vec::new();
    for (name, server) in [
        ("sftp", Sshd::usual()),
        ("scp", Sshd::start("")),
        ("broken", Sshd::start("Subsystem sftp /nowhere/sftp-server")),
    ] {
        let to = target(&w, name);
        w.write("main.tf", &object(&format!("{}{}", server.by_key(), copies(&to))));
        drop(std::fs::remove_file(w.dir().join("terraform.tfstate")));
        apply(&w).ok();
        assert!(server.log().contains("sftp"), "{}", server.log());
        found.push(tree(&to));
    }
    let [sftp, scp, broken] = found.try_into().expect("three");
    assert_eq!(sftp, scp);
    assert_eq!(sftp, broken);
    let at = |path: &str| sftp.get(Path::new(path)).cloned().unwrap_or_default();
    let file = |mode: &str, text: &str| format!("{mode} false {}", hash(text.as_bytes()));
    assert_eq!(at("content"), file("0644", "text\n"));
    assert_eq!(at("nothing"), file("0644", ""));
    assert_eq!(at("existing"), file("0600", "#!/bin/sh\n"));
    assert_eq!(at("named/named"), file("0644", "text\n"));
    for root in ["inside/src", "contents", "new"] {
        assert_eq!(at(&format!("{root}/a b")), "0755 directory");
        assert_eq!(at(&format!("{root}/nothing")), "0755 directory");
        assert_eq!(at(&format!("{root}/a b/it's")), file("0644", "quoted\n"));
        assert_eq!(at(&format!("{root}/to_file")), file("0644", "linked\n"));
        assert_eq!(at(&format!("{root}/to_directory/file")), file("0644", "linked\n"));
        assert_eq!(at(&format!("{root}/script")), file("0644", "#!/bin/sh\n"));
        assert_eq!(
            at(&format!("{root}/a b/deep/er/\u{fc}ml\u{e4}ut")),
            file("0644", "name\n")
        );
    }
}

pub fn two_thousand_files() {
    let w = Workspace::new();
    for n in 0..2000 {
        w.write(&format!("many/{}/{n}", n % 40), &format!("file {n}\n"));
    }
    let server = Sshd::usual();
    let to = w.dir().join("copy");
    w.write(
        "main.tf",
        &object(&format!(
            "{}provisioner \"file\" {{\n  source = \"many\"\n  destination = \"{}\"\n}}\n",
            server.by_key(),
            to.display()
        )),
    );
    let began = Instant::now();
    apply(&w).ok();
    let took = began.elapsed();
    assert_eq!(tree(&to).len(), 2040);
    assert!(took < Duration::from_secs(20), "{took:?}");
}

/// Copies a file of `size` MiB. Returns the time, and the peak memory of the plugin in KiB.
pub fn large(size: u64, server: &Sshd) -> (Duration, u64) {
    let w = Workspace::new();
    let from = w.dir().join("large");
    let made = Command::new("sh")
        .args(["-c", &format!("head -c {size}M /dev/urandom > large")])
        .current_dir(w.dir())
        .status();
    assert!(made.expect("sh runs").success());
    let to = w.dir().join("copy");
    w.write(
        "main.tf",
        &object(&format!(
            "{}provisioner \"file\" {{\n  source = \"large\"\n  destination = \"{}\"\n}}\n",
            server.by_key(),
            to.display()
        )),
    );
    let began = Instant::now();
    let child = w
        .command(monoform())
        .args(["apply", "-no-color", "-auto-approve"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    let mut peak = 0;
    let watched = child.id();
    let done = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let flag = done.clone();
    let watcher = std::thread::spawn(move || {
        while !flag.load(std::sync::atomic::Ordering::SeqCst) {
            peak = peak.max(memory_of_plugins(watched));
            std::thread::sleep(Duration::from_millis(5));
        }
        peak
    });
    ran(child.wait_with_output().expect("it ends")).ok();
    let took = began.elapsed();
    done.store(true, std::sync::atomic::Ordering::SeqCst);
    let peak = watcher.join().expect("a number");
    let same = Command::new("cmp").arg(&from).arg(&to).status();
    assert!(same.expect("cmp runs").success(), "the copy is another one");
    (took, peak)
}

/// Returns the peak memory of the provisioner `file` among the children of a process.
fn memory_of_plugins(parent: u32) -> u64 {
    let entries = Path::new("/proc").read_dir().into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let status = std::fs::read_to_string(entry.path().join("status")).ok()?;
            let line = |name: &str| status.lines().find_map(|line| line.strip_prefix(name).map(str::trim));
            let command = std::fs::read(entry.path().join("cmdline")).ok()?;
            let is_ours =
                line("PPid:")? == parent.to_string() && command.windows(17).any(|w| w == b"provisioner\0file\0");
            let peak = line("VmHWM:")?.split(' ').next()?.parse().ok()?;
            is_ours.then_some(peak)
        })
        .max()
        .unwrap_or(0)
}

pub fn a_large_file_in_little_memory() {
    let server = Sshd::usual();
    let (_, small) = large(1, &server);
    let (took, memory) = large(64, &server);
    eprintln!("64 MiB over SFTP: {took:?}, {memory} KiB of memory at most ({small} KiB for 1 MiB)");
    assert!(small > 0 && memory < small + 20_000, "{small} and {memory} KiB");
    let (_, memory) = large(64, &Sshd::start(""));
    assert!(memory < small + 20_000, "{small} and {memory} KiB");
}

pub fn a_gigabyte() {
    for (name, server) in [("SFTP", Sshd::usual()), ("SCP", Sshd::start(""))] {
        let (took, memory) = large(1024, &server);
        eprintln!("1 GiB over {name}: {took:?}, {memory} KiB of memory at most");
        assert!(memory < 100_000);
    }
}

pub fn problems_are_reported() {
    for server in [Sshd::usual(), Sshd::start("")] {
        let w = Workspace::new();
        w.write("src/file", "text");
        std::fs::create_dir(w.dir().join("directory")).expect("a directory");
        let here = w.dir().display().to_string();
        let failing = |arguments: &str, texts: &[&str]| {
            let connection = server.by_key();
            w.write(
                "main.tf",
                &object(&format!("{connection}provisioner \"file\" {{\n{arguments}\n}}\n")),
            );
            apply(&w).fails_with(texts);
        };
        failing(
            &format!("content = \"x\"\ndestination = \"{here}/directory\""),
            &["file provisioner error", "Upload failed: ", "Is a directory"],
        );
        failing(
            "content = \"x\"\ndestination = \"/proc/1/nothing/x\"",
            &["Upload failed: ", "/proc/1/nothing", "No such file or directory"],
        );
        failing(
            &format!("source = \"absent\"\ndestination = \"{here}/x\""),
            &["stat absent: no such file or directory"],
        );
        failing(
            &format!("source = \"/dev/null\"\ndestination = \"{here}/x\""),
            &["neither a file nor a directory"],
        );
    }
    let w = Workspace::with(&[(
        "main.tf",
        &object("connection {\n  host = \"h\"\n}\nprovisioner \"file\" {\n  destination = \"x\"\n}\n"),
    )]);
    w.run(&["validate", "-no-color"])
        .fails_with(&["Must provide one of 'source' or 'content'"]);
    w.write(
        "main.tf",
        &object("provisioner \"file\" {\n  content = \"\"\n  destination = \"x\"\n}\n"),
    );
    apply(&w).fails_with(&["Missing connection configuration for provisioner."]);
}
