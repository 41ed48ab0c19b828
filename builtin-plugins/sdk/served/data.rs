//! Requests for data sources and ephemeral resources.

use std::time::SystemTime;

use cty::Value;

use super::provider::{ServedProvider, unknown_type, with_defaults};
use crate::calls::CallOptions;
use crate::check;
use crate::data::{AnyDataSource, AnyEphemeral, DataAnswer, EphemeralAnswer};
use crate::deferral::Deferral;
use crate::diag::{Diagnostics, Result};
use crate::guard::guarded_now;
use crate::wire::{Wire, decode, encode};

/// The answer to an operation on an ephemeral resource.
#[derive(Debug, Default)]
pub struct OpenedEphemeral {
    pub result: Option<Wire>,
    pub renew_at: Option<SystemTime>,
    pub private: Vec<u8>,
    pub deferred: Option<Deferral>,
    pub diagnostics: Diagnostics,
}

impl ServedProvider {
    fn data_source(&self, name: &str) -> Result<&dyn AnyDataSource> {
        self.data_sources
            .get(name)
            .map(|r| &**r)
            .ok_or_else(|| unknown_type("data source", name))
    }

    fn ephemeral(&self, name: &str) -> Result<&dyn AnyEphemeral> {
        self.ephemerals
            .get(name)
            .map(|r| &**r)
            .ok_or_else(|| unknown_type("ephemeral resource", name))
    }

    pub fn validate_data_source(&self, name: &str, config: &Wire) -> Diagnostics {
        let check = || -> Result<Diagnostics> {
            let source = self.data_source(name)?;
            let config = decode(config, &source.schema().ty)?;
            if config.is_null() {
                return Ok(Diagnostics::new());
            }
            let diagnostics = check::against_schema(source.schema(), &config, true);
            Ok(check::with_own_rules(
                diagnostics,
                guarded_now(|| source.validate(&config))?,
            ))
        };
        check().unwrap_or_else(|errors| errors)
    }

    pub async fn read_data_source(&self, name: &str, config: &Wire, options: CallOptions) -> DataAnswer<Wire> {
        let read = async {
            let source = self.data_source(name)?;
            // Data sources are never planned, so defaults are filled in here.
            let config = with_defaults(source.schema(), &decode(config, &source.schema().ty)?);
            let answer = match self.deferred_by(&options) {
                Some(why) => DataAnswer {
                    state: Some(Value::unknown(source.schema().ty.clone())),
                    deferred: Some(why),
                    diagnostics: Diagnostics::new(),
                },
                None => source.read(&config, options).await,
            };
            let encoded = |state| encode(&state, &source.schema().ty);
            Ok(DataAnswer {
                state: answer.state.map(encoded).transpose()?,
                deferred: answer.deferred,
                diagnostics: answer.diagnostics,
            })
        };
        read.await.unwrap_or_else(|diagnostics| DataAnswer {
            state: None,
            deferred: None,
            diagnostics,
        })
    }

    pub fn validate_ephemeral(&self, name: &str, config: &Wire) -> Diagnostics {
        let check = || -> Result<Diagnostics> {
            let resource = self.ephemeral(name)?;
            let config = decode(config, &resource.schema().ty)?;
            if config.is_null() {
                return Ok(Diagnostics::new());
            }
            let diagnostics = check::against_schema(resource.schema(), &config, true);
            Ok(check::with_own_rules(
                diagnostics,
                guarded_now(|| resource.validate(&config))?,
            ))
        };
        check().unwrap_or_else(|errors| errors)
    }

    fn ephemeral_answer(resource: &dyn AnyEphemeral, answer: EphemeralAnswer) -> Result<OpenedEphemeral> {
        Ok(OpenedEphemeral {
            result: answer.result.map(|v| encode(&v, &resource.schema().ty)).transpose()?,
            renew_at: answer.renew_at,
            private: answer.private,
            deferred: answer.deferred,
            diagnostics: answer.diagnostics,
        })
    }

    pub async fn open(&self, name: &str, config: &Wire, options: CallOptions) -> OpenedEphemeral {
        let open = async {
            let resource = self.ephemeral(name)?;
            let mut config = decode(config, &resource.schema().ty)?;
            // Ephemeral resources are never planned, so defaults are filled in here.
            config = with_defaults(resource.schema(), &config);
            let answer = match self.deferred_by(&options) {
                Some(why) => EphemeralAnswer {
                    result: Some(Value::unknown(resource.schema().ty.clone())),
                    deferred: Some(why),
                    ..EphemeralAnswer::default()
                },
                None => resource.open(&config, options).await,
            };
            Self::ephemeral_answer(resource, answer)
        };
        open.await.unwrap_or_else(|diagnostics| OpenedEphemeral {
            diagnostics,
            ..OpenedEphemeral::default()
        })
    }

    pub async fn renew(&self, name: &str, private: Vec<u8>, options: CallOptions) -> OpenedEphemeral {
        let renew = async {
            let resource = self.ephemeral(name)?;
            let answer = resource.renew(private, options).await;
            Self::ephemeral_answer(resource, answer)
        };
        renew.await.unwrap_or_else(|diagnostics| OpenedEphemeral {
            diagnostics,
            ..OpenedEphemeral::default()
        })
    }

    pub async fn close(&self, name: &str, private: Vec<u8>) -> Diagnostics {
        let close = async {
            let resource = self.ephemeral(name)?;
            Ok(resource.close(private).await.diagnostics)
        };
        close.await.unwrap_or_else(|errors| errors)
    }
}
