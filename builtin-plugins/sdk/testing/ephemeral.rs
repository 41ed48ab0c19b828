//! Ephemeral resources under test, from opening to closing.

use std::time::SystemTime;

use cty::Value;

use super::{Config, EMPTY, Harness, config, decode, encode};
use crate::{Provider, Result};

/// An ephemeral resource that is open.
pub struct Ephemeral<'h, P: Provider> {
    harness: &'h Harness<P>,
    name: String,
    result: Value,
    renew_at: Option<SystemTime>,
    private: Vec<u8>,
}

impl<'h, P: Provider> Ephemeral<'h, P> {
    pub(super) async fn open(harness: &'h Harness<P>, name: &str, config: Config<'_>) -> Result<Ephemeral<'h, P>> {
        let core = &harness.core;
        let schema = core.ephemerals.get(name).map_or(&*EMPTY, |e| e.schema());
        let wire = encode(Some(&config::object(schema, config)?), schema)?;
        harness.sort(core.validate_ephemeral(name, &wire))?;
        let call = core.calls.begin();
        let answer = core.open(name, &wire, call.stop().into()).await;
        harness.sort(answer.diagnostics)?;
        Ok(Ephemeral {
            harness,
            name: name.to_owned(),
            result: decode(answer.result, schema)?,
            renew_at: answer.renew_at,
            private: answer.private,
        })
    }

    /// Its attributes.
    #[must_use]
    pub fn result(&self) -> &Value {
        &self.result
    }

    /// When it must be renewed, if ever.
    #[must_use]
    pub fn renew_at(&self) -> Option<SystemTime> {
        self.renew_at
    }

    /// What the provider notes for renewing and closing.
    #[must_use]
    pub fn private(&self) -> &[u8] {
        &self.private
    }

    /// Renews it.
    pub async fn renew(&mut self) -> Result<()> {
        let call = self.harness.core.calls.begin();
        let answer = self
            .harness
            .core
            .renew(&self.name, self.private.clone(), call.stop().into())
            .await;
        self.private = answer.private;
        self.renew_at = answer.renew_at;
        self.harness.sort(answer.diagnostics)
    }

    /// Closes it.
    pub async fn close(self) -> Result<()> {
        self.harness
            .sort(self.harness.core.close(&self.name, self.private).await)
    }
}
