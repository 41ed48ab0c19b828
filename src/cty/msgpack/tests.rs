//! Tests of the msgpack form, byte for byte.

use proptest::prelude::*;

use super::{decode, encode};
use crate::testing::typed_value;
use crate::{Marks, Number, Refinements, Type, Value};

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|b| format!("{b:02x}")).collect()
}

/// Checks that the value has exactly this encoding, and that the encoding is decoded to the value.
#[track_caller]
fn check(value: &Value, ty: &Type, form: &str) {
    let bytes = encode(value, ty).unwrap();
    assert_eq!(hex(&bytes), form);
    assert_eq!(decode(&bytes, ty).unwrap(), *value);
}

fn parsed(text: &str) -> Value {
    Value::number(Number::parse(text).unwrap())
}

#[test]
fn primitives() {
    check(&Value::null(Type::String), &Type::String, "c0");
    check(&Value::bool(true), &Type::Bool, "c3");
    check(&Value::bool(false), &Type::Bool, "c2");
    check(&Value::string("hi"), &Type::String, "a26869");
    check(&Value::string("é"), &Type::String, "a2c3a9");
    assert_eq!(
        hex(&encode(&Value::string("x".repeat(32)), &Type::String).unwrap()[..2]),
        "d920"
    );
    assert_eq!(
        hex(&encode(&Value::string("x".repeat(256)), &Type::String).unwrap()[..3]),
        "da0100"
    );
    assert_eq!(
        hex(&encode(&Value::string("x".repeat(70000)), &Type::String).unwrap()[..5]),
        "db00011170"
    );
}

#[test]
fn numbers_have_the_shortest_exact_form() {
    for (n, form) in [
        (0, "00"),
        (127, "7f"),
        (128, "cc80"),
        (255, "ccff"),
        (256, "cd0100"),
        (65535, "cdffff"),
        (65536, "ce00010000"),
        (1 << 32, "cf0000000100000000"),
        (i64::MAX, "cf7fffffffffffffff"),
        (-1, "ff"),
        (-32, "e0"),
        (-33, "d0df"),
        (-128, "d080"),
        (-129, "d1ff7f"),
        (-32769, "d2ffff7fff"),
        (i64::MIN, "d38000000000000000"),
    ] {
        check(&Value::number(n), &Type::Number, form);
    }
    check(&parsed("1.5"), &Type::Number, "cb3ff8000000000000");
    check(&parsed("0.1"), &Type::Number, "a3302e31");
    check(&Value::number(Number::infinity()), &Type::Number, "cb7ff0000000000000");
    check(
        &Value::number(Number::neg_infinity()),
        &Type::Number,
        "cbfff0000000000000",
    );
    // Whole numbers beyond 64 bits are text, even if a double could hold them.
    check(
        &parsed("18446744073709551616"),
        &Type::Number,
        "b43138343436373434303733373039353531363136",
    );
    assert_eq!(decode(&[0xca, 0x3f, 0xc0, 0, 0], &Type::Number).unwrap(), parsed("1.5"));
    assert_eq!(
        decode(&[0xcf, 255, 255, 255, 255, 255, 255, 255, 255], &Type::Number).unwrap(),
        Value::number(u64::MAX)
    );
}

#[test]
fn collections_and_objects() {
    let list = Value::list(Type::Number, vec![Value::number(2), Value::number(1)]);
    check(&list, list.ty(), "920201");
    let set = Value::set(Type::Number, vec![Value::number(2), Value::number(1), Value::number(2)]);
    check(&set, set.ty(), "920102");
    let map = Value::map(
        Type::Bool,
        [("b".into(), Value::bool(true)), ("a".into(), Value::bool(false))].into(),
    );
    check(&map, map.ty(), "82a161c2a162c3");
    let object = Value::object([("b", Value::string("x")), ("a", Value::null(Type::Number))]);
    check(&object, object.ty(), "82a161c0a162a178");
    check(&Value::empty_tuple(), &Type::tuple([]), "90");
    // The attributes can be in any order, but their names must be those of the type.
    assert_eq!(
        decode(&[0x82, 0xa1, b'b', 0xa1, b'x', 0xa1, b'a', 0xc0], object.ty()).unwrap(),
        object
    );
    assert!(decode(&[0x81, 0xa1, b'a', 0xc0], object.ty()).is_err());
    assert!(decode(&[0x82, 0xa1, b'a', 0xc0, 0xa1, b'a', 0xc0], object.ty()).is_err());
    let error = decode(&[0x82, 0xa1, b'a', 0xc0, 0xa1, b'c', 0xc0], object.ty()).unwrap_err();
    assert_eq!(error.to_string(), ".c: unsupported attribute");
}

