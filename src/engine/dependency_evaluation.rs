//! Eager evaluation of the dependencies of a block, in dependency order.
//!
//! The evaluator computes values on demand, and each computation can demand others: a chain of thousands of local values would become as
//! many nested calls. Walks over all blocks avoid that, because they visit dependencies first. Apply and destroy plans visit only some
//! blocks; for them, the dependencies of those blocks are evaluated here beforehand.

use std::sync::{Mutex, PoisonError};

use petgraph::Direction;
use petgraph::graph::NodeIndex;

use crate::block_visits::{for_each_instance, visit_action, visit_call, visit_local, visit_output, visit_variable};
use crate::blocks::{Block, Blocks};
use crate::eval::checks::FailureSeverity;
use crate::eval::{Evaluator, Reported};

/// Record of the dependencies that have been evaluated, and of those that failed.
pub struct DependencyEvaluation<'a> {
    blocks: &'a Blocks,
    /// Set if the conditions of variables and outputs are evaluated, too.
    conditions: bool,
    evaluated: Mutex<Vec<bool>>,
    /// Blocks that failed, or depend on one that failed.
    failed: Mutex<Vec<bool>>,
}

impl<'a> DependencyEvaluation<'a> {
    /// Creates an empty record. With `conditions`, the conditions of variables and outputs are evaluated, too.
    #[must_use]
    pub fn new(blocks: &'a Blocks, conditions: bool) -> DependencyEvaluation<'a> {
        DependencyEvaluation {
            blocks,
            conditions,
            evaluated: Mutex::new(vec![false; blocks.graph.node_count()]),
            failed: Mutex::new(vec![false; blocks.graph.node_count()]),
        }
    }

    /// Evaluates the variables, local values, outputs, module calls and actions that a block depends on, in dependency order. The
    /// resources among its dependencies must have their final values. Returns an error if a dependency failed; the failure has been
    /// reported.
    pub fn evaluate(&self, evaluator: &Evaluator<'_>, block: &Block) -> Result<(), Reported> {
        let Some(start) = self.blocks.find(block) else {
            return Ok(());
        };
        // The blocks are marked as evaluated before their evaluation, so that the lock is released early and other operations do not wait
        // for it. The evaluator computes each value only once anyway.
        let order = {
            let mut evaluated = self.evaluated.lock().unwrap_or_else(PoisonError::into_inner);
            self.unevaluated_dependencies(start, &mut evaluated)
        };
        for node in order {
            let result: Result<(), Reported> = match &self.blocks.graph[node] {
                Block::Variable(module, name) if self.conditions => visit_variable(evaluator, module, name),
                Block::Variable(module, name) => for_each_instance(evaluator, module, |instance, node| {
                    evaluator.variable(instance, node, name).map(|_| ())
                }),
                Block::Local(module, name) => visit_local(evaluator, module, name),
                Block::Output(module, name) if self.conditions => {
                    visit_output(evaluator, module, name, FailureSeverity::Error)
                }
                Block::Output(module, name) => for_each_instance(evaluator, module, |instance, node| {
                    evaluator.output(instance, node, name).map(|_| ())
                }),
                Block::Call(module, name) => visit_call(evaluator, module, name),
                Block::Action(action) => visit_action(evaluator, action),
                Block::Provider(_) | Block::Resource(_) | Block::Check(..) => Ok(()),
            };
            if result.is_err() || self.depends_on_failed(node) {
                self.failed.lock().unwrap_or_else(PoisonError::into_inner)[node.index()] = true;
            }
        }
        if self.depends_on_failed(start) {
            Err(Reported)
        } else {
            Ok(())
        }
    }

    fn depends_on_failed(&self, node: NodeIndex) -> bool {
        let failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
        let mut before = self.blocks.graph.neighbors_directed(node, Direction::Incoming);
        before.any(|n| failed[n.index()])
    }

    /// Returns true if a block was evaluated as a dependency of another one.
    #[must_use]
    pub fn is_evaluated(&self, block: &Block) -> bool {
        let evaluated = self.evaluated.lock().unwrap_or_else(PoisonError::into_inner);
        self.blocks.find(block).is_some_and(|n| evaluated[n.index()])
    }

    /// Returns the dependencies of a block that are not evaluated yet and can be reached without passing through a resource, a provider
    /// configuration or a check block, in dependency order. Marks them as evaluated.
    fn unevaluated_dependencies(&self, start: NodeIndex, evaluated: &mut [bool]) -> Vec<NodeIndex> {
        let graph = &self.blocks.graph;
        let before = |n| graph.neighbors_directed(n, Direction::Incoming);
        let pure = |n: NodeIndex| !matches!(graph[n], Block::Provider(_) | Block::Resource(_) | Block::Check(..));
        let mut order = Vec::new();
        let mut stack = vec![(start, before(start))];
        // An explicit stack instead of recursion, because chains of local values can have any length.
        while let Some((node, next)) = stack.last_mut() {
            match next.next() {
                Some(n) if pure(n) && !std::mem::replace(&mut evaluated[n.index()], true) => stack.push((n, before(n))),
                Some(_) => {}
                None => {
                    if *node != start {
                        order.push(*node);
                    }
                    stack.pop();
                }
            }
        }
        order
    }
}
