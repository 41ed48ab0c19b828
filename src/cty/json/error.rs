//! Errors of JSON text.

/// Reason why a text is not a JSON document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message} (at byte {byte})")]
pub struct JsonError {
    pub(super) byte: usize,
    pub(super) message: &'static str,
}
