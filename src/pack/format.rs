//! Trailer of a pack, by which it is recognized.

use sha2::{Digest, Sha256};

/// Length of a trailer.
pub(crate) const TRAILER: u64 = 64;

/// Last bytes of a trailer.
pub(crate) const MAGIC: [u8; 8] = *b"MONOPACK";

/// Last bytes of a difference, after a trailer.
pub(crate) const DIFFERENCE_MAGIC: [u8; 8] = *b"MONODIFF";

/// Trailer: three numbers in little-endian order, the SHA-256 of the index, and eight fixed bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Trailer {
    pub index_offset: u64,
    pub index_length: u64,
    /// Zero without a signature.
    pub signature_length: u64,
    pub index_sum: [u8; 32],
}

impl Trailer {
    pub fn new(index_offset: u64, index: &[u8], signature_length: u64) -> Trailer {
        Trailer {
            index_offset,
            index_length: index.len() as u64,
            signature_length,
            index_sum: Sha256::digest(index).into(),
        }
    }

    pub fn to_bytes(self) -> [u8; TRAILER as usize] {
        let mut out = [0; TRAILER as usize];
        let parts = [
            &self.index_offset.to_le_bytes()[..],
            &self.index_length.to_le_bytes(),
            &self.signature_length.to_le_bytes(),
            &self.index_sum,
            &MAGIC,
        ];
        for (to, from) in out.iter_mut().zip(parts.concat()) {
            *to = from;
        }
        out
    }

    /// Parses a trailer; `None` if the bytes are not one.
    pub fn read(bytes: &[u8; TRAILER as usize]) -> Option<Trailer> {
        let (numbers, rest) = bytes.split_at(24);
        let (sum, magic) = rest.split_at(32);
        if magic != MAGIC {
            return None;
        }
        let number = |at: usize| numbers.get(at..at + 8)?.try_into().ok().map(u64::from_le_bytes);
        Some(Trailer {
            index_offset: number(0)?,
            index_length: number(8)?,
            signature_length: number(16)?,
            index_sum: sum.try_into().ok()?,
        })
    }

    pub fn signature_offset(&self) -> u64 {
        self.index_offset.saturating_add(self.index_length)
    }

    /// Returns the length that a file with this trailer must have; `None` if no file can have it.
    pub fn file_length(&self) -> Option<u64> {
        (self.index_offset.checked_add(self.index_length)?)
            .checked_add(self.signature_length)?
            .checked_add(TRAILER)
    }
}
