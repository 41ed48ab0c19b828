//! `variable`, `locals` and `output` blocks.

use std::collections::BTreeMap;
use std::sync::Arc;

use cty::{Defaults, Type, Value};
use syntax::ast::{Attribute, Block, Expr};
use syntax::content::BodySpec;
use syntax::{Diagnostic, Range};

use super::{Decoder, parts};
use crate::model::variable::{DeprecationNotice, Written};
use crate::model::{Local, Output, Variable};

/// Names that no variable can have, because they are arguments or nested blocks of `module` blocks.
const RESERVED: &[&str] = &[
    "source",
    "version",
    "providers",
    "count",
    "for_each",
    "lifecycle",
    "depends_on",
    "ignore_nested_deprecations",
    "locals",
];

const VARIABLE: BodySpec<'static> = BodySpec {
    attributes: &[
        ("description", false),
        ("default", false),
        ("type", false),
        ("sensitive", false),
        ("ephemeral", false),
        ("nullable", false),
        ("deprecated", false),
        ("const", false),
    ],
    blocks: &[("validation", &[])],
};

const OUTPUT: BodySpec<'static> = BodySpec {
    attributes: &[
        ("description", false),
        ("value", true),
        ("type", false),
        ("depends_on", false),
        ("sensitive", false),
        ("ephemeral", false),
        ("deprecated", false),
    ],
    blocks: &[("precondition", &[])],
};

const OUTPUT_OVERRIDE: BodySpec<'static> = BodySpec {
    attributes: &[
        ("description", false),
        ("value", false),
        ("type", false),
        ("depends_on", false),
        ("sensitive", false),
        ("ephemeral", false),
        ("deprecated", false),
    ],
    ..OUTPUT
};

