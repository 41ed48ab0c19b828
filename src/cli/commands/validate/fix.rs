//! `validate -fix`: corrects mistakes if there is no doubt about the correction.
//!
//! Diagnostics contain the edits that would correct them. An edit is kept only if it reduces the number of errors. Edits are
//! tried on texts in memory, and only the final text is written.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops;
use std::sync::Arc;

use config::files::{Disk, FileSource, clean};
use config::test_files;
use syntax::{Diagnostics, Edit, SourceMap};
use views::unified_diff;

use super::{Arguments, Checked, checked, shown};
use crate::commands::fmt;
use crate::outcome::{Failure, Outcome, Part};
use crate::session::Session;

/// Limit of the edits that are tried in a file that cannot be parsed.
const TRIED: usize = 500;

/// Limit of the edits that are tried one by one, after applying all at once has not removed as many errors as expected.
const SINGLE: usize = 200;

/// Limit of edits that only become possible by earlier ones: an edit of a block's type reveals an error in its
/// resource type, and that one reveals errors in its arguments.
const DEPTH: usize = 2;

/// File source that reads the disk, with replaced texts for some files.
#[derive(Clone, Default)]
struct Texts(BTreeMap<String, String>);

impl FileSource for Texts {
    fn list(&self, dir: &str) -> io::Result<Vec<String>> {
        Disk.list(dir)
    }

    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        match self.0.get(&clean(path)) {
            Some(text) => Ok(text.clone().into_bytes()),
            None => Disk.read(path),
        }
    }

    fn real(&self, path: &str) -> String {
        Disk.real(path)
    }
}

/// Edit of a file's text.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Change {
    file: String,
    start: usize,
    end: usize,
    line: usize,
    old: String,
    new: String,
}

impl Change {
    fn new(edit: &Edit, file: &str, text: &str) -> Option<Change> {
        let ops::Range { start, end } = edit.locate(text)?;
        let before = text.get(..start)?;
        Some(Change {
            file: file.to_owned(),
            start,
            end,
            line: before.matches('\n').count() + 1,
            old: text.get(start..end)?.to_owned(),
            new: edit.new.clone(),
        })
    }

    /// Returns true if a position is inside the text that this edit has inserted.
    fn has_made(&self, byte: usize) -> bool {
        (self.start..=self.start + self.new.len()).contains(&byte)
    }

    /// Formats the edit for the list: `main.tf:3: "conten" → "content"`.
    fn listed(&self) -> String {
        let (old, new) = (self.old.trim(), self.new.trim());
        let quote = if old.contains('"') || new.contains('"') {
            ""
        } else {
            "\""
        };
        format!("{}:{}: {quote}{old}{quote} → {quote}{new}{quote}", self.file, self.line)
    }
}

/// Applies edits that do not overlap.
fn applied(text: &str, changes: &[&Change]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for change in changes {
        out.push_str(text.get(at..change.start).unwrap_or_default());
        out.push_str(&change.new);
        at = change.end;
    }
    out.push_str(text.get(at..).unwrap_or_default());
    out
}

/// Returns the edits in the order of the text, without those that overlap an earlier one.
fn disjoint(changes: BTreeSet<Change>) -> Vec<Change> {
    let mut out: Vec<Change> = Vec::new();
    for change in changes {
        let overlaps = out
            .last()
            .is_some_and(|l| l.file == change.file && change.start < l.end);
        if !overlaps {
            out.push(change);
        }
    }
    out
}

fn errors(problems: &Diagnostics) -> usize {
    problems.iter().filter(|problem| problem.is_error()).count()
}

fn parse(file: &str, text: &str) -> Diagnostics {
    if file.ends_with(".json") {
        syntax::json::parse_file(file, text.as_bytes()).1
    } else {
        syntax::parse_file(file, text.as_bytes()).1
    }
}

/// Returns the edits that the diagnostics of one file suggest.
fn wanted(problems: &Diagnostics, file: &str, text: &str, rejected: &BTreeSet<Change>) -> BTreeSet<Change> {
    let edits = problems.iter().filter(|problem| problem.is_error());
    let edits = edits.filter_map(|problem| problem.edit.as_ref());
    let changes = edits
        .filter(|edit| &*edit.range.file == file)
        .filter_map(|edit| Change::new(edit, file, text));
    changes.filter(|change| !rejected.contains(change)).collect()
}

