//! Function calls.

use cty::{Marks, Type, Value};
use syntax::Diagnostic;
use syntax::ast::{Call, Expr};
use syntax::diag::ExpressionContext;

use super::{Context, ExpressionEvaluator};
use crate::functions::{self, CallError, Function, FunctionEnvironment};
use crate::scope::ProviderCall;

/// An argument: its value and its expression. An expanded expression makes several arguments.
struct Argument<'e> {
    expr: &'e Expr,
    value: Value,
}

/// An argument of a function that takes expressions: its expression, and its value if it comes from an expansion.
pub(super) struct Unevaluated<'e> {
    pub(super) expr: &'e Expr,
    pub(super) value: Option<Value>,
}

impl ExpressionEvaluator {
    pub(super) fn call(&mut self, call: &Call, whole: &Expr, context: &Context<'_>) -> Value {
        let Some(settings) = context.scope.functions() else {
            self.fixed.push(
                Diagnostic::error("Function calls not allowed", "Functions may not be called here.").at(&call.range),
            );
            return Value::dynamic();
        };
        let name = call.name.strip_prefix("core::").unwrap_or(&call.name);
        // These functions take expressions instead of values, because they decide which of them are evaluated.
        match name {
            "try" => return self.try_function(call, whole, context),
            "can" => return self.can_function(call, whole, context),
            "convert" => return self.convert_function(call, whole, context),
            "templatestring" => return self.templatestring(call, settings, whole, context),
            "type" if settings.console => return self.type_function(call, whole, context),
            _ => {}
        }
        if let Some((provider, function)) = name.strip_prefix("provider::").and_then(|n| n.split_once("::")) {
            return self.provider_function(call, provider, function, whole, context);
        }
        // The console has no plan, and so no plan timestamp.
        let timeless = name == "plantimestamp" && settings.console && settings.plan_timestamp.is_none();
        let Some(function) = functions::find(name).filter(|_| !timeless) else {
            let hidden = if timeless { Some(name) } else { None };
            self.dynamic.push(unknown_function(call, hidden));
            return Value::dynamic();
        };
        let args = match self.arguments(call, context) {
            Ok(args) => args,
            Err(value) => return value,
        };
        if !self.check_count(call, function, &args, whole, context) {
            return Value::dynamic();
        }
        let errors = self.errors();
        let mut values = Vec::with_capacity(args.len());
        for (i, arg) in args.iter().enumerate() {
            let Some(parameter) = function.parameter(i) else {
                continue;
            };
            let ty = parameter.ty();
            if *arg.value.ty() == ty || ty == Type::Dynamic {
                values.push(arg.value.clone());
                continue;
            }
            match cty::convert(&arg.value, &ty) {
                Ok(value) => values.push(value),
                Err(error) => {
                    let problem = invalid_argument(call, Some(function), i, &error.message, &args);
                    self.report_call(call, problem, whole, context);
                }
            }
        }
        if self.errors() > errors {
            return Value::dynamic();
        }
        // The depth is passed on, because templatefile evaluates expressions of its own.
        let environment = FunctionEnvironment::new(settings, context.scope, self.in_template, self.depth);
        match functions::call(function, values, &environment) {
            Ok(value) => value,
            Err(error) => {
                self.failed(call, Some(function), error, &args, whole, context);
                Value::dynamic()
            }
        }
    }

    /// Evaluates the arguments, with the last one expanded if it is followed by `...`. The error is the value of the
    /// call: unknown after an error or an unknown expansion.
    fn arguments<'e>(&mut self, call: &'e Call, context: &Context<'_>) -> Result<Vec<Argument<'e>>, Value> {
        let errors = self.errors();
        let mut args: Vec<Argument<'e>> = call
            .args
            .iter()
            .map(|expr| Argument {
                expr,
                value: self.expr(expr, context),
            })
            .collect();
        if self.errors() > errors {
            return Err(Value::dynamic());
        }
        if call.expand_last
            && let Some(last) = args.pop()
        {
            args.extend(self.expand(call, last, context)?);
        }
        Ok(args)
    }

