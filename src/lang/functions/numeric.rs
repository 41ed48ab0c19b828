//! Functions for numbers.

use cty::{Number, Type, Value};

use super::{
    CallError, CallResult, Function, FunctionEnvironment, Returns, any, integer, number, sequence, text, unknown,
};

pub(super) const FUNCTIONS: &[Function] = &[
    Function::new("abs", &[number("num").dynamic()], Returns::Number, |a, _, _| {
        one(a, Number::abs)
    }),
    Function::new("ceil", &[number("num")], Returns::Number, |a, _, _| {
        one(a, Number::ceil)
    }),
    Function::new("floor", &[number("num")], Returns::Number, |a, _, _| {
        one(a, Number::floor)
    }),
    Function::new("log", &[number("num"), number("base")], Returns::Number, |a, _, _| {
        double(a, |n, b| logarithm(n) / logarithm(b))
    }),
    Function::new("max", &[], Returns::Number, |a, _, _| extreme(a, |x, y| x > y))
        .variadic(number("numbers").dynamic()),
    Function::new("min", &[], Returns::Number, |a, _, _| extreme(a, |x, y| x < y))
        .variadic(number("numbers").dynamic()),
    Function::new(
        "parseint",
        &[any("number"), number("base")],
        Returns::By(parseint_type),
        parseint,
    ),
    Function::new("pow", &[number("num"), number("power")], Returns::Number, |a, _, _| {
        double(a, power)
    }),
    Function::new("range", &[], Returns::ListOfNumber, range).variadic(number("params")),
    Function::new("signum", &[number("num")], Returns::Number, |a, _, _| {
        Ok(Value::number(integer(a, 0)?.signum()))
    }),
    Function::new("sum", &[any("list")], Returns::By(|_| Ok(Type::Number)), sum),
];

fn get(args: &[Value], i: usize) -> Number {
    args.get(i)
        .and_then(Value::as_number)
        .cloned()
        .unwrap_or_else(|| Number::from(0i64))
}

fn one(args: &[Value], f: fn(&Number) -> Number) -> CallResult {
    Ok(Value::number(f(&get(args, 0))))
}

fn double(args: &[Value], f: fn(f64, f64) -> f64) -> CallResult {
    let result = f(get(args, 0).to_f64(), get(args, 1).to_f64());
    Number::from_f64(result)
        .map(Value::number)
        .ok_or_else(|| CallError::failed("the result is not a number"))
}

/// Raises a number to a power with the same result as Go's math.Pow, bit for bit, because results are stored in states.
/// The fraction of the exponent is applied by logarithm, the rest by squaring.
fn power(x: f64, y: f64) -> f64 {
    let special = x == 0.0 || x == 1.0 || y == 0.0 || y == 1.0 || !x.is_finite() || !y.is_finite();
    let size = y.abs();
    let (mut whole, mut fraction) = (size.trunc(), size.fract());
    if special || (x < 0.0 && fraction != 0.0) || whole >= 9.223_372_036_854_775e18 {
        return x.powf(y);
    }
    if size == 0.5 {
        return if y < 0.0 { 1.0 / x.sqrt() } else { x.sqrt() };
    }
    let mut result = 1.0;
    let mut exponent: i64 = 0;
    if fraction != 0.0 {
        if fraction > 0.5 {
            fraction -= 1.0;
            whole += 1.0;
        }
        result = (fraction * logarithm(x)).exp();
    }
    let (mut mantissa, mut scale) = split(x);
    #[allow(clippy::cast_possible_truncation, reason = "checked above")]
    let mut left = whole as i64;
    while left != 0 {
        if !(-4096..=4096).contains(&scale) {
            // The result overflows or underflows a double.
            return x.powf(y);
        }
        if left & 1 == 1 {
            result *= mantissa;
            exponent += scale;
        }
        mantissa *= mantissa;
        scale <<= 1;
        if mantissa.abs() < 0.5 {
            mantissa += mantissa;
            scale -= 1;
        }
        left >>= 1;
    }
    if y < 0.0 {
        result = 1.0 / result;
        exponent = -exponent;
    }
    // The number is multiplied in two steps, because 2 to the whole exponent may overflow a double.
    let half = exponent / 2;
    let two = |n: i64| 2f64.powi(i32::try_from(n).unwrap_or(i32::MAX));
    result * two(half) * two(exponent - half)
}

