//! `module` blocks.

use std::sync::Arc;

use addrs::program::Mode;
use lang::eval::{Context, evaluate};
use lang::scope::Constant;
use syntax::ast::{Attribute, Block, Expr, ObjectKey};
use syntax::content::BodySpec;
use syntax::{Diagnostic, Diagnostics, Range};

use super::{Decoder, parts};
use crate::model::{CallAddress, LiteralAddress, ModuleCall, PassedProvider, ProviderRef};
use crate::source_address::ModuleSource;
use crate::version::{Constraint, Dialect};

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

const LIFECYCLE: BodySpec<'static> = BodySpec {
    attributes: &[("enabled", false)],
    blocks: &[],
};

impl Decoder<'_> {
    pub(super) fn module_call(&mut self, block: Block) -> Option<ModuleCall> {
        let range = parts::header(&block);
        let label = block.labels.into_iter().next()?;
        parts::check_name(&label, "Invalid module instance name", self.diagnostics);
        // An override file changes single arguments of a call: it need not repeat the source.
        let spec = if self.overriding { MODULE_OVERRIDE } else { MODULE };
        let mut taken = parts::partial(block.body, spec, self.diagnostics);
        parts::unescape(&mut taken.blocks, &mut taken.rest, "module", self.diagnostics);

        let (source, version) = (taken.expr("source"), taken.expr("version"));
        let (count, for_each) = (taken.attribute("count"), taken.attribute("for_each"));
        let enabled = self.call_lifecycle(&mut taken.blocks);
        self.one_repetition([count.as_ref(), enabled.as_ref(), for_each.as_ref()]);
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
            version,
            address: LiteralAddress::default(),
            inputs: Arc::new(taken.rest),
            count: count.map(|a| a.expr),
            for_each: for_each.map(|a| a.expr),
            enabled: enabled.map(|a| a.expr),
            depends_on: parts::depends_on(depends_on, self.diagnostics),
            providers,
            ignore_nested_deprecations,
            range,
        })
    }

    /// In the language of OpenTofu, takes the `lifecycle` block of a module call out of `blocks`, and returns its
    /// argument `enabled`.
    fn call_lifecycle(&mut self, blocks: &mut Vec<Block>) -> Option<Attribute> {
        if !Mode::current().has_opentofu() {
            return None;
        }
        let (found, others): (Vec<Block>, Vec<Block>) = blocks.drain(..).partition(|block| &*block.ty == "lifecycle");
        *blocks = others;
        let mut found = found.into_iter();
        let first = found.next()?;
        for block in found {
            self.diagnostics
                .push(parts::duplicate_block("lifecycle", "module", &first.header, &block));
        }
        parts::exact(first.body, LIFECYCLE, self.diagnostics).attribute("enabled")
    }

    /// Reads `ignore_nested_deprecations`, which must be a bool: unlike in other bool arguments, a string is not
    /// converted.
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

    pub(crate) fn passed_providers(&mut self, expr: &Expr) -> Vec<PassedProvider> {
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
                    key: None,
                    range: range.clone(),
                }),
                ObjectKey::Expr(key) => parts::provider_ref(key, "providers", self.diagnostics),
            };
            let parent = parts::provider_ref(&item.value, "providers", self.diagnostics);
            let (Some(child), Some(parent)) = (child, parent) else {
                continue;
            };
            if child.key.is_some() {
                self.diagnostics.push(
                    Diagnostic::error(
                        "Invalid module provider configuration",
                        "A key selects an instance on the right-hand side only. The module gets one configuration by this name.",
                    )
                    .at(&child.range),
                );
                continue;
            }
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

/// Sets the source address and the version of a module call, if its arguments are literals. Problems are
/// reported.
pub(crate) fn literal_address(call: &mut ModuleCall, diagnostics: &mut Diagnostics) {
    let Some(source) = &call.source else { return };
    let parts = [Some(source), call.version.as_ref()];
    // The parser has reported an invalid expression.
    if parts.iter().flatten().any(|e| matches!(e, Expr::Invalid { .. })) {
        return;
    }
    let version = match call.version.as_ref().map(|expr| (expr, literal_text(expr))) {
        None => None,
        Some((_, None)) => {
            call.address = LiteralAddress::Evaluated;
            return;
        }
        Some((expr, Some(text))) => match Constraint::parse(&text, Dialect::Module, expr.range()) {
            Ok(constraint) => Some(constraint),
            Err(error) => return diagnostics.push(super::invalid_constraint(&error, expr.range())),
        },
    };
    call.address = match literal_text(source) {
        None => LiteralAddress::Evaluated,
        Some(text) => match call_address(&text, version, source, diagnostics) {
            Some(address) => LiteralAddress::Known(Arc::new(address)),
            None => LiteralAddress::Invalid,
        },
    };
}

/// Returns the text of a string without templates.
fn literal_text(expr: &Expr) -> Option<Arc<str>> {
    // In the JSON syntax, any string may be a template, so its text is searched for template sequences.
    let in_json = matches!(expr, Expr::Json(_));
    expr.as_literal_text()
        .filter(|text| !in_json || !(text.contains("${") || text.contains("%{")))
}

/// Reads the source address of a module call from the texts of its arguments, and reports problems.
pub(crate) fn call_address(
    text: &str,
    version: Option<Constraint>,
    source: &Expr,
    diagnostics: &mut Diagnostics,
) -> Option<CallAddress> {
    let (summary, detail) = match ModuleSource::parse(text, version.is_some()) {
        Ok(ModuleSource::Local(_)) if version.is_some() => (
            "Invalid registry module source address",
            "A version can be chosen of modules in a registry only; this module is a local directory. Remove the \"version\" \
             argument, or give the address of a registry module."
                .to_owned(),
        ),
        Ok(source) => return Some(CallAddress { source, version }),
        Err(error) if version.is_some() => ("Invalid registry module source address", error.to_string()),
        Err(error) => ("Invalid module source address", error.to_string()),
    };
    diagnostics.push(Diagnostic::error(summary, detail).at(source.range()));
    None
}
