//! Archives of type `zip`.
//!
//! This module replaces a library because users compare checksums: the value of every field, including invalid dates, is part of the
//! provider's behavior.

use std::io::{self, Read, Write};

use deflate::{Deflate, Level};
use flate2::Crc;

use crate::content;
use crate::error::ArchiveError;
use crate::select::Entry;

/// Flag: the checksum and the sizes follow the data, because they are not known before.
const SIZES_FOLLOW: u16 = 1 << 3;
/// Flag: the name is in UTF-8.
const UTF8: u16 = 1 << 11;
const DEFLATE: u16 = 8;
const VERSION_20: u16 = 20;
const VERSION_45: u16 = 45;
const UNIX: u16 = 3 << 8;
/// The first of January 2049, the date of all files.
const FILE_DATE: u16 = 0x8a21;
const REGULAR_FILE: u32 = 0o100_000;
const READ_ONLY: u32 = 1;
/// Value of a 32-bit field if the real value is in the zip64 record.
const LARGE: u32 = u32::MAX;

/// Entry of the central directory.
struct Listed {
    name: Vec<u8>,
    flags: u16,
    date: u16,
    creator: u16,
    attributes: u32,
    crc: u32,
    compressed: u64,
    size: u64,
    offset: u64,
}

pub(crate) fn write(out: impl Write, entries: &[Entry], mode: Option<&str>) -> Result<(), ArchiveError> {
    let mut out = Counter { out, count: 0 };
    let mut listed = Vec::with_capacity(entries.len());
    for entry in entries {
        let opened = content::open(entry)?;
        let mut new = Listed {
            flags: SIZES_FOLLOW | if needs_utf8(&entry.name) { UTF8 } else { 0 },
            name: entry.name.clone(),
            date: 0,
            creator: 0,
            attributes: 0,
            crc: 0,
            compressed: 0,
            size: 0,
            offset: out.count,
        };
        if let Some(own) = opened.mode {
            // As in the official provider, entries from texts have no mode, no creator and no date.
            let mode = mode.map(content::mode).transpose()?.map_or(own, |mode| mode & 0o777);
            let read_only = if mode & 0o200 == 0 { READ_ONLY } else { 0 };
            new.attributes = (REGULAR_FILE | mode) << 16 | read_only;
            new.creator = UNIX;
            new.date = FILE_DATE;
        }
        let failed = |source| ArchiveError::Add {
            name: String::from_utf8_lossy(&entry.name).into_owned(),
            source,
        };
        put(&mut out, &mut new, opened.content).map_err(failed)?;
        listed.push(new);
    }
    finish(&mut out, &listed).map_err(ArchiveError::Finish)
}

/// Returns true if the name needs the UTF-8 flag. Without the flag, readers assume code page 437.
fn needs_utf8(name: &[u8]) -> bool {
    std::str::from_utf8(name).is_ok() && name.iter().any(|b| !(0x20..0x7e).contains(b) || *b == b'\\')
}

fn put(out: &mut Counter<impl Write>, entry: &mut Listed, mut content: impl Read) -> io::Result<()> {
    let mut header = Fields::new(0x0403_4b50);
    header.u16s(&[VERSION_20, entry.flags, DEFLATE, 0, entry.date]);
    // The checksum and the sizes are known only after the data, so they follow it.
    header.u32s(&[0, 0, 0]);
    header.u16s(&[name_length(entry)?, 0]);
    header.0.extend_from_slice(&entry.name);
    out.write_all(&header.0)?;

    let start = out.count;
    let mut encoder = Deflate::new(&mut *out, Level::Five);
    let mut crc = Crc::new();
    let mut buffer = vec![0; 1 << 16];
    loop {
        let n = match content.read(&mut buffer) {
            Ok(0) => break,
            Ok(n) => n,
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => return Err(e),
        };
        let bytes = buffer.get(..n).unwrap_or_default();
        crc.update(bytes);
        encoder.write_all(bytes)?;
        entry.size += n as u64;
    }
    encoder.finish()?;
    entry.compressed = out.count - start;
    entry.crc = crc.sum();

    let mut sizes = Fields::new(0x0807_4b50);
    sizes.u32s(&[entry.crc]);
    if entry.is_large() {
        sizes.u64s(&[entry.compressed, entry.size]);
    } else {
        sizes.u32s(&[short(entry.compressed), short(entry.size)]);
    }
    out.write_all(&sizes.0)
}

