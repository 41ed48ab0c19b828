//! `action` blocks, and `action_trigger` in the `lifecycle` of resources.

use std::sync::Arc;

use addrs::{Provider, Referenceable};
use syntax::ast::{Attribute, Block, Expr, Traversal};
use syntax::content::{BodySpec, hint, near};
use syntax::{Diagnostic, Range};

use super::{Decoder, address, parts};
use crate::model::{Action, ActionEvent, ActionFailure, ActionKey, ActionRef, ActionTrigger};

const ACTION: BodySpec<'static> = BodySpec {
    attributes: &[("count", false), ("for_each", false), ("provider", false)],
    blocks: &[("config", &[])],
};

const TRIGGER: BodySpec<'static> = BodySpec {
    attributes: &[
        ("events", true),
        ("condition", false),
        ("actions", true),
        ("on_failure", false),
    ],
    blocks: &[],
};

impl Decoder<'_> {
    pub(super) fn action(&mut self, block: Block) -> Option<Action> {
        let range = parts::header(&block);
        let mut labels = block.labels.into_iter();
        let (ty, name) = (labels.next()?, labels.next()?);
        let valid_type = parts::check_name(&ty, "Invalid action type name", self.diagnostics);
        parts::check_name(&name, "Invalid action name", self.diagnostics);
        // Unlike in resources, the provider's arguments are in a separate `config` block. So any other name here is a mistake.
        let mut taken = parts::exact(block.body, ACTION, self.diagnostics);
        let (count, for_each) = (taken.attribute("count"), taken.attribute("for_each"));
        self.count_and_for_each(count.as_ref(), for_each.as_ref());
        let provider_ref = taken
            .attribute("provider")
            .and_then(|a| parts::provider_ref(&a.expr, "provider", self.diagnostics));
        let mut action = Action {
            address: addrs::Action {
                ty: ty.text,
                name: name.text,
            },
            config: None,
            count: count.map(|a| a.expr),
            for_each: for_each.map(|a| a.expr),
            provider_ref,
            provider: Provider::default_for(""),
            range,
            type_range: ty.range,
        };
        let implied = action.address.implied_provider().to_lowercase();
        if action.provider_ref.is_none() && valid_type && !parts::is_provider_name(&implied) {
            self.diagnostics.push(
                Diagnostic::error(
                    "Invalid provider local name",
                    format!(
                        "The type implies a provider named \"{}\", which cannot be: a provider's name has letters, digits and \
                         inner dashes only.",
                        action.address.implied_provider()
                    ),
                )
                .at(&action.range),
            );
        }
        let mut first: Option<Range> = None;
        for block in taken.blocks {
            match &first {
                Some(first) => self
                    .diagnostics
                    .push(parts::duplicate_block("config", "action", first, &block)),
                None => {
                    first = Some(block.header);
                    action.config = Some(Arc::new(block.body));
                }
            }
        }
        Some(action)
    }

    pub(super) fn action_trigger(&mut self, block: Block) -> ActionTrigger {
        let range = parts::header(&block);
        let mut taken = parts::exact(block.body, TRIGGER, self.diagnostics);
        let events = taken.attribute("events").map(|a| self.events(&a.expr));
        let actions = taken.attribute("actions").map(|a| self.action_refs(&a.expr));
        let trigger = ActionTrigger {
            events: events.clone().unwrap_or_default(),
            condition: taken.expr("condition"),
            on_failure: taken
                .attribute("on_failure")
                .map(|a| self.on_failure_keyword(&a))
                .unwrap_or_default(),
            // An element that could not be read counts as present. Its error has been reported, so the list must not be reported as empty,
            // too.
            actions: actions.iter().flatten().flatten().cloned().collect(),
            range,
        };
        let mut none = |summary: &str, what: &str| {
            let detail = format!("An action_trigger block needs at least one {what} in its list \"{what}s\".");
            self.diagnostics
                .push(Diagnostic::error(summary, detail).at(&trigger.range));
        };
        if actions.is_none_or(|actions| actions.is_empty()) {
            none("No actions specified", "action");
        }
        if trigger.events.is_empty() {
            none("No events specified", "event");
        }
        trigger
    }

    fn events(&mut self, expr: &Expr) -> Vec<ActionEvent> {
        let mut events = Vec::new();
        for item in parts::static_list(expr, self.diagnostics) {
            let word = keyword(item);
            let found = ActionEvent::ALL.iter().find(|(name, _)| Some(*name) == word.as_deref());
            let word = word.as_deref().unwrap_or_default();
            let problem = match found {
                Some((_, event)) if events.contains(event) => Diagnostic::error(
                    format!("Duplicate \"{word}\" event"),
                    "The list has this event already; each counts once.",
                ),
                Some((_, event)) => {
                    events.push(*event);
                    continue;
                }
                None => {
                    let known: Vec<&str> = ActionEvent::ALL.iter().map(|(name, _)| *name).collect();
                    Diagnostic::error(
                        format!("Invalid \"event\" value {word}"),
                        format!("The events that can trigger actions are {}.", known.join(", ")),
                    )
                }
            };
            self.diagnostics.push(problem.at(item.range()));
        }
        events
    }

    fn on_failure_keyword(&mut self, attribute: &Attribute) -> ActionFailure {
        match keyword(&attribute.expr).as_deref() {
            Some("halt") => ActionFailure::Halt,
            Some("taint") => ActionFailure::Taint,
            Some("continue") => ActionFailure::Continue,
            _ => {
                let written = attribute.expr.as_keyword().unwrap_or_default();
                let near = near(written, ["halt", "taint", "continue"]);
                self.diagnostics.push(
                    Diagnostic::error(
                        "Invalid \"on_failure\" keyword",
                        format!(
                            "The argument \"on_failure\" is one of the words halt, taint and continue.{}",
                            hint(near.as_ref())
                        ),
                    )
                    .at(attribute.expr.range())
                    .misspelt(written, attribute.expr.range(), near.as_ref()),
                );
                ActionFailure::Halt
            }
        }
    }

    /// Reads the elements of `actions`. An element that does not refer to an action is reported and becomes `None`.
    fn action_refs(&mut self, expr: &Expr) -> Vec<Option<ActionRef>> {
        let items = parts::static_list(expr, self.diagnostics).to_vec();
        items
            .into_iter()
            .map(|item| {
                let item = parts::unquoted(item, self.diagnostics);
                self.action_ref(&item)
            })
            .collect()
    }

    fn action_ref(&mut self, expr: &Expr) -> Option<ActionRef> {
        let (references, problems) = lang::refs::references_in_expr(expr);
        let failed = problems.has_errors();
        self.diagnostics
            .extend(problems.into_iter().map(|d| d.at(expr.range())));
        if failed || matches!(expr, Expr::Invalid { .. }) {
            return None;
        }
        let mut actions = 0;
        for reference in &references {
            let problem = match &reference.subject {
                Referenceable::Action(_) | Referenceable::ActionInstance(_) => {
                    actions += 1;
                    continue;
                }
                Referenceable::Count(_) | Referenceable::Each(_) => continue,
                Referenceable::Module(_) | Referenceable::ModuleInstance(..) | Referenceable::ModuleOutput(..) => {
                    Diagnostic::error(
                        "Invalid reference to action outside this module",
                        "Only actions that are declared in the same module can be triggered.",
                    )
                }
                _ => Diagnostic::error(
                    "Invalid action argument inside action_triggers",
                    "An element of \"actions\" names an action of this module; in its key, count.index and each.key may stand.",
                ),
            };
            self.diagnostics.push(problem.at(expr.range()));
            return None;
        }
        let problem = match actions {
            0 => Diagnostic::error(
                "No actions specified",
                "An element of \"actions\" must name an action, such as action.local_command.example.",
            ),
            1 => match semi_static(expr) {
                Ok((action, key)) => {
                    let key_range = match expr {
                        Expr::Index { key, .. } => key.range(),
                        other => other.range(),
                    };
                    return Some(ActionRef {
                        action,
                        key,
                        range: expr.range().clone(),
                        key_range: key_range.clone(),
                    });
                }
                Err(problem) => problem,
            },
            _ => Diagnostic::error(
                "Invalid action expression",
                "Each element of \"actions\" names one action; these are several.",
            ),
        };
        // `semi_static` may have set the range of the key. A problem without a range applies to the whole element.
        let placed = problem.subject.is_some();
        self.diagnostics
            .push(if placed { problem } else { problem.at(expr.range()) });
        None
    }
}

