//! Evaluation while the tree of modules is loaded: sources and versions of module calls that are not literals, and the variables that they
//! depend on.
//!
//! In the language of Terraform, only const variables are known here, unless the scope is that of [`crate::known`]. In the language of
//! OpenTofu, any variable is known if its value is. A source that needs such a variable evaluates the argument of the module call, which
//! may need variables of the caller, and so on up to the root. All other objects are unknown, and a source that depends on one is an error.
//!
//! Local values are evaluated only when a source, a version or a const variable needs them: a configuration whose sources are literals
//! costs nothing.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use addrs::Referenceable;
use addrs::program::Mode;
use cty::{Type, Value};
use files::mounts::Mounts;
use lang::eval::{Context, evaluate, evaluate_as, with_expression};
use lang::functions::CallError;
use lang::provider_function::{Parameter, Signature};
use lang::scope::{EvaluationError, FunctionSettings, Reference, Scope};
use syntax::ast::Expr;
use syntax::content::{Near, hint, near};
use syntax::{Diagnostic, Diagnostics, Range};

use crate::decode;
use crate::model::{CallAddress, CheckRule, Module, ModuleCall, Variable};
use crate::values::{self, Questions, SetVariables};
use crate::version::{Constraint, Dialect};

/// Values of a module's const variables. A missing one has been reported, or cannot be known here.
pub type ConstValues = BTreeMap<Arc<str>, Value>;

