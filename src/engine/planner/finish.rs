//! Completion of the plan from the results of the walk: sorted changes, the execution graph, check results, the prior
//! state.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use addrs::{AbsProviderConfig, AbsResourceInstance, ConfigResource, Mode as ResourceMode};
use cty::{Marks, Value};
use petgraph::graph::{DiGraph, NodeIndex};
use syntax::{Diagnostic, Diagnostics};

use crate::blocks::Block;
use crate::eval::checks::{Checked, Status};
use crate::execgraph::{Dependencies, ExecGraph, Planned};
use crate::invocation::ActionInvocation;
use crate::plan::{Action, Plan};

use super::{Planner, relevance, targets};
use crate::removals;

impl Planner<'_> {
    /// Sets the known root outputs in the prior state, with which apply starts.
    pub(super) fn keep_known_outputs(&self, outputs: &BTreeMap<Arc<str>, crate::plan::OutputChange>) {
        if self.spec.kind.is_destroy() {
            return;
        }
        let mut prior = self.prior();
        for (name, change) in outputs
            .iter()
            .filter(|(_, c)| c.after.is_wholly_known() && c.action != Action::Delete)
        {
            let (value, _) = change.after.clone().unmark_deep();
            if value.is_null() {
                prior.outputs.remove(name);
            } else {
                prior.outputs.insert(
                    name.clone(),
                    state::OutputValue {
                        value,
                        sensitive: self
                            .context
                            .inputs
                            .config
                            .root
                            .module
                            .outputs
                            .get(name)
                            .is_some_and(|o| o.sensitive),
                    },
                );
            }
        }
    }

    pub(super) fn finish(
        &self,
        outputs: BTreeMap<Arc<str>, crate::plan::OutputChange>,
        errored: bool,
        skipped: impl Fn(&Block) -> bool,
    ) -> Plan {
        let mut results = std::mem::take(&mut *self.results());
        // Must be called before the plan takes the prior state, which is done below.
        self.keep_known_outputs(&outputs);
        // Instances are planned concurrently. The changes are sorted, so that equal plans have equal files.
        let (mut changes, mut planned) = (results.changes, results.planned);
        sort_both(&mut changes, &mut planned, |a, b| {
            (&a.address, &a.deposed).cmp(&(&b.address, &b.deposed))
        });
        // The vector lives until the end of apply, so its spare capacity is released.
        changes.shrink_to_fit();
        let mut drift = results.drift;
        drift.sort_by(|a, b| (&a.address, &a.deposed).cmp(&(&b.address, &b.deposed)));
        let mut invocations = results.invocations;
        invocations.sort_by(ActionInvocation::listed_before);
        let mut graph = self.order(&planned);
        graph.add_invocations(&invocations);
        let dropped_data = self.dropped_data();
        let unread = self.unread(&mut results.reads);
        let mut reads = results.reads.read;
        reads.sort_by(|a, b| a.address.cmp(&b.address));
        let mut relevant_attributes = relevance::attributes(
            self.context.inputs.config,
            self.context.providers.schemas(),
            self.spec.kind.mode(),
            (&changes, &dropped_data),
            &outputs,
            &self.outputs_of_modules(),
        );
        if errored {
            relevant_attributes.retain(|(address, _)| address.resource.resource.mode != addrs::Mode::Ephemeral);
        }
        Plan {
            mode: self.spec.kind.mode(),
            timestamp: self
                .context
                .inputs
                .environment
                .functions
                .plan_timestamp
                .clone()
                .unwrap_or_default(),
            variables: self.variables(),
            given_variables: self.context.inputs.variables.given.clone(),
            targets: self.spec.options.targets.clone(),
            excludes: self.spec.options.excludes.clone(),
            force_replace: self.spec.options.force_replace.clone(),
            changes,
            invocations,
            invoke: self.spec.options.invoke.clone(),
            drift,
            unread,
            reads,
            outputs,
            previous_state: self.context.inputs.state.clone(),
            prior_state: self.prior().clone(),
            graph,
            relevant_attributes,
            function_results: self.context.providers.functions().take_results(),
            checks: self.check_results(skipped),
            generated_config: results.generated,
            queries: {
                let mut queries = results.queries;
                queries.sort_by(|a, b| a.address.cmp(&b.address));
                queries
            },
            dropped_data,
            errored,
            saved: false,
        }
    }

    /// Returns the values of the root variables for the plan. Ephemeral ones are null.
    fn variables(&self) -> BTreeMap<Arc<str>, Value> {
        let inputs = &self.context.inputs;
        let variables = inputs.config.root.module.variables.iter();
        let values = variables.filter_map(|(name, variable)| {
            let value = inputs.variables.values.get(name)?;
            let value = match variable.ephemeral {
                true => Value::null(value.ty().clone()).with_marks(Marks::EPHEMERAL),
                false => value.clone(),
            };
            Some((name.clone(), value))
        });
        values.collect()
    }

    /// Adds the diagnostics about the plan as a whole. Returns the plan, unless its execution graph has a cycle.
    pub(super) fn conclude(&self, plan: Plan, mut diagnostics: Diagnostics) -> (Option<Plan>, Diagnostics) {
        let options = self.spec.options;
        diagnostics.extend(targets::warning(options));
        if options.generate_config {
            diagnostics.push(Diagnostic::warning(
                "Config generation is experimental",
                "Configuration for imported objects is generated from the objects alone. Check it before you use it; its \
                 form may change in later versions.",
            ));
        }
        if !plan.errored {
            diagnostics.extend(self.spec.moves.blocked());
        }
        diagnostics.extend(removals::warning(&plan, self.context.inputs.environment.program));
        if let Some(cycle) = plan.graph.cycle() {
            diagnostics.push(cyclic(&plan, &cycle));
            return (None, diagnostics);
        }
        (Some(plan), diagnostics)
    }

    /// Returns the warning about orphans that objects outside of this plan need: orphans that are not destroyed for this reason, and
    /// orphans that are destroyed because a target names them.
    pub(super) fn needed_outside(&self) -> Option<Diagnostic> {
        let mut results = self.results();
        let mut kept = std::mem::take(&mut results.kept_for_others);
        let mut destroyed = std::mem::take(&mut results.destroyed_though_needed);
        kept.sort();
        destroyed.sort();
        targets::needed_outside(&kept, &destroyed)
    }

    /// Returns the warning about destroy-time provisioners that do not run, because their block was removed.
    pub(super) fn lost_provisioners(&self) -> Option<Diagnostic> {
        let mut lost = std::mem::take(&mut self.results().lost_provisioners);
        if lost.is_empty() {
            return None;
        }
        // Instances are planned concurrently, so the list is sorted to make the message reproducible.
        lost.sort();
        let lines: String = lost
            .iter()
            .map(|(address, types)| format!("\n  - {address}: {types}"))
            .collect();
        Some(Diagnostic::warning(
            "Destroy-time provisioners will not run",
            format!(
                "These objects were applied with destroy-time provisioners. Their resource blocks are gone, so they are destroyed without \
                 running them:{lines}\n\nTo have them run, put the block back and set count = 0, or write a removed block with the \
                 provisioners."
            ),
        ))
    }

    /// Returns the selected data sources of the state, for a destroy plan.
    fn dropped_data(&self) -> Vec<AbsResourceInstance> {
        if !self.spec.kind.is_destroy() {
            return Vec::new();
        }
        let prior = self.prior();
        let data = prior
            .instances()
            .filter(|(resource, ..)| resource.resource.mode == ResourceMode::Data);
        data.map(|(resource, _, key, _)| resource.instance(key.clone()))
            .filter(|address| {
                self.spec.selection.includes(&Block::Resource(address.config()))
                    && self.spec.selection.includes_instance(address)
            })
            .collect()
    }

    /// Returns the selected outputs of all module instances except the root module, without outputs that are null. The result is empty in
    /// a destroy plan.
    fn outputs_of_modules(&self) -> Vec<(addrs::ModuleInstance, Arc<str>)> {
        let mut out = Vec::new();
        if self.spec.kind.is_destroy() {
            return out;
        }
        for node in self.context.inputs.config.nodes() {
            for name in node.module.outputs.keys() {
                let block = Block::Output(node.path.clone(), name.clone());
                if node.path.is_root() || !self.spec.selection.includes(&block) {
                    continue;
                }
                let evaluator = &self.context.evaluator;
                // The state does not store these outputs, so an output that is null counts as unchanged.
                let is_null = |at: &addrs::ModuleInstance| evaluator.output(at, node, name).is_ok_and(|v| v.is_null());
                let instances = evaluator.module_instances(&node.path).unwrap_or_default();
                let changed = instances.into_iter().filter(|instance| !is_null(instance));
                out.extend(changed.map(|instance| (instance, name.clone())));
            }
        }
        out
    }

    /// Returns the results of all conditions.
    fn check_results(&self, skipped: impl Fn(&Block) -> bool) -> Vec<state::CheckResult> {
        let destroy = self.spec.kind.is_destroy();
        if destroy {
            // A destroy plan only has results for outputs of the root module.
            let root = &self.context.inputs.config.root.module;
            for (name, _) in root.outputs.iter().filter(|(_, o)| !o.preconditions.is_empty()) {
                let of = Checked::Output(addrs::ModuleInstance::root(), name.clone());
                self.context.evaluator.record(&of, &Status::Unknown);
            }
        }
        self.context.evaluator.check_results(&[], |block| {
            !destroy && self.spec.selection.includes(block) && !skipped(block)
        })
    }

    /// Builds the execution graph.
    fn order(&self, planned: &[Planned]) -> ExecGraph {
        let used: BTreeSet<&AbsProviderConfig> = planned.iter().map(|p| &p.provider).collect();
        let before = |p: &AbsProviderConfig| self.context.blocks.resources_before(&Block::Provider(p.clone()));
        let dependencies = Dependencies {
            resources: self.context.blocks.resource_dependencies(true),
            providers: used.into_iter().map(|p| (p.clone(), before(p))).collect(),
        };
        if self.spec.kind.is_destroy() {
            let graph = ExecGraph::build(planned, &dependencies, true);
            if graph.cycle().is_none() {
                return graph;
            }
            // The configuration reverses some dependencies that the state records. The recorded ones are those with which the objects were
            // created, so only they are used.
            let graph = ExecGraph::build(planned, &dependencies, false);
            if graph.cycle().is_none() {
                return graph;
            }
            // Even the recorded dependencies have a cycle, which is possible because a refresh adds the dependencies of the configuration.
            // Some are left out, so that the objects can be destroyed.
            let planned = without_circles(planned, &dependencies);
            return ExecGraph::build(&planned, &dependencies, false);
        }
        ExecGraph::build(planned, &dependencies, false)
    }
}

