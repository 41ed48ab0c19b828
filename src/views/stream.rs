//! Machine-readable stream of an operation: one JSON object a line (`-json` of plan, apply, destroy, refresh and init).

mod actions;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use addrs::AbsResourceInstance;
use engine::events::{EphemeralAction, Event};
use engine::lanes::Settled;
use engine::plan::{Action, ImportedBy, Mode, PlanView, Reason, ResourceChange};
use serde_json::{Map, Value as Json, json};
use state::State;
use syntax::{Diagnostic, SourceMap};

use crate::json::{self, Object, instance_key};
use crate::lanes;
use crate::query;
use crate::reporter::{Done, ObjectOperation, OperationView, StillRunning, lines_of_output, seconds};
use crate::terminal::unstyled;
use crate::ui::Ui;
use crate::words::{self, Words, bracketed, ephemeral_words};
use addrs::program;

/// Format version of the stream, as in Terraform.
const FORMAT: &str = "1.3";

/// Format version of the stream in OpenTofu mode, as in OpenTofu.
const OPENTOFU_FORMAT: &str = "1.2";

/// Returns the name of the component that writes the stream.
fn module() -> &'static str {
    match program::Mode::current().is_opentofu() {
        true => "tofu.ui",
        false => "terraform.ui",
    }
}

/// Stream of JSON objects on standard output, or in the file of `-json-into`.
pub struct Stream {
    ui: Arc<Ui>,
    /// Leaves out the objects that are refreshed, read and planned.
    brief: AtomicBool,
}

impl Stream {
    /// Starts a stream, with the message that names its version.
    #[must_use]
    pub fn begin(ui: Arc<Ui>) -> Stream {
        let stream = Stream {
            ui,
            brief: AtomicBool::new(false),
        };
        // Readers compare this version with the versions that they support, so it is the version of Terraform or OpenTofu that this program
        // implements.
        let mode = program::Mode::current();
        let (tool, version) = (mode.tool(), mode.version());
        let (key, format) = match mode.is_opentofu() {
            true => ("tofu", OPENTOFU_FORMAT),
            false => ("terraform", FORMAT),
        };
        stream.info(
            &format!("{tool} {version}"),
            "version",
            [(key, version.into()), ("ui", format.into())],
        );
        stream
    }

    /// Returns the first write error, if there was one.
    #[must_use]
    pub fn write_error(&self) -> Option<std::io::Error> {
        self.ui.write_error()
    }

    /// Leaves out all further objects that are refreshed, read and planned, for `-summary`.
    pub fn leave_out_objects(&self) {
        self.brief.store(true, Ordering::Relaxed);
    }

    fn is_brief(&self) -> bool {
        self.brief.load(Ordering::Relaxed)
    }

    fn info<const N: usize>(&self, message: &str, ty: &str, payload: [(&str, Json); N]) {
        self.write("info", message, ty, payload);
    }

    fn write<const N: usize>(&self, level: &str, message: &str, ty: &str, payload: [(&str, Json); N]) {
        let mut object = Map::new();
        object.insert("@level".into(), level.into());
        object.insert("@message".into(), message.into());
        object.insert("@module".into(), module().into());
        object.insert("@timestamp".into(), now().into());
        // As in Terraform, keys with an at sign come first, and the others are sorted.
        let mut rest: BTreeMap<&str, Json> = payload.into_iter().collect();
        rest.insert("type", ty.into());
        object.extend(rest.into_iter().map(|(key, value)| (key.to_owned(), value)));
        self.ui.exact_line(cty::json::to_text(&Json::Object(object), None));
        // Programs read the stream while the command runs.
        self.ui.flush();
    }

    /// Writes an object with this message type and level.
    pub fn object(&self, level: &str, message: &str, ty: &str, payload: Vec<(&str, Json)>) {
        let mut object = Map::new();
        object.insert("@level".into(), level.into());
        object.insert("@message".into(), message.into());
        object.insert("@module".into(), module().into());
        // All keys with an at sign come first, sorted, as in Terraform.
        let (about, rest): (Vec<_>, Vec<_>) = payload.into_iter().partition(|(key, _)| key.starts_with('@'));
        object.extend(about.into_iter().map(|(key, value)| (key.to_owned(), value)));
        object.insert("@timestamp".into(), now().into());
        let mut rest: BTreeMap<&str, Json> = rest.into_iter().collect();
        rest.insert("type", ty.into());
        object.extend(rest.into_iter().map(|(key, value)| (key.to_owned(), value)));
        self.ui.exact_line(cty::json::to_text(&Json::Object(object), None));
        self.ui.flush();
    }

