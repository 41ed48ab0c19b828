//! The resource `null_resource`.

use std::collections::BTreeMap;

use monoform_sdk::schema::{computed, optional};
use monoform_sdk::{Attr, Context, Resource, Result, Schema, async_trait, model};

model! {
    /// An object that does nothing.
    pub struct Model {
        /// Values of any meaning. When one changes, the object is replaced, and with it everything that hangs on it.
        pub triggers: Attr<BTreeMap<String, Attr<String>>> = optional().requires_replace_if_values_change(),
        /// A random number, new for each object.
        pub id: Attr<String> = computed().keep(),
    }
}

pub(crate) struct NullResource;

#[async_trait]
impl Resource for NullResource {
    type Model = Model;
    type Client = ();

    // The object exists in the state only, so a host needs no refresh.
    const STATE_ONLY: bool = true;

    fn schema(&self) -> Schema {
        Schema::of::<Model>().describe(
            "An object that has the usual life cycle and does nothing. It is replaced when its triggers change, which \
             makes its provisioners run again.",
        )
    }

    async fn create(&self, plan: Model, _cx: &mut Context<()>) -> Result<Model> {
        Ok(Model {
            id: crate::random_number().into(),
            ..plan
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use monoform_sdk::cty::{Type, Value};
    use monoform_sdk_testing::Harness;

    fn map(entries: &[(&str, Option<&str>)]) -> Value {
        let items = entries.iter().map(|(k, v)| {
            let value = v.map_or_else(|| Value::null(Type::String), Value::string);
            (Arc::from(*k), value)
        });
        Value::map(Type::String, items.collect())
    }

    #[tokio::test]
    async fn triggers_replace_only_when_their_values_change() {
        let harness = Harness::new(crate::provider());
        let none = Value::null(Type::map(Type::String));
        let a = map(&[("a", Some("1"))]);
        for (old, new, replaced) in [
            (&a, &a, false),
            (&none, &map(&[("a", None)]), false),
            (&none, &a, true),
            (&none, &map(&[]), false),
            (&a, &map(&[("a", Some("1")), ("b", None)]), false),
            (&a, &map(&[("a", Some("1")), ("b", Some("2"))]), true),
            (&a, &map(&[("a", Some("2"))]), true),
            (&a, &map(&[]), true),
            (&a, &none, true),
            (&map(&[]), &none, false),
            (&a, &Value::unknown(Type::map(Type::String)), true),
        ] {
            let state = harness
                .create("null_resource", &[("triggers", old.clone())])
                .await
                .unwrap();
            let plan = harness
                .plan("null_resource", Some(&state), &[("triggers", new.clone())])
                .await
                .unwrap();
            assert_eq!(!plan.replace.is_empty(), replaced, "{old:?} to {new:?}");
            assert_eq!(
                plan.planned.get("id"),
                state.get("id"),
                "the id is kept: {old:?} to {new:?}"
            );
        }
    }

    #[tokio::test]
    async fn the_id_is_a_number_of_63_bits() {
        let harness = Harness::new(crate::provider());
        let state = harness.create("null_resource", &[]).await.unwrap();
        let id: i64 = state.get("id").and_then(Value::as_str).unwrap().parse().unwrap();
        assert!(id >= 0);
    }
}
