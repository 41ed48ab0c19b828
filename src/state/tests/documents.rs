//! Tests of the text of states: byte for byte as Terraform writes it, and without a panic on any other text.
//!
//! `golden/*.tfstate` were written by `state pull` of Terraform 1.16, which reads a state and writes it again: `applied` comes from an
//! apply, and `by-hand.tfstate` from reading `by-hand.json`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use std::sync::Arc;
use std::time::Instant;

use addrs::{AbsProviderConfig, AbsResource, InstanceKey, Module, ModuleInstance, Provider, Resource};
use proptest::prelude::*;
use state::document::{decode, encode};
use state::{
    Attributes, CheckResult, CheckStatus, CheckedObject, DeposedKey, Identity, Object, ObjectStatus, OutputValue,
    RawJson, State,
};

const GOLDEN: [&str; 3] = [
    include_str!("golden/applied.tfstate"),
    include_str!("golden/by-hand.tfstate"),
    include_str!("golden/empty.tfstate"),
];

fn rewritten(text: &str) -> String {
    String::from_utf8(encode(&decode(text.as_bytes()).unwrap().unwrap()).unwrap()).unwrap()
}

#[test]
fn states_written_by_terraform_round_trip_byte_for_byte() {
    for text in GOLDEN {
        assert_eq!(rewritten(text), text);
    }
}

#[test]
fn edited_states_are_normalised_as_terraform_does() {
    let ours = rewritten(include_str!("golden/by-hand.json"));
    // Terraform writes its own version into the state.
    let ours = ours.replace("\"terraform_version\": \"1.20.0\"", "\"terraform_version\": \"1.16.0\"");
    assert_eq!(ours, include_str!("golden/by-hand.tfstate"));
}

