//! Reading of packs. Every byte that is used is compared with its checksum.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use archive::Limits;
use data_encoding::HEXLOWER;
use sha2::{Digest, Sha256};
use system::files::{FileExt as _, OpenOptionsExt as _};

use crate::counted::digest;
use crate::error::{PackError, damaged, read_error, write_error};
use crate::format::{TRAILER, Trailer};
use crate::index::{Blob, FORMAT, FORMAT_WITH_MODULES, Index, PackedFile, PackedLink};
use crate::signature::{self, PublicKey, Signature};
use crate::trust::{Conditions, Trust};
use crate::{elf, format};

/// Limit of the length of an index in bytes: about 200,000 files. Every command reads the index, so a longer one would slow all of
/// them.
const LONGEST_INDEX: u64 = 1 << 26;

/// Checks the length of an index, in bytes.
pub(crate) fn index_fits(path: &Path, length: u64) -> Result<(), PackError> {
    if length <= LONGEST_INDEX {
        return Ok(());
    }
    Err(PackError::TooLarge {
        path: path.to_owned(),
        reason: format!(
            "its index has {} MiB, and the index of a pack has {} at most: pack fewer files",
            length >> 20,
            LONGEST_INDEX >> 20
        ),
    })
}

/// Factor of expansion: a pack as a whole may unpack to this many times its own size, or to the limit of one package, whichever
/// is more.
const MOST_EXPANSION: u64 = 16;

/// Open pack. Reads use offsets of their own, so that threads can share it.
#[derive(Debug)]
pub struct Pack {
    path: PathBuf,
    file: File,
    trailer: Trailer,
    index: Index,
    signature: Option<Signature>,
    limits: Limits,
}

/// Result of verifying a pack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// Number of bytes of the pack.
    pub bytes: u64,
    /// Key that has signed the pack, if it is signed.
    pub signed_by: Option<PublicKey>,
}

impl Pack {
    /// Opens the pack in a file.
    ///
    /// # Errors
    /// The file cannot be read, or has no pack, or its pack is damaged or not trusted.
    pub fn open(path: &Path, conditions: &Conditions) -> Result<Pack, PackError> {
        Pack::find(path, conditions)?.ok_or_else(|| PackError::NoPack(path.to_owned()))
    }

    /// Opens the pack in a file, or returns `None`, after one small read, if the file has no pack.
    ///
    /// The index is parsed after the signature was verified and its key compared with the one that is trusted: whoever can change a
    /// file in transit can write any index.
    ///
    /// # Errors
    /// The file cannot be read, or the pack in it is damaged or not trusted.
    pub fn find(path: &Path, conditions: &Conditions) -> Result<Option<Pack>, PackError> {
        let (failed, wrong) = (read_error(path), damaged(path));
        let mut file = File::open(path).map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        let mut last = [0; TRAILER as usize];
        let trailer = match length.checked_sub(TRAILER) {
            Some(at) => {
                file.read_exact_at(&mut last, at).map_err(failed)?;
                Trailer::read(&last)
            }
            None => None,
        };
        let Some(trailer) = trailer else {
            // A pack that was cut off consists of its executable, and of more bytes than the executable's
            // header describes.
            let own = elf::sealed_length(&mut file).map_err(failed)?;
            return match own.filter(|own| looks_packed(&file, *own, length)) {
                Some(_) => Err(wrong("its end is missing".to_owned())),
                None => Ok(None),
            };
        };
        if trailer.file_length() != Some(length) {
            return Err(wrong("its last bytes do not fit its length".to_owned()));
        }
        // The length is checked before the index is read: every command opens the pack that it runs from.
        index_fits(path, trailer.index_length)?;
        let trusted = conditions.trust.key()?;
        let limits = conditions.limits.clone().map_err(PackError::Limit)?;
        let mut index = vec![0; usize::try_from(trailer.index_length).unwrap_or_default()];
        file.read_exact_at(&mut index, trailer.index_offset).map_err(failed)?;
        if Sha256::digest(&index)[..] != trailer.index_sum {
            return Err(wrong("its index has another checksum".to_owned()));
        }
        let signature = read_signature(&file, &trailer, &index).map_err(|e| match e {
            SignatureError::Io(error) => failed(error),
            other => wrong(other.to_string()),
        })?;
        if let Some(trusted) = &trusted {
            check(path, signature.as_ref().map(|signature| &signature.key), trusted)
                .map_err(|error| conditions.trust.explain(error))?;
        }
        // The format is parsed separately, because an index of a later format may have other fields.
        let format = serde_json::from_slice::<FormatOnly>(&index).map_or(FORMAT, |only| only.format);
        if !(FORMAT..=FORMAT_WITH_MODULES).contains(&format) {
            return Err(PackError::Format {
                path: path.to_owned(),
                format,
            });
        }
        let index: Index = serde_json::from_slice(&index)
            .map_err(|e| wrong(format!("its index is not valid: {}", files::json_reason(e))))?;
        if let Some(problem) = index.problem(trailer.index_offset) {
            return Err(wrong(problem));
        }
        Ok(Some(Pack {
            path: path.to_owned(),
            file,
            trailer,
            index,
            signature,
            limits,
        }))
    }

