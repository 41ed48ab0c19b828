//! Tests of all requests in both protocols, against a server in this process.
// One macro writes the tests of both protocols, whose messages have different numbers of fields.
#![allow(clippy::needless_update)]

use std::sync::Arc;

use super::fake::Fake;
use crate::grpc::Methods;
use crate::grpc_provider::{Access, GrpcProvider, SharedSchema};
use crate::handshake::Address;
use crate::launch::attach;
use cty::{Path, Type, Value};
use prost::Message;
use provider::RawState;
use provider::{ApplyRequest, ImportTarget, MoveRequest, PlanRequest, Provider, ReadRequest};
use schema::{AttributeType, Nesting};
use tonic::Status;

pub fn provider(fake: &Fake, protocol: u32) -> GrpcProvider {
    sharing(fake, protocol, Arc::default())
}

/// Starts a provider whose processes share their schemas.
fn sharing(fake: &Fake, protocol: u32, shared: SharedSchema) -> GrpcProvider {
    let channel = attach(Address::Unix(fake.socket().to_owned()));
    let access = Access::Running(channel, Methods::for_protocol(protocol));
    GrpcProvider::new("provider \"acme/fake\"".into(), access, shared, None, "1.11.4".into())
}

fn object_type() -> Type {
    Type::object([
        ("id", Type::String),
        ("items", Type::list(Type::object([("n", Type::Number)]))),
    ])
}

fn object(id: Value) -> Value {
    let item = Value::object([("n", Value::number(1))]);
    Value::object([("id", id), ("items", Value::list(item.ty().clone(), vec![item]))])
}

fn msgpack(value: &Value, ty: &Type) -> Vec<u8> {
    cty::msgpack::encode(value, ty).unwrap()
}