    /// Writes a line of text that has no message type of its own.
    pub fn log(&self, message: &str) {
        self.info(message, "log", []);
    }

    /// Writes text for people as a message: without styles, and without list marks and blank lines around it.
    pub fn message(&self, text: &str) {
        let text = unstyled(text);
        let text = text.trim().trim_start_matches("- ");
        if !text.is_empty() {
            self.log(text);
        }
    }

    /// Reports that the command waits for a lock.
    pub fn acquiring_lock(&self, message: &str) {
        self.info(message, "state_lock_acquire", []);
    }

    /// Reports a step of init by its code.
    pub fn init(&self, code: &str, message: &str) {
        self.info(message, "init_output", [("message_code", code.into())]);
    }

    pub fn diagnostic(&self, diagnostic: &Diagnostic, sources: &SourceMap) {
        let (level, word) = if diagnostic.is_error() {
            ("error", "Error")
        } else {
            ("warn", "Warning")
        };
        self.write(
            level,
            &format!("{word}: {}", &diagnostic.summary),
            "diagnostic",
            [("diagnostic", json::diagnostics::diagnostic(diagnostic, sources))],
        );
    }

    /// Reports a plan: drift, planned changes, totals and outputs. If only a summary is requested, it is in place of drift and changes.
    pub fn plan(&self, plan: PlanView<'_>) {
        if self.is_brief() {
            let summary = json::summary::document(plan);
            self.info("Summary of the plan", "plan_summary", [("plan_summary", summary)]);
        } else {
            self.planned_objects(plan);
        }
        let totals = plan.totals();
        let done = Done {
            added: totals.added,
            changed: totals.changed,
            destroyed: totals.destroyed,
            invoked: totals.invoked,
            failed: 0,
        };
        let counts = (totals.imported, totals.forgotten);
        self.summary(&format!("Plan: {totals}"), done, counts, "plan");
        if let Some(unread) = plan.unread {
            let counts = json::plan::unread_counts(unread).into();
            self.info(&crate::unread::text(unread), "unread", [("unread", counts)]);
        }
        if !plan.outputs.is_empty() {
            let action = |action| json!(action_name(action));
            let outputs: Map<String, Json> = plan
                .outputs
                .iter()
                .map(|(name, o)| {
                    let output = Object::default().with("sensitive", o.sensitive);
                    (name.to_string(), output.with("action", action(o.action)).into())
                })
                .collect();
            self.outputs_object(outputs);
        }
    }

    fn planned_objects(&self, plan: PlanView<'_>) {
        for drift in plan.drift {
            // In a refresh-only plan, the drift is the result.
            if drift.action != Action::NoOp || plan.mode == Mode::RefreshOnly {
                let (action, change) = change(drift);
                let message = format!("{}: Drift detected ({action})", drift.address);
                self.info(&message, "resource_drift", [("change", change)]);
            }
        }
        for change in plan.changes.iter().filter(|change| !change.drops_data_source()) {
            let moved = change.previous_address.is_some();
            if change.action != Action::NoOp || moved || change.importing.is_some() {
                self.planned(change);
            }
        }
        plan.invocations.iter().for_each(|i| self.planned_invocation(i));
    }

    /// Reports the result of a guard, which limits the changes of a plan.
    pub fn guard(&self, message: &str, is_error: bool, guard: Json) {
        let level = if is_error { "error" } else { "info" };
        self.write(level, message, "guard", [("guard", guard)]);
    }

    /// Reports the changes of a saved plan, when it is applied.
    pub fn planned_changes(&self, changes: &[ResourceChange]) {
        let shown = changes
            .iter()
            .filter(|c| c.action != Action::NoOp && !c.drops_data_source());
        shown.for_each(|change| self.planned(change));
    }

    fn planned(&self, planned: &ResourceChange) {
        let (action, change) = change(planned);
        let message = format!("{}: Plan to {action}", planned.address);
        self.info(&message, "planned_change", [("change", change)]);
    }

