//! `terraform` blocks: settings, required providers, backends.

use std::sync::Arc;

use addrs::Provider;
use addrs::program::Mode;
use syntax::ast::{Attribute, Block, Expr, ObjectKey};
use syntax::content::BodySpec;
use syntax::{Diagnostic, Diagnostics, Range};

use super::{Decoder, FileBlocks, constraint, invalid_constraint, parts};
use crate::file_names::is_of_opentofu;
use crate::model::{Backend, Cloud, Encryption, ProviderMeta, ProviderRef, RequiredProvider};
use crate::version::{Constraint, Dialect};

const TERRAFORM: BodySpec<'static> = BodySpec {
    attributes: &[("required_version", false), ("experiments", false), ("language", false)],
    blocks: &[
        ("backend", &["type"]),
        ("state_store", &["type"]),
        ("cloud", &[]),
        ("encryption", &[]),
        ("required_providers", &[]),
        ("provider_meta", &["provider"]),
    ],
};

impl Decoder<'_> {
    pub(super) fn terraform(&mut self, block: Block, out: &mut FileBlocks) {
        let mut taken = parts::exact(block.body, TERRAFORM, self.diagnostics);
        if let Some(a) = taken.attribute("required_version") {
            out.required_versions
                .extend(constraint(&a.expr, Dialect::Module, self.diagnostics));
        }
        // In the mode of OpenTofu, `experiments` and `language` are ignored in Terraform's files: they are meant for
        // Terraform.
        let heeded = !Mode::current().is_opentofu() || is_of_opentofu(&block.header.file);
        if let Some(a) = taken.attribute("experiments").filter(|_| heeded) {
            self.experiments(&a);
        }
        if let Some(a) = taken.attribute("language").filter(|_| heeded) {
            self.language(&a);
        }
        for block in taken.blocks {
            let range = parts::header(&block);
            match &*block.ty {
                "required_providers" => {
                    let entries = self.required_providers(block);
                    out.required_providers.push((range, entries));
                }
                "cloud" => out.clouds.push(Cloud {
                    problems: Diagnostics::new(),
                    body: Arc::new(block.body),
                    range,
                }),
                "encryption" => out.encryptions.push(Encryption {
                    body: Arc::new(block.body),
                    range,
                    overrides: Vec::new(),
                }),
                "state_store" => out.backends.extend(self.state_store(block)),
                "backend" => {
                    let Some(label) = block.labels.into_iter().next() else {
                        continue;
                    };
                    let body = Arc::new(block.body);
                    out.backends.push(Backend {
                        problems: Diagnostics::new(),
                        ty: label.text,
                        body,
                        range,
                        type_range: label.range,
                        provider: None,
                    });
                }
                _ => {
                    let Some(label) = block.labels.into_iter().next() else {
                        continue;
                    };
                    for inner in &block.body.blocks {
                        self.no_block_here(inner, "a setting for the provider is an argument.");
                    }
                    for attribute in &block.body.attributes {
                        // Settings are sent to the provider before anything is evaluated, so only constants are
                        // allowed.
                        parts::constant(&attribute.expr, self.diagnostics);
                    }
                    if self.provider_name(&label.text, &range) {
                        let provider = Provider::default_for("");
                        let body = Arc::new(block.body);
                        out.provider_metas.push(ProviderMeta {
                            name: label.text,
                            provider,
                            body,
                            range,
                        });
                    }
                }
            }
        }
    }

    /// Reports the argument `experiments`, whatever its value: experiments exist in alpha releases only.
    fn experiments(&mut self, attribute: &Attribute) {
        self.diagnostics.push(
            Diagnostic::error(
                "Module uses experimental features",
                "Experiments are trials of language features, there in alpha releases only; this is not one. Remove the \
                 \"experiments\" argument and what depends on it.",
            )
            .at(&attribute.name_range),
        );
    }

    fn language(&mut self, attribute: &Attribute) {
        if attribute.expr.as_keyword() == Some("TF2021") || matches!(attribute.expr, Expr::Invalid { .. }) {
            return;
        }
        let keyword = attribute.expr.as_keyword().is_some();
        self.diagnostics.push(
            Diagnostic::error(
                if keyword {
                    "Unsupported language edition"
                } else {
                    "Invalid language edition"
                },
                "The only edition of the language is TF2021, which is also what is meant without this argument.",
            )
            .at(attribute.expr.range()),
        );
    }

    fn required_providers(&mut self, block: Block) -> Vec<RequiredProvider> {
        for inner in &block.body.blocks {
            self.no_block_here(inner, "each provider is an argument.");
        }
        block
            .body
            .attributes
            .into_iter()
            .filter_map(|a| self.required_provider(a))
            .collect()
    }

    fn no_block_here(&mut self, inner: &Block, instead: &str) {
        self.diagnostics.push(
            Diagnostic::error(
                format!("Unexpected \"{}\" block", inner.ty),
                format!("Blocks are not allowed here: {instead}"),
            )
            .at(&inner.type_range),
        );
    }

    fn required_provider(&mut self, attribute: Attribute) -> Option<RequiredProvider> {
        let Attribute {
            name,
            name_range: _,
            expr,
            range,
        } = attribute;
        if !self.provider_name(&name, expr.range()) {
            return None;
        }
        let mut required = RequiredProvider {
            provider: Provider::implied(&name),
            name,
            source: None,
            constraint: None,
            configuration_aliases: Vec::new(),
            range,
        };
        let items = match expr.plain() {
            Expr::Object { items, .. } => items,
            Expr::Invalid { .. } => return Some(required),
            // In the form of Terraform 0.12, the value is the version constraint alone.
            _ => {
                if let Some(text) = parts::constant_string(&expr, self.diagnostics) {
                    required.constraint = self.provider_constraint(&text, expr.range(), &required.range);
                }
                return Some(required);
            }
        };
        for item in items {
            let key = match &item.key {
                ObjectKey::Bare { name, .. } => name.clone(),
                ObjectKey::Expr(e) => e.as_literal_text().unwrap_or_default(),
            };
            let text = item.value.as_literal_text();
            let at = item.value.range();
            match &*key {
                "version" => match text {
                    Some(text) => required.constraint = self.provider_constraint(&text, at, &required.range),
                    None => self.diagnostics.push(
                        Diagnostic::error("Invalid version constraint", "The version must be written as a string.")
                            .at(at),
                    ),
                },
                "source" => match text.as_deref().map(Provider::parse) {
                    Some(Ok(provider)) => {
                        required.provider = provider;
                        required.source = text.map(|t| t.to_string());
                    }
                    Some(Err(error)) => {
                        self.diagnostics
                            .push(Diagnostic::error(error.summary, error.detail).at(at));
                    }
                    None => self
                        .diagnostics
                        .push(Diagnostic::error("Invalid source", "The source must be written as a string.").at(at)),
                },
                "configuration_aliases" => {
                    for item in parts::static_list(&item.value, self.diagnostics) {
                        required
                            .configuration_aliases
                            .extend(self.configuration_alias(item, &required.name));
                    }
                }
                _ => {
                    self.diagnostics.push(
                        Diagnostic::error(
                            "Invalid required_providers object",
                            "A provider's requirement has \"source\", \"version\" and \"configuration_aliases\", nothing else. \
                             Settings of the provider belong into a \"provider\" block.",
                        )
                        .at(item.key.range()),
                    );
                }
            }
        }
        Some(required)
    }

    /// Reads a provider's version constraint. `at` is the range of its text, `entry` that of the whole entry in the
    /// block.
    fn provider_constraint(&mut self, text: &str, at: &Range, entry: &Range) -> Option<Constraint> {
        match Constraint::parse(text, Dialect::Provider, at) {
            Ok(constraint) => Some(constraint),
            Err(error) => {
                // A constraint that only the stricter dialect of providers rejects is reported at the whole entry.
                let place = match Constraint::parse(text, Dialect::Module, at) {
                    Ok(_) => entry,
                    Err(_) => at,
                };
                self.diagnostics.push(invalid_constraint(&error, place));
                None
            }
        }
    }

    fn configuration_alias(&mut self, expr: &Expr, name: &str) -> Option<ProviderRef> {
        let reference = match expr {
            Expr::Traversal(t) => parts::provider_ref_of(t),
            Expr::Invalid { .. } => return None,
            _ => match parts::keyword_traversal(expr) {
                Some(t) => parts::provider_ref_of(&t),
                None => expr.as_literal_text().and_then(|text| {
                    crate::parse::traversal(&text, expr.range())
                        .ok()
                        .and_then(|t| parts::provider_ref_of(&t))
                }),
            },
        };
        let reference = reference.filter(|r| &*r.config.name == name);
        if reference.is_none() {
            self.diagnostics.push(
                Diagnostic::error(
                    "Invalid configuration_aliases value",
                    format!(
                        "An alias is written as the local name of the provider, a dot, and the alias: \"{name}.other\"."
                    ),
                )
                .at(expr.range()),
            );
        }
        reference
    }
}
