//! The resource `random_integer`.

use monoform_sdk::schema::{computed, optional, required};
use monoform_sdk::{Attr, Context, Resource, Result, Schema, async_trait, model};

use crate::seeded::Seeded;
use crate::{Keepers, failed};

model! {
    /// A random whole number.
    pub struct Model {
        /// Values of any meaning. When one changes, a new number is made.
        pub keepers: Keepers = optional().requires_replace_if_values_change(),
        /// The least number it may be.
        pub min: Attr<i64> = required().requires_replace(),
        /// The greatest number it may be.
        pub max: Attr<i64> = required().requires_replace(),
        /// Text that decides the number: the same text always gives the same one.
        pub seed: Attr<String> = optional().requires_replace(),
        /// The number.
        pub result: Attr<i64> = computed().keep(),
        /// The number as text.
        pub id: Attr<String> = computed().keep(),
    }
}

pub(crate) struct RandomInteger;

const SUMMARY: &str = "Create Random Integer Error";

fn make(min: i64, max: i64, seed: &str) -> Result<i64> {
    if max < min {
        return Err(failed(SUMMARY, "The argument min is greater than max."));
    }
    if seed.is_empty() {
        return Ok(rand::random_range(min..=max));
    }
    // A number of the seeded generator has 63 bits, so a range with more values is refused.
    let count = max.checked_sub(min).and_then(|n| n.checked_add(1)).ok_or_else(|| {
        failed(
            SUMMARY,
            "With a seed, there may be at most 2^63 - 1 numbers between min and max.",
        )
    })?;
    let offset = Seeded::new(seed).bounded(count.unsigned_abs());
    // The offset is below `count`, so the sum is at most `max`.
    Ok(min.saturating_add_unsigned(offset))
}

#[async_trait]
impl Resource for RandomInteger {
    type Model = Model;
    type Client = ();

    const STATE_ONLY: bool = true;

    fn schema(&self) -> Schema {
        Schema::of::<Model>().describe("A random whole number between two others, both included.")
    }

    async fn create(&self, plan: Model, _cx: &mut Context<()>) -> Result<Model> {
        let result = make(plan.min.clone().or(0), plan.max.clone().or(0), plan.seed.text())?;
        Ok(Model {
            result: result.into(),
            id: result.to_string().into(),
            ..plan
        })
    }

    async fn import(&self, id: &str, _cx: &mut Context<()>) -> Result<Model> {
        let parts: Vec<&str> = id.split(',').collect();
        let (numbers, seed) = match parts.as_slice() {
            [result, min, max] => ([result, min, max], Attr::Null),
            [result, min, max, seed] => ([result, min, max], Attr::from(*seed)),
            _ => {
                return Err(failed(
                    "Import Random Integer Error",
                    "Invalid import usage: expecting {result},{min},{max} or {result},{min},{max},{seed}",
                ));
            }
        };
        let [result, min, max] = numbers.map(|text| {
            text.trim().parse::<i64>().map_err(|e| {
                failed(
                    "Import Random Integer Error",
                    format!("Invalid import usage: {text:?} is not a whole number: {e}."),
                )
            })
        });
        let result = result?;
        Ok(Model {
            keepers: Attr::Null,
            min: min?.into(),
            max: max?.into(),
            seed,
            result: result.into(),
            id: result.to_string().into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use monoform_sdk::cty::Value;
    use monoform_sdk_testing::Harness;

    use super::make;

    #[test]
    fn every_number_comes_up_and_no_other() {
        for seeded in [false, true] {
            let mut counts = [0; 6];
            for i in 0..6_000 {
                let seed = if seeded { format!("seed {i}") } else { String::new() };
                counts[usize::try_from(make(1, 6, &seed).unwrap() - 1).unwrap()] += 1;
            }
            crate::assert_fair(&counts);
        }
        make(i64::MIN, i64::MAX, "").unwrap();
    }

    #[test]
    fn seeds_decide() {
        assert_eq!(make(1, 3, "12345").unwrap(), 3);
        assert!(make(i64::MIN, i64::MAX, "x").is_err());
        assert_eq!(make(-5, -5, "x").unwrap(), -5);
    }

    #[tokio::test]
    async fn limits_in_the_wrong_order_are_an_error() {
        let harness = Harness::new(crate::provider());
        let errors = harness
            .create("random_integer", &[("min", 3.into()), ("max", 1.into())])
            .await
            .unwrap_err();
        assert_eq!(errors.0[0].summary, "Create Random Integer Error");
    }

    #[tokio::test]
    async fn import_takes_three_or_four_parts() {
        let harness = Harness::new(crate::provider());
        let state = harness.import("random_integer", "7,1,10,s").await.unwrap();
        assert_eq!(state.get("result"), Some(&7.into()));
        assert_eq!(state.get("seed"), Some(&Value::string("s")));
        for bad in ["7", "7,1", "7,1,x", "7,1,2,s,t", ""] {
            let errors = harness.import("random_integer", bad).await.unwrap_err();
            assert!(errors.0[0].detail.starts_with("Invalid import usage"), "{bad}");
        }
    }
}