    /// Reports the numbers of changes, planned or done, and of imported and forgotten objects.
    pub fn summary(&self, message: &str, done: Done, (imported, forgotten): (usize, usize), operation: &str) {
        let mut changes = json!({
            "add": done.added,
            "change": done.changed,
            "import": imported,
            "remove": done.destroyed,
            "action_invocation": done.invoked,
            "action_fail": done.failed,
            "operation": operation,
        });
        if program::Mode::current().is_opentofu() {
            changes["forget"] = forgotten.into();
        }
        self.info(message, "change_summary", [("changes", changes)]);
    }

    /// Reports the outputs of a state. Sensitive ones have no value.
    pub fn outputs(&self, state: &State) {
        let outputs = state.outputs.iter().map(|(name, output)| {
            let mut json = json::values::output(&output.value, output.sensitive, false);
            if let Some(object) = json.as_object_mut().filter(|_| output.sensitive) {
                object.remove("value");
            }
            (name.to_string(), json)
        });
        self.outputs_object(outputs.collect());
    }

    fn outputs_object(&self, outputs: Map<String, Json>) {
        let message = format!("Outputs: {}", outputs.len());
        self.info(&message, "outputs", [("outputs", Json::Object(outputs))]);
    }

    fn still(&self, one: &StillRunning) {
        let address = &one.address;
        let (begins, ty, hook) = match one.operation {
            ObjectOperation::Change(action) => {
                let Some(words) = words(action) else { return };
                (words.begins, "apply_progress", hook(address, Some(action), None))
            }
            ObjectOperation::Ephemeral(action) => (
                ephemeral_words(action).begins,
                "ephemeral_op_progress",
                ephemeral(address, action),
            ),
        };
        let message = format!(
            "{address}: Still {}... [{} elapsed]",
            begins.to_lowercase(),
            seconds(one.elapsed)
        );
        self.hook(&message, ty, timed(hook, one.elapsed));
    }

    fn hook(&self, message: &str, ty: &str, hook: Object) {
        self.info(message, ty, [("hook", hook.into())]);
    }
}

impl Stream {
    fn refresh_event(&self, event: &Event) {
        match event {
            Event::RefreshStart { address, id } => {
                let message = format!("{address}: Refreshing state...{}", bracketed(id.as_ref()));
                self.hook(&message, "refresh_start", hook(address, None, id.as_ref()));
            }
            Event::RefreshComplete { address, id } => {
                let message = format!("{address}: Refresh complete{}", bracketed(id.as_ref()));
                self.hook(&message, "refresh_complete", hook(address, None, id.as_ref()));
            }
            _ => {}
        }
    }

    fn operation_event(&self, event: &Event) {
        match event {
            Event::OperationStart {
                address, action, id, ..
            } => {
                let Some(words) = words(*action) else { return };
                let id = id.as_ref().filter(|_| *action != Action::Create);
                let message = format!("{address}: {}...{}", words.begins, bracketed(id));
                self.hook(&message, "apply_start", hook(address, Some(*action), id));
            }
            Event::OperationComplete {
                address,
                action,
                id,
                elapsed,
                ..
            } => {
                let Some(words) = words(*action) else { return };
                // As in Terraform, messages about deleted or read objects have no ID.
                let id = id.as_ref().filter(|_| !matches!(action, Action::Delete | Action::Read));
                let message = format!(
                    "{address}: {} complete after {}{}",
                    words.work,
                    seconds(*elapsed),
                    bracketed(id)
                );
                self.hook(
                    &message,
                    "apply_complete",
                    timed(hook(address, Some(*action), id), *elapsed),
                );
            }
            Event::OperationFailed {
                address,
                action,
                elapsed,
                ..
            } => {
                let Some(words) = words(*action) else { return };
                let message = format!("{address}: {} errored after {}", words.work, seconds(*elapsed));
                self.hook(
                    &message,
                    "apply_errored",
                    timed(hook(address, Some(*action), None), *elapsed),
                );
            }
            _ => {}
        }
    }