#[test]
fn values_of_type_any_are_encoded_with_their_type() {
    check(&Value::string("x"), &Type::Dynamic, "92c40822737472696e6722a178");
    check(&Value::null(Type::Dynamic), &Type::Dynamic, "c0");
    check(&Value::dynamic(), &Type::Dynamic, "d40000");
    check(
        &Value::unknown(Type::String),
        &Type::Dynamic,
        "92c40822737472696e6722d40000",
    );
    let ty = Type::object([("a", Type::Dynamic)]);
    let value = Value::object([("a", Value::bool(true))]);
    let bytes = encode(&value, &ty).unwrap();
    assert_eq!(hex(&bytes), "81a16192c40622626f6f6c22c3");
    assert_eq!(decode(&bytes, &ty).unwrap(), value);
}

#[test]
fn refinements_are_encoded() {
    check(&Value::unknown(Type::String), &Type::String, "d40000");
    check(&Value::unknown_not_null(Type::String), &Type::String, "c7030c8101c2");
    let prefix = Refinements {
        prefix: Some("1".into()),
        ..Refinements::default()
    };
    check(
        &Value::unknown_refined(Type::String, prefix),
        &Type::String,
        "d60c8102a131",
    );
    let range = Refinements {
        number_min: Some((2.into(), true)),
        number_max: Some((4.into(), false)),
        ..Refinements::not_null()
    };
    check(
        &Value::unknown_refined(Type::Number, range),
        &Type::Number,
        "c70b0c8301c2039202c3049204c2",
    );
    let length = Refinements {
        length_min: Some(1),
        length_max: Some(3),
        ..Refinements::default()
    };
    let list = Type::list(Type::Bool);
    check(&Value::unknown_refined(list.clone(), length), &list, "c7050c8205010603");
    // A long prefix is cut, but not within characters that may combine.
    let prefix = Refinements {
        prefix: Some("é".repeat(200).into()),
        ..Refinements::default()
    };
    let bytes = encode(&Value::unknown_refined(Type::String, prefix), &Type::String).unwrap();
    let decoded = decode(&bytes, &Type::String).unwrap();
    assert_eq!(
        decoded.refinements().unwrap().prefix.as_deref(),
        Some("é".repeat(126).as_str())
    );
}

#[test]
fn invalid_refinements_are_refused() {
    let string = |bytes: &[u8]| decode(bytes, &Type::String);
    // Any extension of one byte is a plain unknown value.
    assert_eq!(string(&[0xd4, 0x63, 0x07]).unwrap(), Value::unknown(Type::String));
    // Invalid: another code, a bound for a string, and a refinement of later versions.
    assert!(string(&[0xd5, 0x05, 0x81, 0x01]).is_err());
    assert!(string(&[0xc7, 0x05, 0x0c, 0x81, 0x03, 0x92, 0x01, 0xc3]).is_err());
    assert_eq!(
        string(&[0xc7, 0x04, 0x0c, 0x81, 0x63, 0x91, 0x01]).unwrap(),
        Value::unknown(Type::String)
    );
    assert_eq!(
        decode(&[0xc7, 0x03, 0x0c, 0x81, 0x01, 0xc2], &Type::Dynamic).unwrap(),
        Value::dynamic()
    );
    assert_eq!(
        string(&[0xc7, 0x03, 0x0c, 0x81, 0x01, 0xc3]).unwrap(),
        Value::null(Type::String)
    );
    let mut long = vec![0xc8, 0x04, 0x01, 0x0c];
    long.extend([0; 1025]);
    assert!(string(&long).is_err());
}

