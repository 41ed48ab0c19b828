//! Resources whose schemas are built at run time.

use monoform_sdk::cty::{Type, Value};
use monoform_sdk::schema::{computed, intern, optional, required};
use monoform_sdk::validate::length_at_least;
use monoform_sdk::{Attr, Context, Diagnostic, Plain, Record, Resource, Result, Schema, async_trait};
use monoform_sdk_testing::Harness;

struct Described(&'static str);

#[async_trait]
impl Resource for Described {
    type Model = Record;
    type Client = ();

    fn schema(&self) -> Schema {
        Schema::of_members([
            required()
                .validate(length_at_least(2))
                .named(self.0, Type::String, "From a description."),
            optional().named("tags", Type::list(Type::String), ""),
            optional().sensitive().named("secret", Type::String, ""),
            computed().keep().named("id", Type::Number, ""),
        ])
    }

    async fn create(&self, plan: Record, cx: &mut Context<()>) -> Result<Record> {
        assert!(plan.get::<Attr<i64>>("id")?.is_unknown() && plan.get::<String>("nothing").is_err());
        if plan.get::<String>(self.0)? == "broken" {
            // Attributes that the record lacks become null in the state.
            cx.save(&Record::new([(self.0, "broken")]));
            return Err(Diagnostic::error("Broken", "").into());
        }
        Ok(plan.with("id", 7))
    }

    async fn import(&self, id: &str, _: &mut Context<()>) -> Result<Record> {
        Ok(Record::new([(self.0, id)]).with("tags", Value::tuple(vec!["a".into()])))
    }
}

fn harness() -> Harness<Plain> {
    Harness::new(Plain(|members| {
        for (name, attribute) in [("one", "name"), ("two", "title")] {
            members.resource(intern(&format!("x_{name}")), Described(attribute));
        }
    }))
}

#[tokio::test]
async fn objects_of_a_schema_made_at_run_time_live_as_others() {
    let harness = harness();
    let mut object = harness.object("x_two");
    let config: &[(&str, Value)] = &[("title", "abc".into()), ("secret", "s".into())];
    object.apply(config).await.unwrap();
    assert_eq!(object.get("id"), Some(&Value::number(7)));
    let plan = object.plan(&[("title", "other".into())]).await.unwrap();
    assert_eq!(plan.planned.get("id"), Some(&Value::number(7)), "it is kept");
    object.destroy().await.unwrap();
    assert_eq!(harness.validate("x_one", &[("name", "a".into())]).0.len(), 1);
    assert!(harness.create("x_one", &[("title", "abc".into())]).await.is_err());
    let record = Record::new([("secret", "s3cr3t")]);
    assert_eq!(format!("{record:?}"), "Record {\"secret\"}");
}

#[tokio::test]
async fn missing_members_become_null() {
    let harness = harness();
    let mut object = harness.object("x_one");
    assert!(object.apply(&[("name", "broken".into())]).await.is_err());
    assert!(object.is_tainted() && object.get("id").is_some_and(Value::is_null));
    let imported = harness.import("x_one", "there").await.unwrap();
    assert_eq!(imported.get("name"), Some(&"there".into()));
    assert_eq!(imported.get("tags").map(Value::ty), Some(&Type::list(Type::String)));
}
