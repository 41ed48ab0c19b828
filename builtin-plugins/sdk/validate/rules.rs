//! Functions that create rules, with the names of terraform-plugin-framework-validators.

use std::borrow::Cow;
use std::fmt;

use cty::{Number, Type, Value};

use super::{Check, NamedRule, On, Subject, Validator};
use crate::diag::Diagnostic;
use crate::model::Cty;

const STRINGS: Subject = ("strings", |ty| *ty == Type::String);
const NUMBERS: Subject = ("numbers", |ty| *ty == Type::Number);
const BOOLS: Subject = ("bools", |ty| *ty == Type::Bool);
const COLLECTIONS: Subject = ("lists, sets and maps", |ty| {
    matches!(ty, Type::List(_) | Type::Set(_) | Type::Map(_) | Type::Tuple(_))
});
const SEQUENCES: Subject = ("lists and sets", |ty| {
    matches!(ty, Type::List(_) | Type::Set(_) | Type::Tuple(_))
});

/// A constant in a rule: a text, a number or a bool.
pub trait Literal {
    /// Returns the constant as a value.
    fn into_value(self) -> Value;
}

macro_rules! literals {
    ($($ty:ty => $value:expr),*) => { $(
        impl Literal for $ty {
            fn into_value(self) -> Value {
                let convert: fn($ty) -> Value = $value;
                convert(self)
            }
        }
    )* };
}

literals! {
    &'static str => |text| Value::from(text),
    String => |text| Value::from(text),
    bool => |b| Value::bool(b),
    i64 => |n| Value::number(n),
    f64 => |n| n.to_cty(),
    Number => |n| Value::number(n)
}

/// A number in a rule.
pub trait LiteralNumber {
    /// Returns the number; `None` if it is infinite or NaN.
    fn into_number(self) -> Option<Number>;
}

impl LiteralNumber for i64 {
    fn into_number(self) -> Option<Number> {
        Some(self.into())
    }
}

impl LiteralNumber for f64 {
    fn into_number(self) -> Option<Number> {
        self.to_cty().as_number().filter(|n| !n.is_infinite()).cloned()
    }
}

impl LiteralNumber for Number {
    fn into_number(self) -> Option<Number> {
        Some(self)
    }
}

fn named(
    text: String,
    subject: Subject,
    run: impl Fn(&Check<'_>) -> Option<Diagnostic> + Send + Sync + 'static,
) -> NamedRule {
    NamedRule {
        text,
        subject: Some(subject),
        paths: Vec::new(),
        problem: None,
        on: On::Set,
        run: Box::new(run),
    }
}

// Combinations of attributes.

/// If this attribute is set, none of these attributes may be set.
#[must_use]
pub fn conflicts_with(paths: &'static [&'static str]) -> Validator {
    Validator::ConflictsWith(paths)
}

/// If this attribute is set, all of these attributes must be set.
#[must_use]
pub fn also_requires(paths: &'static [&'static str]) -> Validator {
    Validator::AlsoRequires(paths)
}

/// Exactly one of this attribute and these attributes must be set.
#[must_use]
pub fn exactly_one_of(paths: &'static [&'static str]) -> Validator {
    Validator::ExactlyOneOf(paths)
}

/// At least one of this attribute and these attributes must be set.
#[must_use]
pub fn at_least_one_of(paths: &'static [&'static str]) -> Validator {
    let run = move |check: &Check<'_>| {
        let counted = check.count(paths)?;
        (counted == 0).then(|| {
            let group = paths.join(",");
            check.combination(format!("At least one attribute out of [{group}] must be specified"))
        })?
    };
    NamedRule {
        text: format!("at_least_one_of({paths:?})"),
        subject: None,
        paths: paths.to_vec(),
        problem: None,
        on: On::Always,
        run: Box::new(run),
    }
    .into()
}

/// Warns if this attribute is set although a write-only attribute could be set instead. There is no warning if the host does not support
/// write-only attributes.
#[must_use]
pub fn prefer_write_only(path: &'static str) -> Validator {
    let run = move |check: &Check<'_>| {
        let other = check.find(path);
        // An unknown value counts as set.
        if !check.write_only_allowed || other.open || other.values.iter().any(|value| !value.is_null()) {
            return None;
        }
        let detail = format!(
            "The attribute {} has a write-only version {path:?} available. Use the write-only version of the attribute when \
             possible.",
            check.name()
        );
        Some(Diagnostic::warning("Available Write-only Attribute Alternative", detail).at(check.path.clone()))
    };
    NamedRule {
        text: format!("prefer_write_only({path:?})"),
        subject: None,
        paths: vec![path],
        problem: None,
        on: On::Set,
        run: Box::new(run),
    }
    .into()
}

