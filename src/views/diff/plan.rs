//! Text of a whole plan: drift, changes, outputs, and a conclusion.

use std::collections::{BTreeSet, HashMap};

use cty::{Path, Value};
use engine::plan::{Action, Mode, OutputChange, PlanView, ResourceChange};
use provider::Schemas;
use unicode_width::UnicodeWidthStr as _;

use super::heading::{self, Cause};
use super::paint::{Ink, Text};
use super::pair::{Pair, Paths};
use super::render::{self, attribute_name};
use super::signs::Options;
use super::tree::{Act, Node};
use super::{Names, Style};
use super::{actions, compare};
use crate::wrap::wrap;

struct Writer<'p> {
    text: Text,
    plan: PlanView<'p>,
    schemas: &'p Schemas,
    width: usize,
    /// Shows sensitive values.
    revealed: bool,
    options: Options,
    names: Names,
}

pub(super) fn write(plan: PlanView<'_>, schemas: &Schemas, style: Style, names: Names) -> String {
    let mut writer = Writer::new(plan, schemas, style, names);
    writer.all();
    writer.text.out
}

/// Renders one change.
pub(super) fn write_change(plan: PlanView<'_>, schemas: &Schemas, style: Style, change: &ResourceChange) -> String {
    let mut writer = Writer::new(plan, schemas, style, style.program);
    writer.proposed(change);
    writer.text.out
}

/// Renders the change of an object outside of the program.
pub(super) fn write_drift(plan: PlanView<'_>, schemas: &Schemas, style: Style, change: &ResourceChange) -> String {
    let mut writer = Writer::new(plan, schemas, style, style.program);
    let compared = writer.compare(change, Paths::All);
    writer.change(change, &compared, Cause::Drift);
    writer.text.out
}

/// Returns true if plans show the change.
fn is_shown(change: &ResourceChange) -> bool {
    change.action != Action::NoOp || change.is_moved() || change.importing.is_some()
}

impl<'p> Writer<'p> {
    fn new(plan: PlanView<'p>, schemas: &'p Schemas, style: Style, names: Names) -> Writer<'p> {
        Writer {
            text: Text::new(style.colour),
            plan,
            schemas,
            // The last column stays free, as in all text.
            width: style.width.saturating_sub(1),
            revealed: style.revealed,
            options: Options {
                short: style.short,
                show_all: style.unchanged,
                ..Options::default()
            },
            names,
        }
    }
}

