//! Conformance of a provider executable to the plugin protocol: legal, wrong and hostile requests.
//!
//! - `process`: start, protocols, TLS, output, signals, end. `hostile`: messages that no host sends.
//! - `shape`: rules of schemas. `calls`: validation, plans, imports and upgrades with values from `values`.
//!
//! Nothing is created: no object is applied, and no data source is read. A provider that has arguments is configured only if
//! the caller passes a configuration.

mod calls;
mod hostile;
mod process;
mod requests;
mod shape;
mod values;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cty::Value;
use provider::{Provider, ProviderSchema};
use syntax::Diagnostics;

/// Result of one check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    Passed,
    /// Allowed by the protocol, but a nuisance for users.
    Warning,
    Failed,
    Skipped,
}

impl Outcome {
    pub const ALL: [Outcome; 4] = [Outcome::Passed, Outcome::Warning, Outcome::Failed, Outcome::Skipped];

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Passed => "passed",
            Outcome::Warning => "warning",
            Outcome::Failed => "failed",
            Outcome::Skipped => "skipped",
        }
    }
}

/// One check with its result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Part of the protocol: `process`, `schema`, `messages`, `calls`.
    pub group: &'static str,
    pub name: String,
    pub outcome: Outcome,
    /// Explanation, in sentences; may be empty if the check has passed.
    pub detail: String,
}

/// Rows of a report, in the order of the checks.
#[derive(Debug, Default)]
pub struct Report {
    pub rows: Vec<Row>,
    /// Protocols that the provider serves.
    pub protocols: Vec<u32>,
}

impl Report {
    fn add(&mut self, group: &'static str, name: impl Into<String>, outcome: Outcome, detail: impl Into<String>) {
        self.rows.push(Row {
            group,
            name: name.into(),
            outcome,
            detail: detail.into(),
        });
    }

    /// Adds a row that fails if there is a problem, and passes otherwise.
    fn judge(&mut self, group: &'static str, name: impl Into<String>, problem: Option<String>) {
        match problem {
            None => self.add(group, name, Outcome::Passed, ""),
            Some(problem) => self.add(group, name, Outcome::Failed, problem),
        }
    }

    #[must_use]
    pub fn count(&self, outcome: Outcome) -> usize {
        self.rows.iter().filter(|row| row.outcome == outcome).count()
    }
}

/// Function that starts the provider as a host does, for requests with values.
pub type StartProvider<'a> = dyn Fn() -> Result<Arc<dyn Provider>, Diagnostics> + 'a;

/// Provider to check.
pub struct Subject<'a> {
    pub program: &'a Path,
    /// Name of the provider, the prefix of its types.
    pub name: &'a str,
    pub start: &'a StartProvider<'a>,
    /// Configuration for the provider, of the implied type of its schema.
    pub config: Option<Value>,
    /// Time limit of each start, request and end.
    pub limit: Duration,
}

/// Runs all checks of a provider, and returns the report.
pub async fn check(subject: &Subject<'_>) -> Report {
    let mut report = Report::default();
    process::check(subject, &mut report).await;
    if report.protocols.is_empty() {
        report.add("schema", "schemas", Outcome::Skipped, "The provider cannot be started.");
        return report;
    }
    let schema = match described(subject).await {
        Ok(schema) => schema,
        Err(problems) => {
            report.add("schema", "schemas are understood", Outcome::Failed, text(&problems));
            hostile::check(subject, &ProviderSchema::default(), &mut report).await;
            return report;
        }
    };
    shape::check(subject.name, &schema, &mut report);
    hostile::check(subject, &schema, &mut report).await;
    calls::check(subject, &schema, &mut report).await;
    report
}

/// Requests the schemas, and converts all of them.
async fn described(subject: &Subject<'_>) -> Result<Arc<ProviderSchema>, Diagnostics> {
    let provider = (subject.start)()?;
    let schema = provider.schema().await;
    provider.close().await;
    let schema = schema?;
    match schema.first_problem() {
        None => Ok(schema),
        Some(reason) => Err(provider::invalid_schema(subject.name, reason).into()),
    }
}

/// Joins diagnostics to one line.
fn text(problems: &Diagnostics) -> String {
    let lines = problems.0.iter().map(|problem| {
        let detail: Vec<&str> = problem.detail.split_whitespace().collect();
        format!("{}: {}", problem.summary, detail.join(" "))
    });
    lines.collect::<Vec<_>>().join(" ")
}

/// Lists the first names, and the number of the others.
fn listed(names: &[String]) -> String {
    const SHOWN: usize = 5;
    let shown = names.get(..SHOWN.min(names.len())).unwrap_or_default().join(", ");
    match names.len().checked_sub(SHOWN) {
        None | Some(0) => shown,
        Some(more) => format!("{shown} and {more} more"),
    }
}
