//! Functions of providers, called by expressions. Evaluation is synchronous, but calls to providers are asynchronous. The evaluating
//! thread blocks until a call is complete (`block_in_place`, or a separate thread with its own runtime). Functions are pure, so results
//! are cached by function and arguments. The plan contains a digest of each result, with which apply compares its own results. Built-in
//! functions that read files are compared in the same way. The module `configured` has the functions of configured providers.

mod configured;

use data_encoding::HEXLOWER;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use addrs::{AbsProviderConfig, Provider};
use config::ModuleNode;
use cty::{Type, Value};
use lang::functions::CallError;
use lang::provider_function::{Parameter, Signature};
use provider::{FunctionSchema, ParameterSchema, ProviderSchema};
use sha2::{Digest, Sha256};
use syntax::content::{did_you_mean, suggest};
use syntax::{Diagnostic, Diagnostics};
use tokio::runtime::{Handle, RuntimeFlavor};

use provider::{ProviderSource, StartError};

pub(crate) use configured::{Configured, configuration_called, malformed, split};

/// Returns the signature of a function whose real signature is not known, for example because its provider is unavailable. It accepts any
/// arguments, so that no second error is reported.
pub(crate) fn anything() -> Signature {
    Signature {
        parameters: Vec::new(),
        variadic: Some(Parameter {
            name: "argument".into(),
            ty: Type::Dynamic,
            allow_null: true,
            allow_unknown: true,
        }),
        result: Type::Dynamic,
    }
}

/// Digests of the results of provider functions and of built-in functions that read files. The key is the digest of the function and its
/// arguments. Keys and values are hexadecimal.
pub type FunctionResults = BTreeMap<String, String>;

type CallResult = Result<Value, CallError>;

/// The providers of the functions that a configuration calls, and the results of these calls.
pub struct Functions<'s> {
    /// Source that starts provider processes.
    source: &'s dyn ProviderSource,
    /// Provider processes without configuration.
    running: RwLock<HashMap<Provider, Arc<RunningProvider>>>,
    /// Providers that could not be started. The failure has been reported, so their functions return unknown values.
    unavailable: RwLock<BTreeSet<Provider>>,
    cache: Mutex<HashMap<[u8; 32], CallResult>>,
    results: Mutex<FunctionResults>,
    /// Open provider configurations: those that the operation uses, and those that were opened only for their functions.
    configured: RwLock<HashMap<AbsProviderConfig, configured::Opening>>,
    /// Processes of the provider configurations that were opened only for their functions.
    opened: Mutex<Vec<Arc<dyn provider::Provider>>>,
}

struct RunningProvider {
    process: Arc<dyn provider::Provider>,
    signatures: BTreeMap<Arc<str>, Arc<Signature>>,
}

