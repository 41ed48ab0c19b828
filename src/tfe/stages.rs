//! Stages of tasks in a run: programs of others that are asked before the plan, after it, and before the apply; and policies that
//! are evaluated there.

use serde_json::{Value as Json, json};

use crate::Connection;
use crate::api::{self, ApiError, all_related, part};
use crate::included::Included;

/// A stage of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage {
    /// What requests name it by.
    pub id: String,
    /// When it is: `pre_plan`, `post_plan`, `pre_apply`, `post_apply`.
    pub stage: String,
    /// How far it is: `pending`, `running`, `passed`, `failed`, `awaiting_override`, `canceled`, `errored`, `unreachable`.
    pub status: String,
    /// What its tasks have come to, where that was asked for.
    pub results: Vec<TaskResult>,
    /// What its policies have come to, where that was asked for.
    pub evaluations: Vec<Evaluation>,
}

/// What a task has come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TaskResult {
    /// The task.
    pub name: String,
    /// `passed`, `failed`, `errored`, `running`, `pending`, `unreachable`.
    pub status: String,
    /// `mandatory` or `advisory`.
    pub level: String,
    /// What it says.
    pub message: String,
    /// Where it says more.
    pub url: String,
}

/// What the policies of a kind have come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evaluation {
    /// What requests name it by.
    pub id: String,
    /// `passed`, `failed`, `errored`, `running`, `pending`, `queued`, `unreachable`.
    pub status: String,
    /// `opa` or `sentinel`.
    pub kind: String,
    /// How many policies were evaluated.
    pub evaluated: u64,
    /// How many have failed that are advice only.
    pub advisory_failed: u64,
}

/// What the policies of a set have come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SetOutcome {
    /// The set.
    pub name: String,
    pub policies: Vec<PolicyOutcome>,
}

/// What a policy has come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyOutcome {
    pub name: String,
    /// `passed` or `failed`.
    pub status: String,
    /// `advisory` or `mandatory`.
    pub level: String,
    /// What it is about.
    pub description: String,
}

impl Stage {
    pub(crate) fn read(data: &Json, included: &Included) -> Result<Stage, ApiError> {
        let text = |name: &str| api::text(data, name).unwrap_or_default().to_owned();
        let (results, evaluations) = (
            all_related(data, "task-results"),
            all_related(data, "policy-evaluations"),
        );
        // In the order in which the stage has them.
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
    /// It cannot be read.
    pub async fn stage(&self, id: &str) -> Result<Stage, ApiError> {
        let path = format!("task-stages/{}?include=task_results%2Cpolicy_evaluations", part(id));
        let document = self.api.get(&path).await?;
        Stage::read(api::data(&document), &Included::read(&document))
    }

    /// Overrides what has failed in a stage.
    ///
    /// # Errors
    /// The server refuses.
    pub async fn override_stage(&self, id: &str) -> Result<(), ApiError> {
        let path = format!("task-stages/{}/actions/override", part(id));
        self.api.post(&path, &json!({})).await.map(drop)
    }

    /// What the policies of an evaluation have come to.
    ///
    /// # Errors
    /// It cannot be read.
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
