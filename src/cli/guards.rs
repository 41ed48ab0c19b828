//! Guards: limits on what a plan may do without a person's approval.
//!
//! In a pipeline they let harmless plans proceed and stop all others: `-auto-approve=safe`, `-max-destroy=N`, and
//! `-fail-on=KINDS` of `plan`.

use std::collections::BTreeMap;
use std::sync::Arc;

use engine::change_kind::ChangeKind;
use engine::plan::{Action, PlanView, ResourceChange};
use serde_json::json;
use syntax::Diagnostic;
use views::stream::Stream;

use crate::args::UsageError;
use crate::args::groups::GuardFlags;

/// Exit status of a plan that has changes of `-fail-on`. Lower statuses mean success, failure, and the changes
/// of `-detailed-exitcode`.
pub const GUARDED: u8 = 3;

/// Keyword for all kinds of changes that remove no object.
const SAFE: &str = "safe";

/// Keyword for invocations of actions, which are not changes of objects.
const INVOKE: &str = "invoke";

/// Limit of the objects that a message names.
const NAMED: usize = 5;

/// Kinds of changes, and whether invocations of actions are among them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kinds {
    changes: Vec<ChangeKind>,
    invocations: bool,
}

impl Kinds {
    /// Parses a list such as `create,update`, of the flag with this name. `safe`, if it is allowed in the list, means all kinds except
    /// `replace`, `destroy`, `forget` and `invoke`.
    ///
    /// # Errors
    /// A word of the list is not a kind, or the list is empty.
    pub fn parse(flag: &str, text: &str, may_be_safe: bool) -> Result<Kinds, UsageError> {
        let mut kinds = Kinds::default();
        for word in text.split(',').map(str::trim) {
            match (word, ChangeKind::parse(word)) {
                (_, Some(kind)) => kinds.changes.push(kind),
                (INVOKE, _) => kinds.invocations = true,
                (SAFE, _) if may_be_safe => kinds.changes.extend([
                    ChangeKind::Import,
                    ChangeKind::Create,
                    ChangeKind::Read,
                    ChangeKind::Update,
                ]),
                _ => return Err(unknown(flag, word, may_be_safe)),
            }
        }
        Ok(kinds)
    }

    fn contain(&self, kind: ChangeKind) -> bool {
        self.changes.contains(&kind)
    }
}

fn unknown(flag: &str, word: &str, may_be_safe: bool) -> UsageError {
    let words = ChangeKind::ALL.map(ChangeKind::as_str).join(", ");
    let safe = if may_be_safe {
        ", and safe for all that take no object away"
    } else {
        ""
    };
    UsageError::new(
        format!("Invalid value of -{flag}"),
        format!(
            "\"{word}\" is no kind of change. A list of kinds is separated by commas. There are {words}, {INVOKE} for actions{safe}."
        ),
    )
}

/// Permission to apply a plan without asking.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Approval {
    /// The user must approve: no `-auto-approve`.
    #[default]
    Asked,
    /// Every plan is applied: `-auto-approve`.
    Any,
    /// A plan is applied if it has changes of these kinds only: `-auto-approve=KINDS`, as it is written.
    Only(Kinds, String),
}

impl Approval {
    /// Parses the value of `-auto-approve`: a boolean, or kinds of changes.
    ///
    /// # Errors
    /// The value is neither.
    pub fn parse(text: &str) -> Result<Approval, UsageError> {
        match gotext::boolean(text) {
            Some(true) => Ok(Approval::Any),
            Some(false) => Ok(Approval::Asked),
            None => Ok(Approval::Only(
                Kinds::parse("auto-approve", text, true)?,
                text.to_owned(),
            )),
        }
    }

    /// Returns true if at least some plans are applied without asking.
    #[must_use]
    pub fn is_automatic(&self) -> bool {
        *self != Approval::Asked
    }

