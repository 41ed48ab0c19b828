//! Header of an ELF executable, and the line with its checksum after it.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

/// Prefix of the line with an executable's checksum.
pub(crate) const SEAL_PREFIX: &[u8] = b"\nmonoform-sha256 ";

/// Length of the line with the checksum, in bytes: the prefix, 64 hexadecimal digits, and the end of the line.
pub(crate) const SEAL: u64 = SEAL_PREFIX.len() as u64 + 64 + 1;

/// Reads a little-endian number of `len` bytes at the offset `at`; zero if there are too few bytes.
pub(crate) fn number(bytes: &[u8], at: usize, len: usize) -> u64 {
    let bytes = bytes.get(at..at + len).unwrap_or_default();
    bytes.iter().rev().fold(0, |sum, byte| (sum << 8) | u64::from(*byte))
}

/// Reads the first bytes of a file, fewer if it is shorter than the buffer.
pub(crate) fn head_of<'b>(file: &mut File, buffer: &'b mut [u8]) -> io::Result<&'b [u8]> {
    file.seek(SeekFrom::Start(0))?;
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..).filter(|rest| !rest.is_empty()) {
        match file.read(rest)? {
            0 => break,
            n => filled += n,
        }
    }
    Ok(buffer.get(..filled).unwrap_or_default())
}

/// Returns the length of an ELF executable, including the line with its checksum if it has one; `None` for other files.
/// Bytes after that belong to a pack.
pub(crate) fn sealed_length(file: &mut File) -> io::Result<Option<u64>> {
    let Some(own) = own_length(file)? else { return Ok(None) };
    let mut seal = Vec::new();
    file.seek(SeekFrom::Start(own))?;
    file.take(SEAL).read_to_end(&mut seal)?;
    let sealed = seal.len() as u64 == SEAL && seal.starts_with(SEAL_PREFIX);
    Ok(Some(if sealed { own + SEAL } else { own }))
}

/// Table in an ELF file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Table {
    pub(crate) offset: u64,
    /// Size of an entry.
    pub(crate) entry: u64,
    /// Number of entries.
    pub(crate) count: u64,
}

/// Tables of an ELF file of 32 or 64 bits, in little-endian order.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tables {
    pub(crate) segments: Table,
    pub(crate) sections: Table,
}

impl Tables {
    /// Reads the positions of the segment and section tables from an ELF header; `None` if the bytes are not the header
    /// of a little-endian ELF file.
    pub(crate) fn of(head: &[u8]) -> Option<Tables> {
        // The ELF specification has these offsets: those of both tables, and of the size and number of their entries.
        let (size, width, segments, sections, entries) = match head.get(..6)? {
            b"\x7fELF\x01\x01" => (52, 4, 28, 32, 42),
            b"\x7fELF\x02\x01" => (64, 8, 32, 40, 54),
            _ => return None,
        };
        let table = |at, entries| Table {
            offset: number(head, at, width),
            entry: number(head, entries, 2),
            count: number(head, entries + 2, 2),
        };
        (head.len() >= size).then(|| Tables {
            segments: table(segments, entries),
            sections: table(sections, entries + 4),
        })
    }
}

/// Returns the length of an ELF executable, which ends with its section table; `None` for other files, and for
/// executables without that table.
pub(crate) fn own_length(file: &mut File) -> io::Result<Option<u64>> {
    let mut head = [0; 64];
    let tables = Tables::of(head_of(file, &mut head)?);
    // The section table is the end of the executable, because linkers write it last.
    let sections = tables.map(|tables| tables.sections).filter(|table| table.offset != 0);
    Ok(sections.map(|table| table.offset.saturating_add(table.entry.saturating_mul(table.count))))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the header of an ELF file with numbers at these offsets, each with a size in bytes.
    fn header(class: u8, numbers: &[(usize, usize, u64)]) -> Vec<u8> {
        let mut head = vec![0; 64];
        head[..6].copy_from_slice(&[0x7f, b'E', b'L', b'F', class, 1]);
        for &(at, length, value) in numbers {
            head[at..at + length].copy_from_slice(&value.to_le_bytes()[..length]);
        }
        head
    }

    #[test]
    fn executables_of_32_and_64_bits_end_behind_their_table_of_sections() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("executable");
        for head in [
            header(
                1,
                &[
                    (28, 4, 52),
                    (32, 4, 4000),
                    (42, 2, 32),
                    (44, 2, 9),
                    (46, 2, 40),
                    (48, 2, 30),
                ],
            ),
            header(
                2,
                &[
                    (32, 8, 64),
                    (40, 8, 4000),
                    (54, 2, 56),
                    (56, 2, 9),
                    (58, 2, 40),
                    (60, 2, 30),
                ],
            ),
        ] {
            let tables = Tables::of(&head).unwrap();
            assert_eq!(tables.segments.count, 9);
            std::fs::write(&path, head).unwrap();
            assert_eq!(own_length(&mut File::open(&path).unwrap()).unwrap(), Some(5200));
        }
        assert!(Tables::of(&header(3, &[])).is_none());
        assert!(Tables::of(&header(2, &[])[..60]).is_none());
    }
}
