//! Functions that take expressions instead of values, and templates from values.

use std::sync::Arc;

use cty::{Marks, Type, Value};
use syntax::ast::{Call, Expr};
use syntax::{Diagnostic, Pos};

use super::call::Unevaluated;
use super::{Context, ExpressionEvaluator, describe_convert_error, evaluate_template};
use crate::functions::{CallError, FunctionEnvironment};
use crate::scope::FunctionSettings;
use crate::typeexpr::type_constraint;

impl ExpressionEvaluator {
    /// Evaluates `try`: the first argument without a dynamic error.
    pub(super) fn try_function(&mut self, call: &Call, whole: &Expr, context: &Context<'_>) -> Value {
        let args = match self.unevaluated(call, context) {
            Ok(args) => args,
            Err(value) => return value,
        };
        if args.is_empty() {
            self.call_failed(call, "at least one argument is required", whole, context);
            return Value::dynamic();
        }
        let mut list = String::from("no expression succeeded:\n");
        for arg in args {
            let (value, problems) = self.attempt(arg, context);
            if !problems.has_errors() {
                // A value that is not wholly known may still fail, or get another type, so the result is unknown. It
                // keeps the marks "sensitive" and "ephemeral". Deprecations are dropped, because a value that does not
                // exist yet has not been used.
                let marks = value.deep_marks().without_deprecations();
                return if value.is_wholly_known() {
                    value
                } else {
                    Value::dynamic().with_marks(marks)
                };
            }
            for problem in &problems {
                let place = problem
                    .subject
                    .as_ref()
                    .map(|r| format!(" (at {r})"))
                    .unwrap_or_default();
                list.push_str(&format!("- {}{place}\n  {}\n", problem.summary, problem.detail));
            }
        }
        list.push_str("\nNone of the arguments has a value without errors; add a last one that always has");
        self.call_failed(call, &list, whole, context);
        Value::dynamic()
    }

    /// Evaluates `can`: true if the argument has no dynamic error.
    pub(super) fn can_function(&mut self, call: &Call, whole: &Expr, context: &Context<'_>) -> Value {
        let Some(arg) = self.only_argument(call, "expression", whole, context) else {
            return Value::dynamic();
        };
        let (value, problems) = self.attempt(arg, context);
        if problems.has_errors() {
            Value::bool(false)
        } else if value.is_wholly_known() {
            Value::bool(true)
        } else {
            // An unknown value may still fail when it is known.
            Value::unknown(Type::Bool)
        }
    }

    /// Evaluates an argument of `try` or `can`, and returns its dynamic errors instead of reporting them. Static errors
    /// are reported.
    fn attempt(&mut self, arg: Unevaluated<'_>, context: &Context<'_>) -> (Value, syntax::Diagnostics) {
        match arg.value {
            Some(value) => (value, syntax::Diagnostics::new()),
            None => self.apart(true, |s| s.expr(arg.expr, context)),
        }
    }

