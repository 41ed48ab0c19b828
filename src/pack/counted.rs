//! Copying with a checksum.

use std::io::{self, Read, Write};
use std::path::Path;

use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};

use crate::error::{PackError, read_error, write_error};

/// Size of the buffer for copying, in bytes.
const BUFFER: usize = 1 << 20;

/// Writer that counts its bytes, and computes the checksum of those since [`Counted::begin`].
pub(crate) struct Counted<W> {
    out: W,
    pub offset: u64,
    sum: Sha256,
}

impl<W> Counted<W> {
    pub fn new(out: W) -> Counted<W> {
        Counted {
            out,
            offset: 0,
            sum: Sha256::new(),
        }
    }

    /// Starts a new checksum.
    pub fn begin(&mut self) {
        self.sum = Sha256::new();
    }

    /// Returns the SHA-256 of the bytes since [`Counted::begin`], in hexadecimal digits.
    pub fn end(&mut self) -> String {
        HEXLOWER.encode(&self.sum.finalize_reset())
    }
}

impl<W: Write> Write for Counted<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.out.write(bytes)?;
        // A writer may accept fewer bytes than requested, and only those are hashed.
        self.sum.update(bytes.get(..count).unwrap_or_default());
        self.offset += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Copies a reader to its end, and returns the number of bytes. The paths are for errors.
pub(crate) fn copy(mut from: impl Read, source: &Path, to: &mut impl Write, target: &Path) -> Result<u64, PackError> {
    let mut buffer = vec![0; BUFFER];
    let mut copied = 0;
    loop {
        // Errors of reading and of writing name different files, which `io::copy` does not distinguish.
        let count = from.read(&mut buffer).map_err(read_error(source))?;
        let Some(part) = buffer.get(..count).filter(|part| !part.is_empty()) else {
            return Ok(copied);
        };
        to.write_all(part).map_err(write_error(target))?;
        copied += count as u64;
    }
}

/// Returns the SHA-256 of all bytes of a reader, in hexadecimal digits, and their number.
pub(crate) fn digest(mut from: impl Read) -> io::Result<(String, u64)> {
    let mut sum = Counted::new(io::sink());
    let mut buffer = vec![0; BUFFER];
    loop {
        let count = from.read(&mut buffer)?;
        match buffer.get(..count).filter(|part| !part.is_empty()) {
            Some(part) => sum.write_all(part)?,
            None => return Ok((sum.end(), sum.offset)),
        }
    }
}
