//! Instances of provider configurations with `for_each` (OpenTofu): which references need a key.

use addrs::{AbsProviderConfig, LocalProviderConfig};
use syntax::ast::{Expr, ObjectKey, Template, TemplatePart, TraversalStep};
use syntax::{Diagnostic, Diagnostics};

use crate::model::{Config, Instance, ModuleNode, PassedKey, ProviderConfig, ProviderRef};

impl ModuleNode {
    /// Returns the key that a caller passed for the provider configuration behind a local name of this module.
    #[must_use]
    pub fn passed_key(&self, local: &LocalProviderConfig) -> Option<&PassedKey> {
        let visible = self.providers.get(&crate::providers::key(&self.module, local))?;
        match &visible.instance {
            Instance::Passed(key) => Some(key),
            Instance::Only | Instance::Any => None,
        }
    }

    /// Checks the references of this module's blocks to provider configurations: their keys, and a `for_each` that is
    /// the same as that of the provider configuration.
    pub(crate) fn check_instances(&self, diagnostics: &mut Diagnostics) {
        let module = &self.module;
        let resources = module.resources.values();
        let resources = resources.filter_map(|r| Some((r.provider_ref.as_ref()?, r.for_each.as_ref(), "resource")));
        let actions = module.actions.values();
        let actions = actions.filter_map(|a| Some((a.provider_ref.as_ref()?, a.for_each.as_ref(), "action")));
        let imports = module.imports.iter();
        let imports = imports.filter_map(|i| Some((i.provider_ref.as_ref()?, None, "import")));
        let calls = module.module_calls.values().flat_map(|call| {
            let passed = call.providers.iter().flatten();
            passed.map(|passed| (&passed.parent, call.for_each.as_ref(), "module"))
        });
        for (reference, for_each, kind) in resources.chain(actions).chain(imports).chain(calls) {
            let Some(visible) = self.providers.get(&crate::providers::key(module, &reference.config)) else {
                continue;
            };
            diagnostics.extend(visible.check(reference, kind));
            let own = module.provider_configs.get(&reference.config);
            let of_provider = own.and_then(|block| block.for_each.as_ref());
            if let (Some(of_provider), Some(for_each)) = (of_provider, for_each)
                && !lang::refs::traversals(for_each).is_empty()
                && alike(of_provider, for_each)
            {
                diagnostics.push(same_collection(reference, kind, for_each));
            }
        }
    }
}

impl Config {
    /// Returns the key that selects an instance of a provider configuration, and the module in which the key is evaluated. The key is that
    /// of `reference`; if it has none, that of the call which passes the configuration to the module.
    #[must_use]
    pub fn provider_key<'c>(
        &'c self,
        node: &'c ModuleNode,
        local: &LocalProviderConfig,
        reference: Option<&'c ProviderRef>,
    ) -> Option<(&'c ModuleNode, &'c Expr)> {
        if let Some(key) = reference.and_then(|reference| reference.key.as_deref()) {
            return Some((node, key));
        }
        let passed = node.passed_key(local)?;
        Some((self.node(&passed.caller)?, &*passed.expr))
    }

    /// Returns the block of a provider configuration with its module; `None` if it has no block.
    #[must_use]
    pub fn provider_block(&self, address: &AbsProviderConfig) -> Option<(&ModuleNode, &ProviderConfig)> {
        let node = self.node(&address.module)?;
        let mut blocks = node.module.provider_configs.iter();
        let of = |local: &LocalProviderConfig| {
            local.alias == address.alias && node.module.provider_for_local_name(&local.name) == address.provider
        };
        let (_, block) = blocks.find(|(local, _)| of(local))?;
        Some((node, block))
    }

    /// Returns the `for_each` expression of a provider configuration, if it has one, with the module of its block.
    #[must_use]
    pub fn expanded_provider(&self, address: &AbsProviderConfig) -> Option<(&ModuleNode, &Expr)> {
        address.alias.as_ref()?;
        let (node, block) = self.provider_block(address)?;
        Some((node, block.for_each.as_ref()?))
    }
}