    fn only_argument<'c>(
        &mut self,
        call: &'c Call,
        name: &str,
        whole: &Expr,
        context: &Context<'_>,
    ) -> Option<Unevaluated<'c>> {
        let mut args = self.unevaluated(call, context).ok()?.into_iter();
        match (args.next(), args.next()) {
            (None, _) => {
                self.too_few(call, "", 1, name, whole, context);
                None
            }
            (one, None) => one,
            (_, Some(extra)) => {
                self.too_many(call, 1, extra.expr, whole, context);
                None
            }
        }
    }

    /// Evaluates `type`, in the console: the type of a value, as a type expression.
    ///
    /// A type is not a value of the language: it has no conversions and no attributes. So the result is a tuple that
    /// contains the text, with a mark that identifies it as a type.
    pub(super) fn type_function(&mut self, call: &Call, whole: &Expr, context: &Context<'_>) -> Value {
        let Some(arg) = self.only_argument(call, "value", whole, context) else {
            return Value::dynamic();
        };
        let errors = self.errors();
        let value = arg.value.unwrap_or_else(|| self.expr(arg.expr, context));
        if self.errors() > errors {
            return Value::dynamic();
        }
        let text = if value.marks().contains(Marks::TYPE) {
            "type".to_owned()
        } else {
            crate::render::format_type(value.ty())
        };
        Value::tuple(vec![Value::string(text)]).with_marks(Marks::TYPE)
    }

    /// Evaluates `convert`: converts a value to a type, which is written as that of a variable. The defaults of
    /// optional attributes are applied after the conversion.
    pub(super) fn convert_function(&mut self, call: &Call, whole: &Expr, context: &Context<'_>) -> Value {
        let args = match self.unevaluated(call, context) {
            Ok(args) => args,
            Err(value) => return value,
        };
        let mut args = args.into_iter();
        let (value, ty) = match (args.next(), args.next(), args.next()) {
            (Some(value), Some(ty), None) => (value, ty),
            (_, _, Some(extra)) => {
                self.too_many(call, 2, extra.expr, whole, context);
                return Value::dynamic();
            }
            (first, ..) => {
                let missing = if first.is_none() { "value" } else { "type" };
                self.too_few(call, "", 2, missing, whole, context);
                return Value::dynamic();
            }
        };
        let errors = self.errors();
        let value_expr = value.expr;
        let value = value.value.unwrap_or_else(|| self.expr(value_expr, context));
        let (constraint, defaults, problems) = type_constraint(ty.expr);
        self.dynamic.extend(problems);
        if self.errors() > errors {
            return Value::dynamic();
        }
        // Marks anywhere in the value move to the whole: the conversion may rebuild the parts that had them.
        let (value, marks) = value.unmark_deep();
        if !value.is_known() {
            return Value::unknown(constraint.without_optional()).with_marks(marks);
        }
        match cty::convert(&value, &constraint) {
            Ok(value) => defaults.apply(value).with_marks(marks),
            Err(error) => {
                let detail = format!(
                    "Invalid value for \"value\" parameter: {}.",
                    describe_convert_error(&error)
                );
                let problem = Diagnostic::error("Invalid function argument", detail).at(value_expr.start_range());
                self.report_call(call, problem, whole, context);
                Value::dynamic()
            }
        }
    }

    /// Evaluates `templatestring`: a template that is the value of a reference.
    pub(super) fn templatestring(
        &mut self,
        call: &Call,
        settings: &FunctionSettings,
        whole: &Expr,
        context: &Context<'_>,
    ) -> Value {
        let args = match self.unevaluated(call, context) {
            Ok(args) => args,
            Err(value) => return value,
        };
        let [template, vars] = args.as_slice() else {
            match args.get(2) {
                Some(extra) => self.too_many(call, 2, extra.expr, whole, context),
                None => {
                    let missing = if args.is_empty() { "template" } else { "vars" };
                    self.too_few(call, "", 2, missing, whole, context);
                }
            }
            return Value::dynamic();
        };
        let invalid = |this: &mut Self, name: &str, arg: &Expr, message: &str| {
            let detail = format!("Invalid value for \"{name}\" parameter: {message}.");
            let problem = Diagnostic::error("Invalid function argument", detail).at(arg.start_range());
            this.report_call(call, problem, whole, context);
            Value::dynamic()
        };
        let errors = self.errors();
        let variables = match &vars.value {
            Some(value) => value.clone(),
            None => self.expr(vars.expr, context),
        };
        let (template, given, vars) = (template.expr, template.value.is_some(), vars.expr);
        // As in any function, the argument with the variables is evaluated before the call.
        if self.errors() == errors {
            if variables.is_null() {
                return invalid(self, "vars", vars, "argument must not be null");
            }
            if !variables.is_known() {
                return Value::dynamic().with_marks(variables.marks());
            }
        }
        if let Some(message) = not_a_reference(template).or(given.then_some(NOT_DIRECT)) {
            return invalid(self, "template", template, message);
        }
        let text = self.expr(template, context);
        if self.errors() > errors {
            return Value::dynamic();
        }
        let (text, marks) = text.unmark_deep();
        // A template always renders to a text, so the result is never null.
        if !text.is_known() {
            return Value::unknown_not_null(Type::String).with_marks(marks);
        }
        let text = match cty::convert(&text, &Type::String) {
            Ok(text) if !text.is_null() => text,
            _ => {
                let message = "invalid template value: a string is required";
                return invalid(self, "template", template, message);
            }
        };
        let Some(text) = text.as_str() else {
            return Value::unknown_not_null(Type::String).with_marks(marks);
        };
        let environment = FunctionEnvironment::new(settings, context.scope, self.in_template, self.depth);
        match render("<templatestring argument>", text, &variables, &environment) {
            Ok(value) => value.with_marks(marks),
            Err(CallError::Argument(0, message)) => {
                invalid(self, "template", template, &format!("invalid template: {message}"))
            }
            Err(CallError::Argument(_, message)) => invalid(self, "vars", vars, &message),
            Err(CallError::Failed(message)) => {
                self.call_failed(call, &message, whole, context);
                Value::dynamic()
            }
            Err(CallError::Unknown(problem)) => {
                self.dynamic.push(problem);
                Value::dynamic()
            }
        }
    }
}

