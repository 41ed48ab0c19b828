//! `base64gzip`: a gzip stream, byte for byte the one that users of this language know.
//!
//! The bytes go into arguments such as `user_data`, where any difference means a new object. So it is not enough that they
//! unpack to the same text: the stream has no time and no name in its header, marks the end of the text by an empty block
//! before the last one, and its matches, block limits and code lengths follow the rules of the compressor of Go's standard
//! library at its default level. Those rules are written down here; general libraries choose other matches.

/// The shortest and the longest match, and how far back one may reach.
const SHORTEST: usize = 4;
const LONGEST: usize = 258;
const WINDOW: usize = 1 << 15;
/// A block holds at most so many literals and matches.
const BLOCK_TOKENS: usize = 1 << 14;
/// A match of this length makes the search for a better one brief; of that length, needless; beyond the third, the search
/// ends.
const GOOD: usize = 8;
const LAZY: usize = 16;
const NICE: usize = 128;
/// How many candidates are looked at.
const CHAIN: usize = 128;
const HASH_BITS: u32 = 17;
const NOWHERE: u32 = u32::MAX;

/// The code lengths of the code lengths are sent in this order.
const LENGTH_ORDER: [usize; 19] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
const END_OF_BLOCK: usize = 256;
const LITERALS: usize = 286;
const DISTANCES: usize = 30;
const LONGEST_STORED: usize = 65535;

/// Packs bytes.
pub(super) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 0xff];
    let mut packer = Packer::new(bytes);
    packer.run();
    packer.out.stored(&[], false);
    packer.out.stored(&[], true);
    out.append(&mut packer.out.finish());
    out.extend(crc32(bytes).to_le_bytes());
    // The length counts modulo 2³².
    #[allow(clippy::cast_possible_truncation, reason = "the format asks for the low 32 bits")]
    out.extend((bytes.len() as u32).to_le_bytes());
    out
}

fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = !0u32;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg());
        }
    }
    !crc
}

#[derive(Clone, Copy)]
enum Token {
    Literal(u8),
    Match { length: usize, distance: usize },
}

struct Packer<'b> {
    bytes: &'b [u8],
    out: Bits,
    tokens: Vec<Token>,
    /// Where the text of the tokens begins; it cannot be stored as it is once it has left the window.
    block_start: Option<usize>,
    /// The last place of each hash, and the place before each place, by its low bits.
    heads: Vec<u32>,
    before: Vec<u32>,
}

