//! Builds methods with their keys from the settings. Key providers and arguments are evaluated as far as a method needs them.

use std::collections::BTreeMap;
use std::sync::Arc;

use ::files::Environment;
use config::known::KnownRoot;
use cty::Value;
use schema::BlockSchema;
use syntax::ast::TraversalStep;
use syntax::{Diagnostic, Diagnostics, Range};

use crate::Programs;
use crate::envelope::Metadata;
use crate::method::{self, Method};
use crate::providers::{Arguments, KeyProvider, Keys, ProviderError};
use crate::settings::{Component, Settings, key_provider_references};

/// Purpose for which a method is built.
#[derive(Clone, Copy)]
pub(crate) enum Mode<'m> {
    /// Encryption, with new keys.
    Encrypt,
    /// Decryption, with the keys that this stored metadata describes.
    Decrypt(&'m Metadata),
}

/// Builds methods from settings.
#[derive(Debug)]
pub(crate) struct Builder {
    settings: Settings,
    root: KnownRoot,
    environment: Environment,
    programs: Programs,
}

/// Evaluation of one method and of the key providers that it needs.
struct Run<'m> {
    mode: Mode<'m>,
    /// Results of key providers, by type and name.
    values: BTreeMap<Arc<str>, BTreeMap<Arc<str>, Value>>,
    metadata: Metadata,
    /// Addresses of the key providers that are being evaluated, outermost first. A repetition is a cycle.
    waiting: Vec<String>,
}

impl Builder {
    pub fn new(settings: Settings, root: KnownRoot, environment: Environment, programs: Programs) -> Builder {
        Builder {
            settings,
            root,
            environment,
            programs,
        }
    }

    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    pub fn is_unencrypted(&self, method: usize) -> bool {
        &*self.settings.methods[method].ty == method::UNENCRYPTED
    }

    /// Returns the address of a method.
    pub fn shown(&self, method: usize) -> String {
        let method = &self.settings.methods[method];
        format!("method.{}.{}", method.ty, method.name)
    }

    /// Builds a method. Also returns the metadata from which its keys are found again.
    pub fn method(&self, index: usize, mode: Mode<'_>) -> Result<(Method, Metadata), Diagnostics> {
        let component = &self.settings.methods[index];
        let Some(schema) = method::schema(&component.ty) else {
            let known = method::TYPES.join(", ");
            let problem = Diagnostic::error(
                "Unknown encryption method type",
                format!(
                    "Can not find \"{}\". There is no such method; there are: {known}.",
                    component.ty
                ),
            );
            return Err(problem.at(&component.range).into());
        };
        let mut run = Run {
            mode,
            values: BTreeMap::new(),
            metadata: Metadata::new(),
            waiting: Vec::new(),
        };
        let arguments = self.arguments(component, &schema, &mut run)?;
        let built = Method::build(&component.ty, &arguments).map_err(|why| {
            let address = self.shown(index);
            let problem = Diagnostic::error("Invalid encryption method configuration", format!("{address}: {why}."));
            Diagnostics::from(problem.at(&component.range))
        })?;
        Ok((built, run.metadata))
    }

    /// Evaluates the arguments of a key provider or method. The key providers in its references are evaluated first.
    fn arguments(
        &self,
        component: &Component,
        schema: &BlockSchema,
        run: &mut Run<'_>,
    ) -> Result<Arguments, Diagnostics> {
        for reference in key_provider_references(&component.body) {
            let range = reference.root_range.clone();
            let [
                TraversalStep::Attribute { name: ty, .. },
                TraversalStep::Attribute { name, .. },
                ..,
            ] = reference.steps.as_slice()
            else {
                let problem = Diagnostic::error(
                    "Invalid Key Provider expression format",
                    "The key_provider symbol must be followed by two more attribute names: the type and the name of a key \
                     provider.",
                );
                return Err(problem.at(&range).into());
            };
            self.key_provider(ty, name, &range, run)?;
        }
        let by_type = run.values.iter().map(|(ty, names)| {
            let names = names.iter().map(|(name, value)| (name.clone(), value.clone()));
            (ty.clone(), Value::object(names))
        });
        let variables = [(Arc::from("key_provider"), Value::object(by_type))];
        let (value, problems) = self.root.decode(&component.body, schema, &variables);
        if problems.has_errors() {
            return Err(problems);
        }
        // All values of key providers and methods are secret, so sensitivity marks have no use.
        let value = value.unmark_deep().0;
        if !value.is_wholly_known() {
            let problem = Diagnostic::error(
                "Unable to compute static value",
                "An argument depends on a value that is not known before a plan is made. Use variables, locals and literal values.",
            );
            return Err(problem.at(&component.range).into());
        }
        Ok(Arguments(value))
    }

