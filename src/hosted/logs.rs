//! Logs of a run: lines of text, or events that are shown like those of local operations.

use std::sync::Arc;

use serde_json::Value as Json;
use syntax::{Diagnostic, Diagnostics, Pos, Range, SourceMap};
use tfe::{LogOf, Run, RunStatus};

use crate::run::{Remote, Step};

/// Part of a run that has a separate log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Plan,
    Apply,
}

/// Number of lines (version and host) with which the log of an apply begins, and which the log of the plan has shown already.
const KNOWN_LINES: usize = 3;

impl Remote<'_> {
    /// Shows the log of a part of a run until it ends.
    pub(crate) async fn show_log(&self, phase: Phase, id: Option<&str>) -> Step<()> {
        // A run that was canceled early has no log.
        let Some(id) = id else { return Ok(()) };
        let of = match phase {
            Phase::Plan => LogOf::Plan,
            Phase::Apply => LogOf::Apply,
        };
        const FAILED: &str = "Failed to read logs";
        let connection = &self.hosted.connection;
        let mut log = self.ask("Failed to retrieve logs", connection.log(of, id)).await?;
        let mut left_out = if phase == Phase::Apply { KNOWN_LINES } else { 0 };
        while let Some(lines) = self.ask(FAILED, connection.log_lines(&mut log)).await? {
            for line in lines {
                if left_out > 0 {
                    left_out -= 1;
                } else {
                    self.show_line(phase, &line);
                }
            }
        }
        Ok(())
    }

    fn show_line(&self, phase: Phase, line: &str) {
        match event(line) {
            Some(event) if !self.output.event(line) => self.show_event(phase, &event),
            Some(_) => {}
            None => self.output.foreign(line),
        }
    }

    fn show_event(&self, phase: Phase, event: &Json) {
        let text = |name: &str| event.get(name).and_then(Json::as_str).unwrap_or_default();
        let message = text("@message");
        match text("type") {
            // These events are left out, because the whole plan is shown after its log.
            "planned_change" | "change_summary" | "outputs" if phase == Phase::Plan => {}
            "version"
            | "planned_change"
            | "refresh_complete"
            | "provision_complete"
            | "provision_errored"
            | "apply_errored"
            | "ephemeral_op_errored"
            | "policy_info"
            | "policy_result"
            | "policy_diagnostic" => {}
            "apply_start"
            | "apply_complete"
            | "refresh_start"
            | "provision_start"
            | "ephemeral_op_start"
            // As in local operations, -concise leaves out these events.
            | "ephemeral_op_complete"
                if self.context.concise => {}
            "apply_start"
            | "apply_complete"
            | "refresh_start"
            | "provision_start"
            | "resource_drift"
            | "ephemeral_op_start"
            | "ephemeral_op_complete" => self.output.bold(message),
            "diagnostic" => {
                let (problem, sources) = diagnostic(event);
                self.context.console.show_now(&problem, &sources);
            }
            "provision_progress" => {
                let of = |pointer: &str| event.pointer(pointer).and_then(Json::as_str).unwrap_or_default();
                let who = format!("{} ({}):", of("/hook/resource/addr"), of("/hook/provisioner"));
                self.output
                    .foreign(&format!("{} {}", self.output.style().bold(who), of("/hook/output")));
            }
            "change_summary" => self.output.line(format!("\n{}\n", self.output.style().good(message))),
            "outputs" => self.show_outputs(event),
            _ => self.output.foreign(message),
        }
    }

    fn show_outputs(&self, event: &Json) {
        let outputs = event.get("outputs").and_then(Json::as_object);
        let Some(outputs) = outputs.filter(|outputs| !outputs.is_empty()) else {
            return;
        };
        self.output.line(self.output.style().good("Outputs:"));
        for (name, output) in outputs {
            let value = if output.get("sensitive").and_then(Json::as_bool) == Some(true) {
                "(sensitive value)".to_owned()
            } else {
                let ty = output.get("type").and_then(|ty| cty::json::type_from_json(ty).ok());
                let value = ty.and_then(|ty| cty::json::from_json(output.get("value")?, &ty).ok());
                value.map_or_else(|| "null".to_owned(), |value| lang::render::format_value(&value, 0))
            };
            self.output.line(format!("{name} = {value}"));
        }
    }

    /// Shows the plan of a run whose log is structured, from the server's JSON document. Writes the generated
    /// configuration, if it was requested.
    pub(crate) async fn show_plan(&self, run: &Run) -> Step<()> {
        let connection = &self.hosted.connection;
        let read = connection.run_with(&run.id, "workspace,plan");
        let (run, included) = self.ask("Failed to retrieve run", read).await?;
        let Some(plan) = included.plan() else { return Ok(()) };
        let ended = matches!(
            run.status,
            RunStatus::Errored | RunStatus::Canceled | RunStatus::Discarded
        );
        let workspace = included.workspace().unwrap_or_else(|| self.hosted.workspace.clone());
        let structured = workspace.structured_output && crate::show::has_structured_output(&self.server);
        let out = self
            .request
            .generate
            .filter(|_| plan.generated_configuration && matches!(&*plan.status, "errored" | "finished"));
        let shown = structured && !ended && self.context.console.stream.is_none();
        if !shown && out.is_none() {
            return Ok(());
        }
        // The redacted document contains everything that is shown. The full one would require more permissions.
        let read = connection.plan_json(&plan.id, true);
        let text = self.ask("Failed to read JSON plan", read).await?;
        let document = crate::show::document(&text).map_err(crate::run::Ended::from)?;
        if let Some(out) = out {
            let text = crate::show::generated(&document, self.context.stores.program.tool);
            stores::generated::write_new(out.as_ref(), &text).map_err(crate::run::Ended::from)?;
        }
        if shown {
            crate::show::human(self.context, &document, &run);
        }
        Ok(())
    }
}

