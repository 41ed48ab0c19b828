//! Writing an archive: first to a temporary file, then to its path, so that a failure leaves the previous archive.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use data_encoding::HEXLOWER;
use md5::{Digest, Md5};
use sha1::Sha1;
use sha2::{Sha256, Sha512};

use crate::error::ArchiveError;
use crate::select::{Content, Entry};
use crate::{tarball, zip};

/// What kind of archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Zip,
    TarGz,
}

/// An archive that has no name yet.
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

/// Makes the archive. The mode is that of `output_file_mode`.
pub(crate) fn archive(format: Format, entries: &[Entry], mode: Option<&str>) -> Result<Archive, ArchiveError> {
    let mut file = tempfile::tempfile().map_err(ArchiveError::TemporaryFile)?;
    let out = BufWriter::new(&mut file);
    match format {
        Format::Zip => zip::write(out, entries, mode)?,
        Format::TarGz => tarball::write(out, entries, mode)?,
    }
    Ok(Archive(file))
}

impl Archive {
    /// Copies the archive to its place, and takes its checksums.
    pub fn store(mut self, path: &Path) -> io::Result<Written> {
        self.0.rewind()?;
        let mut out = File::create(path)?;
        let (mut md5, mut sha1) = (Md5::new(), Sha1::new());
        let (mut sha256, mut sha512) = (Sha256::new(), Sha512::new());
        let mut size = 0i64;
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

/// The content of an entry, opened; its size and mode, if it is a file.
pub(crate) struct Opened<'a> {
    pub content: Box<dyn Read + 'a>,
    pub size: u64,
    pub mode: Option<u32>,
}

pub(crate) fn open(entry: &Entry) -> Result<Opened<'_>, ArchiveError> {
    match &entry.content {
        Content::Text(text) => Ok(Opened {
            content: Box::new(text.as_bytes()),
            size: text.len() as u64,
            mode: None,
        }),
        Content::File(path) => {
            let failed = |source| ArchiveError::Read {
                path: path.clone(),
                source,
            };
            // Opening a pipe would block until it has a writer.
            if !path.metadata().map_err(failed)?.is_file() {
                return Err(ArchiveError::SpecialFile(path.clone()));
            }
            let file = File::open(path).map_err(failed)?;
            let found = file.metadata().map_err(failed)?;
            Ok(Opened {
                size: found.len(),
                mode: Some(found.mode() & 0o7777),
                content: Box::new(BufReader::with_capacity(1 << 16, file)),
            })
        }
    }
}

/// The number that `output_file_mode` means: octal after `0` or `0o`, hexadecimal after `0x`, binary after `0b`, else decimal.
pub(crate) fn mode(text: &str) -> Result<u32, ArchiveError> {
    let lower = text.to_ascii_lowercase();
    let parsed = if let Some(digits) = lower.strip_prefix("0x") {
        u32::from_str_radix(digits, 16)
    } else if let Some(digits) = lower.strip_prefix("0b") {
        u32::from_str_radix(digits, 2)
    } else if let Some(digits) = lower
        .strip_prefix("0o")
        .or(lower.strip_prefix('0').filter(|rest| !rest.is_empty()))
    {
        u32::from_str_radix(digits, 8)
    } else {
        lower.parse()
    };
    match parsed {
        // A sign is a digit for the parser of Rust only.
        Ok(mode) if !lower.contains('+') && mode <= i32::MAX as u32 => Ok(mode),
        _ => Err(ArchiveError::Mode(text.to_owned())),
    }
}
