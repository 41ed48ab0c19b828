//! State files: reading while others may write, and writing in two steps.
//!
//! The documentation of [`crate::store`] has the reason for the two steps.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;
use std::time::{Duration, SystemTime};

use files::{io_reason, is_replaceable};
use system::files::{FileTypeExt as _, Identity, OpenOptionsExt as _};

use crate::beside::{beside, directory, replace_file};
use crate::codec::{Codec, Decoded};
use crate::pending::{self, Verdict};
use crate::{FormatError, State, StateError};

/// Contents of a state file and its pending snapshot.
pub(crate) struct FoundFile {
    /// Snapshot in the state file.
    pub state: Option<State>,
    /// True if the state file is not stored in the current form.
    pub outdated: bool,
    pub text: Vec<u8>,
    /// Relation of the pending snapshot, if there is one.
    pub pending: Option<Verdict>,
}

impl FoundFile {
    /// Returns the snapshot that is the state: the pending one or that of the state file. `None` if there is no state.
    pub(crate) fn counts(&self) -> Option<&State> {
        match &self.pending {
            Some(Verdict::Completes(snapshot) | Verdict::Replaces(snapshot)) => Some(snapshot),
            _ => self.state.as_ref(),
        }
    }

    pub(crate) fn counting_text(&self, codec: &Codec) -> Result<Vec<u8>, StateError> {
        match &self.pending {
            Some(Verdict::Completes(snapshot) | Verdict::Replaces(snapshot)) => codec.encode(snapshot),
            // If the stored form is not the current one, the bytes may be plain text from before encryption was configured, so they are
            // encoded again.
            _ => match self.state.as_ref().filter(|_| self.outdated) {
                Some(state) => codec.encode(state),
                None => Ok(self.text.clone()),
            },
        }
    }

    pub(crate) fn into_state(self) -> Option<State> {
        match self.pending {
            Some(Verdict::Completes(snapshot) | Verdict::Replaces(snapshot)) => Some(snapshot),
            _ => self.state,
        }
    }
}

/// Reads a state file and the pending snapshot beside it.
pub(crate) fn read_file(path: &Path, locked: bool, codec: &Codec) -> Result<FoundFile, StateError> {
    if !is_replaceable(path) {
        return read_stream(path, codec);
    }
    // Without the lock, another program may write the file while it is read, so the read is repeated if the file has changed. With the
    // lock, one attempt is enough.
    let mut attempts = if locked { 1 } else { 20 };
    loop {
        attempts -= 1;
        let before = version_of(path);
        let text = read_if_there(path)?;
        let decoded = text.as_deref().map_or(Ok(None), |text| codec.decode(text));
        let outdated = matches!(&decoded, Ok(Some(decoded)) if decoded.outdated);
        let state = decoded.map(|decoded| decoded.map(|decoded| decoded.state));
        // Decryption errors are checked before the pending file is considered. Otherwise a state whose key is missing would count as
        // damaged, and the pending snapshot would replace it.
        if let Err(source) = state.as_ref()
            && source.is_of_encryption()
            && version_of(path) == before
        {
            return Err(unreadable(path, source.clone()));
        }
        // The pending file is read after the state file, so that it is at least as new.
        let pending =
            read_if_there(&pending::path_of(path))?.map(|p| pending::judge(&p, text.as_deref(), &state, codec));
        if attempts > 0 && version_of(path) != before {
            std::thread::sleep(Duration::from_millis(5));
            continue;
        }
        let state = match &pending {
            // The pending snapshot replaces a state file that cannot be read.
            Some(Verdict::Completes(_) | Verdict::Replaces(_)) => state.ok().flatten(),
            _ => state.map_err(|source| unreadable(path, source))?,
        };
        return Ok(FoundFile {
            state,
            outdated,
            text: text.unwrap_or_default(),
            pending,
        });
    }
}

/// Reads a state that is not a regular file, once: a pipe until its end; a device has no state.
fn read_stream(path: &Path, codec: &Codec) -> Result<FoundFile, StateError> {
    let kind = fs::metadata(path)
        .map_err(|e| StateError::io("cannot read", path, e))?
        .file_type();
    // Reading a device, such as a terminal or /dev/zero, may never end.
    let text = if kind.is_char_device() || kind.is_block_device() {
        Vec::new()
    } else {
        fs::read(path).map_err(|e| StateError::io("cannot read", path, e))?
    };
    let decoded = codec.decode(&text).map_err(|source| unreadable(path, source))?;
    Ok(FoundFile {
        outdated: decoded.as_ref().is_some_and(|decoded| decoded.outdated),
        state: decoded.map(|Decoded { state, .. }| state),
        text,
        pending: None,
    })
}

