//! Tests of `random_string` and `random_password`: values, plans, imports and upgrades that users see.

use monoform_sdk::cty::{Type, Value};
use monoform_sdk_testing::Harness;

use crate::text;

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap()
}

#[tokio::test]
async fn arguments_left_out_have_their_defaults() {
    let harness = Harness::new(crate::provider());
    let config = [("length", 12.into())];
    let state = harness.create("random_string", &config).await.unwrap();
    assert_eq!(text(&state, "result").chars().count(), 12);
    for name in ["upper", "lower", "numeric", "number", "special"] {
        assert_eq!(state.get(name), Some(&Value::bool(true)), "{name}");
    }
    assert_eq!(state.get("min_upper"), Some(&0.into()));
    let again = harness.plan("random_string", Some(&state), &config).await.unwrap();
    assert_eq!((again.planned, again.replace), (state, vec![]));
}

#[tokio::test]
async fn number_and_numeric_are_one_thing() {
    let harness = Harness::new(crate::provider());
    for (number, numeric, result) in [
        (None, None, Some(true)),
        (Some(false), None, Some(false)),
        (None, Some(false), Some(false)),
        (Some(true), Some(true), Some(true)),
        (Some(true), Some(false), None),
    ] {
        let value = |b: Option<bool>| b.map_or_else(|| Value::null(Type::Bool), Value::bool);
        let config = [
            ("length", 4.into()),
            ("number", value(number)),
            ("numeric", value(numeric)),
        ];
        match (harness.plan("random_string", None, &config).await, result) {
            (Ok(plan), Some(result)) => {
                assert_eq!(plan.planned.get("number"), Some(&Value::bool(result)));
                assert_eq!(plan.planned.get("numeric"), Some(&Value::bool(result)));
            }
            (Err(errors), None) => {
                let summaries: Vec<&str> = errors.0.iter().map(|d| d.summary.as_str()).collect();
                assert_eq!(
                    summaries,
                    ["Number and numeric are both configured with different values"]
                );
            }
            (other, _) => panic!("{number:?} {numeric:?}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn bad_lengths_and_no_classes_are_refused() {
    let harness = Harness::new(crate::provider());
    let details = |config: &[(&str, Value)]| -> Vec<String> {
        let found = harness.validate("random_string", config);
        found
            .0
            .into_iter()
            .map(|d| d.detail)
            .filter(|d| !d.contains("renamed"))
            .collect()
    };
    assert_eq!(
        details(&[("length", 0.into())])[0],
        "Attribute length value must be at least 1, got: 0"
    );
    assert_eq!(
        details(&[("length", 3.into()), ("min_upper", 2.into()), ("min_special", 2.into())]),
        ["Attribute length value must be at least sum of min_upper + min_lower + min_numeric + min_special, got: 3"]
    );
    let off = Value::bool(false);
    let all_off = [
        ("length", 3.into()),
        ("upper", off.clone()),
        ("lower", off.clone()),
        ("special", off.clone()),
        ("numeric", off.clone()),
    ];
    assert_eq!(
        details(&all_off),
        ["At least one attribute out of [special,upper,lower,numeric] must be specified as true"]
    );
    assert_eq!(details(&all_off[..4]), [""; 0]);
}

#[tokio::test]
async fn an_empty_set_of_special_characters_is_none() {
    let harness = Harness::new(crate::provider());
    let state = harness
        .create(
            "random_string",
            &[("length", 4.into()), ("override_special", "".into())],
        )
        .await
        .unwrap();
    let plan = harness
        .plan("random_string", Some(&state), &[("length", 4.into())])
        .await
        .unwrap();
    assert_eq!(plan.replace, [""; 0]);
    let other = [("length", 4.into()), ("override_special", "x".into())];
    let plan = harness.plan("random_string", Some(&state), &other).await.unwrap();
    assert_eq!(plan.replace, ["override_special"]);
}

#[tokio::test]
async fn passwords_have_a_hash() {
    let harness = Harness::new(crate::provider());
    let state = harness
        .create("random_password", &[("length", 8.into())])
        .await
        .unwrap();
    assert!(text::verifies(text(&state, "result"), text(&state, "bcrypt_hash")));
    assert_eq!(text(&state, "id"), "none");
    let opened = harness
        .open("random_password", &[("length", 8.into()), ("special", false.into())])
        .await
        .unwrap();
    assert!(text::verifies(text(&opened, "result"), text(&opened, "bcrypt_hash")));
    assert_eq!(opened.get("upper"), Some(&Value::bool(true)));
}

#[tokio::test]
async fn imports_keep_the_text() {
    let harness = Harness::new(crate::provider());
    let state = harness.import("random_string", "äb").await.unwrap();
    assert_eq!((text(&state, "id"), text(&state, "result")), ("äb", "äb"));
    assert_eq!(state.get("length"), Some(&3.into()));
    let state = harness.import("random_password", "secret").await.unwrap();
    assert_eq!((text(&state, "id"), text(&state, "result")), ("none", "secret"));
    assert!(text::verifies("secret", text(&state, "bcrypt_hash")));
}

#[tokio::test]
async fn old_states_become_new_ones() {
    let harness = Harness::new(crate::provider());
    let old = r#"{"id":"none","result":"abc","number":false,"gone":1}"#;
    let state = harness.upgrade("random_password", 0, old).unwrap();
    assert_eq!(state.get("length"), Some(&3.into()));
    assert_eq!(state.get("numeric"), Some(&Value::bool(false)));
    assert_eq!(state.get("special"), Some(&Value::bool(true)));
    assert!(text::verifies("abc", text(&state, "bcrypt_hash")));

    let wrong = r#"{"id":"none","result":"abc","bcrypt_hash":"$2a$10$abc"}"#;
    assert_eq!(
        text(&harness.upgrade("random_password", 1, wrong).unwrap(), "bcrypt_hash"),
        "$2a$10$abc"
    );
    let state = harness.upgrade("random_password", 2, wrong).unwrap();
    assert!(text::verifies("abc", text(&state, "bcrypt_hash")));

    assert_eq!(
        harness.upgrade("random_string", 1, old).unwrap().get("numeric"),
        Some(&Value::bool(false))
    );
    let errors = harness.upgrade("random_string", 0, old).unwrap_err();
    assert_eq!(errors.0[0].summary, "Unable to Upgrade Resource State");
}