/// Defines the tests for the messages of one protocol.
macro_rules! tests_of {
    (
        $protocol:ident, $number:literal,
        $schema:literal, $validate_provider:literal, $prepare:ident, $validate_resource:literal, $vr:ident,
        $validate_data:literal, $vd:ident, $configure:literal, $cp:ident, $stop:literal, $sp:ident
    ) => {
        mod $protocol {
            use proto::$protocol as pb;

            use super::*;

            fn path(method: &str) -> String {
                format!("/{}.Provider/{method}", stringify!($protocol))
            }

            fn dynamic(value: &Value) -> Option<pb::DynamicValue> {
                Some(pb::DynamicValue {
                    msgpack: msgpack(value, &object_type()),
                    json: vec![],
                })
            }

            fn read(value: Option<pb::DynamicValue>) -> Value {
                cty::msgpack::decode(&value.unwrap().msgpack, &object_type()).unwrap()
            }

            fn attribute(name: &str, ty: &str) -> pb::schema::Attribute {
                pb::schema::Attribute {
                    name: name.into(),
                    r#type: ty.into(),
                    optional: true,
                    ..Default::default()
                }
            }

            fn schema() -> pb::Schema {
                use pb::schema::nested_block::NestingMode;
                let block = pb::schema::Block {
                    attributes: vec![attribute("n", "\"number\"")],
                    description: "An *item*.".into(),
                    description_kind: pb::StringKind::Markdown as i32,
                    ..Default::default()
                };
                let items = pb::schema::NestedBlock {
                    type_name: "items".into(),
                    block: Some(block),
                    nesting: NestingMode::List as i32,
                    min_items: 1,
                    max_items: 3,
                };
                let mut id = attribute("id", "\"string\"");
                (id.computed, id.sensitive, id.write_only) = (true, true, true);
                let block = pb::schema::Block {
                    attributes: vec![id],
                    block_types: vec![items],
                    ..Default::default()
                };
                pb::Schema {
                    version: 3,
                    block: Some(block),
                }
            }

            fn whole_schema() -> pb::get_provider_schema::Response {
                let parameter = |name: &str| pb::function::Parameter {
                    name: name.into(),
                    r#type: "\"string\"".into(),
                    allow_null_value: true,
                    ..Default::default()
                };
                let function = pb::Function {
                    parameters: vec![parameter("a")],
                    variadic_parameter: Some(parameter("rest")),
                    r#return: Some(pb::function::Return {
                        r#type: "[\"list\",\"string\"]".into(),
                    }),
                    ..Default::default()
                };
                let all = || [("fake_thing".to_owned(), schema())].into();
                pb::get_provider_schema::Response {
                    provider: Some(schema()),
                    provider_meta: Some(schema()),
                    resource_schemas: all(),
                    data_source_schemas: all(),
                    ephemeral_resource_schemas: all(),
                    functions: [("f".to_owned(), function)].into(),
                    server_capabilities: Some(pb::ServerCapabilities {
                        plan_destroy: true,
                        get_provider_schema_optional: true,
                        move_resource_state: true,
                        ..Default::default()
                    }),
                    ..Default::default()
                }
            }

            fn warning() -> pb::Diagnostic {
                use pb::attribute_path::{Step, step::Selector};
                let step = |selector| Step {
                    selector: Some(selector),
                };
                pb::Diagnostic {
                    severity: pb::diagnostic::Severity::Warning as i32,
                    summary: "Odd".into(),
                    detail: "Very odd.".into(),
                    attribute: Some(pb::AttributePath {
                        steps: vec![
                            step(Selector::AttributeName("items".into())),
                            step(Selector::ElementKeyInt(2)),
                            step(Selector::ElementKeyString("k".into())),
                        ],
                    }),
                }
            }

            fn fake() -> Fake {
                Fake::new().on(&path($schema), |_: pb::get_provider_schema::Request| {
                    Ok(whole_schema())
                })
            }

            #[tokio::test]
            async fn schema_in_full() {
                let fake = fake().serve();
                let schema = provider(&fake, $number).schema().await.unwrap();
                assert!(schema.capabilities.plan_destroy && schema.capabilities.move_resource_state);
                assert!(schema.provider_meta.is_some() && schema.ephemeral.contains_key("fake_thing"));
                let thing = schema.resources.get("fake_thing").unwrap();
                assert_eq!((thing.version, thing.implied_type()), (3, object_type()));
                let id = &thing.block.attributes["id"];
                assert!(id.write_only && id.sensitive && id.computed && id.optional && !id.required);
                assert_eq!(id.ty, AttributeType::Plain(Type::String));
                let items = &thing.block.blocks["items"];
                assert_eq!(
                    (items.nesting, items.min_items, items.max_items),
                    (Nesting::List, 1, 3)
                );
                assert!(items.block.description.markdown);
                let f = schema.functions.get("f").unwrap();
                assert_eq!(f.result, Some(Type::list(Type::String)));
                assert!(f.variadic.is_some() && f.parameters[0].allow_null);
            }

            #[tokio::test]
            async fn checks_and_configuration() {
                let fake = fake()
                    .on(&path($validate_provider), |q: pb::$prepare::Request| {
                        assert_eq!(read(q.config), object("p".into()));
                        Ok(pb::$prepare::Response {
                            diagnostics: vec![warning()],
                            ..Default::default()
                        })
                    })
                    .on(&path($validate_resource), |q: pb::$vr::Request| {
                        assert_eq!(read(q.config), object("r".into()));
                        assert!(q.client_capabilities.unwrap().write_only_attributes_allowed);
                        Ok(pb::$vr::Response {
                            diagnostics: vec![warning()],
                        })
                    })
                    .on(&path($validate_data), |q: pb::$vd::Request| {
                        assert_eq!(
                            (q.type_name.as_str(), read(q.config)),
                            ("fake_thing", object("d".into()))
                        );
                        Ok(pb::$vd::Response {
                            diagnostics: vec![warning()],
                        })
                    })
                    .on(
                        &path("ValidateEphemeralResourceConfig"),
                        |q: pb::validate_ephemeral_resource_config::Request| {
                            assert_eq!(read(q.config), object(Value::unknown(Type::String)));
                            Ok(pb::validate_ephemeral_resource_config::Response {
                                diagnostics: vec![warning()],
                            })
                        },
                    )
                    .on(&path($configure), |q: pb::$cp::Request| {
                        assert_eq!(
                            (q.terraform_version.as_str(), read(q.config)),
                            ("1.11.4", object("c".into()))
                        );
                        Ok(pb::$cp::Response {
                            diagnostics: vec![warning()],
                        })
                    })
                    .on(&path($stop), |_: pb::$sp::Request| {
                        Ok(pb::$sp::Response {
                            error: "too late".into(),
                        })
                    })
                    .serve();
                let provider = provider(&fake, $number);
                let at = Path::root()
                    .attribute("items")
                    .index(Value::number(2))
                    .index("k".into());
                for answer in [
                    provider.validate_provider(object("p".into())).await.unwrap(),
                    provider
                        .validate_resource("fake_thing", object("r".into()))
                        .await
                        .unwrap(),
                    provider
                        .validate_data("fake_thing", object("d".into()))
                        .await
                        .unwrap(),
                    provider
                        .validate_ephemeral("fake_thing", object(Value::unknown(Type::String)))
                        .await
                        .unwrap(),
                    provider.configure(object("c".into())).await.unwrap(),
                ] {
                    let [problem] = &answer.diagnostics[..] else {
                        panic!("{answer:?}")
                    };
                    assert!(!problem.diagnostic.is_error());
                    assert_eq!(
                        (problem.diagnostic.summary.as_str(), &problem.attribute),
                        ("Odd", &at)
                    );
                }
                let error = provider.stop().await.unwrap_err();
                assert!(error.0[0].detail.contains("too late"));
            }

            #[tokio::test]
            async fn resources() {
                let fake = fake()
                    .on(
                        &path("UpgradeResourceState"),
                        |q: pb::upgrade_resource_state::Request| {
                            let raw = q.raw_state.unwrap();
                            assert_eq!((q.version, &raw.json[..]), (2, &b"{\"id\":\"old\"}"[..]));
                            Ok(pb::upgrade_resource_state::Response {
                                upgraded_state: dynamic(&object("new".into())),
                                ..Default::default()
                            })
                        },
                    )
                    .on(&path("ReadResource"), |q: pb::read_resource::Request| {
                        assert_eq!((read(q.current_state), q.private), (object("a".into()), vec![1]));
                        assert_eq!(read(q.provider_meta), object("meta".into()));
                        // The object is deleted: a missing value means null.
                        Ok(pb::read_resource::Response {
                            private: vec![2],
                            ..Default::default()
                        })
                    })
                    .on(
                        &path("PlanResourceChange"),
                        |q: pb::plan_resource_change::Request| {
                            assert_eq!(read(q.prior_state), Value::null(object_type()));
                            assert_eq!(read(q.proposed_new_state), object(Value::unknown(Type::String)));
                            assert_eq!(
                                (read(q.config), q.prior_private),
                                (object(Value::null(Type::String)), vec![3])
                            );
                            Ok(pb::plan_resource_change::Response {
                                planned_state: dynamic(&object(Value::unknown(Type::String))),
                                requires_replace: vec![warning().attribute.unwrap()],
                                planned_private: vec![4],
                                legacy_type_system: true,
                                diagnostics: vec![warning()],
                                ..Default::default()
                            })
                        },
                    )
                    .on(
                        &path("ApplyResourceChange"),
                        |q: pb::apply_resource_change::Request| {
                            assert_eq!((q.planned_private, q.provider_meta), (vec![4], None));
                            assert_eq!(read(q.planned_state), object(Value::unknown(Type::String)));
                            let severity = pb::diagnostic::Severity::Error as i32;
                            // Half of the work was done: the response contains an object and an error.
                            Ok(pb::apply_resource_change::Response {
                                new_state: dynamic(&object("half".into())),
                                private: vec![5],
                                diagnostics: vec![pb::Diagnostic {
                                    severity,
                                    ..Default::default()
                                }],
                                ..Default::default()
                            })
                        },
                    )
                    .on(
                        &path("ImportResourceState"),
                        |q: pb::import_resource_state::Request| {
                            assert_eq!(q.id, "the-id");
                            let imported = pb::import_resource_state::ImportedResource {
                                type_name: q.type_name,
                                state: dynamic(&object("i".into())),
                                private: vec![6],
                                ..Default::default()
                            };
                            Ok(pb::import_resource_state::Response {
                                imported_resources: vec![imported],
                                ..Default::default()
                            })
                        },
                    )
                    .on(
                        &path("MoveResourceState"),
                        |q: pb::move_resource_state::Request| {
                            assert_eq!(
                                (q.source_type_name.as_str(), q.target_type_name.as_str()),
                                ("old_thing", "fake_thing")
                            );
                            assert_eq!((q.source_schema_version, q.source_private), (7, vec![8]));
                            assert_eq!(q.source_state.unwrap().flatmap["id"], "flat");
                            Ok(pb::move_resource_state::Response {
                                target_state: dynamic(&object("m".into())),
                                target_private: vec![9],
                                ..Default::default()
                            })
                        },
                    )
                    .on(&path("ReadDataSource"), |q: pb::read_data_source::Request| {
                        assert_eq!(read(q.config), object(Value::null(Type::String)));
                        // Plugins may also answer in JSON.
                        let json = br#"{"id":"json","items":[{"n":1}]}"#.to_vec();
                        Ok(pb::read_data_source::Response {
                            state: Some(pb::DynamicValue {
                                msgpack: vec![],
                                json,
                            }),
                            ..Default::default()
                        })
                    })
                    .serve();
                let provider = provider(&fake, $number);
                let ty = "fake_thing";
                let raw = RawState::Json((*b"{\"id\":\"old\"}").into());
                assert_eq!(
                    provider.upgrade(ty, 2, raw).await.unwrap().value,
                    object("new".into())
                );
                let answer = provider
                    .read(
                        ty,
                        ReadRequest {
                            current: object("a".into()),
                            private: vec![1],
                            identity: None,
                            meta: Some(object("meta".into())),
                        },
                    )
                    .await
                    .unwrap();
                assert_eq!(
                    (
                        &answer.value.object,
                        &answer.value.private,
                        &answer.value.identity
                    ),
                    (&Value::null(object_type()), &vec![2], &None)
                );
                let null = Value::null(object_type());
                let unknown = object(Value::unknown(Type::String));
                let config = object(Value::null(Type::String));
                let answer = provider
                    .plan(
                        ty,
                        PlanRequest {
                            prior: null.clone(),
                            proposed: unknown.clone(),
                            config: config.clone(),
                            prior_private: vec![3],
                            prior_identity: None,
                            planned_private: vec![],
                            meta: None,
                        },
                    )
                    .await
                    .unwrap();
                assert_eq!(
                    (&answer.value.planned, &answer.value.private),
                    (&unknown, &vec![4])
                );
                assert!(answer.value.legacy_type_system && answer.value.requires_replace[0].0.len() == 3);
                assert_eq!(answer.diagnostics.len(), 1);
                let answer = provider
                    .apply(
                        ty,
                        ApplyRequest {
                            prior: null,
                            planned: unknown,
                            config: config.clone(),
                            planned_private: vec![4],
                            planned_identity: None,
                            meta: None,
                        },
                    )
                    .await
                    .unwrap();
                assert_eq!(
                    (answer.value.state, answer.value.private),
                    (object("half".into()), vec![5])
                );
                assert!(answer.diagnostics[0].diagnostic.is_error());
                let answer = provider
                    .import(ty, &ImportTarget::Id("the-id".into()))
                    .await
                    .unwrap();
                assert_eq!(
                    (&answer.value[0].state, &*answer.value[0].ty),
                    (&object("i".into()), ty)
                );
                let raw = RawState::Flatmap([("id".to_owned(), "flat".to_owned())].into());
                let answer = provider
                    .move_state(
                        ty,
                        MoveRequest {
                            source_provider: "x/y/z",
                            source_type: "old_thing",
                            source_version: 7,
                            source_state: raw,
                            source_private: vec![8],
                            source_identity: None,
                        },
                    )
                    .await
                    .unwrap();
                assert_eq!(
                    (answer.value.object, answer.value.private),
                    (object("m".into()), vec![9])
                );
                let answer = provider.read_data(ty, config, None).await.unwrap();
                assert_eq!(answer.value, object("json".into()));
            }

            #[tokio::test]
            async fn identities_go_both_ways() {
                let fake = fake()
                    .on(
                        &path("GetResourceIdentitySchemas"),
                        |_: pb::get_resource_identity_schemas::Request| {
                            let id = pb::resource_identity_schema::IdentityAttribute {
                                name: "id".into(),
                                r#type: b"\"string\"".to_vec(),
                                required_for_import: true,
                                ..Default::default()
                            };
                            let schema = pb::ResourceIdentitySchema {
                                version: 4,
                                identity_attributes: vec![id],
                            };
                            Ok(pb::get_resource_identity_schemas::Response {
                                identity_schemas: [("fake_thing".to_owned(), schema)].into(),
                                ..Default::default()
                            })
                        },
                    )
                    .on(&path("ReadResource"), |q: pb::read_resource::Request| {
                        Ok(pb::read_resource::Response {
                            new_state: q.current_state,
                            new_identity: q.current_identity,
                            ..Default::default()
                        })
                    })
                    .on(
                        &path("UpgradeResourceIdentity"),
                        |q: pb::upgrade_resource_identity::Request| {
                            let json = q.raw_identity.unwrap_or_default().json;
                            assert_eq!((q.version, &*json), (3, &b"{\"id\":\"old\"}"[..]));
                            Ok(pb::upgrade_resource_identity::Response {
                                upgraded_identity: Some(pb::ResourceIdentityData {
                                    identity_data: Some(pb::DynamicValue {
                                        json,
                                        ..Default::default()
                                    }),
                                }),
                                ..Default::default()
                            })
                        },
                    )
                    .on(
                        &path("ImportResourceState"),
                        |q: pb::import_resource_state::Request| {
                            assert!(q.id.is_empty());
                            Ok(pb::import_resource_state::Response {
                                imported_resources: vec![pb::import_resource_state::ImportedResource {
                                    type_name: q.type_name,
                                    identity: q.identity,
                                    ..Default::default()
                                }],
                                ..Default::default()
                            })
                        },
                    )
                    .serve();
                let provider = provider(&fake, $number);
                let ty = "fake_thing";
                let identity = Value::object([("id", Value::string("x"))]);
                let schema = provider.schema().await.unwrap();
                let of_thing = schema.resources.get(ty).unwrap().identity.clone().unwrap();
                assert!(of_thing.version == 4 && of_thing.attributes["id"].required_for_import);
                let request = ReadRequest {
                    current: object("a".into()),
                    private: vec![],
                    identity: Some(identity.clone()),
                    meta: None,
                };
                let answer = provider.read(ty, request).await.unwrap();
                assert_eq!(answer.value.identity, Some(identity.clone()));
                let old = b"{\"id\":\"old\"}"[..].into();
                let answer = provider.upgrade_identity(ty, 3, old).await.unwrap();
                assert_eq!(answer.value, Some(Value::object([("id", Value::string("old"))])));
                let target = ImportTarget::Identity(identity.clone());
                let answer = provider.import(ty, &target).await.unwrap();
                assert!(answer.value[0].state.is_null());
                assert_eq!(answer.value[0].identity, Some(identity));
            }

            #[tokio::test]
            async fn ephemeral_resources_and_functions() {
                let fake = fake()
                    .on(
                        &path("OpenEphemeralResource"),
                        |q: pb::open_ephemeral_resource::Request| {
                            let seconds = 1_700_000_000;
                            Ok(pb::open_ephemeral_resource::Response {
                                result: q.config,
                                private: Some(vec![1]),
                                renew_at: Some(prost_types::Timestamp { seconds, nanos: 5 }),
                                ..Default::default()
                            })
                        },
                    )
                    .on(
                        &path("RenewEphemeralResource"),
                        |q: pb::renew_ephemeral_resource::Request| {
                            Ok(pb::renew_ephemeral_resource::Response {
                                private: q.private,
                                ..Default::default()
                            })
                        },
                    )
                    .on(
                        &path("CloseEphemeralResource"),
                        |q: pb::close_ephemeral_resource::Request| {
                            assert_eq!(q.private, None);
                            Ok(pb::close_ephemeral_resource::Response {
                                diagnostics: vec![warning()],
                            })
                        },
                    )
                    .on(&path("CallFunction"), |q: pb::call_function::Request| {
                        if q.arguments.len() == 1 {
                            let error = pb::FunctionError {
                                text: "too few".into(),
                                function_argument: Some(0),
                            };
                            return Ok(pb::call_function::Response {
                                error: Some(error),
                                result: None,
                            });
                        }
                        let list = Type::list(Type::String);
                        let all = q
                            .arguments
                            .iter()
                            .map(|a| cty::msgpack::decode(&a.msgpack, &Type::String).unwrap());
                        let result = Value::list(Type::String, all.collect());
                        let result = pb::DynamicValue {
                            msgpack: msgpack(&result, &list),
                            json: vec![],
                        };
                        Ok(pb::call_function::Response {
                            result: Some(result),
                            error: None,
                        })
                    })
                    .serve();
                let provider = provider(&fake, $number);
                let opened = provider
                    .open_ephemeral("fake_thing", object("e".into()))
                    .await
                    .unwrap()
                    .value;
                assert_eq!(
                    (opened.result, opened.private),
                    (object("e".into()), Some(vec![1]))
                );
                assert_eq!(opened.renew_at, Some((1_700_000_000, 5)));
                let renewed = provider
                    .renew_ephemeral("fake_thing", Some(vec![2]))
                    .await
                    .unwrap()
                    .value;
                assert_eq!((renewed.private, renewed.renew_at), (Some(vec![2]), None));
                assert_eq!(
                    provider
                        .close_ephemeral("fake_thing", None)
                        .await
                        .unwrap()
                        .diagnostics
                        .len(),
                    1
                );
                let result = provider
                    .call_function("f", vec!["a".into(), "b".into()])
                    .await
                    .unwrap()
                    .unwrap();
                assert_eq!(result, Value::list(Type::String, vec!["a".into(), "b".into()]));
                let error = provider
                    .call_function("f", vec!["a".into()])
                    .await
                    .unwrap()
                    .unwrap_err();
                assert_eq!((error.text.as_str(), error.argument), ("too few", Some(0)));
            }

            #[tokio::test]
            async fn answers_that_make_no_sense() {
                let fake = fake()
                    .on(&path("ReadDataSource"), |_: pb::read_data_source::Request| {
                        let wrong = Type::object([("id", Type::Number), ("items", Type::Bool)]);
                        let value = Value::object([("id", Value::number(1)), ("items", true.into())]);
                        Ok(pb::read_data_source::Response {
                            state: Some(pb::DynamicValue {
                                msgpack: msgpack(&value, &wrong),
                                json: vec![],
                            }),
                            diagnostics: vec![warning()],
                            ..Default::default()
                        })
                    })
                    .on(
                        &path("UpgradeResourceState"),
                        |_: pb::upgrade_resource_state::Request| {
                            let upgraded_state = dynamic(&object(Value::unknown(Type::String)));
                            Ok(pb::upgrade_resource_state::Response {
                                upgraded_state,
                                ..Default::default()
                            })
                        },
                    )
                    .on(&path("ReadResource"), |_: pb::read_resource::Request| {
                        let deferred = Some(pb::Deferred { reason: 1 });
                        Ok(pb::read_resource::Response {
                            deferred,
                            ..Default::default()
                        })
                    })
                    .on(
                        &path("ImportResourceState"),
                        |_: pb::import_resource_state::Request| {
                            Err::<pb::import_resource_state::Response, _>(Status::cancelled("stopped"))
                        },
                    )
                    .on(
                        &path("PlanResourceChange"),
                        |_: pb::plan_resource_change::Request| {
                            Err::<pb::plan_resource_change::Response, _>(Status::internal("out of cheese"))
                        },
                    )
                    .serve();
                let provider = provider(&fake, $number);
                let (ty, config) = ("fake_thing", object("x".into()));
                let errors = provider.read_data(ty, config.clone(), None).await.unwrap_err();
                assert_eq!(errors.0[0].summary, "Odd", "what the plugin said is kept");
                let detail = &errors.0[1].detail;
                assert!(
                    detail.starts_with("The provider \"acme/fake\" answered ReadDataSource in a way"),
                    "{detail}"
                );
                assert!(detail.contains(".id"), "{detail}");
                let raw = || RawState::Json((*b"{}").into());
                let errors = provider.upgrade(ty, 0, raw()).await.unwrap_err();
                assert!(errors.0[0].detail.contains("unknown values"));
                let errors = provider
                    .read(
                        ty,
                        ReadRequest {
                            current: config.clone(),
                            private: vec![],
                            identity: None,
                            meta: None,
                        },
                    )
                    .await
                    .unwrap_err();
                assert!(errors.0[0].detail.contains("deferred its answer"));
                let errors = provider
                    .import(ty, &ImportTarget::Id("i".into()))
                    .await
                    .unwrap_err();
                assert_eq!(errors.0[0].summary, "Request canceled");
                let errors = provider
                    .plan(
                        ty,
                        PlanRequest {
                            prior: config.clone(),
                            proposed: config.clone(),
                            config: config.clone(),
                            prior_private: vec![],
                            prior_identity: None,
                            planned_private: vec![],
                            meta: None,
                        },
                    )
                    .await
                    .unwrap_err();
                assert_eq!(errors.0[0].summary, "Plugin error");
                assert!(errors.0[0].detail.contains("PlanResourceChange: out of cheese"));
                let errors = provider
                    .move_state(
                        ty,
                        MoveRequest {
                            source_provider: "",
                            source_type: "",
                            source_version: 0,
                            source_state: raw(),
                            source_private: vec![],
                            source_identity: None,
                        },
                    )
                    .await
                    .unwrap_err();
                assert_eq!(errors.0[0].summary, "Unsupported plugin method");
                let errors = provider.validate_resource("fake_none", config).await.unwrap_err();
                assert_eq!(errors.0[0].summary, "Unsupported resource type");
            }

            #[tokio::test]
            async fn schemas_that_make_no_sense() {
                let with = |change: fn(&mut pb::schema::Block)| {
                    let mut whole = whole_schema();
                    change(
                        whole
                            .resource_schemas
                            .get_mut("fake_thing")
                            .unwrap()
                            .block
                            .as_mut()
                            .unwrap(),
                    );
                    whole
                };
                let mut refused = whole_schema();
                refused.diagnostics = vec![pb::Diagnostic {
                    severity: 1,
                    summary: "No!".into(),
                    ..Default::default()
                }];
                for (response, expected) in [
                    (
                        with(|b| b.attributes[0].r#type = b"\"strin".to_vec()),
                        "schema of the resource type \"fake_thing\": attribute \"id\": type \"strin is not valid",
                    ),
                    (
                        with(|b| b.attributes[0].r#type = b"\"any\"".to_vec()),
                        "attribute \"id\": type \"any\" is not valid",
                    ),
                    (
                        with(|b| b.block_types[0].nesting = 77),
                        "block \"items\": nesting mode 77 is not known",
                    ),
                    (refused, "No!"),
                ] {
                    let fake = Fake::new()
                        .on(&path($schema), move |_: pb::get_provider_schema::Request| {
                            Ok(response.clone())
                        })
                        .serve();
                    let provider = provider(&fake, $number);
                    // The schema of a type is converted when it is used.
                    let config = Value::empty_object();
                    let errors = match provider.schema().await {
                        Ok(_) => provider
                            .validate_resource("fake_thing", config)
                            .await
                            .unwrap_err(),
                        Err(errors) => errors,
                    };
                    let text = format!("{} {}", errors.0[0].summary, errors.0[0].detail);
                    assert!(text.contains(expected), "{text}");
                }
            }
        }
    };
}

