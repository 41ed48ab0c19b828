//! The built-in functions.
//! Each function is a row of a table: its parameters with their types, its result type, and its body. Flags of the
//! parameters decide about null, unknown, untyped and marked arguments, in one place: [`call`]. A body sees only
//! arguments that its flags permit.
//!
//! `try`, `can`, `convert` and `templatestring` take expressions, not values; they are part of [`crate::eval`].

mod assume;
mod calendar;
mod charset;
mod collection;
mod conversion;
mod crypto;
mod datetime;
mod digits;
mod encoding;
mod filesystem;
mod format;
mod glob;
mod letters;
mod merging;
mod network;
mod numeric;
mod regular;
mod rsa;
mod sets;
pub mod signature;
mod strings;
mod yaml;
mod yamldecode;

use std::collections::HashMap;
use std::sync::LazyLock;

pub use letters::is_shown;

use cty::{Marks, Refinements, Type, Value};

pub use crate::call_error::CallError;
use crate::scope::{FunctionSettings, Scope};

type CallResult<T = Value> = Result<T, CallError>;

/// Type of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Takes {
    Any,
    String,
    Number,
    ListOfAny,
    ListOfString,
    ListOfBool,
    SetOfAny,
    MapOfAny,
    MapOfListOfString,
}

impl Takes {
    fn ty(self) -> Type {
        match self {
            Takes::Any => Type::Dynamic,
            Takes::String => Type::String,
            Takes::Number => Type::Number,
            Takes::ListOfAny => Type::list(Type::Dynamic),
            Takes::ListOfString => Type::list(Type::String),
            Takes::ListOfBool => Type::list(Type::Bool),
            Takes::SetOfAny => Type::set(Type::Dynamic),
            Takes::MapOfAny => Type::map(Type::Dynamic),
            Takes::MapOfListOfString => Type::map(Type::list(Type::String)),
        }
    }
}

/// A parameter of a built-in function.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    pub name: &'static str,
    takes: Takes,
    null: bool,
    unknown: bool,
    dynamic: bool,
    marked: bool,
}

impl Parameter {
    const fn null(mut self) -> Parameter {
        self.null = true;
        self
    }

    const fn unknown(mut self) -> Parameter {
        self.unknown = true;
        self
    }

    const fn dynamic(mut self) -> Parameter {
        self.dynamic = true;
        self
    }

    const fn marked(mut self) -> Parameter {
        self.marked = true;
        self
    }

    /// Permits null, unknown, untyped and marked arguments.
    const fn everything(self) -> Parameter {
        self.null().unknown().dynamic().marked()
    }

    #[must_use]
    pub fn ty(&self) -> Type {
        self.takes.ty()
    }
}

const fn param(name: &'static str, takes: Takes) -> Parameter {
    Parameter {
        name,
        takes,
        null: false,
        unknown: false,
        dynamic: false,
        marked: false,
    }
}

const fn any(name: &'static str) -> Parameter {
    param(name, Takes::Any)
}

const fn string(name: &'static str) -> Parameter {
    param(name, Takes::String)
}

const fn number(name: &'static str) -> Parameter {
    param(name, Takes::Number)
}

#[derive(Clone, Copy)]
enum Returns {
    Any,
    String,
    Number,
    Bool,
    ListOfString,
    ListOfNumber,
    SetOfString,
    MapOfListOfString,
    /// Computed from the arguments, which may be unknown values with known types.
    By(fn(&[Value]) -> CallResult<Type>),
}

/// Environment of a function's body: the settings of functions, the scope of the call, and the position of the call in
/// templates and nested expressions.
#[derive(Clone, Copy)]
pub struct FunctionEnvironment<'a> {
    settings: &'a FunctionSettings,
    scope: &'a dyn Scope,
    in_template: bool,
    depth: usize,
}

impl<'a> FunctionEnvironment<'a> {
    pub(crate) fn new(
        settings: &'a FunctionSettings,
        scope: &'a dyn Scope,
        in_template: bool,
        depth: usize,
    ) -> FunctionEnvironment<'a> {
        FunctionEnvironment {
            settings,
            scope,
            in_template,
            depth,
        }
    }

    pub(crate) fn scope(&self) -> &'a dyn Scope {
        self.scope
    }

    pub(crate) fn depth(&self) -> usize {
        self.depth
    }
}

