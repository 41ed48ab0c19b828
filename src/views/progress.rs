//! Progress of an operation as text: one line for each event.

use std::sync::Arc;

use addrs::{AbsActionInstance, AbsResourceInstance};
use engine::events::Event;
use engine::identity::identity_text;
use engine::invocation::InvocationTrigger;
use engine::plan::{Action, ImportedBy};

use crate::reporter::{ObjectOperation, OperationView, StillRunning, lines_of_output, seconds};
use crate::ui::Ui;
use crate::words::{bracketed, ephemeral_words, words};
use crate::{lanes, query};

/// View that shows events as lines of text.
pub struct Progress {
    ui: Arc<Ui>,
    /// True for `import`, which has lines of its own.
    import: bool,
    /// True if progress lines are left out.
    concise: bool,
    /// True if the lines of objects that are refreshed or read are left out.
    without_reading: bool,
}

impl Progress {
    /// Returns the view of an operation.
    #[must_use]
    pub fn new(ui: Arc<Ui>) -> Progress {
        Progress {
            ui,
            import: false,
            concise: false,
            without_reading: false,
        }
    }

    /// Returns the view of the command `import`.
    #[must_use]
    pub fn of_import(ui: Arc<Ui>) -> Progress {
        Progress {
            import: true,
            ..Progress::new(ui)
        }
    }

    /// Leaves out progress lines, if `concise` is set.
    #[must_use]
    pub fn concise(self, concise: bool) -> Progress {
        Progress { concise, ..self }
    }

    /// Leaves out the lines of objects that are refreshed or read, if `without` is set.
    #[must_use]
    pub fn without_reading(self, without: bool) -> Progress {
        Progress {
            without_reading: without,
            ..self
        }
    }

    /// Writes a line about the progress of an object.
    fn about(&self, line: &str) {
        if self.concise {
            return;
        }
        self.ui.line(self.ui.style().bold(line));
    }

    fn refresh_start(&self, address: &AbsResourceInstance, id: Option<&(String, String)>) {
        if self.import {
            let style = self.ui.style();
            let ty = &address.resource.resource.ty;
            self.ui.line(style.good(format!("{address}: Import prepared!")));
            self.ui.line(style.green(format!("  Prepared {ty} for import")));
        }
        self.about(&format!("{address}: Refreshing state...{}", bracketed(id)));
    }

    fn action(&self, event: &Event) {
        let style = self.ui.style();
        match event {
            Event::ActionStart { address, trigger } => {
                self.about(&format!("Action started: {}", invocation(address, trigger)));
            }
            Event::ActionProgress {
                address,
                trigger,
                message,
            } => {
                let head = style.bold(format!("Action {}:", invocation(address, trigger)));
                self.ui.line(format!("{head} {message}"));
                // The output is flushed, because standard output is buffered and the action may take long.
                self.ui.flush();
            }
            Event::ActionComplete { address, trigger } if !self.concise => {
                self.ui
                    .line(style.good(format!("Action complete: {}", invocation(address, trigger))));
            }
            Event::ActionFailed {
                address,
                trigger,
                error,
            } => self
                .ui
                .line(style.bad(format!("Action failed: {} - {error}", invocation(address, trigger)))),
            _ => {}
        }
    }

    fn output(&self, address: &AbsResourceInstance, provisioner: &str, output: &str) {
        let head = self.ui.style().bold(format!("{address} ({provisioner}):"));
        for line in lines_of_output(output) {
            self.ui.line(format!("{head} {line}"));
        }
        // The output is flushed, because standard output is buffered and the provisioner may take long.
        self.ui.flush();
    }
}

/// Returns true if an event is about an object that is refreshed or read.
fn is_reading(event: &Event) -> bool {
    matches!(
        event,
        Event::RefreshStart { .. }
            | Event::OperationStart {
                action: Action::Read,
                ..
            }
            | Event::OperationComplete {
                action: Action::Read,
                ..
            }
    )
}

