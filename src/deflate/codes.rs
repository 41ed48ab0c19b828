//! Prefix codes: the bits of each symbol.

use crate::symbols::{DISTANCES, LITERALS};

#[derive(Clone, Copy, Default)]
pub(crate) struct Code {
    pub bits: u32,
    pub length: u32,
}

/// Returns the fixed codes of literals and lengths, and of distances.
pub(crate) fn fixed_codes() -> (Vec<Code>, Vec<Code>) {
    let literals = (0..LITERALS).map(|symbol| match symbol {
        0..144 => 8,
        144..256 => 9,
        256..280 => 7,
        _ => 8,
    });
    // Symbols 286 and 287 never occur, but without them the code would be incomplete.
    let lengths: Vec<u32> = literals.chain([8, 8]).collect();
    let mut codes = canonical(&lengths);
    codes.truncate(LITERALS);
    (codes, canonical(&[5; DISTANCES]))
}

/// Builds codes of at most `longest` bits from the counts of symbols. Symbols without occurrences get no code.
pub(crate) fn codes(counts: &[u32], longest: usize) -> Vec<Code> {
    let mut leaves: Vec<(u32, usize)> = (0..counts.len())
        .filter(|s| counts[*s] > 0)
        .map(|s| (counts[s], s))
        .collect();
    let mut lengths = vec![0u32; counts.len()];
    // One bit is enough for two symbols, and a single symbol gets a code, too.
    if leaves.len() <= 2 {
        for (_, symbol) in &leaves {
            lengths[*symbol] = 1;
        }
        return canonical(&lengths);
    }
    leaves.sort_unstable();
    let per_length = lengths_needed(&leaves, longest.min(leaves.len() - 1));
    // The rarest symbols, which are first in `leaves`, get the longest codes.
    let mut rest = leaves.as_slice();
    for (length, n) in per_length.into_iter().enumerate().rev() {
        let (these, others) = rest.split_at(n.min(rest.len()));
        for (_, symbol) in these {
            lengths[*symbol] = u32::try_from(length).unwrap_or_default();
        }
        rest = others;
    }
    canonical(&lengths)
}

/// Returns the number of codes of each length with the package-merge algorithm: each level has the leaves and the pairs
/// of the level below by weight, pairs before leaves of the same weight.
fn lengths_needed(leaves: &[(u32, usize)], longest: usize) -> Vec<usize> {
    /// Nodes of a level: the weight of each, and true if it is a leaf.
    type Level = Vec<(u32, bool)>;
    let mut levels: Vec<Level> = Vec::with_capacity(longest);
    for _ in 0..longest {
        let mut level: Level = leaves.iter().map(|(weight, _)| (*weight, true)).collect();
        if let Some(below) = levels.last() {
            level.extend(below.chunks_exact(2).map(|pair| (pair[0].0 + pair[1].0, false)));
            level.sort();
        }
        levels.push(level);
    }
    // From the top level down: the number of nodes that are needed on a level determines how many are needed on the
    // level below.
    let mut deep = vec![0; longest + 1];
    let mut needed = 2 * leaves.len() - 2;
    let mut counts = Vec::with_capacity(longest);
    for level in levels.iter().rev() {
        let taken = &level[..needed.min(level.len())];
        let leaf_count = taken.iter().filter(|(_, leaf)| *leaf).count();
        counts.push(leaf_count);
        needed = 2 * (taken.len() - leaf_count);
    }
    // Leaves that only the top level needs have codes of one bit. Those that the next level needs, too, have two bits,
    // and so on.
    for (i, n) in counts.iter().enumerate() {
        deep[i + 1] = n - counts.get(i + 1).copied().unwrap_or(0);
    }
    deep
}

/// Assigns canonical codes to code lengths, with their bits in the order of the stream.
fn canonical(lengths: &[u32]) -> Vec<Code> {
    let mut out = vec![Code::default(); lengths.len()];
    let mut next = 0u32;
    for length in 1..=15u32 {
        next <<= 1;
        for (symbol, _) in lengths.iter().enumerate().filter(|(_, l)| **l == length) {
            out[symbol] = Code {
                bits: next.reverse_bits() >> (32 - length),
                length,
            };
            next += 1;
        }
    }
    out
}
