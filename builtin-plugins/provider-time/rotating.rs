//! The resource `time_rotating`.

use monoform_sdk::schema::{Attribute, computed, optional};
use monoform_sdk::{Attr, Context, Plan, Resource, Result, Schema, Validator, async_trait, model};

use crate::moment::{Moment, Shift};
use crate::timestamp::{Timestamp, given};
use crate::{Parts, Triggers, amount, failed, number_field};

fn rotation() -> Attribute {
    optional().validate(Validator::AtLeast(1))
}

model! {
    /// A moment, and another one after which the object is gone.
    pub struct Model {
        /// Values of any meaning. When one changes, the object is replaced.
        pub triggers: Triggers = optional().requires_replace(),
        /// The base timestamp in the format of RFC 3339; the time of creation if it is not set.
        pub rfc3339: Attr<Timestamp> = optional().computed().keep().requires_replace(),
        /// After how many years to rotate.
        pub rotation_years: Attr<i64> = rotation(),
        /// Number of months after which to rotate.
        pub rotation_months: Attr<i64> = rotation(),
        /// Number of days after which to rotate.
        pub rotation_days: Attr<i64> = rotation(),
        /// Number of hours after which to rotate.
        pub rotation_hours: Attr<i64> = rotation(),
        /// Number of minutes after which to rotate.
        pub rotation_minutes: Attr<i64> = rotation(),
        /// Time of the rotation, in the format of RFC 3339. By default, it is the base timestamp plus the rotation period.
        pub rotation_rfc3339: Attr<Timestamp> = optional().computed(),
        /// The base, as RFC 3339 writes it.
        pub id: Attr<Timestamp> = computed(),
        /// The parts of the resulting timestamp.
        pub parts: Parts = flatten,
    }
}

const ROTATIONS: &[&str] = &[
    "rotation_days",
    "rotation_hours",
    "rotation_minutes",
    "rotation_months",
    "rotation_rfc3339",
    "rotation_years",
];

impl Model {
    /// Returns the rotation periods. If several are set, the last one in this order applies.
    fn rotations(&self) -> [&Attr<i64>; 5] {
        [
            &self.rotation_days,
            &self.rotation_hours,
            &self.rotation_minutes,
            &self.rotation_months,
            &self.rotation_years,
        ]
    }

    /// Returns the object with this base, which rotates at `configured`, or else after one of the periods.
    fn at_base(self, base: Moment, configured: &Attr<Timestamp>) -> Result<Model> {
        let [days, hours, minutes, months, years] = self.rotations().map(amount);
        let none = Shift::default();
        // As in the official provider, periods do not add up: only the first one that is set in this order applies.
        let shift = [
            years.map(|years| Shift { years, ..none }),
            months.map(|months| Shift { months, ..none }),
            minutes.map(|minutes| Shift { minutes, ..none }),
            hours.map(|hours| Shift { hours, ..none }),
            days.map(|days| Shift { days, ..none }),
        ]
        .into_iter()
        .flatten()
        .next()
        .unwrap_or(none);
        let moment = match given(configured) {
            Some(moment) => moment,
            None => base.shifted(shift).ok_or_else(|| {
                failed(
                    "Time rotating error",
                    format!("So long after {base} there is no timestamp in the years up to 9999."),
                )
            })?,
        };
        Ok(Model {
            rfc3339: self.rfc3339.clone().or(base.into()).into(),
            rotation_rfc3339: configured.clone().or(moment.into()).into(),
            id: Timestamp::from(base).into(),
            parts: moment.into(),
            ..self
        })
    }

    /// Returns true if the rotation time has passed.
    fn is_over(&self) -> bool {
        given(&self.rotation_rfc3339).is_some_and(|moment| moment.unix() < Moment::now().unix())
    }
}

pub(crate) struct TimeRotating;

#[async_trait]
impl Resource for TimeRotating {
    type Model = Model;
    type Client = ();

    fn schema(&self) -> Schema {
        Schema::of::<Model>()
            .describe(
                "A timestamp that stays the same until the rotation time has passed: then the object leaves the state, and is \
                 created again. If several periods are set, the last one is used, in the order days, hours, minutes, months, \
                 years, rotation_rfc3339.",
            )
            .at_least_one_of(ROTATIONS)
    }