impl Decoder<'_> {
    pub(crate) fn variable(&mut self, block: Block) -> Option<Variable> {
        let range = parts::header(&block);
        let label = block.labels.into_iter().next()?;
        let name = label.text.clone();
        parts::check_name(&label, "Invalid variable name", self.diagnostics);
        if RESERVED.contains(&&*name) {
            self.diagnostics.push(
                Diagnostic::error(
                    "Invalid variable name",
                    format!(
                        "The name \"{name}\" has a meaning of its own inside module blocks; no variable can have it."
                    ),
                )
                .at(&label.range),
            );
        }
        let mut taken = parts::exact(block.body, VARIABLE, self.diagnostics);
        let mut variable = Variable {
            name: name.clone(),
            ty: Type::Dynamic,
            typed: false,
            defaults: Arc::default(),
            default: None,
            description: None,
            sensitive: false,
            ephemeral: false,
            nullable: true,
            is_const: false,
            deprecated: None,
            validations: Vec::new(),
            range,
            written: Written::default(),
        };
        if let Some(a) = taken.attribute("description") {
            variable.description = parts::constant_string(&a.expr, self.diagnostics).map(|s| s.to_string());
        }
        if let Some(a) = taken.attribute("type") {
            variable.typed = true;
            // An invalid type counts as `any`, so that the default is not reported as well.
            let (ty, defaults, problems) = lang::typeexpr::variable_type(&a.expr);
            self.diagnostics.extend(problems);
            variable.ty = ty;
            variable.defaults = Arc::new(defaults);
        }
        let mut flag = |this: &mut Self, name: &str, unset: bool| match taken.attribute(name) {
            Some(a) => (parts::constant_bool(&a.expr, this.diagnostics).unwrap_or(unset), true),
            None => (unset, false),
        };
        (variable.sensitive, variable.written.sensitive) = flag(self, "sensitive", false);
        (variable.ephemeral, variable.written.ephemeral) = flag(self, "ephemeral", false);
        (variable.nullable, variable.written.nullable) = flag(self, "nullable", true);
        if let Some(a) = taken.attribute("const") {
            variable.is_const = parts::constant_bool(&a.expr, self.diagnostics).unwrap_or(false);
            variable.written.is_const = true;
            self.const_variable(&variable);
        }
        variable.deprecated = taken.attribute("deprecated").and_then(|a| self.deprecated(&a));
        if let Some(a) = taken.attribute("default") {
            variable.written.default = self.default(a);
            // An override's default is converted to the type of the merged variable, later.
            if !self.overriding {
                variable.default = convert_default(&variable, self.diagnostics);
            }
        }
        for block in taken.blocks {
            if self.overriding {
                self.cannot_override(&block);
            } else {
                let rule = self.check_rule(block, "validation");
                self.refers_to_itself(&name, &rule.condition);
                variable.validations.push(rule);
            }
        }
        Some(variable)
    }

    /// Reports a validation whose condition does not refer to the variable.
    fn refers_to_itself(&mut self, name: &str, condition: &Expr) {
        let own = |t: &&syntax::ast::Traversal| {
            &*t.root == "var"
                && matches!(t.steps.first(), Some(syntax::ast::TraversalStep::Attribute { name: n, .. }) if **n == *name)
        };
        // The parser has reported an invalid expression already.
        if !matches!(condition, Expr::Invalid { .. }) && !lang::refs::traversals(condition).iter().any(own) {
            self.diagnostics.push(
                Diagnostic::error(
                    "Invalid variable validation condition",
                    format!(
                        "The condition for variable \"{name}\" must refer to var.{name}: it is there to test the \
                         values the variable is given."
                    ),
                )
                .at(condition.range()),
            );
        }
    }

    /// Reports const variables that are sensitive or ephemeral.
    fn const_variable(&mut self, variable: &Variable) {
        // Sources of modules can depend on const variables, and sources are shown and stored.
        let others = [(variable.sensitive, "sensitive"), (variable.ephemeral, "ephemeral")];
        for (_, other) in others.into_iter().filter(|(is, _)| variable.is_const && *is) {
            self.diagnostics.push(
                Diagnostic::error(
                    format!("Const variable cannot be {other}"),
                    format!(
                        "The variable \"{}\" has \"const = true\", so sources of modules can depend on it. These are shown and \
                         stored, so it cannot be {other} as well.",
                        variable.name
                    ),
                )
                .at(&variable.range),
            );
        }
    }

    fn deprecated(&mut self, attribute: &Attribute) -> Option<DeprecationNotice> {
        let message = parts::constant_string(&attribute.expr, self.diagnostics)?;
        Some(DeprecationNotice {
            message,
            range: attribute.range.clone(),
        })
    }

    fn default(&mut self, attribute: Attribute) -> Option<(Value, Range)> {
        let value = parts::constant(&attribute.expr, self.diagnostics)?;
        Some((value, attribute.expr.range().clone()))
    }

    pub(super) fn locals(&mut self, block: Block, out: &mut Vec<Local>) {
        for inner in &block.body.blocks {
            self.diagnostics.push(
                Diagnostic::error(
                    format!("Unexpected \"{}\" block", inner.ty),
                    "Blocks are not allowed here: a local value is an argument.",
                )
                .at(&inner.type_range),
            );
        }
        let mut seen: BTreeMap<Arc<str>, Range> = BTreeMap::new();
        for attribute in block.body.attributes {
            // In the native syntax, the parser has reported the duplicate.
            if matches!(attribute.expr, Expr::Json(_))
                && let Some(first) = seen.insert(attribute.name.clone(), attribute.range.clone())
            {
                self.diagnostics.push(
                    Diagnostic::error(
                        "Duplicate attribute definition",
                        format!(
                            "The argument \"{}\" already has a value, set at {first}. Remove one of the two.",
                            attribute.name
                        ),
                    )
                    .at(&attribute.name_range),
                );
                continue;
            }
            if !addrs::parse::is_identifier(&attribute.name) {
                self.diagnostics
                    .push(Diagnostic::error("Invalid local value name", parts::NAME_RULE).at(&attribute.name_range));
            }
            out.push(Local {
                name: attribute.name,
                expr: attribute.expr,
                range: attribute.range,
            });
        }
    }

    pub(super) fn output(&mut self, block: Block) -> Option<Output> {
        let range = parts::header(&block);
        let label = block.labels.into_iter().next()?;
        parts::check_name(&label, "Invalid output name", self.diagnostics);
        let spec = if self.overriding { OUTPUT_OVERRIDE } else { OUTPUT };
        let mut taken = parts::exact(block.body, spec, self.diagnostics);
        let mut written = Written::default();
        let expr = taken.expr("value");
        written.value = expr.is_some();
        let description = taken
            .attribute("description")
            .and_then(|a| parts::constant_string(&a.expr, self.diagnostics))
            .map(|s| s.to_string());
        let (mut ty, mut defaults, mut typed) = (Type::Dynamic, Defaults::default(), false);
        if let Some(a) = taken.attribute("type") {
            let problems;
            (ty, defaults, problems) = lang::typeexpr::type_constraint(&a.expr);
            self.diagnostics.extend(problems);
            typed = true;
        }
        let deprecated = taken.attribute("deprecated").and_then(|a| self.deprecated(&a));
        let mut flag = |this: &mut Self, name: &str| match taken.attribute(name) {
            Some(a) => (parts::constant_bool(&a.expr, this.diagnostics).unwrap_or(false), true),
            None => (false, false),
        };
        let sensitive;
        let ephemeral;
        (sensitive, written.sensitive) = flag(self, "sensitive");
        (ephemeral, written.ephemeral) = flag(self, "ephemeral");
        let depends_on = taken.attribute("depends_on");
        if self.overriding {
            self.no_depends_on_override(depends_on.as_ref());
        }
        let depends_on = parts::depends_on(depends_on, self.diagnostics);
        let mut preconditions = Vec::new();
        for block in taken.blocks {
            if self.overriding {
                self.cannot_override(&block);
            } else {
                preconditions.push(self.check_rule(block, "precondition"));
            }
        }
        Some(Output {
            name: label.text,
            expr: expr.unwrap_or_else(|| Expr::Invalid { range: range.clone() }),
            ty,
            typed,
            defaults: Arc::new(defaults),
            deprecated,
            description,
            sensitive,
            ephemeral,
            depends_on,
            preconditions,
            range,
            written,
        })
    }
}

/// Converts a default to the type of its variable. Problems are reported. A default that does not fit the type becomes
/// unknown. `None` if there is no default, or if it is null and the variable is not nullable.
pub(crate) fn convert_default(variable: &Variable, diagnostics: &mut syntax::Diagnostics) -> Option<Value> {
    let (value, range) = variable.written.default.as_ref()?;
    let invalid = |detail: String| Diagnostic::error("Invalid default value for variable", detail).at(range);
    let converted = match variable.fit(value) {
        Ok(converted) => converted,
        Err(error) => {
            diagnostics.push(invalid(format!(
                "This default does not fit the type of the variable: {}.",
                lang::eval::describe_convert_error(&error)
            )));
            // An unknown value of the type avoids further errors where the variable is used.
            return Some(Value::unknown(variable.value_type()));
        }
    };
    if converted.is_null() && !variable.nullable {
        diagnostics.push(invalid(
            "With nullable = false, null is no value of the variable, and no default either.".into(),
        ));
        return None;
    }
    Some(converted)
}
