//! The `encryption` block, and the environment variable `TF_ENCRYPTION`, which overrides parts of it.

use std::sync::Arc;

use cty::Type;
use lang::eval::{Context, evaluate_as};
use lang::scope::Constant;
use syntax::ast::{Attribute, Block, Body, Expr, Traversal, TraversalStep};
use syntax::content::{self, BodySpec};
use syntax::{Diagnostic, Diagnostics, Range};

use crate::method;

const TOP: BodySpec<'static> = BodySpec {
    attributes: &[],
    blocks: &[
        ("key_provider", &["type", "name"]),
        ("method", &["type", "name"]),
        ("state", &[]),
        ("plan", &[]),
        ("remote_state_data_sources", &[]),
    ],
};
const TARGET: BodySpec<'static> = BodySpec {
    attributes: &[("method", false)],
    blocks: &[("fallback", &[])],
};
const ENFORCEABLE: BodySpec<'static> = BodySpec {
    attributes: &[("method", false), ("enforced", false)],
    blocks: &[("fallback", &[])],
};
const REMOTE: BodySpec<'static> = BodySpec {
    attributes: &[],
    blocks: &[("default", &[]), ("remote_state_data_source", &["name"])],
};
const KEY_PROVIDER: BodySpec<'static> = BodySpec {
    attributes: &[("encrypted_metadata_alias", false)],
    blocks: &[],
};

/// A `key_provider` or `method` block.
#[derive(Clone, Debug)]
pub struct Component {
    pub ty: Arc<str>,
    pub name: Arc<str>,
    pub body: Body,
    pub range: Range,
    /// Name under which a key provider stores its metadata, if it is not the address.
    pub alias: Option<Arc<str>>,
}

/// A `state`, `plan`, `default` or `remote_state_data_source` block, or a `fallback` in it.
#[derive(Clone, Debug)]
pub struct TargetSettings {
    method: Option<Expr>,
    enforced: bool,
    fallback: Option<Box<TargetSettings>>,
    range: Range,
}

/// Contents of the `encryption` block.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    pub key_providers: Vec<Component>,
    pub methods: Vec<Component>,
    pub state: Option<TargetSettings>,
    pub plan: Option<TargetSettings>,
    pub remote_default: Option<TargetSettings>,
    pub remote: Vec<(Arc<str>, TargetSettings)>,
}

impl Settings {
    /// Reads the body of a block.
    ///
    /// # Errors
    /// An argument or block is unknown or duplicate.
    pub fn decode(body: &Body) -> Result<Settings, Diagnostics> {
        let mut decoder = Decoder(Diagnostics::new());
        let settings = decoder.settings(body);
        decoder.0.into_result(settings)
    }

    /// Reads the text of `TF_ENCRYPTION`, in the native syntax or as JSON; `None` if it is blank.
    ///
    /// # Errors
    /// The text has errors.
    pub fn of_environment(text: &str) -> Result<Option<Settings>, Diagnostics> {
        const PLACE: &str = "TF_ENCRYPTION";
        let (body, problems) = match text.trim_start().chars().next() {
            None => return Ok(None),
            Some('{') => syntax::json::parse_file(PLACE, text.as_bytes()),
            Some(_) => syntax::parse_file(PLACE, text.as_bytes()),
        };
        if problems.has_errors() {
            return Err(problems);
        }
        Settings::decode(&body).map(Some)
    }

    /// Adds other settings, which take precedence. Arguments of a key provider or method are overridden one by one; the method and the
    /// fallback of a target are each overridden as a whole.
    #[must_use]
    pub fn with(mut self, other: Settings) -> Settings {
        merge_components(&mut self.key_providers, other.key_providers);
        merge_components(&mut self.methods, other.methods);
        for (base, over) in [
            (&mut self.state, other.state),
            (&mut self.plan, other.plan),
            (&mut self.remote_default, other.remote_default),
        ] {
            *base = merged(base.take(), over);
        }
        for (name, over) in other.remote {
            match self.remote.iter_mut().find(|(known, _)| *known == name) {
                Some((_, base)) => {
                    if let Some(both) = merged(Some(base.clone()), Some(over)) {
                        *base = both;
                    }
                }
                None => self.remote.push((name, over)),
            }
        }
        self
    }

