//! `variable`, `locals` and `output` blocks.

use std::sync::Arc;

use cty::{Defaults, Marks, Type, Value};
use lang::eval::describe_convert_error;
use syntax::Range;
use syntax::ast::Expr;

use crate::model::Reference;
use crate::model::check::CheckRule;

/// A `variable` block.
#[derive(Clone, Debug)]
pub struct Variable {
    pub name: Arc<str>,
    /// Type constraint, with its optional attributes; `any` if the block has no type.
    pub ty: Type,
    /// True if the block has a `type` argument: without one, text from the command line is taken literally.
    pub typed: bool,
    /// Default values of optional attributes inside the type.
    pub defaults: Arc<Defaults>,
    /// Default, converted to the type; `None` for a required variable.
    pub default: Option<Value>,
    pub description: Option<String>,
    /// Hides the value in output.
    pub sensitive: bool,
    /// Keeps the value out of state and plan.
    pub ephemeral: bool,
    /// Null is a valid value; if false, null means the default.
    pub nullable: bool,
    /// Requires that the value is known when the configuration is loaded, so that sources of modules can depend on it.
    pub is_const: bool,
    /// Notice if the variable is deprecated.
    pub deprecated: Option<DeprecationNotice>,
    /// Conditions that the value must satisfy.
    pub validations: Vec<CheckRule>,
    /// Range of the block's header.
    pub range: Range,
    /// Explicitly written arguments, for override files.
    pub(crate) written: Written,
}

/// A `deprecated` argument.
#[derive(Clone, Debug, PartialEq)]
pub struct DeprecationNotice {
    /// Advice on what to do instead.
    pub message: Arc<str>,
    /// The whole argument.
    pub range: Range,
}

/// Arguments that the block of a variable or output sets explicitly: an override file replaces only these arguments.
#[derive(Clone, Debug, Default)]
pub(crate) struct Written {
    pub sensitive: bool,
    pub ephemeral: bool,
    pub nullable: bool,
    pub is_const: bool,
    /// True if an `output` block has the argument `value`, which may be missing in an override file.
    pub value: bool,
    /// Default as written, before conversion.
    pub default: Option<(Value, Range)>,
}

impl Variable {
    /// Returns true if the variable has no default.
    #[must_use]
    pub fn is_required(&self) -> bool {
        self.default.is_none()
    }

    /// Returns true if text from the command line or the environment is taken literally, not as an expression.
    #[must_use]
    pub fn takes_literal_text(&self) -> bool {
        !self.typed || self.ty.is_primitive()
    }

    /// Returns the marks of the variable's declaration.
    #[must_use]
    pub fn marks(&self) -> Marks {
        let mark = |yes: bool, mark: Marks| if yes { mark } else { Marks::NONE };
        mark(self.sensitive, Marks::SENSITIVE) | mark(self.ephemeral, Marks::EPHEMERAL)
    }

    /// Returns the type of the variable's values.
    #[must_use]
    pub fn value_type(&self) -> Type {
        self.ty.without_optional()
    }
}

/// One entry of a `locals` block.
#[derive(Clone, Debug)]
pub struct Local {
    pub name: Arc<str>,
    pub expr: Expr,
    /// Range of the whole attribute.
    pub range: Range,
}

/// An `output` block.
#[derive(Clone, Debug)]
pub struct Output {
    pub name: Arc<str>,
    pub expr: Expr,
    /// Type constraint, `any` if there is none. It may have optional attributes.
    pub ty: Type,
    /// True if the block has a `type` argument.
    pub typed: bool,
    /// Default values of optional attributes inside the type.
    pub defaults: Arc<Defaults>,
    /// Notice if the output is deprecated.
    pub deprecated: Option<DeprecationNotice>,
    pub description: Option<String>,
    /// Hides the value in output.
    pub sensitive: bool,
    /// Keeps the value out of the state.
    pub ephemeral: bool,
    /// Explicit dependencies, besides the references in the value.
    pub depends_on: Vec<Reference>,
    /// Conditions checked before the value is evaluated.
    pub preconditions: Vec<CheckRule>,
    /// Range of the block's header.
    pub range: Range,
    pub(crate) written: Written,
}

impl Variable {
    /// Returns the variable's value when it is set to `value`: defaults of optional attributes filled in, converted to
    /// the type, null replaced by the default where null is not valid. Marks of the value stay; those of the variable
    /// are not added. `range` is the range of the value.
    pub fn accept(&self, value: &Value, range: &Range) -> Result<Value, Box<syntax::Diagnostic>> {
        let invalid = |summary: &str, detail: String| {
            Box::new(
                syntax::Diagnostic::error(
                    summary,
                    format!(
                        "The given value is not suitable for var.{} declared at {}: {detail}.",
                        self.name, self.range
                    ),
                )
                .at(range),
            )
        };
        let value = self
            .fit(value)
            .map_err(|e| invalid("Invalid value for input variable", describe_convert_error(&e)))?;
        if value.is_null() && !self.nullable {
            return self.default.clone().ok_or_else(|| {
                invalid(
                    "Required variable not set",
                    "it has no default, and null is no value for it (nullable = false)".into(),
                )
            });
        }
        Ok(value)
    }

    /// Fills in the defaults of optional attributes, and converts a value to the type.
    pub(crate) fn fit(&self, value: &Value) -> Result<Value, cty::ConvertError> {
        // Defaults are applied first, because the conversion makes missing optional attributes null.
        cty::convert(&self.defaults.apply(value.clone()), &self.ty)
    }
}

impl Variable {
    /// Creates a variable of the dynamic type that no module declares. Text for it is parsed as an expression.
    #[must_use]
    pub fn undeclared(name: Arc<str>, range: &Range) -> Variable {
        Variable {
            name,
            ty: Type::Dynamic,
            typed: true,
            defaults: Arc::default(),
            default: None,
            description: None,
            sensitive: false,
            ephemeral: false,
            nullable: true,
            is_const: false,
            deprecated: None,
            validations: Vec::new(),
            range: range.clone(),
            written: Written::default(),
        }
    }
}
