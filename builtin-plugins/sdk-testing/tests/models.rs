//! Tests of models as authors write them: blocks of every kind, nested attributes, flattened models, and combined
//! providers.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![allow(missing_docs, reason = "what these are for is in the tests")]

use std::collections::BTreeMap;
use std::sync::Arc;

use monoform_sdk::cty::{Number, Type, Value};
use monoform_sdk::schema::{block, computed, nested, optional, required};
use monoform_sdk::{
    Attr, Both, Context, Cty, Diagnostics, Members, Model, Plain, Provider, Resource, Result, Set, Validator,
    async_trait,
};
use monoform_sdk_testing::Harness;

#[derive(Clone, Default, PartialEq, Model)]
struct Door {
    #[member(required().validate(Validator::AtLeast(1)))]
    width: Attr<i64>,
    #[member(optional().computed().default("left".to_owned()))]
    hinge: Attr<String>,
    #[member(computed().keep())]
    number: Attr<i64>,
}

#[derive(Clone, Default, PartialEq, Model)]
struct Address {
    #[member(optional().requires_replace())]
    street: Attr<String>,
    #[member(optional().sensitive())]
    code: Attr<String>,
}

#[derive(Clone, Default, PartialEq, Model)]
struct House {
    #[member(flatten)]
    address: Address,
    #[member(block())]
    front: Door,
    #[member(block())]
    back: Attr<Door>,
    #[member(block())]
    side: BTreeMap<String, Door>,
    #[member(block())]
    inner: Vec<Door>,
    #[member(block())]
    spare: Set<Door>,
    #[member(nested(optional()))]
    gate: Attr<Door>,
    #[member(nested(optional()))]
    gates: Attr<BTreeMap<String, Door>>,
    #[member(nested(computed()))]
    plan: Attr<Vec<Door>>,
}

struct Houses;

fn numbered(door: Door) -> Door {
    Door {
        number: Attr::Known(door.number.or(7)),
        ..door
    }
}

#[async_trait]
impl Resource for Houses {
    type Model = House;
    type Client = ();

    fn validate(&self, config: &House) -> Diagnostics {
        assert!(config.inner.len() < 100, "what is unknown is not looked at");
        Diagnostics::new()
    }

    async fn create(&self, plan: House, _cx: &mut Context<()>) -> Result<House> {
        let all =
            |doors: BTreeMap<String, Door>| doors.into_iter().map(|(name, door)| (name, numbered(door))).collect();
        Ok(House {
            front: numbered(plan.front),
            back: plan.back.into_known().map(numbered).into(),
            side: all(plan.side),
            inner: plan.inner.into_iter().map(numbered).collect(),
            spare: Set(plan.spare.0.into_iter().map(numbered).collect()),
            gate: plan.gate.into_known().map(numbered).into(),
            gates: plan.gates.into_known().map(all).into(),
            plan: Vec::new().into(),
            address: plan.address,
        })
    }
}

fn provider() -> impl Provider {
    Plain(|members| members.resource("x_house", Houses))
}

fn door(width: i64) -> Door {
    Door {
        width: width.into(),
        ..Door::default()
    }
}

/// Builds a configuration of a house with one block or attribute of every kind.
fn config() -> Vec<(&'static str, Value)> {
    let house = House {
        address: Address {
            street: "Elm Street".into(),
            code: "1428".into(),
        },
        front: door(1),
        back: door(2).into(),
        side: [("a".to_owned(), door(3))].into(),
        inner: vec![door(4)],
        spare: Set(vec![door(5)]),
        gate: door(6).into(),
        gates: BTreeMap::from([("b".to_owned(), door(7))]).into(),
        plan: Attr::Null,
    };
    let names = [
        "street", "code", "front", "back", "side", "inner", "spare", "gate", "gates",
    ];
    names.map(|name| (name, house.field(name).unwrap())).to_vec()
}

