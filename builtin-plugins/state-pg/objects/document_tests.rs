//! Tests of the conversion: every document is restored byte for byte from the columns of the tables.

use proptest::prelude::*;

use super::document::{Document, Head, Object, Output, parse_resource};
use super::json::Json;

/// Returns the bytes that the program writes for the state in this text.
fn as_written(text: &[u8]) -> Vec<u8> {
    let state = state::document::decode(text).unwrap().unwrap();
    state::document::encode(&state).unwrap()
}

/// Converts a document to the texts of the history and the pairs of columns, and back.
fn through_columns(document: &Document) -> Document {
    let mut out = Document {
        head: Head::from_text(&document.head.to_text()).unwrap(),
        ..Document::default()
    };
    let column = |json: &Json| {
        let (jsonb, exact) = json.columns();
        // The server adds blanks, and sorts keys by length.
        let jsonb = jsonb.filter(|_| exact.is_none()).map(|text| {
            let mut value: serde_json::Value = serde_json::from_str(text).unwrap();
            reorder(&mut value);
            serde_json::to_string_pretty(&value).unwrap()
        });
        Json::from_columns(jsonb.as_deref(), exact)
    };
    for (name, output) in &document.outputs {
        let output = Output::from_text(&output.to_text(), name).unwrap();
        let value = column(&output.value);
        out.outputs.insert(name.clone(), Output { value, ..output });
    }
    for (key, object) in &document.objects {
        let mut objects = parse_resource(&object.to_text(key)).unwrap();
        let (key, object) = objects.remove(0);
        let attributes = object.attributes.as_ref().map(&column);
        out.objects.insert(key, Object { attributes, ..object });
    }
    out
}

fn reorder(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::Object(members) => {
            let mut list: Vec<_> = std::mem::take(members).into_iter().collect();
            list.sort_by_key(|(name, _)| (name.len(), name.clone()));
            list.iter_mut().for_each(|(_, value)| reorder(value));
            members.extend(list);
        }
        serde_json::Value::Array(items) => items.iter_mut().for_each(reorder),
        _ => {}
    }
}

fn comes_back(text: &[u8]) {
    let document = Document::parse(text).unwrap();
    let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert_eq!(shown(&document.render()), shown(text));
    let restored = through_columns(&document);
    assert!(restored == document);
    assert_eq!(shown(&restored.render()), shown(text));
}

#[test]
fn states_come_back_byte_for_byte() {
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/../../src/state/tests/golden");
    let mut count = 0;
    for entry in std::fs::read_dir(golden).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "tfstate") {
            comes_back(&as_written(&std::fs::read(&path).unwrap()));
            count += 1;
        }
    }
    assert!(count > 1);
}

#[test]
fn members_of_a_later_version_are_kept() {
    let text = r#"{"version":4,"serial":3,"lineage":"l","later":{"b":1,"a":2},"outputs":{"o":{"value":"\u0000","type":"string",
        "later":1}},"resources":[{"mode":"data","type":"t","name":"n","provider":"p","instances":[{"index_key":"k",
        "attributes":{},"later":[1e3]}]}]}"#;
    let document = Document::parse(text.as_bytes()).unwrap();
    let restored = through_columns(&document);
    let rendered = restored.render();
    assert!(String::from_utf8_lossy(&rendered).contains("1e3"));
    let json: serde_json::Value = serde_json::from_slice(&rendered).unwrap();
    assert_eq!(json["later"].to_string(), r#"{"b":1,"a":2}"#);
    assert_eq!(json["outputs"]["o"]["later"], 1);
    assert_eq!(json["outputs"]["o"]["value"], "\0");
    assert!(json["resources"][0]["instances"][0]["later"].is_array());
    let addresses: Vec<String> = document.objects.keys().map(super::document::Key::address).collect();
    assert_eq!(addresses, ["data.t.n[\"k\"]"]);
}