    async fn plan(&self, plan: &mut Plan<'_, Model>, _cx: &mut Context<()>) -> Result<()> {
        let Some(prior) = plan.prior()? else { return Ok(()) };
        let mut planned = plan.planned()?;
        // If the computed values are known, nothing changes.
        if !planned.parts.year.is_unknown() {
            return Ok(());
        }
        let configured = plan.config()?.rotation_rfc3339;
        if !configured.is_unknown()
            && !planned.rotations().iter().any(|r| r.is_unknown())
            && let Some(base) = given(&planned.rfc3339)
        {
            planned = planned.at_base(base, &configured)?;
            plan.set(&planned);
        }
        // Without a refresh the object still exists after its rotation, and an update would revive it.
        if planned.rotation_rfc3339 != prior.rotation_rfc3339 && prior.is_over() {
            plan.replace("rotation_rfc3339");
        }
        Ok(())
    }

    async fn create(&self, plan: Model, _cx: &mut Context<()>) -> Result<Model> {
        let base = given(&plan.rfc3339).unwrap_or_else(Moment::now);
        // Without a prior object, a value that the plan knows comes from the configuration.
        let configured = plan.rotation_rfc3339.clone();
        plan.at_base(base, &configured)
    }

    async fn read(&self, state: Model, _cx: &mut Context<()>) -> Result<Option<Model>> {
        Ok(if state.is_over() { None } else { Some(state) })
    }

    async fn update(&self, _prior: Model, plan: Model, cx: &mut Context<()>) -> Result<Model> {
        let base = given(&plan.rfc3339).unwrap_or_else(Moment::now);
        // The planned value may be one that was computed from another rotation.
        let configured = cx.config::<Model>()?.rotation_rfc3339;
        plan.at_base(base, &configured)
    }

