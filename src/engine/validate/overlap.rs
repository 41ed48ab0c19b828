//! Removal of duplicate problems, and of consequences of other problems at the same position.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use config::Config;
use syntax::{Diagnostic, Diagnostics, Pos, Range};

use crate::blocks::{Block, Blocks};

/// Returns the blocks with a part that may have been parsed wrongly.
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

/// Returns the problems that are not consequences of known ones: those at other positions, and without the summary of a
/// known problem whose position is in their context.
pub(super) fn independent(known: &Diagnostics, found: Diagnostics) -> Diagnostics {
    let ranges = Ranges::new(known.iter().filter(|d| d.is_error()).filter_map(|d| d.subject.as_ref()));
    let summaries: HashSet<&str> = known.iter().map(|d| &*d.summary).collect();
    let is_consequence = |d: &Diagnostic| {
        d.subject.as_ref().is_some_and(|range| ranges.overlap(range))
            || summaries.contains(&*d.summary) && d.context.as_ref().is_some_and(|range| ranges.overlap(range))
    };
    found.into_iter().filter(|d| !is_consequence(d)).collect()
}

/// Removes duplicates: a module with several calls is validated once for each.
pub(super) fn without_duplicates(diagnostics: Diagnostics) -> Diagnostics {
    let mut seen = HashSet::new();
    let mut first = |d: &Diagnostic| {
        let place = d.subject.as_ref().map(|s| (s.file.clone(), s.start, s.end));
        place.is_none() || seen.insert((d.summary.clone(), d.detail.clone(), place))
    };
    diagnostics.into_iter().filter(|d| first(d)).collect()
}

/// Validates a configuration whose files have errors. Returns the problems that are not consequences of these errors:
/// those at other positions, and not in blocks that may have been parsed wrongly.
#[must_use]
pub fn beyond_loading(config: &Config, loading: &Diagnostics, found: Diagnostics) -> Diagnostics {
    let mut others = independent(loading, found);
    let broken = Ranges::new(config.broken_parts().into_iter());
    others
        .0
        .retain(|d| !d.subject.as_ref().is_some_and(|range| broken.overlap(range)));
    others
}

/// Ranges in files, for fast lookup.
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
            // Each end becomes the last end so far, so that a lookup needs one comparison.
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
