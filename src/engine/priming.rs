//! Evaluating what something needs, one step after the other.
//!
//! The evaluator computes on demand, and what it computes may demand more: a chain of thousands of local values would be
//! as many nested calls. A walk over all blocks never gets into that, because it visits results first. Where only some
//! blocks are visited (apply, the destruction of everything), the way to them is walked here first.

use std::sync::{Mutex, PoisonError};

use petgraph::Direction;
use petgraph::graph::NodeIndex;

use crate::blocks::{Block, Blocks};
use crate::eval::{Evaluator, Failed};
use crate::opening::for_each_instance;

/// Remembers what has been evaluated on behalf of others.
pub struct Priming<'a> {
    blocks: &'a Blocks,
    seen: Mutex<Vec<bool>>,
}

impl<'a> Priming<'a> {
    /// Nothing has been evaluated yet.
    #[must_use]
    pub fn new(blocks: &'a Blocks) -> Priming<'a> {
        Priming { blocks, seen: Mutex::new(vec![false; blocks.graph.node_count()]) }
    }

    /// Evaluates the variables, local values, outputs and module calls that a block needs, inner ones first. The resources
    /// among its dependencies must be what they will be.
    pub fn prepare(&self, evaluator: &Evaluator<'_>, block: &Block) {
        let Some(start) = self.blocks.find(block) else { return };
        let order = {
            let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
            self.unseen_before(start, &mut seen)
        };
        for node in order {
            // A failure is reported where it arises, and remembered by the evaluator.
            let _: Result<(), Failed> = match &self.blocks.graph[node] {
                Block::Variable(module, name) => for_each_instance(evaluator, module, |instance, node| {
                    evaluator.variable(instance, node, name).map(|_| ())
                }),
                Block::Local(module, name) => for_each_instance(evaluator, module, |instance, node| {
                    evaluator.local(instance, node, name).map(|_| ())
                }),
                Block::Output(module, name) => for_each_instance(evaluator, module, |instance, node| {
                    evaluator.output(instance, node, name).map(|_| ())
                }),
                Block::Call(module, name) => for_each_instance(evaluator, module, |instance, _| {
                    evaluator.call_expansion(instance, name).map(|_| ())
                }),
                Block::Provider(_) | Block::Resource(_) | Block::Check(..) => Ok(()),
            };
        }
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
