//! The data sources `local_file` and `local_sensitive_file`.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use monoform_sdk::schema::{computed, required};
use monoform_sdk::{Attr, Context, DataSource, Diagnostic, Result, Schema, async_trait, blocking, model};

use crate::checksums::Checksums;

// Both data sources have the same attributes, but only one has sensitive content.
macro_rules! file_data_source {
    ($source:ident, $model:ident, $content:expr, $about:literal) => {
        model! {
            /// A file that is there.
            pub struct $model {
                /// Path of the file.
                pub filename: Attr<String> = required(),
                /// The content as text.
                pub content: Attr<String> = $content,
                /// The content in base64.
                pub content_base64: Attr<String> = $content,
                /// Checksums of the content.
                pub sums: Checksums = flatten,
            }
        }

        pub(crate) struct $source;

        #[async_trait]
        impl DataSource for $source {
            type Model = $model;
            type Client = ();

            fn schema(&self) -> Schema {
                Schema::of::<$model>().describe($about)
            }

            async fn read(&self, mut config: $model, _cx: &mut Context<()>) -> Result<$model> {
                blocking(move || {
                    let filename = config.filename.text();
                    let content = std::fs::read(filename).map_err(|e| {
                        Diagnostic::error(
                            "Read local file data source error",
                            format!("Cannot read {filename}: {e}."),
                        )
                        .at_attribute("filename")
                    })?;
                    config.content = String::from_utf8_lossy(&content).into_owned().into();
                    config.content_base64 = STANDARD.encode(&content).into();
                    config.sums = Checksums::compute(&content);
                    Ok(config)
                })
                .await
            }
        }
    };
}

file_data_source!(LocalFile, FileModel, computed(), "The content of a file.");
file_data_source!(
    LocalSensitiveFile,
    SensitiveFileModel,
    computed().sensitive(),
    "The content of a file, which is not shown."
);

#[cfg(test)]
mod tests {
    use monoform_sdk_testing::Harness;

    #[tokio::test]
    async fn content_comes_as_text_and_bytes() {
        let harness = Harness::new(crate::provider());
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("x");
        let config = [("filename", file.to_str().unwrap().into())];
        for name in ["local_file", "local_sensitive_file"] {
            std::fs::write(&file, "a€").unwrap();
            let state = harness.data(name, &config).await.unwrap();
            assert_eq!(state.get("content"), Some(&"a€".into()));
            assert_eq!(state.get("content_base64"), Some(&"YeKCrA==".into()));
            std::fs::remove_file(&file).unwrap();
            let errors = harness.data(name, &config).await.unwrap_err();
            assert_eq!(errors.0[0].summary, "Read local file data source error");
        }
    }
}
