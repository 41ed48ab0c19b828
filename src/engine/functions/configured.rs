//! Functions of configured providers, an OpenTofu feature: a provider may offer more functions after it is configured, and the result of a
//! function may depend on the configuration.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use addrs::program::Mode;
use addrs::{AbsProviderConfig, LocalProviderConfig, Provider};
use config::{Config, ModuleNode};
use cty::Value;
use lang::functions::CallError;
use lang::provider_function::Signature;
use provider::PluginDiagnostic;
use syntax::content::{did_you_mean, suggest};
use syntax::{Diagnostic, Diagnostics};

use super::{CallResult, Functions, anything, digest, request, signature, wait};
use provider::StartError;

/// Slot for an open provider configuration. The first function call opens it, and concurrent calls wait. The slot contains `None` if the
/// provider configuration could not be opened.
pub(super) type Opening = Arc<OnceLock<Option<Arc<Configured>>>>;

/// The provider configuration in whose process a function is called.
#[derive(Clone, Debug)]
pub(crate) struct ConfigurationCalled {
    /// Local name and alias of the provider configuration in the calling module.
    pub(crate) local: LocalProviderConfig,
    /// Address of the block of the provider configuration. With `for_each`, evaluation selects the instance.
    pub(crate) address: AbsProviderConfig,
}

/// Returns the provider configuration whose process answers the call of a function: `provider::LOCAL::FUNCTION` or
/// `provider::LOCAL::ALIAS::FUNCTION`. `None` if a process without configuration answers it.
pub(crate) fn configuration_called(
    config: &Config,
    node: &ModuleNode,
    (local, function): (&str, &str),
    in_schema: impl FnOnce(&Provider, &str) -> bool,
) -> Option<ConfigurationCalled> {
    let mode = Mode::current();
    if !mode.has_opentofu() {
        return None;
    }
    let required = node.module.required_providers.get(local)?;
    let (alias, name) = split(function);
    // In Terraform, functions do not depend on the configuration, so calls must not wait for its dependencies.
    if alias.is_none() && !mode.is_opentofu() && in_schema(&required.provider, name) {
        return None;
    }
    let local = LocalProviderConfig {
        name: local.into(),
        alias: alias.map(Into::into),
    };
    let address = node.provider(&local);
    // A provider without a provider block has no configuration that functions could depend on.
    config.provider_block(&address)?;
    Some(ConfigurationCalled { local, address })
}

/// Splits `ALIAS::FUNCTION` into alias and function. There is no alias if OpenTofu's features are off.
pub(crate) fn split(function: &str) -> (Option<&str>, &str) {
    match function.split_once("::") {
        Some((alias, name)) if Mode::current().has_opentofu() => (Some(alias), name),
        _ => (None, function),
    }
}

/// Signatures of functions by name.
type Signatures = BTreeMap<Arc<str>, Arc<Signature>>;

/// An open provider configuration, and the functions that it offers.
pub(crate) struct Configured {
    process: Arc<dyn provider::Provider>,
    /// False if a part of the provider configuration is unknown.
    known: bool,
    /// Functions that the provider offers in addition to those of its schema.
    offered: OnceLock<Result<Signatures, CallError>>,
    /// Results of calls, by the digest of function and arguments.
    cache: Mutex<HashMap<[u8; 32], CallResult>>,
}

impl Configured {
    fn new(process: Arc<dyn provider::Provider>, known: bool) -> Arc<Configured> {
        Arc::new(Configured {
            process,
            known,
            offered: OnceLock::new(),
            cache: Mutex::default(),
        })
    }

    /// Returns the signature of a function that is not in the provider's schema.
    pub(crate) fn signature(&self, provider: &Provider, function: &str) -> Result<Arc<Signature>, CallError> {
        let offered = self.offered.get_or_init(|| self.ask());
        let offered = offered.as_ref().map_err(CallError::clone)?;
        if let Some(found) = offered.get(function) {
            return Ok(found.clone());
        }
        // A part of the configuration is unknown, and with it the provider may offer the function.
        if !self.known {
            return Ok(Arc::new(anything()));
        }
        let hint = did_you_mean(suggest(function, offered.keys().map(|n| &**n)));
        Err(CallError::Unknown(Diagnostic::error(
            "Function not found in provider",
            format!(
                "The function \"{function}\" is not available from the provider \"{}\", even after its configuration.{hint}",
                provider.for_display()
            ),
        )))
    }

    fn ask(&self) -> Result<Signatures, CallError> {
        let process = self.process.clone();
        let functions = match wait(async move { process.functions().await }) {
            None => {
                return Err(CallError::Failed(
                    "the request for the functions was abandoned".to_owned(),
                ));
            }
            Some(Err(problems)) => return Err(CallError::Failed(sentence(&problems))),
            Some(Ok(functions)) => functions,
        };
        let all = functions.iter();
        Ok(all.map(|(name, f)| (name.clone(), Arc::new(signature(f)))).collect())
    }

