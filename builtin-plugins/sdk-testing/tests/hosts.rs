//! Features of hosts apart from planning and applying: lists, identities, deferrals, `provider_meta`, generated configuration and stops.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail by panicking")]

use std::time::Duration;

use monoform_sdk::cty::{Type, Value};
use monoform_sdk::schema::{block, computed, optional, required};
use monoform_sdk::timeouts::{CREATE, Timeouts};
use monoform_sdk::{
    Action, Attr, ConfigureContext, Context, DataSource, Deferral, Diagnostic, EphemeralResource, Found,
    IdentityAttribute, Json, ListResource, Members, Opened, Plan, Progress, Provider, Resource, Result, Schema,
    Severity, Stop, async_trait, model,
};
use monoform_sdk_testing::Harness;

model! {
    struct Endpoint {
        url: Attr<String> = optional(),
    }
}

model! {
    struct Meta {
        owner: Attr<String> = required(),
    }
}

model! {
    struct Pet {
        name: Attr<String> = required(),
        owner: Attr<String> = computed().keep(),
        note: Attr<String> = optional(),
        timeouts: Attr<Timeouts<CREATE>> = block(),
    }
}

model! {
    struct Search {
        prefix: Attr<String> = optional(),
    }
}

struct Zoo;

#[async_trait]
impl Provider for Zoo {
    type Config = Endpoint;
    type Client = String;

    fn meta_schema(&self) -> Option<Schema> {
        Some(Schema::of::<Meta>())
    }

    fn members(&self, members: &mut Members<String>) {
        members.resource("zoo_pet", Pets);
        members.list("zoo_pet", Pets);
        members.data_source("zoo_pet", Pets);
        members.ephemeral("zoo_pet", Pets);
        members.action("zoo_call", Pets);
    }

    async fn configure_with(&self, config: Endpoint, cx: &mut ConfigureContext) -> Result<String> {
        if config.url.is_unknown() {
            return Err(cx.defer(Deferral::ProviderConfigUnknown));
        }
        if config.url.is_null() {
            cx.warn("No Endpoint", "The pets of this machine are meant.");
        }
        assert!(!cx.terraform_version().is_empty() && !cx.stop().is_requested());
        Ok(config.url.text().to_owned())
    }
}

struct Pets;

#[async_trait]
impl Resource for Pets {
    type Model = Pet;
    type Client = String;
    const GENERATES_CONFIG: bool = true;
    const IDENTITY_VERSION: i64 = 1;

    fn identity(&self) -> Vec<IdentityAttribute> {
        vec![IdentityAttribute {
            name: "name",
            required_for_import: true,
            description: "",
        }]
    }

    fn upgrade_identity(&self, version: i64, identity: Json) -> Result<Json> {
        match version {
            0 => Ok(Json::object([("name", identity["title"].clone())])),
            _ => panic!("nobody knows version {version}"),
        }
    }

    async fn plan(&self, plan: &mut Plan<'_, Pet>, cx: &mut Context<String>) -> Result<()> {
        if plan.config()?.name.is_unknown() {
            cx.defer(Deferral::ResourceConfigUnknown)?;
        }
        Ok(())
    }

    async fn create(&self, plan: Pet, cx: &mut Context<String>) -> Result<Pet> {
        cx.client()?;
        let meta: Option<Meta> = cx.provider_meta()?;
        if plan.name.text() == "slow" {
            // Waits until the stop signal of this call is set, or the timeout is reached.
            let time = plan.timeouts.create(Duration::from_secs(3600));
            cx.within(time, std::future::pending::<Result<()>>()).await?;
        }
        Ok(Pet {
            owner: meta.map(|meta| meta.owner).unwrap_or_default(),
            ..plan
        })
    }

    async fn import(&self, id: &str, cx: &mut Context<String>) -> Result<Pet> {
        cx.client()?;
        Ok(Pet {
            name: id.into(),
            ..Pet::default()
        })
    }

    async fn generate_config(&self, state: Pet, _: &mut Context<String>) -> Result<Pet> {
        Ok(Pet {
            note: Attr::Null,
            ..state
        })
    }
}

#[async_trait]
impl ListResource for Pets {
    type Config = Search;
    type Model = Pet;
    type Client = String;

