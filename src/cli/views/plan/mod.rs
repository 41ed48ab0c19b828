//! A plan, as people read it.

#[cfg(test)]
mod tests;

use std::collections::BTreeSet;

use addrs::Mode as ResourceMode;
use engine::plan::{Action, Mode, OutputChange, Plan, Reason, ResourceChange};
use engine::providers::Schemas;
use syntax::{Diagnostic, Diagnostics};

use crate::ui::{Style, Ui};
use crate::views::diff::render::{Options, Writer};
use crate::views::diff::{Change, build};
use crate::views::wrap::wrap;

/// Writes a plan to standard output.
pub fn show(ui: &Ui, plan: &Plan, schemas: &Schemas) {
    ui.out(text(plan, schemas, ui.style(), ui.width()));
}

/// The text of a plan.
#[must_use]
pub fn text(plan: &Plan, schemas: &Schemas, style: Style, width: usize) -> String {
    let view = View { schemas, style, width };
    let mut out = String::new();
    let changes: Vec<&ResourceChange> = plan.changes.iter().filter(|c| is_shown(c)).collect();
    let outputs = view.outputs(plan);
    let drift: Vec<&ResourceChange> = view.relevant_drift(plan, &changes);
    if !drift.is_empty() {
        view.drift(plan, &drift, &mut out);
    }
    let nothing = changes.is_empty() && outputs.is_empty();
    if plan.errored {
        out.push_str(&view.paragraphs(&format!(
            "\n{}{}\n",
            style.bad("Planning failed."),
            style.bold(" Terraform encountered an error while generating this plan.")
        )));
        if nothing {
            return out;
        }
        out.push('\n');
    } else if nothing {
        view.nothing(plan, !drift.is_empty(), &mut out);
        return out;
    }
    if !changes.is_empty() {
        if !drift.is_empty() {
            out.push_str(
                "\nUnless you have made equivalent changes to your configuration, or ignored the\nrelevant attributes \
                          using ignore_changes, the following plan may include\nactions to undo or respond to these \
                          changes.\n",
            );
            out.push_str(&view.rule());
        }
        out.push_str(&view.legend(&changes));
        out.push_str(&format!(
            "\n{}\n",
            if plan.errored {
                "Terraform planned the following actions, but then encountered a problem:"
            } else {
                "Terraform will perform the following actions:"
            }
        ));
        for change in &changes {
            out.push_str(&view.change(change, false));
        }
        out.push_str(&format!("\n{} {}\n", style.bold("Plan:"), counts(plan)));
    }
    if !outputs.is_empty() {
        out.push_str(&format!("\n{}\n{outputs}", style.bold("Changes to Outputs:")));
        if changes.is_empty() {
            out.push_str(&view.paragraphs(
                "\nYou can apply this plan to save these new output values to the Terraform state, without changing any real \
                 infrastructure.\n",
            ));
        }
    }
    out
}

/// What a plan does, in numbers.
#[must_use]
pub fn counts(plan: &Plan) -> String {
    let (mut imports, mut add, mut change, mut destroy) = (0usize, 0usize, 0usize, 0usize);
    for c in &plan.changes {
        imports += usize::from(c.importing.is_some());
        match c.action {
            Action::Create => add += 1,
            Action::Update => change += 1,
            Action::Delete => destroy += 1,
            Action::DeleteThenCreate | Action::CreateThenDelete => {
                add += 1;
                destroy += 1;
            }
            Action::NoOp | Action::Read | Action::Forget => {}
        }
    }
    let mut out = String::new();
    if imports > 0 {
        out.push_str(&format!("{imports} to import, "));
    }
    out.push_str(&format!("{add} to add, {change} to change, {destroy} to destroy"));
    out + "."
}

fn is_shown(change: &ResourceChange) -> bool {
    change.action != Action::NoOp || change.importing.is_some() || change.previous_address.is_some()
}

struct View<'v> {
    schemas: &'v Schemas,
    style: Style,
    width: usize,
}