/// Source of the values of a root module's variables, for expressions that are evaluated while the tree of modules is loaded.
#[derive(Clone, Copy, Debug)]
pub enum RootVariables<'o> {
    /// Const variables have their defaults, and a missing default is not an error. Other variables are unknown.
    None,
    /// Values that are known already, such as those of a saved plan. A variable that is missing here has its default.
    Known(&'o ConstValues),
    /// Values set by the environment, files and flags. A const variable without a value is an error.
    Set(&'o SetVariables),
}

/// Source of the values of variables that are not const.
#[derive(Clone, Copy)]
pub(crate) enum Others<'m> {
    /// The values of these variables are unknown.
    Unknown,
    /// Variables of the root module.
    Root(RootVariables<'m>),
    /// Variables of a called module, whose values are arguments of the call.
    Call(&'m EarlyModule<'m>, &'m ModuleCall),
}

/// Evaluation scope of a module while its module calls are loaded.
pub(crate) struct EarlyModule<'m> {
    module: &'m Module,
    values: ConstValues,
    others: Others<'m>,
    /// Values of all variables of a root module, evaluated when a source needs the first one that is not const.
    of_root: OnceLock<ConstValues>,
    /// The selected workspace, for sources in the language of OpenTofu.
    selected: Option<&'m str>,
    /// Working directory, as `path.cwd` returns it.
    cwd: &'m str,
    /// The selected workspace, in a scope that `of_root` created: there, all variables are known, and a reference to anything else that is
    /// not known before a plan is an error.
    workspace: Option<&'m str>,
    /// Questions for variables of a root module without a value, if everything else is an error.
    questions: Option<&'m Questions>,
    functions: FunctionSettings,
    locals: Mutex<Locals>,
}

/// Local values that have been or are being evaluated, and the problems of their evaluation.
#[derive(Default)]
struct Locals {
    /// Results by name; `None` after an error.
    done: BTreeMap<Arc<str>, Option<Value>>,
    /// Names of values whose dependencies are being evaluated, outermost first. A repetition is a cycle.
    waiting: Vec<Arc<str>>,
    problems: Diagnostics,
}

/// Marks an argument without a usable value. An error has been reported: for the argument itself, or for the value that it depends on.
struct Unusable;

impl<'m> EarlyModule<'m> {
    /// Creates the scope of a module with these values of its const variables. Functions also see the mounted
    /// directories.
    pub fn new(module: &'m Module, values: ConstValues, cwd: &'m str, mounts: Option<&Arc<Mounts>>) -> EarlyModule<'m> {
        EarlyModule {
            module,
            values,
            others: Others::Unknown,
            of_root: OnceLock::new(),
            selected: None,
            cwd,
            workspace: None,
            questions: None,
            functions: FunctionSettings {
                mounts: mounts.cloned(),
                // A source that changes with every call would never match the
                // installed module: the results of such functions are unknown.
                pure: true,
                ..FunctionSettings::default()
            },
            locals: Mutex::default(),
        }
    }

    /// Creates the scope of a root module with the values of all its variables. A variable without one is asked for if that is
    /// possible. Everything that is not known before a plan is an error.
    pub fn of_root(
        module: &'m Module,
        values: ConstValues,
        questions: Option<&'m Questions>,
        cwd: &'m str,
        workspace: &'m str,
    ) -> EarlyModule<'m> {
        EarlyModule {
            workspace: Some(workspace),
            questions,
            functions: FunctionSettings::default(),
            ..EarlyModule::new(module, values, cwd, None)
        }
    }

    /// In the language of OpenTofu, makes the values of variables that are not const, and the name of the workspace, available. In that of
    /// Terraform, returns the scope unchanged.
    pub fn with_others(self, others: Others<'m>, workspace: &'m str) -> EarlyModule<'m> {
        if !Mode::current().has_opentofu() {
            return self;
        }
        EarlyModule {
            others,
            selected: Some(workspace),
            ..self
        }
    }

    /// Returns the value of a variable that is not const; `None` if it is not known here. Problems with values of root variables are
    /// not reported here, because the plan reports them.
    fn other(&self, variable: &Variable) -> Option<Value> {
        let default = || variable.default.clone();
        match self.others {
            Others::Unknown | Others::Root(RootVariables::None) => None,
            Others::Root(RootVariables::Known(values)) => values.get(&variable.name).cloned().or_else(default),
            Others::Root(RootVariables::Set(set)) => {
                let all = self.of_root.get_or_init(|| {
                    let found = values::collect(self.module, set).values.into_iter();
                    found.map(|(name, found)| (name, found.value)).collect()
                });
                let asked = || Some(set.questions()?.value(variable)?.value);
                all.get(&variable.name).cloned().or_else(asked)
            }
            Others::Call(caller, call) => {
                let Some(attribute) = call.inputs.attribute(&variable.name) else {
                    return default();
                };
                let (value, problems) = caller.evaluate_as(&attribute.expr, &Type::Dynamic);
                // The plan evaluates this argument again, and reports its problems.
                let failed = problems.has_errors() || caller.locals().problems.has_errors();
                let known = Some(value).filter(|value| !failed && value.is_wholly_known())?;
                variable.accept(&known, attribute.expr.range()).ok()
            }
        }
    }

    pub fn module(&self) -> &'m Module {
        self.module
    }

    pub fn into_values(self) -> ConstValues {
        self.values
    }

    fn locals(&self) -> MutexGuard<'_, Locals> {
        self.locals.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Evaluates the source and version of a call. `None` if the call has no source, or after a problem, which is
    /// reported.
    pub fn address(&self, call: &ModuleCall, diagnostics: &mut Diagnostics) -> Option<Arc<CallAddress>> {
        let source = call.source.as_ref()?;
        let version = match &call.version {
            None => None,
            Some(expr) => self.version(expr, diagnostics).ok()?,
        };
        let text = self.text(source, &SOURCE, diagnostics).ok()?;
        let Some(text) = text else {
            diagnostics.push(
                Diagnostic::error(
                    "Unsuitable module source",
                    "The source is null. A module call needs a source.",
                )
                .at(source.range()),
            );
            return None;
        };
        decode::call_address(&text, version, source, diagnostics).map(Arc::new)
    }

    fn version(&self, expr: &Expr, diagnostics: &mut Diagnostics) -> Result<Option<Constraint>, Unusable> {
        let Some(text) = self.text(expr, &VERSION, diagnostics)? else {
            return Ok(None);
        };
        match Constraint::parse(&text, Dialect::Module, expr.range()) {
            Ok(constraint) => Ok(Some(constraint)),
            Err(error) => {
                diagnostics.push(decode::invalid_constraint(&error, expr.range()));
                Err(Unusable)
            }
        }
    }

    /// Evaluates an argument to text; `None` for null. A reference that the argument may not contain is an error.
    fn text(
        &self,
        expr: &Expr,
        argument: &Argument,
        diagnostics: &mut Diagnostics,
    ) -> Result<Option<Arc<str>>, Unusable> {
        for traversal in lang::refs::traversals(expr) {
            // An invalid reference is reported by the evaluation below.
            let Ok(reference) = lang::refs::whole_reference(traversal) else {
                continue;
            };
            let is_workspace = matches!(&reference.subject, Referenceable::Terraform(name) if &**name == "workspace");
            let is_allowed = (argument.allows)(&reference.subject) || (is_workspace && self.selected.is_some());
            if !is_allowed {
                diagnostics.push(
                    Diagnostic::error(
                        format!("Invalid module {}", argument.name),
                        format!(
                            "The {} of a module is needed before anything of the configuration exists, so it can depend only \
                             on {}, and on local values that depend on nothing else.",
                            argument.name,
                            match self.selected {
                                Some(_) => "variables that are known then",
                                None => "const variables",
                            }
                        ),
                    )
                    .at(&reference.range),
                );
                return Err(Unusable);
            }
        }
        let (value, problems) = self.evaluate_as(expr, &Type::String);
        let failed = problems.has_errors();
        diagnostics.extend(problems);
        if failed || self.take_problems(diagnostics) {
            return Err(Unusable);
        }
        let (value, marks) = value.unmark();
        if value.is_null() {
            return Ok(None);
        }
        let unknown =
            |detail: String| Diagnostic::error(format!("Unknown module {}", argument.name), detail).at(expr.range());
        if !value.is_known() {
            if self.is_complete() {
                diagnostics.push(unknown(format!(
                    "The {} of a module must be known when the configuration is loaded: only literals, and variables {}, are \
                     known then.",
                    argument.name,
                    match self.selected {
                        Some(_) => "whose values depend on nothing else",
                        None => "with \"const = true\"",
                    }
                )));
            }
            return Err(Unusable);
        }
        if marks.is_sensitive() || marks.is_ephemeral() {
            diagnostics.push(unknown(format!(
                "The {} of a module is shown and stored, so it cannot depend on a sensitive or ephemeral value.",
                argument.name
            )));
            return Err(Unusable);
        }
        value.as_str().map(|text| Some(text.into())).ok_or(Unusable)
    }

    /// Returns true if every const variable has a value. If one has none, that has been reported, and other values may be unknown as a
    /// consequence.
    fn is_complete(&self) -> bool {
        let mut of_const = self.module.variables.values().filter(|v| v.is_const);
        of_const.all(|v| self.values.contains_key(&v.name))
    }

    /// Moves the problems of local values to `diagnostics`. Returns true if there were errors.
    pub(crate) fn take_problems(&self, diagnostics: &mut Diagnostics) -> bool {
        let problems = std::mem::take(&mut self.locals().problems);
        let failed = problems.has_errors();
        diagnostics.extend(problems);
        failed
    }

    fn evaluate_as(&self, expr: &Expr, ty: &Type) -> (Value, Diagnostics) {
        self.prepare(expr);
        evaluate_as(expr, ty, Context::new(self))
    }

    /// Evaluates the local values that an expression needs. Values that others depend on come first.
    pub(crate) fn prepare(&self, expr: &Expr) {
        // An explicit stack is used, because recursion would overflow the thread's stack on long chains of
        // local values.
        let mut stack: Vec<(Arc<str>, bool)> = needed_locals(expr);
        while let Some((name, ready)) = stack.pop() {
            let Some(local) = self.module.locals.get(&name) else {
                continue;
            };
            if ready {
                let (value, problems) = evaluate(&local.expr, Context::new(self));
                let mut locals = self.locals();
                locals.waiting.pop();
                let failed = problems.has_errors();
                locals.problems.extend(problems);
                locals.done.insert(name, (!failed).then_some(value));
                continue;
            }
            let mut locals = self.locals();
            // A cycle is left to `lookup`, which finds the name among the values being evaluated and reports
            // it.
            if locals.done.contains_key(&name) || locals.waiting.contains(&name) {
                continue;
            }
            locals.waiting.push(name.clone());
            drop(locals);
            stack.push((name, true));
            stack.extend(needed_locals(&local.expr));
        }
    }

    /// Evaluates the inputs of a call for the const variables of its module. Problems are reported.
    pub fn inputs(&self, call: &ModuleCall, module: &Module, diagnostics: &mut Diagnostics) -> ConstValues {
        let mut out = ConstValues::new();
        for variable in module.variables.values().filter(|v| v.is_const) {
            let Some(attribute) = call.inputs.attribute(&variable.name) else {
                // If it has no default either, `check_inputs` reports the missing argument.
                out.extend(variable.default.clone().map(|value| (variable.name.clone(), value)));
                continue;
            };
            let (value, problems) = self.evaluate_as(&attribute.expr, &Type::Dynamic);
            let failed = problems.has_errors();
            diagnostics.extend(problems);
            if failed || self.take_problems(diagnostics) {
                continue;
            }
            if !value.is_wholly_known() {
                if self.is_complete() {
                    diagnostics.push(
                        Diagnostic::error(
                            "Const variables must be known",
                            format!(
                                "The variable \"{}\" of this module has \"const = true\", so its value must be known when the \
                                 configuration is loaded: only literals and other const variables are known then.",
                                variable.name
                            ),
                        )
                        .at(attribute.expr.range()),
                    );
                }
                continue;
            }
            match variable.accept(&value, attribute.expr.range()) {
                Ok(value) => drop(out.insert(variable.name.clone(), value)),
                Err(problem) => diagnostics.push(*problem),
            }
        }
        out
    }

    /// Evaluates the inputs of a call whose module is not installed, as far as they are known.
    pub fn known_inputs(&self, call: &ModuleCall) -> ConstValues {
        let mut out = ConstValues::new();
        for attribute in &call.inputs.attributes {
            let (value, problems) = self.evaluate_as(&attribute.expr, &Type::Dynamic);
            if !problems.has_errors() && value.is_wholly_known() {
                out.insert(attribute.name.clone(), value);
            } else if self.selected.is_some() {
                // The value is unknown instead of missing, so that the default does not replace it.
                out.insert(attribute.name.clone(), Value::dynamic());
            }
        }
        // The inputs are evaluated again when the module is installed; problems are reported then.
        self.locals().problems = Diagnostics::new();
        out
    }

    /// Checks the const variables against their validations, as far as these can be decided here; the rest is left to
    /// the plan. `set_at` returns the range at which a variable is set.
    pub fn validate(&self, set_at: &dyn Fn(&str) -> Option<Range>, diagnostics: &mut Diagnostics) {
        let of_const = self.module.variables.values().filter(|v| v.is_const);
        for variable in of_const.filter(|v| self.values.contains_key(&v.name)) {
            for rule in &variable.validations {
                self.prepare(&rule.condition);
                self.prepare(&rule.error_message);
                diagnostics.extend(self.failure(variable, rule, set_at));
                self.take_problems(diagnostics);
            }
        }
    }

    fn failure(&self, variable: &Variable, rule: &CheckRule, set_at: &dyn Fn(&str) -> Option<Range>) -> Diagnostics {
        let context = Context::new(self);
        let (condition, problems) = evaluate_as(&rule.condition, &Type::Bool, context);
        if problems.has_errors() {
            return problems;
        }
        // An unknown condition passes here: the plan checks it again.
        if condition.unmark().0.as_bool() != Some(false) {
            return Diagnostics::new();
        }
        let (message, problems) = evaluate_as(&rule.error_message, &Type::String, context);
        if problems.has_errors() {
            return problems;
        }
        let (message, marks) = message.unmark();
        // The message is left out because it could reveal the value.
        let hidden = marks.is_sensitive() || marks.is_ephemeral();
        let message = match message.as_str() {
            Some(text) if !hidden => text.trim().to_owned(),
            _ => "The error message of the validation cannot be shown.".to_owned(),
        };
        let problem = Diagnostic::error(
            "Invalid value for variable",
            format!("{message}\n\nThe validation block is at {}.", rule.range),
        );
        let place = set_at(&variable.name).unwrap_or_else(|| variable.range.clone());
        with_expression(problem.at(&place), &rule.condition, context).into()
    }
}