#[test]
fn what_other_programs_read_past_is_written_only_where_it_says_something() {
    let instance = |more: &str| {
        format!(
            r#"{{"version":4,"terraform_version":"1.16.0","serial":1,"lineage":"l","outputs":{{}},"resources":[{{"mode":"managed","type":"a","name":"b","provider":"provider[\"registry.terraform.io/hashicorp/a\"]","instances":[{{"schema_version":0,"attributes":{{}}{more}}}]}}]}}"#
        )
    };
    let lines = |more: &str| -> Vec<String> {
        let text = rewritten(&instance(more));
        let own = text.lines().map(str::trim).filter(|line| line.contains("destroy"));
        own.map(str::to_owned).collect()
    };
    assert!(lines("").is_empty());
    assert!(lines(r#","skip_destroy":false,"destroy_provisioners":[]"#).is_empty());
    assert_eq!(
        lines(r#","skip_destroy":true,"create_before_destroy":true"#),
        ["\"create_before_destroy\": true,", "\"skip_destroy\": true"]
    );
    assert_eq!(
        lines(r#","destroy_provisioners":["local-exec"]"#),
        ["\"destroy_provisioners\": ["]
    );
}

#[test]
fn truncated_state_is_an_error() {
    for text in GOLDEN.into_iter().chain([include_str!("golden/by-hand.json")]) {
        // A state without its last line break is still complete.
        let whole = text.trim_end().len();
        for cut in 1..whole {
            let error = decode(&text.as_bytes()[..cut])
                .expect_err("a part is not a state")
                .to_string();
            assert!(error.starts_with("line "), "{cut}: {error}");
        }
        assert!(decode(&text.as_bytes()[..whole]).unwrap().is_some());
    }
}

#[test]
fn invalid_content_is_reported_with_its_address() {
    let provider = r#""provider":"provider[\"registry.terraform.io/hashicorp/null\"]""#;
    for (instance, part) in [
        (r#"{"status":"x"}"#, "null_resource.a: it has the status \"x\""),
        (r#"{"index_key":1.5}"#, "1.5 is not a whole number"),
        (r#"{"index_key":-1}"#, "-1 is not a whole number"),
        (r#"{"index_key":true}"#, "neither a number nor a string"),
        (r#"{"deposed":"zz"}"#, "\"zz\" is not a key"),
        (
            r#"{"index_key":"k","dependencies":["a"]}"#,
            "null_resource.a[\"k\"]: its dependency \"a\"",
        ),
        (
            r#"{"sensitive_attributes":[[{"type":"x","value":1}]]}"#,
            "\"x\" is not a kind of step",
        ),
        (r#"{"private":"%"}"#, "not valid base64"),
        (r#"{"schema_version":-1}"#, "line 1"),
        (r#"{},{}"#, "null_resource.a: it appears more than once"),
    ] {
        let text = format!(
            r#"{{"version":4,"resources":[{{"mode":"managed","type":"null_resource","name":"a",{provider},"instances":[{instance}]}}]}}"#
        );
        let error = decode(text.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(part), "{instance}: {error}");
    }
    for (resource, part) in [
        (r#"{"mode":"x","type":"a","name":"b"}"#, "a.b: \"x\" is not a mode"),
        (
            r#"{"mode":"data","type":"a","name":"b.c","provider":""}"#,
            "\"b.c\" is not a valid name",
        ),
        (
            r#"{"mode":"data","type":"a","name":"b","provider":"foo"}"#,
            "data.a.b: ",
        ),
        (r#"{"module":"x","mode":"data","type":"a","name":"b"}"#, "x.a.b: "),
    ] {
        let error = decode(format!(r#"{{"version":4,"resources":[{resource}]}}"#).as_bytes())
            .unwrap_err()
            .to_string();
        assert!(error.contains(part), "{resource}: {error}");
    }
    let error = decode(br#"{"version":4,"outputs":{"o":{"value":1}}}"#)
        .unwrap_err()
        .to_string();
    assert!(error.contains("output \"o\": it has no type"), "{error}");
}

#[test]
fn excessive_nesting_is_an_error() {
    let deep = "[".repeat(200_000) + &"]".repeat(200_000);
    for text in [
        deep.clone(),
        format!(r#"{{"version":4,"x":{deep}}}"#),
        format!(r#"{{"version":4,"outputs":{{"o":{{"value":{deep},"type":"dynamic"}}}}}}"#),
        format!(r#"{{"version":4,"outputs":{{"o":{{"value":null,"type":{deep}}}}}}}"#),
        format!(
            r#"{{"version":4,"resources":[{{"mode":"data","type":"a","name":"b","provider":"provider.a","instances":[{{"attributes":{{"a":{deep}}}}}]}}]}}"#
        ),
    ] {
        if let Ok(Some(state)) = decode(text.as_bytes()) {
            assert!(state.is_empty());
        }
    }
}

/// Builds a state with `n` instances of one resource, with attributes of ordinary size.
fn large(n: u64) -> State {
    let mut state = State {
        lineage: "l".into(),
        serial: 1,
        terraform_version: "1.11.4".into(),
        ..State::new()
    };
    let provider = AbsProviderConfig::root(Provider::default_for("aws"));
    let dependencies: Arc<[_]> = ["aws_vpc.main", "aws_subnet.main", "module.x.aws_iam_role.r"]
        .map(|text| addrs::parse::config_resource(text).unwrap())
        .into();
    for i in 0..n {
        let text = format!(
            r#"{{"id":"i-{i:017x}","arn":"arn:aws:ec2:eu-central-1:123456789012:instance/i-{i:017x}","tags":{{"Name":"n{i}","Team":"core"}},"ports":[22,80,443],"ebs":[{{"size":8,"type":"gp3"}}],"private_ip":"10.0.0.1","state":"running","zone":null}}"#
        );
        let mut object = Object::new(1, Attributes::Json(RawJson::parse(&text).unwrap()));
        object.private = br#"{"schema_version":"1"}"#.to_vec();
        object.dependencies = dependencies.clone();
        let address = Resource::managed("aws_instance", "a").absolute(&ModuleInstance::root());
        state.set_current(
            &address.instance(InstanceKey::Int(i)),
            &provider,
            Some(Arc::new(object)),
        );
    }
    state
}

/// The times are printed with `--nocapture`. In a release build, reading and writing 100,000 instances must each take well under a second.
#[test]
fn a_hundred_thousand_instances_are_read_and_written() {
    let n = if cfg!(debug_assertions) { 5_000 } else { 100_000 };
    let state = large(n);
    let begin = Instant::now();
    let text = encode(&state).unwrap();
    let written = begin.elapsed();
    let begin = Instant::now();
    let again = decode(&text).unwrap().unwrap();
    let read = begin.elapsed();
    let begin = Instant::now();
    let copy = again.clone();
    let copied = begin.elapsed();
    let begin = Instant::now();
    assert!(again.same_content(&state) && copy.same_content(&again));
    let compared = begin.elapsed();
    let mb = text.len() as f64 / 1e6;
    println!(
        "{n} instances, {mb:.0} MB: written in {written:?} ({:.0} MB/s), read in {read:?} ({:.0} MB/s), copied in \
         {copied:?}, compared in {compared:?}",
        mb / written.as_secs_f64(),
        mb / read.as_secs_f64()
    );
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[a-z]{0,6}",
        "[ -~é\u{2028}\u{2029}\u{1}\u{7f}\n]{0,6}",
        any::<String>()
    ]
}

fn name() -> impl Strategy<Value = String> {
    "[a-z_][a-z0-9_-]{0,4}"
}

fn key() -> impl Strategy<Value = InstanceKey> {
    prop_oneof![
        Just(InstanceKey::None),
        (0..20u64).prop_map(InstanceKey::Int),
        text().prop_map(|k| InstanceKey::String(k.into()))
    ]
}

fn module() -> impl Strategy<Value = ModuleInstance> {
    prop::collection::vec((name(), key()), 0..3).prop_map(|steps| {
        steps
            .into_iter()
            .fold(ModuleInstance::root(), |m, (name, key)| m.child(name, key))
    })
}

fn json() -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        "-?[1-9][0-9]{0,30}(\\.[0-9]{1,20})?(e[0-9]{1,2})?"
            .prop_map(|n| serde_json::from_str::<serde_json::Value>(&n).unwrap()),
        text().prop_map(Into::into),
    ];
    leaf.prop_recursive(3, 20, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Into::into),
            prop::collection::vec((text(), inner), 0..4)
                .prop_map(|m| serde_json::Value::Object(m.into_iter().collect())),
        ]
    })
}

fn path() -> impl Strategy<Value = cty::Path> {
    let step = prop_oneof![
        name().prop_map(|n| cty::Step::Attribute(n.into())),
        (0..9i64).prop_map(|n| cty::Step::Index(cty::Value::number(n))),
        "[a-z<\"]{0,4}".prop_map(|k| cty::Step::Index(cty::Value::string(k))),
    ];
    prop::collection::vec(step, 1..4).prop_map(cty::Path)
}

fn object() -> impl Strategy<Value = Arc<Object>> {
    let attributes = prop_oneof![
        3 => json().prop_map(|j| Attributes::Json(RawJson::parse(&j.to_string()).unwrap())),
        1 => prop::collection::btree_map(text(), text(), 0..3).prop_map(|m| Attributes::Flat(Arc::new(m))),
    ];
    let dependencies = prop::collection::vec((module(), name(), name(), any::<bool>()), 0..3).prop_map(|list| {
        list.into_iter()
            .map(|(module, ty, name, data)| {
                let ty = format!("t{ty}");
                let resource = if data {
                    Resource::data(ty, name)
                } else {
                    Resource::managed(ty, name)
                };
                resource.in_module(&module.module())
            })
            .collect()
    });
    let identity = prop::option::of(
        (any::<u64>(), prop::option::of(json())).prop_map(|(schema_version, value)| {
            // A missing identity and a null one are the same.
            let value = value
                .filter(|v| !v.is_null())
                .map(|v| RawJson::parse(&v.to_string()).unwrap());
            Identity { schema_version, value }
        }),
    )
    // An identity without a value is recorded only if its version is not 0.
    .prop_map(|identity| identity.filter(|i| i.schema_version != 0 || i.value.is_some()));
    (
        (
            any::<bool>(),
            any::<u64>(),
            attributes,
            prop::collection::vec(path(), 0..3),
        ),
        (
            prop::collection::vec(any::<u8>(), 0..9),
            dependencies,
            any::<bool>(),
            identity,
        ),
    )
        .prop_map(
            |((tainted, schema_version, attributes, sensitive_paths), (private, dependencies, cbd, identity))| {
                Arc::new(Object {
                    status: if tainted {
                        ObjectStatus::Tainted
                    } else {
                        ObjectStatus::Ready
                    },
                    schema_version,
                    attributes,
                    sensitive_paths,
                    private,
                    dependencies,
                    create_before_destroy: cbd,
                    skip_destroy: cbd != tainted,
                    destroy_provisioners: match cbd && tainted {
                        true => ["local-exec", "a \"name\""].map(Arc::from).into(),
                        false => Arc::default(),
                    },
                    identity,
                })
            },
        )
}

fn any_state() -> impl Strategy<Value = State> {
    let instance = (
        module(),
        any::<bool>(),
        (name(), name()),
        key(),
        prop::option::of("[0-9a-f]{8}"),
        object(),
    );
    let output = prop_oneof![
        text().prop_map(cty::Value::string),
        any::<i64>().prop_map(cty::Value::number),
        prop::collection::vec(text(), 0..3)
            .prop_map(|v| cty::Value::list(cty::Type::String, v.into_iter().map(cty::Value::string).collect())),
        Just(cty::Value::null(cty::Type::Bool)),
    ];
    let status = prop::sample::select(vec![
        CheckStatus::Pass,
        CheckStatus::Fail,
        CheckStatus::Error,
        CheckStatus::Unknown,
    ]);
    let checked = (text(), status.clone(), prop::collection::vec(text(), 0..2)).prop_map(|(addr, status, messages)| {
        CheckedObject {
            object_addr: addr.into(),
            status,
            failure_messages: messages.into_iter().map(Arc::from).collect(),
        }
    });
    let check =
        (text(), text(), status, prop::collection::vec(checked, 0..2)).prop_map(|(kind, addr, status, objects)| {
            CheckResult {
                object_kind: kind.into(),
                config_addr: addr.into(),
                status,
                objects,
            }
        });
    (
        (text(), any::<u64>(), text()),
        prop::collection::vec((text(), output, any::<bool>()), 0..3),
        prop::collection::vec(instance, 0..6),
        prop::collection::vec(check, 0..3),
    )
        .prop_map(|((terraform_version, serial, lineage), outputs, instances, checks)| {
            let mut state = State {
                terraform_version,
                serial,
                lineage,
                ..State::new()
            };
            for (name, value, sensitive) in outputs {
                state.outputs.insert(name.into(), OutputValue { value, sensitive });
            }
            for (module, data, (ty, name), key, deposed, object) in instances {
                let resource = if data {
                    Resource::data(ty, name)
                } else {
                    Resource::managed(ty, name)
                };
                let address = AbsResource { module, resource }.instance(key);
                let provider = AbsProviderConfig::new(
                    Module::root().child("m"),
                    Provider::default_for("x"),
                    data.then(|| "a".into()),
                )
                .instance(deposed.clone().filter(|_| data).map(Into::into));
                match deposed {
                    None => state.set_current(&address, &provider, Some(object)),
                    Some(key) => state.set_deposed(&address, &provider, DeposedKey(key.into()), Some(object)),
                }
            }
            state.check_results = Some(checks.into()).filter(|c: &Arc<[_]>| !c.is_empty());
            state
        })
}

/// Resources with instances of a provider with `for_each`, as OpenTofu 1.12.6 writes them.
const KEYED: &str = r#"
    {
      "mode": "managed",
      "type": "time_static",
      "name": "a",
      "instances": [
        {
          "index_key": "eu",
          "provider": "provider[\"registry.opentofu.org/hashicorp/time\"].by[\"eu\"]",
          "schema_version": 0,
          "attributes": {},
          "sensitive_attributes": []
        },
        {
          "index_key": "us",
          "provider": "provider[\"registry.opentofu.org/hashicorp/time\"].by",
          "schema_version": 0,
          "attributes": {},
          "sensitive_attributes": []
        }
      ]
    }"#;

#[test]
fn keys_of_provider_configurations_are_kept_with_the_objects() {
    let text = format!(
        r#"{{"version": 4, "terraform_version": "1.12.6", "serial": 1, "lineage": "l", "resources": [{KEYED}]}}"#
    );
    let state = decode(text.as_bytes()).unwrap().unwrap();
    let (_, resource) = state.resources.iter().next().unwrap();
    let of = |key: &str| resource.provider_of(&InstanceKey::String(key.into())).to_string();
    assert_eq!(of("eu"), r#"provider["registry.opentofu.org/hashicorp/time"].by["eu"]"#);
    assert_eq!(of("us"), r#"provider["registry.opentofu.org/hashicorp/time"].by"#);
    let written = String::from_utf8(encode(&state).unwrap()).unwrap();
    // The identity's schema version is the only difference: this program writes it, like Terraform.
    let written = written.replace(",\n          \"identity_schema_version\": 0", "");
    assert!(written.contains(KEYED), "{written}");
}

#[test]
fn resources_without_one_provider_configuration_are_refused() {
    let objects = |a: &str, b: &str| {
        let object = |key: u8, provider: &str| {
            let provider = provider.replace('"', "\\\"");
            format!(r#"{{"index_key": {key}, "provider": "{provider}", "attributes": {{}}}}"#)
        };
        let text = format!(
            r#"{{"version": 4, "resources": [{{"mode": "managed", "type": "t", "name": "n", "instances": [{}, {}]}}]}}"#,
            object(0, a),
            object(1, b)
        );
        decode(text.as_bytes()).err().map(|e| e.to_string()).unwrap_or_default()
    };
    let of = |name: &str| format!(r#"provider["registry.opentofu.org/hashicorp/{name}"].by["k"]"#);
    assert_eq!(objects(&of("a"), &of("a")), "");
    assert!(
        objects(&of("a"), &of("b")).contains("is not one of"),
        "{}",
        objects(&of("a"), &of("b"))
    );
    let none = br#"{"version": 4, "resources": [{"mode": "managed", "type": "t", "name": "n", "instances": [{"attributes": {}}]}]}"#;
    assert!(
        decode(none)
            .unwrap_err()
            .to_string()
            .contains("it has no provider configuration")
    );
}

proptest! {
    #[test]
    fn written_states_read_equal(state in any_state()) {
        let text = encode(&state).unwrap();
        let again = decode(&text).unwrap().unwrap();
        prop_assert!(again.same_content(&state), "{}", String::from_utf8_lossy(&text));
        prop_assert_eq!((&again.terraform_version, again.serial, &again.lineage), (&state.terraform_version, state.serial, &state.lineage));
        prop_assert_eq!(encode(&again).unwrap(), text);
    }

    #[test]
    fn damaged_states_never_panic(which in 0..3usize, at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut text = GOLDEN[which].as_bytes().to_vec();
        let at = at.index(text.len());
        text[at] = byte;
        if let Ok(Some(state)) = decode(&text) {
            encode(&state).unwrap();
        }
    }
}
