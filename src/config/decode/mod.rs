//! Decodes the syntax tree of a file to typed blocks.
//!
//! Functions here take a block by value and move its parts. They take out the arguments that the language defines; the
//! provider's schema describes the rest of the body. Problems are reported, and valid parts are returned nevertheless.

mod action;
pub(crate) mod address;
mod check;
mod language;
mod module_call;
mod moved;
pub(crate) mod parts;
mod provider;
mod provisioner;
mod query;
mod resource;
mod state_store;
mod terraform;
pub(crate) mod variable;

pub(crate) use language::compatible_versions;
pub(crate) use module_call::{call_address, literal_address};
pub(crate) use query::{query_file, resolve_query};
pub(crate) use variable::convert_default;

use std::sync::Arc;

use addrs::Mode;
use addrs::program::Mode as Tool;
use syntax::ast::Body;
use syntax::content::{self, BodySpec};
use syntax::{Diagnostic, Diagnostics, Range};
use versions::VersionError;

use crate::model::{
    Action, Backend, Check, Cloud, Encryption, Import, Local, ModuleCall, Moved, Output, ProviderConfig, ProviderMeta,
    Removed, RequiredProvider, Resource, Variable,
};
use crate::version::Constraint;

/// Arguments of a `module` block that are not variables of the called module.
pub(crate) const MODULE_ARGUMENTS: &[&str] = &[
    "source",
    "version",
    "count",
    "for_each",
    "depends_on",
    "providers",
    "ignore_nested_deprecations",
];

/// Typed blocks of one file.
#[derive(Default)]
pub(crate) struct FileBlocks {
    pub required_versions: Vec<Constraint>,
    pub backends: Vec<Backend>,
    pub clouds: Vec<Cloud>,
    pub encryptions: Vec<Encryption>,
    pub required_providers: Vec<(Range, Vec<RequiredProvider>)>,
    pub provider_metas: Vec<ProviderMeta>,
    pub provider_configs: Vec<ProviderConfig>,
    pub variables: Vec<Variable>,
    pub locals: Vec<Local>,
    pub outputs: Vec<Output>,
    pub module_calls: Vec<ModuleCall>,
    pub resources: Vec<Resource>,
    pub checks: Vec<Check>,
    pub moved: Vec<Moved>,
    pub removed: Vec<Removed>,
    pub imports: Vec<Import>,
    pub actions: Vec<Action>,
}

pub(crate) struct Decoder<'d> {
    /// True in override files, where arguments that are required elsewhere may be missing.
    pub overriding: bool,
    pub diagnostics: &'d mut Diagnostics,
}

const TOP: BodySpec<'static> = BodySpec {
    attributes: &[],
    blocks: &[
        // Only OpenTofu has `language` blocks; see `top`.
        ("language", &[]),
        ("terraform", &[]),
        ("required_providers", &[]),
        ("provider", &["name"]),
        ("variable", &["name"]),
        ("locals", &[]),
        ("output", &["name"]),
        ("module", &["name"]),
        ("resource", &["type", "name"]),
        ("data", &["type", "name"]),
        ("ephemeral", &["type", "name"]),
        ("moved", &[]),
        ("import", &[]),
        ("check", &["name"]),
        ("removed", &[]),
        ("action", &["type", "name"]),
    ],
};

/// Returns the spec of the top-level blocks. It has no `language` blocks in the mode of Terraform.
fn top() -> BodySpec<'static> {
    match Tool::current().has_opentofu() {
        true => TOP,
        false => BodySpec {
            blocks: &TOP.blocks[1..],
            ..TOP
        },
    }
}

/// Separates blocks from arguments in the body of a JSON file, whose syntax does not distinguish them.
pub(crate) fn resolve(body: Arc<Body>, diagnostics: &mut Diagnostics) -> Arc<Body> {
    Arc::new(content::resolve(Arc::unwrap_or_clone(body), top(), diagnostics))
}

/// Decodes the body of a file.
pub(crate) fn file(body: Arc<Body>, overriding: bool, diagnostics: &mut Diagnostics) -> FileBlocks {
    let mut out = FileBlocks::default();
    let body = Arc::unwrap_or_clone(body);
    let taken = parts::exact(body, top(), diagnostics);
    let mut decoder = Decoder {
        overriding,
        diagnostics,
    };
    for block in taken.blocks {
        match &*block.ty {
            "terraform" => decoder.terraform(block, &mut out),
            "language" => decoder.language_block(block),
            "required_providers" => decoder.diagnostics.push(
                Diagnostic::error(
                    "Invalid required_providers block",
                    "A \"required_providers\" block belongs inside a \"terraform\" block.",
                )
                .at(&block.header),
            ),
            "provider" => out.provider_configs.extend(decoder.provider(block)),
            "variable" => out.variables.extend(decoder.variable(block)),
            "locals" => decoder.locals(block, &mut out.locals),
            "output" => out.outputs.extend(decoder.output(block)),
            "module" => out.module_calls.extend(decoder.module_call(block)),
            "resource" => out.resources.extend(decoder.resource(block, Mode::Managed)),
            "data" => out.resources.extend(decoder.resource(block, Mode::Data)),
            "ephemeral" => out.resources.extend(decoder.resource(block, Mode::Ephemeral)),
            "moved" => out.moved.extend(decoder.moved(block)),
            "import" => out.imports.extend(decoder.import(block)),
            "check" => {
                // The nested data source is planned like any other, so it is added to the resources.
                let (check, data) = decoder.check(block);
                out.checks.extend(check);
                out.resources.extend(data);
            }
            "removed" => out.removed.extend(decoder.removed(block)),
            "action" => out.actions.extend(decoder.action(block)),
            _ => {}
        }
    }
    out
}

/// Finds the `required_version` constraints of a file before anything else is decoded. Their ranges are those of the
/// whole arguments. Problems are reported later, when the file is decoded.
pub(crate) fn required_versions(body: &Body) -> Vec<Constraint> {
    let blocks = body.blocks.iter().filter(|b| &*b.ty == "terraform");
    let attributes = blocks.filter_map(|b| b.body.attribute("required_version"));
    attributes
        .filter_map(|a| {
            let text = parts::constant_string(&a.expr, &mut Diagnostics::new())?;
            Constraint::parse(&text, crate::version::Dialect::Module, &a.range).ok()
        })
        .collect()
}

/// Reads a version constraint from an argument. Problems are reported.
pub(crate) fn constraint(
    expr: &syntax::ast::Expr,
    dialect: crate::version::Dialect,
    diagnostics: &mut Diagnostics,
) -> Option<Constraint> {
    let text = parts::constant_string(expr, diagnostics)?;
    let range = expr.range();
    match Constraint::parse(&text, dialect, range) {
        Ok(constraint) => Some(constraint),
        Err(error) => {
            diagnostics.push(invalid_constraint(&error, range));
            None
        }
    }
}

pub(crate) fn invalid_constraint(error: &VersionError, range: &Range) -> Diagnostic {
    Diagnostic::error(
        "Invalid version constraint",
        format!("A version constraint looks like \"1.2.3\", \"~> 1.2\" or \">= 1.0, < 3.0\"; here, {error}."),
    )
    .at(range)
}