tests_of!(
    tfplugin5,
    5,
    "GetSchema",
    "PrepareProviderConfig",
    prepare_provider_config,
    "ValidateResourceTypeConfig",
    validate_resource_type_config,
    "ValidateDataSourceConfig",
    validate_data_source_config,
    "Configure",
    configure,
    "Stop",
    stop
);
tests_of!(
    tfplugin6,
    6,
    "GetProviderSchema",
    "ValidateProviderConfig",
    validate_provider_config,
    "ValidateResourceConfig",
    validate_resource_config,
    "ValidateDataResourceConfig",
    validate_data_resource_config,
    "ConfigureProvider",
    configure_provider,
    "StopProvider",
    stop_provider
);

#[tokio::test]
async fn attributes_with_nested_schemas() {
    use proto::tfplugin6 as pb;
    use proto::tfplugin6::schema::object::NestingMode;
    let inner = pb::schema::Attribute {
        name: "secret".into(),
        r#type: "\"string\"".into(),
        sensitive: true,
        ..Default::default()
    };
    let outer = |name: &str, nesting: NestingMode| pb::schema::Attribute {
        name: name.into(),
        nested_type: Some(pb::schema::Object {
            attributes: vec![inner.clone()],
            nesting: nesting as i32,
            ..Default::default()
        }),
        ..Default::default()
    };
    let block = pb::schema::Block {
        attributes: vec![
            outer("a_single", NestingMode::Single),
            outer("b_list", NestingMode::List),
            outer("c_set", NestingMode::Set),
            outer("d_map", NestingMode::Map),
        ],
        ..Default::default()
    };
    let response = pb::get_provider_schema::Response {
        resource_schemas: [(
            "x".to_owned(),
            pb::Schema {
                version: 0,
                block: Some(block),
            },
        )]
        .into(),
        ..Default::default()
    };
    let fake = Fake::new()
        .on(
            "/tfplugin6.Provider/GetProviderSchema",
            move |_: pb::get_provider_schema::Request| Ok(response.clone()),
        )
        .serve();
    let schema = provider(&fake, 6).schema().await.unwrap();
    let x = schema.resources.get("x").unwrap();
    assert!(x.block.contains_sensitive());
    let object = Type::object([("secret", Type::String)]);
    let expected = Type::object([
        ("a_single", object.clone()),
        ("b_list", Type::list(object.clone())),
        ("c_set", Type::set(object.clone())),
        ("d_map", Type::map(object)),
    ]);
    assert_eq!(x.implied_type(), expected);
}

