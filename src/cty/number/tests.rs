//! Tests of numbers, compared with Terraform's output.

use proptest::prelude::*;

use super::Number;

fn p(text: &str) -> Number {
    Number::parse(text).unwrap()
}

fn f(n: f64) -> Number {
    Number::from_f64(n).unwrap()
}

#[test]
fn text_to_number_to_text() {
    let long = format!("1{}", "0".repeat(400));
    for (text, shown) in [
        ("0", "0"),
        ("-0", "-0"),
        ("017", "17"),
        ("+5", "5"),
        (".5", "0.5"),
        ("5.", "5"),
        ("1.50", "1.5"),
        ("1e5", "100000"),
        ("1.5E+3", "1500"),
        ("1p3", "8"),
        ("3p-1", "1.5"),
        ("0.1", "0.1"),
        ("1e-7", "0.0000001"),
        ("1e400", &long),
        ("9223372036854775807", "9223372036854775807"),
        ("-9223372036854775808", "-9223372036854775808"),
        ("9223372036854775808", "9223372036854775808"),
        (
            "123456789012345678901234567890.123456789",
            "123456789012345678901234567890.123456789",
        ),
        ("Inf", "+Inf"),
        ("-inf", "-Inf"),
    ] {
        assert_eq!(p(text).to_string(), shown, "{text}");
    }
    for text in [
        "", "-", ".", "e5", "1e", "1e+", "0x10", "0b11", "1_0", " 5", "5 ", "nan", "1.2.3", "--1", "infinity", "é",
    ] {
        assert!(Number::parse(text).is_none(), "{text:?}");
    }
}

#[test]
fn huge_exponents_take_constant_time() {
    for text in [
        "1e999999999",
        "-1e99999999999999999999999",
        "1e-999999999",
        "1p999999999",
    ] {
        assert_eq!(Number::parse(text), None, "{text}");
    }
    // Near the limit, a text is either an ordinary number or refused, but never infinity or zero.
    for exponent in (300_000..360_000).step_by(4_999) {
        for text in [
            format!("991e{exponent}"),
            format!("1e-{exponent}"),
            format!("-9p{}", exponent * 4),
        ] {
            let number = Number::parse(&text);
            assert!(number.is_none_or(|n| !n.is_infinite() && !n.is_zero()), "{text}");
        }
    }
    assert_eq!(Number::parse(&format!("0.{}1e999999999", "0".repeat(1000))), None);
    assert_eq!(Number::parse(&format!("1{}e-999999999", "0".repeat(1000))), None);
    // Arithmetic does not produce numbers beyond the limit either.
    let mut n = p("1e300");
    for _ in 0..64 {
        n = n.mul(&n).unwrap();
    }
    assert!(n.is_infinite());
    assert!(
        p("1")
            .div(&p("1e300000"))
            .unwrap()
            .add(&p("1e300000"))
            .unwrap()
            .is_integer()
    );
}

#[test]
fn arithmetic_is_exact_at_512_bits() {
    assert_eq!(p("0.1").add(&p("0.2")).unwrap(), p("0.3"));
    let third = "0.33333333333333333333333333333333333333333333333333333333333333333333333333333333333333333333333333333333333333333333333333333333333333333333333333333333335";
    assert_eq!(p("1").div(&p("3")).unwrap().to_string(), third);
    assert_eq!(
        p("9223372036854775807").add(&p("1")).unwrap().to_string(),
        "9223372036854775808"
    );
    assert_eq!(p("-9223372036854775808").neg().to_string(), "9223372036854775808");
    assert_eq!(
        p("4294967296").mul(&p("4294967296")).unwrap().to_string(),
        "18446744073709551616"
    );
    assert_eq!(p("0").neg().to_string(), "-0");
    assert_eq!(p("0").mul(&p("-1")).unwrap().to_string(), "-0");
    assert_eq!(p("0").sub(&p("0")).unwrap().to_string(), "0");
}

#[test]
fn the_precision_shows_in_digits() {
    let big = f(2_f64.powi(64));
    assert_eq!(big.to_string(), "18446744073709550000");
    assert_eq!(f(2_f64.powi(62)).to_string(), "4611686018427388000");
    assert_eq!(big.floor().to_string(), "18446744073709550000");
    assert_eq!(big.add(&f(2.0)).unwrap().to_string(), "18446744073709550000");
    assert_eq!(big.mul(&f(2.0)).unwrap().to_string(), "36893488147419100000");
    assert_eq!(big.add(&p("0")).unwrap().to_string(), "18446744073709551616");
    assert_eq!(big.mul(&p("3")).unwrap().to_string(), "55340232221128654848");
    assert_eq!(
        Number::from(1).div(&Number::from(3)).unwrap().to_string(),
        "0.33333333333333333334"
    );
    assert_eq!(f(0.1).to_string(), "0.1");
    let exact = "0.1000000000000000055511151231257827021181583404541015625";
    assert_eq!(f(0.1).add(&p("0")).unwrap().to_string(), exact);
}

#[test]
fn equality_compares_integers_exactly_and_fractions_by_decimal_representation() {
    assert_eq!(f(2_f64.powi(64)), p("18446744073709551616"));
    assert_ne!(f(2_f64.powi(64)), p("18446744073709550000"));
    assert_eq!(f(0.1), p("0.1"));
    assert_ne!(f(0.1).add(&p("0")).unwrap(), p("0.1"));
    assert_eq!(p("-0"), p("0"));
    assert_ne!(p("0.5"), p("-0.5"));
    assert_eq!(Number::infinity(), f(f64::INFINITY));
}

