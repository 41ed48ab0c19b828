//! What a compressed text is made of.

/// How many symbols there are for literals and lengths, and for distances.
pub(crate) const LITERALS: usize = 286;
pub(crate) const DISTANCES: usize = 30;

/// What a text is made of.
#[derive(Clone, Copy)]
pub(crate) enum Token {
    Literal(u8),
    Match { length: usize, distance: usize },
}

pub(crate) const LONGEST: usize = 258;
