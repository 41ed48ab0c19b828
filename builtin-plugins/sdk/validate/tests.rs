use super::*;
use crate::check::{against_schema, own_rules};
use crate::schema::{Compiled, Schema, block, nested, optional};
use crate::{Any, Attr, Model, model};

model! {
    pub struct Inner {
        pub kind: Attr<String> = optional().validate(Validator::OneOf(&["A", "B"])),
    }
}

model! {
    pub struct Rules {
        pub a: Attr<String> = optional().validate(Validator::ConflictsWith(&["b"])),
        pub b: Attr<String> = optional().validate(Validator::AlsoRequires(&["c"])),
        pub c: Attr<String> = optional().validate(Validator::LengthAtLeast(3)),
        pub list: Attr<Vec<String>> = optional()
            .validate(Validator::Size(1, 2))
            .validate(Validator::each(Validator::LengthAtLeast(2))),
        pub password: Attr<String> = optional().write_only(),
        pub old: Attr<String> = optional().deprecated("Use a instead."),
        pub inner: Vec<Inner> = block().validate(Validator::Required),
    }
}

fn details(config: &Rules) -> Vec<String> {
    let schema = Compiled::new(Schema::of::<Rules>().at_least_one_of(&["a", "b", "inner"]));
    let found = against_schema(&schema, &config.to_object(&schema.object), false);
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
    pub struct Choice {
        pub one: Attr<String> = optional().validate(Validator::ExactlyOneOf(&["one", "two"])),
        pub two: Attr<String> = optional().validate(Validator::ConflictsWith(&["one", "two"])),
    }
}

model! {
    pub struct Choices {
        pub one: Attr<String> = optional().validate(Validator::ExactlyOneOf(&["one", "two"])),
        pub two: Attr<String> = optional().validate(Validator::ConflictsWith(&["one", "two"])),
        pub block: Vec<Choice> = block(),
        pub attribute: Attr<std::collections::BTreeMap<String, Choice>> = nested(optional()),
    }
}

fn found<M: Model>(config: &M) -> Vec<String> {
    let schema = Compiled::new(Schema::of::<M>());
    let found = against_schema(&schema, &config.to_object(&schema.object), true).0;
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
    pub struct Typed {
        pub any: Any = optional().validate(Validator::AtLeast(2)),
        pub some: Any = optional().validate(Validator::each(Validator::OneOf(&["a"]))),
        pub number: Attr<Number> = optional().validate(Validator::AtLeast(1)),
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
