//! Scope of expressions in a module instance: references and functions.

use std::sync::Arc;

use addrs::{ModuleInstance, Referenceable, Resource};
use config::{Module, ModuleNode};
use cty::{Marks, Value};
use lang::functions::CallError;
use lang::provider_function::Signature;
use lang::scope::{EvaluationError, FunctionSettings, ProviderCall, Reference, Scope, Witness};
use syntax::ast::TraversalStep;
use syntax::content::{hint, near};
use syntax::{Diagnostic, Range};

use super::objects::ReferencedResource;
use super::{Evaluator, Expansion, Repetition};
use crate::blocks::undeclared;

pub struct ModuleScope<'e> {
    pub(super) evaluator: &'e Evaluator<'e>,
    pub(super) module: ModuleInstance,
    pub(super) node: &'e ModuleNode,
    pub(super) repetition: Repetition,
    pub(super) self_value: Option<Value>,
    /// Value of `caller`, which only the configuration of an action has.
    pub(super) caller: Option<Value>,
    /// Set if functions that read files may return other results than in earlier calls, as Terraform allows in provider configurations.
    pub(super) files_may_change: bool,
    /// Value of a variable for its own validations, if references elsewhere get another value.
    pub(super) own_value: Option<(Arc<str>, Value)>,
}

fn error(reference: &Reference, summary: &str, detail: impl Into<String>) -> EvaluationError {
    Diagnostic::error(summary, detail).at(&reference.range).into()
}

/// Maximum number of output values that an error lists.
const OUTPUTS: usize = 12;

/// Creates the error for an undeclared output of a module. The general error for a missing attribute could not list the other outputs,
/// because the object of a module contains only the outputs that the expression refers to.
fn no_output(call: &str, module: &Module, output: &str, range: &Range) -> Diagnostic {
    let names = module.outputs.keys().map(|name| &**name);
    let near = near(output, names.clone());
    let mut listed: Vec<String> = names.take(OUTPUTS).map(|name| format!("\"{name}\"")).collect();
    let more = module.outputs.len().saturating_sub(listed.len());
    if more > 0 {
        listed.push(format!("{more} more"));
    }
    let there = match listed.split_last() {
        None => "It has no output values.".to_owned(),
        Some((only, [])) => format!("Its only output value is {only}."),
        Some((last, others)) => format!("Its output values are {} and {last}.", others.join(", ")),
    };
    Diagnostic::error(
        "Unsupported attribute",
        format!(
            "The module \"{call}\" has no output value \"{output}\".{} {there}",
            hint(near.as_ref())
        ),
    )
    .at(range)
    .misspelt(output, range, near.as_ref())
}

