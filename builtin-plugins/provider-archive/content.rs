//! Content of the entries of an archive, and their modes.

use std::fs::File;
use std::io::{BufReader, Read};

use system::files::MetadataExt as _;

use crate::error::ArchiveError;
use crate::select::{Content, Entry};

/// Opened content of an entry with its size, and with its mode if it is a file.
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
            // Checked before opening, because opening a pipe would block until the pipe has a writer.
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

/// Parses `output_file_mode`: octal after `0` or `0o`, hexadecimal after `0x`, binary after `0b`, otherwise decimal.
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
        // A sign is refused here, because `from_str_radix` accepts it.
        Ok(mode) if !lower.contains('+') && mode <= i32::MAX as u32 => Ok(mode),
        _ => Err(ArchiveError::Mode(text.to_owned())),
    }
}
