//! The resource `random_shuffle`.

use monoform_sdk::schema::{computed, optional, required};
use monoform_sdk::{Attr, Context, Resource, Result, Schema, async_trait, model};
use rand::seq::SliceRandom;

use crate::Keepers;
use crate::seeded::Seeded;

model! {
    /// A list in random order.
    pub struct Model {
        /// Values of any meaning. When one changes, the list is shuffled again.
        pub keepers: Keepers = optional().requires_replace_if_values_change(),
        /// Text that decides the order: the same text always gives the same one.
        pub seed: Attr<String> = optional().requires_replace(),
        /// The list to shuffle.
        pub input: Attr<Vec<Attr<String>>> = required().requires_replace(),
        /// Number of elements in the result. More than the list has repeats them. Defaults to all of them.
        pub result_count: Attr<i64> = optional().requires_replace(),
        /// The elements in random order.
        pub result: Attr<Vec<Attr<String>>> = computed().keep(),
        /// Always `-`.
        pub id: Attr<String> = computed().keep(),
    }
}

pub(crate) struct RandomShuffle;

/// Returns `count` elements, taken from shuffled copies of the list, one copy after the other.
fn shuffle<T: Clone>(input: &[T], count: usize, seed: &str) -> Vec<T> {
    let mut result = Vec::with_capacity(count);
    let mut seeded = (!seed.is_empty()).then(|| Seeded::new(seed));
    // An empty list is excluded, because the loop would not end.
    while result.len() < count && !input.is_empty() {
        let order = match &mut seeded {
            Some(seeded) => seeded.permutation(input.len()),
            None => {
                let mut order: Vec<usize> = (0..input.len()).collect();
                order.shuffle(&mut rand::rng());
                order
            }
        };
        let missing = count - result.len();
        result.extend(order.into_iter().take(missing).map(|i| input[i].clone()));
    }
    result
}

#[async_trait]
impl Resource for RandomShuffle {
    type Model = Model;
    type Client = ();

    const STATE_ONLY: bool = true;

    fn schema(&self) -> Schema {
        Schema::of::<Model>().describe("The elements of a list in random order.")
    }

    async fn create(&self, plan: Model, _cx: &mut Context<()>) -> Result<Model> {
        let input = plan.input.clone().or(Vec::new());
        let count = match &plan.result_count {
            Attr::Known(count) => crate::length(*count, "Create Random Shuffle Error")?,
            _ => input.len(),
        };
        let result = shuffle(&input, count, plan.seed.text());
        Ok(Model {
            result: result.into(),
            // As in the official provider, the ID is a constant: the result cannot be looked up.
            id: "-".into(),
            ..plan
        })
    }
}

#[cfg(test)]
mod tests {
    use super::shuffle;

    #[test]
    fn a_seed_decides_across_repetitions() {
        let letters: Vec<char> = "abcde".chars().collect();
        let result: String = shuffle(&letters, 12, "-").into_iter().collect();
        assert_eq!(result, "acbedaedcbab");
    }

    #[test]
    fn every_order_comes_up_alike() {
        let mut counts = std::collections::BTreeMap::new();
        for _ in 0..24_000 {
            *counts.entry(shuffle(&[1, 2, 3, 4], 4, "")).or_insert(0u32) += 1;
        }
        let counts: Vec<u32> = counts.into_values().collect();
        assert_eq!(counts.len(), 24);
        crate::assert_fair(&counts);
    }

    #[test]
    fn each_round_has_every_element_once() {
        let mut result = shuffle(&[1, 2, 3], 6, "");
        result[..3].sort_unstable();
        result[3..].sort_unstable();
        assert_eq!(result, [1, 2, 3, 1, 2, 3]);
        assert!(shuffle(&[1, 2, 3], 0, "").is_empty());
        assert!(shuffle::<i32>(&[], 5, "x").is_empty());
    }
}
