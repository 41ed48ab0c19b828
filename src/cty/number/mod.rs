//! Numbers: binary floating-point numbers, each with its own precision, and a fast path for small integers.
//!
//! A number is exact to its precision. Literals and text have 512 bits, machine integers 64, doubles 53; an operation
//! uses the greater precision of its operands. The precision is visible in two places: in division, and in the digits
//! of the text, which are the fewest that are parsed as this number at that precision.
//!
//! Magnitudes are limited (see `MAX_BINARY_EXPONENT`), so that no short text like `1e999999999` can be a number whose
//! digits exhaust memory. Larger numbers are infinite, smaller ones zero.

mod big;
mod decimal;

use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

use big::{Big, Magnitude};

/// Precision of literals and of numbers read from text.
const TEXT_PRECISION: u32 = 512;
/// Precision of machine integers, in bits.
const INTEGER_PRECISION: u32 = 64;
/// Precision of doubles, in bits.
const DOUBLE_PRECISION: u32 = 53;

/// A number. Cheap to clone.
///
/// [`Number::compare`] orders numbers by their value; `==` is a little more lenient with fractions.
#[derive(Clone)]
pub struct Number(Repr);

#[derive(Clone)]
enum Repr {
    /// A whole number within the precision, except minus zero.
    Int { value: i64, precision: u32 },
    /// Any other number, of arbitrary precision.
    Big(Arc<Big>),
}

impl Number {
    /// Zero, at the precision of literals.
    pub const ZERO: Number = Number(Repr::Int {
        value: 0,
        precision: TEXT_PRECISION,
    });

    /// Parses decimal text at 512 bits; `None` if it is not a number.
    ///
    /// A number may have a sign, digits with or without a point, and an exponent (`e` for powers of ten, `p` for powers
    /// of two); `inf` is accepted, too. A number too large or too small to be represented is refused: it must not
    /// silently become infinity or zero.
    #[must_use]
    pub fn parse(text: &str) -> Option<Number> {
        // This is a fast path for the common case: up to 18 digits, which fit 64 bits.
        if !text.is_empty() && text.len() <= 18 && text.bytes().all(|b| b.is_ascii_digit()) {
            let value = text.bytes().fold(0_i64, |n, b| n * 10 + i64::from(b - b'0'));
            return Some(Number(Repr::Int {
                value,
                precision: TEXT_PRECISION,
            }));
        }
        decimal::parse(text, TEXT_PRECISION).map(Number::from_big)
    }

    /// Converts a double (53 bits), including infinities; `None` for NaN.
    #[must_use]
    pub fn from_f64(n: f64) -> Option<Number> {
        Big::from_f64(n, DOUBLE_PRECISION).map(Number::from_big)
    }

    /// Returns positive infinity.
    #[must_use]
    pub fn infinity() -> Number {
        Number::from_big(Big::infinity(false, TEXT_PRECISION))
    }

    /// Returns negative infinity.
    #[must_use]
    pub fn neg_infinity() -> Number {
        Number::from_big(Big::infinity(true, TEXT_PRECISION))
    }

    #[must_use]
    pub fn is_infinite(&self) -> bool {
        matches!(&self.0, Repr::Big(b) if b.magnitude == Magnitude::Infinite)
    }

