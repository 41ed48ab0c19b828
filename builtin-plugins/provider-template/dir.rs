//! `template_dir`: a directory of files rendered from a directory of templates.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use monoform_sdk::schema::{optional, required};
use monoform_sdk::{
    Attr, Context, Diagnostic, Diagnostics, Plan, Resource, Result, Schema, async_trait, blocking, model,
};
use system::files::{MetadataExt as _, OpenOptionsExt as _};

use crate::render::render;
use crate::{Vars, image, values};

model! {
    /// Two directories.
    pub struct Model {
        /// The directory with the templates, which may have directories in it.
        pub source_dir: Attr<String> = required().requires_replace(),
        /// The directory for the files. What is there is deleted first.
        pub destination_dir: Attr<String> = required().requires_replace(),
        /// The values of the templates' variables. Every one is text there.
        pub vars: Vars = optional().requires_replace(),
        /// A checksum of both directories.
        pub id: Attr<String> = optional().computed().keep(),
    }
}

pub(crate) struct TemplateDir;

fn failed(what: &str, path: &Path, error: &dyn std::fmt::Display) -> Diagnostics {
    Diagnostic::error(
        "Unable to render the directory",
        format!("{what} {} failed: {error}.", path.display()),
    )
    .into()
}

/// Collects the files below a directory, sorted by path.
fn files(dir: &Path, out: &mut Vec<PathBuf>) -> io::Result<()> {
    let mut entries = fs::read_dir(dir)?
        .map(|e| e.map(|e| e.path()))
        .collect::<io::Result<Vec<_>>>()?;
    entries.sort();
    for path in entries {
        // A link to a directory is not followed. Reading it as a file fails later, and reports the link.
        if fs::symlink_metadata(&path)?.is_dir() {
            files(&path, out)?;
        } else {
            out.push(path);
        }
    }
    Ok(())
}

fn delete(dir: &Path) -> Result<()> {
    match fs::remove_dir_all(dir) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed("deleting", dir, &error)),
        _ => Ok(()),
    }
}

fn create(source: &Path, destination: &Path, vars: &BTreeMap<String, String>) -> Result<String> {
    let mut templates = Vec::new();
    files(source, &mut templates).map_err(|e| failed("reading", source, &e))?;
    // The destination is deleted before rendering, so a source directory inside it would be lost.
    if let (Ok(from), Ok(to)) = (source.canonicalize(), destination.canonicalize())
        && from.starts_with(to)
    {
        let problem = "it is, or contains, source_dir, and is deleted before files are written";
        return Err(failed("writing to destination_dir", destination, &problem));
    }
    delete(destination)?;
    fs::create_dir_all(destination).map_err(|e| failed("creating", destination, &e))?;
    for template in templates {
        let bytes = fs::read(&template).map_err(|e| failed("reading", &template, &e))?;
        let text = String::from_utf8(bytes)
            .map_err(|_| failed("reading", &template, &"it is not text in UTF-8, which templates are"))?;
        let mode = fs::symlink_metadata(&template)
            .map_err(|e| failed("reading", &template, &e))?
            .mode();
        let text = render(&text, vars).map_err(|problem| {
            Diagnostic::error(
                "failed to render template",
                format!("failed to render {}: {problem}", template.display()),
            )
        })?;
        let below = template
            .strip_prefix(source)
            .map_err(|e| failed("reading", &template, &e))?;
        let path = destination.join(below);
        if let Some(dir) = path.parent() {
            fs::create_dir_all(dir).map_err(|e| failed("creating", dir, &e))?;
        }
        let mut options = fs::OpenOptions::new();
        let file = options
            .write(true)
            .create(true)
            .truncate(true)
            .mode(mode & 0o7777)
            .open(&path);
        file.and_then(|mut file| io::Write::write_all(&mut file, text.as_bytes()))
            .map_err(|e| failed("writing", &path, &e))?;
    }
    checksum(source, destination)
}

fn checksum(source: &Path, destination: &Path) -> Result<String> {
    let of = |dir: &Path| image::checksum(dir).map_err(|e| failed("reading", dir, &e));
    Ok(image::checksum_of(
        format!("{}{}", of(source)?, of(destination)?).as_bytes(),
    ))
}

#[async_trait]
impl Resource for TemplateDir {
    type Model = Model;
    type Client = ();

    const LENIENT: bool = true;

    fn schema(&self) -> Schema {
        Schema::of::<Model>().describe(
            "A directory of files made from a directory of templates. It is written again when either changes, and deleted with \
             its content when the resource is destroyed.",
        )
    }

    async fn plan(&self, plan: &mut Plan<'_, Model>, _cx: &mut Context<()>) -> Result<()> {
        let planned = plan.planned()?;
        let agrees = |prior: &Model| {
            planned.source_dir == prior.source_dir
                && planned.destination_dir == prior.destination_dir
                && !planned.vars.is_unknown()
                && values(&planned.vars) == values(&prior.vars)
        };
        match plan.prior()? {
            Some(prior) if agrees(&prior) => plan.set(&prior),
            _ => {}
        }
        Ok(())
    }