/// Returns a keyword, which the JSON syntax writes as a string; `None` for other expressions.
fn keyword(expr: &Expr) -> Option<Arc<str>> {
    match expr {
        Expr::Json(_) => expr.as_literal_text(),
        other => other.as_keyword().map(Into::into),
    }
}

/// Splits a reference into its action and key, which is constant, `count.index` or `each.key`.
fn semi_static(expr: &Expr) -> Result<(addrs::Action, ActionKey), Diagnostic> {
    let unsupported = || {
        Diagnostic::error(
            "Invalid instance reference",
            "Only a reference to an action can stand here, with a key in brackets if the action has several instances.",
        )
    };
    let (traversal, keys) = address::with_dynamic_keys(expr).ok_or_else(unsupported)?;
    let subject = lang::refs::reference(&traversal)?.subject;
    let (action, fixed) = match subject {
        Referenceable::Action(action) => (action, None),
        Referenceable::ActionInstance(instance) => (instance.action, Some(instance.key)),
        _ => return Err(unsupported()),
    };
    match (keys.as_slice(), fixed) {
        ([], key) => Ok((action, ActionKey::Static(key.unwrap_or_default()))),
        ([key], None) => Ok((action, dynamic_key(key)?)),
        _ => Err(unsupported()),
    }
}

fn dynamic_key(key: &Expr) -> Result<ActionKey, Diagnostic> {
    let name = |t: &Traversal| lang::refs::whole_reference(t).map(|r| (r.subject, r.remaining.len()));
    let found = match key {
        Expr::Traversal(t) => name(t).ok(),
        _ => None,
    };
    match found {
        Some((Referenceable::Count(n), 0)) if &*n == "index" => Ok(ActionKey::CountIndex),
        Some((Referenceable::Each(n), 0)) if &*n == "key" => Ok(ActionKey::EachKey),
        _ => {
            let summary = if matches!(key, Expr::Traversal(_)) {
                "Invalid index expression"
            } else {
                "Invalid expression"
            };
            Err(Diagnostic::error(
                summary,
                "The key of an action is a constant, count.index or each.key; nothing else can be calculated here.",
            )
            .at(key.range()))
        }
    }
}
