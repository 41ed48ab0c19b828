//! Runs: plans of an uploaded configuration, and their applies, on the server.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use crate::api::{self, ApiError, all_related, part, related, truth};
use crate::included::Included;
use crate::stages::Stage;
use crate::{Connection, Workspace};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunOptions {
    /// Identifier of the configuration version.
    pub configuration: String,
    /// Refresh before planning.
    pub refresh: bool,
    /// Only refresh, and propose no other changes.
    pub refresh_only: bool,
    /// Plan to destroy all objects.
    pub destroy: bool,
    /// Apply the plan without confirmation; `None` for the setting of the workspace.
    pub auto_apply: Option<bool>,
    /// Save the plan, to be applied later; `None` for servers that may not know saved plans.
    pub save_plan: Option<bool>,
    /// Generate configuration for imported objects.
    pub generate_configuration: bool,
    /// Addresses that the plan is limited to.
    pub targets: Vec<String>,
    /// Addresses of objects to replace.
    pub replace: Vec<String>,
    /// Addresses of actions to invoke.
    pub invoke: Vec<String>,
    /// Values of variables, as expressions of Terraform's language.
    pub variables: BTreeMap<String, String>,
}

/// Status of a run; see the published list of run states. All states that this crate does not depend on are
/// [`RunStatus::Other`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunStatus {
    /// The run is in the queue.
    Pending,
    /// A user has confirmed the run.
    Confirmed,
    /// The run waits for its apply.
    ApplyQueued,
    Applying,
    Applied,
    Planned,
    /// The plan is complete, and there is nothing to apply.
    PlannedAndFinished,
    /// A policy has failed, but the failure may be overridden.
    PolicyOverride,
    /// Tasks after the plan wait for a decision.
    PostPlanAwaitingDecision,
    /// A user has canceled the run.
    Canceled,
    /// A user has discarded the run.
    Discarded,
    Errored,
    /// Any other status, by its name.
    Other(String),
}

impl RunStatus {
    fn from_name(name: &str) -> RunStatus {
        match name {
            "pending" => RunStatus::Pending,
            "confirmed" => RunStatus::Confirmed,
            "apply_queued" => RunStatus::ApplyQueued,
            "applying" => RunStatus::Applying,
            "applied" => RunStatus::Applied,
            "planned" => RunStatus::Planned,
            "planned_and_finished" => RunStatus::PlannedAndFinished,
            "policy_override" => RunStatus::PolicyOverride,
            "post_plan_awaiting_decision" => RunStatus::PostPlanAwaitingDecision,
            "canceled" => RunStatus::Canceled,
            "discarded" => RunStatus::Discarded,
            "errored" => RunStatus::Errored,
            other => RunStatus::Other(other.to_owned()),
        }
    }

