//! Removal of problems that are duplicates, or consequences of other problems at the same position.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use config::Config;
use syntax::{Diagnostic, Diagnostics, Pos, Range};

use crate::blocks::{Block, Blocks};

/// Returns the local values, variables, outputs and module calls that overlap with a part of a file that could not be parsed.
pub(super) fn incomplete(config: &Config, blocks: &Blocks) -> Vec<Block> {
    let broken = config.broken_parts();
    if broken.is_empty() {
        return Vec::new();
    }
    let broken = Ranges::new(broken.into_iter());
    let is_incomplete = |block: &&Block| {
        let Some(module) = block.module().and_then(|m| config.node(m)).map(|n| &n.module) else {
            return false;
        };
        let range = match block {
            Block::Local(_, name) => module.locals.get(name).map(|l| &l.range),
            Block::Variable(_, name) => module.variables.get(name).map(|v| &v.range),
            Block::Output(_, name) => module.outputs.get(name).map(|o| &o.range),
            Block::Call(_, name) => module.module_calls.get(name).map(|c| &c.range),
            _ => None,
        };
        range.is_some_and(|range| broken.overlap(range))
    };
    blocks.graph.node_weights().filter(is_incomplete).cloned().collect()
}

/// Returns the problems that are not consequences of known ones. A problem is a consequence if its range overlaps with that of a known
/// error, or if it has the summary of a known problem and its context overlaps with a known error.
pub(super) fn independent(known: &Diagnostics, found: Diagnostics) -> Diagnostics {
    let ranges = Ranges::new(known.iter().filter(|d| d.is_error()).filter_map(|d| d.subject.as_ref()));
    let summaries: HashSet<&str> = known.iter().map(|d| &*d.summary).collect();
    let is_consequence = |d: &Diagnostic| {
        d.subject.as_ref().is_some_and(|range| ranges.overlap(range))
            || summaries.contains(&*d.summary) && d.context.as_ref().is_some_and(|range| ranges.overlap(range))
    };
    found.into_iter().filter(|d| !is_consequence(d)).collect()
}

/// Removes duplicates, because a module with several calls may be validated once for each call.
pub(super) fn without_duplicates(diagnostics: Diagnostics) -> Diagnostics {
    let mut seen = HashSet::new();
    let mut first = |d: &Diagnostic| {
        let place = d.subject.as_ref().map(|s| (s.file.clone(), s.start, s.end));
        place.is_none() || seen.insert((d.summary.clone(), d.detail.clone(), place))
    };
    diagnostics.into_iter().filter(|d| first(d)).collect()
}

/// Filters the problems that validation found in a configuration whose files have errors. The result has only problems that are not
/// consequences of these errors: they are at other positions, and not in blocks that could not be parsed completely.
#[must_use]
pub fn beyond_loading(config: &Config, loading: &Diagnostics, found: Diagnostics) -> Diagnostics {
    let mut others = independent(loading, found);
    let broken = Ranges::new(config.broken_parts().into_iter());
    others
        .0
        .retain(|d| !d.subject.as_ref().is_some_and(|range| broken.overlap(range)));
    others
}

/// Ranges in files, indexed for fast lookup.
struct Ranges(HashMap<Arc<str>, Vec<(Pos, Pos)>>);

impl Ranges {
    fn new<'r>(ranges: impl Iterator<Item = &'r Range>) -> Ranges {
        let mut files: HashMap<Arc<str>, Vec<(Pos, Pos)>> = HashMap::new();
        for range in ranges {
            files
                .entry(range.file.clone())
                .or_default()
                .push((range.start, range.end));
        }
        for ranges in files.values_mut() {
            ranges.sort();
            // Each end is replaced by the largest end so far, so that a lookup needs only one comparison.
            let mut reach = Pos::default();
            for (_, end) in ranges {
                reach = reach.max(*end);
                *end = reach;
            }
        }
        Ranges(files)
    }

    /// Returns true if a range overlaps with one of these.
    fn overlap(&self, range: &Range) -> bool {
        let ranges = self.0.get(&range.file).map(Vec::as_slice).unwrap_or_default();
        let before = ranges.partition_point(|(start, _)| *start < range.end);
        before
            .checked_sub(1)
            .and_then(|at| ranges.get(at))
            .is_some_and(|(_, reach)| range.start < *reach)
    }
}