// Combinations of rules.

/// All of these rules must hold.
#[must_use]
pub fn all(rules: impl IntoIterator<Item = Validator>) -> Validator {
    Validator::All(rules.into_iter().collect())
}

/// At least one of these rules must hold. Only the warnings of the first rule that holds are shown.
#[must_use]
pub fn any(rules: impl IntoIterator<Item = Validator>) -> Validator {
    Validator::Any(rules.into_iter().collect(), false)
}

/// At least one of these rules must hold. Warnings of all rules are shown.
#[must_use]
pub fn any_with_all_warnings(rules: impl IntoIterator<Item = Validator>) -> Validator {
    Validator::Any(rules.into_iter().collect(), true)
}

// Strings.

fn length(unit: &'static str, count: fn(&str) -> usize, least: usize, most: usize, name: &'static str) -> Validator {
    let rule = match (least, most) {
        (least, usize::MAX) => format!("{unit} must be at least {least}"),
        (0, most) => format!("{unit} must be at most {most}"),
        (least, most) => format!("{unit} must be between {least} and {most}"),
    };
    let run = move |check: &Check<'_>| {
        let length = count(check.value.as_str()?);
        (length < least || length > most).then(|| check.bad_value("Invalid Attribute Value Length", &rule, length))?
    };
    let text = match (least, most) {
        (least, usize::MAX) => format!("{name}_at_least({least})"),
        (0, most) => format!("{name}_at_most({most})"),
        (least, most) => format!("{name}_between({least}, {most})"),
    };
    NamedRule {
        problem: (least > most).then(|| "no text has this length".into()),
        // An empty string counts as set, since it may be too short.
        on: On::Set,
        ..named(text, STRINGS, run)
    }
    .into()
}

/// Minimum length of the text in bytes.
#[must_use]
pub fn length_at_least(bytes: usize) -> Validator {
    length("string length", str::len, bytes, usize::MAX, "length")
}

/// Maximum length of the text in bytes.
#[must_use]
pub fn length_at_most(bytes: usize) -> Validator {
    length("string length", str::len, 0, bytes, "length")
}

/// Minimum and maximum length of the text in bytes.
#[must_use]
pub fn length_between(least: usize, most: usize) -> Validator {
    length("string length", str::len, least, most, "length")
}

/// Minimum length of the text in characters.
#[must_use]
pub fn utf8_length_at_least(characters: usize) -> Validator {
    length(
        "UTF-8 character count",
        characters_of,
        characters,
        usize::MAX,
        "utf8_length",
    )
}

/// Maximum length of the text in characters.
#[must_use]
pub fn utf8_length_at_most(characters: usize) -> Validator {
    length("UTF-8 character count", characters_of, 0, characters, "utf8_length")
}

/// Minimum and maximum length of the text in characters.
#[must_use]
pub fn utf8_length_between(least: usize, most: usize) -> Validator {
    length("UTF-8 character count", characters_of, least, most, "utf8_length")
}

fn characters_of(text: &str) -> usize {
    text.chars().count()
}

/// A part of the text must match this regular expression; put it between `^` and `$` to match the whole text. The error contains the
/// message, or the expression if the message is empty. Unicode classes (`\p{…}`) are not supported.
#[must_use]
pub fn regex_matches(pattern: &'static str, message: &'static str) -> Validator {
    let (regex, problem) = match regex_lite::Regex::new(pattern) {
        Ok(regex) => (Some(regex), None),
        Err(error) => (None, Some(format!("{pattern:?} is no regular expression: {error}"))),
    };
    let rule: Cow<'static, str> = match message {
        "" => format!("value must match regular expression '{pattern}'").into(),
        message => message.into(),
    };
    let run = move |check: &Check<'_>| {
        let text = check.value.as_str()?;
        (!regex.as_ref()?.is_match(text)).then(|| check.bad_value("Invalid Attribute Value Match", &rule, text))?
    };
    NamedRule {
        problem,
        ..named(format!("regex_matches({pattern:?})"), STRINGS, run)
    }
    .into()
}

/// The text must be one of these. Upper and lower case are not distinguished.
#[must_use]
pub fn one_of_case_insensitive(texts: &'static [&'static str]) -> Validator {
    folded(texts, true)
}

/// The text must be none of these. Upper and lower case are not distinguished.
#[must_use]
pub fn none_of_case_insensitive(texts: &'static [&'static str]) -> Validator {
    folded(texts, false)
}