#[tokio::test]
async fn the_schema_is_asked_for_as_seldom_as_possible() {
    use proto::tfplugin6 as pb;
    // Each start also requests the schemas of identities. Three processes receive a request to validate.
    for (optional, expected) in [(true, 2 + 3), (false, 6 + 3)] {
        let fake = Fake::new()
            .on(
                "/tfplugin6.Provider/GetProviderSchema",
                move |_: pb::get_provider_schema::Request| {
                    Ok(pb::get_provider_schema::Response {
                        server_capabilities: Some(pb::ServerCapabilities {
                            get_provider_schema_optional: optional,
                            ..Default::default()
                        }),
                        ..Default::default()
                    })
                },
            )
            .on(
                "/tfplugin6.Provider/ValidateProviderConfig",
                |_: pb::validate_provider_config::Request| Ok(pb::validate_provider_config::Response::default()),
            )
            .serve();
        let shared = SharedSchema::default();
        let mut schemas = Vec::new();
        for _ in 0..3 {
            let provider = sharing(&fake, 6, shared.clone());
            provider.schema().await.unwrap();
            schemas.push(provider.schema().await.unwrap());
            provider.validate_provider(Value::empty_object()).await.unwrap();
        }
        assert_eq!(fake.calls(), expected, "optional: {optional}");
        assert!(schemas.iter().all(|s| Arc::ptr_eq(s, &schemas[0])), "one copy is kept");
    }
}

