//! Writes an archive to a temporary file, then to its path. If a step fails, the previous archive remains, provided that the file at the
//! path can be replaced.

use std::fs::File;
use std::io::{self, BufWriter, Read, Seek, Write};
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use data_encoding::HEXLOWER;
use files::{Output, Policy};
use md5::{Digest, Md5};
use sha1::Sha1;
use sha2::{Sha256, Sha512};

use crate::error::ArchiveError;
use crate::select::Entry;
use crate::{tarball, zip};

/// Format of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Zip,
    TarGz,
}

/// A complete archive in an unnamed temporary file.
pub(crate) struct Archive(File);

/// The size and the checksums of a stored archive.
pub(crate) struct Written {
    pub size: i64,
    pub md5: String,
    pub sha1: String,
    pub sha256: String,
    pub base64sha256: String,
    pub sha512: String,
    pub base64sha512: String,
}

/// Writes an archive. `mode` is the value of `output_file_mode`.
pub(crate) fn archive(format: Format, entries: &[Entry], mode: Option<&str>) -> Result<Archive, ArchiveError> {
    // The file has no name, so that a killed process leaves no file behind.
    let mut file = tempfile::tempfile().map_err(ArchiveError::TemporaryFile)?;
    let out = BufWriter::new(&mut file);
    match format {
        Format::Zip => zip::write(out, entries, mode)?,
        Format::TarGz => tarball::write(out, entries, mode)?,
    }
    Ok(Archive(file))
}

impl Archive {
    /// Copies the archive to its path, and computes its checksums.
    pub fn store(mut self, path: &Path) -> io::Result<Written> {
        /// Other users can read the archive if the umask allows that. It can be created again, so it need not survive a power failure.
        const POLICY: Policy = Policy {
            durable: false,
            ..Policy::SHARED
        };
        self.0.rewind()?;
        let mut out = Output::create(path, POLICY)?;
        let (mut md5, mut sha1) = (Md5::new(), Sha1::new());
        let (mut sha256, mut sha512) = (Sha256::new(), Sha512::new());
        let mut size = 0i64;
        // All checksums are computed in one pass, since archives may be large.
        let mut buffer = vec![0; 1 << 16];
        loop {
            let n = match self.0.read(&mut buffer) {
                Ok(0) => break,
                Ok(n) => n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
                Err(e) => return Err(e),
            };
            let bytes = buffer.get(..n).unwrap_or_default();
            out.write_all(bytes)?;
            md5.update(bytes);
            sha1.update(bytes);
            sha256.update(bytes);
            sha512.update(bytes);
            size += n as i64;
        }
        out.commit()?;
        let (sha256, sha512) = (sha256.finalize(), sha512.finalize());
        Ok(Written {
            size,
            md5: HEXLOWER.encode(&md5.finalize()),
            sha1: HEXLOWER.encode(&sha1.finalize()),
            sha256: HEXLOWER.encode(&sha256),
            base64sha256: STANDARD.encode(sha256),
            sha512: HEXLOWER.encode(&sha512),
            base64sha512: STANDARD.encode(sha512),
        })
    }
}
