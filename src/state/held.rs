//! Descriptions of locks that another process or program holds.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use locks::LockInfo;

/// A lock that another process holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockHeld {
    pub path: PathBuf,
    /// Holder of the lock, if it is known.
    pub info: Option<LockInfo>,
    /// Time spent waiting for the lock.
    pub waited: Duration,
}

impl fmt::Display for LockHeld {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "The state file {} is locked: another operation is using it",
            self.path.display()
        )?;
        if self.waited >= Duration::from_secs(1) {
            write!(f, ", and did not end within {} seconds", self.waited.as_secs())?;
        }
        writeln!(f, ".")?;
        let id = match &self.info {
            Some(info) => {
                writeln!(f, "{}\n", info.details())?;
                &*info.id
            }
            None => {
                writeln!(f, "It has left no information about itself.\n")?;
                "ID"
            }
        };
        write!(
            f,
            "The lock keeps two operations from writing the state at the same time. Wait for the other one to end, or let \
             this one wait for it with -lock-timeout=5m. The lock of a local file ends with the program that holds it: if \
             that hangs, end it. The lock of a program that has ended is released by \"force-unlock {id}\". Most \
             commands can do without a lock (-lock=false), but then nothing protects the state."
        )
    }
}

/// Lock of a state in a store that another program holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreLocked {
    /// Message of the store.
    pub message: String,
    /// Holder of the lock, if it is known.
    pub holder: Option<LockInfo>,
    /// Time spent waiting for the lock.
    pub waited: Duration,
}

impl fmt::Display for StoreLocked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let message = self.message.trim_end().trim_end_matches('.');
        write!(f, "{message}.")?;
        if self.waited >= Duration::from_secs(1) {
            write!(f, " It was not released within {} seconds.", self.waited.as_secs())?;
        }
        let id = match &self.holder {
            Some(holder) => {
                write!(f, "\n\n{}", holder.details())?;
                &*holder.id
            }
            None => "ID",
        };
        write!(
            f,
            "\n\nThe lock keeps two operations from writing the state at the same time. Wait for the other one to end, or let this \
             one wait for it with -lock-timeout=5m. If the program that took it is gone for certain, \"force-unlock {id}\" frees \
             the lock. Most commands can do without a lock (-lock=false), but then nothing protects the state."
        )
    }
}
