//! Checksum of a directory: the SHA-1 of a tar archive, which covers names, contents, modes, owners and modification times.
//!
//! If the USTAR format can hold an entry, the hashed bytes are those of the official provider, so objects of the official provider are
//! recognized. For other entries (long names, links, large files), the bytes differ. An object of the official provider with such an entry
//! counts as changed.

use std::fs::{self, Metadata};
use std::io::{self, Read};
use std::path::Path;

use data_encoding::HEXLOWER;
use sha1::{Digest, Sha1};
use system::files::{MetadataExt as _, bytes_of};

const BLOCK: usize = 512;

/// Returns the SHA-1 of bytes in hexadecimal.
pub(crate) fn checksum_of(bytes: &[u8]) -> String {
    text(Sha1::new_with_prefix(bytes))
}

fn text(hash: Sha1) -> String {
    HEXLOWER.encode(&hash.finalize())
}

/// Returns the checksum of a directory with everything below it.
pub(crate) fn checksum(dir: &Path) -> io::Result<String> {
    let owners = Owners {
        users: fs::read_to_string("/etc/passwd").unwrap_or_default(),
        groups: fs::read_to_string("/etc/group").unwrap_or_default(),
    };
    let mut hash = Sha1::new();
    entry(dir, ".", &owners, &mut hash)?;
    Ok(text(hash))
}

fn entry(path: &Path, name: &str, owners: &Owners, hash: &mut Sha1) -> io::Result<()> {
    let metadata = fs::symlink_metadata(path)?;
    hash.update(header(name.as_bytes(), &metadata, owners));
    if metadata.is_dir() {
        let mut entries = fs::read_dir(path)?
            .map(|e| e.map(|e| e.path()))
            .collect::<io::Result<Vec<_>>>()?;
        // Sorted, because the checksum must not depend on the order in which the file system lists a directory.
        entries.sort_by(|a, b| bytes_of(a.as_os_str()).cmp(bytes_of(b.as_os_str())));
        for path in entries {
            let own = path
                .file_name()
                .map(|n| n.to_string_lossy().into_owned())
                .unwrap_or_default();
            let below = if name == "." { own } else { format!("{name}/{own}") };
            entry(&path, &below, owners, hash)?;
        }
        return Ok(());
    }
    if metadata.is_symlink() {
        hash.update(bytes_of(fs::read_link(path)?.as_os_str()));
    }
    let mut file = fs::File::open(path)?;
    let mut buffer = vec![0; 1 << 16];
    let mut total = 0;
    loop {
        let size = file.read(&mut buffer)?;
        let Some(part) = buffer.get(..size).filter(|part| !part.is_empty()) else {
            break;
        };
        hash.update(part);
        total += size;
    }
    // A tar archive fills the last block of each file with zeros.
    hash.update(vec![0; total.next_multiple_of(BLOCK) - total]);
    Ok(())
}

/// Names of users and groups: the contents of `/etc/passwd` and `/etc/group`.
struct Owners {
    users: String,
    groups: String,
}

/// Returns the name of an owner: the first field of the line that has the ID in its third field; empty if there is none.
fn named(file: &str, id: u32) -> &str {
    let id = id.to_string();
    let line = file.lines().find(|line| line.split(':').nth(2) == Some(&id));
    line.and_then(|line| line.split(':').next()).unwrap_or_default()
}

/// Encodes the header of an entry.
fn header(name: &[u8], metadata: &Metadata, owners: &Owners) -> Vec<u8> {
    let mut out = vec![0; BLOCK];
    let mut fits = true;
    let mut put = |at: usize, size: usize, bytes: &[u8]| match out.get_mut(at..at + bytes.len()) {
        Some(field) if bytes.len() <= size => field.copy_from_slice(bytes),
        _ => fits = false,
    };
    let octal = |number: u64, digits: usize| format!("{number:0digits$o}\0").into_bytes();
    let (short, prefix) = split(name);
    put(0, 100, short);
    put(345, 155, prefix);
    // Permissions, including the setuid, setgid and sticky bits.
    put(100, 8, &octal(u64::from(metadata.mode() & 0o7777), 7));
    put(108, 8, &octal(u64::from(metadata.uid()), 7));
    put(116, 8, &octal(u64::from(metadata.gid()), 7));
    put(124, 12, &octal(if metadata.is_file() { metadata.len() } else { 0 }, 11));
    // As in Go's library, the time is rounded to seconds.
    let seconds = metadata.mtime() + i64::from(metadata.mtime_nsec() >= 500_000_000);
    put(136, 12, &octal(u64::try_from(seconds).unwrap_or_default(), 11));
    let kind: &[u8] = match metadata.file_type() {
        t if t.is_dir() => b"5",
        t if t.is_symlink() => b"2",
        _ => b"0",
    };
    put(156, 1, kind);
    put(257, 8, b"ustar\x0000");
    put(265, 32, named(&owners.users, metadata.uid()).as_bytes());
    put(297, 32, named(&owners.groups, metadata.gid()).as_bytes());
    put(329, 8, &octal(0, 7));
    put(337, 8, &octal(0, 7));
    // The checksum is computed with spaces in the field for the checksum.
    put(148, 8, b"        ");
    let sum: u64 = out.iter().copied().map(u64::from).sum();
    if let Some(field) = out.get_mut(148..156) {
        field.copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    }
    if !fits || !name.is_ascii() {
        out.extend_from_slice(name);
    }
    out
}

/// Splits a name that is too long for the name field. Returns the end for that field, and the beginning for the prefix field; the whole
/// name and an empty prefix if no split fits.
fn split(name: &[u8]) -> (&[u8], &[u8]) {
    if name.len() <= 100 {
        return (name, b"");
    }
    let limit = name.len().min(156);
    let slash = name.get(..limit).and_then(|head| head.iter().rposition(|b| *b == b'/'));
    match slash.and_then(|at| Some((name.get(at + 1..)?, name.get(..at)?))) {
        Some((last, first)) if last.len() <= 100 && !last.is_empty() => (last, first),
        _ => (name, b""),
    }
}