    async fn list(&self, config: Search, found: &mut Found<Pet>, cx: &mut Context<String>) -> Result<()> {
        cx.client()?;
        for name in ["anna", "bert", "astrid"] {
            let pet = Pet {
                name: name.into(),
                ..Pet::default()
            };
            if name.starts_with(config.prefix.text()) && !found.push(name.to_uppercase(), pet).await {
                break;
            }
        }
        match config.prefix.text() {
            "x" => Err(Diagnostic::error("No Such Pets", "").into()),
            _ => Ok(()),
        }
    }
}

#[async_trait]
impl DataSource for Pets {
    type Model = Pet;
    type Client = String;

    async fn read(&self, config: Pet, cx: &mut Context<String>) -> Result<Pet> {
        cx.client()?;
        Ok(config)
    }
}

#[async_trait]
impl EphemeralResource for Pets {
    type Model = Pet;
    type Client = String;

    async fn open(&self, config: Pet, cx: &mut Context<String>) -> Result<Opened<Pet>> {
        cx.client()?;
        Ok(config.into())
    }
}

#[async_trait]
impl Action for Pets {
    type Config = Search;
    type Client = String;

    async fn invoke(&self, _: Search, progress: Progress, cx: &mut Context<String>) -> Result<()> {
        cx.client()?;
        progress.report("here, pet").await;
        cx.within(Duration::from_secs(3600), std::future::pending()).await
    }
}

fn unknown() -> Value {
    Value::unknown(Type::String)
}

async fn configured() -> Harness<Zoo> {
    let harness = Harness::new(Zoo);
    harness.configure(&[("url", "here".into())]).await.unwrap();
    harness
}

#[tokio::test]
async fn lists_have_identities_and_objects_up_to_the_limit() {
    let harness = configured().await;
    let all = harness
        .list("zoo_pet", &[("prefix", "a".into())], 10, true)
        .await
        .unwrap();
    let names: Vec<&str> = all.iter().map(|pet| &*pet.display_name).collect();
    assert_eq!(names, ["ANNA", "ASTRID"]);
    assert_eq!(all[1].identity, Some(Value::object([("name", "astrid".into())])));
    assert_eq!(all[0].object.as_ref().and_then(|o| o.get("name")), Some(&"anna".into()));
    let one = harness.list("zoo_pet", &[], 1, false).await.unwrap();
    assert_eq!((one.len(), &one[0].object), (1, &None));
    let errors = harness
        .list("zoo_pet", &[("prefix", "x".into())], 1, false)
        .await
        .unwrap_err();
    assert_eq!(errors.0[0].summary, "No Such Pets");
    assert!(
        harness
            .list("zoo_pet", &[("suffix", "x".into())], 1, false)
            .await
            .is_err()
    );
}

