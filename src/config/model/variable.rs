//! Input variables, local values and output values.

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
    /// The type constraint, `any` if there is none. It may have optional attributes.
    pub ty: Type,
    /// Whether the block has a `type` argument: without one, text from the command line is taken as it is.
    pub typed: bool,
    /// The default values of optional attributes inside the type.
    pub defaults: Arc<Defaults>,
    /// The default, converted to the type; `None` for a required variable.
    pub default: Option<Value>,
    pub description: Option<String>,
    /// Whether its value must not be shown.
    pub sensitive: bool,
    /// Whether its value must not be stored.
    pub ephemeral: bool,
    /// Whether null is a value of it; if not, null means the default.
    pub nullable: bool,
    /// Whether its value must be known when the configuration is loaded, so that sources of modules can depend on it.
    pub is_const: bool,
    /// Why it should not be set any more, if it should not.
    pub deprecated: Option<DeprecationNotice>,
    /// What its value must satisfy.
    pub validations: Vec<CheckRule>,
    /// The header of the block.
    pub range: Range,
    /// Which of its arguments are written, for override files.
    pub(crate) written: Written,
}

/// A `deprecated` argument.
#[derive(Clone, Debug, PartialEq)]
pub struct DeprecationNotice {
    /// What to do instead.
    pub message: Arc<str>,
    /// The whole argument.
    pub range: Range,
}

/// Which arguments of a variable or output are written, as an override replaces only those.
#[derive(Clone, Debug, Default)]
pub(crate) struct Written {
    pub sensitive: bool,
    pub ephemeral: bool,
    pub nullable: bool,
    pub is_const: bool,
    /// Whether an output has a value; one in an override file need not.
    pub value: bool,
    /// The default as written, before conversion.
    pub default: Option<(Value, Range)>,
}

impl Variable {
    /// Whether the variable is required.
    #[must_use]
    pub fn is_required(&self) -> bool {
        self.default.is_none()
    }

    /// Whether text from the command line or the environment is taken as it is, not as an expression.
    #[must_use]
    pub fn takes_literal_text(&self) -> bool {
        !self.typed || self.ty.is_primitive()
    }

    /// The marks that its value gets.
    #[must_use]
    pub fn marks(&self) -> Marks {
        let mark = |yes: bool, mark: Marks| if yes { mark } else { Marks::NONE };
        mark(self.sensitive, Marks::SENSITIVE) | mark(self.ephemeral, Marks::EPHEMERAL)
    }

    /// The type that a value of the variable has.
    #[must_use]
    pub fn value_type(&self) -> Type {
        self.ty.without_optional()
    }
}

/// One entry of a `locals` block.
#[derive(Clone, Debug)]
pub struct Local {
    pub name: Arc<str>,
    /// The value.
    pub expr: Expr,
    /// The whole attribute.
    pub range: Range,
}

/// An `output` block.
#[derive(Clone, Debug)]
pub struct Output {
    pub name: Arc<str>,
    /// The value.
    pub expr: Expr,
    /// The type constraint, `any` if there is none. It may have optional attributes.
    pub ty: Type,
    /// Whether the block has a `type` argument.
    pub typed: bool,
    /// The default values of optional attributes inside the type.
    pub defaults: Arc<Defaults>,
    /// Why it should not be used any more, if it should not.
    pub deprecated: Option<DeprecationNotice>,
    pub description: Option<String>,
    /// Whether its value must not be shown.
    pub sensitive: bool,
    /// Whether its value must not be stored.
    pub ephemeral: bool,
    /// What must be done before, beside what the value refers to.
    pub depends_on: Vec<Reference>,
    /// What must hold before the value is taken.
    pub preconditions: Vec<CheckRule>,
    /// The header of the block.
    pub range: Range,
    pub(crate) written: Written,
}

impl Variable {
    /// The value of the variable when set to this: defaults of optional attributes filled in, converted to the type, null
    /// replaced by the default where null is no value. Marks of the value stay; those of the variable are not added.
    /// `range` is where the value is written.
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

    /// A value with the defaults of optional attributes filled in, converted to the type.
    pub(crate) fn fit(&self, value: &Value) -> Result<Value, cty::ConvertError> {
        // Null is null, with defaults or without.
        cty::convert(&self.defaults.apply(value.clone()), &self.ty)
    }
}

impl Variable {
    /// A variable that no module declares, of any type: text for it is an expression.
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