    async fn import(&self, id: &str, _cx: &mut Context<()>) -> Result<Model> {
        const SUMMARY: &str = "Unexpected Format of ID";
        let fields: Vec<&str> = id.split(',').collect();
        match fields.as_slice() {
            [base, rotation] => {
                let rotation = Timestamp::imported(rotation, SUMMARY)?;
                Model::default().at_base(Timestamp::imported(base, SUMMARY)?.moment(), &rotation.into())
            }
            [base, years, months, days, hours, minutes] => {
                let model = Model {
                    rotation_years: number_field(years, SUMMARY)?,
                    rotation_months: number_field(months, SUMMARY)?,
                    rotation_days: number_field(days, SUMMARY)?,
                    rotation_hours: number_field(hours, SUMMARY)?,
                    rotation_minutes: number_field(minutes, SUMMARY)?,
                    ..Model::default()
                };
                if model.rotations().iter().all(|r| r.is_null()) {
                    return Err(failed(
                        SUMMARY,
                        "The import id BASE,YEARS,MONTHS,DAYS,HOURS,MINUTES must say after which time to rotate.",
                    ));
                }
                model.at_base(Timestamp::imported(base, SUMMARY)?.moment(), &Attr::Null)
            }
            _ => Err(failed(
                SUMMARY,
                "The import id must be BASE,YEARS,MONTHS,DAYS,HOURS,MINUTES, with fields left empty that are not used, or \
                 BASE,ROTATION, with two moments as RFC 3339 writes them.",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use monoform_sdk::cty::Value;
    use monoform_sdk_testing::Harness;

    #[tokio::test]
    async fn the_last_time_counts() {
        let harness = Harness::new(crate::provider());
        let base = ("rfc3339", Value::from("2020-02-29T12:00:00Z"));
        for (config, expected) in [
            (
                vec![("rotation_days", Value::from(1)), ("rotation_hours", 2.into())],
                "2020-02-29T14:00:00Z",
            ),
            (
                vec![("rotation_months", 1.into()), ("rotation_years", 1.into())],
                "2021-03-01T12:00:00Z",
            ),
            (
                vec![("rotation_rfc3339", "2030-01-01T00:00:00+01:00".into())],
                "2030-01-01T00:00:00+01:00",
            ),
            (
                vec![
                    ("rotation_rfc3339", "2030-01-01T00:00:00.0Z".into()),
                    ("rotation_years", 1.into()),
                ],
                "2030-01-01T00:00:00.0Z",
            ),
        ] {
            let config = [vec![base.clone()], config].concat();
            let state = harness.create("time_rotating", &config).await.unwrap();
            assert_eq!(state.get("rotation_rfc3339"), Some(&expected.into()));
            assert_eq!(state.get("id"), Some(&"2020-02-29T12:00:00Z".into()));
        }
    }

    #[tokio::test]
    async fn the_object_is_gone_when_its_time_has_passed() {
        let harness = Harness::new(crate::provider());
        let config = [("rfc3339", "2020-01-01T00:00:00Z".into()), ("rotation_days", 7.into())];
        let state = harness.create("time_rotating", &config).await.unwrap();
        assert!(harness.read("time_rotating", &state).await.unwrap().is_null());
        // If the plan does not refresh, a change of the rotation time replaces the expired object.
        let change = [("rfc3339", "2020-01-01T00:00:00Z".into()), ("rotation_days", 8.into())];
        let plan = harness.plan("time_rotating", Some(&state), &change).await.unwrap();
        assert_eq!(plan.replace, ["rotation_rfc3339"]);

        let state = harness
            .create("time_rotating", &[("rotation_minutes", 1.into())])
            .await
            .unwrap();
        assert_eq!(harness.read("time_rotating", &state).await.unwrap(), state);
    }

    #[tokio::test]
    async fn another_rotation_is_an_update_with_known_values() {
        let harness = Harness::new(crate::provider());
        let state = harness
            .create("time_rotating", &[("rotation_days", 7.into())])
            .await
            .unwrap();
        let plan = harness
            .plan("time_rotating", Some(&state), &[("rotation_days", 8.into())])
            .await
            .unwrap();
        assert!(plan.planned.is_wholly_known() && plan.replace.is_empty());
        assert_eq!(plan.planned.get("rfc3339"), state.get("rfc3339"));
        assert_ne!(plan.planned.get("unix"), state.get("unix"));
        let applied = harness
            .apply(
                "time_rotating",
                Some(&state),
                Some(&plan.planned),
                &[("rotation_days", 8.into())],
            )
            .await
            .unwrap();
        assert_eq!(applied, plan.planned);
    }

    #[tokio::test]
    async fn imports_plan_no_change() {
        let harness = Harness::new(crate::provider());
        for (id, config) in [
            ("2020-02-12T06:36:13Z,100,,,,", ("rotation_years", Value::from(100))),
            (
                "2020-02-12T06:36:13Z,2120-02-12T06:36:13Z",
                ("rotation_rfc3339", "2120-02-12T06:36:13Z".into()),
            ),
        ] {
            let state = harness.import("time_rotating", id).await.unwrap();
            assert_eq!(state.get("rotation_rfc3339"), Some(&"2120-02-12T06:36:13Z".into()));
            let again = harness.plan("time_rotating", Some(&state), &[config]).await.unwrap();
            assert_eq!((again.planned, again.replace), (state, vec![]));
        }
        for bad in ["", "2020-02-12T06:36:13Z,7", "2020-02-12T06:36:13Z,,,,,", "x,1,,,,"] {
            let errors = harness.import("time_rotating", bad).await.unwrap_err();
            assert_eq!(errors.0[0].summary, "Unexpected Format of ID", "{bad}");
        }
    }

    #[test]
    fn a_rotation_is_needed_and_at_least_one() {
        let harness = Harness::new(crate::provider());
        let errors = harness.validate("time_rotating", &[]);
        assert_eq!(errors.0[0].summary, "Missing Attribute Configuration");
        let errors = harness.validate("time_rotating", &[("rotation_days", 0.into())]);
        assert_eq!(
            errors.0[0].detail,
            "Attribute rotation_days value must be at least 1, got: 0"
        );
    }
}
