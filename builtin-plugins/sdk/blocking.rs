//! Blocking work outside of the threads of calls.

use crate::guard::Guard;

/// Runs work that keeps a processor or a disk busy on a thread of its own, so that other calls continue
/// meanwhile.
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() {
/// let sum = monoform_sdk::blocking(|| (1..=1_000_000u64).sum::<u64>()).await;
/// assert_eq!(sum, 500_000_500_000);
/// # }
/// ```
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    // A panic is resumed in the call that waits for the work.
    // Its log lines belong to the call.
    let span = tracing::Span::current();
    let work = move || {
        let _guard = Guard::new();
        span.in_scope(work)
    };
    // Not on the call's own thread: other futures of the call go on meanwhile.
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is being torn down, and this task with it.
            Err(_) => std::future::pending().await,
        },
    }
}