    /// Returns the arguments unevaluated, except for a last argument that is expanded with `...`: that argument is
    /// evaluated.
    pub(super) fn unevaluated<'e>(
        &mut self,
        call: &'e Call,
        context: &Context<'_>,
    ) -> Result<Vec<Unevaluated<'e>>, Value> {
        let mut args: Vec<Unevaluated<'e>> = call.args.iter().map(|expr| Unevaluated { expr, value: None }).collect();
        if call.expand_last
            && let Some(Unevaluated { expr, .. }) = args.pop()
        {
            let errors = self.errors();
            let value = self.expr(expr, context);
            if self.errors() > errors {
                return Err(Value::dynamic());
            }
            let expanded = self.expand(call, Argument { expr, value }, context)?;
            args.extend(expanded.into_iter().map(|a| Unevaluated {
                expr: a.expr,
                value: Some(a.value),
            }));
        }
        Ok(args)
    }

    /// Returns the arguments that the last one expands to.
    fn expand<'e>(
        &mut self,
        call: &Call,
        last: Argument<'e>,
        context: &Context<'_>,
    ) -> Result<Vec<Argument<'e>>, Value> {
        let (value, marks) = last.value.unmark();
        let invalid = |what: &str| {
            Diagnostic::error(
                "Invalid expanding argument value",
                format!("The expanding argument (indicated by ...) must {what}."),
            )
            .at(last.expr.range())
        };
        let problem = match value.ty() {
            _ if value.is_null() => invalid("not be null"),
            Type::Dynamic => return Err(Value::dynamic().with_marks(marks)),
            Type::Tuple(_) | Type::List(_) | Type::Set(_) => match value.as_seq() {
                None => return Err(Value::dynamic().with_marks(marks)),
                Some(items) => {
                    let argument = |v: &Value| Argument {
                        expr: last.expr,
                        // The marks of the list apply to each argument, too.
                        value: v.clone().with_marks(marks),
                    };
                    return Ok(items.iter().map(argument).collect());
                }
            },
            _ => invalid("be of a tuple, list, or set type"),
        };
        self.report_call(call, problem, last.expr, context);
        Err(Value::dynamic())
    }

    fn check_count(
        &mut self,
        call: &Call,
        function: &Function,
        args: &[Argument<'_>],
        whole: &Expr,
        context: &Context<'_>,
    ) -> bool {
        let declared = function.parameters.len();
        if let Some(missing) = function.parameters.get(args.len()) {
            let at_least = if function.variadic.is_some() { " at least" } else { "" };
            self.too_few(call, at_least, declared, missing.name, whole, context);
            return false;
        }
        match args.get(declared) {
            Some(extra) if function.variadic.is_none() => {
                self.too_many(call, declared, extra.expr, whole, context);
                false
            }
            _ => true,
        }
    }

    pub(super) fn too_many(&mut self, call: &Call, declared: usize, extra: &Expr, whole: &Expr, context: &Context<'_>) {
        let problem = Diagnostic::error(
            "Too many function arguments",
            format!(
                "Function \"{}\" takes {}{}.",
                call.name,
                if declared == 0 { "" } else { "only " },
                arguments(declared)
            ),
        );
        self.report_call(call, problem.at(extra.start_range()), whole, context);
    }

    pub(super) fn too_few(
        &mut self,
        call: &Call,
        at_least: &str,
        declared: usize,
        missing: &str,
        whole: &Expr,
        context: &Context<'_>,
    ) {
        let problem = Diagnostic::error(
            "Not enough function arguments",
            format!(
                "Function \"{}\" takes{at_least} {}. There is no value for \"{missing}\".",
                call.name,
                arguments(declared)
            ),
        );
        self.report_call(call, problem.at(&call.close), whole, context);
    }

    fn failed(
        &mut self,
        call: &Call,
        function: Option<&Function>,
        error: CallError,
        args: &[Argument<'_>],
        whole: &Expr,
        context: &Context<'_>,
    ) {
        match (error, function) {
            (CallError::Unknown(problem), _) => self.dynamic.push(problem.at(&call.name_range).within(&call.range)),
            (CallError::Argument(i, message), function) => {
                let problem = invalid_argument(call, function, i, &message, args);
                self.report_call(call, problem, whole, context);
            }
            (CallError::Failed(message), _) => self.call_failed(call, &message, whole, context),
        }
    }

    pub(super) fn call_failed(&mut self, call: &Call, message: &str, whole: &Expr, context: &Context<'_>) {
        let problem = Diagnostic::error(
            "Error in function call",
            format!("Call to function \"{}\" failed: {message}.", call.name),
        );
        self.report_call(call, problem.at(&call.name_range.to(&call.open)), whole, context);
    }

    /// Reports a problem of a call, with the function's signature.
    pub(super) fn report_call(&mut self, call: &Call, mut problem: Diagnostic, whole: &Expr, context: &Context<'_>) {
        let name = call.name.strip_prefix("core::").unwrap_or(&call.name);
        let function = match name.strip_prefix("provider::").and_then(|n| n.split_once("::")) {
            // `try` and `can` drop the problem, so it needs no description.
            _ if self.quiet => None,
            Some((provider, function)) => {
                let signature = context.scope.provider_function(provider, function).ok();
                signature.map(|s| s.called(function, &call.name))
            }
            None => functions::signature::called(name, &call.name),
        };
        problem.expression = Some(Box::new(ExpressionContext {
            function,
            ..ExpressionContext::default()
        }));
        self.report(problem.within(&call.range), whole, context);
    }

    fn provider_function(
        &mut self,
        call: &Call,
        provider: &str,
        function: &str,
        whole: &Expr,
        context: &Context<'_>,
    ) -> Value {
        let args = match self.arguments(call, context) {
            Ok(args) => args,
            Err(value) => return value,
        };
        let signature = match context.scope.provider_function(provider, function) {
            Ok(signature) => signature,
            Err(error) => {
                self.failed(call, None, error, &args, whole, context);
                return Value::dynamic();
            }
        };
        let declared = signature.parameters.len();
        if args.len() < declared {
            let at_least = if signature.variadic.is_some() { " at least" } else { "" };
            let missing = signature.parameters.get(args.len()).map_or("", |p| &*p.name);
            self.too_few(call, at_least, declared, missing, whole, context);
            return Value::dynamic();
        }
        let (mut marks, mut unknown) = (Marks::NONE, false);
        let mut values = Vec::with_capacity(args.len());
        for (i, arg) in args.iter().enumerate() {
            let Some(parameter) = signature.parameter(i) else {
                self.too_many(call, declared, arg.expr, whole, context);
                return Value::dynamic();
            };
            // Providers do not know marks: these are removed, and added to the result.
            let (value, own) = arg.value.clone().unmark_deep();
            marks |= own;
            let problem = match cty::convert(&value, &parameter.ty) {
                Ok(value) if value.is_null() && !parameter.allow_null => "argument must not be null".to_owned(),
                Ok(value) => {
                    unknown |= !value.is_wholly_known() && !parameter.allow_unknown;
                    values.push(value);
                    continue;
                }
                Err(error) => error.message,
            };
            let detail = format!("Invalid value for \"{}\" parameter: {problem}.", parameter.name);
            let problem = Diagnostic::error("Invalid function argument", detail);
            self.report_call(call, problem.at(arg.expr.start_range()), whole, context);
        }
        if values.len() < args.len() {
            return Value::dynamic();
        }
        // A provider gets only the unknown arguments that it allows.
        if unknown {
            return Value::unknown(signature.result.clone()).with_marks(marks);
        }
        let request = ProviderCall {
            provider,
            function,
            arguments: &values,
        };
        match context.scope.call_provider_function(&request) {
            Ok(value) => value.with_marks(marks),
            Err(CallError::Argument(i, message)) => {
                let at = args.get(i).map_or(&call.range, |a| a.expr.start_range());
                let name = signature.parameter(i).map_or("", |p| &*p.name);
                let detail = format!("Invalid value for \"{name}\" parameter: {message}.");
                let problem = Diagnostic::error("Invalid function argument", detail);
                self.report_call(call, problem.at(at), whole, context);
                Value::dynamic()
            }
            Err(CallError::Failed(message)) => {
                self.call_failed(call, &message, whole, context);
                Value::dynamic()
            }
            Err(error @ CallError::Unknown(_)) => {
                self.failed(call, None, error, &args, whole, context);
                Value::dynamic()
            }
        }
    }
}

fn arguments(count: usize) -> String {
    match count {
        0 => "no arguments".to_owned(),
        1 => "one argument".to_owned(),
        many => format!("{many} arguments"),
    }
}

fn unknown_function(call: &Call, hidden: Option<&str>) -> Diagnostic {
    let name = call.name.strip_prefix("core::").unwrap_or(&call.name);
    let problem = match name.rsplit_once("::") {
        Some(("provider", _)) => Diagnostic::error(
            "Unknown provider function",
            "A provider's function is called as provider::NAME::FUNCTION; the provider's local name is missing here.",
        ),
        Some((namespace, _)) => Diagnostic::error(
            "Unknown provider function",
            format!(
                "There is no namespace \"{namespace}\". A provider's function is called as provider::NAME::FUNCTION."
            ),
        ),
        None => {
            let near = syntax::content::near(name, functions::names().filter(|n| hidden != Some(*n)));
            // `hidden` is a function that exists but cannot be called here. The user has not misspelt it, so no similar
            // name is suggested.
            let near = near.filter(|_| hidden.is_none());
            Diagnostic::error(
                "Call to unknown function",
                format!(
                    "There is no function named \"{}\".{}",
                    call.name,
                    syntax::content::hint(near.as_ref())
                ),
            )
            .misspelt(name, &call.name_range, near.as_ref())
        }
    };
    problem.at(&call.name_range).within(&call.range)
}

/// Builds the error for an invalid argument. It names the parameter of a built-in function; `function` is `None` for a
/// provider function, and the error then has the argument's position.
fn invalid_argument(
    call: &Call,
    function: Option<&Function>,
    position: usize,
    message: &str,
    args: &[Argument<'_>],
) -> Diagnostic {
    let at = args.get(position).map_or(&call.range, |a| a.expr.start_range());
    let what = match function {
        Some(function) => {
            let name = function.parameter(position).map_or("", |p| p.name);
            format!("\"{name}\" parameter")
        }
        None => format!("argument {}", position + 1),
    };
    let detail = format!("Invalid value for {what}: {message}.");
    Diagnostic::error("Invalid function argument", detail).at(at)
}
