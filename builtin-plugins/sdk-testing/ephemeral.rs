//! Ephemeral resources under test, from opening to closing.

use std::time::SystemTime;

use monoform_sdk::cty::Value;
use monoform_sdk::{Provider, Result};

use crate::config::{self, Config};
use crate::harness::{Harness, named};
use crate::wires::{decode, encode};

impl<P: Provider> Harness<P> {
    /// Validates a configuration, and opens an ephemeral resource of this type.
    pub async fn ephemeral(&self, name: &str, config: Config<'_>) -> Result<Ephemeral<'_, P>> {
        Ephemeral::open(self, name, config).await
    }

    /// Validates a configuration, and opens an ephemeral resource. To renew and close it as well, use [`Harness::ephemeral`].
    pub async fn open(&self, name: &str, config: Config<'_>) -> Result<Value> {
        Ok(self.ephemeral(name, config).await?.result().clone())
    }
}

/// An open ephemeral resource.
pub struct Ephemeral<'h, P: Provider> {
    harness: &'h Harness<P>,
    name: String,
    result: Value,
    renew_at: Option<SystemTime>,
    private: Vec<u8>,
}

impl<'h, P: Provider> Ephemeral<'h, P> {
    async fn open(harness: &'h Harness<P>, name: &str, config: Config<'_>) -> Result<Ephemeral<'h, P>> {
        let provider = &harness.provider;
        let schema = named(provider.ephemerals(), name);
        let wire = encode(Some(&config::object(schema, config)?), schema)?;
        harness.sort(provider.validate_ephemeral(name, &wire))?;
        let (_call, options) = harness.begin();
        let answer = provider.open(name, &wire, options).await;
        harness.record(answer.deferred);
        harness.sort(answer.diagnostics)?;
        Ok(Ephemeral {
            harness,
            name: name.to_owned(),
            result: decode(answer.result, schema)?,
            renew_at: answer.renew_at,
            private: answer.private,
        })
    }

    /// Returns the arguments and results of the resource.
    #[must_use]
    pub fn result(&self) -> &Value {
        &self.result
    }

    /// Returns the time of the next renewal; `None` if no renewal is needed.
    #[must_use]
    pub fn renew_at(&self) -> Option<SystemTime> {
        self.renew_at
    }

    /// Returns the private data that the provider has stored for renewing and closing.
    #[must_use]
    pub fn private(&self) -> &[u8] {
        &self.private
    }

    /// Renews the resource, even if no renewal is due.
    pub async fn renew(&mut self) -> Result<()> {
        let (_call, options) = self.harness.begin();
        let answer = self
            .harness
            .provider
            .renew(&self.name, self.private.clone(), options)
            .await;
        self.private = answer.private;
        self.renew_at = answer.renew_at;
        self.harness.sort(answer.diagnostics)
    }

    /// Closes the resource, as the host does at the end of a run.
    pub async fn close(self) -> Result<()> {
        self.harness
            .sort(self.harness.provider.close(&self.name, self.private).await)
    }
}
