//! The header of an ELF executable, and the line with its checksum behind it.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

/// Prefix of the line with an executable's checksum.
pub(crate) const SEAL_PREFIX: &[u8] = b"\nmonoform-sha256 ";

/// Length of that line: the prefix, 64 hexadecimal digits, and the end of the line.
pub(crate) const SEAL: u64 = SEAL_PREFIX.len() as u64 + 64 + 1;

/// Returns a number of `len` bytes in little-endian order.
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

/// Returns the length of an ELF executable with its own checksum, if it has one; `None` for other files. Bytes behind that are
/// those of a pack.
pub(crate) fn sealed_length(file: &mut File) -> io::Result<Option<u64>> {
    let Some(own) = own_length(file)? else { return Ok(None) };
    let mut seal = Vec::new();
    file.seek(SeekFrom::Start(own))?;
    file.take(SEAL).read_to_end(&mut seal)?;
    let sealed = seal.len() as u64 == SEAL && seal.starts_with(SEAL_PREFIX);
    Ok(Some(if sealed { own + SEAL } else { own }))
}

/// Returns the length of an ELF executable by its header; `None` for other files.
pub(crate) fn own_length(file: &mut File) -> io::Result<Option<u64>> {
    let mut head = [0; 64];
    let head = head_of(file, &mut head)?;
    if !head.starts_with(b"\x7fELF\x02\x01") || head.len() < 64 {
        return Ok(None);
    }
    // In a 64-bit ELF header: the offset of the section table, and the size and number of its entries. Linkers write this table
    // last.
    let table = number(head, 40, 8);
    Ok((table != 0).then(|| table.saturating_add(number(head, 58, 2).saturating_mul(number(head, 60, 2)))))
}