#[tokio::test]
async fn large_schemas_fit() {
    use proto::tfplugin6 as pb;
    let fake = Fake::new()
        .on(
            "/tfplugin6.Provider/GetProviderSchema",
            |_: pb::get_provider_schema::Request| {
                let description = "x".repeat(20 << 20);
                let block = pb::schema::Block {
                    description,
                    ..Default::default()
                };
                let provider = Some(pb::Schema {
                    version: 0,
                    block: Some(block),
                });
                Ok(pb::get_provider_schema::Response {
                    provider,
                    ..Default::default()
                })
            },
        )
        .serve();
    let schema = provider(&fake, 6).schema().await.unwrap();
    assert_eq!(schema.provider.block.description.text.len(), 20 << 20);
}

#[tokio::test]
async fn a_plugin_that_is_gone() {
    let fake = Fake::new().serve();
    let provider = provider(&fake, 6);
    drop(fake);
    let errors = provider.schema().await.unwrap_err();
    assert_eq!(errors.0[0].summary, "Plugin did not respond");
    assert!(
        errors.0[0].detail.contains("Another program started it"),
        "{}",
        errors.0[0].detail
    );
}

/// The answer consists of bytes that are not a message.
#[tokio::test]
async fn garbage_in_place_of_a_message() {
    #[derive(Clone, PartialEq, Message)]
    struct Garbage {
        #[prost(bytes, tag = "1")]
        provider: Vec<u8>,
    }
    let fake = Fake::new()
        .on("/tfplugin6.Provider/GetProviderSchema", |_: Garbage| {
            Ok(Garbage {
                provider: vec![0xff; 9],
            })
        })
        .serve();
    let errors = provider(&fake, 6).schema().await.unwrap_err();
    assert!(
        errors.0[0].detail.contains("GetProviderSchema"),
        "{}",
        errors.0[0].detail
    );
}
