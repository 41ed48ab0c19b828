//! The resource `random_id`.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use dashu_int::UBig;
use data_encoding::HEXLOWER;
use monoform_sdk::schema::{computed, optional, required};
use monoform_sdk::{Attr, Context, Resource, Result, Schema, async_trait, model};

use crate::{Keepers, failed};

model! {
    /// A random number in several forms.
    pub struct Model {
        /// Values of any meaning. When one changes, a new number is made.
        pub keepers: Keepers = optional().requires_replace_if_values_change(),
        /// Number of random bytes in the number.
        pub byte_length: Attr<i64> = required().requires_replace(),
        /// Text in front of every form except the id.
        pub prefix: Attr<String> = optional().requires_replace(),
        /// The bytes in base64 for URLs, without padding, after the prefix.
        pub b64_url: Attr<String> = computed().keep(),
        /// The bytes in standard base64, after the prefix.
        pub b64_std: Attr<String> = computed().keep(),
        /// The bytes in hexadecimal, two digits each, after the prefix.
        pub hex: Attr<String> = computed().keep(),
        /// The bytes as one decimal number, after the prefix.
        pub dec: Attr<String> = computed().keep(),
        /// The bytes in base64 for URLs, without padding and without the prefix.
        pub id: Attr<String> = computed().keep(),
    }
}

impl Model {
    fn with(self, bytes: &[u8]) -> Model {
        let prefix = self.prefix.text().to_owned();
        let prefixed = |text: String| Attr::Known(format!("{prefix}{text}"));
        Model {
            b64_url: prefixed(URL_SAFE_NO_PAD.encode(bytes)),
            b64_std: prefixed(STANDARD.encode(bytes)),
            hex: prefixed(HEXLOWER.encode(bytes)),
            dec: prefixed(UBig::from_be_bytes(bytes).to_string()),
            id: URL_SAFE_NO_PAD.encode(bytes).into(),
            ..self
        }
    }
}

pub(crate) struct RandomId;

#[async_trait]
impl Resource for RandomId {
    type Model = Model;
    type Client = ();

    const STATE_ONLY: bool = true;

    fn schema(&self) -> Schema {
        Schema::of::<Model>().describe(
            "A random number that is unlikely to be made twice, in several forms, to be used in names that must be unique.",
        )
    }

    async fn create(&self, plan: Model, _cx: &mut Context<()>) -> Result<Model> {
        let length = crate::length(plan.byte_length.clone().or(0), "Create Random ID error")?;
        Ok(plan.with(&crate::random_bytes(length)))
    }

    async fn import(&self, id: &str, _cx: &mut Context<()>) -> Result<Model> {
        // Split at the last comma, because the prefix may contain commas and base64 does not.
        let (prefix, encoded) = match id.rsplit_once(',') {
            Some((prefix, encoded)) => (Attr::from(prefix), encoded),
            None => (Attr::Null, id),
        };
        let bytes = URL_SAFE_NO_PAD.decode(encoded).map_err(|e| {
            failed(
                "Import Random ID Error",
                format!("The import id must be the id itself (base64 for URLs), or prefix,id: {e}."),
            )
        })?;
        Ok(Model {
            prefix,
            byte_length: (bytes.len() as i64).into(),
            ..Model::default()
        }
        .with(&bytes))
    }
}

#[cfg(test)]
mod tests {
    use monoform_sdk::cty::{Type, Value};
    use monoform_sdk_testing::Harness;

    fn text<'a>(value: &'a Value, name: &str) -> &'a str {
        value.get(name).and_then(Value::as_str).unwrap()
    }

    #[tokio::test]
    async fn every_form_is_the_same_number() {
        let harness = Harness::new(crate::provider());
        let state = harness.import("random_id", "a,b-,AP_-").await.unwrap();
        assert_eq!(text(&state, "prefix"), "a,b-");
        assert_eq!(text(&state, "hex"), "a,b-00fffe");
        assert_eq!(text(&state, "dec"), "a,b-65534");
        assert_eq!(text(&state, "b64_std"), "a,b-AP/+");
        assert_eq!(text(&state, "b64_url"), "a,b-AP_-");
        assert_eq!(text(&state, "id"), "AP_-");
        assert_eq!(state.get("byte_length"), Some(&3.into()));
    }

    #[tokio::test]
    async fn an_empty_prefix_stays_as_it_was_written() {
        let harness = Harness::new(crate::provider());
        let config = [("byte_length", 2.into()), ("prefix", "".into())];
        let state = harness.create("random_id", &config).await.unwrap();
        assert_eq!((text(&state, "prefix"), text(&state, "hex").len()), ("", 4));
        let again = harness.plan("random_id", Some(&state), &config).await.unwrap();
        assert_eq!(again.planned, state);
        let imported = harness.import("random_id", "AP_-").await.unwrap();
        assert_eq!(imported.get("prefix"), Some(&Value::null(Type::String)));
    }

    #[tokio::test]
    async fn impossible_lengths_are_errors() {
        let harness = Harness::new(crate::provider());
        for length in [-1, i64::MAX] {
            assert!(
                harness
                    .create("random_id", &[("byte_length", length.into())])
                    .await
                    .is_err()
            );
        }
    }
}