fn folded(texts: &'static [&'static str], wanted: bool) -> Validator {
    let values: Vec<Value> = texts.iter().map(|text| Value::from(*text)).collect();
    let rule = list_rule(&values, wanted);
    let run = move |check: &Check<'_>| {
        let text = check.value.as_str()?;
        let lower = text.to_lowercase();
        let found = texts.iter().any(|t| t.to_lowercase() == lower);
        (found != wanted).then(|| check.bad_value("Invalid Attribute Value Match", &rule, Shown(check.value)))?
    };
    let name = if wanted { "one_of" } else { "none_of" };
    NamedRule {
        problem: (wanted && texts.is_empty()).then(|| "no value is allowed".into()),
        ..named(format!("{name}_case_insensitive({texts:?})"), STRINGS, run)
    }
    .into()
}

// Values.

/// The text, number or bool must be one of these.
#[must_use]
pub fn one_of<T: Literal>(values: impl IntoIterator<Item = T>) -> Validator {
    among(values.into_iter().map(Literal::into_value).collect(), true)
}

/// The text, number or bool must be none of these.
#[must_use]
pub fn none_of<T: Literal>(values: impl IntoIterator<Item = T>) -> Validator {
    among(values.into_iter().map(Literal::into_value).collect(), false)
}

/// The bool must have this value.
#[must_use]
pub fn equals(value: bool) -> Validator {
    let run = move |check: &Check<'_>| {
        let got = check.value.as_bool()?;
        (got != value).then(|| check.bad_value("Invalid Attribute Value", &format!("value must be {value}"), got))?
    };
    named(format!("equals({value})"), BOOLS, run).into()
}

fn among(values: Vec<Value>, wanted: bool) -> Validator {
    let subject = match values.first().map(Value::ty) {
        Some(Type::Number) => NUMBERS,
        Some(Type::Bool) => BOOLS,
        _ => STRINGS,
    };
    let problem = if values.iter().any(Value::is_null) {
        Some("a value that is no number is never equal to one".into())
    } else {
        (wanted && values.is_empty()).then(|| "no value is allowed".into())
    };
    let rule = list_rule(&values, wanted);
    let text = format!("{}({values:?})", if wanted { "one_of" } else { "none_of" });
    let run = move |check: &Check<'_>| {
        (values.contains(check.value) != wanted)
            .then(|| check.bad_value("Invalid Attribute Value Match", &rule, Shown(check.value)))?
    };
    NamedRule {
        problem,
        ..named(text, subject, run)
    }
    .into()
}

fn list_rule(values: &[Value], wanted: bool) -> String {
    let list: Vec<String> = values.iter().map(|value| Shown(value).to_string()).collect();
    let word = if wanted { "one of" } else { "none of" };
    format!("value must be {word}: [{}]", list.join(" "))
}

/// Formats a value for a message, texts in quotes.
struct Shown<'a>(&'a Value);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

// Numbers.

fn range(least: Option<Option<Number>>, most: Option<Option<Number>>) -> Validator {
    // A limit that is infinite or NaN appears as a question mark in messages.
    let undefined = matches!(least, Some(None)) || matches!(most, Some(None));
    let (least, most) = (least.flatten(), most.flatten());
    let (text, rule) = match (&least, &most) {
        (Some(least), Some(most)) => (
            format!("between({least}, {most})"),
            format!("value must be between {least} and {most}"),
        ),
        (Some(least), None) => (format!("at_least({least})"), format!("value must be at least {least}")),
        (None, Some(most)) => (format!("at_most({most})"), format!("value must be at most {most}")),
        (None, None) => ("at_most(?)".into(), String::new()),
    };
    let problem = if undefined {
        Some("its limit is no number".into())
    } else {
        (least.as_ref().zip(most.as_ref()))
            .is_some_and(|(least, most)| least > most)
            .then(|| "no number is in this range".into())
    };
    let run = move |check: &Check<'_>| {
        let number = check.value.as_number()?;
        let outside = least.as_ref().is_some_and(|n| number < n) || most.as_ref().is_some_and(|n| number > n);
        outside.then(|| check.bad_value("Invalid Attribute Value", &rule, number))?
    };
    NamedRule {
        problem,
        ..named(text, NUMBERS, run)
    }
    .into()
}

/// The number must be at least this.
#[must_use]
pub fn at_least(least: impl LiteralNumber) -> Validator {
    range(Some(least.into_number()), None)
}

/// The number must be at most this.
#[must_use]
pub fn at_most(most: impl LiteralNumber) -> Validator {
    range(None, Some(most.into_number()))
}

/// The number must be in this range, both ends included.
#[must_use]
pub fn between<N: LiteralNumber>(least: N, most: N) -> Validator {
    range(Some(least.into_number()), Some(most.into_number()))
}

