//! Types with semantic equality, in a resource whose service returns each value in another form.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use monoform_sdk::cty::Value;
use monoform_sdk::schema::{block, computed, nested, optional, required};
use monoform_sdk::types::{Cidr, GoDuration, IpAddress, JsonText, Timestamp, Url};
use monoform_sdk::{Attr, Context, Cty, Model, Plain, Resource, Result, Set, async_trait, model};
use monoform_sdk_testing::Harness;

#[derive(Clone, Debug, PartialEq, Cty)]
enum Size {
    Small,
    VeryLarge,
    #[member(name = "x-large")]
    Huge,
}

#[derive(Clone, Copy, Debug, PartialEq, Cty)]
#[member(case = "upper")]
enum State {
    NotReady,
}

#[derive(Clone, Copy, Debug, PartialEq, Cty)]
struct Port(u16);

#[derive(Clone, Debug, Default, PartialEq, Cty)]
struct Named<T: Cty>(Vec<T>);

model! {
    struct Rule {
        from: Attr<Cidr> = required(),
        ports: Attr<Vec<Port>> = optional(),
    }
}

model! {
    struct Machine {
        /// A word of Rust.
        #[name = "self"]
        own: Attr<String> = optional(),
        size: Attr<Size> = required(),
        policy: Attr<JsonText> = optional().requires_replace(),
        until: Attr<Timestamp> = optional(),
        pause: Attr<GoDuration> = optional(),
        home: Attr<Url> = optional(),
        addresses: Attr<Set<IpAddress>> = optional(),
        rule: Set<Rule> = block(),
        rules: Attr<Vec<Rule>> = nested(optional()),
        weight: Attr<f64> = optional(),
        pair: Attr<(String, u8)> = optional(),
        state: Attr<State> = computed(),
    }
}

/// Resource whose service returns each value in another form that means the same.
struct Machines;

fn other_form(machine: Machine) -> Machine {
    let upper = |rule: &Rule| Rule {
        from: rule
            .from
            .known()
            .map(|c| Cidr::new(c.as_str().to_ascii_uppercase()).unwrap())
            .into(),
        ..rule.clone()
    };
    let mut addresses: Vec<IpAddress> = machine.addresses.known().map_or_else(Vec::new, |set| {
        set.0.iter().map(|a| IpAddress::from(a.address())).collect()
    });
    addresses.reverse();
    Machine {
        policy: machine
            .policy
            .known()
            .map(|p| JsonText::from(p.document().clone()))
            .into(),
        pause: machine.pause.known().map(|p| GoDuration::from(p.duration())).into(),
        addresses: match machine.addresses {
            Attr::Known(_) => Set(addresses).into(),
            other => other,
        },
        rule: Set(machine.rule.0.iter().map(upper).collect()),
        rules: machine
            .rules
            .known()
            .map(|rules| rules.iter().map(upper).collect())
            .into(),
        state: State::NotReady.into(),
        ..machine
    }
}

#[async_trait]
impl Resource for Machines {
    type Model = Machine;
    type Client = ();

    async fn create(&self, plan: Machine, _: &mut Context<()>) -> Result<Machine> {
        Ok(other_form(plan))
    }

    async fn read(&self, state: Machine, _: &mut Context<()>) -> Result<Option<Machine>> {
        Ok(Some(other_form(state)))
    }

    async fn update(&self, _: Machine, plan: Machine, _: &mut Context<()>) -> Result<Machine> {
        Ok(other_form(plan))
    }
}

fn harness() -> Harness<Plain> {
    Harness::new(Plain(|members| members.resource("x_machine", Machines)))
}

fn list(items: &[&str]) -> Value {
    Value::tuple(items.iter().map(|item| Value::from(*item)).collect())
}

fn rule(from: &str) -> Value {
    Value::object([("from", from.into()), ("ports", Value::tuple(vec![Value::number(80)]))])
}

