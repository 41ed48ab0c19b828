//! Evaluation after the last operation: root outputs, check blocks, and conditions that the plan left unknown.

use addrs::{AbsResourceInstance, ConfigResource, Module, ModuleInstance};
use state::{CheckStatus, OutputValue};
use syntax::{Diagnostic, Diagnostics};

use super::Applier;
use crate::block_visits;
use crate::blocks::Block;
use crate::eval::Reported;
use crate::eval::checks::FailureSeverity;
use crate::eval::instance_conditions::ConfiguredInstance;
use crate::instance::nulls_for_unknowns;
use crate::plan::{Action, Mode};

impl Applier<'_> {
    /// Evaluates the root outputs and, in normal mode without an interrupt, the check blocks and the conditions that the plan left
    /// unknown. Returns the diagnostics of the operations, with an error if the apply was interrupted. Diagnostics of the evaluations
    /// here stay in the evaluator.
    pub(super) async fn finish(&self) -> Diagnostics {
        let mut diagnostics = self.context.evaluator.take_diagnostics();
        if self.context.inputs.stop.is_requested() {
            diagnostics.push(Diagnostic::error(
                "Operation interrupted",
                "The apply was interrupted. Running providers and commands were asked to stop, and have ended: some operations may have \
                 been cut short. Their results are in the state; objects whose creation is incomplete are tainted. The other operations \
                 were not begun. Run apply again to continue.",
            ));
        }
        self.outputs(&mut diagnostics).await;
        if self.plan.mode == Mode::Normal && !self.context.inputs.stop.is_requested() {
            self.checks().await;
            self.late_conditions().await;
        }
        diagnostics
    }

    /// Evaluates the check blocks with the final values. After a plan with targets no check block is evaluated, because values may be
    /// missing. After a plan with excludes, check blocks that depend on an excluded resource are left out.
    async fn checks(&self) {
        if !self.plan.targets.is_empty() {
            return;
        }
        let failed = self.results.failed().clone();
        let unread = self.results.unread_checks().clone();
        // Blocks that depend on a failed operation would only report errors that follow from it.
        for node in self.context.inputs.config.nodes() {
            for name in node.module.checks.keys() {
                let block = Block::Check(node.path.clone(), name.clone());
                if self.depends_on_any(&block, &failed) || self.depends_on_excluded(&block) {
                    continue;
                }
                if self.openings.open_ephemerals(&block).await.is_err() {
                    continue;
                }
                // A failed check is only a result: it does not fail the apply.
                let prepared = self.dependency_evaluation.evaluate(self.context.evaluator, &block);
                let _: Result<(), Reported> = prepared.and_then(|()| {
                    block_visits::visit_check(self.context.evaluator, &node.path, name, |at| {
                        !unread.iter().any(|(module, check)| module == at && check == name)
                    })
                });
            }
        }
    }

    fn depends_on_excluded(&self, block: &Block) -> bool {
        let excludes = &self.plan.excludes;
        let is_excluded = |resource: &ConfigResource| excludes.iter().any(|target| target.may_select(resource));
        !excludes.is_empty() && self.context.blocks.resources_before(block).iter().any(is_excluded)
    }

    /// Evaluates the conditions that the plan left unknown and that no operation has evaluated, unless they depend on a failed operation.
    async fn late_conditions(&self) {
        let failed = self.results.failed().clone();
        let unknown = |address: &str| {
            let at = self.plan.checks.binary_search_by(|r| (*r.config_addr).cmp(address));
            at.is_ok_and(|i| self.plan.checks[i].status == CheckStatus::Unknown)
        };
        let open = |block: &Block| {
            unknown(&block.to_string())
                && !self.dependency_evaluation.is_evaluated(block)
                && !self.depends_on_any(block, &failed)
        };
        for node in self.context.inputs.config.nodes() {
            for name in node.module.variables.keys() {
                let block = Block::Variable(node.path.clone(), name.clone());
                if open(&block) && self.prepare_late(&block).await.is_ok() {
                    // `visit_variable` reports its failures itself.
                    let _: Result<(), Reported> =
                        block_visits::visit_variable(self.context.evaluator, &node.path, name);
                }
            }
            for name in node.module.outputs.keys().filter(|_| !node.path.is_root()) {
                let block = Block::Output(node.path.clone(), name.clone());
                if open(&block) && self.prepare_late(&block).await.is_ok() {
                    let _: Result<(), Reported> =
                        block_visits::visit_output(self.context.evaluator, &node.path, name, FailureSeverity::Error);
                }
            }
        }
        // The conditions of the other objects were evaluated in their operations.
        for change in self.plan.changes.iter().filter(|c| c.action == Action::NoOp) {
            let resource = change.address.config();
            let Some(block) = self.context.inputs.config.resource(&resource) else {
                continue;
            };
            let lifecycle = &block.lifecycle;
            let conditions = !(lifecycle.preconditions.is_empty() && lifecycle.postconditions.is_empty());
            let node = Block::Resource(resource);
            if conditions && unknown(&node.to_string()) && !self.depends_on_any(&node, &failed) {
                let _: Result<(), Reported> = self
                    .prepare_late(&node)
                    .await
                    .and_then(|()| self.conditions_of_unchanged(&change.address, block));
            }
        }
    }

    /// Opens the ephemeral resources that a block uses, and evaluates its other dependencies, after all operations.
    async fn prepare_late(&self, block: &Block) -> Result<(), Reported> {
        self.openings.open_ephemerals(block).await?;
        self.dependency_evaluation.evaluate(self.context.evaluator, block)
    }

    fn conditions_of_unchanged(&self, address: &AbsResourceInstance, block: &config::Resource) -> Result<(), Reported> {
        let evaluator = self.context.evaluator;
        let expansion = evaluator.resource_expansion(&address.module, &address.resource.resource)?;
        let instance = ConfiguredInstance {
            address,
            block,
            repetition: &expansion.repetition(&address.resource.key),
        };
        evaluator.check_preconditions(instance, FailureSeverity::Error)?;
        evaluator.check_postconditions(instance, evaluator.object(address), FailureSeverity::Error)
    }

    /// Updates the root outputs in the state. Outputs that depend on a failed operation, or that cannot be evaluated, keep their old
    /// values.
    async fn outputs(&self, diagnostics: &mut Diagnostics) {
        let failed = self.results.failed().clone();
        let root = &self.context.inputs.config.root;
        let refresh_only = self.plan.mode == Mode::RefreshOnly;
        if refresh_only && !self.plan.is_applyable() {
            // The plan has no changes, and the prior state already has the known outputs.
            return;
        }
        let severity = if refresh_only {
            FailureSeverity::Warning
        } else {
            FailureSeverity::Error
        };
        for (name, planned) in &self.plan.outputs {
            let declared = root.module.outputs.get(name);
            if declared.is_none() || self.plan.mode == Mode::Destroy {
                if planned.action == Action::Delete && !diagnostics.has_errors() {
                    self.state().outputs.remove(name);
                }
                continue;
            }
            let block = Block::Output(Module::root(), name.clone());
            if self.depends_on_any(&block, &failed) {
                continue;
            }
            if self.openings.open_ephemerals(&block).await.is_err() {
                continue;
            }
            let (evaluator, instance) = (self.context.evaluator, ModuleInstance::root());
            let visited = self
                .dependency_evaluation
                .evaluate(evaluator, &block)
                .and_then(|()| block_visits::check_output(evaluator, &instance, root, name, severity))
                // An output whose planned value is wholly known is not evaluated again: that would repeat its warnings.
                .and_then(|()| match &planned.after {
                    known if known.is_wholly_known() => Ok(known.clone()),
                    _ => evaluator.output(&instance, root, name),
                });
            let Ok(value) = visited else { continue };
            let (value, _) = value.unmark_deep();
            let mut state = self.state();
            if value.is_null() {
                state.outputs.remove(name);
            } else {
                state.outputs.insert(
                    name.clone(),
                    OutputValue {
                        // If no object was created, its attributes are still unknown, and are stored as null.
                        value: nulls_for_unknowns(&value),
                        sensitive: declared.is_some_and(|o| o.sensitive),
                    },
                );
            }
        }
    }
}