    #[must_use]
    pub fn index(&self) -> &Index {
        &self.index
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the key that has signed the pack; `None` if it is not signed. The signature was verified when the pack was opened.
    #[must_use]
    pub fn signed_by(&self) -> Option<&PublicKey> {
        self.signature.as_ref().map(|signature| &signature.key)
    }

    /// Returns the checksum of the index, which identifies the pack.
    #[must_use]
    pub fn identity(&self) -> String {
        HEXLOWER.encode(&self.trailer.index_sum)
    }

    /// Returns the bytes from the index to the end.
    pub(crate) fn end(&self) -> Section<'_> {
        let length = self.trailer.index_length + self.trailer.signature_length + TRAILER;
        self.section(self.trailer.index_offset, length)
    }

    /// Returns a range of bytes of the file.
    pub(crate) fn section(&self, offset: u64, length: u64) -> Section<'_> {
        Section {
            file: &self.file,
            offset,
            left: length,
        }
    }

    /// Writes content to a target, and compares it with its checksum. Bytes that were written before an error must not be used.
    ///
    /// # Errors
    /// The content is damaged, or cannot be read or written.
    pub fn copy(&self, blob: &Blob, to: &mut impl Write) -> Result<(), CopyError> {
        let read = |error: io::Error| CopyError::Pack(read_error(&self.path)(error));
        let broken = |_: io::Error| CopyError::Pack(self.broken(blob));
        let section = self.section(blob.offset, blob.length);
        let decoder = zstd::stream::read::Decoder::new(section).map_err(read)?;
        // One byte more than the content is read, so that a frame that expands without end is noticed, but not
        // unpacked.
        let mut decoder = decoder.take(blob.size.saturating_add(1));
        let (mut sum, mut size) = (Sha256::new(), 0u64);
        let mut buffer = vec![0; 1 << 17];
        loop {
            let count = decoder.read(&mut buffer).map_err(broken)?;
            let Some(part) = buffer.get(..count).filter(|part| !part.is_empty()) else {
                break;
            };
            size += part.len() as u64;
            sum.update(part);
            to.write_all(part).map_err(CopyError::Write)?;
        }
        let section = decoder.into_inner().finish();
        // A blob is a single frame. Bytes after it would belong to no file.
        if size != blob.size || HEXLOWER.encode(&sum.finalize()) != blob.sha256 || !section.buffer().is_empty() {
            return Err(CopyError::Pack(self.broken(blob)));
        }
        Ok(())
    }

    fn broken(&self, blob: &Blob) -> PackError {
        let user = self.user_of(blob);
        damaged(&self.path)(format!("the content of {user} has another checksum"))
    }

    /// Describes a file that has this content, for the error about it.
    fn user_of(&self, blob: &Blob) -> String {
        let is = |file: &&PackedFile| self.index.blobs.get(file.blob) == Some(blob);
        for provider in &self.index.providers {
            if let Some(file) = provider.files.iter().find(is) {
                return format!("{} of {} {}", file.path, provider.address, provider.version);
            }
        }
        for module in &self.index.modules {
            if let Some(file) = module.files.iter().find(is) {
                return format!("{} of the module {}", file.path, module.address);
            }
        }
        for configuration in &self.index.configurations {
            if let Some(file) = configuration.files.iter().find(is) {
                return format!("{} of the configuration {}", file.path, configuration.name);
            }
        }
        "a file that nothing in it has".to_owned()
    }

    /// Writes files below a directory that exists. A file that exists already is an error.
    ///
    /// # Errors
    /// A file is damaged, or cannot be read or written.
    pub fn unpack(&self, files: &[PackedFile], dir: &Path) -> Result<(), PackError> {
        self.check_limits(files)?;
        for file in files {
            let path = dir.join(&file.path);
            let failed = write_error(&path);
            let Some(blob) = self.index.blob_of(file) else { continue };
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent).map_err(failed)?;
            }
            // The umask of the process applies, as for any other file.
            let mode = if file.executable { 0o777 } else { 0o666 };
            let mut options = OpenOptions::new();
            let mut out = options
                .write(true)
                // `create_new` never opens a file through a link in the directory.
                .create_new(true)
                .mode(mode)
                .open(&path)
                .map_err(failed)?;
            self.copy(blob, &mut out).map_err(|error| error.at(&path))?;
        }
        Ok(())
    }

    /// Writes files and links below a directory that exists.
    ///
    /// # Errors
    /// A file is damaged, or cannot be read or written.
    pub fn unpack_tree(&self, files: &[PackedFile], links: &[PackedLink], dir: &Path) -> Result<(), PackError> {
        // Files are written before links, so that no file is written through a link.
        self.unpack(files, dir)?;
        for link in links {
            let path = dir.join(&link.path);
            let failed = write_error(&path);
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent).map_err(failed)?;
            }
            system::files::symlink(&link.target, &path).map_err(failed)?;
        }
        Ok(())
    }

    /// Returns the CLI configuration of the pack, if it has one.
    ///
    /// # Errors
    /// Its content is damaged, or cannot be read.
    pub fn cli_config(&self) -> Result<Option<Vec<u8>>, PackError> {
        let Some(blob) = self.index.cli_config.and_then(|at| self.index.blobs.get(at)) else {
            return Ok(None);
        };
        let mut text = Vec::new();
        self.copy(blob, &mut text).map_err(|error| error.at(&self.path))?;
        Ok(Some(text))
    }

    /// Compares every byte with its checksum.
    ///
    /// # Errors
    /// A part is damaged or cannot be read.
    pub fn verify(&self) -> Result<Verified, PackError> {
        let (failed, wrong) = (read_error(&self.path), damaged(&self.path));
        let executable = &self.index.executable;
        if self.sum(0, executable.size).map_err(failed)? != executable.sha256 {
            return Err(wrong("its executable has another checksum".to_owned()));
        }
        // Both checksums of a blob are compared: that of the frame, which differences rely on, and that of the
        // content.
        for blob in &self.index.blobs {
            if self.sum(blob.offset, blob.length).map_err(failed)? != blob.stored {
                return Err(self.broken(blob));
            }
            self.copy(blob, &mut io::sink()).map_err(|error| error.at(&self.path))?;
        }
        Ok(Verified {
            bytes: self.trailer.file_length().unwrap_or_default(),
            signed_by: self.signed_by().cloned(),
        })
    }

    /// Checks that the pack is signed with a key.
    ///
    /// # Errors
    /// The pack is not signed with the key.
    pub fn trusts(&self, trusted: &PublicKey) -> Result<(), PackError> {
        check(&self.path, self.signed_by(), trusted)
    }

    /// Checks the files of one package against the limits of packages.
    ///
    /// # Errors
    /// The files are too many, or too large together.
    pub fn check_limits(&self, files: &[PackedFile]) -> Result<(), PackError> {
        if files.len() > self.limits.entries {
            return Err(self.over_limit(self.limits.too_many()));
        }
        match self.unpacked_size(files) > self.limits.bytes {
            true => Err(self.over_limit(self.limits.too_large())),
            false => Ok(()),
        }
    }

    /// Checks all contents against the limits, before the pack is unpacked as a whole. Content is stored once and can be used by any number
    /// of files, so a small pack can unpack to a huge size.
    ///
    /// # Errors
    /// A package is too large, or all of them together are.
    pub fn check_all_limits(&self) -> Result<(), PackError> {
        let index = &self.index;
        let providers = index.providers.iter().map(|one| &one.files);
        let modules = index.modules.iter().map(|one| &one.files);
        let configurations = index.configurations.iter().map(|one| &one.files);
        let mut all = 0u64;
        for files in providers.chain(modules).chain(configurations) {
            self.check_limits(files)?;
            all = all.saturating_add(self.unpacked_size(files));
        }
        let own = self.trailer.file_length().unwrap_or_default();
        let most = self.limits.bytes.max(own.saturating_mul(MOST_EXPANSION));
        match all > most {
            true => Err(self.over_limit(self.limits.too_large())),
            false => Ok(()),
        }
    }

    fn unpacked_size(&self, files: &[PackedFile]) -> u64 {
        let blobs = files.iter().filter_map(|file| self.index.blob_of(file));
        blobs.fold(0, |sum, blob| sum.saturating_add(blob.size))
    }

    fn over_limit(&self, reason: String) -> PackError {
        PackError::TooLarge {
            path: self.path.clone(),
            reason,
        }
    }

    /// Returns the SHA-256 of a range of the file. If the file ends within the range, only the bytes before its end are hashed.
    fn sum(&self, offset: u64, length: u64) -> io::Result<String> {
        digest(self.section(offset, length)).map(|(sum, _)| sum)
    }
}

