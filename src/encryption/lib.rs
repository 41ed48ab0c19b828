//! Encryption of states and saved plans, in the formats of OpenTofu.
//!
//! It is configured by the `encryption` block of the root module and the variable `TF_ENCRYPTION` ([`settings`]). Key providers
//! (`providers`) derive keys, and methods (`method`) encrypt with them. A [`Target`] is a chain of methods. The first one encrypts, and all
//! of them are tried for decryption, so that a key can be replaced by another one. The result is a JSON document around the encrypted text
//! (`envelope`), which OpenTofu can read, too.
//!
//! This crate encrypts bytes: states, their copies, journal records and plans. The crate `state` calls it through its trait `Cipher`.
//!
//! Where to begin: [`Encryption`], then `target.rs`.

mod arguments;
mod envelope;
mod keys;
mod method;
mod providers;
pub mod settings;
mod target;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use ::files::Environment;
use config::known::KnownRoot;
use syntax::{Diagnostic, Diagnostics};

use keys::Builder;
use settings::{Settings, TargetSettings};
pub use target::Target;

/// Programs that serve the key providers of cloud services, and the key providers that this build lacks.
#[derive(Clone, Debug, Default)]
pub struct Programs {
    /// Command line that serves a key provider, without its last argument, the name of the key provider.
    pub key_providers: Vec<String>,
    /// Key providers that are not in this build, each with the Cargo feature that adds it.
    pub left_out: Vec<(&'static str, &'static str)>,
}

/// Configuration of the encryption of a working directory.
#[derive(Debug)]
pub struct Encryption {
    state: Option<Arc<Target>>,
    plan: Option<Arc<Target>>,
    remote_default: Option<Arc<Target>>,
    remote: Vec<(Arc<str>, Arc<Target>)>,
    warnings: Diagnostics,
}

impl Encryption {
    /// Checks the settings, and resolves the methods that they name. No key is requested yet.
    ///
    /// # Errors
    /// A target refers to a method that is not declared, or that it forbids.
    pub fn new(
        settings: Settings,
        root: KnownRoot,
        environment: &Environment,
        programs: Programs,
    ) -> Result<Encryption, Diagnostics> {
        let unencrypted = settings
            .methods
            .iter()
            .filter(|method| &*method.ty == method::UNENCRYPTED);
        let warnings = unencrypted.map(|method| {
            Diagnostic::warning(
                "Unencrypted method configured",
                format!(
                    "The method \"{0}\" \"{1}\" stores or accepts data that is not encrypted. Keep it only while states and plans \
                     are brought into or out of encryption.",
                    method.ty, method.name
                ),
            )
            .at(&method.range)
        });
        let warnings = warnings.collect();
        let builder = Arc::new(Builder::new(settings, root, environment.clone(), programs));
        let settings = builder.settings();
        let mut problems = Diagnostics::new();
        let mut target = |name: &str, target: Option<&TargetSettings>| {
            let methods = settings.chain(target?, &mut problems);
            Some(Arc::new(Target::new(name.to_owned(), builder.clone(), methods)))
        };
        let (state, plan) = (
            target("state", settings.state.as_ref()),
            target("plan", settings.plan.as_ref()),
        );
        let remote_default = target("remote.default", settings.remote_default.as_ref());
        let mut remote = Vec::new();
        for (name, named) in &settings.remote {
            remote.extend(target(&format!("remote.{name}"), Some(named)).map(|target| (name.clone(), target)));
        }
        problems.into_result(Encryption {
            state,
            plan,
            remote_default,
            remote,
            warnings,
        })
    }

    /// Returns the encryption of states; `None` if they are stored in clear text.
    #[must_use]
    pub fn state(&self) -> Option<&Arc<Target>> {
        self.state.as_ref()
    }

    /// Returns the encryption of saved plans; `None` if they are stored in clear text.
    #[must_use]
    pub fn plan(&self) -> Option<&Arc<Target>> {
        self.plan.as_ref()
    }

    /// Returns the encryption of the states that a `terraform_remote_state` data source reads. `name` is the name of the data source,
    /// prefixed with the names and keys of its modules: `NAME`, `MODULE.NAME`, `MODULE.NAME[KEY]`. `None` if these states are read in clear
    /// text.
    #[must_use]
    pub fn remote_state(&self, name: &str) -> Option<&Arc<Target>> {
        let named = self.remote.iter().find(|(label, _)| &**label == name);
        named.map(|(_, target)| target).or(self.remote_default.as_ref())
    }

    /// Returns true if encryption is configured for states that `terraform_remote_state` reads.
    #[must_use]
    pub fn has_remote_states(&self) -> bool {
        self.remote_default.is_some() || !self.remote.is_empty()
    }

    /// Warnings about the configuration.
    #[must_use]
    pub fn warnings(&self) -> &Diagnostics {
        &self.warnings
    }
}