    /// Returns true for zero, with either sign.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        match &self.0 {
            Repr::Int { value, .. } => *value == 0,
            Repr::Big(b) => b.magnitude == Magnitude::Zero,
        }
    }

    /// Returns true for whole numbers. Infinities are not whole.
    #[must_use]
    pub fn is_integer(&self) -> bool {
        match &self.0 {
            Repr::Int { .. } => true,
            Repr::Big(b) => b.is_integer(),
        }
    }

    /// Returns true for numbers below zero. Minus zero is not.
    #[must_use]
    pub fn is_negative(&self) -> bool {
        match &self.0 {
            Repr::Int { value, .. } => *value < 0,
            Repr::Big(b) => b.negative && b.magnitude != Magnitude::Zero,
        }
    }

    /// Returns the number as an `i64`, if that is exact.
    #[must_use]
    pub fn to_i64(&self) -> Option<i64> {
        match &self.0 {
            Repr::Int { value, .. } => Some(*value),
            Repr::Big(b) => b.to_i128().and_then(|n| n.try_into().ok()),
        }
    }

    /// Returns the number as a `u64`, if that is exact.
    #[must_use]
    pub fn to_u64(&self) -> Option<u64> {
        match &self.0 {
            Repr::Int { value, .. } => (*value).try_into().ok(),
            Repr::Big(b) => b.to_i128().and_then(|n| n.try_into().ok()),
        }
    }

    /// Returns the number as a `usize`, if that is exact.
    #[must_use]
    pub fn to_usize(&self) -> Option<usize> {
        self.to_u64().and_then(|n| n.try_into().ok())
    }

    /// Returns the nearest double.
    #[must_use]
    pub fn to_f64(&self) -> f64 {
        match &self.0 {
            #[expect(clippy::cast_precision_loss, reason = "the nearest double is what is asked for")]
            Repr::Int { value, .. } => *value as f64,
            Repr::Big(b) => b.to_f64(),
        }
    }

    /// Returns the number as a double, if that is exact.
    #[must_use]
    pub fn to_f64_exact(&self) -> Option<f64> {
        let n = self.to_f64();
        Number::from_f64(n).filter(|back| back.compare(self).is_eq()).map(|_| n)
    }

    /// Returns the sum; `None` for infinities of opposite signs.
    #[must_use]
    pub fn add(&self, other: &Number) -> Option<Number> {
        if let (Repr::Int { value: a, precision: p }, Repr::Int { value: b, precision: q }) = (&self.0, &other.0)
            && let Some(value) = a.checked_add(*b)
        {
            return Some(Number::from_i64(value, *p.max(q)));
        }
        self.to_big().add(&other.to_big()).map(Number::from_big)
    }

    /// Returns the difference; `None` for infinities of the same sign.
    #[must_use]
    pub fn sub(&self, other: &Number) -> Option<Number> {
        self.add(&other.neg())
    }

    /// Returns the product; `None` for zero times infinity.
    #[must_use]
    pub fn mul(&self, other: &Number) -> Option<Number> {
        if let (Repr::Int { value: a, precision: p }, Repr::Int { value: b, precision: q }) = (&self.0, &other.0)
            // Zeros take the slow path, which distinguishes minus zero.
            && *a != 0
            && *b != 0
            && let Some(value) = a.checked_mul(*b)
        {
            // The product keeps all its bits, even beyond the operands' precision.
            let needed = value.unsigned_abs();
            let needed = u64::BITS - needed.leading_zeros() - needed.trailing_zeros();
            return Some(Number::from_i64(value, *p.max(q).max(&needed)));
        }
        self.to_big().mul(&other.to_big()).map(Number::from_big)
    }

    /// Returns the quotient; `None` for zero by zero and infinity by infinity. Anything else divided by zero is an
    /// infinity.
    #[must_use]
    pub fn div(&self, other: &Number) -> Option<Number> {
        if let (Repr::Int { value: a, precision: p }, Repr::Int { value: b, precision: q }) = (&self.0, &other.0)
            // The quotient is taken only without a remainder: then it is exact in any precision.
            && *a != 0
            && a.checked_rem(*b) == Some(0)
        {
            return Some(Number::from_i64(a / b, *p.max(q)));
        }
        self.to_big().div(&other.to_big()).map(Number::from_big)
    }

    /// Returns the remainder of the division, also of fractions, with the sign of `self`. The remainder of a division
    /// by zero is `self`; `None` if one of the two is infinite.
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

    /// Returns the number with the opposite sign; the negative of zero is minus zero.
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

    /// Returns the absolute value.
    #[must_use]
    pub fn abs(&self) -> Number {
        let negative = match &self.0 {
            Repr::Int { value, .. } => *value < 0,
            Repr::Big(b) => b.negative,
        };
        if negative { self.neg() } else { self.clone() }
    }

    /// Returns the greatest whole number not above this one.
    #[must_use]
    pub fn floor(&self) -> Number {
        self.round_toward(true)
    }

    /// Returns the smallest whole number not below this one.
    #[must_use]
    pub fn ceil(&self) -> Number {
        self.round_toward(false)
    }

    /// Returns the whole part of the number.
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

    /// Returns all decimal digits: true if the number is negative, the digits without zeros at either end, and the
    /// number of digits before the point (negative if zeros follow the point). `None` for infinities.
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

    /// Returns the number as an `i128`, if that is exact.
    #[must_use]
    pub fn to_i128(&self) -> Option<i128> {
        match &self.0 {
            Repr::Int { value, .. } => Some((*value).into()),
            Repr::Big(b) => b.to_i128(),
        }
    }

    #[must_use]
    pub fn is_minus_zero(&self) -> bool {
        matches!(&self.0, Repr::Big(b) if b.negative && b.magnitude == Magnitude::Zero)
    }

    /// Compares by value: a total order that ignores the precision.
    #[must_use]
    pub fn compare(&self, other: &Number) -> Ordering {
        match (&self.0, &other.0) {
            (Repr::Int { value: a, .. }, Repr::Int { value: b, .. }) => a.cmp(b),
            _ => self.to_big().compare(&other.to_big()),
        }
    }

    /// Renders the number with ten significant digits, as Go's `%.10g`. The order of compound values in sets depends on
    /// it.
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
        // A result that fits the fast path is stored in its form.
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
        // No platform has a `usize` of more than 64 bits.
        Number::from(value as u64)
    }
}

/// Whole numbers are equal if their values are equal; fractions, if their texts are equal: `0.1` is the same number at
/// every precision. Terraform compares like this. Minus zero equals zero.
impl PartialEq for Number {
    fn eq(&self, other: &Number) -> bool {
        match (&self.0, &other.0) {
            (Repr::Int { value: a, .. }, Repr::Int { value: b, .. }) => a == b,
            (Repr::Big(a), Repr::Big(b)) if a.precision != b.precision && !a.is_integer() && !b.is_integer() => {
                // Numbers that are far apart differ, so they need not be rendered.
                a.is_near(b) && decimal::shortest(a) == decimal::shortest(b)
            }
            _ => self.compare(other) == Ordering::Equal,
        }
    }
}

impl Eq for Number {}

/// Compares by value, but numbers that are equal by `==` always compare as equal.
impl PartialOrd for Number {
    fn partial_cmp(&self, other: &Number) -> Option<Ordering> {
        if self == other {
            return Some(Ordering::Equal);
        }
        Some(self.compare(other))
    }
}

/// Formats decimal digits without exponent: the shortest text that is parsed as this number at its precision.
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
