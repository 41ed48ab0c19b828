//! Differences: the parts of a new pack that an older one does not have, so that an update is a small file.
//!
//! ```text
//! parts      bytes of the new pack that the older one does not have: frames as they are; the executable as a Zstandard frame
//!            that refers to the older executable
//! plan       JSON: the source of each range of bytes of the new pack, and the checksums of both packs
//! trailer    as that of a pack, with the plan in the place of the index, and eight more bytes that tell the two apart
//! ```
//!
//! [`apply`] makes the new pack from both, byte for byte, with its signature.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Seek as _, SeekFrom, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use system::files::FileExt as _;

use crate::counted::{Counted, copy, digest};
use crate::error::{PackError, damaged, read_error, write_error};
use crate::format::{DIFFERENCE_MAGIC as MAGIC, TRAILER, Trailer};
use crate::index::Blob;
use crate::read::Pack;

/// Version of the format of differences.
const FORMAT: u32 = 1;
/// Limit of the length of a [`Plan`] in bytes, against damaged and hostile files.
const LONGEST_PLAN: u64 = 1 << 28;
/// Zstandard level for an executable that is compressed against the older one.
const LEVEL: i32 = 9;
/// Limit of the size in bytes of an executable that is used as the reference. It is held in memory, and the window of the compression
/// must reach over both executables.
const LARGEST_REFERENCE: u64 = 1 << 29;
/// Binary logarithm of the size of the compression window in bytes.
const WINDOW: u32 = 30;

/// Description of the new pack as a sequence of parts.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Plan {
    format: u32,
    /// Identity of the older pack.
    since: String,
    /// Length of the new pack.
    length: u64,
    sha256: String,
    /// Parts from the beginning to the end.
    parts: Vec<Part>,
}

/// Range of bytes of the new pack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum Part {
    Old {
        offset: u64,
        length: u64,
    },
    New {
        offset: u64,
        length: u64,
    },
    /// Frame of the difference that unpacks to `size` bytes, and refers to the first `reference` bytes of the older pack.
    Changed {
        offset: u64,
        length: u64,
        size: u64,
        reference: u64,
    },
}

/// Writes the difference between two packs; returns its size in bytes. `path` is the file's final path, for errors.
///
/// # Errors
/// A pack cannot be read, or the difference cannot be written.
pub fn write(out: &mut impl Write, path: &Path, old: &Pack, new: &Pack) -> Result<u64, PackError> {
    let failed = write_error(path);
    let mut offset = 0;
    let mut parts: Vec<Part> = Vec::new();
    let (old_index, new_index) = (old.index(), new.index());
    let (before, now) = (&old_index.executable, &new_index.executable);
    // An executable changes with every release, but only in small parts, so only its changes are stored.
    if (before.size, &before.sha256) == (now.size, &now.sha256) {
        parts.push(Part::Old {
            offset: 0,
            length: now.size,
        });
    } else {
        let frame = changed(old, new).map_err(read_error(new.path()))?;
        out.write_all(&frame).map_err(failed)?;
        parts.push(Part::Changed {
            offset,
            length: frame.len() as u64,
            size: now.size,
            reference: reference(before.size),
        });
        offset += frame.len() as u64;
    }
    let there: BTreeMap<&str, &Blob> = old_index
        .blobs
        .iter()
        .map(|blob| (blob.stored.as_str(), blob))
        .collect();
    // Frames are compared in compressed form: the same content at another level has another frame, and `apply` does not
    // compress.
    for blob in &new_index.blobs {
        match there.get(blob.stored.as_str()).filter(|old| old.length == blob.length) {
            Some(same) => push(
                &mut parts,
                Part::Old {
                    offset: same.offset,
                    length: same.length,
                },
            ),
            None => {
                copy(new.section(blob.offset, blob.length), new.path(), out, path)?;
                push(
                    &mut parts,
                    Part::New {
                        offset,
                        length: blob.length,
                    },
                );
                offset += blob.length;
            }
        }
    }
    let length = copy(new.end(), new.path(), out, path)?;
    push(&mut parts, Part::New { offset, length });
    offset += length;
    // `apply` verifies its result by this checksum, without unpacking anything.
    let whole = File::open(new.path()).map_err(read_error(new.path()))?;
    let (sha256, length) = digest(whole).map_err(read_error(new.path()))?;
    let plan = Plan {
        format: FORMAT,
        since: old.identity(),
        length,
        sha256,
        parts,
    };
    let plan = serde_json::to_vec(&plan).map_err(|e| failed(e.into()))?;
    let trailer = Trailer::new(offset, &plan, 0).to_bytes();
    for part in [&plan[..], &trailer, &MAGIC] {
        out.write_all(part).map_err(failed)?;
    }
    Ok(offset + plan.len() as u64 + TRAILER + MAGIC.len() as u64)
}

/// Adds a part. If it follows the last one in the same file, both become one.
fn push(parts: &mut Vec<Part>, part: Part) {
    match (parts.last_mut(), part) {
        (
            Some(Part::Old { offset, length }),
            Part::Old {
                offset: next,
                length: more,
            },
        )
        | (
            Some(Part::New { offset, length }),
            Part::New {
                offset: next,
                length: more,
            },
        ) if *offset + *length == next => {
            *length += more;
        }
        _ => parts.push(part),
    }
}

/// Returns the number of bytes of an older executable that a newer one refers to.
fn reference(size: u64) -> u64 {
    // Without a reference, the new executable is compressed on its own.
    if size > LARGEST_REFERENCE { 0 } else { size }
}