    /// Returns the name in the API.
    #[must_use]
    pub fn name(&self) -> &str {
        match self {
            RunStatus::Pending => "pending",
            RunStatus::Confirmed => "confirmed",
            RunStatus::ApplyQueued => "apply_queued",
            RunStatus::Applying => "applying",
            RunStatus::Applied => "applied",
            RunStatus::Planned => "planned",
            RunStatus::PlannedAndFinished => "planned_and_finished",
            RunStatus::PolicyOverride => "policy_override",
            RunStatus::PostPlanAwaitingDecision => "post_plan_awaiting_decision",
            RunStatus::Canceled => "canceled",
            RunStatus::Discarded => "discarded",
            RunStatus::Errored => "errored",
            RunStatus::Other(name) => name,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Run {
    /// Identifier of the run in requests.
    pub id: String,
    pub status: RunStatus,
    /// Set if the run's plan changes anything.
    pub has_changes: bool,
    /// Set if the run destroys all objects.
    pub is_destroy: bool,
    /// Set if the run only refreshes the state.
    pub refresh_only: bool,
    /// Set if the run can be canceled now.
    pub is_cancelable: bool,
    /// Set if the run can be confirmed now.
    pub is_confirmable: bool,
    /// Set if the run can be discarded now.
    pub is_discardable: bool,
    /// Set if the token has the permission to apply the run.
    pub can_apply: bool,
    pub plan: Option<String>,
    pub apply: Option<String>,
    pub cost_estimate: Option<String>,
    pub policy_checks: Vec<String>,
    /// Identifier of the run's workspace.
    pub workspace: Option<String>,
}

impl Included {
    #[must_use]
    pub fn workspace(&self) -> Option<Workspace> {
        self.of_type("workspaces").find_map(|data| Workspace::read(data).ok())
    }

    #[must_use]
    pub fn plan(&self) -> Option<RunPlan> {
        self.of_type("plans").find_map(|data| RunPlan::read(data).ok())
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunPlan {
    /// Identifier in requests.
    pub id: String,
    pub status: String,
    /// Set if the plan changes anything.
    pub has_changes: bool,
    /// Set if configuration was generated for imported objects.
    pub generated_configuration: bool,
    /// URL of the log.
    pub(crate) log: Option<String>,
}

impl RunPlan {
    pub(crate) fn read(data: &Json) -> Result<RunPlan, ApiError> {
        Ok(RunPlan {
            id: api::id(data)?,
            status: api::text(data, "status").unwrap_or_default().to_owned(),
            has_changes: truth(data, "/attributes/has-changes"),
            generated_configuration: truth(data, "/attributes/generated-configuration"),
            log: api::text(data, "log-read-url")
                .filter(|url| !url.is_empty())
                .map(str::to_owned),
        })
    }

    /// Returns true if the plan or apply has ended.
    pub(crate) fn is_finished(&self) -> bool {
        matches!(&*self.status, "canceled" | "errored" | "finished" | "unreachable")
    }
}

impl Run {
    fn read(data: &Json) -> Result<Run, ApiError> {
        Ok(Run {
            id: api::id(data)?,
            status: RunStatus::from_name(api::text(data, "status").unwrap_or_default()),
            has_changes: truth(data, "/attributes/has-changes"),
            is_destroy: truth(data, "/attributes/is-destroy"),
            refresh_only: truth(data, "/attributes/refresh-only"),
            is_cancelable: truth(data, "/attributes/actions/is-cancelable"),
            is_confirmable: truth(data, "/attributes/actions/is-confirmable"),
            is_discardable: truth(data, "/attributes/actions/is-discardable"),
            can_apply: truth(data, "/attributes/permissions/can-apply"),
            plan: related(data, "plan"),
            apply: related(data, "apply"),
            cost_estimate: related(data, "cost-estimate"),
            policy_checks: all_related(data, "policy-checks"),
            workspace: related(data, "workspace"),
        })
    }
}

fn attributes(options: &RunOptions) -> Json {
    // Attributes with default values are left out, because an older server may not know them.
    let mut attributes = json!({ "refresh": options.refresh });
    for (name, set) in [
        ("refresh-only", options.refresh_only),
        ("is-destroy", options.destroy),
        ("allow-config-generation", options.generate_configuration),
    ] {
        if set {
            attributes[name] = true.into();
        }
    }
    for (name, set) in [("auto-apply", options.auto_apply), ("save-plan", options.save_plan)] {
        if let Some(set) = set {
            attributes[name] = set.into();
        }
    }
    for (name, addresses) in [
        ("target-addrs", &options.targets),
        ("replace-addrs", &options.replace),
        ("invoke-action-addrs", &options.invoke),
    ] {
        if !addresses.is_empty() {
            attributes[name] = addresses.clone().into();
        }
    }
    if !options.variables.is_empty() {
        let variable = |(key, value): (&String, &String)| json!({"key": key, "value": value});
        attributes["variables"] = options.variables.iter().map(variable).collect();
    }
    attributes
}

impl Connection {
    /// Starts a run.
    ///
    /// # Errors
    /// The server refuses, or cannot be reached.
    pub async fn create_run(&self, workspace: &Workspace, options: &RunOptions) -> Result<Run, ApiError> {
        let mut body = api::object("runs", attributes(options));
        let of = |ty: &str, id: &str| json!({"data": {"type": ty, "id": id}});
        body["data"]["relationships"] = json!({
            "workspace": of("workspaces", &workspace.id),
            "configuration-version": of("configuration-versions", &options.configuration),
        });
        Run::read(api::data(&self.api.post("runs", &body).await?))
    }

    /// Reads a run.
    ///
    /// # Errors
    /// The request failed.
    pub async fn run(&self, id: &str) -> Result<Run, ApiError> {
        Ok(self.run_with(id, "").await?.0)
    }

    /// Reads a run together with related objects: `include` has names of relations, separated by commas.
    ///
    /// # Errors
    /// The request failed.
    pub async fn run_with(&self, id: &str, include: &str) -> Result<(Run, Included), ApiError> {
        let query = match include {
            "" => String::new(),
            include => format!("?include={}", part(include)),
        };
        let document = self.api.get(&format!("runs/{}{query}", part(id))).await?;
        Ok((Run::read(api::data(&document))?, Included::read(&document)))
    }

    /// Reads the task stages of a run; empty if the server does not support task stages.
    ///
    /// # Errors
    /// The request failed.
    pub async fn task_stages(&self, run: &str) -> Result<Vec<Stage>, ApiError> {
        match self.run_with(run, "task_stages").await {
            Ok((_, included)) => included
                .of_type("task-stages")
                .map(|data| Stage::read(data, &Included::default()))
                .collect(),
            // An older server rejects the name of the relation, and has no stages.
            Err(ApiError::Refused(_, said)) if said.contains("Invalid include parameter") => Ok(Vec::new()),
            Err(e) => Err(e),
        }
    }

    async fn act(&self, run: &str, action: &str) -> Result<(), ApiError> {
        let path = format!("runs/{}/actions/{action}", part(run));
        self.api.post(&path, &json!({})).await.map(drop)
    }

    /// Confirms a run, so that its plan is applied.
    ///
    /// # Errors
    /// The server refuses, or cannot be reached.
    pub async fn apply_run(&self, run: &str) -> Result<(), ApiError> {
        self.act(run, "apply").await
    }

    /// Discards a run that waits for confirmation.
    ///
    /// # Errors
    /// The server refuses, or cannot be reached.
    pub async fn discard_run(&self, run: &str) -> Result<(), ApiError> {
        self.act(run, "discard").await
    }

    /// Cancels a running run.
    ///
    /// # Errors
    /// The server refuses, or cannot be reached.
    pub async fn cancel_run(&self, run: &str) -> Result<(), ApiError> {
        self.act(run, "cancel").await
    }

    /// Reads the server's warnings at the start of a run: enforcement levels that it has changed, and policy sets that
    /// it ignores.
    ///
    /// # Errors
    /// The request failed.
    pub async fn run_warnings(&self, run: &str) -> Result<Vec<String>, ApiError> {
        let document = self.api.get(&format!("runs/{}/run-events", part(run))).await?;
        let warned = |data: &&Json| {
            matches!(
                api::text(data, "action"),
                Some("changed_policy_enforcements" | "changed_task_enforcements" | "ignored_policy_sets")
            )
        };
        let texts = api::items(&document)
            .filter(warned)
            .filter_map(|data| api::text(data, "description"));
        Ok(texts.filter(|text| !text.is_empty()).map(str::to_owned).collect())
    }

    /// Counts the runs of the workspace that must end before this one starts. The server lists the newest runs first,
    /// so these are the runs after this one in the list, up to the workspace's current run. Planned runs do not count
    /// for a run that is only a plan.
    ///
    /// # Errors
    /// The runs cannot be listed.
    pub async fn runs_before(&self, run: &Run, workspace: &Workspace, plan_only: bool) -> Result<u64, ApiError> {
        let (mut found, mut before, mut page) = (false, 0, 1_u64);
        loop {
            let path = format!("workspaces/{}/runs?page%5Bnumber%5D={page}", part(&workspace.id));
            let document = self.api.get(&path).await?;
            for other in api::items(&document).map(Run::read) {
                let other = other?;
                if !found {
                    found = other.id == run.id;
                    continue;
                }
                match other.status {
                    // Runs with these statuses have ended, and block nothing.
                    RunStatus::Applied | RunStatus::Canceled | RunStatus::Discarded | RunStatus::Errored => continue,
                    // A run that waits for its confirmation delays applies, but no plans.
                    RunStatus::Planned if plan_only => continue,
                    _ => before += 1,
                }
                // Runs older than the current one have ended.
                if workspace.current_run.as_deref() == Some(&other.id) {
                    return Ok(before);
                }
            }
            match api::next_page(&document, page) {
                Some(next) => page = next,
                None => return Ok(before),
            }
        }
    }

    /// Counts the runs of the organization that must end before this one starts; 0 if it is not in the queue.
    ///
    /// # Errors
    /// The queue cannot be read.
    pub async fn queued_before(&self, run: &Run) -> Result<u64, ApiError> {
        let mut page = 1_u64;
        let position = loop {
            let path = self.path(&format!("runs/queue?page%5Bnumber%5D={page}"));
            let document = self.api.get(&path).await?;
            let found = api::items(&document).find(|data| api::id(data).is_ok_and(|id| id == run.id));
            if let Some(found) = found {
                break found
                    .pointer("/attributes/position-in-queue")
                    .and_then(Json::as_u64)
                    .unwrap_or_default();
            }
            match api::next_page(&document, page) {
                Some(next) => page = next,
                None => return Ok(0),
            }
        };
        if position == 0 {
            return Ok(0);
        }
        // The position includes runs that are in progress and do not wait, so these are subtracted.
        let document = self.api.get(&self.path("capacity")).await?;
        let running = document.pointer("/data/attributes/running").and_then(Json::as_u64);
        Ok(position.saturating_sub(running.unwrap_or_default()))
    }

    /// Reads the plan of a run.
    ///
    /// # Errors
    /// The request failed.
    pub async fn run_plan(&self, id: &str) -> Result<RunPlan, ApiError> {
        RunPlan::read(api::data(&self.api.get(&format!("plans/{}", part(id))).await?))
    }

    /// Reads the apply of a run.
    ///
    /// # Errors
    /// The request failed.
    pub async fn run_apply(&self, id: &str) -> Result<RunPlan, ApiError> {
        RunPlan::read(api::data(&self.api.get(&format!("applies/{}", part(id))).await?))
    }

    /// Reads a plan as JSON: redacted, which lacks secrets but is enough for display; or complete, which requires more
    /// permissions.
    ///
    /// # Errors
    /// The request failed.
    pub async fn plan_json(&self, plan: &str, redacted: bool) -> Result<Vec<u8>, ApiError> {
        let path = format!("plans/{}/json-output", part(plan));
        match redacted {
            true => self.api.download(&format!("{path}-redacted")).await,
            false => self.api.text(&path).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_set_is_sent() {
        let plain = RunOptions {
            refresh: true,
            ..RunOptions::default()
        };
        assert_eq!(attributes(&plain), json!({"refresh": true}));
        let all = RunOptions {
            destroy: true,
            auto_apply: Some(false),
            save_plan: Some(true),
            targets: vec!["a.b".into()],
            variables: BTreeMap::from([("v".into(), "\"x\"".into())]),
            ..RunOptions::default()
        };
        let expected = json!({
            "refresh": false, "is-destroy": true, "auto-apply": false, "save-plan": true, "target-addrs": ["a.b"],
            "variables": [{"key": "v", "value": "\"x\""}],
        });
        assert_eq!(attributes(&all), expected);
    }

    #[test]
    fn absent_null_and_empty_lists_are_one_thing() {
        // Servers written in Go send null for empty lists.
        let with = |member: &str, list: Option<Json>| {
            let mut object = json!({"id": "x"});
            let place = member.split('/').filter(|step| !step.is_empty());
            if let Some(list) = list {
                let value = place
                    .collect::<Vec<_>>()
                    .into_iter()
                    .rev()
                    .fold(list, |value, step| json!({ step: value }));
                object
                    .as_object_mut()
                    .unwrap()
                    .extend(value.as_object().unwrap().clone());
            }
            object
        };
        for list in [None, Some(Json::Null), Some(json!([]))] {
            let of = |member: &str| with(member, list.clone());
            assert_eq!(api::items(&of("/data")).count(), 0);
            assert!(Included::read(&of("/included")).objects.is_empty());
            let run = Run::read(&of("/relationships/policy-checks/data")).unwrap();
            assert!(run.policy_checks.is_empty());
            let workspace = Workspace::read(&of("/attributes/tag-names")).unwrap();
            assert!(workspace.tags.is_empty());
            let outcome = crate::stages::SetOutcome::read(&of("/attributes/outcomes"));
            assert!(outcome.policies.is_empty());
        }
        // The members that contain the lists can be null, too.
        for whole in ["/relationships", "/relationships/policy-checks", "/attributes"] {
            let object = with(whole, Some(Json::Null));
            assert!(Run::read(&object).unwrap().policy_checks.is_empty(), "{whole}");
            assert!(Workspace::read(&object).unwrap().tags.is_empty(), "{whole}");
        }
    }

    #[test]
    fn a_run_is_read_with_what_it_refers_to() {
        let document = json!({
            "data": {"id": "run-1", "type": "runs", "attributes": {
                "status": "policy_override", "has-changes": true, "actions": {"is-confirmable": true},
            }, "relationships": {
                "plan": {"data": {"type": "plans", "id": "plan-1"}},
                "policy-checks": {"data": [{"type": "policy-checks", "id": "polchk-1"}]},
                "cost-estimate": {"data": null},
            }},
            "included": [{"id": "plan-1", "type": "plans", "attributes": {"status": "finished", "has-changes": true}}],
        });
        let run = Run::read(&document["data"]).unwrap();
        assert_eq!(run.status, RunStatus::PolicyOverride);
        assert!(run.is_confirmable && !run.is_cancelable && run.cost_estimate.is_none());
        assert_eq!(
            (run.plan.as_deref(), &run.policy_checks[..]),
            (Some("plan-1"), &["polchk-1".to_owned()][..])
        );
        assert!(Included::read(&document).plan().unwrap().is_finished());
        assert_eq!(RunStatus::from_name("queuing").name(), "queuing");
    }
}
