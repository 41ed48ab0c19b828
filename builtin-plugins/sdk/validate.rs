//! Rules for what a configuration may say, beside what its schema's types say.
//!
//! Summaries and details follow a fixed vocabulary, because people search for them and tests match on them. Rules are
//! about what is known: an unknown value satisfies every rule, it is looked at again when it is known.

use std::fmt;
use std::sync::Arc;

use cty::{Number, Path, Step, Type, Value};

use crate::schema::{Compiled, CompiledMember, Nesting};
use crate::{Diagnostic, Diagnostics, Model};

/// A rule written as a function: nothing, or what is wrong.
pub type Rule = Arc<dyn Fn(&Check<'_>) -> Option<Diagnostic> + Send + Sync>;

/// A rule for one attribute. Names of other attributes are those of the same block, or else of the outermost one; the
/// attribute's own name may be among them.
///
/// A rule that does not fit the attribute's type, or names what is not there, is refused when the plugin starts. For an
/// attribute of any type, a value of the wrong type is an error of the configuration.
#[derive(Clone)]
pub enum Validator {
    /// Exactly one of this attribute and these must be set.
    ExactlyOneOf(&'static [&'static str]),
    /// If this attribute is set, none of these may be.
    ConflictsWith(&'static [&'static str]),
    /// If this attribute is set, all of these must be.
    AlsoRequires(&'static [&'static str]),
    /// The text is one of these.
    OneOf(&'static [&'static str]),
    /// The number is at least this.
    AtLeast(i64),
    /// The number is at least the sum of these attributes; one that is not set counts nothing.
    AtLeastSumOf(&'static [&'static str]),
    /// The list, set or map has at least so many elements, and at most so many.
    Size(usize, usize),
    /// The text has at least so many bytes.
    LengthAtLeast(usize),
    /// The nested block must be there.
    Required,
    /// Every element of the list, set or map obeys this rule.
    Each(Box<Validator>),
    /// Any other rule.
    Custom(Rule),
}

