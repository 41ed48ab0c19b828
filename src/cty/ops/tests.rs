//! Tests of operators.

use super::*;
use crate::{Kind, Marks, Refinements};

fn number(text: &str) -> Value {
    Value::number(Number::parse(text).unwrap())
}

fn unknown_string(prefix: &str) -> Value {
    Value::unknown_refined(
        Type::String,
        Refinements {
            prefix: Some(prefix.into()),
            ..Refinements::not_null()
        },
    )
}

fn between(min: i64, max: i64) -> Value {
    let known = Refinements {
        number_min: Some((min.into(), true)),
        number_max: Some((max.into(), true)),
        ..Refinements::not_null()
    };
    Value::unknown_refined(Type::Number, known)
}

fn open_bool() -> Value {
    Value::unknown_not_null(Type::Bool)
}

#[test]
fn equality_does_not_convert() {
    let list = Value::list(Type::Number, vec![number("1")]);
    let tuple = Value::tuple(vec![number("1")]);
    for (a, b, equal) in [
        (Value::string("1"), number("1"), false),
        (number("1.0"), number("1"), true),
        (list.clone(), tuple.clone(), false),
        (tuple.clone(), tuple.clone(), true),
        (Value::null(Type::String), Value::null(Type::Number), true),
        (Value::null(Type::String), Value::string(""), false),
        (
            Value::object([("a", tuple.clone())]),
            Value::object([("a", tuple.clone())]),
            true,
        ),
        (
            Value::object([("a", tuple.clone())]),
            Value::object([("b", tuple)]),
            false,
        ),
        (
            Value::set(Type::Bool, vec![Value::bool(true)]),
            Value::set(Type::Bool, vec![]),
            false,
        ),
    ] {
        assert_eq!(equals(&a, &b), Value::bool(equal), "{a:?} == {b:?}");
        assert_eq!(not_equals(&a, &b), Value::bool(!equal), "{a:?} != {b:?}");
    }
}

#[test]
fn refinements_of_unknown_values_decide_equality() {
    let null = Value::null(Type::Dynamic);
    assert_eq!(equals(&Value::unknown(Type::String), &null), open_bool());
    assert_eq!(
        equals(&Value::unknown_not_null(Type::String), &null),
        Value::bool(false)
    );
    assert_eq!(equals(&unknown_string("pre-"), &Value::string("q")), Value::bool(false));
    assert_eq!(equals(&unknown_string("pre-"), &Value::string("pre-x")), open_bool());
    assert_eq!(equals(&between(1, 3), &number("4")), Value::bool(false));
    assert_eq!(equals(&between(1, 3), &number("3")), open_bool());
    let long = Refinements {
        length_min: Some(2),
        ..Refinements::not_null()
    };
    let long = Value::unknown_refined(Type::map(Type::Bool), long);
    assert_eq!(
        equals(&long, &Value::map(Type::Bool, [("a".into(), Value::bool(true))].into())),
        Value::bool(false)
    );
    assert_eq!(equals(&Value::dynamic(), &number("1")), open_bool());
    assert_eq!(equals(&Value::unknown(Type::String), &number("1")), Value::bool(false));
    let partly = Value::object([("a", Value::unknown(Type::String))]);
    assert_eq!(equals(&partly, &null), Value::bool(false));
    assert_eq!(equals(&partly, &partly), open_bool());
    let open = Value::tuple(vec![Value::dynamic()]);
    assert_eq!(equals(&open, &Value::tuple(vec![number("1")])), open_bool());
    assert_eq!(equals(&open, &Value::empty_tuple()), Value::bool(false));
}

#[test]
fn arithmetic_converts_operands_and_reports_misfits() {
    assert_eq!(add(&Value::string("2"), &number("1")).unwrap(), number("3"));
    let error = add(&Value::string("a"), &number("1")).unwrap_err();
    assert_eq!(error.summary, "Invalid operand");
    assert_eq!(error.detail, "The left operand does not fit: a number is required");
    let error = multiply(&number("1"), &Value::null(Type::Number)).unwrap_err();
    assert_eq!(error.to_string(), "Error during operation: argument must not be null");
    let error = divide(&number("0"), &number("0")).unwrap_err();
    assert_eq!(error.summary, "Operation failed");
    assert!(error.detail.contains("the quotient of two zeros"));
    assert_eq!(negate(&number("1.5")).unwrap(), number("-1.5"));
    assert!(not(&Value::string("maybe")).is_err());
    assert_eq!(not(&Value::string("true")).unwrap(), Value::bool(false));
}

