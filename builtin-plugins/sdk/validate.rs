//! Rules for configured values, in addition to the types of the schema.
//!
//! A rule is attached to an attribute or to blocks by [`Attribute::validate`](crate::schema::Attribute::validate):
//!
//! ```
//! use monoform_sdk::schema::{block, optional, required};
//! use monoform_sdk::validate::{any, between, conflicts_with, each, length_between, one_of, regex_matches, size_at_most};
//! use monoform_sdk::{Attr, Model};
//!
//! #[derive(Clone, Default, Model)]
//! pub struct Server {
//!     #[member(required().validate(length_between(1, 63)).validate(regex_matches("^[a-z-]+$", "use small letters and hyphens")))]
//!     pub name: Attr<String>,
//!     #[member(optional().validate(any([one_of([80, 443]), between(1024, 65_535)])))]
//!     pub port: Attr<i64>,
//!     #[member(optional().validate(each(one_of(["a", "b"]))))]
//!     pub zones: Attr<Vec<String>>,
//!     #[member(block().validate(size_at_most(4)))]
//!     pub disk: Vec<Disk>,
//! }
//!
//! #[derive(Clone, Default, Model)]
//! pub struct Disk {
//!     /// In the same block, `snapshot` must not be set; in the block around it, `zones` must not.
//!     #[member(optional().validate(conflicts_with(&["snapshot", "../zones"])))]
//!     pub image: Attr<String>,
//!     #[member(optional())]
//!     pub snapshot: Attr<String>,
//! }
//! ```
//!
//! Summaries and details of errors have fixed texts, because people search for them and tests match on them. Rules apply to known values:
//! an unknown value satisfies every rule, and is validated again once it is known. Null satisfies every rule, except for rules that require
//! a value.
//!
//! # Names
//!
//! The rules have the names of terraform-plugin-framework-validators. One name serves all types to which the rule applies. A rule on an
//! attribute of any other type is refused when the schemas are requested.
//!
//! | in Go | here |
//! | --- | --- |
//! | `AlsoRequires`, `ConflictsWith`, `ExactlyOneOf`, `AtLeastOneOf` | [`also_requires`], [`conflicts_with`], [`exactly_one_of`], [`at_least_one_of`] |
//! | `PreferWriteOnlyAttribute` | [`prefer_write_only`] |
//! | `All`, `Any`, `AnyWithAllWarnings` | [`all`], [`any`], [`any_with_all_warnings`] |
//! | `LengthAtLeast`, `LengthAtMost`, `LengthBetween` | [`length_at_least`], [`length_at_most`], [`length_between`] |
//! | `UTF8LengthAtLeast`, `UTF8LengthAtMost`, `UTF8LengthBetween` | [`utf8_length_at_least`], [`utf8_length_at_most`], [`utf8_length_between`] |
//! | `RegexMatches` | [`regex_matches`] |
//! | `OneOf`, `NoneOf` | [`one_of`], [`none_of`] |
//! | `OneOfCaseInsensitive`, `NoneOfCaseInsensitive` | [`one_of_case_insensitive`], [`none_of_case_insensitive`] |
//! | `Equals` | [`equals`] |
//! | `AtLeast`, `AtMost`, `Between` | [`at_least`], [`at_most`], [`between`] |
//! | `AtLeastSumOf`, `AtMostSumOf`, `EqualToSumOf`, `EqualToProductOf` | [`at_least_sum_of`], [`at_most_sum_of`], [`equal_to_sum_of`], [`equal_to_product_of`] |
//! | `SizeAtLeast`, `SizeAtMost`, `SizeBetween` | [`size_at_least`], [`size_at_most`], [`size_between`] |
//! | `UniqueValues`, `NoNullValues` | [`unique_values`], [`no_null_values`] |
//! | `IsRequired` | [`is_required`] |
//! | `ValueStringsAre`, `ValueInt64sAre` and the like | [`each`] |
//! | `KeysAre` | [`keys_are`] |
//! | `Conflicting`, `ExactlyOneOf`, `RequiredTogether`, `AtLeastOneOf` of resources, data sources and others | [`Schema::conflicting`](crate::Schema::conflicting), [`exactly_one_of`](crate::Schema::exactly_one_of), [`required_together`](crate::Schema::required_together), [`at_least_one_of`](crate::Schema::at_least_one_of) |
//! | a validator of one's own | [`Validator::custom`] |
//!
//! # Path expressions
//!
//! Rules about several attributes name the others by path expressions:
//!
//! | expression | meaning |
//! | --- | --- |
//! | `name` | attribute or block of the same block or, if there is none of this name, of the outermost one |
//! | `./name` | of the same block only |
//! | `../name`, `../../name` | of the enclosing block, or of the block around that |
//! | `/name` | of the outermost block |
//! | `disk.size` | member of a single block, of a nested attribute or of an object |
//! | `disk[*].size` | in all blocks or elements |
//! | `disk[0].size`, `tags["owner"]` | in one of them |
//!
//! An expression that names nothing in the schema is refused when the schemas are requested. An expression can name several values. For a
//! rule about conflicts, one of them that is set is a conflict. For a rule that requires the values, one of them that is not set is
//! missing.

