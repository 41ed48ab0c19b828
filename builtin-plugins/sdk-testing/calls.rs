//! Settings of the calls of a harness.

use std::sync::Mutex;

use monoform_sdk::wire::Wire;
use monoform_sdk::{Deferral, Stop};

/// Options for the calls of a harness, and the deferral of the last answer.
#[derive(Default)]
pub(crate) struct Calls {
    pub deferral_allowed: bool,
    pub meta: Wire,
    /// The stop signal of the next call.
    pub stop: Mutex<Option<Stop>>,
    /// The deferral of the last answer.
    pub deferred: Mutex<Option<Deferral>>,
}