fn check(path: &Path, signed_by: Option<&PublicKey>, trusted: &PublicKey) -> Result<(), PackError> {
    let reason = match signed_by {
        Some(key) if key == trusted => return Ok(()),
        Some(key) => format!(
            "it is signed with the key {}, not with {}",
            key.fingerprint(),
            trusted.fingerprint()
        ),
        None => "it is not signed".to_owned(),
    };
    Err(PackError::NotTrusted {
        path: path.to_owned(),
        reason,
    })
}

/// Returns true if a file ends as a pack or a difference does. It may still be damaged.
#[must_use]
pub fn is_made_by_pack(path: &Path) -> bool {
    let last = || -> io::Result<[u8; 8]> {
        let file = File::open(path)?;
        let mut last = [0; 8];
        let at = file.metadata()?.len().checked_sub(last.len() as u64);
        file.read_exact_at(&mut last, at.ok_or(io::ErrorKind::UnexpectedEof)?)?;
        Ok(last)
    };
    last().is_ok_and(|last| last == format::MAGIC || last == format::DIFFERENCE_MAGIC)
}

/// Format number in an index of any format.
#[derive(serde::Deserialize)]
struct FormatOnly {
    format: u32,
}

/// Returns true if the bytes after an executable begin like the contents of a pack: with a Zstandard frame.
fn looks_packed(file: &File, own: u64, length: u64) -> bool {
    const FRAME: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
    let mut first = [0; 4];
    own < length && file.read_exact_at(&mut first, own).is_ok() && first == FRAME
}

