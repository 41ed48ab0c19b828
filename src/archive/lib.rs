//! Readers of archives from untrusted sources: provider packages and module packages.
//!
//! - [`unpack`] writes the entries of an archive to a new directory. It accepts files and directories and, if
//!   [`Entries`] allows it, links that stay inside that directory; other entries are errors.
//! - [`read_zip`] passes the entries of a zip archive to a closure and writes none.
//! - [`entry_path`] checks the path of an entry. Both functions use it, and downloads from buckets use it for the names
//!   of objects.
//! - [`Limits`] bounds the number of entries, the unpacked size and the download size.
//!
//! An archive is rejected at once if its declared sizes exceed a limit. Smaller declared sizes are not trusted: bytes
//! are counted while they are read.

mod error;
mod format;
mod limits;
mod unpack;

pub use error::Error;
pub use format::{Format, UnknownFormat};
pub use limits::{InvalidLimit, Limits, Size};
pub use unpack::{Entries, entry_path, read_zip, unpack};
