//! Locks of states by records that only one program can create.
//!
//! Services differ in the kind of record (an object, a row of a table, a lease) and in the condition for its creation: a
//! [`LockRecord`] has these requests. The logic for their answers is in [`acquire`], [`release`] and [`holder`]. An answer can be
//! lost after its request was carried out, and another program can act between two requests. So a record is read whenever its holder
//! is not certain, and only the ID in it decides.
//!
//! A state can have several records that are locked together: those of `s3` are an object and an item of a table.

use std::time::Duration;

use monoform_sdk::state_store::{LockError, LockInfo};
use monoform_sdk::{Diagnostics, Result, async_trait};

use crate::about::{LOCK, UNLOCK, details, problem};

/// Attempts to create or remove a record while other programs change it between two requests.
const ATTEMPTS: u32 = 10;

/// Attempts to take a lock whose holder is unknown, and the pause between them.
const SETTLING_ATTEMPTS: u32 = 4;
const SETTLING_PAUSE: Duration = Duration::from_millis(400);

/// Records that lock one state, in the order in which they are created.
pub type Records<'s> = Vec<Box<dyn LockRecord + 's>>;

/// Requests for one record of a lock.
#[async_trait]
pub trait LockRecord: Send + Sync {
    /// Returns the name of the record for messages, with its kind: `the lock file "x" in the bucket "y"`.
    fn name(&self) -> String;

    /// Returns the path of the state for the record's content.
    fn path(&self) -> String;

    /// Creates the record with this content, unless it exists.
    async fn create(&self, info: &LockInfo) -> std::result::Result<Created, LockError>;

    /// Reads the record; `None` if the state is not locked. `summary` is that of the diagnostic.
    async fn find(&self, summary: &str) -> Result<Option<Found>>;

    /// Removes the record; only in the version that was found, where the service has conditions.
    async fn remove(&self, found: &Found) -> Result<Removed>;
}

#[derive(Clone, Debug)]
pub enum Created {
    /// The record was created, and is released by this ID.
    Done(String),
    /// Nothing was created: the record exists, or existed when the request was answered.
    Exists,
}

#[derive(Clone, Debug)]
pub enum Removed {
    Done,
    /// Nothing was removed: the record is another one than was found.
    Changed,
}

/// Record of a lock that is held.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// Content of the record, with the ID that releases the lock. Empty if the record has none.
    pub info: LockInfo,
    /// ID that the holder chose, where the service assigns another one.
    pub chosen_id: Option<String>,
    /// Version for the condition of a removal.
    pub version: Option<String>,
    /// Advice for a record that does not name its holder.
    pub anonymous: Option<String>,
}

impl Found {
    #[must_use]
    pub fn new(info: LockInfo) -> Found {
        Found {
            info,
            ..Found::default()
        }
    }

    /// Describes a record of a service that assigns the ID by which a lock is released. The ID that the holder itself
    /// has chosen is in `info`.
    #[must_use]
    pub fn with_id(mut info: LockInfo, id: String) -> Found {
        let chosen_id = Some(std::mem::replace(&mut info.id, id));
        Found {
            chosen_id,
            ..Found::new(info)
        }
    }

    /// Reads a record whose content should be JSON.
    #[must_use]
    pub fn of_text(text: &str) -> Found {
        match LockInfo::from_json(text.as_bytes()) {
            Some(info) => Found::new(info),
            None => Found {
                anonymous: Some(
                    "It has no lock information in it. If nobody works on the state, delete it.".to_owned(),
                ),
                ..Found::default()
            },
        }
    }

    /// Returns true if the record was created for this lock.
    fn is_of(&self, info: &LockInfo) -> bool {
        !info.id.is_empty() && self.chosen_id.as_ref().unwrap_or(&self.info.id) == &info.id
    }
}

/// Holder of a lock.
#[derive(Clone, Debug)]
pub enum Holder {
    /// The lock with the ID of this program.
    Own,
    /// The lock is free.
    Free,
    /// Another program holds the lock.
    Other(Box<LockInfo>),
    /// Unknown to the service, or the lock was lost temporarily: only the state itself can show whether another program has written.
    Unknown,
}

impl Holder {
    /// Returns the holder that the content of a lock names.
    #[must_use]
    pub fn new(found: Option<LockInfo>, own: &str) -> Holder {
        match found {
            None => Holder::Free,
            Some(info) if info.id == own => Holder::Own,
            Some(info) => Holder::Other(Box::new(info)),
        }
    }
}

/// The outcome of a release.
enum Released {
    Now,
    NotHeld,
}

/// Takes the lock of a state: all of its records or none. Returns the ID that releases it, which is empty if nothing locks the state.
///
/// # Errors
/// Another program holds the lock, or a request failed.
pub async fn acquire(records: &Records<'_>, mut info: LockInfo) -> std::result::Result<String, LockError> {
    let mut id = String::new();
    for (index, record) in records.iter().enumerate() {
        info.path = record.path();
        let taken = settled(|| acquire_record(&**record, &info)).await;
        match taken {
            // All records have the same ID, unless the service assigns its own.
            Ok(own) => id = own,
            Err(error) => return Err(give_back(&records[..index], &id, error).await),
        }
    }
    Ok(id)
}

