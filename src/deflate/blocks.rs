//! Encoder of blocks: writes literals and matches as bits, in the shortest of the three block types (stored, fixed
//! codes, dynamic codes).

use crate::codes::{Code, codes, fixed_codes};
use crate::symbols::{DISTANCES, LITERALS, LONGEST, Token};

/// The order in which the header of a dynamic block stores the lengths of the code length codes (RFC 1951, section
/// 3.2.7).
const LENGTH_ORDER: [usize; 19] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];
const END_OF_BLOCK: usize = 256;
const LONGEST_STORED: usize = 65535;

/// A length or distance as a symbol with extra bits.
struct Symbol {
    code: usize,
    bits: u32,
    rest: usize,
}

/// Returns the symbol of a length or distance, counted from 0. The number of values for each symbol doubles every `1 <<
/// fine` symbols.
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
    // The longest match has a symbol of its own, without extra bits.
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

/// The bits of a stream, lowest first.
#[derive(Default)]
pub(crate) struct Bits {
    pub bytes: Vec<u8>,
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

    /// Writes a stored block of at most 65535 bytes.
    pub fn stored(&mut self, text: &[u8], last: bool) {
        self.put(usize::from(last), 3);
        self.align();
        self.put(text.len(), 16);
        self.put(text.len() ^ 0xffff, 16);
        self.bytes.extend(text);
    }

    /// Writes a block in the shortest of its three forms.
    pub fn block(&mut self, tokens: &[Token], text: Option<&[u8]>) {
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
        // A dynamic block has at least one distance code, used or not.
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
        // As in Go, the extra bits are counted only if the text could be stored instead. They are the same for fixed
        // and dynamic codes, so they do not affect that choice.
        let extra = stored.map_or(0, |_| extra as usize);
        let (fixed_literals, fixed_distances) = fixed_codes();
        let fixed = 3 + size(&fixed_literals, &literals) + size(&fixed_distances, &distances) + extra;
        let dynamic = header.size + size(&own_literals, &literals) + size(&own_distances, &distances) + extra;
        if let Some(text) = stored
            // Stored text has five bytes before it: the type of the block, padded to a byte, and its length twice.
            && (text.len() + 5) * 8 < dynamic.min(fixed)
        {
            self.stored(text, false);
            return;
        }
        let (literal_codes, distance_codes) = if dynamic < fixed {
            // Begins a block of dynamic codes that is not the last one: the stream ends with an empty stored
            // block.
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

/// Header of a dynamic block: its code lengths, run-length coded, and the codes for these.
struct Header {
    /// Symbol, extra bits, and their count.
    items: Vec<(usize, usize, u32)>,
    codes: Vec<Code>,
    /// Number of code length codes in the header.
    sent: usize,
    size: usize,
}

impl Header {
    fn new(lengths: &[u32]) -> Header {
        let mut items = Vec::new();
        // Symbol 18 repeats a zero 11 to 138 times, 17 repeats it 3 to 10 times, and 16 the previous length 3 to 6
        // times.
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
