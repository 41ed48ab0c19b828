//! Changes of the root outputs.

use std::collections::BTreeMap;
use std::sync::Arc;

use addrs::{Module, ModuleInstance};
use cty::{Marks, Type, Value};

use super::Planner;
use crate::blocks::Block;
use crate::plan::{Action, OutputChange};

/// Returns the changes of all configured and stored root outputs. In a plan with errors, outputs that could not be
/// evaluated are left out.
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
            // The failure was reported where the output was evaluated.
            let Ok(after) = planner.context.evaluator.output(&ModuleInstance::root(), root, name) else {
                continue;
            };
            let was = before(name);
            let was_sensitive = stored.get(name).map(|o| o.sensitive);
            let (plain_before, plain_after) = (was.clone().unmark_deep().0, after.clone().unmark_deep().0);
            let action = match was_sensitive {
                // The state does not store outputs that are null.
                None if plain_after.is_null() => Action::NoOp,
                None => Action::Create,
                Some(sensitive) if sensitive == output.sensitive && plain_before == plain_after => Action::NoOp,
                Some(_) => Action::Update,
            };
            // The plan hides the old value of an output that was sensitive.
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
    // A plan with `-target` or `-exclude` does not change other outputs.
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
