//! Parser of scenarios.
//!
//! ```text
//! === a_name
//! # What it is about.
//! --- main.tf
//! resource "terraform_data" "a" {}
//! $ apply
//! --- main.tf
//! $ plan -refresh-only
//! ```
//!
//! `=== NAME` begins a scenario, `--- FILE` a file (`--- FILE gone` removes one), which extends to the next line that begins
//! with `---`, `===`, `$` or `!`. `$ COMMAND` runs a command, `! COMMAND` a shell command (a change from outside).

use std::path::Path;

/// One scenario of a file.
pub struct Scenario {
    /// Name of the scenario's file.
    pub topic: String,
    /// Name of the scenario in the file.
    pub name: String,
    /// Text of the scenario, whose fingerprint its recording has.
    pub text: String,
    /// Steps in their order.
    pub steps: Vec<Step>,
}

/// One step of a scenario.
pub enum Step {
    /// Name and text of a file to write.
    Write(String, String),
    /// Name of a file to remove.
    Remove(String),
    /// Shell command that changes files.
    Shell(String),
    /// Words of a command to run.
    Run(Vec<String>),
}

impl Scenario {
    /// Returns the name of the scenario's test, `TOPIC::NAME`.
    pub fn id(&self) -> String {
        format!("{}::{}", self.topic, self.name)
    }
}

pub fn file(path: &Path) -> Vec<Scenario> {
    let text = std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let topic = path.file_stem().expect("a name").to_string_lossy();
    let mut out: Vec<Scenario> = Vec::new();
    let mut parts = text.split("\n=== ");
    // Text before the first scenario is a comment for readers.
    parts.next();
    for part in parts {
        let (name, text) = part.split_once('\n').unwrap_or((part, ""));
        let name = name.trim();
        assert!(
            !out.iter().any(|s| s.name == name),
            "{}: {name} is there twice",
            path.display()
        );
        out.push(Scenario {
            topic: topic.to_string(),
            name: name.into(),
            text: text.trim_end().into(),
            steps: steps(name, text),
        });
    }
    out
}

fn steps(name: &str, text: &str) -> Vec<Step> {
    let mut out: Vec<Step> = Vec::new();
    let mut writing = false;
    for line in text.lines() {
        let mut is_text = false;
        if let Some(file) = line.strip_prefix("--- ") {
            match file.trim().split_once(' ') {
                None => out.push(Step::Write(file.trim().into(), String::new())),
                Some((file, "gone")) => out.push(Step::Remove(file.into())),
                Some(_) => panic!("{name}: {line}"),
            }
            writing = true;
            continue;
        } else if let Some(command) = line.strip_prefix("$ ") {
            out.push(Step::Run(words(command)));
        } else if let Some(command) = line.strip_prefix("! ") {
            out.push(Step::Shell(command.into()));
        } else {
            is_text = true;
        }
        writing &= is_text;
        match out.last_mut() {
            Some(Step::Write(_, text)) if writing => {
                text.push_str(line);
                text.push('\n');
            }
            _ => assert!(
                !is_text || line.trim().is_empty() || line.starts_with('#'),
                "{name}: what is this? {line}"
            ),
        }
    }
    out
}

/// Splits a command into words. Words with blanks are in single quotes.
fn words(command: &str) -> Vec<String> {
    let mut out = vec![String::new()];
    let mut quoted = false;
    for c in command.chars() {
        match c {
            '\'' => quoted = !quoted,
            ' ' if !quoted => out.push(String::new()),
            c => {
                if let Some(word) = out.last_mut() {
                    word.push(c);
                }
            }
        }
    }
    out.retain(|w| !w.is_empty());
    out
}
