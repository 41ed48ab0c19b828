//! Random number generator for `seed`. It returns the same numbers for the same seed in all releases, because users rely on their results.
//!
//! It is the generator that the official provider has used since its first release: an additive lagged Fibonacci generator of 607 words,
//! `y[k] = y[k−607] + y[k−273]`, with 64-bit words that wrap. Its words are set from the CRC-64 of the seed with a small linear
//! congruential generator, and mixed with 607 fixed words. The fixed words are the state of the same recurrence after 7.8·10¹² steps. They
//! are not computed step by step: the word at any distance N is a linear combination of 607 neighbors, with the coefficients of
//! `x^N mod (x⁶⁰⁷ − x³³⁴ − 1)`.

use std::sync::LazyLock;

const WORDS: usize = 607;
/// Exponent of the second term in the polynomial of the generator: `y[k] = y[k−607] + y[k−273]` means that x⁶⁰⁷ = x³³⁴ + 1.
const LAG: usize = 334;
/// Number of steps between the start words and the fixed words.
const DISTANCE: u64 = 7_800_000_000_000;
/// Modulus of the small linear congruential generator.
const MODULUS: i64 = (1 << 31) - 1;

/// Fixed words. Computing them takes some milliseconds, so it is done once, and only if a seed is used.
static FIXED: LazyLock<Vec<u64>> = LazyLock::new(|| {
    let mut small = Small::new(1);
    let start: Vec<u64> = (0..WORDS).map(|_| small.word(20, 10)).collect();
    // The start words in the order of k from −607, followed by the words that the linear combination needs.
    let mut y: Vec<u64> = (0..WORDS).map(|k| start[slot(k as u64)]).collect();
    for k in WORDS..2 * WORDS {
        y.push(y[k - WORDS].wrapping_add(y[k - WORDS + LAG]));
    }
    let coefficients = power(DISTANCE);
    let mut fixed = vec![0; WORDS];
    for k in 0..WORDS {
        let terms = coefficients.iter().zip(&y[k..]).map(|(c, y)| c.wrapping_mul(*y));
        fixed[slot(DISTANCE + k as u64)] = terms.fold(0, u64::wrapping_add);
    }
    fixed
});

/// Index of the word `y[k − 607]` in the state.
fn slot(k: u64) -> usize {
    let words = WORDS as u64;
    // (333 − (k − 607)) mod 607
    ((333 + words - k % words) % words) as usize
}

/// Returns `x^n` modulo the polynomial of the generator, as 607 coefficients.
fn power(n: u64) -> Vec<u64> {
    let mut result = vec![0; WORDS];
    result[0] = 1;
    for bit in (0..u64::BITS - n.leading_zeros()).rev() {
        result = square(&result);
        if n >> bit & 1 == 1 {
            // Multiplication by x. The coefficient that leaves at the top comes back as x³³⁴ + 1.
            result.rotate_right(1);
            let top = result[0];
            result[LAG] = result[LAG].wrapping_add(top);
        }
    }
    result
}

fn square(a: &[u64]) -> Vec<u64> {
    let mut product = vec![0u64; 2 * WORDS - 1];
    for (i, x) in a.iter().enumerate() {
        for (out, y) in product[i..].iter_mut().zip(a) {
            *out = out.wrapping_add(x.wrapping_mul(*y));
        }
    }
    for k in (WORDS..product.len()).rev() {
        let top = product[k];
        product[k - WORDS] = product[k - WORDS].wrapping_add(top);
        product[k - WORDS + LAG] = product[k - WORDS + LAG].wrapping_add(top);
    }
    product.truncate(WORDS);
    product
}

/// Small generator: x ← 48271·x mod (2³¹−1).
struct Small(i64);

impl Small {
    fn new(seed: i64) -> Small {
        let mut x = seed % MODULUS;
        if x < 0 {
            x += MODULUS;
        }
        if x == 0 {
            // Zero would be followed by zeros only, so it is replaced.
            x = 89_482_311;
        }
        let mut small = Small(x);
        for _ in 0..20 {
            small.next();
        }
        small
    }