fn first_bytes(pack: &Pack, length: u64) -> io::Result<Vec<u8>> {
    let mut out = Vec::new();
    pack.section(0, length).read_to_end(&mut out)?;
    match out.len() as u64 == length {
        true => Ok(out),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// Compresses the new executable, with the older one as the reference.
fn changed(old: &Pack, new: &Pack) -> io::Result<Vec<u8>> {
    let size = new.index().executable.size;
    let known = first_bytes(old, reference(old.index().executable.size))?;
    let mut encoder = zstd::stream::write::Encoder::with_ref_prefix(Vec::new(), LEVEL, &known)?;
    encoder.set_pledged_src_size(Some(size))?;
    encoder.window_log(WINDOW)?;
    // The match finder of this level does not reach back over a whole executable.
    encoder.long_distance_matching(true)?;
    io::copy(&mut new.section(0, size), &mut encoder)?;
    encoder.finish()
}

/// Writes the new pack that results from an older one and a difference. `path` is the file's final path, for errors.
///
/// # Errors
/// The difference does not belong to the older pack, one of the two is damaged, or the new pack cannot be written.
pub fn apply(out: &mut impl Write, path: &Path, old: &Pack, difference: &Path) -> Result<(), PackError> {
    let mut file = File::open(difference).map_err(read_error(difference))?;
    let (plan, end) = read_plan(&mut file, difference)?;
    // The index has all checksums, so comparing its identity covers every byte of the older pack.
    if plan.since != old.identity() {
        return Err(PackError::OtherPack {
            difference: difference.to_owned(),
            to: old.path().to_owned(),
            reason: "it was made for another pack".to_owned(),
        });
    }
    let wrong = damaged(difference);
    let mut written = Counted::new(out);
    for part in &plan.parts {
        match *part {
            Part::Old { offset, length } => {
                let taken = copy(old.section(offset, length), old.path(), &mut written, path)?;
                if taken != length {
                    return Err(damaged(old.path())("it is too short".to_owned()));
                }
            }
            Part::New { offset, length } => {
                // The offsets are from an untrusted file: without the check, a part could overlap the plan of the
                // difference.
                let inside = offset.checked_add(length).is_some_and(|last| last <= end);
                if !inside {
                    return Err(wrong("a part of it is missing".to_owned()));
                }
                file.seek(SeekFrom::Start(offset)).map_err(read_error(difference))?;
                copy((&file).take(length), difference, &mut written, path)?;
            }
            Part::Changed {
                offset,
                length,
                size,
                reference: used,
            } => {
                // A frame must not unpack to more bytes than the new pack has.
                if used != reference(old.index().executable.size) || size > plan.length {
                    return Err(wrong("it refers to another executable".to_owned()));
                }
                let known = first_bytes(old, used).map_err(read_error(old.path()))?;
                file.seek(SeekFrom::Start(offset)).map_err(read_error(difference))?;
                let frame = io::BufReader::new((&file).take(length));
                let unpacked = zstd::stream::read::Decoder::with_ref_prefix(frame, &known).and_then(|mut decoder| {
                    decoder.window_log_max(WINDOW)?;
                    io::copy(&mut decoder.take(size), &mut written)
                });
                match unpacked {
                    Ok(_) => {}
                    // Errors of the decoder and of the disk have the same type. Only a full disk is certainly not damage of the file.
                    Err(e) if e.kind() == io::ErrorKind::StorageFull => return Err(write_error(path)(e)),
                    Err(e) => return Err(wrong(format!("its executable cannot be unpacked: {e}"))),
                }
            }
        }
    }
    if written.offset != plan.length || written.end() != plan.sha256 {
        return Err(wrong("what it makes is not the new pack".to_owned()));
    }
    Ok(())
}

/// Reads the plan of a difference; returns it with the offset at which the parts end.
fn read_plan(file: &mut File, path: &Path) -> Result<(Plan, u64), PackError> {
    let (failed, wrong) = (read_error(path), damaged(path));
    let length = file.metadata().map_err(failed)?.len();
    let mut last = [0; TRAILER as usize + MAGIC.len()];
    let none = || PackError::NotPackable {
        path: path.to_owned(),
        reason: "it is not a difference that \"pack -since\" has made, or its end is missing".to_owned(),
    };
    let at = length.checked_sub(last.len() as u64).ok_or_else(none)?;
    file.read_exact_at(&mut last, at).map_err(failed)?;
    let trailer = last.strip_suffix(&MAGIC).and_then(|bytes| bytes.try_into().ok());
    let trailer = trailer.and_then(Trailer::read).ok_or_else(none)?;
    let fits = trailer
        .file_length()
        .and_then(|own| own.checked_add(MAGIC.len() as u64))
        == Some(length);
    // The limit is checked before memory is reserved.
    if !fits || trailer.index_length > LONGEST_PLAN {
        return Err(wrong("its last bytes do not fit its length".to_owned()));
    }
    let mut plan = vec![0; usize::try_from(trailer.index_length).unwrap_or_default()];
    file.read_exact_at(&mut plan, trailer.index_offset).map_err(failed)?;
    if Sha256::digest(&plan)[..] != trailer.index_sum {
        return Err(wrong("its plan has another checksum".to_owned()));
    }
    let plan: Plan = serde_json::from_slice(&plan)
        .map_err(|e| wrong(format!("its plan is not valid: {}", files::json_reason(e))))?;
    match plan.format {
        FORMAT => Ok((plan, trailer.index_offset)),
        format => Err(PackError::Format {
            path: path.to_owned(),
            format,
        }),
    }
}
