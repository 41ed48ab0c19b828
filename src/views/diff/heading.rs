//! Comments above resource changes: address, action and reason.

use addrs::program::Mode as Tool;
use addrs::{AbsResourceInstance, InstanceKey, Mode};
use engine::plan::{Action, ImportedBy, Reason, ResourceChange};
use lang::render::quote;

use super::Names;
use super::paint::{Ink, Text};

/// Kind of a shown change: planned, or found by refresh.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Cause {
    Proposed,
    Drift,
}

impl Text {
    /// Writes the sign of an action, padded to the widest.
    pub(super) fn action(&mut self, action: Action) -> &mut Text {
        match action {
            Action::NoOp => self.push("   "),
            Action::Create => self.push("  ").inked(Ink::Green, "+"),
            Action::Read => self.push(" ").inked(Ink::Cyan, "<="),
            Action::Update => self.push("  ").inked(Ink::Yellow, "~"),
            Action::Delete => self.push("  ").inked(Ink::Red, "-"),
            Action::DeleteThenCreate => self.inked(Ink::Red, "-").push("/").inked(Ink::Green, "+"),
            Action::CreateThenDelete => self.inked(Ink::Green, "+").push("/").inked(Ink::Red, "-"),
            Action::Forget => self.push(" ").inked(Ink::Red, "."),
            Action::CreateThenForget => self.push(" ").inked(Ink::Green, "+").push("/").inked(Ink::Red, "."),
        }
    }
}

/// Comment above a change.
struct Heading<'h> {
    change: &'h ResourceChange,
    /// Address, with the key of a deposed object.
    address: String,
    cause: Cause,
    names: Names,
}

/// Writes the comment above a change.
pub(super) fn write(text: &mut Text, change: &ResourceChange, cause: Cause, generated: bool, names: Names) {
    let heading = Heading {
        change,
        address: match &change.deposed {
            Some(key) => format!("{} (deposed object {key})", change.address),
            None => change.address.to_string(),
        },
        cause,
        names,
    };
    let moved = change.previous_address.as_ref().filter(|_| change.is_moved());
    match (change.action, moved, &change.importing) {
        (Action::NoOp, Some(previous), importing) => {
            text.ink(Ink::Bold)
                .push(&format!("  # {previous}"))
                .ink(Ink::Reset)
                .push(" has moved to ");
            text.ink(Ink::Bold).push(&heading.address).ink(Ink::Reset).push("\n");
            heading.source(text, None, importing.as_ref());
        }
        (Action::NoOp, None, Some(importing)) => {
            heading.subject(text);
            text.push(" will be imported");
            if generated {
                text.push("\n  # (config will be generated)");
            }
            text.push("\n");
            // Terraform shows the ID only of objects that also change.
            if Tool::current().is_opentofu() {
                heading.source(text, None, Some(importing));
            }
        }
        (_, moved, importing) => {
            heading.statement(text);
            text.push("\n");
            heading.source(text, moved, importing.as_ref());
        }
    }
    text.ink(Ink::Reset);
}

