//! `template_cloudinit_config`, as a data source and as a resource.

use monoform_sdk::schema::{block, computed, optional, required};
use monoform_sdk::{
    Attr, Context, DataSource, Diagnostic, Diagnostics, Plan, Resource, Result, Schema, async_trait, model,
};
use provider_cloudinit::render;

use crate::{deprecated, keep_if_same, same};

model! {
    /// A part of the message.
    pub struct Part {
        /// The content.
        pub content: Attr<String> = required().requires_replace(),
        /// MIME type of the content. Defaults to `text/plain`.
        pub content_type: Attr<String> = optional().requires_replace(),
        /// The name of the file that the part becomes.
        pub filename: Attr<String> = optional().requires_replace(),
        /// Value of the header `X-Merge-Type`, by which cloud-init merges this part with earlier ones.
        pub merge_type: Attr<String> = optional().requires_replace(),
    }
}

model! {
    /// User data.
    pub struct Model {
        /// A part of the message, in this order.
        pub part: Attr<Vec<Part>> = block().min_items(1).requires_replace(),
        /// True if the result is compressed, which is the default.
        pub gzip: Attr<bool> = optional().default(true).requires_replace(),
        /// True if the result is written in base64, which is the default. Compressed results must be.
        pub base64_encode: Attr<bool> = optional().default(true).requires_replace(),
        /// The message, compressed and encoded as configured.
        pub rendered: Attr<String> = computed().keep(),
        /// The CRC-32 of the result, as a decimal number.
        pub id: Attr<String> = optional().computed().keep(),
    }
}

impl Part {
    /// Returns all texts of the part.
    fn texts(&self) -> [&Attr<String>; 4] {
        [&self.content, &self.content_type, &self.filename, &self.merge_type]
    }

    fn written(&self) -> render::Part<'_> {
        render::Part {
            content: self.content.text(),
            content_type: self.content_type.text(),
            filename: self.filename.text(),
            merge_type: self.merge_type.text(),
        }
    }

    fn filled(&self) -> Part {
        let [content, content_type, filename, merge_type] = self.texts().map(|t| t.text().into());
        Part {
            content,
            content_type,
            filename,
            merge_type,
        }
    }
}

impl Model {
    fn rendered(self) -> Result<Model> {
        let (gzip, base64) = (self.gzip.or(true), self.base64_encode.or(true));
        if gzip && !base64 {
            return Err(Diagnostic::error(
                "base64_encode is mandatory when gzip is enabled",
                "The argument gzip is true unless set, and compressed data is not valid text. Set gzip to false, or remove \
                 base64_encode.",
            )
            .at_attribute("base64_encode")
            .into());
        }
        let parts = self.part.or(Vec::new());
        let written: Vec<render::Part<'_>> = parts.iter().map(Part::written).collect();
        let rendered = render::encode(render::message(&written, render::BOUNDARY), gzip, base64)
            .map_err(|problem| Diagnostic::error("failed to render cloud-init configuration", format!("{problem}.")))?;
        Ok(Model {
            part: parts.iter().map(Part::filled).collect::<Vec<_>>().into(),
            gzip: gzip.into(),
            base64_encode: base64.into(),
            id: render::checksum(&rendered).into(),
            rendered: rendered.into(),
        })
    }

    /// Returns true if two models have the same arguments. Their results may differ.
    fn agrees(&self, other: &Model) -> bool {
        let (Some(ours), Some(theirs)) = (self.part.known(), other.part.known()) else {
            return false;
        };
        let part = |(one, other): (&Part, &Part)| one.texts().iter().zip(other.texts()).all(|(a, b)| same(a, b));
        ours.len() == theirs.len()
            && ours.iter().zip(theirs).all(part)
            && self.gzip == other.gzip
            && self.base64_encode == other.base64_encode
    }
}

pub(crate) struct CloudInitData;

#[async_trait]
impl DataSource for CloudInitData {
    type Model = Model;
    type Client = ();

    fn schema(&self) -> Schema {
        Schema::of::<Model>()
            .describe("User data for cloud-init. The data source cloudinit_config does the same and more.")
    }

    async fn read(&self, config: Model, _cx: &mut Context<()>) -> Result<Model> {
        config.rendered()
    }
}

pub(crate) struct CloudInitResource;

#[async_trait]
impl Resource for CloudInitResource {
    type Model = Model;
    type Client = ();

    const LENIENT: bool = true;

    fn schema(&self) -> Schema {
        Schema::of::<Model>().describe("User data for cloud-init, stored in the state.")
    }

    fn validate(&self, _config: &Model) -> Diagnostics {
        deprecated("template_cloudinit_config")
    }

    async fn plan(&self, plan: &mut Plan<'_, Model>, _cx: &mut Context<()>) -> Result<()> {
        keep_if_same(plan, Model::agrees)
    }

    async fn create(&self, plan: Model, _cx: &mut Context<()>) -> Result<Model> {
        plan.rendered()
    }

    /// Returns the state unchanged.
    async fn read(&self, state: Model, _cx: &mut Context<()>) -> Result<Option<Model>> {
        // The official provider renders again. Here, compression may give other bytes than in a state of the official provider, and
        // rendering again would then replace the object.
        Ok(Some(state))
    }
}

#[cfg(test)]
mod tests {
    use monoform_sdk::cty::{Type, Value};
    use monoform_sdk_testing::Harness;

    fn part(content: &str) -> (&'static str, Value) {
        let null = || Value::null(Type::String);
        let part = Value::object([
            ("content", Value::string(content)),
            ("content_type", null()),
            ("filename", null()),
            ("merge_type", null()),
        ]);
        ("part", Value::list(part.ty().clone(), vec![part]))
    }

    #[tokio::test]
    async fn the_message_is_that_of_cloudinit() {
        let harness = Harness::new(crate::provider());
        let config = [part("baz"), ("gzip", false.into()), ("base64_encode", false.into())];
        let state = harness.data("template_cloudinit_config", &config).await.unwrap();
        // Test vector from the tests of the official provider.
        assert_eq!(state.get("id"), Some(&"2112020244".into()));
        let error = harness
            .data(
                "template_cloudinit_config",
                &[part("x"), ("base64_encode", false.into())],
            )
            .await
            .unwrap_err();
        assert!(
            error.0[0]
                .summary
                .contains("base64_encode is mandatory when gzip is enabled")
        );
    }

    #[tokio::test]
    async fn the_resource_keeps_it() {
        let harness = Harness::new(crate::provider());
        let state = harness
            .create("template_cloudinit_config", &[part("baz")])
            .await
            .unwrap();
        assert_eq!(state.get("gzip"), Some(&true.into()));
        let again = harness
            .plan("template_cloudinit_config", Some(&state), &[part("baz")])
            .await
            .unwrap();
        assert_eq!(again.planned, state);
        let changed = harness
            .plan("template_cloudinit_config", Some(&state), &[part("bar")])
            .await
            .unwrap();
        assert!(!changed.replace.is_empty());
    }
}
