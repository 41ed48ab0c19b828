//! Against a real provider written with the official Go SDK. It is not part of this repository, so the test is ignored
//! unless asked for:
//!
//! ```sh
//! MONOFORM_GO_PROVIDER=/path/to/terraform-provider-demo cargo test -p monoform-plugins --test go_provider -- --ignored
//! ```
//!
//! The provider must be the `demo` provider described by the values below: a resource with nested attributes and a
//! write-only one, a data source with an attribute of any type, and a function.
// Helpers of tests fail by panicking, as tests do.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::print_stdout)]

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use cty::{Path, Type, Value};
use plugins::grpc_provider::GrpcProvider;
use plugins::launch::Launch;
use provider::Provider;
use provider::RawState;
use schema::AttributeType;

async fn start(tls: bool) -> GrpcProvider {
    let program = std::env::var_os("MONOFORM_GO_PROVIDER").expect("MONOFORM_GO_PROVIDER names the provider");
    let launch = Launch {
        title: "provider \"example/demo\"".into(),
        program: program.into(),
        args: Vec::new(),
        protocols: vec![5, 6],
        tls,
        timeout: Launch::TIMEOUT,
        own: false,
    };
    let launched = launch.start().await.unwrap();
    GrpcProvider::launched(&launch.title, launched, Arc::default(), "1.11.4".into())
}