#[tokio::test]
async fn identities_are_upgraded_and_configuration_is_generated() {
    let harness = configured().await;
    let anna = Value::object([("name", "anna".into())]);
    assert_eq!(
        harness.upgrade_identity("zoo_pet", 0, r#"{"title":"anna"}"#),
        Ok(anna.clone())
    );
    assert_eq!(harness.upgrade_identity("zoo_pet", 1, r#"{"name":"anna"}"#), Ok(anna));
    let errors = harness.upgrade_identity("zoo_pet", 7, "{}").unwrap_err();
    assert_eq!(errors.0[0].summary, "Plugin panicked");

    let state = harness
        .create("zoo_pet", &[("name", "bo".into()), ("note", "n".into())])
        .await
        .unwrap();
    let config = harness.generate_config("zoo_pet", &state).await.unwrap();
    assert_eq!(config.get("name"), Some(&"bo".into()));
    assert!(config.get("note").is_some_and(Value::is_null) && config.get("owner").is_some_and(Value::is_null));
}

#[tokio::test]
async fn modules_have_metadata() {
    let harness = configured()
        .await
        .with_provider_meta(&[("owner", "us".into())])
        .unwrap();
    let pet = harness.create("zoo_pet", &[("name", "bo".into())]).await.unwrap();
    assert_eq!(pet.get("owner"), Some(&"us".into()));
    assert!(
        configured()
            .await
            .with_provider_meta(&[("other", "us".into())])
            .is_err()
    );
}

#[tokio::test]
async fn a_resource_defers_its_plan() {
    let harness = configured().await.allow_deferral();
    let mut pet = harness.object("zoo_pet");
    let plan = pet.apply(&[("name", unknown())]).await.unwrap();
    assert_eq!(
        (plan.deferred, harness.deferred()),
        (Some(Deferral::ResourceConfigUnknown), plan.deferred)
    );
    assert_eq!((pet.state(), harness.deferred()), (None, None));
    let errors = configured()
        .await
        .plan("zoo_pet", None, &[("name", unknown())])
        .await
        .unwrap_err();
    assert_eq!(errors.0[0].summary, "Deferral not allowed");
}

#[tokio::test]
async fn a_provider_whose_configuration_is_unknown_defers_everything() {
    let url: &[(&str, Value)] = &[("url", unknown())];
    let errors = Harness::new(Zoo).configure(url).await.unwrap_err();
    assert_eq!(errors.0[0].summary, "Deferral not allowed");

    let harness = Harness::new(Zoo).allow_deferral();
    harness.configure(url).await.unwrap();
    let why = Some(Deferral::ProviderConfigUnknown);
    let config: &[(&str, Value)] = &[("name", "bo".into())];
    let plan = harness.plan("zoo_pet", None, config).await.unwrap();
    assert_eq!(plan.deferred, why);
    assert!(plan.planned.get("owner").is_some_and(|owner| !owner.is_known()));
    let state = Value::object([
        ("name", "bo".into()),
        ("note", Value::null(Type::String)),
        ("owner", "us".into()),
        ("timeouts", Value::null(Type::object([("create", Type::String)]))),
    ]);
    assert_eq!(harness.read("zoo_pet", &state).await, Ok(state.clone()));
    assert_eq!(harness.deferred(), why);
    let mut object = harness.object("zoo_pet");
    object.set_state(Some(state));
    object.plan_destroy().await.unwrap();
    assert_eq!(harness.deferred(), why);
    let is_open = |answer: Result<Value>| !answer.unwrap().is_known() && harness.deferred() == why;
    assert!(is_open(harness.data("zoo_pet", config).await));
    assert!(is_open(harness.open("zoo_pet", config).await));
    assert!(is_open(harness.import("zoo_pet", "bo").await));
    assert_eq!(harness.invoke("zoo_call", &[]).await, Ok(vec![]));
    assert_eq!(harness.deferred(), why);

    // Once the configuration is known, no answer is deferred.
    harness.configure(&[("url", "here".into())]).await.unwrap();
    assert_eq!(harness.plan("zoo_pet", None, config).await.unwrap().deferred, None);
}

#[tokio::test]
async fn configuring_can_warn() {
    let harness = Harness::new(Zoo);
    harness.configure(&[]).await.unwrap();
    let warnings = harness.warnings();
    assert_eq!(
        (&*warnings[0].summary, warnings[0].severity),
        ("No Endpoint", Severity::Warning)
    );
}

#[tokio::test]
async fn one_call_is_stopped_and_the_next_is_not() {
    let harness = configured().await;
    let config: &[(&str, Value)] = &[("name", "slow".into())];
    let mut pet = harness.object("zoo_pet");
    let plan = pet.plan(config).await.unwrap();
    harness.stop_next(Stop::after(Duration::from_millis(1)));
    let errors = harness
        .apply("zoo_pet", None, Some(&plan.planned), config)
        .await
        .unwrap_err();
    assert_eq!(errors.0[0].summary, "Operation Canceled");
    pet.apply(&[("name", "bo".into())]).await.unwrap();

    let timeouts = Value::object([("create", "1ms".into())]);
    let errors = harness
        .create("zoo_pet", &[("name", "slow".into()), ("timeouts", timeouts)])
        .await
        .unwrap_err();
    assert_eq!(
        errors.0[0].detail,
        "The operation did not succeed within 1ms: it was cut off."
    );

    harness.stop_next(Stop::after(Duration::from_millis(1)));
    let errors = harness.invoke("zoo_call", &[]).await.unwrap_err();
    assert_eq!(errors.0[0].summary, "Operation Canceled");
}
