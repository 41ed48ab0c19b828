//! `module` blocks.

use std::sync::Arc;

use lang::eval::{Context, evaluate};
use lang::scope::Constant;
use syntax::ast::{Block, Expr, ObjectKey};
use syntax::content::BodySpec;
use syntax::{Diagnostic, Range};

use super::{Decoder, constraint, parts};
use crate::model::{ModuleCall, PassedProvider, ProviderRef};
use crate::source_address::ModuleSource;
use crate::version::Dialect;

const MODULE: BodySpec<'static> = BodySpec {
    attributes: &[
        ("source", true),
        ("version", false),
        ("count", false),
        ("for_each", false),
        ("depends_on", false),
        ("providers", false),
        ("ignore_nested_deprecations", false),
    ],
    blocks: &[("_", &[]), ("lifecycle", &[]), ("locals", &[]), ("provider", &["type"])],
};

const MODULE_OVERRIDE: BodySpec<'static> = BodySpec {
    attributes: &[
        ("source", false),
        ("version", false),
        ("count", false),
        ("for_each", false),
        ("depends_on", false),
        ("providers", false),
        ("ignore_nested_deprecations", false),
    ],
    ..MODULE
};

impl Decoder<'_> {
    pub(super) fn module_call(&mut self, block: Block) -> Option<ModuleCall> {
        let range = parts::header(&block);
        let label = block.labels.into_iter().next()?;
        parts::check_name(&label, "Invalid module instance name", self.diagnostics);
        let spec = if self.overriding { MODULE_OVERRIDE } else { MODULE };
        let mut taken = parts::partial(block.body, spec, self.diagnostics);
        parts::unescape(&mut taken.blocks, &mut taken.rest, "module", self.diagnostics);

        let version_attribute = taken.attribute("version");
        let version = version_attribute
            .as_ref()
            .and_then(|a| constraint(&a.expr, Dialect::Module, self.diagnostics));
        let mut source = None;
        let mut source_text = String::new();
        let mut source_range = range.clone();
        if let Some(a) = taken.attribute("source") {
            source_range = a.expr.range().clone();
            if let Some(text) = parts::constant_string(&a.expr, self.diagnostics) {
                source_text = text.to_string();
                match ModuleSource::parse(&text, version_attribute.is_some()) {
                    Ok(parsed) => source = Some(parsed),
                    Err(detail) => {
                        let summary = if version_attribute.is_some() {
                            "Invalid registry module source address"
                        } else {
                            "Invalid module source address"
                        };
                        self.diagnostics
                            .push(Diagnostic::error(summary, detail).at(&source_range));
                    }
                }
                if let (Some(ModuleSource::Local(_)), Some(version)) = (&source, &version_attribute) {
                    source = None;
                    self.diagnostics.push(
                        Diagnostic::error(
                            "Invalid registry module source address",
                            "A version can be chosen of modules in a registry only; this module is a local directory. Remove \
                             the \"version\" argument, or give the address of a registry module.",
                        )
                        .at(&source_range)
                        .within(&version.range),
                    );
                }
            }
        }
        let (count, for_each) = (taken.attribute("count"), taken.attribute("for_each"));
        self.count_and_for_each(count.as_ref(), for_each.as_ref());
        let depends_on = taken.attribute("depends_on");
        if self.overriding {
            self.no_depends_on_override(depends_on.as_ref());
        }
        let providers = taken.expr("providers").map(|expr| self.passed_providers(&expr));
        let ignore_nested_deprecations = taken
            .expr("ignore_nested_deprecations")
            .is_some_and(|expr| self.ignore_nested_deprecations(&expr));
        for block in &taken.blocks {
            self.diagnostics.push(parts::reserved_block(block, "module"));
        }
        Some(ModuleCall {
            name: label.text,
            source,
            source_text,
            source_range,
            version,
            inputs: Arc::new(taken.rest),
            count: count.map(|a| a.expr),
            for_each: for_each.map(|a| a.expr),
            depends_on: parts::depends_on(depends_on, self.diagnostics),
            providers,
            ignore_nested_deprecations,
            range,
        })
    }

    /// A bool that is written as one: nothing converts to it.
    fn ignore_nested_deprecations(&mut self, expr: &Expr) -> bool {
        let (value, problems) = evaluate(expr, Context::new(&Constant));
        let name = "ignore_nested_deprecations";
        let (summary, detail) = match value.as_bool() {
            _ if problems.has_errors() => (
                format!("Invalid value for {name}"),
                "The value is true or false, written out: nothing can be referred to.".to_owned(),
            ),
            Some(value) => return value,
            None => (
                format!("Invalid type for {name}"),
                format!(
                    "The value is true or false; this one is {}.",
                    value.ty().friendly_name()
                ),
            ),
        };
        self.diagnostics
            .push(Diagnostic::error(summary, detail).at(expr.range()));
        false
    }

    fn passed_providers(&mut self, expr: &Expr) -> Vec<PassedProvider> {
        let items = match expr.plain() {
            Expr::Object { items, .. } => items,
            Expr::Invalid { .. } => return Vec::new(),
            _ => {
                self.diagnostics.push(
                    Diagnostic::error(
                        "Invalid expression",
                        "A map is required here, written out between braces.",
                    )
                    .at(expr.range()),
                );
                return Vec::new();
            }
        };
        let mut out: Vec<PassedProvider> = Vec::new();
        for item in items {
            let child = match &item.key {
                ObjectKey::Bare { name, range } => Some(ProviderRef {
                    config: addrs::LocalProviderConfig {
                        name: name.clone(),
                        alias: None,
                    },
                    range: range.clone(),
                }),
                ObjectKey::Expr(key) => parts::provider_ref(key, "providers", self.diagnostics),
            };
            let parent = parts::provider_ref(&item.value, "providers", self.diagnostics);
            let (Some(child), Some(parent)) = (child, parent) else {
                continue;
            };
            if let Some(first) = out.iter().find(|p| p.child.config == child.config) {
                let at: Range = child.range.to(&parent.range);
                self.diagnostics.push(
                    Diagnostic::error(
                        "Duplicate provider address",
                        format!(
                            "A provider configuration was already handed over as {} at {}. Each one of the module can be \
                             given once.",
                            child.config, first.child.range
                        ),
                    )
                    .at(&at),
                );
                continue;
            }
            out.push(PassedProvider { child, parent });
        }
        out
    }
}