mod expression;
mod groups;
mod rules;

use std::fmt;
use std::sync::Arc;

use cty::{Number, Path, Step, Type, Value};

use crate::diag::{Diagnostic, Diagnostics, Severity};
pub(crate) use expression::{Expression, Origin, Part};
use expression::{Found, blocks_around};
pub use groups::{Group, GroupRule};
pub use rules::{
    Literal, LiteralNumber, all, also_requires, any, any_with_all_warnings, at_least, at_least_one_of, at_least_sum_of,
    at_most, at_most_sum_of, between, conflicts_with, each, equal_to_product_of, equal_to_sum_of, equals,
    exactly_one_of, is_required, keys_are, length_at_least, length_at_most, length_between, no_null_values, none_of,
    none_of_case_insensitive, one_of, one_of_case_insensitive, prefer_write_only, regex_matches, size_at_least,
    size_at_most, size_between, unique_values, utf8_length_at_least, utf8_length_at_most, utf8_length_between,
};

/// A rule that is implemented by a function, which returns an error or a warning if the value breaks the rule.
pub type Rule = Arc<dyn Fn(&Check<'_>) -> Option<Diagnostic> + Send + Sync>;

/// A rule for one attribute, created by the functions of this [module](self). A rule names other attributes by path expressions. The
/// attribute's own name may be among them.
///
/// A rule that does not apply to the attribute's type, or names an attribute that does not exist, is refused when the schemas are
/// requested. If the attribute has the dynamic type, a value of the wrong type is an error of the configuration.
#[derive(Clone)]
pub enum Validator {
    /// Exactly one of this attribute and these attributes must be set.
    ExactlyOneOf(&'static [&'static str]),
    /// If this attribute is set, none of these attributes may be set.
    ConflictsWith(&'static [&'static str]),
    /// If this attribute is set, all of these attributes must be set.
    AlsoRequires(&'static [&'static str]),
    /// The text must be one of these.
    OneOf(&'static [&'static str]),
    /// The number must be at least this.
    AtLeast(i64),
    /// The number must be at least the sum of these attributes; an attribute that is not set counts as zero.
    AtLeastSumOf(&'static [&'static str]),
    /// Minimum and maximum number of elements of the list, set or map.
    Size(usize, usize),
    /// Minimum length of the text in bytes.
    LengthAtLeast(usize),
    /// The nested block must be present, or at least one if there can be several.
    Required,
    /// Every element of the list, set or map must satisfy this rule.
    Each(Box<Validator>),
    /// Every key of the map must satisfy this rule.
    Keys(Box<Validator>),
    /// All of these rules must hold.
    All(Vec<Validator>),
    /// At least one of these rules must hold. If the flag is true, the warnings of all rules are shown.
    Any(Vec<Validator>, bool),
    /// Rule that is implemented by a function.
    Custom(Rule),
    /// Rule created by a function of the module.
    #[doc(hidden)]
    Named(Arc<NamedRule>),
}

/// Values for which a rule is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum On {
    /// Values that are set: neither null nor an empty collection.
    Set,
    /// All known values, including null.
    Always,
}

