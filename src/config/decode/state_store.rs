//! `state_store` blocks: a state store of a provider.

use std::sync::Arc;

use addrs::Provider;
use syntax::ast::Block;
use syntax::content::BodySpec;
use syntax::{Diagnostic, Diagnostics};

use super::{Decoder, parts};
use crate::model::{Backend, StoreProvider};

/// Arguments and blocks of `state_store` that are not part of the store's own configuration.
const STATE_STORE: BodySpec<'static> = BodySpec {
    attributes: &[],
    blocks: &[("provider", &["name"])],
};

impl Decoder<'_> {
    /// Decodes a `state_store` block, and takes the `provider` block out of it. The store's schema describes the rest.
    pub(super) fn state_store(&mut self, block: Block) -> Option<Backend> {
        let range = parts::header(&block);
        let label = block.labels.into_iter().next()?;
        self.diagnostics.push(
            Diagnostic::warning(
                "Experimental state store",
                "State stores of providers are an experiment: how they are configured, and what providers must do, may \
                 still change. Terraform accepts the block in experimental builds only. Keep copies of the state.",
            )
            .at(&range),
        );
        let taken = parts::partial(block.body, STATE_STORE, self.diagnostics);
        let mut blocks = taken.blocks.into_iter();
        let Some(first) = blocks.next() else {
            self.diagnostics.push(
                Diagnostic::error(
                    "Missing provider block",
                    "A \"state_store\" block says which provider has the store, by a \"provider\" block inside it.",
                )
                .at(&range),
            );
            return None;
        };
        if let Some(second) = blocks.next() {
            self.diagnostics.push(
                Diagnostic::error(
                    "Duplicate provider block",
                    "One provider has the store: a \"state_store\" block has one \"provider\" block.",
                )
                .at(&parts::header(&second)),
            );
            return None;
        }
        let provider = self.provider(first)?;
        if provider.address.alias.is_some() {
            self.diagnostics.push(
                Diagnostic::error(
                    "Unexpected provider alias",
                    "The configuration of a state store's provider is for the store alone, and nothing refers to it: leave the \
                     argument \"alias\" out.",
                )
                .at(&provider.range),
            );
            return None;
        }
        let name = provider.address.name.clone();
        Some(Backend {
            problems: Diagnostics::new(),
            ty: label.text,
            body: Arc::new(taken.rest),
            range,
            type_range: label.range,
            provider: Some(StoreProvider {
                // The provider is replaced by `resolve_state_store`, when the requirements of the whole module
                // are known.
                provider: Provider::implied(&name),
                name,
                body: provider.body,
                range: provider.range,
            }),
        })
    }
}