#[test]
fn division_and_remainder_at_the_edges() {
    assert!(p("1").div(&p("0")).unwrap().is_infinite());
    assert_eq!(p("1").div(&p("-0")).unwrap(), Number::neg_infinity());
    assert!(p("0").div(&p("0")).is_none());
    assert!(Number::infinity().div(&Number::infinity()).is_none());
    assert!(Number::infinity().sub(&Number::infinity()).is_none());
    assert!(Number::infinity().mul(&p("0")).is_none());
    for (a, b, rest) in [
        ("5.5", "2", "1.5"),
        ("-5.5", "2", "-1.5"),
        ("5", "-3", "2"),
        ("-7", "3", "-1"),
        ("1", "0", "1"),
    ] {
        assert_eq!(p(a).rem(&p(b)).unwrap().to_string(), rest, "{a} % {b}");
    }
    assert!(p("5").rem(&Number::infinity()).is_none());
    assert_eq!(p("-9223372036854775808").rem(&p("-1")).unwrap(), p("0"));
}

#[test]
fn rounding() {
    for (n, floor, ceil, trunc) in [
        ("1.5", "1", "2", "1"),
        ("-1.5", "-2", "-1", "-1"),
        ("-0.5", "-1", "0", "0"),
        ("7", "7", "7", "7"),
    ] {
        let n = p(n);
        assert_eq!(
            [n.floor(), n.ceil(), n.trunc()].map(|n| n.to_string()),
            [floor, ceil, trunc],
            "{n}"
        );
    }
    assert!(Number::infinity().floor().is_infinite());
}

#[test]
fn machine_numbers() {
    assert_eq!(p("1e3").to_i64(), Some(1000));
    assert_eq!(p("1.5").to_i64(), None);
    assert_eq!(p("-1").to_u64(), None);
    assert_eq!(Number::from(u64::MAX).to_u64(), Some(u64::MAX));
    assert_eq!(Number::from(u64::MAX).to_string(), u64::MAX.to_string());
    assert_eq!(p("1e400").to_f64(), f64::INFINITY);
    assert_eq!(p("1e-400").to_f64(), 0.0);
    assert_eq!(p("0.1").to_f64_exact(), None);
    assert_eq!(p("0.5").to_f64_exact(), Some(0.5));
    assert!(Number::from_f64(f64::NAN).is_none());
}

#[test]
fn ten_digits_as_go_writes_them() {
    for (n, text) in [
        ("0", "0"),
        ("100", "100"),
        ("1234567890", "1234567890"),
        ("12345678901", "1.23456789e+10"),
        ("12345678951", "1.234567895e+10"),
        ("1e30", "1e+30"),
        ("0.0001", "0.0001"),
        ("0.00001", "1e-05"),
        ("-2.5", "-2.5"),
        ("3.14159265358979", "3.141592654"),
        ("99999999999", "1e+11"),
    ] {
        assert_eq!(p(n).to_ten_digits(), text, "{n}");
    }
}

proptest! {
    #[test]
    fn text_reads_back(n in crate::testing::number()) {
        let text = n.to_string();
        prop_assert_eq!(p(&text).to_string(), text);
    }

    #[test]
    fn doubles_round_trip(bits in any::<u64>()) {
        let n = f64::from_bits(bits);
        prop_assume!(!n.is_nan());
        prop_assert_eq!(f(n).to_f64().to_bits(), n.to_bits());
        if n.is_finite() {
            prop_assert_eq!(f(n).to_string().parse::<f64>().unwrap().to_bits(), n.to_bits());
        }
    }

    #[test]
    fn text_rounds_to_the_nearest_double(text in "-?[0-9]{1,20}\\.[0-9]{1,20}(e-?[0-9]{1,3})?") {
        // The number is rounded to 512 bits and then to 53. The result differs from rounding once only in cases
        // too rare to occur here.
        prop_assert_eq!(p(&text).to_f64(), text.parse::<f64>().unwrap());
    }

    #[test]
    fn integer_arithmetic_equals_that_of_machine_integers(a in any::<i64>(), b in any::<i64>()) {
        let (x, y) = (Number::from(a), p(&b.to_string()));
        let (a, b) = (i128::from(a), i128::from(b));
        prop_assert_eq!(x.add(&y).unwrap().to_string(), (a + b).to_string());
        prop_assert_eq!(x.sub(&y).unwrap().to_string(), (a - b).to_string());
        prop_assert_eq!(x.mul(&y).unwrap(), p(&(a * b).to_string()));
        prop_assert_eq!(x.compare(&y), a.cmp(&b));
        prop_assert_eq!(x == y, a == b);
        if b != 0 {
            prop_assert_eq!(y.rem(&x.abs().add(&p("1")).unwrap()).unwrap(), p(&(b % (a.abs() + 1)).to_string()));
        }
    }

    #[test]
    fn sums_do_not_depend_on_the_order(a in crate::testing::number(), b in crate::testing::number()) {
        let (a, b) = (a.add(&p("0")).unwrap(), b.add(&p("0")).unwrap());
        let sum = a.add(&b).unwrap();
        prop_assert_eq!(sum.compare(&b.add(&a).unwrap()), std::cmp::Ordering::Equal);
        let away = sum.compare(&a);
        prop_assert!(away.is_eq() || away == b.compare(&Number::ZERO));
    }
}
