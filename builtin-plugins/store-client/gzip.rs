//! Gzip compression of states, for services that store them compressed.

use std::io::{Read as _, Result, Write as _};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

/// Compresses a state.
///
/// # Errors
/// Never for a state in memory.
pub fn compressed(state: &[u8]) -> Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(state)?;
    encoder.finish()
}

/// Decompresses a state.
///
/// # Errors
/// The bytes are not one complete gzip file.
pub fn decompressed(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut state = Vec::new();
    GzDecoder::new(bytes).read_to_end(&mut state)?;
    Ok(state)
}