impl OperationView for Progress {
    fn event(&self, event: &Event) {
        if self.without_reading && is_reading(event) {
            return;
        }
        match event {
            Event::ImportStart { address, target } => self.about(&match target {
                ImportedBy::Id(id) if self.import => format!("{address}: Importing from ID {:?}...", &**id),
                _ => format!("{address}: Preparing import... [{}]", import_target(target)),
            }),
            Event::Imported { address, target } => {
                let target = import_target(target);
                self.about(&format!("{address}: Importing... [{target}]"));
                self.about(&format!("{address}: Import complete [{target}]"));
            }
            Event::ListComplete { found } if !found.results.is_empty() => self.ui.line(query::lines(found)),
            Event::RefreshStart { address, id } => self.refresh_start(address, id.as_ref()),
            Event::OperationStart {
                address,
                deposed,
                action,
                id,
            } => {
                let Some(words) = words(*action) else { return };
                let id = id.as_ref().filter(|_| *action != Action::Create);
                let name = name(address, deposed.as_ref());
                self.about(&format!("{name}: {}...{}", words.begins, bracketed(id)));
            }
            Event::OperationComplete {
                address,
                action,
                id,
                elapsed,
                ..
            } => {
                // As in Terraform, only the line of the start contains the deposed key.
                let Some(words) = words(*action) else { return };
                let id = id.as_ref().filter(|_| *action != Action::Delete);
                let elapsed = seconds(*elapsed);
                self.about(&format!(
                    "{address}: {} complete after {elapsed}{}",
                    words.work,
                    bracketed(id)
                ));
            }
            Event::EphemeralDeferred { address } => {
                self.about(&format!("{address}: Configuration unknown, deferring..."));
            }
            Event::EphemeralStart { address, action } => {
                self.about(&format!("{address}: {}...", ephemeral_words(*action).begins));
            }
            Event::EphemeralComplete {
                address,
                action,
                elapsed,
            } => {
                let work = ephemeral_words(*action).work;
                self.about(&format!("{address}: {work} complete after {}", seconds(*elapsed)));
            }
            Event::ProvisionStart { address, provisioner } => {
                self.about(&format!("{address}: Provisioning with '{provisioner}'..."));
            }
            Event::ProvisionOutput {
                address,
                provisioner,
                output,
            } => self.output(address, provisioner, output),
            Event::ActionStart { .. }
            | Event::ActionProgress { .. }
            | Event::ActionComplete { .. }
            | Event::ActionFailed { .. } => self.action(event),
            Event::Lanes { limits, settled: true } => self.about(&lanes::line(limits)),
            // Failures become diagnostics, which contain more than the event.
            Event::OperationFailed { .. }
            | Event::EphemeralFailed { .. }
            | Event::ListStart { .. }
            | Event::ListComplete { .. }
            | Event::Progress { .. }
            | Event::RefreshComplete { .. }
            | Event::RefreshFailed { .. }
            | Event::ProvisionComplete { .. }
            | Event::ProvisionFailed { .. }
            | Event::Lanes { .. }
            | Event::PlanStart { .. }
            | Event::PlanComplete { .. }
            | Event::PlanFailed { .. }
            | Event::Stopping => {}
        }
    }

    fn still_running(&self, operations: &[StillRunning]) {
        // The live area shows the durations continuously.
        if self.ui.is_live() {
            return;
        }
        for one in operations {
            let begins = match one.operation {
                ObjectOperation::Change(action) => words(action).map_or("Reading", |words| words.begins),
                ObjectOperation::Ephemeral(action) => ephemeral_words(action).begins,
            };
            let id = one.id.as_ref().map(|(name, value)| format!("{name}={value}, "));
            // This is the format of Terraform since 1.12, as in 00m10s.
            let so_far = one.elapsed.as_secs();
            self.about(&format!(
                "{}: Still {}... [{}{:02}m{:02}s elapsed]",
                name(&one.address, one.deposed.as_ref()),
                begins.to_lowercase(),
                id.unwrap_or_default(),
                so_far / 60,
                so_far % 60
            ));
        }
    }

    fn tick(&self) {
        self.ui.flush();
    }
}

