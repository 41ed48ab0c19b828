//! What is checked between a plan and its apply: policies, and what the plan would cost.

use std::time::Duration;

use serde_json::Value as Json;

use crate::Connection;
use crate::api::{self, ApiError, part};
use crate::runs::truth;

/// How often it is asked whether a policy check has ended.
const PAUSE: Duration = Duration::from_millis(500);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyCheck {
    /// What requests name it by.
    pub id: String,
    /// `organization` or `workspace`.
    pub scope: String,
    /// How far it is: `passed`, `soft_failed`, `hard_failed`, `errored`, `pending`, `queued`, `unreachable`, …
    pub status: String,
    /// Whether the token may override it, now.
    pub can_be_overridden: bool,
}

/// An estimate of costs. Amounts are decimal numbers as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CostEstimate {
    /// How far it is: `finished`, `pending`, `queued`, `errored`, `canceled`, `skipped_due_to_targeting`.
    pub status: String,
    /// How many resources have a price.
    pub matched: u64,
    /// How many there are.
    pub resources: u64,
    /// What they will cost a month.
    pub proposed: String,
    /// The difference to what they cost now.
    pub delta: String,
}

impl Connection {
    /// Reads a policy check.
    ///
    /// # Errors
    /// It cannot be read.
    pub async fn policy_check(&self, id: &str) -> Result<PolicyCheck, ApiError> {
        let document = self.api.get(&format!("policy-checks/{}", part(id))).await?;
        let data = api::data(&document);
        let text = |name: &str| api::text(data, name).unwrap_or_default().to_owned();
        Ok(PolicyCheck {
            id: api::id(data)?,
            scope: text("scope"),
            status: text("status"),
            can_be_overridden: truth(data, "/attributes/actions/is-overridable")
                && truth(data, "/attributes/permissions/can-override"),
        })
    }

    /// The output of a policy check, which is there when the check has ended: that is waited for.
    ///
    /// # Errors
    /// It cannot be read.
    pub async fn policy_output(&self, id: &str) -> Result<String, ApiError> {
        while matches!(&*self.policy_check(id).await?.status, "pending" | "queued") {
            tokio::time::sleep(PAUSE).await;
        }
        let text = self.api.text(&format!("policy-checks/{}/output", part(id))).await?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// Overrides a policy check that has failed softly.
    ///
    /// # Errors
    /// The server refuses.
    pub async fn override_policy(&self, id: &str) -> Result<(), ApiError> {
        let path = format!("policy-checks/{}/actions/override", part(id));
        self.api.send(net::Method::POST, &path, None).await.map(drop)
    }

    /// Reads an estimate of costs.
    ///
    /// # Errors
    /// It cannot be read.
    pub async fn cost_estimate(&self, id: &str) -> Result<CostEstimate, ApiError> {
        let document = self.api.get(&format!("cost-estimates/{}", part(id))).await?;
        let data = api::data(&document);
        let text = |name: &str| api::text(data, name).unwrap_or_default().to_owned();
        let number = |name: &str| {
            data.pointer(&format!("/attributes/{name}"))
                .and_then(Json::as_u64)
                .unwrap_or_default()
        };
        Ok(CostEstimate {
            status: text("status"),
            matched: number("matched-resources-count"),
            resources: number("resources-count"),
            proposed: text("proposed-monthly-cost"),
            delta: text("delta-monthly-cost"),
        })
    }
}