/// Sorts one list, and another one in the same order.
fn sort_both<A, B>(sorted: &mut [A], other: &mut [B], compare: impl Fn(&A, &A) -> Ordering) {
    let mut sources: Vec<usize> = (0..sorted.len()).collect();
    sources.sort_by(|a, b| compare(&sorted[*a], &sorted[*b]));
    // The lists are the largest part of a plan, so they are reordered in place: a list of pairs would double the memory. Each cycle of the
    // permutation is followed once.
    for start in 0..sources.len() {
        let mut at = start;
        while sources[at] != start {
            let source = sources[at];
            sorted.swap(at, source);
            other.swap(at, source);
            sources[at] = at;
            at = source;
        }
        sources[at] = at;
    }
}

fn cyclic(plan: &Plan, cycle: &[crate::execgraph::Operation]) -> Diagnostic {
    use crate::execgraph::Operation;
    let names: Vec<String> = cycle
        .iter()
        .filter_map(|operation| match operation {
            Operation::Change(i) => Some(plan.changes.get(*i as usize)?.address.to_string()),
            Operation::Destroy(i) => Some(format!("{} (destroy)", plan.changes.get(*i as usize)?.address)),
            _ => None,
        })
        .collect();
    Diagnostic::error(
        format!("Cycle: {}", names.join(", ")),
        "The planned changes depend on one another. This happens when the direction of a dependency between objects \
         is reversed. Apply the change in two steps: remove the old dependency first, then add the new one.",
    )
}

