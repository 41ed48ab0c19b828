//! `cloudinit_config`, as a data source and as a managed resource.

use monoform_sdk::schema::{block, computed, optional, required};
use monoform_sdk::{
    Attr, Check, Context, DataSource, Diagnostic, Diagnostics, Resource, Result, Schema, Validator, async_trait, model,
};

use crate::render::{self, BOUNDARY, CONTENT_TYPE};

model! {
    /// A part of the message.
    pub struct Part {
        /// The content. It may be empty.
        pub content: Attr<String> = required().requires_replace(),
        /// MIME type of the content, by which cloud-init decides what to do. Defaults to `text/plain`.
        pub content_type: Attr<String> = optional().computed().default(CONTENT_TYPE.to_owned())
            .validate(Validator::LengthAtLeast(1)).requires_replace(),
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
        pub part: Attr<Vec<Part>> = block().validate(Validator::Required).requires_replace(),
        /// True if the result is compressed, which is the default.
        pub gzip: Attr<bool> = optional().computed().default(true).requires_replace(),
        /// True if the result is written in base64, which is the default. Compressed results must be.
        pub base64_encode: Attr<bool> = optional().computed().default(true).requires_replace(),
        /// The line between the parts; `MIMEBOUNDARY` unless it is set. No part may contain it.
        pub boundary: Attr<String> = optional().computed().default(BOUNDARY.to_owned())
            .validate(Validator::LengthAtLeast(1)).validate(Validator::custom(boundary)).requires_replace(),
        /// The message, compressed and encoded as configured.
        pub rendered: Attr<String> = computed(),
        /// The CRC-32 of the result, as a decimal number.
        pub id: Attr<String> = computed(),
    }
}

fn boundary(check: &Check<'_>) -> Option<Diagnostic> {
    let text = check.value.as_str().filter(|text| !text.is_empty())?;
    let problem = render::boundary_problem(text)?;
    Some(cannot_render(problem).at(check.path.clone()))
}

fn cannot_render(problem: String) -> Diagnostic {
    Diagnostic::error("Unable to render cloudinit config to MIME multi-part file", problem)
}

/// Rejects compression without base64. Unknown arguments are accepted, and checked again once they are known.
fn check(config: &Model) -> Diagnostics {
    let wanted = |attr: &Attr<bool>| match attr {
        Attr::Known(wanted) => Some(*wanted),
        // Validation sees null for an argument that is not set. The default of both arguments is true.
        Attr::Null => Some(true),
        Attr::Unknown => None,
    };
    match (wanted(&config.gzip), wanted(&config.base64_encode)) {
        (Some(true), Some(false)) => Diagnostic::error(
            "Invalid Attribute Configuration",
            "The argument gzip is true unless set, and compressed data is not valid text. Set gzip to false, or remove \
             base64_encode.",
        )
        .at_attribute("base64_encode")
        .into(),
        _ => Diagnostics::new(),
    }
}

/// Completes a configuration with its defaults and the rendered result.
fn complete(config: Model) -> Result<Model> {
    let problems = check(&config);
    if problems.has_errors() {
        return Err(problems);
    }
    // The boundary is checked again, since it may have become known only after validation.
    let boundary = config.boundary.or(BOUNDARY.to_owned());
    if let Some(problem) = render::boundary_problem(&boundary) {
        return Err(cannot_render(problem).into());
    }
    let parts: Vec<Part> = config.part.or(Vec::new()).into_iter().map(with_type).collect();
    let (gzip, base64) = (config.gzip.or(true), config.base64_encode.or(true));
    let written: Vec<render::Part<'_>> = parts.iter().map(Part::written).collect();
    let rendered =
        render::encode(render::message(&written, &boundary), gzip, base64).map_err(|e| cannot_render(e.to_string()))?;
    Ok(Model {
        part: parts.into(),
        gzip: gzip.into(),
        base64_encode: base64.into(),
        boundary: boundary.into(),
        id: render::checksum(&rendered).into(),
        rendered: rendered.into(),
    })
}

impl Part {
    fn written(&self) -> render::Part<'_> {
        render::Part {
            content: self.content.text(),
            content_type: self.content_type.text(),
            filename: self.filename.text(),
            merge_type: self.merge_type.text(),
        }
    }
}

