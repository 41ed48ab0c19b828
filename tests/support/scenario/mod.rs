//! Recorded scenarios: configurations that change step by step, played with the real executable and compared with
//! Terraform's results of the same steps.
//!
//! [`parse`]: the text of scenarios. [`play`]: running the steps, with either program. [`mask`]: placeholders for values
//! that differ from run to run. [`compare`]: differences between two recordings. [`Collection`]: scenarios on disk and
//! their recordings.

pub mod compare;
pub mod mask;
pub mod parse;
pub mod play;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use libtest_mimic::{Failed, Trial};
use serde_json::{Value, json};

use super::Workspace;
use parse::Scenario;
use play::Player;

/// A directory with scenarios (`cases/TOPIC.txt`), Terraform's results (`recorded/TOPIC/NAME.json`), and the known
/// differences (`expected.txt`).
pub struct Collection {
    dir: PathBuf,
    /// Positions of the known differences with their reasons, by scenario.
    expected: BTreeMap<String, Vec<(String, String)>>,
}

/// Terraform's program: the release that Monoform answers as.
pub const TERRAFORM: &str = "terraform-1.16";

/// OpenTofu's program, of release 1.12.
pub const OPENTOFU: &str = "tofu";

/// Makes a workspace in which a program finds the plugins that it needs.
pub type Prepare = fn(Workspace) -> Workspace;

/// Options of playing a collection.
#[derive(Clone, Copy)]
pub struct Playing {
    /// Program that is recorded.
    pub recorded: &'static str,
    /// Preparation of a workspace for Monoform.
    pub ours: Prepare,
    /// Preparation of a workspace for Terraform.
    pub theirs: Prepare,
    /// True if Monoform, too, needs `init` first.
    pub init: bool,
    /// True if the JSON documents of plans and states are compared, too.
    pub documents: bool,
}

impl Collection {
    /// Opens the collection in a directory of this repository.
    pub fn new(dir: &str) -> Collection {
        let dir = Path::new(crate::REPOSITORY).join(dir);
        let text = std::fs::read_to_string(dir.join("expected.txt")).unwrap_or_default();
        let mut expected: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
        for line in text.lines().filter(|l| !l.trim().is_empty() && !l.starts_with('#')) {
            let mut words = line.splitn(3, ' ');
            let (Some(scenario), Some(place), Some(reason)) = (words.next(), words.next(), words.next()) else {
                panic!("expected.txt: a line is SCENARIO PLACE[,PLACE…] REASON: {line}");
            };
            let of = expected.entry(scenario.into()).or_default();
            of.extend(place.split(',').map(|place| (place.into(), reason.into())));
        }
        Collection { dir, expected }
    }

    /// Reads the scenarios, in the order of their files. Panics if `expected.txt` names one that does not exist.
    pub fn scenarios(&self) -> Vec<Scenario> {
        let mut files: Vec<PathBuf> = std::fs::read_dir(self.dir.join("cases"))
            .expect("the directory of scenarios")
            .map(|e| e.expect("an entry").path())
            .collect();
        files.sort();
        let all: Vec<Scenario> = files.iter().flat_map(|file| parse::file(file)).collect();
        for name in self.expected.keys() {
            assert!(
                all.iter().any(|s| s.id() == *name),
                "expected.txt: there is no scenario {name}"
            );
        }
        all
    }

    fn recording(&self, scenario: &Scenario) -> PathBuf {
        let name = format!("{}.json", scenario.name);
        self.dir.join("recorded").join(&scenario.topic).join(name)
    }

    /// Makes one test for each scenario: Monoform's results must equal those of the recording. If `MONOFORM_RECORD` is
    /// in the environment, Terraform is recorded instead: with `all` every scenario, with `new` those without a
    /// recording and those that were changed since.
    pub fn trials(self, playing: Playing) -> Vec<Trial> {
        let record = std::env::var("MONOFORM_RECORD").ok();
        let collection = std::sync::Arc::new(self);
        let trial = |scenario: Scenario| {
            let (collection, record) = (collection.clone(), record.clone());
            Trial::test(scenario.id(), move || match record.as_deref() {
                Some(which) => {
                    collection.record(&scenario, playing, which == "all");
                    Ok(())
                }
                None => collection.check(&scenario, playing),
            })
        };
        let scenarios = collection.scenarios();
        scenarios.into_iter().map(trial).collect()
    }

    fn record(&self, scenario: &Scenario, playing: Playing, again: bool) {
        let file = self.recording(scenario);
        if !again {
            let old = std::fs::read_to_string(&file).unwrap_or_default();
            let old: Value = serde_json::from_str(&old).unwrap_or_default();
            if old.get("scenario") == Some(&json!(play::fingerprint(&scenario.text))) {
                return;
            }
        }
        let mut player = Player::new(playing.recorded, (playing.theirs)(Workspace::new()), true);
        let steps = player.play(scenario);
        std::fs::create_dir_all(file.parent().expect("a parent")).expect("a directory");
        std::fs::write(&file, play::to_text(&scenario.text, &steps)).expect("a file");
    }

    fn check(&self, scenario: &Scenario, playing: Playing) -> Result<(), Failed> {
        let file = self.recording(scenario);
        let recorded = std::fs::read_to_string(&file).map_err(|e| {
            format!(
                "{}: {e}; scripts/record-scenarios makes recordings with Terraform",
                file.display()
            )
        })?;
        let recorded: Value = serde_json::from_str(&recorded).map_err(|e| format!("{}: {e}", file.display()))?;
        if recorded["scenario"] != json!(play::fingerprint(&scenario.text)) {
            return Err("the scenario was changed after it was recorded; run scripts/record-scenarios".into());
        }
        let mut player = Player::new(crate::monoform(), (playing.ours)(Workspace::new()), playing.init);
        let ours = json!(player.play(scenario));
        let mut found = Vec::new();
        compare::steps(&ours, &recorded["steps"], &mut found);
        // The recording may be from a release candidate.
        found.retain(|f| f.name() != "terraform_version" && (playing.documents || !f.is_of_document()));
        let none = Vec::new();
        let expected = self.expected.get(&scenario.id()).unwrap_or(&none);
        let unneeded: Vec<&str> = expected
            .iter()
            .filter(|(place, _)| !found.iter().any(|f| compare::is_at(f, place)))
            .map(|(place, _)| place.as_str())
            .collect();
        found.retain(|f| !expected.iter().any(|(place, _)| compare::is_at(f, place)));
        if !found.is_empty() {
            let shown: Vec<String> = found.iter().take(60).map(ToString::to_string).collect();
            let more = found.len().saturating_sub(shown.len());
            let more = if more > 0 {
                format!("\nand {more} more")
            } else {
                String::new()
            };
            return Err(format!("differs from Terraform:\n{}{more}", shown.join("\n")).into());
        }
        // Unneeded exceptions are reported, because they would hide a difference that comes back.
        if !unneeded.is_empty() {
            return Err(format!("no longer differs, take it from expected.txt: {}", unneeded.join(", ")).into());
        }
        Ok(())
    }
}
