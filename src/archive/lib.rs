//! Readers of archives from untrusted sources: provider packages and module packages.
//!
//! - [`unpack`] writes the entries of an archive to a new directory. It accepts files and directories and, if
//!   [`Entries`] allows it, links that stay inside that directory; other entries are errors.
//! - [`read_zip`] passes the entries of a zip archive to a closure and writes none.
//! - [`entry_path`] is the path check of both. It also applies to the names of objects in a bucket.
//! - [`Limits`] bounds the number of entries, the unpacked size and the download size.
//!
//! The sizes that an archive declares suffice to reject it, not to accept it: bytes are counted while they are read.

mod error;
mod format;
mod limits;
mod unpack;

pub use error::Error;
pub use format::{Format, UnknownFormat};
pub use limits::{InvalidLimit, Limits, Size};
pub use unpack::{Entries, entry_path, read_zip, unpack};