fn name_length(entry: &Listed) -> io::Result<u16> {
    u16::try_from(entry.name.len()).map_err(|_| io::Error::other("the name is longer than 65535 bytes"))
}

impl Listed {
    fn is_large(&self) -> bool {
        self.compressed >= u64::from(LARGE) || self.size >= u64::from(LARGE)
    }
}

/// Returns the value if it fits in 32 bits, otherwise the marker for zip64.
fn short(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(LARGE)
}

/// Writes the central directory and the end record.
fn finish(out: &mut Counter<impl Write>, listed: &[Listed]) -> io::Result<()> {
    let start = out.count;
    for entry in listed {
        let large = entry.is_large() || entry.offset >= u64::from(LARGE);
        let version = if large { VERSION_45 } else { VERSION_20 };
        let mut record = Fields::new(0x0201_4b50);
        record.u16s(&[entry.creator | VERSION_20, version, entry.flags, DEFLATE, 0, entry.date]);
        if large {
            // If one value does not fit, all values are in the zip64 record.
            record.u32s(&[entry.crc, LARGE, LARGE]);
        } else {
            record.u32s(&[entry.crc, short(entry.compressed), short(entry.size)]);
        }
        let extra_length = if large { 28 } else { 0 };
        record.u16s(&[name_length(entry)?, extra_length, 0, 0, 0]);
        record.u32s(&[entry.attributes, if large { LARGE } else { short(entry.offset) }]);
        record.0.extend_from_slice(&entry.name);
        if large {
            record.u16s(&[1, 24]);
            record.u64s(&[entry.size, entry.compressed, entry.offset]);
        }
        out.write_all(&record.0)?;
    }
    let (size, count) = (out.count - start, listed.len() as u64);
    if count >= 0xffff || size >= u64::from(LARGE) || start >= u64::from(LARGE) {
        let end = out.count;
        let mut record = Fields::new(0x0606_4b50);
        record.u64s(&[44]);
        record.u16s(&[VERSION_45, VERSION_45]);
        record.u32s(&[0, 0]);
        record.u64s(&[count, count, size, start]);
        let mut locator = Fields::new(0x0706_4b50);
        locator.u32s(&[0]);
        locator.u64s(&[end]);
        locator.u32s(&[1]);
        out.write_all(&record.0)?;
        out.write_all(&locator.0)?;
    }
    let mut record = Fields::new(0x0605_4b50);
    let count = u16::try_from(count).unwrap_or(u16::MAX);
    record.u16s(&[0, 0, count, count]);
    record.u32s(&[short(size), short(start)]);
    record.u16s(&[0]);
    out.write_all(&record.0)?;
    out.flush()
}

/// Bytes of a record: a signature, followed by little-endian fields.
struct Fields(Vec<u8>);

impl Fields {
    fn new(signature: u32) -> Fields {
        Fields(signature.to_le_bytes().to_vec())
    }
    fn u16s(&mut self, values: &[u16]) {
        self.0.extend(values.iter().flat_map(|v| v.to_le_bytes()));
    }
    fn u32s(&mut self, values: &[u32]) {
        self.0.extend(values.iter().flat_map(|v| v.to_le_bytes()));
    }
    fn u64s(&mut self, values: &[u64]) {
        self.0.extend(values.iter().flat_map(|v| v.to_le_bytes()));
    }
}

/// Writer that counts bytes, for the offsets of entries.
struct Counter<W> {
    out: W,
    count: u64,
}

impl<W: Write> Write for Counter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.out.write(bytes)?;
        self.count += n as u64;
        Ok(n)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}
