//! The blocks of query files (`*.tfquery.hcl`, `*.tfquery.json`): `list` blocks, and the variables, local values and provider
//! configurations that come with them.

use std::collections::BTreeMap;
use std::sync::Arc;

use addrs::{Mode, Provider};
use syntax::ast::{Block, Body};
use syntax::content::{self, BodySpec};
use syntax::{Diagnostic, Diagnostics, Range};

use super::{Decoder, FileBlocks, parts};
use crate::model::{Lifecycle, ListArguments, Resource};

const TOP: BodySpec<'static> = BodySpec {
    attributes: &[],
    blocks: &[
        ("list", &["type", "name"]),
        ("provider", &["name"]),
        ("variable", &["name"]),
        ("locals", &[]),
    ],
};

const LIST: BodySpec<'static> = BodySpec {
    attributes: &[
        ("count", false),
        ("for_each", false),
        ("provider", false),
        ("include_resource", false),
        ("limit", false),
    ],
    blocks: &[("config", &[])],
};

/// Separates blocks from arguments in the body of a JSON query file, whose syntax does not distinguish them.
pub(crate) fn resolve_query(body: Arc<Body>, diagnostics: &mut Diagnostics) -> Arc<Body> {
    Arc::new(content::resolve(Arc::unwrap_or_clone(body), TOP, diagnostics))
}

/// Decodes the body of a query file.
pub(crate) fn query_file(body: Arc<Body>, diagnostics: &mut Diagnostics) -> FileBlocks {
    let mut out = FileBlocks::default();
    let taken = parts::exact(Arc::unwrap_or_clone(body), TOP, diagnostics);
    let mut decoder = Decoder {
        overriding: false,
        diagnostics,
    };
    let mut names: BTreeMap<addrs::Resource, Range> = BTreeMap::new();
    for block in taken.blocks {
        match &*block.ty {
            "list" => {
                let Some(list) = decoder.list(block) else { continue };
                match names.get(&list.address) {
                    Some(first) => decoder.diagnostics.push(
                        Diagnostic::error(
                            "Duplicate \"list\" block names",
                            format!("This file has the block {} at {first} already.", list.address),
                        )
                        .at(&list.range),
                    ),
                    None => {
                        names.insert(list.address.clone(), list.range.clone());
                        out.resources.push(list);
                    }
                }
            }
            "provider" => out.provider_configs.extend(decoder.provider(block)),
            "variable" => out.variables.extend(decoder.variable(block)),
            "locals" => decoder.locals(block, &mut out.locals),
            // `exact` has reported all other blocks.
            _ => {}
        }
    }
    out
}

impl Decoder<'_> {
    fn list(&mut self, block: Block) -> Option<Resource> {
        let range = parts::header(&block);
        let mut labels = block.labels.into_iter();
        let (ty, name) = (labels.next()?, labels.next()?);
        parts::check_name(&ty, "Invalid list resource type", self.diagnostics);
        parts::check_name(&name, "Invalid list block name", self.diagnostics);
        let whole = block.body.range.clone();
        let mut taken = parts::exact(block.body, LIST, self.diagnostics);
        let provider_ref = match taken.attribute("provider") {
            Some(provider) => parts::provider_ref(&provider.expr, "provider", self.diagnostics),
            None => {
                let detail = "A list block has to say which provider configuration lists the objects: give it the argument \
                              \"provider\".";
                self.diagnostics
                    .push(Diagnostic::error("Missing \"provider\" attribute", detail).at(&range));
                None
            }
        };
        let (count, for_each) = (taken.attribute("count"), taken.attribute("for_each"));
        self.count_and_for_each(count.as_ref(), for_each.as_ref());
        let list = ListArguments {
            include_resource: taken.expr("include_resource"),
            limit: taken.expr("limit"),
        };
        let mut body = Body::empty(&whole);
        for block in taken.blocks {
            if body.blocks.is_empty() {
                body.blocks.push(block);
            } else {
                let detail = "A list block has one \"config\" block at most.";
                self.diagnostics
                    .push(Diagnostic::error("Duplicate config block", detail).at(&block.header));
            }
        }
        Some(Resource {
            address: addrs::Resource {
                mode: Mode::List,
                ty: ty.text,
                name: name.text,
            },
            body: Arc::new(body),
            count: count.map(|a| a.expr),
            for_each: for_each.map(|a| a.expr),
            provider_ref,
            provider: Provider::default_for(""),
            depends_on: Vec::new(),
            lifecycle: Lifecycle::default(),
            provisioners: Vec::new(),
            connection: None,
            check: None,
            list: Some(Box::new(list)),
            range,
            type_range: ty.range,
        })
    }
}
