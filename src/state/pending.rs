//! Recovery from an interrupted write: the choice between the state file and the pending snapshot beside it.
//!
//! Lineage and serial decide, because timestamps are unreliable: clocks are set, and files are copied and restored. The file that is not
//! chosen may contain objects that are recorded nowhere else, so it is preserved, and the user is informed.

#![expect(clippy::disallowed_methods, reason = "backups have the time in their names")]

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::beside::beside;
use crate::{Codec, FormatError, State};

/// Returns the path of the pending snapshot of a state file: `.NAME.pending`.
pub(crate) fn path_of(state: &Path) -> PathBuf {
    beside(state, ".", ".pending")
}

/// Relation between a pending snapshot and its state file.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// Both are equal, so only the pending file has to be removed.
    Same,
    /// The pending snapshot is the state. The state file is an incomplete copy of it, or missing.
    Completes(State),
    /// The pending snapshot is the state. The state file is an older snapshot, or damaged.
    Replaces(State),
    /// The state file is the state, and the pending snapshot is not used.
    Unused(Unused),
}

/// Reason why a pending snapshot is not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unused {
    Unreadable,
    /// The snapshot belongs to another state.
    OtherLineage,
    /// Another program has written the state since.
    NotNewer {
        /// Serial of the pending snapshot.
        pending: u64,
        /// Serial of the state file.
        state: u64,
    },
}

/// Decides between a state file and the pending snapshot beside it.
pub(crate) fn judge(
    pending: &[u8],
    text: Option<&[u8]>,
    state: &Result<Option<State>, FormatError>,
    codec: &Codec,
) -> Verdict {
    if Some(pending) == text {
        return Verdict::Same;
    }
    let Ok(Some(decoded)) = codec.decode(pending) else {
        return Verdict::Unused(Unused::Unreadable);
    };
    let snapshot = decoded.state;
    // If the state file is a prefix of the pending snapshot, its write was interrupted. This includes the case that only the last line
    // break is missing.
    if text.is_none_or(|text| pending.starts_with(text)) {
        return Verdict::Completes(snapshot);
    }
    let Ok(Some(state)) = state else {
        return Verdict::Replaces(snapshot);
    };
    if state.lineage != snapshot.lineage {
        return Verdict::Unused(Unused::OtherLineage);
    }
    if snapshot.serial > state.serial {
        return Verdict::Replaces(snapshot);
    }
    if snapshot.serial == state.serial && snapshot.same_content(state) {
        return Verdict::Same;
    }
    Verdict::Unused(Unused::NotNewer {
        pending: snapshot.serial,
        state: state.serial,
    })
}

/// Recovery from an interrupted write, to be reported to the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recovery {
    pub path: PathBuf,
    pub action: RecoveryAction,
    /// Path where the file that was not chosen is preserved, if it was.
    pub kept: Option<PathBuf>,
}

/// Decision about the pending snapshot of an interrupted write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecoveryAction {
    /// The pending snapshot, with this serial, has become the content of the state file.
    Completed(u64),
    /// The state file was kept, for this reason.
    Unused(Unused),
}

impl Recovery {
    /// Returns one line for the summary of a diagnostic.
    #[must_use]
    pub fn summary(&self) -> &'static str {
        match self.action {
            RecoveryAction::Completed(_) => "State recovered",
            RecoveryAction::Unused(_) => "Pending state snapshot not used",
        }
    }
}

impl fmt::Display for Recovery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match &self.action {
            RecoveryAction::Completed(serial) => write!(
                f,
                "An earlier run ended while it wrote {path}. The snapshot with serial {serial}, which it had completed beside \
                 that file, was put in its place."
            )?,
            RecoveryAction::Unused(why) => {
                write!(
                    f,
                    "An earlier run ended while it wrote {path}. The snapshot that it had completed beside that file was not \
                     used: "
                )?;
                match why {
                    Unused::Unreadable => write!(f, "it cannot be read.")?,
                    Unused::OtherLineage => write!(f, "it has another lineage, so it belongs to another state.")?,
                    Unused::NotNewer { pending, state } => write!(
                        f,
                        "it has serial {pending}, and the state has been written since, with serial {state}. It may hold \
                         objects that the state does not know."
                    )?,
                }
            }
        }
        if let Some(kept) = &self.kept {
            let what = match self.action {
                RecoveryAction::Unused(_) => "It",
                _ => "What was in the state file",
            };
            write!(f, " {what} is kept in {}.", kept.display())?;
        }
        Ok(())
    }
}

/// Returns the path `NAME.SECONDS.backup`, whose number no other backup has.
#[must_use]
pub fn stamped_backup(path: &Path) -> PathBuf {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default()
        .as_secs();
    let named = |seconds: u64| {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{seconds}.backup"));
        PathBuf::from(name)
    };
    (now..now.saturating_add(10_000))
        .map(named)
        .find(|path| !path.exists())
        .unwrap_or_else(|| named(now))
}
