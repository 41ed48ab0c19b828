//! Refinements: facts about an unknown value.

use std::sync::Arc;

use unicode_segmentation::UnicodeSegmentation;

use crate::{Number, Type};

/// Facts about an unknown value. The default has none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Refinements {
    /// The value will not be null.
    pub not_null: bool,
    /// The string will begin with this text.
    pub prefix: Option<Arc<str>>,
    /// Lower bound of the number (inclusive if the flag is set).
    pub number_min: Option<(Number, bool)>,
    /// Upper bound of the number (inclusive if the flag is set).
    pub number_max: Option<(Number, bool)>,
    /// Minimum number of elements of the collection.
    pub length_min: Option<usize>,
    /// Maximum number of elements of the collection.
    pub length_max: Option<usize>,
}

impl Refinements {
    /// Returns the single refinement "not null".
    #[must_use]
    pub fn not_null() -> Refinements {
        Refinements {
            not_null: true,
            ..Refinements::default()
        }
    }

    /// Returns true if there are no refinements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Refinements::default()
    }

    /// Combines two sets of refinements: the tighter of two bounds, the longer of two prefixes.
    #[must_use]
    pub fn merge(&self, other: &Refinements) -> Refinements {
        let longer = |a: &Option<Arc<str>>, b: &Option<Arc<str>>| match (a, b) {
            (Some(a), Some(b)) if a.len() >= b.len() => Some(a.clone()),
            (a, None) => a.clone(),
            (_, b) => b.clone(),
        };
        type Bound = Option<(Number, bool)>;
        let tighter = |a: &Bound, b: &Bound, inward: fn(&Number, &Number) -> bool| match (a, b) {
            // If both bounds are equal, the exclusive one is tighter.
            (Some((x, x_inclusive)), Some((y, y_inclusive))) if x == y => {
                Some((x.clone(), *x_inclusive && *y_inclusive))
            }
            (Some((x, inclusive)), Some((y, _))) if inward(x, y) => Some((x.clone(), *inclusive)),
            (a, None) => a.clone(),
            (_, b) => b.clone(),
        };
        Refinements {
            not_null: self.not_null || other.not_null,
            prefix: longer(&self.prefix, &other.prefix),
            number_min: tighter(&self.number_min, &other.number_min, |a, b| a > b),
            number_max: tighter(&self.number_max, &other.number_max, |a, b| a < b),
            length_min: self.length_min.max(other.length_min),
            length_max: self.length_max.into_iter().chain(other.length_max).min(),
        }
    }

    /// Drops refinements that do not apply to the type or exclude no value, such as a minimum length of 0. A value of
    /// unknown type has none.
    pub(crate) fn fit(self, ty: &Type) -> Refinements {
        let string = *ty == Type::String;
        let number = *ty == Type::Number;
        let collection = ty.is_collection();
        Refinements {
            not_null: self.not_null && *ty != Type::Dynamic,
            prefix: self.prefix.filter(|p| string && !p.is_empty()),
            number_min: self.number_min.filter(|(n, _)| number && *n != Number::neg_infinity()),
            number_max: self.number_max.filter(|(n, _)| number && *n != Number::infinity()),
            length_min: self.length_min.filter(|n| collection && *n > 0),
            length_max: self.length_max.filter(|_| collection),
        }
    }
}

/// Returns the part of a text that no following text can change, even by normalization.
///
/// A combining mark changes the letter before it, so the last character is cut off, unless it is one of a few that do
/// not combine, such as brackets and slashes.
#[must_use]
pub fn safe_prefix(text: &str) -> String {
    let text = crate::text::normalize(text);
    let Some((start, last)) = text.grapheme_indices(true).next_back() else {
        return String::new();
    };
    const FINAL: &str = "-_:;/\\,.(){}[]|?!~ \t@#$%^&*+\"'";
    let mut chars = last.chars();
    match (chars.next(), chars.next()) {
        (Some(only), None) if FINAL.contains(only) => text.to_string(),
        _ => text[..start].to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Refinements, safe_prefix};
    use crate::{Type, Value};

    #[test]
    fn prefixes_end_where_nothing_can_combine() {
        for (text, safe) in [
            ("", ""),
            ("pre-", "pre-"),
            ("abc", "ab"),
            ("http://", "http://"),
            ("{\"a\":", "{\"a\":"),
            ("v1", "v"),
            ("a\r\n", "a"),
            ("x e\u{301}", "x "),
            ("日本", "日"),
            ("🇩🇪", ""),
            ("<", ""),
        ] {
            assert_eq!(safe_prefix(text), safe, "{text:?}");
        }
    }

    #[test]
    fn refinement_to_one_value_makes_it_known() {
        let number = |min: i64, max: i64| Refinements {
            number_min: Some((min.into(), true)),
            number_max: Some((max.into(), true)),
            ..Refinements::not_null()
        };
        assert_eq!(Value::unknown_refined(Type::Number, number(2, 2)), Value::number(2));
        assert!(!Value::unknown_refined(Type::Number, number(2, 3)).is_known());
        let length = |n| Refinements {
            length_min: Some(n),
            length_max: Some(n),
            ..Refinements::not_null()
        };
        let list = Value::unknown_refined(Type::list(Type::Bool), length(2));
        assert_eq!(list, Value::list(Type::Bool, vec![Value::unknown(Type::Bool); 2]));
        assert_eq!(Value::unknown_refined(Type::map(Type::Bool), length(0)).len(), Some(0));
        assert!(!Value::unknown_refined(Type::set(Type::Bool), length(2)).is_known());
        // A plugin may claim any length, but no memory is allocated for it.
        assert!(!Value::unknown_refined(Type::list(Type::Bool), length(usize::MAX)).is_known());
        // A value that may be null is not replaced by a list.
        let open = Refinements {
            not_null: false,
            ..length(0)
        };
        assert!(!Value::unknown_refined(Type::list(Type::Bool), open).is_known());
    }

    #[test]
    fn refinements_of_another_type_are_dropped() {
        let all = Refinements {
            prefix: Some("a".into()),
            length_min: Some(1),
            ..Refinements::not_null()
        };
        assert_eq!(Value::unknown_refined(Type::Dynamic, all.clone()), Value::dynamic());
        assert_eq!(
            Value::unknown_refined(Type::Bool, all.clone()),
            Value::unknown_not_null(Type::Bool)
        );
        let string = Value::unknown_refined(Type::String, all);
        assert_eq!(
            string.refinements().map(|r| (r.length_min, r.prefix.as_deref())),
            Some((None, Some("a")))
        );
        let longer = Refinements {
            prefix: Some("ab".into()),
            ..Refinements::default()
        };
        assert_eq!(
            string.refine(&longer).refinements().and_then(|r| r.prefix.as_deref()),
            Some("ab")
        );
    }
}
