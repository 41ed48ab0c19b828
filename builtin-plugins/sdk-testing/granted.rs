//! Options that a host sends with its calls: deferral, `provider_meta`, stop signals.

use std::sync::PoisonError;

use monoform_sdk::calls::{Call, CallOptions};
use monoform_sdk::{Deferral, Provider, Result, Stop};

use crate::config::{self, Config};
use crate::harness::Harness;
use crate::wires::{EMPTY, encode};

impl<P: Provider> Harness<P> {
    /// Makes all calls allow deferred answers, as hosts do that support them.
    #[must_use]
    pub fn allow_deferral(mut self) -> Harness<P> {
        self.calls.deferral_allowed = true;
        self
    }

    /// Sends this `provider_meta` block with all calls, as the block of the calling module.
    ///
    /// # Errors
    /// The block does not fit the schema, or the provider has none.
    pub fn with_provider_meta(mut self, meta: Config<'_>) -> Result<Harness<P>> {
        let schema = self.provider.meta_schema().unwrap_or(&*EMPTY);
        self.calls.meta = encode(Some(&config::object(schema, meta)?), schema)?;
        Ok(self)
    }

    /// Gives the next call this stop signal, such as [`Stop::after`] a time or [`Stop::when`] something happens. Calls after it have
    /// signals of their own again; [`Harness::stop`] reaches all that are running.
    pub fn stop_next(&self, stop: Stop) {
        *self.calls.stop.lock().unwrap_or_else(PoisonError::into_inner) = Some(stop);
    }

    /// Takes the reason for which the last answer was deferred, if it was.
    pub fn deferred(&self) -> Option<Deferral> {
        self.calls
            .deferred
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    /// Records whether an answer was deferred.
    pub(crate) fn record(&self, deferred: Option<Deferral>) {
        *self.calls.deferred.lock().unwrap_or_else(PoisonError::into_inner) = deferred;
    }

    /// Begins a call. Its registration ends with the first value.
    pub(crate) fn begin(&self) -> (Call, CallOptions) {
        let call = self.provider.calls().begin();
        let given = self.calls.stop.lock().unwrap_or_else(PoisonError::into_inner).take();
        let stop = given.unwrap_or_else(|| call.stop());
        let options = CallOptions::from(stop)
            .deferral(self.calls.deferral_allowed)
            .meta(self.calls.meta.clone());
        (call, options)
    }
}