#[test]
fn unknown_operands_give_refined_unknown_results() {
    let open = Value::unknown_not_null(Type::Number);
    for sum in [
        add(&between(1, 3), &number("10")),
        subtract(&number("10"), &between(1, 3)),
        multiply(&between(1, 3), &number("-2")),
        divide(&between(1, 3), &number("2")),
        add(&Value::dynamic(), &number("1")),
    ] {
        assert_eq!(sum.unwrap(), open);
    }
    assert_eq!(less_than(&between(1, 3), &number("4")).unwrap(), Value::bool(true));
    assert_eq!(less_than(&between(1, 3), &number("3")).unwrap(), open_bool());
    assert_eq!(
        greater_or_equal(&between(1, 3), &number("4")).unwrap(),
        Value::bool(false)
    );
    assert_eq!(
        and(&Value::unknown(Type::Bool), &Value::bool(false)).unwrap(),
        open_bool()
    );
    assert_eq!(or(&Value::bool(true), &Value::dynamic()).unwrap(), open_bool());
}

#[test]
fn marks_are_on_the_result() {
    let secret = number("1").with_marks(Marks::SENSITIVE);
    let passing = number("2").with_marks(Marks::EPHEMERAL);
    let both = Marks::SENSITIVE | Marks::EPHEMERAL;
    assert_eq!(add(&secret, &passing).unwrap().marks(), both);
    assert_eq!(less_than(&secret, &number("5")).unwrap().marks(), Marks::SENSITIVE);
    let inside = Value::tuple(vec![number("0"), secret.clone()]);
    assert_eq!(equals(&inside, &Value::bool(true)).marks(), Marks::SENSITIVE);
    assert_eq!(index(&inside, &number("0")).unwrap().marks(), Marks::NONE);
    assert_eq!(index(&inside, &number("1")).unwrap().marks(), Marks::SENSITIVE);
    assert_eq!(length(&inside).unwrap().marks(), Marks::NONE);
    assert_eq!(
        length(&inside.with_marks(Marks::SENSITIVE)).unwrap().marks(),
        Marks::SENSITIVE
    );
}

#[test]
fn indexing() {
    let list = Value::list(Type::String, vec![Value::string("a"), Value::string("b")]);
    assert_eq!(index(&list, &Value::string("1")).unwrap(), Value::string("b"));
    let why = |collection: &Value, key: &Value| index(collection, key).unwrap_err().detail;
    assert!(why(&list, &number("2")).ends_with("the key that is one less than the length"));
    assert!(why(&list, &number("1e30")).ends_with("There is no element with this key"));
    assert!(why(&list, &number("-1")).ends_with("keys of list and tuple elements begin with 0"));
    assert!(why(&list, &number("0.5")).ends_with("is a whole number"));
    assert!(why(&Value::empty_tuple(), &number("0")).ends_with("the collection has no elements"));
    assert!(why(&Value::object([("a", number("1"))]), &number("0")).ends_with("have names, not numbers"));
    assert!(why(&Value::set(Type::String, vec![]), &number("0")).starts_with("The elements of a set have no keys"));
    assert_eq!(
        why(&Value::string("x"), &number("0")),
        "This value does not have any indices"
    );
    assert_eq!(
        index(&Value::null(Type::Dynamic), &number("0")).unwrap_err().summary,
        "Attempt to index null value"
    );
    assert_eq!(
        index(&list, &Value::unknown(Type::Number)).unwrap(),
        Value::unknown(Type::String)
    );
    let tuple = Value::unknown(Type::tuple([Type::Bool]));
    assert_eq!(index(&tuple, &number("0")).unwrap(), Value::unknown(Type::Bool));
    assert_eq!(index(&tuple, &Value::unknown(Type::Number)).unwrap(), Value::dynamic());
    assert_eq!(index(&Value::dynamic(), &number("0")).unwrap(), Value::dynamic());
}

#[test]
fn attributes() {
    let object = Value::object([("a", number("1"))]);
    assert_eq!(get_attribute(&object, "a").unwrap(), number("1"));
    let why = |value: &Value| get_attribute(value, "b").unwrap_err().detail;
    assert_eq!(why(&object), "This object does not have an attribute named \"b\"");
    assert_eq!(why(&Value::map(Type::Bool, [].into())), "The map has no element \"b\"");
    assert_eq!(
        why(&Value::string("x")),
        "Can't access attributes on a primitive-typed value (string)"
    );
    assert!(why(&Value::list(object.ty().clone(), vec![])).starts_with("A list has no attributes"));
    assert_eq!(
        get_attribute(&Value::unknown(object.ty().clone()), "a").unwrap(),
        Value::unknown(Type::Number)
    );
    assert_eq!(get_attribute(&Value::dynamic(), "a").unwrap(), Value::dynamic());
}

