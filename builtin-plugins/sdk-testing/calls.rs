//! Settings of the calls of a harness.

use std::sync::Mutex;

use monoform_sdk::wire::Wire;
use monoform_sdk::{Deferral, Stop};

/// Settings of the calls of a harness, and what their answers have beside the result.
#[derive(Default)]
pub(crate) struct Calls {
    pub deferral_allowed: bool,
    pub meta: Wire,
    /// The stop signal of the next call.
    pub stop: Mutex<Option<Stop>>,
    /// The deferral in the last answer.
    pub deferred: Mutex<Option<Deferral>>,
}
