//! Action invocations in a plan: below the changes that trigger them, and on their own if the user requests them.

use engine::instance::nulls_for_unknowns;
use engine::invocation::{ActionInvocation, InvocationTrigger};
use engine::plan::{PlanView, ResourceChange};
use lang::render::quote;
use provider::Schemas;

use super::compare;
use super::paint::{Ink, Text};
use super::pair::{Pair, Paths};
use super::render;
use super::signs::Options;

const OPTIONS: Options = Options {
    short: false,
    cut: false,
    no_signs: true,
    no_null: true,
    all_replace: false,
    none_replace: true,
    show_all: true,
};

/// Writes the invocations that a change triggers, before it and after it.
pub(super) fn triggered(
    text: &mut Text,
    plan: PlanView<'_>,
    schemas: &Schemas,
    revealed: bool,
    change: &ResourceChange,
) {
    for (when, before) in [("before", true), ("after", false)] {
        let mut any = false;
        for invocation in plan.invocations {
            let Some(trigger) = invocation.trigger.lifecycle() else {
                continue;
            };
            if trigger.resource != change.address || trigger.event.is_before() != before {
                continue;
            }
            if !any {
                any = true;
                let heading = format!("# Actions to be invoked {when} this change in order:");
                text.push("\n\n    ").inked(Ink::Bold, &heading).push("\n");
            }
            one(text, schemas, revealed, invocation);
        }
    }
}

/// Writes the invocations that the user requests, if there are any.
pub(super) fn requested(text: &mut Text, plan: PlanView<'_>, schemas: &Schemas, revealed: bool, tool: &str) {
    let requested = plan
        .invocations
        .iter()
        .filter_map(|invocation| match &*invocation.trigger {
            InvocationTrigger::Invoke { caller } => Some((invocation, caller)),
            InvocationTrigger::Lifecycle(_) => None,
        });
    for (i, (invocation, caller)) in requested.enumerate() {
        if i == 0 {
            text.push(&format!("\n{tool} will invoke the following action(s):\n\n"));
        }
        text.push("  ").inked(Ink::Bold, &format!("# {}", invocation.address));
        text.push(" will be invoked");
        if let Some(caller) = caller {
            text.push(&format!(" (called from {caller})"));
        }
        text.push("\n");
        one(text, schemas, revealed, invocation);
        text.push("\n");
    }
}

fn one(text: &mut Text, schemas: &Schemas, revealed: bool, invocation: &ActionInvocation) {
    let action = &invocation.address.action.action;
    text.push(&format!("    # {}\n", invocation.address));
    text.push(&format!(
        "    action {} {} {{\n",
        quote(&action.ty),
        quote(&action.name)
    ));
    text.push("        config ");
    let known = nulls_for_unknowns(&invocation.config);
    match schemas.action(&invocation.provider.provider, &action.ty) {
        Some(schema) => {
            let pair = Pair::of_object(&known, &invocation.config, Paths::none(), Paths::All).revealed(revealed);
            render::node(text, &compare::block(&pair, &schema.block), 2, OPTIONS);
        }
        // Without a schema, the values alone determine how they are shown.
        None => {
            let pair = Pair::of_value(Some(&known), Some(&invocation.config)).revealed(revealed);
            render::node(text, &compare::dynamic(pair), 2, OPTIONS);
        }
    }
    text.push("\n    }\n");
}
