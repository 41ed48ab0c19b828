//! `provisioner` and `connection` blocks.

use std::sync::Arc;

use syntax::ast::{Block, Body, Expr};
use syntax::content::{BodySpec, hint, near};
use syntax::{Diagnostic, Range};

use super::{Decoder, parts};
use crate::model::{Connection, OnFailure, Provisioner, ProvisionerWhen, Resource};

const PROVISIONER: BodySpec<'static> = BodySpec {
    attributes: &[("when", false), ("on_failure", false)],
    blocks: &[("connection", &[]), ("lifecycle", &[]), ("_", &[])],
};

/// Vendor provisioners that Terraform has removed. A block that names one is reported with an explanation, and not as a
/// missing plugin.
const REMOVED: &[&str] = &["chef", "habitat", "puppet", "salt-masterless"];

impl Decoder<'_> {
    pub(super) fn provisioner(&mut self, block: Block) -> Option<Provisioner> {
        let range = parts::header(&block);
        let label = block.labels.into_iter().next()?;
        if REMOVED.contains(&&*label.text) {
            self.diagnostics.push(
                Diagnostic::error(
                    format!("The \"{}\" provisioner has been removed", label.text),
                    "This provisioner is no longer part of Terraform. What it did is done by machine images, by cloud-init, \
                     or by running its tool with the \"local-exec\" or \"remote-exec\" provisioner.",
                )
                .at(&label.range),
            );
            return None;
        }
        let mut taken = parts::partial(block.body, PROVISIONER, self.diagnostics);
        parts::unescape(&mut taken.blocks, &mut taken.rest, "provisioner", self.diagnostics);
        let when = match taken.expr("when") {
            None => ProvisionerWhen::Create,
            Some(expr) => match parts::keyword(&expr, self.diagnostics).as_deref() {
                Some("create") => ProvisionerWhen::Create,
                Some("destroy") => ProvisionerWhen::Destroy,
                _ => {
                    self.invalid_keyword("when", ["create", "destroy"], &expr);
                    ProvisionerWhen::Create
                }
            },
        };
        let on_failure = match taken.expr("on_failure") {
            None => OnFailure::Fail,
            Some(expr) => match parts::keyword(&expr, self.diagnostics).as_deref() {
                Some("fail") => OnFailure::Fail,
                Some("continue") => OnFailure::Continue,
                _ => {
                    self.invalid_keyword("on_failure", ["continue", "fail"], &expr);
                    OnFailure::Fail
                }
            },
        };
        let mut connection: Option<Connection> = None;
        for block in taken.blocks {
            if &*block.ty == "connection" {
                match &connection {
                    Some(first) => {
                        self.diagnostics.push(parts::duplicate_block(
                            "connection",
                            "provisioner",
                            &first.range,
                            &block,
                        ));
                    }
                    None => connection = Some(self.connection(block)),
                }
            } else {
                self.diagnostics.push(parts::reserved_block(&block, "provisioner"));
            }
        }
        Some(Provisioner {
            ty: label.text,
            when,
            on_failure,
            body: Arc::new(taken.rest),
            connection,
            range,
            type_range: label.range,
        })
    }

    fn invalid_keyword(&mut self, argument: &str, words: [&str; 2], expr: &Expr) {
        // The parser has reported this expression already.
        if matches!(expr, Expr::Invalid { .. }) {
            return;
        }
        let written = expr.as_keyword().unwrap_or_default();
        let near = near(written, words);
        self.diagnostics.push(
            Diagnostic::error(
                format!("Invalid \"{argument}\" keyword"),
                format!(
                    "The \"{argument}\" argument takes one of these keywords: {}.{}",
                    words.join(" or "),
                    hint(near.as_ref())
                ),
            )
            .at(expr.range())
            .misspelt(written, expr.range(), near.as_ref()),
        );
    }

    pub(super) fn connection(&mut self, block: Block) -> Connection {
        Connection {
            range: parts::header(&block),
            body: Arc::new(block.body),
        }
    }

    /// Reports references of destroy-time provisioners, except to `self`, `path`, `terraform`, `count.index` and
    /// `each.key`.
    pub(super) fn destroy_provisioners_refer_to_self(&mut self, resource: &Resource) {
        // Other objects may be destroyed before this one, and waiting for them could make a cycle.
        for provisioner in resource
            .provisioners
            .iter()
            .filter(|p| p.when == ProvisionerWhen::Destroy)
        {
            self.only_own_references(&provisioner.body);
            // A provisioner without a connection uses that of its resource, so the same rule holds for it.
            let connection = provisioner.connection.as_ref().or(resource.connection.as_ref());
            if let Some(connection) = connection {
                self.only_own_references(&connection.body);
            }
        }
    }

    pub(super) fn only_own_references(&mut self, body: &Body) {
        for attribute in &body.attributes {
            let foreign = lang::refs::traversals(&attribute.expr).into_iter().any(|t| {
                let word = |name: &str| {
                    matches!(t.steps.first(), Some(syntax::ast::TraversalStep::Attribute { name: n, .. }) if &**n == name)
                };
                match &*t.root {
                    // These objects are known when the object is destroyed, even if everything else was
                    // removed.
                    "self" | "path" | "terraform" => false,
                    "count" => !word("index"),
                    "each" => !word("key"),
                    _ => true,
                }
            });
            if foreign {
                self.diagnostics.push(foreign_reference(attribute.expr.range()));
            }
        }
        for block in &body.blocks {
            self.only_own_references(&block.body);
        }
    }
}

fn foreign_reference(range: &Range) -> Diagnostic {
    Diagnostic::error(
        "Invalid reference from destroy provisioner",
        "A provisioner that runs at destruction, and its connection, can refer to the object it belongs to, with self, \
         count.index and each.key, and to path and terraform. Other objects may be gone by then, and waiting for them could \
         make a cycle.",
    )
    .at(range)
}