fn config(policy: &str, pause: &str, address: &str, from: &str) -> Vec<(&'static str, Value)> {
    vec![
        ("self", "me".into()),
        ("size", "x-large".into()),
        ("policy", policy.into()),
        ("pause", pause.into()),
        ("addresses", list(&[address, "10.0.0.1"])),
        ("rule", Value::tuple(vec![rule(from), rule("10.0.0.0/8")])),
        ("rules", Value::tuple(vec![rule(from)])),
        (
            "weight",
            Value::number(monoform_sdk::cty::Number::parse("0.1").unwrap()),
        ),
        ("pair", Value::tuple(vec!["a".into(), Value::number(1)])),
    ]
}

#[tokio::test]
async fn another_form_of_the_same_value_is_no_change() {
    let harness = harness();
    let mut machine = harness.object("x_machine");
    let first = config("{\"a\": 1}", "1h", "0:0::1", "2001:db8:0::/32");
    // `apply` fails if the result is not as planned.
    machine.apply(&first).await.unwrap();
    let created = machine.state().cloned().unwrap();
    assert_eq!(created.get("policy"), Some(&"{\"a\": 1}".into()));
    assert_eq!(created.get("state"), Some(&"NOT_READY".into()));
    machine.read().await.unwrap();
    assert_eq!(machine.state(), Some(&created), "a refresh of the same values");
    let plan = machine.plan(&first).await.unwrap();
    assert_eq!((&plan.planned, plan.replace.len()), (&created, 0));

    let same = config("{ \"a\":1.0 }", "60m", "::1", "2001:DB8::/32");
    let plan = machine.plan(&same).await.unwrap();
    assert_eq!((plan.planned, plan.replace.len()), (created, 0));

    let other = config("{\"a\": 2}", "1h", "0:0::1", "2001:db8:0::/32");
    let plan = machine.apply(&other).await.unwrap();
    assert_eq!(plan.replace, ["policy"]);
    assert_eq!(machine.get("policy"), Some(&"{\"a\": 2}".into()));
}

#[test]
fn values_that_their_type_does_not_accept_are_errors_of_the_configuration() {
    let mut wrong = config("{", "1 hour", "10.0.0", "10.0.0.0");
    wrong.push(("size", "tiny".into()));
    wrong.push(("pair", Value::tuple(vec!["a".into(), Value::number(256)])));
    let found = harness().validate("x_machine", &wrong);
    let paths: Vec<String> = found
        .0
        .iter()
        .map(|d| d.attribute.as_ref().unwrap().to_string())
        .collect();
    assert_eq!(
        paths,
        [
            ".addresses[\"10.0.0\"]",
            ".pair[1]",
            ".pause",
            ".policy",
            ".rule[...].from",
            ".rules[0].from",
            ".size"
        ],
        "{found:?}"
    );
    let size = &found.0[6].detail;
    assert_eq!(
        size,
        "Attribute size cannot have this value: it must be one of \"small\", \"very_large\", \"x-large\", not \"tiny\"."
    );
    assert!(found.0.iter().all(|d| d.summary == "Invalid Attribute Value"));
}

#[test]
fn unknown_and_null_values_are_accepted() {
    let unknown = |ty| Value::unknown(ty);
    let found = harness().validate(
        "x_machine",
        &[
            ("size", unknown(Size::ty())),
            ("policy", Value::null(JsonText::ty())),
            ("addresses", Value::tuple(vec![unknown(IpAddress::ty())])),
        ],
    );
    assert!(found.0.is_empty(), "{found:?}");
}

#[test]
fn names_and_values_of_enums_and_structs_around_one_value() {
    assert_eq!(
        (Size::NAMES, Size::VeryLarge.name()),
        (&["small", "very_large", "x-large"][..], "very_large")
    );
    assert_eq!(Size::from_cty(&"small".into()), Ok(Size::Small));
    assert_eq!(Size::Huge.to_cty(), "x-large".into());
    assert_eq!(
        Named::<Port>::from_cty(&Named(vec![Port(1)]).to_cty()),
        Ok(Named(vec![Port(1)]))
    );
    let members = Machine::members();
    assert!(members.iter().any(|m| m.name() == "self"));
}