/// Function that implements a rule of this module.
type Run = Box<dyn Fn(&Check<'_>) -> Option<Diagnostic> + Send + Sync>;

/// A rule created by a function of this module.
#[doc(hidden)]
pub struct NamedRule {
    /// The function call that creates the rule, for error messages to authors.
    pub(crate) text: String,
    pub(crate) subject: Option<Subject>,
    /// Path expressions in the rule.
    pub(crate) paths: Vec<&'static str>,
    /// Reason why the rule is invalid for every attribute, such as a bad regular expression.
    pub(crate) problem: Option<String>,
    pub(crate) on: On,
    pub(crate) run: Run,
}

impl From<NamedRule> for Validator {
    fn from(rule: NamedRule) -> Validator {
        Validator::Named(Arc::new(rule))
    }
}

impl Validator {
    /// Creates a rule that is implemented by a function. The function is called for known values that are set, which excludes null and
    /// empty collections.
    pub fn custom(rule: impl Fn(&Check<'_>) -> Option<Diagnostic> + Send + Sync + 'static) -> Validator {
        Validator::Custom(Arc::new(rule))
    }

    /// Creates a rule for every element of a list, set or map.
    #[must_use]
    pub fn each(rule: Validator) -> Validator {
        Validator::Each(Box::new(rule))
    }
}

/// Types that a rule applies to: their description, and a predicate.
pub(crate) type Subject = (&'static str, fn(&Type) -> bool);

/// Returns the types to which a rule applies; `None` if it applies to all.
fn subject(rule: &Validator) -> Option<Subject> {
    match rule {
        Validator::OneOf(_) | Validator::LengthAtLeast(_) => Some(("strings", |ty| *ty == Type::String)),
        Validator::AtLeast(_) | Validator::AtLeastSumOf(_) => Some(("numbers", |ty| *ty == Type::Number)),
        Validator::Size(..) | Validator::Each(_) => Some(("lists, sets and maps", |ty| {
            matches!(ty, Type::List(_) | Type::Set(_) | Type::Map(_) | Type::Tuple(_))
        })),
        Validator::Keys(_) => Some(("maps", |ty| matches!(ty, Type::Map(_)))),
        Validator::Named(rule) => rule.subject,
        Validator::ExactlyOneOf(_)
        | Validator::ConflictsWith(_)
        | Validator::AlsoRequires(_)
        | Validator::Required
        | Validator::All(_)
        | Validator::Any(..)
        | Validator::Custom(_) => None,
    }
}

impl Validator {
    /// Returns the reason why this rule is invalid for an attribute of this type; `None` if it is valid. `exists` returns true if a path
    /// expression names a member of the schema.
    pub(crate) fn problem(&self, ty: &Type, exists: &dyn Fn(&str) -> bool) -> Option<String> {
        if let Some((subject, fits)) = subject(self)
            // If the attribute has the dynamic type, each configured value is checked instead.
            && *ty != Type::Dynamic
            && !fits(ty)
        {
            return Some(format!("the rule {self:?} is for {subject}, not for {ty}"));
        }
        match self {
            Validator::ExactlyOneOf(names)
            | Validator::ConflictsWith(names)
            | Validator::AlsoRequires(names)
            | Validator::AtLeastSumOf(names) => {
                let missing = names.iter().find(|name| !exists(name))?;
                Some(format!("the rule {self:?} names {missing:?}, which is not there"))
            }
            Validator::Named(rule) => {
                if let Some(problem) = &rule.problem {
                    return Some(format!("the rule {self:?}: {problem}"));
                }
                let missing = rule.paths.iter().find(|path| !exists(path))?;
                Some(format!("the rule {self:?} names {missing:?}, which is not there"))
            }
            Validator::All(rules) | Validator::Any(rules, _) if rules.is_empty() => {
                Some(format!("the rule {self:?} has no rules"))
            }
            Validator::All(rules) | Validator::Any(rules, _) => rules.iter().find_map(|rule| rule.problem(ty, exists)),
            Validator::Keys(rule) => rule.problem(&Type::String, exists),
            Validator::OneOf([]) => Some("the rule OneOf([]) has no value: no value is allowed".into()),
            Validator::Size(least, most) if least > most => Some(format!("the rule {self:?}: nothing can be so long")),
            Validator::Each(rule) => match ty {
                Type::List(element) | Type::Set(element) | Type::Map(element) => rule.problem(element, exists),
                _ => None,
            },
            _ => None,
        }
    }
}

impl fmt::Debug for Validator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Validator::ExactlyOneOf(names) => write!(f, "ExactlyOneOf({names:?})"),
            Validator::ConflictsWith(names) => write!(f, "ConflictsWith({names:?})"),
            Validator::AlsoRequires(names) => write!(f, "AlsoRequires({names:?})"),
            Validator::OneOf(names) => write!(f, "OneOf({names:?})"),
            Validator::AtLeast(n) => write!(f, "AtLeast({n})"),
            Validator::AtLeastSumOf(names) => write!(f, "AtLeastSumOf({names:?})"),
            Validator::Size(least, most) => write!(f, "Size({least}, {most})"),
            Validator::LengthAtLeast(n) => write!(f, "LengthAtLeast({n})"),
            Validator::Required => f.write_str("Required"),
            Validator::Each(rule) => write!(f, "Each({rule:?})"),
            Validator::Keys(rule) => write!(f, "keys_are({rule:?})"),
            Validator::All(rules) => write!(f, "all({rules:?})"),
            Validator::Any(rules, false) => write!(f, "any({rules:?})"),
            Validator::Any(rules, true) => write!(f, "any_with_all_warnings({rules:?})"),
            Validator::Named(rule) => f.write_str(&rule.text),
            Validator::Custom(_) => f.write_str("Custom"),
        }
    }
}

