//! Conditions and `check` blocks.

use addrs::Mode;
use lang::refs;
use syntax::ast::{Attribute, Block, Body, Expr};
use syntax::content::{self, BodySpec};
use syntax::{Diagnostic, Range};

use super::{Decoder, parts};
use crate::model::{Check, CheckRule, Resource};

const RULE: BodySpec<'static> = BodySpec {
    attributes: &[("condition", true), ("error_message", true)],
    blocks: &[],
};

const CHECK: BodySpec<'static> = BodySpec {
    attributes: &[],
    blocks: &[("data", &["type", "name"]), ("assert", &[])],
};

/// Blocks that a check's data source cannot have. Listed so that they are recognized as blocks in the JSON syntax, too.
const CHECK_DATA: BodySpec<'static> = BodySpec {
    attributes: &[],
    blocks: &[("lifecycle", &[])],
};

impl Decoder<'_> {
    /// Decodes a block with a condition and an error message. `kind` is the type of the block.
    pub(super) fn check_rule(&mut self, block: Block, kind: &str) -> CheckRule {
        let range = parts::header(&block);
        let mut taken = parts::exact(block.body, RULE, self.diagnostics);
        let condition = taken.expr("condition");
        let error_message = taken.expr("error_message");
        if let Some(condition) = &condition
            && !matches!(condition, Expr::Invalid { .. })
            && refs::traversals(condition).is_empty()
        {
            self.diagnostics.push(
                Diagnostic::error(
                    format!("Invalid {kind} expression"),
                    "The condition refers to nothing, so its result would always be the same. It must refer to at least one \
                     object of the configuration.",
                )
                .at(condition.range()),
            );
        }
        // A missing argument has been reported; the invalid expression replaces it, so that the block is kept.
        let invalid = || Expr::Invalid { range: range.clone() };
        CheckRule {
            condition: condition.unwrap_or_else(invalid),
            error_message: error_message.unwrap_or_else(invalid),
            range: range.clone(),
        }
    }

    /// Reports a block that override files cannot have.
    pub(super) fn cannot_override(&mut self, block: &Block) {
        self.diagnostics.push(
            Diagnostic::error(
                format!("Can't override {} blocks", block.ty),
                format!("Override files cannot have \"{}\" blocks.", block.ty),
            )
            .at(&block.header),
        );
    }

    /// Reports `depends_on` in an override file.
    pub(super) fn no_depends_on_override(&mut self, attribute: Option<&Attribute>) {
        if let Some(attribute) = attribute {
            // Terraform points at the first element of the list.
            let first = match &attribute.expr {
                Expr::Tuple { items, .. } => items.first(),
                _ => None,
            };
            self.diagnostics.push(
                Diagnostic::error("Unsupported override", "The depends_on argument cannot be overridden.")
                    .at(first.unwrap_or(&attribute.expr).range()),
            );
        }
    }

    /// Decodes a `check` block and its nested data source, which becomes a resource of the module.
    pub(super) fn check(&mut self, block: Block) -> (Option<Check>, Option<Resource>) {
        let range = parts::header(&block);
        let Some(label) = block.labels.into_iter().next() else {
            return (None, None);
        };
        parts::check_name(&label, "Invalid check block name", self.diagnostics);
        if self.overriding {
            self.diagnostics.push(
                Diagnostic::error(
                    "Can't override check blocks",
                    "Override files cannot have check blocks.",
                )
                .at(&range),
            );
            return (None, None);
        }
        let mut taken = parts::exact(block.body, CHECK, self.diagnostics);
        // The JSON syntax does not distinguish the data source's blocks from its arguments.
        for inner in &mut taken.blocks {
            let body = std::mem::replace(&mut inner.body, Body::empty(&range));
            inner.body = content::resolve(body, CHECK_DATA, self.diagnostics);
        }
        let mut check = Check {
            name: label.text,
            data: None,
            asserts: Vec::new(),
            range: range.clone(),
        };
        let mut data: Option<Resource> = None;
        let mut asserts = 0;
        for block in taken.blocks {
            if &*block.ty == "assert" {
                // An invalid assert block counts, too: its error is reported, so the check block must not be reported
                // as empty.
                asserts += 1;
                check.asserts.push(self.check_rule(block, "assert"));
            } else if let Some(first) = &data {
                self.diagnostics.push(
                    Diagnostic::error(
                        "Multiple data resource blocks",
                        format!(
                            "A check block can have one data source; the first is at {}.",
                            first.range
                        ),
                    )
                    .at(&block.header),
                );
            } else {
                self.refuse_in_check(&block);
                data = self.resource(block, Mode::Data).map(|mut data| {
                    data.check = Some(check.name.clone());
                    data
                });
                check.data = data.as_ref().map(|d| d.address.clone());
            }
        }
        if asserts == 0 {
            self.diagnostics.push(
                Diagnostic::error(
                    "Zero assert blocks",
                    "A check block must have at least one assert block.",
                )
                .at(&range),
            );
        }
        (Some(check), data)
    }

    /// Reports meta-arguments and blocks that a check's data source cannot have.
    fn refuse_in_check(&mut self, block: &Block) {
        let refuse = |summary: String, detail: &str, range: &Range| Diagnostic::error(summary, detail).at(range);
        for name in ["count", "for_each"] {
            if let Some(attribute) = block.body.attribute(name) {
                self.diagnostics.push(refuse(
                    format!("Invalid \"{name}\" attribute"),
                    "The data source of a check has one instance: \"count\" and \"for_each\" cannot be used in it.",
                    &attribute.name_range,
                ));
            }
        }
        for inner in block.body.blocks.iter().filter(|b| &*b.ty == "lifecycle") {
            self.diagnostics.push(refuse(
                "Invalid lifecycle block".into(),
                "The data source of a check cannot have a lifecycle block: the check's assertions are its conditions.",
                &inner.header,
            ));
        }
    }
}
