//! `random_bytes`, managed and ephemeral.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use data_encoding::HEXLOWER;
use monoform_sdk::schema::{computed, optional, required};
use monoform_sdk::{Attr, Context, EphemeralResource, Opened, Resource, Result, Schema, Validator, async_trait, model};

use crate::{Keepers, failed};

model! {
    /// Random bytes.
    pub struct Model {
        /// Values of any meaning. When one changes, new bytes are made.
        pub keepers: Keepers = optional().requires_replace(),
        /// Number of bytes, at least 1.
        pub length: Attr<i64> = required().validate(Validator::AtLeast(1)).requires_replace(),
        /// The bytes in base64.
        pub base64: Attr<String> = computed().sensitive().keep(),
        /// The bytes in hexadecimal.
        pub hex: Attr<String> = computed().sensitive().keep(),
    }
}

model! {
    /// Random bytes for one run.
    pub struct EphemeralModel {
        /// Number of bytes, at least 1.
        pub length: Attr<i64> = required().validate(Validator::AtLeast(1)),
        /// The bytes in base64.
        pub base64: Attr<String> = computed().sensitive(),
        /// The bytes in hexadecimal.
        pub hex: Attr<String> = computed().sensitive(),
    }
}

fn make(length: i64) -> Result<Vec<u8>> {
    Ok(crate::random_bytes(crate::length(length, "Create Random bytes error")?))
}

pub(crate) struct RandomBytes;

#[async_trait]
impl Resource for RandomBytes {
    type Model = Model;
    type Client = ();

    const STATE_ONLY: bool = true;

    fn schema(&self) -> Schema {
        Schema::of::<Model>().describe("Random bytes for a secret, such as a key. They are stored in the state.")
    }

    async fn create(&self, plan: Model, _cx: &mut Context<()>) -> Result<Model> {
        let bytes = make(plan.length.clone().or(0))?;
        Ok(Model {
            base64: STANDARD.encode(&bytes).into(),
            hex: HEXLOWER.encode(&bytes).into(),
            ..plan
        })
    }

    async fn import(&self, id: &str, _cx: &mut Context<()>) -> Result<Model> {
        let bytes = STANDARD.decode(id).map_err(|e| {
            failed(
                "Import Random bytes Error",
                format!("The import id must be the bytes in standard base64: {e}."),
            )
        })?;
        Ok(Model {
            keepers: Attr::Null,
            length: (bytes.len() as i64).into(),
            hex: HEXLOWER.encode(&bytes).into(),
            base64: id.into(),
        })
    }
}

pub(crate) struct EphemeralBytes;

#[async_trait]
impl EphemeralResource for EphemeralBytes {
    type Model = EphemeralModel;
    type Client = ();

    fn schema(&self) -> Schema {
        Schema::of::<EphemeralModel>().describe("Random bytes for one run, which are not stored.")
    }

    async fn open(&self, config: EphemeralModel, _cx: &mut Context<()>) -> Result<Opened<EphemeralModel>> {
        let bytes = make(config.length.clone().or(0))?;
        Ok(EphemeralModel {
            base64: STANDARD.encode(&bytes).into(),
            hex: HEXLOWER.encode(&bytes).into(),
            ..config
        }
        .into())
    }
}

#[cfg(test)]
mod tests {
    use monoform_sdk::cty::Value;
    use monoform_sdk_testing::Harness;

    fn text<'a>(value: &'a Value, name: &str) -> &'a str {
        value.get(name).and_then(Value::as_str).unwrap()
    }

    #[tokio::test]
    async fn both_forms_have_the_length_asked_for() {
        let harness = Harness::new(crate::provider());
        let state = harness.create("random_bytes", &[("length", 5.into())]).await.unwrap();
        assert_eq!((text(&state, "hex").len(), text(&state, "base64").len()), (10, 8));
        let opened = harness.open("random_bytes", &[("length", 3.into())]).await.unwrap();
        assert_eq!(text(&opened, "hex").len(), 6);
    }

    #[tokio::test]
    async fn import_takes_base64() {
        let harness = Harness::new(crate::provider());
        let state = harness.import("random_bytes", "AQL/").await.unwrap();
        assert_eq!((text(&state, "hex"), state.get("length")), ("0102ff", Some(&3.into())));
        assert!(harness.import("random_bytes", "%").await.is_err());
    }

    #[tokio::test]
    async fn no_bytes_at_all_are_refused() {
        let harness = Harness::new(crate::provider());
        let errors = harness.validate("random_bytes", &[("length", 0.into())]);
        assert_eq!(errors.0[0].detail, "Attribute length value must be at least 1, got: 0");
    }
}
