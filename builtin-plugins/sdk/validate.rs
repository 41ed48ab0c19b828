//! Rules for configured values, in addition to the types of the schema.
//!
//! Summaries and details follow a fixed vocabulary, because people search for them and tests match on them. Rules apply to
//! known values: an unknown value satisfies every rule, and is validated again when it is known.

use std::fmt;
use std::sync::Arc;

use cty::{Number, Path, Step, Type, Value};

use crate::diag::{Diagnostic, Diagnostics};

/// Rule that is implemented by a function: returns the error, if there is one.
pub type Rule = Arc<dyn Fn(&Check<'_>) -> Option<Diagnostic> + Send + Sync>;

/// A rule for one attribute. Names of other attributes are those of the same block, or else of the outermost one; the
/// attribute's own name may be among them.
///
/// A rule that does not fit the attribute's type, or names an attribute that does not exist, is refused when the plugin
/// starts. For an attribute of any type, a value of the wrong type is an error of the configuration.
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
    /// The nested block must be present.
    Required,
    /// Every element of the list, set or map must satisfy this rule.
    Each(Box<Validator>),
    /// Rule that is implemented by a function.
    Custom(Rule),
}

impl Validator {
    /// Creates a rule that is implemented by a function. It is called for values that are known and set: not null, and
    /// with elements if it is a collection.
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
type Subject = (&'static str, fn(&Type) -> bool);

/// Returns the types of values that a rule applies to; `None` for any.
fn subject(rule: &Validator) -> Option<Subject> {
    match rule {
        Validator::OneOf(_) | Validator::LengthAtLeast(_) => Some(("strings", |ty| *ty == Type::String)),
        Validator::AtLeast(_) | Validator::AtLeastSumOf(_) => Some(("numbers", |ty| *ty == Type::Number)),
        Validator::Size(..) | Validator::Each(_) => Some(("lists, sets and maps", |ty| {
            matches!(ty, Type::List(_) | Type::Set(_) | Type::Map(_) | Type::Tuple(_))
        })),
        Validator::ExactlyOneOf(_)
        | Validator::ConflictsWith(_)
        | Validator::AlsoRequires(_)
        | Validator::Required
        | Validator::Custom(_) => None,
    }
}

impl Validator {
    /// Returns the reason why this rule cannot apply to an attribute of this type. `exists` returns true for names of
    /// members.
    pub(crate) fn problem(&self, ty: &Type, exists: &dyn Fn(&str) -> bool) -> Option<String> {
        if let Some((subject, fits)) = subject(self)
            // An attribute of any type is checked by its values.
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
            Validator::Custom(_) => f.write_str("Custom"),
        }
    }
}

/// Configuration of one attribute, as the input of a rule.
pub struct Check<'a> {
    /// Path of the attribute.
    pub path: Path,
    /// The configured value of the attribute.
    pub value: &'a Value,
    /// The configuration of the block that has the attribute.
    pub block: &'a Value,
    /// The configuration of the outermost block.
    pub config: &'a Value,
}

impl Check<'_> {
    /// Returns the value of another attribute: of the same block, or else of the outermost one.
    #[must_use]
    pub fn other(&self, name: &str) -> Option<&Value> {
        self.block.get(name).or_else(|| self.config.get(name))
    }

    fn name(&self) -> String {
        path_text(&self.path)
    }

    /// Returns these attributes without the rule's own one.
    fn others<'n>(&self, names: &'n [&'static str]) -> impl Iterator<Item = &'n &'static str> {
        // A rule is often declared on each member of a group, with the same names.
        let own = self.path.0.iter().rev().find_map(|step| match step {
            Step::Attribute(name) => Some(name.clone()),
            Step::Index(_) => None,
        });
        names.iter().filter(move |name| own.as_deref() != Some(**name))
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

/// Returns true if a value counts as absent: null, or a block collection without blocks.
pub(crate) fn is_absent(value: &Value) -> bool {
    let is_collection = !matches!(value.ty(), Type::Object(_));
    value.is_null() || (is_collection && value.len() == Some(0))
}

impl Validator {
    /// Runs the rule, or runs it for each element if it is a rule for elements.
    pub(crate) fn run_into(&self, check: Check<'_>, out: &mut Diagnostics) {
        let Validator::Each(rule) = self else {
            out.0.extend(self.run(&check));
            return;
        };
        out.0.extend(self.wrong_type(&check));
        let mut run = |key: Value, value: &Value| {
            let element = Check {
                path: check.path.with(Step::Index(key)),
                value,
                block: check.block,
                config: check.config,
            };
            rule.run_into(element, out);
        };
        match (check.value.as_seq(), check.value.entries(), check.value.ty()) {
            // Elements of a set are their own keys.
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

    /// Returns the error for a value of a type to which this rule does not apply, which is possible if the schema leaves
    /// the type open.
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
            Validator::ExactlyOneOf(names) => exactly_one_of(names, check),
            Validator::Required => is_absent(value).then(|| {
                let detail = format!(
                    "Block {} must have a configuration value as the provider has marked it as required",
                    check.name()
                );
                Diagnostic::error("Invalid Block", detail).at(check.path.clone())
            }),
            // A list without elements may break this rule.
            Validator::Size(..) if value.is_null() => None,
            _ if is_absent(value) && !matches!(self, Validator::Size(..)) => None,
            Validator::ConflictsWith(names) => {
                let other = check
                    .others(names)
                    .find(|n| check.other(n).is_some_and(|v| v.is_known() && !is_absent(v)))?;
                let this = check.name();
                check.combination(format!(
                    "Attribute \"{other}\" cannot be specified when \"{this}\" is specified"
                ))
            }
            Validator::AlsoRequires(names) => {
                let other = check.others(names).find(|n| check.other(n).is_some_and(is_absent))?;
                let this = check.name();
                check.combination(format!(
                    "Attribute \"{other}\" must be specified when \"{this}\" is specified"
                ))
            }
            Validator::Custom(rule) => rule(check),
            // Run for each element before this.
            Validator::Each(_) => None,
            _ => self.run_on_value(check),
        }
    }

    /// Runs a rule about the value alone, or about a sum.
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
                    // A sum with an unknown part is undetermined.
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
                // In bytes, as the official providers count.
                let length = value.as_str()?.len();
                let rule = format!("string length must be at least {least}");
                (length < *least).then(|| check.bad_value("Invalid Attribute Value Length", &rule, length))?
            }
            _ => None,
        }
    }
}

/// Checks the only rule about absent values, which is attached to each member of a group.
fn exactly_one_of(names: &[&'static str], check: &Check<'_>) -> Option<Diagnostic> {
    let mut count = usize::from(!is_absent(check.value));
    for name in check.others(names) {
        let other = check.other(name)?;
        if !other.is_known() {
            return None;
        }
        count += usize::from(!is_absent(other));
    }
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
