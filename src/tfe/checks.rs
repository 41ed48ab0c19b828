//! Checks between a plan and its apply: policies and cost estimates.

use std::time::Duration;

use serde_json::Value as Json;

use crate::Connection;
use crate::api::truth;
use crate::api::{self, ApiError, part};

/// Pause between two requests for the status of a policy check.
const PAUSE: Duration = Duration::from_millis(500);

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyCheck {
    /// Identifier of the check in requests.
    pub id: String,
    /// `organization` or `workspace`.
    pub scope: String,
    /// `passed`, `soft_failed`, `hard_failed`, `errored`, `pending`, `queued`, `unreachable`, …
    pub status: String,
    /// Set if the check can be overridden now, and the token may do it.
    pub can_be_overridden: bool,
}

/// An estimate of costs. Amounts are decimal numbers as text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CostEstimate {
    /// `finished`, `pending`, `queued`, `errored`, `canceled` or `skipped_due_to_targeting`.
    pub status: String,
    /// Number of resources that have a price.
    pub matched: u64,
    /// Number of all resources.
    pub resources: u64,
    /// Estimated monthly cost after the apply.
    pub proposed: String,
    /// Difference to the current monthly cost.
    pub delta: String,
}

impl Connection {
    /// Reads a policy check.
    ///
    /// # Errors
    /// The request failed.
    pub async fn policy_check(&self, id: &str) -> Result<PolicyCheck, ApiError> {
        let document = self.api.get(&format!("policy-checks/{}", part(id))).await?;
        let data = api::data(&document);
        let text = |name: &str| api::text(data, name).unwrap_or_default().to_owned();
        Ok(PolicyCheck {
            id: api::id(data)?,
            scope: text("scope"),
            status: text("status"),
            // The two attributes are independent: a policy may permit an override that the token's user may not make.
            can_be_overridden: truth(data, "/attributes/actions/is-overridable")
                && truth(data, "/attributes/permissions/can-override"),
        })
    }

    /// Waits until a policy check has ended, and reads its output.
    ///
    /// # Errors
    /// A request failed.
    pub async fn policy_output(&self, id: &str) -> Result<String, ApiError> {
        // The server has no output before the check ends, and cannot notify a client of that.
        while matches!(&*self.policy_check(id).await?.status, "pending" | "queued") {
            tokio::time::sleep(PAUSE).await;
        }
        let text = self.api.text(&format!("policy-checks/{}/output", part(id))).await?;
        Ok(String::from_utf8_lossy(&text).into_owned())
    }

    /// Overrides a policy check whose failure may be overridden (`soft_failed`).
    ///
    /// # Errors
    /// The server refuses, or cannot be reached.
    pub async fn override_policy(&self, id: &str) -> Result<(), ApiError> {
        let path = format!("policy-checks/{}/actions/override", part(id));
        self.api.send(net::Method::POST, &path, None).await.map(drop)
    }

    /// Reads an estimate of costs.
    ///
    /// # Errors
    /// The request failed.
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