impl Trust {
    /// Checks that a pack that was opened for inspection is trusted.
    ///
    /// # Errors
    /// The pack is not trusted, or the key cannot be read.
    pub fn check(&self, pack: &Pack) -> Result<(), PackError> {
        match self.key()? {
            Some(key) => pack.trusts(&key).map_err(|error| self.explain(error)),
            None => Ok(()),
        }
    }
}

/// Reason why a signature cannot be read, or does not belong to its index.
#[derive(Debug, thiserror::Error)]
enum SignatureError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("its signature has a length that no signature has")]
    Length,
    #[error("its signature is not the signature of its index")]
    OtherIndex,
}

fn read_signature(file: &File, trailer: &Trailer, index: &[u8]) -> Result<Option<Signature>, SignatureError> {
    if trailer.signature_length == 0 {
        return Ok(None);
    }
    let mut bytes = [0; signature::LENGTH];
    if trailer.signature_length != bytes.len() as u64 {
        return Err(SignatureError::Length);
    }
    file.read_exact_at(&mut bytes, trailer.signature_offset())?;
    // A signature that does not match is damage, even if no key is required.
    match Signature::read(&bytes).filter(|signature| signature.fits(index)) {
        Some(signature) => Ok(Some(signature)),
        None => Err(SignatureError::OtherIndex),
    }
}

/// Reason why content was not copied.
#[derive(Debug)]
pub enum CopyError {
    Pack(PackError),
    Write(io::Error),
}

impl CopyError {
    #[must_use]
    pub fn at(self, path: &Path) -> PackError {
        match self {
            CopyError::Pack(error) => error,
            CopyError::Write(error) => write_error(path)(error),
        }
    }
}

/// Range of a file, as a reader.
pub(crate) struct Section<'f> {
    file: &'f File,
    offset: u64,
    left: u64,
}

impl Read for Section<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let most = usize::try_from(self.left).unwrap_or(usize::MAX).min(buffer.len());
        let count = match buffer.get_mut(..most).filter(|part| !part.is_empty()) {
            // `read_at` does not change the position of the file, which all readers share.
            Some(part) => self.file.read_at(part, self.offset)?,
            None => 0,
        };
        self.offset += count as u64;
        self.left -= count as u64;
        Ok(count)
    }
}
