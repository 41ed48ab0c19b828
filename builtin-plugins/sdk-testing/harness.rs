//! A provider under test.

use std::marker::PhantomData;
use std::sync::{Mutex, PoisonError};

use monoform_sdk::cty::{self, Type, Value};
use monoform_sdk::schema::{Compiled, Described};
use monoform_sdk::served::ServedProvider;
use monoform_sdk::{Diagnostic, Diagnostics, FunctionError, Provider, Result, wire};

use crate::calls::Calls;
use crate::config::{self, Config};
use crate::wires::{EMPTY, decode, encode};

/// A provider under test. It collects the warnings of its calls.
pub struct Harness<P: Provider> {
    pub(crate) provider: ServedProvider,
    pub(crate) calls: Calls,
    warnings: Mutex<Vec<Diagnostic>>,
    kind: PhantomData<P>,
}

/// Returns the schema of this name. For a name that the provider does not have, it is empty: the call itself then
/// fails.
pub(crate) fn named<'s>(
    mut members: impl Iterator<Item = (&'static str, &'s dyn Described)>,
    name: &str,
) -> &'s Compiled {
    let found = members.find(|(n, _)| *n == name);
    found.map_or(&*EMPTY, |(_, member)| member.schema())
}

impl<P: Provider> Harness<P> {
    /// Creates a harness with a provider that is not configured yet.
    ///
    /// # Panics
    /// If the provider cannot be served, because one of its schemas is invalid.
    #[allow(clippy::panic, reason = "a test fails by panicking")]
    pub fn new(provider: P) -> Harness<P> {
        let provider = ServedProvider::new(provider);
        let problems = provider.problems();
        assert!(
            problems.is_empty(),
            "these schemas cannot work:\n- {}",
            problems.join("\n- ")
        );
        Harness {
            provider,
            calls: Calls::default(),
            warnings: Mutex::default(),
            kind: PhantomData,
        }
    }

    /// Validates a configuration, and configures the provider with it.
    pub async fn configure(&self, config: Config<'_>) -> Result<()> {
        let schema = self.provider.config_schema();
        let wire = encode(Some(&config::object(schema, config)?), schema)?;
        self.sort(self.provider.validate_provider(&wire))?;
        let (_call, options) = self.begin();
        self.sort(self.provider.configure(&wire, "1.11.4", options).await)
    }

    /// Lists the resources, data sources, ephemeral resources and actions with their attributes outside blocks, each with one keyword for
    /// each property, so that a test can compare the schemas with the documentation.
    #[must_use]
    pub fn schema_text(&self) -> String {
        let mut out = String::new();
        let resources = (self.provider.resources()).map(|(name, r)| ("resource", name, r.member));
        let data = (self.provider.data_sources()).map(|(name, member)| ("data", name, member));
        let ephemerals = (self.provider.ephemerals()).map(|(name, member)| ("ephemeral", name, member));
        let actions = (self.provider.actions()).map(|(name, member)| ("action", name, member));
        for (kind, name, member) in resources.chain(data).chain(ephemerals).chain(actions) {
            let mut schema = member.declared();
            out.push_str(&format!("{kind} {name} v{}\n", schema.version));
            let attributes = &mut schema.root.attributes;
            attributes.sort_by_key(|a| a.name);
            for a in attributes {
                let words = [
                    (a.required, "required"),
                    (a.optional, "optional"),
                    (a.computed, "computed"),
                    (a.sensitive, "sensitive"),
                    (a.write_only, "write-only"),
                    (a.deprecated.is_some(), "deprecated"),
                ];
                let words: Vec<&str> = words
                    .into_iter()
                    .filter_map(|(yes, word)| yes.then_some(word))
                    .collect();
                out.push_str(&format!("  {} {} {}\n", a.name, a.ty, words.join(" ")));
            }
        }
        out
    }

    /// Takes all warnings that were collected since they were last taken.
    pub fn warnings(&self) -> Vec<Diagnostic> {
        std::mem::take(&mut *self.warnings.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Collects warnings. If there are errors, returns these together with the warnings instead.
    pub(crate) fn sort(&self, found: Diagnostics) -> Result<()> {
        if found.has_errors() {
            return Err(found);
        }
        self.warnings
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .extend(found.0);
        Ok(())
    }

    /// Requests the running calls to stop, as the host does after an interrupt.
    pub fn stop(&self) {
        self.provider.calls().stop();
    }

    /// Validates the configuration of a data source, and reads it.
    pub async fn data(&self, name: &str, config: Config<'_>) -> Result<Value> {
        let schema = named(self.provider.data_sources(), name);
        let wire = encode(Some(&config::object(schema, config)?), schema)?;
        self.sort(self.provider.validate_data_source(name, &wire))?;
        let (_call, options) = self.begin();
        let answer = self.provider.read_data_source(name, &wire, options).await;
        self.record(answer.deferred);
        self.sort(answer.diagnostics)?;
        decode(answer.state, schema)
    }

    /// Calls a function. The arguments are converted to the types of its parameters.
    pub fn call(&self, name: &str, arguments: &[Value]) -> std::result::Result<Value, FunctionError> {
        let function = self
            .provider
            .functions()
            .get(name)
            .ok_or_else(|| FunctionError::new(format!("there is no function {name:?}")))?;
        let problem = |errors: Diagnostics| {
            let texts: Vec<String> = errors.0.into_iter().map(|d| d.detail).collect();
            FunctionError::new(texts.join(" "))
        };
        let mut wires = Vec::with_capacity(arguments.len());
        for (i, value) in arguments.iter().enumerate() {
            let parameter = function.parameter(i);
            if value.is_null() && parameter.is_some_and(|p| !p.allow_null) {
                return Err(FunctionError::argument(i, "argument must not be null"));
            }
            if !value.is_wholly_known() && parameter.is_some_and(|p| !p.allow_unknown) {
                // A host does not call the function with such an argument either.
                return Ok(Value::unknown(function.returns.clone()));
            }
            let ty = parameter.map_or(Type::Dynamic, |p| p.ty.clone());
            let value = cty::convert::convert(value, &ty).map_err(|e| FunctionError::argument(i, e.message))?;
            wires.push(wire::encode(&value, &ty).map_err(problem)?);
        }
        let result = self.provider.call(name, &wires)?;
        wire::decode(&result, &function.returns).map_err(problem)
    }
}
