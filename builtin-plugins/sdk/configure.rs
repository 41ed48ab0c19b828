//! The context in which a provider is configured.

use crate::calls::CallOptions;
use crate::deferral::Deferral;
use crate::diag::{Diagnostic, Diagnostics};
use crate::stop::Stop;

/// Context of [`Provider::configure_with`](crate::Provider::configure_with). Input: the version of the host and the signal to stop.
/// Output: warnings, and a deferral of everything that the provider does.
#[derive(Debug)]
pub struct ConfigureContext {
    pub(crate) terraform_version: String,
    pub(crate) options: CallOptions,
    pub(crate) diagnostics: Diagnostics,
    pub(crate) deferred: Option<Deferral>,
}

impl ConfigureContext {
    pub(crate) fn new(terraform_version: &str, options: CallOptions) -> ConfigureContext {
        ConfigureContext {
            terraform_version: terraform_version.to_owned(),
            options,
            diagnostics: Diagnostics::new(),
            deferred: None,
        }
    }

    /// Creates a context for calling `configure_with` from a test.
    #[must_use]
    pub fn for_test(terraform_version: &str) -> ConfigureContext {
        ConfigureContext::new(terraform_version, Stop::never().into())
    }

    /// Returns the Terraform version that the host reports: its own version, or the one that it is compatible with.
    #[must_use]
    pub fn terraform_version(&self) -> &str {
        &self.terraform_version
    }

    /// Returns the stop signal of this call.
    #[must_use]
    pub fn stop(&self) -> Stop {
        self.options.stop.clone()
    }

    /// Adds a warning. The configuration continues.
    pub fn warn(&mut self, summary: impl Into<String>, detail: impl Into<String>) {
        self.diagnostics.push(Diagnostic::warning(summary, detail));
    }

    /// Returns true if the caller accepts deferred answers (the client capability `deferral_allowed`).
    #[must_use]
    pub fn deferral_allowed(&self) -> bool {
        self.options.deferral_allowed
    }

    /// Defers all resources and data sources of the provider. There is no client then: the SDK answers each request about them with this
    /// reason. The returned value is the error to return: `return Err(cx.defer(Deferral::ProviderConfigUnknown))`. If the caller does not
    /// accept deferred answers, the returned value is an error for the user.
    #[must_use]
    pub fn defer(&mut self, why: Deferral) -> Diagnostics {
        if !self.options.deferral_allowed {
            return why.refused().into();
        }
        self.deferred = Some(why);
        Diagnostics::new()
    }
}
