//! Plans and states as text.
//!
//! A plan is written line for line as Terraform writes it: above each object the action and its reason, then the object itself,
//! with a sign before everything that changes and a note on how much is hidden. A state is written with the same functions, as
//! objects in which nothing changes.
//!
//! There are two steps. `compare` visits the parts of two values, each a `pair`, and decides their actions, as a `tree`; `render`
//! writes the tree, with the `signs`. `sequence` pairs up elements of lists and sets, `strings` writes strings, `heading` the
//! comments above objects. `plan` and `state` combine everything. Objects are compared and written one after the other into one
//! text, so that memory holds that text and one object's tree.

mod actions;
mod alike;
mod compare;
mod heading;
mod paint;
mod pair;
mod plan;
mod render;
mod sequence;
mod signs;
mod state;
mod strings;
#[cfg(test)]
mod tests;
mod tree;

use engine::plan::{PlanView, ResourceChange};
use provider::Schemas;

use addrs::Program as Names;

/// Style of plans and states.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// Allows colours.
    pub colour: bool,
    /// Width of prose in columns; 0 for no limit.
    pub width: usize,
    /// Shows sensitive values.
    pub revealed: bool,
    /// Writes long texts as differences, and pairs elements of lists by similarity. If false, the text is Terraform's.
    pub short: bool,
    /// Writes unchanged attributes, too.
    pub unchanged: bool,
    /// Names of the program.
    pub program: Names,
}

/// Renders a plan, from the drift to the changes of outputs.
#[must_use]
pub fn plan_text(plan: PlanView<'_>, schemas: &Schemas, style: Style) -> String {
    plan::write(plan, schemas, style, style.program)
}

/// Renders one change of a plan, with the comment above it.
#[must_use]
pub fn change_text(plan: PlanView<'_>, schemas: &Schemas, style: Style, change: &ResourceChange) -> String {
    plan::write_change(plan, schemas, style, change)
}

/// Renders the change of one object outside of the program, with the comment above it.
#[must_use]
pub fn drift_text(plan: PlanView<'_>, schemas: &Schemas, style: Style, change: &ResourceChange) -> String {
    plan::write_drift(plan, schemas, style, change)
}

/// Renders the objects and outputs of a state.
#[must_use]
pub fn state_text(state: &::state::State, schemas: &Schemas, style: Style) -> String {
    state::write(state, schemas, style)
}