/// Returns the local values that an expression refers to, each with `false`: not evaluated yet.
fn needed_locals(expr: &Expr) -> Vec<(Arc<str>, bool)> {
    let subjects = lang::refs::traversals(expr)
        .into_iter()
        .filter_map(|t| lang::refs::whole_reference(t).ok());
    subjects
        .filter_map(|r| match r.subject {
            Referenceable::Local(name) => Some((name, false)),
            _ => None,
        })
        .collect()
}

/// Argument of a module call that is evaluated while the configuration is loaded.
struct Argument {
    name: &'static str,
    /// Returns true for objects that the argument may refer to.
    allows: fn(&Referenceable) -> bool,
}

const SOURCE: Argument = Argument {
    name: "source",
    allows: |subject| {
        matches!(
            subject,
            Referenceable::Variable(_) | Referenceable::Local(_) | Referenceable::Path(_)
        )
    },
};

const VERSION: Argument = Argument {
    name: "version",
    allows: |subject| matches!(subject, Referenceable::Variable(_) | Referenceable::Local(_)),
};

fn error(reference: &Reference, summary: &str, detail: String) -> EvaluationError {
    Diagnostic::error(summary, detail).at(&reference.range).into()
}

/// Creates the error for an object that is not known before a plan.
fn dynamic(reference: &Reference, subject: &Referenceable) -> EvaluationError {
    let summary = match subject {
        Referenceable::Module(_) => "Module output not supported in static context",
        Referenceable::Terraform(_) => "Invalid attribute in static context",
        _ => "Dynamic value in static context",
    };
    let detail = format!(
        "{subject} is not known before a plan is made, and this value is needed earlier. Only input variables, local values \
         made of them, paths, functions and terraform.workspace can be used here."
    );
    error(reference, summary, detail)
}