/// Compares the number with the sum or product of other attributes. In a sum, an attribute that is not set counts as zero. In a product,
/// all attributes must be set, or the rule is not checked.
fn combined(
    name: &'static str,
    paths: &'static [&'static str],
    words: &'static str,
    product: bool,
    holds: fn(&Number, &Number) -> bool,
) -> Validator {
    let rule = format!(
        "value must be {words} {}",
        paths.join(if product { " * " } else { " + " })
    );
    let run = move |check: &Check<'_>| {
        let number = check.value.as_number()?;
        let mut total = Number::from(i64::from(product));
        for path in paths {
            let found = check.find(path);
            if found.open {
                return None;
            }
            for value in found.values {
                // If a part is unknown, so is the total: the rule is checked once all parts are known.
                if !value.is_known() {
                    return None;
                }
                match (value.as_number(), product) {
                    (Some(n), true) => total = total.mul(n)?,
                    (Some(n), false) => total = total.add(n)?,
                    (None, true) => return None,
                    (None, false) => {}
                }
            }
        }
        (!holds(number, &total)).then(|| check.bad_value("Invalid Attribute Value", &rule, number))?
    };
    NamedRule {
        paths: paths.to_vec(),
        ..named(format!("{name}({paths:?})"), NUMBERS, run)
    }
    .into()
}

/// The number must be at least the sum of these attributes.
#[must_use]
pub fn at_least_sum_of(paths: &'static [&'static str]) -> Validator {
    combined("at_least_sum_of", paths, "at least sum of", false, |n, sum| n >= sum)
}

/// The number must be at most the sum of these attributes.
#[must_use]
pub fn at_most_sum_of(paths: &'static [&'static str]) -> Validator {
    combined("at_most_sum_of", paths, "at most sum of", false, |n, sum| n <= sum)
}

/// The number must be the sum of these attributes.
#[must_use]
pub fn equal_to_sum_of(paths: &'static [&'static str]) -> Validator {
    combined("equal_to_sum_of", paths, "equal to the sum of", false, |n, sum| {
        n == sum
    })
}

/// The number must be the product of these attributes. The rule is not checked unless all of them are set.
#[must_use]
pub fn equal_to_product_of(paths: &'static [&'static str]) -> Validator {
    combined(
        "equal_to_product_of",
        paths,
        "equal to the product of",
        true,
        |n, product| n == product,
    )
}

// Collections.

/// Minimum number of elements.
#[must_use]
pub fn size_at_least(least: usize) -> Validator {
    Validator::Size(least, usize::MAX)
}

/// Maximum number of elements.
#[must_use]
pub fn size_at_most(most: usize) -> Validator {
    Validator::Size(0, most)
}

/// Minimum and maximum number of elements.
#[must_use]
pub fn size_between(least: usize, most: usize) -> Validator {
    Validator::Size(least, most)
}

/// The nested block must be present, or at least one if there can be several.
#[must_use]
pub fn is_required() -> Validator {
    Validator::Required
}

/// Every element must satisfy this rule.
#[must_use]
pub fn each(rule: Validator) -> Validator {
    Validator::each(rule)
}

/// Every key of the map must satisfy this rule, which must be one for strings.
#[must_use]
pub fn keys_are(rule: Validator) -> Validator {
    Validator::Keys(Box::new(rule))
}

fn kind(value: &Value) -> &'static str {
    match value.ty() {
        Type::Set(_) => "Set",
        Type::Map(_) => "Map",
        _ => "List",
    }
}

/// No two elements may be equal.
#[must_use]
pub fn unique_values() -> Validator {
    let run = |check: &Check<'_>| {
        let items = check.value.as_seq()?;
        let twice = (items.iter().enumerate())
            // Unknown elements do not count, since they may turn out to be different.
            .find(|(i, item)| item.is_wholly_known() && items[..*i].contains(item));
        let (_, item) = twice?;
        let detail = format!("This attribute contains duplicate values of: {}", Shown(item));
        check.error(&format!("Duplicate {} Value", kind(check.value)), detail)
    };
    named("unique_values()".into(), SEQUENCES, run).into()
}

/// No element may be null.
#[must_use]
pub fn no_null_values() -> Validator {
    let run = |check: &Check<'_>| {
        let null = match (check.value.as_seq(), check.value.entries()) {
            (Some(items), _) => items.iter().any(Value::is_null),
            (None, Some(mut entries)) => entries.any(|(_, item)| item.is_null()),
            (None, None) => false,
        };
        let summary = format!("Null {} Value", kind(check.value));
        null.then(|| check.error(&summary, "This attribute contains a null value.".into()))?
    };
    named("no_null_values()".into(), COLLECTIONS, run).into()
}

#[cfg(test)]
mod tests;
