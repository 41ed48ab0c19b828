//! Items of SSH's messages (RFC 4251, section 5).

use crate::Error;

#[derive(Debug, Default)]
pub struct Writer(pub Vec<u8>);

impl Writer {
    /// Writes a number of four bytes.
    pub fn u32(&mut self, number: u32) -> &mut Writer {
        self.0.extend(number.to_be_bytes());
        self
    }

    /// Writes bytes after their length.
    pub fn string(&mut self, bytes: &[u8]) -> &mut Writer {
        // No part of a key has the four billion bytes that the length can express.
        self.u32(bytes.len() as u32);
        self.0.extend(bytes);
        self
    }

    /// Writes a positive number of any size. A zero byte precedes a first byte that would make it negative.
    pub fn number(&mut self, bytes: &[u8]) -> &mut Writer {
        let mut bytes = without_leading_zeros(bytes).to_vec();
        if bytes.first().is_some_and(|b| *b >= 0x80) {
            bytes.insert(0, 0);
        }
        self.string(&bytes)
    }
}

/// Removes the leading zeros of a big-endian number.
#[must_use]
pub fn without_leading_zeros(bytes: &[u8]) -> &[u8] {
    let zeros = bytes.iter().take_while(|b| **b == 0).count();
    &bytes[zeros..]
}

pub(crate) struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], Error> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(Error::Truncated)?;
        self.0 = rest;
        Ok(taken)
    }

    pub fn u32(&mut self) -> Result<u32, Error> {
        let bytes = self.take(4)?;
        Ok(bytes.iter().fold(0, |number, byte| number << 8 | u32::from(*byte)))
    }

    pub fn string(&mut self) -> Result<&'a [u8], Error> {
        let length = self.u32()? as usize;
        self.take(length)
    }

    /// Reads a positive number without its leading zeros.
    pub fn number(&mut self) -> Result<Vec<u8>, Error> {
        let bytes = self.string()?;
        if bytes.first().is_some_and(|b| *b >= 0x80) {
            return Err(Error::NegativeNumber);
        }
        Ok(without_leading_zeros(bytes).to_vec())
    }
}
