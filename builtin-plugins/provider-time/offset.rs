//! The resource `time_offset`.

use monoform_sdk::schema::{computed, optional};
use monoform_sdk::{Attr, Context, Plan, Resource, Result, Schema, async_trait, model};

use crate::moment::{Moment, Shift};
use crate::timestamp::{Timestamp, given};
use crate::{Parts, Triggers, amount, failed, number_field};

model! {
    /// A moment at a distance from another one.
    pub struct Model {
        /// Values of any meaning. When one changes, the object is replaced, with a new base.
        pub triggers: Triggers = optional().requires_replace(),
        /// The base timestamp in the format of RFC 3339; the time of creation if it is not set.
        pub base_rfc3339: Attr<Timestamp> = optional().computed().keep(),
        /// Number of years to add; negative to subtract.
        pub offset_years: Attr<i64> = optional(),
        /// Number of months to add; negative to subtract.
        pub offset_months: Attr<i64> = optional(),
        /// Number of days to add; negative to subtract.
        pub offset_days: Attr<i64> = optional(),
        /// Number of hours to add; negative to subtract.
        pub offset_hours: Attr<i64> = optional(),
        /// Number of minutes to add; negative to subtract.
        pub offset_minutes: Attr<i64> = optional(),
        /// Number of seconds to add; negative to subtract.
        pub offset_seconds: Attr<i64> = optional(),
        /// The resulting timestamp in the format of RFC 3339.
        pub rfc3339: Attr<Timestamp> = computed(),
        /// The base, as RFC 3339 writes it.
        pub id: Attr<Timestamp> = computed(),
        /// The parts of the resulting timestamp.
        pub parts: Parts = flatten,
    }
}

const OFFSETS: &[&str] = &[
    "offset_days",
    "offset_hours",
    "offset_minutes",
    "offset_months",
    "offset_seconds",
    "offset_years",
];

impl Model {
    fn offsets(&self) -> [&Attr<i64>; 6] {
        [
            &self.offset_years,
            &self.offset_months,
            &self.offset_days,
            &self.offset_hours,
            &self.offset_minutes,
            &self.offset_seconds,
        ]
    }

    fn at_base(self, base: Moment) -> Result<Model> {
        let [years, months, days, hours, minutes, seconds] = self.offsets().map(|o| amount(o).unwrap_or(0));
        let shift = Shift {
            years,
            months,
            days,
            hours,
            minutes,
            seconds,
        };
        let moment = base.shifted(shift).ok_or_else(|| {
            failed(
                "Time offset error",
                format!("At this offset from {base} there is no timestamp in the years from -9999 to 9999."),
            )
        })?;
        Ok(Model {
            base_rfc3339: self.base_rfc3339.clone().or(base.into()).into(),
            rfc3339: Timestamp::from(moment).into(),
            id: Timestamp::from(base).into(),
            parts: moment.into(),
            ..self
        })
    }
}

pub(crate) struct TimeOffset;

#[async_trait]
impl Resource for TimeOffset {
    type Model = Model;
    type Client = ();

    const STATE_ONLY: bool = true;

    fn schema(&self) -> Schema {
        Schema::of::<Model>()
            .describe(
                "A timestamp at a fixed offset from another one, by default from the time of creation. Several offsets are added.",
            )
            .at_least_one_of(OFFSETS)
    }

    async fn plan(&self, plan: &mut Plan<'_, Model>, _cx: &mut Context<()>) -> Result<()> {
        let planned = plan.planned()?;
        // In an update, the result is planned if all values that determine it are known.
        if !plan.is_create()
            && planned.rfc3339.is_unknown()
            && !planned.offsets().iter().any(|o| o.is_unknown())
            && let Some(base) = given(&planned.base_rfc3339)
        {
            plan.set(&planned.at_base(base)?);
        }
        Ok(())
    }

    async fn create(&self, plan: Model, _cx: &mut Context<()>) -> Result<Model> {
        let base = given(&plan.base_rfc3339).unwrap_or_else(Moment::now);
        plan.at_base(base)
    }

    async fn update(&self, _prior: Model, plan: Model, cx: &mut Context<()>) -> Result<Model> {
        self.create(plan, cx).await
    }