    fn key_provider(&self, ty: &str, name: &str, at: &Range, run: &mut Run<'_>) -> Result<(), Diagnostics> {
        let address = format!("key_provider.{ty}.{name}");
        if run.values.get(ty).is_some_and(|names| names.contains_key(name)) {
            return Ok(());
        }
        let mut declared = self.settings.key_providers.iter();
        let Some(component) = declared.find(|c| &*c.ty == ty && &*c.name == name) else {
            let problem = Diagnostic::error(
                "Reference to undeclared key provider",
                format!("There is no key_provider \"{ty}\" \"{name}\" block declared in the encryption block."),
            );
            return Err(problem.at(at).into());
        };
        if run.waiting.contains(&address) {
            let mut cycle = run.waiting.clone();
            cycle.push(address.clone());
            let problem = Diagnostic::error(
                "Circular reference detected",
                format!(
                    "Each of these key providers needs the next one: {}.",
                    cycle.join(" -> ")
                ),
            );
            return Err(problem.at(&component.range).into());
        }
        let Some(kind) = KeyProvider::of_type(ty) else {
            return Err(unknown_type(ty).at(&component.range).into());
        };
        if let Some((_, feature)) = self.programs.left_out.iter().find(|(name, _)| *name == ty) {
            let problem = Diagnostic::error(
                "Key provider left out of this build",
                format!(
                    "This executable was built without the key provider \"{ty}\". Use a complete build, or one with the feature \
                     \"{feature}\"."
                ),
            );
            return Err(problem.at(&component.range).into());
        }
        run.waiting.push(address.clone());
        let arguments = self.arguments(component, &kind.schema(), run)?;
        run.waiting.pop();
        let key = component.alias.as_ref().map_or(address, |alias| alias.to_string());
        let failed = |error: ProviderError| {
            let summary = match error {
                ProviderError::Configuration(_) => "Unable to build encryption key data",
                ProviderError::Metadata(_) => {
                    "Unable to decode encrypted metadata (did you change your encryption config?)"
                }
                ProviderError::Failure(_) => "Unable to fetch encryption key data",
            };
            let problem = Diagnostic::error(summary, format!("{key} failed with error: {error}."));
            Diagnostics::from(problem.at(&component.range))
        };
        let built = kind
            .build(&arguments, &self.environment, &self.programs)
            .map_err(failed)?;
        let keys = match run.mode {
            Mode::Encrypt => {
                let (encryption, metadata) = built.new_key().map_err(failed)?;
                if run.metadata.contains_key(&key) {
                    let problem = Diagnostic::error(
                        "Duplicate metadata key",
                        format!(
                            "Two key providers store their metadata under the name {key}. Give one of them another name with \
                             \"encrypted_metadata_alias\"."
                        ),
                    );
                    return Err(problem.at(&component.range).into());
                }
                run.metadata.insert(key, metadata);
                Keys {
                    encryption,
                    decryption: None,
                }
            }
            Mode::Decrypt(stored) => {
                let decryption = match stored.get(&key) {
                    Some(metadata) => Some(built.stored_key(metadata).map_err(failed)?),
                    // A text without metadata of this key provider was encrypted by another method.
                    None => None,
                };
                Keys {
                    // This key is not used for encryption here, but the field must contain a valid key.
                    encryption: decryption.clone().unwrap_or_else(|| vec![0; built.key_length()]),
                    decryption,
                }
            }
        };
        let value = keys.to_value();
        run.values.entry(ty.into()).or_default().insert(name.into(), value);
        Ok(())
    }
}

fn unknown_type(ty: &str) -> Diagnostic {
    let detail = format!(
        "Can not find \"{ty}\". There is no such key provider; there are: {}.",
        crate::providers::TYPES.join(", ")
    );
    Diagnostic::error("Unknown key_provider type", detail)
}
