//! Symbols and tokens of a compressed text.

/// The number of symbols for literals and lengths.
pub(crate) const LITERALS: usize = 286;
/// The number of symbols for distances.
pub(crate) const DISTANCES: usize = 30;

/// A literal byte or a match.
#[derive(Clone, Copy)]
pub(crate) enum Token {
    Literal(u8),
    Match { length: usize, distance: usize },
}

pub(crate) const LONGEST: usize = 258;