/// Returns the reason why an expression cannot be the template of `templatestring`; `None` if it can.
fn not_a_reference(expr: &Expr) -> Option<&'static str> {
    match expr {
        Expr::Traversal(_) | Expr::Relative { .. } | Expr::Index { .. } => None,
        Expr::Wrap { .. } => Some("the template must be a reference itself, without \"${\" and \"}\" around it"),
        Expr::Template(_) => Some(
            "the template is written here itself, and is evaluated as every string is: templatestring is for \
             templates that a reference leads to",
        ),
        _ => Some(NOT_DIRECT),
    }
}

const NOT_DIRECT: &str = "the template must be a reference to a string, with nothing calculated";

/// Parses and evaluates a template that can refer to `variables` only. An error names the argument that causes it: 0
/// for the template, 1 for the variables.
pub(crate) fn render(
    name: &str,
    text: &str,
    variables: &Value,
    environment: &FunctionEnvironment<'_>,
) -> Result<Value, CallError> {
    let (template, problems) = syntax::parse_template(name, text, Pos::default());
    if problems.has_errors() {
        return Err(CallError::Argument(0, sentences(&problems)));
    }
    let marks = variables.marks();
    if !variables.is_known() {
        return Ok(Value::dynamic().with_marks(marks));
    }
    let structure = matches!(variables.ty(), Type::Object(_) | Type::Map(_) | Type::Dynamic);
    if !structure {
        return Err(CallError::Argument(1, "invalid vars value: must be a map".into()));
    }
    let Some(entries) = variables.entries() else {
        return Ok(Value::dynamic().with_marks(marks));
    };
    let variables: Vec<(Arc<str>, Value)> = entries.map(|(k, v)| (k.clone(), v.clone())).collect();
    if let Some((bad, _)) = variables.iter().find(|(name, _)| !addrs::parse::is_identifier(name)) {
        return Err(CallError::Argument(
            1,
            format!(
                "\"{bad}\" cannot be the name of a template variable: names begin with a letter, and have letters, \
                 digits and underscores"
            ),
        ));
    }
    // The references are checked before the evaluation, so that a reference in a branch that is not taken is an
    // error, too.
    for traversal in crate::refs::traversals(&template) {
        if !variables.iter().any(|(name, _)| *name == traversal.root) {
            return Err(CallError::Argument(
                1,
                format!(
                    "the template refers to \"{}\" at {}, which is not among its variables",
                    traversal.root, traversal.root_range
                ),
            ));
        }
    }
    let base = Context::new(environment.scope());
    let (value, problems) = evaluate_template(&template, &base.with_variables(&variables), environment.depth());
    if problems.has_errors() {
        return Err(CallError::Failed(sentences(&problems)));
    }
    Ok(value.with_marks(marks))
}

/// Renders the errors among diagnostics in one line, for the message of an outer diagnostic.
fn sentences(problems: &syntax::Diagnostics) -> String {
    let errors: Vec<&Diagnostic> = problems.iter().filter(|d| d.is_error()).collect();
    let one = |d: &Diagnostic| match &d.subject {
        Some(range) => format!("{range}: {}; {}", d.summary, d.detail),
        None => format!("{}; {}", d.summary, d.detail),
    };
    match errors.as_slice() {
        [] => String::new(),
        [only] => one(only),
        [first, rest @ ..] => format!("{}, and {} other diagnostic(s)", one(first), rest.len()),
    }
}
