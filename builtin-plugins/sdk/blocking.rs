//! Work that blocks its thread, moved away from the threads that calls run on.

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
    // The span of the call, so that log lines of the work have the fields of the call.
    let span = tracing::Span::current();
    let work = move || {
        let _guard = Guard::new();
        span.in_scope(work)
    };
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // The runtime is shutting down. It drops this task as well, so the task only has to wait.
            Err(_) => std::future::pending().await,
        },
    }
}