impl View<'_> {
    /// Text, broken into lines.
    fn paragraphs(&self, text: &str) -> String {
        wrap(text, self.width.saturating_sub(1)).join("\n")
    }

    fn rule(&self) -> String {
        rule(self.style, self.width)
    }

    fn nothing(&self, plan: &Plan, drifted: bool, out: &mut String) {
        let good = |text: &str| self.style.good(text);
        let bold = |text: &str| self.style.bold(text);
        let text = match plan.mode {
            Mode::RefreshOnly if drifted => {
                out.push_str(&self.paragraphs(
                    "\nThis is a refresh-only plan, so Terraform will not take any actions to undo these. If you were \
                     expecting these changes then you can apply this plan to record the updated values in the Terraform \
                     state without changing any remote objects.\n",
                ));
                return;
            }
            Mode::RefreshOnly => format!(
                "\n{}{}\n\nTerraform has checked that the real remote objects still match the result of your most recent \
                 changes, and found no differences.\n",
                good("No changes."),
                bold(" Your infrastructure still matches the configuration.")
            ),
            Mode::Destroy => format!(
                "\n{}{}\n\nEither you have not created any objects yet or the existing objects were already deleted outside \
                 of Terraform.\n",
                good("No changes."),
                bold(" No objects need to be destroyed.")
            ),
            Mode::Normal if drifted => format!(
                "\n{}{}\n\nYour configuration already applies the changes detected above, so applying this plan will only \
                 update the Terraform state to include the changes detected above and won't change any real \
                 infrastructure.\n",
                good("No changes."),
                bold(" Your infrastructure matches the configuration.")
            ),
            Mode::Normal => format!(
                "\n{}{}\n\nTerraform has compared your real infrastructure against your configuration and found no \
                 differences, so no changes are needed.\n",
                good("No changes."),
                bold(" Your infrastructure matches the configuration.")
            ),
        };
        out.push_str(&self.paragraphs(&text));
    }

    fn legend(&self, changes: &[&ResourceChange]) -> String {
        let silent = [Action::NoOp, Action::Forget];
        let actions: BTreeSet<Action> = changes
            .iter()
            .map(|c| c.action)
            .filter(|a| !silent.contains(a))
            .collect();
        let mut out =
            "\nTerraform used the selected providers to generate the following execution\nplan. Resource actions \
                       are indicated with the following symbols:\n"
                .to_owned();
        if actions.is_empty() {
            return "\nTerraform used the selected providers to generate the following execution\nplan.\n".into();
        }
        for (action, words) in [
            (Action::Create, "create"),
            (Action::Update, "update in-place"),
            (Action::Delete, "destroy"),
            (Action::DeleteThenCreate, "destroy and then create replacement"),
            (Action::CreateThenDelete, "create replacement and then destroy"),
            (Action::Read, "read (data resources)"),
        ] {
            if actions.contains(&action) {
                out.push_str(&format!("{} {words}\n", self.symbol(action)));
            }
        }
        out
    }

    /// The symbol of an action, three columns wide.
    fn symbol(&self, action: Action) -> String {
        let s = self.style;
        match action {
            Action::NoOp => "   ".into(),
            Action::Create => format!("  {}", s.green("+")),
            Action::Update => format!("  {}", s.yellow("~")),
            Action::Delete => format!("  {}", s.red("-")),
            Action::DeleteThenCreate => format!("{}/{}", s.red("-"), s.green("+")),
            Action::CreateThenDelete => format!("{}/{}", s.green("+"), s.red("-")),
            Action::Read => format!(" {}", s.cyan("<=")),
            Action::Forget => format!(" {}", s.red(".")),
        }
    }

    fn change(&self, change: &ResourceChange, drifted: bool) -> String {
        let resource = &change.address.resource.resource;
        let keyword = match resource.mode {
            ResourceMode::Data => "data",
            ResourceMode::Managed => "resource",
            ResourceMode::Ephemeral => "ephemeral",
        };
        let (before, after) = (&change.before, &change.after);
        let schema = self
            .schemas
            .resource(&change.provider.provider, resource.mode, &resource.ty);
        let diff = match schema {
            Some(schema) => {
                let replace: &[cty::Path] = if change.action.is_replace() {
                    &change.replace_paths
                } else {
                    &[]
                };
                // What is only forgotten does not change.
                let after = if change.action == Action::Forget { before } else { after };
                build::object(before, after, &schema.block, replace)
            }
            None => build::anything(
                Some(before).filter(|v| !v.is_null()),
                Some(after).filter(|v| !v.is_null()),
            ),
        };
        let writer = Writer {
            style: self.style,
            no_symbols: false,
        };
        // What is imported as it is has not been seen yet.
        let show_unchanged = change.importing.is_some() && change.action == Action::NoOp;
        let options = Options {
            show_unchanged,
            ..Options::default()
        };
        let mut out = format!("\n{}", self.header(change, drifted));
        out.push_str(&format!(
            "{} {keyword} \"{}\" \"{}\" {}\n",
            self.symbol(change.action),
            resource.ty,
            resource.name,
            writer.render(&diff, 1, options)
        ));
        out
    }

    fn header(&self, change: &ResourceChange, drifted: bool) -> String {
        let s = self.style;
        let mut name = change.address.to_string();
        if let Some(deposed) = &change.deposed {
            name = format!("{name} (deposed object {deposed})");
        }
        let bold = |text: &str| s.bold(text);
        let mut out = match change.action {
            Action::Create => format!("  # {} will be created", bold(&name)),
            Action::Read => {
                let why = match change.reason {
                    Reason::ReadBecauseConfigUnknown => "\n  # (config refers to values not yet known)",
                    Reason::ReadBecauseDependencyPending => {
                        "\n  # (depends on a resource or a module with changes pending)"
                    }
                    Reason::ReadBecauseCheckNested => "\n  # (config will be reloaded to verify a check block)",
                    _ => "",
                };
                format!("  # {} will be read during apply{why}", bold(&name))
            }
            Action::Update if drifted => format!("  # {} has changed", bold(&name)),
            Action::Update => format!("  # {} will be updated in-place", bold(&name)),
            Action::DeleteThenCreate | Action::CreateThenDelete => match change.reason {
                Reason::ReplaceBecauseTainted => {
                    format!("  # {} is tainted, so must be {}", bold(&name), s.bad("replaced"))
                }
                Reason::ReplaceByRequest => {
                    format!("  # {} will be {}, as requested", bold(&name), s.bad("replaced"))
                }
                Reason::ReplaceByTriggers => format!(
                    "  # {} will be {} due to changes in replace_triggered_by",
                    bold(&name),
                    s.bad("replaced")
                ),
                _ => format!("  # {} must be {}", bold(&name), s.bad("replaced")),
            },
            Action::Delete if drifted => format!("  # {} has been deleted", bold(&name)),
            Action::Delete => {
                format!(
                    "  # {} will be {}{}",
                    bold(&name),
                    s.bad("destroyed"),
                    self.why_destroyed(change)
                )
            }
            Action::Forget => format!(
                " # {} will no longer be managed by Terraform, but will not be destroyed\n # (destroy = false is set in \
                 the configuration)",
                bold(&name)
            ),
            Action::NoOp => match (&change.previous_address, &change.importing) {
                (Some(from), None) => {
                    return format!("  # {} has moved to {}\n", bold(&from.to_string()), bold(&name));
                }
                (_, Some(_)) => format!("  # {} will be imported", bold(&name)),
                _ => format!("  # {} has changed", bold(&name)),
            },
        };
        out.push('\n');
        if let Some(from) = &change.previous_address {
            out.push_str(&format!("  # (moved from {from})\n"));
        }
        if let Some(id) = &change.importing
            && change.action != Action::NoOp
        {
            out.push_str(&format!("  # (imported from \"{id}\")\n"));
            if change.action.is_replace() {
                out.push_str(&format!(
                    "  # {}\n",
                    s.yellow("Warning: this will destroy the imported resource")
                ));
            }
        }
        out
    }

    fn why_destroyed(&self, change: &ResourceChange) -> String {
        let address = &change.address;
        let key = &address.resource.key;
        let why = match change.reason {
            Reason::DeleteBecauseNoResourceConfig => format!("because {} is not in configuration", address.config()),
            Reason::DeleteBecauseNoMoveTarget => {
                let from = change
                    .previous_address
                    .as_ref()
                    .map(ToString::to_string)
                    .unwrap_or_default();
                format!("because {from} was moved to {address}, which is not in configuration")
            }
            Reason::DeleteBecauseNoModule => format!("because {} is not in configuration", address.module),
            Reason::DeleteBecauseWrongRepetition => match key {
                addrs::InstanceKey::None => "because resource uses count or for_each".into(),
                addrs::InstanceKey::Int(_) => "because resource does not use count".into(),
                addrs::InstanceKey::String(_) => "because resource does not use for_each".into(),
            },
            Reason::DeleteBecauseCountIndex => format!("because index {key} is out of range for count"),
            Reason::DeleteBecauseEachKey => format!("because key {key} is not in for_each map"),
            _ if change.deposed.is_some() => {
                return "\n  # (left over from a partially-failed replacement of this instance)".into();
            }
            _ => return String::new(),
        };
        format!("\n  # ({why})")
    }

    /// What changed outside and matters: everything in a plan that only refreshes; elsewhere what the changes depend on.
    fn relevant_drift<'p>(&self, plan: &'p Plan, changes: &[&ResourceChange]) -> Vec<&'p ResourceChange> {
        let relevant: BTreeSet<_> = plan.relevant_attributes.iter().map(|(address, _)| address).collect();
        let changing: BTreeSet<_> = changes.iter().map(|c| &c.address).collect();
        plan.drift
            .iter()
            .filter(|c| match plan.mode {
                Mode::RefreshOnly => true,
                _ => c.action != Action::NoOp && relevant.contains(&c.address) && !changing.is_empty(),
            })
            .collect()
    }

    fn drift(&self, plan: &Plan, drift: &[&ResourceChange], out: &mut String) {
        out.push_str(&format!(
            "\n{}{}\n\n",
            self.style.bold(self.style.cyan("Note:")),
            self.style.bold(" Objects have changed outside of Terraform")
        ));
        out.push_str(&self.paragraphs(if plan.mode == Mode::RefreshOnly {
            "Terraform detected the following changes made outside of Terraform since the last \"terraform apply\":\n"
        } else {
            "Terraform detected the following changes made outside of Terraform since the last \"terraform apply\" which may \
             have affected this plan:\n"
        }));
        for change in drift {
            out.push_str(&self.change(change, true));
        }
    }

    /// What becomes of the outputs.
    fn outputs(&self, plan: &Plan) -> String {
        let changed: Vec<(&str, &OutputChange)> = plan
            .outputs
            .iter()
            .filter(|(_, o)| o.action != Action::NoOp)
            .map(|(n, o)| (&**n, o))
            .collect();
        let width = plan.outputs.keys().map(|name| name.len()).max().unwrap_or(0);
        let writer = Writer {
            style: self.style,
            no_symbols: false,
        };
        let mut out = String::new();
        for (name, output) in changed {
            let hide = |value: &cty::Value| {
                if output.sensitive {
                    value.clone().with_marks(cty::Marks::SENSITIVE)
                } else {
                    value.clone()
                }
            };
            let (before, after) = (hide(&output.before), hide(&output.after));
            // Null may be the value of an output, or stand for none.
            let before = Some(&before).filter(|_| output.action != Action::Create);
            let after = Some(&after).filter(|_| output.action != Action::Delete);
            let diff = build::anything(before, after);
            let change = match output.action {
                Action::Create => Change::Create,
                Action::Delete => Change::Delete,
                _ => Change::Update,
            };
            out.push_str(&format!(
                "{}{}{name:width$} = {}\n",
                " ".repeat(2),
                writer.symbol(change),
                writer.render(&diff, 1, Options::default())
            ));
        }
        out
    }
}

/// A line across.
#[must_use]
pub fn rule(style: Style, width: usize) -> String {
    // One less than the width, so that no terminal breaks the line.
    format!("\n{}\n", style.dim("─".repeat(width.saturating_sub(1))))
}

/// The warning that goes with `-target`.
#[must_use]
pub fn targeting_warning() -> Diagnostics {
    Diagnostic::warning(
        "Resource targeting is in effect",
        "You are creating a plan with the -target option, which means that the result of this plan may not represent all of \
         the changes requested by the current configuration.\n\nThe -target option is not for routine use, and is provided \
         only for exceptional situations such as recovering from errors or mistakes, or when Terraform specifically suggests \
         to use it as part of an error message.",
    )
    .into()
}