    fn provisioner_event(&self, event: &Event) {
        match event {
            Event::ProvisionStart { address, provisioner } => {
                let message = format!("{address}: Provisioning with '{provisioner}'...");
                self.hook(&message, "provision_start", provision(address, provisioner));
            }
            Event::ProvisionOutput {
                address,
                provisioner,
                output,
            } => {
                for line in lines_of_output(output) {
                    let message = format!("{address}: ({provisioner}): {line}");
                    let hook = provision(address, provisioner).with("output", line);
                    self.hook(&message, "provision_progress", hook);
                }
            }
            Event::ProvisionComplete { address, provisioner } => {
                let message = format!("{address}: ({provisioner}) Provisioning complete");
                self.hook(&message, "provision_complete", provision(address, provisioner));
            }
            Event::ProvisionFailed { address, provisioner } => {
                let message = format!("{address}: ({provisioner}) Provisioning errored");
                self.hook(&message, "provision_errored", provision(address, provisioner));
            }
            _ => {}
        }
    }

    fn ephemeral_event(&self, event: &Event) {
        match event {
            Event::EphemeralStart { address, action } => {
                let message = format!("{address}: {}...", ephemeral_words(*action).begins);
                self.hook(&message, "ephemeral_op_start", ephemeral(address, *action));
            }
            Event::EphemeralComplete {
                address,
                action,
                elapsed,
            } => {
                let work = ephemeral_words(*action).work;
                let message = format!("{address}: {work} complete after {}", seconds(*elapsed));
                let hook = timed(ephemeral(address, *action), *elapsed);
                self.hook(&message, "ephemeral_op_complete", hook);
            }
            Event::EphemeralFailed {
                address,
                action,
                elapsed,
            } => {
                let work = ephemeral_words(*action).work;
                let message = format!("{address}: {work} errored after {}", seconds(*elapsed));
                let hook = timed(ephemeral(address, *action), *elapsed);
                self.hook(&message, "ephemeral_op_errored", hook);
            }
            _ => {}
        }
    }

    fn list_event(&self, event: &Event) {
        match event {
            Event::ListStart { address, config } => {
                let message = format!("{address}: Starting query...");
                self.info(
                    &message,
                    "list_start",
                    [("list_start", query::started(address, config))],
                );
            }
            Event::ListComplete { found } => {
                let address = &found.address;
                for result in &found.results {
                    let message = format!("{address}: Result found");
                    let ty = "list_resource_found";
                    self.info(&message, ty, [(ty, query::result(found, result))]);
                }
                let message = format!("{address}: List complete");
                self.info(&message, "list_complete", [("list_complete", query::completed(found))]);
            }
            _ => {}
        }
    }
}

impl Stream {
    /// Reports the concurrency limit that each provider's adaptive control has settled on.
    fn lanes(&self, settled: &[Settled]) {
        let each = settled
            .iter()
            .map(|one| json!({"provider": one.provider.to_string(), "limit": one.limit, "throttled": one.throttled}));
        let each: Vec<Json> = each.collect();
        self.info(&lanes::line(settled), "parallelism", [("parallelism", each.into())]);
    }
}

impl OperationView for Stream {
    fn event(&self, event: &Event) {
        match event {
            Event::RefreshStart { .. }
            | Event::RefreshComplete { .. }
            | Event::OperationStart {
                action: Action::Read, ..
            }
            | Event::OperationComplete {
                action: Action::Read, ..
            } if self.is_brief() => {}
            Event::RefreshStart { .. } | Event::RefreshComplete { .. } => self.refresh_event(event),
            Event::OperationStart { .. } | Event::OperationComplete { .. } | Event::OperationFailed { .. } => {
                self.operation_event(event);
            }
            Event::ProvisionStart { .. }
            | Event::ProvisionOutput { .. }
            | Event::ProvisionComplete { .. }
            | Event::ProvisionFailed { .. } => self.provisioner_event(event),
            Event::EphemeralStart { .. } | Event::EphemeralComplete { .. } | Event::EphemeralFailed { .. } => {
                self.ephemeral_event(event);
            }
            Event::ListStart { .. } | Event::ListComplete { .. } => self.list_event(event),
            Event::ActionStart { .. }
            | Event::ActionProgress { .. }
            | Event::ActionComplete { .. }
            | Event::ActionFailed { .. } => self.action_event(event),
            Event::Lanes { limits, settled: true } => self.lanes(limits),
            Event::RefreshFailed { .. }
            | Event::Lanes { .. }
            | Event::EphemeralDeferred { .. }
            | Event::ImportStart { .. }
            | Event::Imported { .. }
            | Event::Progress { .. }
            | Event::PlanStart { .. }
            | Event::PlanComplete { .. }
            | Event::PlanFailed { .. }
            | Event::Stopping => {}
        }
    }

