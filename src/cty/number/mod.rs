//! Numbers: binary floats of a precision each carries, with a fast path for small integers.
//!
//! A number is exact to its precision. Literals and text have 512 bits, integers of the machine 64, doubles
//! 53; an operation works at the greater precision of its operands. The precision shows in two places: in division, and
//! in the digits a number is written with, which are the fewest that read back as the same number at that precision.
//!
//! Magnitudes are limited (see `MAX_BINARY_EXPONENT`), so that no short text like `1e999999999` can be a number
//! whose digits fill the memory. What is greater is an infinity, what is smaller is zero.

mod big;
mod decimal;

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use big::{Big, Magnitude};

/// The precision of literals and of numbers read from text.
const TEXT_PRECISION: u32 = 512;
/// The precision of machine integers.
const INTEGER_PRECISION: u32 = 64;
/// The precision of doubles.
const DOUBLE_PRECISION: u32 = 53;

/// A number. Cheap to clone.
///
/// [`Number::compare`] orders numbers by their value; `==` is a little more lenient with fractions.
#[derive(Clone)]
pub struct Number(Repr);

#[derive(Clone)]
enum Repr {
    /// A whole number that needs no more bits than the precision, and is not minus zero.
    Int { value: i64, precision: u32 },
    /// Any other number.
    Big(Arc<Big>),
}

impl Number {
    /// Zero, at the precision of literals.
    pub const ZERO: Number = Number(Repr::Int {
        value: 0,
        precision: TEXT_PRECISION,
    });

    /// The number written by this decimal text, at 512 bits; `None` if it is none.
    ///
    /// Accepted are a sign, digits with or without a point, an exponent (`e` for powers of ten, `p` for powers of two),
    /// and `inf`. A number too large or too small to be represented is refused: it must not silently become infinity or
    /// zero.
    #[must_use]
    pub fn parse(text: &str) -> Option<Number> {
        // The usual case: a few digits.
        if !text.is_empty() && text.len() <= 18 && text.bytes().all(|b| b.is_ascii_digit()) {
            let value = text.bytes().fold(0_i64, |n, b| n * 10 + i64::from(b - b'0'));
            return Some(Number(Repr::Int {
                value,
                precision: TEXT_PRECISION,
            }));
        }
        decimal::parse(text, TEXT_PRECISION).map(Number::from_big)
    }

    /// The number of this double (53 bits), infinities included; `None` for NaN.
    #[must_use]
    pub fn from_f64(n: f64) -> Option<Number> {
        Big::from_f64(n, DOUBLE_PRECISION).map(Number::from_big)
    }

    /// Positive infinity.
    #[must_use]
    pub fn infinity() -> Number {
        Number::from_big(Big::infinity(false, TEXT_PRECISION))
    }

    /// Negative infinity.
    #[must_use]
    pub fn neg_infinity() -> Number {
        Number::from_big(Big::infinity(true, TEXT_PRECISION))
    }

    /// Whether this is an infinity.
    #[must_use]
    pub fn is_infinite(&self) -> bool {
        matches!(&self.0, Repr::Big(b) if b.magnitude == Magnitude::Infinite)
    }