fn object(ty: &Type, set: &[(&str, Value)]) -> Value {
    let ty = ty.as_object().unwrap();
    let set: BTreeMap<&str, &Value> = set.iter().map(|(n, v)| (*n, v)).collect();
    let values = ty.attributes().iter().map(|a| match set.get(&*a.name) {
        Some(value) => (*value).clone(),
        None => Value::null(a.ty.clone()),
    });
    Value::object_of(ty, values.collect())
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a provider built with Go"]
async fn the_life_of_a_resource() {
    for tls in [true, false] {
        let began = Instant::now();
        let provider = start(tls).await;
        let schema = provider.schema().await.unwrap();
        println!(
            "tls {tls}: schema after {:?}, capabilities {:?}",
            began.elapsed(),
            schema.capabilities
        );
        let thing = &schema.resources["demo_thing"];
        assert_eq!(thing.version, 1);
        assert!(matches!(thing.block.attributes["inner"].ty, AttributeType::Nested(_)));
        assert!(thing.block.attributes["pass"].write_only);
        let ty = thing.implied_type();
        println!("{ty}");

        let config = object(&schema.provider.implied_type(), &[("greeting", "hi".into())]);
        assert!(
            provider
                .validate_provider(config.clone())
                .await
                .unwrap()
                .diagnostics
                .is_empty()
        );
        assert!(provider.configure(config).await.unwrap().diagnostics.is_empty());

        // Validation with a path into nested attributes.
        let bad = object(&ty, &[("name", "bad".into())]);
        let answer = provider.validate_resource("demo_thing", bad).await.unwrap();
        assert_eq!(answer.diagnostics.len(), 2);
        let at = Path::root().attribute("inner").index(Value::number(0)).attribute("key");
        assert_eq!(answer.diagnostics[0].attribute, at);
        assert!(answer.diagnostics[0].diagnostic.is_error() && !answer.diagnostics[1].diagnostic.is_error());

        // Create.
        let Type::List(inner_ty) = ty.as_object().unwrap().get("inner").unwrap().clone() else {
            panic!()
        };
        let inner = |made: Value| {
            let o = object(&inner_ty, &[("key", "k".into()), ("value", "v".into()), ("made", made)]);
            Value::list((*inner_ty).clone(), vec![o])
        };
        let base = |pass: Value, id: Value, made: Value| {
            let tags = Value::map(Type::String, [("a".into(), Value::string("b"))].into());
            let set = [
                ("name", Value::string("n")),
                ("size", Value::number(41)),
                ("tags", tags),
                ("inner", inner(made)),
                ("pass", pass),
                ("id", id),
            ];
            object(&ty, &set)
        };
        let no = || Value::null(Type::String);
        let config = base("secret".into(), no(), no());
        assert!(
            provider
                .validate_resource("demo_thing", config.clone())
                .await
                .unwrap()
                .diagnostics
                .is_empty()
        );
        let proposed = base(no(), Value::unknown(Type::String), Value::unknown(Type::String));
        let null = Value::null(ty.clone());
        let planned = provider
            .plan("demo_thing", null.clone(), proposed, config.clone(), vec![], None)
            .await
            .unwrap();
        assert!(planned.diagnostics.is_empty(), "{:?}", planned.diagnostics);
        let planned = planned.value;
        assert!(!planned.planned.is_wholly_known() && !planned.legacy_type_system);
        let applied = provider
            .apply(
                "demo_thing",
                null.clone(),
                planned.planned,
                config.clone(),
                planned.private,
                None,
            )
            .await
            .unwrap();
        assert!(applied.diagnostics.is_empty(), "{:?}", applied.diagnostics);
        let applied = applied.value;
        println!("{:?}", applied.state);
        assert_eq!(applied.state.get("id").unwrap().as_str(), Some("hi-n-secret"));
        assert_eq!(applied.state.get("pass").unwrap(), &no());
        assert!(!applied.private.is_empty());

        // Upgrade from the state file's JSON, read, plan a replacement.
        let json = cty::json::to_json(&applied.state, &ty)
            .unwrap()
            .to_string()
            .into_bytes();
        let upgraded = provider
            .upgrade("demo_thing", 1, RawState::Json(json.into()))
            .await
            .unwrap();
        assert_eq!(upgraded.value, applied.state);
        let read = provider
            .read("demo_thing", applied.state.clone(), applied.private.clone(), None)
            .await
            .unwrap();
        assert_eq!(read.value.0.get("size").unwrap(), &Value::number(42));
        assert_eq!(read.value.1, applied.private);
        let other = |v: &Value| {
            v.map_parts(|part, v| match part {
                cty::value::Part::Attribute(name) if &**name == "name" => "other".into(),
                _ => v.clone(),
            })
        };
        let replaced = provider
            .plan(
                "demo_thing",
                applied.state.clone(),
                other(&applied.state),
                other(&config),
                applied.private.clone(),
                None,
            )
            .await
            .unwrap();
        assert_eq!(replaced.value.requires_replace, [Path::root().attribute("name")]);
        let destroyed = provider
            .apply("demo_thing", applied.state, null.clone(), null, applied.private, None)
            .await
            .unwrap();
        assert!(destroyed.value.state.is_null());

        // Data source with an attribute of any type; import; function.
        let hello = schema.data_sources["demo_hello"].implied_type();
        let any = Value::tuple(vec![Value::bool(true), "x".into()]);
        let config = object(&hello, &[("who", "you".into()), ("any", any.clone())]);
        assert!(
            provider
                .validate_data("demo_hello", config.clone())
                .await
                .unwrap()
                .diagnostics
                .is_empty()
        );
        let data = provider.read_data("demo_hello", config, None).await.unwrap();
        assert_eq!(data.value.get("text").unwrap().as_str(), Some("hi, you"));
        assert_eq!(data.value.get("any").unwrap(), &any);
        let imported = provider.import("demo_thing", "some-id").await.unwrap();
        assert_eq!(imported.value[0].state.get("id").unwrap().as_str(), Some("some-id"));
        assert_eq!(
            provider
                .call_function("twice", vec!["ab".into()])
                .await
                .unwrap()
                .unwrap()
                .as_str(),
            Some("abab")
        );
        let error = provider
            .call_function("twice", vec!["".into()])
            .await
            .unwrap()
            .unwrap_err();
        assert_eq!((error.argument, &*error.text), (Some(0), "must not be empty"));

        let began = Instant::now();
        for _ in 0..1000 {
            provider
                .call_function("twice", vec!["ab".into()])
                .await
                .unwrap()
                .unwrap();
        }
        println!("1000 calls one at a time: {:?}", began.elapsed());
        provider.stop().await.unwrap();
        let began = Instant::now();
        provider.close().await;
        println!("closed after {:?}", began.elapsed());
        let error = provider.stop().await.unwrap_err();
        assert_eq!(error.0[0].summary, "Plugin did not respond");
        println!("{}", error.0[0].detail);
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs a provider built with Go"]
async fn a_dying_provider_explains_itself() {
    for (name, expected) in [("exit", "ended with exit status 7"), ("panic", "asked to panic")] {
        let provider = start(true).await;
        let schema = provider.schema().await.unwrap();
        let config = object(&schema.resources["demo_thing"].implied_type(), &[("name", name.into())]);
        let error = provider.validate_resource("demo_thing", config).await.unwrap_err();
        println!("{}\n{}\n", error.0[0].summary, error.0[0].detail);
        assert_eq!(error.0[0].summary, "Plugin did not respond");
        assert!(error.0[0].detail.contains(expected));
        provider.close().await;
    }
}
