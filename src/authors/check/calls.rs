//! Requests with values: validation, plans, imports, upgrades of states.

use std::future::Future;
use std::sync::Arc;

use cty::Value;
use engine::objchange::{plan_problems, proposed_new};
use provider::{
    Answer, ImportTarget, PlanRequest, PlannedChange, PluginDiagnostic, Provider, ProviderSchema, RawState,
};
use schema::Schema;
use syntax::{Diagnostics, Severity};

use super::values::{Fill, known, sample, unknown};
use super::{Outcome, Report, Subject, listed, text};

const GROUP: &str = "calls";

/// Import IDs that no object has.
const IMPORT_IDS: &[&str] = &[
    "",
    " ",
    "nothing-of-that-name",
    "../../etc/passwd",
    "a/b/c:d|e,f",
    "é\u{202e}\u{0}",
];

/// Running provider, started again when it has ended.
struct Running<'a> {
    subject: &'a Subject<'a>,
    provider: Arc<dyn Provider>,
    configured: Option<Value>,
}

impl Running<'_> {
    /// Waits for an answer, and starts the provider again if there is none.
    ///
    /// # Errors
    /// The provider does not answer. The text is the reason.
    async fn answer<T>(&mut self, asked: impl Future<Output = Result<T, Diagnostics>>) -> Result<T, String> {
        let answered = tokio::time::timeout(self.subject.limit, asked).await;
        let why = match answered {
            Ok(Ok(answer)) => return Ok(answer),
            Ok(Err(problems)) => text(&problems),
            Err(_) => "There is no answer within the time limit.".to_owned(),
        };
        if self.provider.has_ended()
            && let Ok(provider) = (self.subject.start)()
        {
            self.provider = provider;
            if let Some(config) = &self.configured {
                // This configuration was accepted before, so the answer needs no check.
                let _ = self.provider.configure(config.clone()).await;
            }
        }
        Err(why)
    }
}

/// Findings of one check over many types.
#[derive(Default)]
struct Found {
    number: usize,
    failed: Vec<String>,
    warned: Vec<String>,
    skipped: Vec<String>,
}

impl Found {
    fn conclude(self, report: &mut Report, name: &str) {
        if self.number == 0 {
            return;
        }
        let name = format!("{name} ({})", self.number);
        let (outcome, rows) = match (self.failed.is_empty(), self.warned.is_empty()) {
            (false, _) => (Outcome::Failed, self.failed),
            (true, false) => (Outcome::Warning, self.warned),
            (true, true) if self.skipped.len() == self.number => (Outcome::Skipped, Vec::new()),
            (true, true) => (Outcome::Passed, Vec::new()),
        };
        let mut detail = listed(&rows);
        if !self.skipped.is_empty() {
            let gap = if detail.is_empty() { "" } else { " " };
            detail.push_str(&format!("{gap}Not checked: {}", listed(&self.skipped)));
        }
        report.add(GROUP, name, outcome, detail);
    }
}

/// Returns the first error among diagnostics.
fn error(diagnostics: &[PluginDiagnostic]) -> Option<&PluginDiagnostic> {
    diagnostics
        .iter()
        .find(|one| one.diagnostic.severity == Severity::Error)
}

fn summary(one: &PluginDiagnostic) -> String {
    let detail: Vec<&str> = one.diagnostic.detail.split_whitespace().collect();
    let text = format!("{}: {}", one.diagnostic.summary, detail.join(" "));
    match text.char_indices().nth(160) {
        None => text,
        Some((at, _)) => format!("{}…", text.get(..at).unwrap_or_default()),
    }
}

pub async fn check(subject: &Subject<'_>, schema: &ProviderSchema, report: &mut Report) {
    let provider = match (subject.start)() {
        Ok(provider) => provider,
        Err(problems) => return report.add(GROUP, "starts", Outcome::Failed, text(&problems)),
    };
    let mut running = Running {
        subject,
        provider,
        configured: None,
    };
    validation(&mut running, schema, report).await;
    upgrades(&mut running, schema, report).await;
    if configure(&mut running, schema, report).await {
        plans(&mut running, schema, report).await;
        imports(&mut running, schema, report).await;
    }
    running.provider.close().await;
}

