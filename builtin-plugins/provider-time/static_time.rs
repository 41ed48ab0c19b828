//! The resource `time_static`.

use monoform_sdk::schema::{computed, optional};
use monoform_sdk::{Attr, Context, Plan, Resource, Result, Schema, async_trait, model};

use crate::moment::Moment;
use crate::timestamp::Timestamp;
use crate::{Parts, Triggers};

model! {
    /// A moment that stays.
    pub struct Model {
        /// Values of any meaning. When one changes, the object is replaced, with a new timestamp.
        pub triggers: Triggers = optional().requires_replace(),
        /// The timestamp in the format of RFC 3339; the time of creation if it is not set.
        pub rfc3339: Attr<Timestamp> = optional().computed().requires_replace(),
        /// The timestamp in the format of RFC 3339.
        pub id: Attr<Timestamp> = computed().keep(),
        /// The parts of the resulting timestamp.
        pub parts: Parts = flatten,
    }
}

impl Model {
    fn at(self, timestamp: Timestamp) -> Model {
        Model {
            parts: timestamp.moment().into(),
            id: timestamp.clone().into(),
            rfc3339: timestamp.into(),
            ..self
        }
    }
}

pub(crate) struct TimeStatic;

#[async_trait]
impl Resource for TimeStatic {
    type Model = Model;
    type Client = ();

    const STATE_ONLY: bool = true;

    fn schema(&self) -> Schema {
        Schema::of::<Model>()
            .describe("A timestamp that stays the same until the object is replaced: by default, the time of creation.")
    }

    async fn plan(&self, plan: &mut Plan<'_, Model>, _cx: &mut Context<()>) -> Result<()> {
        let planned = plan.planned()?;
        // If the timestamp is configured, all attributes are known in the plan.
        if plan.is_create()
            && let Some(timestamp) = planned.rfc3339.known().cloned()
        {
            plan.set(&planned.at(timestamp));
        }
        Ok(())
    }

    async fn create(&self, plan: Model, _cx: &mut Context<()>) -> Result<Model> {
        let timestamp = plan.rfc3339.known().cloned();
        Ok(plan.at(timestamp.unwrap_or_else(|| Moment::now().into())))
    }

    async fn import(&self, id: &str, _cx: &mut Context<()>) -> Result<Model> {
        // As in the official provider, an import writes the timestamp anew.
        let imported = Timestamp::imported(id, "Import time static error")?;
        Ok(Model::default().at(imported.moment().into()))
    }
}

#[cfg(test)]
mod tests {
    use monoform_sdk::cty::{Type, Value};
    use monoform_sdk_testing::Harness;

    #[tokio::test]
    async fn a_given_moment_is_known_at_plan_and_keeps_its_spelling() {
        let harness = Harness::new(crate::provider());
        let config = [("rfc3339", "2020-02-12T06:36:13.5+00:00".into())];
        let plan = harness.plan("time_static", None, &config).await.unwrap().planned;
        assert!(plan.is_wholly_known());
        let state = harness.create("time_static", &config).await.unwrap();
        assert_eq!(state, plan);
        for (name, expected) in [
            ("rfc3339", Value::from("2020-02-12T06:36:13.5+00:00")),
            ("id", "2020-02-12T06:36:13.5+00:00".into()),
            ("year", 2020.into()),
            ("minute", 36.into()),
            ("unix", 1_581_489_373.into()),
        ] {
            assert_eq!(state.get(name), Some(&expected), "{name}");
        }
        let again = harness.plan("time_static", Some(&state), &config).await.unwrap();
        assert_eq!((again.planned, again.replace), (state, vec![]));
    }

    #[tokio::test]
    async fn without_one_it_is_the_moment_of_creation() {
        let harness = Harness::new(crate::provider());
        let plan = harness.plan("time_static", None, &[]).await.unwrap().planned;
        assert!(!plan.get("rfc3339").unwrap().is_known() && !plan.get("year").unwrap().is_known());
        let state = harness.create("time_static", &[]).await.unwrap();
        assert_eq!(state.get("rfc3339"), state.get("id"));
        let change = [(
            "triggers",
            Value::map(Type::String, [("a".into(), "b".into())].into_iter().collect()),
        )];
        let plan = harness.plan("time_static", Some(&state), &change).await.unwrap();
        assert!(plan.replace.contains(&"triggers".to_owned()), "{:?}", plan.replace);
    }

    #[tokio::test]
    async fn imports_plan_no_change() {
        let harness = Harness::new(crate::provider());
        let state = harness
            .import("time_static", "2020-02-12T06:36:13+01:00")
            .await
            .unwrap();
        let again = harness.plan("time_static", Some(&state), &[]).await.unwrap();
        assert_eq!((again.planned, again.replace), (state, vec![]));
        assert!(harness.import("time_static", "yesterday").await.is_err());
    }

    #[tokio::test]
    async fn another_spelling_replaces_the_object_as_in_the_official_provider() {
        let harness = Harness::new(crate::provider());
        let config = [("rfc3339", Value::from("2020-02-12T06:36:13+00:00"))];
        let state = harness.create("time_static", &config).await.unwrap();
        let change = [("rfc3339", Value::from("2020-02-12T06:36:13Z"))];
        let plan = harness.plan("time_static", Some(&state), &change).await.unwrap();
        assert_eq!(plan.replace, ["rfc3339"]);
    }

    #[test]
    fn other_text_is_refused() {
        let harness = Harness::new(crate::provider());
        let errors = harness.validate("time_static", &[("rfc3339", "2020-02-12".into())]);
        assert_eq!(errors.0[0].summary, "Invalid RFC3339 String Value");
    }
}
