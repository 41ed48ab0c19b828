//! Evaluation after an operation: what expressions see that are not a part of the configuration, such as the assertions of tests.
//! Every value is computed at the first reference to it, and none that nobody refers to.

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

/// What there is after an operation.
#[derive(Clone, Copy)]
pub struct Results<'a> {
    /// The configuration.
    pub config: &'a Config,
    /// The state; with a plan, its prior state.
    pub state: &'a State,
    /// The plan, if it was not applied: expressions see planned values.
    pub plan: Option<&'a Plan>,
    /// The values of the ephemeral resources that the operation has opened.
    pub ephemerals: &'a BTreeMap<AbsResourceInstance, Value>,
    /// The time of the plan.
    pub timestamp: Option<&'a str>,
    /// The schemas of the providers of the objects.
    pub schemas: &'a Schemas,
    /// The values of the root variables, converted, without marks.
    pub variables: &'a BTreeMap<Arc<str>, Value>,
    /// The functions of providers.
    pub functions: &'a Functions,
    /// The evaluation environment.
    pub environment: &'a EvaluationEnvironment,
    /// Where providers came from, which may give modules outputs.
    pub providers: &'a dyn ProviderSource,
}

/// Evaluates in the root module after an operation.
pub struct Assertions<'a> {
    evaluator: Evaluator<'a>,
}

/// The errors in the references of expressions that are evaluated in the root module without being a part of its files.
/// Expressions may also refer to what this module does not know: `skip` says which references those are.
pub struct References {
    blocks: Blocks,
}

impl References {
    /// For the root module of a configuration.
    #[must_use]
    pub fn new(config: &Config, schemas: &Schemas) -> References {
        References {
            blocks: Blocks::build_with_errors(config, schemas, &[]).0,
        }
    }

    /// The errors in an expression.
    pub fn check(&mut self, config: &Config, schemas: &Schemas, expr: &Expr) -> Diagnostics {
        self.blocks.check_references(config, schemas, &config.root, expr)
    }
}

/// The objects of a state. Configured instances without an object are unknown.
struct Known<'a>(StateObjects<'a>);

impl ObjectSource for Known<'_> {
    fn initial_objects(&self, resource: &AbsResource) -> Objects {
        self.0.of(resource)
    }

    fn value(&self, resource: &ReferencedResource<'_>) -> Result<Value, Reported> {
        resource.configured_instances()
    }
}

impl<'a> Assertions<'a> {
    /// What is known after an operation.
    #[must_use]
    pub fn new(results: Results<'a>) -> Assertions<'a> {
        let mut environment = results.environment.clone();
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

    /// The scope of the root module.
    #[must_use]
    pub fn scope(&self) -> Option<impl Scope + '_> {
        self.evaluator.scope(&ModuleInstance::root())
    }

    /// The value of an output of the root module; unknown if it cannot be evaluated.
    #[must_use]
    pub fn output(&self, name: &Arc<str>) -> Value {
        let node = &self.evaluator.config().root;
        let value = self.evaluator.output(&ModuleInstance::root(), node, name);
        // The operation has reported what is wrong with it.
        drop(self.evaluator.take_diagnostics());
        value.unwrap_or_else(|_| Value::dynamic())
    }

    /// Takes what evaluation has reported.
    pub fn take_diagnostics(&self) -> Diagnostics {
        self.evaluator.take_diagnostics()
    }
}
