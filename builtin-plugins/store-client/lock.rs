//! Locks of states by records that only one program can create.
//!
//! Services differ in the kind of record (an object, a row of a table, a lease) and in the condition for its creation, so each store
//! implements the requests of a [`LockRecord`]. The logic for their answers is in [`acquire`], [`release`] and [`holder`]. The answer to a
//! request can be lost after the request was carried out, and another program can act between two requests. So whenever the holder is not
//! certain, the record is read, and the ID in it decides.
//!
//! A state can have several records that are locked together: `s3` uses an object and an item of a table.

use std::time::Duration;

use monoform_sdk::state_store::{LockError, LockInfo};
use monoform_sdk::{Diagnostics, Result, async_trait};

use crate::about::{LOCK, UNLOCK, details, problem};

/// Maximum number of attempts to create or remove a record while other programs change it between two requests.
const ATTEMPTS: u32 = 10;

/// Maximum number of attempts to take a lock whose holder is unknown.
const SETTLING_ATTEMPTS: u32 = 4;

/// Pause between the attempts to take a lock whose holder is unknown.
const SETTLING_PAUSE: Duration = Duration::from_millis(400);

/// Records that lock one state, in the order in which they are created.
pub type Records<'s> = Vec<Box<dyn LockRecord + 's>>;

/// Requests for one record of a lock.
#[async_trait]
pub trait LockRecord: Send + Sync {
    /// Returns the kind and name of the record for messages: `the lock file "x" in the bucket "y"`.
    fn name(&self) -> String;

    /// Returns the path of the state, which becomes `Path` of the lock info.
    fn path(&self) -> String;

    /// Creates the record with this lock info, unless the record exists.
    async fn create(&self, info: &LockInfo) -> std::result::Result<Created, LockError>;

    /// Reads the record; `None` if the state is not locked. `summary` is the summary for an error.
    async fn find(&self, summary: &str) -> Result<Option<Found>>;

    /// Removes the record. If the service has conditional requests, removes it only in the version that was found.
    async fn remove(&self, found: &Found) -> Result<Removed>;
}

#[derive(Clone, Debug)]
pub enum Created {
    /// The record was created. The ID releases it.
    Done(String),
    /// Nothing was created, because the record already existed.
    Exists,
}

#[derive(Clone, Debug)]
pub enum Removed {
    Done,
    /// Nothing was removed, because the record has changed since it was found.
    Changed,
}

/// Record of an existing lock.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// Lock info in the record, with the ID that releases the lock. Empty if the record has no lock info.
    pub info: LockInfo,
    /// ID that the holder chose, if the service assigns a different one.
    pub chosen_id: Option<String>,
    /// Version of the record, for a conditional removal.
    pub version: Option<String>,
    /// Advice for the user if the record does not name its holder.
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

    /// Creates the record of a service that assigns the ID by which a lock is released. The ID in `info` is the one that the holder has
    /// chosen.
    #[must_use]
    pub fn with_id(mut info: LockInfo, id: String) -> Found {
        let chosen_id = Some(std::mem::replace(&mut info.id, id));
        Found {
            chosen_id,
            ..Found::new(info)
        }
    }

    /// Reads a record whose content should be lock info in JSON.
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

    /// Returns true if the record was created for the lock with this lock info.
    fn is_of(&self, info: &LockInfo) -> bool {
        !info.id.is_empty() && self.chosen_id.as_ref().unwrap_or(&self.info.id) == &info.id
    }
}

/// Holder of a lock.
#[derive(Clone, Debug)]
pub enum Holder {
    /// This program.
    Own,
    /// Nobody: the lock is free.
    Free,
    /// Another program.
    Other(Box<LockInfo>),
    /// Unknown: the service cannot tell, or the lock was temporarily lost. Only the state itself can show whether another program has
    /// written.
    Unknown,
}

impl Holder {
    /// Returns the holder according to the lock info that was found.
    #[must_use]
    pub fn new(found: Option<LockInfo>, own: &str) -> Holder {
        match found {
            None => Holder::Free,
            Some(info) if info.id == own => Holder::Own,
            Some(info) => Holder::Other(Box::new(info)),
        }
    }
}

/// Result of releasing one record.
enum Released {
    Now,
    NotHeld,
}

/// Takes the lock of a state: all of its records or none. Returns the ID that releases the lock; an empty ID if the state has no records.
///
/// # Errors
/// Another program holds the lock, or a request failed.
pub async fn acquire(records: &Records<'_>, mut info: LockInfo) -> std::result::Result<String, LockError> {
    let mut id = String::new();
    for (index, record) in records.iter().enumerate() {
        info.path = record.path();
        let taken = settled(|| acquire_record(&**record, &info)).await;
        match taken {
            // All records get the same ID, unless the service assigns its own.
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
            // An earlier attempt was carried out, but its answer was lost.
            (Ok(Some(found)), _) if found.is_of(info) => return Ok(found.info.id),
            // If a request failed, a record without a holder does not explain why, so the failure is reported below.
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

/// Creates the error for a lock whose holder is in this record.
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

/// Releases the records that were created before the lock could not be taken. Returns `error`, or an error that also names the record that
/// cannot be released.
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

/// Releases the lock with this ID. It is no error if some of several records are missing: a program may have been killed before it created
/// them.
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
            // Continues after a failure, so that the other records do not stay locked.
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
            // An earlier attempt was carried out, but its answer was lost.
            _ if attempt > 0 => return Ok(Released::Now),
            None => return Ok(Released::NotHeld),
            Some(found) => return Err(mismatch(record, &found, id)),
        };
        match record.remove(&found).await {
            Ok(Removed::Done) => return Ok(Released::Now),
            // The record has changed since it was read. It is read again, and removed if it still has the ID of this lock.
            Ok(Removed::Changed) => {}
            Err(problems) => match record.find(UNLOCK).await {
                Ok(Some(found)) if found.info.id == id => return Err(problems),
                Err(_) => return Err(problems),
                // The removal was carried out, but its answer was lost.
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

/// Returns the holder of a lock. Returns [`Holder::Own`] only if this program holds all records.
///
/// # Errors
/// A record cannot be read.
pub async fn holder(records: &Records<'_>, summary: &str, own: &str) -> Result<Holder> {
    let mut holder = Holder::Free;
    for record in records {
        holder = match record.find(summary).await? {
            // Without an ID, the holder cannot be determined. A service may store the lock and its holder separately.
            Some(found) if found.info.id.is_empty() => Holder::Unknown,
            found => Holder::new(found.map(|found| found.info), own),
        };
        if !matches!(holder, Holder::Own) {
            break;
        }
    }
    Ok(holder)
}

/// Repeats `attempt` while the lock is held by an unknown holder. Some stores write the lock before its holder, so that the holder is
/// unknown for a short time. `-lock-timeout` would not wait in that case, because it waits only for a known holder.
///
/// # Errors
/// The error of the last attempt.
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