impl ModuleScope<'_> {
    /// Allows functions that read files to return other results than in earlier calls.
    #[must_use]
    pub fn allowing_changed_files(mut self) -> Self {
        self.files_may_change = true;
        self
    }

    /// Checks the instance key of a reference. If the subject has `count` or `for_each`, a key must precede an attribute. Otherwise no
    /// key is allowed.
    fn check_key(&self, reference: &Reference, expansion: &Expansion, what: &str) -> Result<(), EvaluationError> {
        let subject = &reference.subject;
        let next = reference.remaining.first();
        match (expansion, next) {
            (Expansion::Count(_) | Expansion::ForEach(_), Some(TraversalStep::Attribute { name, range })) => {
                let (argument, example) = match expansion {
                    Expansion::Count(_) => ("count", format!("{subject}[count.index]")),
                    _ => ("for_each", format!("{subject}[each.key]")),
                };
                // An instance of a module with `for_each` may be selected in the form of an attribute.
                if let Expansion::ForEach(items) = expansion
                    && items.contains_key(name)
                    && what == "module"
                {
                    return Ok(());
                }
                Err(Diagnostic::error(
                    match what {
                        "module" => "Unsupported attribute".to_owned(),
                        _ => format!("Missing {what} instance key"),
                    },
                    format!(
                        "{subject} has the argument \"{argument}\", so it is a collection of instances. Select one of \
                         them before its attributes.\n\nWhere both blocks have the same instances, write:\n    \
                         {example}"
                    ),
                )
                .at(range)
                .within(&reference.range.to(range))
                .into())
            }
            (Expansion::Single | Expansion::Disabled, Some(TraversalStep::Index { range, .. })) => Err(Diagnostic::error(
                format!("Unexpected {what} instance key"),
                format!(
                    "{subject} has neither \"count\" nor \"for_each\", so there is one instance of this {what} and no \
                     key to select it by. Remove the index."
                ),
            )
            .at(range)
            .into()),
            _ => Ok(()),
        }
    }

    fn path(&self, reference: &Reference, name: &str) -> Result<Value, EvaluationError> {
        match name {
            "module" => Ok(Value::string(&self.node.module.source_dir)),
            "root" => Ok(Value::string(".")),
            "cwd" => Ok(Value::string(&self.evaluator.environment.cwd)),
            other => Err(error(
                reference,
                "Invalid \"path\" attribute",
                format!("There is no path.{other}. The attributes are path.cwd, path.module and path.root."),
            )),
        }
    }

    fn terraform(&self, reference: &Reference, name: &str) -> Result<Value, EvaluationError> {
        match name {
            "workspace" => Ok(Value::string(&self.evaluator.environment.workspace)),
            // The value differs between plan and apply, so it is ephemeral: it must not be stored.
            "applying" => Ok(Value::bool(self.evaluator.environment.applying).with_marks(Marks::EPHEMERAL)),
            "env" => Err(error(
                reference,
                "Invalid \"terraform\" attribute",
                "The terraform.env attribute was renamed in v0.10 and removed in v0.12; use terraform.workspace instead.",
            )),
            other => Err(error(
                reference,
                "Invalid \"terraform\" attribute",
                format!(
                    "There is no terraform.{other}. The attributes are terraform.applying and terraform.workspace."
                ),
            )),
        }
    }

    fn resource(&self, reference: &Reference, resource: &Resource) -> Result<Value, EvaluationError> {
        let address = resource.absolute(&self.module);
        let referenced = ReferencedResource {
            evaluator: self.evaluator,
            address: &address,
            block: self
                .node
                .module
                .resources
                .get(resource)
                .ok_or(EvaluationError::Reported)?,
        };
        let rule = self.evaluator.source.key_rule(&referenced)?;
        if let Some(expansion) = rule {
            self.check_key(reference, &expansion, "resource")?;
        }
        self.evaluator
            .resource_value(&referenced)
            .map_err(EvaluationError::from)
    }

    fn module_call(&self, reference: &Reference, name: &Arc<str>) -> Result<Value, EvaluationError> {
        let evaluator = self.evaluator;
        let expansion = evaluator.call_expansion(&self.module, name)?;
        self.check_key(reference, &expansion, "module")?;
        // Only the output in the reference is evaluated, because another output may depend on the block with the reference.
        let only = match (reference.remaining.as_slice(), &*expansion) {
            (
                [TraversalStep::Attribute { name, .. }, ..],
                Expansion::Single | Expansion::Disabled | Expansion::Unknown { .. },
            ) => Some(name),
            ([TraversalStep::Index { .. }, TraversalStep::Attribute { name, .. }, ..], _) => Some(name),
            _ => None,
        };
        evaluator
            .module_value(&self.module, self.node, name, only)
            .map_err(EvaluationError::from)
    }

    fn count(&self, reference: &Reference, name: &str) -> Result<Value, EvaluationError> {
        if name != "index" {
            return Err(error(
                reference,
                "Invalid \"count\" attribute",
                format!(
                    "There is no count.{name}. The one attribute is count.index, the number of the instance, from 0."
                ),
            ));
        }
        self.repetition.index.clone().ok_or_else(|| {
            error(
                reference,
                "Reference to \"count\" in non-counted context",
                "count.index exists in module, resource and data blocks that have the argument \"count\"; this \
                 block has none.",
            )
        })
    }

    fn each(&self, reference: &Reference, name: &str) -> Result<Value, EvaluationError> {
        match (&self.repetition.each, name) {
            (Some((key, _)), "key") => Ok(key.clone()),
            (Some((_, value)), "value") => Ok(value.clone()),
            (None, "value") => Err(error(
                reference,
                "each.value cannot be used in this context",
                "each.value exists in module, resource and data blocks that have the argument \"for_each\"; this \
                 block has none.",
            )),
            (None, "key") => Err(error(
                reference,
                "Reference to \"each\" in context without for_each",
                "each.key exists in module, resource and data blocks that have the argument \"for_each\"; this \
                 block has none.",
            )),
            _ => Err(error(
                reference,
                "Invalid \"each\" attribute",
                format!(
                    "There is no each.{name}. The attributes are each.key and each.value, of the element of \
                     \"for_each\" that the instance is made for."
                ),
            )),
        }
    }

    fn self_object(&self, reference: &Reference) -> Result<Value, EvaluationError> {
        self.self_value.clone().ok_or_else(|| {
            error(
                reference,
                "Invalid \"self\" reference",
                "\"self\" is the object of the enclosing resource. It exists in the provisioner, connection and \
                 postcondition blocks of a resource.",
            )
        })
    }
}

