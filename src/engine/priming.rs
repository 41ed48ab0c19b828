//! Evaluating what something needs, one step after the other.
//!
//! The evaluator computes on demand, and what it computes may demand more: a chain of thousands of local values would be
//! as many nested calls. A walk over all blocks never gets into that, because it visits results first. Where only some
//! blocks are visited (apply, the destruction of everything), the way to them is walked here first.

use std::sync::{Mutex, PoisonError};

use petgraph::Direction;
use petgraph::graph::NodeIndex;

use crate::blocks::{Block, Blocks};
use crate::eval::{Evaluator, Failed, Phase};
use crate::opening::{for_each_instance, visit_output, visit_variable};

/// Remembers what has been evaluated on behalf of others.
pub struct Priming<'a> {
    blocks: &'a Blocks,
    seen: Mutex<Vec<bool>>,
    /// What failed, or needs something that did.
    spoiled: Mutex<Vec<bool>>,
}

impl<'a> Priming<'a> {
    /// Nothing has been evaluated yet.
    #[must_use]
    pub fn new(blocks: &'a Blocks) -> Priming<'a> {
        Priming {
            blocks,
            seen: Mutex::new(vec![false; blocks.graph.node_count()]),
            spoiled: Mutex::new(vec![false; blocks.graph.node_count()]),
        }
    }

    /// Evaluates the variables, local values, outputs and module calls that a block needs, inner ones first. The resources
    /// among its dependencies must be what they will be. During apply, conditions of variables and outputs are evaluated,
    /// too. Fails if something the block needs does; why is reported where it arises.
    pub fn prepare(&self, evaluator: &Evaluator<'_>, block: &Block) -> Result<(), Failed> {
        let Some(start) = self.blocks.find(block) else {
            return Ok(());
        };
        let order = {
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            self.unseen_before(start, &mut seen)
        };
        let conditions = evaluator.phase() == Phase::Apply;
        for node in order {
            let result: Result<(), Failed> = match &self.blocks.graph[node] {
                Block::Variable(module, name) if conditions => visit_variable(evaluator, module, name),
                Block::Variable(module, name) => for_each_instance(evaluator, module, |instance, node| {
                    evaluator.variable(instance, node, name).map(|_| ())
                }),
                Block::Local(module, name) => for_each_instance(evaluator, module, |instance, node| {
                    evaluator.local(instance, node, name).map(|_| ())
                }),
                Block::Output(module, name) if conditions => visit_output(evaluator, module, name, false),
                Block::Output(module, name) => for_each_instance(evaluator, module, |instance, node| {
                    evaluator.output(instance, node, name).map(|_| ())
                }),
                Block::Call(module, name) => for_each_instance(evaluator, module, |instance, _| {
                    evaluator.call_expansion(instance, name).map(|_| ())
                }),
                Block::Provider(_) | Block::Resource(_) | Block::Check(..) => Ok(()),
            };
            if result.is_err() || self.needs_spoiled(node) {
                self.spoiled.lock().unwrap_or_else(PoisonError::into_inner)[node.index()] = true;
            }
        }
        if self.needs_spoiled(start) { Err(Failed) } else { Ok(()) }
    }

    fn needs_spoiled(&self, node: NodeIndex) -> bool {
        let spoiled = self.spoiled.lock().unwrap_or_else(PoisonError::into_inner);
        let mut before = self.blocks.graph.neighbors_directed(node, Direction::Incoming);
        before.any(|n| spoiled[n.index()])
    }

    /// Whether a block was evaluated on behalf of others.
    #[must_use]
    pub fn has_seen(&self, block: &Block) -> bool {
        let seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        self.blocks.find(block).is_some_and(|n| seen[n.index()])
    }

    /// What stands before a block without a resource between, itself not included, inner ones first.
    fn unseen_before(&self, start: NodeIndex, seen: &mut [bool]) -> Vec<NodeIndex> {
        let graph = &self.blocks.graph;
        let before = |n| graph.neighbors_directed(n, Direction::Incoming);
        let pure = |n: NodeIndex| !matches!(graph[n], Block::Provider(_) | Block::Resource(_) | Block::Check(..));
        let mut order = Vec::new();
        let mut stack = vec![(start, before(start))];
        while let Some((node, next)) = stack.last_mut() {
            match next.next() {
                Some(n) if pure(n) && !std::mem::replace(&mut seen[n.index()], true) => stack.push((n, before(n))),
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
