//! Slow representation of [`super::Number`]: a sign, a mantissa of any length up to the precision, and a binary
//! exponent.

use std::cmp::Ordering;

use dashu_base::BitTest;
use dashu_int::UBig;

/// Limit on exponents: a number is at most about two to this power, and at least two to its negative. Larger numbers
/// become infinity, smaller ones zero.
///
/// That is some 300,000 decimal digits: more than any document has, and few enough to print.
pub(super) const MAX_BINARY_EXPONENT: i64 = 1 << 20;

/// A binary floating-point number.
#[derive(Clone, Debug)]
pub(super) struct Big {
    pub negative: bool,
    pub magnitude: Magnitude,
    /// Number of bits of the mantissa.
    pub precision: u32,
}

/// Absolute value of a [`Big`].
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Magnitude {
    Zero,
    /// `mantissa * 2^exponent`, the mantissa odd and of at most as many bits as the precision.
    Finite {
        mantissa: UBig,
        exponent: i64,
    },
    Infinite,
}

impl Big {
    pub fn infinity(negative: bool, precision: u32) -> Big {
        Big {
            negative,
            magnitude: Magnitude::Infinite,
            precision,
        }
    }

    pub fn zero(negative: bool, precision: u32) -> Big {
        Big {
            negative,
            magnitude: Magnitude::Zero,
            precision,
        }
    }

    pub fn from_i64(value: i64, precision: u32) -> Big {
        Big {
            negative: value < 0,
            ..Big::from_u64(value.unsigned_abs(), precision)
        }
    }

    pub fn from_u64(value: u64, precision: u32) -> Big {
        Big::round(false, UBig::from(value), 0, false, precision)
    }

    pub fn from_f64(value: f64, precision: u32) -> Option<Big> {
        let negative = value.is_sign_negative();
        if value.is_nan() {
            return None;
        }
        if value.is_infinite() {
            return Some(Big::infinity(negative, precision));
        }
        let bits = value.to_bits();
        let biased = i64::try_from((bits >> 52) & 0x7ff).unwrap_or_default();
        let fraction = bits & ((1 << 52) - 1);
        let (mantissa, exponent) = if biased == 0 {
            (fraction, -1074)
        } else {
            (fraction | (1 << 52), biased - 1075)
        };
        Some(Big::round(negative, UBig::from(mantissa), exponent, false, precision))
    }

    /// Rounds `mantissa * 2^exponent` to `precision` bits, half to even. If `more` is true, the exact number is
    /// slightly greater, so a half is rounded up.
    pub fn round(negative: bool, mantissa: UBig, exponent: i64, more: bool, precision: u32) -> Big {
        let (mut mantissa, mut exponent) = (mantissa, exponent);
        let bits = mantissa.bit_len();
        let target_bits = precision as usize;
        if bits > target_bits {
            let cut = bits - target_bits;
            let half = mantissa.bit(cut - 1);
            let below_half = more || mantissa.trailing_zeros().is_some_and(|zeros| zeros < cut - 1);
            mantissa >>= cut;
            if half && (below_half || mantissa.bit(0)) {
                mantissa += UBig::ONE;
            }
            exponent += cut as i64;
        }
        // The mantissa is kept odd, so that equal numbers have one form.
        let Some(zeros) = mantissa.trailing_zeros() else {
            return Big::zero(negative, precision);
        };
        mantissa >>= zeros;
        exponent += zeros as i64;
        let top = exponent.saturating_add(mantissa.bit_len() as i64);
        if top > MAX_BINARY_EXPONENT {
            return Big::infinity(negative, precision);
        }
        if top < -MAX_BINARY_EXPONENT {
            return Big::zero(negative, precision);
        }
        Big {
            negative,
            magnitude: Magnitude::Finite { mantissa, exponent },
            precision,
        }
    }

    pub fn is_integer(&self) -> bool {
        match &self.magnitude {
            Magnitude::Zero => true,
            Magnitude::Finite { exponent, .. } => *exponent >= 0,
            Magnitude::Infinite => false,
        }
    }