async fn acquire_record(record: &dyn LockRecord, info: &LockInfo) -> std::result::Result<String, LockError> {
    for _ in 0..ATTEMPTS {
        let failed = match record.create(info).await {
            Ok(Created::Done(id)) => return Ok(id),
            Ok(Created::Exists) => None,
            Err(LockError::Failed(problems)) => Some(problems),
            Err(held) => return Err(held),
        };
        match (record.find(LOCK).await, failed) {
            // An earlier attempt was carried out, and its answer was lost.
            (Ok(Some(found)), _) if found.is_of(info) => return Ok(found.info.id),
            // A record without a holder does not explain a failed request: that failure is reported below.
            (Ok(Some(found)), failed) if failed.is_none() || found.anonymous.is_none() => {
                return Err(held(record, found, failed));
            }
            (_, Some(problems)) => return Err(LockError::Failed(problems)),
            (Err(problems), None) => return Err(LockError::Failed(problems)),
            // The record was removed between the two requests.
            (Ok(_), None) => {}
        }
    }
    let message = format!("Other programs take {} again and again.", record.name());
    Err(LockError::held(None, message))
}

/// Builds the error for a lock that is held by the program in this record.
fn held(record: &dyn LockRecord, found: Found, failed: Option<Diagnostics>) -> LockError {
    let mut message = format!("the state is already locked: {} has a holder.", record.name());
    if let Some(problems) = failed {
        message = format!("{message} {}", details(&problems));
    }
    match found.anonymous {
        None => LockError::held(Some(found.info), message),
        Some(advice) => LockError::held(None, format!("{message} {advice}")),
    }
}

/// Releases the records that were created before taking the lock failed.
async fn give_back(taken: &[Box<dyn LockRecord + '_>], id: &str, error: LockError) -> LockError {
    for record in taken {
        if let Err(problems) = release_record(&**record, id).await {
            let detail = format!(
                "{} {} was taken before, and cannot be released: {}",
                details(&error.into_diagnostics()),
                record.name(),
                details(&problems)
            );
            return problem(LOCK, detail).into();
        }
    }
    error
}

/// Releases the lock with this ID. Some of several records may be missing, if a program was killed before it created them.
///
/// # Errors
/// The state is not locked, the lock has another ID, or a request failed.
pub async fn release(records: &Records<'_>, id: &str) -> Result<()> {
    let mut is_held = false;
    let mut problems = Diagnostics::new();
    for record in records {
        match release_record(&**record, id).await {
            Ok(Released::Now) => is_held = true,
            Ok(Released::NotHeld) => {}
            // A failure must not keep the other records locked.
            Err(failed) => problems.append(failed),
        }
    }
    if problems.has_errors() {
        return Err(problems);
    }
    if is_held || records.is_empty() {
        return Ok(());
    }
    let names: Vec<String> = records.iter().map(|record| record.name()).collect();
    let detail = format!("The state is not locked: nobody holds {}.", names.join(" or "));
    Err(problem(UNLOCK, detail))
}

async fn release_record(record: &dyn LockRecord, id: &str) -> Result<Released> {
    for attempt in 0..ATTEMPTS {
        let found = match record.find(UNLOCK).await? {
            Some(found) if found.info.id == id && !id.is_empty() => found,
            // The earlier attempt was carried out, and its answer was lost.
            _ if attempt > 0 => return Ok(Released::Now),
            None => return Ok(Released::NotHeld),
            Some(found) => return Err(mismatch(record, &found, id)),
        };
        match record.remove(&found).await {
            Ok(Removed::Done) => return Ok(Released::Now),
            // The record has changed since it was read; if it still has our ID, it is removed in its new version.
            Ok(Removed::Changed) => {}
            Err(problems) => match record.find(UNLOCK).await {
                Ok(Some(found)) if found.info.id == id => return Err(problems),
                Err(_) => return Err(problems),
                // The removal was carried out, and its answer was lost.
                Ok(_) => return Ok(Released::Now),
            },
        }
    }
    let detail = format!("Other programs change {} again and again.", record.name());
    Err(problem(UNLOCK, detail))
}

fn mismatch(record: &dyn LockRecord, found: &Found, id: &str) -> Diagnostics {
    let name = record.name();
    let detail = match &found.anonymous {
        Some(advice) if found.info.id.is_empty() => format!("The ID of {name} is not known. {advice}"),
        _ => format!(
            "lock ID {id:?} does not match the existing lock: {name} has the ID {:?}: {}.",
            found.info.id, found.info
        ),
    };
    problem(UNLOCK, detail)
}

/// Returns the holder of a lock. It is this program only if all records are its own.
///
/// # Errors
/// A record cannot be read.
pub async fn holder(records: &Records<'_>, summary: &str, own: &str) -> Result<Holder> {
    let mut holder = Holder::Free;
    for record in records {
        holder = match record.find(summary).await? {
            // A service may store lock and holder separately; without an ID they cannot be compared.
            Some(found) if found.info.id.is_empty() => Holder::Unknown,
            found => Holder::new(found.map(|found| found.info), own),
        };
        if !matches!(holder, Holder::Own) {
            break;
        }
    }
    Ok(holder)
}

/// Repeats `attempt` while the lock is held by an unknown holder. `-lock-timeout` waits only for a lock with a known holder, and
/// stores that write the lock before its holder have an unknown one for a short time.
///
/// # Errors
/// Those of the last attempt.
pub async fn settled<F>(mut attempt: impl FnMut() -> F) -> std::result::Result<String, LockError>
where
    F: Future<Output = std::result::Result<String, LockError>>,
{
    for _ in 1..SETTLING_ATTEMPTS {
        match attempt().await {
            Err(LockError::Held { holder: None, .. }) => tokio::time::sleep(SETTLING_PAUSE).await,
            result => return result,
        }
    }
    attempt().await
}

#[cfg(test)]
#[path = "lock_tests.rs"]
mod tests;
