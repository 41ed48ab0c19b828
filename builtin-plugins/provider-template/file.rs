//! `template_file`, as a data source and as a resource.

use data_encoding::HEXLOWER;
use monoform_sdk::schema::{computed, optional};
use monoform_sdk::{
    Attr, Context, DataSource, Diagnostic, Diagnostics, Plan, Resource, Result, Schema, Validator, async_trait, model,
};
use sha2::{Digest, Sha256};

use crate::render::render;
use crate::{Vars, deprecated, keep_if_same, same, values};

model! {
    /// A template and its text.
    pub struct Model {
        /// The template. Its variables are those of `vars`, by their names.
        pub template: Attr<String> = optional().requires_replace(),
        /// Removed: templates come from `file("…")` in `template`.
        pub filename: Attr<String> = optional().validate(Validator::custom(|check| {
            let advice = "filename was removed: Use the 'template' attribute instead, with the function file for what is in a file.";
            Some(Diagnostic::error("[REMOVED] filename", advice).at(check.path.clone()))
        })).requires_replace(),
        /// The values of the template's variables. Every one is text there.
        pub vars: Vars = optional().requires_replace(),
        /// The text.
        pub rendered: Attr<String> = computed().keep(),
        /// The SHA-256 hash of the text.
        pub id: Attr<String> = optional().computed().keep(),
    }
}

impl Model {
    /// Renders the template. Empty arguments become null, as in the official provider.
    fn rendered(self) -> Result<Model> {
        let rendered = render(self.template.text(), &values(&self.vars)).map_err(|problem| {
            Diagnostic::error(
                "failed to render template",
                format!("failed to render the template: {problem}"),
            )
            .at_attribute("template")
        })?;
        let hash = Sha256::digest(rendered.as_bytes());
        Ok(Model {
            template: self.template.into_known().filter(|t| !t.is_empty()).into(),
            filename: Attr::Null,
            vars: self.vars.into_known().filter(|v| !v.is_empty()).into(),
            id: HEXLOWER.encode(&hash).into(),
            rendered: rendered.into(),
        })
    }

    /// Returns true if two models have the same arguments. Their rendered texts may differ.
    fn agrees(&self, other: &Model) -> bool {
        let vars = |m: &Model| values(&m.vars);
        same(&self.template, &other.template) && !self.vars.is_unknown() && vars(self) == vars(other)
    }
}

pub(crate) struct FileData;

#[async_trait]
impl DataSource for FileData {
    type Model = Model;
    type Client = ();

    fn schema(&self) -> Schema {
        Schema::of::<Model>().describe("Text from a template. The function templatefile does the same and more.")
    }

    async fn read(&self, config: Model, _cx: &mut Context<()>) -> Result<Model> {
        config.rendered()
    }
}

pub(crate) struct FileResource;

#[async_trait]
impl Resource for FileResource {
    type Model = Model;
    type Client = ();

    const LENIENT: bool = true;

    fn schema(&self) -> Schema {
        Schema::of::<Model>().describe("Text from a template, stored in the state.")
    }

    fn validate(&self, _config: &Model) -> Diagnostics {
        deprecated("template_file")
    }

    async fn plan(&self, plan: &mut Plan<'_, Model>, _cx: &mut Context<()>) -> Result<()> {
        keep_if_same(plan, Model::agrees)
    }

    async fn create(&self, plan: Model, _cx: &mut Context<()>) -> Result<Model> {
        plan.rendered()
    }

    async fn read(&self, state: Model, _cx: &mut Context<()>) -> Result<Option<Model>> {
        state.rendered().map(Some)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use monoform_sdk::cty::{Type, Value};
    use monoform_sdk_testing::Harness;

    fn vars(name: &str, value: &str) -> Value {
        Value::map(Type::String, [(Arc::from(name), value.into())].into_iter().collect())
    }

    #[tokio::test]
    async fn the_data_source_renders() {
        let harness = Harness::new(crate::provider());
        let state = harness
            .data(
                "template_file",
                &[("template", "Hi ${who}".into()), ("vars", vars("who", "you"))],
            )
            .await
            .unwrap();
        assert_eq!(state.get("rendered"), Some(&"Hi you".into()));
        let empty = harness.data("template_file", &[("template", "".into())]).await.unwrap();
        assert_eq!(empty.get("template"), Some(&Value::null(Type::String)));
        assert_eq!(
            empty.get("id"),
            Some(&"e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855".into())
        );
        for (config, expected) in [
            (("template", Value::from("${bad")), "failed to render"),
            (("filename", "x".into()), "Use the 'template' attribute instead"),
        ] {
            let error = harness.data("template_file", &[config]).await.unwrap_err();
            assert!(error.0[0].detail.contains(expected), "{error:?}");
        }
    }

    #[tokio::test]
    async fn the_resource_does_the_same_and_warns() {
        let harness = Harness::new(crate::provider());
        let config = [("template", Value::from("Hi ${who}")), ("vars", vars("who", "you"))];
        let warning = &harness.validate("template_file", &config).0[0];
        assert!(
            warning
                .summary
                .starts_with("using template_file as a resource is deprecated")
        );
        let state = harness.create("template_file", &config).await.unwrap();
        assert_eq!(state.get("rendered"), Some(&"Hi you".into()));
        let again = harness.plan("template_file", Some(&state), &config).await.unwrap();
        assert_eq!(again.planned, state);
        let other = [("template", "Hi ${who}".into()), ("vars", vars("who", "them"))];
        let changed = harness.plan("template_file", Some(&state), &other).await.unwrap();
        assert_eq!(changed.replace, ["vars"]);
        // An empty template becomes null in the state, but the next plan has no difference.
        let empty = harness
            .create("template_file", &[("template", "".into())])
            .await
            .unwrap();
        let again = harness
            .plan("template_file", Some(&empty), &[("template", "".into())])
            .await
            .unwrap();
        assert_eq!(again.planned, empty);
    }
}