    /// Number of bits before the binary point, if the number is whole.
    pub fn integer_bits(&self) -> Option<u64> {
        match &self.magnitude {
            Magnitude::Zero => Some(0),
            Magnitude::Finite { mantissa, exponent } => {
                u64::try_from(*exponent).ok().map(|e| e + mantissa.bit_len() as u64)
            }
            Magnitude::Infinite => None,
        }
    }

    pub fn to_i128(&self) -> Option<i128> {
        match &self.magnitude {
            Magnitude::Zero => Some(0),
            Magnitude::Finite { mantissa, exponent } if self.integer_bits().is_some_and(|bits| bits < 127) => {
                let n = i128::try_from(mantissa).ok()? << u32::try_from(*exponent).ok()?;
                Some(if self.negative { -n } else { n })
            }
            _ => None,
        }
    }

    pub fn to_f64(&self) -> f64 {
        let size = match &self.magnitude {
            Magnitude::Zero => 0.0,
            Magnitude::Infinite => f64::INFINITY,
            Magnitude::Finite { mantissa, exponent } => finite_to_f64(mantissa, *exponent),
        };
        if self.negative { -size } else { size }
    }

    pub fn add(&self, other: &Big) -> Option<Big> {
        let precision = self.precision.max(other.precision);
        let ((m, e), (n, f)) = match (&self.magnitude, &other.magnitude) {
            (Magnitude::Infinite, Magnitude::Infinite) if self.negative != other.negative => return None,
            (Magnitude::Infinite, _) => return Some(Big::infinity(self.negative, precision)),
            (_, Magnitude::Infinite) => return Some(Big::infinity(other.negative, precision)),
            (Magnitude::Zero, Magnitude::Zero) => {
                return Some(Big::zero(self.negative && other.negative, precision));
            }
            (Magnitude::Zero, _) => {
                return Some(Big {
                    precision,
                    ..other.clone()
                });
            }
            (_, Magnitude::Zero) => {
                return Some(Big {
                    precision,
                    ..self.clone()
                });
            }
            (
                Magnitude::Finite {
                    mantissa: m,
                    exponent: e,
                },
                Magnitude::Finite {
                    mantissa: n,
                    exponent: f,
                },
            ) => ((m, *e), (n, *f)),
        };
        // If one number is smaller than any bit of the rounded result, it affects only the direction of rounding, and
        // is not added exactly. This bounds the shift by which the mantissas are aligned.
        let window = i64::from(precision) * 2 + 4;
        let (top_m, top_n) = (e + m.bit_len() as i64, f + n.bit_len() as i64);
        if top_m - window > top_n.max(f) && e - window > top_n {
            return Some(nudge(self.negative, m, e, self.negative == other.negative, precision));
        }
        if top_n - window > top_m.max(e) && f - window > top_m {
            return Some(nudge(other.negative, n, f, self.negative == other.negative, precision));
        }
        let low = e.min(f);
        let m = m << usize::try_from(e - low).ok()?;
        let n = n << usize::try_from(f - low).ok()?;
        if self.negative == other.negative {
            return Some(Big::round(self.negative, m + n, low, false, precision));
        }
        Some(match m.cmp(&n) {
            Ordering::Equal => Big::zero(false, precision),
            Ordering::Greater => Big::round(self.negative, m - n, low, false, precision),
            Ordering::Less => Big::round(other.negative, n - m, low, false, precision),
        })
    }

    /// Multiplies. The product has more bits than the operands' precision if it needs them, up to 512.
    pub fn mul(&self, other: &Big) -> Option<Big> {
        let negative = self.negative != other.negative;
        let precision = self.precision.max(other.precision);
        match (&self.magnitude, &other.magnitude) {
            (Magnitude::Infinite, Magnitude::Zero) | (Magnitude::Zero, Magnitude::Infinite) => None,
            (Magnitude::Infinite, _) | (_, Magnitude::Infinite) => Some(Big::infinity(negative, precision)),
            (Magnitude::Zero, _) | (_, Magnitude::Zero) => Some(Big::zero(negative, precision)),
            (
                Magnitude::Finite {
                    mantissa: m,
                    exponent: e,
                },
                Magnitude::Finite {
                    mantissa: n,
                    exponent: f,
                },
            ) => {
                let mut product = Big::round(negative, m * n, e + f, false, super::TEXT_PRECISION.max(precision));
                if let Magnitude::Finite { mantissa, .. } = &product.magnitude {
                    product.precision = precision.max(u32::try_from(mantissa.bit_len()).unwrap_or(precision));
                } else {
                    product.precision = precision;
                }
                Some(product)
            }
        }
    }

