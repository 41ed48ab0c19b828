//! Matches: repetitions of earlier text.

use crate::Level;
use crate::blocks::Bits;
use crate::symbols::{LONGEST, Token};

/// The length of the shortest match.
const SHORTEST: usize = 4;
const WINDOW: usize = 1 << 15;
/// The maximum number of literals and matches in a block.
const BLOCK_TOKENS: usize = 1 << 14;
/// Length below which a match does not shorten the search for a better one (zlib's `good_length`). Only checked: see
/// `longest`.
const GOOD: usize = 8;
/// The length from which a match ends the search.
const LAZY: usize = 16;
const HASH_BITS: u32 = 17;
const NOWHERE: u64 = u64::MAX;

/// A compressor of a text in pieces. Positions count from the beginning of the text.
pub(crate) struct Compressor {
    /// The stream so far, without the bytes that were flushed from its front.
    pub out: Bits,
    /// The length of a match that ends the search.
    nice: usize,
    /// The maximum number of candidates of a search.
    chain: usize,
    /// The window of the text, in two halves. It moves by one half when little text is left ahead. Text before the
    /// window cannot be matched.
    window: Vec<u8>,
    /// The position of the window's beginning.
    start: usize,
    /// The next position to compress.
    at: usize,
    /// True if the byte before `at` has no token yet. The match that begins there is in `length` and `distance`.
    pending: bool,
    length: usize,
    distance: usize,
    head: Option<usize>,
    tokens: Vec<Token>,
    /// Position at which the text of `tokens` begins. `None` once that text has left the window: the block can then no
    /// longer be stored without compression.
    block_start: Option<usize>,
    /// The last position of each hash.
    heads: Vec<u64>,
    /// The previous position with the same hash, at the low bits of each position.
    before: Vec<u64>,
}

impl Compressor {
    pub fn new(level: Level) -> Compressor {
        // These are zlib's nice_length and max_chain of the levels.
        let (nice, chain) = match level {
            Level::Five => (32, 32),
            Level::Six => (128, 128),
        };
        Compressor {
            out: Bits::default(),
            nice,
            chain,
            window: Vec::with_capacity(2 * WINDOW),
            start: 0,
            at: 0,
            pending: false,
            length: SHORTEST - 1,
            distance: 0,
            head: None,
            tokens: Vec::with_capacity(BLOCK_TOKENS),
            block_start: Some(0),
            heads: vec![NOWHERE; 1 << HASH_BITS],
            before: vec![NOWHERE; WINDOW],
        }
    }

    /// Compresses the next piece of the text.
    pub fn write(&mut self, mut piece: &[u8]) {
        while !piece.is_empty() {
            if self.start + 2 * WINDOW - self.at < SHORTEST + LONGEST {
                self.window.drain(..WINDOW);
                self.start += WINDOW;
                self.block_start = self.block_start.filter(|start| *start >= self.start);
            }
            let (now, later) = piece.split_at(piece.len().min(2 * WINDOW - self.window.len()));
            self.window.extend_from_slice(now);
            piece = later;
            self.advance(SHORTEST + LONGEST);
        }
    }

    /// Compresses the rest of the text.
    pub fn finish(&mut self) {
        self.advance(1);
        if self.pending {
            self.literal();
            self.pending = false;
            self.length = SHORTEST - 1;
        }
        if !self.tokens.is_empty() {
            self.block(self.at);
        }
    }

    fn end(&self) -> usize {
        self.start + self.window.len()
    }

    /// Emits the byte before `at` as a literal.
    fn literal(&mut self) {
        self.tokens.push(Token::Literal(self.window[self.at - 1 - self.start]));
    }

    /// Compresses while at least `enough` bytes are ahead.
    fn advance(&mut self, enough: usize) {
        let end = self.end();
        while end - self.at >= enough {
            let at = self.at;
            if at + SHORTEST <= end {
                self.head = self.remember(at);
            }
            let (previous_length, previous_distance) = (self.length, self.distance);
            (self.length, self.distance) = (SHORTEST - 1, 0);
            if let Some(candidate) = self.head
                && candidate >= at.saturating_sub(WINDOW).max(self.start)
                && end - at > previous_length
                && previous_length < LAZY
                && let Some(found) = self.longest(at, candidate)
            {
                (self.length, self.distance) = found;
            }
            if previous_length >= SHORTEST && self.length <= previous_length {
                // The match at the previous byte is at least as good.
                self.tokens.push(Token::Match {
                    length: previous_length,
                    distance: previous_distance,
                });
                self.at += previous_length - 1;
                // Later matches may begin inside this one.
                for place in at + 1..self.at {
                    self.remember(place);
                }
                self.pending = false;
                self.length = SHORTEST - 1;
            } else {
                if self.pending {
                    self.literal();
                }
                if self.tokens.len() == BLOCK_TOKENS {
                    self.block(at);
                }
                self.at += 1;
                self.pending = true;
            }
            if self.tokens.len() == BLOCK_TOKENS {
                self.block(self.at);
            }
        }
    }

    /// Records a position. Returns the previous position with the same hash; `None` if there is none, or too little
    /// text is left for a hash.
    fn remember(&mut self, at: usize) -> Option<usize> {
        let four = self.window.get(at - self.start..at - self.start + SHORTEST)?;
        let word = u32::from_be_bytes([four[0], four[1], four[2], four[3]]);
        let hash = (word.wrapping_mul(0x1e35_a7bd) >> (32 - HASH_BITS)) as usize;
        let previous = self.heads[hash];
        self.before[at % WINDOW] = previous;
        self.heads[hash] = at as u64;
        (previous != NOWHERE).then_some(previous as usize)
    }

    /// Returns the length and distance of the longest match at a position, the nearest of several; `None` if there is no match.
    fn longest(&self, at: usize, mut candidate: usize) -> Option<(usize, usize)> {
        let text = &self.window[..];
        let here = &text[at - self.start..text.len().min(at - self.start + LONGEST)];
        let nice = here.len().min(self.nice);
        let mut length = SHORTEST - 1;
        let mut found = None;
        // The search begins with fewer than `GOOD` bytes, so zlib's rule of a shorter chain does not apply.
        debug_assert!(length < GOOD);
        for _ in 0..self.chain {
            let there = &text[candidate - self.start..];
            // A longer match has the same byte at this offset: one comparison rejects most candidates.
            if here.get(length) == there.get(length) {
                let same = here.iter().zip(there).take_while(|(a, b)| a == b).count();
                // Go ignores a match of four bytes that is farther away.
                if same > length && (same > SHORTEST || at - candidate <= 4096) {
                    length = same;
                    found = Some((same, at - candidate));
                    if same >= nice {
                        break;
                    }
                }
            }
            let oldest = at.checked_sub(WINDOW);
            if oldest == Some(candidate) {
                break;
            }
            let next = self.before[candidate % WINDOW];
            if next == NOWHERE || (next as usize) < oldest.unwrap_or(0).max(self.start) {
                break;
            }
            candidate = next as usize;
        }
        found
    }

    /// Ends the block before a position.
    fn block(&mut self, end: usize) {
        let text = self
            .block_start
            .map(|start| &self.window[start - self.start..end - self.start]);
        self.out.block(&self.tokens, text);
        self.block_start = Some(end);
        self.tokens.clear();
    }
}
