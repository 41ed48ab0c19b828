//! `random_uuid`, `random_uuid4` and `random_uuid7`.

use ::uuid::Uuid;
use monoform_sdk::schema::{computed, optional};
use monoform_sdk::{Attr, Context, Resource, Result, Schema, async_trait, model};

use crate::{Keepers, failed};

model! {
    /// A UUID.
    pub struct Model {
        /// Values of any meaning. When one changes, a new UUID is made.
        pub keepers: Keepers = optional().requires_replace_if_values_change(),
        /// The UUID.
        pub result: Attr<String> = computed().keep(),
        /// The UUID.
        pub id: Attr<String> = computed().keep(),
    }
}

impl Model {
    fn with(self, text: String) -> Model {
        Model {
            result: text.clone().into(),
            id: text.into(),
            ..self
        }
    }
}

/// Imports a UUID in any of its usual forms.
fn import(id: &str, summary: &str) -> Result<Model> {
    match Uuid::parse_str(id) {
        Ok(uuid) => Ok(Model::default().with(uuid.to_string())),
        Err(error) => Err(failed(summary, format!("The import id must be a UUID: {error}."))),
    }
}

pub(crate) struct RandomUuid;

#[async_trait]
impl Resource for RandomUuid {
    type Model = Model;
    type Client = ();

    const STATE_ONLY: bool = true;

    fn schema(&self) -> Schema {
        Schema::of::<Model>().describe("Random text in the form of a UUID.")
    }

    async fn create(&self, plan: Model, _cx: &mut Context<()>) -> Result<Model> {
        Ok(plan.with(Uuid::new_v4().to_string()))
    }

    async fn import(&self, id: &str, _cx: &mut Context<()>) -> Result<Model> {
        // The parser also accepts other forms, which the import of this type refuses.
        let canonical = Uuid::try_parse(id).is_ok_and(|_| id.len() == 36);
        if !canonical {
            return Err(failed(
                "Import Random UUID Error",
                "The import id must be a UUID of 36 characters, like 6ba7b810-9dad-11d1-80b4-00c04fd430c8.",
            ));
        }
        Ok(Model::default().with(id.to_ascii_lowercase()))
    }
}

pub(crate) struct RandomUuid4;

#[async_trait]
impl Resource for RandomUuid4 {
    type Model = Model;
    type Client = ();

    const STATE_ONLY: bool = true;

    fn schema(&self) -> Schema {
        Schema::of::<Model>().describe("A UUID of version 4: random.")
    }

    async fn create(&self, plan: Model, _cx: &mut Context<()>) -> Result<Model> {
        Ok(plan.with(Uuid::new_v4().to_string()))
    }

    async fn import(&self, id: &str, _cx: &mut Context<()>) -> Result<Model> {
        import(id, "Import Random UUID Error")
    }
}

pub(crate) struct RandomUuid7;

#[async_trait]
impl Resource for RandomUuid7 {
    type Model = Model;
    type Client = ();

    const STATE_ONLY: bool = true;

    fn schema(&self) -> Schema {
        Schema::of::<Model>().describe("A UUID of version 7: the time, then random.")
    }

    async fn create(&self, plan: Model, _cx: &mut Context<()>) -> Result<Model> {
        Ok(plan.with(Uuid::now_v7().to_string()))
    }

    async fn import(&self, id: &str, _cx: &mut Context<()>) -> Result<Model> {
        import(id, "Import Random UUID Error")
    }
}

#[cfg(test)]
mod tests {
    use ::uuid::Uuid;
    use monoform_sdk::cty::Value;
    use monoform_sdk_testing::Harness;

    #[tokio::test]
    async fn versions_are_what_the_name_says() {
        let harness = Harness::new(crate::provider());
        for (name, version) in [("random_uuid4", 4), ("random_uuid7", 7)] {
            let state = harness.create(name, &[]).await.unwrap();
            let text = state.get("result").and_then(Value::as_str).unwrap();
            assert_eq!(Uuid::parse_str(text).unwrap().get_version_num(), version);
            assert_eq!(state.get("id"), state.get("result"));
        }
    }

    #[tokio::test]
    async fn imports_accept_the_forms_they_should() {
        let harness = Harness::new(crate::provider());
        let canonical = "6ba7b810-9dad-11d1-80b4-00c04fd430c8";
        for (id, plain, versioned) in [
            ("6BA7B810-9DAD-11D1-80B4-00C04FD430C8", true, true),
            ("6ba7b8109dad11d180b400c04fd430c8", false, true),
            ("{6ba7b810-9dad-11d1-80b4-00c04fd430c8}", false, true),
            ("urn:uuid:6ba7b810-9dad-11d1-80b4-00c04fd430c8", false, true),
            ("6ba7b810-9dad-11d1-80b4-00c04fd430cx", false, false),
            ("", false, false),
        ] {
            for (name, accepted) in [
                ("random_uuid", plain),
                ("random_uuid4", versioned),
                ("random_uuid7", versioned),
            ] {
                let result = harness.import(name, id).await;
                assert_eq!(result.is_ok(), accepted, "{name} {id}");
                if let Ok(state) = result {
                    assert_eq!(state.get("id"), Some(&Value::string(canonical)));
                }
            }
        }
    }
}
