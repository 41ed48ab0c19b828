//! Numbers: 512-bit binary floats with a fast path for small integers.

use std::cmp::Ordering;
use std::fmt;

/// A number.
#[derive(Clone, Debug)]
pub struct Number(i64);

impl Number {
    /// The number written by this decimal text, at 512 bits; `None` if it is none.
    #[must_use]
    pub fn parse(_text: &str) -> Option<Number> {
        todo!()
    }
    /// The number of this double (53 bits), infinities included; `None` for NaN.
    #[must_use]
    pub fn from_f64(_n: f64) -> Option<Number> {
        todo!()
    }
    /// Positive infinity.
    #[must_use]
    pub fn infinity() -> Number {
        todo!()
    }
    /// Whether this is an infinity.
    #[must_use]
    pub fn is_infinite(&self) -> bool {
        todo!()
    }
    /// Whether this is a whole number.
    #[must_use]
    pub fn is_integer(&self) -> bool {
        todo!()
    }
    /// Whether this is below zero.
    #[must_use]
    pub fn is_negative(&self) -> bool {
        todo!()
    }
    /// Exactly this number as an `i64`, if it is one.
    #[must_use]
    pub fn to_i64(&self) -> Option<i64> {
        Some(self.0)
    }
    /// Exactly this number as a `usize`, if it is one.
    #[must_use]
    pub fn to_usize(&self) -> Option<usize> {
        self.to_i64().and_then(|n| n.try_into().ok())
    }
    /// The nearest double.
    #[must_use]
    pub fn to_f64(&self) -> f64 {
        todo!()
    }
    // add, sub, mul -> Number; div, rem -> Option<Number> (None for 0/0 etc.); neg; floor; ceil; abs
}

impl From<i64> for Number {
    fn from(n: i64) -> Number {
        Number(n)
    }
}
impl From<usize> for Number {
    fn from(_n: usize) -> Number {
        todo!()
    }
}
impl PartialEq for Number {
    fn eq(&self, _other: &Number) -> bool {
        todo!()
    }
}
impl PartialOrd for Number {
    fn partial_cmp(&self, _other: &Number) -> Option<Ordering> {
        todo!()
    }
}
/// Decimal digits without exponent: the shortest text that reads back as this number at its precision.
impl fmt::Display for Number {
    fn fmt(&self, _f: &mut fmt::Formatter<'_>) -> fmt::Result {
        todo!()
    }
}
