//! Conversion of failures in a plugin's own code to diagnostics: panics, in calls and in the plugin's other tasks, and errors
//! without a message.

use std::any::Any;
use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::io::Write as _;
use std::panic::{AssertUnwindSafe, PanicHookInfo};
use std::pin::pin;
use std::sync::{Mutex, PoisonError};

use futures::FutureExt;

use crate::diag::{Diagnostic, Diagnostics, Result};

thread_local! {
    /// The number of guards held by the code that runs on this thread.
    static GUARDS: Cell<usize> = const { Cell::new(0) };
}

/// Guard held while a plugin's code runs for a call. A panic is then reported in the answer of that call, and not as one outside of calls.
pub(crate) struct Guard(());

impl Guard {
    pub fn new() -> Guard {
        GUARDS.set(GUARDS.get() + 1);
        Guard(())
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        GUARDS.set(GUARDS.get().saturating_sub(1));
    }
}

/// Runs a plugin's code, and converts a panic to a diagnostic. Changes of the context before the panic are kept.
pub(crate) async fn guarded<T>(operation: impl Future<Output = Result<T>>) -> Result<T> {
    let mut operation = pin!(operation);
    // A guard counts for its thread only, and the next poll may be on another thread.
    let polled = poll_fn(|cx| {
        let _guard = Guard::new();
        operation.as_mut().poll(cx)
    });
    // Unwind safety: only the context is used after a panic, and each of its fields is set by one assignment.
    let result = AssertUnwindSafe(polled).catch_unwind().await;
    result
        .unwrap_or_else(|panic| Err(panicked(panic.as_ref())))
        .map_err(with_an_error)
}

/// Runs code that is not asynchronous, and converts a panic to a diagnostic.
pub(crate) fn guarded_now<T>(operation: impl FnOnce() -> T) -> Result<T> {
    let _guard = Guard::new();
    std::panic::catch_unwind(AssertUnwindSafe(operation)).map_err(|panic| panicked(panic.as_ref()))
}

/// Runs code that is not asynchronous and can fail, and converts a panic to a diagnostic.
pub(crate) fn guarded_result<T>(operation: impl FnOnce() -> Result<T>) -> Result<T> {
    guarded_now(operation).and_then(|result| result.map_err(with_an_error))
}

/// Returns the diagnostics of a failed operation, with an error added if there is none: the host treats an answer without errors as
/// success.
fn with_an_error(mut found: Diagnostics) -> Diagnostics {
    if !found.has_errors() {
        found.push(Diagnostic::error(
            "Plugin Failed Without an Error",
            "The plugin reported a failure of this operation without a reason: it returned an Err whose diagnostics hold no \
             error. This is a bug in the plugin.",
        ));
    }
    found
}

/// Builds the diagnostic for a panic.
pub(crate) fn panicked(panic: &(dyn Any + Send)) -> Diagnostics {
    Diagnostic::error(
        "Plugin panicked",
        format!(
            "The plugin stopped in the middle of this operation because of a bug in it: {}. Changes that it made before are \
             not undone. The log (TF_LOG=debug) has the place of the bug.",
            message(panic)
        ),
    )
    .into()
}

fn message(panic: &dyn Any) -> &str {
    (panic.downcast_ref::<&str>().copied())
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("no message")
}

/// Panics outside of calls, until an answer reports them.
static UNREPORTED: Mutex<Vec<Diagnostic>> = Mutex::new(Vec::new());

/// Limit of unreported panics. More would repeat them: a task that panics is usually restarted many times.
const UNREPORTED_LIMIT: usize = 8;

