//! Unified diffs between two texts, as `diff -u` prints them.

use similar::{Algorithm, DiffOp, capture_diff_slices};

/// Unchanged lines that are shown around each change.
const CONTEXT: usize = 3;

/// Returns the diff between the old and the new content of a file; empty if they are equal.
pub fn of_file(path: &str, old: &[u8], new: &[u8]) -> Vec<u8> {
    let old: Vec<&[u8]> = old.split_inclusive(|b| *b == b'\n').collect();
    let new: Vec<&[u8]> = new.split_inclusive(|b| *b == b'\n').collect();
    let changes = changes(&old, &new);
    let mut out = Vec::new();
    if changes.is_empty() {
        return out;
    }
    out.extend(format!("--- old/{path}\n+++ new/{path}\n").into_bytes());
    // As in `diff`: changes whose context would touch share a hunk.
    let together = |a: &Change, b: &Change| b.old.0 - a.old.1 <= 2 * CONTEXT;
    for hunk in changes.chunk_by(together) {
        write_hunk(hunk, &old, &new, &mut out);
    }
    out
}

/// Replaced lines: index of the first one, and of the line after the last one, in both texts.
struct Change {
    old: (usize, usize),
    new: (usize, usize),
}

fn changes(old: &[&[u8]], new: &[&[u8]]) -> Vec<Change> {
    let mut deleted = vec![false; old.len()];
    let mut inserted = vec![false; new.len()];
    for op in capture_diff_slices(Algorithm::Myers, old, new) {
        if !matches!(op, DiffOp::Equal { .. }) {
            deleted[op.old_range()].fill(true);
            inserted[op.new_range()].fill(true);
        }
    }
    settle(old, &mut deleted, &inserted);
    settle(new, &mut inserted, &deleted);
    let (mut at_old, mut at_new) = (0, 0);
    let mut out = Vec::new();
    while at_old < old.len() || at_new < new.len() {
        let changed_old = deleted[at_old..].iter().take_while(|c| **c).count();
        let changed_new = inserted[at_new..].iter().take_while(|c| **c).count();
        if changed_old + changed_new == 0 {
            at_old += 1;
            at_new += 1;
            continue;
        }
        out.push(Change {
            old: (at_old, at_old + changed_old),
            new: (at_new, at_new + changed_new),
        });
        at_old += changed_old;
        at_new += changed_new;
    }
    out
}

/// Chooses which of equal lines count as changed, as `diff` does: a run of changed lines is joined with the runs before it if
/// possible, then moved as late as possible, preferably beside a change of the other text.
fn settle(lines: &[&[u8]], changed: &mut [bool], other: &[bool]) {
    let is = |flags: &[bool], at: usize| flags.get(at).copied().unwrap_or(false);
    // The index may be before the first line of the other text.
    let beside_is = |at: isize| usize::try_from(at).is_ok_and(|at| is(other, at));
    let (mut at, mut beside) = (0usize, 0isize);
    let end = lines.len();
    loop {
        // Skips to the next run, and keeps track of the corresponding index in the other text.
        while at < end && !is(changed, at) {
            while beside_is(beside) {
                beside += 1;
            }
            beside += 1;
            at += 1;
        }
        if at == end {
            return;
        }
        let mut start = at;
        while is(changed, at) {
            at += 1;
        }
        while beside_is(beside) {
            beside += 1;
        }
        let mut aligned;
        loop {
            let length = at - start;
            // The run is moved as far up as possible, so that the run joins those before it.
            while start > 0 && lines[start - 1] == lines[at - 1] {
                start -= 1;
                at -= 1;
                changed[start] = true;
                changed[at] = false;
                while start > 0 && changed[start - 1] {
                    start -= 1;
                }
                beside -= 1;
                while beside_is(beside) {
                    beside -= 1;
                }
            }
            aligned = if beside_is(beside - 1) { at } else { end };
            // The run is moved as far down as possible, so that the run joins those after it.
            while at < end && lines[start] == lines[at] {
                changed[start] = false;
                changed[at] = true;
                start += 1;
                at += 1;
                while is(changed, at) {
                    at += 1;
                }
                beside += 1;
                while beside_is(beside) {
                    aligned = at;
                    beside += 1;
                }
            }
            // A run that was joined with another one is longer now, and may move further.
            if length == at - start {
                break;
            }
        }
        // The run is moved back to the last position beside a change of the other text.
        while aligned < at {
            start -= 1;
            at -= 1;
            changed[start] = true;
            changed[at] = false;
            beside -= 1;
            while beside_is(beside) {
                beside -= 1;
            }
        }
    }
}

fn write_hunk(hunk: &[Change], old: &[&[u8]], new: &[&[u8]], out: &mut Vec<u8>) {
    let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else {
        return;
    };
    let lead = first.old.0.min(CONTEXT);
    let trail = (old.len() - last.old.1).min(CONTEXT);
    let range = |from: usize, to: usize| match to - from {
        1 => format!("{to}"),
        // An empty range is written with the number of the line before it.
        0 => format!("{from},0"),
        n => format!("{},{n}", from + 1),
    };
    let header = format!(
        "@@ -{} +{} @@\n",
        range(first.old.0 - lead, last.old.1 + trail),
        range(first.new.0 - lead, last.new.1 + trail)
    );
    out.extend(header.into_bytes());
    let mut at = first.old.0 - lead;
    for change in hunk {
        write_lines(b' ', &old[at..change.old.0], out);
        write_lines(b'-', &old[change.old.0..change.old.1], out);
        write_lines(b'+', &new[change.new.0..change.new.1], out);
        at = change.old.1;
    }
    write_lines(b' ', &old[at..at + trail], out);
}

fn write_lines(sign: u8, lines: &[&[u8]], out: &mut Vec<u8>) {
    for line in lines {
        out.push(sign);
        out.extend_from_slice(line);
        if !line.ends_with(b"\n") {
            out.extend_from_slice(b"\n\\ No newline at end of file\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diff(old: &str, new: &str) -> String {
        String::from_utf8(of_file("f", old.as_bytes(), new.as_bytes())).unwrap()
    }

    #[test]
    fn changes_are_shown_with_the_lines_around_them() {
        assert_eq!(diff("a\n", "a\n"), "");
        assert_eq!(
            diff("1\n2\n3\n4\nx\n6\n7\n8\n9\n", "1\n2\n3\n4\ny\n6\n7\n8\n9\n"),
            "--- old/f\n+++ new/f\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-x\n+y\n 6\n 7\n 8\n"
        );
        assert_eq!(diff("", "a\n"), "--- old/f\n+++ new/f\n@@ -0,0 +1 @@\n+a\n");
    }

    #[test]
    fn missing_line_break_at_the_end_is_shown() {
        assert_eq!(
            diff("a", "a\n"),
            "--- old/f\n+++ new/f\n@@ -1 +1 @@\n-a\n\\ No newline at end of file\n+a\n"
        );
    }

    #[test]
    fn of_equal_lines_the_last_was_inserted() {
        assert_eq!(
            diff("a\nb\nc\n", "a\nb\nb\nc\n"),
            "--- old/f\n+++ new/f\n@@ -1,3 +1,4 @@\n a\n b\n+b\n c\n"
        );
    }
}