/// Parses a line as an event; `None` if it is not one.
fn event(line: &str) -> Option<Json> {
    let document: Json = serde_json::from_str(line.trim()).ok()?;
    document.get("@message").is_some().then_some(document)
}

/// Parses the diagnostic of an event, and the source lines in it.
fn diagnostic(event: &Json) -> (Diagnostics, SourceMap) {
    let of = |pointer: &str| event.pointer(&format!("/diagnostic/{pointer}"));
    let text = |pointer: &str| of(pointer).and_then(Json::as_str).unwrap_or_default();
    let number = |pointer: &str| {
        let number = of(pointer).and_then(Json::as_u64).unwrap_or_default();
        u32::try_from(number).unwrap_or_default()
    };
    let mut problem = match text("severity") {
        "warning" => Diagnostic::warning(text("summary"), text("detail")),
        _ => Diagnostic::error(text("summary"), text("detail")),
    };
    let mut sources = SourceMap::default();
    let file: Arc<str> = text("range/filename").into();
    if let (false, Some(code)) = (file.is_empty(), of("snippet/code").and_then(Json::as_str)) {
        // Only the snippet is known, so empty lines are put before it, which gives it the right line number. The number is limited, because
        // it comes from the server and determines the memory that is used.
        let first = number("snippet/start_line").clamp(1, 1 << 20);
        let before = "\n".repeat(first as usize - 1);
        let at = |pointer: &str| {
            let offset = number(pointer).min(u32::try_from(code.len()).unwrap_or(u32::MAX));
            u32::try_from(before.len()).unwrap_or_default() + offset
        };
        let pos = |which: &str, byte: u32| Pos {
            line: number(&format!("range/{which}/line")),
            column: number(&format!("range/{which}/column")),
            byte,
        };
        let (start, end) = (at("snippet/highlight_start_offset"), at("snippet/highlight_end_offset"));
        let range = Range {
            file: file.clone(),
            start: pos("start", start),
            end: pos("end", end.max(start)),
        };
        problem = problem.at(&range);
        sources.insert(file, format!("{before}{code}\n"));
    }
    (problem.into(), sources)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_and_text_are_distinguished() {
        assert!(event(r#"{"@level":"info","@message":"x","type":"version"}"#).is_some());
        for text in ["5", "{}", "plain {text}", r#"{"json": "of a provisioner"}"#, ""] {
            assert!(event(text).is_none(), "{text}");
        }
    }

    #[test]
    fn a_problem_has_its_place_and_its_lines() {
        let event: Json = serde_json::from_str(
            r#"{"diagnostic": {"severity": "error", "summary": "S", "detail": "D.",
                "range": {"filename": "main.tf", "start": {"line": 3, "column": 5, "byte": 40}, "end": {"line": 3, "column": 8, "byte": 43}},
                "snippet": {"code": "a = foo", "start_line": 3, "highlight_start_offset": 4, "highlight_end_offset": 7}}}"#,
        )
        .unwrap();
        let (problems, sources) = diagnostic(&event);
        let subject = problems.0[0].subject.clone().unwrap();
        let text = sources.get("main.tf").unwrap();
        assert_eq!(&text[subject.start.byte as usize..subject.end.byte as usize], "foo");
        assert_eq!((subject.start.line, problems.0[0].summary.as_str()), (3, "S"));
    }
}
