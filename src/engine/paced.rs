//! A provider whose requests are measured, for a lane whose limit is adapted.
//!
//! If a provider throttles a request that changes nothing (read, data source, plan), the request is repeated after a pause. A throttled
//! apply request is not repeated, because only the provider knows whether it has had an effect.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use cty::Value;
use provider::contract::*;
use provider::{Actions, Answer, Provider, SchemaMap};
use syntax::{Diagnostic, Diagnostics};

use crate::lanes::{Lane, Lanes, Outcome};

/// Pauses before a throttled request is repeated. After the last one, the error is final.
const PAUSES: [Duration; 6] = [
    Duration::from_millis(250),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
    Duration::from_secs(8),
];

/// Texts with which providers and services report throttling, in lower case.
const THROTTLING: [&str; 10] = [
    "throttl",
    "rate exceeded",
    "rate limit",
    "ratelimit",
    "rate_limit",
    "too many requests",
    "toomanyrequests",
    "requestlimitexceeded",
    "slow down",
    "slowdown",
];

/// Returns true if a problem reports throttling.
fn is_throttling(problem: &Diagnostic) -> bool {
    let text = format!("{} {}", problem.summary, problem.detail).to_lowercase();
    if THROTTLING.iter().any(|known| text.contains(known)) {
        return true;
    }
    // The number 429 alone could have any meaning, so a word such as "status" must precede it.
    let mut words = text
        .split(|c: char| !c.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty());
    let mut before = "";
    words.any(|word| {
        let is_status = word == "429" && matches!(before, "status" | "code" | "http" | "error" | "statuscode");
        before = word;
        is_status
    })
}

/// Returns two flags: the answer reports throttling, and the request failed because of it.
fn judged<T>(answer: &Result<Answer<T>, Diagnostics>) -> (bool, bool) {
    let throttling = |problems: &mut dyn Iterator<Item = &Diagnostic>| {
        let found: Vec<&Diagnostic> = problems.filter(|d| is_throttling(d)).collect();
        (!found.is_empty(), found.iter().any(|d| d.is_error()))
    };
    match answer {
        Ok(answer) => throttling(&mut answer.diagnostics.iter().map(|d| &d.diagnostic)),
        Err(problems) => throttling(&mut problems.iter()),
    }
}

/// A provider with an adaptive concurrency limit. Its requests are measured for the limit, and throttled requests that change nothing are
/// repeated.
pub(crate) struct Paced {
    provider: Arc<dyn Provider>,
    lane: Arc<Lane>,
    lanes: Arc<Lanes>,
}

impl Paced {
    pub(crate) fn new(provider: Arc<dyn Provider>, lane: Arc<Lane>, lanes: Arc<Lanes>) -> Paced {
        Paced { provider, lane, lanes }
    }

    /// Sends a request that changes nothing, and repeats it after a pause while the provider throttles it.
    async fn repeated<T, F>(
        &self,
        method: &'static str,
        ty: &str,
        send: impl Fn() -> F,
    ) -> Result<Answer<T>, Diagnostics>
    where
        F: Future<Output = Result<Answer<T>, Diagnostics>>,
    {
        let mut pauses = PAUSES.iter();
        loop {
            let began = self.lanes.elapsed();
            let answer = send().await;
            let (throttled, failed) = judged(&answer);
            let outcome = if throttled { Outcome::Throttled } else { Outcome::Timed };
            self.lanes.ended(&self.lane, (method, ty.into()), began, outcome);
            match pauses.next().filter(|_| failed) {
                // The permit is not returned during the pause, so that fewer requests are sent.
                Some(pause) => tokio::time::sleep(*pause).await,
                None => return answer,
            }
        }
    }
}

#[async_trait]
impl Provider for Paced {
    async fn schema(&self) -> Result<Arc<ProviderSchema>, Diagnostics> {
        self.provider.schema().await
    }

    async fn validate_provider(&self, config: Value) -> Result<Answer<()>, Diagnostics> {
        self.provider.validate_provider(config).await
    }

    async fn configure(&self, config: Value) -> Result<Answer<()>, Diagnostics> {
        self.provider.configure(config).await
    }

    async fn validate_resource(&self, ty: &str, config: Value) -> Result<Answer<()>, Diagnostics> {
        self.provider.validate_resource(ty, config).await
    }

    async fn validate_data(&self, ty: &str, config: Value) -> Result<Answer<()>, Diagnostics> {
        self.provider.validate_data(ty, config).await
    }

    async fn validate_ephemeral(&self, ty: &str, config: Value) -> Result<Answer<()>, Diagnostics> {
        self.provider.validate_ephemeral(ty, config).await
    }