    /// Resolves the methods of a target and its fallbacks to indexes, in order of precedence.
    pub(crate) fn chain(&self, target: &TargetSettings, problems: &mut Diagnostics) -> Vec<usize> {
        let mut methods = Vec::new();
        let mut at = Some(target);
        while let Some(target) = at {
            at = target.fallback.as_deref();
            let Some(expr) = &target.method else {
                let problem = Diagnostic::error(
                    "Missing required argument",
                    "The argument \"method\" is required, but no definition was found.",
                );
                problems.push(problem.at(&target.range));
                continue;
            };
            let Some((ty, name)) = address(expr, "method") else {
                let problem = Diagnostic::error(
                    "Invalid encryption method identifier",
                    "The argument names a method block: method.TYPE.NAME.",
                );
                problems.push(problem.at(expr.range()));
                continue;
            };
            match self.methods.iter().position(|m| m.ty == ty && m.name == name) {
                Some(index) => methods.push(index),
                None => {
                    let problem = Diagnostic::error(
                        "Reference to undeclared encryption method",
                        format!("There is no method \"{ty}\" \"{name}\" block declared in the encryption block."),
                    );
                    problems.push(problem.at(expr.range()));
                }
            }
        }
        let plain = methods.iter().any(|m| &*self.methods[*m].ty == method::UNENCRYPTED);
        if target.enforced && plain {
            let problem = Diagnostic::error(
                "Unencrypted method is forbidden",
                "The method \"unencrypted\" cannot be used here, because of \"enforced\".",
            );
            problems.push(problem.at(&target.range));
        }
        methods
    }
}

