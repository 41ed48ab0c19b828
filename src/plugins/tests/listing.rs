//! Tests of list requests, whose answers are streams of events.

use cty::{Type, Value};
use proto::tfplugin6 as pb;
use provider::{ListRequest, Listed, Provider};
use syntax::Diagnostics;

use super::fake::Fake;
use super::protocols::provider;

fn schema() -> pb::Schema {
    let id = pb::schema::Attribute {
        name: "id".into(),
        r#type: "\"string\"".into(),
        optional: true,
        ..Default::default()
    };
    let block = pb::schema::Block {
        attributes: vec![id],
        ..Default::default()
    };
    pb::Schema {
        version: 0,
        block: Some(block),
    }
}

fn object(name: &str) -> pb::list_resource::Event {
    let identity = Value::object([("id", Value::string(name))]);
    let encoded = cty::msgpack::encode(&identity, &Type::object([("id", Type::String)])).unwrap();
    pb::list_resource::Event {
        identity: Some(pb::ResourceIdentityData {
            identity_data: Some(pb::DynamicValue {
                msgpack: encoded,
                ..Default::default()
            }),
        }),
        display_name: name.into(),
        ..Default::default()
    }
}

fn nameless(warning: Option<&str>) -> pb::list_resource::Event {
    let warning = warning.map(|summary| pb::Diagnostic {
        severity: pb::diagnostic::Severity::Warning as i32,
        summary: summary.into(),
        ..Default::default()
    });
    pb::list_resource::Event {
        diagnostic: warning.into_iter().collect(),
        ..Default::default()
    }
}

/// Lists the objects of a provider that sends these events; returns their names and the summaries of the warnings.
async fn listed(events: Vec<pb::list_resource::Event>) -> Result<(Vec<String>, Vec<String>), Diagnostics> {
    let identity = pb::resource_identity_schema::IdentityAttribute {
        name: "id".into(),
        r#type: "\"string\"".into(),
        required_for_import: true,
        ..Default::default()
    };
    let identity = pb::ResourceIdentitySchema {
        version: 0,
        identity_attributes: vec![identity],
    };
    let fake = Fake::new()
        .on(
            "/tfplugin6.Provider/GetProviderSchema",
            |_: pb::get_provider_schema::Request| {
                Ok(pb::get_provider_schema::Response {
                    provider: Some(schema()),
                    resource_schemas: [("fake_thing".to_owned(), schema())].into(),
                    list_resource_schemas: [("fake_thing".to_owned(), schema())].into(),
                    ..Default::default()
                })
            },
        )
        .on(
            "/tfplugin6.Provider/GetResourceIdentitySchemas",
            move |_: pb::get_resource_identity_schemas::Request| {
                Ok(pb::get_resource_identity_schemas::Response {
                    identity_schemas: [("fake_thing".to_owned(), identity.clone())].into(),
                    ..Default::default()
                })
            },
        )
        .on_stream(
            "/tfplugin6.Provider/ListResource",
            move |_: pb::list_resource::Request| Ok(events.clone()),
        )
        .serve();
    let request = ListRequest {
        config: Value::object([("id", Value::null(Type::String))]),
        include_object: false,
        limit: 10,
    };
    let answer = provider(&fake, 6).list("fake_thing", request).await?;
    let names = answer.value.into_iter().map(|Listed { display_name, .. }| display_name);
    let warnings = answer.diagnostics.into_iter().map(|d| d.diagnostic.summary.to_string());
    Ok((names.collect(), warnings.collect()))
}

#[tokio::test]
async fn warning_without_an_object_is_passed_on_between_objects() {
    let events = vec![object("a"), nameless(Some("Slow")), object("b")];
    let (names, warnings) = listed(events).await.unwrap();
    assert_eq!((names, warnings), (vec!["a".into(), "b".into()], vec!["Slow".into()]));
}

#[tokio::test]
async fn object_without_identity_is_an_error_also_after_a_warning() {
    let events = vec![nameless(Some("Slow")), object("a"), nameless(None), object("b")];
    let problems = listed(events).await.unwrap_err();
    let problem = problems.iter().next().unwrap();
    assert_eq!(
        problem.summary,
        "missing identity data in ListResource event for fake_thing"
    );
}