    async fn import(&self, id: &str, _cx: &mut Context<()>) -> Result<Model> {
        const SUMMARY: &str = "Unexpected Format of ID";
        let fields: Vec<&str> = id.split(',').collect();
        let [base, years, months, days, hours, minutes, seconds] = fields.as_slice() else {
            return Err(failed(
                SUMMARY,
                "The import id must have seven fields, BASE,YEARS,MONTHS,DAYS,HOURS,MINUTES,SECONDS, of which those not \
                 used are empty.",
            ));
        };
        let model = Model {
            offset_years: number_field(years, SUMMARY)?,
            offset_months: number_field(months, SUMMARY)?,
            offset_days: number_field(days, SUMMARY)?,
            offset_hours: number_field(hours, SUMMARY)?,
            offset_minutes: number_field(minutes, SUMMARY)?,
            offset_seconds: number_field(seconds, SUMMARY)?,
            ..Model::default()
        };
        if model.offsets().iter().all(|o| o.is_null()) {
            return Err(failed(
                SUMMARY,
                "The import id BASE,YEARS,MONTHS,DAYS,HOURS,MINUTES,SECONDS must give at least one offset.",
            ));
        }
        model.at_base(Timestamp::imported(base, SUMMARY)?.moment())
    }
}

#[cfg(test)]
mod tests {
    use monoform_sdk::cty::Value;
    use monoform_sdk_testing::Harness;

    #[tokio::test]
    async fn offsets_add_up_and_the_base_survives_their_change() {
        let harness = Harness::new(crate::provider());
        let base = ("base_rfc3339", Value::from("2020-01-31T00:00:00Z"));
        let config = [base, ("offset_days", 1.into()), ("offset_months", 1.into())];
        let state = harness.create("time_offset", &config).await.unwrap();
        assert_eq!(state.get("rfc3339"), Some(&"2020-03-01T00:00:00Z".into()));
        assert_eq!(state.get("id"), Some(&"2020-01-31T00:00:00Z".into()));

        let state = harness
            .create("time_offset", &[("offset_hours", 1.into())])
            .await
            .unwrap();
        let change = [("offset_hours", Value::from(2))];
        let plan = harness.plan("time_offset", Some(&state), &change).await.unwrap();
        assert!(plan.planned.is_wholly_known() && plan.replace.is_empty());
        assert_eq!(plan.planned.get("base_rfc3339"), state.get("base_rfc3339"));
        let updated = harness
            .apply("time_offset", Some(&state), Some(&plan.planned), &change)
            .await
            .unwrap();
        assert_eq!(updated, plan.planned);
        let unix = |v: &Value| v.get("unix").unwrap().as_number().unwrap().to_i64().unwrap();
        assert_eq!(unix(&updated) - unix(&state), 3600);
    }

    #[tokio::test]
    async fn some_offset_is_needed_and_none_too_great() {
        let harness = Harness::new(crate::provider());
        let errors = harness.validate("time_offset", &[]);
        assert_eq!(errors.0[0].summary, "Missing Attribute Configuration");
        assert!(
            harness
                .create("time_offset", &[("offset_years", 10_000.into())])
                .await
                .is_err()
        );
    }

    #[tokio::test]
    async fn imports_plan_no_change() {
        let harness = Harness::new(crate::provider());
        let state = harness
            .import("time_offset", "2020-02-12T06:36:13Z,,,7,,-3,")
            .await
            .unwrap();
        assert_eq!(state.get("rfc3339"), Some(&"2020-02-19T06:33:13Z".into()));
        let config = [("offset_days", Value::from(7)), ("offset_minutes", (-3).into())];
        let again = harness.plan("time_offset", Some(&state), &config).await.unwrap();
        assert_eq!((again.planned, again.replace), (state, vec![]));
        for bad in [
            "",
            "2020-02-12T06:36:13Z",
            "2020-02-12T06:36:13Z,,,,,,",
            "2020-02-12T06:36:13Z,x,,,,,",
        ] {
            let errors = harness.import("time_offset", bad).await.unwrap_err();
            assert_eq!(errors.0[0].summary, "Unexpected Format of ID", "{bad}");
        }
    }
}
