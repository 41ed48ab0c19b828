//! Conversion of numbers to and from decimal text.

use dashu_base::BitTest;
use dashu_int::UBig;

use super::big::{Big, MAX_BINARY_EXPONENT, Magnitude};

/// Decimal digits and the position of the point: `0.d1d2d3… * 10^point`. No leading and no trailing zeros.
#[derive(Debug, PartialEq)]
pub(super) struct Decimal {
    pub digits: Vec<u8>,
    pub point: i64,
}

/// Reads decimal text; see [`super::Number::parse`].
pub(super) fn parse(text: &str, precision: u32) -> Option<Big> {
    let (negative, rest) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "inf" || rest == "Inf" {
        return Some(Big::infinity(negative, precision));
    }
    let (number, exponent, binary) = match rest.find(['e', 'E', 'p', 'P']) {
        Some(at) => {
            let binary = matches!(rest.as_bytes()[at], b'p' | b'P');
            (&rest[..at], parse_exponent(&rest[at + 1..])?, binary)
        }
        None => (rest, 0, false),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() && fraction.is_empty() {
        return None;
    }
    if !whole.bytes().chain(fraction.bytes()).all(|b| b.is_ascii_digit()) {
        return None;
    }
    let fraction = fraction.trim_end_matches('0');
    let digits = format!("{whole}{fraction}");
    let digits = digits.trim_start_matches('0');
    // Trailing zeros become part of the exponent, so that a long run of them is never turned into a mantissa.
    let significant = digits.trim_end_matches('0');
    if significant.is_empty() {
        return Some(Big::zero(negative, precision));
    }
    let mut scale = (digits.len() - significant.len()) as i64 - fraction.len() as i64;
    let mut shift = 0;
    if binary {
        shift = exponent;
    } else {
        scale = scale.saturating_add(exponent);
    }
    // The number is less than ten to `size`, and at least ten to `size - 1`; a decimal digit is worth three to four
    // bits. So the size is checked before the power of ten is computed.
    let size = scale.saturating_add(significant.len() as i64);
    let bits = |digits: i64, up: bool| digits * if (digits >= 0) == up { 4 } else { 3 } + shift;
    if bits(size - 1, false) > MAX_BINARY_EXPONENT || bits(size, true) < -MAX_BINARY_EXPONENT {
        return None;
    }
    let mantissa = UBig::from_str_radix(significant, 10).ok()?;
    let power = usize::try_from(scale.unsigned_abs()).ok()?;
    if scale >= 0 {
        // 10^n = 5^n * 2^n
        let mantissa = mantissa * UBig::from(5_u8).pow(power);
        return representable(Big::round(negative, mantissa, scale + shift, false, precision));
    }
    let divisor = UBig::from(5_u8).pow(power);
    let room = (precision as usize + 2 + divisor.bit_len()).saturating_sub(mantissa.bit_len());
    let numerator = mantissa << room;
    let quotient = &numerator / &divisor;
    let more = &quotient * &divisor != numerator;
    representable(Big::round(
        negative,
        quotient,
        scale + shift - room as i64,
        more,
        precision,
    ))
}

/// Returns the number, unless it was too large or too small: a decimal representation must become neither infinity nor zero.
fn representable(number: Big) -> Option<Big> {
    matches!(number.magnitude, Magnitude::Finite { .. }).then_some(number)
}

/// Reads an exponent, clamped to a range in which the sum of a few exponents cannot overflow.
fn parse_exponent(text: &str) -> Option<i64> {
    let (negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    if digits.is_empty() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let mut value = 0_i64;
    for digit in digits.bytes() {
        value = (value * 10 + i64::from(digit - b'0')).min(1 << 40);
    }
    Some(if negative { -value } else { value })
}

/// Returns the shortest decimal text, without exponent, that is parsed as this number at its precision.
pub(super) fn shortest(n: &Big) -> String {
    let sign = if n.negative { "-" } else { "" };
    let (mantissa, exponent) = match &n.magnitude {
        Magnitude::Zero => return format!("{sign}0"),
        // Go always writes the sign of an infinity.
        Magnitude::Infinite => return if n.negative { "-Inf".into() } else { "+Inf".into() },
        Magnitude::Finite { mantissa, exponent } => (mantissa, *exponent),
    };
    // A whole number with no more bits than the precision has no shorter form.
    if n.integer_bits().is_some_and(|bits| bits <= u64::from(n.precision))
        && let Ok(shift) = usize::try_from(exponent)
    {
        return format!("{sign}{}", mantissa << shift);
    }
    format!("{sign}{}", plain(&shortest_digits(mantissa, exponent, n.precision)))
}

/// Renders a number with ten significant digits, without trailing zeros, and with an exponent if it is small or large.
pub(super) fn ten_digits(n: &Big) -> String {
    let sign = if n.negative { "-" } else { "" };
    let mut decimal = match &n.magnitude {
        Magnitude::Zero => return format!("{sign}0"),
        Magnitude::Infinite => return if n.negative { "-Inf".into() } else { "+Inf".into() },
        Magnitude::Finite { mantissa, exponent } => exact(mantissa, *exponent),
    };
    decimal.round(10);
    let length = decimal.digits.len() as i64;
    // This is the rule of Go's verb `%.10g`.
    let limit = if length < 10 && length >= decimal.point {
        length
    } else {
        10
    };
    let exponent = decimal.point - 1;
    if (-4..limit).contains(&exponent) {
        return format!("{sign}{}", plain(&decimal));
    }
    let digits = text(&decimal.digits);
    let (first, rest) = digits.split_at(1);
    let dot = if rest.is_empty() { "" } else { "." };
    let exponent_sign = if exponent < 0 { '-' } else { '+' };
    format!("{sign}{first}{dot}{rest}e{exponent_sign}{:02}", exponent.abs())
}

/// Returns all digits of `mantissa * 2^exponent`.
pub(super) fn exact(mantissa: &UBig, exponent: i64) -> Decimal {
    // 2^-n = 5^n / 10^n
    let steps = usize::try_from(exponent.unsigned_abs()).unwrap_or_default();
    let (whole, point) = if exponent >= 0 {
        (mantissa << steps, 0)
    } else {
        (mantissa * UBig::from(5_u8).pow(steps), exponent)
    };
    let mut digits = whole.to_string().into_bytes();
    let point = point + digits.len() as i64;
    digits.iter_mut().for_each(|d| *d -= b'0');
    let mut decimal = Decimal { digits, point };
    decimal.trim();
    decimal
}

/// Returns the shortest decimal that differs from `mantissa * 2^exponent` by at most half a unit in the last binary place, so that it is
/// parsed as the same number.
fn shortest_digits(mantissa: &UBig, exponent: i64, precision: u32) -> Decimal {
    let mut decimal = exact(mantissa, exponent);
    // The mantissa gets one bit more than its precision, so that 1 is half a unit.
    let room = (precision as usize + 1).saturating_sub(mantissa.bit_len());
    let wide = mantissa << room;
    let wide_exponent = exponent - room as i64;
    // At exactly half a unit, the reader rounds to an even mantissa.
    let even = !wide.bit(1);
    let lower = exact(&(&wide - UBig::ONE), wide_exponent);
    let upper = exact(&(&wide + UBig::ONE), wide_exponent);
    // A bound may have one digit more or fewer before the point than the number.
    let (lower_offset, upper_offset) = (decimal.point - lower.point, decimal.point - upper.point);
    if upper_offset != 0 || lower_offset != 0 {
        return shortest_across_power(decimal, &lower, &upper, even);
    }
    for i in 0..decimal.digits.len() {
        let digit = decimal.digits[i];
        let at = |d: &Decimal| d.digits.get(i).copied().unwrap_or(0);
        let (low, high) = (at(&lower), at(&upper));
        let down = low != digit || even && i + 1 == lower.digits.len();
        let up = digit != high && (even || digit + 1 < high || i + 1 < upper.digits.len());
        match (down, up) {
            (true, true) => decimal.round(i + 1),
            (true, false) => decimal.cut(i + 1),
            (false, true) => decimal.raise(i + 1),
            (false, false) => continue,
        }
        break;
    }
    decimal
}

/// Computes the digits as [`shortest_digits`] does, if the interval crosses a power of ten: digit positions differ, so whole
/// decimals are compared.
fn shortest_across_power(decimal: Decimal, lower: &Decimal, upper: &Decimal, even: bool) -> Decimal {
    for count in 1..decimal.digits.len() {
        let mut down = Decimal {
            digits: decimal.digits.clone(),
            point: decimal.point,
        };
        down.cut(count);
        let mut up = Decimal {
            digits: decimal.digits.clone(),
            point: decimal.point,
        };
        up.raise(count);
        let down_fits = match down.compare(lower) {
            std::cmp::Ordering::Greater => true,
            // A number at the end of the interval is read as the even mantissa.
            std::cmp::Ordering::Equal => even,
            std::cmp::Ordering::Less => false,
        };
        let up_fits = match up.compare(upper) {
            std::cmp::Ordering::Less => true,
            std::cmp::Ordering::Equal => even,
            std::cmp::Ordering::Greater => false,
        };
        match (down_fits, up_fits) {
            (true, true) => {
                let mut nearest = decimal;
                nearest.round(count);
                return nearest;
            }
            (true, false) => return down,
            (false, true) => return up,
            (false, false) => {}
        }
    }
    decimal
}

impl Decimal {
    fn trim(&mut self) {
        while self.digits.last() == Some(&0) {
            self.digits.pop();
        }
        if self.digits.is_empty() {
            self.point = 0;
        }
    }

    fn compare(&self, other: &Decimal) -> std::cmp::Ordering {
        self.point
            .cmp(&other.point)
            .then_with(|| self.digits.cmp(&other.digits))
    }

    /// Rounds to a number of digits, half to even.
    fn round(&mut self, count: usize) {
        if count >= self.digits.len() {
            return;
        }
        let exactly_half = self.digits[count] == 5 && count + 1 == self.digits.len();
        let up = if exactly_half {
            count > 0 && self.digits[count - 1] % 2 == 1
        } else {
            self.digits[count] >= 5
        };
        if up { self.raise(count) } else { self.cut(count) }
    }

    /// Rounds to a number of digits, toward zero.
    fn cut(&mut self, count: usize) {
        self.digits.truncate(count);
        self.trim();
    }

    /// Rounds to a number of digits, away from zero.
    fn raise(&mut self, count: usize) {
        if count >= self.digits.len() {
            return;
        }
        self.digits.truncate(count);
        while let Some(last) = self.digits.pop() {
            if last < 9 {
                self.digits.push(last + 1);
                return;
            }
        }
        self.digits.push(1);
        self.point += 1;
    }
}

fn text(digits: &[u8]) -> String {
    digits.iter().map(|d| char::from(b'0' + d)).collect()
}

/// Renders the digits with a point and the zeros it needs.
fn plain(decimal: &Decimal) -> String {
    let digits = text(&decimal.digits);
    let length = digits.len() as i64;
    let zeros = |n: i64| "0".repeat(usize::try_from(n).unwrap_or_default());
    if decimal.point <= 0 {
        format!("0.{}{digits}", zeros(-decimal.point))
    } else if decimal.point >= length {
        format!("{digits}{}", zeros(decimal.point - length))
    } else {
        let (whole, fraction) = digits.split_at(usize::try_from(decimal.point).unwrap_or_default());
        format!("{whole}.{fraction}")
    }
}