/// Natural logarithm by the series of fdlibm, as in Go, with the same result bit for bit. Other libraries round better,
/// but results of `log` are stored in states.
fn logarithm(x: f64) -> f64 {
    const SERIES: [f64; 7] = [
        f64::from_bits(0x3fe5_5555_5555_5593),
        f64::from_bits(0x3fd9_9999_9997_fa04),
        f64::from_bits(0x3fd2_4924_9422_9359),
        f64::from_bits(0x3fcc_71c5_1d8e_78af),
        f64::from_bits(0x3fc7_4664_96cb_03de),
        f64::from_bits(0x3fc3_9a09_d078_c69f),
        f64::from_bits(0x3fc2_f112_df3e_5244),
    ];
    // The logarithm of two is written in two parts. The first ends with zeros, so that its product with an
    // exponent is exact.
    const TWO_HIGH: f64 = f64::from_bits(0x3fe6_2e42_fee0_0000);
    const TWO_LOW: f64 = f64::from_bits(0x3dea_39ef_3579_3c76);
    if !x.is_finite() || x <= 0.0 {
        return x.ln();
    }
    let (mut fraction, mut power) = split(x);
    if fraction < std::f64::consts::FRAC_1_SQRT_2 {
        fraction *= 2.0;
        power -= 1;
    }
    let f = fraction - 1.0;
    #[expect(clippy::cast_precision_loss, reason = "an exponent has few bits")]
    let k = power as f64;
    let s = f / (2.0 + f);
    let s2 = s * s;
    let s4 = s2 * s2;
    let [l1, l2, l3, l4, l5, l6, l7] = SERIES;
    let odd = s2 * (l1 + s4 * (l3 + s4 * (l5 + s4 * l7)));
    let even = s4 * (l2 + s4 * (l4 + s4 * l6));
    let half_square = 0.5 * f * f;
    k * TWO_HIGH - ((half_square - (s * (half_square + odd + even) + k * TWO_LOW)) - f)
}

/// Splits a number into a fraction between a half and one, and a power of two.
fn split(x: f64) -> (f64, i64) {
    // A subnormal number is scaled up first, because its exponent bits are zero.
    let (x, shift) = if x.abs() < f64::MIN_POSITIVE {
        (x * 2f64.powi(64), 64)
    } else {
        (x, 0)
    };
    let bits = x.to_bits();
    let exponent = i64::try_from((bits >> 52) & 0x7ff).unwrap_or(0) - 1022;
    (f64::from_bits(bits & !(0x7ff << 52) | (1022 << 52)), exponent - shift)
}

fn extreme(args: &[Value], better: fn(&Number, &Number) -> bool) -> CallResult {
    if args.is_empty() {
        return Err(CallError::failed("must pass at least one number"));
    }
    let mut best = get(args, 0);
    for value in args.iter().filter_map(Value::as_number) {
        if better(value, &best) {
            best = value.clone();
        }
    }
    Ok(Value::number(best))
}

fn parseint_type(args: &[Value]) -> CallResult<Type> {
    match args.first().map(Value::ty) {
        Some(Type::String) | None => Ok(Type::Number),
        Some(other) => Err(CallError::argument(
            0,
            format!("first argument must be a string, not {}", other.friendly_name()),
        )),
    }
}

/// Limit on digits: more than any number of the language has.
const MAX_DIGITS: usize = 2048;