impl<'s> Functions<'s> {
    /// Creates an empty set of providers. `source` starts their processes.
    #[must_use]
    pub fn new(source: &'s dyn ProviderSource) -> Functions<'s> {
        Functions {
            source,
            running: RwLock::default(),
            unavailable: RwLock::default(),
            cache: Mutex::default(),
            results: Mutex::default(),
            configured: RwLock::default(),
            opened: Mutex::default(),
        }
    }

    /// Adds the functions of a running provider.
    pub(crate) fn add(&self, provider: Provider, process: Arc<dyn provider::Provider>, schema: &ProviderSchema) {
        let signatures = schema
            .functions
            .iter()
            .map(|(name, function)| (name.clone(), Arc::new(signature(function))))
            .collect();
        let mut running = self.running.write().unwrap_or_else(PoisonError::into_inner);
        running.insert(provider, Arc::new(RunningProvider { process, signatures }));
    }

    /// Records that a provider could not be started, which has been reported.
    pub(crate) fn add_unavailable(&self, provider: Provider) {
        let mut unavailable = self.unavailable.write().unwrap_or_else(PoisonError::into_inner);
        unavailable.insert(provider);
    }

    fn is_unavailable(&self, provider: &Provider) -> bool {
        let unavailable = self.unavailable.read().unwrap_or_else(PoisonError::into_inner);
        unavailable.contains(provider)
    }

    /// Starts the providers that are not running yet. Returns the errors of those that cannot be started.
    pub async fn start(&self, providers: impl IntoIterator<Item = Provider>) -> Diagnostics {
        let mut problems = Diagnostics::new();
        for provider in providers {
            if self.process_of(&provider).is_some() {
                continue;
            }
            let started = async {
                let process = self.source.start(&provider).await?;
                let schema = process.schema().await?;
                Ok::<_, StartError>((process, schema))
            };
            match started.await {
                Ok((process, schema)) => self.add(provider, process, &schema),
                Err(found) => problems.extend(found.unreported()),
            }
        }
        problems
    }

    pub async fn close(&self) {
        let processes = self.processes();
        futures::future::join_all(processes.iter().map(|p| p.close())).await;
    }

    pub(crate) fn processes(&self) -> Vec<Arc<dyn provider::Provider>> {
        let running = self.running.read().unwrap_or_else(PoisonError::into_inner);
        let opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        running.values().map(|s| &s.process).chain(&*opened).cloned().collect()
    }

    fn process_of(&self, provider: &Provider) -> Option<Arc<RunningProvider>> {
        let running = self.running.read().unwrap_or_else(PoisonError::into_inner);
        running.get(provider).cloned()
    }

    /// Sets the results of the plan. A call with another result is then an error.
    pub fn expect(&self, planned: &FunctionResults) {
        self.results().clone_from(planned);
    }

    #[must_use]
    pub fn take_results(&self) -> FunctionResults {
        self.results().clone()
    }

    fn results(&self) -> MutexGuard<'_, FunctionResults> {
        self.results.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the signature of a provider function. `local` is the local name of the provider in the module.
    pub(crate) fn signature(
        &self,
        module: &ModuleNode,
        local: &str,
        function: &str,
    ) -> Result<Arc<Signature>, CallError> {
        let required = module.module.required_providers.get(local);
        // The failure to start the provider has been reported, so calls of its functions report nothing.
        if required.is_some_and(|r| self.is_unavailable(&r.provider)) {
            return Ok(Arc::new(anything()));
        }
        let Some((required, source)) = required.and_then(|r| Some((r, self.process_of(&r.provider)?))) else {
            let hint = did_you_mean(suggest(local, module.module.required_providers.keys().map(|n| &**n)));
            return Err(unknown(format!(
                "There is no function named \"provider::{local}::{function}\". The provider's local name \"{local}\" must be \
                 declared in this module's required_providers block, and the provider must offer a function named \
                 \"{function}\".{hint}"
            )));
        };
        source.signatures.get(function).cloned().ok_or_else(|| {
            let hint = did_you_mean(suggest(function, source.signatures.keys().map(|n| &**n)));
            unknown(format!(
                "The function \"{function}\" is not available from the provider \"{}\".{hint}",
                required.provider.for_display()
            ))
        })
    }

    /// Calls a function with arguments that conform to its signature.
    pub(crate) fn call(&self, module: &ModuleNode, local: &str, function: &str, arguments: &[Value]) -> CallResult {
        let signature = self.signature(module, local, function)?;
        let source = module
            .module
            .required_providers
            .get(local)
            .and_then(|r| Some((&r.provider, self.process_of(&r.provider)?)));
        let Some((provider, source)) = source else {
            let required = module.module.required_providers.get(local);
            if required.is_some_and(|r| self.is_unavailable(&r.provider)) {
                return Ok(Value::dynamic());
            }
            return Err(CallError::Failed("the provider is not running".into()));
        };
        let call_digest = digest(&format!("{provider}::{function}"), arguments);
        let cached = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(answer) = call_digest.and_then(|key| cached.get(&key)) {
            return answer.clone();
        }
        // The lock is released because a call may take long. Two concurrent equal calls are then both sent, which is harmless.
        drop(cached);
        let answer = request(&source.process, function, arguments, &signature.result);
        let Some(key) = call_digest else { return answer };
        if let Ok(value) = &answer
            // Without unknown values, equal arguments must give equal results. With them, results may differ once the values are known.
            && arguments.iter().all(Value::is_wholly_known)
            && value.is_wholly_known()
        {
            self.verify(&key, value)?;
        }
        let mut cached = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        cached.insert(key, answer.clone());
        answer
    }

    /// Checks that a built-in function that reads files has the same result as in an earlier call with the same arguments.
    pub(crate) fn check_file_function(
        &self,
        function: &str,
        arguments: &[Value],
        result: &Value,
    ) -> Result<(), CallError> {
        let key = digest(function, arguments).filter(|_| result.is_wholly_known());
        if key.is_none_or(|key| self.is_as_before(&key, result)) {
            return Ok(());
        }
        Err(CallError::Failed(
            "function returned an inconsistent result: with the same arguments it gave another one before, in this run or \
             when the plan was made. Files that the configuration reads must not change between the two"
                .into(),
        ))
    }

    /// Checks that a call has the same result as the earlier call with the same arguments.
    fn verify(&self, call: &[u8; 32], value: &Value) -> Result<(), CallError> {
        if self.is_as_before(call, value) {
            return Ok(());
        }
        Err(CallError::Failed(
            "provider function returned an inconsistent result: during planning, the same arguments gave another \
             value. This is a bug in the provider; please report it to its maintainers"
                .into(),
        ))
    }

    /// Returns true if a call has the same result as the earlier call with the same arguments. The first result is recorded. A result
    /// that cannot be encoded counts as the same.
    fn is_as_before(&self, call: &[u8; 32], value: &Value) -> bool {
        let Some(result_digest) = digest("", std::slice::from_ref(value)) else {
            return true;
        };
        let result_digest = HEXLOWER.encode(&result_digest);
        let mut results = self.results();
        let before = results
            .entry(HEXLOWER.encode(call))
            .or_insert_with(|| result_digest.clone());
        *before == result_digest
    }
}

/// Sends a call to a provider process, waits for the answer, and converts the value to the type that the function declares.
fn request(process: &Arc<dyn provider::Provider>, function: &str, arguments: &[Value], result: &Type) -> CallResult {
    let (process, name, arguments) = (process.clone(), function.to_owned(), arguments.to_vec());
    let answer = wait(async move { process.call_function(&name, arguments).await });
    match answer {
        None => Err(CallError::Failed("the call was abandoned".into())),
        Some(Err(problems)) => {
            let mut text: Vec<String> = Vec::new();
            for problem in problems {
                text.push(format!("{}: {}", problem.summary, problem.detail));
            }
            // The message inserts the text into a sentence, so its full stop is removed.
            Err(CallError::Failed(text.join("; ").trim_end_matches('.').to_owned()))
        }
        Some(Ok(Err(error))) => {
            let text = error.text.trim().trim_end_matches('.').to_owned();
            Err(match error.argument {
                Some(at) => CallError::Argument(at, text),
                None => CallError::Failed(text),
            })
        }
        Some(Ok(Ok(value))) => cty::convert(&value.unmark_deep().0, result).map_err(|e| {
            CallError::Failed(format!(
                "the provider returned a value that is not of the type it declares: {}. This is a bug in the provider",
                e.message
            ))
        }),
    }
}

fn unknown(detail: String) -> CallError {
    CallError::Unknown(Diagnostic::error("Unknown provider function", detail))
}

fn signature(function: &FunctionSchema) -> Signature {
    let parameter = |p: &ParameterSchema| Parameter {
        name: p.name.clone(),
        ty: p.ty.clone(),
        allow_null: p.allow_null,
        allow_unknown: p.allow_unknown,
    };
    Signature {
        parameters: function.parameters.iter().map(parameter).collect(),
        variadic: function.variadic.as_ref().map(parameter),
        result: function.result.clone().unwrap_or(Type::Dynamic),
    }
}

/// Computes a digest of values, prefixed by a name. Returns `None` if a value cannot be encoded.
fn digest(name: &str, values: &[Value]) -> Option<[u8; 32]> {
    let mut sum = Sha256::new();
    let mut add = |bytes: &[u8]| {
        // The lengths are hashed, too, so that the same bytes with other boundaries have another digest.
        sum.update((bytes.len() as u64).to_be_bytes());
        sum.update(bytes);
    };
    add(name.as_bytes());
    for value in values {
        add(&cty::msgpack::encode(value, &Type::Dynamic).ok()?);
    }
    Some(sum.finalize().into())
}

/// Runs a future to completion, from within a runtime or without one; `None` if no runtime can be created.
fn wait<T: Send>(future: impl Future<Output = T> + Send) -> Option<T> {
    match Handle::try_current() {
        Ok(handle) if handle.runtime_flavor() == RuntimeFlavor::MultiThread => {
            tokio::task::block_in_place(|| Some(handle.block_on(future)))
        }
        // A single-threaded runtime would deadlock if its thread waited for a task of that runtime.
        _ => std::thread::scope(|scope| {
            let thread = scope.spawn(|| {
                let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
                runtime.ok().map(|runtime| runtime.block_on(future))
            });
            thread.join().ok().flatten()
        }),
    }
}