impl Writer<'_> {
    fn all(&mut self) {
        let changes: Vec<&ResourceChange> = self
            .plan
            .changes
            .iter()
            .filter(|c| is_shown(c) && !c.drops_data_source())
            .collect();
        let longest = self
            .plan
            .outputs
            .keys()
            .map(|name| attribute_name(name).width())
            .max()
            .unwrap_or(0);
        let outputs: Vec<(&str, Node<'_>, &OutputChange)> = self
            .plan
            .outputs
            .iter()
            .filter(|(_, change)| change.action != Action::NoOp)
            .map(|(name, change)| (&**name, output(change, self.revealed, self.options.short), change))
            .filter(|(_, node, change)| node.act != Act::Keep || visibility(change).is_some())
            .collect();
        // As in Terraform, drift without consequences is not shown.
        let nothing = !self.plan.changes.iter().any(is_shown) && outputs.is_empty();
        let drift = self.drift(nothing);
        let invocations = self.plan.invocations.len();
        if changes.is_empty() && outputs.is_empty() && invocations == 0 {
            return self.no_changes(drift);
        }
        if drift {
            self.rule();
        }
        let actions: BTreeSet<Action> = changes
            .iter()
            .map(|c| c.action)
            .filter(|a| *a != Action::NoOp)
            .collect();
        if !actions.is_empty() {
            self.legend(&actions);
        }
        if !changes.is_empty() || invocations > 0 {
            self.changes(&changes);
            actions::requested(&mut self.text, self.plan, self.schemas, self.revealed, self.names.tool);
        }
        if !outputs.is_empty() {
            self.outputs(&outputs, longest);
            if actions.is_empty() && invocations == 0 {
                self.text.push("\n");
                self.paragraph(&format!(
                    "Applying this plan saves the new output values in the {} state. It changes no object.",
                    self.names.tool
                ));
            }
        }
    }

    fn paragraph(&mut self, text: &str) {
        for line in wrap(text, self.width) {
            self.text.push(&line).push("\n");
        }
    }

    fn rule(&mut self) {
        let width = self.width;
        self.text.ink(Ink::Grey).push("\n");
        for _ in 0..width {
            self.text.push("─");
        }
        self.text.ink(Ink::Reset).push("\n");
    }

    /// Writes the drift that may have led to planned changes, if there are any; in a refresh-only plan, all drift.
    /// Returns true if drift was written.
    fn drift(&mut self, nothing_planned: bool) -> bool {
        let refresh_only = self.plan.mode == Mode::RefreshOnly;
        if nothing_planned && !refresh_only {
            return false;
        }
        let mut relevant: HashMap<&addrs::AbsResourceInstance, Vec<&Path>> = HashMap::new();
        for (address, path) in self.plan.relevant_attributes {
            relevant.entry(address).or_default().push(path);
        }
        let plan = self.plan;
        let mut any = false;
        for change in plan.drift {
            let paths = if refresh_only {
                Paths::All
            } else {
                // As in Terraform, a reference to all instances of a resource makes none of them relevant.
                let Some(paths) = relevant.get(&change.address) else {
                    continue;
                };
                Paths::new(paths.iter().copied())
            };
            let compared = self.compare(change, paths);
            if (!refresh_only && compared.act == Act::Keep) || !is_shown(change) {
                continue;
            }
            if !any {
                any = true;
                self.text
                    .push("\n")
                    .ink(Ink::Bold)
                    .ink(Ink::Cyan)
                    .push("Note:")
                    .ink(Ink::Reset)
                    .ink(Ink::Bold);
                self.text
                    .push(&format!(" Objects have changed outside of {}\n", self.names.tool))
                    .ink(Ink::Reset);
                self.text.push("\n");
                self.paragraph(&format!(
                    "These objects are not as the last \"{} apply\" left them, which may affect this plan:",
                    self.names.command
                ));
            }
            self.text.push("\n");
            self.change(change, &compared, Cause::Drift);
        }
        if any {
            self.text.push("\n\n");
            self.paragraph(&if refresh_only {
                format!(
                    "This is a refresh-only plan. If these changes are intended, apply it: the {} state then has the new values, \
                     and no object is changed.",
                    self.names.tool
                )
            } else {
                "The plan below may revert these changes or react to them. To accept them instead, write them into the \
                 configuration, or name the attributes in ignore_changes."
                    .to_owned()
            });
        }
        any
    }

    fn compare<'c>(&self, change: &'c ResourceChange, relevant: Paths<'c>) -> Node<'c>
    where
        Self: 'c,
    {
        let resource = &change.address.resource.resource;
        let pair = Pair::of_object(
            &change.before,
            // A forgotten object does not change.
            if change.action == Action::Forget {
                &change.before
            } else {
                &change.after
            },
            Paths::new(&change.replace_paths),
            relevant,
        )
        .revealed(self.revealed)
        .alike(self.options.short);
        match self
            .schemas
            .resource(&change.provider.provider, resource.mode, &resource.ty)
        {
            Some(schema) => compare::block(&pair, &schema.block),
            // Without a schema, the values alone determine how they are shown.
            None => compare::dynamic(pair),
        }
    }

    fn change(&mut self, change: &ResourceChange, compared: &Node<'_>, cause: Cause) {
        let generated = self.plan.generated_config.contains_key(&change.address);
        heading::write(&mut self.text, change, cause, generated, self.names);
        self.text.action(change.action);
        if change.action != Action::NoOp {
            self.text.ink(Ink::Reset);
        }
        self.text.push(" ");
        heading::block_header(&mut self.text, &change.address.resource.resource);
        // An imported object is shown completely, since the user has not seen it before.
        let options = Options {
            show_all: self.options.show_all || change.importing.is_some(),
            ..self.options
        };
        render::node(&mut self.text, compared, 0, options);
        if cause == Cause::Proposed && !self.plan.invocations.is_empty() {
            actions::triggered(&mut self.text, self.plan, self.schemas, self.revealed, change);
        }
        self.text.push("\n");
    }

    fn legend(&mut self, actions: &BTreeSet<Action>) {
        self.text.push("\n");
        self.paragraph(&format!(
            "{} used the selected providers to generate the following execution plan. Resource actions are indicated with \
             the following symbols:",
            self.names.tool
        ));
        let words = [
            (Action::Create, "create"),
            (Action::Update, "update in-place"),
            (Action::Delete, "destroy"),
            (Action::DeleteThenCreate, "destroy and then create replacement"),
            (Action::CreateThenDelete, "create replacement and then destroy"),
            (Action::Read, "read (data resources)"),
        ];
        for (action, words) in words {
            if actions.contains(&action) {
                self.text
                    .action(action)
                    .push(" ")
                    .push(words)
                    .ink(Ink::Reset)
                    .push("\n");
            }
        }
    }

    fn changes(&mut self, changes: &[&ResourceChange]) {
        let tool = self.names.tool;
        self.text.push("\n");
        self.text.push(&if self.plan.errored {
            format!("{tool} planned the following actions, but then encountered a problem:\n")
        } else {
            format!("{tool} will perform the following actions:\n")
        });
        for change in changes {
            self.text.push("\n");
            self.proposed(change);
        }
        self.text.push("\n").inked(Ink::Bold, "Plan:");
        let totals = self.plan.totals();
        self.text.push(&format!(" {totals}\n")).ink(Ink::Reset);
    }

    /// Writes a planned change.
    fn proposed(&mut self, change: &ResourceChange) {
        // A data source is shown as a new read, and not compared with the earlier result.
        let read = (change.action == Action::Read).then(|| ResourceChange {
            before: Value::null(change.before.ty().clone()),
            ..change.clone()
        });
        let change = read.as_ref().unwrap_or(change);
        let compared = self.compare(change, Paths::All);
        self.change(change, &compared, Cause::Proposed);
    }

    fn outputs(&mut self, outputs: &[(&str, Node<'_>, &OutputChange)], longest: usize) {
        self.text.push("\nChanges to Outputs:\n");
        for (name, compared, change) in outputs {
            let name = attribute_name(name);
            if compared.act == Act::Keep {
                // The value does not change, so only the change of its sensitivity is shown.
                self.text.sign(Act::Update, Options::default()).push(&name);
                self.text.blanks(longest - name.width()).push(" = (sensitive value)");
                self.text.push(visibility(change).unwrap_or_default()).push("\n");
                continue;
            }
            self.text.sign(compared.act, Options::default()).push(&name);
            self.text.blanks(longest - name.width()).push(" = ");
            render::node(&mut self.text, compared, 0, self.options);
            self.text.push("\n");
        }
    }

    fn no_changes(&mut self, drift: bool) {
        let Names { tool, command } = self.names;
        if self.plan.errored {
            if drift {
                self.rule();
            }
            self.text
                .push("\n")
                .ink(Ink::Bold)
                .ink(Ink::Red)
                .push("Planning failed.")
                .ink(Ink::Reset)
                .ink(Ink::Bold);
            self.text
                .push(&format!(" {tool} encountered an error while generating this plan."))
                .ink(Ink::Reset);
            self.text.push("\n\n");
            return;
        }
        let mode = self.plan.mode;
        if mode == Mode::RefreshOnly && drift {
            // The result of a refresh-only plan is the drift, which has been shown above.
            return;
        }
        if drift {
            self.rule();
        }
        self.text
            .push("\n")
            .ink(Ink::Reset)
            .ink(Ink::Bold)
            .ink(Ink::Green)
            .push("No changes.")
            .ink(Ink::Reset)
            .ink(Ink::Bold);
        self.text.push(match mode {
            Mode::RefreshOnly => " Your infrastructure still matches the configuration.",
            Mode::Destroy => " No objects need to be destroyed.",
            Mode::Normal => " Your infrastructure matches the configuration.",
        });
        self.text.ink(Ink::Reset).push("\n\n").ink(Ink::Reset);
        let words = match mode {
            Mode::RefreshOnly => "Every object is as the last run left it.".to_owned(),
            Mode::Destroy => {
                "The state has no objects: nothing was created yet, or everything is deleted already.".to_owned()
            }
            Mode::Normal if drift && self.plan.has_changes() => {
                "The configuration already has the values found above. Applying \
                 this plan writes them to the state, and changes no object."
                    .to_owned()
            }
            Mode::Normal if drift => format!(
                "The configuration already has the values found above. To write them to the {tool} state, run:\n  {command} apply \
                 -refresh-only"
            ),
            Mode::Normal => format!("{tool} compared every object with its configuration, and found no differences."),
        };
        self.paragraph(&words);
    }
}

/// Returns the note on an output of which only the sensitivity changes; `None` if its value changes, too.
fn visibility(change: &OutputChange) -> Option<&'static str> {
    let stays = change.action == Action::Update
        && change.before.clone().unmark_deep().0 == change.after.clone().unmark_deep().0;
    stays.then(|| match change.before.marks().is_sensitive() {
        true => " # becomes visible: it is not sensitive any more",
        false => " # becomes sensitive",
    })
}

fn output(change: &OutputChange, revealed: bool, alike: bool) -> Node<'_> {
    fn side(value: &Value, present: bool) -> Option<&Value> {
        present.then_some(value)
    }
    // An output that was null is added.
    let mut before = side(&change.before, change.action != Action::Create).filter(|v| !v.is_null());
    // An output that becomes null is removed from the state.
    let gone = change.action == Action::Delete || change.after.is_null();
    let after = side(&change.after, !gone);
    if !change.after.is_known() {
        // As for attributes, an empty string may mean that there was no value.
        before = before.map(compare::null_if_empty);
    }
    let pair = Pair::of_value(before, after).sensitive(change.sensitive, change.sensitive);
    compare::dynamic(pair.revealed(revealed).alike(alike))
}
