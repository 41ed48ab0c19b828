//! Evaluation of single expressions for the console. A [`Console`] evaluates in a module of a configuration, with the objects of a state
//! or of a plan. At the start it evaluates all variables, local values, outputs, and repetition arguments of module calls and actions,
//! and reports their errors once. Values that failed are unknown in expressions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use addrs::{AbsResource, ModuleInstance};
use config::{Config, ModuleNode};
use cty::{Marks, Type, Value};
use lang::eval::{Context, evaluate};
use state::State;
use syntax::{Diagnostic, Diagnostics, Pos};

use crate::block_visits;
use crate::blocks::{Block, Blocks};
use crate::eval::checks::FailureSeverity;
use crate::eval::objects::{ObjectSource, Objects, ReferencedResource};
use crate::eval::{Evaluator, Expansion, Reported};
use crate::functions::Functions;
use crate::inputs::EvaluationEnvironment;
use crate::plan::{Action, Plan};
use crate::state_objects::stored_objects;
use provider::Schemas;

/// File name of console input in diagnostics.
pub const INPUT_NAME: &str = "<console-input>";

/// Evaluator of expressions. See the module's documentation.
pub struct Console<'a> {
    evaluator: Evaluator<'a>,
    blocks: Blocks,
    schemas: &'a Schemas,
    module: ModuleInstance,
}

/// Objects and values that expressions see beside the configuration.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// State; with a plan, the prior state.
    pub state: &'a State,
    /// Plan, if expressions see its planned values.
    pub plan: Option<&'a Plan>,
    /// Schemas of the providers of the objects.
    pub schemas: &'a Schemas,
    /// Values of the root variables, converted to their declared types, without marks.
    pub variables: &'a BTreeMap<Arc<str>, Value>,
    /// Functions of providers. More providers can be started later.
    pub functions: &'a Functions<'a>,
    pub environment: &'a EvaluationEnvironment,
}

/// Objects of the state, without a plan. Resources without objects may be created later, so their values are unknown.
struct ExistingObjects<'a>(View<'a>);

impl ObjectSource for ExistingObjects<'_> {
    fn initial_objects(&self, resource: &AbsResource) -> Objects {
        stored_objects(self.0.state, self.0.schemas, resource)
    }

    fn key_rule(&self, resource: &ReferencedResource<'_>) -> Result<Option<Arc<Expansion>>, Reported> {
        Ok(Some(Arc::new(resource.empty_expansion())))
    }

    fn value(&self, resource: &ReferencedResource<'_>) -> Result<Value, Reported> {
        if resource.objects().is_empty() {
            return Ok(resource.without_objects(self.0.schemas));
        }
        Ok(resource.existing_instances())
    }
}

/// Objects of the state with the changes of a plan.
struct PlanOutcome<'a>(View<'a>);

impl ObjectSource for PlanOutcome<'_> {
    fn initial_objects(&self, resource: &AbsResource) -> Objects {
        stored_objects(self.0.state, self.0.schemas, resource)
    }

    fn value(&self, resource: &ReferencedResource<'_>) -> Result<Value, Reported> {
        resource.configured_instances()
    }
}

impl<'a> Console<'a> {
    /// Creates a console in the root module of a configuration, with the diagnostics of the configuration. `None` if
    /// its blocks have a cycle.
    #[must_use]
    pub fn new(config: &'a Config, view: View<'a>) -> (Option<Console<'a>>, Diagnostics) {
        let (blocks, mut problems) = Blocks::build_with_errors(config, view.schemas, &[]);
        let order = match petgraph::algo::toposort(&blocks.graph, None) {
            Ok(order) => order,
            Err(_) => {
                if !problems.has_errors() {
                    problems = Blocks::build(config, view.schemas, &[]).err().unwrap_or_default();
                }
                return (None, problems);
            }
        };
        let mut environment = view.environment.clone();
        environment.functions.console = true;
        let source: Box<dyn ObjectSource> = match view.plan {
            Some(plan) => {
                environment.functions.pure = true;
                environment.functions.plan_timestamp = Some(plan.timestamp.clone());
                Box::new(PlanOutcome(view))
            }
            None => {
                environment.functions.plan_timestamp = None;
                Box::new(ExistingObjects(view))
            }
        };
        let evaluator = Evaluator::new(config, environment, view.variables, source)
            .with_functions(view.functions)
            .with_schemas(view.schemas);
        if let Some(plan) = view.plan {
            set_planned_objects(&evaluator, plan);
        }
        // In dependency order, so that evaluating a block never recurses through a long chain of blocks that are not evaluated yet.
        for node in order {
            // A failure has been reported once here, and references to it report nothing.
            let _: Result<(), Reported> = visit(&evaluator, &blocks.graph[node]);
        }
        problems.extend(evaluator.take_diagnostics());
        let console = Console {
            evaluator,
            blocks,
            schemas: view.schemas,
            module: ModuleInstance::root(),
        };
        (Some(console), problems)
    }