type Body = fn(&[Value], &Type, &FunctionEnvironment<'_>) -> CallResult;

/// A built-in function.
pub struct Function {
    pub name: &'static str,
    pub parameters: &'static [Parameter],
    /// Parameter of all further arguments.
    pub variadic: Option<Parameter>,
    returns: Returns,
    /// True if the result is never null.
    not_null: bool,
    body: Body,
}

impl Function {
    const fn new(name: &'static str, parameters: &'static [Parameter], returns: Returns, body: Body) -> Function {
        Function {
            name,
            parameters,
            variadic: None,
            returns,
            not_null: true,
            body,
        }
    }

    const fn variadic(mut self, parameter: Parameter) -> Function {
        self.variadic = Some(parameter);
        self
    }

    const fn nullable(mut self) -> Function {
        self.not_null = false;
        self
    }

    #[must_use]
    pub fn parameter(&self, position: usize) -> Option<&Parameter> {
        self.parameters.get(position).or(self.variadic.as_ref())
    }

    fn result_type(&self, args: &[Value]) -> CallResult<Type> {
        Ok(match self.returns {
            Returns::Any => Type::Dynamic,
            Returns::String => Type::String,
            Returns::Number => Type::Number,
            Returns::Bool => Type::Bool,
            Returns::ListOfString => Type::list(Type::String),
            Returns::ListOfNumber => Type::list(Type::Number),
            Returns::SetOfString => Type::set(Type::String),
            Returns::MapOfListOfString => Type::map(Type::list(Type::String)),
            Returns::By(f) => f(args)?,
        })
    }
}

/// Functions of one subject.
struct Group {
    title: &'static str,
    tables: &'static [&'static [Function]],
    /// Functions in [`LAZY`] of this subject.
    lazy: &'static [&'static str],
}

const fn group(title: &'static str, tables: &'static [&'static [Function]], lazy: &'static [&'static str]) -> Group {
    Group { title, tables, lazy }
}

const GROUPS: &[Group] = &[
    group("Numbers", &[numeric::FUNCTIONS], &[]),
    group(
        "Strings",
        &[strings::FUNCTIONS, format::FUNCTIONS, regular::FUNCTIONS],
        &["templatestring"],
    ),
    group(
        "Collections",
        &[collection::FUNCTIONS, merging::FUNCTIONS, sets::FUNCTIONS],
        &[],
    ),
    group(
        "Types and errors",
        &[assume::FUNCTIONS, conversion::FUNCTIONS],
        &["can", "convert", "try"],
    ),
    group(
        "Encoding",
        &[encoding::FUNCTIONS, yaml::FUNCTIONS, yamldecode::FUNCTIONS],
        &[],
    ),
    group("Files", &[filesystem::FUNCTIONS], &[]),
    group("Hashes and encryption", &[crypto::FUNCTIONS, rsa::FUNCTIONS], &[]),
    group("Dates and times", &[datetime::FUNCTIONS], &[]),
    group("Networks", &[network::FUNCTIONS], &[]),
];

static TABLE: LazyLock<HashMap<&'static str, &'static Function>> = LazyLock::new(|| {
    let tables = GROUPS.iter().flat_map(|group| group.tables);
    tables.flat_map(|table| *table).map(|f| (f.name, f)).collect()
});

/// Functions that take expressions; see [`crate::eval`].
pub(crate) const LAZY: &[&str] = &["can", "convert", "templatestring", "try"];

/// Finds a function by name, without `core::`.
#[must_use]
pub fn find(name: &str) -> Option<&'static Function> {
    TABLE.get(name).copied()
}

/// Names of all functions, in no order.
pub fn names() -> impl Iterator<Item = &'static str> {
    TABLE.keys().copied().chain(LAZY.iter().copied())
}

/// Names of all functions by subject, sorted in each group, without the removed functions `list` and `map`.
#[must_use]
pub fn groups() -> Vec<(&'static str, Vec<&'static str>)> {
    let named = |group: &Group| {
        let eager = group
            .tables
            .iter()
            .flat_map(|table| *table)
            .map(|function| function.name);
        // `list` and `map` were removed from the language; calling them returns an error that names the replacement.
        let mut names: Vec<&str> = eager.filter(|name| !matches!(*name, "list" | "map")).collect();
        names.extend_from_slice(group.lazy);
        names.sort_unstable();
        (group.title, names)
    };
    GROUPS.iter().map(named).collect()
}

