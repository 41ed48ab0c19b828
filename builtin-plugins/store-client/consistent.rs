//! States whose sum is kept in another place than they are.

use std::time::Duration;

use monoform_sdk::{Diagnostics, Result};

use crate::guard::Snapshot;
use crate::sum::md5_hex;

/// How long a state whose sum does not match is read again, and how often.
const LIMIT: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_secs(2);

/// Reads a state until it has the sum that is recorded for it, since either may be seen later than the other. Without a recorded
/// sum any state will do. What is wrong after ten seconds is said by `mismatch`, from the recorded and the actual sum; that of a
/// state that is not there is empty.
///
/// # Errors
/// The state cannot be read, or its sum does not match.
pub async fn read<State, Sum>(
    state: impl Fn() -> State,
    recorded: impl Fn() -> Sum,
    mismatch: impl FnOnce(&str, &str) -> Diagnostics,
) -> Result<Snapshot>
where
    State: Future<Output = Result<Snapshot>>,
    Sum: Future<Output = Option<String>>,
{
    let deadline = tokio::time::Instant::now() + LIMIT;
    loop {
        let snapshot = state().await?;
        let Some(expected) = recorded().await else {
            return Ok(snapshot);
        };
        let actual = snapshot.state.as_deref().map(md5_hex).unwrap_or_default();
        if expected == actual {
            return Ok(snapshot);
        }
        if tokio::time::Instant::now() >= deadline {
            return Err(mismatch(&expected, &actual));
        }
        tracing::info!("the checksum of the state does not match, and it is read again");
        tokio::time::sleep(PAUSE).await;
    }
}

/// A recorded sum, if it is one: the MD5 in hexadecimal.
#[must_use]
pub fn recorded(text: Option<String>) -> Option<String> {
    text.filter(|sum| sum.len() == 32 && sum.chars().all(|c| c.is_ascii_hexdigit()))
        .map(|sum| sum.to_lowercase())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use monoform_sdk::Diagnostic;

    #[tokio::test(start_paused = true)]
    async fn a_state_is_read_until_it_is_the_one_that_is_recorded() {
        let reads = Cell::new(0);
        let late = || {
            reads.set(reads.get() + 1);
            let state = if reads.get() > 2 { b"new" } else { b"old" };
            async { Ok(Snapshot::from(Some(state.to_vec()))) }
        };
        let sum = || async { Some(md5_hex(b"new")) };
        let wrong = |expected: &str, _: &str| Diagnostic::error("", expected).into();
        assert_eq!(read(late, sum, wrong).await.unwrap().state.unwrap(), b"new");
        let none = || async { Ok(None.into()) };
        assert!(read(none, sum, wrong).await.is_err());
        assert_eq!(read(none, || async { None }, wrong).await.unwrap().state, None);
    }
}
