//! The resource `time_sleep`.

use monoform_sdk::schema::{Attribute, computed, optional};
use monoform_sdk::validate::at_least_one_of;
use monoform_sdk::{Attr, Context, Resource, Result, Schema, Stop, async_trait, model};

use crate::duration::{Pause, RULE};
use crate::moment::Moment;
use crate::{Triggers, failed};

const CREATE: &str = "create_duration";
const DESTROY: &str = "destroy_duration";

/// Duration of a pause, of which there must be one. As in the official provider, each of the two attributes gets the error.
fn duration(both: &'static [&'static str]) -> Attribute {
    optional().validate(at_least_one_of(both))
}

model! {
    /// A pause.
    pub struct Model {
        /// Values of any meaning. When one changes, the object is replaced: the pauses of destruction and creation are
        /// made.
        pub triggers: Triggers = optional().requires_replace(),
        /// Pause after creation: a number followed by ms, s, m or h.
        pub create_duration: Attr<Pause> = duration(&[DESTROY, CREATE]),
        /// Pause before destruction: a number followed by ms, s, m or h.
        pub destroy_duration: Attr<Pause> = duration(&[CREATE, DESTROY]),
        /// End of the pause after creation, in the format of RFC 3339.
        pub id: Attr<String> = computed().keep(),
    }
}

/// Waits, unless the user interrupts.
async fn wait(duration: &Attr<Pause>, summary: &str, mut stop: Stop) -> Result<()> {
    let Some(pause) = duration.known() else {
        return Ok(());
    };
    tokio::select! {
        () = tokio::time::sleep(pause.time()) => Ok(()),
        () = stop.requested() => {
            Err(failed(summary, format!("The pause of {} was cut short on request.", pause.as_str())))
        }
    }
}

pub(crate) struct TimeSleep;

#[async_trait]
impl Resource for TimeSleep {
    type Model = Model;
    type Client = ();

    const STATE_ONLY: bool = true;

    fn schema(&self) -> Schema {
        Schema::of::<Model>()
            .describe("Waits when it is created or destroyed, so that objects that depend on it are created later.")
    }

    async fn create(&self, plan: Model, cx: &mut Context<()>) -> Result<Model> {
        wait(&plan.create_duration, "Create time sleep error", cx.stop()).await?;
        Ok(Model {
            // Set after the pause, because the ID is the time of its end.
            id: Moment::now().to_string().into(),
            ..plan
        })
    }

    async fn delete(&self, state: Model, cx: &mut Context<()>) -> Result<()> {
        wait(&state.destroy_duration, "Delete time sleep error", cx.stop()).await
    }

    async fn import(&self, id: &str, _cx: &mut Context<()>) -> Result<Model> {
        let field = |text: &str| match text {
            "" => Ok(Attr::Null),
            text => match Pause::parse(text) {
                Some(pause) => Ok(pause.into()),
                None => Err(failed("Import time sleep error", format!("{text:?} {RULE}."))),
            },
        };
        match id.split_once(',') {
            Some((create, destroy)) if !(create.is_empty() && destroy.is_empty()) => Ok(Model {
                triggers: Attr::Null,
                create_duration: field(create)?,
                destroy_duration: field(destroy)?,
                id: Moment::now().to_string().into(),
            }),
            _ => Err(failed(
                "Unexpected Format of ID",
                "The import id must be CREATE,DESTROY: two durations such as 30s, of which one may be empty.",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, Instant};

    use monoform_sdk::Stop;
    use monoform_sdk::cty::Value;
    use monoform_sdk_testing::Harness;

    #[tokio::test]
    async fn creation_and_destruction_take_their_time_and_updates_do_not() {
        let harness = Harness::new(crate::provider());
        let start = Instant::now();
        let state = harness
            .create("time_sleep", &[("create_duration", "30ms".into())])
            .await
            .unwrap();
        assert!(start.elapsed() >= Duration::from_millis(30));
        let change = [("create_duration", "9h".into()), ("destroy_duration", "20ms".into())];
        let plan = harness.plan("time_sleep", Some(&state), &change).await.unwrap();
        assert!(plan.replace.is_empty());
        let state = harness
            .apply("time_sleep", Some(&state), Some(&plan.planned), &change)
            .await
            .unwrap();
        let start = Instant::now();
        harness.apply("time_sleep", Some(&state), None, &[]).await.unwrap();
        assert!(start.elapsed() >= Duration::from_millis(20));
    }

    #[test]
    fn one_unit_and_some_duration_are_needed() {
        let harness = Harness::new(crate::provider());
        let errors = harness.validate("time_sleep", &[]);
        let found: Vec<&str> = errors.0.iter().map(|d| d.detail.as_str()).collect();
        assert_eq!(
            found,
            [
                "At least one attribute out of [destroy_duration,create_duration] must be specified",
                "At least one attribute out of [create_duration,destroy_duration] must be specified",
            ]
        );
        for bad in ["1d", "1h30m", "", "5"] {
            let errors = harness.validate("time_sleep", &[("create_duration", bad.into())]);
            assert_eq!(errors.0[0].summary, "Invalid Attribute Value Match", "{bad}");
        }
    }

    #[tokio::test]
    async fn import_takes_two_durations() {
        let harness = Harness::new(crate::provider());
        let state = harness.import("time_sleep", ",30s").await.unwrap();
        assert_eq!(state.get("destroy_duration"), Some(&Value::from("30s")));
        for bad in ["", ",", "1s", "1s,x", "1s,1s,1s"] {
            assert!(harness.import("time_sleep", bad).await.is_err(), "{bad}");
        }
    }

    #[tokio::test]
    async fn a_pause_is_cut_short_on_request() {
        let stop = Stop::after(Duration::from_millis(1));
        let errors = super::wait(&super::Pause::parse("1h").into(), "Create time sleep error", stop)
            .await
            .unwrap_err();
        assert_eq!(errors.0[0].summary, "Create time sleep error");
    }
}