impl<'b> Packer<'b> {
    fn new(bytes: &'b [u8]) -> Packer<'b> {
        Packer {
            bytes,
            out: Bits::default(),
            tokens: Vec::with_capacity(BLOCK_TOKENS),
            block_start: Some(0),
            heads: vec![NOWHERE; 1 << HASH_BITS],
            before: vec![NOWHERE; WINDOW],
        }
    }

    /// Remembers a place; gives the place before it with the same hash.
    fn remember(&mut self, at: usize) -> Option<usize> {
        let four = self.bytes.get(at..at + SHORTEST)?;
        let word = u32::from_be_bytes([four[0], four[1], four[2], four[3]]);
        let hash = (word.wrapping_mul(0x1e35_a7bd) >> (32 - HASH_BITS)) as usize;
        let previous = self.heads[hash];
        self.before[at % WINDOW] = previous;
        self.heads[hash] = u32::try_from(at).unwrap_or(NOWHERE);
        (previous != NOWHERE).then_some(previous as usize)
    }

    fn run(&mut self) {
        let end = self.bytes.len();
        // Texts are read into a window of two halves, which moves on by a half when little is left to look ahead at; what
        // is before it cannot be matched.
        let mut window = 0;
        let mut at = 0;
        let mut pending = false;
        let (mut length, mut distance) = (SHORTEST - 1, 0);
        let mut head = None;
        while at < end {
            if window + 2 * WINDOW < end && window + 2 * WINDOW - at < SHORTEST + LONGEST {
                window += WINDOW;
                self.block_start = self.block_start.filter(|start| *start >= window);
            }
            if at + SHORTEST <= end {
                head = self.remember(at);
            }
            let (previous_length, previous_distance) = (length, distance);
            (length, distance) = (SHORTEST - 1, 0);
            let ahead = end - at;
            if let Some(candidate) = head
                && candidate >= at.saturating_sub(WINDOW).max(window)
                && ahead > previous_length
                && previous_length < LAZY
                && let Some(found) = self.longest(at, candidate, window)
            {
                (length, distance) = found;
            }
            if previous_length >= SHORTEST && length <= previous_length {
                // What begins here is no better than what began one before.
                self.tokens.push(Token::Match {
                    length: previous_length,
                    distance: previous_distance,
                });
                let next = at + previous_length - 1;
                for place in at + 1..next {
                    self.remember(place);
                }
                at = next;
                pending = false;
                length = SHORTEST - 1;
                if self.tokens.len() == BLOCK_TOKENS {
                    self.block(at);
                }
            } else {
                if pending {
                    self.tokens.push(Token::Literal(self.bytes[at - 1]));
                    if self.tokens.len() == BLOCK_TOKENS {
                        self.block(at);
                    }
                }
                at += 1;
                pending = true;
            }
        }
        if pending {
            self.tokens.push(Token::Literal(self.bytes[at - 1]));
        }
        if !self.tokens.is_empty() {
            self.block(at);
        }
    }

    /// The longest match, the nearest of several, for what is at a place.
    fn longest(&self, at: usize, mut candidate: usize, window: usize) -> Option<(usize, usize)> {
        let here = &self.bytes[at..self.bytes.len().min(at + LONGEST)];
        let nice = here.len().min(NICE);
        let mut length = SHORTEST - 1;
        let mut found = None;
        // A first candidate is never longer than `GOOD` here, so the chain is searched whole.
        debug_assert!(length < GOOD);
        for _ in 0..CHAIN {
            if here.get(length) == self.bytes.get(candidate + length) {
                let there = &self.bytes[candidate..];
                let same = here.iter().zip(there).take_while(|(a, b)| a == b).count();
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
            if next == NOWHERE || (next as usize) < oldest.unwrap_or(0).max(window) {
                break;
            }
            candidate = next as usize;
        }
        found
    }

    /// Ends a block before a place.
    fn block(&mut self, end: usize) {
        let text = self.block_start.map(|start| &self.bytes[start..end]);
        self.block_start = Some(end);
        let tokens = std::mem::take(&mut self.tokens);
        self.out.block(&tokens, text);
        self.tokens = tokens;
        self.tokens.clear();
    }
}

/// A length or a distance as its symbol and the number and value of the bits behind it.
struct Symbol {
    code: usize,
    bits: u32,
    rest: usize,
}

/// The symbol of a value counted from 0, in a scale whose steps double every `1 << fine` symbols.
fn symbol(value: usize, fine: u32) -> Symbol {
    if value < 2 << fine {
        return Symbol {
            code: value,
            bits: 0,
            rest: 0,
        };
    }
    let bits = value.ilog2() - fine;
    Symbol {
        code: ((bits as usize) << fine) + (value >> bits),
        bits,
        rest: value & ((1 << bits) - 1),
    }
}

fn length_symbol(length: usize) -> Symbol {
    if length == LONGEST {
        return Symbol {
            code: 285,
            bits: 0,
            rest: 0,
        };
    }
    let symbol = symbol(length - 3, 2);
    Symbol {
        code: 257 + symbol.code,
        ..symbol
    }
}

fn distance_symbol(distance: usize) -> Symbol {
    symbol(distance - 1, 1)
}

#[derive(Clone, Copy, Default)]
struct Code {
    bits: u32,
    length: u32,
}

/// The bits of a stream, the lowest first.
#[derive(Default)]
struct Bits {
    bytes: Vec<u8>,
    open: u64,
    count: u32,
}

impl Bits {
    fn put(&mut self, bits: usize, count: u32) {
        self.open |= (bits as u64) << self.count;
        self.count += count;
        while self.count >= 8 {
            #[allow(clippy::cast_possible_truncation, reason = "the low byte is wanted")]
            self.bytes.push(self.open as u8);
            self.open >>= 8;
            self.count -= 8;
        }
    }

    fn code(&mut self, code: Code) {
        self.put(code.bits as usize, code.length);
    }

    fn align(&mut self) {
        if self.count > 0 {
            self.put(0, 8 - self.count);
        }
    }

    fn finish(mut self) -> Vec<u8> {
        self.align();
        self.bytes
    }

    fn stored(&mut self, text: &[u8], last: bool) {
        self.put(usize::from(last), 3);
        self.align();
        self.put(text.len(), 16);
        self.put(text.len() ^ 0xffff, 16);
        self.bytes.extend(text);
    }

    /// A block in the shortest of its three forms.
    fn block(&mut self, tokens: &[Token], text: Option<&[u8]>) {
        let mut literals = [0u32; LITERALS];
        let mut distances = [0u32; DISTANCES];
        literals[END_OF_BLOCK] = 1;
        let mut extra = 0;
        for token in tokens {
            match token {
                Token::Literal(byte) => literals[usize::from(*byte)] += 1,
                Token::Match { length, distance } => {
                    let (length, distance) = (length_symbol(*length), distance_symbol(*distance));
                    literals[length.code] += 1;
                    distances[distance.code] += 1;
                    extra += length.bits + distance.bits;
                }
            }
        }
        if distances.iter().all(|n| *n == 0) {
            distances[0] = 1;
        }
        let used = |counts: &[u32]| counts.iter().rposition(|n| *n > 0).map_or(0, |i| i + 1);
        let (literals_used, distances_used) = (used(&literals), used(&distances));
        let (own_literals, own_distances) = (codes(&literals, 15), codes(&distances, 15));
        let lengths: Vec<u32> = own_literals[..literals_used]
            .iter()
            .chain(&own_distances[..distances_used])
            .map(|c| c.length)
            .collect();
        let header = Header::new(&lengths);
        let size = |codes: &[Code], counts: &[u32]| -> usize {
            codes.iter().zip(counts).map(|(c, n)| (c.length * n) as usize).sum()
        };
        let stored = text.filter(|t| t.len() <= LONGEST_STORED);
        // Whether text can be stored decides whether these bits count; they are the same for both kinds of codes.
        let extra = stored.map_or(0, |_| extra as usize);
        let (fixed_literals, fixed_distances) = fixed_codes();
        let fixed = 3 + size(&fixed_literals, &literals) + size(&fixed_distances, &distances) + extra;
        let dynamic = header.size + size(&own_literals, &literals) + size(&own_distances, &distances) + extra;
        if let Some(text) = stored
            && (text.len() + 5) * 8 < dynamic.min(fixed)
        {
            self.stored(text, false);
            return;
        }
        let (literal_codes, distance_codes) = if dynamic < fixed {
            self.put(4, 3);
            self.put(literals_used - 257, 5);
            self.put(distances_used - 1, 5);
            header.write(self);
            (own_literals, own_distances)
        } else {
            self.put(2, 3);
            (fixed_literals, fixed_distances)
        };
        for token in tokens {
            match token {
                Token::Literal(byte) => self.code(literal_codes[usize::from(*byte)]),
                Token::Match { length, distance } => {
                    let (length, distance) = (length_symbol(*length), distance_symbol(*distance));
                    self.code(literal_codes[length.code]);
                    self.put(length.rest, length.bits);
                    self.code(distance_codes[distance.code]);
                    self.put(distance.rest, distance.bits);
                }
            }
        }
        self.code(literal_codes[END_OF_BLOCK]);
    }
}

/// The lengths of a block's codes, as they are sent: runs shortened, and coded in turn.
struct Header {
    /// Symbol, value behind it, number of its bits.
    items: Vec<(usize, usize, u32)>,
    codes: Vec<Code>,
    /// How many of the code lengths' code lengths are sent.
    sent: usize,
    size: usize,
}

impl Header {
    fn new(lengths: &[u32]) -> Header {
        let mut items = Vec::new();
        for run in lengths.chunk_by(|a, b| a == b) {
            let length = run[0] as usize;
            let mut left = run.len();
            if length == 0 {
                while left >= 11 {
                    let n = left.min(138);
                    items.push((18, n - 11, 7));
                    left -= n;
                }
                if left >= 3 {
                    items.push((17, left - 3, 3));
                    left = 0;
                }
            } else {
                items.push((length, 0, 0));
                left -= 1;
                while left >= 3 {
                    let n = left.min(6);
                    items.push((16, n - 3, 2));
                    left -= n;
                }
            }
            items.extend(std::iter::repeat_n((length, 0, 0), left));
        }
        let mut counts = [0u32; 19];
        for (symbol, ..) in &items {
            counts[*symbol] += 1;
        }
        let codes = codes(&counts, 7);
        let sent = LENGTH_ORDER
            .iter()
            .rposition(|s| counts[*s] > 0)
            .map_or(4, |i| (i + 1).max(4));
        let coded: usize = items
            .iter()
            .map(|(s, _, bits)| (codes[*s].length + bits) as usize)
            .sum();
        Header {
            size: 3 + 5 + 5 + 4 + 3 * sent + coded,
            items,
            codes,
            sent,
        }
    }

    fn write(&self, out: &mut Bits) {
        out.put(self.sent - 4, 4);
        for symbol in &LENGTH_ORDER[..self.sent] {
            out.put(self.codes[*symbol].length as usize, 3);
        }
        for (symbol, rest, bits) in &self.items {
            out.code(self.codes[*symbol]);
            out.put(*rest, *bits);
        }
    }
}

fn fixed_codes() -> (Vec<Code>, Vec<Code>) {
    let literals = (0..LITERALS).map(|symbol| match symbol {
        0..144 => 8,
        144..256 => 9,
        256..280 => 7,
        _ => 8,
    });
    // Two symbols that are never used complete the code.
    let lengths: Vec<u32> = literals.chain([8, 8]).collect();
    let mut codes = canonical(&lengths);
    codes.truncate(LITERALS);
    (codes, canonical(&[5; DISTANCES]))
}

/// Codes of at most so many bits for symbols that occur so often; no code for those that do not.
fn codes(counts: &[u32], longest: usize) -> Vec<Code> {
    let mut leaves: Vec<(u32, usize)> = (0..counts.len())
        .filter(|s| counts[*s] > 0)
        .map(|s| (counts[s], s))
        .collect();
    let mut lengths = vec![0u32; counts.len()];
    if leaves.len() <= 2 {
        for (_, symbol) in &leaves {
            lengths[*symbol] = 1;
        }
        return canonical(&lengths);
    }
    leaves.sort_unstable();
    let per_length = lengths_needed(&leaves, longest.min(leaves.len() - 1));
    // The rarest symbols get the longest codes.
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

/// How many codes there are of each length, by merging packages: on each level, leaves and pairs of the level below stand
/// in the order of their weight, pairs first where they weigh the same.
fn lengths_needed(leaves: &[(u32, usize)], longest: usize) -> Vec<usize> {
    /// A node's weight, and whether it is a leaf.
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
    // From the top, the nodes that are needed decide which are needed below.
    let mut deep = vec![0; longest + 1];
    let mut needed = 2 * leaves.len() - 2;
    let mut counts = Vec::with_capacity(longest);
    for level in levels.iter().rev() {
        let taken = &level[..needed.min(level.len())];
        let leaf_count = taken.iter().filter(|(_, leaf)| *leaf).count();
        counts.push(leaf_count);
        needed = 2 * (taken.len() - leaf_count);
    }
    // Those on the top level have codes of one bit at least, those on the next of two, and so on.
    for (i, n) in counts.iter().enumerate() {
        deep[i + 1] = n - counts.get(i + 1).copied().unwrap_or(0);
    }
    deep
}

/// The codes that belong to code lengths, their bits in the order of sending.
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

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    fn unpacked(packed: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        flate2::read::GzDecoder::new(packed).read_to_end(&mut out).unwrap();
        out
    }

    #[test]
    fn streams_are_those_of_go() {
        for (text, expected) in [
            ("", "H4sIAAAAAAAA/wAAAP//AQAA//8AAAAAAAAAAA=="),
            ("hello", "H4sIAAAAAAAA/8pIzcnJBwAAAP//AQAA//+GphA2BQAAAA=="),
        ] {
            use base64::Engine;
            let found = base64::engine::general_purpose::STANDARD.encode(gzip(text.as_bytes()));
            assert_eq!(found, expected, "{text}");
        }
    }

    proptest::proptest! {
        #[test]
        fn everything_comes_back(seed: Vec<u8>, times in 1usize..3000) {
            let text: Vec<u8> = seed.iter().copied().cycle().take(seed.len().min(64) * times).collect();
            proptest::prop_assert_eq!(unpacked(&gzip(&text)), text);
            proptest::prop_assert_eq!(unpacked(&gzip(&seed)), seed);
        }
    }
}