/// Validates configurations: without arguments, with unknown arguments only, and with the required arguments.
async fn validation(running: &mut Running<'_>, schema: &ProviderSchema, report: &mut Report) {
    for (name, unknowns) in [
        ("validation of configurations without arguments is answered", false),
        ("validation of unknown arguments finds no error", true),
    ] {
        let mut found = Found::default();
        let config = |schema: &Schema| match unknowns {
            true => unknown(&schema.block),
            false => schema.block.empty_object(),
        };
        let provider = running.provider.clone();
        let asked = provider.validate_provider(config(&schema.provider));
        note(&mut found, unknowns, "provider", running.answer(asked).await);
        for (ty, one) in schema.resources.iter() {
            let provider = running.provider.clone();
            let asked = provider.validate_resource(ty, config(one));
            note(&mut found, unknowns, ty, running.answer(asked).await);
        }
        for (ty, one) in schema.data_sources.iter() {
            let provider = running.provider.clone();
            let asked = provider.validate_data(ty, config(one));
            note(&mut found, unknowns, ty, running.answer(asked).await);
        }
        for (ty, one) in schema.ephemeral.iter() {
            let provider = running.provider.clone();
            let asked = provider.validate_ephemeral(ty, config(one));
            note(&mut found, unknowns, ty, running.answer(asked).await);
        }
        for (ty, one) in schema.lists.iter() {
            let provider = running.provider.clone();
            let asked = provider.validate_list(ty, config(&one.config));
            note(&mut found, unknowns, ty, running.answer(asked).await);
        }
        found.conclude(report, name);
    }
}

fn note(found: &mut Found, unknowns: bool, name: &str, answer: Result<Answer<()>, String>) {
    found.number += 1;
    match answer {
        Err(why) => found.failed.push(format!("{name}: {why}")),
        Ok(answer) => {
            if let Some(problem) = error(&answer.diagnostics).filter(|_| unknowns) {
                found.warned.push(format!("{name}: {}", summary(problem)));
            }
        }
    }
}

/// Asks the provider to upgrade objects of the current schema version, as programs do after each change of the provider's version.
async fn upgrades(running: &mut Running<'_>, schema: &ProviderSchema, report: &mut Report) {
    let mut found = Found::default();
    for (ty, one) in schema.resources.iter() {
        found.number += 1;
        let object = sample(&one.block, Fill::All);
        let Ok(json) = cty::json::to_json_text(&object, &one.implied_type()) else {
            found.skipped.push(format!("{ty} (its object has no JSON form)"));
            continue;
        };
        let provider = running.provider.clone();
        let state = RawState::Json(json.into_bytes().into());
        match running.answer(provider.upgrade(ty, one.version, state)).await {
            Err(why) => found.failed.push(format!("{ty}: {why}")),
            Ok(answer) => match error(&answer.diagnostics) {
                Some(problem) => found.failed.push(format!("{ty}: {}", summary(problem))),
                None if answer.value == object => {}
                None => found
                    .warned
                    .push(format!("{ty}: the object is not the same afterwards")),
            },
        }
    }
    found.conclude(report, "objects of the current version are taken as they are");
}

/// Configures the provider; returns false if there is no configuration for it, or if it refuses the configuration.
async fn configure(running: &mut Running<'_>, schema: &ProviderSchema, report: &mut Report) -> bool {
    const NAME: &str = "plans and imports";
    let block = &schema.provider.block;
    let has_none = block.attributes.is_empty() && block.blocks.is_empty();
    let config = match &running.subject.config {
        Some(config) => config.clone(),
        // A provider without arguments cannot find credentials for them in the environment either, so configuring it reaches no service.
        None if has_none => block.empty_object(),
        None => {
            report.add(
                GROUP,
                NAME,
                Outcome::Skipped,
                "They need a configuration of the provider: -config=FILE.",
            );
            return false;
        }
    };
    let provider = running.provider.clone();
    let answered = running.answer(provider.configure(config.clone())).await;
    let problem = match &answered {
        Err(why) => Some(why.clone()),
        Ok(answer) => error(&answer.diagnostics).map(summary),
    };
    running.configured = Some(config);
    let is_configured = problem.is_none();
    report.judge(GROUP, "the provider can be configured", problem);
    is_configured
}

