use std::collections::BTreeMap;

use super::super::*;
use crate::check::against_schema;
use crate::schema::{Compiled, Schema, block, nested, optional, required};
use crate::served::ServedProvider;
use crate::{Attr, Context, Cty, Model, Plain, Resource, Set, async_trait, model};

/// Runs a rule on the only attribute of a block. Returns the messages.
fn found(rule: &Validator, value: &Value) -> Vec<String> {
    let block = Value::object([("x", value.clone())]);
    let check = Check {
        path: Path::root().attribute("x"),
        value,
        block: &block,
        config: &block,
        write_only_allowed: true,
    };
    let mut out = Diagnostics::new();
    rule.run_into(check, &mut out);
    out.0
        .into_iter()
        .map(|d| format!("{}: {}", d.summary, d.detail))
        .collect()
}

fn text(text: &str) -> Value {
    text.into()
}

fn number(n: i64) -> Value {
    Value::number(n)
}

fn half(text: &str) -> Value {
    Value::number(Number::parse(text).unwrap())
}

fn list(items: &[&str]) -> Value {
    items.iter().map(|item| (*item).to_owned()).collect::<Vec<_>>().to_cty()
}

fn map(pairs: &[(&str, &str)]) -> Value {
    let pairs = pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
    pairs.collect::<BTreeMap<_, _>>().to_cty()
}