/// Returns the name of an object, like `t.n (deposed object 1234abcd)`.
pub(super) fn name(address: &AbsResourceInstance, deposed: Option<&Arc<str>>) -> String {
    match deposed {
        Some(key) => format!("{address} (deposed object {key})"),
        None => address.to_string(),
    }
}

/// Returns the name of an invocation, like `action.t.n (triggered by t.n)`.
pub(super) fn invocation(address: &AbsActionInstance, trigger: &InvocationTrigger) -> String {
    match trigger {
        InvocationTrigger::Lifecycle(t) => format!("{address} (triggered by {})", t.resource),
        InvocationTrigger::Invoke { caller: None } => format!("{address} (triggered by CLI)"),
        InvocationTrigger::Invoke { caller: Some(caller) } => {
            format!("{address} (triggered by CLI, called from {caller})")
        }
    }
}

/// Describes the import target in progress lines.
fn import_target(target: &ImportedBy) -> String {
    match target {
        ImportedBy::Id(id) => format!("id={id}"),
        ImportedBy::Identity(identity) => format!("identity={}", identity_text(identity)),
        ImportedBy::Sensitive => "(sensitive value)".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn address() -> AbsResourceInstance {
        addrs::parse::resource_instance("terraform_data.a[0]").unwrap()
    }

    #[test]
    fn an_operation_from_begin_to_end() {
        let (ui, out, _) = Ui::captured();
        let progress = Progress::new(ui);
        let id = Some(("id".to_owned(), "x".to_owned()));
        progress.event(&Event::OperationStart {
            address: address(),
            deposed: None,
            action: Action::Update,
            id: id.clone(),
        });
        progress.still_running(&[StillRunning {
            address: address(),
            deposed: None,
            operation: ObjectOperation::Change(Action::Update),
            id: id.clone(),
            elapsed: Duration::from_secs(70),
        }]);
        progress.event(&Event::OperationComplete {
            address: address(),
            deposed: None,
            action: Action::Update,
            id,
            elapsed: Duration::from_secs(80),
        });
        assert_eq!(
            out.text(),
            "terraform_data.a[0]: Modifying... [id=x]
terraform_data.a[0]: Still modifying... [id=x, 01m10s elapsed]
terraform_data.a[0]: Modifications complete after 1m20s [id=x]
"
        );
    }

    #[test]
    fn concise_progress_leaves_out_progress_lines_but_not_output() {
        let (ui, out, _) = Ui::captured();
        let progress = Progress::new(ui).concise(true);
        let id = Some(("id".to_owned(), "x".to_owned()));
        let started = |action| Event::OperationStart {
            address: address(),
            deposed: None,
            action,
            id: None,
        };
        for event in [
            Event::RefreshStart { address: address(), id },
            started(Action::Create),
            started(Action::Read),
            Event::ProvisionStart {
                address: address(),
                provisioner: "local-exec".into(),
            },
            Event::ProvisionOutput {
                address: address(),
                provisioner: "local-exec".into(),
                output: "said".into(),
            },
            Event::OperationComplete {
                address: address(),
                deposed: None,
                action: Action::Create,
                id: None,
                elapsed: Duration::ZERO,
            },
        ] {
            progress.event(&event);
        }
        progress.still_running(&[StillRunning {
            address: address(),
            deposed: None,
            operation: ObjectOperation::Change(Action::Create),
            id: None,
            elapsed: Duration::from_secs(10),
        }]);
        assert_eq!(out.text(), "terraform_data.a[0] (local-exec): said\n");
    }

    #[test]
    fn output_of_provisioners_is_shown_line_by_line() {
        let (ui, out, _) = Ui::captured();
        let progress = Progress::new(ui);
        progress.event(&Event::ProvisionOutput {
            address: address(),
            provisioner: "local-exec".into(),
            output: "a\r\n\nb  \n".into(),
        });
        assert_eq!(
            out.text(),
            "terraform_data.a[0] (local-exec): a\nterraform_data.a[0] (local-exec): b\n"
        );
    }
}