    /// Compares a plan with the kinds of `-auto-approve=KINDS`; `None` if the option has no kinds.
    #[must_use]
    pub fn verdict(&self, plan: PlanView<'_>) -> Option<Verdict> {
        let Approval::Only(kinds, written) = self else {
            return None;
        };
        let excess = Excess::count(plan, |kind, _| !kinds.contain(kind), !kinds.invocations);
        let problem = (!excess.is_empty()).then(|| {
            Diagnostic::warning(
                "Plan not approved automatically",
                format!("The option -auto-approve={written} does not cover this plan: {excess}."),
            )
        });
        Some(Verdict {
            option: "auto-approve",
            value: written.clone(),
            excess,
            problem,
        })
    }
}

/// Result of a guard.
#[derive(Debug)]
pub struct Verdict {
    /// Name of the guard's option.
    option: &'static str,
    /// Value of the option, as the user has written it.
    value: String,
    excess: Excess,
    /// Diagnostic about a plan that the guard does not let pass.
    problem: Option<Diagnostic>,
}

impl Verdict {
    /// Returns the diagnostic of a guard that does not let the plan pass; `None` if it does. Either result is also written to the stream.
    #[must_use]
    pub fn reported(self, stream: Option<&Arc<Stream>>) -> Option<Diagnostic> {
        let Some(stream) = stream else {
            return self.problem;
        };
        let Verdict {
            option,
            value,
            excess,
            problem,
        } = &self;
        let passed = problem.is_none();
        let message = match passed {
            true => format!("-{option}={value}: passed"),
            false => format!("-{option}={value}: {excess}"),
        };
        let guard = json!({
            "option": option,
            "value": value,
            "passed": passed,
            "counts": excess.counts,
            "addresses": excess.addresses,
        });
        stream.guard(&message, problem.as_ref().is_some_and(Diagnostic::is_error), guard);
        self.problem
    }
}

/// Guards of a command that applies.
#[derive(Clone, Debug, Default)]
pub struct Guards {
    pub approval: Approval,
    /// Maximum number of destroyed objects; `None` for no limit.
    pub max_destroy: Option<usize>,
}

impl Guards {
    /// Parses the flags.
    ///
    /// # Errors
    /// A value is not valid.
    pub fn new(flags: &GuardFlags) -> Result<Guards, UsageError> {
        let max_destroy = flags.max_destroy.as_ref().map(|text| {
            text.parse().map_err(|_| {
                UsageError::new(
                    "Invalid value of -max-destroy",
                    format!("\"{text}\" is not a number of objects. Use a whole number from 0."),
                )
            })
        });
        Ok(Guards {
            approval: Approval::parse(&flags.auto_approve)?,
            max_destroy: max_destroy.transpose()?,
        })
    }

    /// Returns the error about a saved plan that destroys too many objects, or has changes that `-auto-approve=KINDS` does not
    /// allow. Any other saved plan is approved by naming it.
    #[must_use]
    pub fn refusal(&self, plan: PlanView<'_>, stream: Option<&Arc<Stream>>) -> Option<Diagnostic> {
        self.too_many_destroyed(plan, stream).or_else(|| {
            let warning = self.approval.verdict(plan)?.reported(stream)?;
            Some(Diagnostic::error(
                warning.summary.clone(),
                format!(
                    "{} Nothing was changed. Without the option, the saved plan is applied.",
                    warning.detail
                ),
            ))
        })
    }

    /// Returns the error about a plan that destroys more objects than `-max-destroy` allows; `None` otherwise.
    #[must_use]
    pub fn too_many_destroyed(&self, plan: PlanView<'_>, stream: Option<&Arc<Stream>>) -> Option<Diagnostic> {
        let limit = self.max_destroy?;
        let destroyed = plan.totals().destroyed;
        // As in the totals, a replacement that forgets its old object destroys nothing.
        let destroys = |_, change: &ResourceChange| change.action.steps().contains(&Action::Delete);
        let excess = Excess::count(plan, destroys, false);
        let problem = (destroyed > limit).then(|| {
            Diagnostic::error(
                "Too many objects to destroy",
                format!(
                    "The plan destroys {destroyed} objects, and the option -max-destroy allows {limit}: {excess}. Nothing was \
                     changed. Check the plan, and raise the limit if it is right."
                ),
            )
        });
        let verdict = Verdict {
            option: "max-destroy",
            value: limit.to_string(),
            excess,
            problem,
        };
        verdict.reported(stream)
    }