    fn next(&mut self) -> u64 {
        self.0 = 48_271 * self.0 % MODULUS;
        self.0.unsigned_abs()
    }

    fn word(&mut self, first: u32, second: u32) -> u64 {
        let (a, b, c) = (self.next(), self.next(), self.next());
        (a << first) ^ (b << second) ^ c
    }
}

pub(crate) struct Seeded {
    words: Vec<u64>,
    tap: usize,
    feed: usize,
}

impl Seeded {
    /// Creates the generator for a seed.
    pub fn new(seed: &str) -> Seeded {
        let mut small = Small::new(crc64(seed.as_bytes()).cast_signed());
        let words = FIXED.iter().map(|fixed| small.word(40, 20) ^ fixed).collect();
        Seeded {
            words,
            tap: 0,
            feed: LAG,
        }
    }

    /// Draws 63 random bits.
    fn bits63(&mut self) -> u64 {
        let back = |i: usize| if i == 0 { WORDS - 1 } else { i - 1 };
        self.tap = back(self.tap);
        self.feed = back(self.feed);
        let x = self.words[self.feed].wrapping_add(self.words[self.tap]);
        self.words[self.feed] = x;
        x & (u64::MAX >> 1)
    }

    fn bits31(&mut self) -> u64 {
        self.bits63() >> 32
    }

    /// Returns a number below `n`, which must be from 1 to 2⁶³−1.
    pub fn bounded(&mut self, n: u64) -> u64 {
        let wide = n > (1 << 31) - 1;
        let range: u64 = if wide { 1 << 63 } else { 1 << 31 };
        let mut draw = || if wide { self.bits63() } else { self.bits31() };
        if n.is_power_of_two() {
            return draw() & (n - 1);
        }
        let highest = range - 1 - range % n;
        // Numbers after the last whole multiple of n are drawn again, so that all results have the same probability.
        loop {
            let x = draw();
            if x <= highest {
                return x % n;
            }
        }
    }

    /// Returns a permutation of the numbers below `n`.
    pub fn permutation(&mut self, n: usize) -> Vec<usize> {
        let mut out = vec![0; n];
        for i in 0..n {
            let j = self.bounded(i as u64 + 1) as usize;
            out[i] = out[j];
            out[j] = i;
        }
        out
    }
}

/// Computes CRC-64/GO-ISO, with which the official provider converts a seed to a number.
fn crc64(bytes: &[u8]) -> u64 {
    let mut crc = u64::MAX;
    for byte in bytes {
        crc ^= u64::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 {
                (crc >> 1) ^ 0xd800_0000_0000_0000
            } else {
                crc >> 1
            };
        }
    }
    !crc
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checksums_of_seeds() {
        assert_eq!(crc64(b"12345"), 0x45a4_1001_b320_0000);
        assert_eq!(crc64(b"-"), 0x5360_0000_0000_0000);
    }

    #[test]
    fn numbers_that_people_rely_on() {
        for (seed, one_to_three, hundred, million, wide, permutation) in [
            ("12345", 3, 43, 272_643, 288_107_231_373, [4, 2, 0, 1, 3]),
            ("123456", 2, 98, 680_898, 11_948_395_066, [0, 3, 2, 1, 4]),
            ("-", 2, 8, 878_308, 157_598_939_467, [0, 2, 1, 4, 3]),
            ("hello", 2, 58, 184_158, 132_436_473_566, [2, 4, 3, 1, 0]),
        ] {
            assert_eq!(Seeded::new(seed).bounded(3) + 1, one_to_three, "{seed}");
            assert_eq!(Seeded::new(seed).bounded(100), hundred, "{seed}");
            assert_eq!(Seeded::new(seed).bounded(1_000_000), million, "{seed}");
            assert_eq!(Seeded::new(seed).bounded(1 << 40), wide, "{seed}");
            assert_eq!(Seeded::new(seed).permutation(5), permutation, "{seed}");
        }
    }
}
