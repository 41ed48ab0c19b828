//! `moved` blocks: changes the addresses of objects in the state to those that the configuration has now. A *statement* moves objects from
//! one address to another. Statements come from blocks, and some are implied by the configuration (`implied`). A statement can apply to the
//! result of another one, so they are sorted first (`order`), and then applied to the state before planning (`execute`). `validate` comes
//! last, because only the walk knows which instances the configuration declares. Its errors replace the plan.

mod execute;
mod implied;
mod order;
mod statement;
#[cfg(test)]
mod tests;
mod validate;

use std::collections::{BTreeMap, HashMap};

use addrs::{AbsResource, AbsResourceInstance, Target};
use config::Config;
use state::State;
use syntax::{Diagnostic, Diagnostics};

use crate::providers::Providers;

pub(super) use statement::Statement;
pub(super) use validate::validate;

const LEFT_OUT: &str = "Moved resource instances excluded by targeting";

/// Result of the statements.
#[derive(Debug, Default)]
pub(super) struct Moves {
    /// Previous address of each moved object, by its current address.
    pub(super) from: HashMap<AbsResourceInstance, AbsResourceInstance>,
    /// Addresses of resources, resource instances and module instances that were not moved because objects exist at their target, with
    /// that target.
    blocked: BTreeMap<String, String>,
}

/// Returns all statements: those of blocks, then the implied ones.
pub(super) fn statements(config: &Config, state: &State) -> Vec<Statement> {
    let mut out: Vec<Statement> = Vec::new();
    for node in config.nodes() {
        out.extend(
            node.module
                .moved
                .iter()
                .map(|moved| Statement::of_block(config, &node.path, moved)),
        );
    }
    let implied = implied::statements(config, state, &out);
    out.extend(implied);
    out
}

/// Applies statements to a state.
pub(super) async fn apply(
    statements: &[Statement],
    state: &mut State,
    providers: &Providers<'_>,
) -> Result<Moves, Diagnostics> {
    // `validate` reports cycles of statements, and its errors replace the plan.
    match order::sorted(statements) {
        Ok(sorted) => execute::execute(sorted.into_iter().map(|i| &statements[i]), state, providers).await,
        Err(_) => Ok(Moves::default()),
    }
}

impl Moves {
    /// Returns the error for moved objects whose source or target is not part of the plan.
    pub(super) fn left_out(&self, targets: &[Target], excludes: &[Target]) -> Option<Diagnostic> {
        self.outside_of_targets(targets).or_else(|| self.excluded(excludes))
    }

    /// Returns the error for moved objects whose source or target `-exclude` leaves out.
    fn excluded(&self, excludes: &[Target]) -> Option<Diagnostic> {
        let options: String = excludes
            .iter()
            .filter(|exclude| {
                let mut addresses = self.from.iter().flat_map(|(to, from)| [to, from]);
                addresses.any(|address| exclude.selects(address))
            })
            .map(|exclude| format!("\n  -exclude={}", addrs::text::quoted(&exclude.to_string())))
            .collect();
        if options.is_empty() {
            return None;
        }
        Some(Diagnostic::error(
            LEFT_OUT,
            format!(
                "Objects of the state have moved to addresses that the configuration has for them now. They must be part of the \
                 plan, but -exclude options leave some of them out.\n\nPlan without these options:{options}\n\nWhat the moved \
                 objects need will become part of the plan, too."
            ),
        ))
    }

    /// Returns the error for moved objects whose source or target `-target` leaves out.
    fn outside_of_targets(&self, targets: &[Target]) -> Option<Diagnostic> {
        if targets.is_empty() {
            return None;
        }
        let mut excluded: Vec<AbsResource> = self
            .from
            .iter()
            .flat_map(|(to, from)| [to, from])
            .filter(|address| !targets.iter().any(|t| t.selects(address)))
            .map(AbsResourceInstance::containing_resource)
            .collect();
        excluded.sort();
        excluded.dedup();
        if excluded.is_empty() {
            return None;
        }
        let options: String = excluded
            .iter()
            .map(|resource| format!("\n  -target={}", addrs::text::quoted(&resource.to_string())))
            .collect();
        Some(Diagnostic::error(
            LEFT_OUT,
            format!(
                "Objects of the state have moved to addresses that the configuration has for them now. They must be part of the \
                 plan, but the -target options leave some of them out.\n\nPlan without -target, or add these options:{options}\
                 \n\nWhat these need will become part of the plan, too."
            ),
        ))
    }

    /// Returns the warning for objects that could not move because the target has an object.
    pub(super) fn blocked(&self) -> Option<Diagnostic> {
        if self.blocked.is_empty() {
            return None;
        }
        let items: String = self
            .blocked
            .iter()
            .map(|(from, to)| format!("\n  - {from} could not move to {to}"))
            .collect();
        Some(Diagnostic::warning(
            "Unresolved resource instance address changes",
            format!(
                "Some objects of the state should have moved to the addresses that the configuration has for them now, but \
                 other objects are there already:{items}\n\nThe plan destroys the objects that could not move. If that is not \
                 what you want, solve the conflicts with the \"state\" subcommands first, and plan again."
            ),
        ))
    }
}