fn parseint(args: &[Value], _: &Type, _: &FunctionEnvironment<'_>) -> CallResult {
    let input = text(args, 0);
    let base = integer(args, 1).map_err(|_| CallError::argument(1, super::NOT_WHOLE))?;
    if !(2..=62).contains(&base) {
        return Err(CallError::argument(1, "the base must be between 2 and 62"));
    }
    let invalid = || CallError::argument(0, format!("cannot parse {input:?} as a base {base} integer"));
    let (negative, digits) = match input.as_bytes().first() {
        Some(b'-') => (true, &input[1..]),
        Some(b'+') => (false, &input[1..]),
        _ => (false, input),
    };
    if digits.is_empty() || digits.len() > MAX_DIGITS {
        return Err(invalid());
    }
    // These are the decimal digits of the number, the last one first.
    let mut decimal: Vec<i64> = vec![0];
    for c in digits.chars() {
        let digit = match c {
            '0'..='9' => i64::from(u32::from(c) - u32::from('0')),
            'a'..='z' => i64::from(u32::from(c) - u32::from('a')) + 10,
            'A'..='Z' if base <= 36 => i64::from(u32::from(c) - u32::from('A')) + 10,
            'A'..='Z' => i64::from(u32::from(c) - u32::from('A')) + 36,
            _ => return Err(invalid()),
        };
        if digit >= base {
            return Err(invalid());
        }
        let mut carry = digit;
        for place in &mut decimal {
            carry += *place * base;
            *place = carry % 10;
            carry /= 10;
        }
        while carry > 0 {
            decimal.push(carry % 10);
            carry /= 10;
        }
    }
    // Whole numbers have no minus zero.
    let sign = if negative && decimal.iter().any(|d| *d != 0) {
        "-"
    } else {
        ""
    };
    let number: String = decimal.iter().rev().map(i64::to_string).collect();
    Number::parse(&format!("{sign}{number}"))
        .map(Value::number)
        .ok_or_else(invalid)
}

fn range(args: &[Value], _: &Type, environment: &FunctionEnvironment<'_>) -> CallResult {
    let zero = Number::from(0i64);
    let natural = |start: &Number, end: &Number| Number::from(if end < start { -1i64 } else { 1 });
    let (start, end, step) = match args.len() {
        1 => (zero.clone(), get(args, 0), natural(&zero, &get(args, 0))),
        2 => (get(args, 0), get(args, 1), natural(&get(args, 0), &get(args, 1))),
        3 => (get(args, 0), get(args, 1), get(args, 2)),
        _ => return Err(CallError::failed("must have one, two, or three arguments")),
    };
    let down = step.is_negative();
    if down && end > start {
        return Err(CallError::argument(
            1,
            "a negative step leads downwards, and the end lies above the start",
        ));
    }
    if !down && end < start {
        return Err(CallError::argument(
            1,
            "a positive step leads upwards, and the end lies below the start",
        ));
    }
    let most = environment.settings.max_range();
    let mut values = Vec::new();
    let mut at = start;
    // If the end and the current number have different precisions, `==` may be false although they compare as equal.
    // The end is included then, as in Terraform.
    let beyond = if down {
        std::cmp::Ordering::Less
    } else {
        std::cmp::Ordering::Greater
    };
    while at != end && at.compare(&end) != beyond {
        if values.len() as u64 >= most {
            return Err(CallError::failed(format!(
                "the range would have more than {most} numbers; choose a wider step or a nearer end"
            )));
        }
        values.push(Value::number(at.clone()));
        at = at
            .add(&step)
            .ok_or_else(|| CallError::failed("the step leads out of the range of numbers"))?;
    }
    Ok(Value::list(Type::Number, values))
}

fn sum(args: &[Value], ty: &Type, _: &FunctionEnvironment<'_>) -> CallResult {
    let list = &args[0];
    if list.ty().is_primitive() {
        return Err(CallError::argument(0, "cannot sum noniterable"));
    }
    if list.len() == Some(0) {
        return Err(CallError::argument(0, "cannot sum an empty list"));
    }
    let Some(items) = list.as_seq() else {
        return Err(CallError::argument(
            0,
            format!(
                "argument must be list, set, or tuple. Received {}",
                list.ty().friendly_name()
            ),
        ));
    };
    if !list.is_wholly_known() {
        return unknown(ty);
    }
    // The sum begins with the first element, so that a single number stays unchanged.
    let mut total: Option<Number> = None;
    for item in sequence(list).iter().take(items.len()) {
        let number = cty::convert(item, &Type::Number)
            .ok()
            .and_then(|n| n.as_number().cloned())
            .ok_or_else(|| CallError::argument(0, "must be a list, a set or a tuple of numbers"))?;
        total = Some(match total {
            None => number,
            Some(total) => total
                .add(&number)
                .ok_or_else(|| CallError::failed("the sum of opposite infinities is not defined"))?,
        });
    }
    Ok(Value::number(total.unwrap_or_else(|| Number::from(0i64))))
}