fn with_type(part: Part) -> Part {
    let content_type = match part.content_type.text() {
        "" => CONTENT_TYPE.into(),
        _ => part.content_type,
    };
    Part { content_type, ..part }
}

pub(crate) struct CloudInitData;

#[async_trait]
impl DataSource for CloudInitData {
    type Model = Model;
    type Client = ();

    fn schema(&self) -> Schema {
        Schema::of::<Model>().describe("User data for cloud-init: one MIME message of several parts.")
    }

    fn validate(&self, config: &Model) -> Diagnostics {
        check(config)
    }

    async fn read(&self, config: Model, _cx: &mut Context<()>) -> Result<Model> {
        complete(config)
    }
}

pub(crate) struct CloudInitResource;

#[async_trait]
impl Resource for CloudInitResource {
    type Model = Model;
    type Client = ();
    // The object exists in the state only, so a host needs no refresh.
    const STATE_ONLY: bool = true;

    fn schema(&self) -> Schema {
        Schema::of::<Model>()
            .describe("User data for cloud-init, as it was when this resource was created.")
            .deprecated("The data source of the same name gives the same result and keeps no state: use that instead.")
    }

    fn validate(&self, config: &Model) -> Diagnostics {
        check(config)
    }

    async fn create(&self, plan: Model, _cx: &mut Context<()>) -> Result<Model> {
        complete(plan)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use monoform_sdk::Cty;
    use monoform_sdk::cty::{Type, Value};
    use monoform_sdk_testing::Harness;

    use super::Part;

    /// Returns a part that has only content; its type is the default.
    fn part(content: &str) -> Part {
        Part {
            content: content.into(),
            ..Part::default()
        }
    }

    fn parts(parts: Vec<Part>) -> (&'static str, Value) {
        ("part", parts.to_cty())
    }

    fn plain(part: (&'static str, Value)) -> Vec<(&'static str, Value)> {
        vec![part, ("gzip", false.into()), ("base64_encode", false.into())]
    }

    #[tokio::test]
    async fn the_message_byte_by_byte() {
        let harness = Harness::new(crate::provider());
        let state = harness
            .data("cloudinit_config", &plain(parts(vec![part("baz")])))
            .await
            .unwrap();
        assert_eq!(state.get("id"), Some(&"2112020244".into()));

        let full = Part {
            content: "#!/bin/sh\n".into(),
            content_type: "text/x-shellscript".into(),
            filename: "a.sh".into(),
            merge_type: "list(append)".into(),
        };
        let mut config = plain(parts(vec![part(""), full]));
        config.push(("boundary", "x y".into()));
        let expected = "Content-Type: multipart/mixed; boundary=\"x y\"\nMIME-Version: 1.0\r\n\r\n\
             --x y\r\nContent-Transfer-Encoding: 7bit\r\nContent-Type: text/plain\r\nMime-Version: 1.0\r\n\r\n\r\n\
             --x y\r\nContent-Disposition: attachment; filename=\"a.sh\"\r\nContent-Transfer-Encoding: 7bit\r\n\
             Content-Type: text/x-shellscript\r\nMime-Version: 1.0\r\nX-Merge-Type: list(append)\r\n\r\n\
             #!/bin/sh\n\r\n--x y--\r\n";
        let data = harness.data("cloudinit_config", &config).await.unwrap();
        assert_eq!(data.get("rendered"), Some(&expected.into()));
        let resource = harness.create("cloudinit_config", &config).await.unwrap();
        assert_eq!(resource, data);
    }

    #[tokio::test]
    async fn message_is_compressed_and_encoded_by_default() {
        let harness = Harness::new(crate::provider());
        let message = harness
            .data("cloudinit_config", &plain(parts(vec![part("baz")])))
            .await
            .unwrap();
        let state = harness
            .data("cloudinit_config", &[parts(vec![part("baz")])])
            .await
            .unwrap();
        let bytes = STANDARD
            .decode(state.get("rendered").unwrap().as_str().unwrap())
            .unwrap();
        assert_eq!(bytes[..10], [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255]);
        let mut text = String::new();
        flate2::read::GzDecoder::new(&bytes[..])
            .read_to_string(&mut text)
            .unwrap();
        assert_eq!(message.get("rendered"), Some(&text.into()));
        for (name, value) in [
            ("gzip", Value::bool(true)),
            ("base64_encode", true.into()),
            ("boundary", "MIMEBOUNDARY".into()),
            (
                "part",
                vec![Part {
                    content_type: "text/plain".into(),
                    ..part("baz")
                }]
                .to_cty(),
            ),
        ] {
            assert_eq!(state.get(name), Some(&value), "{name}");
        }
        let encoded = [parts(vec![part("baz")]), ("gzip", false.into())];
        let encoded = harness.data("cloudinit_config", &encoded).await.unwrap();
        let bytes = STANDARD
            .decode(encoded.get("rendered").unwrap().as_str().unwrap())
            .unwrap();
        assert_eq!(message.get("rendered").unwrap().as_str().unwrap().as_bytes(), bytes);
    }

    #[tokio::test]
    async fn what_cannot_be_rendered() {
        let harness = Harness::new(crate::provider());
        let some = || parts(vec![part("x")]);
        let long = "x".repeat(71);
        for (config, summary) in [
            (vec![], "Invalid Block"),
            (
                vec![some(), ("base64_encode", false.into())],
                "Invalid Attribute Configuration",
            ),
            (vec![some(), ("boundary", "".into())], "Invalid Attribute Value Length"),
            (
                vec![parts(vec![Part {
                    content_type: "".into(),
                    ..part("x")
                }])],
                "Invalid Attribute Value Length",
            ),
            (
                vec![some(), ("boundary", "a;b".into())],
                super::cannot_render(String::new()).summary.as_str(),
            ),
            (
                vec![some(), ("boundary", "end ".into())],
                super::cannot_render(String::new()).summary.as_str(),
            ),
            (
                vec![some(), ("boundary", (&*long).into())],
                super::cannot_render(String::new()).summary.as_str(),
            ),
        ] {
            for errors in [
                harness.data("cloudinit_config", &config).await.unwrap_err().0,
                harness.validate("cloudinit_config", &config).0,
            ] {
                assert!(errors.iter().any(|e| e.summary == summary), "{config:?}: {errors:?}");
            }
        }
        // Unknown values pass validation.
        let unknown = [
            ("part", Value::unknown(Vec::<Part>::ty())),
            ("gzip", Value::unknown(Type::Bool)),
            ("base64_encode", false.into()),
        ];
        assert!(!harness.validate("cloudinit_config", &unknown).has_errors());
    }

    /// The bytes are those of version 2.4.0 of the official provider. Other bytes would be other user data, and would replace the machine.
    #[tokio::test]
    async fn compressed_messages_are_the_official_ones() {
        let harness = Harness::new(crate::provider());
        for (contents, id) in [(vec!["zipped", "zipped"], "3285374417"), (vec!["x"], "25732319")] {
            let config = [parts(contents.into_iter().map(part).collect())];
            let state = harness.data("cloudinit_config", &config).await.unwrap();
            assert_eq!(state.get("id"), Some(&id.into()));
        }
    }

    #[tokio::test]
    async fn every_change_replaces_and_none_changes_nothing() {
        let harness = Harness::new(crate::provider());
        let two = || vec![part("a"), part("b")];
        let state = harness.create("cloudinit_config", &[parts(two())]).await.unwrap();
        let same = harness
            .plan("cloudinit_config", Some(&state), &[parts(two())])
            .await
            .unwrap();
        assert_eq!((same.planned, same.replace), (state.clone(), vec![]));

        let other = Part {
            filename: "f".into(),
            ..part("b")
        };
        for (config, expected) in [
            (vec![parts(vec![part("a")])], "part"),
            (vec![parts(vec![part("a"), part("b"), part("c")])], "part"),
            (vec![parts(vec![part("a"), other])], "part[1].filename"),
            (vec![parts(two()), ("gzip", false.into())], "gzip"),
            (vec![parts(two()), ("boundary", "B".into())], "boundary"),
        ] {
            let plan = harness.plan("cloudinit_config", Some(&state), &config).await.unwrap();
            assert!(
                plan.replace.iter().any(|p| p == expected),
                "{config:?}: {:?}",
                plan.replace
            );
            assert_eq!(plan.planned.get("rendered"), Some(&Value::unknown(Type::String)));
        }
    }
}