/// Configuration of one attribute, as the input of a rule.
#[derive(Clone)]
pub struct Check<'a> {
    /// Path of the attribute.
    pub path: Path,
    /// The configured value of the attribute.
    pub value: &'a Value,
    /// The configuration of the block that contains the attribute.
    pub block: &'a Value,
    /// The configuration of the outermost block.
    pub config: &'a Value,
    /// True if the host supports write-only attributes.
    pub write_only_allowed: bool,
}

impl<'a> Check<'a> {
    /// Returns the value of another attribute by its path expression. If the expression names several values, returns the first; `None` if
    /// it names none.
    #[must_use]
    pub fn other(&self, path: &str) -> Option<&'a Value> {
        self.block.get(path).or_else(|| self.find(path).values.first().copied())
    }

    /// Finds the values that a path expression names.
    fn find(&self, path: &str) -> Found<'a> {
        // Most expressions are names in the same block, and need no parsing.
        if let Some(value) = self.block.get(path) {
            return Found {
                values: vec![value],
                open: false,
            };
        }
        let mut blocks = blocks_around(self.config, &self.path);
        if blocks.is_empty() {
            blocks.push(self.config);
        }
        Expression::parse(path).map(|e| e.find(&blocks)).unwrap_or_default()
    }

    /// Returns the number of attributes that are set: this one and those in `paths`. `None` if one is unknown.
    fn count(&self, paths: &[&'static str]) -> Option<usize> {
        let mut count = usize::from(!is_absent(self.value));
        for path in self.others(paths) {
            let found = self.find(path);
            if found.open || found.values.iter().any(|value| !value.is_known()) {
                return None;
            }
            count += usize::from(found.values.iter().any(|value| !is_absent(value)));
        }
        Some(count)
    }

    fn name(&self) -> String {
        path_text(&self.path)
    }

    /// Returns the names without that of the checked attribute.
    fn others<'n>(&self, names: &'n [&'static str]) -> impl Iterator<Item = &'n &'static str> {
        // Authors often declare one rule with the same names on each attribute of a group.
        let own = self.path.0.iter().rev().find_map(|step| match step {
            Step::Attribute(name) => Some(name.clone()),
            Step::Index(_) => None,
        });
        names.iter().filter(move |name| own.as_deref() != Some(**name))
    }

    /// Returns the input for checking a part of the value.
    fn of<'b>(&'b self, path: Path, value: &'b Value) -> Check<'b> {
        Check {
            path,
            value,
            ..self.clone()
        }
    }

    fn error(&self, summary: &str, detail: String) -> Option<Diagnostic> {
        Some(Diagnostic::error(summary, detail).at(self.path.clone()))
    }

    fn bad_value(&self, summary: &str, rule: &str, got: impl fmt::Display) -> Option<Diagnostic> {
        self.error(summary, format!("Attribute {} {rule}, got: {got}", self.name()))
    }

    fn combination(&self, detail: String) -> Option<Diagnostic> {
        self.error("Invalid Attribute Combination", detail)
    }
}