/// Leaves out recorded dependencies of destructions that form a cycle: first those that the configuration has as well, and if a cycle
/// remains, all other dependencies in it.
fn without_circles(planned: &[Planned], dependencies: &Dependencies) -> Vec<Planned> {
    let mut planned = planned.to_vec();
    for configured_only in [true, false] {
        let mut graph: DiGraph<ConfigResource, ()> = DiGraph::new();
        let mut index: HashMap<ConfigResource, NodeIndex> = HashMap::new();
        let mut node = |graph: &mut DiGraph<_, _>, r: &ConfigResource| {
            *index.entry(r.clone()).or_insert_with(|| graph.add_node(r.clone()))
        };
        // Most instances of a resource have the same dependencies, so duplicate edges are skipped.
        let mut drawn: HashSet<(&ConfigResource, &ConfigResource)> = HashSet::new();
        for p in &planned {
            for d in p.state_dependencies.iter().filter(|d| drawn.insert((&p.resource, *d))) {
                let (user, dependency) = (node(&mut graph, &p.resource), node(&mut graph, d));
                graph.add_edge(user, dependency, ());
            }
        }
        let mut circle: HashMap<ConfigResource, usize> = HashMap::new();
        for (number, component) in petgraph::algo::kosaraju_scc(&graph).into_iter().enumerate() {
            if component.len() > 1 {
                circle.extend(component.into_iter().map(|n| (graph[n].clone(), number)));
            }
        }
        for p in &mut planned {
            let Some(around) = circle.get(&p.resource) else {
                continue;
            };
            let configured = dependencies.resources.get(&p.resource);
            let stays = |d: &&ConfigResource| {
                let closes = circle.get(*d) == Some(around);
                !closes || (configured_only && configured.is_none_or(|c| !c.contains(*d)))
            };
            p.state_dependencies = p.state_dependencies.iter().filter(stays).cloned().collect();
        }
    }
    planned
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_list_follows_the_order_of_the_sorted_one() {
        for n in [0, 1, 2, 7, 100] {
            // 37 has no common divisor with `n`, so this is a permutation. It has cycles of several lengths.
            let mut numbers: Vec<usize> = (0..n).map(|i| (i * 37 + 5) % n).collect();
            let mut texts: Vec<String> = numbers.iter().map(ToString::to_string).collect();
            sort_both(&mut numbers, &mut texts, Ord::cmp);
            assert_eq!(numbers, (0..n).collect::<Vec<_>>());
            assert_eq!(texts, (0..n).map(|i| i.to_string()).collect::<Vec<_>>());
        }
    }
}