    pub fn div(&self, other: &Big) -> Option<Big> {
        let negative = self.negative != other.negative;
        let precision = self.precision.max(other.precision);
        match (&self.magnitude, &other.magnitude) {
            (Magnitude::Infinite, Magnitude::Infinite) | (Magnitude::Zero, Magnitude::Zero) => None,
            (Magnitude::Infinite, _) | (_, Magnitude::Zero) => Some(Big::infinity(negative, precision)),
            (Magnitude::Zero, _) | (_, Magnitude::Infinite) => Some(Big::zero(negative, precision)),
            (
                Magnitude::Finite {
                    mantissa: m,
                    exponent: e,
                },
                Magnitude::Finite {
                    mantissa: n,
                    exponent: f,
                },
            ) => {
                // Two extra bits in the quotient, and the presence of a remainder, decide the rounding.
                let shift = (precision as usize + 2 + n.bit_len()).saturating_sub(m.bit_len());
                let numerator = m << shift;
                let quotient = &numerator / n;
                let more = &quotient * n != numerator;
                Some(Big::round(negative, quotient, e - f - shift as i64, more, precision))
            }
        }
    }

    /// Computes `self - other * trunc(self / other)`, with each step rounded to the precision of `self`, as in
    /// Terraform.
    pub fn rem(&self, other: &Big) -> Option<Big> {
        let quotient = self.div(other)?;
        let quotient = quotient.to_integer(!quotient.negative).at_precision(self.precision);
        let product = quotient.mul(other)?.at_precision(self.precision);
        self.add(&Big {
            negative: !product.negative,
            ..product
        })
    }

    fn at_precision(self, precision: u32) -> Big {
        match self.magnitude {
            Magnitude::Finite { mantissa, exponent } => Big::round(self.negative, mantissa, exponent, false, precision),
            magnitude => Big {
                magnitude,
                precision,
                ..self
            },
        }
    }

    /// Rounds to a whole number, down if `down` is true, otherwise up. The result is never minus zero.
    pub fn to_integer(&self, down: bool) -> Big {
        let Magnitude::Finite { mantissa, exponent } = &self.magnitude else {
            return match self.magnitude {
                Magnitude::Zero => Big::zero(false, self.precision),
                _ => self.clone(),
            };
        };
        if *exponent >= 0 {
            return self.clone();
        }
        let cut = usize::try_from(exponent.unsigned_abs()).unwrap_or(usize::MAX);
        let mut whole = if cut >= mantissa.bit_len() {
            UBig::ZERO
        } else {
            mantissa >> cut
        };
        // The mantissa is odd, so the part that was cut off is not zero.
        if down == self.negative {
            whole += UBig::ONE;
        }
        let negative = self.negative && !whole.is_zero();
        Big::round(negative, whole, 0, false, self.precision)
    }

    /// Returns true if the numbers have the same sign, and nearly the same size.
    pub fn is_near(&self, other: &Big) -> bool {
        match (&self.magnitude, &other.magnitude) {
            (Magnitude::Zero, Magnitude::Zero) => true,
            (Magnitude::Infinite, Magnitude::Infinite) => self.negative == other.negative,
            (
                Magnitude::Finite {
                    mantissa: m,
                    exponent: e,
                },
                Magnitude::Finite {
                    mantissa: n,
                    exponent: f,
                },
            ) => self.negative == other.negative && (e + m.bit_len() as i64).abs_diff(f + n.bit_len() as i64) <= 1,
            _ => false,
        }
    }

