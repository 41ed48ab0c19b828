//! Archives of type `tar.gz`.

use std::io::{self, Read, Write};

use deflate::Gzip;
use tar::{EntryType, Header};

use crate::content;
use crate::error::ArchiveError;
use crate::select::Entry;

const BLOCK: u64 = 512;
const NAME: usize = 100;
const PREFIX: usize = 155;
/// Largest size that the octal field of a header can hold.
const LARGEST: u64 = (1 << 33) - 1;

pub(crate) fn write(out: impl Write, entries: &[Entry], mode: Option<&str>) -> Result<(), ArchiveError> {
    let mut out = Gzip::new(out);
    for entry in entries {
        let opened = content::open(entry)?;
        // Entries from texts have mode 0, as in the official provider.
        let mode = match mode {
            Some(mode) => content::mode(mode)?,
            None => opened.mode.unwrap_or(0),
        };
        let failed = |source| ArchiveError::Add {
            name: String::from_utf8_lossy(&entry.name).into_owned(),
            source,
        };
        put(&mut out, &entry.name, mode, opened.size, opened.content).map_err(failed)?;
    }
    let finish = || -> io::Result<()> {
        // Two blocks of zeros end an archive.
        out.write_all(&[0; 2 * BLOCK as usize])?;
        out.finish()?.flush()
    };
    finish().map_err(ArchiveError::Finish)
}

fn put(out: &mut impl Write, name: &[u8], mode: u32, size: u64, content: impl Read) -> io::Result<()> {
    let mut header = header(mode, size);
    header.set_device_major(0)?;
    header.set_device_minor(0)?;
    let mut records = Vec::new();
    match split(name) {
        Some((prefix, rest)) => {
            if let Some(fields) = header.as_ustar_mut() {
                copy(&mut fields.prefix, prefix);
                copy(&mut fields.name, rest);
            }
        }
        None => {
            record(&mut records, "path", name);
            if let Some(fields) = header.as_ustar_mut() {
                copy(&mut fields.name, &ascii(name));
            }
        }
    }
    // As in Go's library, a size with too many octal digits for its field is written in an extended header record, and the field is zero.
    if size > LARGEST {
        record(&mut records, "size", size.to_string().as_bytes());
        header.set_size(0);
    }
    if !records.is_empty() {
        let mut before = self::header(0, records.len() as u64);
        before.set_entry_type(EntryType::XHeader);
        if let Some(fields) = before.as_ustar_mut() {
            copy(&mut fields.name, &beside(name));
        }
        close(&mut before);
        out.write_all(before.as_bytes())?;
        padded(out, records.len() as u64, &records[..])?;
    }
    close(&mut header);
    out.write_all(header.as_bytes())?;
    padded(out, size, content)
}

/// Returns a header without owners and times, so that the same files give the same bytes for every user and at any time.
fn header(mode: u32, size: u64) -> Header {
    let mut header = Header::new_ustar();
    header.set_entry_type(EntryType::Regular);
    header.set_mode(mode);
    header.set_uid(0);
    header.set_gid(0);
    header.set_mtime(0);
    header.set_size(size);
    header
}

/// Writes the checksum of a header as six digits, a zero byte and a space. Readers also accept other forms, but users compare archives byte
/// by byte.
fn close(header: &mut Header) {
    const FIELD: std::ops::Range<usize> = 148..156;
    let bytes = header.as_mut_bytes();
    bytes[FIELD].fill(b' ');
    let sum: u32 = bytes.iter().map(|b| u32::from(*b)).sum();
    copy(&mut bytes[FIELD], format!("{sum:06o}\0 ").as_bytes());
}

/// Returns the name of a file's extended header, truncated to the length of its field. The name is in a directory beside the file.
fn beside(name: &[u8]) -> Vec<u8> {
    let split = name.iter().rposition(|b| *b == b'/').map_or(0, |i| i + 1);
    let (directory, file) = name.split_at(split);
    // Go's library uses this name, and users compare archives byte by byte.
    let mut whole = ascii(&[directory, b"PaxHeaders.0/", file].concat());
    whole.truncate(NAME);
    while whole.last() == Some(&b'/') {
        whole.pop();
    }
    whole
}

/// Returns the ASCII characters of a name, for a header field.
fn ascii(name: &[u8]) -> Vec<u8> {
    name.iter().copied().filter(u8::is_ascii).collect()
}

/// Copies the content, padded to whole blocks.
fn padded(out: &mut impl Write, size: u64, content: impl Read) -> io::Result<()> {
    // The header already has the size, so bytes of a file that has grown since must not overwrite the next entry.
    let copied = io::copy(&mut content.take(size), out)?;
    if copied != size {
        return Err(io::Error::other("the file became shorter while it was read"));
    }
    let rest = (BLOCK - size % BLOCK) % BLOCK;
    io::copy(&mut io::repeat(0).take(rest), out).map(|_| ())
}

/// Splits a name into the fields for prefix and name; `None` if it does not fit.
fn split(name: &[u8]) -> Option<(&[u8], &[u8])> {
    // As in Go's library, a name that is not ASCII is put into an extended header even if it is short.
    if !name.is_ascii() {
        return None;
    }
    if name.len() <= NAME {
        return Some((b"", name));
    }
    // The slash between prefix and name is in neither field.
    let longest = name.len().min(PREFIX + 1);
    let slash = name
        .get(..longest)?
        .iter()
        .rposition(|b| *b == b'/')
        .filter(|i| *i > 0)?;
    let (prefix, rest) = (name.get(..slash)?, name.get(slash + 1..)?);
    (!rest.is_empty() && rest.len() <= NAME).then_some((prefix, rest))
}

fn copy(field: &mut [u8], bytes: &[u8]) {
    for (to, from) in field.iter_mut().zip(bytes) {
        *to = *from;
    }
}

/// Appends a record to an extended header: its length (including the digits of the length), a name and a value.
fn record(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    let rest = name.len() + value.len() + 3;
    let mut length = rest;
    while rest + length.to_string().len() != length {
        length = rest + length.to_string().len();
    }
    out.extend(format!("{length} {name}=").into_bytes());
    out.extend_from_slice(value);
    out.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_do_not_fit_go_into_an_extended_header() {
        let long = format!("{}/{}", "d".repeat(120), "f".repeat(90));
        let too_long = "x".repeat(300);
        let mut out = Vec::new();
        let names = ["a", &long, &too_long, "é", "/abs/../up"];
        for name in names {
            put(&mut out, name.as_bytes(), 0o644, 3, &b"abc"[..]).unwrap();
        }
        out.extend([0; 1024]);
        let mut archive = tar::Archive::new(&out[..]);
        let read: Vec<_> = archive
            .entries()
            .unwrap()
            .map(|entry| String::from_utf8(entry.unwrap().path_bytes().into_owned()).unwrap())
            .collect();
        assert_eq!(read, names);
    }

    #[test]
    fn a_record_counts_itself() {
        for n in [1, 88, 89, 90, 91, 986, 987, 988, 989, 990] {
            let mut out = Vec::new();
            record(&mut out, "path", &vec![b'x'; n]);
            assert!(out.starts_with(format!("{} path=", out.len()).as_bytes()), "{n}");
        }
    }

    #[test]
    fn a_file_that_shrinks_is_an_error() {
        assert!(put(&mut Vec::new(), b"a", 0, 5, &b"abc"[..]).is_err());
    }
}