/// Corrects a text until it can be parsed; `None` if that is not possible.
fn parseable(file: &str, original: &str) -> Option<(String, Vec<Change>)> {
    let mut text = original.to_owned();
    let mut problems = parse(file, &text);
    let mut done = Vec::new();
    let mut rejected = BTreeSet::new();
    while problems.has_errors() {
        if done.len() + rejected.len() >= TRIED {
            return None;
        }
        let change = wanted(&problems, file, &text, &rejected).into_iter().next()?;
        let next = applied(&text, &[&change]);
        let after = parse(file, &next);
        let outside = after
            .iter()
            .filter_map(|problem| problem.subject.as_ref())
            .all(|subject| !change.has_made(subject.start.byte as usize));
        // The edit may reveal errors that error recovery had skipped, so errors are allowed until the last
        // step.
        if outside {
            text = next;
            problems = after;
            done.push(change);
        } else {
            rejected.insert(change);
        }
    }
    Some((text, done))
}

/// Texts with the edits that were applied to them.
#[derive(Clone, Default)]
struct Mended {
    texts: Texts,
    changes: Vec<Change>,
}

impl Mended {
    /// Applies more edits, which are in the order of the text.
    fn with(&self, changes: &[Change], sources: &SourceMap) -> Mended {
        let mut out = self.clone();
        for of_file in changes.chunk_by(|a, b| a.file == b.file) {
            let Some(first) = of_file.first() else { continue };
            let text = match out.texts.0.get(&first.file) {
                Some(text) => text.clone(),
                None => sources
                    .get(&first.file)
                    .map(|text| text.to_string())
                    .unwrap_or_default(),
            };
            let text = applied(&text, &of_file.iter().collect::<Vec<_>>());
            out.texts.0.insert(first.file.clone(), text);
        }
        out.changes.extend_from_slice(changes);
        out
    }
}

/// Texts with their diagnostics.
struct Attempt {
    mended: Mended,
    checked: Arc<Checked>,
}

impl Attempt {
    fn errors(&self) -> usize {
        errors(&self.checked.problems)
    }
}

struct Fixer<'s> {
    session: &'s Session,
    arguments: &'s Arguments,
}

impl Fixer<'_> {
    fn check(&self, mended: &Mended) -> Result<Checked, Failure> {
        checked(self.session, self.arguments, &mended.texts)
    }

    /// Returns true if a file belongs to this directory or to its tests. Others belong to modules, which other configurations may
    /// use.
    fn may_change(&self, file: &str) -> bool {
        let tests = self.arguments.test_directory.as_deref();
        let tests = test_files::directory(tests).unwrap_or_default();
        let name = file.strip_prefix(&format!("{}/", clean(tests))).unwrap_or(file);
        !name.contains('/') && !name.starts_with("..")
    }

    /// Corrects the files that cannot be parsed.
    fn mend_syntax(&self, original: &Checked) -> Mended {
        let mut out = Mended::default();
        for (file, text) in original
            .project
            .sources
            .iter()
            .filter(|(file, _)| self.may_change(file))
        {
            if let Some((mended, changes)) = parseable(file, text)
                && !changes.is_empty()
            {
                out.texts.0.insert(file.to_string(), mended);
                out.changes.extend(changes);
            }
        }
        out
    }

    /// Returns the edits that a configuration's diagnostics suggest.
    fn wanted(&self, now: &Checked, rejected: &BTreeSet<Change>) -> Vec<Change> {
        let sources = &now.project.sources;
        let files = sources.iter().filter(|(file, _)| self.may_change(file));
        let all = files.flat_map(|(file, text)| {
            let changes = wanted(&now.problems, file, text, rejected);
            // A file that still cannot be parsed is left alone.
            let is_parsed = changes.is_empty() || !parse(file, text).has_errors();
            changes.into_iter().filter(move |_| is_parsed)
        });
        disjoint(all.collect())
    }

    /// Applies more edits, if the files can be parsed afterwards.
    fn tried(&self, before: &Attempt, changes: &[Change]) -> Result<Option<Attempt>, Failure> {
        let mended = before.mended.with(changes, &before.checked.project.sources);
        let parsed = |change: &Change| {
            let text = mended.texts.0.get(&change.file);
            text.is_some_and(|text| !parse(&change.file, text).has_errors())
        };
        // An edit that breaks the syntax would hide all other errors of the file, and so look like progress.
        if !changes.iter().all(parsed) {
            return Ok(None);
        }
        let checked = Arc::new(self.check(&mended)?);
        Ok(Some(Attempt { mended, checked }))
    }

    /// First applies the edits that reduce the number of errors, until there are no such edits left. Then tries edits that reveal other
    /// errors, such as errors in the arguments of a block after its type was corrected. These edits are kept if there are fewer errors in
    /// the end. `depth` limits how often one edit may reveal the next one; `left` is the number of remaining attempts.
    fn mend(&self, mut now: Attempt, depth: usize, left: &mut usize) -> Result<Attempt, Failure> {
        let mut rejected = BTreeSet::new();
        'next: loop {
            let changes = self.wanted(&now.checked, &rejected);
            if changes.is_empty() {
                return Ok(now);
            }
            // All edits are tried at once first: usually all of them are right, and every attempt validates the
            // configuration.
            if let Some(all) = self.tried(&now, &changes)?
                && all.errors() + changes.len() <= now.errors()
            {
                now = all;
                continue;
            }
            let mut revealing = Vec::new();
            for change in changes {
                let Some(fewer) = left.checked_sub(1) else {
                    return Ok(now);
                };
                *left = fewer;
                match self.tried(&now, std::slice::from_ref(&change))? {
                    Some(one) if one.errors() < now.errors() => {
                        now = one;
                        continue 'next;
                    }
                    Some(one) if depth > 0 && is_gone(&change, &one.checked) => revealing.push((change, one)),
                    _ => drop(rejected.insert(change)),
                }
            }
            for (change, one) in revealing {
                let after = self.mend(one, depth - 1, left)?;
                if after.errors() < now.errors() {
                    now = after;
                    continue 'next;
                }
                rejected.insert(change);
            }
        }
    }
}