fn same_collection(reference: &ProviderRef, kind: &str, for_each: &Expr) -> Diagnostic {
    Diagnostic::warning(
        format!("Provider configuration for_each matches {kind}"),
        format!(
            "The {kind} and its provider configuration {} have the same for_each. When an element is removed, the instance of the \
             provider goes with the objects that only it can destroy, and the plan fails. Keep the element in the for_each of \
             the provider until the objects are destroyed: a second collection says which of them exist.",
            reference.config
        ),
    )
    .at(for_each.range())
}

/// Returns true if two expressions are the same, apart from source ranges, parentheses and lone interpolations.
fn alike(a: &Expr, b: &Expr) -> bool {
    let all = |a: &[Expr], b: &[Expr]| a.len() == b.len() && a.iter().zip(b).all(|(a, b)| alike(a, b));
    let either = |a: &Option<Expr>, b: &Option<Expr>| match (a, b) {
        (Some(a), Some(b)) => alike(a, b),
        (None, None) => true,
        _ => false,
    };
    match (a.plain(), b.plain()) {
        (Expr::Parens { inner, .. } | Expr::Wrap { inner, .. }, other)
        | (other, Expr::Parens { inner, .. } | Expr::Wrap { inner, .. }) => alike(inner, other),
        (Expr::Literal { value: a, .. }, Expr::Literal { value: b, .. }) => a == b,
        (Expr::Template(a), Expr::Template(b)) => alike_text(a, b),
        (Expr::Traversal(a), Expr::Traversal(b)) => a.root == b.root && alike_steps(&a.steps, &b.steps),
        (
            Expr::Relative {
                source: a, steps: x, ..
            },
            Expr::Relative {
                source: b, steps: y, ..
            },
        ) => alike(a, b) && alike_steps(x, y),
        (
            Expr::Index {
                collection: a, key: x, ..
            },
            Expr::Index {
                collection: b, key: y, ..
            },
        ) => alike(a, b) && alike(x, y),
        (Expr::Call(a), Expr::Call(b)) => a.name == b.name && a.expand_last == b.expand_last && all(&a.args, &b.args),
        (Expr::Tuple { items: a, .. }, Expr::Tuple { items: b, .. }) => all(a, b),
        (Expr::Object { items: a, .. }, Expr::Object { items: b, .. }) => {
            a.len() == b.len()
                && a.iter()
                    .zip(b)
                    .all(|(a, b)| alike_keys(&a.key, &b.key) && alike(&a.value, &b.value))
        }
        (
            Expr::Conditional {
                condition: a,
                yes: c,
                no: e,
                ..
            },
            Expr::Conditional {
                condition: b,
                yes: d,
                no: f,
                ..
            },
        ) => alike(a, b) && alike(c, d) && alike(e, f),
        (Expr::For(a), Expr::For(b)) => {
            (&a.key, &a.value, a.group) == (&b.key, &b.value, b.group)
                && alike(&a.collection, &b.collection)
                && alike(&a.result, &b.result)
                && either(&a.result_key, &b.result_key)
                && either(&a.condition, &b.condition)
        }
        _ => false,
    }
}

fn alike_keys(a: &ObjectKey, b: &ObjectKey) -> bool {
    match (a, b) {
        (ObjectKey::Bare { name: a, .. }, ObjectKey::Bare { name: b, .. }) => a == b,
        (ObjectKey::Expr(a), ObjectKey::Expr(b)) => alike(a, b),
        _ => false,
    }
}

fn alike_steps(a: &[TraversalStep], b: &[TraversalStep]) -> bool {
    let same = |(a, b): (&TraversalStep, &TraversalStep)| match (a, b) {
        (TraversalStep::Attribute { name: a, .. }, TraversalStep::Attribute { name: b, .. }) => a == b,
        (TraversalStep::Index { key: a, .. }, TraversalStep::Index { key: b, .. }) => a == b,
        _ => false,
    };
    a.len() == b.len() && a.iter().zip(b).all(same)
}

fn alike_text(a: &Template, b: &Template) -> bool {
    let same = |(a, b): (&TemplatePart, &TemplatePart)| match (a, b) {
        (TemplatePart::Literal { text: a, .. }, TemplatePart::Literal { text: b, .. }) => a == b,
        (TemplatePart::Interpolation(a), TemplatePart::Interpolation(b)) => alike(a, b),
        _ => false,
    };
    a.parts.len() == b.parts.len() && a.parts.iter().zip(&b.parts).all(same)
}