/// Installs the panic hook of this process. It logs every panic. A panic in a task or thread that the plugin has started fails no call, so
/// it becomes a warning in the next answer.
pub fn watch_panics() {
    // Logged as an error event, so that the host shows the panic according to its log level.
    std::panic::set_hook(Box::new(|panic| {
        // If errors are not logged, standard error still reaches the host, which shows its last lines when the plugin dies.
        if tracing::enabled!(tracing::Level::ERROR) {
            tracing::error!("{panic}");
        } else {
            // A failure to write is ignored: there is no other place to report it.
            drop(writeln!(std::io::stderr(), "{panic}"));
        }
        // `try_with` fails while the thread is being destroyed. No guard is held then.
        if GUARDS.try_with(Cell::get).unwrap_or_default() == 0 {
            remember(panic);
        }
    }));
}

fn remember(panic: &PanicHookInfo<'_>) {
    let place = panic.location().map(|l| format!(" ({}:{})", l.file(), l.line()));
    let warning = Diagnostic::warning(
        "Plugin task panicked",
        format!(
            "A task that this plugin runs beside its calls stopped because of a bug in the plugin: {}{}. Its work is \
             unfinished.",
            message(panic.payload()),
            place.unwrap_or_default()
        ),
    );
    let mut unreported = UNREPORTED.lock().unwrap_or_else(PoisonError::into_inner);
    // The next answer may come much later, and the list must not grow meanwhile.
    if unreported.len() < UNREPORTED_LIMIT {
        unreported.push(warning);
    }
}

/// Adds the panics outside of calls to the diagnostics of an answer, unless an earlier answer has reported them.
pub fn reported(mut found: Diagnostics) -> Diagnostics {
    found
        .0
        .append(&mut UNREPORTED.lock().unwrap_or_else(PoisonError::into_inner));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_operation_that_fails_has_an_error() {
        let warning = || Diagnostics::from(Diagnostic::warning("Careful", ""));
        for found in [Diagnostics::new(), warning()] {
            let expected = found.0.len() + 1;
            let errors = guarded(async { Err::<(), _>(found.clone()) }).await.unwrap_err();
            assert_eq!(errors.0.len(), expected);
            assert!(errors.has_errors());
            assert_eq!(guarded_result(|| Err::<(), _>(found)).unwrap_err(), errors);
        }
        let own = Diagnostics::from(Diagnostic::error("Own", ""));
        assert_eq!(guarded(async { Err::<(), _>(own.clone()) }).await.unwrap_err(), own);
    }

    #[test]
    fn a_panic_outside_of_calls_is_reported_once_by_the_next_answer() {
        // Runs in a child process, since the panic hook and the list of panics are process-wide.
        let test = "guard::tests::panics_in_a_process";
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args([test, "--exact", "--ignored", "--nocapture"])
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success(),
            "{}{stderr}",
            String::from_utf8_lossy(&output.stdout)
        );
        assert!(stderr.contains("in a task") && stderr.contains("in a call"), "{stderr}");
    }

    #[tokio::test]
    #[ignore = "run by a_panic_outside_of_calls_is_reported_once_by_the_next_answer"]
    async fn panics_in_a_process() {
        watch_panics();
        let call = guarded(async {
            crate::blocking(|| ()).await;
            let task = tokio::spawn(async { panic!("in a task") });
            assert!(task.await.is_err());
            let thread = std::thread::spawn(|| panic!("in a thread"));
            assert!(thread.join().is_err());
            Ok(())
        });
        assert_eq!(call.await, Ok(()));
        for panics in [
            guarded(async { panic!("in a call") }).await,
            guarded_now(|| panic!("in a call")),
        ] {
            let errors: Diagnostics = panics.unwrap_err();
            assert_eq!(errors.0[0].summary, "Plugin panicked");
        }
        let blocking = guarded(async {
            crate::blocking(|| panic!("in a call")).await;
            Ok(())
        });
        assert!(blocking.await.is_err());
        let found = reported(Diagnostics::new());
        let details: Vec<&str> = found.0.iter().map(|d| &*d.detail).collect();
        assert_eq!(details.len(), 2, "{details:?}");
        assert!(
            details[0].contains("in a task (") && details[1].contains("in a thread ("),
            "{details:?}"
        );
        assert_eq!(reported(Diagnostics::new()), Diagnostics::new());
    }
}