fn request(prior: &Value, proposed: Value, config: &Value) -> PlanRequest {
    PlanRequest {
        prior: prior.clone(),
        proposed,
        config: config.clone(),
        prior_private: Vec::new(),
        prior_identity: None,
        planned_private: Vec::new(),
        meta: None,
    }
}

/// Plans the creation of an object of each type twice, and a plan without changes.
async fn plans(running: &mut Running<'_>, schema: &ProviderSchema, report: &mut Report) {
    let mut rules = Found::default();
    let mut same = Found::default();
    let mut settled = Found::default();
    for (ty, one) in schema.resources.iter() {
        let config = sample(&one.block, Fill::Required);
        let provider = running.provider.clone();
        let validated = running.answer(provider.validate_resource(ty, config.clone())).await;
        rules.number += 1;
        match validated {
            Err(why) => {
                rules.failed.push(format!("{ty}: {why}"));
                continue;
            }
            Ok(answer) => {
                if error(&answer.diagnostics).is_some() {
                    rules.skipped.push(format!("{ty} (made-up arguments are not valid)"));
                    continue;
                }
            }
        }
        let prior = Value::null(one.implied_type());
        let Some(first) = planned(running, ty, one, &prior, &config, &mut rules).await else {
            continue;
        };
        let problems = plan_problems(&one.block, &prior, &config, &first.planned);
        if let Some(problem) = problems.first() {
            let text = format!("{ty}: {}", problem.message);
            // As the engine does, deviations of the legacy SDK are tolerated.
            match first.legacy_type_system {
                true => rules.warned.push(text),
                false => rules.failed.push(text),
            }
        }
        same.number += 1;
        let Some(second) = planned(running, ty, one, &prior, &config, &mut same).await else {
            continue;
        };
        if second.planned != first.planned {
            same.failed.push(format!("{ty}: the second plan has other values"));
        } else if second.private != first.private {
            same.warned
                .push(format!("{ty}: the second plan has other private data"));
        }
        settled.number += 1;
        let object = known(&first.planned);
        if let Some(again) = planned(running, ty, one, &object, &config, &mut settled).await
            && again.planned != object
        {
            settled
                .warned
                .push(format!("{ty}: unchanged arguments change the object"));
        }
    }
    rules.conclude(report, "plans keep the rules of planned values");
    same.conclude(report, "the same plan twice has the same result");
    settled.conclude(report, "without a change there is nothing to do");
}

async fn planned(
    running: &mut Running<'_>,
    ty: &str,
    schema: &Schema,
    prior: &Value,
    config: &Value,
    found: &mut Found,
) -> Option<PlannedChange> {
    let proposed = proposed_new(&schema.block, prior, config);
    let provider = running.provider.clone();
    let asked = provider.plan(ty, request(prior, proposed, config));
    match running.answer(asked).await {
        Err(why) => {
            found.failed.push(format!("{ty}: {why}"));
            None
        }
        Ok(answer) => match error(&answer.diagnostics) {
            Some(problem) => {
                found.skipped.push(format!("{ty} ({})", summary(problem)));
                None
            }
            None => Some(answer.value),
        },
    }
}

/// Imports objects by identifiers that do not exist.
async fn imports(running: &mut Running<'_>, schema: &ProviderSchema, report: &mut Report) {
    let mut found = Found::default();
    let long = "x".repeat(10_000);
    for ty in schema.resources.keys() {
        found.number += 1;
        for id in IMPORT_IDS.iter().copied().chain([long.as_str()]) {
            let provider = running.provider.clone();
            let target = ImportTarget::Id(id.into());
            if let Err(why) = running.answer(provider.import(ty, &target)).await {
                let shown: String = id.chars().take(24).collect();
                found.failed.push(format!("{ty}, id {shown:?}: {why}"));
                break;
            }
        }
    }
    found.conclude(report, "imports of identifiers that do not exist are answered");
}
