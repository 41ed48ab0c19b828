//! The lock of a state: a record that only one program can create.
//!
//! Services differ in what a record is (an object, a row of a table, a lease) and in the condition under which it is created. A
//! [`LockRecord`] has these requests. What follows from their answers is the same everywhere, and is here: [`acquire`], [`release`]
//! and [`holder`]. An answer can be lost after its request was carried out, and another program can act between two requests. So
//! a record is read whenever it is not certain whose it is, and only the ID in it decides.
//!
//! A store can have several records for one state, which are locked together: those of `s3` are an object and an item of a table.

use std::time::Duration;

use monoform_sdk::state_store::{LockError, LockInfo};
use monoform_sdk::{Diagnostics, Result, async_trait};

use crate::about::{LOCK, UNLOCK, details, problem};

/// How often a record is created or removed again while other programs change it between two requests.
const ATTEMPTS: u32 = 10;

/// How often a lock is tried for whose holder is not known, and how long to wait between.
const SETTLING_ATTEMPTS: u32 = 4;
const SETTLING_PAUSE: Duration = Duration::from_millis(400);

/// The records that lock one state, in the order in which they are taken.
pub type Records<'s> = Vec<Box<dyn LockRecord + 's>>;

/// The requests of which a lock is made.
#[async_trait]
pub trait LockRecord: Send + Sync {
    /// The name of the record in messages, with its kind: `the lock file "x" in the bucket "y"`.
    fn name(&self) -> String;

    /// The path of the state in the record.
    fn path(&self) -> String;

    /// Creates the record with this content, unless there is one.
    async fn create(&self, info: &LockInfo) -> std::result::Result<Created, LockError>;

    /// The record as the service has it now; `None` if the state is not locked.
    async fn find(&self, summary: &str) -> Result<Option<Found>>;

    /// Removes the record, where the service has conditions only in the version that was found.
    async fn remove(&self, found: &Found) -> Result<Removed>;
}

#[derive(Clone, Debug)]
pub enum Created {
    /// The record is there, and the lock is released by this ID.
    Done(String),
    /// Nothing was created: there is a record, or was when the request was answered.
    Exists,
}

#[derive(Clone, Debug)]
pub enum Removed {
    Done,
    /// Nothing was removed: the record is not the one that was found.
    Changed,
}

/// The record of a lock that is held.
#[derive(Clone, Debug, Default)]
pub struct Found {
    /// The content, with the ID by which the lock is released. It is empty if the record does not say it.
    pub info: LockInfo,
    /// The ID that the holder chose, where the service gives locks another one.
    pub chosen_id: Option<String>,
    /// The version for the condition of a removal.
    pub version: Option<String>,
    /// The record does not name its holder: what can be done about it.
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

    /// A record of a service that gives locks an ID of its own, by which they are released. The holder's is the one in `info`.
    #[must_use]
    pub fn with_id(mut info: LockInfo, id: String) -> Found {
        let chosen_id = Some(std::mem::replace(&mut info.id, id));
        Found {
            chosen_id,
            ..Found::new(info)
        }
    }

    /// A record whose content is this text, which should be JSON.
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

    /// Whether the record was created for this lock.
    fn is_of(&self, info: &LockInfo) -> bool {
        !info.id.is_empty() && self.chosen_id.as_ref().unwrap_or(&self.info.id) == &info.id
    }
}

/// Whose a lock is.
#[derive(Clone, Debug)]
pub enum Holder {
    /// It is the one of the name that was asked for.
    Own,
    /// The lock is free.
    Free,
    /// Another program has it.
    Other(Box<LockInfo>),
    /// The service does not tell, or it is free and was lost for a time: then the state itself must be the one that is known.
    Unknown,
}

impl Holder {
    /// The holder that a lock's content names.
    #[must_use]
    pub fn of(found: Option<LockInfo>, own: &str) -> Holder {
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
    /// There was no record.
    NotHeld,
}

/// Takes the lock of a state: all of its records, or none. Returns the ID by which it is released; it is empty where nothing locks
/// the state.
///
/// # Errors
/// Another program holds the lock, or a request failed.
pub async fn acquire(records: &Records<'_>, mut info: LockInfo) -> std::result::Result<String, LockError> {
    let mut id = String::new();
    for (index, record) in records.iter().enumerate() {
        info.path = record.path();
        let taken = settled(|| acquire_record(&**record, &info)).await;
        match taken {
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
            // The answer to an attempt was lost, after it was carried out.
            (Ok(Some(found)), _) if found.is_of(info) => return Ok(found.info.id),
            (Ok(Some(found)), failed) if failed.is_none() || found.anonymous.is_none() => {
                return Err(held(record, found, failed));
            }
            (_, Some(problems)) => return Err(LockError::Failed(problems)),
            (Err(problems), None) => return Err(LockError::Failed(problems)),
            // It was released between the two requests.
            (Ok(_), None) => {}
        }
    }
    let message = format!("Other programs take {} again and again.", record.name());
    Err(LockError::held(None, message))
}

/// The lock is held by the program that this record names.
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

/// Releases the records that were taken before the lock failed.
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

/// Releases the lock with this ID. Of several records some may be missing: those that a killed program had not created yet.
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
            // The answer to the attempt before was lost.
            _ if attempt > 0 => return Ok(Released::Now),
            None => return Ok(Released::NotHeld),
            Some(found) => return Err(mismatch(record, &found, id)),
        };
        match record.remove(&found).await {
            Ok(Removed::Done) => return Ok(Released::Now),
            Ok(Removed::Changed) => {}
            Err(problems) => match record.find(UNLOCK).await {
                Ok(Some(found)) if found.info.id == id => return Err(problems),
                Err(_) => return Err(problems),
                // It was carried out, and its answer was lost.
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

/// The holder of a lock. It is this program only if all records are its own.
///
/// # Errors
/// A record cannot be read.
pub async fn holder(records: &Records<'_>, summary: &str, own: &str) -> Result<Holder> {
    let mut holder = Holder::Free;
    for record in records {
        holder = match record.find(summary).await? {
            Some(found) if found.info.id.is_empty() => Holder::Unknown,
            found => Holder::of(found.map(|found| found.info), own),
        };
        if !matches!(holder, Holder::Own) {
            break;
        }
    }
    Ok(holder)
}

/// Retries to acquire a lock while it is held and its holder is unknown: stores that write the lock and its holder one after the other
/// are in that state for a moment while another program acquires or releases it. `-lock-timeout` waits only for a lock whose holder
/// is known.
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
