//! Packs: an executable of this program with packages of providers and modules, and configurations, behind its own bytes.
//!
//! Operating systems ignore bytes behind the last section of an executable, so a pack runs like the executable in it. The layout:
//!
//! ```text
//! the executable, unchanged: with its own checksum, if it has one ([`executable`])
//! blobs        the content of each file, a Zstandard frame each; equal contents are stored once
//! index        JSON: the list of contents, with the checksum of every part ([`index`])
//! signature    if there is one: an Ed25519 public key and the signature ([`signature`])
//! trailer      64 bytes: where the index is, and its checksum ([`format`])
//! ```
//!
//! [`Pack`] reads a pack, [`write`](write::write) makes one from [`contents`], such as those of a [`directory`], and [`difference`] carries
//! only the parts that another pack does not have. Equal contents give equal bytes: a pack has no times and no owners, and everything in it
//! is ordered.
//!
//! The sources of providers and modules, and their selection, are not known here: see the crates `packages` and `modules`.
//!
//! Every pack is opened by [`Pack::find`], which checks [`Conditions`] before it parses an index.
//!
//! Where to begin: [`index`], then [`read`].

mod contents;
mod counted;
pub mod difference;
mod directory;
mod elf;
mod error;
pub mod executable;
mod format;
pub mod index;
mod read;
pub mod signature;
mod text;
mod trust;
pub mod write;

#[cfg(test)]
mod tests;

pub use error::PackError;
pub use executable::Executable;
pub use read::{CopyError, Pack, Verified, is_made_by_pack};
pub use trust::{Conditions, TRUST, Trust};