/// Calls a function with arguments that have been converted to the parameters' types.
pub fn call(function: &Function, args: Vec<Value>, environment: &FunctionEnvironment<'_>) -> CallResult {
    let mut marks = Marks::NONE;
    let mut unknown = false;
    let mut untyped = false;
    let mut clean = Vec::with_capacity(args.len());
    let mut secrets: Vec<String> = Vec::new();
    for (i, arg) in args.into_iter().enumerate() {
        let Some(parameter) = function.parameter(i) else {
            continue;
        };
        // After an argument of unknown type, the other arguments are not checked for null.
        if arg.is_null() && !parameter.null && !untyped {
            return Err(CallError::argument(i, "argument must not be null"));
        }
        let arg = if parameter.marked {
            arg
        } else {
            let (arg, inner) = arg.unmark_deep();
            marks |= inner;
            if !inner.is_empty() {
                secrets.extend(arg.as_str().filter(|s| !s.is_empty()).map(str::to_owned));
            }
            arg
        };
        // An untyped null is known, so a function that permits null has its result now.
        untyped |= *arg.ty() == Type::Dynamic && !arg.is_known() && !parameter.dynamic;
        unknown |= !arg.is_known() && !parameter.unknown;
        clean.push(arg);
    }
    if untyped {
        return Ok(Value::dynamic().with_marks(marks));
    }
    // The types are checked even if unknown arguments then end the call, because a wrong type is already an error.
    let ty = function.result_type(&clean).map_err(|e| redacted(e, &secrets))?;
    if unknown {
        let refinements = if function.not_null {
            Refinements::not_null()
        } else {
            Refinements::default()
        };
        return Ok(Value::unknown_refined(ty, refinements).with_marks(marks));
    }
    if let Some(missing) = &environment.settings.missing_files
        && filesystem::is_missing(function.name, &clean, environment)
    {
        missing.found();
        return Ok(Value::unknown(ty).with_marks(marks));
    }
    let value = (function.body)(&clean, &ty, environment).map_err(|e| redacted(e, &secrets))?;
    if filesystem::READ_FILES.contains(&function.name) {
        environment.scope.check_result(function.name, &clean, &value)?;
    }
    // The functions themselves return unknown values without refinements. "Not null" is added here, for all functions
    // whose results are never null.
    let bare = function.not_null && !value.is_known() && value.refinements().is_none();
    let value = if bare {
        Value::unknown_not_null(value.ty().clone()).with_marks(value.marks())
    } else {
        value
    };
    Ok(value.with_marks(marks))
}

/// Replaces secrets in an error's message.
fn redacted(error: CallError, secrets: &[String]) -> CallError {
    let hide = |message: String| {
        secrets.iter().fold(message, |message, secret| {
            // The secret is replaced within quotes first, because a short one would match parts of other words.
            let message = message.replace(&format!("{secret:?}"), "(sensitive value)");
            if message.contains("(sensitive value)") {
                message
            } else {
                message.replace(secret.as_str(), "(sensitive value)")
            }
        })
    };
    match error {
        CallError::Argument(position, message) => CallError::Argument(position, hide(message)),
        CallError::Failed(message) => CallError::Failed(hide(message)),
        other => other,
    }
}

/// Returns the text of an argument. The flags guarantee that it is a known string.
fn text(args: &[Value], i: usize) -> &str {
    args.get(i).and_then(Value::as_str).unwrap_or_default()
}

/// Returns an argument that must be a whole number of 64 bits; any other number is an error.
fn integer(args: &[Value], i: usize) -> CallResult<i64> {
    let number = args.get(i).and_then(Value::as_number);
    number
        .and_then(cty::Number::to_i64)
        .ok_or_else(|| CallError::failed(NOT_WHOLE))
}

const NOT_WHOLE: &str = "value must be a whole number, between -9223372036854775808 and 9223372036854775807";

fn sequence(value: &Value) -> &[Value] {
    value.as_seq().unwrap_or_default()
}

/// Returns an unknown result that is not null.
fn unknown(ty: &Type) -> CallResult {
    Ok(Value::unknown_not_null(ty.clone()))
}