    /// Calls a function with arguments that conform to its signature. `in_schema` is true for a function that the provider also offers
    /// without configuration.
    pub(crate) fn call(
        &self,
        function: &str,
        arguments: &[Value],
        (signature, in_schema): (&Signature, bool),
    ) -> CallResult {
        // A function that exists only because of the configuration probably depends on it, so its result is unknown, too.
        if !self.known && !in_schema {
            return Ok(Value::unknown(signature.result.clone()));
        }
        let key = digest(function, arguments);
        let cached = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(answer) = key.and_then(|key| cached.get(&key)) {
            return answer.clone();
        }
        // The lock is released because a call may take long. Two concurrent equal calls are then both sent, which is harmless.
        drop(cached);
        let answer = request(&self.process, function, arguments, &signature.result);
        if let Some(key) = key {
            let mut cached = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
            cached.insert(key, answer.clone());
        }
        answer
    }
}

/// Joins problems to one text without a final full stop, to be inserted into a sentence.
fn sentence(problems: &Diagnostics) -> String {
    let texts = problems.iter().map(|p| format!("{}: {}", p.summary, p.detail));
    let text: Vec<String> = texts.collect();
    text.join("; ").trim_end_matches('.').to_owned()
}

impl Functions<'_> {
    /// Returns true if a function is in the schema of its provider.
    pub(crate) fn is_in_schema(&self, provider: &Provider, function: &str) -> bool {
        let running = self.process_of(provider);
        running.is_some_and(|running| running.signatures.contains_key(function))
    }

    /// Adds an open provider configuration. It replaces an entry with the same address, which was opened with other values before.
    pub(crate) fn add_configured(
        &self,
        address: &AbsProviderConfig,
        process: Arc<dyn provider::Provider>,
        known: bool,
    ) {
        let opening = Arc::new(OnceLock::from(Some(Configured::new(process, known))));
        let mut configured = self.configured.write().unwrap_or_else(PoisonError::into_inner);
        configured.insert(address.clone(), opening);
    }

    /// Returns an open provider configuration. If it is not open yet, it is opened. `value` evaluates the configuration, and `report` takes
    /// the diagnostics of the provider. Returns `None` if it cannot be opened; the failure has been reported.
    pub(crate) fn configured(
        &self,
        address: &AbsProviderConfig,
        value: impl FnOnce() -> Option<Value>,
        report: impl FnOnce(Result<Vec<PluginDiagnostic>, Diagnostics>) -> bool,
    ) -> Option<Arc<Configured>> {
        let opening = {
            let mut configured = self.configured.write().unwrap_or_else(PoisonError::into_inner);
            configured.entry(address.clone()).or_default().clone()
        };
        let open = || {
            let value = value()?;
            let known = value.is_wholly_known();
            let (process, answer) = wait(self.open(address, value))?;
            // The problems are reported even if there is no process.
            let opened = report(answer);
            process
                .filter(|_| opened)
                .map(|process| Configured::new(process, known))
        };
        opening.get_or_init(open).clone()
    }

    /// Adds a process, which [`Functions::close`] closes.
    fn add_opened(&self, process: Arc<dyn provider::Provider>) {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        opened.push(process);
    }

    /// Starts a process, has it validate the value, and configures it. A provider that the plugin source offers in its place, such as a
    /// mock, is neither started nor configured.
    async fn open(
        &self,
        address: &AbsProviderConfig,
        value: Value,
    ) -> (
        Option<Arc<dyn provider::Provider>>,
        Result<Vec<PluginDiagnostic>, Diagnostics>,
    ) {
        // In tests, a mock can replace the provider.
        if let Some(running) = self.source.stand_in(address) {
            return (Some(running), Ok(Vec::new()));
        }
        let process = match self.source.start(&address.provider).await {
            Ok(process) => process,
            Err(error) => return (None, Err(StartError::unreported(error))),
        };
        self.add_opened(process.clone());
        let answer = async {
            let mut found = process.validate_provider(value.clone()).await?.diagnostics;
            if !found.iter().any(|problem| problem.diagnostic.is_error()) {
                found.extend(process.configure(value).await?.diagnostics);
            }
            Ok(found)
        };
        let answer = answer.await;
        (Some(process), answer)
    }
}

/// Returns the error for a function name with too many `::` parts.
pub(crate) fn malformed(local: &str, function: &str) -> CallError {
    CallError::Unknown(Diagnostic::error(
        "Invalid function format",
        format!(
            "\"provider::{local}::{function}\" has too many parts. The name of a provider's function is provider::NAME::FUNCTION, \
             or provider::NAME::ALIAS::FUNCTION for a provider configuration with an alias."
        ),
    ))
}
