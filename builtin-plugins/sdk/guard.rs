//! Panics of a plugin's code become diagnostics.

use std::any::Any;
use std::future::Future;
use std::panic::AssertUnwindSafe;

use futures::FutureExt;

use crate::{Diagnostic, Diagnostics, Result};

/// Runs a plugin's code; a panic becomes the diagnostic that says so. What the code had changed in its context by then stays.
pub(crate) async fn guarded<T>(operation: impl Future<Output = Result<T>>) -> Result<T> {
    AssertUnwindSafe(operation)
        .catch_unwind()
        .await
        .unwrap_or_else(|panic| Err(panicked(panic.as_ref())))
}

/// The same for code that is not asynchronous.
pub(crate) fn guarded_now<T>(operation: impl FnOnce() -> T) -> Result<T> {
    std::panic::catch_unwind(AssertUnwindSafe(operation)).map_err(|panic| panicked(panic.as_ref()))
}

/// The diagnostic for a panic.
pub(crate) fn panicked(panic: &(dyn Any + Send)) -> Diagnostics {
    let text = panic
        .downcast_ref::<&str>()
        .map(|s| (*s).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "no message".to_owned());
    Diagnostic::error(
        "Plugin Panicked",
        format!(
            "The plugin stopped in the middle of this operation because of a bug of its own: {text}. What it did before \
             that is not undone. The log (TF_LOG=debug) says where it happened."
        ),
    )
    .into()
}