impl Heading<'_> {
    fn subject(&self, text: &mut Text) {
        text.ink(Ink::Bold).push("  # ").push(&self.address).ink(Ink::Reset);
    }

    /// Writes the address above an object that is forgotten. Terraform indents such an address by one blank less.
    fn forgotten(&self, text: &mut Text) {
        text.ink(Ink::Bold).push(" # ").push(&self.address).ink(Ink::Reset);
    }

    fn statement(&self, text: &mut Text) {
        let change = self.change;
        match change.action {
            Action::Create => {
                self.subject(text);
                text.push(" will be created");
            }
            Action::Read => {
                self.subject(text);
                text.push(" will be read during apply").push(why_read(change.reason));
            }
            Action::Update => {
                self.subject(text);
                text.push(match self.cause {
                    Cause::Proposed => " will be updated in-place",
                    Cause::Drift => " has changed",
                });
            }
            Action::DeleteThenCreate | Action::CreateThenDelete => {
                self.subject(text);
                let (before, after) = why_replaced(change.reason);
                text.push(before).ink(Ink::Bold).ink(Ink::Red).push("replaced");
                text.ink(Ink::Reset).push(after);
            }
            Action::Delete => self.destruction(text),
            Action::CreateThenForget => {
                self.forgotten(text);
                text.push(" must be replaced, but the existing object will not be destroyed");
                // As in Terraform, the sign is after one blank, here and for forgotten objects.
                text.push("\n # (destroy = false is set in the configuration)");
            }
            Action::Forget => self.removal(text),
            Action::NoOp => {}
        }
    }

    fn destruction(&self, text: &mut Text) {
        self.subject(text);
        match self.cause {
            Cause::Proposed => {
                text.push(" will be ")
                    .ink(Ink::Bold)
                    .ink(Ink::Red)
                    .push("destroyed")
                    .ink(Ink::Reset);
            }
            Cause::Drift => {
                text.push(" has been deleted");
            }
        }
        why_destroyed(text, self.change);
        if self.change.deposed.is_some() {
            text.push("\n  # (left over from a partially-failed replacement of this instance)");
        }
    }

    /// Writes that an object leaves the state without being destroyed.
    fn removal(&self, text: &mut Text) {
        self.forgotten(text);
        let deposed = self.change.deposed.is_some();
        text.push(&match deposed {
            true => format!(" will be removed from {} state, but ", self.names.tool),
            false => format!(" will no longer be managed by {}, but ", self.names.tool),
        });
        text.ink(Ink::Bold)
            .ink(Ink::Red)
            .push("will not be destroyed")
            .ink(Ink::Reset);
        if deposed {
            text.ink(Ink::Bold)
                .push("\n # (left over from a partially-failed replacement of this instance)")
                .ink(Ink::Reset);
        }
        text.push(match self.change.reason {
            Reason::ForgetBecauseState => {
                "\n # (destroy = false was set when it was last applied; the state remembers it)"
            }
            _ => "\n # (destroy = false is set in the configuration)",
        });
    }

    /// Writes the origin of an object: another address, or an import.
    fn source(&self, text: &mut Text, moved: Option<&AbsResourceInstance>, imported: Option<&ImportedBy>) {
        if let Some(previous) = moved {
            text.push("  # ")
                .ink(Ink::Reset)
                .push(&format!("(moved from {previous})\n"));
        }
        let Some(target) = imported else { return };
        let from = match target {
            ImportedBy::Id(id) => format!("(imported from \"{id}\")\n"),
            ImportedBy::Sensitive => "(imported from a sensitive ID)\n".to_owned(),
            ImportedBy::Identity(_) => "(will be imported first)\n".to_owned(),
        };
        text.push("  # ").ink(Ink::Reset).push(&from);
        let action = self.change.action;
        // A replacement destroys the object that the user wanted to keep by importing it.
        if action.is_replace() && !action.forgets() {
            text.push("  # ")
                .ink(Ink::Reset)
                .ink(Ink::Yellow)
                .push("Warning: this will destroy the imported resource");
            text.ink(Ink::Reset).push("\n");
        }
    }
}

fn why_read(reason: Reason) -> &'static str {
    match reason {
        Reason::ReadBecauseConfigUnknown => "\n  # (config refers to values not yet known)",
        Reason::ReadBecauseDependencyPending => "\n  # (depends on a resource or a module with changes pending)",
        Reason::ReadBecauseCheckNested => "\n  # (config will be reloaded to verify a check block)",
        _ => "",
    }
}

/// Returns the words before and after "replaced".
fn why_replaced(reason: Reason) -> (&'static str, &'static str) {
    match reason {
        Reason::ReplaceBecauseTainted => (" is tainted, so must be ", ""),
        Reason::ReplaceByRequest => (" will be ", ", as requested"),
        Reason::ReplaceByTriggers => (" will be ", " due to changes in replace_triggered_by"),
        _ => (" must be ", ""),
    }
}

fn why_destroyed(text: &mut Text, change: &ResourceChange) {
    let key = &change.address.resource.key;
    let resource = &change.address.resource.resource;
    let reason = match change.reason {
        Reason::DeleteBecauseNoResourceConfig => format!("{}.{} is not in configuration", resource.ty, resource.name),
        Reason::DeleteBecauseNoMoveTarget => {
            let previous = change.previous_address.as_ref().unwrap_or(&change.address);
            format!(
                "{previous} was moved to {}, which is not in configuration",
                change.address
            )
        }
        Reason::DeleteBecauseNoModule => format!("{} is not in configuration", change.address.module),
        Reason::DeleteBecauseWrongRepetition => match key {
            InstanceKey::None => "resource uses count or for_each".to_owned(),
            InstanceKey::Int(_) => "resource does not use count".to_owned(),
            InstanceKey::String(_) => "resource does not use for_each".to_owned(),
        },
        Reason::DeleteBecauseCountIndex => format!("index {key} is out of range for count"),
        Reason::DeleteBecauseEnabledFalse => "enabled is false".to_owned(),
        Reason::DeleteBecauseEachKey => match key {
            InstanceKey::String(key) => format!("key [{}] is not in for_each map", quote(key)),
            key => format!("key {key} is not in for_each map"),
        },
        _ => return,
    };
    text.push("\n  # (because ").push(&reason).push(")");
}

/// Writes the first line of a resource's block, up to the brace.
pub(super) fn block_header(text: &mut Text, resource: &addrs::Resource) {
    let keyword = match resource.mode {
        Mode::Managed => "resource",
        Mode::Data => "data",
        Mode::Ephemeral => "ephemeral",
        Mode::List => "list",
    };
    text.push(keyword)
        .push(" ")
        .push(&quote(&resource.ty))
        .push(" ")
        .push(&quote(&resource.name))
        .push(" ");
}
