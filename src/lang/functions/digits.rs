//! Decimal forms of numbers for `format`: fixed, with an exponent, or the shorter one of these.

use cty::Number;

/// A decimal number: sign, significant digits, and the position of the point, counted from the first digit. 0.0123 has
/// the digits 123 and the point at -1.
struct Digits {
    negative: bool,
    digits: Vec<u8>,
    point: i64,
}

impl Digits {
    /// Returns all digits of the exact value, or the shortest ones if the number has no exact digits.
    fn exact(number: &Number) -> Digits {
        match number.exact_digits() {
            Some((negative, digits, point)) => Digits {
                negative,
                digits,
                point,
            },
            None => Digits::shortest(number),
        }
    }

    /// Returns the fewest digits that identify this number at its precision.
    fn shortest(number: &Number) -> Digits {
        let text = number.to_string();
        let negative = text.starts_with('-');
        let text = text.trim_start_matches('-');
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let all: Vec<u8> = whole
            .bytes()
            .chain(fraction.bytes())
            .map(|b| b.wrapping_sub(b'0'))
            .collect();
        let leading = all.iter().take_while(|d| **d == 0).count();
        let mut digits = all[leading..].to_vec();
        while digits.last() == Some(&0) {
            digits.pop();
        }
        let point = if digits.is_empty() {
            0
        } else {
            whole.len() as i64 - leading as i64
        };
        Digits {
            negative,
            digits,
            point,
        }
    }

    /// Rounds to a number of digits, half to even.
    fn round(&mut self, keep: i64) {
        let Ok(keep) = usize::try_from(keep) else {
            self.digits.clear();
            return;
        };
        if keep >= self.digits.len() {
            return;
        }
        let rest = &self.digits[keep..];
        let half = rest[0] == 5 && rest[1..].iter().all(|d| *d == 0);
        // Rounds like Go's formatter, because Terraform shows its results.
        let up = if half {
            keep > 0 && self.digits[keep - 1] % 2 == 1
        } else {
            rest[0] >= 5
        };
        self.digits.truncate(keep);
        if up {
            let mut i = keep;
            loop {
                // The carry reaches beyond the first digit, as in 9.9, which becomes 10.
                if i == 0 {
                    self.digits.insert(0, 1);
                    self.point += 1;
                    break;
                }
                i -= 1;
                if self.digits[i] == 9 {
                    self.digits[i] = 0;
                } else {
                    self.digits[i] += 1;
                    break;
                }
            }
        }
        while self.digits.last() == Some(&0) {
            self.digits.pop();
        }
    }

    fn digit(&self, i: i64) -> char {
        let digit = usize::try_from(i)
            .ok()
            .and_then(|i| self.digits.get(i))
            .copied()
            .unwrap_or(0);
        char::from(b'0' + digit)
    }

    fn sign(&self) -> &'static str {
        if self.negative { "-" } else { "" }
    }

    fn fixed(&self, precision: usize) -> String {
        let mut out = String::from(self.sign());
        if self.point <= 0 {
            out.push('0');
        }
        for i in 0..self.point.max(0) {
            out.push(self.digit(i));
        }
        if precision > 0 {
            out.push('.');
            for i in 0..precision as i64 {
                out.push(self.digit(self.point + i));
            }
        }
        out
    }

    fn exponent(&self, precision: usize, e: char) -> String {
        let mut out = format!("{}{}", self.sign(), self.digit(0));
        if precision > 0 {
            out.push('.');
            for i in 1..=precision as i64 {
                out.push(self.digit(i));
            }
        }
        let power = if self.digits.is_empty() { 0 } else { self.point - 1 };
        out.push_str(&format!("{e}{}{:02}", if power < 0 { '-' } else { '+' }, power.abs()));
        out
    }
}

fn infinite(number: &Number) -> Option<String> {
    number.is_infinite().then(|| {
        if number.is_negative() {
            "-Inf".into()
        } else {
            "+Inf".into()
        }
    })
}

/// Formats as `%f`.
pub(super) fn fixed(number: &Number, precision: usize) -> String {
    infinite(number).unwrap_or_else(|| {
        let mut digits = Digits::exact(number);
        digits.round(digits.point + precision as i64);
        digits.fixed(precision)
    })
}

/// Formats as `%e`.
pub(super) fn exponent(number: &Number, precision: usize, e: char) -> String {
    infinite(number).unwrap_or_else(|| {
        let mut digits = Digits::exact(number);
        digits.round(precision as i64 + 1);
        digits.exponent(precision, e)
    })
}

/// Formats as `%g`: with as many digits as needed, and with an exponent for small and large numbers.
pub(super) fn general(number: &Number, precision: Option<usize>, mode: char) -> String {
    if let Some(text) = infinite(number) {
        return text;
    }
    let e = if mode == 'E' { 'E' } else { 'e' };
    if number.is_zero() {
        return if number.is_minus_zero() { "-0" } else { "0" }.to_owned();
    }
    let mut digits = match precision {
        Some(_) => Digits::exact(number),
        None => Digits::shortest(number),
    };
    // As in Go's %g, an exponent is written if it is below -4, or not below the number of digits, which is 6
    // for the shortest form.
    let mut limit = 6;
    if let Some(precision) = precision {
        let precision = precision.max(1) as i64;
        digits.round(precision);
        let used = digits.digits.len() as i64;
        limit = if precision > used && used >= digits.point {
            used
        } else {
            precision
        };
    }
    let power = if digits.digits.is_empty() { 0 } else { digits.point - 1 };
    if power < -4 || power >= limit {
        digits.exponent(digits.digits.len().saturating_sub(1), e)
    } else {
        digits.fixed(usize::try_from(digits.digits.len() as i64 - digits.point).unwrap_or(0))
    }
}