/// Formats a path for messages: `part[0].content`.
fn path_text(path: &Path) -> String {
    path.to_string().trim_start_matches('.').to_owned()
}

/// Returns true if a value counts as absent: null, or an empty list, set or map.
pub(crate) fn is_absent(value: &Value) -> bool {
    let is_collection = !matches!(value.ty(), Type::Object(_));
    value.is_null() || (is_collection && value.len() == Some(0))
}

impl Validator {
    /// Runs the rule on the value, or on each element or key if it is a rule for these.
    pub(crate) fn run_into(&self, check: Check<'_>, out: &mut Diagnostics) {
        match self {
            Validator::Each(rule) => {
                out.0.extend(self.wrong_type(&check));
                each_element(rule, &check, out);
            }
            Validator::Keys(rule) => {
                out.0.extend(self.wrong_type(&check));
                for (key, _) in check.value.entries().into_iter().flatten() {
                    let key = Value::shared_string(key.clone());
                    let path = check.path.with(Step::Index(key.clone()));
                    rule.run_into(check.of(path, &key), out);
                }
            }
            Validator::All(rules) => rules.iter().for_each(|rule| rule.run_into(check.clone(), out)),
            Validator::Any(rules, all_warnings) => any_rule(rules, *all_warnings, &check, out),
            _ => out.0.extend(self.run(&check)),
        }
    }
}

/// Checks the elements of a list, set or map.
fn each_element(rule: &Validator, check: &Check<'_>, out: &mut Diagnostics) {
    let mut run = |key: Value, value: &Value| {
        rule.run_into(check.of(check.path.with(Step::Index(key)), value), out);
    };
    match (check.value.as_seq(), check.value.entries(), check.value.ty()) {
        // The key of an element of a set is the element itself.
        (Some(elements), _, Type::Set(_)) => elements.iter().for_each(|element| run(element.clone(), element)),
        (Some(elements), _, Type::List(_) | Type::Tuple(_)) => {
            elements
                .iter()
                .enumerate()
                .for_each(|(i, element)| run(Value::number(i as i64), element));
        }
        (_, Some(entries), Type::Map(_)) => {
            entries.for_each(|(key, element)| run(Value::shared_string(key.clone()), element));
        }
        _ => {}
    }
}

/// Checks that at least one of several rules holds.
fn any_rule(rules: &[Validator], all_warnings: bool, check: &Check<'_>, out: &mut Diagnostics) {
    let mut found = Vec::with_capacity(rules.len());
    for rule in rules {
        let mut result = Diagnostics::new();
        rule.run_into(check.clone(), &mut result);
        found.push(result);
    }
    let warnings = |found: Diagnostics| found.0.into_iter().filter(|d| d.severity == Severity::Warning);
    match found.iter().position(|result| !result.has_errors()) {
        Some(_) if all_warnings => out.0.extend(found.into_iter().flat_map(warnings)),
        Some(first) => out.append(found.swap_remove(first)),
        None => found.into_iter().for_each(|result| out.append(result)),
    }
}

impl Validator {
    /// Returns an error if the rule does not apply to the type of the value. This is possible only for an attribute or an element of the
    /// dynamic type.
    fn wrong_type(&self, check: &Check<'_>) -> Option<Diagnostic> {
        let (wanted, fits) = subject(self)?;
        if !check.value.is_present() || fits(check.value.ty()) {
            return None;
        }
        let (name, got) = (check.name(), check.value.ty());
        check.error(
            "Invalid Attribute Value Type",
            format!("Attribute {name} has a rule for {wanted}, which its value cannot obey, got: {got}"),
        )
    }