/// Returns identity, length and modification time of a file; `None` if the file cannot be examined. A write changes at least one of them.
pub(crate) fn version_of(path: &Path) -> Option<(Identity, u64, SystemTime)> {
    let metadata = fs::metadata(path).ok()?;
    Some((Identity::at(path).ok()?, metadata.len(), metadata.modified().ok()?))
}

fn unreadable(path: &Path, source: FormatError) -> StateError {
    if source.is_of_encryption() {
        return StateError::Sealed {
            path: path.to_owned(),
            source: Box::new(source),
        };
    }
    let backup = Some(beside(path, "", ".backup")).filter(|b| b.exists());
    StateError::File {
        path: path.to_owned(),
        backup,
        source: Box::new(source),
    }
}

fn read_if_there(path: &Path) -> Result<Option<Vec<u8>>, StateError> {
    match fs::read(path) {
        Ok(text) => Ok(Some(text)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(StateError::io("cannot read", path, e)),
    }
}

/// Writes a state file in two steps, for the reasons in the documentation of [`crate::store`].
pub(crate) fn write_in_place(path: &Path, text: &[u8]) -> Result<(), StateError> {
    if !is_replaceable(path) {
        return replace_file(path, text);
    }
    let pending = pending::path_of(path);
    // A link or pipe with that name is not from this program.
    remove_unless_file(&pending)?;
    replace_file(&pending, text)?;
    let created = !path.exists();
    let file = match OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)
    {
        Ok(file) => file,
        // Nothing was overwritten yet, so the state file still has the old snapshot.
        Err(e) => return Err(withdraw(&pending, StateError::io("cannot write", path, e))),
    };
    if let Err(e) = reserve(&file, text.len() as u64) {
        return Err(withdraw(&pending, StateError::io("cannot write", path, e)));
    }
    let write = || {
        // The file is truncated first. Otherwise an interrupted write could leave the beginning of the new snapshot followed by the end of
        // the old one, which might be a valid state. The beginning of a snapshot alone never is.
        file.set_len(0)?;
        (&file).write_all(text)?;
        file.sync_all()
    };
    // From here on the pending file is needed until the state file is complete again.
    write().map_err(|e| {
        let note = format!(
            "{} (the new snapshot is complete in {}, and will be used from there)",
            io_reason(&e),
            pending.display()
        );
        StateError::io("cannot write", path, io::Error::new(e.kind(), note))
    })?;
    if created {
        // The name of a new state file must be durable before the pending file is removed.
        sync_directory(path);
    }
    remove_pending(&pending);
    sync_directory(path);
    Ok(())
}

fn sync_directory(path: &Path) {
    if let Err(e) = system::files::sync_directory(directory(path)) {
        // Not every file system can sync a directory. Without the sync, a power cut can lose the latest write, but no earlier one.
        tracing::debug!("the directory of {} cannot be synced: {e}", path.display());
    }
}

fn remove_unless_file(path: &Path) -> Result<(), StateError> {
    match fs::symlink_metadata(path) {
        Ok(found) if !found.is_file() && !found.is_dir() => {
            fs::remove_file(path).map_err(|e| StateError::io("cannot remove", path, e))
        }
        _ => Ok(()),
    }
}

/// Removes the pending file after a failed write that has not touched the state file.
fn withdraw(pending: &Path, error: StateError) -> StateError {
    remove_pending(pending);
    error
}

pub(crate) fn remove_pending(pending: &Path) {
    match fs::remove_file(pending) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => tracing::warn!("cannot remove {}: {e}", pending.display()),
        _ => {}
    }
}

/// Reserves space for this many bytes in a file, if the file system can.
///
/// This only tests whether the disk is full, because truncating the file releases the space again. If another program takes the space in
/// between, the write fails, and the pending file is the state.
fn reserve(file: &File, len: u64) -> io::Result<()> {
    if file.metadata()?.len() >= len {
        return Ok(());
    }
    system::files::reserve(file, len)
}
