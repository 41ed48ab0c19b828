//! The `language` block of OpenTofu: the versions of OpenTofu that a module is for, and the edition of OpenTofu's
//! language.

use syntax::ast::{Attribute, Block, Body, Expr};
use syntax::content::{self, BodySpec};
use syntax::{Diagnostic, Diagnostics, Range};

use super::{Decoder, constraint, parts};
use crate::version::{Constraint, Dialect, Version};

const LANGUAGE: BodySpec<'static> = BodySpec {
    attributes: &[("edition", false), ("experiments", false)],
    blocks: &[COMPATIBLE],
};

const COMPATIBLE: (&str, &[&str]) = ("compatible_with", &[]);

/// The only edition of OpenTofu's language.
const EDITION: &str = "tofu2024";

/// Finds the constraints of `language` blocks before anything else is decoded. Problems are reported later.
pub(crate) fn compatible_versions(body: &Body) -> Vec<Constraint> {
    let mut ignored = Diagnostics::new();
    let blocks = body.blocks.iter().filter(|block| &*block.ty == "language");
    let bodies: Vec<Body> = blocks
        .map(|block| content::resolve(block.body.clone(), LANGUAGE, &mut ignored))
        .collect();
    let inner = bodies.iter().flat_map(|body| &body.blocks);
    let attributes = inner
        .filter(|block| &*block.ty == COMPATIBLE.0)
        .filter_map(|block| block.body.attribute("opentofu"));
    attributes
        .filter_map(|a| {
            let text = parts::constant_string(&a.expr, &mut Diagnostics::new())?;
            Constraint::parse(&text, Dialect::Module, &a.range).ok()
        })
        .collect()
}

impl Decoder<'_> {
    /// Checks a `language` block. Its version constraints have been compared with OpenTofu's version already: see
    /// [`compatible_versions`].
    pub(super) fn language_block(&mut self, block: Block) {
        if self.overriding {
            self.diagnostics.push(
                Diagnostic::error(
                    "Language selections in override file",
                    "Override files cannot have \"language\" blocks. Move the block to another file.",
                )
                .at(&block.header),
            );
            return;
        }
        let mut taken = parts::exact(block.body, LANGUAGE, self.diagnostics);
        if let Some(edition) = taken.attribute("edition") {
            self.edition_of_opentofu(&edition.expr);
        }
        if let Some(experiments) = taken.attribute("experiments") {
            self.experiments_of_opentofu(&experiments.expr);
        }
        let mut first: Option<Range> = None;
        for inner in &taken.blocks {
            // Arguments of other names are for other programs.
            let Some(attribute) = inner.body.attribute("opentofu") else {
                continue;
            };
            match &first {
                Some(first) => self.diagnostics.push(
                    Diagnostic::error(
                        "Duplicate compatible_with block",
                        format!(
                            "Only one \"compatible_with\" block can have the argument \"opentofu\". The first one is at {first}."
                        ),
                    )
                    .at(&inner.header),
                ),
                None => {
                    first = Some(inner.header.clone());
                    self.compatible_with(attribute);
                }
            }
        }
    }

    fn compatible_with(&mut self, attribute: &Attribute) {
        let Some(constraint) = constraint(&attribute.expr, Dialect::Module, self.diagnostics) else {
            return;
        };
        if constraint.allows(&Version::new(1, 11, 0)) {
            self.diagnostics.push(
                Diagnostic::warning(
                    "Ineffective version constraint",
                    "Versions of OpenTofu before 1.12.0 do not know this block, so it cannot allow them: begin the \
                     constraint with \">= 1.12.0\". For earlier versions, write \"required_version\" into the \"terraform\" \
                     block of a file whose name ends in .tofu.",
                )
                .at(attribute.expr.range()),
            );
        }
    }

    fn edition_of_opentofu(&mut self, expr: &Expr) {
        if matches!(expr, Expr::Invalid { .. }) {
            return;
        }
        let summary = match expr.as_keyword() {
            Some(EDITION) => return,
            Some(_) => "Unsupported language edition",
            None => "Invalid language edition",
        };
        self.diagnostics.push(
            Diagnostic::error(
                summary,
                format!(
                    "The only edition is {EDITION}, written without quotes. It is also meant without this argument."
                ),
            )
            .at(expr.range()),
        );
    }

    fn experiments_of_opentofu(&mut self, expr: &Expr) {
        for item in parts::static_list(expr, self.diagnostics) {
            let (summary, detail) = match item.as_keyword() {
                Some(name) => (
                    "Unknown experiment keyword",
                    format!("There is no experiment \"{name}\"."),
                ),
                None => (
                    "Invalid experiment keyword",
                    "Experiments are written as keywords, without quotes.".to_owned(),
                ),
            };
            self.diagnostics
                .push(Diagnostic::error(summary, detail).at(item.range()));
        }
    }
}
