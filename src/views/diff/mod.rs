//! Plans and states as people read them.
//!
//! A plan is shown line for line as Terraform shows it: above each object what will be done and why, then the object
//! itself, with a sign before everything that changes and a word on how much is left out. A state is shown with the same
//! means, as something in which nothing changes.
//!
//! Two steps: `compare` goes through the parts of two values, each a `pair`, and decides what happens to them, as a `tree`;
//! `render` writes the tree, with the `signs`. `sequence` knows how elements of lists and sets pair up, `strings` how strings are shown,
//! `heading` what stands above an object. `plan` and `state` put everything together. Objects are compared and written one
//! after the other into one text, so what is held at any time is that text and one object's tree.

mod actions;
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

use engine::plan::PlanView;
use provider::Schemas;

use addrs::Program as Names;

/// Styles of text.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    /// Whether there may be colours.
    pub colour: bool,
    /// How wide lines of prose may be; 0 for no limit.
    pub width: usize,
    /// Whether sensitive values are shown.
    pub revealed: bool,
    /// The name of the program.
    pub program: Names,
}

/// A plan, from what changed outside to what becomes of the outputs.
#[must_use]
pub fn plan_text(plan: PlanView<'_>, schemas: &Schemas, style: Style) -> String {
    plan::write(plan, schemas, style, style.program)
}

/// A state: its objects and its outputs.
#[must_use]
pub fn state_text(state: &::state::State, schemas: &Schemas, style: Style) -> String {
    state::write(state, schemas, style)
}
