//! `provider` blocks.

use std::sync::Arc;

use addrs::LocalProviderConfig;
use addrs::program::Mode;
use syntax::Diagnostic;
use syntax::ast::{Attribute, Block, Expr};
use syntax::content::BodySpec;

use super::{Decoder, constraint, parts};
use crate::model::ProviderConfig;
use crate::version::Dialect;

const PROVIDER: BodySpec<'static> = BodySpec {
    attributes: &[
        ("version", false),
        ("alias", false),
        ("count", false),
        ("depends_on", false),
        ("for_each", false),
        ("source", false),
    ],
    blocks: &[("_", &[]), ("lifecycle", &[]), ("locals", &[])],
};

impl Decoder<'_> {
    pub(crate) fn provider(&mut self, block: Block) -> Option<ProviderConfig> {
        let range = parts::header(&block);
        let label = block.labels.into_iter().next()?;
        self.provider_name(&label.text, &range);
        let mut taken = parts::partial(block.body, PROVIDER, self.diagnostics);
        parts::unescape(&mut taken.blocks, &mut taken.rest, "provider", self.diagnostics);
        let mut alias = None;
        if let Some(a) = taken.attribute("alias") {
            alias = parts::constant_string(&a.expr, self.diagnostics);
            if alias.as_deref().is_some_and(|text| !addrs::parse::is_identifier(text)) {
                self.diagnostics.push(
                    Diagnostic::error(
                        "Invalid provider configuration alias",
                        format!("An alias must be a name. {}", parts::NAME_RULE),
                    )
                    .at(a.expr.range()),
                );
            }
        }
        let mut version = None;
        if let Some(a) = taken.attribute("version") {
            self.diagnostics.push(
                Diagnostic::warning(
                    "Version constraints inside provider configuration blocks are deprecated",
                    "Move the version constraint to the \"required_providers\" block. The \"version\" argument in a provider \
                     configuration will stop working in a later version.",
                )
                .at(a.expr.range()),
            );
            version = constraint(&a.expr, Dialect::Provider, self.diagnostics);
        }
        let for_each = self.provider_for_each(taken.attribute("for_each"), alias.is_some());
        for name in ["count", "depends_on", "source"] {
            if let Some(attribute) = taken.attribute(name) {
                self.diagnostics.push(
                    Diagnostic::error(
                        "Reserved argument name in provider block",
                        format!("The argument name \"{name}\" is reserved for later versions of the language."),
                    )
                    .at(&attribute.name_range),
                );
            }
        }
        for block in &taken.blocks {
            self.diagnostics.push(parts::reserved_block(block, "provider"));
        }
        Some(ProviderConfig {
            address: LocalProviderConfig {
                name: label.text,
                alias,
            },
            for_each,
            body: Arc::new(taken.rest),
            version,
            range,
            name_range: label.range,
        })
    }

    /// Returns the collection of a provider configuration's instances, which only OpenTofu has.
    pub(crate) fn provider_for_each(&mut self, attribute: Option<Attribute>, has_alias: bool) -> Option<Expr> {
        let attribute = attribute?;
        if !Mode::current().has_opentofu() {
            self.diagnostics.push(
                Diagnostic::error(
                    "Reserved argument name in provider block",
                    "The argument name \"for_each\" is reserved for later versions of the language. Only OpenTofu has it: it \
                     can be used in the modes of OpenTofu and Monoform.",
                )
                .at(&attribute.name_range),
            );
            return None;
        }
        // `has_alias` is true for a block of an override file even if its alias is invalid, because that error has been
        // reported.
        if !has_alias {
            self.diagnostics.push(
                Diagnostic::error(
                    "Alias required when using \"for_each\"",
                    "Only a provider configuration with an alias can have for_each. Add an alias, and refer to the instances \
                     by it and a key.",
                )
                .at(attribute.expr.range()),
            );
            return None;
        }
        Some(attribute.expr)
    }

    /// Reports a name that no provider can have.
    pub(super) fn provider_name(&mut self, name: &str, range: &syntax::Range) -> bool {
        let valid = parts::is_provider_name(name);
        if !valid {
            self.diagnostics.push(parts::invalid_provider_name(name, range));
        }
        valid
    }
}