/// Returns the type and the name in a reference `ROOT.TYPE.NAME`; `None` for any other expression. In JSON, a reference may be a string.
pub(crate) fn address(expr: &Expr, root: &str) -> Option<(Arc<str>, Arc<str>)> {
    match expr {
        Expr::Json(json) => address(&syntax::json::unquoted(json.node())?.0, root),
        Expr::Traversal(traversal) if &*traversal.root == root => match traversal.steps.as_slice() {
            [
                TraversalStep::Attribute { name: ty, .. },
                TraversalStep::Attribute { name, .. },
            ] => Some((ty.clone(), name.clone())),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the references to key providers in a body.
pub(crate) fn key_provider_references(body: &Body) -> Vec<Traversal> {
    let mut found = Vec::new();
    for attribute in &body.attributes {
        let used = lang::refs::traversals(&attribute.expr).into_iter();
        found.extend(used.filter(|t| &*t.root == "key_provider").cloned());
    }
    for block in &body.blocks {
        found.extend(key_provider_references(&block.body));
    }
    found
}

fn merge_components(base: &mut Vec<Component>, over: Vec<Component>) {
    for over in over {
        match base.iter_mut().find(|b| b.ty == over.ty && b.name == over.name) {
            Some(base) => {
                let body = &mut base.body;
                body.attributes
                    .retain(|a| over.body.attributes.iter().all(|o| o.name != a.name));
                body.attributes.extend(over.body.attributes);
                body.blocks.retain(|b| over.body.blocks.iter().all(|o| o.ty != b.ty));
                body.blocks.extend(over.body.blocks);
                base.alias = over.alias.or(base.alias.take());
            }
            None => base.push(over),
        }
    }
}

fn merged(base: Option<TargetSettings>, over: Option<TargetSettings>) -> Option<TargetSettings> {
    let (Some(base), Some(over)) = (&base, &over) else {
        return over.or(base);
    };
    Some(TargetSettings {
        method: over.method.clone().or(base.method.clone()),
        enforced: base.enforced || over.enforced,
        fallback: over.fallback.clone().or(base.fallback.clone()),
        range: over.range.clone(),
    })
}

struct Decoder(Diagnostics);

impl Decoder {
    fn settings(&mut self, body: &Body) -> Settings {
        let body = content::resolve(body.clone(), TOP, &mut self.0);
        let found = content::exact(&body, TOP, &mut self.0);
        let mut settings = Settings::default();
        for block in found.blocks {
            match &*block.ty {
                "key_provider" => self.component(block, &mut settings.key_providers),
                "method" => self.component(block, &mut settings.methods),
                "state" => self.only(&mut settings.state, block, ENFORCEABLE),
                "plan" => self.only(&mut settings.plan, block, ENFORCEABLE),
                _ => self.remote(block, &mut settings),
            }
        }
        settings
    }

    fn component(&mut self, block: &Block, among: &mut Vec<Component>) {
        let [ty, name] = block.labels.as_slice() else {
            // A wrong number of labels has been reported.
            return;
        };
        if let Some(first) = among.iter().find(|c| c.ty == ty.text && c.name == name.text) {
            let problem = Diagnostic::error(
                format!("Duplicate {}", block.ty),
                format!(
                    "{}.{}.{} is declared at {} already.",
                    block.ty, ty.text, name.text, first.range
                ),
            );
            return self.0.push(problem.at(&block.header));
        }
        let mut body = block.body.clone();
        // In JSON, a reference may be written as a plain string.
        for attribute in &mut body.attributes {
            if let Expr::Json(json) = &attribute.expr
                && json.text().is_some_and(|text| text.starts_with("key_provider."))
                && let Some((reference, problems)) = syntax::json::unquoted(json.node())
                && !problems.has_errors()
            {
                attribute.expr = reference;
            }
        }
        let mut alias = None;
        if &*block.ty == "key_provider" {
            body = content::resolve(body, KEY_PROVIDER, &mut self.0);
            let at = body
                .attributes
                .iter()
                .position(|a| &*a.name == "encrypted_metadata_alias");
            alias = at.and_then(|at| self.text(&body.attributes.remove(at)));
        }
        among.push(Component {
            ty: ty.text.clone(),
            name: name.text.clone(),
            body,
            range: block.header.clone(),
            alias,
        });
    }

    fn text(&mut self, attribute: &Attribute) -> Option<Arc<str>> {
        let (value, problems) = evaluate_as(&attribute.expr, &Type::String, Context::new(&Constant));
        self.0.extend(problems);
        value.as_arc_str().filter(|text| !text.is_empty()).cloned()
    }

    fn only(&mut self, target: &mut Option<TargetSettings>, block: &Block, spec: BodySpec<'static>) {
        if let Some(first) = target {
            let problem = Diagnostic::error(
                format!("Duplicate {} block", block.ty),
                format!("There is one \"{}\" block; the first is at {}.", block.ty, first.range),
            );
            return self.0.push(problem.at(&block.header));
        }
        *target = Some(self.target(block, spec));
    }

    fn target(&mut self, block: &Block, spec: BodySpec<'static>) -> TargetSettings {
        let body = content::resolve(block.body.clone(), spec, &mut self.0);
        let found = content::exact(&body, spec, &mut self.0);
        let enforced = found.attribute("enforced").is_some_and(|attribute| {
            let (value, problems) = evaluate_as(&attribute.expr, &Type::Bool, Context::new(&Constant));
            self.0.extend(problems);
            value.as_bool() == Some(true)
        });
        let mut target = TargetSettings {
            method: found.attribute("method").map(|attribute| attribute.expr.clone()),
            enforced,
            fallback: None,
            range: block.header.clone(),
        };
        let mut fallback = None;
        for block in found.blocks {
            self.only(&mut fallback, block, TARGET);
        }
        target.fallback = fallback.map(Box::new);
        target
    }

    fn remote(&mut self, block: &Block, settings: &mut Settings) {
        let body = content::resolve(block.body.clone(), REMOTE, &mut self.0);
        let found = content::exact(&body, REMOTE, &mut self.0);
        for block in found.blocks {
            let Some(label) = block.labels.first() else {
                self.only(&mut settings.remote_default, block, TARGET);
                continue;
            };
            if let Some((_, first)) = settings.remote.iter().find(|(name, _)| *name == label.text) {
                let problem = Diagnostic::error(
                    "Duplicate remote_data_source",
                    format!(
                        "The data source \"{}\" has a block at {} already.",
                        label.text, first.range
                    ),
                );
                self.0.push(problem.at(&block.header));
                continue;
            }
            let target = self.target(block, TARGET);
            settings.remote.push((label.text.clone(), target));
        }
    }
}