#[tokio::test]
async fn every_kind_of_block_and_nested_attribute_is_planned_and_made() {
    let harness = Harness::new(provider());
    let planned = harness.plan("x_house", None, &config()).await.unwrap().planned;
    assert_eq!(planned.get("plan"), Some(&Value::unknown(Vec::<Door>::ty())));
    let doors = |house: &Value| {
        let house = House::from_cty(house).unwrap();
        vec![
            house.front,
            house.back.into_known().unwrap(),
            house.side["a"].clone(),
            house.inner[0].clone(),
            house.spare.0[0].clone(),
            house.gate.into_known().unwrap(),
            house.gates.into_known().unwrap()["b"].clone(),
        ]
    };
    for (i, door) in doors(&planned).into_iter().enumerate() {
        assert_eq!(door.width, (i as i64 + 1).into());
        assert_eq!(door.hinge, "left".into(), "defaults hold inside");
        assert!(door.number.is_unknown(), "and so do results");
    }
    let state = harness.create("x_house", &config()).await.unwrap();
    assert!(doors(&state).iter().all(|door| door.number == 7.into()));

    let mut changed = config();
    changed[0].1 = "Oak Street".into();
    let change = harness.plan("x_house", Some(&state), &changed).await.unwrap();
    assert_eq!(
        change.replace,
        ["street"],
        "members of another model are members like others"
    );
}

#[test]
fn rules_hold_inside_and_say_where() {
    let harness = Harness::new(provider());
    let bad: [(&str, Value, &str); 5] = [
        ("front", door(0).to_cty(), ".front.width"),
        (
            "side",
            BTreeMap::from([("a".to_owned(), door(0))]).to_cty(),
            ".side[\"a\"].width",
        ),
        ("inner", vec![door(0)].to_cty(), ".inner[0].width"),
        (
            "gates",
            BTreeMap::from([("b".to_owned(), door(0))]).to_cty(),
            ".gates[\"b\"].width",
        ),
        ("plan", Vec::<Door>::new().to_cty(), ".plan"),
    ];
    for (name, value, place) in bad {
        let mut config = config();
        config.retain(|(n, _)| *n != name);
        config.push((name, value));
        let found = harness.validate("x_house", &config).0;
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].attribute.as_ref().unwrap().to_string(), place, "{found:?}");
    }
    let required = harness.validate("x_house", &[]);
    assert_eq!(required.0[0].summary, "Missing Configuration for Required Attribute");
    assert_eq!(required.0[0].attribute.as_ref().unwrap().to_string(), ".front.width");
}

#[test]
fn rules_of_the_whole_wait_for_what_is_unknown() {
    let harness = Harness::new(provider());
    for (name, ty) in [
        ("inner", Vec::<Door>::ty()),
        ("spare", Set::<Door>::ty()),
        ("side", BTreeMap::<String, Door>::ty()),
    ] {
        let mut config = config();
        config.retain(|(n, _)| *n != name);
        config.push((name, Value::unknown(ty)));
        assert_eq!(harness.validate("x_house", &config), Diagnostics::new(), "{name}");
    }
}

#[test]
fn a_number_that_is_not_whole_is_the_persons_error() {
    let mut config = config();
    let half = Number::from_f64(1.5).unwrap();
    let width = Value::object([
        ("width", Value::number(half)),
        ("hinge", Value::null(Type::String)),
        ("number", Value::null(Type::Number)),
    ]);
    config.retain(|(n, _)| *n != "front");
    config.push(("front", width));
    let found = Harness::new(provider()).validate("x_house", &config).0;
    assert!(found[0].detail.contains("1.5 is not a whole number"), "{found:?}");
    assert_eq!(found[0].attribute.as_ref().unwrap().to_string(), ".front.width");
}

#[test]
fn older_states_lack_blocks_and_attributes() {
    let harness = Harness::new(provider());
    let state = harness
        .upgrade(
            "x_house",
            0,
            r#"{"street":"s","front":{"width":1},"side":{"a":{"width":2}},"gone":1}"#,
        )
        .unwrap();
    let house = House::from_cty(&state).unwrap();
    assert_eq!((house.front.width, house.side["a"].width.clone()), (1.into(), 2.into()));
    assert!(house.inner.is_empty() && house.back.is_null() && house.gates.is_null());
    let nothing = House::from_cty(&harness.upgrade("x_house", 0, "{}").unwrap()).unwrap();
    assert_eq!(nothing, House::default());
}