#[test]
fn hostile_bytes_are_errors() {
    let reason = |bytes: &[u8], ty: &Type| decode(bytes, ty).unwrap_err().message;
    // Lengths far beyond the data, an empty message, bytes after the value.
    let end = "unexpected end of data";
    assert_eq!(reason(&[0xdd, 0xff, 0xff, 0xff, 0xff], &Type::list(Type::Bool)), end);
    assert_eq!(reason(&[0xdf, 0xff, 0xff, 0xff, 0xff], &Type::map(Type::Bool)), end);
    assert_eq!(reason(&[0xdb, 0xff, 0xff, 0xff, 0xff], &Type::String), end);
    assert_eq!(reason(&[], &Type::Bool), end);
    assert_eq!(reason(&[0xc3, 0xc3], &Type::Bool), "unexpected bytes after the value");
    assert_eq!(reason(&[0xa1, 0xff], &Type::String), "text is not valid UTF-8");
    assert_eq!(
        reason(&[0xcb, 0x7f, 0xf8, 0, 0, 0, 0, 0, 0], &Type::Number),
        "number is required"
    );
    // A type `any` inside a value of type `any`, repeatedly.
    let mut deep = Vec::new();
    for _ in 0..100_000 {
        deep.extend([0x92, 0xa9]);
        deep.extend(b"\"dynamic\"");
    }
    assert_eq!(reason(&deep, &Type::Dynamic), "the value is nested too deeply");
    // Refinements of an unknown value with deep nesting under an unknown key.
    let mut deep = vec![0xc8, 0x03, 0xe8, 0x0c, 0x81, 0x63];
    deep.extend([0x91; 998]);
    assert_eq!(reason(&deep, &Type::String), "the value is nested too deeply");
}

#[test]
fn marks_are_not_written() {
    let marked = Value::object([("a", Value::string("s").with_marks(Marks::SENSITIVE))]);
    let error = encode(&marked, marked.ty()).unwrap_err();
    assert_eq!(error.path.to_string(), ".a");
}

#[test]
fn elements_that_leave_their_type_open_take_that_of_the_others() {
    let ty = Type::list(Type::list(Type::Dynamic));
    let value = Value::list(
        Type::list(Type::Bool),
        vec![
            Value::list(Type::Bool, vec![]),
            Value::list(Type::Bool, vec![Value::bool(true)]),
            Value::null(Type::list(Type::Bool)),
        ],
    );
    assert_eq!(decode(&encode(&value, &ty).unwrap(), &ty).unwrap(), value);
    let differing = [
        0x92, 0x92, 0xa6, b'"', b'b', b'o', b'o', b'l', b'"', 0xc3, 0x92, 0xa8, b'"', b'n', b'u', b'm', b'b', b'e',
        b'r', b'"', 0x01,
    ];
    assert!(decode(&differing, &Type::list(Type::Dynamic)).is_err());
}

proptest! {
    #[test]
    fn values_round_trip(value in typed_value(true)) {
        let bytes = encode(&value, value.ty()).unwrap();
        prop_assert_eq!(&decode(&bytes, value.ty()).unwrap(), &value);
        let bytes = encode(&value, &Type::Dynamic).unwrap();
        prop_assert_eq!(&decode(&bytes, &Type::Dynamic).unwrap(), &value);
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..60), value in typed_value(true), at in any::<prop::sample::Index>()) {
        let _ = decode(&bytes, value.ty());
        let _ = decode(&bytes, &Type::Dynamic);
        // Damaged encodings are more likely to find faults than random bytes.
        let mut damaged = encode(&value, &Type::Dynamic).unwrap();
        let at = at.index(damaged.len());
        damaged[at] ^= 1 << (bytes.len() % 8);
        let _ = decode(&damaged, &Type::Dynamic);
    }
}
