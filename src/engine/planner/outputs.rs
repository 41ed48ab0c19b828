//! What will become of the root outputs.

use std::collections::BTreeMap;
use std::sync::Arc;

use addrs::{Module, ModuleInstance};
use cty::{Marks, Type, Value};

use super::Planner;
use crate::blocks::Block;
use crate::plan::{Action, OutputChange};

/// The changes of all root outputs, as declared and as stored; of a plan with errors, of those that could be evaluated.
pub(super) fn changes(planner: &Planner<'_>, skipped: impl Fn(&Block) -> bool) -> BTreeMap<Arc<str>, OutputChange> {
    let stored = &planner.context.inputs.state.outputs;
    let root = &planner.context.inputs.config.root;
    let mut out = BTreeMap::new();
    let before = |name: &str| match stored.get(name) {
        Some(o) => o
            .value
            .clone()
            .with_marks(if o.sensitive { Marks::SENSITIVE } else { Marks::NONE }),
        None => Value::null(Type::Dynamic),
    };
    if !planner.spec.kind.is_destroy() {
        for (name, output) in &root.module.outputs {
            let block = Block::Output(Module::root(), name.clone());
            if !planner.spec.selection.includes(&block) || skipped(&block) {
                continue;
            }
            let Ok(after) = planner.context.evaluator.output(&ModuleInstance::root(), root, name) else {
                continue;
            };
            let was = before(name);
            let was_sensitive = stored.get(name).map(|o| o.sensitive);
            let (plain_before, plain_after) = (was.clone().unmark_deep().0, after.clone().unmark_deep().0);
            let action = match was_sensitive {
                // An output that is null is not kept.
                None if plain_after.is_null() => Action::NoOp,
                None => Action::Create,
                Some(sensitive) if sensitive == output.sensitive && plain_before == plain_after => Action::NoOp,
                Some(_) => Action::Update,
            };
            // What was a secret is one while the plan is shown.
            let sensitive = output.sensitive || was_sensitive == Some(true);
            let after = if sensitive {
                after.with_marks(Marks::SENSITIVE)
            } else {
                after
            };
            out.insert(
                name.clone(),
                OutputChange {
                    action,
                    before: was,
                    after,
                    sensitive,
                },
            );
        }
    }
    if planner.spec.selection.is_everything() {
        for (name, output) in stored {
            let gone = planner.spec.kind.is_destroy() || !root.module.outputs.contains_key(name);
            if gone {
                out.insert(
                    name.clone(),
                    OutputChange {
                        action: Action::Delete,
                        before: before(name),
                        after: Value::null(Type::Dynamic),
                        sensitive: output.sensitive,
                    },
                );
            }
        }
    }
    out
}