#[test]
fn secrets_of_taken_members_are_not_shown_either() {
    let house = House {
        address: Address {
            street: "Elm".into(),
            code: "1428".into(),
        },
        ..House::default()
    };
    let text = format!("{house:?}");
    assert!(text.contains("Elm") && !text.contains("1428"), "{text}");
}

struct Greeter(&'static str);

#[derive(Clone, Default, PartialEq, Model)]
struct Greeting {
    #[member(optional())]
    name: Attr<String>,
}

#[derive(Clone, Default, PartialEq, Model)]
struct Said {
    #[member(computed())]
    words: Attr<String>,
}

struct Saying;

#[async_trait]
impl Resource for Saying {
    type Model = Said;
    type Client = String;

    async fn create(&self, _plan: Said, cx: &mut Context<String>) -> Result<Said> {
        let words = Arc::unwrap_or_clone(cx.client()?);
        Ok(Said { words: words.into() })
    }
}

#[async_trait]
impl Provider for Greeter {
    type Config = Greeting;
    type Client = String;

    fn members(&self, members: &mut Members<String>) {
        members.resource(self.0, Saying);
    }

    async fn configure(&self, config: Greeting, _terraform_version: &str) -> Result<String> {
        Ok(format!("{}: hello {}", self.0, config.name.text()))
    }
}

#[tokio::test]
async fn two_providers_are_served_as_one() {
    let harness = Harness::new(Both::new(Both::new(Greeter("x_a"), Greeter("x_b")), Greeter("x_c")));
    harness.configure(&[("name", "you".into())]).await.unwrap();
    for name in ["x_a", "x_b", "x_c"] {
        let state = harness.create(name, &[]).await.unwrap();
        assert_eq!(state.get("words"), Some(&format!("{name}: hello you").into()));
    }
}

#[derive(Clone, Default, PartialEq, Model)]
struct Lamp {
    #[member(optional().computed())]
    watts: Attr<i64>,
}

#[derive(Clone, Default, PartialEq, Model)]
struct Street {
    #[member(required())]
    length: Attr<i64>,
    #[member(block().computed())]
    lamp: Attr<Vec<Lamp>>,
}

struct Streets;

#[async_trait]
impl Resource for Streets {
    type Model = Street;
    type Client = ();

    async fn create(&self, plan: Street, _cx: &mut Context<()>) -> Result<Street> {
        let lamp = |watts: &Attr<i64>| Lamp {
            watts: watts.known().copied().unwrap_or(40).into(),
        };
        let lamps = match &plan.lamp {
            Attr::Known(lamps) => lamps.iter().map(|l| lamp(&l.watts)).collect(),
            _ => vec![lamp(&Attr::Null)],
        };
        Ok(Street {
            lamp: lamps.into(),
            ..plan
        })
    }

    async fn update(&self, _prior: Street, plan: Street, cx: &mut Context<()>) -> Result<Street> {
        self.create(plan, cx).await
    }
}

#[tokio::test]
async fn blocks_that_the_configuration_leaves_out_can_be_computed() {
    let harness = Harness::new(Plain(|members| members.resource("x_street", Streets)));
    let mut street = harness.object("x_street");
    let watts = |street: &Value, i: usize| {
        let lamps = street.get("lamp").and_then(|l| l.as_seq().map(<[Value]>::to_vec));
        lamps.and_then(|lamps| lamps.get(i)?.get("watts").cloned())
    };
    let planned = street.apply(&[("length", 3.into())]).await.unwrap().planned;
    assert!(!planned.get("lamp").unwrap().is_known(), "{planned:?}");
    assert_eq!(watts(street.state().unwrap(), 0), Some(40.into()));

    // Without a change, nothing becomes unknown.
    let planned = street.plan(&[("length", 3.into())]).await.unwrap().planned;
    assert_eq!(Some(&planned), street.state());

    let lamp = Value::tuple(vec![
        Value::object([("watts", Value::number(60))]),
        Value::empty_object(),
    ]);
    let planned = street
        .apply(&[("length", 3.into()), ("lamp", lamp)])
        .await
        .unwrap()
        .planned;
    assert_eq!(watts(&planned, 0), Some(60.into()));
    assert_eq!(watts(street.state().unwrap(), 1), Some(40.into()));
}