    /// Moves the console into a module instance; `None` if there is no such instance, or if the instances of the module cannot be
    /// evaluated.
    #[must_use]
    pub fn inside(mut self, module: ModuleInstance) -> Option<Console<'a>> {
        self.evaluator.config().node(&module.module())?;
        let instances = self.evaluator.module_instances(&module.module());
        // `Console::new` has reported these errors.
        drop(self.evaluator.take_diagnostics());
        instances.ok()?.contains(&module).then(|| {
            self.module = module;
            self
        })
    }

    fn node(&self) -> &'a ModuleNode {
        let config = self.evaluator.config();
        config.node(&self.module.module()).unwrap_or(&config.root)
    }

    /// Returns the providers whose functions an expression calls. Calls with a local name that is not in the `required_providers` of the
    /// module are left out.
    #[must_use]
    pub fn function_providers(&self, text: &str) -> BTreeSet<addrs::Provider> {
        let (expr, _) = syntax::parse_expression(INPUT_NAME, text, Pos::default());
        let required = &self.node().module.required_providers;
        lang::refs::provider_functions(&expr)
            .into_iter()
            .filter_map(|call| Some(required.get(&call.provider)?.provider.clone()))
            .collect()
    }

    /// Evaluates an expression.
    pub fn evaluate(&mut self, text: &str) -> Result<Value, Diagnostics> {
        let (expr, problems) = syntax::parse_expression(INPUT_NAME, text, Pos::default());
        if problems.has_errors() {
            return Err(problems);
        }
        let config = self.evaluator.config();
        let mut problems = self.blocks.check_references(config, self.schemas, self.node(), &expr);
        if problems.has_errors() {
            return Err(problems);
        }
        let Some(scope) = self.evaluator.scope(&self.module) else {
            return Ok(Value::dynamic());
        };
        let (value, found) = evaluate(&expr, Context::new(&scope));
        problems.extend(found);
        problems.extend(self.evaluator.take_diagnostics());
        if problems.has_errors() {
            return Err(problems);
        }
        // `type` returns a description of a type, which is shown as is, because it is not a value of the language.
        let is_type = value.marks().contains(Marks::TYPE) && matches!(value.ty(), Type::Tuple(_));
        if value.deep_marks().contains(Marks::TYPE) && !is_type {
            return Err(Diagnostic::error(
                "Invalid use of type function",
                "The \"type\" function exists in the console only, and only as the outermost call.",
            )
            .into());
        }
        Ok(value)
    }
}

fn visit(evaluator: &Evaluator<'_>, block: &Block) -> Result<(), Reported> {
    match block {
        Block::Variable(module, name) => block_visits::visit_variable(evaluator, module, name),
        Block::Local(module, name) => block_visits::visit_local(evaluator, module, name),
        Block::Output(module, name) => block_visits::visit_output(evaluator, module, name, FailureSeverity::Error),
        Block::Call(module, name) => block_visits::visit_call(evaluator, module, name),
        Block::Action(action) => block_visits::visit_action(evaluator, action),
        Block::Check(..) | Block::Provider(_) | Block::Resource(_) => Ok(()),
    }
}

/// Sets the planned objects in the evaluator, so that expressions refer to them. Objects that the plan deletes or forgets are removed.
pub(crate) fn set_planned_objects(evaluator: &Evaluator<'_>, plan: &Plan) {
    for change in &plan.changes {
        match change.action {
            _ if change.deposed.is_some() => {}
            Action::Delete | Action::Forget => {
                // `object` loads all objects of the resource from the state. Without that, a later load would bring the removed object
                // back.
                let _ = evaluator.object(&change.address);
                evaluator.remove_object(&change.address);
            }
            _ => evaluator.set_object(&change.address, change.after.clone()),
        }
    }
}