    async fn upgrade(&self, ty: &str, version: u64, state: RawState) -> Result<Answer<Value>, Diagnostics> {
        self.provider.upgrade(ty, version, state).await
    }

    async fn upgrade_identity(
        &self,
        ty: &str,
        version: u64,
        identity: Arc<[u8]>,
    ) -> Result<Answer<Option<Value>>, Diagnostics> {
        self.provider.upgrade_identity(ty, version, identity).await
    }

    async fn read(&self, ty: &str, request: ReadRequest) -> Result<Answer<ObjectRead>, Diagnostics> {
        self.repeated("read", ty, || self.provider.read(ty, request.clone()))
            .await
    }

    async fn plan(&self, ty: &str, request: PlanRequest) -> Result<Answer<PlannedChange>, Diagnostics> {
        self.repeated("plan", ty, || self.provider.plan(ty, request.clone()))
            .await
    }

    fn has_ended(&self) -> bool {
        self.provider.has_ended()
    }

    async fn apply(&self, ty: &str, request: ApplyRequest) -> Result<Answer<Applied>, Diagnostics> {
        let began = self.lanes.elapsed();
        let answer = self.provider.apply(ty, request).await;
        let (throttled, _) = judged(&answer);
        let outcome = if throttled {
            Outcome::Throttled
        } else {
            Outcome::Answered
        };
        self.lanes.ended(&self.lane, ("apply", ty.into()), began, outcome);
        answer
    }

    async fn import(&self, ty: &str, target: &ImportTarget) -> Result<Answer<Vec<Imported>>, Diagnostics> {
        self.provider.import(ty, target).await
    }

    async fn generate_config(&self, ty: &str, object: Value) -> Result<Answer<Value>, Diagnostics> {
        self.provider.generate_config(ty, object).await
    }

    async fn validate_list(&self, ty: &str, config: Value) -> Result<Answer<()>, Diagnostics> {
        self.provider.validate_list(ty, config).await
    }

    async fn list(&self, ty: &str, request: ListRequest) -> Result<Answer<Vec<Listed>>, Diagnostics> {
        self.provider.list(ty, request).await
    }

    async fn move_state(&self, target_type: &str, request: MoveRequest<'_>) -> Result<Answer<ObjectRead>, Diagnostics> {
        self.provider.move_state(target_type, request).await
    }

    async fn read_data(&self, ty: &str, config: Value, meta: Option<Value>) -> Result<Answer<Value>, Diagnostics> {
        let send = || self.provider.read_data(ty, config.clone(), meta.clone());
        self.repeated("data", ty, send).await
    }

    async fn open_ephemeral(&self, ty: &str, config: Value) -> Result<Answer<Opened>, Diagnostics> {
        self.provider.open_ephemeral(ty, config).await
    }

    async fn renew_ephemeral(&self, ty: &str, private: Option<Vec<u8>>) -> Result<Answer<Opened>, Diagnostics> {
        self.provider.renew_ephemeral(ty, private).await
    }

    async fn close_ephemeral(&self, ty: &str, private: Option<Vec<u8>>) -> Result<Answer<()>, Diagnostics> {
        self.provider.close_ephemeral(ty, private).await
    }

    async fn functions(&self) -> Result<SchemaMap<FunctionSchema>, Diagnostics> {
        self.provider.functions().await
    }

    async fn call_function(
        &self,
        name: &str,
        arguments: Vec<Value>,
    ) -> Result<Result<Value, FunctionError>, Diagnostics> {
        self.provider.call_function(name, arguments).await
    }

    fn actions(&self) -> Option<&dyn Actions> {
        self.provider.actions()
    }

    async fn stop(&self) -> Result<(), Diagnostics> {
        self.provider.stop().await
    }

    async fn close(&self) {
        self.provider.close().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn throttling_is_known_by_its_words() {
        let says = |summary: &str, detail: &str| is_throttling(&Diagnostic::error(summary, detail));
        for detail in [
            "operation error EC2: DescribeInstances, https response error StatusCode: 400, RequestLimitExceeded: x",
            "ThrottlingException: Rate exceeded",
            "POST https://api.example: 429 Too Many Requests",
            "API rate limit of 80 still exceeded until 2026",
            "unexpected status 429",
            "StatusCode=429",
        ] {
            assert!(says("Error reading", detail), "{detail}");
        }
        for detail in [
            "port 429 is not open",
            "the error has the id 1429",
            "not found",
            "exceeded the limit of names",
        ] {
            assert!(!says("Error reading", detail), "{detail}");
        }
    }
}