    async fn create(&self, plan: Model, _cx: &mut Context<()>) -> Result<Model> {
        let (source, destination) = (
            PathBuf::from(plan.source_dir.text()),
            PathBuf::from(plan.destination_dir.text()),
        );
        let vars = values(&plan.vars);
        let id = blocking(move || create(&source, &destination, &vars));
        Ok(Model {
            id: id.await?.into(),
            vars: plan.vars.into_known().filter(|v| !v.is_empty()).into(),
            ..plan
        })
    }

    async fn read(&self, state: Model, _cx: &mut Context<()>) -> Result<Option<Model>> {
        let (source, destination) = (
            PathBuf::from(state.source_dir.text()),
            PathBuf::from(state.destination_dir.text()),
        );
        // If the directory cannot be examined, it counts as existing.
        if !destination.try_exists().unwrap_or(true) {
            return Ok(None);
        }
        let found = blocking(move || checksum(&source, &destination)).await?;
        // A changed directory counts as deleted, so that it is created again.
        Ok(Some(state).filter(|state| state.id.text() == found))
    }

    async fn delete(&self, state: Model, _cx: &mut Context<()>) -> Result<()> {
        let destination = PathBuf::from(state.destination_dir.text());
        blocking(move || delete(&destination)).await
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use monoform_sdk::cty::{Type, Value};
    use monoform_sdk_testing::Harness;

    use super::*;

    fn config(dir: &Path) -> Vec<(&'static str, Value)> {
        let vars = [("who".into(), "you".into())].into_iter().collect();
        vec![
            ("source_dir", dir.join("source").to_str().unwrap().into()),
            ("destination_dir", dir.join("out/deep").to_str().unwrap().into()),
            ("vars", Value::map(Type::String, vars)),
        ]
    }

    #[tokio::test]
    async fn a_directory_is_rendered_and_known_again() {
        let dir = tempfile::tempdir().unwrap();
        let (source, out) = (dir.path().join("source"), dir.path().join("out/deep"));
        fs::create_dir_all(source.join("sub")).unwrap();
        fs::create_dir_all(&out).unwrap();
        fs::write(source.join("a"), "Hi ${who}").unwrap();
        fs::write(source.join("sub/run"), "#!").unwrap();
        fs::set_permissions(source.join("sub/run"), fs::Permissions::from_mode(0o700)).unwrap();
        fs::write(out.join("old"), "").unwrap();

        let harness = Harness::new(crate::provider());
        let config = config(dir.path());
        let state = harness.create("template_dir", &config).await.unwrap();
        assert_eq!(fs::read_to_string(out.join("a")).unwrap(), "Hi you");
        assert_eq!(
            fs::metadata(out.join("sub/run")).unwrap().permissions().mode() & 0o777,
            0o700
        );
        assert!(!out.join("old").exists());
        assert_eq!(harness.read("template_dir", &state).await.unwrap(), state);
        let again = harness.plan("template_dir", Some(&state), &config).await.unwrap();
        assert_eq!(again.planned, state);

        // After a change of either directory, the object counts as deleted.
        fs::write(source.join("a"), "Ho ${who}").unwrap();
        assert!(harness.read("template_dir", &state).await.unwrap().is_null());
        let state = harness.create("template_dir", &config).await.unwrap();
        fs::write(out.join("more"), "").unwrap();
        assert!(harness.read("template_dir", &state).await.unwrap().is_null());
        harness.apply("template_dir", Some(&state), None, &[]).await.unwrap();
        assert!(!out.exists() && dir.path().join("out").exists());
        assert!(harness.read("template_dir", &state).await.unwrap().is_null());
    }

    #[tokio::test]
    async fn what_cannot_be_rendered() {
        let dir = tempfile::tempdir().unwrap();
        let source = dir.path().join("source");
        let harness = Harness::new(crate::provider());
        let config = config(dir.path());
        let error = async |config: &[(&'static str, Value)]| {
            harness
                .create("template_dir", config)
                .await
                .unwrap_err()
                .0
                .remove(0)
                .detail
        };
        assert!(error(&config).await.contains("source failed"));
        fs::create_dir_all(&source).unwrap();
        fs::write(source.join("x"), "${bad}").unwrap();
        assert!(error(&config).await.contains("no variable named \"bad\""));
        fs::write(source.join("x"), b"\xff").unwrap();
        assert!(error(&config).await.contains("UTF-8"));
        let mut onto = config.clone();
        onto[1] = ("destination_dir", dir.path().to_str().unwrap().into());
        assert!(error(&onto).await.contains("contains, source_dir"));
        assert!(source.join("x").exists());
    }
}
