//! Providers and ephemeral resources that operations depend on. Each is opened before the first such operation.

use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, PoisonError};

use addrs::{AbsProviderConfig, ConfigResource};
use tokio::sync::OnceCell;

use crate::blocks::Block;
use crate::context::OperationContext;
use crate::dependency_evaluation::DependencyEvaluation;
use crate::ephemeral::Ephemerals;
use crate::eval::Reported;
use crate::provider_opening;

/// Result of one opening, once it is complete.
type Opening = Arc<OnceCell<Result<(), Reported>>>;

/// Ensures that each provider or ephemeral resource is opened only once. Concurrent callers wait for the first.
struct OpenOnce<K>(Mutex<HashMap<K, Opening>>);

impl<K: Clone + Eq + Hash> OpenOnce<K> {
    fn new() -> OpenOnce<K> {
        OpenOnce(Mutex::new(HashMap::new()))
    }

    /// Opens the provider or ephemeral resource with this key, unless that has been done. Every caller receives the same result.
    async fn open<F>(&self, key: &K, open: impl FnOnce() -> F) -> Result<(), Reported>
    where
        F: Future<Output = Result<(), Reported>>,
    {
        // The cell is taken out of the map first, so that the lock is not held while a provider starts.
        let cell = {
            let mut opened = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            opened.entry(key.clone()).or_default().clone()
        };
        *cell.get_or_init(|| Box::pin(open())).await
    }
}

/// Opened providers and ephemeral resources.
pub(super) struct Openings<'a> {
    context: OperationContext<'a>,
    ephemerals: &'a Ephemerals<'a>,
    dependency_evaluation: &'a DependencyEvaluation<'a>,
    providers: OpenOnce<AbsProviderConfig>,
    ephemeral_resources: OpenOnce<ConfigResource>,
    /// Cache: the ephemeral resources that each block depends on, computed on first use.
    ephemerals_before: Mutex<HashMap<Block, Arc<[ConfigResource]>>>,
}

impl<'a> Openings<'a> {
    pub(super) fn new(
        context: OperationContext<'a>,
        ephemerals: &'a Ephemerals<'a>,
        dependency_evaluation: &'a DependencyEvaluation<'a>,
    ) -> Openings<'a> {
        Openings {
            context,
            ephemerals,
            dependency_evaluation,
            providers: OpenOnce::new(),
            ephemeral_resources: OpenOnce::new(),
            ephemerals_before: Mutex::default(),
        }
    }

    /// Opens a provider configuration and the ephemeral resources that it uses.
    pub(super) async fn open(&self, address: &AbsProviderConfig) -> Result<(), Reported> {
        self.open_ephemerals(&Block::Provider(address.block())).await?;
        self.open_provider(address).await
    }

    /// Opens the ephemeral resources that a block uses.
    pub(super) async fn open_ephemerals(&self, block: &Block) -> Result<(), Reported> {
        if self.ephemerals.is_empty() {
            return Ok(());
        }
        Box::pin(self.open_ephemerals_before(block)).await
    }

    async fn open_ephemerals_before(&self, block: &Block) -> Result<(), Reported> {
        for resource in &*self.ephemerals_before(block) {
            // In dependency order: an ephemeral resource that configures the provider of another one is opened first.
            let open = || async {
                let block = self.context.inputs.config.provider_for(resource);
                for instance in self.provider_instances(&block)? {
                    self.open_provider(&instance).await?;
                }
                self.dependency_evaluation
                    .evaluate(self.context.evaluator, &Block::Resource(resource.clone()))?;
                self.ephemerals.open(resource).await
            };
            self.ephemeral_resources.open(resource, open).await?;
        }
        Ok(())
    }

    // The list is computed once for each block: all instances of a resource ask for the same list.
    fn ephemerals_before(&self, block: &Block) -> Arc<[ConfigResource]> {
        let mut before = self.ephemerals_before.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = before.get(block) {
            return known.clone();
        }
        let found: Arc<[ConfigResource]> = self.context.blocks.ephemeral_before(block).into();
        before.insert(block.clone(), found.clone());
        found
    }

    fn provider_instances(&self, block: &AbsProviderConfig) -> Result<Vec<AbsProviderConfig>, Reported> {
        let node = Block::Provider(block.clone());
        self.dependency_evaluation.evaluate(self.context.evaluator, &node)?;
        self.context.evaluator.provider_instances(block)
    }

    async fn open_provider(&self, address: &AbsProviderConfig) -> Result<(), Reported> {
        let open = || async {
            self.dependency_evaluation
                .evaluate(self.context.evaluator, &Block::Provider(address.block()))?;
            provider_opening::open(self.context.evaluator, self.context.providers, address).await
        };
        self.providers.open(address, open).await
    }
}