#[test]
fn texts_that_are_no_plain_state_are_refused_with_the_reason() {
    let why = |text: &str| Document::parse(text.as_bytes()).unwrap_err().to_string();
    assert!(why(r#"{"encryption_version":"v0","encrypted_data":""}"#).contains("encrypted"));
    assert!(why(r#"{"version":3}"#).contains("version 3"));
    assert!(why("{}").contains("no version"));
    let twice =
        r#"{"version":4,"resources":[{"mode":"managed","type":"t","name":"n","provider":"p","instances":[{},{}]}]}"#;
    assert!(why(twice).contains("t.n: the state has it twice"));
}

/// Generates attribute values: texts with all kinds of characters, numbers in all forms, nested objects.
fn value() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        "-?(0|[1-9][0-9]{0,20})(\\.[0-9]{1,12})?([eE][+-]?[0-9]{1,5})?"
            .prop_map(|digits| serde_json::from_str(&digits).unwrap()),
        any::<String>().prop_map(Into::into),
        "[\u{0}<>&\u{2028}\\\\\"/\u{1}\u{7f}é]{0,6}".prop_map(Into::into),
    ];
    leaf.prop_recursive(4, 32, 5, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
            prop::collection::btree_map("[a-z<\u{0}é]{0,4}", inner, 0..4)
                .prop_map(|members| serde_json::Value::Object(members.into_iter().collect())),
        ]
    })
}

fn instance() -> impl Strategy<Value = serde_json::Value> {
    let key = prop_oneof![
        Just(serde_json::Value::Null),
        any::<u32>().prop_map(Into::into),
        any::<String>().prop_map(Into::into),
    ];
    let private = prop::collection::vec(any::<u8>(), 0..20);
    let attributes = prop::collection::btree_map("[a-z_]{1,5}", value(), 0..4);
    (
        key,
        attributes,
        private,
        any::<[bool; 4]>(),
        any::<u16>(),
        prop::option::of(value()),
    )
        .prop_map(
            |(key, attributes, private, [tainted, deposed, first, sensitive], version, identity)| {
                use base64::Engine as _;
                let mut out = serde_json::json!({"schema_version": version, "attributes": attributes});
                if !key.is_null() {
                    out["index_key"] = key;
                }
                if tainted {
                    out["status"] = "tainted".into();
                }
                if deposed {
                    out["deposed"] = "0a1b2c3d".into();
                }
                if sensitive {
                    out["sensitive_attributes"] = serde_json::json!([[
                        {"type": "get_attr", "value": "a"},
                        {"type": "index", "value": {"value": "k\"<", "type": "string"}},
                    ]]);
                }
                if let Some(identity) = identity {
                    out["identity_schema_version"] = 1.into();
                    out["identity"] = identity;
                }
                out["private"] = base64::engine::general_purpose::STANDARD.encode(private).into();
                if first {
                    out["dependencies"] = serde_json::json!(["module.a.aws_x.y", "data.t.n"]);
                    out["create_before_destroy"] = true.into();
                }
                out
            },
        )
}

proptest! {
    #[test]
    fn any_state_comes_back_byte_for_byte(
        instances in prop::collection::vec(instance(), 0..4),
        outputs in prop::collection::btree_map("[a-z]{1,4}", any::<String>(), 0..3),
        serial in 0_u32..,
        module in prop_oneof![Just(String::new()), Just("module.a".to_owned()), Just("module.a[\"x y\"].module.b[3]".to_owned())],
    ) {
        let outputs: serde_json::Map<String, serde_json::Value> = outputs
            .into_iter()
            .map(|(name, value)| (name, serde_json::json!({"value": value, "type": "string", "sensitive": true})))
            .collect();
        let resources: Vec<serde_json::Value> = instances
            .into_iter()
            .enumerate()
            .map(|(i, instance)| serde_json::json!({
                "module": module,
                "mode": if i == 1 { "data" } else { "managed" },
                "type": "test_thing",
                "name": format!("n{i}"),
                "provider": "provider[\"registry.terraform.io/hashicorp/test\"]",
                "instances": [instance],
            }))
            .collect();
        let text = serde_json::json!({
            "version": 4,
            "terraform_version": "1.11.4",
            "serial": serial,
            "lineage": "l<\u{2028}",
            "outputs": outputs,
            "resources": resources,
        });
        comes_back(&as_written(text.to_string().as_bytes()));
    }
}
