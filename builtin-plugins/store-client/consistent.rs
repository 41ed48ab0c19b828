//! States whose checksum is stored separately.
//!
//! After a write, some services return the old state for a while. The recorded checksum shows whether a state is the latest one. A store
//! implements the requests ([`Sums`]); this module handles missing, late and wrong checksums. If a request for a checksum fails, the
//! failure is only logged: the fault that checksums guard against is rare, and the state itself can be used.

use std::time::Duration;

use monoform_sdk::{Diagnostics, Result, async_trait};

use crate::about::details;
use crate::guard::{Snapshot, Written};
use crate::sum::md5_hex;

/// Time limit for reading a state again while its checksum does not match.
const LIMIT: Duration = Duration::from_secs(10);

/// Pause between the reads of a state whose checksum does not match.
const PAUSE: Duration = Duration::from_secs(2);

/// Requests for the checksums of states. A checksum is stored under the key of its state.
#[async_trait]
pub trait Sums: Send + Sync {
    /// Returns the recorded checksum; `None` if there is none, or if the store records no checksums.
    async fn find(&self, key: &str) -> Result<Option<String>>;

    async fn record(&self, key: &str, sum: &str) -> Result<()>;

    async fn forget(&self, key: &str) -> Result<()>;
}

/// Reads a state until it has the recorded checksum. Without a recorded checksum, any state is returned. After ten seconds, `mismatch`
/// creates the error from the recorded and the actual checksum; the latter is empty if there is no state.
///
/// # Errors
/// The state cannot be read, or its checksum does not match.
pub async fn read<State>(
    sums: &dyn Sums,
    key: &str,
    state: impl Fn() -> State,
    mismatch: impl FnOnce(&str, &str) -> Diagnostics,
) -> Result<Snapshot>
where
    State: Future<Output = Result<Snapshot>>,
{
    let deadline = tokio::time::Instant::now() + LIMIT;
    loop {
        let snapshot = state().await?;
        let Some(expected) = recorded(sums, key).await else {
            return Ok(snapshot);
        };
        let actual = snapshot.state.as_deref().map(md5_hex).unwrap_or_default();
        if expected == actual {
            return Ok(snapshot);
        }
        if tokio::time::Instant::now() >= deadline {
            return Err(mismatch(&expected, &actual));
        }
        // The new state or the new checksum may become visible late, so both are read again.
        tracing::info!("the checksum of the state does not match, and it is read again");
        tokio::time::sleep(PAUSE).await;
    }
}

/// Awaits the write `put`, and records the checksum of the state if it was written. If `put` returns an error, `there` reads the state,
/// because it may have been written nevertheless.
///
/// # Errors
/// The write failed, and the state that is read afterwards is not the new one.
pub async fn write<State>(
    sums: &dyn Sums,
    key: &str,
    state: &[u8],
    put: impl Future<Output = Result<Written>>,
    there: impl FnOnce() -> State,
) -> Result<Written>
where
    State: Future<Output = Result<Snapshot>>,
{
    let revision = match put.await {
        Ok(Written::Done(revision)) => revision,
        Ok(refused) => return Ok(refused),
        // A write that returned an error may still have been carried out. If it was, the new checksum must be recorded: with the old one,
        // the state could not be read any more.
        Err(problems) => match there().await {
            Ok(there) if there.state.as_deref() == Some(state) => there.revision,
            _ => return Err(problems),
        },
    };
    log(sums.record(key, &md5_hex(state)).await);
    Ok(Written::Done(revision))
}

/// Removes the checksum of a state that is deleted.
pub async fn forget(sums: &dyn Sums, key: &str) {
    log(sums.forget(key).await);
}

/// Returns the recorded checksum in lower case, if it is an MD5 in hexadecimal.
async fn recorded(sums: &dyn Sums, key: &str) -> Option<String> {
    log(sums.find(key).await)?
        .filter(|sum| sum.len() == 32 && sum.chars().all(|c| c.is_ascii_hexdigit()))
        .map(|sum| sum.to_lowercase())
}

fn log<T>(result: Result<T>) -> Option<T> {
    result
        .inspect_err(|problems| tracing::warn!("{}", details(problems)))
        .ok()
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::sync::Mutex;

    use super::*;
    use crate::about::problem;

    /// The checksum of one state; `None` if the table cannot be used.
    struct Table(Mutex<Option<String>>);

    impl Table {
        fn new(sum: Option<&[u8]>) -> Table {
            Table(Mutex::new(sum.map(md5_hex)))
        }
    }

    #[async_trait]
    impl Sums for Table {
        async fn find(&self, _key: &str) -> Result<Option<String>> {
            let sum = self.0.lock().unwrap().clone();
            sum.map(Some).ok_or_else(|| problem("", "no table"))
        }

        async fn record(&self, _key: &str, sum: &str) -> Result<()> {
            *self.0.lock().unwrap() = Some(sum.to_owned());
            Ok(())
        }

        async fn forget(&self, _key: &str) -> Result<()> {
            *self.0.lock().unwrap() = None;
            Ok(())
        }
    }

    fn wrong(expected: &str, _: &str) -> Diagnostics {
        problem("", expected)
    }

    #[tokio::test(start_paused = true)]
    async fn a_state_is_read_until_it_is_the_one_that_is_recorded() {
        let reads = Cell::new(0);
        let late = || {
            reads.set(reads.get() + 1);
            let state = if reads.get() > 2 { b"new" } else { b"old" };
            async { Ok(Snapshot::from(Some(state.to_vec()))) }
        };
        let table = Table::new(Some(b"new"));
        assert_eq!(read(&table, "k", late, wrong).await.unwrap().state.unwrap(), b"new");
        let none = || async { Ok(None.into()) };
        assert!(read(&table, "k", none, wrong).await.is_err());
        assert_eq!(read(&Table::new(None), "k", none, wrong).await.unwrap().state, None);
    }

    #[tokio::test]
    async fn sum_is_recorded_only_for_a_state_that_was_written() {
        let there = |state: &'static [u8]| move || async move { Ok(Snapshot::from(Some(state.to_vec()))) };
        let failed = || async { Err(problem("", "no answer")) };
        let sum = |table: &Table| table.0.lock().unwrap().clone().unwrap();
        let table = Table::new(Some(b"old"));
        write(&table, "k", b"new", failed(), there(b"old")).await.unwrap_err();
        let changed = async { Ok(Written::Changed) };
        write(&table, "k", b"new", changed, there(b"old")).await.unwrap();
        assert_eq!(sum(&table), md5_hex(b"old"));
        write(&table, "k", b"new", failed(), there(b"new")).await.unwrap();
        assert_eq!(sum(&table), md5_hex(b"new"));
        let done = async { Ok(Written::Done(None)) };
        write(&table, "k", b"newer", done, there(b"")).await.unwrap();
        assert_eq!(sum(&table), md5_hex(b"newer"));
    }
}