    /// Returns the first flag that a run on a server does not support, if one is set.
    #[must_use]
    pub fn only_local(&self) -> Option<&'static str> {
        match (&self.approval, self.max_destroy) {
            (Approval::Only(..), _) => Some("-auto-approve=KINDS"),
            (_, Some(_)) => Some("-max-destroy"),
            _ => None,
        }
    }
}

/// Compares a plan with the kinds of changes in `-fail-on`.
#[must_use]
pub fn guarded(plan: PlanView<'_>, kinds: &Kinds, written: &str) -> Verdict {
    let excess = Excess::count(plan, |kind, _| kinds.contain(kind), kinds.invocations);
    let problem = (!excess.is_empty()).then(|| {
        Diagnostic::warning(
            "Plan has guarded changes",
            format!("The option -fail-on={written} sets the exit status {GUARDED} for this plan: {excess}."),
        )
    });
    Verdict {
        option: "fail-on",
        value: written.to_owned(),
        excess,
        problem,
    }
}

/// Changes of a plan that a guard does not allow: their numbers by kind, and the addresses of their objects.
#[derive(Debug)]
struct Excess {
    counts: BTreeMap<&'static str, usize>,
    addresses: Vec<String>,
}

impl Excess {
    fn count(plan: PlanView<'_>, concerns: impl Fn(ChangeKind, &ResourceChange) -> bool, invocations: bool) -> Excess {
        let mut excess = Excess {
            counts: BTreeMap::new(),
            addresses: Vec::new(),
        };
        for change in plan.changes {
            if let Some(kind) = ChangeKind::from_change(change).filter(|kind| concerns(*kind, change)) {
                excess.add(kind.as_str(), change.address.to_string());
            }
        }
        for invocation in plan.invocations.iter().filter(|_| invocations) {
            excess.add(INVOKE, invocation.address.to_string());
        }
        excess
    }

    fn add(&mut self, word: &'static str, address: String) {
        *self.counts.entry(word).or_default() += 1;
        self.addresses.push(address);
    }

    fn is_empty(&self) -> bool {
        self.addresses.is_empty()
    }
}

impl std::fmt::Display for Excess {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let counts: Vec<String> = self
            .counts
            .iter()
            .map(|(word, count)| format!("{count} to {word}"))
            .collect();
        let named = self.addresses.get(..NAMED).unwrap_or(&self.addresses);
        write!(f, "{}: {}", counts.join(", "), named.join(", "))?;
        match self.addresses.len() - named.len() {
            0 => Ok(()),
            more => write!(f, " and {more} more"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn approval_is_a_boolean_or_a_list_of_kinds() {
        assert_eq!(Approval::parse("true").unwrap(), Approval::Any);
        assert_eq!(Approval::parse("0").unwrap(), Approval::Asked);
        let Approval::Only(kinds, _) = Approval::parse("create, destroy,invoke").unwrap() else {
            panic!("a list");
        };
        assert_eq!(kinds.changes, [ChangeKind::Create, ChangeKind::Delete]);
        assert!(kinds.invocations);
        assert!(Approval::parse("").is_err());
    }

    #[test]
    fn words_that_are_no_kinds_are_named_with_those_that_are() {
        let error = Kinds::parse("fail-on", "destroy,safe", false).unwrap_err();
        assert!(
            error.detail.contains("\"safe\"") && error.detail.contains("replace"),
            "{error:?}"
        );
        let error = Approval::parse("yes").unwrap_err();
        assert!(
            error.detail.contains("\"yes\"") && error.detail.contains("safe for all"),
            "{error:?}"
        );
    }
}
