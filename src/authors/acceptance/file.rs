//! Acceptance tests: files `*.acctest.hcl`, decoded.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use config::model::CheckRule;
use regex::Regex;
use serde_json::Value as Json;
use syntax::Range;
use syntax::ast::Expr;

use super::path::ValuePath;

/// End of the names of files with acceptance tests.
pub const SUFFIX: &str = ".acctest.hcl";

/// Name of the check that runs after the objects are destroyed. Results list it among the steps.
pub const DESTROYED: &str = "destroyed";

/// File with acceptance tests: one sequence of steps on one state, and sweepers.
#[derive(Debug)]
pub struct AcceptanceFile {
    /// Path as it is shown.
    pub name: Arc<str>,
    /// Directory that the paths in the file are relative to.
    pub dir: PathBuf,
    pub text: Arc<str>,
    /// Address of the provider in the configurations, if it is not the default one (`hashicorp/NAME`).
    pub source: Option<String>,
    /// Runs `init` before the steps, for configurations with modules or other providers.
    pub init: bool,
    /// Environment variables without which the steps are skipped.
    pub skip_unless: Vec<String>,
    /// Source range of the configuration that is part of every step's configuration.
    pub config: Option<Range>,
    pub variables: BTreeMap<String, Json>,
    pub steps: Vec<Step>,
    /// Check after the objects are destroyed.
    pub destroyed: Option<Step>,
    pub sweepers: Vec<Sweeper>,
}

/// Operation of a step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Operation {
    #[default]
    Apply,
    Plan,
    /// Applies a plan that only refreshes.
    Refresh,
    Destroy,
    /// Only runs the commands of the step.
    Nothing,
}

impl Operation {
    pub(super) const NAMES: &[(&str, Operation)] = &[
        ("apply", Operation::Apply),
        ("plan", Operation::Plan),
        ("refresh", Operation::Refresh),
        ("destroy", Operation::Destroy),
    ];
}

/// Configuration of a step.
#[derive(Clone, Debug)]
pub enum StepConfig {
    /// Part of the test file.
    Text(Range),
    /// Files of a directory.
    Directory(PathBuf, Range),
}

#[derive(Debug)]
pub struct Step {
    pub name: Arc<str>,
    /// Range of the block's header.
    pub range: Range,
    pub operation: Operation,
    /// Configuration; if it is not set, the configuration of the previous step stays.
    pub config: Option<StepConfig>,
    pub variables: BTreeMap<String, Json>,
    /// Commands that are run first, each with its arguments.
    pub run: Vec<Vec<String>>,
    pub run_range: Range,
    pub expect_error: Option<(Regex, Range)>,
    /// Set if a plan after the step must have changes. Otherwise it must have none.
    pub non_empty_plan: Option<Range>,
    /// Expected actions by address. All other objects must stay unchanged.
    pub actions: Option<(BTreeMap<String, String>, Range)>,
    /// Checks of planned objects.
    pub planned: Vec<ObjectCheck>,
    /// Checks of objects in the state.
    pub states: Vec<ObjectCheck>,
    pub imports: Vec<Import>,
    pub asserts: Vec<CheckRule>,
}

/// Checks of one object.
#[derive(Debug)]
pub struct ObjectCheck {
    pub address: String,
    /// Range of the block's header.
    pub range: Range,
    pub action: Option<(String, Range)>,
    pub values: Vec<(ValuePath, Json, Range)>,
    pub matches: Vec<(ValuePath, Regex, Range)>,
    pub set: Vec<(ValuePath, Range)>,
    pub null: Vec<(ValuePath, Range)>,
    pub unknown: Vec<(ValuePath, Range)>,
    pub sensitive: Vec<(ValuePath, Range)>,
}

/// Import of an object of the state, which must give the same object.
#[derive(Debug)]
pub struct Import {
    pub address: String,
    /// Range of the block's header.
    pub range: Range,
    /// Identifier; the attribute `id` of the object if it is not set.
    pub id: Option<Expr>,
    pub ignore: Vec<ValuePath>,
    pub expect_error: Option<(Regex, Range)>,
}

/// Commands that remove what earlier tests have left.
#[derive(Debug)]
pub struct Sweeper {
    pub name: Arc<str>,
    pub range: Range,
    pub skip_unless: Vec<String>,
    pub run: Vec<Vec<String>>,
}

/// Returns the names of the configuration files in a directory.
///
/// # Errors
/// The directory cannot be read.
pub(super) fn configuration_files(dir: &Path) -> std::io::Result<Vec<String>> {
    let mut names: Vec<String> = fs::read_dir(dir)?
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| {
            [".tf", ".tf.json", ".tofu", ".tofu.json"]
                .iter()
                .any(|end| name.ends_with(end))
        })
        .collect();
    names.sort();
    Ok(names)
}

/// Returns the path of a file in a step's directory, for messages. `directory` is relative to the directory of the test file.
pub(super) fn shown_path(test: &Range, directory: &str, file: &str) -> String {
    let parent = test.file.rsplit_once('/').map_or("", |(parent, _)| parent);
    format!("{parent}/{directory}/{file}")
}

/// Replaces everything outside of some ranges of a file by blanks, so that the ranges keep their positions.
#[must_use]
pub fn masked(text: &str, ranges: &[&Range]) -> String {
    let is_shown = |at: usize| {
        ranges
            .iter()
            .any(|range| (range.start.byte as usize..range.end.byte as usize).contains(&at))
    };
    let mut out = String::with_capacity(text.len());
    for (at, c) in text.char_indices() {
        match c {
            c if is_shown(at) => out.push(c),
            '\n' | '\r' => out.push(c),
            c => (0..c.len_utf8()).for_each(|_| out.push(' ')),
        }
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}