/// A rule, a value that satisfies it, a value that breaks it, and the end of the error message.
type Case = (Validator, Value, Value, &'static str);

fn texts() -> Vec<Case> {
    vec![
        (
            length_at_least(2),
            text("ab"),
            text("a"),
            "string length must be at least 2, got: 1",
        ),
        (
            length_at_most(2),
            text("ab"),
            text("abc"),
            "string length must be at most 2, got: 3",
        ),
        (
            length_between(1, 2),
            text("a"),
            text("ü€"),
            "string length must be between 1 and 2, got: 5",
        ),
        (
            utf8_length_at_least(2),
            text("ü€"),
            text("€"),
            "UTF-8 character count must be at least 2, got: 1",
        ),
        (
            utf8_length_at_most(2),
            text("ü€"),
            text("abc"),
            "UTF-8 character count must be at most 2, got: 3",
        ),
        (
            utf8_length_between(1, 2),
            text("ü€"),
            text(""),
            "UTF-8 character count must be between 1 and 2, got: 0",
        ),
        (
            regex_matches("^a+$", ""),
            text("aa"),
            text("ab"),
            "value must match regular expression '^a+$', got: ab",
        ),
        (
            regex_matches("b", "must have a b"),
            text("abc"),
            text("ac"),
            "must have a b, got: ac",
        ),
        (
            one_of(["a", "b"]),
            text("b"),
            text("B"),
            "value must be one of: [\"a\" \"b\"], got: \"B\"",
        ),
        (
            none_of(["a", "b"]),
            text("B"),
            text("b"),
            "value must be none of: [\"a\" \"b\"], got: \"b\"",
        ),
        (
            one_of_case_insensitive(&["Ä"]),
            text("ä"),
            text("a"),
            "value must be one of: [\"Ä\"], got: \"a\"",
        ),
        (
            none_of_case_insensitive(&["Ä"]),
            text("a"),
            text("ä"),
            "value must be none of: [\"Ä\"], got: \"ä\"",
        ),
    ]
}

fn numbers() -> Vec<Case> {
    vec![
        (
            one_of([1, 2]),
            number(2),
            number(3),
            "value must be one of: [1 2], got: 3",
        ),
        (
            none_of([0.5]),
            number(1),
            half("0.5"),
            "value must be none of: [0.5], got: 0.5",
        ),
        (
            equals(true),
            Value::bool(true),
            Value::bool(false),
            "value must be true, got: false",
        ),
        (at_least(2), number(2), number(1), "value must be at least 2, got: 1"),
        (
            at_most(0.5),
            half("0.5"),
            number(1),
            "value must be at most 0.5, got: 1",
        ),
        (
            between(1, 3),
            number(3),
            number(4),
            "value must be between 1 and 3, got: 4",
        ),
        (
            all([at_least(1), at_most(2)]),
            number(1),
            number(0),
            "value must be at least 1, got: 0",
        ),
        (
            any([one_of([1]), at_least(5)]),
            number(6),
            number(4),
            "value must be one of: [1], got: 4",
        ),
    ]
}

fn collections() -> Vec<Case> {
    let size = "list must contain at least 1 elements and at most 1 elements, got: 0";
    vec![
        (
            size_at_least(1),
            list(&["a"]),
            list(&[]),
            "list must contain at least 1 elements, got: 0",
        ),
        (
            size_at_most(1),
            list(&["a"]),
            list(&["a", "b"]),
            "list must contain at most 1 elements, got: 2",
        ),
        (size_between(1, 1), list(&["a"]), list(&[]), size),
        (
            unique_values(),
            list(&["a", "b"]),
            list(&["a", "b", "a"]),
            "contains duplicate values of: \"a\"",
        ),
        (
            keys_are(one_of(["k"])),
            map(&[("k", "v")]),
            map(&[("l", "v")]),
            "x[\"l\"] value must be one of: [\"k\"], got: \"l\"",
        ),
        (
            each(length_at_most(1)),
            map(&[("k", "v")]),
            map(&[("k", "vv")]),
            "x[\"k\"] string length must be at most 1, got: 2",
        ),
    ]
}

#[test]
fn each_rule_accepts_and_refuses() {
    for (rule, good, bad, message) in texts().into_iter().chain(numbers()).chain(collections()) {
        assert_eq!(found(&rule, &good), [""; 0], "{rule:?} {good:?}");
        let errors = found(&rule, &bad);
        assert!(
            errors.first().is_some_and(|e| e.ends_with(message)),
            "{rule:?} {bad:?}: {errors:?}"
        );
        assert_eq!(found(&rule, &Value::null(good.ty().clone())), [""; 0], "{rule:?}: null");
        assert_eq!(
            found(&rule, &Value::unknown(good.ty().clone())),
            [""; 0],
            "{rule:?}: unknown"
        );
    }
    assert_eq!(
        found(&length_at_least(2), &text("a")),
        ["Invalid Attribute Value Length: Attribute x string length must be at least 2, got: 1"]
    );
}

#[test]
fn elements_that_are_null_or_unknown() {
    let null = Value::null(Type::String);
    let unknown = Value::unknown(Type::String);
    let rule = no_null_values();
    let with = |item: &Value| Value::list(Type::String, vec!["a".into(), item.clone()]);
    assert_eq!(found(&rule, &with(&unknown)), [""; 0]);
    assert_eq!(
        found(&rule, &with(&null)),
        ["Null List Value: This attribute contains a null value."]
    );
    let map = Value::map(Type::String, BTreeMap::from([("k".into(), null.clone())]));
    assert_eq!(
        found(&rule, &map),
        ["Null Map Value: This attribute contains a null value."]
    );
    // Two unknown elements may turn out to be different, but two null elements are equal.
    let twice = |item: &Value| Value::list(Type::String, vec![item.clone(), item.clone()]);
    assert_eq!(found(&unique_values(), &twice(&unknown)), [""; 0]);
    assert_eq!(found(&unique_values(), &twice(&null)).len(), 1);
    assert_eq!(found(&each(one_of(["a"])), &with(&unknown)), [""; 0]);
}

#[test]
fn any_shows_the_warnings_that_belong_to_the_rules_that_hold() {
    let warn = |text: &'static str| Validator::custom(move |_| Some(Diagnostic::warning(text, "")));
    let one = || all([warn("one"), at_least(5)]);
    let two = || all([warn("two"), at_least(1)]);
    assert_eq!(found(&any([one(), two()]), &number(2)), ["two: "]);
    assert_eq!(found(&any([one(), two()]), &number(6)), ["one: "]);
    assert_eq!(
        found(&any_with_all_warnings([one(), two()]), &number(2)),
        ["one: ", "two: "]
    );
    assert_eq!(
        found(&any([one(), two()]), &number(0)).len(),
        4,
        "errors of all, with their warnings"
    );
}

model! {
    pub struct Disk {
        pub image: Attr<String> = optional().validate(conflicts_with(&["snapshot", "../zone"])),
        pub snapshot: Attr<String> = optional().validate(also_requires(&["/disk[*].size"])),
        pub size: Attr<i64> = optional()
            .validate(at_most_sum_of(&["../least", "/most"]))
            .validate(equal_to_product_of(&["./size", "../one"])),
        pub mode: Attr<String> = optional(),
    }
}

model! {
    pub struct Server {
        pub zone: Attr<String> = optional(),
        pub least: Attr<i64> = optional(),
        pub most: Attr<i64> = optional(),
        pub one: Attr<i64> = optional(),
        pub total: Attr<i64> = optional().validate(equal_to_sum_of(&["least", "most"])),
        pub sum: Attr<i64> = optional().validate(at_least_sum_of(&["disk[*].size"])),
        pub key: Attr<String> = optional().validate(exactly_one_of(&["key", "tags[\"key\"]"])),
        pub tags: Attr<BTreeMap<String, String>> = optional(),
        pub password: Attr<String> = optional().validate(prefer_write_only("password_wo")),
        pub password_wo: Attr<String> = optional().write_only(),
        pub disk: Vec<Disk> = block(),
        pub sets: Attr<Set<Disk>> = nested(optional()),
    }
}

fn check(server: &Server, write_only: bool) -> Vec<String> {
    let groups = Schema::of::<Server>()
        .conflicting(&["zone", "disk[*].mode"])
        .required_together(&["one", "disk[*].snapshot"]);
    let schema = Compiled::new(groups);
    let found = against_schema(&schema, &server.to_object(&schema.object), write_only);
    let place = |d: &Diagnostic| d.attribute.as_ref().map(ToString::to_string).unwrap_or_default();
    found.0.iter().map(|d| format!("{} {}", place(d), d.detail)).collect()
}

fn server() -> Server {
    Server {
        key: "k".into(),
        ..Server::default()
    }
}

fn disks(disks: impl IntoIterator<Item = Disk>) -> Server {
    Server {
        disk: disks.into_iter().collect(),
        ..server()
    }
}

fn image() -> Disk {
    Disk {
        image: "i".into(),
        ..Disk::default()
    }
}

fn sized(size: i64, snapshot: Attr<String>) -> Disk {
    Disk {
        size: size.into(),
        snapshot,
        ..Disk::default()
    }
}

#[test]
fn conflicts_are_found_in_blocks_around() {
    assert_eq!(check(&server(), true), [""; 0]);
    let config = Server {
        zone: "z".into(),
        ..disks([Disk::default(), image()])
    };
    assert_eq!(
        check(&config, true),
        [".disk[1].image Attribute \"../zone\" cannot be specified when \"disk[1].image\" is specified"]
    );
    // A set has no positions; the block around it is found all the same.
    let config = Server {
        zone: "z".into(),
        sets: Set(vec![image()]).into(),
        ..server()
    };
    assert_eq!(
        check(&config, true),
        [".sets[...].image Attribute \"../zone\" cannot be specified when \"sets[...].image\" is specified"]
    );
    let unknown = Disk {
        snapshot: Attr::Unknown,
        size: 1.into(),
        ..image()
    };
    let config = Server {
        zone: Attr::Unknown,
        most: 1.into(),
        one: 1.into(),
        ..disks([unknown])
    };
    assert_eq!(check(&config, true), [""; 0]);
    let config = Server {
        zone: "z".into(),
        ..disks([Disk {
            mode: "m".into(),
            ..Disk::default()
        }])
    };
    assert_eq!(
        check(&config, true),
        [" These attributes cannot be configured together: [zone,disk[*].mode]"]
    );
}

#[test]
fn attributes_that_belong_together_are_demanded() {
    let config = Server {
        one: 1.into(),
        ..disks([Disk {
            snapshot: "s".into(),
            ..Disk::default()
        }])
    };
    assert_eq!(
        check(&config, true),
        [".disk[0].snapshot Attribute \"/disk[*].size\" must be specified when \"disk[0].snapshot\" is specified"]
    );
    let config = Server {
        one: 1.into(),
        ..server()
    };
    assert_eq!(
        check(&config, true),
        [" These attributes must be configured together: [one,disk[*].snapshot]"]
    );
}

#[test]
fn sums_and_products_are_those_of_all_values() {
    let config = Server {
        least: 1.into(),
        most: 1.into(),
        one: 1.into(),
        sum: 4.into(),
        total: 3.into(),
        ..disks([sized(2, Attr::Null), sized(3, "s".into())])
    };
    assert_eq!(
        check(&config, true),
        [
            ".disk[1].size Attribute disk[1].size value must be at most sum of ../least + /most, got: 3",
            ".sum Attribute sum value must be at least sum of disk[*].size, got: 4",
            ".total Attribute total value must be equal to the sum of least + most, got: 3",
        ]
    );
    let config = Server {
        one: 2.into(),
        most: 9.into(),
        ..disks([sized(2, "s".into())])
    };
    assert_eq!(
        check(&config, true),
        [".disk[0].size Attribute disk[0].size value must be equal to the product of ./size * ../one, got: 2"]
    );
    let config = Server {
        most: Attr::Unknown,
        one: Attr::Unknown,
        total: 3.into(),
        sum: 1.into(),
        ..disks([Disk {
            size: Attr::Unknown,
            ..Disk::default()
        }])
    };
    assert_eq!(check(&config, true), [""; 0]);
}

#[test]
fn rules_about_absent_values_count_what_is_set() {
    let tagged = |key: &str, config: Server| Server {
        tags: BTreeMap::from([(key.to_owned(), "v".to_owned())]).into(),
        ..config
    };
    assert_eq!(
        check(&Server::default(), true),
        [".key No attribute specified when one (and only one) of [key,tags[\"key\"]] is required"]
    );
    assert_eq!(check(&tagged("key", Server::default()), true), [""; 0]);
    assert_eq!(check(&tagged("key", server()), true).len(), 1);
    assert_eq!(check(&tagged("other", server()), true), [""; 0]);
    let config = Server {
        tags: Attr::Unknown,
        ..Server::default()
    };
    assert_eq!(check(&config, true), [""; 0], "the map may have the key");
}

model! {
    pub struct Either {
        pub one: Attr<String> = optional().validate(at_least_one_of(&["other"])),
        pub other: Attr<String> = optional(),
    }
}

#[test]
fn at_least_one_demands_a_value() {
    let found = |one: Attr<String>, other: Attr<String>| {
        let schema = Compiled::new(Schema::of::<Either>().exactly_one_of(&["one", "other"]));
        let found = against_schema(&schema, &Either { one, other }.to_object(&schema.object), true);
        found.0.into_iter().map(|d| d.detail).collect::<Vec<_>>()
    };
    assert_eq!(
        found(Attr::Null, Attr::Null),
        [
            "At least one attribute out of [other] must be specified",
            "Exactly one of these attributes must be configured: [one,other]"
        ]
    );
    assert_eq!(found(Attr::Null, Attr::Unknown), [""; 0]);
    assert_eq!(found("a".into(), Attr::Unknown), [""; 0]);
    assert_eq!(found(Attr::Null, "b".into()), [""; 0]);
    assert_eq!(
        found("a".into(), "b".into()),
        ["Exactly one of these attributes must be configured: [one,other]"]
    );
}

#[test]
fn a_write_only_alternative_is_recommended_where_it_is_supported() {
    let config = Server {
        password: "p".into(),
        ..server()
    };
    assert_eq!(
        check(&config, true),
        [
            ".password The attribute password has a write-only version \"password_wo\" available. Use the write-only version of the \
          attribute when possible."
        ]
    );
    assert_eq!(check(&config, false), [""; 0]);
    let config = Server {
        password_wo: "p".into(),
        ..config
    };
    assert_eq!(check(&config, true), [""; 0]);
}

model! {
    pub struct Inner {
        pub a: Attr<String> = required().validate(conflicts_with(&["../b", "../../b", "/inner.a", "inner[*].a"])),
    }
}

model! {
    pub struct Wrong {
        pub b: Attr<String> = optional()
            .validate(regex_matches("(", ""))
            .validate(length_between(2, 1))
            .validate(between(2, 1))
            .validate(any([]))
            .validate(all([equals(true)]))
            .validate(one_of::<&str>([])),
        pub n: Attr<f64> = optional().validate(at_most(f64::NAN)),
        pub inner: Vec<Inner> = block().validate(keys_are(length_at_least(1))),
    }
}

struct Wrongs;

#[async_trait]
impl Resource for Wrongs {
    type Model = Wrong;
    type Client = ();

    async fn create(&self, plan: Wrong, _: &mut Context<()>) -> crate::Result<Wrong> {
        Ok(plan)
    }
}

#[test]
fn rules_that_cannot_work_are_refused_at_the_start() {
    let provider = ServedProvider::new(Plain(|members| members.resource("x_wrong", Wrongs)));
    let problems = provider.problems();
    let expected = [
        "b: the rule regex_matches(\"(\"): \"(\" is no regular expression: ",
        "b: the rule length_between(2, 1): no text has this length",
        "b: the rule between(2, 1) is for numbers, not for string",
        "b: the rule any([]) has no rules",
        "b: the rule equals(true) is for bools, not for string",
        "b: the rule one_of([]): no value is allowed",
        "n: the rule at_most(?): its limit is no number",
        "inner: the rule keys_are(length_at_least(1)) is for maps, not for ",
        "inner.a: the rule ConflictsWith([\"../b\", \"../../b\", \"/inner.a\", \"inner[*].a\"]) names \"../../b\", which is not there",
    ];
    assert_eq!(problems.len(), expected.len(), "{problems:#?}");
    for (problem, expected) in problems.iter().zip(expected) {
        assert!(
            problem.starts_with(&format!("resource x_wrong: {expected}")),
            "{problem}"
        );
    }
}