    fn still_running(&self, operations: &[StillRunning]) {
        operations.iter().for_each(|one| self.still(one));
    }
}

/// Returns the time in whole microseconds.
fn now() -> String {
    let now = crate::process::now();
    let (seconds, micros) = (now.as_second(), now.subsec_microsecond());
    // As in Terraform, there are always six digits; jiff leaves out trailing zeros.
    let whole = jiff::Timestamp::from_second(seconds).unwrap_or(now).to_string();
    format!("{}.{micros:06}Z", whole.trim_end_matches('Z'))
}

/// Returns the verbs for the operation on an object; `None` for actions that are not one operation, such as a replacement or forgetting.
/// In Terraform's stream, data sources are refreshed, not read.
fn words(action: Action) -> Option<Words> {
    match action {
        Action::Read => Some(Words {
            begins: "Refreshing",
            work: "Refresh",
        }),
        other => words::words(other),
    }
}

/// Returns the word for an action in the stream.
fn action_name(action: Action) -> &'static str {
    match action {
        Action::NoOp => "noop",
        Action::Forget => "remove",
        other => other.word(),
    }
}

fn reason_name(reason: Reason) -> Option<&'static str> {
    Some(match reason {
        Reason::ReplaceBecauseCannotUpdate => "cannot_update",
        Reason::ReplaceBecauseTainted => "tainted",
        Reason::ReplaceByRequest => "requested",
        Reason::ReplaceByTriggers => "replace_triggered_by",
        other => other.as_json()?,
    })
}

fn resource(address: &AbsResourceInstance) -> Json {
    let inside = &address.resource;
    Object::default()
        .with("addr", address.to_string())
        .with("module", address.module.to_string())
        .with("resource", inside.to_string())
        .with("implied_provider", inside.resource.implied_provider())
        .with("resource_type", &*inside.resource.ty)
        .with("resource_name", &*inside.resource.name)
        .with("resource_key", instance_key(&inside.key).unwrap_or(Json::Null))
        .into()
}

/// Returns the document of a change and the word for its action.
fn change(change: &ResourceChange) -> (&'static str, Json) {
    let action = match change.action {
        Action::NoOp if change.importing.is_some() => "import",
        Action::NoOp if change.previous_address.is_some() => "move",
        action => action_name(action),
    };
    let json = Object::default()
        .with("resource", resource(&change.address))
        .with_some("previous_resource", change.previous_address.as_ref().map(resource))
        .with("action", action)
        .with_some("reason", reason_name(change.reason))
        .with_some(
            "importing",
            change.importing.as_ref().map(|target| match target {
                ImportedBy::Id(id) => json!({"id": &**id}),
                // As in Terraform, these are empty objects.
                ImportedBy::Identity(_) | ImportedBy::Sensitive => json!({}),
            }),
        );
    (action, json.into())
}

fn hook(address: &AbsResourceInstance, action: Option<Action>, id: Option<&(String, String)>) -> Object {
    Object::default()
        .with("resource", resource(address))
        .with_some("action", action.map(action_name))
        .with_some("id_key", id.map(|(key, _)| key.clone()))
        .with_some("id_value", id.map(|(_, value)| value.clone()))
}

fn ephemeral(address: &AbsResourceInstance, action: EphemeralAction) -> Object {
    let action = match action {
        EphemeralAction::Open => "open",
        EphemeralAction::Renew => "renew",
        EphemeralAction::Close => "close",
    };
    Object::default()
        .with("resource", resource(address))
        .with("action", action)
}

fn timed(hook: Object, elapsed: Duration) -> Object {
    // As in Terraform, the time is rounded, not truncated.
    let whole = (elapsed + Duration::from_millis(500)).as_secs();
    hook.with("elapsed_seconds", whole)
}

fn provision(address: &AbsResourceInstance, provisioner: &str) -> Object {
    Object::default()
        .with("resource", resource(address))
        .with("provisioner", provisioner)
}
