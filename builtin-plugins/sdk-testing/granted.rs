//! Options that a host sends with its calls: deferral, `provider_meta` and stop signals.

use std::sync::PoisonError;

use monoform_sdk::calls::{Call, CallOptions};
use monoform_sdk::{Deferral, Provider, Result, Stop};

use crate::config::{self, Config};
use crate::harness::Harness;
use crate::wires::{EMPTY, encode};

impl<P: Provider> Harness<P> {
    /// Makes all calls accept deferred answers, as hosts do that have the client capability `deferral_allowed`.
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

    /// Uses this stop signal for the next call, such as [`Stop::after`] a time or [`Stop::when`] a future completes. Later calls have
    /// signals of their own again. To stop all running calls, use [`Harness::stop`].
    pub fn stop_next(&self, stop: Stop) {
        *self.calls.stop.lock().unwrap_or_else(PoisonError::into_inner) = Some(stop);
    }

    /// Takes the reason for the deferral of the last answer; `None` if the answer was not deferred. Answers that cannot be deferred, such
    /// as that of [`Ephemeral::renew`](crate::Ephemeral::renew), do not count.
    pub fn deferred(&self) -> Option<Deferral> {
        self.calls
            .deferred
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take()
    }

    /// Records the deferral of an answer; `None` if the answer was not deferred.
    pub(crate) fn record(&self, deferred: Option<Deferral>) {
        *self.calls.deferred.lock().unwrap_or_else(PoisonError::into_inner) = deferred;
    }

    /// Begins a call. The call counts as running until the returned [`Call`] is dropped.
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
