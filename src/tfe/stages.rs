//! Task stages of a run: external services that are called before the plan, after it, and before the apply; and
//! policies that are evaluated then.

use serde_json::{Value as Json, json};

use crate::Connection;
use crate::api::{self, ApiError, all_related, part};
use crate::included::Included;

/// A task stage of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// Identifier of the stage in requests.
    pub id: String,
    /// `pre_plan`, `post_plan`, `pre_apply` or `post_apply`.
    pub stage: String,
    /// `pending`, `running`, `passed`, `failed`, `awaiting_override`, `canceled`, `errored` or `unreachable`.
    pub status: String,
    /// Results of the stage's tasks; empty unless they were requested.
    pub results: Vec<TaskResult>,
    /// Results of the stage's policies; empty unless they were requested.
    pub evaluations: Vec<Evaluation>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskResult {
    pub name: String,
    /// `passed`, `failed`, `errored`, `running`, `pending` or `unreachable`.
    pub status: String,
    pub level: String,
    pub message: String,
    /// URL of a page with more details.
    pub url: String,
}

/// Results of the policies of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evaluation {
    /// Identifier of the evaluation in requests.
    pub id: String,
    /// `passed`, `failed`, `errored`, `running`, `pending`, `queued` or `unreachable`.
    pub status: String,
    pub kind: String,
    /// Number of evaluated policies.
    pub evaluated: u64,
    /// Number of failed policies whose level is `advisory`.
    pub advisory_failed: u64,
}

/// Results of the policies of a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetOutcome {
    pub name: String,
    pub policies: Vec<PolicyOutcome>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyOutcome {
    pub name: String,
    pub status: String,
    pub level: String,
    pub description: String,
}

impl Stage {
    pub(crate) fn read(data: &Json, included: &Included) -> Result<Stage, ApiError> {
        let text = |name: &str| api::text(data, name).unwrap_or_default().to_owned();
        let (results, evaluations) = (
            all_related(data, "task-results"),
            all_related(data, "policy-evaluations"),
        );
        // The results are returned in the order of the stage, because the included objects are sorted by their
        // identifiers.
        let find = |ty: &'static str, ids: Vec<String>| {
            let found = move |id: String| included.of_type(ty).find(|data| api::id(data).is_ok_and(|i| i == id));
            ids.into_iter().filter_map(found)
        };
        Ok(Stage {
            id: api::id(data)?,
            stage: text("stage"),
            status: text("status"),
            results: find("task-results", results).map(TaskResult::read).collect(),
            evaluations: find("policy-evaluations", evaluations)
                .map(Evaluation::read)
                .collect::<Result<_, _>>()?,
        })
    }
}

impl TaskResult {
    fn read(data: &Json) -> TaskResult {
        let text = |name: &str| api::text(data, name).unwrap_or_default().to_owned();
        TaskResult {
            name: text("task-name"),
            status: text("status"),
            level: text("workspace-task-enforcement-level"),
            message: text("message"),
            url: text("url"),
        }
    }
}

impl Evaluation {
    fn read(data: &Json) -> Result<Evaluation, ApiError> {
        let text = |name: &str| api::text(data, name).unwrap_or_default().to_owned();
        let count = |name: &str| {
            let count = data.pointer(&format!("/attributes/result-count/{name}"));
            count.and_then(Json::as_u64).unwrap_or_default()
        };
        let advisory_failed = count("advisory-failed");
        Ok(Evaluation {
            id: api::id(data)?,
            status: text("status"),
            kind: text("policy-kind"),
            evaluated: advisory_failed + count("mandatory-failed") + count("errored") + count("passed"),
            advisory_failed,
        })
    }
}

impl SetOutcome {
    pub(crate) fn read(data: &Json) -> SetOutcome {
        let policies = data.pointer("/attributes/outcomes").and_then(Json::as_array);
        let policy = |outcome: &Json| {
            let text = |name: &str| outcome.get(name).and_then(Json::as_str).unwrap_or_default().to_owned();
            PolicyOutcome {
                name: text("policy_name"),
                status: text("status"),
                level: text("enforcement_level"),
                description: text("description"),
            }
        };
        SetOutcome {
            name: api::text(data, "policy-set-name").unwrap_or_default().to_owned(),
            policies: policies.into_iter().flatten().map(policy).collect(),
        }
    }
}

impl Connection {
    /// Reads a stage with the results of its tasks and policies.
    ///
    /// # Errors
    /// The request failed.
    pub async fn stage(&self, id: &str) -> Result<Stage, ApiError> {
        let path = format!("task-stages/{}?include=task_results%2Cpolicy_evaluations", part(id));
        let document = self.api.get(&path).await?;
        Stage::read(api::data(&document), &Included::read(&document))
    }

    /// Overrides the failures of a stage.
    ///
    /// # Errors
    /// The server refuses, or cannot be reached.
    pub async fn override_stage(&self, id: &str) -> Result<(), ApiError> {
        let path = format!("task-stages/{}/actions/override", part(id));
        self.api.post(&path, &json!({})).await.map(drop)
    }

    /// Reads the results of an evaluation's policies.
    ///
    /// # Errors
    /// A request failed.
    pub async fn policy_outcomes(&self, evaluation: &str) -> Result<Vec<SetOutcome>, ApiError> {
        let (mut all, mut page) = (Vec::new(), 1_u64);
        loop {
            let path = format!(
                "policy-evaluations/{}/policy-set-outcomes?page%5Bnumber%5D={page}",
                part(evaluation)
            );
            let document = self.api.get(&path).await?;
            all.extend(api::items(&document).map(SetOutcome::read));
            match api::next_page(&document, page) {
                Some(next) => page = next,
                None => return Ok(all),
            }
        }
    }
}
