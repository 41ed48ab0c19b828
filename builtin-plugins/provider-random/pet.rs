//! The resource `random_pet`.

use monoform_sdk::schema::{computed, optional};
use monoform_sdk::{Attr, Context, Resource, Result, Schema, async_trait, model};
use rand::seq::IndexedRandom;

use crate::words::{ADJECTIVES, ADVERBS, NAMES};
use crate::{Keepers, LENGTH_LIMIT, failed};

model! {
    /// A name made of words.
    pub struct Model {
        /// Values of any meaning. When one changes, a new name is made.
        pub keepers: Keepers = optional().requires_replace_if_values_change(),
        /// Number of words.
        pub length: Attr<i64> = optional().computed().default(2i64).requires_replace(),
        /// Text in front of the name.
        pub prefix: Attr<String> = optional().requires_replace(),
        /// Separator between the words.
        pub separator: Attr<String> = optional().computed().default("-".to_owned()).requires_replace(),
        /// The name.
        pub id: Attr<String> = computed().keep(),
    }
}

/// Picks a name. A length of at least 2 puts an adjective before it, and each further word is an adverb before that. A length below 1
/// counts as 2.
fn words(length: i64) -> Vec<&'static str> {
    let mut rng = rand::rng();
    let mut pick = |list: &'static [&'static str]| list.choose(&mut rng).copied().unwrap_or_default();
    let length = if length < 1 { 2 } else { length };
    let mut words: Vec<&str> = (2..length).map(|_| pick(ADVERBS)).collect();
    if length > 1 {
        words.push(pick(ADJECTIVES));
    }
    words.push(pick(NAMES));
    words
}

pub(crate) struct RandomPet;

#[async_trait]
impl Resource for RandomPet {
    type Model = Model;
    type Client = ();

    const STATE_ONLY: bool = true;

    fn schema(&self) -> Schema {
        Schema::of::<Model>().describe("A random name made of words, which people can read and remember.")
    }

    async fn create(&self, plan: Model, _cx: &mut Context<()>) -> Result<Model> {
        let length = plan.length.clone().or(2);
        // A word has at most ten letters, so a name with a separator of usual length stays within the limit of other values.
        if length > LENGTH_LIMIT / 16 {
            return Err(failed(
                "Create Random Pet Error",
                format!("A name of {length} words is too long."),
            ));
        }
        let separator = plan.separator.text();
        // As in the official provider, the separator is converted to lower case, too.
        let mut name = words(length).join(separator).to_lowercase();
        if !plan.prefix.text().is_empty() {
            name = format!("{}{separator}{name}", plan.prefix.text());
        }
        Ok(Model {
            id: name.into(),
            ..plan
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use monoform_sdk::cty::Value;
    use monoform_sdk_testing::Harness;

    use super::*;

    #[test]
    fn word_lists_have_their_size_and_form() {
        for (list, count, lengths) in [(ADJECTIVES, 449, 2..=8), (ADVERBS, 261, 4..=10), (NAMES, 452, 2..=8)] {
            assert_eq!(list.len(), count);
            assert_eq!(list.iter().collect::<BTreeSet<_>>().len(), count, "no word twice");
            for word in list {
                assert!(
                    lengths.contains(&word.len()) && word.bytes().all(|b| b.is_ascii_lowercase()),
                    "{word}"
                );
            }
        }
    }

    #[test]
    fn the_last_word_is_a_name_and_the_one_before_an_adjective() {
        for (length, count) in [(1, 1), (2, 2), (5, 5), (0, 2), (-3, 2)] {
            let words = words(length);
            assert_eq!(words.len(), count);
            assert!(NAMES.contains(&words[count - 1]));
            assert!(count < 2 || ADJECTIVES.contains(&words[count - 2]));
            assert!(words.iter().rev().skip(2).all(|word| ADVERBS.contains(word)));
        }
    }

    #[tokio::test]
    async fn prefix_and_separator_are_used() {
        let harness = Harness::new(crate::provider());
        let config = [
            ("length", 1.into()),
            ("prefix", "Dev".into()),
            ("separator", "X".into()),
        ];
        let state = harness.create("random_pet", &config).await.unwrap();
        let id = state.get("id").and_then(Value::as_str).unwrap();
        assert!(id.starts_with("DevX"), "{id}");
        let state = harness
            .create("random_pet", &[("separator", "X".into())])
            .await
            .unwrap();
        let id = state.get("id").and_then(Value::as_str).unwrap();
        assert!(id.contains('x') && id == id.to_lowercase(), "{id}");
    }
}