#[test]
fn lengths() {
    assert_eq!(length(&Value::tuple(vec![Value::dynamic()])).unwrap(), number("1"));
    assert_eq!(length(&Value::unknown(Type::tuple([Type::Bool]))).unwrap(), number("1"));
    let unknown = Value::unknown(Type::String);
    let one = Value::set(Type::String, vec![unknown.clone()]);
    assert_eq!(length(&one).unwrap(), number("1"));
    let two = Value::set(Type::String, vec![unknown.clone(), unknown]);
    assert_eq!(length(&two).unwrap(), between(1, 2));
    let open = length(&Value::unknown(Type::list(Type::Bool))).unwrap();
    assert_eq!(open.refinements().unwrap().number_min, Some((0.into(), true)));
    assert!(length(&Value::string("x")).is_err());
}

#[test]
fn conditionals_have_one_type() {
    let (yes, no) = (Value::bool(true), Value::bool(false));
    assert_eq!(
        conditional(&yes, &number("1"), &Value::string("a")).unwrap(),
        Value::string("1")
    );
    assert_eq!(
        conditional(&Value::string("false"), &number("1"), &Value::null(Type::Dynamic)).unwrap(),
        Value::null(Type::Number)
    );
    let error = conditional(&yes, &number("1"), &no).unwrap_err();
    assert_eq!(error.summary(), "Inconsistent conditional result types");
    assert!(
        error
            .to_string()
            .ends_with("the result after \"?\" is number, and the one after \":\" is bool.")
    );
    assert_eq!(
        conditional(&Value::null(Type::Bool), &yes, &no).unwrap_err(),
        ConditionalError::NullCondition
    );
    assert_eq!(
        conditional(&number("1"), &yes, &no).unwrap_err(),
        ConditionalError::ConditionNotBool
    );
    let list = Value::list(Type::Number, vec![number("1")]);
    let tuple = Value::tuple(vec![Value::string("x")]);
    assert_eq!(
        conditional(&no, &list, &tuple).unwrap(),
        Value::list(Type::String, vec![Value::string("x")])
    );
    let secret = Value::string("s").with_marks(Marks::SENSITIVE);
    assert_eq!(
        conditional(&yes, &Value::string("open"), &secret).unwrap().marks(),
        Marks::SENSITIVE
    );
}

#[test]
fn unknown_condition_gives_the_refinements_common_to_both_results() {
    let open = Value::unknown(Type::Bool);
    assert_eq!(conditional(&open, &number("1"), &number("3")).unwrap(), between(1, 3));
    assert_eq!(
        conditional(&open, &Value::string("ab"), &Value::string("ac")).unwrap(),
        Value::unknown_not_null(Type::String)
    );
    assert_eq!(
        conditional(&open, &Value::string("a"), &Value::null(Type::Dynamic)).unwrap(),
        Value::unknown(Type::String)
    );
    assert_eq!(
        conditional(&open, &Value::null(Type::String), &Value::null(Type::Dynamic)).unwrap(),
        Value::null(Type::String)
    );
    let one = Value::list(Type::String, vec![Value::string("a")]);
    let same_length = conditional(&open, &one, &Value::list(Type::String, vec![Value::string("b")])).unwrap();
    assert!(matches!(same_length.kind(), Kind::Seq(items) if items.len() == 1 && !items[0].is_known()));
}

#[test]
fn short_circuit_follows_the_operand_that_decides() {
    let b = Value::bool;
    let (null, open) = (Value::null(Type::Bool), Value::dynamic());
    let known = |v: bool, side| Some((b(v), side));
    let later = |side| Some((open_bool(), side));
    for (or, left, right, expected) in [
        (true, b(true), open.clone(), known(true, Side::Left)),
        (true, open.clone(), b(true), known(true, Side::Right)),
        (true, open.clone(), b(false), later(Side::Left)),
        (true, b(false), open.clone(), later(Side::Right)),
        (true, null.clone(), b(true), known(true, Side::Right)),
        (true, null.clone(), b(false), None),
        (true, b(false), null.clone(), None),
        (true, b(false), b(false), None),
        (false, b(false), open.clone(), known(false, Side::Left)),
        (false, open.clone(), b(false), known(false, Side::Right)),
        (false, open.clone(), b(true), later(Side::Left)),
        (false, b(true), open.clone(), later(Side::Right)),
        (false, null.clone(), b(true), known(false, Side::Left)),
        (false, b(true), null.clone(), known(false, Side::Right)),
        (false, open.clone(), null.clone(), known(false, Side::Right)),
        (false, b(true), b(true), None),
        (false, Value::string("false"), open.clone(), known(false, Side::Left)),
        (false, open.clone(), open.clone(), later(Side::Left)),
    ] {
        assert_eq!(
            short_circuit(or, &left, &right, false),
            expected,
            "{or} {left:?} {right:?}"
        );
    }
    assert_eq!(short_circuit(false, &open, &open, true), None);
    let secret = b(true).with_marks(Marks::SENSITIVE);
    let (value, _) = short_circuit(false, &b(false), &secret, false).unwrap();
    assert_eq!(value, b(false).with_marks(Marks::SENSITIVE));
}