impl Validator {
    /// A rule written as a function. It runs for values that are known and set: not null, and with elements if it is a
    /// collection.
    pub fn custom(rule: impl Fn(&Check<'_>) -> Option<Diagnostic> + Send + Sync + 'static) -> Validator {
        Validator::Custom(Arc::new(rule))
    }

    /// A rule for every element of a list, set or map.
    #[must_use]
    pub fn each(rule: Validator) -> Validator {
        Validator::Each(Box::new(rule))
    }
}

/// The types of values that a rule is about: in words, and whether a type is one of them.
type Subject = (&'static str, fn(&Type) -> bool);

/// The types of values that a rule is about.
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
    /// Why this rule cannot be one for values of this type; `exists` says whether there is a member of this name.
    pub(crate) fn problem(&self, ty: &Type, exists: &dyn Fn(&str) -> bool) -> Option<String> {
        if let Some((subject, fits)) = subject(self)
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

/// One attribute's configuration, as a rule sees it.
pub struct Check<'a> {
    /// Where the attribute stands.
    pub path: Path,
    /// Its configured value.
    pub value: &'a Value,
    /// The configuration of the block in which it stands.
    pub block: &'a Value,
    /// The configuration of the outermost block.
    pub config: &'a Value,
}

impl Check<'_> {
    /// The value of another attribute: of the same block, or else of the outermost one.
    #[must_use]
    pub fn other(&self, name: &str) -> Option<&Value> {
        self.block.get(name).or_else(|| self.config.get(name))
    }

    fn name(&self) -> String {
        path_text(&self.path)
    }

    /// The other attributes among these.
    fn others<'n>(&self, names: &'n [&'static str]) -> impl Iterator<Item = &'n &'static str> {
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

/// Runs a plugin's own rules. They are about whole models, in which an [`Attr`](crate::Attr) says what is not known yet. Where a
/// model cannot say so (blocks as a plain `Vec`, whose number is not known), the rules wait until it is.
pub(crate) fn own_rules<M: Model>(config: &Value, rules: impl FnOnce(&M) -> Diagnostics) -> Diagnostics {
    match M::from_cty(config) {
        Ok(model) => rules(&model),
        Err(error) if error.unknown => Diagnostics::new(),
        Err(error) => error.of_configuration(),
    }
}

/// A path as these messages write it: `part[0].content`.
fn path_text(path: &Path) -> String {
    path.to_string().trim_start_matches('.').to_owned()
}

/// A block collection without blocks counts as absent.
fn is_absent(value: &Value) -> bool {
    let is_collection = !matches!(value.ty(), Type::Object(_));
    value.is_null() || (is_collection && value.len() == Some(0))
}

/// Checks a configuration against every rule of its schema, and says what is deprecated.
pub(crate) fn check(schema: &Compiled, config: &Value, write_only_allowed: bool) -> Diagnostics {
    let mut out = Diagnostics::new();
    if let Some(advice) = schema.schema.root.deprecated {
        out.push(Diagnostic::warning("Deprecated", advice));
    }
    check_block(
        &schema.members,
        config,
        config,
        &Path::root(),
        write_only_allowed,
        &mut out,
    );
    for group in &schema.schema.at_least_one_of {
        let members: Vec<&Value> = group.iter().filter_map(|name| config.get(name)).collect();
        if members.iter().all(|v| v.is_known() && is_absent(v)) {
            out.push(Diagnostic::error(
                "Missing Attribute Configuration",
                format!(
                    "At least one of these attributes must be configured: [{}]",
                    group.join(",")
                ),
            ));
        }
    }
    out
}

fn check_block(
    members: &[CompiledMember],
    block: &Value,
    config: &Value,
    path: &Path,
    write_only_allowed: bool,
    out: &mut Diagnostics,
) {
    for member in members {
        let (name, validators) = (member.name(), member.validators());
        let Some(value) = block.get(name) else { continue };
        for validator in validators {
            validator.run_into(
                Check {
                    path: path.attribute(name),
                    value,
                    block,
                    config,
                },
                out,
            );
        }
        if let Some(a) = member.attribute() {
            if a.required && value.is_null() {
                out.push(missing(name).at(path.attribute(name)));
            }
            if a.computed && !a.optional && !value.is_null() {
                out.push(read_only(name).at(path.attribute(name)));
            }
            if a.write_only && !write_only_allowed && !value.is_null() {
                out.push(
                    Diagnostic::error(
                        "WriteOnly Attribute Not Allowed",
                        format!(
                            "The attribute {name} is never stored, which the program that runs this plugin does not \
                                 support. Write-only attributes need Terraform 1.11 or later."
                        ),
                    )
                    .at(path.attribute(name)),
                );
            }
            if let Some(advice) = a.deprecated
                && value.is_present()
            {
                out.push(Diagnostic::warning("Attribute Deprecated", advice).at(path.attribute(name)));
            }
        }
        if let Some((nesting, members)) = member.inside() {
            let path = path.attribute(name);
            let mut check =
                |item: &Value, path: &Path| check_block(members, item, config, path, write_only_allowed, out);
            match nesting {
                Nesting::Single | Nesting::Group if value.is_present() => check(value, &path),
                Nesting::Single | Nesting::Group => {}
                Nesting::List => {
                    for (i, item) in value.as_seq().unwrap_or_default().iter().enumerate() {
                        check(item, &path.with(Step::Index(Value::number(i as i64))));
                    }
                }
                Nesting::Set => {
                    for item in value.as_seq().unwrap_or_default() {
                        check(item, &path.with(Step::Index(item.clone())));
                    }
                }
                Nesting::Map => {
                    for (key, item) in value.entries().into_iter().flatten() {
                        check(item, &path.with(Step::Index(Value::shared_string(key.clone()))));
                    }
                }
            }
        }
    }
}

fn missing(name: &str) -> Diagnostic {
    let detail = format!("The attribute {name} is required: give it a value that is not null.");
    Diagnostic::error("Missing Configuration for Required Attribute", detail)
}

fn read_only(name: &str) -> Diagnostic {
    let detail = format!("The attribute {name} is a result and cannot be set. Remove it from the configuration.");
    Diagnostic::error("Invalid Configuration for Read-Only Attribute", detail)
}

impl Validator {
    fn run_into(&self, check: Check<'_>, out: &mut Diagnostics) {
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

    /// The error for a value that this rule is not about. The schema allows it where it says nothing about the type.
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
        if !value.is_known() {
            return None;
        }
        if let Some(error) = self.wrong_type(check) {
            return Some(error);
        }
        match self {
            // The one rule that speaks about absence: it is attached to each member of the group.
            Validator::ExactlyOneOf(names) => {
                let mut count = usize::from(!is_absent(value));
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
            Validator::Required => is_absent(value).then(|| {
                let detail = format!(
                    "Block {} must have a configuration value as the provider has marked it as required",
                    check.name()
                );
                Diagnostic::error("Invalid Block", detail).at(check.path.clone())
            }),
            // Too few is what this rule is about: a list without elements is looked at, too.
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
                let length = value.as_str()?.len();
                let rule = format!("string length must be at least {least}");
                (length < *least).then(|| check.bad_value("Invalid Attribute Value Length", &rule, length))?
            }
            Validator::Custom(rule) => rule(check),
            // Looked at element by element, before this.
            Validator::Each(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{Schema, block, nested, optional};
    use crate::{Any, Attr, Model, model};

    model! {
        /// A nested block.
        pub struct Inner {
            /// One of two.
            pub kind: Attr<String> = optional().validate(Validator::OneOf(&["A", "B"])),
        }
    }

    model! {
        /// Every rule.
        pub struct Rules {
            /// Not together with `b`.
            pub a: Attr<String> = optional().validate(Validator::ConflictsWith(&["b"])),
            /// Only together with `c`.
            pub b: Attr<String> = optional().validate(Validator::AlsoRequires(&["c"])),
            /// At least three bytes.
            pub c: Attr<String> = optional().validate(Validator::LengthAtLeast(3)),
            /// One to two elements, each of at least two bytes.
            pub list: Attr<Vec<String>> = optional()
                .validate(Validator::Size(1, 2))
                .validate(Validator::each(Validator::LengthAtLeast(2))),
            /// Never stored.
            pub password: Attr<String> = optional().write_only(),
            /// Old.
            pub old: Attr<String> = optional().deprecated("Use a instead."),
            /// Must be there.
            pub inner: Vec<Inner> = block().validate(Validator::Required),
        }
    }

    fn details(config: &Rules) -> Vec<String> {
        let schema = Compiled::new(Schema::of::<Rules>().at_least_one_of(&["a", "b", "inner"]));
        let found = check(&schema, &config.to_object(&schema.object), false);
        found
            .0
            .into_iter()
            .map(|d| format!("{}: {}", d.summary, d.detail))
            .collect()
    }

    fn good() -> Rules {
        Rules {
            inner: vec![Inner { kind: "A".into() }],
            ..Rules::default()
        }
    }

    #[test]
    fn each_rule_has_its_words() {
        let text = || Attr::from("xyz");
        for (config, expected) in [
            (good(), vec![]),
            (
                Rules {
                    inner: vec![],
                    ..good()
                },
                vec![
                    "Invalid Block: Block inner must have a configuration value as the provider has marked it as required",
                    "Missing Attribute Configuration: At least one of these attributes must be configured: [a,b,inner]",
                ],
            ),
            (
                Rules {
                    a: text(),
                    b: text(),
                    ..good()
                },
                vec![
                    "Invalid Attribute Combination: Attribute \"b\" cannot be specified when \"a\" is specified",
                    "Invalid Attribute Combination: Attribute \"c\" must be specified when \"b\" is specified",
                ],
            ),
            (
                Rules {
                    a: text(),
                    b: Attr::Unknown,
                    ..good()
                },
                vec![],
            ),
            (
                Rules {
                    c: "ab".into(),
                    ..good()
                },
                vec!["Invalid Attribute Value Length: Attribute c string length must be at least 3, got: 2"],
            ),
            (
                Rules {
                    inner: vec![Inner { kind: "C".into() }],
                    ..good()
                },
                vec![
                    "Invalid Attribute Value Match: Attribute inner[0].kind value must be one of: [\"A\" \"B\"], got: \"C\"",
                ],
            ),
            (
                Rules {
                    list: vec!["xy".to_owned(), "xy".to_owned(), "z".to_owned()].into(),
                    ..good()
                },
                vec![
                    "Invalid Attribute Value: Attribute list list must contain at least 1 elements and at most 2 elements, \
                     got: 3",
                    "Invalid Attribute Value Length: Attribute list[2] string length must be at least 2, got: 1",
                ],
            ),
            (
                Rules {
                    list: Vec::new().into(),
                    ..good()
                },
                vec![
                    "Invalid Attribute Value: Attribute list list must contain at least 1 elements and at most 2 elements, \
                     got: 0",
                ],
            ),
            (
                Rules { old: text(), ..good() },
                vec!["Attribute Deprecated: Use a instead."],
            ),
        ] {
            assert_eq!(details(&config), expected, "{config:?}");
        }
        let written = details(&Rules {
            password: text(),
            ..good()
        });
        assert!(written[0].starts_with("WriteOnly Attribute Not Allowed"), "{written:?}");
    }

    model! {
        /// A block whose attributes exclude each other.
        pub struct Choice {
            /// One.
            pub one: Attr<String> = optional().validate(Validator::ExactlyOneOf(&["one", "two"])),
            /// The other.
            pub two: Attr<String> = optional().validate(Validator::ConflictsWith(&["one", "two"])),
        }
    }

    model! {
        /// Choices at every level.
        pub struct Choices {
            /// One.
            pub one: Attr<String> = optional().validate(Validator::ExactlyOneOf(&["one", "two"])),
            /// The other.
            pub two: Attr<String> = optional().validate(Validator::ConflictsWith(&["one", "two"])),
            /// In blocks.
            pub block: Vec<Choice> = block(),
            /// In an attribute.
            pub attribute: Attr<std::collections::BTreeMap<String, Choice>> = nested(optional()),
        }
    }

    fn found<M: Model>(config: &M) -> Vec<String> {
        let schema = Compiled::new(Schema::of::<M>());
        let found = check(&schema, &config.to_object(&schema.object), true).0;
        found
            .into_iter()
            .map(|d| format!("{}: {}", d.summary, d.detail))
            .collect()
    }

    #[test]
    fn an_attribute_does_not_count_itself_at_any_level() {
        let (one, two) = (
            Choice {
                one: "x".into(),
                ..Choice::default()
            },
            Choice {
                two: "x".into(),
                ..Choice::default()
            },
        );
        let choices = |one: Attr<String>, block: &[&Choice]| Choices {
            one,
            block: block.iter().map(|c| (*c).clone()).collect(),
            attribute: std::collections::BTreeMap::from([("k".to_owned(), two.clone())]).into(),
            ..Choices::default()
        };
        assert_eq!(found(&choices("x".into(), &[&one, &two])), [""; 0]);
        let both = Choice {
            one: "x".into(),
            two: "y".into(),
        };
        assert_eq!(
            found(&choices("x".into(), &[&one, &both])),
            [
                "Invalid Attribute Combination: 2 attributes specified when one (and only one) of [one,two] is required",
                "Invalid Attribute Combination: Attribute \"one\" cannot be specified when \"block[1].two\" is specified",
            ]
        );
    }

    model! {
        /// Rules for values of several types.
        pub struct Typed {
            /// Anything.
            pub any: Any = optional().validate(Validator::AtLeast(2)),
            /// Anything with elements.
            pub some: Any = optional().validate(Validator::each(Validator::OneOf(&["a"]))),
            /// At least one, whole or not.
            pub number: Attr<Number> = optional().validate(Validator::AtLeast(1)),
            /// By name.
            pub map: Attr<std::collections::BTreeMap<String, String>> = optional()
                .validate(Validator::each(Validator::LengthAtLeast(2)))
                .validate(Validator::Size(0, 1)),
        }
    }

    #[test]
    fn no_value_passes_in_silence() {
        let half = Number::from_f64(0.5).unwrap();
        for (config, expected) in [
            (
                Typed {
                    any: Any(3.into()),
                    ..Typed::default()
                },
                vec![],
            ),
            (
                Typed {
                    any: Any("3".into()),
                    ..Typed::default()
                },
                vec![
                    "Invalid Attribute Value Type: Attribute any has a rule for numbers, which its value cannot obey, got: \
                     string",
                ],
            ),
            (
                Typed {
                    some: Any(true.into()),
                    ..Typed::default()
                },
                vec![
                    "Invalid Attribute Value Type: Attribute some has a rule for lists, sets and maps, which its value \
                     cannot obey, got: bool",
                ],
            ),
            (
                Typed {
                    some: Any(Value::tuple(vec!["a".into(), 1.into()])),
                    ..Typed::default()
                },
                vec![
                    "Invalid Attribute Value Type: Attribute some[1] has a rule for strings, which its value cannot obey, \
                     got: number",
                ],
            ),
            (
                Typed {
                    number: half.into(),
                    ..Typed::default()
                },
                vec!["Invalid Attribute Value: Attribute number value must be at least 1, got: 0.5"],
            ),
            (
                Typed {
                    map: std::collections::BTreeMap::from([
                        ("a".to_owned(), "x".to_owned()),
                        ("b".to_owned(), "xy".to_owned()),
                    ])
                    .into(),
                    ..Typed::default()
                },
                vec![
                    "Invalid Attribute Value Length: Attribute map[\"a\"] string length must be at least 2, got: 1",
                    "Invalid Attribute Value: Attribute map map must contain at most 1 elements, got: 2",
                ],
            ),
        ] {
            assert_eq!(found(&config), expected, "{config:?}");
        }
    }

    #[test]
    fn one_unknown_element_does_not_switch_rules_off() {
        let schema = Compiled::new(Schema::of::<Rules>());
        let config = Rules {
            a: "bad".into(),
            ..good()
        }
        .to_object(&schema.object);
        let list = Value::list(Type::String, vec!["known".into(), Value::unknown(Type::String)]);
        let config = config.map_parts(|part, value| match part {
            cty::value::Part::Attribute(name) if &**name == "list" => list.clone(),
            _ => value.clone(),
        });
        let found = own_rules(&config, |rules: &Rules| {
            assert!(rules.list.is_unknown(), "the list as a whole is not known");
            Diagnostic::error("Bad", rules.a.text()).into()
        });
        assert_eq!(found.0[0].detail, "bad");
    }
}