    /// Whether this is zero, with or without minus.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        match &self.0 {
            Repr::Int { value, .. } => *value == 0,
            Repr::Big(b) => b.magnitude == Magnitude::Zero,
        }
    }

    /// Whether this is a whole number. Infinities are not.
    #[must_use]
    pub fn is_integer(&self) -> bool {
        match &self.0 {
            Repr::Int { .. } => true,
            Repr::Big(b) => b.is_integer(),
        }
    }

    /// Whether this is below zero. Minus zero is not.
    #[must_use]
    pub fn is_negative(&self) -> bool {
        match &self.0 {
            Repr::Int { value, .. } => *value < 0,
            Repr::Big(b) => b.negative && b.magnitude != Magnitude::Zero,
        }
    }

    /// Exactly this number as an `i64`, if it is one.
    #[must_use]
    pub fn to_i64(&self) -> Option<i64> {
        match &self.0 {
            Repr::Int { value, .. } => Some(*value),
            Repr::Big(b) => b.to_i128().and_then(|n| n.try_into().ok()),
        }
    }

    /// Exactly this number as a `u64`, if it is one.
    #[must_use]
    pub fn to_u64(&self) -> Option<u64> {
        match &self.0 {
            Repr::Int { value, .. } => (*value).try_into().ok(),
            Repr::Big(b) => b.to_i128().and_then(|n| n.try_into().ok()),
        }
    }

    /// Exactly this number as a `usize`, if it is one.
    #[must_use]
    pub fn to_usize(&self) -> Option<usize> {
        self.to_u64().and_then(|n| n.try_into().ok())
    }

    /// The nearest double.
    #[must_use]
    pub fn to_f64(&self) -> f64 {
        match &self.0 {
            #[expect(clippy::cast_precision_loss, reason = "the nearest double is what is asked for")]
            Repr::Int { value, .. } => *value as f64,
            Repr::Big(b) => b.to_f64(),
        }
    }

    /// This number as a double, if a double holds it exactly.
    #[must_use]
    pub fn to_f64_exact(&self) -> Option<f64> {
        let n = self.to_f64();
        Number::from_f64(n).filter(|back| back.compare(self).is_eq()).map(|_| n)
    }

    /// The sum; `None` for infinities of opposite signs.
    #[must_use]
    pub fn add(&self, other: &Number) -> Option<Number> {
        if let (Repr::Int { value: a, precision: p }, Repr::Int { value: b, precision: q }) = (&self.0, &other.0)
            && let Some(value) = a.checked_add(*b)
        {
            return Some(Number::from_i64(value, *p.max(q)));
        }
        self.to_big().add(&other.to_big()).map(Number::from_big)
    }

    /// The difference; `None` for infinities of the same sign.
    #[must_use]
    pub fn sub(&self, other: &Number) -> Option<Number> {
        self.add(&other.neg())
    }

    /// The product; `None` for zero times infinity.
    #[must_use]
    pub fn mul(&self, other: &Number) -> Option<Number> {
        if let (Repr::Int { value: a, precision: p }, Repr::Int { value: b, precision: q }) = (&self.0, &other.0)
            && *a != 0
            && *b != 0
            && let Some(value) = a.checked_mul(*b)
        {
            // The product keeps all its bits even where the operands' precision is smaller.
            let needed = value.unsigned_abs();
            let needed = u64::BITS - needed.leading_zeros() - needed.trailing_zeros();
            return Some(Number::from_i64(value, *p.max(q).max(&needed)));
        }
        self.to_big().mul(&other.to_big()).map(Number::from_big)
    }

    /// The quotient; `None` for zero by zero and infinity by infinity. Anything else by zero is an infinity.
    #[must_use]
    pub fn div(&self, other: &Number) -> Option<Number> {
        if let (Repr::Int { value: a, precision: p }, Repr::Int { value: b, precision: q }) = (&self.0, &other.0)
            && *a != 0
            && a.checked_rem(*b) == Some(0)
        {
            return Some(Number::from_i64(a / b, *p.max(q)));
        }
        self.to_big().div(&other.to_big()).map(Number::from_big)
    }

    /// The remainder of the division, with the sign of `self`; fractions work as well. The remainder of a division by
    /// zero is `self`; there is none where one of the two is infinite.
    #[must_use]
    pub fn rem(&self, other: &Number) -> Option<Number> {
        if self.is_infinite() || other.is_infinite() {
            return None;
        }
        if other.is_zero() {
            return Some(self.clone());
        }
        if let (Repr::Int { value: a, precision: p }, Repr::Int { value: b, .. }) = (&self.0, &other.0)
            && let Some(value) = a.checked_rem(*b)
        {
            return Some(Number::from_i64(value, *p));
        }
        self.to_big().rem(&other.to_big()).map(Number::from_big)
    }

    /// The number with the other sign; the negative of zero is minus zero.
    #[must_use]
    pub fn neg(&self) -> Number {
        match &self.0 {
            Repr::Int { value, precision } if *value != 0 && *value != i64::MIN => Number(Repr::Int {
                value: -value,
                precision: *precision,
            }),
            _ => {
                let big = self.to_big();
                Number::from_big(Big {
                    negative: !big.negative,
                    ..big
                })
            }
        }
    }

    /// The number without its sign.
    #[must_use]
    pub fn abs(&self) -> Number {
        let negative = match &self.0 {
            Repr::Int { value, .. } => *value < 0,
            Repr::Big(b) => b.negative,
        };
        if negative { self.neg() } else { self.clone() }
    }

    /// The greatest whole number not above this one.
    #[must_use]
    pub fn floor(&self) -> Number {
        self.round_toward(true)
    }

    /// The smallest whole number not below this one.
    #[must_use]
    pub fn ceil(&self) -> Number {
        self.round_toward(false)
    }

    /// The whole number that is left when the fraction is cut off.
    #[must_use]
    pub fn trunc(&self) -> Number {
        self.round_toward(!self.is_negative())
    }

    fn round_toward(&self, down: bool) -> Number {
        match &self.0 {
            Repr::Int { .. } => self.clone(),
            Repr::Big(b) => Number::from_big(b.to_integer(down)),
        }
    }

    /// All its decimal digits, exactly: whether it is negative, the digits without zeros at either end, and how many of
    /// them stand before the point (fewer than none, if zeros follow the point). Nothing for infinities.
    #[must_use]
    pub fn exact_digits(&self) -> Option<(bool, Vec<u8>, i64)> {
        let big = self.to_big();
        let decimal = match &big.magnitude {
            Magnitude::Zero => return Some((big.negative, Vec::new(), 0)),
            Magnitude::Infinite => return None,
            Magnitude::Finite { mantissa, exponent } => decimal::exact(mantissa, *exponent),
        };
        Some((big.negative, decimal.digits, decimal.point))
    }

    /// Exactly this number as an `i128`, if it is one.
    #[must_use]
    pub fn to_i128(&self) -> Option<i128> {
        match &self.0 {
            Repr::Int { value, .. } => Some((*value).into()),
            Repr::Big(b) => b.to_i128(),
        }
    }

    /// Whether this is minus zero.
    #[must_use]
    pub fn is_minus_zero(&self) -> bool {
        matches!(&self.0, Repr::Big(b) if b.negative && b.magnitude == Magnitude::Zero)
    }

    /// How this number's value compares with another's: a total order, in which the precision does not count.
    #[must_use]
    pub fn compare(&self, other: &Number) -> Ordering {
        match (&self.0, &other.0) {
            (Repr::Int { value: a, .. }, Repr::Int { value: b, .. }) => a.cmp(b),
            _ => self.to_big().compare(&other.to_big()),
        }
    }

    /// The number with ten significant digits, in the form Go's `%.10g` gives: what the order of sets of compound
    /// values is made of.
    #[must_use]
    pub(crate) fn to_ten_digits(&self) -> String {
        match &self.0 {
            Repr::Int { value, .. } if value.unsigned_abs() < 10_000_000_000 && !(value % 10 == 0 && *value != 0) => {
                value.to_string()
            }
            _ => decimal::ten_digits(&self.to_big()),
        }
    }

    fn from_i64(value: i64, precision: u32) -> Number {
        let magnitude = value.unsigned_abs();
        if u64::BITS - magnitude.leading_zeros() <= precision {
            return Number(Repr::Int { value, precision });
        }
        Number::from_big(Big::from_i64(value, precision))
    }

    fn from_big(big: Big) -> Number {
        // Back to the fast path wherever the number fits it.
        if big
            .integer_bits()
            .is_some_and(|bits| bits <= 64 && bits <= u64::from(big.precision))
            && let Some(value) = big.to_i128().and_then(|n| i64::try_from(n).ok())
            && (value != 0 || !big.negative)
        {
            return Number(Repr::Int {
                value,
                precision: big.precision,
            });
        }
        Number(Repr::Big(Arc::new(big)))
    }

    fn to_big(&self) -> Big {
        match &self.0 {
            Repr::Int { value, precision } => Big::from_i64(*value, *precision),
            Repr::Big(b) => (**b).clone(),
        }
    }
}

