//! Numbers, against what Terraform prints.
use super::Number;
#[test]
fn numbers() {
    let p = |s: &str| Number::parse(s).unwrap();
    let show = |s: &str| p(s).to_string();
    for (a, b) in [
        ("1e400".to_string(), format!("1{}", "0".repeat(400))),
        ("-0".into(), "-0".into()),
        ("0.1".into(), "0.1".into()),
        ("1e-7".into(), "0.0000001".into()),
        ("1e999999999".into(), "+Inf".into()),
        ("1e-999999999".into(), "0".into()),
        ("+5".into(), "5".into()),
        (".5".into(), "0.5".into()),
        ("5.".into(), "5".into()),
        ("1p3".into(), "8".into()),
    ] {
        assert_eq!(show(&a), b, "{a}");
    }
    assert_eq!(
        p("1").div(&p("3")).unwrap().to_string(),
        "0.33333333333333333333333333333333333333333333333333333333333333333333333333333333333333333333333333333333333333333333333333333333333333333333333333333333335"
    );
    assert_eq!(p("0.1").add(&p("0.2")).unwrap().to_string(), "0.3");
    assert_eq!(
        p("5.5").rem(&p("0.3")).unwrap().to_string(),
        "0.09999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999999988"
    );
    let f = |n: f64| Number::from_f64(n).unwrap();
    assert_eq!(f(2f64.powi(64)).to_string(), "18446744073709550000");
    assert_eq!(
        f(2f64.powi(64)).add(&p("0")).unwrap().to_string(),
        "18446744073709551616"
    );
    assert_eq!(
        f(2f64.powi(64)).add(&f(2.0)).unwrap().to_string(),
        "18446744073709550000"
    );
    assert_eq!(
        f(2f64.powi(64)).mul(&f(2.0)).unwrap().to_string(),
        "36893488147419100000"
    );
    assert_eq!(
        f(2f64.powi(64)).mul(&p("3")).unwrap().to_string(),
        "55340232221128654848"
    );
    assert_eq!(f(2f64.powi(62)).to_string(), "4611686018427388000");
    assert_eq!(
        Number::from(1).div(&Number::from(3)).unwrap().to_string(),
        "0.33333333333333333334"
    );
}
