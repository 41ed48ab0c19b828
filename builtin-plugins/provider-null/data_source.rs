//! The data source `null_data_source`.

use std::collections::BTreeMap;

use monoform_sdk::schema::{computed, optional};
use monoform_sdk::{Attr, Context, DataSource, Result, Schema, async_trait, model};

model! {
    /// Values in, the same values out.
    pub struct Model {
        /// The values to return.
        pub inputs: Attr<BTreeMap<String, Attr<String>>> = optional(),
        /// The values of `inputs`.
        pub outputs: Attr<BTreeMap<String, Attr<String>>> = computed(),
        /// A random number, new each time.
        pub random: Attr<String> = computed(),
        /// Text that is `default` unless it is set.
        pub has_computed_default: Attr<String> = optional().computed(),
        /// Always `static`.
        pub id: Attr<String> = computed().deprecated(
            "It is the same for every use and has no meaning. Remove references to it."
        ),
    }
}

pub(crate) struct NullDataSource;

#[async_trait]
impl DataSource for NullDataSource {
    type Model = Model;
    type Client = ();

    fn schema(&self) -> Schema {
        Schema::of::<Model>()
            .describe("Returns its input values.")
            .deprecated("Local values do the same without a provider: use a locals block instead.")
    }

    async fn read(&self, config: Model, _cx: &mut Context<()>) -> Result<Model> {
        Ok(Model {
            outputs: config.inputs.clone(),
            random: crate::random_number().into(),
            has_computed_default: match config.has_computed_default {
                Attr::Null => "default".into(),
                given => given,
            },
            id: "static".into(),
            inputs: config.inputs,
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use monoform_sdk::cty::{Type, Value};
    use monoform_sdk_testing::Harness;

    #[tokio::test]
    async fn outputs_are_the_inputs() {
        let harness = Harness::new(crate::provider());
        let inputs = Value::map(Type::String, [(Arc::from("a"), Value::string("b"))].into());
        let state = harness
            .data("null_data_source", &[("inputs", inputs.clone())])
            .await
            .unwrap();
        assert_eq!(state.get("outputs"), Some(&inputs));
        assert_eq!(state.get("has_computed_default"), Some(&Value::string("default")));
        assert_eq!(state.get("id"), Some(&Value::string("static")));
    }
}