impl<'e> ModuleScope<'e> {
    /// Returns the scope of the configuration of an action, with the object that triggers it.
    #[must_use]
    pub fn called_by(mut self, caller: Value) -> ModuleScope<'e> {
        // The object that triggers the action is available as `caller` and as `self`.
        self.self_value = Some(caller.clone());
        self.caller = Some(caller);
        self
    }

    fn calling_object(&self, reference: &Reference) -> Result<Value, EvaluationError> {
        self.caller.clone().ok_or_else(|| {
            error(
                reference,
                "Invalid \"caller\" reference",
                "\"caller\" is the object of the resource that triggers an action. It exists in the configuration of actions that a \
                 resource triggers.",
            )
        })
    }
}

impl Scope for ModuleScope<'_> {
    fn explain(&self, reference: &Reference, problem: Diagnostic) -> Diagnostic {
        let Referenceable::Module(call) = &reference.subject else {
            return problem;
        };
        let (output, range) = match reference.remaining.as_slice() {
            [TraversalStep::Attribute { name, range }, ..]
            | [
                TraversalStep::Index { .. },
                TraversalStep::Attribute { name, range },
                ..,
            ] => (name, range),
            _ => return problem,
        };
        match self.node.children.get(call) {
            // Only an error at the name of the output is replaced. Other errors are about the value of the output.
            Some(child) if problem.subject.as_ref() == Some(range) && !child.module.outputs.contains_key(output) => {
                no_output(call, &child.module, output, range)
            }
            _ => problem,
        }
    }

    fn lookup(&self, reference: &Reference) -> Result<Value, EvaluationError> {
        let evaluator = self.evaluator;
        match &reference.subject {
            Referenceable::Variable(name) => match &self.own_value {
                // In the validations of a variable, the value is not cached yet, because it is being validated.
                Some((own, value)) if own == name => Ok(value.clone()),
                _ => evaluator
                    .variable(&self.module, self.node, name)
                    .map_err(EvaluationError::from),
            },
            Referenceable::Local(name) => evaluator
                .local(&self.module, self.node, name)
                .map_err(EvaluationError::from),
            Referenceable::Resource(resource) => self.resource(reference, resource),
            Referenceable::Module(name) => self.module_call(reference, name),
            Referenceable::Count(name) => self.count(reference, name),
            Referenceable::Each(name) => self.each(reference, name),
            Referenceable::Path(name) => self.path(reference, name),
            Referenceable::Terraform(name) => self.terraform(reference, name),
            Referenceable::SelfRef => self.self_object(reference),
            Referenceable::Caller => self.calling_object(reference),
            Referenceable::Action(_) | Referenceable::ActionInstance(_) => Err(error(
                reference,
                "Invalid reference",
                "An action has no value. It can be named in the \"actions\" of an action_trigger block only.",
            )),
            other => Err(error(
                reference,
                "Invalid reference",
                format!("{other} cannot be referred to here."),
            )),
        }
    }

    fn check(&self, reference: &Reference) -> Result<(), Diagnostic> {
        undeclared(self.node, reference, &mut 0).map_or(Ok(()), Err)
    }

    fn functions(&self) -> Option<&FunctionSettings> {
        Some(&self.evaluator.environment.functions)
    }

    // Test coverage counts evaluations in module instances, and static evaluation is in none.
    fn witness(&self) -> Option<&dyn Witness> {
        let witness = self.evaluator.environment.witness.as_deref();
        witness.filter(|_| !self.evaluator.is_static())
    }

    fn check_result(&self, function: &str, arguments: &[Value], result: &Value) -> Result<(), CallError> {
        let evaluator = self.evaluator;
        // While the console runs, users may change files. In static evaluation, results are not used.
        if self.files_may_change || evaluator.is_static() || evaluator.environment.functions.console {
            return Ok(());
        }
        match evaluator.functions {
            Some(functions) => functions.check_file_function(function, arguments, result),
            None => Ok(()),
        }
    }

    fn provider_function(&self, provider: &str, function: &str) -> Result<Arc<Signature>, CallError> {
        match self.evaluator.functions {
            Some(functions) => self.provider_function_signature(functions, provider, function),
            None => Err(CallError::Unknown(Diagnostic::error(
                "Unknown provider function",
                "Functions of providers cannot be called here.",
            ))),
        }
    }

    fn call_provider_function(&self, call: &ProviderCall<'_>) -> Result<Value, CallError> {
        match self.evaluator.functions {
            Some(functions) => self.provider_function_result(functions, call),
            None => Err(CallError::Failed("functions of providers cannot be called here".into())),
        }
    }
}