fn misspelt(reference: &Reference, summary: &str, detail: String, name: &str, near: Option<&Near>) -> EvaluationError {
    let problem = Diagnostic::error(summary, detail).at(&reference.range);
    problem.misspelt(name, &reference.range, near).into()
}

impl Scope for EarlyModule<'_> {
    fn lookup(&self, reference: &Reference) -> Result<Value, EvaluationError> {
        let module = self.module;
        match &reference.subject {
            Referenceable::Variable(name) => {
                let Some(variable) = module.variables.get(name) else {
                    let near = near(name, module.variables.keys().map(|n| &**n));
                    return Err(misspelt(
                        reference,
                        "Reference to undeclared input variable",
                        format!("The module has no variable \"{name}\".{}", hint(near.as_ref())),
                        name,
                        near.as_ref(),
                    ));
                };
                let all = self.workspace.is_some();
                let asked = || Some(self.questions?.value(variable)?.value);
                let known = self.values.get(name).filter(|_| variable.is_const || all).cloned();
                let known = known.or_else(asked);
                if all && known.is_none() {
                    return Err(error(
                        reference,
                        "Required variable not set",
                        format!(
                            "The variable \"{name}\" is needed here, and has no usable value. Set it with -var '{name}=…', in a \
                             variable file, or in the environment as TF_VAR_{name}."
                        ),
                    ));
                }
                if self.selected.is_some() && variable.written.is_const && !variable.is_const {
                    return Err(error(
                        reference,
                        "Unable to use variable in static context",
                        format!(
                            "The variable \"{name}\" has \"const = false\", and this value is needed before a plan is made."
                        ),
                    ));
                }
                let known = known.or_else(|| self.other(variable));
                let value = known.unwrap_or_else(|| Value::unknown(variable.value_type()));
                Ok(value.with_marks(variable.marks()))
            }
            Referenceable::Local(name) => {
                if !module.locals.contains_key(name) {
                    let near = near(name, module.locals.keys().map(|n| &**n));
                    return Err(misspelt(
                        reference,
                        "Reference to undeclared local value",
                        format!("The module has no local value \"{name}\".{}", hint(near.as_ref())),
                        name,
                        near.as_ref(),
                    ));
                }
                let locals = self.locals();
                if let Some(value) = locals.done.get(name) {
                    return value.clone().ok_or(EvaluationError::Reported);
                }
                // A value that is not evaluated yet depends on itself: the names from its first occurrence on form
                // the cycle.
                let from = locals.waiting.iter().position(|n| n == name).unwrap_or_default();
                let names: Vec<String> = locals.waiting[from..].iter().map(|n| format!("local.{n}")).collect();
                Err(error(
                    reference,
                    &format!("Cycle: {}", names.join(", ")),
                    "Each of these values is needed to evaluate the next one, and the last one for the first.".into(),
                ))
            }
            Referenceable::Path(name) => match &**name {
                "module" => Ok(Value::string(&module.source_dir)),
                "root" => Ok(Value::string(".")),
                "cwd" => Ok(Value::string(self.cwd)),
                other => Err(error(
                    reference,
                    "Invalid \"path\" attribute",
                    format!("There is no path.{other}. The attributes are path.cwd, path.module and path.root."),
                )),
            },
            Referenceable::Terraform(name) if &**name == "workspace" && self.workspace.is_some() => {
                Ok(Value::string(self.workspace.unwrap_or_default()))
            }
            Referenceable::Terraform(name) if &**name == "workspace" && self.selected.is_some() => {
                Ok(Value::string(self.selected.unwrap_or_default()))
            }
            other if self.workspace.is_some() => Err(dynamic(reference, other)),
            _ => Ok(Value::unknown(Type::Dynamic)),
        }
    }

    fn functions(&self) -> Option<&FunctionSettings> {
        Some(&self.functions)
    }

    /// Accepts any provider function: providers are not running yet, so their signatures are unknown. In a scope that
    /// `of_root` created, a call is an error.
    fn provider_function(&self, provider: &str, function: &str) -> Result<Arc<Signature>, CallError> {
        if self.workspace.is_some() {
            return Err(CallError::Unknown(Diagnostic::error(
                "Provider function in static context",
                format!("No provider is running yet, so \"provider::{provider}::{function}\" cannot be called here."),
            )));
        }
        Ok(Arc::new(Signature {
            parameters: Vec::new(),
            variadic: Some(Parameter {
                name: "arguments".into(),
                ty: Type::Dynamic,
                allow_null: true,
                allow_unknown: true,
            }),
            result: Type::Dynamic,
        }))
    }
}