impl From<i64> for Number {
    fn from(value: i64) -> Number {
        Number(Repr::Int {
            value,
            precision: INTEGER_PRECISION,
        })
    }
}

impl From<i32> for Number {
    fn from(value: i32) -> Number {
        Number::from(i64::from(value))
    }
}

impl From<u32> for Number {
    fn from(value: u32) -> Number {
        Number::from(i64::from(value))
    }
}

impl From<u64> for Number {
    fn from(value: u64) -> Number {
        match i64::try_from(value) {
            Ok(value) => Number::from(value),
            Err(_) => Number::from_big(Big::from_u64(value, INTEGER_PRECISION)),
        }
    }
}

impl From<usize> for Number {
    fn from(value: usize) -> Number {
        // No platform has a `usize` above 64 bits.
        Number::from(value as u64)
    }
}

/// Whole numbers are equal when their values are, fractions when they are written alike: `0.1` is the same number at
/// every precision. Terraform does the same. Minus zero is zero.
impl PartialEq for Number {
    fn eq(&self, other: &Number) -> bool {
        match (&self.0, &other.0) {
            (Repr::Int { value: a, .. }, Repr::Int { value: b, .. }) => a == b,
            (Repr::Big(a), Repr::Big(b)) if a.precision != b.precision && !a.is_integer() && !b.is_integer() => {
                // What is far apart need not be written.
                a.is_near(b) && decimal::shortest(a) == decimal::shortest(b)
            }
            _ => self.compare(other) == Ordering::Equal,
        }
    }
}

impl Eq for Number {}

/// By value; equal numbers first of all are equal.
impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Number) -> Option<Ordering> {
        if self == other {
            return Some(Ordering::Equal);
        }
        Some(self.compare(other))
    }
}

/// Decimal digits without exponent: the shortest text that reads back as this number at its precision.
impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Repr::Int { value, .. } => value.fmt(f),
            Repr::Big(b) => f.write_str(&decimal::shortest(b)),
        }
    }
}

impl fmt::Debug for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests;