/// Returns true if the error that an edit corrects is gone: no error is about the inserted text.
fn is_gone(change: &Change, now: &Checked) -> bool {
    let subjects = now.problems.iter().filter_map(|problem| problem.subject.as_ref());
    let mut here = subjects.filter(|subject| *subject.file == *change.file);
    here.all(|subject| !change.has_made(subject.start.byte as usize))
}

/// Corrects the configuration, and shows the edits and the remaining errors.
pub(super) fn fix(session: &Session, arguments: &Arguments) -> Result<Outcome, Failure> {
    let fixer = Fixer { session, arguments };
    let original = checked(session, arguments, &Disk)?;
    if !original.problems.has_errors() {
        return Ok(shown(session, arguments, &original));
    }
    // Syntax errors are corrected first, because other mistakes are found only in files that can be parsed.
    let mended = fixer.mend_syntax(&original);
    let begun = Attempt {
        checked: Arc::new(fixer.check(&mended)?),
        mended,
    };
    let Attempt { mut mended, checked } = fixer.mend(begun, DEPTH, &mut { SINGLE })?;
    if mended.changes.is_empty() {
        let outcome = shown(session, arguments, &original);
        return Ok(outcome.and_line("\nNothing was changed: no mistake has a certain correction."));
    }
    mended.changes.sort();
    let title = match arguments.diff {
        true => "These mistakes would be mended; nothing was written:",
        false => "These mistakes were mended:",
    };
    let mut written = Vec::new();
    for (file, text) in &mended.texts.0 {
        let Some(before) = original.project.sources.get(file) else {
            continue;
        };
        if arguments.diff {
            written.extend(unified_diff::of_file(file, before.as_bytes(), text.as_bytes()));
        } else {
            replace(file, before, text)?;
        }
    }
    let mut outcome = Outcome::line(title);
    for change in &mended.changes {
        outcome = outcome.and_line(format!("  {}", change.listed()));
    }
    outcome = outcome.and_line("");
    if arguments.diff {
        outcome = outcome.and(Part::Exact(String::from_utf8_lossy(&written).into_owned()));
        return Ok(outcome.and_outcome(shown(session, arguments, &original)));
    }
    Ok(outcome.and_outcome(shown(session, arguments, &checked)))
}

/// Writes a file, unless it has changed since it was read.
fn replace(file: &str, before: &str, text: &str) -> Result<(), Failure> {
    // An editor may have saved the file meanwhile, and its changes must not be lost.
    let unchanged = Disk.read(file).is_ok_and(|found| found == before.as_bytes());
    if !unchanged {
        return Err(Failure::new(
            format!("Failed to write {file}"),
            "The file has changed since it was read, or is not UTF-8 text. It was left as it is; run the command again.",
        ));
    }
    fmt::rewrite(file, text.as_bytes()).map_err(|e| {
        Failure::new(
            format!("Failed to write {file}"),
            format!("{e}. The file is as it was."),
        )
    })
}