    fn run(&self, check: &Check<'_>) -> Option<Diagnostic> {
        let value = check.value;
        // The value is checked again when it is known.
        if !value.is_known() {
            return None;
        }
        if let Some(error) = self.wrong_type(check) {
            return Some(error);
        }
        match self {
            Validator::Named(rule) if rule.on == On::Always => (rule.run)(check),
            Validator::ExactlyOneOf(names) => only_one_of(names, check),
            Validator::Required => is_absent(value).then(|| {
                let detail = format!(
                    "Block {} must have a configuration value as the provider has marked it as required",
                    check.name()
                );
                Diagnostic::error("Invalid Block", detail).at(check.path.clone())
            }),
            // An empty list counts as absent, but it can break this rule, unlike null.
            Validator::Size(..) if value.is_null() => None,
            _ if is_absent(value) && !matches!(self, Validator::Size(..)) => None,
            Validator::ConflictsWith(names) => {
                let is_set = |v: &&Value| v.is_known() && !is_absent(v);
                let other = check.others(names).find(|n| check.find(n).values.iter().any(is_set))?;
                let this = check.name();
                check.combination(format!(
                    "Attribute \"{other}\" cannot be specified when \"{this}\" is specified"
                ))
            }
            Validator::AlsoRequires(names) => {
                let is_missing = |found: &Found<'_>| {
                    let none = found.values.is_empty() && !found.open;
                    none || found.values.iter().any(|value| is_absent(value))
                };
                let other = check.others(names).find(|n| is_missing(&check.find(n)))?;
                let this = check.name();
                check.combination(format!(
                    "Attribute \"{other}\" must be specified when \"{this}\" is specified"
                ))
            }
            Validator::Custom(rule) => rule(check),
            Validator::Named(rule) => (rule.run)(check),
            // `run_into` has already run these rules on each part.
            Validator::Each(_) | Validator::Keys(_) | Validator::All(_) | Validator::Any(..) => None,
            _ => self.run_on_value(check),
        }
    }

    /// Runs a rule about the value alone, or about a sum of attributes.
    fn run_on_value(&self, check: &Check<'_>) -> Option<Diagnostic> {
        let value = check.value;
        match self {
            Validator::OneOf(allowed) => {
                let text = value.as_str()?;
                if allowed.contains(&text) {
                    return None;
                }
                let list: Vec<String> = allowed.iter().map(|a| format!("{a:?}")).collect();
                let rule = format!("value must be one of: [{}]", list.join(" "));
                check.bad_value("Invalid Attribute Value Match", &rule, format_args!("{text:?}"))
            }
            Validator::AtLeast(least) => {
                let number = value.as_number()?;
                (*number < Number::from(*least)).then(|| {
                    check.bad_value(
                        "Invalid Attribute Value",
                        &format!("value must be at least {least}"),
                        number,
                    )
                })?
            }
            Validator::AtLeastSumOf(names) => {
                let number = value.as_number()?;
                let mut sum = Number::from(0);
                for name in names.iter() {
                    // If a part is unknown, so is the sum: the rule is checked once all parts are known.
                    let other = check.other(name)?;
                    if !other.is_known() {
                        return None;
                    }
                    if let Some(n) = other.as_number() {
                        sum = sum.add(n)?;
                    }
                }
                let rule = format!("value must be at least sum of {}", names.join(" + "));
                (*number < sum).then(|| check.bad_value("Invalid Attribute Value", &rule, number))?
            }
            Validator::Size(least, most) => {
                let count = value.len()?;
                let what = match value.ty() {
                    Type::Set(_) => "set",
                    Type::Map(_) => "map",
                    _ => "list",
                };
                let rule = match (*least, *most) {
                    (least, usize::MAX) => format!("{what} must contain at least {least} elements"),
                    (0, most) => format!("{what} must contain at most {most} elements"),
                    (least, most) => {
                        format!("{what} must contain at least {least} elements and at most {most} elements")
                    }
                };
                (count < *least || count > *most).then(|| check.bad_value("Invalid Attribute Value", &rule, count))?
            }
            Validator::LengthAtLeast(least) => {
                // The length is in bytes, as in the official providers.
                let length = value.as_str()?.len();
                let rule = format!("string length must be at least {least}");
                (length < *least).then(|| check.bad_value("Invalid Attribute Value Length", &rule, length))?
            }
            _ => None,
        }
    }
}

/// Checks [`Validator::ExactlyOneOf`]. Unlike most rules, it also runs for an absent value: a group without any value is an error.
fn only_one_of(names: &[&'static str], check: &Check<'_>) -> Option<Diagnostic> {
    let count = check.count(names)?;
    let group = names.join(",");
    match count {
        0 => check.combination(format!(
            "No attribute specified when one (and only one) of [{group}] is required"
        )),
        1 => None,
        n => check.combination(format!(
            "{n} attributes specified when one (and only one) of [{group}] is required"
        )),
    }
}

#[cfg(test)]
mod tests;
