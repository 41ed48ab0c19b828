//! Canonical order of sets, and removal of duplicates.
//!
//! Users see this order when they iterate over a set, so it is Terraform's: text by its bytes, numbers ascending,
//! `false` before `true`, compound values by a text made of their content; then unknown values, and nulls last. Values
//! that are not wholly known never equal each other, because each may turn out to be different.

use std::cmp::Ordering;

use gotext::quote::quoted;

use crate::{Kind, Type, Value};

/// Returns the elements of a set in canonical order without duplicates.
#[must_use]
pub fn canonical(element: &Type, items: Vec<Value>) -> Vec<Value> {
    if items.len() < 2 {
        return items;
    }
    let mut items = items;
    if element.is_primitive() {
        // Sets are often built from elements of other sets, which are sorted already.
        if !items.is_sorted_by(|a, b| compare_known(a, b).is_lt()) {
            items.sort_by(compare_known);
        }
        items.dedup_by(|b, a| is_duplicate(a, b));
        return items;
    }
    // Each key is built once, not in each comparison.
    let mut keyed: Vec<(String, Value)> = items.into_iter().map(|item| (key_of(&item), item)).collect();
    keyed.sort_by(|(k, a), (l, b)| {
        rank(a).cmp(&rank(b)).then_with(|| k.cmp(l)).then_with(|| {
            // Equal keys may belong to different values, because numbers in them have only ten digits.
            if a.is_wholly_known() && b.is_wholly_known() {
                compare_known(a, b)
            } else {
                Ordering::Equal
            }
        })
    });
    keyed.dedup_by(|(l, b), (k, a)| k == l && is_duplicate(a, b));
    keyed.into_iter().map(|(_, item)| item).collect()
}

/// Returns true if a set with these elements contains a value. Sets distinguish zero and minus zero, although these are
/// equal.
#[must_use]
pub fn has_element(items: &[Value], value: &Value) -> bool {
    let mut key = None;
    items.iter().any(|item| {
        is_duplicate(item, value)
            && (item.ty().is_primitive() || {
                let key = key.get_or_insert_with(|| key_of(value));
                key_of(item) == *key
            })
    })
}

fn key_of(value: &Value) -> String {
    let mut key = String::new();
    write_key(value, &mut key);
    key
}

fn is_duplicate(a: &Value, b: &Value) -> bool {
    let same_zero = match (a.as_number(), b.as_number()) {
        (Some(a), Some(b)) => a.is_minus_zero() == b.is_minus_zero(),
        _ => true,
    };
    same_zero && a.is_wholly_known() && a == b
}

/// Returns a rank for the order: present values, then unknown ones, then nulls.
fn rank(value: &Value) -> u8 {
    match value.kind() {
        Kind::Unknown(_) => 1,
        Kind::Null => 2,
        _ => 0,
    }
}

/// Compares wholly known values of one type: a total order, in which values that are equal in the language are equal.
fn compare_known(a: &Value, b: &Value) -> Ordering {
    match (a.kind(), b.kind()) {
        (Kind::Bool(x), Kind::Bool(y)) => x.cmp(y),
        (Kind::Number(x), Kind::Number(y)) => x.compare(y).then_with(|| y.is_minus_zero().cmp(&x.is_minus_zero())),
        (Kind::String(x), Kind::String(y)) => x.cmp(y),
        (Kind::Seq(x), Kind::Seq(y)) => compare_each(x.iter().zip(y.iter()), x.len(), y.len()),
        (Kind::Map(x), Kind::Map(y)) => {
            let keys = x
                .iter()
                .zip(y.iter())
                .map(|((k, _), (l, _))| k.cmp(l))
                .find(|o| o.is_ne());
            keys.unwrap_or_else(|| {
                compare_each(x.iter().zip(y.iter()).map(|((_, v), (_, w))| (v, w)), x.len(), y.len())
            })
        }
        _ => rank(a).cmp(&rank(b)).then_with(|| a.ty().cmp(b.ty())),
    }
}

fn compare_each<'v>(pairs: impl Iterator<Item = (&'v Value, &'v Value)>, left: usize, right: usize) -> Ordering {
    pairs
        .map(|(a, b)| compare_known(a, b))
        .find(|o| o.is_ne())
        .unwrap_or_else(|| left.cmp(&right))
}