    pub fn compare(&self, other: &Big) -> Ordering {
        match (&self.magnitude, &other.magnitude) {
            (Magnitude::Zero, Magnitude::Zero) => Ordering::Equal,
            (Magnitude::Zero, _) => {
                if other.negative {
                    Ordering::Greater
                } else {
                    Ordering::Less
                }
            }
            (_, Magnitude::Zero) => {
                if self.negative {
                    Ordering::Less
                } else {
                    Ordering::Greater
                }
            }
            _ => match (self.negative, other.negative) {
                (true, false) => Ordering::Less,
                (false, true) => Ordering::Greater,
                (false, false) => self.magnitude.compare(&other.magnitude),
                (true, true) => other.magnitude.compare(&self.magnitude),
            },
        }
    }
}

impl Magnitude {
    fn compare(&self, other: &Magnitude) -> Ordering {
        match (self, other) {
            (Magnitude::Infinite, Magnitude::Infinite) | (Magnitude::Zero, Magnitude::Zero) => Ordering::Equal,
            (Magnitude::Infinite, _) | (_, Magnitude::Zero) => Ordering::Greater,
            (_, Magnitude::Infinite) | (Magnitude::Zero, _) => Ordering::Less,
            (
                Magnitude::Finite {
                    mantissa: m,
                    exponent: e,
                },
                Magnitude::Finite {
                    mantissa: n,
                    exponent: f,
                },
            ) => {
                // Different highest bits decide without aligning the mantissas.
                let tops = (e + m.bit_len() as i64).cmp(&(f + n.bit_len() as i64));
                // With equal tops, the exponents differ by no more than the lengths of the mantissas, so the shift is
                // small.
                tops.then_with(|| {
                    let low = *e.min(f);
                    let shift = |e: i64| usize::try_from(e - low).unwrap_or_default();
                    (m << shift(*e)).cmp(&(n << shift(*f)))
                })
            }
        }
    }
}

/// Rounds `mantissa * 2^exponent` after the addition or subtraction of a number that is too small to matter except for
/// the direction of rounding.
fn nudge(negative: bool, mantissa: &UBig, exponent: i64, away: bool, precision: u32) -> Big {
    let room = precision as usize + 2;
    let mut wide = mantissa << room;
    if !away {
        wide -= UBig::ONE;
    }
    Big::round(negative, wide, exponent - room as i64, true, precision)
}

fn finite_to_f64(mantissa: &UBig, exponent: i64) -> f64 {
    let top = exponent + mantissa.bit_len() as i64;
    if top > 1024 {
        return f64::INFINITY;
    }
    if top < -1074 {
        return 0.0;
    }
    // Subnormal doubles have fewer bits. Rounding once, to those bits, avoids an error from rounding twice.
    let precision = (top + 1074).clamp(0, 53);
    let Ok(precision) = u32::try_from(precision) else {
        return 0.0;
    };
    if precision == 0 {
        // The number is between the smallest double and half of it. Exactly half is rounded to even, which is
        // zero.
        return if mantissa.is_one() { 0.0 } else { f64::from_bits(1) };
    }
    let rounded = Big::round(false, mantissa.clone(), exponent, false, precision);
    let Magnitude::Finite { mantissa, exponent } = rounded.magnitude else {
        return f64::INFINITY;
    };
    let Ok(bits) = u64::try_from(&mantissa) else {
        return f64::INFINITY;
    };
    let top = exponent + mantissa.bit_len() as i64;
    if top > 1024 {
        return f64::INFINITY;
    }
    if top <= -1022 {
        // The number is subnormal: the bits count units of two to the -1074.
        return u32::try_from(exponent + 1074)
            .ok()
            .map_or(0.0, |shift| f64::from_bits(bits << shift));
    }
    let width = mantissa.bit_len() as i64;
    let Ok(fill) = u32::try_from(53 - width) else {
        return f64::INFINITY;
    };
    let fraction = (bits << fill) & ((1 << 52) - 1);
    let Ok(biased) = u64::try_from(top + 1022) else {
        return 0.0;
    };
    f64::from_bits((biased << 52) | fraction)
}
