//! Evaluation after an operation, for expressions that are not a part of the configuration, such as the assertions of
//! tests. Every value is computed at the first reference to it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use addrs::{AbsResource, AbsResourceInstance, ModuleInstance};
use config::Config;
use cty::Value;
use lang::scope::Scope;
use provider::{ProviderSource, Schemas};
use state::State;
use syntax::Diagnostics;
use syntax::ast::Expr;

use crate::blocks::Blocks;
use crate::console::set_planned_objects;
use crate::eval::objects::{ObjectSource, Objects, ReferencedResource};
use crate::eval::{Evaluator, Reported};
use crate::functions::Functions;
use crate::inputs::EvaluationEnvironment;
use crate::plan::Plan;
use crate::state_objects::StateObjects;

/// Results of an operation, as expressions see them.
#[derive(Clone, Copy)]
pub struct Results<'a> {
    /// Configuration of the root module.
    pub config: &'a Config,
    /// State; with a plan, its prior state.
    pub state: &'a State,
    /// Plan, if it was not applied: expressions see planned values.
    pub plan: Option<&'a Plan>,
    /// Values of the ephemeral resources that the operation has opened.
    pub ephemerals: &'a BTreeMap<AbsResourceInstance, Value>,
    /// Timestamp of the plan.
    pub timestamp: Option<&'a str>,
    /// Schemas of the providers of the objects.
    pub schemas: &'a Schemas,
    /// Values of the root variables, converted to their declared types, without marks.
    pub variables: &'a BTreeMap<Arc<str>, Value>,
    /// Functions of providers.
    pub functions: &'a Functions<'a>,
    /// Evaluation environment of the operation.
    pub environment: &'a EvaluationEnvironment,
    /// Source of the providers, which may override the outputs of modules.
    pub providers: &'a dyn ProviderSource,
}

/// Evaluator of expressions in the root module after an operation.
pub struct Assertions<'a> {
    evaluator: Evaluator<'a>,
}

/// Checks the references of expressions that are evaluated in the root module but are not part of its files, such as the assertions of
/// tests.
pub struct References {
    blocks: Blocks,
}

impl References {
    /// Creates the checker for the root module of a configuration.
    #[must_use]
    pub fn new(config: &Config, schemas: &Schemas) -> References {
        References {
            blocks: Blocks::build_with_errors(config, schemas, &[]).0,
        }
    }

    /// Returns the errors in the references of an expression.
    pub fn check(&mut self, config: &Config, schemas: &Schemas, expr: &Expr) -> Diagnostics {
        self.blocks.check_references(config, schemas, &config.root, expr)
    }
}

/// Objects of a state. The value of a configured instance without an object is unknown.
struct Known<'a>(StateObjects<'a>);

impl ObjectSource for Known<'_> {
    fn initial_objects(&self, resource: &AbsResource) -> Objects {
        self.0.of_resource(resource)
    }

    fn value(&self, resource: &ReferencedResource<'_>) -> Result<Value, Reported> {
        resource.configured_instances()
    }
}

impl<'a> Assertions<'a> {
    /// Creates the evaluator for the results of an operation.
    #[must_use]
    pub fn new(results: Results<'a>) -> Assertions<'a> {
        let mut environment = results.environment.clone();
        // In a plan, functions like `timestamp` have unknown values, as they had when the plan was made.
        environment.functions.pure = results.plan.is_some();
        environment.functions.plan_timestamp = results.timestamp.map(str::to_owned);
        let objects = StateObjects {
            state: Arc::new(Mutex::new(results.state.clone())),
            schemas: results.schemas,
        };
        let evaluator = Evaluator::new(results.config, environment, results.variables, Box::new(Known(objects)))
            .with_functions(results.functions)
            .with_schemas(results.schemas)
            .with_module_outputs(results.providers);
        if let Some(plan) = results.plan {
            set_planned_objects(&evaluator, plan);
        }
        for (address, value) in results.ephemerals {
            evaluator.set_object(address, value.clone());
        }
        Assertions { evaluator }
    }

    /// Returns the scope of the root module.
    #[must_use]
    pub fn scope(&self) -> Option<impl Scope + '_> {
        self.evaluator.scope(&ModuleInstance::root())
    }

    /// Returns the value of an output of the root module; unknown if it cannot be evaluated.
    #[must_use]
    pub fn output(&self, name: &Arc<str>) -> Value {
        let node = &self.evaluator.config().root;
        let value = self.evaluator.output(&ModuleInstance::root(), node, name);
        // The operation has reported the errors of the output.
        drop(self.evaluator.take_diagnostics());
        value.unwrap_or_else(|_| Value::dynamic())
    }

    /// Takes the diagnostics of the evaluations since the last call.
    pub fn take_diagnostics(&self) -> Diagnostics {
        self.evaluator.take_diagnostics()
    }
}