/// Appends the text by which compound elements are ordered.
fn write_key(value: &Value, out: &mut String) {
    // The form is that of Terraform's hash of a value, whose text determines the order of such sets.
    match value.kind() {
        Kind::Unknown(_) => out.push('?'),
        Kind::Null => out.push('~'),
        Kind::Bool(b) => out.push(if *b { 'T' } else { 'F' }),
        Kind::Number(n) => out.push_str(&n.to_ten_digits()),
        Kind::String(s) => out.push_str(&quoted(s)),
        Kind::Seq(items) => {
            let (open, close) = if value.ty().is_collection() {
                ('[', ']')
            } else {
                ('<', '>')
            };
            out.push(open);
            for item in items.iter() {
                write_key(item, out);
                out.push(';');
            }
            out.push(close);
        }
        Kind::Map(items) => {
            out.push('{');
            for (key, item) in items.iter() {
                out.push_str(&quoted(key));
                out.push(':');
                write_key(item, out);
                out.push(';');
            }
            out.push('}');
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::canonical;
    use crate::testing::{concrete_type, value_of};
    use crate::{Number, Type, Value};

    fn number(text: &str) -> Value {
        Value::number(Number::parse(text).unwrap())
    }

    #[track_caller]
    fn check(items: &[Value], expected: &[Value]) {
        let set = Value::set(items[0].ty().clone(), items.to_vec());
        assert_eq!(set.as_seq().unwrap(), expected);
    }

    #[test]
    fn primitives_are_in_their_natural_order() {
        let s = Value::string;
        check(
            &[s("é"), s("b"), s("Z"), s("b"), s("")],
            &[s(""), s("Z"), s("b"), s("é")],
        );
        let n = number;
        check(
            &[n("10"), n("9"), n("-1"), n("9.5"), n("10.0")],
            &[n("-1"), n("9"), n("9.5"), n("10")],
        );
        let b = Value::bool;
        check(
            &[Value::null(Type::Bool), b(true), b(false), b(true)],
            &[b(false), b(true), Value::null(Type::Bool)],
        );
    }

    #[test]
    fn compound_values_are_in_the_order_of_their_text() {
        // As in Terraform's output, the order is that of the text: 10 is between 1 and 9.
        let o = |n: &str| Value::object([("a", number(n))]);
        check(&[o("9"), o("1"), o("10"), o("0")], &[o("0"), o("10"), o("1"), o("9")]);
        check(
            &[o("1e30"), o("0.5"), o("123456789012345"), o("12345678901")],
            &[o("0.5"), o("12345678901"), o("123456789012345"), o("1e30")],
        );
        let s = |s: &str| Value::object([("a", Value::string(s))]);
        let null = Value::object([("a", Value::null(Type::String))]);
        check(
            &[s("ü"), s("z"), s("\n"), null.clone(), s("Z")],
            &[s("Z"), s("\n"), s("z"), s("ü"), null],
        );
        // Numbers that agree in ten digits are still different.
        check(
            &[o("12345678902"), o("12345678901"), o("12345678902")],
            &[o("12345678901"), o("12345678902")],
        );
    }

    #[test]
    fn unknown_elements_are_never_the_same() {
        let unknown = Value::unknown(Type::String);
        let null = Value::null(Type::String);
        let items = [
            null.clone(),
            unknown.clone(),
            Value::string("a"),
            unknown.clone(),
            null.clone(),
        ];
        check(&items, &[Value::string("a"), unknown.clone(), unknown, null]);
    }

    fn items() -> impl Strategy<Value = (Type, Vec<Value>)> {
        concrete_type().prop_flat_map(|ty| {
            let values = prop::collection::vec(value_of(&ty, false), 0..8);
            (Just(ty), values)
        })
    }

    proptest! {
        #[test]
        fn the_order_of_the_elements_does_not_matter((ty, items) in items()) {
            let set = canonical(&ty, items.clone());
            let mut again = items.clone();
            again.reverse();
            again.extend(items.clone());
            prop_assert_eq!(&canonical(&ty, again), &set);
            prop_assert_eq!(&canonical(&ty, set.clone()), &set);
            prop_assert!(items.iter().all(|item| set.contains(item)));
            prop_assert!(set.iter().enumerate().all(|(i, item)| !set[..i].contains(item)));
        }
    }
}
