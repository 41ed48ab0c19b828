//! Prompt before a plan is applied. At a terminal, the user can first inspect one object or its reasons, make the plan again
//! without some parts, or save it to a file.

use std::path::Path;

use addrs::Target;
use engine::inputs::PlanOptions;
use engine::plan::{Plan, ResourceChange};
use provider::Schemas;
use syntax::content::{did_you_mean, suggest};
use views::diff;
use views::prompt::{Answer, Echo};

use crate::commands::graph::Subject;
use crate::commands::{explain, unanswered};
use crate::operation::Operation;
use crate::outcome::Failure;
use crate::session::Session;
use crate::workdir::Project;

/// Help for the answers other than yes and no.
const HELP: &str = "
  yes         applies the plan
  d ADDRESS   shows the change of one object in whole
  e ADDRESS   explains where the values of a resource come from
  x ADDRESS   plans again without a resource or module, as -exclude does
  w FILE      writes the plan to a file, which can be applied later
  ?           shows these lines

Any other answer cancels.
";

/// Decision of the user about a plan.
pub(super) enum Decision {
    Approved,
    /// The user has excluded these addresses, so another plan must be made.
    Again(Vec<Target>),
    Cancelled,
}

/// Plan that waits for its approval, with the operation and the options that it was made with.
pub(super) struct Review<'a> {
    pub session: &'a Session,
    pub operation: &'a Operation<'a>,
    pub options: &'a PlanOptions,
    pub plan: &'a Plan,
    pub schemas: &'a Schemas,
}

impl Review<'_> {
    /// Prompts until the user approves, cancels or excludes an object. Only the answer "yes" approves; any answer that is not one of the
    /// commands cancels. Without a terminal, every answer other than "yes" cancels.
    pub(super) fn answer(&self, question: &str, explanation: &str) -> Result<Decision, Failure> {
        let ui = &self.session.ui;
        let style = ui.style();
        // A script answers with a single line, as for Terraform, so the further answers are offered only to a person.
        let is_person = ui.is_terminal() && ui.is_interactive();
        let explanation = match explanation.rsplit_once('\n') {
            Some((first, last)) if is_person => {
                format!("{first}\nOther answers than yes show more of the plan: ? lists them.\n{last}")
            }
            _ => explanation.to_owned(),
        };
        let mut prompt = format!(
            "\n{}\n{}\n\n  {} ",
            style.bold(question),
            views::wrap::indented(&explanation, ui.width()),
            style.bold("Enter a value:")
        );
        loop {
            let answer = ui.ask(&prompt, Echo::On);
            ui.line("");
            let answer = match answer {
                Answer::Line(answer) => answer,
                other => return Err(unanswered(&other, "-auto-approve")),
            };
            if answer.trim_end() == "yes" {
                return Ok(Decision::Approved);
            }
            if !is_person {
                return Ok(Decision::Cancelled);
            }
            let (key, rest) = answer.trim().split_once(' ').unwrap_or((answer.trim(), ""));
            match (key, rest.trim()) {
                ("?", "") => ui.out(HELP.trim_start_matches('\n')),
                ("d", address) if !address.is_empty() => self.details(address),
                ("e", address) if !address.is_empty() => self.reasons(address),
                ("w", file) if !file.is_empty() => self.write(file),
                ("x", address) if !address.is_empty() => {
                    if let Some(target) = self.excluded(address) {
                        return Ok(Decision::Again(vec![target]));
                    }
                }
                _ => return Ok(Decision::Cancelled),
            }
            prompt = format!("\n  {} ", style.bold("Enter a value:"));
        }
    }

    /// Shows the changes of an object, or of all instances of a resource.
    fn details(&self, address: &str) {
        let ui = &self.session.ui;
        let is_meant = |change: &&ResourceChange| {
            change.address.to_string() == address || change.address.config().to_string() == address
        };
        let style = diff::Style {
            short: false,
            unchanged: true,
            ..self.session.invocation.shown.style(ui)
        };
        let mut any = false;
        for change in self.plan.changes.iter().filter(is_meant) {
            any = true;
            ui.out(diff::change_text(self.plan.view(), self.schemas, style, change));
        }
        if !any {
            ui.line(format!("The plan has no object {address}.{}", self.nearest(address)));
        }
    }

    fn reasons(&self, address: &str) {
        let project = &self.operation.project;
        let subject = Subject {
            project: Project {
                config: project.config.clone(),
                sources: project.sources.clone(),
            },
            state: self.plan.prior_state.clone(),
            plan: Some(self.plan.clone()),
            schemas: self.schemas.clone(),
            values: config::values::VariableValues::new(),
        };
        match explain::of_subject(self.session, &subject, address) {
            Ok(text) => self.session.ui.out(text),
            Err(failure) => {
                self.session.render(failure.into());
            }
        }
    }

    fn write(&self, file: &str) {
        let ui = &self.session.ui;
        match self.operation.save_plan(Path::new(file), self.plan.clone()) {
            Ok(()) => ui.line(format!("The plan is in {file}. Nothing was changed so far.")),
            Err(problems) => {
                self.session.show_now(&problems, &self.operation.project.sources);
            }
        }
    }

    /// Returns the address that is to be left out; `None`, with a message to the user, if that is not possible.
    fn excluded(&self, address: &str) -> Option<Target> {
        let ui = &self.session.ui;
        if !self.options.targets.is_empty() {
            ui.line("The plan is limited by -target, so that nothing can be left out of it.");
            return None;
        }
        let target = match addrs::parse::target(address) {
            Ok(target) => target,
            Err(problem) => {
                ui.line(problem.detail);
                return None;
            }
        };
        if !self.plan.changes.iter().any(|change| target.selects(&change.address)) {
            ui.line(format!("The plan has nothing at {address}.{}", self.nearest(address)));
            return None;
        }
        Some(target)
    }

    fn nearest(&self, address: &str) -> String {
        let all: Vec<String> = self.plan.changes.iter().map(|c| c.address.to_string()).collect();
        did_you_mean(suggest(address, all.iter().map(String::as_str)))
    }
}
